"""All launches of a kernel summed up, in one way for every table, page, text, comparison and gate.

A real launch represents the kernel: the median one, in the middle of the kernel's GPU time. It gives verdict, findings,
shares and intensities: nothing is averaged. What can be added (time, launches, FLOPs, bytes) is in the totals.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import duration
from rooflens.model.bounds import SHOWN_CLASSES, Bound, ShownClass
from rooflens.model.failed import ALL_NAN
from rooflens.model.keys import short_names
from rooflens.model.records import Analysis, Bottleneck, Place, ratio
from rooflens.model.roofline.work import main_work
from rooflens.model.verdict.flags import changes_verdict

UNKNOWN_GPU = "unknown GPU"

SPREAD_FROM = 0.05
"""Launches whose times lie within this part of the median one take the same time."""

Identity = tuple[str, str, str]


def gpu_name(analysis: Analysis) -> str:
    """Name the GPU it ran on; never empty."""
    return analysis.kernel.gpu or UNKNOWN_GPU


def kernel_name(analysis: Analysis) -> str:
    """Name the kernel; never empty."""
    return analysis.kernel.name or "(no name)"


def identity(analysis: Analysis) -> Identity:
    """Identify a kernel by GPU, name and report; one kernel in two reports counts as two versions."""
    return gpu_name(analysis), kernel_name(analysis), analysis.kernel.digest


class Launch(Struct, frozen=True):
    """One profiled launch with what tables and pages derive from it.

    Attributes:
        key: Short identifier within the page, by the order of the records; anchors and chart data use it.
        duration_ns: GPU time of the launches it stands for; None for a failed one, which counts in no sum.
        time_share: Fraction of the whole GPU time; None where its report holds no duration.
        winnable_ns: GPU time that the first move wins, or else what lies above the floor of its limit; None where
            neither is known.
        group_key: Key of its `KernelSummary`.
        cumulative_share: Share of the GPU time of all launches before it in order of falling time; 0 for the longest.
        short_name: What sets its kernel's name apart from the others that are shown with it.
    """

    key: str
    analysis: Analysis
    duration_ns: float | None
    time_share: float | None
    winnable_ns: float | None
    group_key: str = ""
    cumulative_share: float = 0.0
    short_name: str = ""

    @property
    def at_stake_ns(self) -> float:
        """Time that is looked at first: what can be won, or all of it where that is not known."""
        return (self.duration_ns or 0.0) if self.winnable_ns is None else self.winnable_ns

    @property
    def name(self) -> str:
        """Name of the kernel; never empty."""
        return kernel_name(self.analysis)

    @property
    def shown(self) -> str:
        """Short name, with how many launches it stands for."""
        launches = self.analysis.launches
        return self.short_name + (f" x{launches}" if launches > 1 else "")

    @property
    def gpu(self) -> str:
        """Name of the GPU it ran on."""
        return gpu_name(self.analysis)

    @property
    def bound(self) -> Bound:
        """Class of its verdict."""
        return self.analysis.verdict.bound

    @property
    def shown_class(self) -> ShownClass:
        """What it is called and added up by: an open class is none of the sure ones."""
        return self.analysis.verdict.shown_class

    @property
    def bottleneck(self) -> Bottleneck | None:
        """Its busiest unit."""
        return self.analysis.verdict.bottleneck

    @property
    def failed(self) -> bool:
        """Whether its kernel failed (`Kernel.failed`): it counts in no sum."""
        return self.analysis.kernel.failed

    @property
    def cautions(self) -> tuple[str, ...]:
        """Flags that change its verdict."""
        return cautions(self.analysis)

    @property
    def notes(self) -> tuple[str, ...]:
        """Flags that say how its numbers were made."""
        return notes(self.analysis)

    @property
    def estimated(self) -> bool:
        """Whether a part of its FLOPs is estimated and not counted."""
        return "estimated" in self.analysis.flop_source.values()


class KernelSummary(Struct, frozen=True):
    """All launches of one kernel name on one GPU in one report; failed ones are a summary of their own.

    Attributes:
        key: Short identifier within the page: `g3` is the fourth in order of falling time; `f0` holds failed launches.
        launches: In order of falling time.
        representative: The median launch.
        duration_ns: GPU time of all launches; None where no report holds a duration.
        time_share: Fraction of the whole GPU time.
        class_ns: GPU time by the class of each launch, open ones apart.
        winnable_ns: What can be won of them; None where it is known of none.
        members: The kernels that a row for one move of many stands for; empty of a kernel.
    """

    key: str
    launches: tuple[Launch, ...]
    representative: Launch
    duration_ns: float | None
    time_share: float | None
    class_ns: Mapping[ShownClass, float]
    winnable_ns: float | None
    members: tuple[KernelSummary, ...] = ()

    @property
    def analysis(self) -> Analysis:
        """The median launch's record."""
        return self.representative.analysis

    @property
    def name(self) -> str:
        """Name of the kernel; never empty."""
        return self.representative.name

    @property
    def shown(self) -> str:
        """Short name: what every place but the card's full name shows."""
        return self.representative.short_name

    @property
    def gpu(self) -> str:
        """Name of the GPU it ran on."""
        return self.representative.gpu

    @property
    def report(self) -> str:
        """Name of the file it was read from."""
        return PurePath(self.analysis.kernel.source).name

    @property
    def is_failed(self) -> bool:
        """Whether its launches failed (`Kernel.failed`)."""
        return self.representative.failed

    @property
    def at_stake_ns(self) -> float:
        """Time to look at first: what its moves win, else what lies above its limit, else all of it."""
        if self.analysis.verdict.gain is None:
            return sum(launch.at_stake_ns for launch in self.launches)
        return sum(one.winnable_ns or 0.0 for one in self.launches if one.analysis.verdict.gain is not None)

    @property
    def launch_count(self) -> int:
        """The number of launches that the profiled ones represent."""
        return sum(launch.analysis.launches for launch in self.launches)

    @property
    def spread_ns(self) -> tuple[float, float, float] | None:
        """Shortest, median and longest launch of one kernel, where there are several of different times."""
        times_ns = [launch.analysis.kernel.duration_ns for launch in self.launches]
        known = [time_ns for time_ns in times_ns if time_ns is not None]
        median_ns = self.analysis.kernel.duration_ns
        if self.members or len(known) < 2 or median_ns is None or max(known) - min(known) <= SPREAD_FROM * median_ns:
            return None
        return min(known), median_ns, max(known)

    @property
    def spread(self) -> str:
        """How the times of its launches spread: `median 11.8 ms, 11.0 ms to 12.1 ms`; empty where they hardly do."""
        if self.spread_ns is None:
            return ""
        low, median, high = map(duration, self.spread_ns)
        return f"median {median}, {low} to {high}"

    @property
    def flop(self) -> float | None:
        """Floating-point operations of all launches; None where one of them lacks the count."""
        return self._sum(launch.analysis.flop_total for launch in self.launches)

    @property
    def work(self) -> float | None:
        """Operations of all launches, in the unit of the median one's main work; None where one lacks or differs."""
        works = [main_work(launch.analysis) for launch in self.launches]
        return self._sum(work.total for work in works) if len({work.unit for work in works}) == 1 else None

    def bytes_at(self, level: str) -> float | None:
        """Return the bytes that all launches moved at a level; None where one of them was not measured."""
        return self._sum(launch.analysis.levels[level].amount_bytes for launch in self.launches)

    def _sum(self, amounts: Iterable[float | None]) -> float | None:
        pairs = [(amount, launch.analysis.launches) for amount, launch in zip(amounts, self.launches, strict=True)]
        known = [amount * count for amount, count in pairs if amount is not None]
        return sum(known) if len(known) == len(pairs) else None

    @property
    def cautions(self) -> Counter[str]:
        """Launches by flag that changes their verdict."""
        return Counter(flag for launch in self.launches if not launch.failed for flag in launch.cautions)

    @property
    def reasons(self) -> Counter[str]:
        """Launches by the reason why they could not be analyzed."""
        return Counter(one.analysis.kernel.status_reason or ALL_NAN for one in self.launches if one.failed)


