"""Sum a timeline up: busy time and gaps of each GPU, and the launches of each kernel."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import attrgetter
from statistics import median, median_low
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rooflens.model.keys import bare_name
from rooflens.model.program.occupancy import COMMUNICATION, COPY, GRAPH, KERNEL, UNKNOWN, Credited, Gaps, Gpu, Occupancy
from rooflens.model.program.timeline import NSYS, BusyEvent, KernelEvent, Timeline
from rooflens.model.program.totals import Totals
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Shape, Unprofiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rooflens.model.program.timeline import BusyKind

_GAPS_KEPT = 20


class Measured(NamedTuple):
    """A timeline, summed up.

    Attributes:
        unprofiled: Its time, gaps and launches.
        occupancy: What ran, each instant counted once.
        gaps: When each GPU was idle.
    """

    unprofiled: Unprofiled
    occupancy: Occupancy
    gaps: tuple[Gaps, ...]


class Row(Credited, Protocol):
    """What a launch belongs to."""

    is_communication: bool


def measure(
    timeline: Timeline | Totals,
    watch: Callable[[KernelEvent, int, Alike], Row] | None = None,
    watch_other: Callable[[BusyEvent], None] = lambda _: None,
) -> Measured:
    """Sum a timeline up: the busy time and the gaps of each GPU, and each kernel and shape.

    Each GPU counts from its first to its last kernel: before and after there is no gap. A graph that was traced as one
    counts as busy from end to end, and so does one of which nothing was recorded; then launches are not counted.

    Args:
        timeline: What was recorded; of totals only launches and their times are known.
        watch: Called with each launch in its order, for how many ns its GPU was idle before it, and what it is alike;
            returns what gets its part of the time.
        watch_other: Called with each copy, memset or graph in its order.
    """
    if isinstance(timeline, Totals):
        return Measured(timeline.unprofiled(), Occupancy(), ())
    gpus: defaultdict[int, Gpu] = defaultdict(Gpu)
    groups: dict[tuple[str, Shape, Shape], _Group] = {}
    alike: dict[tuple[object, ...], Alike] = {}
    has_graphs = False
    for event in _in_order(timeline.kernels, timeline.others):
        gpu, end_ns = gpus[event.device], event.start_ns + event.duration_ns
        if isinstance(event, BusyEvent):
            kind = _KINDS[event.kind]
            has_graphs = has_graphs or kind != COPY
            gpu.reach(event.start_ns, None, is_work=kind != COPY, call=event.launched_by, before=event.name)
            gpu.run(end_ns, kind)
            watch_other(event)
            continue
        (name, grid, block, _, _, _, stream, nvtx_range, operator, module, code, _, operands, *_) = event
        # Equal operands are one, which the first launch of the alike keeps.
        what = name, grid, block, nvtx_range, operator, module, code, id(operands)
        if (same := alike.get(what)) is None:
            short = bare_name(name)
            key = short, grid, block
            group = groups.get(key) or groups.setdefault(key, _Group(short))
            same = alike[what] = Alike(event, group, operator or short)
            group.alike.append(same)
        group = same.group
        same.count += 1
        same.time_ns += event.duration_ns
        group.times_ns.append(event.duration_ns)
        group.gaps_ns.append(0)
        group.streams.add(stream)
        gap_ns = gpu.reach(event.start_ns, group, is_work=True, call=event.launched_by, before=same.before)
        row = None if watch is None else watch(event, gap_ns, same)
        gpu.run(end_ns, COMMUNICATION if row is not None and row.is_communication else KERNEL, group, row)
    worked = [gpu for gpu in gpus.values() if gpu.has_worked]
    occupancies = [gpu.finish() for gpu in worked]
    occupancy = Occupancy(*map(sum, zip(Occupancy(), *occupancies, strict=True)))
    gaps = Counter[str | None]()
    counts = Counter[str | None]()
    for gpu in worked:
        gaps.update(gpu.gaps_ns)
        counts.update(gpu.gap_counts)
    launches = sum(len(group.times_ns) for group in groups.values())
    unprofiled = Unprofiled(
        wall_ns=occupancy.wall_ns,
        kernel_ns=occupancy.wall_ns - occupancy.idle_ns,
        launches=None if has_graphs else launches,
        source="nsys" if timeline.kind == NSYS else "trace",
        launch_counts=tuple(
            sorted(
                (group.counted(*shape) for (_, *shape), group in groups.items()),
                key=lambda entry: (-entry.count, entry.name, entry.grid or (), entry.block or ()),
            )
        ),
        gaps_after=tuple(GapsAfter(name, counts[name], gap_ns) for name, gap_ns in gaps.most_common(_GAPS_KEPT)),
        overlap_ns=sum(gpu.overlap_ns for gpu in worked),
        gpu=timeline.gpu,
    )
    return Measured(unprofiled, occupancy, tuple(gpu.gaps for gpu in worked))


_KINDS: Mapping[BusyKind, int] = {"copy": COPY, "memset": COPY, "graph": GRAPH, "unknown": UNKNOWN}


def _in_order(kernels: Iterable[KernelEvent], others: Iterable[BusyEvent]) -> Iterator[KernelEvent | BusyEvent]:
    """Merge the many kernels with the few other events, both in the order in which they begin."""
    rest = iter(others)
    other = next(rest, None)
    for kernel in kernels:
        while other is not None and _begin(other) < _begin(kernel):
            yield other
            other = next(rest, None)
        yield kernel
    if other is not None:
        yield other
        yield from rest


def _begin(event: KernelEvent | BusyEvent) -> tuple[int, int]:
    return event.start_ns, event.duration_ns


@dataclass(slots=True, eq=False)
class Alike:
    """The launches that differ only by when and where they ran: what they share is looked up once.

    Attributes:
        first: The first of them.
        group: What counts them.
        before: What the gaps before them are named after.
        count, time_ns: How many they are, and their time.
    """

    first: KernelEvent
    group: _Group
    before: str
    count: int = 0
    time_ns: int = 0


@dataclass(slots=True)
class _Group:
    """The launches of a kernel in one shape, as they are iterated; `gaps_ns` has the gaps before and after each."""

    name: str
    times_ns: array[int] = field(default_factory=lambda: array("q"))
    gaps_ns: array[int] = field(default_factory=lambda: array("q"))
    streams: set[int] = field(default_factory=set)
    alike: list[Alike] = field(default_factory=list)

    def counted(self, grid: Shape, block: Shape) -> LaunchCount:
        """Return what there is to say of all launches."""
        ordered = sorted(self.times_ns)
        last = len(ordered) - 1
        return LaunchCount(
            self.name,
            grid,
            block,
            count=len(ordered),
            time_ns=round(median(ordered)),
            gap_ns=round(median_low(self.gaps_ns) / 2),
            low_ns=ordered[round(last * 0.1)],
            high_ns=ordered[round(last * 0.9)],
            total_ns=sum(ordered),
            streams=tuple(sorted(self.streams)),
            nvtx_range=self._most(attrgetter("nvtx_range")),
            operator=self._most(attrgetter("operator")),
            module=self._most(attrgetter("module")),
            code=self._most(attrgetter("code")),
        )

    def _most(self, part: Callable[[KernelEvent], str | None]) -> str | None:
        """Return the most common known origin of the launches."""
        counter: Counter[str] = Counter()
        for one in self.alike:
            if (origin := part(one.first)) is not None:
                counter[origin] += one.count
        return next((origin for origin, _ in counter.most_common(1)), None)
