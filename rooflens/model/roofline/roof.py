"""The roof of a unit: what a memory level, one of its stages or a pipe does at most, and where that is known from.

The one place where a peak is looked for. Plane, table, class, limit, tooltips, columns and JSON take it from here, by
`Level.roof` and `Pipe.roof`, so that all of them go by one number:

1. the report's own peak, at the clock of the profiled run;
2. the rate of a unit over its per cent of peak, which is the same number;
3. what is published of the GPU, named by the report, by the user or guessed: at the clock of the run where that is
   known, else at the rated one.

A roof of the third kind may be some per cent off, as boards and clocks differ: it is drawn dashed, with its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from rooflens.format import si
from rooflens.model.counters.execution import SCHEDULERS_PER_SM
from rooflens.model.counters.memory import WAVEFRONT_BYTES
from rooflens.model.records import Kernel, Roof, RoofClock, held_once, ratio
from rooflens.model.roofline.datasheets import ACC16, Datasheet, datasheet_of, load_datasheets
from rooflens.model.roofline.units import (
    PIPE_ROWS,
    SOC_CAPABILITIES,
    STAGES,
    is_of_active,
    wavefronts_a_cycle,
)

SCALAR_DTYPES = {"fp64": ("d", 1.0), "fp32": ("f", 1.0), "fp16": ("h", 2.0)}
"""Dtype -> letter of its SASS counters, and operations of one add or mul thread instruction (fp16 is packed)."""

INSTRUCTIONS: dict[str, tuple[str, ...]] = {
    "mma": ("hmma", "imma", "bmma", "qmma", "omma", "dmma"),
    "wgmma": ("hgmma", "igmma", "bgmma", "qgmma"),
    "tcgen05": ("utchmma", "utcimma", "utcqmma", "utcomma"),
}
"""Instruction of the programming guide -> the opcodes in the names of its counters. Each has a roof of its own."""

DTYPE_OF_COUNTER = {"fp16_bf16_tf32": "fp16", "fp4_fp6": "fp6", "fp4_fp6_fp8": "fp8"}
"""Types in the names of tensor counters -> what they are called here."""

CONTROLLERS_LEAD = frozenset({"10.0", "10.3"})
"""Chips on which NVIDIA's per cent of DRAM is that of its controllers, and not of its bus."""

FULL_CLOCK_FROM_RATIO = 1.1
"""A published bandwidth so far over that of the run is DRAM's at its own top clock; datasheets are rounded."""
LEAST_SHARE = 0.005
"""A peak is made of a rate and its per cent from here on: ncu prints per cents to hundredths."""

_ALIKE = 0.05
"""Boards of one chip whose DRAM differs by no more have one roof where the GPU has no name, as B300 and GB300."""

_SPARSE_PEAK_IN_BASE_NAME_FROM = (9, 0)
_MMA_PART_OF_PEAK = {(9, 0): dict.fromkeys(("bf16", "fp16", "tf32", "fp8", "int8", "int1"), 2 / 3)}
"""Chips whose warp-wide mma reaches only a part of the dense peak: on GH100 2,731 of 4,096 bf16 FLOP a cycle and SM."""

_TENSOR_KEY = re.compile(
    r"^tensor_(?P<dtype>[a-z]+\d+)(?P<sparse>_sparse)?(?P<half>_acc16)?(?:_(?P<instruction>mma|wgmma|tcgen05))?$"
)
_PER_CENT = ".pct_of_peak_"
"""In the source of a resolved peak: that was made of a rate and its per cent."""


class TensorKind(Struct, frozen=True):
    """A kind of tensor work that has a roof of its own; `instruction` is empty if a count does not tell."""

    dtype: str
    half_accumulate: bool = False
    instruction: str = ""
    sparse: bool = False

    @property
    def dtype_key(self) -> str:
        return f"tensor_{self.dtype}" + ("_sparse" if self.sparse else "")

    @property
    def accumulator(self) -> str:
        return ACC16 if self.half_accumulate else ""

    @property
    def key(self) -> str:
        """The key of its pipe: that of warp-wide mma is the type's own."""
        return self.unit.removesuffix("_mma")

    @property
    def unit(self) -> str:
        """What `roof` is asked for."""
        return self.dtype_key + self.accumulator + (f"_{self.instruction}" if self.instruction else "")


class _PeakCounters(Struct, frozen=True):
    """The counters of one unit's peak, and of a rate and its share of that peak; empty without one."""

    peak: str
    amount: str
    share: str
    unit: str


def _stage(level: str, name: str) -> _PeakCounters:
    row = next(row for row in STAGES if (row.level, row.name) == (level, name))
    unit = "inst" if (row.amount or "").endswith("_inst") else "byte"
    return _PeakCounters(row.peak or "", row.amount or "", row.share, unit)


