"""Findings about data that lies where it need not: in local memory, or in the memory of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rooflens.format import percent, quantity, si, si_of
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.memory import NS_PER_S, SECTOR_BYTES
from rooflens.model.findings.rule import LATENCY, FindingRule, Found, Waste, speedup, stall_shares, weigh
from rooflens.model.hotspots import STALL
from rooflens.model.records import Evidence
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.roofline.levels import SOC_CAPABILITIES, shares_of
from rooflens.model.roofline.opcodes import executed
from rooflens.model.verdict.distances import local_part

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Kernel, Severity

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


def host_memory(facts: Facts) -> Found | None:
    """Say that the kernel works on data in the host's memory, over PCIe or NVLink-C2C.

    Pinned memory, managed memory whose pages stay there, and any memory where GPU and CPU share page tables are read
    over the link, sector by sector, with a latency several times that of DRAM, which idles meanwhile. Reads of single
    sectors reach only about 30 % of PCIe's rate. Counters: sectors that L2 filled from system memory
    (`lts__d_sectors_fill_sysmem`) and those written there, against the link's rate in one direction, from the report's
    device attributes or else the datasheet, and against what L2 filled from DRAM. Confirm by copying the array to the
    GPU first. It does not show which array it is, nor pages that migrate while the kernel runs.

    Try:
    - copy once before the launch, from pinned memory (`cudaMemcpyAsync`, in PyTorch `.to("cuda", non_blocking=True)`)
    - managed memory: `cudaMemPrefetchAsync`, or `cudaMemAdvise` with the GPU as preferred location
    - what exceeds the GPU's memory: copy a piece on a second stream while the kernel works on the piece before
    - what is read once: let each warp read aligned rows of 128 bytes or more
    """
    flows = [flow for flow in (_host_flow(facts, "read"), _host_flow(facts, "write")) if flow is not None]
    if not flows or facts.kernel.compute_capability in SOC_CAPABILITIES:
        return None
    rate, link = max(flows, key=lambda flow: flow[0].value)
    part = _host_part(facts)
    severity = _host_severity(facts, rate.value, link.value if link else None, part.value if part else 0.0)
    if severity is None:
        return None
    words = f"{si(rate.value, rate.unit)} {_OVER_LINK[rate.name]} the host's memory"
    words += f", {percent(link.value)} of what its link carries in that direction" if link else ""
    words += f"; {percent(part.value)} of the sectors that L2 fills come from there" if part else ""
    waiting = sum(stall_shares(facts).get(reason, 0.0) for reason in ("long_scoreboard", "lg_throttle", "drain"))
    return Found(
        evidence=tuple(one for one in (rate, link, part) if one is not None),
        move="copy the data to the GPU before the launch, or prefetch it if it is managed; "
        f"leave on the host only what is used once, and read that in aligned rows of 128 bytes: {words}",
        bears_on=frozenset({LATENCY}),
        speedup_up_to=_once_on_gpu(facts, waiting, rate.value),
        where=facts.places(f"{STALL}long_scoreboard"),
        confidence="high" if link else "medium",
        severity=severity,
    )


_OVER_LINK = {"host_read_rate": "are read from", "host_write_rate": "are written to"}
_LEAST_HOST_BYTES = 65536
"""Arguments, semaphores and what the profiler itself writes came to at most 35 kB a launch."""
_LEAST_HOST_BYTES_PER_S = 1e9
"""Where the link is not known: single sectors over PCIe 3 with four lanes, the slowest in use."""
_MOST_FILLS = 0.5


def _host_flow(facts: Facts, way: Literal["read", "write"]) -> tuple[Evidence, Evidence | None] | None:
    """Return the rate in one direction, and its share of the link where that is known; None where next to nothing."""
    name, time_ns = f"host_{way}_bytes", facts.kernel.duration_ns
    moved_bytes = facts.counter(name)
    if moved_bytes is None or moved_bytes < _LEAST_HOST_BYTES or not time_ns:
        return None
    source = facts.measured(name, "B").source
    rate = Evidence(f"host_{way}_rate", moved_bytes / time_ns * NS_PER_S, "B/s", f"{source} / t")
    link_bytes_per_s, said_by = _link(facts)
    share = rate.value / link_bytes_per_s if link_bytes_per_s else None
    if share is None or share > facts.limits.share_over_one:
        return rate, None
    return rate, Evidence(f"host_{way}_share", share, "share", f"{source} / t / ({said_by})")


def _link(facts: Facts) -> tuple[float | None, str]:
    """Return the bytes a second that the link to the host carries in each direction, and who says so."""
    name = "host_link_peak_bytes_per_s"
    stated = facts.counter(name)
    if stated is not None:
        return stated, facts.measured(name, "B/s").source
    gpu = datasheet_of(facts.kernel.gpu)
    pcie = gpu.links.get("pcie") if gpu else None
    return (pcie.bytes_per_s_per_direction, pcie.source) if pcie else (None, "")


def _host_part(facts: Facts) -> Evidence | None:
    """Return the part of L2's fills that comes from the host; None where either part is not known."""
    host, device = facts.counter("host_fill_share"), facts.counter("device_fill_share")
    if host is None or device is None or not host + device:
        return None
    source = "lts__d_sectors_fill_sysmem / (lts__d_sectors_fill_sysmem + lts__d_sectors_fill_device)"
    return Evidence("host_part_of_fills", host / (host + device), "share", source)


def _host_severity(facts: Facts, bytes_per_s: float, share: float | None, part: float) -> Severity | None:
    """Say how much the link matters: it limits where it is as full as it gets, and no unit is fuller.

    A little costs time only where warps wait, and most of what they wait for comes from there.
    """
    if share is not None and share >= facts.limits.host_link_share:
        wall = facts.wall.share if facts.wall else 0.0
        if share >= wall:
            return "limiter"
        return "note" if facts.at_roof else "contributes"
    some = bytes_per_s >= _LEAST_HOST_BYTES_PER_S if share is None else share >= facts.limits.contributing_cost_share
    return "contributes" if some and facts.bound == "latency" and part > _MOST_FILLS else None


def _once_on_gpu(facts: Facts, waiting: float, bytes_per_s: float) -> float | None:
    """Return how much faster the kernel is at most with the data in DRAM, which then moves these bytes as well.

    No wait goes that was not measured to be one for memory; without stalls, the busiest unit is what is left.
    """
    peak = facts.counter("dram_peak_bytes_per_s") or facts.counter("device_dram_peak_bytes_per_s")
    dram = (facts.share("dram") or 0.0) + bytes_per_s / peak if peak else 0.0
    left = max(dram, 1 - waiting if waiting else 0.0, *shares_of(facts.levels, facts.pipes).values(), 0.0)
    return facts.without_wait(1 / left) if left else None


LOCAL: tuple[FindingRule, ...] = (
    FindingRule(
        "local_memory",
        "local memory",
        local_memory,
        (
            ("local_load_sectors", "global_load_sectors"),
            ("local_load_sectors", "global_store_sectors"),
            ("local_store_sectors", "global_load_sectors"),
            ("local_store_sectors", "global_store_sectors"),
            ("code:local_sectors", "code:load_sectors", "code:store_sectors"),
            ("warp_opcodes",),
            ("local_touched_sectors", "global_touched_sectors"),
            ("local_load_inst", "global_load_requests"),
            ("local_load_inst", "global_store_requests"),
            ("local_store_inst", "global_load_requests"),
            ("local_store_inst", "global_store_requests"),
        ),
    ),
    FindingRule("host_memory", "data in the host's memory", host_memory, (("host_read_bytes",), ("host_write_bytes",))),
)
