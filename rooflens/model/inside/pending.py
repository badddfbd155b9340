"""What may be pending when an instruction issues, carried forward along the flow of control.

It is the data-flow analysis of textbooks (Kildall 1973). A state says what is pending. Instructions change it one after
the other; where ways meet, what is pending on either of them is; blocks that then find more pending than before are
gone through again, until nothing changes. States only grow there, so it ends: for code as compilers write it after two
or three visits of each block.

Three kinds are here: who holds something until it is freed (`Holders`: scoreboards, registers), what took longest since
the last barrier (`SinceBarrier`), and which groups of copies or products are under way (`CopyGroups`, `ProductGroups`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice, zip_longest
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from rooflens.model.inside.budget import StepBudget
from rooflens.model.inside.graph import Graph
from rooflens.model.inside.instruction import Instruction
from rooflens.model.roofline.opcodes import THREAD_COPY, WARPGROUP_PRODUCTS

State = TypeVar("State")

_CLOSE = "LDGDEPBAR"
"""The end of a group of asynchronous copies."""


class Pending(ABC, Generic[State]):
    """One kind of what may be pending in a function.

    Args:
        graph: The function.
        places: Positions of the instructions that change what is pending, in their order.
        nothing: The state in which nothing is: where the function is entered.
    """

    def __init__(self, graph: Graph, places: Sequence[int], nothing: State) -> None:
        self._graph = graph
        self._places = places
        self._nothing = nothing
        firsts = [bisect_left(places, block.first) for block in graph.blocks]
        self._numbers = [range(*ends) for ends in zip(firsts, [*firsts[1:], len(places)], strict=True)]
        self._entering: Sequence[State] = ()

    @abstractmethod
    def behind(self, number: int, state: State) -> State:
        """Return what is pending behind an instruction of `places`, by its number in them, from what is before it."""

    @abstractmethod
    def joined(self, state: State, other: State) -> State:
        """Return what is pending where two ways meet."""

    def settle(self, budget: StepBudget) -> None:
        """Find what may be pending where each block begins.

        Raises:
            TooManyStepsError: It takes too many steps.
        """
        order, after = self._graph.order, self._graph.after
        rank = {block: place for place, block in enumerate(order)}
        entering = [self._nothing] * len(self._graph.blocks)
        # Forward through all that is to be visited, then again from where jumps back led: with a nest of loops that is
        # far less than to repeat each inner loop until it is settled.
        sweep = list(range(len(order)))
        while sweep:
            again: set[int] = set()
            queued = set(sweep)
            while sweep:
                place = heappop(sweep)
                block = order[place]
                budget.take(1 + len(self._numbers[block]) + len(after[block]))
                state = entering[block]
                for number in self._numbers[block]:
                    state = self.behind(number, state)
                for one in after[block]:
                    merged = self.joined(entering[one], state)
                    if merged == entering[one]:
                        continue
                    entering[one] = merged
                    if rank[one] <= place:
                        again.add(rank[one])
                    elif rank[one] not in queued:
                        queued.add(rank[one])
                        heappush(sweep, rank[one])
            sweep = sorted(again)
        self._entering = entering

    def before(self, positions: Iterable[int]) -> Iterator[tuple[int, State]]:
        """Yield each of some positions, which must rise, with what may be pending when its instruction issues."""
        end, at, state = 0, 0, self._nothing
        for position in positions:
            if position >= end:
                block = self._graph.block_of(position)
                end, at, state = self._graph.blocks[block].end, self._numbers[block].start, self._entering[block]
            while at < len(self._places) and self._places[at] < position:
                state = self.behind(at, state)
                at += 1
            yield position, state


class HeldChange(Struct, frozen=True):
    """What an instruction does to who holds what.

    Attributes:
        position: The instruction's.
        frees: Names that nobody holds afterwards, but itself.
        takes: Names that it holds from then on, beside others.
    """

    position: int
    frees: tuple[int, ...]
    takes: tuple[int, ...]


class Holders(Pending[int]):
    """Which instructions may hold each name: a scoreboard, from setting it on, or a register, from writing it on.

    A state is a set of facts, each that an instruction holds a name, as the bits of one number.

    Args:
        graph: The function.
        changes: What its instructions do, in their order.

    Attributes:
        positions: For each fact, in the order of the instructions, the position of the one that holds.
    """

    def __init__(self, graph: Graph, changes: Sequence[HeldChange]) -> None:
        super().__init__(graph, [change.position for change in changes], 0)
        self.positions: list[int] = []
        self._of_name: dict[int, int] = {}
        self._taken: list[int] = []
        for change in changes:
            taken = 0
            for name in change.takes:
                fact = 1 << len(self.positions)
                self.positions.append(change.position)
                self._of_name[name] = self._of_name.get(name, 0) | fact
                taken |= fact
            self._taken.append(taken)
        freed = {frees: self.of(frees) for frees in {change.frees for change in changes}}
        self._freed = [freed[change.frees] for change in changes]

    def behind(self, number: int, state: int) -> int:
        """Return the facts that are left behind an instruction, and those that it makes."""
        return state & ~self._freed[number] | self._taken[number]

    def joined(self, value: int, other: int) -> int:
        """Return the facts of both ways."""
        return value | other

    def of(self, names: Iterable[int]) -> int:
        """Return all facts about some names."""
        found = 0
        for name in names:
            found |= self._of_name.get(name, 0)
        return found

    def instructions(self, facts: int, most: int) -> list[int]:
        """List the positions of the first instructions that some facts are about."""
        found: list[int] = []
        for at in _ones(facts):
            if len(found) == most:
                break
            if not found or found[-1] != self.positions[at]:
                found.append(self.positions[at])
        return found


def _ones(number: int) -> Iterator[int]:
    """Yield the places of the bits of a number that are set, the lowest first."""
    digits = f"{number:b}"[::-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


class Took(NamedTuple):
    """How long an instruction took, and its position; the later one of two that took equally long is the longer."""

    time: float = 0.0
    position: int = -1


class Longest(NamedTuple):
    """What took longest.

    Attributes:
        since: Since the last barrier.
        earlier: From the barrier before that to the last one.
    """

    since: Took = Took()
    earlier: Took = Took()


class SinceBarrier(Pending[Longest]):
    """What took longest since the last barrier, and before that up to it.

    Args:
        graph: The function.
        times: By position, how long what may count took.
    """

    def __init__(self, graph: Graph, times: Mapping[int, float]) -> None:
        barriers = {position for position, one in enumerate(graph.instructions) if one.base == "BAR"}
        places = sorted(barriers | times.keys())
        super().__init__(graph, places, Longest())
        self._took = [None if position in barriers else Took(times[position], position) for position in places]

    def behind(self, number: int, state: Longest) -> Longest:
        """Return what took longest behind an instruction: behind a barrier nothing has since."""
        took = self._took[number]
        if took is None:
            return Longest(Took(), state.since)
        return state if took <= state.since else Longest(took, state.earlier)

    def joined(self, longest: Longest, other: Longest) -> Longest:
        """Return what took longer on either way."""
        return Longest(max(longest.since, other.since), max(longest.earlier, other.earlier))


Tiles: TypeAlias = "tuple[int, ...]"
"""Whether a tile is read (1), and the members of each group under way, as bits of a number.

