"""Records passed between stages: frozen, in SI base units, with missing values absent or None."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Any, Literal, TypeVar

from msgspec import Struct, field

from rooflens.format import GUESSED
from rooflens.model.calibration import MeasuredRates
from rooflens.model.unprofiled import InProgram, Unprofiled
from rooflens.model.verdict_classes import Bound, ShownClass, shown_class

Status = Literal["ok", "failed", "partial"]
Confidence = Literal["high", "medium", "low"]
Severity = Literal["limiter", "contributes", "note"]
Role = Literal["kernel", "library", "fill", "copy"]
"""What a kernel is to its reader: code that can be changed, a library's, or what fills or copies memory."""
Accuracy = Literal["exact", "lower", "upper"]
SharedMove = Literal["", "graph", "collect", "fills"]
"""One graph around many launches, counters that many kernels lack, a report of nothing but fills."""
MoveKind = Literal[
    "coalesce",
    "tile",
    "results",
    "wide",
    "inflight",
    "elements",
    "pad",
    "occupancy",
    "blocks",
    "shape",
    "divergence",
    "atomics",
    "spill",
    "barrier",
    "balance",
    "overlap",
    "fuse",
    "graph",
    "precision",
    "tensor",
    "instructions",
    "index",
    "shuffle",
    "cache",
    "algorithm",
    "library",
    "collect",
    "nvidia",
]
"""What a move changes, in one word: a sentence may offer more ways to it, and programs count by this.

`nvidia` is a rule of NVIDIA's that is quoted: what it would change is NVIDIA's to say.
"""

Grain = Literal["line", "sass", "function"]

PredictedQuantity = Literal["work", "dram_bytes", "intensity", "floor", "separate", "attainable"]
"""What is predicted and measured; the last three are times: no kernel is faster, that of a kernel for each step of a
composite operation, and that of published kernels."""
AmountVerdict = Literal["as predicted", "more", "less", "lower bound", "not measured"]
"""What a measured amount is beside the predicted one; a `lower bound` may be equal, for launches are missing."""
FloorVerdict = Literal["too fast", "below the floor", "fused", "near the floor", "above the floor"]
"""What a measured time is beside its cold floor; `too fast` is shorter than the work takes with all data in L2, `fused`
than a kernel for each step takes."""
AttainedVerdict = Literal["faster than half", "slower than half", "slower than most"]
"""What a measured time is beside those of published kernels."""
PredictedVerdict = Literal[AmountVerdict, FloorVerdict, AttainedVerdict]

LEVELS = ("dram", "l2", "l1", "smem")
"""Memory levels from the far one to the near one; every mapping by level uses these keys."""

NO_VALUES: Mapping[Any, Any] = {}
"""One for all records: an empty dict for each missing field would be a twentieth of a kernel."""


def _nothing() -> Mapping[Any, Any]:
    return NO_VALUES


_MOST_HELD = 1 << 15
_held: defaultdict[type, dict[Any, Any]] = defaultdict(dict)
_Held = TypeVar("_Held")
_Value = TypeVar("_Value")


def held_once(value: _Held) -> _Held:
    """Return the object that is held already for an equal value, if there is one; what holds a mapping stays itself.

    Launches of a kernel have sizes, peaks, texts and findings in common: of 100,000 launches each that is held anew
    takes megabytes. Values are held by their type: 1, 1.0 and True are equal, and are written otherwise.
    """
    of_type = _held[value.__class__]
    if len(of_type) > _MOST_HELD:
        of_type.clear()
    try:
        held: _Held = of_type.setdefault(value, value)
    except TypeError:  # no hash
        return value
    return held


def held_numbers() -> Callable[[float, float], float]:
    """Return what holds `float`s, each given twice: hundreds of calls of `held_once` for a kernel would take longer."""
    held_once(0.0)
    return _held[float].setdefault


@lru_cache(maxsize=1024)
def mapping_of(items: tuple[tuple[str, _Value], ...]) -> Mapping[str, _Value]:
    """Return the mapping of these items: one for all kernels that hold the same."""
    return dict(items)


RESIDENT = "resident"
"""The series of resident warps: it shows when the GPU is full, and is not a unit with a roof."""


class Rule(Struct, frozen=True, gc=False):
    """One of NVIDIA's own rule results, as the report holds it.

    Attributes:
        speedup_pct: NVIDIA's estimated speed-up of the whole kernel, as the per cent of its time that would be saved;
            None if the rule states none, or one of a single unit.
        unit_speedup_pct: The same of the unit alone that the rule looks at; None if it states none.
    """

    identifier: str
    section: str
    title: str
    message: str
    speedup_pct: float | None = None
    unit_speedup_pct: float | None = None


class Hotspot(Struct, frozen=True, gc=False):
    """The share of a kernel that one source line, SASS instruction or function takes.

    Attributes:
        by: Which of the three it is; `pc` and `sass` are those of an instruction only.
        line: From 1; None if the report has no line information.
        function: Name of the function the instructions belong to; None for a line that belongs to several. Reports name
            only the kernel itself: what it calls is `function at +0x1a00`, by its offset.
        pc: Offset of the instruction from the start of the kernel's code, called functions included, in bytes.
        sass: The instruction in text.
        text: The source line in text, where the report embeds the file or a folder of sources holds it.
        measures: Amount by measure (`rooflens.model.hotspots.MEASURES`); absent where 0 or not measured: a measure of
            the kernel's `code_totals` is measured.
    """

    by: Grain
    file: str | None = None
    line: int | None = None
    function: str | None = None
    pc: int | None = None
    sass: str | None = None
    text: str | None = None
    measures: Mapping[str, float] = field(default_factory=_nothing)


