"""What stands below the table of `analyze`: what to do next, and what makes a verdict another than it looks."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from rooflens.format import count, cut_name, plain_name, printable
from rooflens.model.failed import ALL_NAN
from rooflens.model.summary import first_move, place_of_move
from rooflens.model.verdict.advice import asks_for_more
from rooflens.report.labels import flag_label
from rooflens.report.summary import most_first, worth_a_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.summary import KernelSummary

MOST_LINES = 3

_NAME_WIDTH = 48
_MOST_PLACES = 3
"""Paths that a command is written with; more are on the command line above it."""


def next_lines(kernels: Sequence[KernelSummary], place: Sequence[str] = ()) -> list[str]:
    """Write at most three lines: what to do at the kernels with most to win, then the command that tells more.

    Where a kernel lacks counters that is the command which collects them, from its own first move.

    Args:
        kernels: All kernels, as the table shows them.
        place: What to give to a command: paths, or a store; empty where no command is wanted.
    """
    by_time = sorted((kernel for kernel in kernels if not kernel.is_failed), key=lambda one: -(one.duration_ns or 0.0))
    ranked = worth_a_line(by_time)
    if not ranked:
        return [f"{_name(kernels[0])}: {printable(first_move(kernels[0].analysis))}"] if kernels else []
    lacking = [kernel for kernel in ranked if asks_for_more(first_move(kernel.analysis))]
    command = [_move(lacking[0])] if lacking else [_command(ranked, place)] if place else []
    moves = [_move(kernel) for kernel in ranked if kernel not in lacking]
    return [*moves[: MOST_LINES - len(command)], *command]


def caveat_lines(kernels: Sequence[KernelSummary]) -> list[str]:
    """Say why launches were not analyzed, and explain each flag that changes a verdict; at most three lines.

    The most frequent ones are said.
    """
    reasons: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for kernel in kernels:
        reasons.update(kernel.reasons)
        flagged.update(kernel.cautions)
    del reasons[ALL_NAN]
    failed = (f"{count(amount, 'launch')} not analyzed: {printable(why)}" for why, amount in reasons.most_common())
    flags = (f"{count(amount, 'launch')}: {printable(flag_label(flag))}" for flag, amount in most_first(flagged))
    return [*failed, *flags][:MOST_LINES]


def _move(kernel: KernelSummary) -> str:
    place = place_of_move(kernel.analysis)
    where = f" ({printable(place)})" if place else ""
    return f"{_name(kernel)}: {printable(first_move(kernel.analysis))}{where}"


def _name(kernel: KernelSummary) -> str:
    return printable(cut_name(plain_name(kernel.name), _NAME_WIDTH))


def _command(ranked: Sequence[KernelSummary], place: Sequence[str]) -> str:
    """Name what shows where a kernel spends its time, if its first move has no place; else the page."""
    given = " ".join(shlex.quote(printable(text)) for text in place) if len(place) <= _MOST_PLACES else "PATH..."
    if any(kernel.analysis.kernel.hotspots and not place_of_move(kernel.analysis) for kernel in ranked):
        return f"`rooflens hotspots {given}` shows the lines or instructions that take their time"
    return f"`rooflens report {given} -o page.html` draws each of them, with its findings and what they stand on"
