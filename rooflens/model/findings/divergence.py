"""Findings about lanes of a warp that do no work: divergent branches, predicated-off threads, partly filled blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import percent, si_of, significant
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.findings.rule import LATENCY, FindingRule, Found, Waste, speedup, weigh
from rooflens.model.records import Evidence, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Hotspot, Kernel

_HALF = 0.5
"""Resident warps of which half the lanes are empty hide half of the waits they could."""
_PLACES = 3
_PLACE_SHARE = 0.05
"""Less of the lost lanes in one place than this points nowhere."""


def thread_divergence(facts: Facts) -> Found | None:
    """Say that, on average, few of a warp's 32 threads do work in an instruction.

    A warp issues an instruction once for all of its threads. Where a branch diverges, each path is issued
    with the other threads idle; threads that are predicated off are idle too. Counters: the smaller of
    `smsp__thread_inst_executed_per_inst_executed.ratio` and
    `smsp__thread_inst_executed_pred_on_per_inst_executed.ratio`, else thread instructions over warp instructions of the
    opcode tables (predicated-on). Divergent branches (`smsp__sass_branch_targets_threads_divergent`) are shown with
    it. Confirm at the lines it names, which lose most lanes. It does not tell branches of the algorithm from the bounds
    check at the end of an array. Blocks that are not a multiple of 32 threads leave lanes idle as well: where that
    explains it, `partial_warps` is reported.

    Try:
    - assign an item to a warp instead of a thread, with lanes over its elements: long rows of sparse matrices
    - sort, bin or compact the items so that a warp's threads take the same path (`torch.sort`, `cub::DeviceSelect`)
    - turn short branches into selects: `c ? a : b`, `tl.where`
    """
    threads = _threads(facts)
    if threads is None or threads.value >= facts.limits.active_threads:
        return None
    idle = 1 - threads.value / WARP_THREADS
    by_block = _block_explains(facts, threads.value)
    waste = Waste(dict.fromkeys(facts.pipes, idle))
    switched_off = (facts.counter("threads_per_inst") or 0.0) >= facts.limits.active_threads
    parting = facts.counter("divergent_branch_count") and not by_block and not switched_off
    branches = [facts.measured("divergent_branch_count", "branches")] if parting else []
    return Found(
        evidence=(threads, *branches),
        move=_divergence_move(facts.kernel, threads, branches, by_block=by_block, switched_off=switched_off),
        bears_on=waste.bears_on,
        speedup_up_to=speedup(facts, _issued(facts, waste)),
        where=_idle_places(facts.kernel),
        severity="note" if by_block else weigh(facts, waste),
    )


def _issued(facts: Facts, waste: Waste) -> Waste:
    """Return the waste of the issue slots where those are measured: a pipe's other cycles do not shorten with it."""
    return Waste({"issue": waste.parts["issue"]}) if facts.share("issue") is not None else waste


def _threads(facts: Facts) -> Evidence | None:
    """Return the mean number of threads that do work in a warp instruction; None where not measured."""
    names = [name for name in ("threads_per_inst", "threads_on_per_inst") if facts.counter(name)]
    if names:
        name = min(names, key=lambda one: facts.kernel.counters[one])
        return facts.measured("threads_per_inst", "threads", name)
    by_thread, by_warp = sum(facts.kernel.thread_opcodes.values()), sum(facts.kernel.warp_opcodes.values())
    if not by_thread or not by_warp:
        return None
    return Evidence("threads_per_inst", by_thread / by_warp, "threads", "thread / warp instructions by opcode")


def _block_explains(facts: Facts, threads: float) -> bool:
    """Return whether idle lanes are those that blocks leave empty: of the threads that are there enough do work.

    A single thread parts from no other.
    """
    fill = warp_fill(facts.kernel)
    if fill is None or fill == 1:
        return False
    return _block_size(facts.kernel) == 1 or threads >= facts.limits.active_threads * fill