class SourceFile(Struct, frozen=True, gc=False):
    """A source file that instructions were compiled from.

    Attributes:
        text: Its text; None where neither the report embeds it nor a folder of sources holds it.
        compiled_bytes: Its size when it was compiled, as the line table says; None if unknown.
        path: Where the folder of sources holds it, from that folder on; None for an embedded one.
        differs: Why the one in the folder is not the one that was compiled; empty if nothing says so. Without `text`,
            its lines are known to be others.
    """

    text: str | None = None
    compiled_bytes: int | None = None
    path: str | None = None
    differs: str = ""


class Series(Struct, frozen=True, gc=False):
    """Units sampled while a kernel ran, all at the same moments.

    Attributes:
        interval_ns: Time between two samples.
        shares: Fraction of the unit's peak by sample, from the kernel's start to its end, by level or pipe name; under
            `RESIDENT` the resident warps over the most at any moment; None if a sample is missing.
    """

    interval_ns: float
    shares: Mapping[str, tuple[float | None, ...]]


class Run(Struct, frozen=True, gc=False):
    """Where one report came from: one row of the table `runs`.

    Attributes:
        digest, file_bytes: SHA-256 in hex, the key that joins all tables, and size, both of the unpacked report.
        source: The path as it was given.
        synthetic: True when the report says that it was written by a generator and not recorded.
        clock_control: ncu's clock mode as the report states it, or None; `created_unix_s` is when ncu made it.
        reader: What read it: `direct`, `csv` or `text`.
    """

    digest: str
    source: str
    file_bytes: int
    kernel_count: int
    synthetic: bool
    ncu_version: str | None = None
    command_line: str | None = None
    host: str | None = None
    process_name: str | None = None
    clock_control: str | None = None
    cache_control: str | None = None
    replay_mode: str | None = None
    created_unix_s: int | None = None
    reader: str = "direct"


WaitFound = Literal["scoreboard", "registers", "group", "mbarrier", "queue", "barrier", "order"]


class Wait(Struct, frozen=True, gc=False):
    """An instruction that sampled warps wait for: its result, its place in a queue, or its end.

    Attributes:
        pc: Its offset from the start of the kernel's code, in bytes.
        file, line: What it was compiled from; None if unknown.
        opcode: Its opcode without modifiers.
        samples: Samples that wait for it.
        reason: The stall reason of these samples.
        how: What tells: the scoreboard that it sets, registers alone, the queue that it fills, that it takes the most
            time before the barrier, or that it is the last store before the wait.
        sass: The instruction in text; None where no disassembler was asked.
    """

    pc: int
    file: str | None
    line: int | None
    opcode: str
    samples: float
    reason: str
    how: WaitFound
    sass: str | None = None


LoopKind = Literal["loop", "straight"]


class Anatomy(Struct, frozen=True, gc=False):
    """What one trip through the body of a loop takes of a warp, inner loops left out.

    Attributes:
        instructions: Warp instructions a trip.
        by_kind: The same by purpose (`rooflens.model.roofline.opcodes.GROUPS`), most first.
        global_loads, shared_loads: Load instructions a trip, by their width in bytes a thread; copies to shared memory
            that bypass registers count as global loads.
        stores: Stores a trip to global and shared memory.
        multiply_adds: Multiply-adds a thread and trip; of matrix instructions those of the warp, over its threads.
        dtype: Type of most of them; None without any.
        is_matrix: Matrix instructions make them.
        global_operands, shared_operands: Values loaded for each multiply-add; None without any.
        results: Registers that sums are kept in: results of a thread; None for matrix instructions.
        in_flight: Global loads under way where most of the wait for them is; None if nothing waits for any.
        barriers: Block-wide barriers a trip.
        address_share: Part of the instructions that only count, move, jump and compute addresses, 0 to 1.
        copies_asynchronously: It copies to shared memory without waiting.
        unroll: How far its counter steps; None if no one register counts.
        stages: Tiles in shared memory at once: the one that is read, and those whose copies are under way meanwhile;
            None where copies form no groups, or nothing is read between them.
        groups_left: Groups of copies that stay under way behind its waits for the oldest; 0 where it waits for all.
        products_left: Groups of products of four warps (`wgmma`) that stay under way behind its waits; 0 where it waits
            for all, None without any wait.
    """

    instructions: float
    by_kind: Mapping[str, float]
    global_loads: Mapping[int, float]
    shared_loads: Mapping[int, float]
    stores: float
    multiply_adds: float
    dtype: str | None
    is_matrix: bool
    global_operands: float | None
    shared_operands: float | None
    results: int | None
    in_flight: int | None
    barriers: float
    address_share: float | None
    copies_asynchronously: bool
    unroll: int | None = None
    stages: int | None = None
    groups_left: int | None = None
    products_left: int | None = None


