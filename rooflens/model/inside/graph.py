"""The flow of control of one function: blocks, edges, dominators, and natural loops with their nesting."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field

from rooflens.model.inside.instruction import CALLS, ENDS, INDIRECT, JUMPS, Instruction

MOST_LOOPS = 400
"""A function with more is left out, before their blocks are gathered: real ones have some dozens."""


class Block(Struct, frozen=True):
    """Instructions that run one after the other.

    Attributes:
        first, end: Positions of its first instruction, and behind its last, in the function's instructions.
    """

    first: int
    end: int


class Ring(Struct):
    """One natural loop: all blocks from which its back edges can be reached without its header.

    Attributes:
        header: Block that every way into it passes.
        blocks: All blocks, those of inner loops too.
        latches: Blocks that jump back to the header.
        parent: Index of the loop around it; None for an outermost one.
    """

    header: int
    blocks: set[int]
    latches: tuple[int, ...]
    parent: int | None = None


class Graph(Struct):
    """The flow of control of a function.

    Attributes:
        instructions: In the order of their offsets.
        blocks: In that order, too.
        after, before: Blocks that may run after, or before, each block.
        roots: Blocks that something outside enters: the function's start, and what is called.
        is_irreducible: A cycle has two entries, so that it has no header and is no natural loop.
        has_unknown_jumps: A jump's targets stand in a table that is not read.
        has_too_many_loops: There are more than `MOST_LOOPS`, which are then not gathered.
    """

    instructions: Sequence[Instruction]
    blocks: list[Block]
    after: list[tuple[int, ...]]
    before: list[list[int]]
    roots: tuple[int, ...]
    rings: list[Ring] = field(default_factory=list)
    is_irreducible: bool = False
    has_unknown_jumps: bool = False
    has_too_many_loops: bool = False

    def block_of(self, position: int) -> int:
        """Return the block that an instruction is in, by its position."""
        return bisect_left(self.blocks, position + 1, key=lambda block: block.first) - 1


def flow(
    instructions: Sequence[Instruction],
    entries: Iterable[int] = (),
    ran: Collection[int] = frozenset(),
    *,
    only_ran: bool = False,
    left_out: Collection[tuple[int, int]] = (),
) -> Graph:
    """Find blocks, edges and loops of what can be reached, or ran.

    Args:
        instructions: All of one function, in the order of their offsets.
        entries: Offsets besides the first instruction at which it is entered.
        ran: Offsets of instructions that were counted: what no known way leads to is entered there.
        only_ran: Leave out the ways to blocks that were never counted.
        left_out: Ways from block to block that are left out as well.
    """
    at = {one.offset: position for position, one in enumerate(instructions)}
    starts, roots = _leaders(instructions, at, entries)
    firsts = sorted(starts)
    blocks = [Block(first, end) for first, end in zip(firsts, [*firsts[1:], len(instructions)], strict=True)]
    number = {block.first: index for index, block in enumerate(blocks)}
    ways = _Ways(instructions, blocks, at, number)
    after, called = _with_jumping_calls(ways, [ways.after(index) for index in range(len(blocks))])
    # Jump tables are data that is not read. Blocks that ran and have no other way in are what they must lead to.
    if ways.unknown:
        after = _with_unknown_ways(ways, after, {number[at[root]] for root in roots} | called, ran)
    if only_ran:
        has_run = [instructions[block.first].offset in ran for block in blocks]
        after = [
            tuple(one for one in found if has_run[one] and (index, one) not in left_out)
            for index, found in enumerate(after)
        ]
    before: list[list[int]] = [[] for _ in blocks]
    for index, found in enumerate(after):
        for one in found:
            before[one].append(index)
    graph = Graph(
        instructions,
        blocks,
        after,
        before,
        tuple(sorted({number[at[root]] for root in roots} | called)) if blocks else (),
        has_unknown_jumps=bool(ways.unknown),
    )
    _enter_what_ran(graph, ran)
    _find_rings(graph)
    return graph


class _Ways:
    """Where each block of a function may go on.

    Attributes:
        unknown: Blocks whose last jump has its targets in a table that is not read.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        blocks: Sequence[Block],
        at: Mapping[int, int],
        number: Mapping[int, int],
    ) -> None:
        self.blocks = blocks
        self.lasts = [instructions[block.end - 1] for block in blocks]
        self.firsts = [instructions[block.first].offset for block in blocks]
        self.unknown: list[int] = []
        self._meetings = _meetings(instructions)
        self._number = {offset: number[position] for offset, position in at.items() if position in number}

    def target(self, last: Instruction) -> int | None:
        """Return the block that a jump or a call goes to; None outside of the function."""
        return None if last.target is None else self._number.get(last.target)

    def after(self, index: int) -> tuple[int, ...]:
        """Return the blocks that may run after a block; calls return to the next."""
        last = self.lasts[index]
        following = (index + 1,) if index + 1 < len(self.blocks) else ()
        # A jump under `!PT` is never taken; as an edge it would invent a loop.
        if last.never_runs:
            return following
        if last.base in JUMPS:
            target = self.target(last)
            taken = () if target is None else (target,)
            return tuple(dict.fromkeys((*taken, *(following if _falls_through(last) else ()))))
        if last.base in INDIRECT:
            self.unknown.append(index)
        if last.base in INDIRECT or last.base in ENDS:
            return following if last.is_conditional else ()
        if last.base == "BSYNC":
            met = _met_after(last, self._meetings)
            if met is not None and met != last.offset and met in self._number:
                return (self._number[met],)
        return following


