"""Floating-point operations of a kernel by dtype, each from the best source the report has.

Per dtype one source, never two added: opcode tables where present; else NVIDIA's tensor operation counters for the
tensor pipes and the SASS counters for the rest; else, for tensor work, an estimate from pipe activity.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.model.roofline.datasheets import ACC16, datasheet_of
from rooflens.model.roofline.opcodes import THREAD_FLOP, is_matrix, is_tcgen05, tensor_op, thread_flop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflens.model.records import Kernel
    from rooflens.model.roofline.opcodes import TensorOp

SCALAR_DTYPES = {"fp64": ("d", 1.0), "fp32": ("f", 1.0), "fp16": ("h", 2.0)}
"""Dtype -> letter of its SASS counters, and operations of one add or mul thread instruction (fp16 is packed)."""
SCALAR_COUNTERS = {
    dtype: tuple(f"{letter}{op}_threads" for op in ("add", "mul", "fma"))
    for dtype, (letter, _) in SCALAR_DTYPES.items()
}
"""Dtype -> counters of its additions, multiplications, and fused multiply-adds."""

UPPER_BOUND = "upper_bound"
"""Source of a count that holds more than the work: packed fp16 where constants are loaded by multiply-adds."""

TENSOR_IDLE_SHARE = 0.005
"""Tensor pipe activity above this with an operation count of zero means: the wrong counter, not no work."""
TENSOR_NOISE_SHARE = 0.05
"""Tensor pipe activity up to this is no tensor work, where no opcode table says more.