class Loop(Struct, frozen=True, gc=False):
    """One loop of a kernel's machine code, or a straight part before, between or after its loops.

    Attributes:
        id: Its number in the kernel; rows of one function follow each other, each loop before those inside it.
        kind: Loop or straight part.
        name: Of a straight part: `prologue`, `between`, `epilogue`, `called`, `body` where no loop is; else empty.
        parent: Id of the loop around it; None for an outermost one.
        start, end: Offsets in bytes of its first and its last instruction, from the start of the kernel's code.
        file, line, last_line: Where it was compiled from; None if unknown.
        library_file, library_line: Its place in a library's header, which was inlined at that line; None for others.
        trips: How often its body runs for each warp that enters; None for straight parts, and where not known.
        amounts: Sum over its instructions, inner loops too, by measure: those of hot spots, and `global_sectors`.
        own: The same without inner loops.
        flop: Operations by dtype, inner loops too.
        self_flop: The same without inner loops.
        anatomy: What a trip takes; None for straight parts.
    """

    id: int
    kind: LoopKind
    name: str
    parent: int | None
    start: int
    end: int
    file: str | None = None
    line: int | None = None
    last_line: int | None = None
    library_file: str | None = None
    library_line: int | None = None
    trips: float | None = None
    amounts: Mapping[str, float] = field(default_factory=_nothing)
    own: Mapping[str, float] = field(default_factory=_nothing)
    flop: Mapping[str, float] = field(default_factory=_nothing)
    self_flop: Mapping[str, float] = field(default_factory=_nothing)
    anatomy: Anatomy | None = None


class JudgedLoop(Struct, frozen=True, gc=False):
    """A loop or straight-line part of a kernel: its share of the time, its place in the plane and its class.

    Attributes:
        loop: What was counted of it.
        share, share_self: Part of the kernel's samples in it, with and without inner loops, 0 to 1: of the time of
            warps, which is not the clock's. None without samples.
        flop: Floating-point operations, inner loops too; None if nothing tells types.
        flop_per_s: The same over the part of the kernel's time in which warps are in it; None if unknown.
        l2_bytes: Its part of the kernel's L2 bytes, by the sectors that its global and local accesses touch; None where
            not counted.
        smem_bytes: The same of shared memory, by wavefronts.
        intensity: FLOP per byte of `l2_bytes`; None without either.
        bound: Its class, of its own amounts: by what is busy while warps are in it, else by what they wait for.
        resource: Level or pipe that is busy; None if none is.
        resource_share: How busy, 0 to 1; None where other parts of the kernel run at the same moment.
        wait: Stall reason of most of its own samples that wait; None without one.
        wait_share: Part of its own samples that wait for that.
        job: What it does, in a word or two: `multiplies`, `loads tiles`, `loads`, ...
        pipe: The pipe that does most of its operations; None without any.
    """

    loop: Loop
    share: float | None
    share_self: float | None
    flop: float | None
    flop_per_s: float | None
    l2_bytes: float | None
    smem_bytes: float | None
    intensity: float | None
    bound: Bound
    resource: str | None
    resource_share: float | None
    wait: str | None
    wait_share: float | None
    job: str
    pipe: str | None


class Inside(Struct, frozen=True, gc=False):
    """The inside of a kernel by its machine code.

    Attributes:
        loops: Loops and straight parts; own amounts of all rows add up to the kernel's.
        waits: What the samples at an instruction wait for, most first, by its offset.
        pcs: Offsets of the instructions of each line, by file and line.
        row_of: Id of the loop or straight part that an instruction is in, by its offset.
        indexes_constants: It loads constants by an index that is known at run time only.
        code_digest: SHA-256 of its instructions up to the last one that ran, in hex; empty if some are unknown.
        note: Why nothing is known; or, beside loops, how far it is known what waits wait for; else empty.
        callers: The program's own line that inlined a line of a library, by the library's file and line.
    """

    loops: tuple[Loop, ...] = ()
    waits: Mapping[int, tuple[Wait, ...]] = field(default_factory=_nothing)
    pcs: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=_nothing)
    row_of: Mapping[int, int] = field(default_factory=_nothing)
    indexes_constants: bool = False
    code_digest: str = ""
    note: str = ""
    callers: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=_nothing)