def _divergence_move(
    kernel: Kernel, threads: Evidence, branches: Sequence[Evidence], *, by_block: bool, switched_off: bool
) -> str:
    said = f"{significant(threads.value)} of 32 threads do work in an instruction"
    if by_block:
        blocks = f"blocks of {_block_size(kernel)} do not fill warps"
        return f"change the block size, not the branches: {said}, as {blocks}"
    if switched_off:
        return (
            f"give idle threads work: {said}, the others are predicated off; split the work so that "
            "whole warps skip what they need not do"
        )
    part = f" and the threads of a warp part at {si_of(branches[0].value, 'branches')}" if branches else ""
    return (
        f"group threads that take the same path: {said}{part}; sort or compact the work by branch, "
        "or let a warp share the items of one thread"
    )


def _idle_places(kernel: Kernel) -> tuple[Place, ...]:
    """Return the lines, or where there are none the instructions, that lose most lanes; at most three."""
    if "warp_inst" not in kernel.code_totals or "thread_inst" not in kernel.code_totals:
        return ()
    total = _idle_lanes(kernel.code_totals["warp_inst"], kernel.code_totals["thread_inst"])
    if total <= 0:
        return ()
    grain = "line" if any(hotspot.by == "line" for hotspot in kernel.hotspots) else "sass"
    lanes = [(lost, one) for one in kernel.hotspots if one.by == grain and (lost := _lost(one)) > 0]
    ranked = sorted(lanes, key=lambda pair: -pair[0])[:_PLACES]
    return tuple(Place(one, lost / total) for lost, one in ranked if lost >= _PLACE_SHARE * total)


def _lost(hotspot: Hotspot) -> float:
    return _idle_lanes(hotspot.measures.get("warp_inst", 0.0), hotspot.measures.get("thread_inst", 0.0))


def _idle_lanes(warp_inst: float, thread_inst: float) -> float:
    return warp_inst * WARP_THREADS - thread_inst


def partial_warps(facts: Facts) -> Found | None:
    """Say that the threads of a block do not fill its warps.

    A block is divided into warps of 32 threads; the last one holds the remainder, and costs as much as a full
    one. Counters: the block size. Confirm by launching a multiple of 32 threads, with a bounds check in the kernel. It
    does not show whether the data dictate the block size, so that several rows would have to share a block.

    Try:
    - launch blocks of a multiple of 32 threads, 128 or 256 to start with, and guard with `if (i < n)`
    - let a block handle several rows: `dim3 block(32, 4)`
    - flatten small dimensions into one index
    """
    threads, fill = _block_size(facts.kernel), warp_fill(facts.kernel)
    if threads is None or fill is None or fill == 1:
        return None
    idle = 1 - fill
    waste = Waste(dict.fromkeys(facts.pipes, idle))
    blocks, sms = facts.counter("grid_size"), facts.counter("sm_count")
    crowded = blocks is not None and sms is not None and blocks >= sms
    holds_back = facts.bound == "latency" and crowded and idle >= _HALF
    return Found(
        evidence=(
            Evidence("block_size", float(threads), "threads", "launch__block_size"),
            Evidence("warp_fill", fill, "share", "threads / (32 x warps of a block)"),
        ),
        move=f"make the block size a multiple of 32 threads: blocks of {threads} fill {percent(fill)} of the lanes in "
        f"their {'warp' if threads <= WARP_THREADS else 'warps'}",
        bears_on=waste.bears_on | (frozenset({LATENCY}) if holds_back else frozenset()),
        speedup_up_to=facts.without_wait(1 / fill) if holds_back else speedup(facts, _issued(facts, waste)),
        severity="limiter" if holds_back else weigh(facts, waste),
    )


def warp_fill(kernel: Kernel) -> float | None:
    """Return which part of the lanes of its warps a block fills, 0 to 1; None where its size is not known."""
    threads = _block_size(kernel)
    return threads / (-(-threads // WARP_THREADS) * WARP_THREADS) if threads else None


def _block_size(kernel: Kernel) -> int | None:
    if kernel.block is not None:
        return kernel.block[0] * kernel.block[1] * kernel.block[2]
    threads = kernel.counters.get("block_size")
    return int(threads) if threads else None


DIVERGENCE: tuple[FindingRule, ...] = (
    FindingRule(
        "thread_divergence",
        "idle threads in warps",
        thread_divergence,
        (("threads_per_inst",), ("threads_on_per_inst",), ("thread_opcodes", "warp_opcodes")),
    ),
    FindingRule("partial_warps", "partly filled warps", partial_warps, (("block_size",),)),
)
