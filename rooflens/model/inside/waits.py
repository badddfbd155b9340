"""What each sampled wait waits for: the instruction that made it wait.

The encoding says it: an instruction that waits for a scoreboard waits for those that set it since somebody last waited
for it. Where several did, registers tell which of them it needs; where none did, registers alone tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rooflens.model.hotspots import STALL
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.graph import Graph
from rooflens.model.inside.instruction import SCOREBOARDS, Instruction
from rooflens.model.records import Wait, WaitFound

SCOREBOARD_WAITS: Mapping[str, frozenset[str]] = {
    "long_scoreboard": frozenset({"global load", "atomic", "local", "texture"}),
    "short_scoreboard": frozenset({"shared load", "shared store", "special", "atomic", "between threads", ""}),
}
"""Reason to wait -> kinds of instructions that can be what is waited for; others count where none of these is."""

_OF_QUEUE: Mapping[str, frozenset[str]] = {
    "lg_throttle": frozenset({"global load", "global store", "atomic", "local"}),
    "mio_throttle": frozenset(
        {"shared load", "shared store", "special", "barrier", "between threads", "constant load"}
    ),
    "tex_throttle": frozenset({"texture"}),
}
"""Reason -> kinds of instructions that fill the queue it is about."""

_OF_STORES = frozenset({"drain", "membar"})
_STORES = frozenset({"global store", "atomic", "shared store"})
_MOST_PRODUCERS = 64
_MOST_VISITS = 32
"""Most visits of a block, on average, until its scoreboards settle; real code needs a few."""

_MOST_BACK = 4096
"""How many instructions are looked back over for a producer that no scoreboard names."""

_ASYNC_COPY, _ASYNC_WAIT = "LDGSTS", "DEPBAR"


def find_waits(code: MachineCode, finders: Iterable[Finder]) -> dict[int, tuple[Wait, ...]]:
    """Find what the samples at each instruction wait for, most samples first; nothing if unclear.

    Args:
        code: The instructions, and the samples at them.
        finders: One for each function.

    Returns:
        By offset of the instruction that waits; samples of one reason are shared among all that it waits for.
    """
    reasons = {
        measure.removeprefix(STALL): at for measure, at in code.amounts.items() if measure.startswith(STALL) and at
    }
    found: dict[int, tuple[Wait, ...]] = {}
    for finder in finders:
        for position, one in enumerate(finder.instructions):
            waits: list[Wait] = []
            for reason, at in reasons.items():
                if samples := at.get(one.offset):
                    producers, how = finder.producers(position, reason)
                    waits += (
                        Wait(made.offset, made.file, made.line, made.base, samples / len(producers), reason, how)
                        for made in producers
                    )
            if waits:
                found[one.offset] = tuple(sorted(waits, key=lambda wait: (-wait.samples, wait.pc)))
    return found


class Finder:
    """Finds producers in one function.

    Args:
        graph: Its flow of control.
        code: What was measured of the kernel.
    """

    def __init__(self, graph: Graph, code: MachineCode) -> None:
        self.instructions = graph.instructions
        self._graph = graph
        self._position = {one.offset: place for place, one in enumerate(graph.instructions)}
        self._samples = code.amounts.get("samples", {})
        self._executed = code.amounts.get("warp_inst", {})
        self._barrier = code.amounts.get(f"{STALL}barrier", {})
        instructions = graph.instructions
        self._async = sum(1 << place for place, one in enumerate(instructions) if one.base == _ASYNC_COPY)
        self._scoreboards = Scoreboards(graph)
        self._at_barrier: dict[int, list[Instruction]] = {}

    def producers(self, position: int, reason: str) -> tuple[Sequence[Instruction], WaitFound]:
        """Return what an instruction waits for, and how that was found; nothing if unclear."""
        one = self._graph.instructions[position]
        if reason in SCOREBOARD_WAITS:
            made = self._by_scoreboard(position, SCOREBOARD_WAITS[reason])
            if made:
                return made, "scoreboard"
            return self.by_registers(position), "registers"
        if reason in _OF_QUEUE:
            return self._nearest(position, lambda other: other.kind in _OF_QUEUE[reason], itself=True), "queue"
        if reason in _OF_STORES:
            return self._nearest(position, lambda other: other.kind in _STORES), "order"
        if reason == "barrier" and one.base != "EXIT":
            return self._before_barrier(position), "barrier"
        return (), "order"

    def __contains__(self, offset: int) -> bool:
        return offset in self._position

    def in_flight(self, offset: int) -> int | None:
        """Return how many global loads are under way where an instruction waits; None if no scoreboard tells."""
        if not self._scoreboards.are_settled:
            return None
        under_way = 0
        for of_board in self._scoreboards.held_at(self._position[offset]):
            under_way |= of_board
        return sum(self._graph.instructions[place].kind == "global load" for place in _places(under_way))

    def _by_scoreboard(self, position: int, kinds: frozenset[str]) -> list[Instruction]:
        """Return the instructions that set a scoreboard an instruction waits for, and whose registers it reads."""
        if not self._scoreboards.are_settled:
            return []
        one = self._graph.instructions[position]
        waited = 0
        for board, holders in enumerate(self._scoreboards.held_at(position)):
            if one.waits >> board & 1:
                waited |= holders
        # The wait for asynchronous copies is sampled at the instruction after it.
        before = self._graph.instructions[position - 1] if position else one
        if self._async and "global load" in kinds and _ASYNC_WAIT in {one.base, before.base}:
            waited = self._async
        every = [self._graph.instructions[place] for place in _places(waited)]
        ran = [made for made in every if made.offset in self._executed] or every
        of_kind = [made for made in ran if made.kind in kinds] or ran
        touched = one.reads | one.writes
        needed = [made for made in of_kind if made.writes & touched or made.reads & one.writes]
        return (needed or of_kind)[:_MOST_PRODUCERS]

    def by_registers(self, position: int) -> list[Instruction]:
        """Return the variable-latency instructions that last wrote an instruction's operands."""
        graph = self._graph
        wanted = graph.instructions[position].reads
        found: dict[int, Instruction] = {}
        seen: set[tuple[int, frozenset[int]]] = set()
        stack = [(graph.block_of(position), position, wanted)] if wanted else []
        steps = 0
        while stack and steps < _MOST_BACK:
            block, end, needed = stack.pop()
            steps += end - graph.blocks[block].first + 1
            left = self._defined(block, end, needed, found)
            for before in graph.before[block] if left else ():
                if (before, left) not in seen:
                    seen.add((before, left))
                    stack.append((before, graph.blocks[before].end, left))
        return [found[offset] for offset in sorted(found)][:_MOST_PRODUCERS]

    def _defined(self, block: int, end: int, needed: frozenset[int], found: dict[int, Instruction]) -> frozenset[int]:
        """Collect what makes the needed registers in a block before a position; return those made before it."""
        for place in range(end - 1, self._graph.blocks[block].first - 1, -1):
            made = self._graph.instructions[place]
            if made.writes & needed:
                if made.kind and made.kind not in {"barrier", "constant load"}:
                    found[made.offset] = made
                if not made.is_conditional:
                    needed -= made.writes
            if not needed:
                break
        return needed

    def _back(self, position: int) -> Iterator[tuple[int, Instruction]]:
        """Yield instructions before one, nearest first, over all ways back; each block once."""
        graph = self._graph
        start = graph.block_of(position)
        queue, seen, steps = [(start, position)], {start}, 0
        for block, end in queue:  # grows while it is walked
            for place in range(end - 1, graph.blocks[block].first - 1, -1):
                steps += 1
                if steps > _MOST_BACK:
                    return
                yield place, graph.instructions[place]
            for before in graph.before[block]:
                if before not in seen:
                    seen.add(before)
                    queue.append((before, graph.blocks[before].end))

    def _nearest(
        self, position: int, is_it: Callable[[Instruction], bool], *, itself: bool = False
    ) -> list[Instruction]:
        """Return an instruction if it is of some kind, else the nearest such one before it."""
        graph, one = self._graph, self._graph.instructions[position]
        if itself and is_it(one):
            return [one]
        for place in range(position - 1, max(-1, position - _MOST_BACK), -1):  # behind EXIT no way leads back
            made = graph.instructions[place]
            if is_it(made) and made.offset in self._executed:
                return [made]
        return []

    def _before_barrier(self, position: int) -> list[Instruction]:
        """Return what takes most of the time before a barrier: what the last warp to arrive did.

        Where that waits itself, it is what it waits for.
        """
        if position in self._at_barrier:
            return self._at_barrier[position]
        most, best = 0.0, None
        # The wait is sampled at what stands behind the barrier.
        has_passed = self._graph.instructions[position].base == "BAR"
        for place, one in self._back(position):
            if one.base == "BAR":
                if has_passed:
                    break
                has_passed = True
                continue
            samples = self._samples.get(one.offset, 0.0) - self._barrier.get(one.offset, 0.0)
            # At the first instruction warps stand that have just started.
            if samples > most and one.offset in self._executed and place:
                most, best = samples, place
        found: list[Instruction] = []
        if best is not None:
            found = self._by_scoreboard(best, frozenset()) if self._scoreboards.are_settled else self.by_registers(best)
            found = found or [self._graph.instructions[best]]
        self._at_barrier[position] = found
        return found


