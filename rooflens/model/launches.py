"""Which records are one kernel, and the sums of their launches where a page holds too many to draw one by one."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import plain_name
from rooflens.model.aggregate import aggregate, longest_launch
from rooflens.model.bounds import BOUNDS
from rooflens.model.records import ratio, timed
from rooflens.model.verdict.flags import changes_verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.model.bounds import Bound
    from rooflens.model.records import Analysis, Bottleneck


UNKNOWN_GPU = "unknown GPU"


def gpu_name(analysis: Analysis) -> str:
    """Name the GPU it ran on; never empty."""
    return analysis.kernel.gpu or UNKNOWN_GPU


def kernel_name(analysis: Analysis) -> str:
    """Name the kernel; never empty."""
    return analysis.kernel.name or "(no name)"


Identity = tuple[str, str, str]


def identity(analysis: Analysis) -> Identity:
    """Tell kernels apart: by GPU, name and report; what two reports hold of one kernel are two versions of it."""
    return gpu_name(analysis), kernel_name(analysis), analysis.kernel.digest


def group_keys(analyses: Iterable[Analysis]) -> dict[Identity, str]:
    """Number the kernels in order of falling time: `g0` takes most."""
    times_ns: defaultdict[Identity, float] = defaultdict(float)
    for analysis in timed(analyses):
        times_ns[identity(analysis)] += analysis.gpu_time_ns or 0.0
    return {kernel: f"g{i}" for i, kernel in enumerate(sorted(times_ns, key=lambda kernel: -times_ns[kernel]))}


def keyed(analyses: Sequence[Analysis]) -> list[tuple[str, Analysis]]:
    """Number the records as they were given."""
    return [(f"k{i}", analysis) for i, analysis in enumerate(analyses)]


def added_up(analyses: Sequence[Analysis]) -> list[tuple[str, Analysis]]:
    """Add launches up by kernel and verdict, under the key of the longest one; failed ones stay by themselves.

    Launches of different verdicts stay apart, so that time by verdict stays what it was; so do launches without a time,
    one of which would leave the whole sum without.
    """
    parts: defaultdict[tuple[str, ...], list[tuple[str, Analysis]]] = defaultdict(list)
    for key, analysis in keyed(analyses):
        apart = key if analysis.kernel.failed else str(analysis.gpu_time_ns is None)
        parts[(*identity(analysis), analysis.verdict.bound, apart)].append((key, analysis))
    return [_sum(part) for part in parts.values()]


def _sum(part: Sequence[tuple[str, Analysis]]) -> tuple[str, Analysis]:
    members = [analysis for _, analysis in part]
    longest = longest_launch(members)
    return next(key for key, analysis in part if analysis is longest), aggregate(members)


class Launch(Struct, frozen=True):
    """One profiled launch with what the page derives from it.

    Attributes:
        key: Short identifier within the page; anchors and chart data use it.
        duration_ns: GPU time, of all the launches it stands for; None for a failed one, which counts in no aggregate.
        time_share: Fraction of the page's whole GPU time; None where its report holds no duration.
        winnable_ns: GPU time above the floor that its potential leads to, or else above what its headroom leaves; None
            where neither is known.
        group_key: Key of its `Group`; empty for a failed launch, which is in none.
        cumulative_share: Share of the GPU time of all launches before it in order of falling time; 0 for the longest.
    """

    key: str
    analysis: Analysis
    duration_ns: float | None
    time_share: float | None
    winnable_ns: float | None
    group_key: str = ""
    cumulative_share: float = 0.0

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
        """Name without the noise of a demangler: what every place but the card's full name shows."""
        launches = self.analysis.launches
        return plain_name(self.name) + (f" x{launches}" if launches > 1 else "")

    @property
    def gpu(self) -> str:
        """Name of the GPU it ran on."""
        return gpu_name(self.analysis)

    @property
    def bound(self) -> Bound:
        """Class of its verdict."""
        return self.analysis.verdict.bound

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


