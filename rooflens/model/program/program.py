"""Rank the kernels of a timeline without a report: their time, their floor, and which of them to profile.

A floor is a forecast of `predict` for the operator call that launched a kernel: from cold caches, and warm if operands
and result fit in L2. The kernels of one call share its floor in proportion to their times. Nothing was counted in a
kernel, so its class stays open until a report beside the timeline tells it.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from rooflens.errors import InputError, UsageError
from rooflens.format import count
from rooflens.model.keys import bare_name, function_of
from rooflens.model.knowledge.roles import waits_for_ranks
from rooflens.model.predict.forecast import LAUNCH_FLOOR_S, Forecast, forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.options import Options
from rooflens.model.program.operators import OddOperandsError, Work, work_of_call
from rooflens.model.program.steps import Log, RowSteps, Spent, Step, Steps, StepsBy
from rooflens.model.program.timeline import NSYS, KernelEvent, Operands, Timeline, measure
from rooflens.model.roofline.datasheets import datasheet_of, the_datasheet
from rooflens.model.verdict_classes import shown_class

if TYPE_CHECKING:
    from rooflens.model.records import Analysis
    from rooflens.model.roofline.datasheets import Datasheet
    from rooflens.model.selecting import Chooser
    from rooflens.model.unprofiled import Shape, Unprofiled
    from rooflens.model.verdict_classes import Bound, ShownClass

Caches = Literal["cold", "warm", "partly"]
CACHES: tuple[Caches, ...] = get_args(Caches)

By = Literal["gain", "limit", "time", "communication", "floor"]
BY: tuple[By, ...] = get_args(By)
"""What a kernel is ranked by: what its best move wins, the time above its floor, all of its time because neither is
known; those that wait for other GPUs, and those at their floor, come last."""

_GROUPS: dict[By, int] = {"gain": 0, "limit": 0, "time": 1, "communication": 2, "floor": 3}

STRETCH_LAUNCHES = 8
"""So many consecutive launches, each shorter than the gap before it, make a launch-bound stretch."""

LAUNCH_GAP_NS = 100_000
"""Launching never takes longer than this: in a longer gap the host did something else, or waited."""

PROFILED = 3
"""How many kernels to profile next are named."""

_AT_FLOOR = 1.33
"""A kernel within this factor of its floor is not latency-bound."""

_ROUNDED_NS = 1000
"""Old traces round times to microseconds."""

_LAUNCH_NS = LAUNCH_FLOOR_S * 1e9
_NUMBER = re.compile(r"\d+")
_SCALAR_FP32 = re.compile(r"sgemm|simt|ffma", re.IGNORECASE)
_TENSOR_FP32 = re.compile(r"tf32|s1688|s16816|tensorop|hmma|gmma", re.IGNORECASE)


class OfShape(Struct, frozen=True):
    """The launches of a row with the same grid and block, and the sum of their times."""

    grid: Shape
    block: Shape
    count: int
    time_ns: int


class ProgramKernel(Struct, frozen=True):
    """All launches of a kernel by one operator with one shape.

    Attributes:
        name: As in the timeline, with parameters if it has them.
        count: Launches.
        time_ns: The sum of their times.
        share: `time_ns` over the time of all launches of the program; overlapping ones count in full.
        launch_ns: The median launch.
        gap_ns: How long the GPU was idle before these launches, summed.
        grid, block: Of most launches.
        operator: The operator that launched it.
        shape: Sizes of the operator's tensors, argument by argument: `[2048, 256] [256, 512]`; None if unknown.
        dtype: Types of these tensors, each once: `float`.
        module, code, nvtx_range: Origin of most of its time; `Block_*` for several numbered ones.
        flop, moved_bytes: What one call must compute and move; None if operator or sizes do not tell.
        limited_by: What sets the floor: `memory`, `compute`.
        floor_ns: The floor of all launches, for the caches in `caches`; None if unknown.
        floor_cold_ns: Their floor from cold caches.
        caches: `warm` if operands and result fit in L2, so that they may be there already; `partly` if they do not fit,
            but the calls took less than from cold caches; else `cold`.
        gain_ns: Time above the cold floor and above the time to launch; if `measured` is known, what its first move
            wins, or the time above its limit; None if unknown.
        bound, or_bound: Its class, `overhead` if gaps outweigh it, and what else it may be.
        launch: Index of a typical launch among the program's launches of its function, from 0.
        is_communication: It waits for other GPUs.
        calls: Calls of the operator, with a fraction if several kernels share one; None if no floor is known.
        peak: The peak behind its floor: `tensor_fp16`; None if no floor is known.
        shapes: Its launches by grid and block, most time first.
        measured: The median launch of the same kernel in a report beside the timeline; None if no report has it.
        in_steps: Those of its launches that belong to steps of the program; None if that has none.
    """

    name: str
    count: int
    time_ns: int
    share: float
    launch_ns: int
    gap_ns: int
    grid: Shape
    block: Shape
    operator: str | None
    shape: str | None
    dtype: str | None
    module: str | None
    code: str | None
    nvtx_range: str | None
    flop: float | None
    moved_bytes: float | None
    limited_by: str | None
    floor_ns: float | None
    floor_cold_ns: float | None
    caches: Caches | None
    gain_ns: float | None
    bound: Bound
    or_bound: tuple[Bound, ...]
    launch: int
    is_communication: bool
    calls: float | None = None
    peak: str | None = None
    shapes: tuple[OfShape, ...] = ()
    measured: Analysis | None = None
    in_steps: RowSteps | None = None

    @property
    def by(self) -> By:
        """What it is ranked by."""
        if self.is_communication:
            return "communication"
        if self.gain_ns is None:
            return "time"
        if not self.gain_ns:
            return "floor"
        return "gain" if self.measured is not None and self.measured.verdict.gain is not None else "limit"

    @property
    def shown_class(self) -> ShownClass | Literal["communication"]:
        """Its class as every output shows it: open without a report, as nothing was counted."""
        if self.is_communication:
            return "communication"
        if self.bound == "unknown" and self.measured is None:
            return shown_class(self.or_bound[0], self.or_bound) if len(self.or_bound) == 1 else "unknown"
        return shown_class(self.bound, self.or_bound)

    @property
    def stake_ns(self) -> float:
        """The most that can be won: the gain, or all of its time if that is unknown; 0 if it waits for other GPUs."""
        if self.is_communication:
            return 0.0
        return float(self.time_ns) if self.gain_ns is None else self.gain_ns

    @property
    def function(self) -> str:
        """Its name as ncu's filter matches it: without namespaces, template arguments and parameters."""
        return function_of(bare_name(self.name))