Boards: TypeAlias = tuple[int, ...]
"""For each scoreboard a set of positions, as the bits of one number."""

_NOTHING: Boards = (0,) * SCOREBOARDS


class Scoreboards:
    """Who may hold each scoreboard when an instruction issues; who waits for one finds it free afterwards.

    Attributes:
        are_settled: False where that took too long to find, and nothing is known.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._entering: list[Boards] = [_NOTHING] * len(graph.blocks)
        self._before: dict[int, Sequence[Boards]] = {}
        self.are_settled = self._settle()

    def held_at(self, position: int) -> Boards:
        """Return who may hold each scoreboard when the instruction at a position issues."""
        block = self._graph.block_of(position)
        if block not in self._before:
            self._before[block] = [*self._through(block, self._entering[block])]
        return self._before[block][position - self._graph.blocks[block].first]

    def _settle(self) -> bool:
        """Carry what blocks leave to those that run after them, until nothing changes; False if that takes too long."""
        graph = self._graph
        # A block hands on what it does not wait for, and what it sets itself.
        kept_and_set = [self._effect(block) for block in range(len(graph.blocks))]
        waiting = list(range(len(graph.blocks)))[::-1]
        queued = set(waiting)
        for _ in range(_MOST_VISITS * len(graph.blocks)):
            if not waiting:
                break
            block = waiting.pop()
            queued.discard(block)
            leaving = [
                held & kept | own for held, (kept, own) in zip(self._entering[block], kept_and_set[block], strict=True)
            ]
            for after in graph.after[block]:
                merged = tuple(one | other for one, other in zip(self._entering[after], leaving, strict=True))
                if merged != self._entering[after]:
                    self._entering[after] = merged
                    if after not in queued:
                        queued.add(after)
                        waiting.append(after)
        return not waiting

    def _effect(self, block: int) -> list[tuple[int, int]]:
        """Return, by scoreboard, a mask of what a block leaves of what it finds, and what it sets."""
        found = [(-1, 0)] * SCOREBOARDS
        for place in range(self._graph.blocks[block].first, self._graph.blocks[block].end):
            one = self._graph.instructions[place]
            for board in range(SCOREBOARDS) if one.waits else ():
                if one.waits >> board & 1:
                    found[board] = (0, 0)
            for sets in (one.sets_written, one.sets_read):
                if sets is not None:
                    kept, own = found[sets]
                    found[sets] = (kept, own | 1 << place)
        return found

    def _through(self, block: int, state: Boards) -> Iterator[Boards]:
        """Yield who may hold the scoreboards before each instruction of a block."""
        for place in range(self._graph.blocks[block].first, self._graph.blocks[block].end):
            yield state
            one = self._graph.instructions[place]
            sets = [board for board in (one.sets_written, one.sets_read) if board is not None]
            if one.waits or sets:
                state = tuple(
                    (0 if one.waits >> board & 1 else held) | (1 << place if board in sets else 0)
                    for board, held in enumerate(state)
                )


def _places(bits: int) -> Iterator[int]:
    """Yield the positions of a set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