class Kernel(Struct, frozen=True, gc=False):
    """One profiled result with its resolved counters: one row of the table `kernels`.

    Attributes:
        digest: Digest of its report.
        index: Position in the report, from 0, over all its results.
        name: Demangled name where the report has one, else the function name.
        function_name: Name without template arguments and parameters.
        status_reason: Why it failed, or which values could not be read; None if neither is so.
        workload: What was profiled: kernel, range, graph or command list.
        gpu: Name of the GPU; it ends in `GUESSED` where the file does not give it.
        device: Number of the GPU in its process; None if the report does not say.
        process: Name and number of the process that launched it: `python 4711`.
        nvtx_range: Path of the NVTX ranges it was launched in, from the outermost in: `train/step/forward`.
        counters: Resolved value by counter name (`rooflens.model.counters`); a missing counter has no entry.
        counter_sources: For each entry of `counters`, the stored metric names or the formula that gave it.
        thread_opcodes: SASS opcode with modifiers -> predicated-on thread instructions.
        warp_opcodes: SASS opcode with modifiers -> warp instructions.
        tensor_ops: Base name of a tensor counter (`src_bf16_dst_fp32`) -> operations.
        tensor_peaks_per_s: The same names -> peak operations per second at the profiled clock.
        stalls: Warp stall reason -> fraction of all sampled or counted stall cycles, 0 to 1.
        rules: NVIDIA's own verdicts.
        hotspots: Its hottest lines, instructions and functions.
        code_totals: Sum over all of its instructions, by measure of the hot spots; 0 where measured and none found.
        series: What was sampled while it ran; None if the report holds no samples.
        inside: Its loops and waits; None if nothing was counted by instruction, or the report holds figures alone.
        sources: What is known of the files of its hottest lines, by name as in the line table.
    """

    digest: str
    source: str
    index: int
    name: str
    function_name: str
    status: Status
    workload: str = "kernel"
    gpu: str | None = None
    compute_capability: str | None = None
    device: int | None = None
    process: str | None = None
    nvtx_range: str | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    synthetic: bool = False
    counters: Mapping[str, float] = field(default_factory=_nothing)
    counter_sources: Mapping[str, str] = field(default_factory=_nothing)
    thread_opcodes: Mapping[str, int] = field(default_factory=_nothing)
    warp_opcodes: Mapping[str, int] = field(default_factory=_nothing)
    tensor_ops: Mapping[str, float] = field(default_factory=_nothing)
    tensor_peaks_per_s: Mapping[str, float] = field(default_factory=_nothing)
    stalls: Mapping[str, float] = field(default_factory=_nothing)
    rules: tuple[Rule, ...] = ()
    hotspots: tuple[Hotspot, ...] = ()
    code_totals: Mapping[str, float] = field(default_factory=_nothing)
    series: Series | None = None
    status_reason: str | None = None
    inside: Inside | None = None
    sources: Mapping[str, SourceFile] = field(default_factory=_nothing)

    @property
    def gpu_model(self) -> str | None:
        """The name of its GPU without the mark of a guess, to compare it with others."""
        return self.gpu and self.gpu.removesuffix(GUESSED)

    @property
    def duration_ns(self) -> float | None:
        """GPU time of a launch in nanoseconds."""
        return self.counters.get("duration_ns")

    def per_s(self, amount: float | None) -> float | None:
        """Return an amount of a launch per second; None if the amount or the time is unknown."""
        duration_ns = self.counters.get("duration_ns")
        return amount / duration_ns * 1e9 if amount is not None and duration_ns else None

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability as numbers that compare; (0, 0) where the report does not state it."""
        major, _, minor = (self.compute_capability or "0.0").partition(".")
        return int(major), int(minor or 0)

    @property
    def failed(self) -> bool:
        """True when it failed while it was profiled, holds an impossible value, or could not be analyzed."""
        return self.status == "failed"

    @property
    def block_threads(self) -> int | None:
        """Threads of a block, as stated or by its shape; None where neither is known."""
        return _size_of_axes(self.counters.get("block_size"), self.block)

    @property
    def grid_blocks(self) -> int | None:
        """Blocks of the grid, as stated or by its shape; None where neither is known."""
        return _size_of_axes(self.counters.get("grid_size"), self.grid)

    @property
    def program_smem_bytes(self) -> float | None:
        """Shared memory of a block but for the driver's part; None if a part is unknown and nothing else is taken."""
        parts = [self.counters.get(f"smem_{part}_per_block_bytes") for part in ("static", "dynamic")]
        return sum(filter(None, parts)) or (None if None in parts else 0.0)

    @property
    def active_part(self) -> float | None:
        """Part of the elapsed cycles in which the mean SM had work, 0 to 1; None if unknown."""
        counters = self.counters
        elapsed = counters.get("sm_cycles_elapsed_avg") or counters.get("elapsed_cycles")
        part = ratio(counters.get("sm_cycles_active_avg"), elapsed)
        return None if part is None else min(1.0, part)


def _size_of_axes(stated: float | None, axes: tuple[int, int, int] | None) -> int | None:
    return int(stated) if stated is not None else prod(axes) if axes else None


RoofSource = Literal["report", "rate", "datasheet"]
"""Where a peak comes from, most trusted first: the report's own, a rate over its per cent, what is published."""
RoofClock = Literal["profiled", "rated"]
"""The clock that a peak holds for: that of the profiled run, or the one that the maker states."""


class Roof(Struct, frozen=True, gc=False):
    """What a unit of the GPU does at most, as `rooflens.model.roofline.roof.roof` finds it.

    Attributes:
        value: Per second, in `unit`.
        unit: `byte`, or as in `Pipe`.
        of: What it is made of: stored metrics or a formula, or the GPU whose datasheet it is.
    """

    value: float
    unit: str
    source: RoofSource
    clock: RoofClock
    of: str = ""

    @property
    def is_measured(self) -> bool:
        """Return whether it holds for this very run; else it is drawn dashed."""
        return self.source != "datasheet" and self.clock == "profiled"


