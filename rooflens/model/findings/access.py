"""Findings about the addresses of global loads and stores."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import percent, si_of, significant
from rooflens.model.counters.memory import SECTOR_BYTES
from rooflens.model.findings.rule import FindingRule, Found, Waste, speedup, weigh
from rooflens.model.hotspots import hottest
from rooflens.model.records import Evidence
from rooflens.model.roofline.opcodes import executed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Confidence, Kernel

_Side = Literal["load", "store"]

_STALLS: Mapping[_Side, tuple[str, ...]] = {
    "load": ("long_scoreboard", "lg_throttle"),
    "store": ("lg_throttle", "drain"),
}
_OPCODES: Mapping[_Side, tuple[str, ...]] = {"load": ("LDG",), "store": ("STG",)}
_HARDWARE: Mapping[_Side, tuple[str, str]] = {
    "load": ("global_load_sectors", "global_load_requests"),
    "store": ("global_store_sectors", "global_store_requests"),
}
_WIDTH_BITS = re.compile(r"^[US]?(8|16|32|64|128|256)$")
_DEFAULT_BYTES = 4
_ONE_MORE = 1.05
"""Most sectors beyond the ideal for an access to a row that starts within a sector: one, but for rounding."""
_ROW_SECTORS = 2
"""An access that fills fewer sectors is no row: a sector more for it is a scattered one."""


class _Use(Struct, frozen=True):
    """How one side, loads or stores, uses the sectors it touches.

    Attributes:
        used: Part of the bytes of its sectors that are asked for, 0 to 1.
        sectors: Sectors it touches; None where only the ratio is known.
        said: The sentence part that holds the numbers of the evidence.
        apart: The addresses of a warp lie apart; False where they touch the fewest sectors that they can.
    """

    used: float
    sectors: float | None
    evidence: tuple[Evidence, ...]
    said: str
    confidence: Confidence = "high"
    apart: bool = True


def uncoalesced_global_load(facts: Facts) -> Found | None:
    """Say that global loads touch more sectors than the bytes they ask for would fill.

    A warp's load goes to memory in sectors of 32 bytes. Neighbouring addresses share sectors; scattered
    addresses take one each, and most of the bytes moved go unused. Counters, in order of preference:
    `memory_l2_theoretical_sectors_global` against `memory_l2_theoretical_sectors_global_ideal` of the load
    instructions; `smsp__sass_average_data_bytes_per_sector_mem_global_op_ld`, which counts a byte that several threads
    read once; sectors against the width of the loads; sectors per request. Confirm at the
    line it names: the index must grow by one from thread to thread. Where whole warps take about one sector more
    than they fill, only the start of their rows is misaligned, and the move says so. It does not show whether a cache
    serves the rest of a sector later: where one does, L1 and L2 move more, but DRAM does not.

    Try:
    - let `threadIdx.x` (in Triton the last `tl.arange`) run along the contiguous dimension
    - store a structure of arrays instead of an array of structures; in PyTorch call `.contiguous()` once before many
      uses
    - read rows into shared memory and columns from there: `__shared__ float tile[32][33]`
    - align each row to 32 bytes by padding the leading dimension (`cudaMallocPitch`)
    """
    return _uncoalesced(facts, "load")


def uncoalesced_global_store(facts: Facts) -> Found | None:
    """Say that global stores touch more sectors than the bytes they write would fill.

    As for loads: a warp's store goes out in sectors of 32 bytes; a partly filled one costs as much as a full
    one, and more where L2 has to read the rest. Counters: `memory_l2_theoretical_sectors_global` against its
    ideal for the store instructions, `smsp__sass_average_data_bytes_per_sector_mem_global_op_st`, sectors of global
    stores against the width of the store instructions, sectors per request. Confirm at the line it names. It does
    not show stores that L2 merges into full sectors before they leave it.

    Try:
    - let neighbouring threads write neighbouring elements, even where they read scattered ones
    - transpose the tile in shared memory, then write whole rows; Triton does so where the pointers of `tl.store`
      are contiguous
    - write 16 bytes per thread (`float4`) to aligned addresses
    - sort or bin by destination before a scatter, so that a warp's stores land together
    """
    return _uncoalesced(facts, "store")


def _uncoalesced(facts: Facts, side: _Side) -> Found | None:
    use = _use_of(facts, side)
    if use is None:
        return None
    wasted = 1 - use.used
    waste = _waste(facts, side, wasted, use.sectors)
    shifted = use.apart and _is_shifted(facts, side, use)
    full_cache = facts.wall is not None and facts.wall.resource in _CACHES
    return Found(
        evidence=use.evidence,
        move=_SHIFTED.format(use.said) if shifted else _move(side, use),
        bears_on=waste.bears_on,
        speedup_up_to=speedup(facts, waste),
        where=facts.places(f"{side}_excess_sectors"),
        confidence=use.confidence,
        severity=weigh(facts, waste) if use.apart and (full_cache or not shifted) else "note",
    )


def _move(side: _Side, use: _Use) -> str:
    return f"{_START[side]}: {use.said}; {_HOW[side]}" if use.apart else f"{_WIDER[side]}: {use.said}"


_CACHES = frozenset({"l1", "l2"})
_SHIFTED = "start rows on 32-byte boundaries (pad the row or shift the halo): {}"
_START: Mapping[_Side, str] = {
    "load": "let neighbouring threads read neighbouring addresses",
    "store": "let neighbouring threads write neighbouring addresses",
}
_HOW: Mapping[_Side, str] = {
    "load": "transpose the index or the layout, or load tiles by rows and transpose them in shared memory",
    "store": "transpose the index or the layout, or gather results in shared memory and write them by rows",
}
_WIDER: Mapping[_Side, str] = {
    "load": "use wider loads per thread, or keep in shared memory what all threads of a warp read",
    "store": "use wider stores per thread, or let more threads of a warp write",
}


def _is_shifted(facts: Facts, side: _Side, use: _Use) -> bool:
    """Return whether accesses are to rows that only start within a sector: each takes at most one more than ideal.

    Judged by the instructions that waste most, where they are told apart, else by the mean access.
    """
    sectors, excess, whole = f"{side}_sectors", f"{side}_excess_sectors", facts.limits.active_threads
    worst = [spot.measures for spot in hottest(facts.kernel.hotspots, excess, by="sass")]
    if worst:
        return all(
            _is_row(one.get(sectors, 0.0), one[excess], one.get("warp_inst", 0.0), one.get("thread_inst", 0.0), whole)
            for one in worst
        )
    accesses, threads = _accesses(facts, side), facts.counter("threads_per_inst")
    if use.sectors is None or not accesses:
        return False
    lanes = accesses * threads if threads is not None else math.inf
    return _is_row(use.sectors, use.sectors * (1 - use.used), accesses, lanes, whole)


def _is_row(sectors: float, excess: float, accesses: float, threads: float, least_threads: float) -> bool:
    """Return whether accesses of whole warps take at most one sector more than the several that they fill."""
    whole = threads >= least_threads * accesses
    return whole and excess <= _ONE_MORE * accesses and sectors - excess >= _ROW_SECTORS * accesses


def _accesses(facts: Facts, side: _Side) -> float | None:
    """Return the warp accesses of one side; None where neither requests nor opcodes are counted."""
    requests = facts.counter(_HARDWARE[side][1])
    return requests or executed(facts.kernel.warp_opcodes, _OPCODES[side]) or None


def _use_of(facts: Facts, side: _Side) -> _Use | None:
    """Find the first measure by which this side wastes enough to be told; what instructions say of themselves leads."""
    limit = facts.limits.wasted_sector_share
    by_instruction, by_sector = _by_instruction(facts, side), _by_sector(facts, side)
    if by_instruction is not None and 1 - by_instruction.used >= limit:
        return by_instruction
    if by_instruction is not None and by_sector is not None:
        by_sector = replace(by_sector, apart=False)
    known = by_instruction is not None or by_sector is not None
    for use in (by_sector,) if known else (_by_width(facts, side), _by_request(facts, side)):
        if use is not None and 1 - use.used >= limit:
            return use
    return None


def _by_instruction(facts: Facts, side: _Side) -> _Use | None:
    totals = facts.kernel.code_totals
    sectors, excess = totals.get(f"{side}_sectors"), totals.get(f"{side}_excess_sectors")
    if not sectors or excess is None:
        return None
    source = "memory_l2_theoretical_sectors_global, _ideal by instruction"
    return _Use(
        used=1 - excess / sectors,
        sectors=sectors,
        evidence=(
            Evidence(f"{side}_excess_share", excess / sectors, "share", source),
            Evidence(f"{side}_sectors", sectors, "sectors", source),
        ),
        said=f"{percent(excess / sectors)} of the {si_of(sectors, 'sectors')} that global {side}s touch are "
        "unnecessary",
    )


def _by_sector(facts: Facts, side: _Side) -> _Use | None:
    name = f"global_{side}_bytes_per_sector"
    used_bytes = facts.counter(name)
    if not used_bytes:
        return None
    return _Use(
        used=min(1.0, used_bytes / SECTOR_BYTES),
        sectors=facts.counter(_HARDWARE[side][0]),
        evidence=(facts.measured(name, "bytes/sector"),),
        said=f"{significant(used_bytes)} of the 32 bytes of each sector that global {side}s touch are used",
    )


def _by_width(facts: Facts, side: _Side) -> _Use | None:
    """Hold the sectors against the bytes of all threads: an upper bound of what is used, as threads may share bytes."""
    sectors_name, _ = _HARDWARE[side]
    sectors = facts.counter(sectors_name)
    asked_bytes = _asked_bytes(facts.kernel, side) if sectors else None
    if not sectors or not asked_bytes:
        return None
    used_bytes = asked_bytes / sectors
    return _Use(
        used=min(1.0, used_bytes / SECTOR_BYTES),
        sectors=sectors,
        evidence=(
            Evidence(
                f"global_{side}_bytes_per_sector", used_bytes, "bytes/sector", "opcode widths x threads / sectors"
            ),
            facts.measured(sectors_name, "sectors"),
        ),
        said=f"at most {significant(used_bytes)} of the 32 bytes of each of the {si_of(sectors, 'sectors')} that "
        f"global {side}s touch are used",
        confidence="medium",
    )


def _asked_bytes(kernel: Kernel, side: _Side) -> float:
    return sum(
        threads * access_bytes(opcode)
        for opcode, threads in kernel.thread_opcodes.items()
        if opcode.partition(".")[0] in _OPCODES[side]
    )


def access_bytes(opcode: str) -> int:
    """Return how many bytes one thread asks for with a load or store: 4 unless its opcode says otherwise."""
    widths = [int(match[1]) // 8 for part in opcode.split(".")[1:] if (match := _WIDTH_BITS.match(part))]
    return widths[-1] if widths else _DEFAULT_BYTES


def _by_request(facts: Facts, side: _Side) -> _Use | None:
    """Hold the sectors a request against the most that coalesced accesses take: those of 16 bytes a thread."""
    sectors_name, requests_name = _HARDWARE[side]
    sectors, requests = facts.counter(sectors_name), facts.counter(requests_name)
    if not sectors or not requests:
        return None
    a_request, most = sectors / requests, facts.limits.sectors_per_request
    if a_request <= most:
        return None
    return _Use(
        used=most / a_request,
        sectors=sectors,
        evidence=(Evidence(f"global_{side}_sectors_per_request", a_request, "sectors/request", "sectors / requests"),),
        said=f"global {side}s take {significant(a_request)} sectors per request, where the widest coalesced one takes "
        f"{significant(most)}",
        confidence="medium",
    )


def _waste(facts: Facts, side: _Side, wasted: float, sectors: float | None) -> Waste:
    """Find what the waste keeps busy: L1 and L2, and DRAM where it moves more than is needed."""
    part = wasted * _side_part(facts, side, sectors)
    parts = {"l1": part, "l2": part}
    surplus = _surplus_at_dram(facts, side, wasted, sectors)
    if surplus:
        parts["dram"] = min(part, surplus)
    return Waste(parts, waits=part, stalls=_STALLS[side])


def _side_part(facts: Facts, side: _Side, sectors: float | None) -> float:
    """Return which part of all sectors this side touches; 1 where the other is not known."""
    other_side: _Side = "store" if side == "load" else "load"
    totals, counters = facts.kernel.code_totals, facts.kernel.counters
    if f"{side}_sectors" in totals:
        own, other = totals[f"{side}_sectors"], totals.get(f"{other_side}_sectors", 0.0)
        local = totals.get("local_sectors", 0.0)
    else:
        own, other = sectors or 0.0, counters.get(_HARDWARE[other_side][0], 0.0)
        local = counters.get("local_load_sectors", 0.0) + counters.get("local_store_sectors", 0.0)
    return own / (own + other + local) if own else 1.0


def _surplus_at_dram(facts: Facts, side: _Side, wasted: float, sectors: float | None) -> float:
    """Return the part of DRAM's bytes beyond what all accesses ask for, 0 to 1.

    Caches serve the rest of a sector where another warp needs it: then DRAM moves nothing in vain.
    """
    moved_bytes = facts.counter("dram_bytes")
    ideal = facts.counter("global_ideal_sectors")
    if ideal is None and sectors:
        other: _Side = "store" if side == "load" else "load"
        ideal = sectors * (1 - wasted) + (facts.counter(_HARDWARE[other][0]) or 0.0)
    if not moved_bytes or ideal is None:
        return 0.0
    return max(0.0, 1 - ideal * SECTOR_BYTES / moved_bytes)


ACCESS: tuple[FindingRule, ...] = (
    FindingRule(
        "uncoalesced_global_load",
        "uncoalesced global loads",
        uncoalesced_global_load,
        (
            ("code:load_sectors", "code:load_excess_sectors"),
            ("global_load_bytes_per_sector",),
            ("global_load_sectors", "thread_opcodes"),
            ("global_load_sectors", "global_load_requests"),
        ),
    ),
    FindingRule(
        "uncoalesced_global_store",
        "uncoalesced global stores",
        uncoalesced_global_store,
        (
            ("code:store_sectors", "code:store_excess_sectors"),
            ("global_store_bytes_per_sector",),
            ("global_store_sectors", "thread_opcodes"),
            ("global_store_sectors", "global_store_requests"),
        ),
    ),
)
