"""The busiest resource of each side, memory level and pipe, and what speaks for a side that was not measured itself.

DRAM is at least as busy as the bytes that are known to cross it make it: a report of reads alone, or of the
sectors that L2 missed, gives a lower bound. NVIDIA's per cents name no unit, and instructions per cycle tell of issue
slots only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rooflens.format import percent
from rooflens.model.counters.execution import SCHEDULERS_PER_SM, WARP_THREADS
from rooflens.model.records import Bottleneck, Kernel, Level, held_once, ratio
from rooflens.model.roofline.flops import SCALAR_COUNTERS, UPPER_BOUND
from rooflens.model.roofline.levels import PARTIAL, fullest
from rooflens.model.roofline.opcodes import thread_flop
from rooflens.model.roofline.pipes import are_pipes_seen
from rooflens.model.roofline.roof import at_top_clock, roof
from rooflens.model.roofline.units import L1_COUNTS_TWICE, LSU_INPUT, PIPE_ROWS, SHARED_DATA
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.unmeasured import COMPUTE_PER_CENTS, HALF_A_PER_CENT, ONE_UNIT

NEVER_LEAD = frozenset({"fp16", "lsu"})
"""What never leads by itself: CUDA-core fp16 is an upper bound, and the LSU pipe is counted as L1's input stage."""
_SERVES_BOTH = frozenset({"data", "writeback", SHARED_DATA})
"""Stages of L1 that serve shared memory as well."""
_MEMORY_PER_CENTS = (
    "sol_memory",
    "sol_memory_access_share",
    "sol_memory_request_share",
    "sol_sm_memory_share",
    "sol_l2_share",
    "sol_l1_share",
    "sol_l1_active_share",
)
_LEVEL_OF = {"sol_l2_share": "l2", "sol_l1_share": "l1", "sol_l1_active_share": "l1"}
"""NVIDIA's per cents that are of one level."""
_SPLIT_L2 = frozenset({"8.0", "9.0", "10.0", "10.3"})
"""Chips with two halves of L2: what one misses, the other may hold."""
_COUNTED_PIPES = tuple(
    (row.key, row.amount or "") for row in PIPE_ROWS if row.unit == "inst" and row.key not in {"issue", *NEVER_LEAD}
)
"""Pipes whose warp instructions are counted, and the counters that do."""
_HIGHEST = " is the highest-utilized pipeline"
_MOST_UTILIZED = re.compile(rf"(\w[\w ()/]*?){_HIGHEST}")
_DOMINATED = re.compile(r"dominated by its (\w[\w ()/]*?) sub-pipeline")
_FIGURES_ONLY = re.compile(r"busiest pipe: (\w[\w ()/]*)")
"""How published figures (`fixtures/publish.py`) name that pipe without NVIDIA's words."""
_NVIDIA_PIPES = {
    "Tensor": "tensor_pipe",
    "FP64": "fp64_pipe",
    "FP16": "fp16_pipe",
    "FMA": "fma",
    "ALU": "alu",
    "XU": "xu",
    "LSU": "lsu",
    "TEX": "tex",
    "ADU": "adu",
    "CBU": "cbu",
    "Uniform": "uniform",
    "TMEM (Tensor Memory)": "tmem",
}
"""How NVIDIA's rule calls a pipe -> its key here."""
_RUNS = {row.key: row.runs for row in PIPE_ROWS if row.runs}
_WHOLE_OF = {row.key: row.part_of for row in PIPE_ROWS if row.part_of}


def memory_bottleneck(facts: Facts) -> Bottleneck | None:
    """Find the busiest memory level; L1's data stage counts as shared memory if that is most of its work.

    A report that shows neither L2 nor any stage behind L1's input may hide the busiest unit: then what stands in for
    the side does so where it is higher. Where only DRAM's peak is missing, its published one does.
    """
    levels, unit = facts.levels, fullest(facts.shares, facts.pipes)
    are_caches_seen = any(
        level.share is not None and not (level.stages and level.stages.keys() <= PARTIAL[name])
        for name, level in (("l1", levels["l1"]), ("l2", levels["l2"]))
    )
    is_wanted = not are_caches_seen or levels["dram"].share is None
    stand_in = _memory_stand_in(facts.kernel) if is_wanted else None
    if are_caches_seen and stand_in is not None and stand_in.resource != "dram":
        stand_in = None
    if unit is None or (stand_in is not None and stand_in.share > unit[1]):
        is_that = unit is not None and stand_in is not None and stand_in.share - unit[1] < HALF_A_PER_CENT
        if unit is None or not is_that or stand_in is None or stand_in.resource is not None:
            return stand_in
    name, share = unit
    if name == "l1" and (levels["l1"].leading_stage or "data") in _SERVES_BOTH:
        wavefronts = levels["l1"].stages.get("data", share)
        if (levels["smem"].share or 0.0) > facts.limits.most_share * wavefronts:
            name = "smem"
    return _bottleneck_of(name, unit[0], share, facts.shares.get(name))


