"""What each sampled wait waits for: the instruction that made it wait.

The encoding says it: an instruction that waits for a scoreboard waits for those that set it since somebody last waited
for it. Where several did, registers tell which of them it needs; where none did, registers alone tell.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias, TypeVar

from rooflens.model.hotspots import STALL
from rooflens.model.inside.budget import StepBudget, TooManyStepsError
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.graph import Graph
from rooflens.model.inside.instruction import SCOREBOARDS
from rooflens.model.inside.mbarriers import BarrierRing, find_phases
from rooflens.model.inside.pending import CopyGroups, HeldChange, Holders, ProductGroups, SinceBarrier
from rooflens.model.records import Wait, WaitFound

SCOREBOARD_WAITS: Mapping[str, frozenset[str]] = {
    "long_scoreboard": frozenset({"global load", "atomic", "local", "texture"}),
    "short_scoreboard": frozenset({"shared load", "shared store", "special", "atomic", "between threads", ""}),
}
"""Reason to wait -> kinds of instructions that can be what is waited for; others count where none of these is."""

_BY_SCOREBOARD = SCOREBOARD_WAITS.keys()

_OF_QUEUE: Mapping[str, frozenset[str]] = {
    "lg_throttle": frozenset({"global load", "global store", "atomic", "local"}),
    "mio_throttle": frozenset(
        {"shared load", "shared store", "special", "barrier", "between threads", "constant load"}
    ),
    "tex_throttle": frozenset({"texture"}),
}
"""Reason -> kinds of instructions that fill the queue it is about."""

_STORES = frozenset({"global store", "atomic", "shared store"})
_OF_STORES: Mapping[str, frozenset[str]] = {"drain": _STORES, "membar": _STORES}
_BY_ORDER: Mapping[str, frozenset[str]] = {**_OF_QUEUE, **_OF_STORES}
_OF_FIXED_LATENCY = frozenset({"", "barrier", "constant load"})
"""Kinds of instructions that nobody waits for by a register."""

_OF_COPIES, _OF_PRODUCTS = "long_scoreboard", "gmma"
"""The reasons by which waits for groups of asynchronous copies, and of products, are sampled."""
_BY_RESULT: frozenset[WaitFound] = frozenset({"scoreboard", "registers"})
"""What tells of a wait at an mbarrier: its result says whether the phase is over."""
_MOST_PRODUCERS = 64
_MOST_HOLDERS = 256
"""Of more instructions that may hold what is waited for the first are looked at; real code has 167 at most."""

_BOARDS = tuple(tuple(board for board in range(SCOREBOARDS) if mask >> board & 1) for mask in range(1 << SCOREBOARDS))
"""Mask of scoreboards -> their numbers."""

Value = TypeVar("Value")

WaitsByKind: TypeAlias = "dict[str, tuple[Sequence[int], WaitFound]]"
"""Reason of an instruction's wait -> positions of what it waits for, and how that was found."""

_NOTHING: tuple[Sequence[int], WaitFound] = (), "order"


class Waits(NamedTuple):
    """What warps wait for in a kernel.

    Attributes:
        at: By offset of the instruction that waits, what its samples wait for, most first; samples of one reason are
            shared among all that it waits for. Nothing where that is unclear.
        in_flight: By offset, how many global loads are under way when an instruction issues.
        tiles: By offset, how many tiles shared memory holds where an asynchronous copy or a read of it issues: the one
            that is read, and those under way; of a wait for copies, how many it leaves under way.
        rings: By offset of a wait for copies at an mbarrier, the barriers of its stages, and those that it is at.
        products: By offset of a wait for products of four warps, how many groups it leaves under way.
        note: How far this was found; empty for everywhere.
    """

    at: dict[int, tuple[Wait, ...]]
    in_flight: dict[int, int]
    tiles: dict[int, int]
    rings: dict[int, BarrierRing]
    products: dict[int, int]
    note: str = ""


