"""The launches of each kernel of a report as one small record: what a table shows of them, and little else is kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.aggregate import aggregate
from rooflens.model.failed import ALL_NAN
from rooflens.model.launches import cautions, identity, known_sum, launches_in_order
from rooflens.model.records import Nvidia
from rooflens.model.roofline.work import Unit, main_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflens.model.bounds import Bound
    from rooflens.model.launches import Launch
    from rooflens.model.records import Analysis, Bottleneck, Confidence, Distances, Finding

Item = TypeVar("Item")

_UNITS = get_args(Unit)
_NOTHING_OF_NVIDIA = Nvidia()


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
    kernels = [[one] for one in analyses] if each_launch else _alike(analyses, _kernel)
    add = aggregate if keep else _sum
    totals = []
    for of_kernel in kernels:
        launches = launches_in_order(of_kernel)
        whole = add([launch.analysis for launch in launches])
        total = _total(launches, whole)
        totals.append(replace(total, whole=whole) if keep else total)
    return totals


def _alike(items: Iterable[Item], key: Callable[[Item], object]) -> list[list[Item]]:
    """Return the items of each key, in the order in which keys come first."""
    found: defaultdict[object, list[Item]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return [*found.values()]


def _kernel(one: Analysis) -> tuple[object, ...]:
    """Tell kernels apart, and their launches that failed from the others."""
    return *identity(one), one.kernel.failed


def _worst(launches: Sequence[Launch]) -> Launch:
    """Return the launch with most time at stake, of launches in order of falling time: the longest of equal ones."""
    stakes = [launch.at_stake_ns for launch in launches]
    return launches[stakes.index(max(stakes))]


def _total(launches: Sequence[Launch], whole: Analysis) -> Total:
    """Add launches of one kernel up, in order of falling time; `whole` is the record of all of them."""
    analyses = [launch.analysis for launch in launches]
    worst = _worst(launches)
    one, verdict = worst.analysis, worst.analysis.verdict
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
        synthetic=one.kernel.synthetic,
        duration_ns=known_sum(launch.duration_ns for launch in launches),
        at_stake_ns=sum(launch.at_stake_ns for launch in launches),
        bottleneck=worst.bottleneck,
        bound=worst.bound,
        at_roof=verdict.at_roof,
        resource=verdict.resource,
        cause=verdict.cause,
        confidence=verdict.confidence,
        ready_warps=one.kernel.counters.get("eligible_warps_per_cycle"),
        costing=next((finding.title for finding in _costing(one)), ""),
        move=first_move(one),
        where=place_of_move(one),
        has_hotspots=bool(one.kernel.hotspots),
        clock_hz=longest.kernel.counters["sm_clock_hz"] if longest else None,
        clock_ns=(longest.gpu_time_ns or 0.0) if longest else 0.0,
        cautions=Counter() if is_failed else _cautions(analyses),
        reasons=Counter(reasons),
        **_sums(whole),
    )


def _sum(analyses: Sequence[Analysis]) -> Analysis:
    """Add up no more than totals are made of."""
    return aggregate(analyses, levels=("dram",), units=_UNITS)


def _sums(whole: Analysis) -> dict[str, Any]:
    """Return the values of a total that are worked out of all launches added up."""
    work, dram = main_work(whole), whole.levels["dram"]
    return {
        "launches": whole.launches,
        "unit": work.unit,
        "work_per_s": work.per_s,
        "work_peak_per_s": work.peak_per_s,
        "intensity": work.intensity(dram),
        "dram_peak_bytes_per_s": dram.peak_bytes_per_s,
        "is_estimated": "estimated" in whole.flop_source.values(),
        "distances": whole.verdict.distances,
    }


def _cautions(analyses: Iterable[Analysis]) -> Counter[str]:
    """Count launches by flag that changes their verdict: those that share all flags are looked at once."""
    alike: defaultdict[object, list[Analysis]] = defaultdict(list)
    for one in analyses:
        alike[one.flags, one.verdict.bottleneck and one.verdict.bottleneck.resource].append(one)
    found: Counter[str] = Counter()
    for launches in alike.values():
        found.update(dict.fromkeys(cautions(launches[0]), len(launches)))
    return found


def first_move(analysis: Analysis) -> str:
    """Return what to do first; where nothing can be done, what the verdict says."""
    return next(iter(analysis.verdict.advice), analysis.verdict.sentence)


def first_findings(analysis: Analysis) -> Iterator[Finding]:
    """Yield the findings that made the first move."""
    move = first_move(analysis)
    return (finding for finding in analysis.findings if finding.move == move)


def place_of_move(analysis: Analysis) -> str:
    """Return file and line of the finding that made the first move; empty where not known."""
    places = (place.hotspot for finding in first_findings(analysis) for place in finding.where)
    found = next((hotspot for hotspot in places if hotspot.file and hotspot.line), None)
    return f"{found.file.rpartition('/')[2]}:{found.line}" if found and found.file else ""


def _costing(analysis: Analysis) -> Iterable[Finding]:
    """Return its first finding that costs time, if there is one."""
    return [finding for finding in analysis.findings if finding.severity != "note"][:1]
