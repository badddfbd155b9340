"""Add launches of one kernel up into one record: sums over sums, never means of ratios.

The record that comes out reads like that of one launch which stands for all of them (`Analysis.launches`): its amounts
are those of the mean launch, so that amount x launches is the sum. With n launches, t their GPU time, summed over all:

| value | rule |
|---|---|
| duration, bytes, FLOP, instructions | sum(n x amount) / sum(n) |
| rates | sum(n x amount) / sum(t) |
| intensity | sum(n x FLOP) / sum(n x bytes) |
| shares and stages | sum(t x share) / sum(t): the time that all need at their peaks, over the time taken |
| peaks and attainable roofs | sum(t x peak) / sum(t) |
| mixed-precision roof | sum(FLOP) / sum(FLOP / peak): FLOP over the time they need at their own peaks |
| headroom, potential | sum(t) / sum(t / headroom), sum(t) / sum(t / potential) |
| flags | those of any launch |
| sources | `upper_bound`, `estimated` and `datasheet` where any launch has them, else those of the longest |

A value that any launch lacks is missing in the sum: a part is never given out as the whole. Only tensor work that a
launch with a known total does not name counts as none.

The verdict is one that a launch got, and none is made anew: of the class with most GPU time, that of its longest
launch, whose sentence then says so. That launch also gives what has no sum: its other counters, stalls, grid and
NVIDIA's words.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from operator import mul
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.records import LEVELS, Bottleneck, Distances, Level, Pipe
from rooflens.model.roofline.levels import with_intensity
from rooflens.model.roofline.work import placed_flop

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rooflens.model.bounds import Bound
    from rooflens.model.records import Analysis, Kernel, Verdict

_DOUBTFUL_SOURCES = ("upper_bound", "estimated", "datasheet")


class _Weights(Struct, frozen=True):
    """What launches weigh in a sum.

    Attributes:
        launches: How many launches each record stands for.
        times_ns: GPU time of each record; None where one of them has none.
    """

    launches: Sequence[int]
    times_ns: Sequence[float] | None

    def mean(self, values: Sequence[float | None]) -> float | None:
        """Return the amount of the mean launch; None where one is missing."""
        return _weighted(values, self.launches)

    def by_time(self, values: Sequence[float | None]) -> float | None:
        """Weight rates and shares by time; None where one is missing, or where they differ and times are missing."""
        first = values[0]
        if values.count(first) == len(values):
            return first
        return None if self.times_ns is None else _weighted(values, self.times_ns)


def aggregate(
    analyses: Sequence[Analysis], *, levels: Sequence[str] = LEVELS, units: Collection[str] | None = None
) -> Analysis:
    """Add launches of one kernel on one GPU up; at least one is needed, and one alone is returned as it is.

    Args:
        analyses: The launches.
        levels: The levels that are added up.
        units: Only pipes whose work is counted in one of these are added up; all of them by default.
    """
    if len(analyses) == 1:
        return analyses[0]
    weights = _weights(analyses)
    longest = _representative(analyses, weights)
    flop_total = weights.mean([a.flop_total for a in analyses])
    duration_ns = weights.mean([a.kernel.duration_ns for a in analyses])
    added = {name: _level([a.levels[name] for a in analyses], weights, duration_ns) for name in levels}
    pipes = _pipes(analyses, weights, duration_ns, units)
    return replace(
        longest,
        kernel=_kernel(analyses, longest.kernel, duration_ns),
        levels=with_intensity(added, placed_flop(pipes, flop_total)),
        pipes=pipes,
        flop=_flop(analyses, weights),
        flop_source=_flop_source(analyses, longest),
        flop_total=flop_total,
        flop_per_s=_per_s(flop_total, duration_ns),
        flop_peak_per_s=_mixed_peak(analyses, weights),
        verdict=_verdict(analyses, longest, weights),
        flags=tuple(sorted({flag for a in analyses for flag in a.flags})),
        launches=sum(weights.launches),
    )


def longest_launch(analyses: Iterable[Analysis]) -> Analysis:
    """Return the record whose launches take longest, each for itself; the first of equal ones."""
    return max(analyses, key=lambda a: a.kernel.duration_ns or 0.0)


def _weighted(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    total = sum(weights)
    if None in values or not total:
        return None
    added: float = sum(map(mul, values, weights))
    return added / total


def _weights(analyses: Sequence[Analysis]) -> _Weights:
    times_ns = [time_ns for a in analyses if (time_ns := a.gpu_time_ns) is not None]
    return _Weights([a.launches for a in analyses], times_ns if len(times_ns) == len(analyses) else None)


def _representative(analyses: Sequence[Analysis], weights: _Weights) -> Analysis:
    """Choose the longest launch of the verdict class that holds most time; most launches where no time is known."""
    times_ns: defaultdict[Bound, float] = defaultdict(float)
    counts: defaultdict[Bound, int] = defaultdict(int)
    known_ns = weights.times_ns or [a.gpu_time_ns or 0.0 for a in analyses]
    for a, time_ns in zip(analyses, known_ns, strict=True):
        times_ns[a.verdict.bound] += time_ns
        counts[a.verdict.bound] += a.launches
    main = max(counts, key=lambda bound: (times_ns[bound], counts[bound]))
    return longest_launch(a for a in analyses if a.verdict.bound == main)


def _kernel(analyses: Sequence[Analysis], longest: Kernel, duration_ns: float | None) -> Kernel:
    """Take the longest launch with the mean duration; where it was launched is kept only where all agree."""
    counters = {name: value for name, value in longest.counters.items() if name != "duration_ns"}
    kernels = [a.kernel for a in analyses]
    return replace(
        longest,
        counters=counters if duration_ns is None else counters | {"duration_ns": duration_ns},
        device=longest.device if all(k.device == longest.device for k in kernels) else None,
        process=longest.process if all(k.process == longest.process for k in kernels) else None,
        nvtx_range=longest.nvtx_range if all(k.nvtx_range == longest.nvtx_range for k in kernels) else None,
        synthetic=any(k.synthetic for k in kernels),
    )


def _level(levels: Sequence[Level], weights: _Weights, duration_ns: float | None) -> Level:
    amount_bytes = weights.mean([level.amount_bytes for level in levels])
    stages = {
        stage: share
        for stage in levels[0].stages
        if (share := weights.by_time([level.stages.get(stage) for level in levels])) is not None
    }
    return Level(
        amount_bytes=amount_bytes,
        source=_joined(level.source for level in levels) if amount_bytes is not None else None,
        bytes_per_s=_per_s(amount_bytes, duration_ns),
        peak_bytes_per_s=weights.by_time([level.peak_bytes_per_s for level in levels]),
        share=weights.by_time([level.share for level in levels]),
        stages=stages,
        attainable_per_s=weights.by_time([level.attainable_per_s for level in levels]),
    )


def _pipes(
    analyses: Sequence[Analysis], weights: _Weights, duration_ns: float | None, units: Collection[str] | None
) -> dict[str, Pipe]:
    used = chain.from_iterable(a.pipes.items() for a in analyses)
    names = dict.fromkeys(name for name, pipe in used if units is None or pipe.unit in units)
    return {name: _pipe(name, analyses, weights, duration_ns) for name in names}


def _pipe(name: str, analyses: Sequence[Analysis], weights: _Weights, duration_ns: float | None) -> Pipe:
    """Add one pipe up; its peak is that of the launches which used it."""
    used = [(a, pipe) for a in analyses if (pipe := a.pipes.get(name)) is not None]
    pipes = [pipe for _, pipe in used]
    own = weights if len(used) == len(analyses) else _weights([a for a, _ in used])
    every = [a.pipes.get(name) or _idle(name, a) for a in analyses]
    amount = weights.mean([None if pipe is None else pipe.amount for pipe in every])
    return Pipe(
        amount=amount,
        unit=pipes[0].unit,
        source=_source([pipe.source for pipe in pipes]) or pipes[0].source,
        amount_per_s=_per_s(amount, duration_ns),
        peak_per_s=own.by_time([pipe.peak_per_s for pipe in pipes]),
        share=weights.by_time([None if pipe is None else pipe.share for pipe in every]),
        peak_source=_source([pipe.peak_source for pipe in pipes]),
        attainable_per_s=own.by_time([pipe.attainable_per_s for pipe in pipes]),
    )


_IDLE = Pipe(amount=0.0, unit="FLOP", source="opcode", share=0.0)


def _idle(name: str, analysis: Analysis) -> Pipe | None:
    """Return a pipe without work for tensor work of which a full count found none; None where it was not counted."""
    return _IDLE if name.startswith("tensor_") and analysis.flop_total is not None else None


def _flop(analyses: Sequence[Analysis], weights: _Weights) -> dict[str, float]:
    """Add FLOPs up by dtype; a dtype that a launch may have and did not count has no sum."""
    names = dict.fromkeys(name for a in analyses for name in a.flop)
    sums = {name: weights.mean([_flop_of(name, a) for a in analyses]) for name in names}
    return {name: amount for name, amount in sums.items() if amount is not None}


def _flop_of(name: str, analysis: Analysis) -> float | None:
    idle = _idle(name, analysis)
    return analysis.flop.get(name, None if idle is None else idle.amount)


def _flop_source(analyses: Sequence[Analysis], longest: Analysis) -> dict[str, str]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for a in analyses:
        for name, source in a.flop_source.items():
            found[name].add(source)
    return {
        name: next((d for d in _DOUBTFUL_SOURCES if d in sources), longest.flop_source.get(name, min(sources)))
        for name, sources in found.items()
    }


def _source(sources: Sequence[str | None]) -> str | None:
    """Name the source to be read with most care, else the first."""
    return next((doubtful for doubtful in _DOUBTFUL_SOURCES if doubtful in sources), sources[0])


def _joined(sources: Iterable[str | None]) -> str | None:
    """Name every source once."""
    return "; ".join(dict.fromkeys(source for source in sources if source)) or None


def _per_s(amount: float | None, duration_ns: float | None) -> float | None:
    return amount / duration_ns * 1e9 if amount is not None and duration_ns else None


def _mixed_peak(analyses: Sequence[Analysis], weights: _Weights) -> float | None:
    """Return total FLOP over the time that each launch needs at its own roof; launches without FLOP need none."""
    busy = [
        (a.flop_total * count, a.flop_peak_per_s)
        for a, count in zip(analyses, weights.launches, strict=True)
        if a.flop_total
    ]
    if not busy or any(a.flop_total is None for a in analyses) or any(not peak for _, peak in busy):
        return None
    return sum(flop for flop, _ in busy) / sum(flop / peak for flop, peak in busy if peak)


def _verdict(analyses: Sequence[Analysis], longest: Analysis, weights: _Weights) -> Verdict:
    """Take the longest launch's verdict; its sentence says whose numbers it holds, its distances are those of all."""
    own = longest.verdict.sentence.removeprefix(_whose(longest.launches))
    return replace(
        longest.verdict,
        distances=_distances([a.verdict.distances for a in analyses], weights),
        bottleneck=_bottleneck(analyses, longest, weights),
        sentence=_whose(sum(weights.launches)) + own,
    )


def _distances(distances: Sequence[Distances], weights: _Weights) -> Distances:
    """Put the time of all launches over the time that each would still take."""

    def factor(name: str) -> float | None:
        factors = [getattr(of_launch, name) for of_launch in distances]
        left = weights.by_time([1 / value if value else None for value in factors])
        return 1 / left if left else None

    potential = factor("potential")
    return Distances(
        headroom=factor("headroom"),
        potential=potential,
        potential_by_reuse=factor("potential_by_reuse"),
        by_fusing_only=all(of_launch.by_fusing_only for of_launch in distances),
        floor_ns=weights.mean([of_launch.floor_ns for of_launch in distances]),
        why_null=None if potential else next((d.why_null for d in distances if d.why_null), "times are not known"),
    )


def _bottleneck(analyses: Sequence[Analysis], longest: Analysis, weights: _Weights) -> Bottleneck | None:
    """Name the longest launch's busiest unit, with the mean by time of every launch's own."""
    named = longest.verdict.bottleneck
    share = weights.by_time([a.verdict.bottleneck.share if a.verdict.bottleneck else None for a in analyses])
    return None if named is None or share is None else Bottleneck(named.resource, share)


def _whose(launches: int) -> str:
    return f"Longest of {launches:,} launches: "
