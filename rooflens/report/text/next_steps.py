"""What stands below the table of `analyze`: what to do next, and what makes a verdict another than it looks."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from rooflens.format import count, cut_name, plain_name, printable
from rooflens.model.failed import ALL_NAN
from rooflens.model.verdict.advice import asks_for_more
from rooflens.report.labels import flag_label
from rooflens.report.summary import most_first, worth_a_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.totals import Total

MOST_LINES = 3

_NAME_WIDTH = 48
_MOST_PLACES = 3
"""Paths that a command is written with; more are on the command line above it."""


def next_lines(totals: Sequence[Total], place: Sequence[str] = ()) -> list[str]:
    """Write at most three lines: what to do at the kernels with most to win, then the command that tells more.

    Where a kernel lacks counters that is the command which collects them, from its own first move.

    Args:
        totals: All kernels, as the table shows them.
        place: What to give to a command: paths, or a store; empty where no command is wanted.
    """
    by_time = sorted((total for total in totals if not total.is_failed), key=lambda one: -(one.duration_ns or 0.0))
    ranked = worth_a_line(by_time)
    if not ranked:
        return [f"{_name(totals[0])}: {printable(totals[0].move)}"] if totals else []
    lacking = [total for total in ranked if asks_for_more(total.move)]
    command = [_move(lacking[0])] if lacking else [_command(ranked, place)] if place else []
    moves = [_move(total) for total in ranked if total not in lacking]
    return [*moves[: MOST_LINES - len(command)], *command]


def caveat_lines(totals: Sequence[Total]) -> list[str]:
    """Say why launches were not analyzed, and explain each flag that changes a verdict; at most three lines.

    The most frequent ones are said.
    """
    reasons: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for total in totals:
        reasons.update(total.reasons)
        flagged.update(total.cautions)
    del reasons[ALL_NAN]
    failed = (f"{count(amount, 'launch')} not analyzed: {printable(why)}" for why, amount in reasons.most_common())
    flags = (f"{count(amount, 'launch')}: {printable(flag_label(flag))}" for flag, amount in most_first(flagged))
    return [*failed, *flags][:MOST_LINES]


def _move(total: Total) -> str:
    where = f" ({printable(total.where)})" if total.where else ""
    return f"{_name(total)}: {printable(total.move)}{where}"


def _name(total: Total) -> str:
    return printable(cut_name(plain_name(total.name), _NAME_WIDTH))


def _command(ranked: Sequence[Total], place: Sequence[str]) -> str:
    """Name what shows where a kernel spends its time, if its first move has no place; else the page."""
    given = " ".join(shlex.quote(printable(text)) for text in place) if len(place) <= _MOST_PLACES else "PATH..."
    if any(total.has_hotspots and not total.where for total in ranked):
        return f"`rooflens hotspots {given}` shows the lines or instructions that take their time"
    return f"`rooflens report {given} -o page.html` draws each of them, with its findings and what they stand on"
