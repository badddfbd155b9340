"""Floating-point operations of a kernel by dtype, each from the best source the report has.

Per dtype one source, never two added: opcode tables where present; else NVIDIA's tensor operation counters for the
tensor pipes and the SASS counters for the rest; else, for tensor work, an estimate from pipe activity.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property

from msgspec import Struct

from rooflens.model.records import Kernel, Roof, RoofSource
from rooflens.model.roofline.datasheets import ACC16, datasheet_of
from rooflens.model.roofline.opcodes import (
    THREAD_FLOP,
    is_matrix,
    is_tcgen05,
    tensor_op,
    thread_flop,
    uses_tensor_cores,
)
from rooflens.model.roofline.roof import DTYPE_OF_COUNTER, INSTRUCTIONS, SCALAR_DTYPES, TensorKind, roof

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
"""Tensor pipe activity up to this is not tensor work, where no opcode table says more.

`HFMA2.MMA`, no matrix instruction, issues there too: kernels without any show up to 3.8 % (public reports, CC 8.0 and
9.0), and the least of those with some is 6.0 %.
"""

_TENSOR_CORES_FROM = (7, 0)
_NEWER_INSTRUCTION = {(9, 0): "wgmma", (10, 0): "tcgen05", (10, 3): "tcgen05", (11, 0): "tcgen05"}
"""Chips with matrix instructions besides mma, which read shared memory or tensor memory themselves."""
_PLAIN_TENSOR_KEY = re.compile(r"^tensor_(?P<dtype>[a-z]+\d+)(?:_wgmma|_tcgen05)?$")
_COUNTER_NAME = re.compile(
    r"^(?:op_(?P<op>[a-z]+)_)?src_(?P<dtype>fp16_bf16_tf32|fp4_fp6_fp8|fp4_fp6|bf16|tf32|fp\d+|int\d)"
    r"(?:_dst_(?P<dst>fp16|fp32))?(?:_sparsity_(?P<sparsity>on|off))?$"
)
"""Name of a tensor counter without prefix and roll-up; twins for sampling (`_realtime`) do not match."""
_SAME_COUNT = 0.001
"""Base and split counters are read in different passes: they agree to a tenth of a per cent."""
_INTEGER = re.compile(r"^int\d$")


class PipeWork(Struct, frozen=True):
    """Operations of a pipe and dtype, with that pipe's dense peak at the profiled clock.

    Attributes:
        key: `fp32`, `tensor_bf16`, `tensor_bf16_wgmma`, `tensor_fp16_acc16`, ...: a roof of its own.
        dtype_key: The key by dtype alone: `fp32`, `tensor_bf16`; 2:4 sparse work apart, as `tensor_bf16_sparse`.
        source: opcode, tensor_ops, sass, estimated or upper_bound.
        roof: The dense peak of its instruction; None if it is not known.
    """

    key: str
    dtype_key: str
    ops: float
    source: str
    roof: Roof | None

    @property
    def peak_ops_per_s(self) -> float | None:
        """The value of its roof."""
        return self.roof.value if self.roof is not None else None

    @property
    def peak_source(self) -> RoofSource | None:
        """Where its roof comes from."""
        return self.roof.source if self.roof is not None else None

    @property
    def is_float(self) -> bool:
        """Return whether these are FLOPs: integer tensor operations are not."""
        return not _INTEGER.match(self.dtype_key.removeprefix("tensor_").removesuffix("_sparse"))

    @property
    def is_counted(self) -> bool:
        """Return whether this is work that was done, and no mere upper bound of it: only that is in a total."""
        return self.source != UPPER_BOUND


class Flops(Struct, frozen=True, dict=True):
    """All operations of a kernel.

    Attributes:
        complete: False when nothing was counted, or a part is known to be there that was not: no total may be formed.
        flags: Traps met while counting.
        uncounted: Types of which nothing was counted: `fp64`, `fp32`, `fp16`, `tensor`. A total is that of the others.
    """

    work: tuple[PipeWork, ...]
    complete: bool
    flags: frozenset[str]
    uncounted: tuple[str, ...] = ()

    @cached_property
    def total(self) -> float | None:
        """Operations that are FLOPs and counted; None if nothing was counted, or a part is known to be missing."""
        return sum(work.ops for work in self.work if work.is_float and work.is_counted) if self.complete else None

    @property
    def peak_per_s(self) -> float | None:
        """The roof of a mix of precisions: total FLOP over the time each part needs at its own peak.

        None when a part's peak is unknown, or when there is no floating-point work. Where none of the types was counted
        that the kernel works in, it is the highest roof of those that were.
        """
        counted = [work for work in self.work if work.is_float and work.is_counted]
        parts = [work for work in counted if work.ops]
        if not parts and self.uncounted:
            return max((work.peak_ops_per_s for work in counted if work.peak_ops_per_s), default=None)
        if not parts or any(not work.peak_ops_per_s for work in parts):
            return None
        time_s = sum(work.ops / work.peak_ops_per_s for work in parts if work.peak_ops_per_s)
        return sum(work.ops for work in parts) / time_s


def has_newer_instruction(kernel: Kernel) -> bool:
    """Return whether the chip has matrix instructions besides mma, which do the same work in less time."""
    return kernel.capability in _NEWER_INSTRUCTION


_COUNTS_FULL_RATE = frozenset({(8, 6), (8, 9)})
"""Chips whose tensor pipe is counted against the rate of fp16 sums, though GeForce boards add in fp32 at half of it.

