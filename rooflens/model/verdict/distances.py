"""Distances: how much faster a kernel could run as written, without its waste, and with its operands kept on chip.

    T_math = sum over types of FLOP_i / peak_i        T_needed = bytes needed / peak of DRAM
    headroom = 1 / largest share      potential = t / max(T_math, T_needed)      potential_by_reuse = t / T_math

Bytes are proven needed where waste cannot explain them: of those measured at DRAM, local memory's part is left out, and
never more is needed than the sectors that the bytes of all global accesses would fill. Subtracting every unused byte
would overshoot, because caches serve some of them. Nor is more needed than the compulsory bytes of a workload whose
formula is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.counters.memory import SECTOR_BYTES
from rooflens.model.failed import failure_words
from rooflens.model.records import Distances
from rooflens.model.roofline.levels import device_dram_share, fullest
from rooflens.model.roofline.opcodes import is_matrix, opcode_group, thread_flop
from rooflens.model.verdict.bottleneck import NEVER_LEAD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rooflens.model.bounds import Bound
    from rooflens.model.records import Kernel
    from rooflens.model.verdict.bottleneck import Case

_OTHER_PATHS = ("UBLKCP", "UTMALDG", "UTMASTG", "UTMAREDG", "TEX", "TLD", "TMML", "SULD", "SUST")
"""Opcodes that reach global memory past the accesses whose addresses are looked at: TMA, bulk copies, textures."""


def find_distances(case: Case, bound: Bound, top_share: float | None, math_ns: float | None) -> Distances:
    """Find the distances of one kernel.

    Args:
        case: What is known of it.
        bound: The class of its verdict.
        top_share: The largest share of any resource, 0 to 1; None where none is known.
        math_ns: What its arithmetic needs at the peaks; None where a part of it or of its peaks is unknown.
    """
    headroom = _headroom(case, bound, top_share)
    why_null = _why_null(case, bound, math_ns)
    duration_ns = case.kernel.duration_ns
    needed_ns = needed_memory_ns(case)
    if why_null or duration_ns is None or math_ns is None or needed_ns is None:
        return Distances(headroom, why_null=why_null or "time or DRAM traffic is not known")
    floor_ns = min(duration_ns, max(math_ns, needed_ns))
    return Distances(
        headroom=headroom,
        potential=duration_ns / floor_ns if floor_ns else None,
        potential_by_reuse=max(1.0, duration_ns / math_ns) if math_ns else None,
        by_fusing_only=_uses_operands_once(case),
        floor_ns=floor_ns,
        why_null=None if floor_ns else "no arithmetic and no DRAM traffic",
    )


def _headroom(case: Case, bound: Bound, top_share: float | None) -> float | None:
    if not top_share or bound == "unknown":
        return None
    headroom = max(1.0, 1 / top_share)
    waits = bound in {"latency", "overhead"}
    return None if waits and headroom > case.limits.open_headroom else headroom


def _why_null(case: Case, bound: Bound, math_ns: float | None) -> str | None:
    if case.kernel.failed:
        return failure_words(case.kernel)
    if bound == "overhead":
        return "its launch takes longer than its work"
    if math_ns is None:
        return "floating-point operations are not counted"
    if _has_hardly_any_flop(case) or _is_full_of_integers(case, math_ns):
        return "integer work: bound not known"
    return None


def _has_hardly_any_flop(case: Case) -> bool:
    """Return whether hardly any instruction is arithmetic that a roof is known for, and DRAM is not busy either.

    T_math would then be next to nothing and the potential in the thousands.
    """
    dram = case.levels["dram"].share
    if dram is not None and dram >= case.limits.integer_dram_share:
        return False
    math = sum(pipe.amount for pipe in case.pipes.values() if pipe.is_arithmetic and pipe.amount)
    executed = sum(case.kernel.thread_opcodes.values()) or case.kernel.code_totals.get("thread_inst")
    return not math or (executed is not None and math < case.limits.integer_flop_part * executed)


_FILLED_BY_INTEGERS = frozenset({"issue", "alu", "fma"})
"""Units that integer instructions fill as well as floating-point ones; integer multiplications run on the FMA pipe."""


def _is_full_of_integers(case: Case, math_ns: float) -> bool:
    """Return whether the busiest unit of all is kept busy by integers, and by no floating-point work to speak of.

    How many of them the kernel needs nobody knows, so a floor of FLOPs and bytes would leave out most of its work:
    generators of random numbers, hashes, index arithmetic.
    """
    unit = fullest(case.levels, case.pipes, NEVER_LEAD)
    if unit is None or unit[0] not in _FILLED_BY_INTEGERS or not case.kernel.duration_ns:
        return False
    share, math_share = unit[1], math_ns / case.kernel.duration_ns
    if share < case.limits.contributing_share or math_share >= case.limits.pipe_explained * share:
        return False
    return _outnumber_flop(case, math_share)


def _outnumber_flop(case: Case, math_share: float) -> bool:
    """Return whether more instructions are integer than arithmetic with a roof; by the ALU where none are counted."""
    opcodes = case.kernel.warp_opcodes
    if not opcodes:
        alu = case.pipes.get("alu")
        return alu is not None and (alu.share or 0.0) > math_share
    integer = sum(count for opcode, count in opcodes.items() if opcode_group(opcode) == "integer")
    flop = sum(count for opcode, count in opcodes.items() if is_matrix(opcode) or thread_flop(opcode))
    return integer > flop


def _uses_operands_once(case: Case) -> bool:
    """Return whether a kernel is like a copy: no matrix work, and under one operation a byte that it needs."""
    operations = {name: pipe.amount for name, pipe in case.pipes.items() if pipe.is_arithmetic and pipe.amount}
    needed_bytes = _needed_bytes(case)
    matrix = any(name.startswith("tensor_") for name in operations)
    return needed_bytes is not None and not matrix and sum(operations.values()) < needed_bytes


def needed_memory_ns(case: Case) -> float | None:
    """Return the time that the bytes proven needed take at the peak of DRAM; None where not known.

    Where a report holds no bytes but how busy DRAM was, that part of the time stands for them.
    """
    counters, duration_ns = case.kernel.counters, case.kernel.duration_ns
    peak = counters.get("device_dram_peak_bytes_per_s") or counters.get("dram_peak_bytes_per_s")
    needed_bytes, share = _needed_bytes(case), case.levels["dram"].share
    if needed_bytes is not None and peak:
        return needed_bytes / peak * 1e9
    if share is None or duration_ns is None:
        return None
    return device_dram_share(case.kernel, share) * duration_ns * (1 - (local_part(case.kernel) or 0.0))


def _needed_bytes(case: Case) -> float | None:
    amounts = (_without_local(case.kernel, case.flags), _ideal_bytes(case.kernel), case.compulsory_bytes)
    return min((amount for amount in amounts if amount is not None), default=None)


def _without_local(kernel: Kernel, flags: Collection[str]) -> float | None:
    """Return DRAM's bytes, with the output that stayed in L2 and without local memory; None where not measured."""
    measured = kernel.counters.get("dram_bytes")
    if measured is None:
        return None
    stayed = kernel.counters.get("l2_write_bytes", 0.0) if "dram_writes_stay_in_l2" in flags else 0.0
    return (measured + stayed) * (1 - (local_part(kernel) or 0.0))


