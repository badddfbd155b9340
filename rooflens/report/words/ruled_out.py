"""What a kernel's counters rule out, and what nobody measured: a reader who doubts the moves looks here next.

A cause is ruled out by its own number alone, and only where the finding of it was looked for and not made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import held_of, holdings_of
from rooflens.model.findings.stalls import stall_shares
from rooflens.model.hotspots import STALL
from rooflens.model.records import Analysis, Kernel, ratio
from rooflens.model.roofline.opcodes import executed
from rooflens.model.roofline.traffic import find_traffic
from rooflens.report.words.labels import stall_label


class _Number(Struct, frozen=True):
    """How much there is of a cause, in words, and whether that is next to nothing."""

    words: str
    is_little: bool


class _RuledOutCause(Struct, frozen=True):
    """A cause that readers look for first.

    Attributes:
        findings: Ids of the findings that say it, its own first; any of them says that it is there.
        number: Returns how much there is of it; None where nothing counts it.
    """

    name: str
    findings: tuple[str, ...]
    number: Callable[[Kernel], _Number | None]


def ruled_out(analysis: Analysis) -> list[str]:
    """List the causes of which there is next to nothing, each with its number: `divergence (31.9 of 32 lanes)`."""
    return [f"{cause.name} ({number.words})" for cause, number in _ruled_out(analysis) if number and number.is_little]


def minor_causes(analysis: Analysis) -> list[str]:
    """List the causes of which there is more than that, and too little for a finding."""
    return [
        f"{cause.name} ({number.words})"
        for cause, number in _ruled_out(analysis)
        if number and not number.is_little and not is_symptom(analysis, cause.findings[0])
    ]


def symptoms(analysis: Analysis) -> list[str]:
    """List the long waits of a kernel that keeps a unit busy: its warps queue for that unit, so no wait is the cause.

    They are findings that cost nothing of their own, and waits that no finding speaks of.
    """
    notes = [finding.id for finding in analysis.findings if finding.severity == "note"]
    unnamed = [cause.findings[0] for cause, _ in _ruled_out(analysis)]
    waits = [name.removeprefix(STALL) for name in dict.fromkeys((*notes, *unnamed)) if is_symptom(analysis, name)]
    shares = stall_shares(analysis.kernel)
    return [f"{stall_label(wait)} ({fmt.percent(shares[wait])} of warps' time)" for wait in waits]


def is_symptom(analysis: Analysis, finding: str) -> bool:
    """Return whether a finding is a long wait of a kernel that keeps a unit busy."""
    if not finding.startswith(STALL) or analysis.verdict.bound not in {"memory", "compute", "balanced"}:
        return False
    return stall_shares(analysis.kernel).get(finding.removeprefix(STALL), 0.0) >= _LONG


def not_measured(analysis: Analysis) -> list[str]:
    """List the causes that this report cannot show, whatever the kernel does."""
    held = held_of(holdings_of(analysis.kernel, traced=analysis.in_program is not None))
    seen = {finding.id for finding in analysis.findings}
    causes = (cause for cause in _CAUSES if cause.findings[0] not in seen and cause.number(analysis.kernel) is None)
    return [cause.name for cause in causes if not _RULE_OF[cause.findings[0]].can_tell(held)]


def _ruled_out(analysis: Analysis) -> Iterator[tuple[_RuledOutCause, _Number | None]]:
    seen = {finding.id for finding in analysis.findings}
    return ((cause, cause.number(analysis.kernel)) for cause in _CAUSES if seen.isdisjoint(cause.findings))


_RULE_OF = {rule.id: rule for rule in RULES}
_LITTLE = 0.05
"""A twentieth of a kernel's time, passes or sectors is within what runs differ by."""
_NEARLY_ALL_LANES, _NEARLY_ALL_BYTES = 28.0, 28.0
_LONG = 0.2
"""A wait of a fifth of warps' time is too long to be called minor, whatever it costs."""
_MANY_WARPS = 0.75
_MANY_WAVES = 4.0
"""A grid of more waves hides its last one."""