100 versions of one bf16 product on an RTX 3070 Laptop, up to CUTLASS's, have 47 % at most.
"""


def tensor_pipe_top(kernel: Kernel) -> float:
    """Return how busy the tensor pipe of a kernel's products can look: half on GeForce boards of some chips, else 1."""
    sheet = datasheet_of(kernel.gpu)
    if kernel.capability not in _COUNTS_FULL_RATE or sheet is None:
        return 1.0
    products = [product for opcode in kernel.warp_opcodes if (product := tensor_op(opcode)) is not None]
    rates = [sheet.peak(f"tensor_fp16{sums}") for sums in ("", ACC16)]
    adds_in_fp32 = products and not any(one.half_accumulate or one.dtype.startswith("int") for one in products)
    if not adds_in_fp32 or rates[0] is None or rates[1] is None:
        return 1.0
    return rates[0].value / rates[1].value


def has_matrix_work(kernel: Kernel) -> bool:
    """Return whether tensor cores work: by opcodes, or without these by how busy their pipe is."""
    if kernel.warp_opcodes:
        return uses_tensor_cores(kernel.warp_opcodes)
    counters = kernel.counters
    busy = counters.get("tensor_busy_share", counters.get("tensor_active_share", 0.0))
    return max(busy, counters.get("tensor_float_busy_share", 0.0)) > TENSOR_NOISE_SHARE


def instruction_roofs(kernel: Kernel, key: str) -> dict[str, Roof]:
    """Give the roofs of a tensor type by instruction, where a chip has two with roofs of their own.

    Returns:
        For any key of a type (`tensor_bf16`, `tensor_bf16_wgmma`): the roof of warp-wide mma as `tensor_bf16`, that of
        wgmma or tcgen05 as `tensor_bf16_wgmma`; nothing if they are one roof, or one of them is not known.
    """
    newer = _NEWER_INSTRUCTION.get(kernel.capability)
    match = _PLAIN_TENSOR_KEY.match(key)
    if newer is None or match is None:
        return {}
    kinds = [TensorKind(match["dtype"], instruction=instruction) for instruction in ("mma", newer)]
    roofs = {kind.key: one for kind in kinds if (one := roof(kind.unit, kernel))}
    return roofs if len({one.value for one in roofs.values()}) == len(kinds) else {}


def count_flops(kernel: Kernel) -> Flops:
    """Count the operations of a kernel."""
    scalar = [_scalar_work(kernel, *counted) for counted in _scalar_counts(kernel)]
    tensor, tensor_known, flags = _tensor(kernel)
    if any(work.ops and not work.is_counted for work in scalar):
        flags |= {"fp16_is_upper_bound"}
    work = (*scalar, *tensor)
    is_counted = bool(scalar) or any(one.source != "estimated" for one in tensor)
    counted = {one.dtype_key for one in scalar}
    is_tensor_unseen = not tensor_known or "tensor_work_not_measured" in flags
    uncounted = (
        *(dtype for dtype in SCALAR_DTYPES if dtype not in counted),
        *(("tensor",) if is_tensor_unseen else ()),
    )
    return Flops(work, is_counted and tensor_known, frozenset(flags), uncounted)


