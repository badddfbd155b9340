"""Collect the launches of a timeline into rows with floors, and the stretches where launches came too slowly.

The kernels of one call share its floor in proportion to their times. Nothing was counted in a kernel, so its class
stays open until a report beside the timeline tells it.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from rooflens.model.keys import bare_name, function_of
from rooflens.model.knowledge.roles import waits_for_ranks
from rooflens.model.program.floors import LAUNCH_NS, ROUNDED_NS, Floors, floor_of, limit_of
from rooflens.model.program.idle import LAUNCH_GAP_NS
from rooflens.model.program.kernels import OfModule, OfShape, ProgramKernel, summed
from rooflens.model.program.occupancy import OTHER
from rooflens.model.program.operators import OddOperandsError, cache_width, sums_around, work_of_call
from rooflens.model.program.steps import Log, RowSteps, Steps
from rooflens.model.program.timeline import BusyEvent, KernelEvent, Operands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflens.model.predict.forecast import Forecast
    from rooflens.model.program.call import RequestSums
    from rooflens.model.program.launches import Launches
    from rooflens.model.program.occupancy import Gaps
    from rooflens.model.roofline.datasheets import Datasheet
    from rooflens.model.selecting import Chooser
    from rooflens.model.unprofiled import Shape
    from rooflens.model.verdict_classes import Bound

STRETCH_LAUNCHES = 8
"""So many consecutive launches, each shorter than the gap before it, make a launch-bound stretch."""


AT_FLOOR = 1.33
"""A kernel within this factor of its floor is not latency-bound."""

_NUMBER = re.compile(r"\d+")


_SHAPE = attrgetter("grid", "block")
_MODULE, _CODE, _RANGES = attrgetter("module"), attrgetter("code"), attrgetter("nvtx_range")

_T = TypeVar("_T")

_Key: TypeAlias = "tuple[str, str | None, int, RequestSums | None, bool]"
"""Of a row: kernel, operator, its operands, what the step around it attends to, whether it is selected."""


class Stretch(Struct, frozen=True):
    """Consecutive launches that the GPU waited for longer than it ran them.

    Attributes:
        start_ns: Its begin, counted from the first launch of the program.
        wall_ns: From the gap before its first launch to the end of its last.
        gap_ns: Idle time of the GPU in it.
        first, last: Names of its first and last kernels.
        module, nvtx_range: Origin of its first kernel.
    """

    start_ns: int
    wall_ns: int
    gap_ns: int
    count: int
    first: str
    last: str
    module: str | None
    nvtx_range: str | None


class _Alike(NamedTuple):
    """The launches of a row that differ only by when and where they ran: the first, how many, and their time."""

    first: KernelEvent
    launches: int
    time_ns: int


class KernelRow:
    """Collects the launches of a kernel.

    Attributes:
        function: The function of its kernel.
        numbers: Its launches.
        wall_ns: Its part of the time in which it ran.
    """

    def __init__(self, event: KernelEvent, index: int) -> None:
        self.index = index
        self.name, self.operator, self.operands = event.name, event.operator, event.operands
        self.sums = sums_around(event.operator, event.nvtx_range)
        self.function = function_of(bare_name(event.name))
        self.is_communication = waits_for_ranks(self.function)
        self.numbers, self.times_ns = array("I"), array("q")
        self.gap_ns = self.launch_gap_ns = 0
        self.wall_ns = 0.0
        self.alike: list[_Alike] = []

    def _by(self, part: Callable[[KernelEvent], _T]) -> dict[_T, list[int]]:
        """Add up launches and their time by a part of what they have in common."""
        found: dict[_T, list[int]] = {}
        for one in self.alike:
            sums = found.setdefault(part(one.first), [0, 0])
            sums[0] += one.launches
            sums[1] += one.time_ns
        return found

    def shapes(self) -> tuple[OfShape, ...]:
        """Return its launches by grid and block, most time first."""
        found = [OfShape(*shape, *counted) for shape, counted in self._by(_SHAPE).items()]
        return tuple(sorted(found, key=lambda one: -one.time_ns))

    def modules(self) -> tuple[OfModule, ...]:
        """Return its launches by module, most time first; those that differ only by number are one, with `*` for it."""
        alike: defaultdict[str | None, list[tuple[str | None, list[int]]]] = defaultdict(list)
        for name, counted in self._by(_MODULE).items():
            alike[None if name is None else _NUMBER.sub("*", name)].append((name, counted))
        found = (
            OfModule(
                own[0][0] if len(own) == 1 else kind,
                sum(counted[0] for _, counted in own),
                sum(counted[1] for _, counted in own),
            )
            for kind, own in alike.items()
        )
        return tuple(sorted(found, key=lambda one: -one.time_ns))

    def shape(self) -> tuple[Shape, Shape]:
        """Return grid and block of most launches."""
        shapes: dict[tuple[Shape, Shape], list[int]] = self._by(_SHAPE)
        return max(shapes, key=lambda shape: shapes[shape][0])

    def origin(self, part: Callable[[KernelEvent], str | None]) -> str | None:
        """Return the origin of most of its time, among known ones."""
        counter: Counter[str] = Counter()
        for found, (_, time_ns) in self._by(part).items():
            if found is not None:
                counter[found] += time_ns
        return counter.most_common(1)[0][0] if counter else None

    def kind_of_origin(self, part: Callable[[KernelEvent], str | None]) -> str | None:
        """Return the same for numbered origins: those that differ only by number are one, with `*` for it."""
        alike: defaultdict[str, set[str]] = defaultdict(set)
        counter: Counter[str] = Counter()
        for found, (_, time_ns) in self._by(part).items():
            if found is not None:
                kind = _NUMBER.sub("*", found)
                alike[kind].add(found)
                counter[kind] += time_ns
        if not counter:
            return None
        most = counter.most_common(1)[0][0]
        return next(iter(alike[most])) if len(alike[most]) == 1 else most

    def typical(self) -> int:
        """Return the index of the median launch; the later one of two."""
        order = sorted(range(len(self.times_ns)), key=self.times_ns.__getitem__)
        return order[len(order) // 2]


class KernelRows:
    """Collects all kernels of a timeline, and the stretches where launches came too slowly.

    Attributes:
        of_kinds: The row of each of the alike.
    """

    def __init__(self, launches: Launches, chooser: Chooser | None) -> None:
        self._launches, self._chooser = launches, chooser
        self._rows: dict[_Key, KernelRow] = {}
        self.of_kinds = [*map(self._row_of_alike, launches.alike)]
        self._of_functions: defaultdict[str, list[KernelRow]] = defaultdict(list)
        for row in self._rows.values():
            self._of_functions[row.function].append(row)
        self._call_ns = self._times_of_calls()
        self._open: dict[int, list[tuple[int, int]]] = {}
        self._stretches: list[Stretch] = []
        self._cache_bytes: int | None = None
        self.impossible_count = 0
        self.odd_count = 0
        self._collect()

    def _row_of_alike(self, event: KernelEvent) -> KernelRow:
        """Return the row of launches that are alike."""
        is_in_range = self._chooser is None or self._chooser.is_in_range(event.nvtx_range or "")
        sums = sums_around(event.operator, event.nvtx_range)
        key = event.name, event.operator, id(event.operands), sums, is_in_range
        return self._rows.get(key) or self._rows.setdefault(key, KernelRow(event, len(self._rows)))

    def _collect(self) -> None:
        """Give each row its launches."""
        launches, rows = self._launches, self._rows.values()
        numbers = launches.of_kinds([row.index for row in self.of_kinds], len(rows))
        for row, own in zip(rows, numbers, strict=True):
            row.numbers, row.times_ns = own, array("q", map(launches.durations.__getitem__, own))
        counts, times_ns = Counter(launches.kinds), [0] * len(launches.alike)
        for kind, time_ns in zip(launches.kinds, launches.durations, strict=True):
            times_ns[kind] += time_ns
        for kind, row in enumerate(self.of_kinds):
            row.alike.append(_Alike(launches.alike[kind], counts[kind], times_ns[kind]))

    def _times_of_calls(self) -> array[int]:
        """Return the time of the kernels of each call of an operator; empty where none was recorded."""
        launches = self._launches
        found = array("q", bytes(8 * (max(launches.calls, default=0) + 1)))
        for call, time_ns in zip(launches.calls, launches.durations, strict=True) if len(found) > 1 else ():
            found[call] += time_ns
        return found

    def follow(self, gaps: Iterable[Gaps]) -> array[int]:
        """Find stretches of launches that come too slowly; return how long the GPU was idle before each launch."""
        launches = self._launches
        before_ns = array("q", bytes(8 * len(launches)))
        for one in gaps:
            for start, end, number in zip(one.starts, one.ends, one.until, strict=True):
                if number != OTHER:
                    before_ns[number] = gap_ns = end - start
                    row = self.of_kinds[launches.kinds[number]]
                    row.gap_ns += gap_ns
                    row.launch_gap_ns += gap_ns if gap_ns <= LAUNCH_GAP_NS else 0
        for number, (gap_ns, time_ns) in enumerate(zip(before_ns, launches.durations, strict=True)):
            if time_ns < gap_ns <= LAUNCH_GAP_NS:
                device = launches.streams[launches.lanes[number]][0]
                self._open.setdefault(device, []).append((number, gap_ns))
            elif self._open:
                self._end(launches.streams[launches.lanes[number]][0])
        for device in [*self._open]:
            self._end(device)
        return before_ns

    def _end(self, device: int) -> None:
        slow = self._open.pop(device, [])
        if len(slow) < STRETCH_LAUNCHES:
            return
        launches, (first, gap_ns), (last, _) = self._launches, slow[0], slow[-1]
        event = launches.alike[launches.kinds[first]]
        began = launches.starts[first] - gap_ns
        self._stretches.append(
            Stretch(
                start_ns=max(0, began - launches.starts[0]),
                wall_ns=launches.starts[last] + launches.durations[last] - began,
                gap_ns=sum(gap_ns for _, gap_ns in slow),
                count=len(slow),
                first=event.name,
                last=launches.alike[launches.kinds[last]].name,
                module=event.module,
                nvtx_range=event.nvtx_range,
            )
        )

    def stretches(self) -> tuple[Stretch, ...]:
        """Return the launch-bound stretches, most idle time first."""
        return tuple(sorted(self._stretches, key=lambda one: -one.gap_ns))

    def steps(self, others: Iterable[BusyEvent]) -> Steps:
        """Find the steps of the program, with its copies and graphs."""
        rows = self._rows.values()
        log = Log(self._launches, [row.index for row in self.of_kinds])
        return log.steps([row.name for row in rows], [row.is_communication for row in rows], others)

    def kernels(
        self, gpu: Datasheet | None, steps: Steps, wall_ns: int
    ) -> tuple[list[ProgramKernel], list[ProgramKernel]]:
        """Return all kernels, with floors if a GPU is known; then the selected ones. Shares are of the wall time."""
        floors = Floors(gpu)
        self._cache_bytes = self._width_of_cache()
        rows = {
            key: self._program_kernel(row, floors, wall_ns, steps.rows[row.index] if steps.rows else None)
            for key, row in self._rows.items()
        }
        found = self._joined_rows(rows)
        every = [*found.values()]
        if self._chooser is None:
            return every, every
        in_range = [one for (*_, is_in_range), one in found.items() if is_in_range]
        names = self._chooser.named(one.name for one in in_range)
        return every, [one for one in in_range if one.name in names]

    def _width_of_cache(self) -> int | None:
        """Return the bytes of an element of a server's cache; None if the trace does not tell, or has several."""
        widths = {cache_width(row.operator, row.operands) for row in self._rows.values()} - {None}
        return widths.pop() if len(widths) == 1 else None

    @staticmethod
    def _joined_rows(rows: Mapping[_Key, ProgramKernel]) -> dict[_Key, ProgramKernel]:
        """Make the rows of several steps, whose operands are equal, one."""
        alike: defaultdict[_Key, list[ProgramKernel]] = defaultdict(list)
        for (name, operator, operands, _, is_in_range), one in rows.items():
            alike[name, operator, operands, None, is_in_range].append(one)
        return {key: own[0] if len(own) == 1 else summed(own) for key, own in alike.items()}

    def _program_kernel(self, row: KernelRow, floors: Floors, wall_ns: int, in_steps: RowSteps | None) -> ProgramKernel:
        found = self._forecast_of_row(row, floors)
        parts = self._parts(row) if found else []
        time_ns, typical = sum(row.times_ns), row.typical()
        floor = None if found is None else floor_of(found, sum(parts), time_ns, ROUNDED_NS * len(parts))
        # Nothing beats its floor: this kernel does not do what its call was taken to do, so it has none.
        if found and floor is None:
            self.impossible_count += len(row.times_ns)
            found = None
        cold_ns = found.t_lower_s * 1e9 if found else 0.0
        grid, block = row.shape()
        bound, or_bound = _class_of(row, time_ns, cold_ns * sum(parts), found)
        gains = (max(0.0, one - max(cold_ns * part, LAUNCH_NS)) for one, part in zip(row.times_ns, parts, strict=False))
        return ProgramKernel(
            name=row.name,
            count=len(row.times_ns),
            time_ns=time_ns,
            share=None if row.is_communication else row.wall_ns / wall_ns if wall_ns else 0.0,
            launch_ns=row.times_ns[typical],
            gap_ns=row.gap_ns,
            grid=grid,
            block=block,
            operator=row.operator,
            shape=shape_text(row.operands),
            dtype=_types_text(row.operands),
            module=row.kind_of_origin(_MODULE),
            code=row.origin(_CODE),
            nvtx_range=row.kind_of_origin(_RANGES),
            flop=found.flop if found else None,
            moved_bytes=found.moved_bytes if found else None,
            limited_by=None if found is None else limit_of(found),
            floor_ns=floor[1] if floor else None,
            floor_cold_ns=cold_ns * sum(parts) if found else None,
            caches=floor[0] if floor else None,
            gain_ns=sum(gains) if found else None,
            bound=bound,
            or_bound=or_bound,
            launch=self._place(row, typical),
            is_communication=row.is_communication,
            calls=sum(parts) if found else None,
            peak=found.peak if found else None,
            shapes=row.shapes(),
            modules=row.modules(),
            in_steps=in_steps,
            wall_ns=row.wall_ns,
            numbers=(row.index,),
        )

    def _forecast_of_row(self, row: KernelRow, floors: Floors) -> Forecast | None:
        """Forecast the call behind a kernel; None if what it must do, or the GPU, is unknown."""
        try:
            work = work_of_call(
                row.operator, row.operands, kernel=row.name, sums=row.sums, cache_bytes=self._cache_bytes
            )
            return None if work is None else floors.of(work, row.name)
        except (OddOperandsError, ArithmeticError):  # sizes of a trace may be beyond any number
            self.odd_count += len(row.times_ns)
            return None

    def _parts(self, row: KernelRow) -> list[float]:
        """Return each launch's part of the floor of its call: all of it if it is the only launch."""
        calls = map(self._launches.calls.__getitem__, row.numbers)
        whole_ns = (self._call_ns[call] if call else time_ns for call, time_ns in zip(calls, row.times_ns, strict=True))
        return [time_ns / whole if whole else 1.0 for time_ns, whole in zip(row.times_ns, whole_ns, strict=True)]

    def _place(self, row: KernelRow, launch: int) -> int:
        """Return how many launches of a row's function come before one of its launches."""
        number = row.numbers[launch]
        return sum(bisect_left(one.numbers, number) for one in self._of_functions[row.function])


def _class_of(
    row: KernelRow, time_ns: int, floor_ns: float | None, forecast: Forecast | None
) -> tuple[Bound, tuple[Bound, ...]]:
    """Judge a kernel without counters, by its gaps and its distance from the floor."""
    if row.launch_gap_ns > time_ns:
        return "overhead", ()
    if floor_ns and forecast is not None and time_ns <= AT_FLOOR * floor_ns:
        return "unknown", ("memory",) if limit_of(forecast) == "memory" else ("compute",)
    return "unknown", ("memory", "compute", "latency")


def shape_text(operands: Operands | None) -> str | None:
    """Write the sizes of an operator's tensors; None if it has none."""
    if operands is None:
        return None
    return " ".join(f"[{', '.join(map(str, dims))}]" for dims in operands.dims if dims) or None


def _types_text(operands: Operands | None) -> str | None:
    if operands is None:
        return None
    return (
        ", ".join(dict.fromkeys(one for one, dims in zip(operands.types, operands.dims, strict=True) if dims)) or None
    )