class Level(Struct, frozen=True, gc=False):
    """A kernel's traffic at one memory level, and that level's roof.

    Attributes:
        amount_bytes: Bytes moved; None if not measured.
        source: The counters the bytes came from.
        stages: Share of peak by stage (0 to 1); `share` is the largest of them.
        intensity_flop_per_byte: FLOP of the kernel per byte at this level; None without FLOPs or bytes.
        attainable_per_s: Bytes per second that a calibration of this GPU reached; None if none is known.
        accuracy: Whether the bytes are all that were moved, or a lower or an upper bound.
    """

    amount_bytes: float | None = None
    source: str | None = None
    bytes_per_s: float | None = None
    roof: Roof | None = None
    share: float | None = None
    stages: Mapping[str, float] = field(default_factory=_nothing)
    intensity_flop_per_byte: float | None = None
    attainable_per_s: float | None = None
    accuracy: Accuracy = "exact"

    @property
    def peak_bytes_per_s(self) -> float | None:
        """The value of its roof."""
        return self.roof.value if self.roof is not None else None

    @property
    def peak_source(self) -> RoofSource | None:
        """Where its roof comes from."""
        return self.roof.source if self.roof is not None else None

    @property
    def leading_stage(self) -> str | None:
        """The busiest of the stages that set its share; None if none was measured."""
        share = self.share or 0.0
        # One that is busier is held to less, and sets it only where no other does.
        near = [name for name, busy in self.stages.items() if abs(busy - share) < SAME_SHARE]
        return max(near or self.stages, key=lambda name: min(self.stages[name], share), default=None)

    @property
    def binding_stage(self) -> str | None:
        """The stage that sets its share; None if its bytes over its roof do."""
        if self.share is None or not self.stages:
            return None
        of_roof = ratio(self.bytes_per_s, self.peak_bytes_per_s)
        is_roof = of_roof is not None and abs(of_roof - self.share) < SAME_SHARE
        return None if is_roof else self.leading_stage

    @property
    def stage_peak_bytes_per_s(self) -> float | None:
        """The bytes a second at which its binding stage would be full, at this traffic; None where its roof binds."""
        return ratio(self.bytes_per_s, self.share) if self.binding_stage is not None else None


class Pipe(Struct, frozen=True, gc=False):
    """A kernel's use of one execution pipe, and that pipe's roof.

    Attributes:
        unit: `FLOP`, `op` (integer tensor operations), `inst` (warp instructions) or `cycle` (busy cycles).
        share: Fraction of the peak, 0 to 1; None when the peak is unknown.
        source: `opcode`, `tensor_ops`, `sass`, `counter`, `estimated` or `upper_bound`.
        attainable_per_s: Rate that a calibration of this GPU reached, in `unit`; None if none is known.
    """

    amount: float | None
    unit: str
    source: str
    amount_per_s: float | None = None
    roof: Roof | None = None
    share: float | None = None
    attainable_per_s: float | None = None

    @property
    def peak_per_s(self) -> float | None:
        """The value of its roof."""
        return self.roof.value if self.roof is not None else None

    @property
    def peak_source(self) -> RoofSource | None:
        """Where its roof comes from."""
        return self.roof.source if self.roof is not None else None

    @property
    def is_arithmetic(self) -> bool:
        """Return whether its work is counted operations: an upper bound is not work that was done."""
        return self.unit in {"FLOP", "op"} and self.source != "upper_bound"


SAME_SHARE = 0.02
"""Bytes over roof and a stage's own share differ by up to 2 points between passes."""


class Bottleneck(Struct, frozen=True, gc=False):
    """The busiest unit, whether it bounds the kernel or not.

    Attributes:
        resource: Level or pipe; None if the report holds only NVIDIA's summary per cent.
        share: Fraction of its peak, 0 to 1.
        unit: The level or pipe whose share this is, where `resource` names what fills it and has another share.
    """

    resource: str | None
    share: float
    unit: str | None = None


def in_order(*sides: Bottleneck | None) -> tuple[Bottleneck, ...]:
    """Put the sides that are known in order of falling share."""
    return tuple(sorted(filter(None, sides), key=lambda side: -side.share))


FAR = 10.0
"""From here on texts say that a kernel is far from any limit, and no factor."""


class Limit(Struct, frozen=True, gc=False):
    """What no change can beat that keeps a kernel's arithmetic, its types and the bytes that it needs.

    It bounds no change of algorithm, of types or of instructions.

    Attributes:
        over_floor: Time over the floor; None if neither the arithmetic nor the traffic is known.
        floor_ns: The time that the arithmetic or the traffic needs at its peak, the larger of them.
        by: The side that sets the floor: `FP32 arithmetic`, `DRAM traffic`; empty without a floor.
        proven: Nothing that keeps the work gets below the floor. False at today's traffic: what is read again, or was
            lost from a full cache, can be spared.
        missing: What would tell it; None if it is known.
    """

    over_floor: float | None = None
    floor_ns: float | None = None
    by: str = ""
    proven: bool = False
    missing: str | None = None

    @property
    def far(self) -> bool:
        """Whether the floor is too far away for its factor to tell anything."""
        return self.over_floor is not None and self.over_floor > FAR

    @property
    def factor(self) -> float | None:
        """How much faster the kernel could be at most; None if unknown or far."""
        return None if self.far else self.over_floor


class UnitFloor(Struct, frozen=True, gc=False):
    """The time that a kernel's busiest unit works: with today's instructions and traffic it takes no less.

    It bounds no change that asks less of the unit, as other accesses of L1 do.

    Attributes:
        resource: The level or pipe.
        share: Fraction of the time in which it is busy, 0 to 1.
        floor_ns: That time.
    """

    resource: str
    share: float
    floor_ns: float


class Gain(Struct, frozen=True, gc=False):
    """What a move brings, alone: gains of several moves do not add up.

    Attributes:
        factor: Time over the time after the move.
        time_after_ns: The time after the move; None if the time is unknown.
        proven: The factor is a bound that nothing can beat, and no model's estimate.
        changes: What the move changes that the limit keeps: `types`, `instructions`, `bytes`; None if nothing.
    """

    factor: float
    time_after_ns: float | None = None
    proven: bool = False
    changes: str | None = None