def _scalar_counts(kernel: Kernel) -> list[tuple[str, float, str]]:
    """Return type, operations and source of the arithmetic outside the tensor cores, as far as it is counted."""
    if kernel.thread_opcodes:
        totals = dict.fromkeys(SCALAR_DTYPES, 0.0)
        for opcode, count in kernel.thread_opcodes.items():
            found = thread_flop(opcode)
            if found is not None:
                totals[found[0]] += found[1] * count
        return [(dtype, ops, "opcode") for dtype, ops in totals.items()]
    counts = []
    for dtype, (_, packed) in SCALAR_DTYPES.items():
        add, mul, fma = map(kernel.counters.get, SCALAR_COUNTERS[dtype])
        together = kernel.counters.get(f"{dtype}_threads")
        if fma is not None and together is not None and (add is None or mul is None):
            counts.append((dtype, packed * (together + fma), "sass"))
        elif any(one is not None for one in (add, mul, fma)):
            # Some sets collect FMAs alone: a floor of the FLOPs that still places the kernel, and is marked.
            source = "sass" if None not in (add, mul, fma) else "estimated"
            counts.append((dtype, packed * ((add or 0.0) + (mul or 0.0) + 2 * (fma or 0.0)), source))
        elif together is not None:  # a multiply-add counts as one
            counts.append((dtype, packed * together, "estimated"))
    return counts


def _scalar_work(kernel: Kernel, dtype: str, ops: float, source: str) -> PipeWork:
    """Find the peak of one type.

    From packed fp16 the multiply-adds are taken that only load a constant; where nothing tells them, it is a bound.
    """
    if dtype == "fp16":
        constants = kernel.code_totals.get("fp16_constant_threads")
        is_packed = any(opcode.startswith("HFMA2") for opcode in kernel.thread_opcodes)
        if not kernel.thread_opcodes:
            is_packed = bool(kernel.counters.get("hfma_threads"))
        if constants is not None:
            ops = max(0.0, ops - THREAD_FLOP["HFMA2"][1] * constants)
        # Compilers load packed constants with HFMA2.MMA, which computes nothing; without code it cannot be told apart.
        elif ops and is_packed:
            source = UPPER_BOUND
    return PipeWork(dtype, dtype, ops, source, roof(dtype, kernel))


def _tensor(kernel: Kernel) -> tuple[tuple[PipeWork, ...], bool, set[str]]:
    counted, table = _tensor_counters(kernel), kernel.warp_opcodes or kernel.thread_opcodes
    is_sparse = any(name.endswith("sparsity_on") and ops for name, ops in kernel.tensor_ops.items())
    flags = {"sparse_tensor_work"} if is_sparse else set()
    # An empty count alone proves nothing: on some chips the counters of a type read 0 while the pipe is busy.
    if table and not counted and not uses_tensor_cores(table):
        return (), True, flags  # the table names every instruction, and none uses the tensor cores
    busy = max(kernel.counters.get("tensor_float_busy_share", 0.0), kernel.counters.get("tensor_busy_share", 0.0))
    # Counters at 0 beside a busy pipe are those of another type; calling that 0 FLOP would be wrong by all of it.
    wrong_counter = bool(kernel.tensor_ops) and not counted and busy > TENSOR_IDLE_SHARE
    if kernel.warp_opcodes:
        return _tensor_opcodes(kernel, counted, wrong_counter=wrong_counter, flags=flags)
    if wrong_counter:
        return (), False, flags | {"tensor_counter_reads_zero"}
    if not kernel.tensor_ops:
        return _tensor_estimate(kernel, flags)
    # A report can hold the counters of some types only: what is counted has to make up half of what kept the pipe busy.
    duration_ns, peaks = kernel.duration_ns, [work.peak_ops_per_s for work in counted]
    if busy > TENSOR_NOISE_SHARE and duration_ns is not None and all(peaks):
        used = sum(work.ops / peak for work, peak in zip(counted, peaks, strict=True) if peak) / (duration_ns / 1e9)
        if used < busy / 2:
            return counted, False, flags | {"tensor_flop_unknown"}
    return counted, True, flags