class Unknown(Struct, frozen=True):
    """An operator without a known floor; its name is None for kernels of unknown origin."""

    operator: str | None
    count: int
    time_ns: int
    share: float


class Communication(Struct, frozen=True):
    """Kernels that wait for other GPUs.

    Attributes:
        time_ns: The sum of their times.
        share: `time_ns` over the time of all launches of the program.
        alone_ns: Time in which only such kernels ran on the GPU.
    """

    count: int
    time_ns: int
    share: float
    alone_ns: int


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


class Program(Struct, frozen=True):
    """A program as its timeline shows it.

    Attributes:
        source, kind: The timeline, and which tool recorded it.
        gpu: Name of the GPU in the timeline, or else of the given one; None without either.
        has_datasheet: Whether the peaks of that GPU are known.
        unprofiled: Its time, gaps and overlaps.
        kernels: The selected kernels: most to win first; then those with an unknown gain, by time; then those that wait
            for other GPUs, and those at their floor.
        every: All kernels, selected or not.
        unknown: Operators without a floor that do not wait for other GPUs, most time first.
        communication: The kernels that wait for other GPUs; None if there are none.
        stretches: Launch-bound stretches, most idle time first.
        notes: What was left out of the timeline, and what is missing for floors.
        is_synthetic: A generator wrote the timeline.
        rank: Rank of the recorded process; None if unknown.
        steps: Its steps, in order; empty if none were found.
        steps_by: How they were found.
        outside_ns: Time of kernels that belong to no step, between the first step and the end of the last.
        spent: Where the time from the first to the last kernel went.
        steps_spent: Where the time of the steps went; that of the whole program if it has none.
    """

    source: str
    kind: str
    gpu: str | None
    has_datasheet: bool
    unprofiled: Unprofiled
    kernels: tuple[ProgramKernel, ...]
    every: tuple[ProgramKernel, ...]
    unknown: tuple[Unknown, ...]
    stretches: tuple[Stretch, ...]
    communication: Communication | None = None
    notes: tuple[str, ...] = ()
    is_synthetic: bool = False
    rank: int | None = None
    steps: tuple[Step, ...] = ()
    steps_by: StepsBy | None = None
    outside_ns: int = 0
    spent: Spent = Spent()
    steps_spent: Spent = Spent()

    def __repr__(self) -> str:
        return f"<Program of {self.source}: {count(len(self.kernels), 'row')}, {count(self.launches, 'launch')}>"

    @property
    def time_ns(self) -> int:
        """The sum of all launch times."""
        return sum(one.time_ns for one in self.every)

    @property
    def launches(self) -> int:
        """How many launches there are."""
        return sum(one.count for one in self.every)

    @property
    def gain_ns(self) -> float | None:
        """What can be won in kernels with a known gain, at most; None if none has one."""
        gains = [one.gain_ns for one in self.every if one.gain_ns is not None and not one.is_communication]
        return sum(gains) if gains else None

    @property
    def known_share(self) -> float:
        """Part of the kernels' time that has a floor."""
        return sum(one.share for one in self.every if one.floor_ns is not None)

    @property
    def open_share(self) -> float:
        """Part of the kernels' time whose gain is unknown."""
        return sum(one.share for one in self.every if one.by == "time")

    @property
    def lacks_sizes(self) -> bool:
        """Whether it names operators but not their sizes, which the profiler records only on request."""
        return any(one.operator for one in self.every) and not any(one.shape for one in self.every)

    @property
    def next(self) -> tuple[ProgramKernel, ...]:
        """The kernels to profile."""
        return to_profile(self.kernels)


