"""A comparison as its page counts it: programs, their kernels, largest change first, and the words for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from rooflens import format as fmt
from rooflens.format import plain_name
from rooflens.model.compare.compare import Change, Outcome, Timing
from rooflens.model.compare.gate import SINGLE_RUN_BAND
from rooflens.model.compare.ladder import Ladder
from rooflens.model.records import Analysis
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict_classes import ShownClass
from rooflens.report.comparison.conditions import is_synthetic
from rooflens.report.words.change import change_sentence, factor_words, kernel_names, total_noun
from rooflens.report.words.labels import BOUND_LABELS

ROWS_ON_PAGE = 80
LEAST_ROWS = 12
"""Kernels listed on a page, shared between its programs, but never fewer than these for each."""

MINUS = "\u2212"
ARROW = "\u2192"


class Limiter(Struct, frozen=True):
    """The limiter of a kernel on one side.

    Attributes:
        near: The resource nearest its peak; empty if no share is known.
        share: How much of that peak is used.
    """

    bound: ShownClass
    near: str
    share: float | None
    at_roof: bool


class ComparedKernel(Struct, frozen=True):
    """One kernel of a program.

    Attributes:
        key: Short identifier within the page.
    """

    key: str
    change: Change
    comparison: Ladder

    @property
    def name(self) -> str:
        """Name after the change, or before it where the kernel is gone."""
        return kernel_names(self.comparison).get(self.change.name) or plain(self.change.name)

    @property
    def sentence(self) -> str:
        """What became of it; unmatched kernels have only their limiter to tell."""
        if self.is_matched:
            return arrowed(change_sentence(self.change, self.comparison))
        found = next((known for known in self.limiters if known), None)
        where = "only before, no match after" if self.change.how == "gone" else "only after, no match before"
        return f"{where}: {limiter_words(found)}" if found else where

    @property
    def outcome(self) -> Outcome:
        """Faster, slower, or no more than noise."""
        return self.change.speed.outcome(self.comparison.threshold)

    @property
    def is_unchanged(self) -> bool:
        """True where its time stayed, within noise where that is known, else below the threshold."""
        single = self.outcome == "single" and self.change.speed.is_unchanged(self.comparison.threshold)
        return self.outcome == "same" or single

    @property
    def timing(self) -> Timing:
        """Its GPU time on both sides."""
        return self.change.timing

    @property
    def difference(self) -> str:
        """Time that it takes more or less: `-2.71 ms`; a time that was not measured is not zero."""
        return signed_duration(known_lost_ns([self.change]))

    @property
    def verdict(self) -> str:
        """Its outcome in a few words: `1.78x faster`, `within noise`, `new`."""
        if not self.is_matched:
            return self.change.how
        if self.change.timing.apart:
            return "not compared"
        words = "within noise" if self.outcome == "same" else factor_words(self.change.speed, self.comparison.threshold)
        return f"{words}, mean launch" if self.change.counts_differ else words

    @property
    def is_matched(self) -> bool:
        """True where both sides have it."""
        return self.change.base is not None and self.change.head is not None

    @property
    def limiters(self) -> tuple[Limiter | None, Limiter | None]:
        return limiter(self.change.base), limiter(self.change.head)

    @property
    def bound(self) -> ShownClass:
        """Class of its verdict after the change, or before it where the kernel is gone."""
        analysis = self.change.head or self.change.base
        return analysis.verdict.shown_class if analysis else "unknown"


class ComparedProgram(Struct, frozen=True):
    """One program of the page: two sides of it.

    Attributes:
        rows: Its kernels, largest change first, as many as a page lists.
    """

    key: str
    comparison: Ladder
    rows: tuple[ComparedKernel, ...]

    @property
    def total(self) -> Timing:
        return self.comparison.total

    @property
    def headline(self) -> str:
        """What became of the program, in a few words."""
        words = factor_words(self.comparison.speed, self.comparison.threshold)
        return f"{total_noun(self.comparison)} {words}" if self.comparison.counts_differ else words

    @property
    def is_synthetic(self) -> bool:
        """True when a generator wrote any part of it."""
        return any(is_synthetic(side) for side in (self.comparison.base, self.comparison.head))


def bar_legend(program: ComparedProgram) -> str:
    """Say what the looks of bars mean: noise is named only where several runs show it."""
    known = any(row.outcome in {"faster", "slower", "same"} for row in program.rows)
    least = given_percent(program.comparison.threshold)
    small = "within noise" if known else f"less than {least}, or too little to see"
    return f"Solid: lost; hollow, or pale where it is thin: won; dashed: {small}."


def programs(pairs: Sequence[Ladder]) -> tuple[ComparedProgram, ...]:
    """Put programs in order, largest change first, number their kernels, and share the page's rows between them."""
    most = max(LEAST_ROWS, ROWS_ON_PAGE // max(1, len(pairs)))
    found, first = [], 0
    for i, pair in enumerate(sorted(pairs, key=lambda pair: -abs(pair.total.lost_ns))):
        rows = tuple(ComparedKernel(f"k{first + j}", change, pair) for j, change in enumerate(pair.changes[:most]))
        found.append(ComparedProgram(f"p{i}", pair, rows))
        first += len(rows)
    return tuple(found)


def limiter(analysis: Analysis | None) -> Limiter | None:
    """Name the limiter of a kernel, and how near it is."""
    if analysis is None:
        return None
    verdict = analysis.verdict
    nearest = verdict.bottleneck
    near = resource_label(nearest.resource, analysis.kernel.gpu) if nearest else ""
    return Limiter(verdict.shown_class, near, nearest.share if nearest else None, verdict.at_roof)


def limiter_words(limiter: Limiter) -> str:
    """Write a limiter as `memory-bound, DRAM 67.2 %`."""
    near = f", {limiter.near} {fmt.percent(limiter.share)}" if limiter.near else ""
    return f"{BOUND_LABELS[limiter.bound]}{near}"


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


def plain(name: str) -> str:
    """Write a kernel's name without the noise of a demangler; never empty."""
    return plain_name(name) or "(no name)"


def arrowed(text: str) -> str:
    """Set arrows as arrows."""
    return text.replace(" -> ", f" {ARROW} ")