class Group(Struct, frozen=True):
    """All launches of one kernel name on one GPU in one report: sums of times, never means of ratios.

    Attributes:
        key: Short identifier within the page: `g3` is the fourth in order of falling time.
        duration_ns: GPU time of all launches; None where no report holds a duration.
        bound_ns: GPU time by verdict class.
        winnable_ns: What can be won of them; None where it is known of none.
        worst: The launch with most time at stake.
    """

    key: str
    name: str
    gpu: str
    launches: tuple[Launch, ...]
    duration_ns: float | None
    time_share: float | None
    bound_ns: Mapping[Bound, float]
    winnable_ns: float | None
    worst: Launch

    @property
    def at_stake_ns(self) -> float:
        """Time that is looked at first: what can be won, and all of the launches of which that is not known."""
        return sum(launch.at_stake_ns for launch in self.launches)

    @property
    def report(self) -> str:
        """Name of the file it was read from."""
        return PurePath(self.worst.analysis.kernel.source).name

    @property
    def launch_count(self) -> int:
        """How many launches the profiled ones stand for."""
        return sum(launch.analysis.launches for launch in self.launches)

    @property
    def shown(self) -> str:
        """Name without the noise of a demangler."""
        return plain_name(self.name)


class _AtStake(Protocol):
    @property
    def at_stake_ns(self) -> float: ...

    @property
    def duration_ns(self) -> float | None: ...


Staked = TypeVar("Staked", bound=_AtStake)


class Other(Struct, frozen=True):
    """The kernels of a page that are not drawn, as one sum.

    Attributes:
        launches: How many launches their profiled ones stand for.
        duration_ns: GPU time of all of them; None where no report holds a duration.
        bound_ns: GPU time by verdict class.
    """

    kernels: int
    launches: int
    duration_ns: float | None
    time_share: float | None
    bound_ns: Mapping[Bound, float]


def cautions(analysis: Analysis) -> tuple[str, ...]:
    """Return the flags without which its verdict would be another: the few that are worth a badge."""
    bottleneck = analysis.verdict.bottleneck
    busiest = bottleneck.resource if bottleneck else None
    return tuple(flag for flag in analysis.flags if changes_verdict(flag, busiest))


def notes(analysis: Analysis) -> tuple[str, ...]:
    """Return the other flags, which are information; that data is synthetic is said once for the whole page."""
    changing = cautions(analysis)
    return tuple(flag for flag in analysis.flags if flag not in changing and flag != "synthetic")


def time_part(rows: Iterable[Launch | Group]) -> float | None:
    """Sum shares of GPU time; None where none is known."""
    return known_sum(row.time_share for row in rows)


def bound_times_ns(launches: Iterable[Launch]) -> dict[Bound, float]:
    """Sum GPU time by verdict class, in the fixed order of classes, absent ones left out."""
    times: defaultdict[Bound, float] = defaultdict(float)
    for launch in launches:
        times[launch.bound] += launch.duration_ns or 0.0
    return {bound: times[bound] for bound in BOUNDS if times[bound] > 0}


def counted_ns(analysis: Analysis) -> float | None:
    """Return the GPU time that counts in sums, in nanoseconds; None for a failed launch, or where it is unknown."""
    return None if analysis.kernel.failed else analysis.gpu_time_ns


def rest_of(groups: Sequence[Group], drawn: Sequence[Launch], total_ns: float) -> Other | None:
    """Sum up the kernels that are not drawn; None where there are none."""
    keys = {launch.group_key for launch in drawn}
    rest = [group for group in groups if group.key not in keys]
    if not rest:
        return None
    duration_ns = known_sum(group.duration_ns for group in rest)
    return Other(
        kernels=len(rest),
        launches=sum(group.launch_count for group in rest),
        duration_ns=duration_ns,
        time_share=ratio(duration_ns, total_ns),
        bound_ns=bound_times_ns(launch for group in rest for launch in group.launches),
    )


