"""The class of each loop: by what is busy while warps are in it, else by what they wait for, as a kernel is judged.

How busy a unit is while warps are in a loop is how busy it is over the kernel, times the part of its work that the loop
does, over the part of the time that warps spend there. Where that is more than the whole unit, parts of the kernel run
at the same moment: the unit is what fills the loop, and how busy it is there is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct

from rooflens.model.hotspots import READY, STALL
from rooflens.model.records import Inside, JudgedLoop, Loop, ratio
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.thresholds import Thresholds, default_thresholds
from rooflens.model.verdict_classes import Bound

_SECTORS, _WAVEFRONTS = ("global_sectors", "local_sectors"), ("shared_wavefronts",)
_DRIVEN_BY: Mapping[str, tuple[str, ...]] = {
    "dram": _SECTORS,
    "l2": _SECTORS,
    "l1": (*_SECTORS, *_WAVEFRONTS),
    "smem": _WAVEFRONTS,
    "issue": ("warp_inst",),
}
"""Level or pipe -> measures of the work that it does."""
_ARITHMETIC = frozenset({"FP64", "FP32", "FP16", "matrix products"})


def judged(facts: Facts, inside: Inside) -> tuple[JudgedLoop, ...]:
    """Judge all loops and straight parts of a kernel that was looked into, in their order."""
    measures: defaultdict[str, float] = defaultdict(float)
    flop: defaultdict[str, float] = defaultdict(float)
    for loop in inside.loops:
        for name, amount in loop.own.items():
            measures[name] += amount
        for dtype, amount in loop.self_flop.items():
            flop[dtype] += amount
    whole = _KernelWork(
        measures=measures,
        flop=flop,
        total_flop=sum(sum(loop.self_flop.values()) for loop in inside.loops),
        counts_flop=any(loop.flop for loop in inside.loops) or not facts.flops.total,
        no_flop=frozenset(work.dtype_key for work in facts.flops.work if not (work.is_float and work.is_counted)),
        bytes_at={name: level.amount_bytes for name, level in facts.levels.items() if name in _LEVELS_TOUCHED},
        memory={name: share for name, share in facts.shares.items() if name in facts.levels},
        compute={name: share for name, share in facts.shares.items() if name in facts.pipes},
        dtypes={work.key: work.dtype_key for work in reversed(facts.flops.work) if work.ops},
        duration_ns=facts.kernel.duration_ns,
    )
    return tuple(_judged(whole, facts.limits, loop) for loop in inside.loops)


_LEVELS_TOUCHED = ("l2", "smem")
"""Levels whose bytes are said of a loop."""


class _KernelWork(Struct, frozen=True):
    """What of a kernel its loops are parts of.

    Attributes:
        measures: What all rows do themselves, by measure.
        flop: Their operations, by type; `total_flop` adds them up.
        counts_flop: Operations are counted by loop, or there are none.
        no_flop: Types whose operations are in no total of FLOPs: integers, and mere upper bounds.
        memory: Share of each level that has one; `compute` of each pipe.
        dtypes: Pipe -> the type that it computes.
    """

    measures: Mapping[str, float]
    flop: Mapping[str, float]
    total_flop: float
    counts_flop: bool
    no_flop: frozenset[str]
    bytes_at: Mapping[str, float | None]
    memory: Mapping[str, float]
    compute: Mapping[str, float]
    dtypes: Mapping[str, str]
    duration_ns: float | None


def _judged(whole: _KernelWork, limits: Thresholds, loop: Loop) -> JudgedLoop:
    samples = whole.measures.get("samples", 0.0)
    share, share_self = (ratio(amounts.get("samples", 0.0), samples) for amounts in (loop.amounts, loop.own))
    counted = (amount for dtype, amount in loop.flop.items() if dtype not in whole.no_flop)
    flop = sum(counted, 0.0) if whole.counts_flop else None
    time_s = whole.duration_ns / 1e9 * share if whole.duration_ns and share else None
    l2_bytes = _bytes_of_loop(whole, loop, "l2")
    resource, busy, bound = _class_of(whole, limits, loop, share_self)
    stalls = {name: amount for name, amount in loop.own.items() if name.startswith(STALL)}
    waits = {name: amount for name, amount in stalls.items() if name.removeprefix(STALL) not in READY}
    wait = max(waits, key=waits.__getitem__, default=None)
    return JudgedLoop(
        loop=loop,
        share=share,
        share_self=share_self,
        flop=flop,
        flop_per_s=ratio(flop, time_s),
        l2_bytes=l2_bytes,
        smem_bytes=_bytes_of_loop(whole, loop, "smem"),
        intensity=ratio(flop, l2_bytes) if flop else None,
        bound=bound,
        resource=resource,
        resource_share=busy if busy is None or busy <= 1 else None,
        wait=wait.removeprefix(STALL) if wait else None,
        wait_share=ratio(waits[wait], loop.own.get("samples")) if wait else None,
        job=job_of(loop, whole.total_flop),
        pipe=_pipe_of(whole, loop.flop),
    )


def _bytes_of_loop(whole: _KernelWork, loop: Loop, level: str) -> float | None:
    """Return the part of a level's bytes that a loop moves, by what its accesses touch of it; None if not counted.

    How many of them hit in L1 is not known by loop: it is taken to be as many in each.
    """
    known, measures = whole.bytes_at.get(level), _DRIVEN_BY[level]
    touched = sum(loop.amounts.get(measure, 0.0) for measure in measures)
    part = ratio(touched, sum(whole.measures.get(measure, 0.0) for measure in measures))
    return None if known is None or part is None else part * known


def _class_of(
    whole: _KernelWork, limits: Thresholds, loop: Loop, share_self: float | None
) -> tuple[str | None, float | None, Bound]:
    """Return the busiest unit while warps are in a loop, how busy it is, and the class."""
    if not share_self:
        return None, None, "unknown"
    memory = _busiest(whole, loop, share_self, whole.memory)
    compute = _busiest(whole, loop, share_self, whole.compute)
    top = max(memory, compute, key=lambda one: one[1])
    if top[1] < limits.bound_share:
        return (*top, "latency") if top[1] else (None, None, "latency")
    if abs(min(memory[1], 1.0) - min(compute[1], 1.0)) < limits.balanced_lead:
        return (*top, "balanced")
    return (*top, "memory" if top is memory else "compute")


def _busiest(whole: _KernelWork, loop: Loop, share_self: float, units: Mapping[str, float]) -> tuple[str | None, float]:
    """Return the unit of a side that is busiest while warps are in a loop."""
    busy: dict[str | None, float] = {None: 0.0}
    for name, share in units.items():
        part = _share_of_unit(whole, loop, name)
        if part is not None:
            busy[name] = share * part / share_self
    busiest = max(busy, key=busy.__getitem__)
    return busiest, busy[busiest]


def _share_of_unit(whole: _KernelWork, loop: Loop, unit: str) -> float | None:
    """Return the share of a unit's work that a loop does itself; None without counts by instruction."""
    if (measures := _DRIVEN_BY.get(unit)) is not None:
        own = sum(loop.own.get(measure, 0.0) for measure in measures)
        part = ratio(own, sum(whole.measures.get(measure, 0.0) for measure in measures))
        return None if unit == "dram" and (part or 0.0) < default_thresholds().nearly_all_share else part
    dtype = whole.dtypes.get(unit)
    return None if dtype is None else ratio(loop.self_flop.get(dtype, 0.0), whole.flop.get(dtype, 0.0))


