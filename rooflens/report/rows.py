"""Analyses as the page counts them: launches in order of time, grouped by kernel, with shares and losses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.model.records import BOUNDS
from rooflens.report.format import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.model.records import Analysis, Bound, Run
    from rooflens.model.thresholds import Thresholds

UNKNOWN_GPU = "unknown GPU"

BUSIEST = "busiest_unit"
"""Stands for the resource where a report holds only NVIDIA's summary per cents."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One profiled launch with what the page derives from it.

    Attributes:
        key: Short identifier within the page; anchors and chart data use it.
        duration_ns: GPU time, of all the launches it stands for; None for a failed one, which counts in no aggregate.
        time_share: Fraction of the page's whole GPU time; None where its report holds no duration.
        leader: Name and share of the resource nearest its peak (`BUSIEST` where the report does not name it);
            None where no share is known.
        loss_ns: duration x (1 - largest share): the time that is not explained by the nearest roof.
    """

    key: str
    analysis: Analysis
    duration_ns: float | None
    time_share: float | None
    leader: tuple[str, float] | None
    loss_ns: float | None

    @property
    def name(self) -> str:
        """Name of the kernel; never empty."""
        return self.analysis.kernel.name or "(no name)"

    @property
    def shown(self) -> str:
        """Name without the noise of a demangler: what every place but the card's full name shows."""
        launches = self.analysis.launches
        return plain_name(self.name) + (f" x{launches}" if launches > 1 else "")

    @property
    def gpu(self) -> str:
        """Name of the GPU it ran on."""
        return self.analysis.kernel.gpu or UNKNOWN_GPU

    @property
    def bound(self) -> Bound:
        """Class of its verdict."""
        return self.analysis.verdict.bound

    @property
    def failed(self) -> bool:
        """True when the kernel failed while it was profiled."""
        return self.analysis.kernel.status == "failed"

    @property
    def cautions(self) -> tuple[str, ...]:
        """Flags to be read with care; that data is synthetic is said once for the whole page."""
        return tuple(flag for flag in self.analysis.flags if flag != "synthetic")

    @property
    def estimated(self) -> bool:
        """True when a part of its FLOPs is estimated and not counted."""
        return "estimated" in self.analysis.flop_source.values()


@dataclass(frozen=True, slots=True)
class Group:
    """All launches of one kernel name on one GPU: sums of times, never means of ratios.

    Attributes:
        duration_ns: GPU time of all launches; None where no report holds a duration.
        bound_ns: GPU time by verdict class.
        loss_ns: Sum of the launches' losses; None when none of them has a known share.
        worst: The launch that loses most, or the longest one where no loss is known.
    """

    name: str
    gpu: str
    launches: tuple[Launch, ...]
    duration_ns: float | None
    time_share: float | None
    bound_ns: Mapping[Bound, float]
    loss_ns: float | None
    worst: Launch

    @property
    def launch_count(self) -> int:
        """How many launches the profiled ones stand for."""
        return sum(launch.analysis.launches for launch in self.launches)

    @property
    def shown(self) -> str:
        """Name without the noise of a demangler."""
        return plain_name(self.name)


@dataclass(frozen=True, slots=True)
class Page:
    """Everything a section of the page may read.

    Attributes:
        limits: The thresholds the verdicts were reached with.
        launches: In order of falling time, failed ones last.
        groups: In order of falling time.
        unread: Path and error of each report that could not be read.
    """

    title: str
    runs: tuple[Run, ...]
    limits: Thresholds
    launches: tuple[Launch, ...]
    groups: tuple[Group, ...]
    total_ns: float
    unread: tuple[tuple[str, str], ...] = ()

    @property
    def timed(self) -> tuple[Launch, ...]:
        """Launches that did not fail: the ones that count."""
        return tuple(launch for launch in self.launches if not launch.failed)

    @property
    def failed(self) -> tuple[Launch, ...]:
        """Launches that failed while they were profiled."""
        return tuple(launch for launch in self.launches if launch.failed)

    @property
    def gpus(self) -> tuple[str, ...]:
        """Names of the GPUs, the one with most time first."""
        return tuple(dict.fromkeys(launch.gpu for launch in self.launches))

    @property
    def synthetic(self) -> bool:
        """True when any report or kernel of the page was written by a generator."""
        return any(run.synthetic for run in self.runs) or any(
            launch.analysis.kernel.synthetic for launch in self.launches
        )


