"""A timeline: every kernel that a program ran, when, on which stream, and what launched it."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import merge, nlargest
from operator import itemgetter
from statistics import median, median_low
from typing import TYPE_CHECKING, NamedTuple

from rooflens.model.keys import bare_name, function_of
from rooflens.model.unprofiled import GapsAfter, InProgram, LaunchCount, Shape, Unprofiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rooflens.model.records import Kernel

NSYS = "Nsight Systems"
"""The kind of timelines that nsys recorded."""

_GAPS_KEPT = 20


class Operands(NamedTuple):
    """What an operator was called with, argument by argument.

    Attributes:
        dims: Sizes of each tensor; empty for numbers, for what is no tensor, and for tensors without dimensions.
        types: Type of each argument as PyTorch names it: `float`, `c10::BFloat16`, `Scalar`.
        strides: Strides of each tensor; empty if the trace does not say.
        values: Each argument that is no tensor, as text; empty if the trace does not say.
    """

    dims: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...] = ()
    values: tuple[str, ...] = ()


class StepRange(NamedTuple):
    """A range of the host that marks a step of the program.

    Attributes:
        index: Which step of its process it is, from 0.
        start_ns, end_ns: When it was open on the host.
    """

    index: int
    name: str
    start_ns: int
    end_ns: int


class KernelEvent(NamedTuple):
    """One launch of a kernel on a timeline.

    Attributes:
        name: Demangled name as the timeline has it, with its parameters where it has them.
        grid: Blocks of the grid; None if the timeline does not say.
        block: Threads of a block; None if the timeline does not say.
        start_ns: When it began, from any fixed moment.
        duration_ns: How long it ran.
        device: Index of the GPU.
        stream: Number of the stream.
        nvtx_range: Ranges that were open on the host when it was launched, outermost first, joined by `/`.
        operator: The operator that launched it, as `aten::mm`.
        module: The module whose forward pass launched it, as `Linear_3`.
        code: File and line, or node of a compiler's graph, that it was generated from.
        call: Number of the operator's call, which may launch several kernels; 0 where it is unknown.
        operands: What the operator was called with; None if the timeline does not say.
        step: The step of the program in which the host launched it; None if none was marked then.
    """

    name: str
    grid: Shape
    block: Shape
    start_ns: int
    duration_ns: int
    device: int = 0
    stream: int = 0
    nvtx_range: str | None = None
    operator: str | None = None
    module: str | None = None
    code: str | None = None
    call: int = 0
    operands: Operands | None = None
    step: StepRange | None = None


class BusyEvent(NamedTuple):
    """A copy, a memset, or a graph that was traced as one: the GPU is busy, and no kernel is named."""

    start_ns: int
    duration_ns: int
    device: int = 0
    stream: int = 0
    is_graph: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a profiler without hardware counters recorded of a program.

    Attributes:
        source: Path as it was given.
        kind: What recorded it.
        kernels: Launches in the order in which they began; read again from the file each time, where that is long.
        others: Copies, memsets and whole graphs, in the order in which they began.
        gpu: Name of the GPU; None if it does not say.
        notes: What was left out of it, one sentence each; complete once its kernels were gone through.
        is_synthetic: It says itself that a generator wrote it.
        rank: Which process of a program of several it is of, from 0; None if it does not say.
    """

    source: str
    kind: str
    kernels: Iterable[KernelEvent]
    others: Iterable[BusyEvent] = ()
    gpu: str | None = None
    notes: Iterable[str] = ()
    is_synthetic: bool = False
    rank: int | None = None


_CAST = re.compile(r"\((?:[a-zA-Z_][\w:<>, ]*)\)(?=-?\d)")
_SUFFIX = re.compile(r"\b(\d+)(?:ull|ul|u|ll|l)\b", re.IGNORECASE)
_LAMBDA = re.compile(r"\[(lambda\((?:(?!\[lambda\().)*?\)) ?\(instance (\d+)\)\]")
_UNNAMED = re.compile(r"\(anonymous namespace\)|<unnamed>|\(anonymous\)")
_LENGTH = re.compile(r"(\d{1,6})")
_NORMAL_KEPT = 4096


@lru_cache(maxsize=_NORMAL_KEPT)
def normal_name(name: str) -> str:
    """Write a kernel's name in the one form in which those of all profilers compare.

    Without return type, parameters, blanks and the casts of template arguments; a mangled name gives its function only.

    `void ns::gemm<(int)128, (bool)1>(float *)` and `ns::gemm<128, true>(float*)` -> `ns::gemm<128,true>`.
    """
    if name.startswith("_Z"):
        return _mangled_function(name) or name
    text = _UNNAMED.sub("{anonymous}", _LAMBDA.sub(r"{\1#\2}", name.strip().removesuffix(" const")))
    text = bare_name(text).replace("(bool)1", "true").replace("(bool)0", "false")
    return "".join(_SUFFIX.sub(r"\1", _CAST.sub("", text)).split())


