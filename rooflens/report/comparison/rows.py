"""A comparison as its page counts it: programs, their kernels, largest change first, and the words for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.compare.compare import Change, Timing
from rooflens.model.compare.gate import SINGLE_RUN_BAND
from rooflens.model.compare.ladder import Ladder
from rooflens.model.records import Analysis
from rooflens.report.comparison.conditions import is_synthetic
from rooflens.report.words.change import factor_words, total_noun
from rooflens.report.words.gain_and_limit import limit_words
from rooflens.report.words.labels import BOUND_LABELS

ROWS_ON_PAGE = 80
LEAST_ROWS = 12
"""Kernels listed on a page, shared between its programs, but never fewer than these for each."""

MINUS = "\u2212"


class ComparedProgram(Struct, frozen=True):
    """One program of the page: two sides of it.

    Attributes:
        key: Short identifier within the page.
        rows: What became of its kernels, largest change first, as many as a page lists.
    """

    key: str
    comparison: Ladder
    rows: tuple[Change, ...]

    @property
    def headline(self) -> str:
        """What became of the program, in a few words."""
        words = factor_words(self.comparison.speed, self.comparison.threshold)
        return f"{total_noun(self.comparison)} {words}" if self.comparison.counts_differ else words

    @property
    def is_synthetic(self) -> bool:
        """True when a generator wrote any part of it."""
        return any(is_synthetic(side) for side in (self.comparison.base, self.comparison.head))


def is_same(change: Change, threshold: float) -> bool:
    """Return whether a kernel's time stayed, within noise where that is known, else below the threshold."""
    outcome = change.speed.outcome(threshold)
    return outcome == "same" or (outcome == "single" and change.speed.is_unchanged(threshold))


def brief_words(change: Change, threshold: float) -> str:
    """Say what became of a kernel in a few words: `1.78x faster`, `within noise`, `new`."""
    if change.base is None or change.head is None:
        return change.how
    if change.timing.apart:
        return "not compared"
    is_noise = change.speed.outcome(threshold) == "same"
    words = "within noise" if is_noise else factor_words(change.speed, threshold)
    return f"{words}, mean launch" if change.counts_differ else words


def bar_legend(program: ComparedProgram) -> str:
    """Say what the looks of bars mean: noise is named only where several runs show it."""
    threshold = program.comparison.threshold
    known = any(row.speed.outcome(threshold) in {"faster", "slower", "same"} for row in program.rows)
    small = "within noise" if known else f"less than {given_percent(threshold)}, or too little to see"
    return f"Solid: lost; hollow, or pale where it is thin: won; dashed: {small}."


def programs(pairs: Sequence[Ladder]) -> tuple[ComparedProgram, ...]:
    """Put programs in order, largest change first, and share the page's rows between them."""
    most = max(LEAST_ROWS, ROWS_ON_PAGE // max(1, len(pairs)))
    ordered = sorted(pairs, key=lambda pair: -abs(pair.total.lost_ns))
    return tuple(ComparedProgram(f"p{i}", pair, pair.changes[:most]) for i, pair in enumerate(ordered))


def limiter_words(analysis: Analysis) -> str:
    """Name the limiter of a kernel, and how near it is: `memory-bound, DRAM 67.2 %`."""
    return ", ".join(filter(None, (BOUND_LABELS[analysis.verdict.shown_class], limit_words(analysis))))


def judgement(timing: Timing, threshold: float) -> str:
    """Say why a change counts or does not, and where a side has a single run, what it tells then."""
    outcome = timing.outcome(threshold)
    if timing.apart:
        return f"Not judged: {timing.apart}."
    if outcome == "unknown":
        return "Not judged: one side has no durations."
    if outcome == "single":
        return _single(timing)
    least = given_percent(round(timing.limit(threshold), 3))
    if timing.under_wave:
        least += f" ({given_percent(threshold)}, wider for grids below one wave)"
    if outcome == "same":
        if not timing.is_apart:
            return "No change: the ranges of the two sides overlap."
        return f"No change: the medians are less than {least} apart."
    change = signed_percent(timing.change or 0.0)
    return f"Beyond noise: the ranges do not overlap, and the medians differ by {change}, more than {least}."


def _single(timing: Timing) -> str:
    """Say what a difference tells whose noise nobody knows: it is set against what single runs differ by."""
    once = given_percent(round(timing.limit(SINGLE_RUN_BAND), 3))
    change = timing.change or 0.0
    said = f"{timing.runs}, so noise is unknown"
    if abs(change) > timing.limit(SINGLE_RUN_BAND):
        return f"{said}; {signed_percent(change)} is more than the {once} that single runs may differ by."
    return f"{said}: single runs may differ by {once}."


def given_percent(share: float) -> str:
    """Write a limit with the digits it was given in: 0.03 is `3 %`."""
    return fmt.given_percent(round(100 * share, 6))


def signed_percent(change: float) -> str:
    """Write a change: `+10.4 %`."""
    return f"{'+' if change >= 0 else MINUS}{abs(change) * 100:.1f} %"


def signed_duration(ns: float | None) -> str:
    """Write a difference of times: `-2.71 ms`; none is a plain 0, and one that is not known is missing."""
    if ns is None:
        return fmt.MISSING
    return f"{'+' if ns > 0 else MINUS}{fmt.duration(abs(ns))}" if ns else "0"


def known_lost_ns(changes: Iterable[Change]) -> float | None:
    """Sum what kernels take more or less; None if one of them lacks a time on a side that has it."""
    total_ns = 0.0
    for change in changes:
        sides = ((change.base, change.timing.base), (change.head, change.timing.head))
        if any(analysis is not None and spread.median_ns is None for analysis, spread in sides):
            return None
        total_ns += change.timing.lost_ns
    return total_ns