def _tensor_opcodes(
    kernel: Kernel, counted: tuple[PipeWork, ...], *, wrong_counter: bool, flags: set[str]
) -> tuple[tuple[PipeWork, ...], bool, set[str]]:
    # The shape of a tcgen05 instruction is in its descriptor: the opcode does not say how much it computes.
    if any(is_tcgen05(opcode) for opcode in kernel.warp_opcodes):
        known = bool(counted) and not wrong_counter
        return (counted, True, flags) if known else ((), False, flags | {"tcgen05_without_operation_counters"})
    matrix = {opcode: tensor_op(opcode) for opcode in kernel.warp_opcodes if is_matrix(opcode)}
    operations = [(op, kernel.warp_opcodes[opcode]) for opcode, op in matrix.items() if op is not None]
    are_all_read, is_warpgroup = len(operations) == len(matrix), any(op.warpgroup for op, _ in operations)
    if not are_all_read or is_warpgroup:
        # Counters that hold work of every type that the opcodes name are more exact.
        types = {work.dtype_key.removeprefix("tensor_").removesuffix("_sparse") for work in counted}
        if types and {op.dtype for op, _ in operations} <= types:
            return counted, True, flags
    if not are_all_read:
        return (), False, flags | {"tensor_flop_unknown"}
    if is_warpgroup:
        flags = flags | {"wgmma_count_estimated"}
    if any(op.sparse for op, _ in operations):
        flags = flags | {"sparse_tensor_work"}
    totals: dict[TensorKind, float] = defaultdict(float)
    for op, count in operations:
        totals[TensorKind(op.dtype, op.half_accumulate, "wgmma" if op.warpgroup else "mma", op.sparse)] += (
            op.ops * count
        )
    work = (
        _tensor_work(kernel, kind, ops, "estimated" if kind.instruction == "wgmma" else "opcode")
        for kind, ops in totals.items()
    )
    return tuple(work), True, flags


def _tensor_counters(kernel: Kernel) -> tuple[PipeWork, ...]:
    """Return what is counted of each type: by instruction, unless the report holds only a part of that split.

    Base counters and their split hold the same operations. A plain counter is left out where its sparse and
    dense parts are there, a part where the plain one is but not its twin, and one without accumulator where the same
    is split by it.
    """
    names = kernel.tensor_ops
    families: dict[str, tuple[list[PipeWork], list[PipeWork]]] = defaultdict(lambda: ([], []))
    for name, ops in names.items():
        match = _COUNTER_NAME.match(name)
        plain, _, part = name.partition("_sparsity_")
        has_parts = f"{plain}_sparsity_on" in names and f"{plain}_sparsity_off" in names
        # Adding a base counter to its own parts would count the same work twice.
        is_said_twice = not has_parts and plain in names if part else has_parts
        if match is None or is_said_twice:
            continue
        ending = f"_sparsity_{part}" if part else ""
        if match["dst"] is None and any(f"{plain}_dst_{dst}{ending}" in names for dst in ("fp16", "fp32")):
            continue
        instruction = next((key for key, opcodes in INSTRUCTIONS.items() if match["op"] in opcodes), "")
        dtype = DTYPE_OF_COUNTER.get(match["dtype"], match["dtype"])
        kind = TensorKind(dtype, match["dst"] == "fp16", instruction, match["sparsity"] == "on")
        families[dtype][bool(match["op"])].append(_tensor_work(kernel, kind, ops, "tensor_ops"))
    counted: list[PipeWork] = []
    for base, split in families.values():
        # A report may hold the split of an instruction only; then the base counter is the complete one.
        least = sum(work.ops for work in base) * (1 - _SAME_COUNT)
        counted += split if split and sum(work.ops for work in split) >= least else base
    return tuple(work for work in counted if work.ops)


def _tensor_work(kernel: Kernel, kind: TensorKind, ops: float, source: str) -> PipeWork:
    return PipeWork(kind.key, kind.dtype_key, ops, source, roof(kind.unit, kernel))


def _tensor_estimate(kernel: Kernel, flags: set[str]) -> tuple[tuple[PipeWork, ...], bool, set[str]]:
    """Estimate tensor work from pipe activity, 1 to 5 % high; the type is not known and taken as fp16.

    Distinguishes unused tensor cores from busy ones, and both from those the report has no counter for.
    """
    busy, duration_ns = kernel.counters.get("tensor_float_busy_share"), kernel.duration_ns
    if busy is not None and busy > TENSOR_NOISE_SHARE:
        kind = TensorKind("fp16")
        peak = roof(kind.unit, kernel)
        if peak is None or duration_ns is None:
            return (), False, flags | {"tensor_flop_unknown"}
        work = _tensor_work(kernel, kind, busy * peak.value * duration_ns / 1e9, "estimated")
        return (work,), True, flags | {"tensor_flop_estimated"}
    busy = kernel.counters.get("tensor_busy_share", kernel.counters.get("tensor_active_share"))
    if busy is not None:
        idle = busy <= TENSOR_NOISE_SHARE
        return (), idle, flags if idle else flags | {"tensor_flop_unknown"}
    gpu = datasheet_of(kernel.gpu)  # a chip that is not known is taken to have tensor cores
    has_cores = kernel.compute_capability is None or kernel.capability >= _TENSOR_CORES_FROM
    if gpu is not None:
        has_cores = any(key.startswith("tensor") for key in gpu.peaks)
    return (), True, flags | {"tensor_work_not_measured"} if has_cores and _scalar_counts(kernel) else flags
