"""Kernels of libraries: callers cannot change their code, so the moves are what a caller can choose."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from rooflens.format import count, duration, percent, si
from rooflens.model.knowledge.roles import COPIES, FILLS
from rooflens.model.records import Analysis, Move, Role, timed
from rooflens.model.roofline.datasheets import datasheet_of, load_datasheets
from rooflens.model.roofline.occupancy import few_blocks
from rooflens.model.roofline.opcodes import uses_tensor_cores
from rooflens.model.roofline.unit_names import busy_words, resource_label
from rooflens.model.verdict.bottleneck import busiest_unit
from rooflens.model.verdict.collecting import PROGRAM, program_of
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.narrower import peak_of, roofs_over_fp32

_LIBRARIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "cuDNN",
        re.compile(r"\bcudnn|xmma_(?!gemm)|implicit_(?:convolve|gemm|precomp)|_scudnn_|winograd\w*_kernel"),
    ),
    (
        "cuBLAS",
        re.compile(
            r"\bcublas|\bKernel2<\s*(?:class |struct )?cutlass_\d|\bnvjet_|gemv2[TN]_kernel|gemvNSP"
            r"|^(?:ampere|volta|turing|maxwell|pascal|hopper|sm\d+)_\w*gemm"
        ),
    ),
    ("CUTLASS", re.compile(r"^(?:[^<(]*\bcutlass::\w+<\s*(?:class |struct )?)?cutlass_(?:\d|tensorop|simt)")),
    (
        "CUB",
        re.compile(
            r"^[^<(]*\bcub::|\bDevice(?:Radix|Reduce|Scan|Select|Histogram|SegmentedReduce|MergeSort|RunLengthEncode)\w*Kernel"
        ),
    ),
    ("Thrust", re.compile(r"^[^<(]*\bthrust::")),
    ("PyTorch", re.compile(r"\bat::native::|\bat::cuda::|\bpytorch_flash::")),
    (
        "FlashAttention",
        re.compile(r"\bflash_(?:fwd|bwd)\w*_kernel<Flash_\w+_traits|\bflash::enable_sm\d|\bFlashAttn(?:Fwd|Bwd)Sm\d"),
    ),
    ("NCCL", re.compile(r"\bnccl(?:Kernel|DevKernel)")),
)
"""Library -> what the names of its kernels hold: as the compiler writes them, with namespaces where there are any.

