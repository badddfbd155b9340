"""What became of a kernel, in one sentence: how much faster, what changed, and what it is bound by now."""

from __future__ import annotations

from rooflens.format import count, duration, significant
from rooflens.model.compare.causes import causes_words, shared_words
from rooflens.model.compare.compare import AS_FAST, Change, Timing
from rooflens.model.compare.ladder import Ladder
from rooflens.model.keys import short_names
from rooflens.model.records import Analysis
from rooflens.model.same_work import UnitTime, time_per_work
from rooflens.model.verdict.sentences import limiter_words, share_words
from rooflens.model.verdict_classes import marked


def timing_words(timing: Timing, threshold: float) -> str:
    """Say how much faster or slower, whether that is more than noise, and which side has a single run."""
    words = factor_words(timing, threshold)
    return f"{words} ({timing.runs})" if timing.outcome(threshold) == "single" else words


def factor_words(timing: Timing, threshold: float) -> str:
    """Say how much faster or slower, and whether that is more than noise."""
    if timing.apart:
        return not_compared(timing.apart)
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


def change_sentence(change: Change, comparison: Ladder) -> str:
    """Describe a kernel: `1.78x faster: 59 % fewer FLOPs, compute-bound at FP64 (70 %) -> memory-bound at HBM2`."""
    before, after = change.base, change.head
    if before is None or after is None:
        only = before or after
        return f"{limiter_sentence(only) if only else ''}: {'gone' if after is None else 'new'}"
    if change.timing.apart:
        return f"{speed_words(change, comparison.threshold)}; {limiters_words(before, after)}"
    counted = shared_words(before, after) if change.timing.factor is None else ""
    parts = [part for part in (counted, causes_words(before, after), limiters_words(before, after)) if part]
    return f"{speed_words(change, comparison.threshold)}: {', '.join(parts)}"


def speed_words(change: Change, threshold: float) -> str:
    """Say how much faster a kernel became, or its mean launch where launch counts differ."""
    if change.timing.apart and change.base and change.head:
        old = time_per_work(change.base, change.mean_launch.base.median_ns, change.head)
        new = time_per_work(change.head, change.mean_launch.head.median_ns, change.base)
        return not_compared(other_work_words(change.timing.apart, old, new))
    words = timing_words(change.speed, threshold)
    before, after = change.launches
    return f"mean launch {words} ({before:,} -> {after:,} launches)" if change.counts_differ else words


def not_compared(why: str) -> str:
    """Say that a time is not compared, and why."""
    return f"not compared, {why}"


def other_work_words(why: str, usual: UnitTime | None, own: UnitTime | None) -> str:
    """Say why a time is not compared, and what a unit of the work takes: `...; 9.82 ns a kFLOP, not 0.159 ns`."""
    if not usual or not own or usual.unit != own.unit:
        return why
    return f"{why}; {own.words}, not {duration(usual.time_ns)}"


def limiters_words(before: Analysis, after: Analysis) -> str:
    """Compare the verdicts."""
    was, now = before.verdict, after.verdict
    if (was.shown_class, was.resource) == (now.shown_class, now.resource):
        return f"still {limiter_sentence(after)}"
    return f"{limiter_sentence(before)} -> {limiter_sentence(after)}"


def limiter_sentence(one: Analysis) -> str:
    """Name the class of a verdict, where its limiter is and how near: `memory-bound at L2 (81 %)`."""
    verdict = one.verdict
    if verdict.bound == "unknown":
        return verdict.bound
    name = verdict.bound if verdict.bound == "balanced" else marked(f"{verdict.bound}-bound", verdict.or_bound)
    if verdict.bottleneck is None or verdict.resource is None:
        return limiter_words(name, verdict.resource, one.kernel.gpu)
    place, share = share_words(verdict.bottleneck)
    return f"{limiter_words(name, place, one.kernel.gpu)} ({share})"


def total_sentence(comparison: Ladder) -> str:
    """Say what became of the whole program's GPU time, or why it is not compared."""
    if comparison.speed.apart:
        return not_compared(comparison.speed.apart)
    if comparison.speed.factor is None:
        return "no GPU time to compare"
    return f"{total_noun(comparison)} {timing_words(comparison.speed, comparison.threshold)}"


def total_noun(comparison: Ladder) -> str:
    """Name what `Ladder.speed` is the time of: a sum of other numbers of launches says nothing of their speed."""
    compared = comparison.compared
    on_both = f" of {count(len(compared), 'kernel')} on both sides" if comparison.alone else ""
    if not comparison.counts_differ:
        return f"GPU time{on_both}"
    before, after = (sum(change.launches[side] for change in compared) for side in (0, 1))
    only = "mean launch" if len(compared) == 1 else "GPU time of as many launches"
    return f"{only}{on_both} ({before:,} -> {after:,})"


def kernel_names(comparison: Ladder) -> dict[str, str]:
    """Name the kernels of all sides by what sets them apart, as tables and pages of reports do."""
    of_changes = (one.kernel.name for change in comparison.changes for one in (change.base, change.head) if one)
    of_kernels = (rung.analysis.kernel.name for one in comparison.kernels for rung in one.present if rung.analysis)
    return short_names((*of_changes, *of_kernels))
