"""How a kernel runs, in words: what its warps wait for, how its accesses fit the memory, what limits its occupancy.

These are measured facts without a judgement, with which a reader who knows the kernel can check ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rooflens import format as fmt
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.findings.stalls import stall_shares
from rooflens.model.records import Does, Kernel, Spelling
from rooflens.model.roofline.occupancy import Occupancy, block_smem_bytes, find_occupancy, warps_of
from rooflens.model.roofline.opcodes import opcode_group
from rooflens.model.roofline.traffic import Traffic
from rooflens.report.words.labels import stall_label

_HARDLY = 0.01
"""A last wave that leaves less than this of the SM time idle is as good as full."""
_SLOTS = {"warps a block": "warp slots"}
"""Limits that are named by what runs out."""
_EVEN = 1.05
"""Up to this factor the addresses of shared-memory accesses fit the banks."""
_MOST_WAITS = 3
_LEAST_WAIT = 0.05
"""Waits below this part of a warp's time are not named."""
_ALL_THREADS = 31.5
"""Active threads of a warp from here up are as good as all."""


def warp_facts(kernel: Kernel) -> Iterator[str]:
    """Say what warps wait for between two instructions, and how many of their threads work."""
    between, waits = kernel.counters.get("warp_latency_cycles"), ", ".join(_longest_waits(kernel))
    if between:
        yield f"{fmt.significant(between)} cycles between two instructions of a warp" + (f" ({waits})" if waits else "")
    elif waits:
        yield waits
    active, working = kernel.counters.get("threads_per_inst"), kernel.counters.get("threads_on_per_inst")
    if active is not None and active < _ALL_THREADS:
        yield f"{fmt.significant(active)} of {WARP_THREADS} threads of a warp are active"
    if working is not None and working < _ALL_THREADS:
        yield f"{fmt.significant(working)} of {WARP_THREADS} threads of a warp do work, not predicated off"


_KINDS_SHOWN = 6
_LEAST_KIND = 0.01


def instruction_facts(kernel: Kernel) -> Iterator[str]:
    """Say how many instructions warps execute, and of which kinds, if opcodes are counted."""
    kinds: Counter[str] = Counter()
    for opcode, count in kernel.warp_opcodes.items():
        kinds[opcode_group(opcode)] += count
    total, blocks, threads = (
        kinds.total() or kernel.counters.get("executed_inst"),
        kernel.counters.get("grid_size"),
        kernel.counters.get("block_size"),
    )
    if total and blocks and threads:
        yield f"{fmt.si_of(total, 'instructions')}, {fmt.significant(total / (blocks * warps_of(threads)))} per warp"
    if kinds:
        shares = ((kind, count / kinds.total()) for kind, count in kinds.most_common(_KINDS_SHOWN))
        parts = ", ".join(f"{kind} {fmt.percent(share)}" for kind, share in shares if share >= _LEAST_KIND)
        yield f"by kind: {parts}"


def _longest_waits(kernel: Kernel) -> list[str]:
    """Name the longest waits: in cycles of a warp between two instructions if these are known, else as shares."""
    between = kernel.counters.get("warp_latency_cycles")
    longest = sorted(stall_shares(kernel).items(), key=lambda item: -item[1])[:_MOST_WAITS]
    return [
        f"{fmt.significant(share * between) if between else fmt.percent(share)} {stall_label(reason)}"
        for reason, share in longest
        if share >= _LEAST_WAIT
    ]


def memory_facts(traffic: Traffic, *, has_hits: bool = True) -> Iterator[str]:
    """Say how well accesses fit sectors and banks, and how often caches hit.

    Args:
        traffic: Of one kernel.
        has_hits: False if a drawing beside these words shows the hit rates.
    """
    loads, stores = traffic.load_sectors_per_request, traffic.store_sectors_per_request
    touched = [f"{what} {fmt.significant(value)}" for what, value in (("loads", loads), ("stores", stores)) if value]
    if touched:
        yield f"sectors per request: {', '.join(touched)} (coalesced, 4 bytes per thread take 4, 8 take 8, 16 take 16)"
    used = (("loads", traffic.load_bytes_per_sector), ("stores", traffic.store_bytes_per_sector))
    if filled := [f"{what} {fmt.significant(value)}" for what, value in used if value is not None]:
        yield f"bytes used of each {SECTOR_BYTES:.0f}-byte sector: {', '.join(filled)}"
    if traffic.shared_excess is not None and traffic.shared_excess > _EVEN:
        yield f"shared memory: {fmt.factor(traffic.shared_excess)} the passes needed, from bank conflicts"
    rates = (("L1", traffic.l1_hit_rate), ("L2", traffic.l2_hit_rate)) if has_hits else ()
    hits = [f"{name} {fmt.percent(rate)}" for name, rate in rates if rate is not None]
    if hits:
        yield f"sector hit rates: {', '.join(hits)}"
    if traffic.l2_bytes and traffic.dram_bytes is not None:
        ratio = fmt.significant(traffic.dram_bytes / traffic.l2_bytes)
        yield f"DRAM moves {ratio} B per byte between the SMs and L2"


