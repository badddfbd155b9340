"""Sum a timeline up: busy time and gaps of each GPU, and the launches of each kernel."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter
from statistics import median, median_low
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rooflens.model.keys import bare_name
from rooflens.model.program.launches import Launches, indices
from rooflens.model.program.occupancy import (
    COMMUNICATION,
    COPY,
    GRAPH,
    OTHER,
    UNKNOWN,
    Credited,
    Gaps,
    Gpu,
    TimelineOccupancy,
)
from rooflens.model.program.timeline import NSYS, KernelEvent, Timeline
from rooflens.model.program.totals import Totals
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Unprofiled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.program.timeline import BusyKind

_GAPS_KEPT = 20
_ORIGINS: tuple[Callable[[KernelEvent], str | None], ...] = (
    attrgetter("nvtx_range"),
    attrgetter("operator"),
    attrgetter("module"),
    attrgetter("code"),
)


class MeasuredTimeline(NamedTuple):
    """A timeline, summed up.

    Attributes:
        unprofiled: Its time, gaps and launches.
        occupancy: What ran, each instant counted once.
        gaps: When each GPU was idle.
    """

    unprofiled: Unprofiled
    occupancy: TimelineOccupancy
    gaps: tuple[Gaps, ...]


class LaunchOwner(Credited, Protocol):
    """What a launch belongs to."""

    is_communication: bool


def measure(timeline: Timeline | Totals) -> MeasuredTimeline:
    """Sum a timeline up, as below; of totals only launches and their times are known."""
    if isinstance(timeline, Totals):
        return MeasuredTimeline(timeline.unprofiled(), TimelineOccupancy(), ())
    launches = Launches.of(timeline.kernels)
    return measured(timeline, launches, [None] * len(launches.alike))


def measured(timeline: Timeline, launches: Launches, rows: Sequence[LaunchOwner | None]) -> MeasuredTimeline:
    """Sum a timeline up: the busy time and the gaps of each GPU, and each kernel and shape.

    Each GPU counts from its first to its last kernel: before and after there is no gap. A graph that was traced as one
    counts as busy from end to end, and so does one of which nothing was recorded; then launches are not counted.

    Args:
        timeline: What was recorded.
        launches: Its launches.
        rows: What each of the alike belongs to, and gets their part of the time.
    """
    shorts = [bare_name(one.name) for one in launches.alike]
    gpus, has_graphs = _replayed(timeline, launches, rows)
    worked = [gpu for gpu in gpus if gpu.has_worked]
    occupancies = [gpu.finish() for gpu in worked]
    occupancy = TimelineOccupancy(*map(sum, zip(TimelineOccupancy(), *occupancies, strict=True)))
    gaps_ns, counts = Counter[str | None](), Counter[str | None]()
    around_ns = array("q", bytes(8 * len(launches)))
    for gaps in (gpu.gaps for gpu in worked):
        for at, (start, end, after, until) in enumerate(
            zip(gaps.starts, gaps.ends, gaps.after, gaps.until, strict=True)
        ):
            name = None
            if after != OTHER:
                name = shorts[launches.kinds[after]]
                around_ns[after] += end - start
            if until != OTHER:
                kind = launches.kinds[until]
                around_ns[until] += end - start
                gaps.calls[at] = launches.launched_by[until]
                gaps.before[at] = launches.alike[kind].operator or shorts[kind]
            gaps_ns[name] += end - start
            counts[name] += 1
    unprofiled = Unprofiled(
        wall_ns=occupancy.wall_ns,
        kernel_ns=occupancy.wall_ns - occupancy.idle_ns,
        launches=None if has_graphs else len(launches),
        source="nsys" if timeline.kind == NSYS else "trace",
        launch_counts=_launch_counts(launches, shorts, around_ns),
        gaps_after=tuple(GapsAfter(name, counts[name], gap_ns) for name, gap_ns in gaps_ns.most_common(_GAPS_KEPT)),
        overlap_ns=sum(gpu.overlap_ns for gpu in worked),
        gpu=timeline.gpu,
    )
    return MeasuredTimeline(unprofiled, occupancy, tuple(gpu.gaps for gpu in worked))


_CODE_OF_BUSY: Mapping[BusyKind, int] = {"copy": COPY, "memset": COPY, "graph": GRAPH, "unknown": UNKNOWN}


def _replayed(timeline: Timeline, launches: Launches, rows: Sequence[LaunchOwner | None]) -> tuple[list[Gpu], bool]:
    """Replay launches and other events on their GPUs; say whether any was a graph."""
    gpus: defaultdict[int, Gpu] = defaultdict(Gpu)
    has_graphs = False
    starts, durations, kinds, lanes = launches.starts, launches.durations, launches.kinds, launches.lanes
    devices = [device for device, _ in launches.streams]
    for numbers, other in launches.beside(timeline.others):
        for number in numbers:
            gpu, row, start_ns = gpus[devices[lanes[number]]], rows[kinds[number]], starts[number]
            if row is not None and row.is_communication:
                gpu.reach(start_ns, number, is_work=True)
                gpu.run(start_ns + durations[number], COMMUNICATION, number)
            else:
                gpu.launch(start_ns, start_ns + durations[number], number, row)
        if other is not None:
            gpu, kind = gpus[other.device], _CODE_OF_BUSY[other.kind]
            has_graphs = has_graphs or kind != COPY
            if gpu.reach(other.start_ns, is_work=kind != COPY):
                gpu.gaps.calls[-1], gpu.gaps.before[-1] = other.launched_by, other.name
            gpu.run(other.start_ns + other.duration_ns, kind)
    return [*gpus.values()], has_graphs


def _launch_counts(launches: Launches, shorts: Sequence[str], around_ns: Sequence[int]) -> tuple[LaunchCount, ...]:
    """Sum up the launches of each kernel in each shape, most launches first.

    Args:
        launches: All launches.
        shorts: The name of what each is alike, without parameters.
        around_ns: The gaps before and after each launch.
    """
    alike = launches.alike
    group_of, groups = indices((short, one.grid, one.block) for short, one in zip(shorts, alike, strict=True))
    origins = [[Counter[str]() for _ in _ORIGINS] for _ in groups]
    for kind, number in sorted(Counter(launches.kinds).items()):
        for counter, part in zip(origins[group_of[kind]], _ORIGINS, strict=True):
            if (origin := part(alike[kind])) is not None:
                counter[origin] += number
    streams = defaultdict[int, set[int]](set)
    for kind, lane in {*zip(launches.kinds, launches.lanes, strict=True)}:
        streams[group_of[kind]].add(launches.streams[lane][1])
    counted = []
    for at, (group, own) in enumerate(zip(groups, launches.of_kinds(group_of, len(groups)), strict=True)):
        ordered = sorted(map(launches.durations.__getitem__, own))
        last = len(ordered) - 1
        most = [next((origin for origin, _ in counter.most_common(1)), None) for counter in origins[at]]
        counted.append(
            LaunchCount(
                *group,
                len(ordered),
                round(median(ordered)),
                round(median_low(map(around_ns.__getitem__, own)) / 2),
                ordered[round(last * 0.1)],
                ordered[round(last * 0.9)],
                sum(ordered),
                tuple(sorted(streams[at])),
                *most,
            )
        )
    return tuple(sorted(counted, key=lambda entry: (-entry.count, entry.name, entry.grid or (), entry.block or ())))