def build_page(
    runs: Sequence[Run],
    analyses: Sequence[Analysis],
    title: str,
    limits: Thresholds,
    unread: Sequence[tuple[str, str]] = (),
) -> Page:
    """Derive all rows of the page from the records."""
    total_ns = sum(_duration_ns(a) or 0.0 for a in analyses)
    launches = [_launch(f"k{i}", a, total_ns) for i, a in enumerate(analyses)]
    launches.sort(key=lambda launch: (launch.failed, -(launch.duration_ns or 0.0)))
    return Page(title, tuple(runs), limits, tuple(launches), _groups(launches, total_ns), total_ns, tuple(unread))


def time_part(rows: Iterable[Launch | Group]) -> float | None:
    """Sum shares of GPU time; None where none is known."""
    shares = [row.time_share for row in rows if row.time_share is not None]
    return sum(shares) if shares else None


def bound_times_ns(launches: Iterable[Launch]) -> dict[Bound, float]:
    """Sum GPU time by verdict class, in the fixed order of classes, absent ones left out."""
    times: defaultdict[Bound, float] = defaultdict(float)
    for launch in launches:
        times[launch.bound] += launch.duration_ns or 0.0
    return {bound: times[bound] for bound in BOUNDS if times[bound] > 0}


def _duration_ns(analysis: Analysis) -> float | None:
    return None if analysis.kernel.status == "failed" else analysis.gpu_time_ns


def _launch(key: str, analysis: Analysis, total_ns: float) -> Launch:
    duration_ns = _duration_ns(analysis)
    leader = _leader(analysis)
    # An unknown verdict has no largest share: the resource that was not measured may be the full one.
    known = leader is not None and analysis.verdict.bound != "unknown"
    loss_ns = duration_ns * max(0.0, 1 - leader[1]) if duration_ns is not None and leader and known else None
    return Launch(key, analysis, duration_ns, _share(duration_ns, total_ns), leader, loss_ns)


def _share(time_ns: float | None, total_ns: float) -> float | None:
    return time_ns / total_ns if time_ns is not None and total_ns else None


def _leader(analysis: Analysis) -> tuple[str, float] | None:
    """Name the resource behind the verdict's headroom, so that page and verdict never disagree."""
    levels = {name: level.share for name, level in analysis.levels.items() if level.share is not None}
    pipes = {name: pipe.share for name, pipe in analysis.pipes.items() if pipe.share is not None}
    shares = levels | pipes
    if not analysis.verdict.headroom:
        return max(shares.items(), key=lambda item: item[1], default=None)
    share = 1 / analysis.verdict.headroom
    nearest = min(shares, key=lambda name: abs(shares[name] - share), default=BUSIEST)
    return analysis.verdict.resource or nearest, share


def _groups(launches: Sequence[Launch], total_ns: float) -> tuple[Group, ...]:
    members: defaultdict[tuple[str, str], list[Launch]] = defaultdict(list)
    for launch in launches:
        if not launch.failed:
            members[launch.gpu, launch.name].append(launch)
    groups = [_group(tuple(group), total_ns) for group in members.values()]
    return tuple(sorted(groups, key=lambda group: -(group.duration_ns or 0.0)))


def _group(launches: tuple[Launch, ...], total_ns: float) -> Group:
    times_ns = [launch.duration_ns for launch in launches if launch.duration_ns is not None]
    duration_ns = sum(times_ns) if times_ns else None
    losses = [launch.loss_ns for launch in launches if launch.loss_ns is not None]
    worst = max(launches, key=lambda launch: (launch.loss_ns or 0.0, launch.duration_ns or 0.0))
    return Group(
        name=launches[0].name,
        gpu=launches[0].gpu,
        launches=launches,
        duration_ns=duration_ns,
        time_share=_share(duration_ns, total_ns),
        bound_ns=bound_times_ns(launches),
        loss_ns=sum(losses) if losses else None,
        worst=worst,
    )
