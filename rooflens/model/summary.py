"""All launches of a kernel summed up, in one way for every table, page, text, comparison and gate.

A real launch represents the kernel: the median, in the middle of the kernel's GPU time. It gives verdict, findings,
shares and intensities: nothing is averaged. What can be added (time, launches, FLOPs, bytes) is in the totals.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import duration
from rooflens.model.keys import short_names
from rooflens.model.records import Analysis, Verdict, held_once, ratio
from rooflens.model.roofline.roofs import RoofSet, roofs_over
from rooflens.model.roofline.work import main_work
from rooflens.model.verdict.flags import changes_verdict
from rooflens.model.verdict_classes import SHOWN_CLASSES, ShownClass

UNKNOWN_GPU = "unknown GPU"

SPREAD_FROM = 0.05
"""Launches whose times lie within this part of the median take the same time."""

Identity = tuple[str, str, str]


def identity(analysis: Analysis) -> Identity:
    """Identify a kernel by GPU, name, neither of them empty, and report: in two reports it counts as two versions."""
    kernel = analysis.kernel
    return kernel.gpu or UNKNOWN_GPU, kernel.name or "(no name)", kernel.digest


def roofs_by_gpu(analyses: Iterable[Analysis]) -> dict[str, RoofSet]:
    """Find the roofs of each GPU over these kernels: the one set that all planes of a page have."""
    of: defaultdict[str, list[Analysis]] = defaultdict(list)
    for analysis in analyses:
        of[identity(analysis)[0]].append(analysis)
    return {gpu: roofs_over(own) for gpu, own in of.items()}


class Launch(Struct, frozen=True, gc=False):
    """One profiled launch with its time among those of the others; what it is, its analysis says.

    Attributes:
        key: Short identifier within the page, by the order of the records; anchors and chart data use it.
        gpu: Name of the GPU it ran on; never empty.
        name: Name of the kernel; never empty.
        short_name: What sets its kernel's name apart from the others that are shown with it.
        shown: The same, with how many launches it stands for.
        shown_class: What its time is added up by: an open class is none of the sure ones.
        failed: Its kernel failed (`Kernel.failed`): it counts in no sum.
        estimated: A part of its FLOPs is estimated and not counted.
        duration_ns: GPU time of the launches it stands for; None for a failed one, which counts in no sum.
        time_share: Fraction of the whole GPU time; None if its report holds no duration.
        winnable_ns: GPU time that the best move wins, or else what lies above the nearer floor; None where
            neither is known.
        at_stake_ns: Recoverable time, else total time: what to look at first.
        group_key: Key of its `KernelSummary`.
        cumulative_share: Share of the GPU time of all launches before it in order of falling time; 0 for the longest.
    """

    key: str
    analysis: Analysis
    gpu: str
    name: str
    short_name: str
    shown: str
    shown_class: ShownClass
    failed: bool
    estimated: bool
    duration_ns: float | None
    time_share: float | None
    winnable_ns: float | None
    at_stake_ns: float
    group_key: str
    cumulative_share: float = 0.0


class KernelSummary(Struct, frozen=True):
    """All launches of a kernel name on one GPU in a report; failed ones are a summary of their own.

    Attributes:
        key: Short identifier within the page: `g3` is the fourth in order of falling time; `f0` holds failed launches.
        shown: Short name: what every place but the card's full name shows.
        report: Name of the file it was read from.
        launches: In order of falling time.
        representative: The median launch.
        analysis: Its record.
        is_failed: Its launches failed (`Kernel.failed`).
        launch_count: How many launches the profiled ones represent.
        duration_ns: GPU time of all launches; None if no report holds a duration.
        time_share: Fraction of the whole GPU time.
        class_ns: GPU time by the class of each launch, open ones apart.
        winnable_ns: What can be won of them; None if it is known of none.
        at_stake_ns: Time to look at first: what its moves win, else what lies above the nearer floor, else all of it.
        spread: How the times of its launches spread, `median 11.8 ms, 11.0 ms to 12.1 ms`; empty if they hardly
            do, and of several kernels.
        work: Operations of all launches, in the unit of the median one's main work; None if one lacks or differs.
        dram_bytes: Bytes that all launches moved to and from DRAM; None if one of them was not measured.
        members: The kernels that a row for one move of many stands for; empty of a kernel.
    """

    key: str
    gpu: str
    name: str
    shown: str
    report: str
    launches: tuple[Launch, ...]
    representative: Launch
    analysis: Analysis
    is_failed: bool
    launch_count: int
    duration_ns: float | None
    time_share: float | None
    class_ns: Mapping[ShownClass, float]
    winnable_ns: float | None
    at_stake_ns: float
    spread: str
    work: float | None
    dram_bytes: float | None
    members: tuple[KernelSummary, ...] = ()


class Other(Struct, frozen=True):
    """The kernels of a page that are not drawn, as one sum.

    Attributes:
        launches: How many launches their profiled ones stand for.
        duration_ns: GPU time of all of them; None if no report holds a duration.
        class_ns: GPU time by verdict class, open ones apart.
    """

    kernels: int
    launches: int
    duration_ns: float | None
    time_share: float | None
    class_ns: Mapping[ShownClass, float]


def summarize(analyses: Sequence[Analysis], *, each_launch: bool = False) -> tuple[KernelSummary, ...]:
    """Sum launches up by kernel: in order of falling time, kernels whose launches failed last.

    Args:
        analyses: The launches of any number of reports; failed ones count in no time.
        each_launch: Make a summary of each launch alone.
    """
    times_ns = [_counted_ns(analysis) or 0.0 for analysis in analyses]
    total_ns = sum(times_ns)
    names = [held_once(identity(analysis)) for analysis in analyses]
    short = short_names(name for _, name, _ in names)
    parts: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, analysis in enumerate(analyses):
        parts[(*names[place], analysis.kernel.failed, place if each_launch else 0)].append(place)
    kernels = [
        (analyses[part[0]].kernel.failed, -sum(times_ns[place] for place in part), part) for part in parts.values()
    ]
    kernels.sort(key=itemgetter(0, 1))
    well = sum(not failed for failed, _, _ in kernels)
    summaries = []
    for order, (_, _, part) in enumerate(kernels):
        key, name = f"g{order}" if order < well else f"f{order - well}", names[part[0]]
        launches = [_launch(f"k{place}", analyses[place], name, total_ns, key, short[name[1]]) for place in part]
        launches.sort(key=lambda launch: -(launch.duration_ns or 0.0))
        summaries.append(summed(launches, total_ns))
    return tuple(summaries)


def summed(launches: Sequence[Launch], total_ns: float, median: Launch | None = None) -> KernelSummary:
    """Sum up launches of a kernel, in order of falling time, with their part of `total_ns`.

    Args:
        launches: At least one.
        total_ns: What shares are of.
        median: What represents them; by default their median launch.
    """
    if median is None:
        middle = median_launch([launch.analysis for launch in launches])
        median = next(launch for launch in launches if launch.analysis is middle)
    verdict, counts = median.analysis.verdict, [launch.analysis.launches for launch in launches]
    works = [main_work(launch.analysis) for launch in launches]
    moved = [launch.analysis.levels["dram"].amount_bytes for launch in launches]
    duration_ns = known_sum(launch.duration_ns for launch in launches)
    gained_ns = (launch.winnable_ns or 0.0 for launch in launches if launch.analysis.verdict.gain is not None)
    return KernelSummary(
        key=median.group_key,
        gpu=median.gpu,
        name=median.name,
        shown=median.short_name,
        report=PurePath(median.analysis.kernel.source).name,
        launches=tuple(launches),
        representative=median,
        analysis=median.analysis,
        is_failed=median.failed,
        launch_count=sum(counts),
        duration_ns=duration_ns,
        time_share=ratio(duration_ns, total_ns),
        class_ns=class_times_ns(launches),
        winnable_ns=known_sum(launch.winnable_ns for launch in launches),
        at_stake_ns=sum((launch.at_stake_ns for launch in launches) if verdict.gain is None else gained_ns),
        spread=_spread([launch.analysis.kernel.duration_ns for launch in launches], median.analysis.kernel.duration_ns),
        work=_of_all((one.total for one in works), counts) if len({one.unit for one in works}) == 1 else None,
        dram_bytes=_of_all(moved, counts),
    )


def _spread(times_ns: Iterable[float | None], median_ns: float | None) -> str:
    """Write the spread of times around the median; empty if it is negligible."""
    known = [time_ns for time_ns in times_ns if time_ns is not None]
    if len(known) < 2 or median_ns is None or max(known) - min(known) <= SPREAD_FROM * median_ns:
        return ""
    return f"median {duration(median_ns)}, {duration(min(known))} to {duration(max(known))}"


def _of_all(amounts: Iterable[float | None], counts: Sequence[int]) -> float | None:
    """Add up amounts of launches that each stand for a count of them; None if one is unknown."""
    known = [amount * count for amount, count in zip(amounts, counts, strict=True) if amount is not None]
    return sum(known) if len(known) == len(counts) else None


def parted(kernel: KernelSummary) -> Iterator[KernelSummary]:
    """Part a kernel by the verdict classes of its launches."""
    parts: defaultdict[ShownClass, list[Launch]] = defaultdict(list)
    for launch in kernel.launches:
        parts[launch.shown_class].append(launch)
    return (summed(launches, 0.0) for launches in parts.values())


def median_launch(analyses: Sequence[Analysis]) -> Analysis:
    """Return the launch at which half of the GPU time is reached, shortest first; there must be at least one.

    Of launches that take the same time, and where no time is known, it is the first of their report.
    """
    ordered = sorted(analyses, key=lambda a: (a.kernel.duration_ns or 0.0, a.kernel.digest, a.kernel.index))
    up_to_ns = list(accumulate(a.gpu_time_ns or 0.0 for a in ordered))
    middle = ordered[bisect_left(up_to_ns, up_to_ns[-1] / 2)]
    return next(a for a in ordered if a.kernel.duration_ns == middle.kernel.duration_ns)


def _launch(key: str, analysis: Analysis, of: Identity, total_ns: float, group_key: str, short_name: str) -> Launch:  # noqa: PLR0913, PLR0917 - each says one thing of it
    duration_ns, verdict = _counted_ns(analysis), analysis.verdict
    winnable_ns, at_stake_ns = stake_of(analysis)
    return Launch(
        key=key,
        analysis=analysis,
        gpu=of[0],
        name=of[1],
        short_name=short_name,
        shown=_name_with_launches(short_name, analysis.launches),
        shown_class=verdict.shown_class,
        failed=analysis.kernel.failed,
        estimated="estimated" in analysis.flop_source.values(),
        duration_ns=duration_ns,
        time_share=ratio(duration_ns, total_ns),
        winnable_ns=winnable_ns,
        at_stake_ns=at_stake_ns,
        group_key=group_key,
    )


def stake_of(analysis: Analysis) -> tuple[float | None, float]:
    """Return the GPU time of a launch that can be won, None where unknown, and the time to look at first."""
    duration_ns, part = _counted_ns(analysis), _winnable_part(analysis.verdict)
    winnable_ns = None if duration_ns is None or part is None else duration_ns * part
    return winnable_ns, _at_stake_ns(duration_ns, winnable_ns)


def _name_with_launches(short_name: str, launches: int) -> str:
    return short_name + (f" x{launches}" if launches > 1 else "")


def _winnable_part(verdict: Verdict) -> float | None:
    """Return the share of the time that the best move wins, else that above the nearer floor; None if unknown."""
    if verdict.gain is not None:
        return 1 - 1 / verdict.gain.factor
    floors = [1 / most] if (most := verdict.limit.over_floor) else []
    floors += [verdict.today.share] if verdict.today else []
    return 1 - min(1.0, max(floors)) if floors else None


def _at_stake_ns(duration_ns: float | None, winnable_ns: float | None) -> float:
    return (duration_ns or 0.0) if winnable_ns is None else winnable_ns


def ranked_launches(kernels: Iterable[KernelSummary], total_ns: float) -> tuple[Launch, ...]:
    """List the launches of all kernels in order of falling time, each with the share of those before it."""
    rows = [launch for kernel in kernels for launch in kernel.launches]
    rows.sort(key=lambda launch: (launch.failed, -(launch.duration_ns or 0.0), int(launch.key[1:])))
    before = accumulate((launch.duration_ns or 0.0 for launch in rows), initial=0.0)
    return tuple(
        replace(launch, cumulative_share=ratio(up_to_ns, total_ns) or 0.0)
        for launch, up_to_ns in zip(rows, before, strict=False)
    )


def whole(kernel: KernelSummary) -> Launch:
    """Return the median launch with the times of all launches, which it stands for."""
    return replace(
        kernel.representative,
        analysis=replace(kernel.analysis, launches=kernel.launch_count),
        shown=_name_with_launches(kernel.shown, kernel.launch_count),
        duration_ns=kernel.duration_ns,
        time_share=kernel.time_share,
        winnable_ns=kernel.winnable_ns,
        at_stake_ns=_at_stake_ns(kernel.duration_ns, kernel.winnable_ns),
    )


def rest_of(kernels: Iterable[KernelSummary], drawn: Iterable[Launch], total_ns: float) -> Other | None:
    """Sum up the kernels that are not drawn; None if there is none."""
    keys = {launch.group_key for launch in drawn}
    rest = [kernel for kernel in kernels if kernel.key not in keys]
    if not rest:
        return None
    duration_ns = known_sum(kernel.duration_ns for kernel in rest)
    return Other(
        kernels=len(rest),
        launches=sum(kernel.launch_count for kernel in rest),
        duration_ns=duration_ns,
        time_share=ratio(duration_ns, total_ns),
        class_ns=class_times_ns(launch for kernel in rest for launch in kernel.launches),
    )


def class_times_ns(launches: Iterable[Launch]) -> dict[ShownClass, float]:
    """Sum GPU time by verdict class, open ones apart, in the fixed order of classes, absent ones left out."""
    times: defaultdict[ShownClass, float] = defaultdict(float)
    for launch in launches:
        times[launch.shown_class] += launch.duration_ns or 0.0
    return {shown: times[shown] for shown in SHOWN_CLASSES if times[shown] > 0}


def _counted_ns(analysis: Analysis) -> float | None:
    """Return the GPU time that counts in sums, in nanoseconds; None for a failed launch, or where it is unknown."""
    return None if analysis.kernel.failed else analysis.gpu_time_ns


def total_ns_of(analyses: Iterable[Analysis]) -> float:
    """Sum the GPU time of launches that counts in sums, in nanoseconds."""
    return sum(_counted_ns(analysis) or 0.0 for analysis in analyses)


def known_sum(values: Iterable[float | None]) -> float | None:
    """Sum the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def time_part(rows: Iterable[Launch | KernelSummary]) -> float | None:
    """Sum shares of GPU time; None if none is known."""
    return known_sum(row.time_share for row in rows)


def cautions(analysis: Analysis) -> tuple[str, ...]:
    """Return the flags without which its verdict would be another: the few that are worth a badge."""
    bottleneck = analysis.verdict.bottleneck
    busiest = bottleneck.resource if bottleneck else None
    return tuple(flag for flag in analysis.flags if changes_verdict(flag, busiest))


def notes(analysis: Analysis) -> tuple[str, ...]:
    """Return the other flags, which are information; that data is synthetic is said once for the whole page."""
    changing = cautions(analysis)
    return tuple(flag for flag in analysis.flags if flag not in changing and flag != "synthetic")


def asks_first(verdict: Verdict) -> bool:
    """Return whether the first thing to do is to collect more."""
    return verdict.best is not None and verdict.best.kind == "collect"