Types of CUTLASS, CUB and Thrust are in the templates of their users' kernels as well: only a kernel's own name tells. A
kernel of CUTLASS that somebody instantiates from its templates (`cutlass::device_kernel<MyGemm>`) is theirs, and what
they can change; those that libraries ship have names of their own (`cutlass_80_tensorop_s1688gemm_...`).
"""
_PRODUCT = re.compile(r"gemm|gemv|nvjet|xmma|conv|cutlass|matmul|winograd", re.IGNORECASE)
_NARROW_PRODUCT = re.compile(r"(?:^|_)[isu][48](?:_|$)|i8i8|int8|e[245]m[123]|fp[48]|nvf4|mxf[468]", re.IGNORECASE)
"""A product of types of at most eight bits, as libraries name them."""

_NARROW_TENSOR = ("tensor_int8", "tensor_int4", "tensor_fp8", "tensor_fp6", "tensor_fp4", "tensor_nvfp4", "tensor_mxfp")

_FP32_PRODUCT = re.compile(r"sgemm|ffma", re.IGNORECASE)
_BF16_SINCE = (8, 0)
"""From here on tensor cores take bf16."""


@lru_cache(maxsize=1024)
def library_of(name: str, function_name: str) -> str | None:
    """Name the library that a kernel is part of; None if its name tells none."""
    names = f"{name} {function_name}"
    return next((library for library, pattern in _LIBRARIES if pattern.search(names)), None)


ONLY_FILLS = "this report holds only kernels that fill inputs"


@lru_cache(maxsize=1024)
def role_of(name: str, function_name: str, library: str | None) -> Role:
    """Say what a kernel is to its reader: an input's filler, a copy, a library's, or one whose code can be changed."""
    names = f"{name}\n{function_name}"
    if FILLS.search(names):
        return "fill"
    if COPIES.search(names):
        return "copy"
    return "kernel" if library is None else "library"


def with_fills_note(analyses: Sequence[Analysis], command_line: str | None) -> tuple[Analysis, ...]:
    """Say of a report that holds nothing but kernels that fill inputs that the reader's own is not in it.

    One whose profiling failed is in it.
    """
    if not timed(analyses) or any(one.role != "fill" for one in analyses):
        return tuple(analyses)
    command = f"rooflens profile --kernel NAME -- {program_of(command_line) or PROGRAM}"
    text = f"{ONLY_FILLS}; yours is not in it: `{command}`"
    return tuple(
        one if one.kernel.failed else _with_move(one, Move(text, "collect", shared="fills")) for one in analyses
    )


def _with_move(analysis: Analysis, move: Move) -> Analysis:
    return replace(analysis, verdict=replace(analysis.verdict, moves=(move, *analysis.verdict.moves)))


def caller_moves(facts: Facts, library: str) -> tuple[Move, ...]:
    """Choose what the caller of a library can do: its type, its sizes, its algorithm, and what is around it.

    After the colon is the number that a move would make smaller, where it is known: bytes, time, or use of a pipe. A
    product that waits, with neither its bytes nor its pipe near a limit, gains nothing of a narrower type to speak of.
    """
    kernel, limiter = facts.kernel, facts.limiter
    name, moved = f"{kernel.name} {kernel.function_name}", _moved(facts)
    is_product = bool(_PRODUCT.search(name)) or uses_tensor_cores(kernel.warp_opcodes)
    waits = facts.bound == "latency" or (facts.bound == "overhead" and is_product)
    few, moves = _few_blocks(facts, is_product=is_product) if waits else "", []
    if few:
        more = "a larger batch or several calls side by side"
        moves.append(Move(f"give {library} more work in a call, {more}: {few}", "blocks"))
    if library == "NCCL":
        moves.append(Move(f"send less, or overlap it with computation{moved}", "overlap"))
    elif is_product:
        is_computing = limiter is not None and (limiter.resource or "").startswith(("tensor", "fp", "fma"))
        used = f": {busy_words(limiter, kernel.gpu)}" if limiter is not None and is_computing else moved
        roofs = roofs_over_fp32(facts)
        if kernel.capability >= _BF16_SINCE and peak_of(kernel, facts.pipes, "fp32") is None:
            roofs = {"bf16": math.inf}  # on every such chip it is twice as fast at least
        if _FP32_PRODUCT.search(name) and roofs:
            other = f"call {library} with {max(roofs, key=roofs.__getitem__)}, if accuracy allows"
            tensor = f"allow TF32, or {other}" if "tf32" in roofs else other
            moves.append(Move(f"{tensor}, for tensor cores{used}", "tensor"))
        elif not waits and not _NARROW_PRODUCT.search(name) and not _computes_narrow(facts):
            moves.append(Move(f"call {library} with a narrower type, if accuracy allows{used}", "precision"))
        around = "fuse what comes before and after into its epilogue"
        other = (
            f"an algorithm of {library} that splits k" if few else f"another algorithm, layout or batch of {library}"
        )
        moves.append(Move(f"try {other}, and {around}{moved}", "library"))
    else:
        moves += [
            Move(f"fuse it with what runs before and after, so that its data stays on chip{moved}", "fuse"),
            Move(f"call {library} with more data at once, or in a narrower type{moved}", "library"),
        ]
    return tuple(moves)


def _few_blocks(facts: Facts, *, is_product: bool) -> str:
    """Say how little of the GPU the blocks fill, where they are fewer than it holds at once; empty otherwise.

    Where waves are not known, those of a product are held against SMs: the report's, else those of the published GPU
    or, without its name, the fewest of any GPU of its compute capability.
    """
    waves, blocks, sms = map(facts.counter, ("waves", "grid_size", "sm_count"))
    if waves:
        slots, few = f"{percent(waves)} of the block slots", few_blocks(facts.kernel.counters)
        return "" if waves >= 1 else f"{few}, which fill {slots}" if few else f"its blocks fill {slots}"
    if not is_product or not blocks:
        return ""
    kernel, more = facts.kernel, ""
    if not sms and (sheet := datasheet_of(kernel.gpu)):
        sms = sheet.sm_count.value
    elif not sms:
        alike = [one for one in load_datasheets() if one.compute_capability == kernel.compute_capability]
        sms, more = min((one.sm_count.value for one in alike), default=0.0), " or more"
    return f"it has {count(int(blocks), 'block')} for {sms:,.0f} SMs{more}" if blocks < sms else ""


def _computes_narrow(facts: Facts) -> bool:
    """Return whether the tensor cores work on types of at most eight bits."""
    return any(pipe.amount for key, pipe in facts.pipes.items() if key.startswith(_NARROW_TENSOR))


def _moved(facts: Facts) -> str:
    """Write `: 257 MB through HBM3 in 141 \u00b5s`, of a launch, as far as bytes and time are known and matter.

    Else the time with the busiest unit: the time alone is no evidence for anything.
    """
    time_ns, busiest = facts.kernel.duration_ns, busiest_unit(facts)
    if facts.bound == "latency" and time_ns:
        above = f", with no unit above {percent(busiest.share)}" if busiest else ""
        return f": a profiled launch takes {duration(time_ns)}{above}"
    level = next((name for name in ("dram", "l2") if name in facts.levels and facts.levels[name].amount_bytes), None)
    if level is None:
        busy = f", {busy_words(busiest, facts.kernel.gpu)}" if busiest and busiest.resource else ""
        return f": a profiled launch takes {duration(time_ns)}{busy}" if time_ns else ""
    through = f": {si(facts.levels[level].amount_bytes, 'B')} through {resource_label(level, facts.kernel.gpu)}"
    return f"{through} in {duration(time_ns)}" if time_ns else through