def _with_unknown_ways(
    ways: _Ways, after: Sequence[tuple[int, ...]], entered: Collection[int], ran: Collection[int]
) -> list[tuple[int, ...]]:
    """Let jumps by a table lead to every block that ran and has no other way in."""
    reached = {one for found in after for one in found} | set(entered)
    orphans = [index for index, first in enumerate(ways.firsts) if index not in reached and (not ran or first in ran)]
    changed = list(after)
    for index in ways.unknown:
        changed[index] = tuple(dict.fromkeys((*after[index], *orphans)))
    return changed


def _with_jumping_calls(ways: _Ways, after: Sequence[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], set[int]]:
    """Take calls within the function from which nothing returns for the jumps that they are.

    Returns:
        What may run after each block, and the blocks that are called and return.
    """
    before: list[list[int]] = [[] for _ in after]
    for index, found in enumerate(after):
        for one in found:
            before[one].append(index)
    returning = _reached((index for index, last in enumerate(ways.lasts) if last.base == "RET"), before)
    changed, called = list(after), set[int]()
    for index, last in enumerate(ways.lasts):
        target = ways.target(last) if last.base in CALLS else None
        if target is None:
            continue
        # A call from which nothing returns is a jump: what stands behind it does not run after it.
        if target in returning:
            called.add(target)
        else:
            changed[index] = (target, *after[index]) if last.is_conditional else (target,)
    return changed, called


def _reached(starts: Iterable[int], after: Sequence[Iterable[int]], known: Iterable[int] = ()) -> set[int]:
    """Return all blocks that some lead to, those themselves too, with those that are known to be reached."""
    waiting = list(starts)
    found = known if isinstance(known, set) else set(known)
    found.update(waiting)
    while waiting:
        for one in after[waiting.pop()]:
            if one not in found:
                found.add(one)
                waiting.append(one)
    return found


def _falls_through(last: Instruction) -> bool:
    """Return whether a jump may not be taken: under a predicate, or with one as its first operand."""
    return last.is_conditional or last.may_fall_through


def _leaders(
    instructions: Sequence[Instruction], at: Mapping[int, int], entries: Iterable[int]
) -> tuple[set[int], set[int]]:
    """Return the positions at which blocks start, and the offsets at which the function is entered."""
    starts = {0} if instructions else set()
    roots = {instructions[0].offset} if instructions else set()
    roots |= {entry for entry in entries if entry in at}
    for position, one in enumerate(instructions):
        if one.target is not None and one.target in at:
            starts.add(at[one.target])
        if one.ends_block and position + 1 < len(instructions):
            starts.add(position + 1)
    starts |= {at[root] for root in roots}
    return starts, roots


def _meetings(instructions: Sequence[Instruction]) -> dict[int | None, list[tuple[int, int]]]:
    """Return where threads meet again, by barrier register: offset of each `BSSY`, and its target."""
    found: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for one in instructions:
        if one.base == "BSSY" and one.target is not None:
            found[one.barrier].append((one.offset, one.target))
    return found


