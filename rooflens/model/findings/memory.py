"""Findings about memory: the addresses of accesses, data that need not be where they are, and atomics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from rooflens.format import percent, quantity, si, si_of, significant
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.counters.memory import NS_PER_S, WAVEFRONT_BYTES
from rooflens.model.findings.cost import LATENCY, MOST_SPARED, Waste, speedup, stalled, weigh
from rooflens.model.findings.rule import FindingDraft, FindingRule
from rooflens.model.hotspots import STALL, hottest, places
from rooflens.model.records import Confidence, Evidence, Kernel, MoveKind, Severity, ratio
from rooflens.model.roofline.flops import TENSOR_NOISE_SHARE
from rooflens.model.roofline.levels import works_in_shared_memory
from rooflens.model.roofline.occupancy import MOST_REGISTERS, SAME_REGISTERS, SM_REGISTERS, warps_of
from rooflens.model.roofline.opcodes import THREAD_COPY, WIDEST_BYTES, WORD_BYTES, executed
from rooflens.model.roofline.roof import roof
from rooflens.model.roofline.units import DATA, LSU_INPUT, SOC_CAPABILITIES, WHOLE, wavefronts_a_cycle
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.limit import local_part

_Side = Literal["load", "store"]
_SIDES: tuple[_Side, ...] = ("load", "store")

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
_CACHES = frozenset({"l1", "l2"})


class _Use(Struct, frozen=True):
    """How one side, loads or stores, uses the sectors it touches.

    Attributes:
        used: Share of the bytes of its sectors that are requested, 0 to 1.
        sectors: Sectors it touches; None if only the ratio is known.
        said: The part of the sentence with the numbers of the evidence.
        apart: The addresses of a warp are scattered; False if they touch the fewest possible sectors.
    """

    used: float
    sectors: float | None
    evidence: tuple[Evidence, ...]
    said: str
    confidence: Confidence = "high"
    apart: bool = True


def uncoalesced_global_load(facts: Facts) -> FindingDraft | None:
    """Say that global loads touch more sectors than the bytes they ask for would fill."""
    return _uncoalesced(facts, "load")


def uncoalesced_global_store(facts: Facts) -> FindingDraft | None:
    """Say that global stores touch more sectors than the bytes they write would fill."""
    return _uncoalesced(facts, "store")


def _uncoalesced(facts: Facts, side: _Side) -> FindingDraft | None:
    least, opcodes = facts.limits.little_share, facts.kernel.warp_opcodes
    if side == "store" and executed(opcodes, _ATOMIC) and not executed(opcodes, ("STG", "ST", THREAD_COPY)):
        return None  # the sectors are those of atomics
    use = next((use for use in _uses(facts, side) if 1 - use.used >= least), None)
    if use is None:
        return None
    waste = _waste(facts, side, 1 - use.used, use.sectors)
    is_much = use.sectors is not None or (excess := _excess_of_all(facts)) is None or excess >= least
    is_shifted = use.apart and _is_shifted(facts, side, use)
    fills_cache = facts.limiter is not None and facts.limiter.resource in _CACHES
    verb = "read"
    wider = "loads per thread, or keep in shared memory what all threads of a warp read"
    if side == "store":
        verb = "write"
        wider = "stores per thread, or let more threads of a warp write"
    kind: MoveKind = "wide"
    move = f"use wider {wider}: {use.said}"
    if is_shifted:
        kind = "coalesce"
        move = f"start rows on 32-byte boundaries (pad the row or shift the halo): {use.said}"
    elif use.apart and (shape := _upright_block(facts.kernel.block)):
        kind = "shape"
        x, y, _ = facts.kernel.block or (1, 1, 1)
        how = "turn the block shape" if y > x else f"choose a block shape that is wide along x, such as {_WIDE_BLOCK}"
        move = f"{how}, as the threads of a warp lie along y in blocks of {shape}: {use.said}"
    elif use.apart:
        kind = "coalesce"
        move = f"let neighbouring threads {verb} neighbouring addresses: {use.said}"
        hits = facts.counter("l1_hit_rate")
        if side == "load" and hits is not None and hits >= facts.limits.most_share:
            move += f"; or load 16 bytes at once per thread, as L1 serves {percent(hits)} of the sectors again"
    return FindingDraft(
        evidence=use.evidence,
        move=move,
        waste=waste,
        where=places(facts.kernel, f"{side}_excess_sectors"),
        confidence=use.confidence,
        severity=weigh(facts, waste) if use.apart and is_much and (fills_cache or not is_shifted) else "note",
        kind=kind,
    )


_WIDE_BLOCK = "32 x 8"
"""The shape of a block whose warps lie along x."""


def _upright_block(block: tuple[int, int, int] | None) -> str:
    """Return the shape of blocks with fewer threads along x than fill a sector, and no fewer along y; else nothing."""
    x, y, z = block or (WARP_THREADS, 1, 1)
    return f"{x} x {y}" + (f" x {z}" if z > 1 else "") if x < SECTOR_BYTES // WORD_BYTES and y * z >= max(x, 2) else ""


def _uses(facts: Facts, side: _Side) -> Iterator[_Use]:
    """Yield how well one side uses its sectors; measurements by instruction come first.

    The width of the opcodes and the sectors per request are used only if neither these nor the hardware count bytes.
    """
    totals, (sectors_name, requests_name) = facts.kernel.code_totals, _HARDWARE[side]
    by_address, excess = totals.get(f"{side}_sectors"), totals.get(f"{side}_excess_sectors")
    is_told = bool(by_address) and excess is not None
    if by_address and excess is not None:
        source, part = "memory_l2_theoretical_sectors_global, _ideal by instruction", excess / by_address
        yield _Use(
            used=1 - part,
            sectors=by_address,
            evidence=(
                Evidence(f"{side}_excess_share", part, "share", source),
                Evidence(f"{side}_sectors", by_address, "sectors", source),
            ),
            said=f"global {side}s waste {percent(part)} of their {si_of(by_address, 'sectors')}",
        )
    sectors, requests = facts.counter(sectors_name), facts.counter(requests_name)
    if used_bytes := facts.counter(f"global_{side}_bytes_per_sector"):
        yield _Use(
            used=min(1.0, used_bytes / SECTOR_BYTES),
            sectors=sectors,
            evidence=(facts.measured(f"global_{side}_bytes_per_sector", "bytes/sector"),),
            said=f"global {side}s use {significant(used_bytes)} of the 32 bytes of each sector",
            apart=not is_told,
        )
    if not any(f"{one}_sectors" in totals or facts.counter(_HARDWARE[one][0]) for one in _SIDES) and not used_bytes:
        yield from _uses_of_both(facts, side)
    if is_told or used_bytes or not sectors:
        return
    opcodes, most = facts.kernel.thread_opcodes.items(), _WIDEST_SECTORS
    asked_bytes = sum(n * access_bytes(opcode) for opcode, n in opcodes if opcode.partition(".")[0] in _OPCODES[side])
    if asked_bytes:  # an upper bound of the used bytes, as threads may share them
        a_sector = asked_bytes / sectors
        source = "opcode widths x threads / sectors"
        yield _Use(
            used=min(1.0, a_sector / SECTOR_BYTES),
            sectors=sectors,
            evidence=(
                Evidence(f"global_{side}_bytes_per_sector", a_sector, "bytes/sector", source),
                facts.measured(sectors_name, "sectors"),
            ),
            said=f"global {side}s use at most {significant(a_sector)} of the 32 bytes of each of their "
            f"{si_of(sectors, 'sectors')}",
            confidence="medium",
        )
    wasted = _wasted_of_both(facts, side)
    if wasted is not None and wasted > 0:
        part, source = (
            wasted / sectors,
            "memory_l2_theoretical_sectors_global, _ideal, and what one side can waste of it",
        )
        yield _Use(
            used=1 - part,
            sectors=sectors,
            evidence=(
                Evidence(f"{side}_excess_share", part, "share", source),
                facts.measured(sectors_name, "sectors"),
            ),
            said=f"global {side}s waste {percent(part)} of their {si_of(sectors, 'sectors')}",
            confidence="medium",
        )
    if requests and sectors / requests > most:  # more than coalesced accesses of 16 bytes per thread need
        a_request = sectors / requests
        name = f"global_{side}_sectors_per_request"
        yield _Use(
            used=most / a_request,
            sectors=sectors,
            evidence=(Evidence(name, a_request, "sectors/request", "sectors / requests"),),
            said=f"global {side}s take {significant(a_request)} sectors per request, a coalesced one at most "
            f"{significant(most)}",
            confidence="medium",
        )


def _wasted_of_both(facts: Facts, side: _Side) -> float | None:
    """Return the unnecessary sectors of one side, if they were counted for both together; None if unknown.

    A request needs at least one sector, so what the other side cannot have wasted was wasted by this side. If the
    requests of this side take far more sectors than the other's, it is assumed to have wasted all it can. In public
    reports that also count by instruction, this finds 55 of 73 sides that waste a fifth or more, and none that wastes
    less.
    """
    other: _Side = "store" if side == "load" else "load"
    touched, ideal = facts.counter("global_touched_sectors"), facts.counter("global_ideal_sectors")
    (sectors, requests), others = map(facts.counter, _HARDWARE[side]), map(facts.counter, _HARDWARE[other])
    other_sectors, other_requests = others
    if touched is None or ideal is None or sectors is None or other_sectors is None or other_requests is None:
        return None
    if not requests:
        return None
    can, other_can = sectors - requests, other_sectors - other_requests
    is_worse = sectors * other_requests >= facts.limits.far_more * other_sectors * requests
    return min(can, touched - ideal if is_worse else touched - ideal - other_can)


def _uses_of_both(facts: Facts, side: _Side) -> Iterator[_Use]:
    """Yield what is known if loads and stores are counted together, as in NVIDIA's sentences.

    It is attributed to the loads, unless only the stores are known to have too many sectors per request.
    """
    touched, ideal = facts.counter("global_touched_sectors"), facts.counter("global_ideal_sectors")
    a_request = {one: facts.counter(f"global_{one}_sectors_per_request") for one in _SIDES}
    loads_are_told = a_request["load"] is not None or facts.counter("global_load_bytes_per_sector") is not None
    stores_are_told = a_request["store"] is not None or facts.counter("global_store_bytes_per_sector") is not None
    only_stores = stores_are_told and not loads_are_told
    own, most = a_request[side], _WIDEST_SECTORS
    if touched and ideal is not None and (side == "store") is only_stores:
        part, source = max(0.0, 1 - ideal / touched), "memory_l2_theoretical_sectors_global, _ideal"
        said = f"global accesses waste {percent(part)} of their {si_of(touched, 'sectors')}"
        evidence = [
            Evidence("excess_share", part, "share", source),
            Evidence("sectors", touched, "sectors", source),
        ]
        if own is not None:
            evidence.append(facts.measured(f"global_{side}_sectors_per_request", "sectors/request"))
            said += f", and a request of {side}s takes {significant(own)}"
        yield _Use(used=1 - part, sectors=touched, evidence=tuple(evidence), said=said, confidence="medium")
    elif own is not None and own > most:
        yield _Use(
            used=most / own,
            sectors=None,
            evidence=(facts.measured(f"global_{side}_sectors_per_request", "sectors/request"),),
            said=f"global {side}s take {significant(own)} sectors per request, a coalesced one at most "
            f"{significant(most)}",
            confidence="medium",
        )


def access_bytes(opcode: str) -> int:
    """Return how many bytes one thread requests with a load or store: 4 unless its opcode says otherwise."""
    widths = [int(match[1]) // 8 for part in opcode.split(".")[1:] if (match := _WIDTH_BITS.match(part))]
    return widths[-1] if widths else WORD_BYTES


def _is_shifted(facts: Facts, side: _Side, use: _Use) -> bool:
    """Return whether accesses are to rows that merely start within a sector.

    Then whole warps take at most one sector more than they fill. This is judged by the instructions that waste most, if
    they are counted separately, else by the mean access.
    """
    sectors, excess, whole = f"{side}_sectors", f"{side}_excess_sectors", facts.limits.active_threads
    rows = [
        (spot.get(sectors, 0.0), spot[excess], spot.get("warp_inst", 0.0), spot.get("thread_inst", 0.0))
        for spot in (spot.measures for spot in hottest(facts.kernel.hotspots, excess, by="sass"))
    ]
    if not rows:
        requests, threads = facts.counter(_HARDWARE[side][1]), facts.counter("threads_per_inst")
        accesses = requests or executed(facts.kernel.warp_opcodes, _OPCODES[side])
        if use.sectors is None or not accesses:
            return False
        lanes = accesses * threads if threads is not None else math.inf
        rows = [(use.sectors, use.sectors * (1 - use.used), accesses, lanes)]
    return all(
        lanes >= whole * accesses
        and more <= (1 + facts.limits.negligible_share) * accesses
        and touched - more >= 2 * accesses
        for touched, more, accesses, lanes in rows
    )


def _waste(facts: Facts, side: _Side, wasted: float, sectors: float | None) -> Waste:
    """Return what the waste keeps busy: L1, and L2 and DRAM if they move more than all accesses request.

    Caches may serve the rest of a sector to another warp: then what is behind them moves nothing in vain.
    """
    totals, counters = facts.kernel.code_totals, facts.kernel.counters
    other_side: _Side = "store" if side == "load" else "load"
    other_sectors = counters.get(_HARDWARE[other_side][0], 0.0)
    own, other = sectors or 0.0, other_sectors
    local = counters.get("local_load_sectors", 0.0) + counters.get("local_store_sectors", 0.0)
    if f"{side}_sectors" in totals:
        own, other = totals[f"{side}_sectors"], totals.get(f"{other_side}_sectors", 0.0)
        local = totals.get("local_sectors", 0.0)
    part = wasted * (own / (own + other + local) if own else 1.0)
    if sectors is None and (excess := _excess_of_all(facts)) is not None:
        part = min(part, excess)
    moved_bytes, ideal = counters.get("dram_bytes"), counters.get("global_ideal_sectors")
    touched = own + other + local if own else counters.get("global_touched_sectors")
    if moved_bytes and touched:  # what DRAM moves beyond all these sectors went through the caches, too
        part *= min(1.0, touched * SECTOR_BYTES / moved_bytes)
    parts = {"l1": _of_l1(facts, part), "l2": part}
    hits, wanted = counters.get("l1_hit_rate"), ratio(ideal, counters.get("global_touched_sectors"))
    if side == "load" and hits is not None and wanted is not None:
        # What L1 has need not be fetched again: of what it lacks, no more than is asked for.
        parts["l2"] = min(part, max(0.0, 1 - wanted / (1 - hits)) if hits < 1 else 0.0)
    if side == "store" and sectors is None and (through := ratio(facts.shares.get("l2"), facts.shares.get("l1"))):
        parts["l1"] = min(parts["l1"], through)  # what is stored passes L2, too, and L2 is no busier than that
    if ideal is None and sectors:
        ideal = sectors * (1 - wasted) + other_sectors
    surplus = 1 - ideal * SECTOR_BYTES / moved_bytes if moved_bytes and ideal is not None else 0.0
    if surplus > 0:
        parts["dram"] = min(part, surplus)
    return Waste(parts, waits=part, stalls=_STALLS[side])


def _excess_of_all(facts: Facts) -> float | None:
    """Return the share of all global sectors that no access needs, 0 to 1, which bounds the waste of one side."""
    touched, ideal = facts.counter("global_touched_sectors"), facts.counter("global_ideal_sectors")
    return max(0.0, 1 - ideal / touched) if touched and ideal is not None else None


def accesses_of_l1(facts: Facts, part: float) -> float:
    """Return the share of L1's work that goes with a share of the access instructions, 0 to 1; 0 if unknown.

    Each takes a slot of L1's input, and a pass through its data stage at least: of several passes the others may be
    those of the addresses, which stay.
    """
    level, (passes, _) = facts.levels["l1"], _passes_of_an_access(facts)
    if not level.share or passes is None:
        return 0.0
    spared = {LSU_INPUT: part, DATA: part / max(1.0, passes)}
    return 1 - max(share * (1 - spared.get(name, 0.0)) for name, share in level.stages.items()) / level.share


def _passes_of_an_access(facts: Facts) -> tuple[float | None, str]:
    """Return the wavefronts of L1 for each instruction of the LSU, by their numbers or their shares, and the source."""
    counters = facts.kernel.counters
    moved, asked = counters.get("l1_data_bytes"), counters.get("lsu_inst")
    if (each := ratio(moved and moved / WAVEFRONT_BYTES, asked)) is not None:
        return each, "wavefronts of L1 / LSU instructions"
    each = ratio(counters.get("l1_data_share"), _taken_a_cycle(facts, "l1_lsu_input_share"))
    return each, "l1tex__data_pipe_lsu_wavefronts / l1tex__lsuin_requests, by their shares of peak"


def _of_l1(facts: Facts, part: float) -> float:
    """Return the share of L1's work that belongs to a share of its sectors, 0 to 1.

    An instruction passes L1's input once, however many sectors it touches: a full input stays full. Data of shared
    memory also pass, but are not sectors.
    """
    level, shared = facts.levels["l1"], facts.shares.get("smem", 0.0)
    part *= max(0.0, 1 - shared / level.share) if level.share else 1.0
    stages, input_share = dict(level.stages), level.stages.get(LSU_INPUT, facts.counter("sol_sm_memory_share"))
    if not level.share or not input_share:
        return part
    stages[LSU_INPUT] = input_share  # of the memory pipes, where a print has no more
    if (whole := stages.pop(WHOLE, None)) is not None and whole > input_share * (1 + facts.limits.negligible_share):
        stages[WHOLE] = whole
    left = max(share if name == LSU_INPUT else share * (1 - part) for name, share in stages.items())
    return max(0.0, 1 - left / level.share)


class _Conflicts(Struct, frozen=True):
    """Wavefronts of shared memory, and those that conflicts add.

    Attributes:
        by_address: Calculated from the addresses of each instruction; False if replays were counted, which include
            other traffic that meets in the banks.
    """

    wavefronts: float
    excess: float
    what: str
    source: str
    by_address: bool

    @property
    def part(self) -> float:
        """Return the share of the wavefronts that conflicts add, 0 to 1."""
        return self.excess / self.wavefronts


def bank_conflicts(facts: Facts) -> FindingDraft | None:
    """Say that accesses to shared memory take more passes than their bytes would need."""
    measures, least = [*_conflicts(facts)], facts.limits.little_share
    conflicts = next((measure for measure in measures if measure.part >= least), None)
    if conflicts is None:
        return None if measures else _conflicts_alone(facts)
    collide_only = not conflicts.by_address and measures[0].by_address
    all_bytes, ideal = facts.counter("l1_shared_data_bytes"), conflicts.wavefronts - conflicts.excess
    of_all = min(1.0, conflicts.wavefronts * WAVEFRONT_BYTES / all_bytes) if all_bytes else 1.0
    stalls = ("short_scoreboard", "mio_throttle")
    parts = {"smem": conflicts.part * of_all}
    if (smem := facts.shares.get("smem")) and (l1 := facts.shares.get("l1")):  # the same data stage serves both
        parts["l1"] = parts["smem"] * min(1.0, smem / l1)
    waste = Waste(parts, waits=conflicts.part, stalls=stalls)
    evidence = [
        Evidence("conflict_share", conflicts.part, "share", conflicts.source),
        Evidence("wavefronts", conflicts.wavefronts, "wavefronts", conflicts.source),
    ]
    wasted, passes = percent(conflicts.part), f"passes of {conflicts.what}"
    said = f"bank conflicts waste {wasted} of the {passes}"
    if ideal and not collide_only:
        ways = conflicts.wavefronts / ideal
        evidence.append(Evidence("conflict_ways", ways, "wavefronts/access", conflicts.source))
        said = f"bank conflicts waste {wasted} of the passes, {significant(ways)} per access"
    move = f"pad or swizzle shared memory: {said}"
    if collide_only:
        move = (
            f"keep its shared-memory layout: {wasted} of the {passes} are replays, but each warp's addresses are free "
            "of conflicts, so these are collisions with other traffic"
        )
    return FindingDraft(
        evidence=tuple(evidence),
        move=move,
        waste=waste,
        where=places(facts.kernel, "shared_excess_wavefronts"),
        confidence="low" if collide_only else "high" if conflicts.by_address else "medium",
        severity="note" if collide_only else weigh(facts, waste),
    )


def _conflicts(facts: Facts) -> Iterator[_Conflicts]:
    """Yield the conflicts by address, then as counted: of the side with more of them, else of all accesses."""
    counters, totals, sources = facts.kernel.counters, facts.kernel.code_totals, facts.kernel.counter_sources
    wavefronts, excess = totals.get("shared_wavefronts"), totals.get("shared_excess_wavefronts")
    if wavefronts is None or excess is None:
        wavefronts, ideal = counters.get("smem_access_wavefronts"), counters.get("smem_ideal_wavefronts")
        excess = None if wavefronts is None or ideal is None else max(0.0, wavefronts - ideal)
    what = "shared memory"
    if wavefronts and excess is not None:
        source = "memory_l1_wavefronts_shared, memory_l1_wavefronts_shared_ideal"
        yield _Conflicts(wavefronts, excess, what, source, by_address=True)
    sides = []
    for side in ("load", "store"):
        excess_name = f"smem_{side}_conflict_wavefronts"
        excess, wavefronts = counters.get(excess_name), counters.get(f"smem_{side}_wavefronts")
        if excess is not None and wavefronts:
            source = sources.get(excess_name, "")
            sides.append(_Conflicts(wavefronts, excess, f"shared {side}s", source, by_address=False))
    excess, all_bytes = counters.get("smem_conflict_bytes"), counters.get("l1_shared_data_bytes")
    if sides:
        yield max(sides, key=lambda side: side.part)
    elif excess is not None and all_bytes:
        source, wavefronts = sources.get("smem_conflict_bytes", ""), all_bytes / WAVEFRONT_BYTES
        yield _Conflicts(wavefronts, excess / WAVEFRONT_BYTES, what, source, by_address=False)


def _conflicts_alone(facts: Facts) -> FindingDraft | None:
    """Say that conflicts were counted where the accesses were not: by the cycles that they take, else by the warps.

    Each is a pass through L1's data stage, of which an SM has so many a cycle.
    """
    counters, names = facts.kernel.counters, [f"smem_{side}_conflict_wavefronts" for side in _SIDES]
    counted = {name: counters[name] for name in names if counters.get(name)}
    total, source = sum(counted.values()), " + ".join(facts.kernel.counter_sources.get(name, name) for name in counted)
    sms, cycles = counters.get("sm_count"), counters.get("elapsed_cycles") or counters.get("sm_cycles_elapsed_avg")
    warps = (counters.get("grid_size") or 0.0) * warps_of(counters.get("block_size") or 0.0)
    part = ratio(total, sms and cycles and sms * cycles * wavefronts_a_cycle(facts.kernel))
    each = ratio(total, warps)
    if part is not None and part >= facts.limits.little_share:
        by = Evidence("cycles of an SM with a conflict", part, "share", f"{source} / (SMs x cycles)")
        words = f"bank conflicts take {percent(part)} of the cycles of an SM"
    elif part is None and each is not None and each >= facts.limits.several:
        by = Evidence("conflicts a warp", each, "wavefronts", f"{source} / warps")
        words = f"each warp meets {significant(each)} bank conflicts, in how many accesses was not counted"
    else:
        return None
    return FindingDraft(
        evidence=(Evidence("conflicts", total, "wavefronts", source), by),
        move=f"pad or swizzle shared memory: {words}",
        bears_on=frozenset({"smem", "l1", LATENCY}),
        confidence="low" if part is None else "medium",
        severity="contributes",
    )


_WIDEST_WAVEFRONTS = WARP_THREADS * WIDEST_BYTES / WAVEFRONT_BYTES
"""Wavefronts that a coalesced access of the widest kind takes: no access needs more."""
_WIDEST_SECTORS = WARP_THREADS * WIDEST_BYTES / SECTOR_BYTES
_LSU_EACH_CYCLE: Mapping[str, float] = {
    **dict.fromkeys(("7.0", "8.0", "9.0"), 1.0),
    **dict.fromkeys(("7.5", "8.6", "8.9", "12.0"), 0.5),
}
"""Instructions that the LSU of an SM takes a cycle: it has 32 lanes on the chips for HPC, and 16 on the others."""
_OPERANDS_PAST_LSU = (9, 0)
"""From here on matrix instructions read shared memory themselves."""
_ACCESSES_COUNTED = (
    *("global_load_sectors", "global_store_sectors", "global_load_bytes_per_sector", "global_store_bytes_per_sector"),
    *("smem_access_wavefronts", "smem_load_conflict_wavefronts", "smem_conflict_bytes"),
)
"""Counters of addresses: any of them separates uncoalesced accesses from bank conflicts."""


def many_wavefronts(facts: Facts) -> FindingDraft | None:
    """Say that a memory instruction takes more passes through L1 than any coalesced one, if nothing shows which."""
    kernel, counters = facts.kernel, facts.kernel.counters
    totals = ("load_sectors", "store_sectors", "shared_wavefronts")
    if any(name in kernel.code_totals for name in totals) or any(name in counters for name in _ACCESSES_COUNTED):
        return None
    if (
        facts.shares.get("tensor_pipe", 0.0)
    ) > TENSOR_NOISE_SHARE:  # matrix operands are wavefronts without an instruction
        return None
    each, source = _passes_of_an_access(facts)
    if each is None and kernel.capability < _OPERANDS_PAST_LSU:
        # The SM's per cent covers its LSU: no more instructions than that reach L1.
        stages = facts.levels["l1"].stages
        busy = stages[DATA] * wavefronts_a_cycle(kernel) if DATA in stages else stages.get(WHOLE)
        each = ratio(busy, _taken_a_cycle(facts, "sol_compute"))
        source = "L1's per cent / (sm__throughput x LSU instructions a cycle), at least"
    if each is None and kernel.capability < _OPERANDS_PAST_LSU:
        # Half of L1's per cent where it counts requests to L2 twice, and of as many instructions as any chip takes.
        busy, part = counters.get("sol_l1_active_share"), kernel.active_part
        each = ratio(busy and part and busy * part / 2, _taken_a_cycle(facts, "sol_compute", 1.0))
        source = "half of L1's per cent / (sm__throughput x LSU instructions a cycle), at least"
    if each is None or 1 - _WIDEST_WAVEFRONTS / each < facts.limits.little_share:
        return None
    part = 1 - _WIDEST_WAVEFRONTS / each
    has_smem = kernel.program_smem_bytes != 0
    waste = Waste({"l1": part, "smem" if has_smem else "l2": part})
    severity = weigh(facts, waste)
    if (
        severity == "note"
        and facts.bound == "latency"
        and facts.shares.get("l1", 0.0) >= facts.limits.contributing_share
    ):
        # Warps wait for each of these passes, and no stall shows how long.
        severity = "limiter" if part >= facts.limits.limiting_waste_share and not facts.stall_shares else "contributes"
    passes = f"each access takes {significant(each)} L1 passes; a coalesced one needs at most 4"
    kind: MoveKind = "coalesce"
    move = f"let neighbouring threads use neighbouring addresses: {passes}"
    if works_in_shared_memory(kernel):
        kind = "pad"
        move = f"pad or swizzle shared memory, or let neighbouring threads use neighbouring addresses: {passes}"
    return FindingDraft(
        evidence=(Evidence("wavefronts_per_instruction", each, "wavefronts/instruction", source),),
        move=move,
        waste=waste,
        confidence="medium",
        severity=severity,
        kind=kind,
    )


def _taken_a_cycle(facts: Facts, share: str, otherwise: float = 0.0) -> float | None:
    """Return how many instructions a cycle the LSU of an SM takes, by a per cent of it.

    None where that is too small to divide by: ncu prints hundredths of a per cent, and a unit that idles tells nothing.
    """
    taken = facts.counter(share)
    if taken is None or taken < facts.limits.trace_share:
        return None
    return taken * _LSU_EACH_CYCLE.get(facts.kernel.compute_capability or "", otherwise)


def indexed_constants(facts: Facts) -> FindingDraft | None:
    """Say that constants are loaded with an index known only at run time, which fills the address pipe."""
    kernel, busy = facts.kernel, facts.shares.get("adu")
    loads, every = executed(kernel.warp_opcodes, {"LDC"}), sum(kernel.warp_opcodes.values())
    # Without a share of their pipe, twice as many are required.
    if not every or loads < (1 if busy is not None else 2) * facts.limits.negligible_share * every:
        return None
    is_indexed = kernel.inside is not None and kernel.inside.indexes_constants
    is_idle = busy is not None and busy < facts.limits.contributing_share
    if is_idle or (kernel.capability >= _PARAMETERS_BY_LOAD and not is_indexed):
        return None
    part, parts = loads / every, {"issue": loads / every}
    evidence = [Evidence("constant loads", part, "share", "sass__inst_executed_per_opcode_with_modifier_all")]
    words = f"loads of constants by an index known at run time only are {percent(part)} of the instructions"
    if busy is not None:
        parts["adu"] = min(1.0, ratio(loads, facts.pipes["adu"].amount) or 1.0)
        evidence.append(Evidence("ADU", busy, "share", facts.pipes["adu"].source))
        words = f"{words} and keep the ADU {percent(busy)} busy"
    waste = Waste(parts)
    return FindingDraft(
        evidence=tuple(evidence),
        move="unroll the loop so that the index of its constants is one itself, or hold them in registers or shared "
        f"memory: {words}",
        waste=waste,
        changes="instructions",
    )


_PARAMETERS_BY_LOAD = (9, 0)
"""From here on compilers load parameters, too, and not only what is indexed."""


def local_memory(facts: Facts) -> FindingDraft | None:
    """Say that part of the memory traffic is local memory."""
    kernel, counters = facts.kernel, facts.kernel.counters
    part, noun, source = local_part(kernel), "sectors", "sectors of local / of local and global memory"
    if part is None:
        if kernel.warp_opcodes:
            inst, other = (executed(kernel.warp_opcodes, ops) for ops in (("LDL", "STL"), ("LDG", "STG", "LD", "ST")))
        else:
            inst = counters.get("local_load_inst", 0.0) + counters.get("local_store_inst", 0.0)
            other = sum(counters.get(name, 0.0) for name in ("global_load_requests", "global_store_requests"))
        part = inst / (inst + other) if inst and other else None
        noun, source = "memory instructions", "local / local and global memory instructions"
        if part is None and inst:
            part, noun, source = _of_instructions(facts, inst)
        elif part is None and (part := _beyond_global(facts)) is not None:
            noun, source = "bytes", "1 - sectors of global accesses x 32 / bytes of DRAM, at least"
    filled = _filled(facts)
    if part is None and filled:
        return _uncounted_local_memory(facts, filled)
    if not part:
        return None
    if part < facts.limits.trace_share and not filled:
        return None
    waste = Waste({"l1": part, "l2": part, "dram": part}, waits=part, stalls=("long_scoreboard", "lg_throttle"))
    rows = (("spill_inst", "instructions"), ("spill_requests", "requests"))
    spills = [facts.measured(name, unit) for name, unit in rows if name in counters]
    shown = [spill for spill in spills if spill.value]
    registers = (facts.measured("registers_per_thread", "registers"),) if counters.get("registers_per_thread") else ()
    words = [f"{percent(part)} of its {noun} go to local memory"]
    words += [f"{quantity(one.value, '')} of 32 bytes of each sector is used" for one in filled]
    words += [f"{si_of(one.value, one.unit)} are spills" for one in shown]
    cap = register_cap(kernel)
    is_cap_known = cap is not None and bool(registers)
    return FindingDraft(
        evidence=(Evidence("local_share", part, "share", source), *filled, *shown, *registers),
        move=_keep_in_registers(kernel, cap, ", ".join(words), spills=bool(shown) if spills else None),
        bears_on=waste.bears_on,
        gain=None if noun == _OF_ALL else speedup(facts, waste),
        where=places(kernel, "local_sectors"),
        confidence="high" if spills else "medium" if is_cap_known else "low",
        # Of all instructions they are a part that says nothing of what they cost among the accesses.
        severity="contributes" if noun == _OF_ALL else weigh(facts, waste),
    )


def _of_instructions(facts: Facts, local: float) -> tuple[float | None, str, str]:
    """Hold local loads and stores against the instructions of their kind, else against all; None if these are few."""
    if every := facts.counter("lsu_inst"):
        return local / every, "loads and stores", "local loads and stores / instructions of the LSU pipe"
    part = ratio(local, facts.counter("executed_inst"))
    is_told = part is not None and part >= facts.limits.noise_share
    return part if is_told else None, _OF_ALL, "local loads and stores / all instructions"


_OF_ALL = "instructions"


def _beyond_global(facts: Facts) -> float | None:
    """Return the share of DRAM's bytes that global accesses cannot have moved, if local memory is all that is left.

    None where little is, or where copies of whole tiles or textures may have moved it; so it is not told of chips with
    TMA, nor where opcodes or local accesses are counted.
    """
    touched, moved_bytes = facts.counter("global_touched_sectors"), facts.counter("dram_bytes")
    is_counted = facts.kernel.warp_opcodes or any(name.startswith("local_") for name in facts.kernel.counters)
    if not touched or not moved_bytes or is_counted or facts.counter("tex_inst"):
        return None
    part = 1 - touched * SECTOR_BYTES / moved_bytes
    has_tma = facts.kernel.capability >= _TILES_BY_COPY
    return None if has_tma or 1 / (1 - part) < facts.limits.several else part


_TILES_BY_COPY = (9, 0)
"""From here on TMA copies tiles past the accesses whose addresses are looked at."""


def _uncounted_local_memory(facts: Facts, filled: tuple[Evidence, ...]) -> FindingDraft:
    """Say that there is local memory, if only the used bytes of its sectors are known, as in a print."""
    words = f"{quantity(filled[0].value, '')} of 32 bytes of each of its sectors is used, and their number is not told"
    return FindingDraft(
        evidence=filled,
        move=_keep_in_registers(facts.kernel, register_cap(facts.kernel), words, spills=None),
        bears_on=frozenset({"l1", "l2", "dram"}),
        confidence="low",
        severity="note",
    )


def _filled(facts: Facts) -> tuple[Evidence, ...]:
    """Say how few bytes of a sector local accesses use, the worse of loads and stores; nothing if they use all."""
    names = ("local_load_bytes_per_sector", "local_store_bytes_per_sector")
    known = [facts.measured(name, "bytes/sector") for name in names if facts.counter(name)]
    most = SECTOR_BYTES * (1 - facts.limits.little_share)
    return tuple(sorted((one for one in known if one.value < most), key=lambda one: one.value)[:1])


def register_cap(kernel: Kernel) -> int | None:
    """Return how many registers a thread can have for its block to fit on an SM; None without a block size."""
    threads = kernel.counters.get("block_size")
    if not threads:
        return None
    cap = SM_REGISTERS // (warps_of(int(threads)) * WARP_THREADS) // SAME_REGISTERS * SAME_REGISTERS
    return min(MOST_REGISTERS, cap)


def _keep_in_registers(kernel: Kernel, cap: int | None, words: str, *, spills: bool | None) -> str:
    """Choose the move by the spills or, if they are not counted (None), by the registers in use."""
    used = kernel.counters.get("registers_per_thread")
    if not used or cap is None:
        return f"keep it in registers: {words}; keep fewer values live, and index arrays with constants"
    at_cap, registers = used > cap - SAME_REGISTERS, f"{used:.0f} registers per thread"
    if spills is False or (spills is None and not at_cap):
        raised = "" if at_cap else f", or raise launch bounds or `-maxrregcount` if they cap the {registers}"
        held = f" (it has {registers})" if at_cap else ""
        return f"index arrays with constants, by unrolling the loops over them{raised}: {words}{held}"
    if not at_cap:
        return f"raise launch bounds or `-maxrregcount`, which cap the {registers}: {words}"
    if cap == MOST_REGISTERS:
        return f"keep fewer values live, with smaller tiles or less unrolling: {words}, at {registers}, the most"
    return (
        f"use smaller blocks, or keep fewer values live: {words}, as blocks of {kernel.counters['block_size']:,.0f} "
        f"threads leave {cap} registers per thread, of which {used:.0f} are in use"
    )


_OVER_LINK = {"host_read_rate": "are read from", "host_write_rate": "are written to"}


def host_memory(facts: Facts) -> FindingDraft | None:
    """Say that the kernel works on data in the host's memory, over PCIe or NVLink-C2C."""
    flows = [flow for flow in (_host_flow(facts, "read"), _host_flow(facts, "write")) if flow is not None]
    if not flows or facts.kernel.compute_capability in SOC_CAPABILITIES:
        return None
    rate, link = max(flows, key=lambda flow: flow[0].value)
    # The share of L2's fills that comes from the host.
    host, device = facts.counter("host_fill_share"), facts.counter("device_fill_share")
    part = None
    if host is not None and device is not None and host + device:
        source = "lts__d_sectors_fill_sysmem / (lts__d_sectors_fill_sysmem + lts__d_sectors_fill_device)"
        part = Evidence("host_part_of_fills", host / (host + device), "share", source)
    severity = _host_severity(facts, link.value if link else None, part.value if part else 0.0)
    if severity is None:
        return None
    words = f"{si(rate.value, rate.unit)} {_OVER_LINK[rate.name]} the host's memory"
    words += f", {percent(link.value)} of what its link carries in that direction" if link else ""
    words += f"; {percent(part.value)} of the sectors that L2 fills come from there" if part else ""
    # With the data in DRAM, DRAM moves these bytes too, and only waits measured to be for memory disappear.
    waiting = sum(facts.stall_shares.get(reason, 0.0) for reason in ("long_scoreboard", "lg_throttle", "drain"))
    peak = facts.levels["dram"].peak_bytes_per_s
    dram = facts.shares.get("dram", 0.0) + rate.value / peak if peak else 0.0
    left = max(dram, 1 - waiting if waiting else 0.0, *facts.shares.values(), 0.0)
    return FindingDraft(
        evidence=tuple(one for one in (rate, link, part) if one is not None),
        move="copy the data to the GPU before the launch, or prefetch it if it is managed; "
        f"leave on the host only what is used once, and read that in aligned rows of 128 bytes: {words}",
        bears_on=frozenset({LATENCY}),
        gain=facts.without_wait(1 / left) if left else None,
        where=places(facts.kernel, f"{STALL}long_scoreboard"),
        confidence="high" if link else "medium",
        severity=severity,
    )


