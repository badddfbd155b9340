"""A finding about reuse: operands that threads fetch again and again where registers and tiles could keep them.

The steps that a product, a convolution or a stencil climbs, each named by what the kernel does today: a tile in shared
memory, several results a thread, 16-byte loads, tiles of warps.
"""

from __future__ import annotations

from rooflens.format import percent, significant
from rooflens.model.findings.memory import access_bytes
from rooflens.model.findings.rule import FindingRule, Found, Waste, speedup
from rooflens.model.records import Evidence, Kernel, MoveKind, ratio
from rooflens.model.roofline.levels import uses_shared_memory
from rooflens.model.roofline.opcodes import executed, uses_tensor_cores
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.sentences import resource_label

DELIVERY = frozenset({"l1", "smem", "lsu", "mio", "adu"})
"""Levels and pipes that bring operands to the threads: they carry less where a thread reuses what it holds."""
_LOADS = frozenset({"LDG", "LD", "LDS", "LDC", "LDGSTS"})
_OPERAND_BYTES = 4.0
_LEAST_ARITHMETIC = 0.02
"""A kernel with less of its peak in arithmetic is about moving data."""
_SERVED_AGAIN = 4.0
"""Caches and shared memory that deliver so many times the bytes of DRAM serve operands that are used again."""
_A_RUNG = 0.5
"""Each step halves at least what is fetched a result: 2 x 2 results need half the operands of four single ones."""
_A_STEP_OF_WARPS = 0.75
"""8 x 4 threads fetch 12 operands where a row of 32 threads fetches 33, but broadcasts spare most of those already."""


def low_reuse(facts: Facts) -> Found | None:
    """Say that the units that deliver operands are full while arithmetic waits, and name the next step of reuse."""
    kernel, limiter = facts.kernel, facts.limiter
    if limiter is None or limiter.resource not in DELIVERY or uses_tensor_cores(kernel.warp_opcodes):
        return None
    arithmetic = [pipe for pipe in facts.pipes.values() if pipe.is_arithmetic and pipe.unit == "FLOP" and pipe.amount]
    share = max((pipe.share or 0.0 for pipe in arithmetic), default=0.0)
    fused, delivered = sum(pipe.amount or 0.0 for pipe in arithmetic) / 2, _delivered_bytes(facts)
    again = ratio(delivered, facts.levels["dram"].amount_bytes)
    if not fused or delivered is None or share < _LEAST_ARITHMETIC:
        return None
    each = delivered / fused
    # Threads that reuse operands as well as they can, by wide loads, share them with the rest of their warp next.
    is_wide = bool(executed(kernel.warp_opcodes, {"LDS"})) and not _is_narrow(kernel)
    is_last = each < _OPERAND_BYTES / 2 and uses_shared_memory(kernel) and is_wide
    if share >= limiter.share * (_A_STEP_OF_WARPS if is_last else _A_RUNG):
        return None
    if again is not None and again < _SERVED_AGAIN:
        return None
    full = (
        f"{resource_label(limiter.resource, kernel.gpu)} is {percent(limiter.share)} busy at {percent(share)} of the "
    )
    full += f"arithmetic peak, {significant(each)} bytes fetched per multiply-add"
    if each < _OPERAND_BYTES / 2 and not is_last:
        return None
    kind: MoveKind = "results"
    move = f"let each thread compute several results, such as 2 x 2, from what it loads: {full}"
    if is_last:
        move = f"arrange the threads of a warp as a tile, such as 8 x 4, so that they share what they load: {full}"
    elif not uses_shared_memory(kernel):
        kind = "tile"
        move = f"tile it in shared memory, so that a block loads each value once: {full}"
    elif each < _OPERAND_BYTES and _is_narrow(kernel):
        kind = "wide"
        move = f"load 16 bytes at once from shared memory: {full}"
    spared = 1 - _A_STEP_OF_WARPS if is_last else _A_RUNG
    parts = dict.fromkeys(DELIVERY, spared)
    loads, every = executed(kernel.warp_opcodes, _LOADS), sum(kernel.warp_opcodes.values())
    parts["issue"] = spared * loads / every if every and not is_last else 0.0
    return Found(
        evidence=(
            Evidence("bytes per multiply-add", each, "bytes/multiply-add", "bytes loaded / (FLOP / 2)"),
            Evidence("arithmetic", share, "share", arithmetic[0].source),
        ),
        move=move,
        bears_on=frozenset({limiter.resource or ""}),
        gain=speedup(facts, Waste(parts)),
        confidence="medium",
        severity="limiter",
        kind=kind,
    )


def _delivered_bytes(facts: Facts) -> float | None:
    """Return the bytes that threads load, by opcode; else what L1 and shared memory deliver; None where unknown."""
    threads = facts.kernel.thread_opcodes
    if threads:
        return float(sum(n * access_bytes(op) for op, n in threads.items() if op.partition(".")[0] in _LOADS))
    known = [facts.levels[name].amount_bytes for name in ("l1", "smem")]
    return sum(amount or 0.0 for amount in known) or None


def _is_narrow(kernel: Kernel) -> bool:
    """Return whether most loads from shared memory are of single values."""
    wide = sum(n for opcode, n in kernel.warp_opcodes.items() if opcode.startswith("LDS") and access_bytes(opcode) > 8)
    return wide < executed(kernel.warp_opcodes, {"LDS"}) / 2


REUSE: tuple[FindingRule, ...] = (
    FindingRule(
        "low_reuse",
        "operands fetched again and again",
        "results",
        low_reuse,
        (("thread_opcodes", "warp_opcodes"), ("dfma_threads",), ("ffma_threads",)),
    ),
)