_UNIT_COUNTERS: Mapping[str, tuple[_PeakCounters, ...]] = {
    **{f"{row.level}_{row.name}": (_stage(row.level, row.name),) for row in STAGES},
    **{row.key: (_PeakCounters(row.peak or "", row.amount or "", row.shares[0], row.unit),) for row in PIPE_ROWS},
    "dram": (_stage("dram", "bus"), _PeakCounters("dram_pins_peak_bytes_per_s", "", "", "byte")),
    # All traffic of L2 passes its tag stage.
    "l2": (_stage("l2", "tag"), _stage("l2", "return")),
    "l1": (_stage("l1", "data"), _stage("l1", "shared_data")),
    "smem": (_stage("smem", "data"),),
    "host_link": (_PeakCounters("host_link_peak_bytes_per_s", "", "", "byte"),),
}
"""Unit -> the counters that may give its roof, best first."""


def counters_of(unit: str) -> frozenset[str]:
    """Return the counters that may give the report's own peak of a unit."""
    return frozenset(row.peak for row in _UNIT_COUNTERS.get(unit, ()) if row.peak)


def roof(unit: str, kernel: Kernel) -> Roof | None:
    """Find the roof of a unit for a kernel; None if nothing tells.

    Args:
        unit: A level (`dram`), a level's stage (`l2_tag`), `host_link` in one direction, or a pipe: a dtype (`fp32`,
            `tensor_bf16_wgmma`), `issue`, `alu`, ... A tensor type with `_mma` is that of the warp-wide instruction,
            where a chip has a faster one.
        kernel: Its resolved counters, its chip and the name of its GPU.
    """
    if unit in SCALAR_DTYPES or (unit.startswith("tensor_") and unit not in _UNIT_COUNTERS):
        found = _of_arithmetic(unit, kernel)
    else:
        found = reported(unit, kernel) or _of_rate(unit, kernel) or _published(unit, kernel)
    return None if found is None else held_once(found)


def at_top_clock(kernel: Kernel) -> Roof | None:
    """Find the roof of DRAM at its own top clock, which may be above that of the run; else that of the run.

    The driver tells it. Where only a rate and its per cent tell that of the run, as in a print, the datasheet does: of
    several chips that it may be, that of the slowest which can move so much.
    """
    now = roof("dram", kernel)
    if (top := _by_driver(kernel)) is not None or now is None or now.source != "rate":
        return top or now
    published = [found for sheet in _sheets(kernel) if (found := _of_sheet("dram", kernel, sheet)) is not None]
    fitting = (one for one in published if one.value * FULL_CLOCK_FROM_RATIO >= now.value)
    slowest = min(fitting, key=lambda one: one.value, default=now)
    return slowest if slowest.value > FULL_CLOCK_FROM_RATIO * now.value else now


def _sheets(kernel: Kernel) -> Iterable[Datasheet]:
    """Return the datasheet of a kernel's GPU, else those of its capability with as many SMs; none without these."""
    if (named := datasheet_of(kernel.gpu)) is not None:
        return (named,)
    chip = kernel.compute_capability, kernel.counters.get("sm_count")
    return (sheet for sheet in load_datasheets() if (sheet.compute_capability, sheet.sm_count.value) == chip)


def dram_clock_part(kernel: Kernel) -> float:
    """Return DRAM's peak at the clock of the run over that at its own top clock, 0 to 1; 1 where either is unknown."""
    if "device_dram_peak_bytes_per_s" in kernel.counters:
        now, top = (kernel.counters.get(f"{of}_peak_bytes_per_s") for of in ("dram_bus", "device_dram"))
        return ratio(now, top) or 1.0
    run, highest = roof("dram", kernel), at_top_clock(kernel)
    return 1.0 if run is None or highest is None else run.value / highest.value


def reported(unit: str, kernel: Kernel) -> Roof | None:
    """Return the peak that the report itself gives for a level, a stage or a pipe that is no dtype."""
    for row in _UNIT_COUNTERS.get(unit, ()):
        if peak := kernel.counters.get(row.peak):
            return _as_fast(unit, _from_counter(row.peak, peak, row.unit, kernel), kernel)
    return None


def part_of_counted(unit: str, kernel: Kernel) -> float:
    """Return which part of the peak that ncu counts a unit against it has, 0 to 1."""
    return wavefronts_a_cycle(kernel) if unit in _PASSES_WAVEFRONTS else 1.0