def _pipe_of(whole: _KernelWork, flop: Mapping[str, float]) -> str | None:
    """Return the pipe that does most of some operations; None without any."""
    dtype = max(flop, key=flop.__getitem__, default=None)
    return next((pipe for pipe, computed in whole.dtypes.items() if computed == dtype), None)


def job_of(loop: Loop, flop: float) -> str:
    """Name the purpose of a loop by its instructions.

    Args:
        loop: The loop, or a straight part.
        flop: Operations of the whole kernel.
    """
    body, limits = loop.anatomy, default_thresholds()
    if body is None:
        # A loop that was unrolled in full is a straight part, too: arithmetic at the end of the code is no epilogue.
        computes = sum(loop.self_flop.values()) >= limits.little_share * flop > 0
        return "computes" if computes else {"prologue": "prepares", "epilogue": "finishes"}.get(loop.name, "goes on")
    arithmetic = sum(count for group, count in body.by_kind.items() if group in _ARITHMETIC)
    does_arithmetic = arithmetic >= limits.quarter_share * body.instructions
    if body.multiply_adds and (does_arithmetic or sum(loop.self_flop.values()) >= limits.little_share * flop):
        return "multiplies"
    if does_arithmetic:
        return "computes"
    if body.global_loads:
        return "loads tiles" if loop.own.get("shared_wavefronts") or body.copies_asynchronously else "loads"
    if body.shared_loads and body.barriers:
        return "exchanges in shared memory"
    return "stores" if body.stores else "counts"