def _host_flow(facts: Facts, way: Literal["read", "write"]) -> tuple[Evidence, Evidence | None] | None:
    """Return the rate in one direction, and its share of the link if known; None if there is hardly any traffic."""
    name, time_ns = f"host_{way}_bytes", facts.kernel.duration_ns
    moved_bytes = facts.counter(name)
    if moved_bytes is None or moved_bytes < facts.limits.noise_bytes or not time_ns:
        return None
    source = facts.measured(name, "B").source
    rate = Evidence(f"host_{way}_rate", moved_bytes / time_ns * NS_PER_S, "B/s", f"{source} / t")
    link = roof("host_link", facts.kernel)
    share = rate.value / link.value if link is not None else None
    if link is None or share is None or share > 1 + facts.limits.noise_share:
        return rate, None
    return rate, Evidence(f"host_{way}_share", share, "share", f"{source} / t / ({link.of})")


def _host_severity(facts: Facts, share: float | None, part: float) -> Severity | None:
    """Judge how much the link matters: it limits if it is as full as it can get, and no unit is fuller.

    A small share costs time only if warps wait, and mostly for data from there.
    """
    if share is not None and share >= facts.limits.quarter_share:
        limiter = facts.limiter.share if facts.limiter else 0.0
        if share >= limiter:
            return "limiter"
        return "note" if facts.at_roof else "contributes"
    some = share is None or share >= facts.limits.contributing_cost_share
    return "contributes" if some and facts.bound == "latency" and part > facts.limits.most_share else None