def find_waits(code: MachineCode, graphs: Iterable[Graph], counted_at: AbstractSet[int], budget: StepBudget) -> Waits:
    """Find what the samples at each instruction wait for.

    Args:
        code: The instructions, and the samples at them.
        graphs: The flow of control of each function.
        counted_at: Offsets of instructions at which loads in flight are counted.
        budget: How many steps it may take.
    """
    sampled: dict[int, dict[str, float]] = defaultdict(dict)
    for measure, at in code.amounts.items():
        if measure.startswith(STALL):
            reason = measure.removeprefix(STALL)
            for offset, samples in at.items():
                if samples:
                    sampled[offset][reason] = samples
    waits = Waits({}, {}, {}, {}, {})
    gone_through = 0
    for graph in graphs:
        function = _FunctionWaits(graph, code, sampled, budget)
        try:
            in_flight, tiles, rings, products = function.find(counted_at)
        except TooManyStepsError:
            return waits._replace(note=budget.came_to(gone_through, len(code.instructions)))
        waits.in_flight.update(in_flight)
        waits.tiles.update(tiles)
        waits.rings.update(rings)
        waits.products.update(products)
        waits.at.update(function.waits())
        gone_through += len(graph.instructions)
    return waits


class _FunctionWaits:
    """The waits of one function.

    Args:
        graph: Its flow of control.
        code: What was measured of the kernel.
        sampled: Samples by reason, by offset of the instruction.
        budget: How many steps it may take.
    """

    def __init__(
        self, graph: Graph, code: MachineCode, sampled: Mapping[int, Mapping[str, float]], budget: StepBudget
    ) -> None:
        self._graph = graph
        self._code = code
        self._budget = budget
        self._executed = code.amounts.get("warp_inst", {})
        self._sampled = self._by_position(sampled)
        self._found: dict[int, WaitsByKind] = defaultdict(dict)

    def _by_position(self, by_offset: Mapping[int, Value]) -> dict[int, Value]:
        """Re-key a map from code offsets to positions in this function."""
        return {
            position: by_offset[one.offset]
            for position, one in enumerate(self._graph.instructions)
            if one.offset in by_offset
        }

    def waits(self) -> Iterator[tuple[int, tuple[Wait, ...]]]:
        """Yield what the samples at each instruction wait for, by its offset."""
        instructions = self._graph.instructions
        for position in sorted(self._found):
            found = self._found[position]
            waits = []
            for reason, samples in self._sampled[position].items():
                producers, how = found.get(reason, _NOTHING)
                for made in map(instructions.__getitem__, producers):
                    share = samples / len(producers)
                    waits.append(Wait(made.offset, made.file, made.line, made.base, share, reason, how))
            if waits:
                yield instructions[position].offset, tuple(sorted(waits, key=lambda wait: (-wait.samples, wait.pc)))

    def find(
        self, counted_at: AbstractSet[int]
    ) -> tuple[dict[int, int], dict[int, int], dict[int, BarrierRing], dict[int, int]]:
        """Find what each sample waits for; return the function's part of `Waits`, from `in_flight` to `products`.

        Raises:
            TooManyStepsError: It takes too many steps.
        """
        self._budget.take(len(self._graph.instructions))
        counted = {position for position, one in enumerate(self._graph.instructions) if one.offset in counted_at}
        self._find_by_order()
        in_flight, unclear = self._find_by_scoreboards(self._slowest_before_barriers(), counted)
        self._find_by_registers(unclear)
        return in_flight, self._find_by_groups(), self._find_by_mbarriers(), self._find_by_products()

    def _find_by_order(self) -> None:
        """Find the last store before waits for stores, and the last access to a full queue, or that which waits.

        Last by where they stand: no way leads back from behind an `EXIT`, where stores drain.
        """
        made: dict[str, list[int]] = {reason: [] for reason in _BY_ORDER}
        for position, one in enumerate(self._graph.instructions):
            if one.kind in _REASONS_OF and one.offset in self._executed:
                for reason in _REASONS_OF[one.kind]:
                    made[reason].append(position)
        for position, reasons in self._sampled.items():
            kind = self._graph.instructions[position].kind
            for reason in reasons:
                if reason in _OF_QUEUE and kind in _OF_QUEUE[reason]:
                    self._found[position][reason] = (position,), "queue"
                elif reason in made and (earlier := bisect_left(made[reason], position)):
                    how: WaitFound = "queue" if reason in _OF_QUEUE else "order"
                    self._found[position][reason] = (made[reason][earlier - 1],), how

    def _slowest_before_barriers(self) -> dict[int, int]:
        """Return what takes most of the time before each barrier where warps wait: what the last to arrive did."""
        instructions = self._graph.instructions
        waiting = [
            position
            for position, reasons in self._sampled.items()
            if "barrier" in reasons and instructions[position].base != "EXIT"
        ]
        if not waiting:
            return {}
        at_barriers = self._code.amounts.get(f"{STALL}barrier", {})
        times = {
            position: time
            for position, samples in self._by_position(self._code.amounts.get("samples", {})).items()
            # At the first instruction warps stand that have just started.
            if position
            and (offset := instructions[position].offset) in self._executed
            and (time := samples - at_barriers.get(offset, 0.0)) > 0
        }
        longest = SinceBarrier(self._graph, times)
        longest.settle(self._budget)
        found = {}
        for position, state in longest.before(waiting):
            # The wait is sampled at what stands behind the barrier.
            is_barrier = instructions[position].base == "BAR"
            took = state.since if is_barrier else max(state)
            if took.time:
                found[position] = took.position
        return found

    def _find_by_scoreboards(
        self, slowest: Mapping[int, int], counted: Collection[int]
    ) -> tuple[dict[int, int], list[tuple[int, str]]]:
        """Find what set the scoreboards that instructions wait for, also those that take longest before barriers.

        Args:
            slowest: What takes longest before the barrier, by where warps wait for it.
            counted: Positions at which loads in flight are counted.

        Returns:
            The loads by offset, and the waits of which no scoreboard tells.
        """
        setters = Setters(self._graph, self._executed)
        setters.settle(self._budget)
        asked = {position for position, reasons in self._sampled.items() if not _BY_SCOREBOARD.isdisjoint(reasons)}
        in_flight, unclear, of_slowest = {}, [], {place: [place] for place in slowest.values()}
        for position, held in setters.before(sorted(asked.union(counted, of_slowest))):
            for reason in _BY_SCOREBOARD & self._sampled.get(position, {}).keys():
                self._found[position][reason] = setters.awaited(position, held, SCOREBOARD_WAITS[reason]), "scoreboard"
                if not self._found[position][reason][0]:
                    unclear.append((position, reason))
            if position in of_slowest:
                of_slowest[position] = setters.awaited(position, held) or of_slowest[position]
            if position in counted:
                in_flight[self._graph.instructions[position].offset] = setters.loads_in_flight(held)
        for position, place in slowest.items():
            self._found[position]["barrier"] = of_slowest[place], "barrier"
        return in_flight, unclear

    def _find_by_groups(self) -> dict[int, int]:
        """Find the copies of the groups that `DEPBAR` waits for; the wait is sampled at what stands behind it, too.

        Returns:
            `Waits.tiles` of the function.
        """
        instructions = self._graph.instructions
        groups = CopyGroups(self._graph)
        if not groups.members:
            return {}
        groups.settle(self._budget)
        asked = [
            place
            for place, one in enumerate(instructions)
            if one.leaves_groups is not None or one.kind == "shared load"
        ]
        held = {}
        for place, state in groups.before(sorted({*asked, *groups.members})):
            held[instructions[place].offset] = groups.held(place, state)
            leaves = instructions[place].leaves_groups
            if leaves is not None:
                self._wait_for(groups.awaited(state, leaves), _OF_COPIES, place)
        return held

    def _wait_for(self, producers: Sequence[int], reason: str, place: int) -> None:
        """Record the producers of a group wait, at the wait and behind it, where it may be sampled."""
        ran = self._of_those_that_ran(producers)
        for position in (place, place + 1) if ran else ():
            if reason in self._sampled.get(position, {}):
                self._found[position][reason] = ran[:_MOST_PRODUCERS], "group"

    def _of_those_that_ran(self, positions: Sequence[int]) -> Sequence[int]:
        """Return the positions of what ran; all where nothing did."""
        return [one for one in positions if self._graph.instructions[one].offset in self._executed] or positions

    def _find_by_products(self) -> dict[int, int]:
        """Find the products of the groups that `WARPGROUP.DEPBAR` waits for; return `Waits.products`."""
        instructions = self._graph.instructions
        groups = ProductGroups(self._graph)
        if not groups.members:
            return {}
        groups.settle(self._budget)
        left = {}
        waits = [place for place, one in enumerate(instructions) if one.leaves_products is not None]
        for place, state in groups.before(waits):
            leaves = instructions[place].leaves_products or 0
            left[instructions[place].offset] = groups.left(state, leaves)
            self._wait_for(groups.awaited(state, leaves), _OF_PRODUCTS, place)
        return left

    def _find_by_mbarriers(self) -> dict[int, BarrierRing]:
        """Name in place of a wait at an mbarrier what ends its phase: copies, products, or who arrives.

        Returns:
            `Waits.rings` of the function.
        """
        phases = find_phases(self._graph, self._budget)
        for found in self._found.values() if phases else ():
            for reason, (producers, how) in found.items():
                ends = [phases[place] for place in producers if place in phases and phases[place].producers]
                if how in _BY_RESULT and ends and len(ends) == len(producers):
                    every = sorted({one for phase in ends for one in phase.producers})
                    found[reason] = self._of_those_that_ran(every)[:_MOST_PRODUCERS], "mbarrier"
        return {
            self._graph.instructions[place].offset: phase.ring
            for place, phase in phases.items()
            if phase.copies and phase.ring is not None
        }

    def _find_by_registers(self, unclear: Sequence[tuple[int, str]]) -> None:
        """Find the instructions of variable latency that last wrote the operands of those that wait."""
        instructions = self._graph.instructions
        wanted = {register for position, _ in unclear for register in instructions[position].reads}
        if not wanted:
            return
        changes = []
        for position, one in enumerate(instructions):
            if not wanted.isdisjoint(one.writes):
                written = tuple(sorted(wanted & one.writes))
                frees = () if one.is_conditional else written
                changes.append(HeldChange(position, frees, takes=() if one.kind in _OF_FIXED_LATENCY else written))
        writers = Holders(self._graph, changes)
        writers.settle(self._budget)
        held = dict(writers.before(sorted({position for position, _ in unclear})))
        for position, reason in unclear:
            facts = held[position] & writers.of(instructions[position].reads)
            self._found[position][reason] = writers.instructions(facts, _MOST_PRODUCERS), "registers"


