"""What stands below the table of `analyze`: what to do next, and what makes a verdict another than it looks."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rooflens.format import count, cut_name, plain_name, printable
from rooflens.model.launches import counted_ns, grouped, keyed, ranked_launches
from rooflens.model.verdict.advice import asks_for_more
from rooflens.report.labels import flag_label
from rooflens.report.summary import failure_counts, first_move, flag_counts, rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.records import Analysis
    from rooflens.report.summary import Ranked

MOST_LINES = 3

_NAME_WIDTH = 48
_MOST_PLACES = 3
"""Paths that a command is written with; more are on the command line above it."""


def next_lines(analyses: Sequence[Analysis], place: Sequence[str] = ()) -> list[str]:
    """Write at most three lines: what to do at the kernels with most to win, then the command that tells more.

    Where a kernel lacks counters that is the command which collects them, from its own first move.

    Args:
        analyses: All launches, as the table shows them.
        place: What to give to a command: paths, or a store; empty where no command is wanted.
    """
    total_ns = sum(counted_ns(analysis) or 0.0 for analysis in analyses)
    ranked = rank(grouped(ranked_launches(keyed(analyses), total_ns), total_ns))
    if not ranked:
        return [_again(analyses[0])] if analyses else []
    lacking = [row for row in ranked if asks_for_more(row.move)]
    command = [_move(lacking[0])] if lacking else [_command(ranked, place)] if place else []
    moves = [_move(row) for row in ranked if row not in lacking]
    return [*moves[: MOST_LINES - len(command)], *command]


def caveat_lines(analyses: Sequence[Analysis]) -> list[str]:
    """Say why launches were not analyzed, and explain each flag that changes a verdict; at most three lines.

    The most frequent ones are said.
    """
    failed = (f"{count(amount, 'launch')} not analyzed: {printable(why)}" for why, amount in failure_counts(analyses))
    flags = (f"{count(amount, 'launch')}: {printable(flag_label(flag))}" for flag, amount in flag_counts(analyses))
    return [*failed, *flags][:MOST_LINES]


def _move(row: Ranked) -> str:
    where = f" ({printable(row.where)})" if row.where else ""
    return f"{_name(row)}: {printable(row.move)}{where}"


def _again(failed: Analysis) -> str:
    """Say what to do where every launch failed while it was profiled."""
    return f"{_short(plain_name(failed.kernel.name))}: {printable(first_move(failed))}"


def _name(row: Ranked) -> str:
    return _short(row.group.shown)


def _short(name: str) -> str:
    return printable(cut_name(name, _NAME_WIDTH))


def _command(ranked: Sequence[Ranked], place: Sequence[str]) -> str:
    """Name what shows where a kernel spends its time, if its first move has no place; else the page."""
    given = " ".join(shlex.quote(printable(text)) for text in place) if len(place) <= _MOST_PLACES else "PATH..."
    if any(row.group.worst.analysis.kernel.hotspots and not row.where for row in ranked):
        return f"`rooflens hotspots {given}` shows the lines or instructions that take their time"
    return f"`rooflens report {given} -o page.html` draws each of them, with its findings and what they stand on"