_ATOMIC = frozenset({"ATOM", "ATOMG", "RED", "REDG"})
_GLOBAL = frozenset({"LDG", "STG", "LD", "ST", THREAD_COPY}) | _ATOMIC


def contended_atomics(facts: Facts) -> FindingDraft | None:
    """Say that atomics on global memory take up much of L2, or of the time that warps wait."""
    kernel, counters, limits = facts.kernel, facts.kernel.counters, facts.limits
    kinds = (("atomic_inst", "atomic instructions"), ("l2_atomic_sectors", "atomic sectors"))
    sources = kernel.counter_sources
    counted = [(counters[name], noun, sources.get(name, name)) for name, noun in kinds if counters.get(name)]
    if threads := executed(kernel.thread_opcodes, _ATOMIC):
        counted.insert(0, (threads, "atomic operations", "thread instructions by opcode"))
    if not counted:
        return _serialised_in_l2(facts)
    amount, noun, source = counted[0]
    unit, traffic, waits = facts.counter("l2_atomic_share"), _atomic_traffic(counters), _instruction_part(kernel)
    stall = 0.0 if facts.at_roof else stalled(facts, ("long_scoreboard", "lg_throttle", "drain", "membar"))
    cost = max(unit or 0.0, (traffic or 0.0) * facts.shares.get("l2", 0.0), (waits or 0.0) * stall)
    heavy = (traffic or 0.0) >= limits.little_share or (waits or 0.0) >= limits.little_share
    if (unit or 0.0) < limits.little_share and not (heavy and cost >= limits.contributing_cost_share):
        return None
    evidence, said = [Evidence("atomics", amount, noun.rpartition(" ")[2], source)], si_of(amount, noun)
    if unit is not None and unit >= limits.little_share:
        evidence.append(facts.measured("l2_atomic_share", "share"))
        said += f" keep L2's atomic unit {percent(unit)} busy"
    elif traffic is not None and traffic >= limits.little_share:
        evidence.append(Evidence("atomic_traffic_share", traffic, "share", "2 x atomic sectors / sectors in L2"))
        said += f" are {percent(traffic)} of the traffic between SMs and L2"
    elif waits is not None:
        evidence.append(Evidence("atomic_inst_share", waits, "share", "atomic / global memory instructions"))
        said += f" are {percent(waits)} of its accesses to global memory"
    on_l2 = facts.limiter is not None and facts.limiter.resource == "l2"
    severity: Severity = "contributes"
    if cost < limits.contributing_cost_share:
        severity = "note"
    elif (unit or 0.0) >= limits.bound_share or (on_l2 and (traffic or 0.0) >= limits.limiting_waste_share):
        severity = "limiter"
    return FindingDraft(
        evidence=tuple(evidence),
        move=f"reduce within the warp and the block before going to global memory: {said}",
        bears_on=frozenset({"l2", LATENCY}),
        gain=1 / (1 - min(cost, MOST_SPARED)) if cost else None,
        confidence="high" if unit is not None else "medium" if traffic is not None else "low",
        severity=severity,
    )