def local_part(kernel: Kernel) -> float | None:
    """Return the part of the sectors that local memory has beside global memory, 0 to 1; None where not measured."""
    measured: tuple[tuple[Mapping[str, float], tuple[str, ...], tuple[str, ...]], ...] = (
        (kernel.counters, _LOCAL_COUNTERS, _GLOBAL_COUNTERS),
        (kernel.code_totals, ("local_sectors",), ("load_sectors", "store_sectors")),
        (kernel.counters, ("local_touched_sectors",), ("global_touched_sectors",)),
    )
    for amounts, local_names, global_names in measured:
        local = _known_sum(amounts, local_names)
        other = None if local is None else _known_sum(amounts, global_names)
        if local is not None and other is not None:
            return local / (local + other) if local else 0.0
    return None


def _known_sum(amounts: Mapping[str, float], names: tuple[str, ...]) -> float | None:
    """Sum what is measured; None where nothing is."""
    total = None
    for name in names:
        amount = amounts.get(name)
        if amount is not None:
            total = amount if total is None else total + amount
    return total


_LOCAL_COUNTERS = ("local_load_sectors", "local_store_sectors")
_GLOBAL_COUNTERS = ("global_load_sectors", "global_store_sectors")


def _ideal_bytes(kernel: Kernel) -> float | None:
    """Return the bytes of the sectors that all global accesses would fill; None where some are not looked at."""
    ideal = kernel.counters.get("global_ideal_sectors")
    passes_by = any(opcode.startswith(_OTHER_PATHS) for opcode in kernel.warp_opcodes)
    textures = kernel.counters.get("tex_inst", 0.0) > 0
    return None if not ideal or passes_by or textures else ideal * SECTOR_BYTES
