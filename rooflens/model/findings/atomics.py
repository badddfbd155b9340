"""Findings about atomics on global memory, which L2 serialises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import percent, si_of
from rooflens.model.counters.memory import SECTOR_BYTES
from rooflens.model.findings.rule import LATENCY, FindingRule, Found, stalled
from rooflens.model.records import Evidence
from rooflens.model.roofline.opcodes import executed

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Confidence, Kernel, Severity

_ATOMIC = frozenset({"ATOM", "ATOMG", "RED", "REDG"})
_GLOBAL = frozenset({"LDG", "STG", "LD", "ST", "LDGSTS"}) | _ATOMIC
_MOST_SPARED = 0.999
_STALLS = ("long_scoreboard", "lg_throttle", "drain", "membar")


def contended_atomics(facts: Facts) -> Found | None:
    """Say that atomics on global memory take up much of L2, or of the time that warps wait.

    Atomics are executed in L2: those to one address are serialised, whichever SM they come from. Counters: how busy the
    input of L2's atomic unit is (`lts__d_atomic_input_cycles_active`); sectors of atomics
    (`lts__t_sectors_srcunit_tex_op_red`, `_op_atom_dot_alu`, `_op_atom_dot_cas`) over all of L2's, counted twice
    because they cross in both directions; atomic instructions by opcode or by `smsp__inst_executed_op_global_red` over
    all memory instructions, with the memory stalls. Confirm by letting each block reduce in shared memory first. It
    does not show how many addresses there are: many atomics to many addresses are traffic, those to few addresses queue
    up.

    Try:
    - reduce within the warp first (`cg::reduce`, `__shfl_down_sync`; in Triton `tl.sum`), then issue one atomic per
      warp
    - keep a copy per block in shared memory, and add it to global memory once (`cub::BlockHistogram`)
    - spread a hot address over several, and sum them at the end
    - sort by key, then reduce segments (`cub::DeviceReduce::ReduceByKey`) where `index_add_` or `scatter_add_` is the
      kernel
    """
    kernel = facts.kernel
    operations = _operations(kernel)
    if not operations:
        return None
    limits = facts.limits
    unit, traffic, waits = facts.counter("l2_atomic_share"), _traffic_part(facts), _instruction_part(kernel)
    stall = 0.0 if facts.at_roof else stalled(facts, _STALLS)
    cost = max(unit or 0.0, (traffic or 0.0) * (facts.share("l2") or 0.0), (waits or 0.0) * stall)
    heavy = (traffic or 0.0) >= limits.atomic_share or (waits or 0.0) >= limits.atomic_share
    if (unit or 0.0) < limits.atomic_share and not (heavy and cost >= limits.contributing_cost_share):
        return None
    amount, noun, source = operations
    evidence = [Evidence("atomics", amount, noun.rpartition(" ")[2], source)]
    said = [f"{si_of(amount, noun)}"]
    if unit is not None and unit >= limits.atomic_share:
        evidence.append(facts.measured("l2_atomic_share", "share"))
        said.append(f"keep L2's atomic unit {percent(unit)} busy")
    elif traffic is not None and traffic >= limits.atomic_share:
        evidence.append(Evidence("atomic_traffic_share", traffic, "share", "2 x atomic sectors / sectors in L2"))
        said.append(f"are {percent(traffic)} of the traffic between SMs and L2")
    elif waits is not None:
        evidence.append(Evidence("atomic_inst_share", waits, "share", "atomic / global memory instructions"))
        said.append(f"are {percent(waits)} of its accesses to global memory")
    return Found(
        evidence=tuple(evidence),
        move=f"reduce within the warp and the block before going to global memory: {' '.join(said)}",
        bears_on=frozenset({"l2", LATENCY}),
        speedup_up_to=1 / (1 - min(cost, _MOST_SPARED)) if cost else None,
        confidence=_confidence(unit, traffic),
        severity=_severity(facts, unit, traffic, cost),
    )


def _severity(facts: Facts, unit: float | None, traffic: float | None, cost: float) -> Severity:
    limits = facts.limits
    if cost < limits.contributing_cost_share:
        return "note"
    if (unit or 0.0) >= limits.bound_share:
        return "limiter"
    on_l2 = facts.wall is not None and facts.wall.resource == "l2"
    return "limiter" if on_l2 and (traffic or 0.0) >= limits.limiting_waste_share else "contributes"


def _confidence(unit: float | None, traffic: float | None) -> Confidence:
    return "high" if unit is not None else "medium" if traffic is not None else "low"


def _operations(kernel: Kernel) -> tuple[float, str, str] | None:
    """Return how many atomics there are, of what, and where that is from; None where there are none or none counted."""
    threads = executed(kernel.thread_opcodes, _ATOMIC)
    if threads:
        return threads, "atomic operations", "thread instructions by opcode"
    inst = kernel.counters.get("atomic_inst")
    if inst:
        return inst, "atomic instructions", kernel.counter_sources.get("atomic_inst", "atomic_inst")
    sectors = kernel.counters.get("l2_atomic_sectors")
    if sectors:
        return sectors, "atomic sectors", kernel.counter_sources.get("l2_atomic_sectors", "l2_atomic_sectors")
    return None


def _traffic_part(facts: Facts) -> float | None:
    """Return which part of the bytes between the SMs and L2 are atomics, which cross twice, 0 to 1."""
    sectors, all_bytes = facts.counter("l2_atomic_sectors"), facts.counter("l2_bytes")
    if sectors is None or not all_bytes:
        return None
    back_and_forth = 2 * sectors * SECTOR_BYTES
    return back_and_forth / (all_bytes + sectors * SECTOR_BYTES)


def _instruction_part(kernel: Kernel) -> float | None:
    """Return which part of the accesses to global memory are atomics, 0 to 1."""
    if kernel.warp_opcodes:
        every = executed(kernel.warp_opcodes, _GLOBAL)
        return executed(kernel.warp_opcodes, _ATOMIC) / every if every else None
    names = ("global_load_requests", "global_store_requests")
    atomics = kernel.counters.get("atomic_inst")
    if atomics is None or not all(name in kernel.counters for name in names):
        return None
    every = atomics + sum(kernel.counters[name] for name in names)
    return atomics / every if every else None


ATOMICS: tuple[FindingRule, ...] = (
    FindingRule(
        "contended_atomics",
        "contended atomics",
        contended_atomics,
        (("thread_opcodes",), ("atomic_inst",), ("l2_atomic_share", "l2_atomic_sectors")),
    ),
)
