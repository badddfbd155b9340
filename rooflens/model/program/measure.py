"""Sum a timeline up: busy time and gaps of each GPU, and the launches of each kernel."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from heapq import merge, nlargest
from operator import itemgetter
from statistics import median, median_low
from typing import TYPE_CHECKING

from rooflens.model.keys import bare_name
from rooflens.model.program.timeline import NSYS, BusyEvent, KernelEvent, Timeline
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Shape, Unprofiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_GAPS_KEPT = 20


def measure(
    timeline: Timeline,
    watch: Callable[[KernelEvent, int], None] | None = None,
    watch_other: Callable[[BusyEvent], None] | None = None,
) -> Unprofiled:
    """Sum a timeline up: the busy time and the gaps of each GPU, and each kernel and shape.

    Each GPU counts from its first to its last kernel: before and after there is no gap. A graph that was traced as one
    counts as busy from end to end, and then launches are not counted.

    Args:
        timeline: What was recorded.
        watch: Called with each launch in its order, and for how many ns its GPU was idle before it.
        watch_other: Called with each copy and graph.
    """
    devices: defaultdict[int, _Device] = defaultdict(_Device)
    groups: dict[tuple[str, Shape, Shape], _Group] = {}
    shorts: dict[str, str] = {}
    has_graphs = False
    events: Iterable[KernelEvent | BusyEvent] = merge(timeline.kernels, timeline.others, key=_begin)
    for event in events:
        end_ns = event.start_ns + event.duration_ns
        if isinstance(event, BusyEvent):
            has_graphs = has_graphs or event.is_graph
            devices[event.device].take(event.start_ns, end_ns, None, is_work=event.is_graph)
            if watch_other is not None:
                watch_other(event)
            continue
        short = shorts.setdefault(event.name, bare_name(event.name))
        key = short, event.grid, event.block
        group = groups.get(key) or groups.setdefault(key, _Group(short))
        group.add(event)
        gap_ns = devices[event.device].take(event.start_ns, end_ns, group)
        if watch is not None:
            watch(event, gap_ns)
    worked = [device for device in devices.values() if device.has_worked]
    for device in worked:
        device.finish()
    gaps = Counter[str | None]()
    counts = Counter[str | None]()
    for device in worked:
        gaps.update(device.gaps_ns)
        counts.update(device.gap_counts)
    launches = sum(len(group.times_ns) for group in groups.values())
    return Unprofiled(
        wall_ns=sum(device.work_end_ns - device.first_ns for device in worked),
        kernel_ns=sum(device.busy_ns for device in worked),
        launches=None if has_graphs else launches,
        source="nsys" if timeline.kind == NSYS else "trace",
        launch_counts=tuple(
            sorted(
                (group.counted(*shape) for (_, *shape), group in groups.items()),
                key=lambda entry: (-entry.count, entry.name, entry.grid or (), entry.block or ()),
            )
        ),
        gaps_after=tuple(GapsAfter(name, counts[name], gap_ns) for name, gap_ns in gaps.most_common(_GAPS_KEPT)),
        overlap_ns=sum(device.overlap_ns for device in worked),
        gpu=timeline.gpu,
    )


def _begin(event: KernelEvent | BusyEvent) -> tuple[int, int]:
    return event.start_ns, event.duration_ns


@dataclass(slots=True)
class _Group:
    """The launches of a kernel in one shape, as they are iterated."""

    name: str
    times_ns: array[int] = field(default_factory=lambda: array("q"))
    gaps_ns: array[int] = field(default_factory=lambda: array("q"))
    streams: set[int] = field(default_factory=set)
    origins: Counter[tuple[str | None, ...]] = field(default_factory=Counter)

    def add(self, event: KernelEvent) -> None:
        """Count one launch; `gaps_ns` gets the sum of the gaps before and after it."""
        self.times_ns.append(event.duration_ns)
        self.gaps_ns.append(0)
        self.streams.add(event.stream)
        self.origins[event.nvtx_range, event.operator, event.module, event.code] += 1

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
            nvtx_range=self._most(0),
            operator=self._most(1),
            module=self._most(2),
            code=self._most(3),
        )

    def _most(self, place: int) -> str | None:
        """Return the most common known origin of the launches."""
        counter: Counter[str] = Counter()
        for origins, number in self.origins.items():
            if (origin := origins[place]) is not None:
                counter[origin] += number
        return next((origin for origin, _ in counter.most_common(1)), None)


@dataclass(slots=True)
class _Device:
    """Replays one GPU's events in start order.

    Attributes:
        first_ns, work_end_ns: When its first kernel or graph began, and its last ended.
        busy_ns: Time in which something ran.
        overlap_ns: Time in which two things or more ran.
        gaps_ns, gap_counts: Gaps by the name of what ran before them.
    """

    first_ns: int = 0
    work_end_ns: int = 0
    busy_ns: int = 0
    overlap_ns: int = 0
    has_worked: bool = False
    gaps_ns: Counter[str | None] = field(default_factory=Counter)
    gap_counts: Counter[str | None] = field(default_factory=Counter)
    _reached_ns: int = 0
    _twice_reached_ns: int = 0
    _last: tuple[_Group, int] | None = None
    _copies: list[tuple[int, int]] = field(default_factory=list)

    def take(self, start_ns: int, end_ns: int, group: _Group | None, *, is_work: bool = True) -> int:
        """Take the next kernel, with the group that has just counted it, graph or copy; return the gap before it.

        Copies wait for the next kernel: those before the first and after the last do not count.
        """
        if not is_work:
            self._copies.append((start_ns, end_ns))
            return 0
        if not self.has_worked:
            self.has_worked = True
            self.first_ns = self._reached_ns = self._twice_reached_ns = start_ns
        self._run_copies(start_ns)
        gap_ns = max(0, start_ns - self._reached_ns)
        self._run(start_ns, end_ns, group)
        self.work_end_ns = max(self.work_end_ns, end_ns)
        return gap_ns

    def finish(self) -> None:
        """Take the copies that ran beside the last kernel."""
        self._run_copies(self.work_end_ns)

    def _run_copies(self, until_ns: int) -> None:
        """Run the waiting copies up to a moment; the rest of them keeps waiting.

        What waits on begins at that moment, so that the two that end last say when one runs, and when two do: a third
        changes nothing.
        """
        if not self._copies:
            return
        left: list[tuple[int, int]] = []
        for start_ns, end_ns in self._copies:
            begin_ns = max(start_ns, self.first_ns)
            if min(end_ns, until_ns) > begin_ns:
                self._run(begin_ns, min(end_ns, until_ns), None)
            if end_ns > until_ns:
                left.append((max(begin_ns, until_ns), end_ns))
        self._copies = nlargest(2, left, key=itemgetter(1)) if len(left) > 2 else left

    def _run(self, start_ns: int, end_ns: int, group: _Group | None) -> None:
        own = None if group is None else (group, len(group.gaps_ns) - 1)
        if start_ns > self._reached_ns:
            gap_ns = start_ns - self._reached_ns
            name = self._last[0].name if self._last else None
            self.gaps_ns[name] += gap_ns
            self.gap_counts[name] += 1
            for side in (self._last, own):
                if side is not None:
                    side[0].gaps_ns[side[1]] += gap_ns
        if start_ns < self._reached_ns:
            both_ns = min(end_ns, self._reached_ns)
            self.overlap_ns += max(0, both_ns - max(start_ns, self._twice_reached_ns))
            self._twice_reached_ns = max(self._twice_reached_ns, both_ns)
        if end_ns >= self._reached_ns:
            self.busy_ns += end_ns - max(start_ns, self._reached_ns)
            self._reached_ns, self._last = end_ns, own