def _atomic_traffic(counters: Mapping[str, float]) -> float | None:
    """Return the share of atomics, which cross twice, in the traffic between SMs and L2, 0 to 1; None if unknown."""
    sectors, l2_bytes = counters.get("l2_atomic_sectors"), counters.get("l2_bytes")
    if sectors is None or not l2_bytes:
        return None
    return 2 * sectors * SECTOR_BYTES / (l2_bytes + sectors * SECTOR_BYTES)


def works_by_atomics(facts: Facts) -> bool:
    """Return whether a good part of what reaches L2 is atomics, by their sectors or by their instructions."""
    parts = (_atomic_traffic(facts.kernel.counters), _instruction_part(facts.kernel))
    return any((part or 0.0) >= facts.limits.little_share for part in parts)


def _serialised_in_l2(facts: Facts) -> FindingDraft | None:
    """Suspect that atomics queue up where they were not counted: all SMs have work, and of the units only L2 is busy.

    What is loaded or stored passes L1 as well, and what misses L2 goes to DRAM.
    """
    l2, l1, dram = map(facts.shares.get, ("l2", "l1", "dram"))
    l1 = facts.counter("sol_l1_active_share") if l1 is None else l1
    compute = facts.counter("sol_compute")
    active, time_ns = facts.kernel.active_part, facts.kernel.duration_ns
    names = ("atomic_inst", "l2_atomic_sectors", "l2_atomic_share")
    if (
        l2 is None
        or l1 is None
        or dram is None
        or compute is None
        or any(name in facts.kernel.counters for name in names)
    ):
        return None
    if facts.kernel.warp_opcodes or time_ns is None or time_ns < facts.limits.short_duration_ns:
        return None
    is_idle = max(l2, l1, dram, compute) < facts.limits.negligible_share
    if not is_idle or (active or 0.0) < 1 - facts.limits.negligible_share:
        return None
    if l2 < facts.limits.several * max(l1, dram):
        return None
    return FindingDraft(
        evidence=(
            Evidence("L2", l2, "share", "lts__throughput"),
            Evidence("L1", l1, "share", "l1tex__throughput"),
            Evidence("DRAM", dram, "share", "gpu__dram_throughput"),
        ),
        move="if it uses atomics, reduce within the warp and the block before going to global memory: SMs have work "
        f"all the time, and nothing is busy but L2, {percent(l2)} against {percent(l1)} of L1 and {percent(dram)} of "
        "DRAM, as where atomics on few addresses queue up",
        bears_on=frozenset({"l2", LATENCY}),
        confidence="low",
        severity="contributes",
    )


