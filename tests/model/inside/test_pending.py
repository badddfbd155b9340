"""What is carried forward equals what a search over all ways finds, and loops are those that dominators tell."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from support.machine_code import listed

from rooflens.model.inside.budget import StepBudget
from rooflens.model.inside.graph import Graph, flow
from rooflens.model.inside.pending import HeldChange, Holders, SinceBarrier

_NAMES = range(4)


def _graphs(count: int) -> Iterator[tuple[Random, Graph]]:
    """Yield functions that jump anywhere: most with loops, some with cycles of two entries."""
    chance = Random(5)  # noqa: S311 - no secret
    for _ in range(count):
        size = chance.randrange(4, 40)
        texts = []
        for place in range(size):
            to = chance.randrange(size) if chance.random() < 0.4 else min(size - 1, place + chance.randrange(1, 6))
            what = chance.random()
            guard = chance.choice(("@P0 ", "@P0 ", ""))
            texts.append(
                f"{guard}BRA ->{to}" if what < 0.35 else "BAR.SYNC 0x0" if what < 0.5 else "FFMA R1, R2, R3, R1"
            )
        yield chance, flow(listed(*texts, "EXIT"))


def _following(graph: Graph, position: int) -> list[int]:
    """Return the positions that may run next."""
    block = graph.block_of(position)
    if position + 1 < graph.blocks[block].end:
        return [position + 1]
    return [graph.blocks[after].first for after in graph.after[block]]


def _reached(graph: Graph) -> list[int]:
    """Return the positions of what can run."""
    return [place for block in sorted(graph.order) for place in range(*_ends(graph, block))]


def _ends(graph: Graph, block: int) -> tuple[int, int]:
    return graph.blocks[block].first, graph.blocks[block].end


def test_who_holds_what_is_what_following_each_way_finds() -> None:
    """An instruction holds a name wherever a way leads from it on which nobody frees that name."""
    for chance, graph in _graphs(150):
        places = [place for place in range(len(graph.instructions)) if chance.random() < 0.5]
        changes = {
            place: HeldChange(place, *(tuple(name for name in _NAMES if chance.random() < 0.3) for _ in "ft"))
            for place in places
        }
        reached = _reached(graph)
        expected: set[tuple[int, int, int]] = set()
        for start in reached:
            for name in changes[start].takes if start in changes else ():
                waiting = _following(graph, start)
                while waiting:
                    place = waiting.pop()
                    if (start, name, place) not in expected:
                        expected.add((start, name, place))
                        is_freed = place in changes and name in changes[place].frees
                        waiting += [] if is_freed else _following(graph, place)
        holders = Holders(graph, list(changes.values()))
        holders.settle(StepBudget(10**6))
        found = {
            (start, name, place)
            for place, held in holders.before(reached)
            for name in _NAMES
            for start in holders.instructions(held & holders.of([name]), 1000)
        }
        assert found == expected


def _slowest(graph: Graph, times: dict[int, float], position: int, passed: int) -> tuple[float, int]:
    """Search all ways back from a position, until a way passes its second barrier, for what took longest."""
    before: dict[int, list[int]] = {place: [] for place in range(len(graph.instructions))}
    for place in _reached(graph):
        for after in _following(graph, place):
            before[after].append(place)
    best, seen, waiting = (0.0, -1), set(), [(place, passed) for place in before[position]]
    while waiting:
        place, barriers = waiting.pop()
        if (place, barriers) in seen:
            continue
        seen.add((place, barriers))
        barriers += graph.instructions[place].base == "BAR"
        if barriers < 2:
            best = max(best, (times.get(place, 0.0), place if place in times else -1))
            waiting += [(earlier, barriers) for earlier in before[place]]
    return best


def test_what_took_longest_before_a_barrier_is_what_searching_all_ways_back_finds() -> None:
    """Behind a barrier that is from the one before it on; at one, since the last."""
    for chance, graph in _graphs(100):
        times = {
            place: float(chance.randrange(1, 9))
            for place, one in enumerate(graph.instructions)
            if one.base != "BAR" and chance.random() < 0.7
        }
        longest = SinceBarrier(graph, times)
        longest.settle(StepBudget(10**6))
        for place, state in longest.before(_reached(graph)):
            is_barrier = graph.instructions[place].base == "BAR"
            found = state.since if is_barrier else max(state)
            assert tuple(found) == _slowest(graph, times, place, int(is_barrier))


def _dominators(graph: Graph) -> dict[int, set[int]]:
    """Return the blocks that every way to a block passes, by the definition: removed, they cut it off."""
    found: dict[int, set[int]] = {block: {block} for block in graph.order}
    for removed in graph.order:
        seen = {root for root in graph.roots if root != removed}
        waiting = list(seen)
        while waiting:
            more = {after for after in graph.after[waiting.pop()] if after != removed} - seen
            seen |= more
            waiting += more
        for block in found.keys() - seen:
            found[block].add(removed)
    return found


def _natural_loops(graph: Graph, above: dict[int, set[int]]) -> dict[int, set[int]]:
    """Return all blocks of each loop by its header: what leads to a way back to a block that dominates it."""
    bodies: dict[int, set[int]] = {}
    for latch in graph.order:
        for header in above[latch].intersection(graph.after[latch]):
            body = bodies.setdefault(header, {header})
            waiting = [latch]
            while waiting:
                block = waiting.pop()
                if block not in body:
                    body.add(block)
                    waiting += graph.before[block]
    return bodies


def _is_irreducible(graph: Graph, above: dict[int, set[int]]) -> bool:
    """Return whether cycles are left without the ways back to dominators."""
    ahead = {one: {after for after in graph.after[one] if after not in above[one]} for one in graph.order}
    while first := [one for one in ahead if not any(one in others for others in ahead.values())]:
        for one in first:
            del ahead[one]
    return bool(ahead)


def _with_inner(graph: Graph, index: int) -> set[int]:
    found = set(graph.rings[index].blocks)
    for inner, ring in enumerate(graph.rings):
        found |= _with_inner(graph, inner) if ring.parent == index else set()
    return found


def test_loops_are_those_that_dominators_tell() -> None:
    """A loop is all that leads back to a header that dominates it; other cycles make a function irreducible."""
    irreducible = nested = 0
    for _, graph in _graphs(300):
        above = _dominators(graph)
        assert graph.is_irreducible is _is_irreducible(graph, above)
        if graph.is_irreducible:
            irreducible += 1
            continue
        bodies = _natural_loops(graph, above)
        assert {ring.header: _with_inner(graph, index) for index, ring in enumerate(graph.rings)} == bodies
        for ring in graph.rings:
            around = [header for header, body in bodies.items() if header != ring.header and ring.header in body]
            innermost = min(around, key=lambda header: len(bodies[header]), default=None)
            assert (None if ring.parent is None else graph.rings[ring.parent].header) == innermost
            assert ring.depth == len(around) + 1
            nested += ring.depth > 1
    assert irreducible > 20
    assert nested > 20
