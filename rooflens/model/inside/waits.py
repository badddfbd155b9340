"""What each sampled wait waits for: the instruction that made it wait.

The encoding says it: an instruction that waits for a scoreboard waits for those that set it since somebody last waited
for it. Where several did, registers tell which of them it needs; where none did, registers alone tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rooflens.model.hotspots import STALL
from rooflens.model.inside.budget import Budget, TooManyStepsError
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.graph import Graph
from rooflens.model.inside.instruction import SCOREBOARDS, Instruction
from rooflens.model.inside.pending import Change, Holders, SinceBarrier
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

_STORES = frozenset({"global store", "atomic", "shared store"})
_OF_STORES: Mapping[str, frozenset[str]] = {"drain": _STORES, "membar": _STORES}
_BY_ORDER = _OF_QUEUE | _OF_STORES
_OF_FIXED_LATENCY = frozenset({"", "barrier", "constant load"})
"""Kinds of instructions that nobody waits for by a register."""

_MOST_PRODUCERS = 64
_ASYNC_COPY, _ASYNC_WAIT = "LDGSTS", "DEPBAR"
_COPIES = SCOREBOARDS
"""Name, besides those of scoreboards, that asynchronous copies hold."""

_BOARDS = tuple(tuple(board for board in range(SCOREBOARDS) if mask >> board & 1) for mask in range(1 << SCOREBOARDS))
"""Mask of scoreboards -> their numbers."""

Found: TypeAlias = "dict[tuple[int, str], tuple[Sequence[int], WaitFound]]"
"""Position and reason of a wait -> positions of what it waits for, and how that was found."""


class Waits(NamedTuple):
    """What warps wait for in a kernel.

    Attributes:
        at: By offset of the instruction that waits, what its samples wait for, most first; samples of one reason are
            shared among all that it waits for. Nothing where that is unclear.
        in_flight: By offset, how many global loads are under way when an instruction issues.
        note: How far this was found; empty for everywhere.
    """

    at: dict[int, tuple[Wait, ...]]
    in_flight: dict[int, int]
    note: str = ""


def find_waits(code: MachineCode, graphs: Iterable[Graph], counted_at: Collection[int], budget: Budget) -> Waits:
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
    waits = Waits({}, {})
    gone_through = 0
    for graph in graphs:
        function = _Function(graph, code, sampled)
        try:
            in_flight = function.find(counted_at, budget)
        except TooManyStepsError:
            return waits._replace(note=f"its waits are {budget.reached(gone_through, len(code.instructions))}")
        waits.in_flight.update(in_flight)
        waits.at.update(function.waits())
        gone_through += len(graph.instructions)
    return waits


class _Function:
    """The waits of one function.

    Args:
        graph: Its flow of control.
        code: What was measured of the kernel.
        sampled: Samples by reason, by offset of the instruction.
    """

    def __init__(self, graph: Graph, code: MachineCode, sampled: Mapping[int, Mapping[str, float]]) -> None:
        self._graph = graph
        self._code = code
        self._executed = code.amounts.get("warp_inst", {})
        self._sampled = {
            position: sampled[one.offset] for position, one in enumerate(graph.instructions) if one.offset in sampled
        }
        self._found: Found = {}

    def waits(self) -> Iterator[tuple[int, tuple[Wait, ...]]]:
        """Yield what the samples at each instruction wait for, by its offset."""
        instructions = self._graph.instructions
        for position, samples_by_reason in self._sampled.items():
            waits = []
            for reason, samples in samples_by_reason.items():
                producers, how = self._found.get((position, reason), ((), "order"))
                for made in map(instructions.__getitem__, producers):
                    share = samples / len(producers)
                    waits.append(Wait(made.offset, made.file, made.line, made.base, share, reason, how))
            if waits:
                yield instructions[position].offset, tuple(sorted(waits, key=lambda wait: (-wait.samples, wait.pc)))

    def find(self, counted_at: Collection[int], budget: Budget) -> dict[int, int]:
        """Find what each sample waits for; return the global loads in flight at some offsets.

        Raises:
            TooManyStepsError: It takes too many steps.
        """
        instructions, in_flight = self._graph.instructions, {}
        budget.take(len(instructions))
        self._find_by_order()
        slowest = self._slowest_before_barriers(budget)
        setters = Setters(self._graph, self._executed)
        setters.settle(budget)
        asked = {position for position, reasons in self._sampled.items() if not SCOREBOARD_WAITS.keys().isdisjoint(reasons)}
        counted = {position for position, one in enumerate(instructions) if one.offset in counted_at}
        unclear = []
        made_slow: dict[int, Sequence[int]] = {}
        for position, held in setters.before(sorted(asked.union(counted, slowest.values()))):
            for reason in SCOREBOARD_WAITS.keys() & self._sampled.get(position, {}).keys():
                if producers := setters.awaited(position, held, SCOREBOARD_WAITS[reason]):
                    self._found[position, reason] = producers, "scoreboard"
                else:
                    unclear.append((position, reason))
            made_slow[position] = setters.awaited(position, held) or [position]
            if position in counted:
                in_flight[instructions[position].offset] = setters.loads_in_flight(held)
        for position, place in slowest.items():
            self._found[position, "barrier"] = made_slow[place], "barrier"
        self._find_by_registers(unclear, budget)
        return in_flight

    def _find_by_order(self) -> None:
        """Find the last store before each wait for stores, and the last access to each full queue, or the access itself.

        Last by where they stand: no way leads back from behind an `EXIT`, where stores drain.
        """
        last: dict[str, int] = {}
        for position, one in enumerate(self._graph.instructions):
            reasons = _REASONS_OF.get(one.kind, ())
            for reason in _BY_ORDER.keys() & self._sampled.get(position, {}).keys():
                how: WaitFound = "queue" if reason in _OF_QUEUE else "order"
                if how == "queue" and reason in reasons:
                    self._found[position, reason] = [position], how
                elif reason in last:
                    self._found[position, reason] = [last[reason]], how
            if reasons and one.offset in self._executed:
                last |= dict.fromkeys(reasons, position)

    def _slowest_before_barriers(self, budget: Budget) -> dict[int, int]:
        """Find what takes most of the time before each barrier where warps wait: what the last to arrive did."""
        instructions = self._graph.instructions
        waiting = [
            position
            for position, reasons in self._sampled.items()
            if "barrier" in reasons and instructions[position].base != "EXIT"
        ]
        if not waiting:
            return {}
        samples, at_barriers = self._code.amounts.get("samples", {}), self._code.amounts.get(f"{STALL}barrier", {})
        times = {
            position: time
            for position, one in enumerate(instructions)
            # At the first instruction warps stand that have just started.
            if position and one.offset in self._executed
            and (time := samples.get(one.offset, 0.0) - at_barriers.get(one.offset, 0.0)) > 0
        }
        longest = SinceBarrier(self._graph, times)
        longest.settle(budget)
        found = {}
        for position, state in longest.before(waiting):
            # The wait is sampled at what stands behind the barrier.
            is_barrier = instructions[position].base == "BAR"
            slowest = longest.position(state.since if is_barrier else max(state.since, state.earlier))
            if slowest is not None:
                found[position] = slowest
        return found

    def _find_by_registers(self, unclear: Sequence[tuple[int, str]], budget: Budget) -> None:
        """Find the instructions of variable latency that last wrote the operands of those that wait."""
        instructions = self._graph.instructions
        wanted = {register for position, _ in unclear for register in instructions[position].reads}
        if not wanted:
            return
        changes = []
        for position, one in enumerate(instructions):
            if not wanted.isdisjoint(one.writes):
                written = sorted(wanted & one.writes)
                changes.append(
                    Change(
                        position,
                        frees=() if one.is_conditional else written,
                        takes=() if one.kind in _OF_FIXED_LATENCY else written,
                    )
                )
        writers = Holders(self._graph, changes)
        writers.settle(budget)
        held = dict(writers.before(sorted({position for position, _ in unclear})))
        for position, reason in unclear:
            facts = held[position] & writers.of(instructions[position].reads)
            self._found[position, reason] = writers.instructions(facts, _MOST_PRODUCERS), "registers"


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
            takes = {one.sets_written, one.sets_read, _COPIES if one.base == _ASYNC_COPY else None} - {None}
            if one.waits or takes:
                changes.append(Change(position, _BOARDS[one.waits], takes))
        super().__init__(graph, changes)
        self._instructions = graph.instructions
        self._all_copies = self.of((_COPIES,))
        self._ran = 0
        self._of_kind: dict[str, int] = defaultdict(int)
        self._reading: dict[int, int] = defaultdict(int)
        self._writing: dict[int, int] = defaultdict(int)
        for number, position in enumerate(self.positions):
            one, fact = graph.instructions[position], 1 << number
            self._ran |= fact if one.offset in executed else 0
            self._of_kind[one.kind] |= fact
            for register in one.reads:
                self._reading[register] |= fact
            for register in one.writes:
                self._writing[register] |= fact

    def awaited(self, position: int, held: int, kinds: Collection[str] = ()) -> list[int]:
        """Return the positions of what an instruction waits for by its scoreboards, and whose registers it needs.

        Args:
            position: Of the instruction that waits.
            held: What `before` gave there.
            kinds: Kinds of instructions that can be what is waited for; others count where none of these is.
        """
        one = self._instructions[position]
        facts = held & self.of(_BOARDS[one.waits])
        # The wait for asynchronous copies is sampled at the instruction after it.
        last = self._instructions[max(0, position - 1)]
        if "global load" in kinds and _ASYNC_WAIT in {one.base, last.base}:
            facts = self._all_copies or facts
        facts = facts & self._ran or facts
        facts = facts & self._any(self._of_kind, kinds) or facts
        touched = self._any(self._writing, one.reads | one.writes) | self._any(self._reading, one.writes)
        return self.instructions(facts & touched or facts, _MOST_PRODUCERS)

    def loads_in_flight(self, held: int) -> int:
        """Return how many global loads are under way."""
        facts = held & self.of(range(SCOREBOARDS)) & self._of_kind["global load"]
        return len(self.instructions(facts, len(self.positions)))

    @staticmethod
    def _any(facts: Mapping[Any, int], keys: Iterable[Any]) -> int:
        found = 0
        for key in keys:
            found |= facts.get(key, 0)
        return found