def _sectors(side: str, kernel: Kernel) -> _Number | None:
    totals, traffic = kernel.code_totals, find_traffic(kernel)
    part = ratio(totals.get(f"{side}_excess_sectors"), totals.get(f"{side}_sectors"))
    if part is not None:
        return _Number(f"{fmt.percent(part)} excess sectors", part < _LITTLE)
    used = traffic.load_bytes_per_sector if side == "load" else traffic.store_bytes_per_sector
    words = f"{fmt.significant(used or 0.0)} of {SECTOR_BYTES:.0f} bytes of a sector used"
    return _Number(words, used >= _NEARLY_ALL_BYTES) if used else None


def _conflict_number(kernel: Kernel) -> _Number | None:
    if kernel.program_smem_bytes == 0:
        return _Number("no shared memory", is_little=True)
    traffic = find_traffic(kernel)
    if traffic.shared_excess is not None:
        return _Number(
            f"{fmt.significant(traffic.shared_excess)} passes per access", traffic.shared_excess < 1 + _LITTLE
        )
    part = traffic.conflict_share
    return _Number(f"{fmt.percent(part)} of the passes", part < _LITTLE) if part is not None else None


def _lanes(kernel: Kernel) -> _Number | None:
    counters = kernel.counters
    known = [counters[name] for name in ("threads_per_inst", "threads_on_per_inst") if name in counters]
    lanes = min(known) if known else ratio(sum(kernel.thread_opcodes.values()), sum(kernel.warp_opcodes.values()))
    words = f"{fmt.significant(lanes or 0.0)} of {WARP_THREADS} lanes active"
    return _Number(words, lanes >= _NEARLY_ALL_LANES) if lanes else None


def _spills(kernel: Kernel) -> _Number | None:
    names = ("spill_inst", "spill_requests", "local_load_sectors", "local_load_inst")
    counted = [kernel.counters[name] for name in names if name in kernel.counters]
    if "local_sectors" in kernel.code_totals:
        counted.append(kernel.code_totals["local_sectors"])
    return _Number("none", is_little=True) if counted and not any(counted) else None


def _occupancy(kernel: Kernel) -> _Number | None:
    achieved = kernel.counters.get("achieved_occupancy")
    return None if achieved is None else _Number(fmt.percent(min(1.0, achieved)), achieved >= _MANY_WARPS)


def _grid(kernel: Kernel) -> _Number | None:
    blocks, sms, waves = (kernel.counters.get(name) for name in ("grid_size", "sm_count", "waves"))
    if not blocks or not sms or waves is None:
        return None
    return _Number(f"{fmt.count(round(blocks), 'block')} for {sms:.0f} SMs", waves >= _MANY_WAVES)


def _waiting(reason: str, kernel: Kernel) -> _Number | None:
    part = stall_shares(kernel).get(reason)
    return None if part is None else _Number(f"{fmt.percent(part)} of warps' time", part < _LITTLE)


def _atomics(kernel: Kernel) -> _Number | None:
    if kernel.warp_opcodes:
        is_none = not executed(kernel.warp_opcodes, ("ATOM", "ATOMG", "RED", "REDG", "ATOMS"))
    else:
        is_none = kernel.counters.get("atomic_inst") == 0
    return _Number("none", is_little=True) if is_none else None


_CAUSES: tuple[_RuledOutCause, ...] = (
    _RuledOutCause("uncoalesced loads", ("uncoalesced_global_load", "many_wavefronts"), partial(_sectors, "load")),
    _RuledOutCause("uncoalesced stores", ("uncoalesced_global_store", "many_wavefronts"), partial(_sectors, "store")),
    _RuledOutCause("bank conflicts", ("bank_conflicts", "many_wavefronts"), _conflict_number),
    _RuledOutCause("divergence", ("thread_divergence", "partial_warps"), _lanes),
    _RuledOutCause("spills", ("local_memory",), _spills),
    _RuledOutCause("occupancy", ("low_occupancy", "achieved_occupancy_gap", "stall_wait"), _occupancy),
    _RuledOutCause("grid", ("small_grid", "tail_wave"), _grid),
    _RuledOutCause("barriers", ("stall_barrier", "barriers_in_last_warp"), partial(_waiting, "barrier")),
    _RuledOutCause("atomics", ("contended_atomics",), _atomics),
    _RuledOutCause("waits for global memory", ("stall_long_scoreboard",), partial(_waiting, "long_scoreboard")),
)
"""In the order in which a reader asks; barriers and waits are ruled out by the part of their time that warps spend."""