class Other(Struct, frozen=True):
    """The kernels of a page that are not drawn, as one sum.

    Attributes:
        launches: How many launches their profiled ones stand for.
        duration_ns: GPU time of all of them; None where no report holds a duration.
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
    total_ns = sum(counted_ns(analysis) or 0.0 for analysis in analyses)
    parts: defaultdict[object, list[tuple[str, Analysis]]] = defaultdict(list)
    for place, analysis in enumerate(analyses):
        apart = place if each_launch else 0
        parts[(*identity(analysis), analysis.kernel.failed, apart)].append((f"k{place}", analysis))
    kernels = [(sum(counted_ns(one) or 0.0 for _, one in part), part) for part in parts.values()]
    kernels.sort(key=lambda kernel: (kernel[1][0][1].kernel.failed, -kernel[0]))
    well = sum(not part[0][1].kernel.failed for _, part in kernels)
    short = short_names(kernel_name(analysis) for analysis in analyses)
    keys = [f"g{place}" if place < well else f"f{place - well}" for place in range(len(kernels))]
    return tuple(
        _summary(key, part, total_ns, short[kernel_name(part[0][1])])
        for key, (_, part) in zip(keys, kernels, strict=True)
    )


def _summary(key: str, part: Sequence[tuple[str, Analysis]], total_ns: float, short_name: str) -> KernelSummary:
    launches = [_launch(name, analysis, total_ns, key, short_name) for name, analysis in part]
    launches.sort(key=lambda launch: -(launch.duration_ns or 0.0))
    median = median_launch([launch.analysis for launch in launches])
    duration_ns = known_sum(launch.duration_ns for launch in launches)
    return KernelSummary(
        key=key,
        launches=tuple(launches),
        representative=next(launch for launch in launches if launch.analysis is median),
        duration_ns=duration_ns,
        time_share=ratio(duration_ns, total_ns),
        class_ns=class_times_ns(launches),
        winnable_ns=known_sum(launch.winnable_ns for launch in launches),
    )


def parted(kernel: KernelSummary) -> Iterator[KernelSummary]:
    """Part a kernel by the verdict classes of its launches."""
    for shown in dict.fromkeys(launch.shown_class for launch in kernel.launches):
        part = [(launch.key, launch.analysis) for launch in kernel.launches if launch.shown_class == shown]
        yield _summary(kernel.key, part, 0.0, kernel.shown)


def median_launch(analyses: Sequence[Analysis]) -> Analysis:
    """Return the median launch: half of the GPU time is in launches that take no longer; at least one is needed.

    Of launches that take the same time, and where no time is known, it is the first of their report.
    """
    ordered = sorted(analyses, key=lambda a: (a.kernel.duration_ns or 0.0, a.kernel.digest, a.kernel.index))
    up_to_ns = list(accumulate(a.gpu_time_ns or 0.0 for a in ordered))
    middle = ordered[bisect_left(up_to_ns, up_to_ns[-1] / 2)]
    return next(a for a in ordered if a.kernel.duration_ns == middle.kernel.duration_ns)


def _launch(key: str, analysis: Analysis, total_ns: float, group_key: str, short_name: str) -> Launch:
    duration_ns = counted_ns(analysis)
    verdict = analysis.verdict
    factor = verdict.gain.factor if verdict.gain else verdict.limit.factor
    winnable_ns = None if duration_ns is None or factor is None else duration_ns * (1 - 1 / factor)
    share = ratio(duration_ns, total_ns)
    return Launch(key, analysis, duration_ns, share, winnable_ns, group_key, short_name=short_name)


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
        duration_ns=kernel.duration_ns,
        time_share=kernel.time_share,
        winnable_ns=kernel.winnable_ns,
    )


def rest_of(kernels: Iterable[KernelSummary], drawn: Iterable[Launch], total_ns: float) -> Other | None:
    """Sum up the kernels that are not drawn; None where there are none."""
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


def counted_ns(analysis: Analysis) -> float | None:
    """Return the GPU time that counts in sums, in nanoseconds; None for a failed launch, or where it is unknown."""
    return None if analysis.kernel.failed else analysis.gpu_time_ns


def known_sum(values: Iterable[float | None]) -> float | None:
    """Sum the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def time_part(rows: Iterable[Launch | KernelSummary]) -> float | None:
    """Sum shares of GPU time; None where none is known."""
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


def first_move(analysis: Analysis) -> str:
    """Return what to do first; where nothing can be done, what the verdict says."""
    return next(iter(analysis.verdict.advice), analysis.verdict.sentence)


def asks_first(analysis: Analysis) -> bool:
    """Return whether the first thing to do is to collect more."""
    return any(move.kind == "collect" for move in analysis.verdict.moves[:1])


def place_of_move(analysis: Analysis) -> str:
    """Return file and line that the first move is about; empty where not known."""
    return place_of(place for move in analysis.verdict.moves[:1] for place in move.where)


def place_of(places: Iterable[Place]) -> str:
    """Return file and line of the first place that has both; empty where none has."""
    found = next((place.hotspot for place in places if place.hotspot.file and place.hotspot.line), None)
    return f"{found.file.rpartition('/')[2]}:{found.line}" if found and found.file else ""
