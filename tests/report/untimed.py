"""Made records of a report without durations."""

from __future__ import annotations

from msgspec.structs import replace
from support import samples

from rooflens.model.records import Analysis, Level, Limit, Move, Verdict

VERDICT = Verdict(
    bound="unknown",
    resource=None,
    at_roof=False,
    cause=None,
    limit=Limit(missing="`gpu__time_duration.sum`"),
    confidence="low",
    moves=(Move("Collect with `ncu --set full`.", "collect"),),
)


def without_durations() -> list[Analysis]:
    """Make two kernels without a duration: no rate, no share, no verdict."""
    return [_without_duration(analysis) for analysis in samples.every_verdict()[:2]]


def _without_duration(one: Analysis) -> Analysis:
    counters = {name: value for name, value in one.kernel.counters.items() if name != "duration_ns"}
    levels = {name: Level(amount_bytes=level.amount_bytes) for name, level in one.levels.items()}
    kernel = replace(one.kernel, counters=counters)
    return replace(one, kernel=kernel, levels=levels, pipes={}, flop_per_s=None, flop_peak_per_s=None, verdict=VERDICT)