class Phases(Struct, frozen=True, gc=False):
    """How a kernel's run divides into ramp, plateau and tail, by its series.

    Attributes:
        resource: Level or pipe that is busiest on the plateau.
        share: Its mean fraction of peak there.
        ramp: Fraction of the run before the plateau; with `plateau` and `tail` they sum to 1.
        warps_in_tail: Resident warps in the tail over those on the plateau; None if not sampled.
    """

    resource: str
    share: float
    ramp: float
    plateau: float
    tail: float
    warps_in_tail: float | None = None


class Evidence(Struct, frozen=True, gc=False):
    """One number that supports a finding.

    Attributes:
        unit: `share` for a fraction of one, a count's noun (`sectors/request`, `registers`), or an SI unit.
        source: The stored metrics or the formula that gave it.
    """

    name: str
    value: float
    unit: str
    source: str


class Place(Struct, frozen=True, gc=False):
    """Where in the code a finding is.

    Attributes:
        share: Part of the kernel's total that is there, 0 to 1, of what the finding is about.
        caller: File and line of the program that a line of a library was inlined at; None for others.
    """

    hotspot: Hotspot
    share: float
    caller: tuple[str, int] | None = None


class Cost(Struct, frozen=True, gc=False):
    """The share of a kernel's elapsed time that goes to a waste, 0 to 1.

    Attributes:
        low: What is proven: the time in which its unit works in vain.
        high: What it can be: the time that goes with it.
    """

    low: float
    high: float


Limiter = Literal["registers", "shared memory", "carveout", "warps a block", "block slots", "barriers"]
"""What keeps more blocks off an SM; the carveout is the part of L1 that a launch sets aside as shared memory."""


class Finding(Struct, frozen=True, gc=False):
    """Why a kernel is slower than it could be, where, and what to do.

    Attributes:
        id: As `rooflens.model.findings.find` lists it.
        severity: `limiter` where it is what bounds the kernel, `contributes` where it costs time besides, `note` where
            it is true but not what costs time.
        gain: What the move brings, alone; None if that cannot be modelled, and for notes.
        cost: What goes to it of the kernel's time; None if nothing tells.
        where: Lines or instructions it is at, worst first; empty if the report cannot tell.
        move: What to do, in one sentence with the kernel's own numbers.
        kind: What the move changes, in one word.
        limiters: What keeps more blocks or warps off an SM that the move makes room in; empty for other moves.
    """

    id: str
    title: str
    severity: Severity
    evidence: tuple[Evidence, ...]
    move: str
    kind: MoveKind
    gain: Gain | None = None
    where: tuple[Place, ...] = ()
    confidence: Confidence = "high"
    cost: Cost | None = None
    limiters: tuple[Limiter, ...] = ()

    @property
    def factor(self) -> float | None:
        """What it is ranked by: its gain or, where an open class keeps that untold, what it costs; None if unknown."""
        if self.gain is not None:
            return self.gain.factor
        is_told = self.cost is not None and self.confidence != "low"
        return 1 / (1 - self.cost.high) if self.cost is not None and is_told else None


class Does(Struct, frozen=True, gc=False):
    """What a kernel already does, as far as something tells; None where nothing does.

    Attributes:
        sources: What each field that is known was told by.
        results: Sums that a thread keeps in registers; None on tensor cores.
        registers: Registers of a thread.
        tile_bytes: Shared memory of a block, without the driver's part.
        copies: How it copies to shared memory past registers: `cp.async`, `bulk copies`, `TMA`.
        stages: Tiles that asynchronous copies keep in shared memory: one that is read, and those under way; None where
            no machine code tells.
        waits_for_oldest: It waits for the oldest of them alone, not for all; None as above.
        products_left: Groups of `wgmma` that stay under way behind its waits for products; 0 where it waits for all.
        products: What multiplies, and in which type: `mma.sync bf16`, `wgmma fp16`, `FMA fp32`; empty if nothing does.
        older_products: It multiplies by an instruction that is older, and slower, than the chip's own.
        load_bytes: The widest load of a thread from global memory.
        lanes: Threads at work in an instruction, up to 32.
        reduces_by: How threads cooperate: `shuffles`, `barriers`, `atomics`.
        persistent: It launches as many blocks as SMs hold, a multiple of their number.
        specialised: Warps hand registers to others, as those that copy for those that multiply.
    """

    sources: Mapping[str, str] = {}
    results: int | None = None
    registers: float | None = None
    tile_bytes: float | None = None
    copies: tuple[str, ...] | None = None
    stages: int | None = None
    waits_for_oldest: bool | None = None
    products_left: int | None = None
    products: str | None = None
    older_products: bool | None = None
    load_bytes: int | None = None
    lanes: float | None = None
    reduces_by: tuple[str, ...] | None = None
    persistent: bool | None = None
    specialised: bool | None = None

    @property
    def uses_tensor_cores(self) -> bool:
        """Whether its products are matrix instructions."""
        return bool(self.products) and not (self.products or "").startswith("FMA")


class Spelling(Struct, frozen=True, gc=False):
    """What people write to make a move, in CUDA, CUTLASS or CuTe, and Triton; None where there is no such thing."""

    cuda: str | None
    cutlass: str | None
    triton: str | None