def known_sum(values: Iterable[float | None]) -> float | None:
    """Sum what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def ranked_launches(pairs: Sequence[tuple[str, Analysis]], total_ns: float) -> tuple[Launch, ...]:
    """Put the records in order of falling time, failed ones last."""
    rows = _in_order(pairs)
    groups = group_keys([analysis for _, analysis in pairs])
    before = accumulate((duration_ns or 0.0 for _, _, duration_ns in rows), initial=0.0)
    return tuple(
        _launch(row, total_ns, groups.get(identity(row[1]), ""), before_ns)
        for row, before_ns in zip(rows, before, strict=False)
    )


def launches_in_order(analyses: Sequence[Analysis]) -> list[Launch]:
    """Put the launches of one kernel in order of falling time, failed ones last; without keys and shares of times."""
    ordered = _in_order([("", analysis) for analysis in analyses])
    return [Launch(key, one, time_ns, None, _winnable_ns(one, time_ns)) for key, one, time_ns in ordered]


def _in_order(pairs: Iterable[tuple[str, Analysis]]) -> list[_Row]:
    rows = [(key, analysis, counted_ns(analysis)) for key, analysis in pairs]
    return sorted(rows, key=lambda row: (row[1].kernel.failed, -(row[2] or 0.0)))


_Row: TypeAlias = "tuple[str, Analysis, float | None]"
"""Key, record and its time that counts."""


def _launch(row: _Row, total_ns: float, group_key: str, before_ns: float) -> Launch:
    """Derive one row; `before_ns` is the time of all before it."""
    key, analysis, duration_ns = row
    return Launch(
        key=key,
        analysis=analysis,
        duration_ns=duration_ns,
        time_share=ratio(duration_ns, total_ns),
        winnable_ns=_winnable_ns(analysis, duration_ns),
        group_key="" if analysis.kernel.failed else group_key,
        cumulative_share=ratio(before_ns, total_ns) or 0.0,
    )


def _winnable_ns(analysis: Analysis, duration_ns: float | None) -> float | None:
    distances = analysis.verdict.distances
    factor = distances.potential or distances.headroom
    return None if duration_ns is None or factor is None else duration_ns * (1 - 1 / factor)


def grouped(launches: Sequence[Launch], total_ns: float) -> tuple[Group, ...]:
    """Sum launches up by kernel, in order of falling time; failed ones are in none."""
    members: defaultdict[Identity, list[Launch]] = defaultdict(list)
    for launch in launches:
        if not launch.failed:
            members[identity(launch.analysis)].append(launch)
    groups = [_group(tuple(group), total_ns) for group in members.values()]
    return tuple(sorted(groups, key=lambda group: int(group.key[1:])))


def failed_groups(launches: Sequence[Launch]) -> tuple[Group, ...]:
    """Put failed launches together by kernel, in the order given: no time of theirs counts."""
    members: defaultdict[Identity, list[Launch]] = defaultdict(list)
    for launch in launches:
        if launch.failed:
            members[identity(launch.analysis)].append(launch)
    return tuple(replace(_group(tuple(group), 0.0), key=f"f{i}") for i, group in enumerate(members.values()))


def by_stake(rows: Iterable[Staked]) -> list[Staked]:
    """Put kernels or launches in the order in which they are looked at: by time at stake, ties by their time."""
    return sorted(rows, key=lambda row: (-row.at_stake_ns, -(row.duration_ns or 0.0)))


def most_at_stake(analyses: Sequence[Analysis]) -> Analysis | None:
    """Return the launch to look at first: of the kernel with most at stake its worst one; None where there is none."""
    kernels = by_stake(grouped(ranked_launches(keyed(analyses), 0.0), 0.0))
    return kernels[0].worst.analysis if kernels else next(iter(analyses), None)


def _group(launches: tuple[Launch, ...], total_ns: float) -> Group:
    duration_ns = known_sum(launch.duration_ns for launch in launches)
    worst = max(launches, key=lambda launch: (launch.at_stake_ns, launch.duration_ns or 0.0))
    return Group(
        key=launches[0].group_key,
        name=launches[0].name,
        gpu=launches[0].gpu,
        launches=launches,
        duration_ns=duration_ns,
        time_share=ratio(duration_ns, total_ns),
        bound_ns=bound_times_ns(launches),
        winnable_ns=known_sum(launch.winnable_ns for launch in launches),
        worst=worst,
    )
