"""Findings from loops: phases that could overlap, and what the body of a loop fetches, keeps and has in flight."""

from __future__ import annotations

from itertools import combinations

from rooflens.format import percent, si
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.findings.cost import LATENCY, Waste
from rooflens.model.findings.rule import CODE, FindingDraft, FindingRule
from rooflens.model.hotspots import MOST_PLACES
from rooflens.model.records import Anatomy, Evidence, Hotspot, Inside, Loop, Place, ratio
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.thresholds import default_thresholds

_SOURCE = "samples of the instructions of each loop"


def loops_of(inside: Inside | None) -> tuple[Loop, ...]:
    """Return the loops of a kernel; empty if its code was not read."""
    return tuple(loop for loop in inside.loops if loop.kind == "loop") if inside else ()


def share_of(inside: Inside | None, loop: Loop) -> float:
    """Return the share of the kernel's samples that is in a loop itself, without inner loops."""
    total = sum(one.own.get("samples", 0.0) for one in inside.loops) if inside else 0.0
    return ratio(loop.own.get("samples", 0.0), total) or 0.0


def main_product(inside: Inside | None) -> Anatomy | None:
    """Return the body of the loop with most multiply-adds; None if no loop has any, or no code was read."""
    multiplying = [loop for loop in loops_of(inside) if loop.anatomy is not None and loop.anatomy.multiply_adds]
    most = max(multiplying, key=lambda loop: sum(loop.self_flop.values()), default=None)
    if most is None or most.anatomy is None or most.anatomy.is_matrix:
        return None
    return most.anatomy if share_of(inside, most) >= default_thresholds().little_share else None


def place_of_product(inside: Inside | None) -> tuple[Place, ...]:
    """Return the place of the loop with most multiply-adds; none if unknown."""
    body = main_product(inside)
    loop = next((loop for loop in loops_of(inside) if body is not None and loop.anatomy is body), None)
    return (place_of_loop(inside, loop),) if loop is not None else ()


def place_of_loop(inside: Inside | None, loop: Loop) -> Place:
    """Return where a loop is, with its share of the warps' time."""
    share = share_of(inside, loop)
    if loop.file is not None and loop.line is not None:
        return Place(Hotspot("line", loop.file, loop.line), share)
    return Place(Hotspot("sass", pc=loop.start), share)


def _fills_tiles(loop: Loop) -> bool:
    """Return whether a loop only moves data from global to shared memory."""
    body = loop.anatomy
    if body is None or body.multiply_adds or body.copies_asynchronously:
        return False
    return bool(body.global_loads) and bool(body.stores) and bool(loop.own.get("shared_wavefronts"))


def unoverlapped_loads(facts: Facts) -> FindingDraft | None:
    """Say that warps load tiles in one loop and multiply in another, one after the other."""
    kernel, inside = facts.kernel, facts.kernel.inside
    every = loops_of(inside)
    filling = [loop for loop in every if _fills_tiles(loop)]
    multiplying = [loop for loop in every if loop.anatomy is not None and loop.anatomy.multiply_adds]
    loads = sum(share_of(inside, loop) for loop in filling)
    products = sum(share_of(inside, loop) for loop in multiplying)
    if min(loads, products) < facts.limits.little_share:
        return None
    where = sorted((place_of_loop(inside, loop) for loop in filling), key=lambda place: -place.share)
    by = "cp.async" if kernel.capability >= (8, 0) else "loads into registers"
    return FindingDraft(
        evidence=(
            Evidence("warps' time in loops that load tiles", loads, "share", _SOURCE),
            Evidence("warps' time in loops that multiply", products, "share", _SOURCE),
        ),
        move=f"load the next tile while this one is used, with {by} into a second buffer: warps spend {percent(loads)} "
        f"of their time in loops that only load tiles, and {percent(products)} in those that multiply",
        bears_on=frozenset({LATENCY}),
        # At best the shorter phase is hidden behind the longer one.
        gain=facts.without_wait(1 / (1 - min(loads, products))),
        where=tuple(where[:MOST_PLACES]),
        confidence="medium",
        severity="contributes",
    )