def to_profile(kernels: Sequence[ProgramKernel]) -> tuple[ProgramKernel, ...]:
    """Return the kernels to profile, one per function, most at stake first.

    Kernels that wait for other GPUs or are in a report already are skipped.
    """
    found: dict[str, ProgramKernel] = {}
    for one in sorted(kernels, key=lambda one: -one.stake_ns):
        if one.stake_ns > 0 and one.measured is None:
            found.setdefault(one.function, one)
    return tuple(found.values())[:PROFILED]


def in_order(kernels: Sequence[ProgramKernel]) -> tuple[ProgramKernel, ...]:
    """Sort kernels: by gain; then those with an unknown gain by time; then the rest."""
    return tuple(sorted(kernels, key=lambda one: (_GROUPS[one.by], -one.stake_ns, -one.time_ns, one.name)))


def read_program(timeline: Timeline, gpu: str | None = None, chooser: Chooser | None = None) -> Program:
    """Read a timeline once, and rank its kernels by what can be won.

    Args:
        timeline: What was recorded.
        gpu: Name of the GPU, for a timeline that names none with known peaks.
        chooser: Selects kernels by name and open NVTX ranges; all by default. Totals and shares are those of the whole
            program.

    Raises:
        UsageError: No GPU has that name, or several do.
        InputError: The timeline is damaged.
    """
    given = None if gpu is None else the_datasheet(gpu)
    rows = _Rows(chooser)
    unprofiled = measure(timeline, rows.take, rows.log.take_other)
    own = datasheet_of(timeline.gpu)
    sheet = own or given
    notes = [*timeline.notes]
    if sheet is None:
        named = f"the peaks of `{timeline.gpu}` are unknown" if timeline.gpu else "the timeline does not name one GPU"
        notes.append(f"{named}, so that no kernel has a floor: `--gpu NAME` gives it")
    elif own and given and own.id != given.id:
        notes.append(f"--gpu {given.id} is not used: the timeline names {timeline.gpu}")
    steps = rows.steps()
    kernels, wanted = rows.kernels(sheet, steps)
    if sheet is not None and not any(one.shape for one in kernels):
        how = "an nsys export has none" if timeline.kind == NSYS else "`record_shapes=True` records them"
        notes.append(f"the timeline has no operator sizes, so no kernel has a floor: {how}")
    if rows.odd_count:
        notes.append(
            f"{count(rows.odd_count, 'launch')} of operators with operands that PyTorch does not write, and without a "
            "floor: the trace is damaged, or was changed"
        )
    if sheet is not None and rows.impossible_count:
        notes.append(
            f"{count(rows.impossible_count, 'launch')} took less than the peaks of {sheet.name} allow, and have no "
            "floor: it ran on another GPU, or the operator does less than its sizes say"
        )
    total_ns = sum(one.time_ns for one in kernels)
    return Program(
        source=timeline.source,
        kind=timeline.kind,
        gpu=timeline.gpu if own or sheet is None else sheet.name,
        has_datasheet=sheet is not None,
        unprofiled=unprofiled,
        kernels=in_order(wanted),
        every=in_order(kernels),
        unknown=_unknown(kernels, total_ns),
        stretches=rows.stretches(),
        communication=rows.communication(total_ns),
        notes=(*notes, *(("it was written by a generator, not recorded on a GPU",) if timeline.is_synthetic else ())),
        is_synthetic=timeline.is_synthetic,
        rank=timeline.rank,
        steps=steps.each,
        steps_by=steps.by,
        outside_ns=steps.outside_ns,
        spent=steps.program,
        steps_spent=steps.spent,
    )