def _mangled_function(name: str) -> str:
    """Return the name of the function in a mangled name: `_ZN2ns4gemmIfEEvPT_` -> `gemm`; empty where unclear."""
    rest = name[2:].lstrip("L")
    is_nested, found = rest.startswith("N"), ""
    rest = rest.lstrip("NKVL") if is_nested else rest
    while length := _LENGTH.match(rest):
        end = length.end() + int(length[1])
        found, rest = rest[length.end() : end], rest[end:]
        if not is_nested:
            break
    return found


class Matching:
    """Says which kernel of a report a launch of a timeline is: by name, launch shape, NVTX range and order."""

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        self._shapes: list[tuple[Shape, Shape, str | None]] = []
        self._by_name: dict[str, list[int]] = {}
        self._by_function: dict[str, list[int]] = {}
        for index, kernel in enumerate(kernels):
            self._shapes.append((kernel.grid, kernel.block, kernel.nvtx_range))
            name = normal_name(kernel.name)
            self._by_name.setdefault(name, []).append(index)
            self._by_function.setdefault(function_of(name), []).append(index)
            if kernel.function_name == name != kernel.name:
                self._by_name.setdefault(kernel.function_name, []).append(index)
        self._found: dict[tuple[str, Shape, Shape], tuple[int, ...]] = {}
        self._seen: Counter[tuple[int, ...]] = Counter()

    def alike(self, name: str, grid: Shape, block: Shape) -> tuple[int, ...]:
        """Return the positions of all kernels of the report that a launch can be, in the report's order.

        A name without template arguments, on either side, is compared by its function; a shape that one side
        lacks is left out of the comparison.
        """
        key = name, grid, block
        if key not in self._found:
            self._found[key] = tuple(index for index in self._named(name) if self._has_shape(index, grid, block))
        return self._found[key]

    def next(self, event: KernelEvent) -> int | None:
        """Return the position of the kernel that the next launch of a timeline is; None if the report lacks it.

        Launches are taken in the timeline's order. Where it has more than the report, the report's are counted
        through again, as a program repeats its step.
        """
        found = self.alike(event.name, event.grid, event.block)
        in_range = tuple(index for index in found if event.nvtx_range and self._shapes[index][2] == event.nvtx_range)
        among = in_range or found
        if not among:
            return None
        self._seen[among] += 1
        return among[(self._seen[among] - 1) % len(among)]

    def _named(self, name: str) -> list[int]:
        """Return the kernels of a name; by function where the name or the report's has no template arguments."""
        normal = normal_name(name)
        if exact := self._by_name.get(normal):
            return exact
        function = function_of(normal)
        if function == normal:
            return self._by_function.get(function, [])
        return self._by_name.get(function, [])

    def _has_shape(self, index: int, grid: Shape, block: Shape) -> bool:
        own_grid, own_block, _ = self._shapes[index]
        return (None in (grid, own_grid) or grid == own_grid) and (None in (block, own_block) or block == own_block)


def place(
    kernels: Sequence[Kernel], program: Unprofiled
) -> tuple[list[tuple[float, InProgram | None]], list[LaunchCount]]:
    """Match what a run without ncu counted to the kernels of a report.

    Returns:
        For each kernel how many launches it stands for, 0 where none matches, and what they took, None if they were
        not timed; then what the report lacks, the longest first.
    """
    matching, total_ns = Matching(kernels), program.kernels_ns
    entries: list[list[LaunchCount]] = [[] for _ in kernels]
    parts, missing = {}, []
    for entry in program.launch_counts:
        alike = matching.alike(entry.name, entry.grid, entry.block)
        alike = tuple(index for index in alike if not kernels[index].failed) or alike
        parts[id(entry)] = len(alike)
        for index in alike:
            entries[index].append(entry)
        if not alike:
            missing.append(entry)
    placed: list[tuple[float, InProgram | None]] = []
    for own in entries:
        launches = sum(entry.count / parts[id(entry)] for entry in own) / program.iterations
        most = max(own, key=lambda entry: entry.count, default=None)
        if most is None or most.time_ns is None or most.gap_ns is None:
            placed.append((launches, None))
            continue
        times = [entry.total_ns / parts[id(entry)] for entry in own if entry.total_ns is not None]
        time_ns = sum(times) / program.iterations if len(times) == len(own) else None
        share = time_ns / total_ns if time_ns is not None and total_ns else None
        placed.append(
            (
                launches,
                InProgram(
                    most.time_ns,
                    most.gap_ns,
                    max(1, round(launches)),
                    low_ns=most.low_ns,
                    high_ns=most.high_ns,
                    total_ns=time_ns,
                    share=share,
                    streams=most.streams,
                    nvtx_range=most.nvtx_range,
                    operator=most.operator,
                    module=most.module,
                    code=most.code,
                ),
            )
        )
    return placed, sorted(missing, key=lambda entry: (-(entry.total_ns or 0), -entry.count))


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