class Edit(Struct, frozen=True, gc=False):
    """The statement that a move changes, and a sketch of what it becomes, which nobody has compiled.

    Attributes:
        line, last_line: Where the statement stands, from 1.
        before: Its text, line by line.
        after: What it becomes, in at most three lines; empty where no rule says that for all programs.
        note: What the sketch holds for, or what else has to follow; empty if nothing.
        check: The command that tells what the change did.
        ways_before, ways_after: Passes of its shared-memory accesses for each that their bytes need, replayed from
            their addresses, today, where they equal those counted, and with the sketch; None elsewhere.
    """

    file: str
    line: int
    last_line: int
    before: tuple[str, ...]
    after: tuple[str, ...] = ()
    note: str = ""
    check: str = ""
    ways_before: float | None = None
    ways_after: float | None = None


class Move(Struct, frozen=True, gc=False):
    """One thing to do, in one sentence with the kernel's own numbers.

    Attributes:
        kind: What it changes, in one word.
        finding: Id of the finding that it comes from; None if it is the limiter's, or asks for counters.
        where: Lines or instructions it is about, worst first.
        gain: What it brings, alone; None if that cannot be modelled.
        shared: What it is the same for in many kernels, which then are one row of a ranking; empty of one for a kernel
            alone.
        command: The command in its text that collects a launch of the kernel; empty without one.
        spelling: What it is called where tensor cores multiply or copies are asynchronous; None elsewhere.
        edit: The statement that it changes; None where the text of its line is not known.
    """

    text: str
    kind: MoveKind
    finding: str | None = None
    where: tuple[Place, ...] = ()
    gain: Gain | None = None
    shared: SharedMove = ""
    command: str = ""
    spelling: Spelling | None = None
    edit: Edit | None = None


class Verdict(Struct, frozen=True, gc=False):
    """What limits the kernel, and what to do about it.

    Attributes:
        or_bound: The classes that a side which was not measured could turn it into: they are called as the sides are.
        unmeasured: What was not measured and may be busier than all that was: levels, `other pipes`, or the side where
            nothing of it was.
        resource: Level or pipe of the limiter; None for latency, overhead and unknown.
        at_roof: The limiter reaches the at-roof share of its attainable roof where that is known, else of its
            peak.
        cause: A short phrase: `grid below one wave`, `waits for global memory`, ...; None if the class says all.
        limit: How much faster it could be at most.
        bottleneck: The busiest unit: the limiter where there is one; None if no share is known.
        memory: The busiest memory level; None if nothing is known of memory.
        compute: The busiest pipe; None if nothing is known of compute.
        is_nearly_alone: The launch leaves nearly the whole GPU idle, for far longer than a launch takes.
        today: The floor with today's instructions and traffic; None if no unit or no time was measured.
        does: What it already does, and no move advises again.
        done: The roof that it has reached, DRAM or a pipe: only another algorithm or type gets further; None while
            there is something left to win.
        is_only_at_roof: That roof is DRAM, and nobody knows whether bytes cross it more than once.
        causes: Ids of the findings that say why it waits, the first cause first; empty of another class.
        is_wait_explained: Whether these explain most of what it waits for; None of another class.
        full_for_a_while: The series named the limiter: it is full on the plateau of the run, and no unit is on average.
        share_while_active: How busy the busiest unit is while SMs have work, where they have none for a part of the
            time, it is one of theirs and none is full; None elsewhere.
        is_brief: It waits, and of its few microseconds the start and the end of any launch are a good part.
    """

    bound: Bound
    resource: str | None
    at_roof: bool
    cause: str | None
    limit: Limit
    confidence: Confidence
    moves: tuple[Move, ...] = ()
    bottleneck: Bottleneck | None = None
    memory: Bottleneck | None = None
    compute: Bottleneck | None = None
    is_nearly_alone: bool = False
    or_bound: tuple[Bound, ...] = ()
    today: UnitFloor | None = None
    done: Bottleneck | None = None
    is_only_at_roof: bool = False
    does: Does = Does()
    unmeasured: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    is_wait_explained: bool | None = None
    full_for_a_while: bool = False
    share_while_active: float | None = None
    is_brief: bool = False

    @property
    def limiter(self) -> Bottleneck | None:
        """The unit that bounds it; None for latency, overhead and unknown."""
        return self.bottleneck if self.bound in {"memory", "compute", "balanced"} else None

    @property
    def sides(self) -> tuple[Bottleneck, ...]:
        """The busiest level and the busiest pipe, as far as known, the busier one first."""
        return in_order(self.memory, self.compute)

    @property
    def shown_class(self) -> ShownClass:
        """What every output calls its class: `latency`, and `latency?` where another one is possible."""
        return shown_class(self.bound, self.or_bound)

    @property
    def advice(self) -> tuple[str, ...]:
        return tuple(move.text for move in self.moves)

    @property
    def best(self) -> Move | None:
        """The move with the largest gain, the first one if none has any; None without moves.

        Where nearly the whole GPU is idle it is the first, though nobody can tell what that brings.
        """
        if self.is_nearly_alone and self.moves:
            return self.moves[0]
        return max(self.moves, key=lambda move: move.gain.factor if move.gain else 0.0, default=None)

    @property
    def gain(self) -> Gain | None:
        """What the best move brings; None if that can be modelled of none."""
        return self.best.gain if self.best else None