class _Row:
    """Collects the launches of a kernel; `index` is its place among all rows."""

    def __init__(self, event: KernelEvent, index: int) -> None:
        self.index = index
        self.name, self.operator, self.operands = event.name, event.operator, event.operands
        self.times_ns, self.calls, self.places = array("q"), array("q"), array("q")
        self.gap_ns = self.launch_gap_ns = 0
        self._shapes: dict[tuple[Shape, Shape], list[int]] = {}
        self.origins: Counter[tuple[str | None, str | None, str | None]] = Counter()

    def add(self, event: KernelEvent, gap_ns: int, place: int) -> None:
        """Count a launch."""
        self.times_ns.append(event.duration_ns)
        self.calls.append(event.call)
        self.places.append(place)
        self.gap_ns += gap_ns
        self.launch_gap_ns += gap_ns if gap_ns <= LAUNCH_GAP_NS else 0
        shape = event.grid, event.block
        if (known := self._shapes.get(shape)) is None:
            self._shapes[shape] = [1, event.duration_ns]
        else:
            known[0] += 1
            known[1] += event.duration_ns
        self.origins[event.module, event.code, event.nvtx_range] += event.duration_ns

    def shapes(self) -> tuple[OfShape, ...]:
        """Return its launches by grid and block, most time first."""
        found = [OfShape(*shape, *counted) for shape, counted in self._shapes.items()]
        return tuple(sorted(found, key=lambda one: -one.time_ns))

    def shape(self) -> tuple[Shape, Shape]:
        """Return grid and block of most launches."""
        return max(self._shapes, key=lambda shape: self._shapes[shape][0])

    def origin(self, at: int) -> str | None:
        """Return the origin of most of its time, among known ones."""
        counter: Counter[str] = Counter()
        for origins, time_ns in self.origins.items():
            if (found := origins[at]) is not None:
                counter[found] += time_ns
        return counter.most_common(1)[0][0] if counter else None

    def kind_of_origin(self, at: int) -> str | None:
        """Return the same for numbered origins: those that differ only by number are one, with `*` for it."""
        alike: defaultdict[str, set[str]] = defaultdict(set)
        counter: Counter[str] = Counter()
        for origins, time_ns in self.origins.items():
            if (found := origins[at]) is not None:
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


