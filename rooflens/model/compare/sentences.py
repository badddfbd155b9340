"""What became of a kernel, in one sentence: how much faster, where its point moved, and what it is bound by now."""

from __future__ import annotations

from rooflens.format import duration, percent, si, significant
from rooflens.model.compare.compare import Change, Comparison, Spread, Timing
from rooflens.model.records import Analysis, Level
from rooflens.model.verdict.sentences import LEVEL_LABELS, limiter_words, resource_label

MOVED_RATIO = 1.05
"""Intensities and amounts closer to one another than this factor count as equal."""

AS_FAST = 0.005
"""A factor nearer to 1 than this would be written as 1.00."""

STEPPED_SHARE = 0.02
"""A share that changed by less than two points is the same to a reader."""


def timing_words(timing: Timing, threshold: float) -> str:
    """Say how much faster or slower, whether that is more than noise, and which side has a single run."""
    words = factor_words(timing, threshold)
    return f"{words} ({timing.runs})" if timing.outcome(threshold) == "single" else words


def factor_words(timing: Timing, threshold: float) -> str:
    """Say how much faster or slower, and whether that is more than noise."""
    factor, outcome = timing.factor, timing.outcome(threshold)
    if factor is None or outcome == "unknown":
        return "no time to compare"
    if outcome == "same":
        return f"no change beyond noise ({_signed(timing)})"
    if outcome == "single" and abs(factor - 1) < AS_FAST:
        return "unchanged"
    if abs(factor - 1) < AS_FAST:
        return f"{outcome} ({_signed(timing)})"
    return f"{significant(factor)}x faster" if factor > 1 else f"{significant(1 / factor)}x slower"


def _signed(timing: Timing) -> str:
    change = timing.change or 0.0
    return f"{'+' if change >= 0 else '-'}{abs(change) * 100:.1f} %"


def change_sentence(change: Change, comparison: Comparison) -> str:
    """Describe one kernel: `1.9x faster: moved right (DRAM bytes 512 MB -> 260 MB), memory-bound at 91 %`."""
    before, after = change.base, change.head
    if before is None or after is None:
        only = before or after
        return f"{limiter_sentence(only) if only else ''}: {'gone' if after is None else 'new'}"
    parts = [part for part in (_moved(before, after), _limiters(before, after)) if part]
    return f"{speed_words(change, comparison.threshold)}: {', '.join(parts)}"


def speed_words(change: Change, threshold: float) -> str:
    """Say how much faster a kernel became, or its mean launch where launch counts differ."""
    words = timing_words(change.speed, threshold)
    before, after = change.launches
    return f"mean launch {words} ({before:,} -> {after:,} launches)" if change.counts_differ else words


def _moved(before: Analysis, after: Analysis) -> str:
    """Say how the point moved: left or right and by which amounts, or up or down at the same intensity."""
    name = _level_of(before, after)
    label = resource_label(name, before.kernel.gpu, after.kernel.gpu)
    old, new = before.levels[name], after.levels[name]
    if not old.intensity_flop_per_byte or not new.intensity_flop_per_byte:
        return _bytes_only(label, old, new)
    ratio = new.intensity_flop_per_byte / old.intensity_flop_per_byte
    if 1 / MOVED_RATIO < ratio < MOVED_RATIO:
        return _risen(name, label, before, after)
    side = "right" if ratio > 1 else "left"
    return f"moved {side} at {label} ({_why(name, before, after)})"


def _level_of(before: Analysis, after: Analysis) -> str:
    """Choose the level to speak of: the one that bounds the kernel now or before, else DRAM."""
    for one in (after, before):
        if one.verdict.bound == "memory" and one.verdict.resource in LEVEL_LABELS:
            return str(one.verdict.resource)
    return "dram"