def occupancy_facts(kernel: Kernel) -> Iterator[str]:
    """Say what limits the occupancy, how many waves the grid has, and how many warps are ready to issue."""
    found = find_occupancy(kernel)
    if found.limiters:
        yield from _limits(kernel, found)
    elif found.theoretical is not None and found.block_limits:
        yield "not limited: the launch can fill every warp slot"
    if found.waves is not None and found.tail_share is not None:
        blocks, sms = kernel.counters.get("grid_size"), kernel.counters.get("sm_count")
        grid = f" ({fmt.count(round(blocks), 'block')} on {sms:.0f} SMs)" if blocks and sms else ""
        yield _waves(found.waves, found.tail_share, grid)
    ready, issued = kernel.counters.get("eligible_warps_per_cycle"), kernel.counters.get("issue_active_per_cycle")
    if ready is not None:
        slots = "" if issued is None else f"; {fmt.significant(issued, 2)} instructions issued"
        yield f"per cycle and scheduler: {fmt.significant(ready, 2)} warps ready{slots}"


def _limits(kernel: Kernel, occupancy: Occupancy) -> Iterator[str]:
    """Name the tightest resources with the amount per block, then what the others would allow."""
    blocks = occupancy.block_limits[0][1]
    scarce = " and ".join(_slots(name) + _resource_words(kernel, name) for name in occupancy.limiters)
    yield f"limited by {scarce} to {fmt.count(round(blocks), 'block')} per SM"
    rest = [f"{_slots(name)} {limit:.0f}" for name, limit in occupancy.block_limits if name not in occupancy.limiters]
    if rest:
        yield f"blocks per SM by the other limits: {', '.join(rest)}"


def _slots(name: str) -> str:
    return _SLOTS.get(name, name)


def _resource_words(kernel: Kernel, name: str) -> str:
    registers, shared = kernel.counters.get("registers_per_thread"), block_smem_bytes(kernel.counters)
    if name == "registers" and registers:
        return f" ({registers:.0f} per thread)"
    if name == "shared memory" and shared:
        return f" ({fmt.si(shared, 'B')} per block)"
    return ""


def _waves(waves: float, idle: float, grid: str) -> str:
    if waves < 1:
        return f"{fmt.significant(waves, 2)} waves{grid}: {fmt.percent(idle)} of the block slots stay empty"
    tail = "hardly any tail" if idle < _HARDLY else f"the last one leaves {fmt.percent(idle)} of the SM time idle"
    return f"{fmt.significant(waves)} waves{grid}, each what all SMs hold at once: {tail}"


def _stages(does: Does) -> str:
    if not does.stages:
        return ""
    of_all = "" if does.waits_for_oldest or does.stages == 1 else " and a wait for all copies"
    return f"{fmt.count(does.stages, 'stage')}{of_all}"


def does_line(does: Does) -> str:
    """Say what a kernel already does, in the order in which kernels are tuned: `64 results a thread, cp.async, ...`."""
    parts = (
        f"{does.results} results a thread" if (does.results or 0) > 1 else "",
        f"{fmt.si(does.tile_bytes, 'B')} of tiles in shared memory" if does.tile_bytes else "",
        " and ".join(does.copies or ()),
        _stages(does),
        does.products or "",
        "which it waits for at once" if does.products_left == 0 else "",
        "an older product than the chip has" if does.older_products else "",
        f"{does.load_bytes}-byte loads" if does.load_bytes else "",
        f"{fmt.significant(does.lanes)} of 32 lanes" if does.lanes is not None and does.lanes < _ALL_THREADS else "",
        "a persistent grid" if does.persistent else "",
        "specialised warps" if does.specialised else "",
    )
    return ", ".join(filter(None, parts))


def spelling_words(spelling: Spelling) -> str:
    """Say what a move is called in CUDA, CUTLASS and Triton, where it has a name there."""
    names = (("In CUDA", spelling.cuda), ("CUTLASS", spelling.cutlass), ("Triton", spelling.triton))
    return "; ".join(f"{language}: {name}" for language, name in names if name)
