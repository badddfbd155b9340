"""A finding about reuse: operands that threads load repeatedly although registers and tiles could keep them.

The steps of a product, a convolution or a stencil, each chosen by what the kernel does today: a tile in shared memory,
several results per thread, 16-byte loads, tiles of warps.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflens.format import percent, significant
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.findings.cost import Waste
from rooflens.model.findings.loops import main_product, place_of_product
from rooflens.model.findings.memory import access_bytes
from rooflens.model.findings.rule import FindingDraft, FindingRule
from rooflens.model.records import Anatomy, Bottleneck, Evidence, MoveKind, ratio
from rooflens.model.roofline.flops import TENSOR_NOISE_SHARE
from rooflens.model.roofline.levels import works_in_shared_memory
from rooflens.model.roofline.occupancy import warps_of
from rooflens.model.roofline.opcodes import THREAD_COPY, WORD_BYTES, executed, uses_tensor_cores
from rooflens.model.roofline.unit_names import resource_label, unit_label
from rooflens.model.verdict.facts import Facts

DELIVERY = frozenset({"l1", "smem", "lsu", "mio", "adu"})
"""Levels and pipes that bring operands to the threads: they carry less where a thread reuses what it holds."""
_LOAD_INSTRUCTIONS = frozenset({"LDG", "LD", "LDS", "LDC", THREAD_COPY})
_A_RUNG = 0.5
"""Each step halves at least what is fetched a result: 2 x 2 results need half the operands of four single ones."""
_A_STEP_OF_WARPS = 0.75
"""8 x 4 threads fetch 12 operands where a row of 32 threads fetches 33, but broadcasts spare most of those already."""


def low_reuse(facts: Facts) -> FindingDraft | None:
    """Say that the units that deliver operands are full while arithmetic waits, and name the next step of reuse."""
    limiter = facts.limiter
    if limiter is None or uses_tensor_cores(facts.kernel.warp_opcodes):
        return None
    if limiter.resource is None:
        return _by_requests(facts, limiter)
    if limiter.resource not in DELIVERY:
        return None
    return _by_pipes(facts, limiter) if "no_flop_counters" in facts.flags else _by_operations(facts, limiter)


def _by_operations(facts: Facts, limiter: Bottleneck) -> FindingDraft | None:
    """Judge by the bytes that threads load for each multiply-add."""
    kernel = facts.kernel
    arithmetic = [pipe for pipe in facts.pipes.values() if pipe.is_arithmetic and pipe.unit == "FLOP" and pipe.amount]
    share = max((pipe.share or 0.0 for pipe in arithmetic), default=0.0)
    fused = sum(pipe.amount or 0.0 for pipe in arithmetic) / 2
    # Without opcodes, the bytes delivered by L1 and shared memory show what threads load.
    of_levels = sum(facts.levels[name].amount_bytes or 0.0 for name in ("l1", "smem")) or None
    delivered = _loaded_bytes(kernel.thread_opcodes) if kernel.thread_opcodes else of_levels
    again = ratio(delivered, facts.levels["dram"].amount_bytes)
    if (
        not fused
        or delivered is None
        or share < facts.limits.noise_share
        or (again is not None and again < facts.limits.several)
    ):
        return None
    body = main_product(kernel.inside)
    each = _fetched_bytes(body) if body is not None else delivered / fused
    is_tiled = bool(body.shared_loads) if body is not None else kernel.program_smem_bytes != 0
    is_narrow = _has_narrow_loads(body) if body is not None else _is_narrow(kernel.warp_opcodes)
    # Once threads reuse operands as well as they can, with wide loads, the next step is sharing them within a warp.
    is_wide = (is_tiled if body is not None else bool(executed(kernel.warp_opcodes, {"LDS"}))) and not is_narrow
    is_last = each < WORD_BYTES / 2 and is_tiled and is_wide
    is_near = share >= limiter.share * (_A_STEP_OF_WARPS if is_last else _A_RUNG)
    if is_near or (each < WORD_BYTES / 2 and not is_last):
        return None
    full = f"{unit_label(limiter, kernel.gpu)} is {percent(limiter.share)} busy at {percent(share)} of "
    full += f"the arithmetic peak, {significant(each)} bytes fetched per multiply-add"
    if body is not None and body.results:
        full += f", {'one result' if body.results == 1 else f'{body.results} results'} a thread"
    kind: MoveKind = "results"
    if not is_last and not is_tiled:
        kind = "tile"
    elif not is_last and each < WORD_BYTES and is_narrow:
        kind = "wide"
    of_warps = "arrange the threads of a warp as a tile, such as 8 x 4, so that they share what they load"
    from_shared = " from shared memory" if kind == "wide" else ""
    move = f"{of_warps if is_last else _MOVES[kind]}{from_shared}: {full}"
    spared = 1 - _A_STEP_OF_WARPS if is_last else _A_RUNG
    parts = dict.fromkeys(DELIVERY, spared)
    loads, every = executed(kernel.warp_opcodes, _LOAD_INSTRUCTIONS), sum(kernel.warp_opcodes.values())
    parts["issue"] = spared * loads / every if every and not is_last else 0.0
    return FindingDraft(
        evidence=(
            Evidence("bytes per multiply-add", each, "bytes/multiply-add", "bytes loaded / (FLOP / 2)"),
            Evidence("arithmetic", share, "share", arithmetic[0].source),
        ),
        move=move,
        where=place_of_product(kernel.inside),
        waste=Waste(parts),
        confidence="medium",
        severity="limiter",
        kind=kind,
    )


_MULTIPLIERS = ("fma", "fp64_pipe")
"""Pipes that multiply and add: busy ones are arithmetic, or index arithmetic, where no operations are counted."""


def _by_pipes(facts: Facts, limiter: Bottleneck) -> FindingDraft | None:
    """Judge by the shares of pipes if no operations are counted: L1 serves again what comes from L2."""
    kernel = facts.kernel
    busy = {name: share for name in _MULTIPLIERS if (share := facts.shares.get(name)) is not None}
    if not busy or facts.shares.get("tensor_pipe", 0.0) > TENSOR_NOISE_SHARE:
        return None
    pipe = max(busy, key=lambda name: busy[name])
    refilled = facts.levels["l1"].stages.get("from_l2", facts.shares.get("l2"))
    if refilled is None or not facts.limits.noise_share <= busy[pipe] < limiter.share * _A_RUNG:
        return None
    if refilled * facts.limits.several > limiter.share:
        return None
    full = f"{unit_label(limiter, kernel.gpu)} is {percent(limiter.share)} busy while the "
    full += f"{resource_label(pipe)} is {percent(busy[pipe])} busy, and the path from L2 to the SMs {percent(refilled)}"
    kind: MoveKind = "tile" if works_in_shared_memory(kernel) is False else "results"
    return FindingDraft(
        evidence=(
            Evidence("arithmetic pipe", busy[pipe], "share", facts.pipes[pipe].source),
            Evidence("refill path", refilled, "share", "l1tex__m_xbar2l1tex_read_sectors, else lts__throughput"),
        ),
        move=f"{_MOVES[kind]}: {full}",
        waste=Waste(dict.fromkeys(DELIVERY, _A_RUNG)),
        confidence="medium",
        severity="limiter",
        kind=kind,
    )


_MOVES: Mapping[MoveKind, str] = {
    # A tile alone moves the loads to shared memory, which uses the same slots and passes of L1.
    "tile": "tile it in shared memory, so that a block loads each value once, and compute several results per thread",
    "results": "let each thread compute several results, such as 2 x 2, from what it loads",
    "wide": "load 16 bytes at once",
}


def _by_requests(facts: Facts, limiter: Bottleneck) -> FindingDraft | None:
    """Judge by the number of loads per stored value, if only NVIDIA's per cent of the SM is known."""
    kernel, counters = facts.kernel, facts.kernel.counters
    names = ("global_load_requests", "global_store_requests", "global_load_sectors", "grid_size", "block_size")
    known = [counters.get(name) for name in names]
    loads, stores, sectors, blocks, threads = (value or 0.0 for value in known)
    again = ratio(sectors * SECTOR_BYTES, facts.levels["dram"].amount_bytes)
    if not stores or not blocks or not threads or again is None or again < facts.limits.several:
        return None
    results, each, width = stores / (blocks * warps_of(threads)), loads / stores, sectors / loads
    if results < 1 or each < 2 * facts.limits.several:
        return None
    kind: MoveKind = "results"
    if kernel.program_smem_bytes == 0 and not counters.get("smem_conflict_bytes"):
        kind = "tile"
    elif results >= facts.limits.several and width <= WARP_THREADS * WORD_BYTES / SECTOR_BYTES:
        kind = "wide"
    return FindingDraft(
        evidence=(
            Evidence("loads a result", each, "loads/store", "requests of global loads / of global stores"),
            Evidence("results per thread", results, "stores/thread", "requests of global stores / warps"),
            Evidence("bytes loaded over DRAM's", again, "x", "sectors of global loads x 32 / bytes of DRAM"),
        ),
        move=f"{_MOVES[kind]}: a thread loads {significant(each)} values for each of the {significant(results)} that "
        f"it stores, {significant(again)}x the bytes of DRAM, and the SM is {percent(limiter.share)} busy",
        confidence="medium",
        severity="limiter",
        kind=kind,
    )


