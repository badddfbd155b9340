"""The flow of control of one function: blocks, edges, and natural loops with their nesting, each in linear time."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field

from rooflens.model.inside.budget import StepBudget
from rooflens.model.inside.instruction import CALLS, END_BLOCKS, ENDS, INDIRECT, INSTRUCTION_BYTES, JUMPS, Instruction

MOST_LOOPS = 400
"""A function with more is left out: real ones have some dozens, and all of them are judged and shown."""

_MOST_WAYS = 4
"""Most ways that jumps by tables add, an instruction of the function: all of them may lead to all orphans."""


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
        latches: Blocks that jump back to the header.
        blocks: Its blocks, header first, without those of the loops inside it.
        parent: Index of the loop around it; None for an outermost one.
        depth: How many loops it is in, itself too.
    """

    header: int
    latches: tuple[int, ...]
    blocks: list[int]
    parent: int | None = None
    depth: int = 1


class Graph(Struct):
    """The flow of control of a function.

    Attributes:
        instructions: In the order of their offsets.
        blocks: In that order, too.
        after, before: Blocks that may run after, or before, each block.
        roots: Blocks that something outside enters: the function's start, and what is called.
        order: The blocks that can be reached, each before those that run after it but for jumps back.
        rings: Its loops, by where their headers stand.
        ring_of: Index of the innermost loop that each block is in; no entry for those in none.
        is_irreducible: A cycle has two entries, so that it has no header and is no natural loop.
        has_too_many_ways: Jumps by tables may lead to so many places that these ways are left out.
        has_too_many_loops: There are more than `MOST_LOOPS`.
    """

    instructions: Sequence[Instruction]
    blocks: list[Block]
    after: list[tuple[int, ...]]
    before: list[list[int]]
    roots: tuple[int, ...]
    order: list[int] = field(default_factory=list)
    rings: list[Ring] = field(default_factory=list)
    ring_of: dict[int, int] = field(default_factory=dict)
    is_irreducible: bool = False
    has_too_many_ways: bool = False
    has_too_many_loops: bool = False

    def block_of(self, position: int) -> int:
        """Return the block that an instruction is in, by its position."""
        return bisect_left(self.blocks, position + 1, key=lambda block: block.first) - 1


def flow(
    instructions: Sequence[Instruction],
    entries: Iterable[int] = (),
    ran: Collection[int] = frozenset(),
    *,
    left_out: Collection[tuple[int, int]] | None = None,
    budget: StepBudget | None = None,
) -> Graph:
    """Find blocks, edges and loops of what can be reached, or ran.

    Args:
        instructions: All of one function, in the order of their offsets.
        entries: Offsets besides the first instruction at which it is entered.
        ran: Offsets of instructions that were counted: what no known way leads to is entered there.
        left_out: Ways from block to block that are left out, as are all ways to blocks that were never counted; by
            default, none is.
        budget: How many steps it may take; by default more than real code needs.

    Raises:
        TooManyStepsError: It takes more.
    """
    budget = budget or StepBudget.of(len(instructions))
    budget.take(len(instructions))
    at = {one.offset: position for position, one in enumerate(instructions)}
    starts, roots = _leaders(instructions, at, entries)
    firsts = sorted(starts)
    blocks = [Block(first, end) for first, end in zip(firsts, [*firsts[1:], len(instructions)], strict=True)]
    number = {block.first: index for index, block in enumerate(blocks)}
    ways = _Ways(instructions, blocks, at, number)
    after, called = _with_jumping_calls(ways, [ways.after(index) for index in range(len(blocks))])
    # Jump tables are data that is not read. Blocks that ran and have no other way in are what they must lead to.
    entered = {number[at[root]] for root in roots} | called
    orphans = _orphans(ways, after, entered, ran) if ways.unknown else []
    has_too_many_ways = len(ways.unknown) * len(orphans) > _MOST_WAYS * len(instructions)
    for index in () if has_too_many_ways else ways.unknown:
        after[index] = tuple(dict.fromkeys((*after[index], *orphans)))
    if left_out is not None:
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
        tuple(sorted(entered)),
        has_too_many_ways=has_too_many_ways,
    )
    budget.take(len(blocks) + sum(map(len, after)))
    _enter_what_ran(graph, ran)
    _find_rings(graph, budget)
    return graph