def _instruction_part(kernel: Kernel) -> float | None:
    """Return the share of the accesses to global memory that are atomics, 0 to 1."""
    if kernel.warp_opcodes:
        every = executed(kernel.warp_opcodes, _GLOBAL)
        return executed(kernel.warp_opcodes, _ATOMIC) / every if every else None
    names = ("global_load_requests", "global_store_requests")
    atomics = kernel.counters.get("atomic_inst")
    if atomics is None or not all(name in kernel.counters for name in names):
        return None
    every = atomics + sum(kernel.counters[name] for name in names)
    return atomics / every if every else None


MEMORY: tuple[FindingRule, ...] = (
    FindingRule(
        "uncoalesced_global_load",
        "uncoalesced global loads",
        "coalesce",
        uncoalesced_global_load,
        (
            ("code:load_sectors", "code:load_excess_sectors"),
            ("global_load_bytes_per_sector",),
            ("global_load_sectors", "thread_opcodes"),
            ("global_load_sectors", "global_load_requests"),
            ("global_touched_sectors", "global_ideal_sectors"),
            ("global_load_sectors_per_request",),
        ),
    ),
    FindingRule(
        "uncoalesced_global_store",
        "uncoalesced global stores",
        "coalesce",
        uncoalesced_global_store,
        (
            ("code:store_sectors", "code:store_excess_sectors"),
            ("global_store_bytes_per_sector",),
            ("global_store_sectors", "thread_opcodes"),
            ("global_store_sectors", "global_store_requests"),
            ("global_touched_sectors", "global_ideal_sectors"),
            ("global_store_sectors_per_request",),
        ),
    ),
    FindingRule(
        "local_memory",
        "local memory",
        "spill",
        local_memory,
        (
            ("local_load_sectors", "global_load_sectors"),
            ("local_load_sectors", "global_store_sectors"),
            ("local_store_sectors", "global_load_sectors"),
            ("local_store_sectors", "global_store_sectors"),
            ("code:local_sectors", "code:load_sectors", "code:store_sectors"),
            ("warp_opcodes",),
            ("local_touched_sectors", "global_touched_sectors"),
            ("local_load_inst", "lsu_inst"),
            ("local_load_inst", "executed_inst"),
            ("local_load_inst", "global_load_requests"),
            ("local_load_inst", "global_store_requests"),
            ("local_store_inst", "global_load_requests"),
            ("local_store_inst", "global_store_requests"),
            ("local_load_bytes_per_sector",),
            ("local_store_bytes_per_sector",),
        ),
        hints=(("global_touched_sectors", "dram_bytes"),),
    ),
    FindingRule(
        "host_memory",
        "data in the host's memory",
        "algorithm",
        host_memory,
        (("host_read_bytes",), ("host_write_bytes",)),
    ),
    FindingRule(
        "bank_conflicts",
        "bank conflicts in shared memory",
        "pad",
        bank_conflicts,
        (
            ("smem_access_wavefronts", "smem_ideal_wavefronts"),
            ("smem_load_conflict_wavefronts", "smem_load_wavefronts"),
            ("smem_conflict_bytes", "l1_shared_data_bytes"),
        ),
        hints=tuple((f"smem_{side}_conflict_wavefronts",) for side in _SIDES),
    ),
    FindingRule(
        "indexed_constants",
        "constants indexed at run time",
        "index",
        indexed_constants,
        (("warp_opcodes",),),
    ),
    FindingRule(
        "many_wavefronts",
        "many passes per memory instruction",
        "coalesce",
        many_wavefronts,
        (
            ("l1_data_bytes", "lsu_inst"),
            ("l1_data_share", "l1_lsu_input_share"),
            ("sol_compute", "sol_l1_active_share"),
        ),
    ),
)
ATOMICS: tuple[FindingRule, ...] = (
    FindingRule(
        "contended_atomics",
        "contended atomics",
        "atomics",
        contended_atomics,
        (("thread_opcodes",), ("atomic_inst",), ("l2_atomic_share", "l2_atomic_sectors")),
        hints=(("sol_l2_share", "sol_l1_active_share", "sol_compute", "grid_size"),),
    ),
)