def _met_after(sync: Instruction, meetings: Mapping[int | None, Sequence[tuple[int, int]]]) -> int | None:
    """Return where threads go on after a `BSYNC`; None if it is what stands next."""
    found = meetings.get(sync.barrier, ())
    following = sync.offset + 16
    if not found or any(target == following for _, target in found):
        return None
    earlier = [target for offset, target in found if offset < sync.offset]
    return earlier[-1] if earlier else None


def _order(graph: Graph) -> list[int]:
    """Return the blocks that can be reached, each before those that run after it but for jumps back."""
    seen: set[int] = set()
    order: list[int] = []
    for root in graph.roots:
        if root in seen:
            continue
        seen.add(root)
        # Not recursive: a function of ten thousand blocks would pass Python's limit.
        stack = [(root, iter(graph.after[root]))]
        while stack:
            block, rest = stack[-1]
            for one in rest:
                if one not in seen:
                    seen.add(one)
                    stack.append((one, iter(graph.after[one])))
                    break
            else:
                order.append(block)
                stack.pop()
    return order[::-1]


def _enter_what_ran(graph: Graph, ran: Collection[int]) -> None:
    """Take blocks that ran, and that no known way leads to, for entries."""
    reached = _reached(graph.roots, graph.after)
    roots = list(graph.roots)
    for index, block in enumerate(graph.blocks):
        # It has a count, so it ran: better a root too many than a loop that is missed.
        if index not in reached and graph.instructions[block.first].offset in ran:
            roots.append(index)
            reached = _reached([index], graph.after, reached)
    graph.roots = tuple(roots)
    for index, found in enumerate(graph.before):
        graph.before[index] = [one for one in found if one in reached]


_TOP = -1
"""Stands above all roots."""


def _dominators(graph: Graph, order: Sequence[int], rank: Mapping[int, int]) -> dict[int, int]:
    """Return the nearest block that every way to a block passes (Cooper, Harvey and Kennedy)."""
    above: dict[int, int] = dict.fromkeys(graph.roots, _TOP)
    is_root = set(graph.roots)

    def height(block: int) -> int:
        return -1 if block == _TOP else rank[block]

    def meet(one: int, other: int) -> int:
        while one != other:
            if height(one) > height(other):
                one = above[one]
            else:
                other = above[other]
        return one

    changed = True
    while changed:
        changed = False
        for block in order:
            known = [one for one in graph.before[block] if one in above]
            if block in is_root or not known:
                continue
            found = known[0]
            for one in known[1:]:
                found = meet(one, found)
            if above.get(block) != found:
                above[block] = found
                changed = True
    return above


def _latches(graph: Graph) -> dict[int, list[int]] | None:
    """Return the blocks that jump back, by the header they jump to; None if a cycle has no header."""
    order = _order(graph)
    rank = {block: place for place, block in enumerate(order)}
    above = _dominators(graph, order, rank)
    latches: dict[int, list[int]] = defaultdict(list)
    for block in order:
        for one in graph.after[block]:
            if rank[one] > rank[block] or len(latches) > MOST_LOOPS:
                continue
            walker = block
            while walker not in (one, _TOP):
                walker = above[walker]
            if walker == _TOP:
                return None
            latches[one].append(block)
    return latches


def _find_rings(graph: Graph) -> None:
    """Find the natural loops, or that there are other cycles."""
    latches = _latches(graph)
    # A cycle with two entries has no header, so no trip count: it is said that there are such, and nothing is guessed.
    if latches is None:
        graph.is_irreducible = True
        return
    # Generated code can have thousands of loops, and finding each body walks the graph again.
    if len(latches) > MOST_LOOPS:
        graph.has_too_many_loops = True
        return
    for header, back in latches.items():
        blocks = {header, *back}
        stack = [one for one in back if one != header]
        while stack:
            for one in graph.before[stack.pop()]:
                if one not in blocks:
                    blocks.add(one)
                    stack.append(one)
        graph.rings.append(Ring(header, blocks, tuple(back)))
    graph.rings.sort(key=lambda ring: (graph.blocks[ring.header].first, -len(ring.blocks)))
    inner_first = sorted(range(len(graph.rings)), key=lambda index: len(graph.rings[index].blocks))
    for place, index in enumerate(inner_first):
        ring = graph.rings[index]
        ring.parent = next(
            (other for other in inner_first[place + 1 :] if ring.header in graph.rings[other].blocks), None
        )