class _Meetings:
    """Where threads that keep it in one barrier register meet again."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._targets: list[int] = []
        self._all: set[int] = set()

    def add(self, offset: int, target: int) -> None:
        """Add the offset of a `BSSY`, which rises from one to the next, and where it says that threads meet."""
        self._offsets.append(offset)
        self._targets.append(target)
        self._all.add(target)

    def after(self, sync: int) -> int | None:
        """Return where threads go on after the `BSYNC` at an offset; None if it is what stands next."""
        earlier = bisect_left(self._offsets, sync)
        return None if not earlier or sync + INSTRUCTION_BYTES in self._all else self._targets[earlier - 1]


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
        self._meetings: dict[int | None, _Meetings] = defaultdict(_Meetings)
        for one in instructions:
            if one.base == "BSSY" and one.target is not None:
                self._meetings[one.barrier].add(one.offset, one.target)
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
            met = self._meetings[last.barrier].after(last.offset)
            if met is not None and met != last.offset and met in self._number:
                return (self._number[met],)
        return following


def _orphans(
    ways: _Ways, after: Sequence[tuple[int, ...]], entered: Collection[int], ran: Collection[int]
) -> list[int]:
    """Return every block that ran and has no known way in."""
    reached = {one for found in after for one in found} | set(entered)
    return [index for index, first in enumerate(ways.firsts) if index not in reached and (not ran or first in ran)]


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
            changed[index] = tuple(dict.fromkeys((target, *after[index]))) if last.is_conditional else (target,)
    return changed, called


def _reached(starts: Iterable[int], after: Sequence[Iterable[int]], reached: Iterable[int] = ()) -> set[int]:
    """Return all blocks that some lead to, those themselves too, with those that are known to be reached."""
    waiting = list(starts)
    found = reached if isinstance(reached, set) else set(reached)
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
        if one.base in END_BLOCKS:
            starts.add(position + 1)
    starts.discard(len(instructions))
    starts |= {at[root] for root in roots}
    return starts, roots


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


class _Walk(Struct):
    """A walk through a graph, depth first.

    Attributes:
        met: The blocks that can be reached, in the order in which they are met.
        rank: Place of each in that order.
        last: Place of the last block that is met from each, so that those met from it stand between.
        done: The blocks in the order in which all that runs after them was met.
    """

    met: list[int] = field(default_factory=list)
    rank: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    done: list[int] = field(default_factory=list)

    def leads(self, block: int, other: int) -> bool:
        """Return whether a block was met from another, or is it."""
        return self.rank[block] <= self.rank[other] <= self.last[block]


def _walked(graph: Graph) -> _Walk:
    walk = _Walk()
    # Not recursive: a function of ten thousand blocks would pass Python's limit.
    for root in graph.roots:
        stack = [(root, iter((root,)))]
        while stack:
            block, rest = stack[-1]
            for one in rest:
                if one not in walk.rank:
                    walk.rank[one] = len(walk.met)
                    walk.met.append(one)
                    stack.append((one, iter(graph.after[one])))
                    break
            else:
                stack.pop()
                if stack:
                    walk.last[block] = len(walk.met) - 1
                    walk.done.append(block)
    return walk


def _find_rings(graph: Graph, budget: StepBudget) -> None:
    """Find the natural loops, inner ones first, or that there are other cycles (Tarjan 1974, Havlak 1997).

    Of what was met after a header, all that leads back to it is its loop. A loop that was found stands for all of its
    blocks from then on, so that no block is gone through twice.
    """
    walk = _walked(graph)
    graph.order = walk.done[::-1]
    budget.take(len(walk.met) + sum(len(graph.before[block]) for block in walk.met))
    roots = set(graph.roots)
    found: dict[int, Ring] = {}
    outer: dict[int, int] = {}
    around: dict[int, int] = {}
    for header in reversed(walk.met):
        latches = [block for block in graph.before[header] if walk.leads(header, block)]
        if not latches:
            continue
        inside = {_outermost(around, latch) for latch in latches} - {header}
        waiting = list(inside)
        while waiting:
            block = waiting.pop()
            # A cycle with two entries has no header, so no trip count: that is said, and nothing is guessed.
            if block in roots or not all(walk.leads(header, before) for before in graph.before[block]):
                graph.is_irreducible = True
                return
            more = {_outermost(around, before) for before in graph.before[block]} - inside - {header}
            inside |= more
            waiting += more
        around |= dict.fromkeys(inside, header)
        outer |= dict.fromkeys(inside & found.keys(), header)
        found[header] = Ring(header, tuple(latches), [header, *sorted(inside - found.keys())])
    for header in reversed(found):
        found[header].depth += found[outer[header]].depth if header in outer else 0
    graph.has_too_many_loops = len(found) > MOST_LOOPS
    headers = sorted(found, key=lambda header: graph.blocks[header].first)
    index_of = {header: index for index, header in enumerate(headers)}
    for header in headers:
        ring = found[header]
        ring.parent = index_of[outer[header]] if header in outer else None
        graph.rings.append(ring)
        graph.ring_of |= dict.fromkeys(ring.blocks, index_of[header])


def _outermost(around: dict[int, int], block: int) -> int:
    """Return the header of the outermost loop found so far that a block is in; else the block itself."""
    found = block
    while found in around:
        found = around[found]
    # The next search for it is short.
    while block != found:
        around[block], block = found, around[block]
    return found
