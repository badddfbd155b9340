"""The change of a kernel in one sentence: how much faster, what changed, and what limits it now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rooflens.format import count, factor, is_plural, percent, si, significant
from rooflens.model.compare.causes import causes_words, differs, shared_words
from rooflens.model.compare.compare import AS_FAST, Change, Timing
from rooflens.model.compare.given import Given, defaults_words
from rooflens.model.compare.ladder import Ladder
from rooflens.model.keys import short_names
from rooflens.model.records import FAR, Analysis, Limit
from rooflens.model.roofline.unit_names import limiter_words
from rooflens.model.same_work import UnitTime, WorkMatch, time_per_work
from rooflens.report.words.gain_and_limit import share_words

if TYPE_CHECKING:
    from rooflens.model.compare.findings import FindingChange, FindingChanges, Number

NO_CAUSE = "no counter says why"

_MOST_NAMED = 3
"""Findings that a sentence names; the rest are only counted."""
_WITH_PREFIX = 1e5
"""Amounts from here on are written with a prefix: `1.24 G to 220 M operations`."""


def looked_at(ladders: Sequence[Ladder], given: Sequence[Given]) -> str:
    """Say what a gate looked at, and by whose choice: `12 kernels of 1 program, 3 recordings before, 3 after, ...`."""
    ends = [one.each[-1] for one in ladders]
    before, after = (sum(len(getattr(one, side).recordings) for one in ends) for side in ("base", "head"))
    return (
        f"{count(sum(len(one.changes) for one in ends), 'kernel')} of {count(len(ends), 'program')}, "
        f"{count(before, 'recording')} before, {after:,} after, {asked_words(given)}"
    )


def asked_words(given: Sequence[Given]) -> str:
    """Say what a command was asked, and by whom: `with --fail-on 5%; no option comes from ...`."""
    asked = " ".join(one.typed for one in given if one.is_typed)
    return f"with `{asked}`; {defaults_words(given) or 'no option comes from a file or the environment'}"


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
    if timing.is_unchanged(threshold):
        return "unchanged"
    if abs(factor - 1) < AS_FAST:
        return f"{outcome} ({_signed(timing)})"
    return speed_words(factor)


def speed_words(factor: float) -> str:
    """Write a factor with its direction: `1.28x slower`, `0.4 % faster`."""
    if abs(factor - 1) < AS_FAST:
        return f"{abs(1 / factor - 1) * 100:.1f} % {'faster' if factor > 1 else 'slower'}"
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
        return f"{change_words(change, comparison.threshold)}; {limiters_words(before, after)}"
    counted = shared_words(before, after) if change.timing.factor is None else ""
    is_changed = change.speed.factor is not None and not change.speed.is_unchanged(comparison.threshold)
    why = (causes_words(before, after) or NO_CAUSE) if is_changed else ""
    parts = [part for part in (counted, why, limiters_words(before, after)) if part]
    assumed = f"; {assumed_words(change.work)}" if change.work and change.work.assumed else ""
    return f"{change_words(change, comparison.threshold)}: {', '.join(parts)}{assumed}"


def change_words(change: Change, threshold: float) -> str:
    """Say how much faster a kernel became, or its mean launch if launch counts differ."""
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


def other_work_words(why: str, usual: UnitTime | None, unit_time: UnitTime | None) -> str:
    """Say why a time is not compared, and how fast the work was done: `...; 102 GFLOP/s against 6.30 TFLOP/s`."""
    if not usual or not unit_time or usual.unit != unit_time.unit:
        return why
    return f"{why}; {unit_time.beside(usual)}"


def assumed_words(work: WorkMatch) -> str:
    """Say that two kernels are assumed to do the same work, and what is missing to be certain."""
    return f"taken for the same work, as named: {work.why}"


def limiters_words(before: Analysis, after: Analysis) -> str:
    """Compare the verdicts."""
    was, now = before.verdict, after.verdict
    if (was.shown_class, was.resource) == (now.shown_class, now.resource):
        return f"still {limiter_sentence(after)}"
    return f"{limiter_sentence(before)} -> {limiter_sentence(after)}"


def limiter_sentence(analysis: Analysis) -> str:
    """Name the class of a verdict, its limiter and its share: `memory-bound at L2 (81 %)`.

    A class that depends on an unmeasured side is called possible, as the `?` of tables would end a sentence.
    """
    verdict = analysis.verdict
    if verdict.bound == "unknown":
        return verdict.bound
    name = verdict.bound if verdict.bound == "balanced" else f"{verdict.bound}-bound"
    perhaps = "possibly " if verdict.or_bound else ""
    if verdict.bottleneck is None or verdict.resource is None:
        return f"{perhaps}{limiter_words(name, verdict.resource, analysis.kernel.gpu)}"
    place, share = share_words(verdict.bottleneck)
    return f"{perhaps}{limiter_words(name, place, analysis.kernel.gpu)} ({share})"


def total_sentence(comparison: Ladder) -> str:
    """Give the change of the whole program's GPU time, or why it is not compared."""
    if comparison.speed.apart:
        return not_compared(comparison.speed.apart)
    if comparison.speed.factor is None:
        return "no GPU time to compare"
    return f"{total_noun(comparison)} {timing_words(comparison.speed, comparison.threshold)}"