The group that is still open comes first, then the newest closed.
"""

_MOST_GROUPS = 16
"""Kernels have at most eight under way; older ones count as one."""
_MOST_MEMBERS = 256
"""Of more members that are waited for the first are told; real code has some dozens."""


class Groups(Pending[Tiles]):
    """Which groups of what runs in the background may be under way.

    A member joins the open group, something closes it, and a wait leaves so many of the newest. Where ways meet, groups
    of equal age are one.

    Args:
        graph: The function.

    Attributes:
        members: Positions of the members, by the number of their bit.
    """

    def __init__(self, graph: Graph) -> None:
        instructions = graph.instructions
        self.members = [place for place, one in enumerate(instructions) if self.is_member(one)]
        places = [place for place, one in enumerate(instructions) if self.matters(one)] if self.members else []
        super().__init__(graph, places, (0, 0))
        self._does = [instructions[place] for place in places]
        number_of = {place: number for number, place in enumerate(self.members)}
        self._bits = [1 << number_of[place] if place in number_of else 0 for place in places]

    @staticmethod
    @abstractmethod
    def is_member(instruction: Instruction) -> bool:
        """Return whether an instruction joins the open group."""

    @staticmethod
    @abstractmethod
    def closes(instruction: Instruction) -> bool:
        """Return whether an instruction closes the open group."""

    @staticmethod
    @abstractmethod
    def leaves(instruction: Instruction) -> int | None:
        """Return how many groups an instruction leaves under way; None if it waits for none."""

    @classmethod
    def matters(cls, instruction: Instruction) -> bool:
        """Return whether an instruction changes what is under way."""
        return cls.is_member(instruction) or cls.closes(instruction) or cls.leaves(instruction) is not None

    def behind(self, number: int, state: Tiles) -> Tiles:
        """Return the groups behind a member, the end of a group, or a wait."""
        one, bit = self._does[number], self._bits[number]
        if bit:
            state = (state[0], state[1] | bit, *state[2:])
        if self.closes(one):
            older = state[1:] if len(state) < _MOST_GROUPS else (*state[1:-2], state[-2] | state[-1])
            return (state[0], 0, *older)
        left = self.leaves(one)
        return state if left is None else state[: 2 + left]

    def joined(self, tiles: Tiles, other: Tiles) -> Tiles:
        """Return the groups of both ways, by their age."""
        if tiles == other:
            return tiles
        return tuple(left | right for left, right in zip_longest(tiles, other, fillvalue=0))

    def awaited(self, state: Tiles, leaves: int) -> list[int]:
        """Return the positions of the first members that a wait waits for, given the groups under way before it."""
        waited = 0
        for group in state[2 + leaves :]:
            waited |= group
        return [self.members[number] for number in islice(_ones(waited), _MOST_MEMBERS)]

    def left(self, state: Tiles, leaves: int) -> int:
        """Return how many groups are under way behind a wait."""
        return sum(map(bool, state[2 : 2 + leaves]))


class CopyGroups(Groups):
    """Which groups of asynchronous copies to shared memory may be under way, and whether a tile is read meanwhile.

    `LDGDEPBAR` closes a group, and `DEPBAR.LE SB0, n` waits for all but the newest n. A tile is read from its first
    load on until a barrier, as other warps of the block may be behind.
    """

    @staticmethod
    def is_member(instruction: Instruction) -> bool:
        """Return whether an instruction is a copy."""
        return instruction.base == THREAD_COPY

    @staticmethod
    def closes(instruction: Instruction) -> bool:
        """Return whether it is `cp.async.commit_group`."""
        return instruction.base == _CLOSE

    @staticmethod
    def leaves(instruction: Instruction) -> int | None:
        """Return what `cp.async.wait_group` leaves."""
        return instruction.leaves_groups

    @classmethod
    def matters(cls, instruction: Instruction) -> bool:
        """Return whether it changes which copies are under way, or what is read."""
        return super().matters(instruction) or instruction.base == "BAR" or instruction.kind == "shared load"

    def behind(self, number: int, state: Tiles) -> Tiles:
        """Return the tiles behind a copy, the end of a group, a wait, a read or a barrier."""
        one = self._does[number]
        if one.base == "BAR" or one.kind == "shared load":
            return (int(one.base != "BAR"), *state[1:])
        return super().behind(number, state)

    def held(self, place: int, state: Tiles) -> int:
        """Return how many tiles shared memory holds where a copy or a read issues; behind a wait, those under way."""
        one = self._graph.instructions[place]
        if one.leaves_groups is not None:
            return self.left(state, one.leaves_groups)
        is_copy = one.base == THREAD_COPY
        return (state[0] if is_copy else 1) + (is_copy or bool(state[1])) + sum(map(bool, state[2:]))


class ProductGroups(Groups):
    """Which groups of products of four warps may be under way: `wgmma.commit_group` and `wgmma.wait_group`.

    The last product of a group says so itself.
    """

    @staticmethod
    def is_member(instruction: Instruction) -> bool:
        """Return whether an instruction is an asynchronous tensor product."""
        return instruction.base in WARPGROUP_PRODUCTS

    @staticmethod
    def closes(instruction: Instruction) -> bool:
        """Return whether it is the last of a group."""
        return instruction.closes_products

    @staticmethod
    def leaves(instruction: Instruction) -> int | None:
        """Return what `wgmma.wait_group` leaves."""
        return instruction.leaves_products
