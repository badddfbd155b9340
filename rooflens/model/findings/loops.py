"""Findings from loops: phases that could overlap, and what the body of a loop fetches, keeps and has in flight."""

from __future__ import annotations

from rooflens.format import percent
from rooflens.model.findings.cost import LATENCY
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
)