def _as_fast(unit: str, counted: Roof, kernel: Kernel) -> Roof:
    """Hold a peak that ncu counts against to what the chip does."""
    part = part_of_counted(unit, kernel)
    if part == 1:
        return counted
    of = f"{counted.of}, of which CC {kernel.compute_capability} has {part:g}"
    return Roof(part * counted.value, counted.unit, counted.source, counted.clock, held_once(of))


def _from_counter(name: str, value: float, unit: str, kernel: Kernel) -> Roof:
    of = kernel.counter_sources.get(name, "")
    return Roof(value, unit, "rate" if _PER_CENT in of else "report", "profiled", of)


def _of_rate(unit: str, kernel: Kernel) -> Roof | None:
    """Divide the rate of a unit by its share of the peak."""
    counters, sources = kernel.counters, kernel.counter_sources
    for row in _UNIT_COUNTERS.get(unit, ()):
        share, per_s = counters.get(row.share), kernel.per_s(counters.get(row.amount))
        if per_s and share is not None and share >= LEAST_SHARE and not _is_another(row, kernel):
            of = f"{sources.get(row.amount, row.amount)} / t / {sources.get(row.share, row.share)}"
            return _as_fast(unit, Roof(per_s / share, row.unit, "rate", "profiled", held_once(of)), kernel)
    return None


def _is_another(row: _PeakCounters, kernel: Kernel) -> bool:
    """Return whether a per cent is not that of the rate: of active cycles, or of DRAM's controllers and not its bus."""
    if is_of_active(kernel, row.share):
        return True
    source = kernel.counter_sources.get(row.share, "")
    is_throughput = row.share == "dram_bus_share" and "dram_throughput" in source.replace("dram__", "dram_")
    return is_throughput and kernel.compute_capability in CONTROLLERS_LEAD


def _published(unit: str, kernel: Kernel) -> Roof | None:
    """Return what is known of a level, a link or the issue slots by the driver, or by the name of the GPU."""
    if unit in _OF_DRAM:
        if kernel.compute_capability in SOC_CAPABILITIES:
            return None
        if (top := _by_driver(kernel)) is not None:
            return top
    sheet = datasheet_of(kernel.gpu)
    if sheet is None:
        return _of_any(kernel.compute_capability or "") if unit in _OF_DRAM and kernel.gpu is None else None
    return _of_sheet(unit, kernel, sheet)


@lru_cache(maxsize=64)
def _of_any(capability: str) -> Roof | None:
    """Return the fastest DRAM of a compute capability, for a GPU without a name; None where these differ by more.

    A share of the fastest is a lower bound.
    """
    rates = [sheet.dram_bandwidth.value for sheet in load_datasheets() if sheet.compute_capability == capability]
    if not rates or min(rates) < (1 - _ALIKE) * max(rates):
        return None
    span = si(max(rates), "B/s") if min(rates) == max(rates) else f"{si(min(rates), 'B/s')} to {si(max(rates), 'B/s')}"
    return Roof(max(rates), "byte", "datasheet", "rated", f"datasheets of CC {capability}: {span}")


class Memory(Struct, frozen=True):
    """The DRAM of a GPU: what it holds, and moves at its top clock."""

    size_bytes: float
    peak_bytes_per_s: float


def memories(kernel: Kernel) -> tuple[Memory, ...]:
    """Return the DRAM of each GPU that a kernel may have run on: its own, else those of its compute capability."""
    named, top = datasheet_of(kernel.gpu), at_top_clock(kernel)
    return tuple(
        Memory(sheet.dram_size.value, sheet.dram_bandwidth.value if top is None else top.value)
        for sheet in ([named] if named else load_datasheets())
        if sheet.dram_size is not None and (named or sheet.compute_capability == kernel.compute_capability)
    )


_OF_DRAM, _OF_L2 = frozenset({"dram", "dram_bus"}), frozenset({"l2", "l2_return"})


def _of_sheet(unit: str, kernel: Kernel, sheet: Datasheet) -> Roof | None:
    if unit in _PER_SM:
        (amount, what), (clock_hz, clock) = _PER_SM[unit], _clock_of(kernel, sheet.boost_clock.value)
        sms = kernel.counters.get("sm_count") or sheet.sm_count.value
        peak = part_of_counted(unit, kernel) * amount * sms * clock_hz
        return Roof(peak, what, "datasheet", clock, _sheet_name(kernel))
    if unit == "host_link" and (link := sheet.links.get("pcie")) is not None:
        return Roof(link.bytes_per_s_per_direction, "byte", "datasheet", "rated", link.source)
    stated = sheet.dram_bandwidth if unit in _OF_DRAM else sheet.l2_bandwidth if unit in _OF_L2 else None
    return None if stated is None else Roof(stated.value, "byte", "datasheet", "rated", _sheet_name(kernel))