`HFMA2.MMA`, no matrix instruction, issues there too: kernels without any show up to 3.8 % (public reports, CC 8.0 and
9.0), and the least of those with some is 6.0 %.
"""

_TENSOR_CORES_FROM = (7, 0)
_SPARSE_PEAK_IN_BASE_NAME_FROM = (9, 0)
_MMA_PART_OF_PEAK = {(9, 0): dict.fromkeys(("bf16", "fp16", "tf32", "fp8", "int8", "int1"), 2 / 3)}
"""Chips whose warp-wide mma reaches only a part of the dense peak: on GH100 2,731 of 4,096 bf16 FLOP a cycle and SM."""
_NEWER_INSTRUCTION = {(9, 0): "wgmma", (10, 0): "tcgen05", (10, 3): "tcgen05", (11, 0): "tcgen05"}
"""Chips with matrix instructions beside mma, which read shared memory or tensor memory themselves."""
_PLAIN_TENSOR_KEY = re.compile(r"^tensor_(?P<dtype>[a-z]+\d+)(?:_wgmma|_tcgen05)?$")
_COUNTER_NAME = re.compile(
    r"^(?:op_(?P<op>[a-z]+)_)?src_(?P<dtype>fp16_bf16_tf32|fp4_fp6_fp8|fp4_fp6|bf16|tf32|fp\d+|int\d)"
    r"(?:_dst_(?P<dst>fp16|fp32))?(?:_sparsity_(?P<sparsity>on|off))?$"
)
"""Name of a tensor counter without prefix and roll-up; twins for sampling (`_realtime`) do not match."""
_DTYPE_OF_COUNTER = {"fp16_bf16_tf32": "fp16", "fp4_fp6": "fp6", "fp4_fp6_fp8": "fp8"}
_SAME_COUNT = 0.001
"""Base and split counters are read in different passes: they agree to a tenth of a per cent."""
_INTEGER = re.compile(r"^int\d$")


@dataclass(frozen=True, slots=True)
class Work:
    """Operations of one pipe and dtype, with that pipe's dense peak at the profiled clock.

    Attributes:
        key: `fp32`, `tensor_bf16`, `tensor_bf16_wgmma`, `tensor_fp16_acc16`, ...: a roof of its own.
        dtype_key: The key by dtype alone: `fp32`, `tensor_bf16`; 2:4 sparse work apart, as `tensor_bf16_sparse`.
        source: opcode, tensor_ops, sass, estimated or upper_bound.
        peak_source: `report`, or `datasheet` for a published peak scaled to the profiled clock.
    """

    key: str
    dtype_key: str
    ops: float
    source: str
    peak_ops_per_s: float | None
    peak_source: str | None

    @property
    def is_float(self) -> bool:
        """Return whether these are FLOPs: integer tensor operations are not."""
        return not _INTEGER.match(self.dtype_key.removeprefix("tensor_").removesuffix("_sparse"))

    @property
    def is_counted(self) -> bool:
        """Return whether this is work that was done, and no mere upper bound of it: only that is in a total."""
        return self.source != UPPER_BOUND


@dataclass(frozen=True, slots=True)
class Flops:
    """All operations of a kernel.

    Attributes:
        complete: False when a part is unknown, so that no total may be formed.
        flags: Traps met while counting.
    """

    work: tuple[Work, ...]
    complete: bool
    flags: frozenset[str]


def instruction_peaks(kernel: Kernel, key: str) -> dict[str, float]:
    """Give the dense peaks of a tensor type by instruction, where a chip has two with roofs of their own.

    Returns:
        For any key of a type (`tensor_bf16`, `tensor_bf16_wgmma`): the peak of warp-wide mma as `tensor_bf16`, that of
        wgmma or tcgen05 as `tensor_bf16_wgmma`; nothing where they are one roof, or one of them is not known.
    """
    newer = _NEWER_INSTRUCTION.get(kernel.capability)
    match = _PLAIN_TENSOR_KEY.match(key)
    if newer is None or match is None:
        return {}
    kinds = [_TensorKind(match["dtype"], instruction=instruction) for instruction in ("mma", newer)]
    peaks = {kind.key: peak for kind in kinds if (peak := _tensor_peak(kernel, kind)[0])}
    return peaks if len(set(peaks.values())) == len(kinds) else {}


def count_flops(kernel: Kernel) -> Flops:
    """Count the operations of one kernel."""
    scalar = tuple(_scalar(kernel))
    tensor, tensor_known, flags = _tensor(kernel)
    if any(work.ops and not work.is_counted for work in scalar):
        flags |= {"fp16_is_upper_bound"}
    fp32_known = any(work.key == "fp32" for work in scalar)
    return Flops((*scalar, *tensor), fp32_known and tensor_known, frozenset(flags))


def _scalar(kernel: Kernel) -> Iterator[Work]:
    counts = _scalar_opcodes(kernel.thread_opcodes) if kernel.thread_opcodes else _scalar_sass(kernel)
    for dtype, (counted, counted_from) in counts.items():
        ops, source = _packed(kernel, counted, counted_from) if dtype == "fp16" else (counted, counted_from)
        peak, peak_source = _scalar_peak(kernel, dtype)
        yield Work(dtype, dtype, ops, source, peak, peak_source)


def _packed(kernel: Kernel, ops: float, source: str) -> tuple[float, str]:
    """Take from packed fp16 the multiply-adds that only load a constant; where nothing tells them, it is a bound."""
    constants = kernel.code_totals.get("fp16_constant_threads")
    if constants is not None:
        return max(0.0, ops - THREAD_FLOP["HFMA2"][1] * constants), source
    return ops, UPPER_BOUND if ops and _has_packed_multiply_adds(kernel) else source


def _has_packed_multiply_adds(kernel: Kernel) -> bool:
    if kernel.thread_opcodes:
        return any(opcode.startswith("HFMA2") for opcode in kernel.thread_opcodes)
    return bool(kernel.counters.get("hfma_threads"))


def _scalar_opcodes(thread_opcodes: Mapping[str, int]) -> dict[str, tuple[float, str]]:
    totals = dict.fromkeys(SCALAR_DTYPES, 0.0)
    for opcode, count in thread_opcodes.items():
        found = thread_flop(opcode)
        if found is not None:
            totals[found[0]] += found[1] * count
    return {dtype: (ops, "opcode") for dtype, ops in totals.items()}


def _scalar_sass(kernel: Kernel) -> dict[str, tuple[float, str]]:
    counts = {}
    for dtype, (_, packed) in SCALAR_DTYPES.items():
        add, mul, fma = map(kernel.counters.get, SCALAR_COUNTERS[dtype])
        if fma is not None:
            source = "estimated" if add is None or mul is None else "sass"
            counts[dtype] = (packed * ((add or 0.0) + (mul or 0.0) + 2 * fma), source)
    return counts


def _scalar_peak(kernel: Kernel, dtype: str) -> tuple[float | None, str | None]:
    letter, packed = SCALAR_DTYPES[dtype]
    threads_per_s = kernel.counters.get(f"{letter}fma_peak_threads_per_s")
    if threads_per_s is not None:
        return 2 * packed * threads_per_s, "report"
    return _datasheet_peak(kernel, dtype)


def _datasheet_peak(kernel: Kernel, key: str) -> tuple[float | None, str | None]:
    """Scale a published dense peak to the profiled clock: the fallback where the report holds no peak."""
    gpu, clock_hz = datasheet_of(kernel.gpu), kernel.counters.get("sm_clock_hz")
    peak = gpu.peak_at(clock_hz, key, kernel.counters.get("sm_count")) if gpu and clock_hz else None
    return (None, None) if peak is None else (peak, "datasheet")


def _tensor(kernel: Kernel) -> tuple[tuple[Work, ...], bool, set[str]]:
    """Return tensor work, whether it is known, and flags."""
    counted = _tensor_counters(kernel)
    flags = _sparse_flag(kernel.tensor_ops)
    if _has_no_matrix_opcode(kernel) and not any(work.ops for work in counted):
        return (), True, flags
    wrong_counter = (
        bool(kernel.tensor_ops) and not any(work.ops for work in counted) and _busy(kernel) > TENSOR_IDLE_SHARE
    )
    if kernel.warp_opcodes:
        return _tensor_opcodes(kernel, counted, wrong_counter=wrong_counter, flags=flags)
    if wrong_counter:
        return (), False, flags | {"tensor_counter_reads_zero"}
    if kernel.tensor_ops:
        explained = _explains(kernel, counted)
        return counted, explained, flags if explained else flags | {"tensor_flop_unknown"}
    return _tensor_estimate(kernel, flags)


def _has_no_matrix_opcode(kernel: Kernel) -> bool:
    """Return whether an opcode table names every instruction, and none of them uses the tensor cores."""
    table = kernel.warp_opcodes or kernel.thread_opcodes
    return bool(table) and not any(is_matrix(opcode) or is_tcgen05(opcode) for opcode in table)


def _explains(kernel: Kernel, counted: Iterable[Work]) -> bool:
    """Return whether the counted operations make up at least half of what kept the tensor pipe busy.

    A report can hold the counters of some types only; the rest of the work is then unknown, not zero.
    """
    works, duration_ns = tuple(counted), kernel.duration_ns
    if _busy(kernel) <= TENSOR_NOISE_SHARE or duration_ns is None or any(not work.peak_ops_per_s for work in works):
        return True
    used = sum(work.ops / work.peak_ops_per_s for work in works if work.peak_ops_per_s) / (duration_ns / 1e9)
    return used >= _busy(kernel) / 2


def _busy(kernel: Kernel) -> float:
    return max(kernel.counters.get("tensor_float_busy_share", 0.0), kernel.counters.get("tensor_busy_share", 0.0))


def _sparse_flag(tensor_ops: Mapping[str, float]) -> set[str]:
    return (
        {"sparse_tensor_work"}
        if any(name.endswith("sparsity_on") and ops for name, ops in tensor_ops.items())
        else set()
    )


def _tensor_opcodes(
    kernel: Kernel, counted: tuple[Work, ...], *, wrong_counter: bool, flags: set[str]
) -> tuple[tuple[Work, ...], bool, set[str]]:
    if any(is_tcgen05(opcode) for opcode in kernel.warp_opcodes):
        known = any(work.ops for work in counted) and not wrong_counter
        return (counted, True, flags) if known else ((), False, flags | {"tcgen05_without_operation_counters"})
    matrix = {opcode: tensor_op(opcode) for opcode in kernel.warp_opcodes if is_matrix(opcode)}
    exact = all(op is not None and not op.warpgroup for op in matrix.values())
    if matrix and not exact and _covers(counted, matrix.values()):
        return counted, True, flags
    if None in matrix.values():
        return (), False, flags | {"tensor_flop_unknown"}
    operations = [(op, kernel.warp_opcodes[opcode]) for opcode, op in matrix.items() if op is not None]
    if any(op.warpgroup for op, _ in operations):
        flags = flags | {"wgmma_count_estimated"}
    if any(op.sparse for op, _ in operations):
        flags = flags | {"sparse_tensor_work"}
    return tuple(_from_opcodes(kernel, operations)), True, flags


def _covers(counted: Iterable[Work], operations: Iterable[TensorOp | None]) -> bool:
    """Return whether the counters hold work of every type that the opcodes name."""
    types = {work.dtype_key.removeprefix("tensor_").removesuffix("_sparse") for work in counted if work.ops}
    return bool(types) and {op.dtype for op in operations if op is not None} <= types


def _from_opcodes(kernel: Kernel, operations: Iterable[tuple[TensorOp, int]]) -> Iterator[Work]:
    totals: dict[_TensorKind, float] = defaultdict(float)
    for op, count in operations:
        instruction = "wgmma" if op.warpgroup else "mma"
        totals[_TensorKind(op.dtype, op.half_accumulate, instruction, op.sparse)] += op.ops * count
    for kind, ops in totals.items():
        yield _tensor_work(kernel, kind, ops, "estimated" if kind.instruction == "wgmma" else "opcode")


def _tensor_counters(kernel: Kernel) -> tuple[Work, ...]:
    """Choose for each type between its base counters and their split by instruction: both hold the same operations."""
    families: dict[str, dict[str, list[Work]]] = defaultdict(lambda: {"base": [], "split": []})
    for family, kind, ops in _counted_kinds(kernel.tensor_ops):
        families[kind.dtype][family].append(_tensor_work(kernel, kind, ops, "tensor_ops"))
    return tuple(work for family in families.values() for work in _better(family["base"], family["split"]) if work.ops)


def _better(base: list[Work], split: list[Work]) -> list[Work]:
    """Take the split, which says the instruction, unless the report holds only a part of it."""
    total_base, total_split = (sum(work.ops for work in works) for works in (base, split))
    return split if split and total_split >= total_base * (1 - _SAME_COUNT) else base


def _counted_kinds(tensor_ops: Mapping[str, float]) -> Iterator[tuple[str, _TensorKind, float]]:
    """Yield family, kind and operations of each counter; a plain name beside its sparse and dense parts is left out."""
    for name, ops in tensor_ops.items():
        match = _COUNTER_NAME.match(name)
        if match is None or _is_said_twice(name, tensor_ops) or _has_targets(name, match, tensor_ops):
            continue
        instruction = next((key for key, opcodes in _INSTRUCTIONS.items() if match["op"] in opcodes), "")
        kind = _TensorKind(_counter_dtype(match), match["dst"] == "fp16", instruction, match["sparsity"] == "on")
        yield "split" if match["op"] else "base", kind, ops


def _is_said_twice(name: str, tensor_ops: Mapping[str, float]) -> bool:
    """Return whether a plain counter stands beside both its parts, or a part beside the plain one but not its twin."""
    plain, _, part = name.partition("_sparsity_")
    both = f"{plain}_sparsity_on" in tensor_ops and f"{plain}_sparsity_off" in tensor_ops
    return not both and plain in tensor_ops if part else both


def _has_targets(name: str, match: re.Match[str], tensor_ops: Mapping[str, float]) -> bool:
    """Return whether a counter without accumulator stands beside the same one split by accumulator."""
    stem, _, part = name.partition("_sparsity_")
    ending = f"_sparsity_{part}" if part else ""
    return match["dst"] is None and any(f"{stem}_dst_{dst}{ending}" in tensor_ops for dst in ("fp16", "fp32"))


def _counter_dtype(match: re.Match[str]) -> str:
    return _DTYPE_OF_COUNTER.get(match["dtype"], match["dtype"])


_INSTRUCTIONS: dict[str, tuple[str, ...]] = {
    "mma": ("hmma", "imma", "bmma", "qmma", "omma", "dmma"),
    "wgmma": ("hgmma", "igmma", "bgmma", "qgmma"),
    "tcgen05": ("utchmma", "utcimma", "utcqmma", "utcomma"),
}
"""Instruction of the programming guide -> the opcodes in the names of its counters. Each has a roof of its own."""


@dataclass(frozen=True, slots=True)
class _TensorKind:
    """A kind of tensor work that has a roof of its own; `instruction` is empty where a count does not tell."""

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
        instruction = f"_{self.instruction}" if self.instruction in {"wgmma", "tcgen05"} else ""
        return self.dtype_key + self.accumulator + instruction


def _tensor_work(kernel: Kernel, kind: _TensorKind, ops: float, source: str) -> Work:
    peak, peak_source = _tensor_peak(kernel, kind)
    return Work(kind.key, kind.dtype_key, ops, source, peak and peak * (2 if kind.sparse else 1), peak_source)


def _tensor_peak(kernel: Kernel, kind: _TensorKind) -> tuple[float | None, str | None]:
    """Find the dense peak of a kind: of its own instruction first, then of its dtype, then the published one."""
    peaks = kernel.tensor_peaks_per_s
    types = (kind.dtype, *(name for name, alias in _DTYPE_OF_COUNTER.items() if alias == kind.dtype))
    targets = ("_dst_fp16", "", "_dst_fp32") if kind.half_accumulate else ("_dst_fp32", "", "_dst_fp16")
    sources = [f"src_{name}{target}" for name in types for target in targets]
    parts = _MMA_PART_OF_PEAK.get(kernel.capability, {}) if kind.instruction == "mma" else {}
    part = parts.get(kind.dtype, 1.0)
    for prefix in (f"op_{op}_" for op in _INSTRUCTIONS.get(kind.instruction, ())):
        for source in sources:
            if (dense := peaks.get(f"{prefix}{source}_sparsity_off")) is not None:
                return dense, "report"
    for source in sources:
        if (dense := peaks.get(f"{source}_sparsity_off")) is not None:
            return part * dense, "report"
    for source in sources:
        if (base := peaks.get(source)) is not None:
            return part * base / (2 if _base_peak_is_sparse(kernel, kind.dtype) else 1), "report"
    published, peak_source = _datasheet_peak(kernel, f"tensor_{kind.dtype}{kind.accumulator}")
    return published and part * published, peak_source


def _base_peak_is_sparse(kernel: Kernel, dtype: str) -> bool:
    """Return whether a counter's base name peaks at the sparse rate: on CC 9.0 and later, for types that have one."""
    return kernel.capability >= _SPARSE_PEAK_IN_BASE_NAME_FROM and dtype not in {"fp64", "int1"}