def _loaded_bytes(opcodes: Mapping[str, int]) -> float:
    return float(sum(n * access_bytes(op) for op, n in opcodes.items() if op.partition(".")[0] in _LOAD_INSTRUCTIONS))


def _fetched_bytes(body: Anatomy) -> float:
    """Return the bytes that a thread loads for each multiply-add of a loop."""
    loads = (*body.global_loads.items(), *body.shared_loads.items())
    return sum(width * count for width, count in loads) / body.multiply_adds


def _has_narrow_loads(body: Anatomy) -> bool:
    """Return whether most loads from shared memory in a loop are of single values."""
    return sum(count for width, count in body.shared_loads.items() if width > 8) < sum(body.shared_loads.values()) / 2


def _is_narrow(opcodes: Mapping[str, int]) -> bool:
    """Return whether most loads from shared memory are of single values."""
    wide = sum(n for opcode, n in opcodes.items() if opcode.startswith("LDS") and access_bytes(opcode) > 8)
    return wide < executed(opcodes, {"LDS"}) / 2


REUSE: tuple[FindingRule, ...] = (
    FindingRule(
        "low_reuse",
        "no data reuse",
        "results",
        low_reuse,
        (
            ("thread_opcodes", "warp_opcodes"),
            ("dfma_threads",),
            ("ffma_threads",),
            ("l1_lsu_input_share", "fma_busy_share"),
            ("global_load_requests", "global_store_requests", "global_load_sectors", "dram_bytes"),
        ),
    ),
)
