"""The launches of each kernel of a report as one small record: what a table shows of them, and little else is kept.

A kernel stands in one report only (`identity`), so totals are made report by report, and of a large one piece by piece:
`slimmed` is all that they need of a launch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.aggregate import aggregate
from rooflens.model.failed import ALL_NAN, NO_VALUES, unmeasured
from rooflens.model.launches import cautions, identity, keyed, known_sum, ranked_launches
from rooflens.model.records import LEVELS, Level
from rooflens.model.roofline.work import main_work

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflens.model.bounds import Bound
    from rooflens.model.launches import Launch
    from rooflens.model.records import Analysis, Bottleneck, Confidence, Distances, Finding
    from rooflens.model.roofline.work import Unit

_COUNTERS = ("duration_ns", "sm_clock_hz", "eligible_warps_per_cycle")
"""Counters that totals are made of."""

_NOTHING_AT_LEVEL = Level()


class Total(Struct, frozen=True):
    """All launches of one kernel in one report; those that failed are apart.

    Attributes:
        digest, source: The report, and its path as it was given.
        records: Profiled results; `launches` is how many launches they stand for.
        synthetic: Whether its report was written by a generator.
        duration_ns: GPU time of all of them; None where it is unknown.
        at_stake_ns: Time that is looked at first: what can be won, or all where that is not known.
        unit, work_per_s, work_peak_per_s, intensity: Of its main work; intensity is per byte of DRAM.
        dram_peak_bytes_per_s: Its roof at DRAM.
        is_estimated: Whether a part of its FLOPs is estimated.
        bottleneck, bound, at_roof, resource, cause, confidence: Verdict of the launch with most time at stake.
        ready_warps: Warps that are ready per cycle and scheduler, of that launch.
        costing: Title of that launch's first finding that costs time; empty where there is none.
        distances: Of all launches.
        move: What to do first, and `where`, file and line of that; empty where not known.
        has_hotspots: Whether its report has hot spots of that launch.
        clock_hz, clock_ns: SM clock of its longest launch that has one, and the GPU time of that.
        cautions: Launches by flag that changes their verdict.
        reasons: Launches by the reason why they could not be analyzed.
        whole: All launches added up; None where that was not kept.
    """

    digest: str
    source: str
    gpu: str | None
    name: str
    is_failed: bool
    records: int
    launches: int
    synthetic: bool
    duration_ns: float | None
    at_stake_ns: float
    unit: Unit
    work_per_s: float | None
    work_peak_per_s: float | None
    intensity: float | None
    dram_peak_bytes_per_s: float | None
    is_estimated: bool
    bottleneck: Bottleneck | None
    bound: Bound
    at_roof: bool
    resource: str | None
    cause: str | None
    confidence: Confidence
    ready_warps: float | None
    costing: str
    distances: Distances
    move: str
    where: str
    has_hotspots: bool
    clock_hz: float | None
    clock_ns: float
    cautions: Mapping[str, int]
    reasons: Mapping[str, int]
    whole: Analysis | None = None


def totals_of(analyses: Sequence[Analysis], *, each_launch: bool = False, keep: bool = False) -> list[Total]:
    """Add launches up by kernel, in the order in which kernels come first.

    Args:
        analyses: All launches of any number of reports.
        each_launch: Make a total of each launch alone.
        keep: Keep the launches added up in `whole`.
    """
    kernels: defaultdict[object, list[Analysis]] = defaultdict(list)
    for place, one in enumerate(analyses):
        kernels[place if each_launch else (*identity(one), one.kernel.failed)].append(one)
    return [_total(ranked_launches(keyed(launches), 0.0), keep=keep) for launches in kernels.values()]


def _total(launches: Sequence[Launch], *, keep: bool) -> Total:
    analyses = [launch.analysis for launch in launches]
    whole = aggregate(analyses)
    worst = max(launches, key=lambda launch: (launch.at_stake_ns, launch.duration_ns or 0.0))
    one, verdict, work = worst.analysis, worst.analysis.verdict, main_work(whole)
    is_failed = one.kernel.failed
    clocked = [] if is_failed else [a for a in analyses if "sm_clock_hz" in a.kernel.counters]
    longest = max(clocked, key=lambda a: a.gpu_time_ns or 0.0, default=None)
    reasons = (a.kernel.status_reason or ALL_NAN for a in analyses if is_failed)
    return Total(
        digest=one.kernel.digest,
        source=one.kernel.source,
        gpu=one.kernel.gpu,
        name=worst.name,
        is_failed=is_failed,
        records=len(launches),
        launches=whole.launches,
        synthetic=one.kernel.synthetic,
        duration_ns=known_sum(launch.duration_ns for launch in launches),
        at_stake_ns=sum(launch.at_stake_ns for launch in launches),
        unit=work.unit,
        work_per_s=work.per_s,
        work_peak_per_s=work.peak_per_s,
        intensity=work.intensity(whole.levels["dram"]),
        dram_peak_bytes_per_s=whole.levels["dram"].peak_bytes_per_s,
        is_estimated="estimated" in whole.flop_source.values(),
        bottleneck=worst.bottleneck,
        bound=worst.bound,
        at_roof=verdict.at_roof,
        resource=verdict.resource,
        cause=verdict.cause,
        confidence=verdict.confidence,
        ready_warps=one.kernel.counters.get("eligible_warps_per_cycle"),
        costing=next((finding.title for finding in _costing(one)), ""),
        distances=whole.verdict.distances,
        move=first_move(one),
        where=place_of_move(one),
        has_hotspots=bool(one.kernel.hotspots),
        clock_hz=longest.kernel.counters["sm_clock_hz"] if longest else None,
        clock_ns=(longest.gpu_time_ns or 0.0) if longest else 0.0,
        cautions=Counter(flag for a in analyses if not is_failed for flag in cautions(a)),
        reasons=Counter(reasons),
        whole=whole if keep else None,
    )


def slimmed(analysis: Analysis) -> Analysis:
    """Keep what totals are made of, some 2 KB of 15."""
    kernel, dram = analysis.kernel, analysis.levels["dram"]
    shown = {id(finding): finding for finding in (*_costing(analysis), *first_findings(analysis))}
    verdict = analysis.verdict
    return replace(
        analysis,
        kernel=replace(
            unmeasured(kernel),
            counters={name: kernel.counters[name] for name in _COUNTERS if name in kernel.counters},
            hotspots=kernel.hotspots[:1],
        ),
        levels=dict.fromkeys(LEVELS, _NOTHING_AT_LEVEL)
        | {"dram": Level(amount_bytes=dram.amount_bytes, peak_bytes_per_s=dram.peak_bytes_per_s, stages=NO_VALUES)},
        pipes={name: pipe for name, pipe in analysis.pipes.items() if pipe.unit in {"FLOP", "op"}},
        flop=NO_VALUES,
        verdict=replace(verdict, evidence=(), advice=verdict.advice[:1]),
        findings=tuple(replace(finding, evidence=()) for finding in analysis.findings if id(finding) in shown),
        phases=None,
    )


def first_move(analysis: Analysis) -> str:
    """Return what to do first; where nothing can be done, what the verdict says."""
    return next(iter(analysis.verdict.advice), analysis.verdict.sentence)


def first_findings(analysis: Analysis) -> Iterator[Finding]:
    """Find what made the first move."""
    move = first_move(analysis)
    return (finding for finding in analysis.findings if finding.move == move)


def place_of_move(analysis: Analysis) -> str:
    """Name the place of the finding that made the first move."""
    places = (place.hotspot for finding in first_findings(analysis) for place in finding.where)
    found = next((hotspot for hotspot in places if hotspot.file and hotspot.line), None)
    return f"{found.file.rpartition('/')[2]}:{found.line}" if found and found.file else ""


def _costing(analysis: Analysis) -> Iterable[Finding]:
    """Return its first finding that costs time, if there is one."""
    return [finding for finding in analysis.findings if finding.severity != "note"][:1]