def _tensor_estimate(kernel: Kernel, flags: set[str]) -> tuple[tuple[Work, ...], bool, set[str]]:
    """Estimate tensor work from pipe activity, 1 to 5 % high; the type is not known and taken as fp16."""
    busy, duration_ns = kernel.counters.get("tensor_float_busy_share"), kernel.duration_ns
    if busy is None or busy <= TENSOR_NOISE_SHARE:
        return _tensor_unmeasured(kernel, flags)
    kind = _TensorKind("fp16")
    peak, _ = _tensor_peak(kernel, kind)
    if peak is None or duration_ns is None:
        return (), False, flags | {"tensor_flop_unknown"}
    work = _tensor_work(kernel, kind, busy * peak * duration_ns / 1e9, "estimated")
    return (work,), True, flags | {"tensor_flop_estimated"}


def _tensor_unmeasured(kernel: Kernel, flags: set[str]) -> tuple[tuple[Work, ...], bool, set[str]]:
    """Tell unused tensor cores from busy ones, and both from those that nothing in the report speaks of."""
    busy = kernel.counters.get("tensor_busy_share")
    if busy is not None:
        idle = busy <= TENSOR_NOISE_SHARE
        return (), idle, flags if idle else flags | {"tensor_flop_unknown"}
    measured = _scalar_opcodes(kernel.thread_opcodes) if kernel.thread_opcodes else _scalar_sass(kernel)
    return (), True, flags | {"tensor_work_not_measured"} if measured and _has_tensor_cores(kernel) else flags


def _has_tensor_cores(kernel: Kernel) -> bool:
    """Return whether the chip has tensor cores; one that is not known is taken to."""
    gpu = datasheet_of(kernel.gpu)
    if gpu is not None:
        return any(key.startswith("tensor") for key in gpu.peaks)
    return kernel.compute_capability is None or kernel.capability >= _TENSOR_CORES_FROM
