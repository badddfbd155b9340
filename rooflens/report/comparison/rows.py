"""A comparison as its page counts it: programs, their kernels, largest change first, and the words for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from rooflens import format as fmt
from rooflens.format import plain_name
from rooflens.model.bounds import Bound
from rooflens.model.compare.compare import Change, Comparison, Outcome, Spread, Timing
from rooflens.model.compare.findings import changed_findings, findings_sentence
from rooflens.model.compare.gate import Compared
from rooflens.model.compare.sentences import change_sentence, factor_words, range_words, total_noun
from rooflens.model.records import Analysis
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.comparison.conditions import is_synthetic
from rooflens.report.labels import BOUND_LABELS

ROWS_ON_PAGE = 80
LEAST_ROWS = 12
"""Kernels listed on a page, shared between its programs, but never fewer than these for each."""

MINUS = "\u2212"
ARROW = "\u2192"


class Limiter(Struct, frozen=True):
    """The limiter of a kernel on one side.

    Attributes:
        near: The resource nearest its peak; empty where no share is known.
        share: How much of that peak is used.
    """

    bound: Bound
    near: str
    share: float | None
    at_roof: bool


class Row(Struct, frozen=True, dict=True):
    """One kernel of a program.

    Attributes:
        key: Short identifier within the page.
    """

    key: str
    change: Change
    comparison: Comparison

    @property
    def name(self) -> str:
        """Name after the change, or before it where the kernel is gone."""
        return plain(self.change.name)

    @property
    def was(self) -> str:
        """Name before the change, where that was another one."""
        base, head = self.change.base, self.change.head
        return plain(base.kernel.name) if base and head and base.kernel.name != head.kernel.name else ""

    @property
    def sentence(self) -> str:
        """What became of it; unmatched kernels have only their limiter to tell."""
        if self.is_matched:
            return arrowed(change_sentence(self.change, self.comparison))
        found = next((known for known in self.limiters if known), None)
        where = "only before, no match after" if self.change.how == "gone" else "only after, no match before"
        return f"{where}: {limiter_words(found)}" if found else where

    @cached_property
    def findings(self) -> str:
        """What became of its findings; empty where nothing did."""
        return findings_sentence(changed_findings(self.change))

    @property
    def outcome(self) -> Outcome:
        """Faster, slower, or no more than noise."""
        return self.change.speed.outcome(self.comparison.threshold)

    @property
    def timing(self) -> Timing:
        """Its GPU time on both sides."""
        return self.change.timing

    @property
    def took(self) -> tuple[str, str]:
        """Its GPU time on both sides, with that of the mean launch where one side has more; empty where it is not."""
        sides = ((self.change.base, self.timing.base), (self.change.head, self.timing.head))
        before, after = (spread_words(spread) if analysis else "" for analysis, spread in sides)
        if not self.change.counts_differ:
            return before, after
        first, last = self.change.mean_launch.base, self.change.mean_launch.head
        return f"{before}, mean {fmt.duration(first.median_ns)}", f"{after}, mean {fmt.duration(last.median_ns)}"

    @property
    def difference(self) -> str:
        """Time that it takes more or less: `-2.71 ms`; a time that was not measured is not zero."""
        return signed_duration(known_lost_ns([self.change]))

    @property
    def verdict(self) -> str:
        """Its outcome in a few words: `1.78x faster`, `within noise`, `new`."""
        if not self.is_matched:
            return self.change.how
        words = "within noise" if self.outcome == "same" else factor_words(self.change.speed, self.comparison.threshold)
        return f"{words}, mean launch" if self.change.counts_differ else words

    @property
    def is_matched(self) -> bool:
        """True where both sides have it."""
        return self.change.base is not None and self.change.head is not None

    @property
    def limiters(self) -> tuple[Limiter | None, Limiter | None]:
        """The limiters before and after."""
        return limiter(self.change.base), limiter(self.change.head)

    @property
    def bound(self) -> Bound:
        """Class of its verdict after the change, or before it where the kernel is gone."""
        analysis = self.change.head or self.change.base
        return analysis.verdict.bound if analysis else "unknown"


class Rest(Struct, frozen=True):
    """Kernels of a program that are counted and not listed."""

    kernels: int
    lost_ns: float | None

    @property
    def difference(self) -> str:
        """Time that they take more or less, all together."""
        return signed_duration(self.lost_ns)


class Program(Struct, frozen=True, dict=True):
    """One program of the page.

    Attributes:
        rows: Its kernels, largest change first, the listed ones.
        rest: Those with smaller differences; None where all are listed.
    """

    key: str
    compared: Compared
    rows: tuple[Row, ...]
    rest: Rest | None

    @property
    def comparison(self) -> Comparison:
        """Both sides with all kernels."""
        return self.compared.comparison

    @property
    def total(self) -> Timing:
        """GPU time of the whole program."""
        return self.comparison.total

    @property
    def title(self) -> str:
        """Name of the program."""
        return arrowed(self.compared.program)

    @cached_property
    def matched(self) -> tuple[Row, ...]:
        """Listed kernels that both sides have."""
        return tuple(row for row in self.rows if row.is_matched)

    @cached_property
    def unmatched(self) -> tuple[tuple[str, tuple[Row, ...]], ...]:
        """Listed kernels that only one side has: those that are gone, then those that are new."""
        found = ((how, tuple(row for row in self.rows if row.change.how == how)) for how in ("gone", "new"))
        return tuple((how, rows) for how, rows in found if rows)

    @property
    def outcome(self) -> Outcome:
        """What became of the program."""
        return self.comparison.speed.outcome(self.comparison.threshold)

    @property
    def headline(self) -> str:
        """What became of the program, in a few words."""
        words = factor_words(self.comparison.speed, self.comparison.threshold)
        return f"{total_noun(self.comparison)} {words}" if self.comparison.counts_differ else words

    @property
    def judgement(self) -> str:
        """Why the program counts as faster, slower or neither."""
        return judgement(self.comparison.speed, self.comparison.threshold)

    @property
    def counts(self) -> tuple[str, ...]:
        """Count all kernels by what became of them."""
        return tuple(_counts(self.comparison))

    @property
    def is_synthetic(self) -> bool:
        """True when a generator wrote any part of it."""
        return any(is_synthetic(side) for side in (self.comparison.base, self.comparison.head))


def programs(compared: Sequence[Compared]) -> tuple[Program, ...]:
    """Put programs in order, largest change first, number their kernels, and share the page's rows between them."""
    most = max(LEAST_ROWS, ROWS_ON_PAGE // max(1, len(compared)))
    found, first = [], 0
    ordered = sorted(compared, key=lambda pair: -abs(pair.comparison.total.lost_ns))
    for i, pair in enumerate(ordered):
        changes = pair.comparison.changes
        rows = tuple(Row(f"k{first + j}", change, pair.comparison) for j, change in enumerate(changes[:most]))
        found.append(Program(f"p{i}", pair, rows, _rest(changes[most:])))
        first += len(rows)
    return tuple(found)


def _rest(changes: Sequence[Change]) -> Rest | None:
    return Rest(len(changes), known_lost_ns(changes)) if changes else None


def _counts(comparison: Comparison) -> Iterable[str]:
    yield fmt.count(len(comparison.changes), "kernel")
    outcomes = [
        change.speed.outcome(comparison.threshold) for change in comparison.changes if change.base and change.head
    ]
    hows = [change.how for change in comparison.changes]
    for words, amount in (
        ("faster", outcomes.count("faster")),
        ("slower", outcomes.count("slower")),
        ("within noise", outcomes.count("same")),
        ("re-tiled", hows.count("re-tiled")),
        ("renamed", hows.count("renamed")),
        ("gone", hows.count("gone")),
        ("new", hows.count("new")),
    ):
        if amount:
            yield f"{amount:,} {words}"


def limiter(analysis: Analysis | None) -> Limiter | None:
    """Name the limiter of a kernel, and how near it is."""
    if analysis is None:
        return None
    verdict = analysis.verdict
    nearest = verdict.bottleneck
    near = resource_label(nearest.resource, analysis.kernel.gpu) if nearest else ""
    return Limiter(verdict.bound, near, nearest.share if nearest else None, verdict.at_roof)


def limiter_words(found: Limiter) -> str:
    """Write a limiter as `memory-bound, DRAM 67.2 %`."""
    near = f", {found.near} {fmt.percent(found.share)}" if found.near else ""
    return f"{BOUND_LABELS[found.bound]}{near}"


def judgement(timing: Timing, threshold: float) -> str:
    """Say why a change counts or does not."""
    outcome = timing.outcome(threshold)
    if outcome == "unknown":
        return "Not judged: one side has no durations."
    if outcome == "single":
        return "With a single run on one side the noise is not known, so nothing is judged."
    least = given_percent(round(timing.limit(threshold), 3))
    if timing.under_wave:
        least += f" ({given_percent(threshold)}, wider for grids below one wave)"
    if outcome == "same":
        if not timing.is_apart:
            return "No change: the ranges of the two sides overlap."
        return f"No change: the medians are less than {least} apart."
    change = signed_percent(timing.change or 0.0)
    return f"Beyond noise: the ranges do not overlap, and the medians differ by {change}, more than {least}."


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
    """Sum what kernels take more or less; None where one of them lacks a time on a side that has it."""
    total_ns = 0.0
    for change in changes:
        sides = ((change.base, change.timing.base), (change.head, change.timing.head))
        if any(analysis is not None and spread.median_ns is None for analysis, spread in sides):
            return None
        total_ns += change.timing.lost_ns
    return total_ns


def spread_words(spread: Spread) -> str:
    """Write a median with its range where there are several recordings."""
    return f"{fmt.duration(spread.median_ns)}{range_words(spread)}"


def plain(name: str) -> str:
    """Write a kernel's name without the noise of a demangler; never empty."""
    return plain_name(name) or "(no name)"


def arrowed(text: str) -> str:
    """Set arrows as arrows."""
    return text.replace(" -> ", f" {ARROW} ")