_REASONS_OF: Mapping[str, Sequence[str]] = {
    kind: [reason for reason, kinds in _BY_ORDER.items() if kind in kinds]
    for kind in frozenset().union(*_BY_ORDER.values())
}
"""Kind of instruction -> the reasons to wait whose queue it fills, or that wait for its end."""


class Setters(Holders):
    """The instructions that set scoreboards, until somebody waits for these.

    Args:
        graph: The function.
        executed: How many warps ran each instruction, by offset.
    """

    def __init__(self, graph: Graph, executed: Mapping[int, float]) -> None:
        changes = []
        for position, one in enumerate(graph.instructions):
            written, read = one.sets_written, one.sets_read
            takes = () if written is None else (written,)
            if read is not None and read != written:
                takes = *takes, read
            if takes or one.waits:
                changes.append(HeldChange(position, _BOARDS[one.waits], takes))
        super().__init__(graph, changes)
        self._instructions = graph.instructions
        self._executed = executed

    def awaited(self, position: int, held: int, kinds: Collection[str] = ()) -> list[int]:
        """Return the positions of what an instruction waits for by its scoreboards, and whose registers it needs.

        Args:
            position: Of the instruction that waits.
            held: What `before` gave there.
            kinds: Kinds of instructions that can be what is waited for; others count where none of these is.
        """
        one = self._instructions[position]
        facts = held & self.of(_BOARDS[one.waits])
        every = [(place, self._instructions[place]) for place in self.instructions(facts, _MOST_HOLDERS)]
        ran = [(place, made) for place, made in every if made.offset in self._executed] or every
        of_kind = [(place, made) for place, made in ran if made.kind in kinds] or ran
        touched = one.reads | one.writes
        needed = [
            (place, made)
            for place, made in of_kind
            if not made.writes.isdisjoint(touched) or not made.reads.isdisjoint(one.writes)
        ]
        return [place for place, _ in needed or of_kind][:_MOST_PRODUCERS]

    def loads_in_flight(self, held: int) -> int:
        """Return how many global loads are under way."""
        under_way = self.instructions(held & self.of(range(SCOREBOARDS)), len(self.positions))
        return sum(self._instructions[place].kind == "global load" for place in under_way)