class Nvidia(Struct, frozen=True, gc=False):
    """What NVIDIA's own rules in the report say."""

    bottleneck: str | None = None
    fp32_pct_of_peak: float | None = None
    fp64_pct_of_peak: float | None = None


class Outside(Struct, frozen=True, gc=False):
    """Facts about a kernel from outside its profile.

    Attributes:
        in_program: What it takes in its program without the profiler; None if no launch was timed.
        command_line: ncu's, as the report states it.
        slowdown: Kernel time under the profiler over kernel time without it.
        launches: How often the un-profiled run launched it; a profile of each distinct launch stands for so many. 0
            where a timeline has no launch of it.
        attainable: A calibration of this GPU at the kernel's clock (`find_attainable`).
        compulsory_bytes: What one launch must move to and from DRAM, by the formula of its workload.
        key: What it is called from run to run, as `rooflens.model.keys` numbers it among its like; empty for the first.
        short_name: What sets its name apart in its report (`rooflens.model.keys.short_names`).
    """

    in_program: InProgram | None = None
    command_line: str | None = None
    slowdown: float | None = None
    launches: int = 1
    attainable: MeasuredRates | None = None
    compulsory_bytes: float | None = None
    key: str = ""
    short_name: str = ""

    @property
    def waiting(self) -> InProgram | None:
        """Its typical launch in its program, where the gaps around it outweigh its time."""
        return _outweighed(self.in_program)


class Analysis(Struct, frozen=True, gc=False):
    """Everything the model says about a kernel: the record that every output is made from.

    Attributes:
        levels: By level name, all of `LEVELS` present.
        pipes: By pipe name: dtypes (`fp32`, `tensor_bf16`, ...), `alu`, `xu`, `lsu`, `issue`.
        flop: Floating-point operations by dtype key; absent where unknown.
        flop_source: For each key of `flop`: opcode, tensor_ops, sass, estimated or upper_bound.
        flop_total: Sum of `flop`, upper bounds left out; None if nothing was counted, or a part is known to be missing.
        flop_peak_per_s: The mixed-precision roof: flop_total / sum(flop_i / peak_i).
        flags: Traps that apply to this kernel, sorted.
        launches: Number of launches that this one represents; 0 where a timeline has none.
        findings: Why it is slower than it could be: first those that cost time, by what they cost, then notes.
        phases: How its run divides; None without a series, or without a clear plateau.
        key: What it is called from run to run (`rooflens.model.keys`); unique in its report.
        in_program: What it takes in its program without the profiler; None if no launch was timed.
        short_name: What sets its name apart in its report.
        role: What it is to its reader.
        library: The library that it is part of; None if its name tells none.
        loops: Its loops and straight parts, each with its class; empty if nobody looked inside.
        flop_uncounted: Types that were not counted: `fp64`, `fp32`, `fp16`, `tensor`.
    """

    kernel: Kernel
    levels: Mapping[str, Level]
    pipes: Mapping[str, Pipe]
    flop: Mapping[str, float]
    flop_source: Mapping[str, str]
    flop_total: float | None
    flop_per_s: float | None
    flop_peak_per_s: float | None
    verdict: Verdict
    nvidia: Nvidia
    flags: tuple[str, ...] = ()
    launches: int = 1
    findings: tuple[Finding, ...] = ()
    phases: Phases | None = None
    key: str = ""
    in_program: InProgram | None = None
    short_name: str = ""
    role: Role = "kernel"
    library: str | None = None
    loops: tuple[JudgedLoop, ...] = ()
    flop_uncounted: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Analysis of {self.short_name or self.kernel.name!r}>"

    @property
    def waiting(self) -> InProgram | None:
        """Its typical launch in its program, where the gaps around it outweigh its time."""
        return _outweighed(self.in_program)

    @property
    def counted_flop(self) -> dict[str, float]:
        """Operations by dtype key that were done: upper bounds are left out."""
        return {name: ops for name, ops in self.flop.items() if self.flop_source.get(name) != "upper_bound"}

    @property
    def gpu_time_ns(self) -> float | None:
        """GPU time in nanoseconds of all launches it represents, without the profiler where that is known."""
        if self.in_program is not None and self.in_program.total_ns is not None:
            return self.in_program.total_ns
        duration_ns = self.kernel.counters.get("duration_ns")
        return None if duration_ns is None else duration_ns * self.launches


def _outweighed(launch: InProgram | None) -> InProgram | None:
    return launch if launch is not None and launch.gap_outweighs else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """Divide, where both are known and there is something to divide by."""
    return part / whole if part is not None and whole else None


def timed(analyses: Iterable[Analysis]) -> list[Analysis]:
    """Leave out what failed: it counts in no sum."""
    return [analysis for analysis in analyses if not analysis.kernel.failed]


def at_work(analyses: Iterable[Analysis]) -> list[Analysis]:
    """Leave out what failed and what only fills inputs: the program of nobody gets faster or slower by these."""
    return [analysis for analysis in timed(analyses) if analysis.role != "fill"]


class AnalyzedReport(Struct, frozen=True, gc=False):
    """One report with the analyses of its kernels, in its order, failed ones too; with its un-profiled run, if any."""

    run: Run
    analyses: tuple[Analysis, ...]
    unprofiled: Unprofiled | None = None