def total_noun(comparison: Ladder) -> str:
    """Name what `Ladder.speed` is the time of, since a sum over other numbers of launches is no measure of speed."""
    compared = comparison.compared
    on_both = f" of {count(len(compared), 'kernel')} on both sides" if comparison.alone else ""
    if not comparison.counts_differ:
        return f"GPU time{on_both}"
    before, after = (sum(change.launches[side] for change in compared) for side in (0, 1))
    only = "mean launch" if len(compared) == 1 else "GPU time of as many launches"
    return f"{only}{on_both} ({before:,} -> {after:,})"


def kernel_names(comparison: Ladder) -> dict[str, str]:
    """Name the kernels of all sides by what distinguishes them, as tables and pages of reports do."""
    of_changes = (one.kernel.name for change in comparison.changes for one in (change.base, change.head) if one)
    of_kernels = (rung.analysis.kernel.name for one in comparison.kernels for rung in one.present if rung.analysis)
    return short_names((*of_changes, *of_kernels))


def findings_sentence(found: FindingChanges | None) -> str:
    """Write what became of the findings, as `uncoalesced loads gone: 31 to 4 sectors a request`, and of the forecast.

    Empty if nothing did.
    """
    if found is None or not found.changes:
        return ""
    said = [_finding_words(one) for one in found.changes[:_MOST_NAMED]]
    more = len(found.changes) - len(said)
    return "; ".join(filter(None, (*said, f"{more} more" if more > 0 else "", _reached(found))))


def _reached(found: FindingChanges) -> str:
    """Set the speed-up against the forecast and the limit, where a finding that cost time went.

    `1.8x reached, 1.3x was predicted, the limit was 1.9x`
    """
    forecast, limit = found.forecast, found.limit
    if forecast and forecast.is_back:
        return f"undoing it: {factor(forecast.predicted)} predicted, {factor(forecast.reached)} measured"
    if found.reached is None or found.reached <= 1 + AS_FAST or not any(one.eased for one in found.changes):
        return ""
    said = [f"{factor(found.reached)} reached"]
    if forecast:
        said.append(f"{factor(forecast.predicted)} was predicted")
    if limit.over_floor is not None:
        said.append(_against_limit(found.reached, limit, limit.over_floor))
    return ", ".join(said) if len(said) > 1 else ""


def _against_limit(reached: float, limit: Limit, most: float) -> str:
    if reached > most and differs(most, reached):
        beaten = f"limit of {factor(most)}: its work" if limit.proven else f"{factor(most)} at its traffic: that"
        return f"more than the {beaten} changed"
    if limit.far:
        return f"the limit was over {factor(FAR)}"
    return f"the limit was {factor(most)}" if limit.proven else f"at its traffic {factor(most)} at most"


def _finding_words(change: FindingChange) -> str:
    """Say a finding: `fp64 divisions no longer matter: 1.24 G to 220 M operations`."""
    return _became(change) + (f": {_number(change.shown)}" if change.shown else "")


def _became(change: FindingChange) -> str:
    title = change.finding.title
    if change.what != "changed":
        return f"{title} {change.what}"
    matter = "matter" if is_plural(title) else "matters"
    if change.eased and change.became == "worse":
        return f"{title} worse, but other things cost more now"
    if change.eased:
        return f"{title.removeprefix('low ')} no longer {matter}"
    if change.began and change.became != "better":
        return f"{title} now {matter}"
    return f"{title} {change.became or 'changed'}"


def _number(number: Number) -> str:
    """Write a number on both sides, or on the one that has it."""
    known = [value for value in (number.before, number.after) if value is not None]
    if number.unit == "share":
        return f"{number.name.replace('_', ' ')} {' to '.join(map(percent, known))}"
    space = "" if number.unit == "x" else " "
    return f"{' to '.join(_amount(value) for value in known)}{space}{number.unit}".strip()


def _amount(value: float) -> str:
    return significant(value) if value < _WITH_PREFIX else si(value, "").strip()