class _Busy:
    """Measures the time in which any of some launches ran; they are added in start order."""

    def __init__(self, time_ns: int = 0, end_ns: int | None = None) -> None:
        self.time_ns, self._end_ns = time_ns, end_ns

    def run(self, event: KernelEvent) -> None:
        """Add a launch's time, without the part that overlaps earlier launches."""
        begin_ns, end_ns = event.start_ns, event.start_ns + event.duration_ns
        if self._end_ns is not None and self._end_ns > begin_ns:
            begin_ns = self._end_ns
        if end_ns > begin_ns:
            self.time_ns += end_ns - begin_ns
            self._end_ns = end_ns

    def copied(self) -> _Busy:
        """Return another one with what ran so far."""
        return _Busy(self.time_ns, self._end_ns)


class _Rows:
    """Collects all kernels of a timeline, and the stretches where launches came too slowly."""

    def __init__(self, chooser: Chooser | None = None) -> None:
        self._chooser = chooser
        self._rows: dict[tuple[str, str | None, int, bool], _Row] = {}
        self._busy: defaultdict[int, _Busy] = defaultdict(_Busy)
        self._working: dict[int, _Busy] = {}
        self._functions: dict[str, str] = {}
        self._waiting: set[str] = set()
        self._launched: Counter[str] = Counter()
        self._call_ns: defaultdict[int, int] = defaultdict(int)
        self._first_ns: int | None = None
        self._open: dict[int, list[tuple[KernelEvent, int]]] = {}
        self._stretches: list[Stretch] = []
        self.impossible_count = 0
        self.odd_count = 0
        self.log = Log()

    def take(self, event: KernelEvent, gap_ns: int) -> None:
        """Add a launch, and the idle time of its GPU before it."""
        is_in_range = self._chooser is None or self._chooser.is_in_range(event.nvtx_range or "")
        key = event.name, event.operator, id(event.operands), is_in_range  # equal operands are one, which its row keeps
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row(event, len(self._rows))
        function = self._functions.get(event.name)
        if function is None:
            function = self._functions[event.name] = function_of(bare_name(event.name))
            if waits_for_ranks(function):
                self._waiting.add(function)
        row.add(event, gap_ns, self._launched[function])
        self._launched[function] += 1
        self.log.take(event, row.index)
        if event.operands is not None:
            self._call_ns[event.call] += event.duration_ns
        if self._first_ns is None:
            self._first_ns = event.start_ns
        self._follow(event, gap_ns)
        busy = self._busy[event.device]
        if function not in self._waiting:
            if event.device in self._working:
                self._working[event.device].run(event)
        elif event.device not in self._working:  # until then both ran alike
            self._working[event.device] = busy.copied()
        busy.run(event)

    def communication(self, total_ns: int) -> Communication | None:
        """Sum up the kernels that wait for other GPUs; None if there are none."""
        own = [row for row in self._rows.values() if waits_for_ranks(self._functions[row.name])]
        if not own:
            return None
        time_ns = sum(sum(row.times_ns) for row in own)
        alone_ns = sum(self._busy[device].time_ns - one.time_ns for device, one in self._working.items())
        launches = sum(len(row.times_ns) for row in own)
        return Communication(launches, time_ns, time_ns / total_ns if total_ns else 0.0, alone_ns)

    def _follow(self, event: KernelEvent, gap_ns: int) -> None:
        """Continue or end a stretch of launches that come too slowly."""
        waits = event.duration_ns < gap_ns <= LAUNCH_GAP_NS
        known = self._open.get(event.device)
        if not waits:
            self._end(event.device)
        elif known is None:
            self._open[event.device] = [(event, gap_ns), (event, gap_ns), (event, 1)]
        else:
            (_, total_ns), (_, count) = known[1], known[2]
            known[1], known[2] = (event, total_ns + gap_ns), (event, count + 1)

    def _end(self, device: int) -> None:
        known = self._open.pop(device, None)
        if known is None or known[2][1] < STRETCH_LAUNCHES:
            return
        (first, gap_ns), (last, total_ns), (_, count) = known
        began = first.start_ns - gap_ns
        self._stretches.append(
            Stretch(
                start_ns=max(0, began - (self._first_ns or 0)),
                wall_ns=last.start_ns + last.duration_ns - began,
                gap_ns=total_ns,
                count=count,
                first=first.name,
                last=last.name,
                module=first.module,
                nvtx_range=first.nvtx_range,
            )
        )

    def stretches(self) -> tuple[Stretch, ...]:
        """Return the launch-bound stretches, most idle time first."""
        for device in [*self._open]:
            self._end(device)
        return tuple(sorted(self._stretches, key=lambda one: -one.gap_ns))

    def steps(self) -> Steps:
        """Find the steps of the program."""
        names = [row.name for row in self._rows.values()]
        return self.log.steps(names, [waits_for_ranks(self._functions[name]) for name in names])

    def kernels(self, gpu: Datasheet | None, steps: Steps) -> tuple[list[ProgramKernel], list[ProgramKernel]]:
        """Return all kernels, with floors if a GPU is known; then the selected ones."""
        total_ns = sum(sum(row.times_ns) for row in self._rows.values())
        floors = _Floors(gpu)
        found = {
            key: self._kernel(row, floors, total_ns, steps.rows[row.index] if steps.rows else None)
            for key, row in self._rows.items()
        }
        every = [*found.values()]
        if self._chooser is None:
            return every, every
        in_range = [one for (*_, is_in_range), one in found.items() if is_in_range]
        names = self._chooser.named(one.name for one in in_range)
        return every, [one for one in in_range if one.name in names]

    def _kernel(self, row: _Row, floors: _Floors, total_ns: int, in_steps: RowSteps | None) -> ProgramKernel:
        found = self._found(row, floors)
        parts = [self._part(*launch) for launch in zip(row.calls, row.times_ns, strict=True)] if found else []
        time_ns, typical = sum(row.times_ns), row.typical()
        floor = None if found is None else _floor_of(found, sum(parts), time_ns, _ROUNDED_NS * len(parts))
        if found and floor is None:
            self.impossible_count += len(row.times_ns)
            found = None
        cold_ns = found.t_lower_s * 1e9 if found else 0.0
        grid, block = row.shape()
        bound, or_bound = _class_of(row, time_ns, cold_ns * sum(parts), found)
        gains = (
            max(0.0, one - max(cold_ns * part, _LAUNCH_NS)) for one, part in zip(row.times_ns, parts, strict=False)
        )
        return ProgramKernel(
            name=row.name,
            count=len(row.times_ns),
            time_ns=time_ns,
            share=time_ns / total_ns if total_ns else 0.0,
            launch_ns=row.times_ns[typical],
            gap_ns=row.gap_ns,
            grid=grid,
            block=block,
            operator=row.operator,
            shape=shape_text(row.operands),
            dtype=_types_text(row.operands),
            module=row.kind_of_origin(0),
            code=row.origin(1),
            nvtx_range=row.kind_of_origin(2),
            flop=found.flop if found else None,
            moved_bytes=found.moved_bytes if found else None,
            limited_by=None if found is None else _limit(found),
            floor_ns=floor[1] if floor else None,
            floor_cold_ns=cold_ns * sum(parts) if found else None,
            caches=floor[0] if floor else None,
            gain_ns=sum(gains) if found else None,
            bound=bound,
            or_bound=or_bound,
            launch=row.places[typical],
            is_communication=waits_for_ranks(self._functions[row.name]),
            calls=sum(parts) if found else None,
            peak=found.peak if found else None,
            shapes=row.shapes(),
            in_steps=in_steps,
        )

    def _found(self, row: _Row, floors: _Floors) -> Forecast | None:
        """Forecast the call behind a kernel; None if what it must do, or the GPU, is unknown."""
        try:
            work = work_of_call(row.operator, row.operands)
            return None if work is None else floors.of(work, row.name)
        except (OddOperandsError, ArithmeticError):  # sizes of a trace may be beyond any number
            self.odd_count += len(row.times_ns)
            return None

    def _part(self, call: int, time_ns: int) -> float:
        """Return a launch's part of the floor of its call: all of it if it is the only launch."""
        whole_ns = self._call_ns[call] if call else time_ns
        return time_ns / whole_ns if whole_ns else 1.0