def _by_driver(kernel: Kernel) -> Roof | None:
    """Return what DRAM moves at its top clock, by the driver."""
    name = "device_dram_peak_bytes_per_s"
    top = kernel.counters.get(name)
    return Roof(top, "byte", "report", "rated", kernel.counter_sources.get(name, "")) if top else None


_PASSES_WAVEFRONTS = ("l1", "smem", "l1_data", "l1_shared_data", "smem_data")
"""Units that are, or have the peak of, L1's data stage."""
_PER_SM: Mapping[str, tuple[float, str]] = {
    **dict.fromkeys(_PASSES_WAVEFRONTS, (WAVEFRONT_BYTES, "byte")),
    "issue": (SCHEDULERS_PER_SM, "inst"),
}
"""Units that do the same on every SM of any GPU: how much a cycle."""


def _clock_of(kernel: Kernel, rated_hz: float) -> tuple[float, RoofClock]:
    clock_hz = kernel.counters.get("sm_clock_hz")
    return (clock_hz, "profiled") if clock_hz else (rated_hz, "rated")


def _sheet_name(kernel: Kernel) -> str:
    return f"datasheet of {kernel.gpu}"


def _of_arithmetic(unit: str, kernel: Kernel) -> Roof | None:
    """Find the dense peak of a dtype: the report's, then the published one."""
    if unit in SCALAR_DTYPES:
        letter, packed = SCALAR_DTYPES[unit]
        name = f"{letter}fma_peak_threads_per_s"
        threads_per_s = kernel.counters.get(name)
        if threads_per_s is None:
            return _of_type(unit, "FLOP", kernel)
        return _from_counter(name, 2 * packed * threads_per_s, "FLOP", kernel)
    kind = _tensor_kind(unit)
    if kind is None:
        return None
    part = 2.0 if kind.sparse else 1.0
    what = "op" if kind.dtype.startswith("int") else "FLOP"
    is_mma = kind.instruction == "mma"
    slower = _MMA_PART_OF_PEAK.get(kernel.capability, {}).get(kind.dtype, 1.0) if is_mma else 1.0
    dense = _dense_peak(kind, kernel, slower)
    if dense is not None:
        return Roof(part * dense, what, "report", "profiled", _TENSOR_PEAK)
    published = _of_type(f"tensor_{kind.dtype}{kind.accumulator}", what, kernel)
    if published is None:
        return None
    return Roof(part * (slower * published.value), what, published.source, published.clock, published.of)


_TENSOR_PEAK = "sm__ops_path_tensor_*.sum.peak_sustained x f"


def _of_type(key: str, unit: str, kernel: Kernel) -> Roof | None:
    """Bring a published dense peak to the clock of the run, where that is known."""
    sheet = datasheet_of(kernel.gpu)
    if sheet is None:
        return None
    clock_hz, clock = _clock_of(kernel, sheet.clock_of(key).value)
    peak = sheet.peak_at(clock_hz, key, kernel.counters.get("sm_count"))
    return None if peak is None else Roof(peak, unit, "datasheet", clock, _sheet_name(kernel))


@lru_cache(maxsize=256)
def _tensor_kind(unit: str) -> TensorKind | None:
    match = _TENSOR_KEY.match(unit)
    if match is None:
        return None
    return TensorKind(match["dtype"], bool(match["half"]), match["instruction"] or "", bool(match["sparse"]))


def _dense_peak(kind: TensorKind, kernel: Kernel, slower: float) -> float | None:
    """Return the report's dense peak of a kind: of its own instruction first, then of its dtype."""
    peaks = kernel.tensor_peaks_per_s
    types = (kind.dtype, *(name for name, alias in DTYPE_OF_COUNTER.items() if alias == kind.dtype))
    targets = ("_dst_fp16", "", "_dst_fp32") if kind.half_accumulate else ("_dst_fp32", "", "_dst_fp16")
    sources = [f"src_{name}{target}" for name in types for target in targets]
    for prefix in (f"op_{op}_" for op in INSTRUCTIONS.get(kind.instruction, ())):
        for source in sources:
            if (dense := peaks.get(f"{prefix}{source}_sparsity_off")) is not None:
                return dense
    for source in sources:
        if (dense := peaks.get(f"{source}_sparsity_off")) is not None:
            return slower * dense
    # A base name peaks at the sparse rate on CC 9.0 and later, for types that have one.
    is_sparse = kernel.capability >= _SPARSE_PEAK_IN_BASE_NAME_FROM and kind.dtype not in {"fp64", "int1"}
    for source in sources:
        if (base := peaks.get(source)) is not None:
            return slower * base / (2 if is_sparse else 1)
    return None