def _bottleneck_of(name: str, unit: str, share: float, filler_share: float | None) -> Bottleneck:
    """Name a unit after what fills it; if the filler has a share of its own, say whose share this is."""
    is_own = name == unit or (filler_share is not None and percent(filler_share) == percent(share))
    return held_once(Bottleneck(name, share, None if is_own else unit))


def _memory_stand_in(kernel: Kernel) -> Bottleneck | None:
    """Return the highest share known of memory: DRAM's lower bound, or NVIDIA's per cent of the side or of a level."""
    counters = kernel.counters
    directions = [counters[name] for name in ("dram_read_share", "dram_write_share") if name in counters]
    dram = [sum(directions)] if directions else []
    moved = counters.get("dram_bytes")
    if moved is None:
        known = [counters[name] for name in ("dram_read_bytes", "dram_write_bytes") if name in counters]
        missed = None if kernel.compute_capability in _SPLIT_L2 else counters.get("l2_read_miss_bytes")
        moved = sum(known) if known else missed
    # A share of the highest peak is a lower bound whatever the clock was.
    peak = max((one.value for one in (roof("dram", kernel), at_top_clock(kernel)) if one is not None), default=None)
    if moved is not None and peak and kernel.duration_ns:
        dram.append(moved / (peak * kernel.duration_ns / 1e9))
    # NVIDIA's per cent of the whole side leaves out what L2 and L1 do besides traffic.
    told = max((name for name in _MEMORY_PER_CENTS if name in counters), key=counters.__getitem__, default="")
    told = "sol_memory" if "sol_memory" in counters else told
    per_cent = counters.get(told)
    if dram and (per_cent is None or min(1.0, max(dram)) >= per_cent):
        return Bottleneck("dram", min(1.0, max(dram)))
    level = None if kernel.compute_capability in L1_COUNTS_TWICE else _LEVEL_OF.get(told)
    return None if per_cent is None else Bottleneck(level, per_cent)


def compute_bottleneck(facts: Facts) -> Bottleneck | None:
    """Find the busiest pipe; a busy pipe is named after the work that explains it."""
    unit = fullest(facts.shares, {*facts.levels, *NEVER_LEAD})
    stand_in = None if are_pipes_seen(facts.pipes) else _compute_stand_in(facts)
    if unit is None or (stand_in is not None and stand_in.share > unit[1]):
        return stand_in
    key, share = unit
    name = _filling(facts) or key if key == "issue" else _explained(facts, key, share)
    return _bottleneck_of(name, key, share, facts.shares.get(name))


def _compute_stand_in(facts: Facts) -> Bottleneck | None:
    """Return the highest share known of the compute side: the issue slots', or NVIDIA's per cent.

    A per cent of NVIDIA's is of the unit whose own per cent it equals; where none is known it is of the pipe that
    NVIDIA's sentence calls the most utilized, without a number of its own, and else it has no name. That of
    load and store instructions, which both of NVIDIA's sides hold, belongs to memory.
    """
    counters = facts.kernel.counters
    known = [counters[name] for name in COMPUTE_PER_CENTS if name in counters]
    per_cent = max(known, default=None)
    most = per_cent
    if per_cent is not None and _is_of_loads_and_stores(counters, per_cent):
        per_cent = None
    issue = [share for share in (facts.shares.get("issue"), counters.get("executed_share")) if share is not None][:1]
    if not issue and "issue_active_per_cycle" in counters:
        issue.append(counters["issue_active_per_cycle"])  # of the active cycles: the others are not known
    if facts.shares.get("issue") is None and (per_sm := counters.get("executed_inst_per_cycle")) is not None:
        issue.append(per_sm / SCHEDULERS_PER_SM)
    if issue and (per_cent is None or max(issue) >= per_cent):
        return Bottleneck("issue", max(issue))
    tensor = facts.tensor_share
    if tensor is not None and (per_cent is None or tensor >= per_cent):
        return Bottleneck("tensor_pipe", tensor)
    if per_cent is None:  # the pipes are no busier than the loads and stores
        return Bottleneck(None, most) if most is not None and most < facts.limits.bound_share else None
    own = {name: facts.shares[name] for name in facts.pipes if name in facts.shares and name not in NEVER_LEAD}
    own |= {"issue": max(issue)} if issue else {}
    nearest = min(own, key=lambda name: abs(own[name] - per_cent), default="")
    if own and abs(own[nearest] - per_cent) <= HALF_A_PER_CENT + facts.limits.noise_share * per_cent:
        return Bottleneck(nearest, own[nearest])
    return Bottleneck(_named_pipe(facts.kernel, own), per_cent)