class _Floors:
    """Forecasts of calls on one GPU, cached."""

    def __init__(self, gpu: Datasheet | None) -> None:
        self._gpu = gpu
        self._known: dict[tuple[str, tuple[tuple[str, int], ...], str], Forecast | None] = {}

    def of(self, work: Work, kernel: str) -> Forecast | None:
        """Forecast the call behind a kernel; None without a GPU, or if it has no peak for the type."""
        if self._gpu is None:
            return None
        for dtype in _types_for(work, kernel):
            key = work.operation, tuple(work.sizes.items()), dtype
            if key not in self._known:
                self._known[key] = self._forecast(work, dtype, self._gpu)
            if (found := self._known[key]) is not None:
                return found
        return None

    @staticmethod
    def _forecast(work: Work, dtype: str, gpu: Datasheet) -> Forecast | None:
        try:
            return forecast(
                OPERATIONS[work.operation], work.sizes, dtype, gpu, Options(out_dtype=_result_of(work, dtype))
            )
        except (InputError, UsageError):
            return None


def _types_for(work: Work, kernel: str) -> tuple[str, ...]:
    """Name the types to try, best first: fp32 products may run as tf32, unless the kernel's name rules it out."""
    if work.dtype != "fp32" or not work.is_product:
        return (work.dtype,)
    is_scalar = _SCALAR_FP32.search(kernel) is not None and _TENSOR_FP32.search(kernel) is None
    return ("fp32",) if is_scalar else ("tf32", "fp32")


