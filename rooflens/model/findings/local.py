"""Findings about local memory: what threads keep there for want of registers or of constant indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import percent, quantity, si_of
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.memory import SECTOR_BYTES
from rooflens.model.findings.rule import FindingRule, Found, Waste, speedup, weigh
from rooflens.model.records import Evidence
from rooflens.model.roofline.opcodes import executed
from rooflens.model.verdict.distances import local_part

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Kernel

_MOST_REGISTERS = 255
_SM_REGISTERS = 65536
"""Registers a thread and an SM can have, since Maxwell (CUDA C++ Programming Guide, compute capabilities)."""
_REGISTER_STEP = 8
"""Registers are handed out in eights: a cap may leave up to seven of them unused."""

_LOCAL = ("LDL", "STL")
_GLOBAL = ("LDG", "STG", "LD", "ST")


def local_memory(facts: Facts) -> Found | None:
    """Say that part of the memory traffic is local memory.

    Local memory holds what a thread has no register for: spilled values, and arrays whose index is known only at run
    time. It lives in device memory and goes through all caches. Counters, in order of preference:
    `l1tex__t_sectors_pipe_lsu_mem_local_op_ld` and `_st` against those of global memory;
    `memory_l2_theoretical_sectors_local` against `memory_l2_theoretical_sectors_global`; local and global instructions
    by opcode. Spills are distinguished from arrays by `sass__inst_executed_register_spilling_mem_local` and
    `derived__local_spilling_requests` where they are stored, else by whether a thread has as many registers as the
    block size allows. Confirm with `-Xptxas -v`, which prints each kernel's spills and stack. It does not show which
    variable it is, nor a register cap by launch bounds or `-maxrregcount` below what the chip allows.

    Try:
    - distinguish spills from arrays with `-Xptxas -v` (Triton: `n_spills` of the compiled kernel)
    - arrays: make every index a constant by unrolling fully (`#pragma unroll`), or move the array to shared memory
    - spills: raise the cap (`__launch_bounds__`, `-maxrregcount`; in Triton more `num_warps`)
    - keep fewer values live: use a smaller tile per thread, or recompute
    """
    found = _part(facts)
    if found is None or not found[0].value:
        return None
    (local, noun), kernel = found, facts.kernel
    part, filled = local.value, _filled(facts)
    if part < facts.limits.local_share and not filled:
        return None
    waste = Waste({"l1": part, "l2": part, "dram": part}, waits=part, stalls=("long_scoreboard", "lg_throttle"))
    spills = _spills(facts)
    shown = tuple(spill for spill in spills or () if spill.value)
    registers = (facts.measured("registers_per_thread", "registers"),) if facts.counter("registers_per_thread") else ()
    words = [f"{percent(part)} of its {noun} go to local memory"]
    words += [f"{quantity(one.value, '')} of 32 bytes of each sector is used" for one in filled]
    words += [f"{si_of(one.value, one.unit)} are spills" for one in shown]
    return Found(
        evidence=(local, *filled, *shown, *registers),
        move=_move(kernel, ", ".join(words), spills=None if spills is None else bool(shown)),
        bears_on=waste.bears_on,
        speedup_up_to=speedup(facts, waste),
        where=facts.places("local_sectors"),
        confidence="high" if spills is not None else "medium" if _is_at_cap(kernel) is not None else "low",
        severity=weigh(facts, waste),
    )


def _part(facts: Facts) -> tuple[Evidence, str] | None:
    """Return which part of the traffic is local memory, and what it is a part of."""
    kernel, counters = facts.kernel, facts.kernel.counters
    by_sectors = local_part(kernel)
    if by_sectors is not None:
        return Evidence("local_share", by_sectors, "share", "sectors of local / of local and global memory"), "sectors"
    if kernel.warp_opcodes:
        local, other = (executed(kernel.warp_opcodes, opcodes) for opcodes in (_LOCAL, _GLOBAL))
    else:
        local = counters.get("local_load_inst", 0.0) + counters.get("local_store_inst", 0.0)
        other = sum(counters.get(name, 0.0) for name in ("global_load_requests", "global_store_requests"))
    if not local or not other:
        return None
    source = "local / local and global memory instructions"
    return Evidence("local_share", local / (local + other), "share", source), "memory instructions"


def _spills(facts: Facts) -> tuple[Evidence, ...] | None:
    """Return how much is spilled: 0 where there is only an array; None where the report does not tell spills apart."""
    rows = (("spill_inst", "instructions"), ("spill_requests", "requests"))
    known = tuple(facts.measured(name, unit) for name, unit in rows if facts.counter(name) is not None)
    return known or None


def _filled(facts: Facts) -> tuple[Evidence, ...]:
    """Return how few bytes of a sector local accesses use, the worse of loads and stores; nothing where full."""
    names = ("local_load_bytes_per_sector", "local_store_bytes_per_sector")
    known = [facts.measured(name, "bytes/sector") for name in names if facts.counter(name)]
    most = SECTOR_BYTES * (1 - facts.limits.wasted_sector_share)
    return tuple(sorted((one for one in known if one.value < most), key=lambda one: one.value)[:1])


def register_cap(kernel: Kernel) -> int | None:
    """Return how many registers a thread can have for its block to fit on an SM; None without a block size."""
    threads = kernel.counters.get("block_size")
    if not threads:
        return None
    warps = -(-int(threads) // WARP_THREADS)
    cap = _SM_REGISTERS // (warps * WARP_THREADS) // _REGISTER_STEP * _REGISTER_STEP
    return min(_MOST_REGISTERS, cap)


def _is_at_cap(kernel: Kernel) -> bool | None:
    registers, cap = kernel.counters.get("registers_per_thread"), register_cap(kernel)
    return None if not registers or cap is None else registers > cap - _REGISTER_STEP


def _move(kernel: Kernel, said: str, *, spills: bool | None) -> str:
    """Say what to do, by what is known of spills, or may be taken from the registers in use; None is not known."""
    counters, at_cap, cap = kernel.counters, _is_at_cap(kernel), register_cap(kernel)
    if at_cap is None:
        return f"keep it in registers: {said}; keep fewer values live, and index arrays with constants"
    registers = f"{counters['registers_per_thread']:.0f} registers per thread"
    if spills is False or (spills is None and not at_cap):
        raised = "" if at_cap else f", or raise launch bounds or `-maxrregcount` if they cap the {registers}"
        held = f" (it has {registers})" if at_cap else ""
        return f"index arrays with constants, by unrolling the loops over them{raised}: {said}{held}"
    if not at_cap:
        return f"raise launch bounds or `-maxrregcount`, which cap the {registers}: {said}"
    if cap == _MOST_REGISTERS:
        return f"keep fewer values live, with smaller tiles or less unrolling: {said}, at {registers}, the most"
    return (
        f"use smaller blocks, or keep fewer values live: {said}, as blocks of {counters['block_size']:,.0f} "
        f"threads leave {cap} registers per thread, of which {counters['registers_per_thread']:.0f} are in use"
    )


LOCAL: tuple[FindingRule, ...] = (
    FindingRule(
        "local_memory",
        "local memory",
        local_memory,
        (
            ("local_load_sectors", "global_load_sectors"),
            ("code:local_sectors", "code:load_sectors", "code:store_sectors"),
            ("warp_opcodes",),
            ("local_touched_sectors", "global_touched_sectors"),
            ("local_load_inst", "global_load_requests"),
        ),
    ),
)
