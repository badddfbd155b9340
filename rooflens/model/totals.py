"""The launches of each kernel of a report as one small record: what a table shows of them, and little else is kept.

A kernel stands in one report only (`identity`), so totals are made report by report, and of a large one piece by piece:
`slimmed` leaves all that they need of launches.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.aggregate import aggregate
from rooflens.model.failed import ALL_NAN, NO_VALUES, unmeasured
from rooflens.model.launches import cautions, identity, known_sum, launches_in_order
from rooflens.model.records import LEVELS, Level, Nvidia, Verdict
from rooflens.model.roofline.work import main_work

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflens.model.bounds import Bound
    from rooflens.model.launches import Launch
    from rooflens.model.records import Analysis, Bottleneck, Confidence, Distances, Finding
    from rooflens.model.roofline.work import Unit

_COUNTERS = ("duration_ns", "sm_clock_hz", "eligible_warps_per_cycle")
"""Counters that totals are made of."""

_NOTHING_AT_LEVEL, _NOTHING_OF_NVIDIA = Level(), Nvidia()


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
    kernels = [[one] for one in analyses] if each_launch else _by_kernel(analyses)
    return [_total(launches_in_order(launches), keep=keep) for launches in kernels]


def _by_kernel(analyses: Iterable[Analysis]) -> list[list[Analysis]]:
    """Return the launches of each kernel, in the order in which kernels come first; those that failed apart."""
    kernels: defaultdict[object, list[Analysis]] = defaultdict(list)
    for one in analyses:
        kernels[(*identity(one), one.kernel.failed)].append(one)
    return [*kernels.values()]


def _worst(launches: Sequence[Launch]) -> Launch:
    """Return the launch with most time at stake, of launches in order of falling time: the longest of equal ones."""
    stakes = [launch.at_stake_ns for launch in launches]
    return launches[stakes.index(max(stakes))]


def _total(launches: Sequence[Launch], *, keep: bool) -> Total:
    analyses = [launch.analysis for launch in launches]
    whole = aggregate(analyses)
    worst = _worst(launches)
    one, verdict, work = worst.analysis, worst.analysis.verdict, main_work(whole)
    is_failed = one.kernel.failed
    longest = None if is_failed else next((a for a in analyses if "sm_clock_hz" in a.kernel.counters), None)
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
        cautions=Counter() if is_failed else _cautions(analyses),
        reasons=Counter(reasons),
        whole=whole if keep else None,
    )


def _cautions(analyses: Iterable[Analysis]) -> Counter[str]:
    """Count launches by flag that changes their verdict: those that share all flags are looked at once."""
    alike: defaultdict[object, list[Analysis]] = defaultdict(list)
    for one in analyses:
        alike[one.flags, one.verdict.bottleneck and one.verdict.bottleneck.resource].append(one)
    found: Counter[str] = Counter()
    for launches in alike.values():
        found.update(dict.fromkeys(cautions(launches[0]), len(launches)))
    return found


def slimmed(analyses: Sequence[Analysis]) -> tuple[Analysis, ...]:
    """Keep what totals are made of, some 1 KB of 15.

    What a total says in words is that of one launch, its worst one: no other launch here can be that of the report.
    """
    worst = {id(_worst(launches_in_order(launches)).analysis) for launches in _by_kernel(analyses)}
    return tuple(_slim(analysis, is_worst=id(analysis) in worst) for analysis in analyses)


def _slim(analysis: Analysis, *, is_worst: bool) -> Analysis:
    kernel, dram, verdict = analysis.kernel, analysis.levels["dram"], analysis.verdict
    return replace(
        analysis,
        kernel=unmeasured(
            kernel,
            counters={name: kernel.counters[name] for name in _COUNTERS if name in kernel.counters},
            hotspots=kernel.hotspots[:1] if is_worst else (),
        ),
        levels=dict.fromkeys(LEVELS, _NOTHING_AT_LEVEL)
        | {"dram": Level(amount_bytes=dram.amount_bytes, peak_bytes_per_s=dram.peak_bytes_per_s, stages=NO_VALUES)},
        pipes={name: pipe for name, pipe in analysis.pipes.items() if pipe.unit in {"FLOP", "op"}},
        flop=NO_VALUES,
        verdict=_first_words(verdict) if is_worst else _without_words(verdict),
        nvidia=_NOTHING_OF_NVIDIA,
        findings=_told_findings(analysis) if is_worst else (),
        phases=None,
        key="",
    )


def _first_words(verdict: Verdict) -> Verdict:
    return replace(verdict, evidence=(), advice=verdict.advice[:1])


def _without_words(verdict: Verdict) -> Verdict:
    return Verdict(
        bound=verdict.bound,
        resource=None,
        at_roof=False,
        cause=None,
        distances=verdict.distances,
        confidence=verdict.confidence,
        sentence="",
        bottleneck=verdict.bottleneck,
    )


def _told_findings(analysis: Analysis) -> tuple[Finding, ...]:
    """Return the findings that a total names, without what they stand on."""
    shown = {id(finding) for finding in (*_costing(analysis), *first_findings(analysis))}
    return tuple(replace(finding, evidence=()) for finding in analysis.findings if id(finding) in shown)


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
