"""Distances: how much faster a kernel could run as written, without its waste, and with its operands kept on chip.

    T_math = sum over types of FLOP_i / peak_i        T_needed = bytes needed / peak of DRAM
    headroom = 1 / largest share      potential = t / max(T_math, T_needed)      potential_by_reuse = t / T_math

Bytes are proven needed where waste cannot explain them: of those measured at DRAM, local memory's part is left out, and
never more is needed than the sectors that the bytes of all global accesses would fill. Subtracting every unused byte
would overshoot, because caches serve some of them. Nor is more needed than the compulsory bytes of a workload whose
formula is known.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflens.model.counters.memory import SECTOR_BYTES
from rooflens.model.failed import failure_words
from rooflens.model.records import Distances, Kernel
from rooflens.model.roofline.levels import device_dram_share, fullest
from rooflens.model.roofline.opcodes import is_matrix, opcode_group, thread_flop
from rooflens.model.verdict.bottleneck import NEVER_LEAD
from rooflens.model.verdict.facts import Facts

_OTHER_PATHS = ("UBLKCP", "UTMALDG", "UTMASTG", "UTMAREDG", "TEX", "TLD", "TMML", "SULD", "SUST")
"""Opcodes that reach global memory past the accesses whose addresses are looked at: TMA, bulk copies, textures."""
_FILLED_BY_INTEGERS = frozenset({"issue", "alu", "fma"})
"""Units that integer instructions fill as well as floating-point ones; integer multiplications run on the FMA pipe."""


def find_distances(facts: Facts, math_ns: float | None) -> Distances:
    """Find the distances of a kernel whose class is decided.

    Args:
        facts: The kernel's facts.
        math_ns: What its arithmetic needs at the peaks; None where a part of it or of its peaks is unknown.
    """
    bound, duration_ns = facts.bound, facts.kernel.duration_ns
    headroom = None if not facts.top_share or bound == "unknown" else max(1.0, 1 / facts.top_share)
    if headroom is not None and bound in {"latency", "overhead"} and headroom > facts.limits.open_headroom:
        headroom = None
    why_null = None
    if facts.kernel.failed:
        why_null = failure_words(facts.kernel)
    elif bound == "overhead":
        why_null = "its launch takes longer than its work"
    elif math_ns is None:
        why_null = "floating-point operations are not counted"
    elif _has_hardly_any_flop(facts) or _is_full_of_integers(facts, math_ns):
        why_null = "integer work: bound not known"
    needed_bytes, needed_ns, dram_share = _needed_bytes(facts), None, facts.levels["dram"].share
    peak = facts.counter("device_dram_peak_bytes_per_s") or facts.counter("dram_peak_bytes_per_s")
    if needed_bytes is not None and peak:
        needed_ns = needed_bytes / peak * 1e9
    elif dram_share is not None and duration_ns is not None:  # how busy DRAM was stands for bytes that are not known
        busy_ns = device_dram_share(facts.kernel, dram_share) * duration_ns
        needed_ns = busy_ns * (1 - (local_part(facts.kernel) or 0.0))
    if why_null or duration_ns is None or math_ns is None or needed_ns is None:
        return Distances(headroom, why_null=why_null or "time or DRAM traffic is not known")
    floor_ns = min(duration_ns, max(math_ns, needed_ns))
    operations = {name: pipe.amount for name, pipe in facts.pipes.items() if pipe.is_arithmetic and pipe.amount}
    is_matrix_work = any(name.startswith("tensor_") for name in operations)
    return Distances(
        headroom=headroom,
        potential=duration_ns / floor_ns if floor_ns else None,
        potential_by_reuse=max(1.0, duration_ns / math_ns) if math_ns else None,
        # Like a copy: no matrix work, and under one operation a byte that it needs.
        by_fusing_only=needed_bytes is not None and not is_matrix_work and sum(operations.values()) < needed_bytes,
        floor_ns=floor_ns,
        why_null=None if floor_ns else "no arithmetic and no DRAM traffic",
    )


def _has_hardly_any_flop(facts: Facts) -> bool:
    """Return whether hardly any instruction is arithmetic that a roof is known for, and DRAM is not busy either.

    T_math would then be next to nothing and the potential in the thousands.
    """
    dram = facts.levels["dram"].share
    if dram is not None and dram >= facts.limits.integer_dram_share:
        return False
    math = sum(pipe.amount for pipe in facts.pipes.values() if pipe.is_arithmetic and pipe.amount)
    executed = sum(facts.kernel.thread_opcodes.values()) or facts.kernel.code_totals.get("thread_inst")
    return not math or (executed is not None and math < facts.limits.integer_flop_part * executed)


def _is_full_of_integers(facts: Facts, math_ns: float) -> bool:
    """Return whether the busiest unit of all is kept busy by integers, and by no floating-point work to speak of.

    How many of them the kernel needs nobody knows, so a floor of FLOPs and bytes would leave out most of its work:
    generators of random numbers, hashes, index arithmetic. Where opcodes are not counted, the ALU speaks for integers.
    """
    unit = fullest(facts.levels, facts.pipes, NEVER_LEAD)
    if unit is None or unit[0] not in _FILLED_BY_INTEGERS or not facts.kernel.duration_ns:
        return False
    share, math_share = unit[1], math_ns / facts.kernel.duration_ns
    if share < facts.limits.contributing_share or math_share >= facts.limits.pipe_explained * share:
        return False
    opcodes = facts.kernel.warp_opcodes
    if not opcodes:
        return (facts.share("alu") or 0.0) > math_share
    integer = sum(count for opcode, count in opcodes.items() if opcode_group(opcode) == "integer")
    flop = sum(count for opcode, count in opcodes.items() if is_matrix(opcode) or thread_flop(opcode))
    return integer > flop


def _needed_bytes(facts: Facts) -> float | None:
    """Return the least of the bytes proven enough at DRAM; None where none are known.

    They are DRAM's own, with the output that stayed in L2 and without local memory; the sectors that all global
    accesses would fill, where all are looked at; and the workload's by formula.
    """
    amounts = [] if facts.outside.compulsory_bytes is None else [facts.outside.compulsory_bytes]
    measured = facts.counter("dram_bytes")
    if measured is not None:
        stayed = facts.counter("l2_write_bytes") or 0.0 if "dram_writes_stay_in_l2" in facts.flags else 0.0
        amounts.append((measured + stayed) * (1 - (local_part(facts.kernel) or 0.0)))
    ideal = facts.counter("global_ideal_sectors")
    passes_by = any(opcode.startswith(_OTHER_PATHS) for opcode in facts.kernel.warp_opcodes)
    if ideal and not passes_by and not (facts.counter("tex_inst") or 0.0) > 0:
        amounts.append(ideal * SECTOR_BYTES)
    return min(amounts, default=None)


def local_part(kernel: Kernel) -> float | None:
    """Return local memory's part of the sectors of local and global memory, 0 to 1; None where not measured."""
    measured: tuple[tuple[Mapping[str, float], tuple[str, ...], tuple[str, ...]], ...] = (
        (
            kernel.counters,
            ("local_load_sectors", "local_store_sectors"),
            ("global_load_sectors", "global_store_sectors"),
        ),
        (kernel.code_totals, ("local_sectors",), ("load_sectors", "store_sectors")),
        (kernel.counters, ("local_touched_sectors",), ("global_touched_sectors",)),
    )
    for amounts, local_names, global_names in measured:
        local = [amounts[name] for name in local_names if name in amounts]
        other = [amounts[name] for name in global_names if name in amounts] if local else []
        if other:
            return sum(local) / (sum(local) + sum(other)) if sum(local) else 0.0
    return None