def _why(name: str, before: Analysis, after: Analysis) -> str:
    """Name the amounts behind a move: bytes, FLOPs, or both."""
    old, new = before.levels[name], after.levels[name]
    words = []
    if differs(old.amount_bytes, new.amount_bytes):
        words.append(f"bytes {_arrow(old.amount_bytes, new.amount_bytes, 'B')}")
    if differs(before.flop_total, after.flop_total):
        words.append(f"FLOPs {_arrow(before.flop_total, after.flop_total, 'FLOP')}")
    return ", ".join(words) or f"{_arrow(old.intensity_flop_per_byte, new.intensity_flop_per_byte, 'FLOP/B')}"


def _bytes_only(label: str, old: Level, new: Level) -> str:
    if old.amount_bytes is None or new.amount_bytes is None or not differs(old.amount_bytes, new.amount_bytes):
        return ""
    return f"{label} bytes {_arrow(old.amount_bytes, new.amount_bytes, 'B')}"


def _risen(name: str, label: str, before: Analysis, after: Analysis) -> str:
    """Describe the change in the share of the roof, where the intensity stayed."""
    old, new = before.levels[name].share, after.levels[name].share
    if old is None or new is None or not share_differs(old, new):
        return "same place in the roofline"
    return f"moved {'up' if new > old else 'down'} at the same intensity ({label} {percent(old)} -> {percent(new)})"


def _limiters(before: Analysis, after: Analysis) -> str:
    """Compare the verdicts."""
    if (before.verdict.bound, before.verdict.resource) == (after.verdict.bound, after.verdict.resource):
        return f"still {limiter_sentence(after)}"
    return f"{limiter_sentence(before)} -> {limiter_sentence(after)}"


def limiter_sentence(one: Analysis) -> str:
    """Name the class of a verdict, where its limiter is and how near: `memory-bound at L2 (81 %)`."""
    verdict = one.verdict
    share = f" ({percent(verdict.bottleneck.share)})" if verdict.bottleneck and verdict.resource else ""
    if verdict.bound == "unknown":
        return verdict.bound
    name = verdict.bound if verdict.bound == "balanced" else f"{verdict.bound}-bound"
    return f"{limiter_words(name, verdict.resource, one.kernel.gpu)}{share}"


def differs(old: float | None, new: float | None) -> bool:
    """Return whether two amounts differ by more than counters of one kernel do from run to run."""
    if old is None or new is None:
        return False
    low, high = sorted((old, new))
    return high > MOVED_RATIO * low


def share_differs(old: float | None, new: float | None) -> bool:
    """Return whether a reader sees two shares as different."""
    return old is not None and new is not None and abs(new - old) >= STEPPED_SHARE


def _arrow(old: float | None, new: float | None, unit: str) -> str:
    return f"{_amount(old, unit)} -> {_amount(new, unit)}"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "?"
    return f"{significant(value)} {unit}" if unit == "FLOP/B" else si(value, unit)


def total_sentence(comparison: Comparison) -> str:
    """Say what became of the whole program's GPU time, and whether no kernel is on both sides."""
    words = f"GPU time {timing_words(comparison.total, comparison.threshold)}"
    if not comparison.changes or any(change.base and change.head for change in comparison.changes):
        return words
    return f"{words}, but no kernel is on both sides"


def growth_words(timing: Timing) -> str:
    """Say by how much a time grew: `takes 12.0 % more (1.00 ms -> 1.12 ms)`."""
    change = timing.change or 0.0
    more = "less" if change < 0 else "more"
    return f"takes {abs(change) * 100:.1f} % {more} ({spread_words(timing.base)} -> {spread_words(timing.head)})"


def spread_words(spread: Spread) -> str:
    """Write the median of a spread, with its ends where there are several samples."""
    return f"{duration(spread.median_ns)}{range_words(spread)}" if spread.times_ns else "-"


def range_words(spread: Spread) -> str:
    """Write the range of several recordings; empty for one."""
    if len(spread.times_ns) < 2:
        return ""
    return f" [{duration(spread.low_ns)}, {duration(spread.high_ns)}]"