def _is_of_loads_and_stores(counters: Mapping[str, float], per_cent: float) -> bool:
    """Return whether NVIDIA's per cent of the SM measures memory instructions, which go to L1."""
    memory, pipes = counters.get("sol_memory"), counters.get("sol_sm_memory_share")
    other = memory if pipes is None else pipes
    is_one = other is not None and abs(per_cent - other) <= ONE_UNIT
    return is_one and memory is not None and memory >= per_cent - ONE_UNIT


def _named_pipe(kernel: Kernel, shares: Mapping[str, float]) -> str | None:
    """Return the pipe that NVIDIA's rule names without a number; None without one."""
    said = next(filter(None, (pipe_in_message(rule.message) for rule in kernel.rules)), "")
    named = next((key for start, key in _NVIDIA_PIPES.items() if said.startswith(start)), None)
    return None if named in shares else named


def pipe_in_message(message: str) -> str | None:
    """Return NVIDIA's name of the most utilized pipe, or of the one that dominates it; None in other messages."""
    # Looked for as plain text first: most messages are long, and name no pipe.
    named = _MOST_UTILIZED.search(message) if _HIGHEST in message else None
    words = (_DOMINATED.search(message) or named) if named else _FIGURES_ONLY.search(message)
    return words[1] if words else None


def _filling(facts: Facts) -> str | None:
    """Name the work that fills the issue slots; None if no one kind does, or instructions are not counted.

    From CC 8.6 on, an SM has as many fp32 lanes as it issues threads a cycle: multiply-adds that fill the pipe fill
    the slots as well, with the little that comes between them. Where only threads are counted, count the fewest
    warps that can hold them.
    """
    kernel, counters, pipes, issue = facts.kernel, facts.kernel.counters, facts.pipes, facts.pipes["issue"]
    issued, peak = issue.amount, issue.peak_per_s
    if issued is None and issue.share is not None and peak is not None and kernel.duration_ns is not None:
        issued = issue.share * peak * kernel.duration_ns / 1e9
    counts = {key: counters.get(amount, 0.0) for key, amount in _COUNTED_PIPES if key in pipes}
    for dtype in ("fp32", "fp64"):
        if dtype in pipes:
            add, mul, fma = (counters.get(name, 0.0) for name in SCALAR_COUNTERS[dtype])
            counts[dtype] = 0.0 if kernel.warp_opcodes else (add + mul + fma) / WARP_THREADS
    for opcode, count in kernel.warp_opcodes.items():
        flop = thread_flop(opcode)
        if flop is not None and flop[0] in counts:
            counts[flop[0]] += count
    name = max(counts, key=counts.__getitem__, default=None)
    return name if name is not None and (ratio(counts[name], issued) or 0.0) >= facts.limits.issue_filled else None


def busiest_unit(facts: Facts) -> Bottleneck | None:
    """Name the busiest unit of a kernel without a limiter."""
    top = next(iter(facts.sides), None)
    if top is None or top.resource is None:
        return top
    unit = fullest(facts.shares, NEVER_LEAD)
    return top if unit is None or top.share > unit[1] else Bottleneck(*unit)


def plateau_bottleneck(facts: Facts) -> Bottleneck | None:
    """Find the unit that is full on the plateau of the run, with its share of the whole run; None if none is."""
    phases = facts.phases
    if phases is None or phases.share < facts.limits.bound_share:
        return None
    resource, share = phases.resource, facts.shares.get(phases.resource)
    if share is None:
        return None
    name = resource if resource in facts.levels else _explained(facts, resource, share)
    return _bottleneck_of(name, resource, share, facts.shares.get(name))


def is_lsu_full(resource: str | None, l1: Level) -> bool:
    """Return whether the limiter is L1 because load and store instructions fill its input, whatever their bytes."""
    return resource == "l1" and l1.leading_stage == LSU_INPUT


def _explained(facts: Facts, key: str, busy: float) -> str:
    """Name the work that keeps a pipe busy; the pipe itself where none explains it."""
    runs = _RUNS.get(key)
    if runs is None:
        return _WHOLE_OF.get(key, key)
    works = {
        name: pipe.share
        for name, pipe in facts.pipes.items()
        if pipe.share is not None
        and pipe.source != UPPER_BOUND
        and (name in runs or ("tensor_*" in runs and name.startswith("tensor_") and name != key))
    }
    name = max(works, key=works.__getitem__, default=key)
    return name if works.get(name, 0.0) >= facts.limits.matrix_pipe_share * busy else key
