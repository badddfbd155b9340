"""Findings about shared memory: accesses of a warp that meet in the same bank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.format import percent, si_of, significant
from rooflens.model.counters.memory import WAVEFRONT_BYTES
from rooflens.model.findings.rule import FindingRule, Found, Waste, speedup, weigh
from rooflens.model.records import Evidence

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts

_STALLS = ("short_scoreboard", "mio_throttle")
_SIDES = ("load", "store")
_SIDE_COUNTERS = {side: (f"smem_{side}_conflict_wavefronts", f"smem_{side}_wavefronts") for side in _SIDES}


class _Conflicts(Struct, frozen=True):
    """Wavefronts of shared memory, and those of them that conflicts add.

    Attributes:
        by_address: Worked out from the addresses of each instruction; False where replays were counted, which other
            traffic that meets in the banks adds to.
    """

    wavefronts: float
    excess: float
    what: str
    source: str
    by_address: bool

    @property
    def part(self) -> float:
        """Return the part of the wavefronts that conflicts add, 0 to 1."""
        return self.excess / self.wavefronts


def bank_conflicts(facts: Facts) -> Found | None:
    """Say that accesses to shared memory take more passes than their bytes would need.

    Shared memory has 32 banks of 4 bytes. Threads of a warp that access different words of one bank are served one
    after another, each pass a wavefront. Counters, in order of preference: `memory_l1_wavefronts_shared` against
    `memory_l1_wavefronts_shared_ideal`, by instruction; `l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld` and
    `_st` against their wavefronts; the same of all accesses. Confirm at the line it names: the stride between threads
    is an even number of words, at worst a multiple of 32. It does not show, where only the hardware's replays are
    known, which of them are collisions with other traffic of the L1 data stage, which padding does not help; where the
    addresses are known to be free of conflicts, it says so.

    Try:
    - pad each row by one word: `tile[32][33]`
    - swizzle where padding breaks alignment: XOR the column with the row (CuTe's `Swizzle`)
    - access 16 bytes per thread, with neighbouring threads side by side (`float4`, `ldmatrix`)
    - exchange values within a warp without shared memory: `__shfl_sync`, `cub::WarpReduce`
    """
    address, counted = _by_address(facts), _counted(facts)
    limit = facts.limits.bank_conflict_share
    found = next((one for one in (address, counted) if one is not None and one.part >= limit), None)
    if found is None:
        return None
    collide_only = address is not None and found is counted
    waste = Waste({"smem": found.part * _part_of_all(facts, found)}, waits=found.part, stalls=_STALLS)
    ideal = found.wavefronts - found.excess
    ways = found.wavefronts / ideal if ideal else None
    evidence = [
        Evidence("conflict_share", found.part, "share", found.source),
        Evidence("wavefronts", found.wavefronts, "wavefronts", found.source),
    ]
    if ways is not None and not collide_only:
        evidence.append(Evidence("conflict_ways", ways, "wavefronts/access", found.source))
    return Found(
        evidence=tuple(evidence),
        move=_move(found, ways, collide_only=collide_only),
        bears_on=waste.bears_on,
        speedup_up_to=speedup(facts, waste),
        where=facts.places("shared_excess_wavefronts"),
        confidence="low" if collide_only else "high" if found.by_address else "medium",
        severity="note" if collide_only else weigh(facts, waste),
    )


def _by_address(facts: Facts) -> _Conflicts | None:
    totals = facts.kernel.code_totals
    wavefronts, excess = totals.get("shared_wavefronts"), totals.get("shared_excess_wavefronts")
    if wavefronts is None or excess is None:
        wavefronts, ideal = facts.counter("smem_access_wavefronts"), facts.counter("smem_ideal_wavefronts")
        excess = None if wavefronts is None or ideal is None else max(0.0, wavefronts - ideal)
    if not wavefronts or excess is None:
        return None
    source = "memory_l1_wavefronts_shared, memory_l1_wavefronts_shared_ideal"
    return _Conflicts(wavefronts, excess, "wavefronts of shared memory", source, by_address=True)


def _counted(facts: Facts) -> _Conflicts | None:
    """Return the side, loads or stores, with the larger part of replays; all accesses where they are not told apart."""
    sides = []
    for side in _SIDES:
        excess_name, name = _SIDE_COUNTERS[side]
        excess, wavefronts = facts.counter(excess_name), facts.counter(name)
        if excess is not None and wavefronts:
            source = facts.kernel.counter_sources.get(excess_name, "")
            sides.append(_Conflicts(wavefronts, excess, f"wavefronts of shared {side}s", source, by_address=False))
    if sides:
        return max(sides, key=lambda one: one.part)
    excess, all_bytes = facts.counter("smem_conflict_bytes"), facts.counter("smem_bytes")
    if excess is None or not all_bytes:
        return None
    source = facts.kernel.counter_sources.get("smem_conflict_bytes", "")
    return _Conflicts(
        all_bytes / WAVEFRONT_BYTES, excess / WAVEFRONT_BYTES, "wavefronts of shared memory", source, by_address=False
    )


def _part_of_all(facts: Facts, found: _Conflicts) -> float:
    """Return which part of all wavefronts of the shared-memory stage these are; 1 where not known."""
    all_bytes = facts.counter("smem_bytes")
    return min(1.0, found.wavefronts * WAVEFRONT_BYTES / all_bytes) if all_bytes else 1.0


def _move(found: _Conflicts, ways: float | None, *, collide_only: bool) -> str:
    said = f"{percent(found.part)} of the {si_of(found.wavefronts, found.what)}"
    if collide_only:
        return (
            f"keep its shared-memory layout: {said} are replays, but each warp's addresses are free "
            "of conflicts, so these are collisions with other traffic"
        )
    many = f", {significant(ways)} passes per access," if ways is not None else ""
    return f"pad or swizzle shared memory: {said}{many} are bank conflicts"


SHARED: tuple[FindingRule, ...] = (
    FindingRule(
        "bank_conflicts",
        "bank conflicts in shared memory",
        bank_conflicts,
        (
            ("smem_access_wavefronts", "smem_ideal_wavefronts"),
            ("smem_load_conflict_wavefronts", "smem_load_wavefronts"),
            ("smem_conflict_bytes", "smem_bytes"),
        ),
    ),
)