def _result_of(work: Work, dtype: str) -> str | None:
    """Name the type of results if it is not the default."""
    return dtype if OPERATIONS[work.operation].results is not None else None


def _floor_of(found: Forecast, calls: float, time_ns: int, rounded_ns: int) -> tuple[Caches, float] | None:
    """Return the floor of some calls, and the caches it holds for; None if they took less than any floor.

    Args:
        found: The forecast of one call.
        calls: How many; with a fraction if several kernels share a call.
        time_ns: The time they took.
        rounded_ns: How much of that time rounding may have cut off.
    """
    cold_ns = found.t_lower_s * 1e9 * calls
    caches: Caches = "cold"
    floor_ns = cold_ns
    if found.t_lower_warm_s is not None:
        caches, floor_ns = "warm", found.t_lower_warm_s * 1e9 * calls
    elif time_ns < cold_ns and found.l2_size_bytes is not None:
        left_s = (found.moved_bytes - found.l2_size_bytes) / found.bandwidth_bytes_per_s
        caches, floor_ns = "partly", max(found.t_without_dram_s, left_s) * 1e9 * calls
    return (caches, min(floor_ns, time_ns)) if floor_ns <= time_ns + rounded_ns else None


def _limit(found: Forecast) -> str:
    """Name what sets the cold floor, however short it is."""
    return "memory" if found.longest in {"t_memory_s", "t_l2_s"} else "compute"


def _class_of(
    row: _Row, time_ns: int, floor_ns: float | None, found: Forecast | None
) -> tuple[Bound, tuple[Bound, ...]]:
    """Judge a kernel without counters, by its gaps and its distance from the floor."""
    if row.launch_gap_ns > time_ns:
        return "overhead", ()
    if floor_ns and found is not None and time_ns <= _AT_FLOOR * floor_ns:
        return "unknown", ("memory",) if _limit(found) == "memory" else ("compute",)
    return "unknown", ("memory", "compute", "latency")


def _unknown(kernels: Sequence[ProgramKernel], total_ns: int) -> tuple[Unknown, ...]:
    """Sum up the operators without a known floor."""
    counts, times = Counter[str | None](), Counter[str | None]()
    for one in kernels:
        if one.floor_ns is None and not one.is_communication:
            counts[one.operator] += one.count
            times[one.operator] += one.time_ns
    return tuple(
        Unknown(name, counts[name], time_ns, time_ns / total_ns if total_ns else 0.0)
        for name, time_ns in times.most_common()
    )


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