def read_twice(facts: Facts) -> FindingDraft | None:
    """Say that a second loop loads as much as a first one, all of which came through L2 both times."""
    inside, counter = facts.kernel.inside, facts.counter
    loaded = {loop.id: (loop, _loaded_bytes(loop)) for loop in loops_of(inside)}
    alike = (
        (one, other, first[width])
        for (one, first), (other, second) in combinations(loaded.values(), 2)
        for width in first.keys() & second.keys()
        if not _is_around(one, other, inside)
        and abs(second[width] - first[width]) <= facts.limits.noise_share * first[width]
    )
    first, second, again = max(alike, key=lambda found: found[2], default=(None, None, 0.0))
    moved, looked_up, fetched = counter("dram_bytes"), counter("l2_bytes"), counter("l2_return_bytes")
    if first is None or second is None or not moved or not looked_up or fetched is None:
        return None
    # What L1 still holds from the first loop never reaches L2 again.
    if fetched < (2 - facts.limits.little_share) * again or again < facts.limits.little_share * looked_up:
        return None
    missed = (counter("dram_read_bytes") or 0.0) - (fetched - again)
    waits = sum(loop.own.get("stall_long_scoreboard", 0.0) for loop in inside.loops) if inside else 0.0
    waste = Waste(
        {"l2": again / looked_up, "dram": min(max(0.0, missed), again) / moved},
        ratio(second.own.get("stall_long_scoreboard", 0.0), waits) or 0.0,
        ("long_scoreboard",),
    )
    amount, source = si(again, "B"), "machine code: loads a trip x width x trips x threads"
    return FindingDraft(
        evidence=(
            Evidence("loaded by each of two loops", again, "B", source),
            Evidence("fetched from L2", fetched, "B", "l1tex__m_xbar2l1tex_read_bytes.sum"),
        ),
        move="keep what the first loop loads in registers or shared memory for the second one, or make one loop of "
        f"both: each loads {amount} in the same way, as if they were the same values, and {si(fetched, 'B')} come from "
        "L2, so that L1 holds none of them in between",
        waste=waste,
        changes="bytes",
        where=(place_of_loop(inside, first), place_of_loop(inside, second)),
        confidence="medium",
    )


def _loaded_bytes(loop: Loop) -> dict[int, float]:
    """Return the bytes that the threads of all warps load from global memory in a loop itself, by width of a load."""
    body, executed = loop.anatomy, loop.own.get("warp_inst", 0.0)
    if body is None or not body.instructions:
        return {}
    trips = executed / body.instructions
    return {width: width * WARP_THREADS * each * trips for width, each in body.global_loads.items() if each}


def _is_around(one: Loop, other: Loop, inside: Inside | None) -> bool:
    """Return whether either of two loops is inside the other."""
    around = {loop.id: loop.parent for loop in loops_of(inside)}
    for inner, outer in ((one, other), (other, one)):
        parent = inner.parent
        while parent is not None:
            if parent == outer.id:
                return True
            parent = around.get(parent)
    return False


def most_of_one_loop(facts: Facts, where: tuple[Place, ...]) -> float | None:
    """Return how much faster a kernel can get at most by a change that affects only these places (Amdahl's law).

    Based on the share of the warps' time in the loops and straight parts that contain them; None if unknown, or if
    there may be more places.
    """
    inside, known = facts.kernel.inside, sum(place.share for place in where)
    if inside is None or not inside.loops or known < facts.limits.nearly_all_share:
        return None
    touched: set[int] = set()
    for place in where:
        spot = place.hotspot
        pcs = (spot.pc,) if spot.pc is not None else inside.pcs.get((spot.file or "", spot.line or 0), ())
        rows = {row for pc in pcs if (row := inside.row_of.get(pc)) is not None}
        if not rows:
            return None
        touched |= rows
    share = sum(share_of(inside, loop) for loop in inside.loops if loop.id in touched)
    return 1 / (1 - share) if 0 < share < 1 else None


LOOPS: tuple[FindingRule, ...] = (
    FindingRule(
        "unoverlapped_loads",
        "tiles that are loaded while nothing multiplies",
        "overlap",
        unoverlapped_loads,
        ((f"{CODE}samples",),),
    ),
    FindingRule(
        "read_twice",
        "values that two loops load",
        "tile",
        read_twice,
        ((f"{CODE}warp_inst", "dram_bytes", "l2_bytes", "l2_return_bytes"),),
    ),
)
