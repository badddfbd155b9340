"""Which wait at an mbarrier is for which copies or products, by the barrier's address in shared memory.

Who waits and who copies are mostly different warps, so that no way of control leads from one to the other: what they
share is the address. Of that the constant part is followed, back through sums of registers to where it is written: the
number of the stage, which goes round, and what only the launch knows count as zero. Barriers of one kind stand side by
side, one for each stage, so that as many as are initialised from one address in use up to the next are its stages. A
loop that is unrolled by its stages has the number of each in the address instead: there those that it waits at count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.inside.budget import StepBudget
from rooflens.model.inside.graph import Graph
from rooflens.model.inside.instruction import Instruction, Linear
from rooflens.model.inside.pending import HeldChange, Holders
from rooflens.model.roofline.opcodes import BULK_COPIES, is_tcgen05

_WAIT, _INITIALISES, _ARRIVES, _COMMIT = "SYNCS.PHASECHK", "SYNCS.EXCH", "SYNCS.ARRIVE", "UTCBAR"
_ADDRESS_MASK = 0xFFFFFF
"""The bits of an address in a block's shared memory; before them stands which block of a cluster it is."""
_BARRIER_BYTES = 8
_MOST_DEFINITIONS, _MOST_PRODUCERS = 64, 64
_DEEPEST = 100
"""Compilers make an address in at most a dozen steps; what takes more is unknown."""


class Phase(Struct, frozen=True):
    """What the end of a barrier's phase is waited for.

    Attributes:
        producers: Positions of the copies that it counts, else the last product before a commit, else who arrives.
        copies: They are copies.
        ring: The barriers side by side that it is one of, one for each stage; None if that is not clear.
    """

    producers: tuple[int, ...]
    copies: bool
    ring: BarrierRing | None


class BarrierRing(NamedTuple):
    """Barriers side by side of one kind, one for each stage, and those of them that a wait is at.

    A number that goes round comes to all of them. Where a loop is unrolled by its stages each wait is at one.
    """

    first: int
    waited: frozenset[int]


def find_phases(graph: Graph, budget: StepBudget) -> dict[int, Phase]:
    """Find what each wait at an mbarrier waits for, by its position; nothing where no address is alike.

    Raises:
        TooManyStepsError: It takes too many steps.
    """
    instructions = graph.instructions
    about = [place for place, one in enumerate(instructions) if one.mbarrier is not None]
    if not any(_is(instructions[place], _WAIT) for place in about):
        return {}
    addresses = _addresses(graph, about, budget)
    at: dict[int, list[int]] = defaultdict(list)
    for place in about:
        at[addresses[place].constant].append(place)
    last_products = _last_products(instructions)
    ending = {address: _ending(instructions, places, last_products) for address, places in at.items()}
    copied = {address for address, one in ending.items() if one.copies}
    started = {addresses[place].constant: place for place in about if _is(instructions[place], _INITIALISES)}
    used = {address for address, places in at.items() if len(places) > (address in started)}
    bases = {address.constant for address in addresses.values() if address.goes_round}
    # What goes round has several barriers: a loop that is unrolled by fewer than its stages waits at some in turn.
    bases = {base for base in bases if base - _BARRIER_BYTES not in bases}
    # Behind barriers of copies stand those by which their stages are given back.
    ends = {is_copy: sorted(bases | ((used - copied) if is_copy else copied)) for is_copy in (True, False)}
    waited = {addresses[place] for place in about if _is(instructions[place], _WAIT)}
    unrolled = _unrolled(instructions, {one.constant for one in waited if not one.goes_round} & copied, started)
    phases = {}
    for address in waited:
        phase = ending[address.constant]
        if address.goes_round:
            phase = replace(phase, ring=_ring(instructions, address.constant, started, ends[phase.copies]))
        else:
            phase = replace(phase, ring=unrolled.get(address.constant))
        phases[address] = phase
    return {place: phases[addresses[place]] for place in about if _is(instructions[place], _WAIT)}


def _last_products(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Return by the position of each commit that of the last tcgen05 product before it."""
    found, last = {}, None
    for place, one in enumerate(instructions):
        if is_tcgen05(one.opcode):
            last = place
        elif one.base == _COMMIT and last is not None:
            found[place] = last
    return found


def _ending(instructions: Sequence[Instruction], places: Sequence[int], last_products: Mapping[int, int]) -> Phase:
    """Return what ends the phases of a barrier, of the instructions that are about its address."""
    copies = [place for place in places if instructions[place].base in BULK_COPIES]
    products = sorted({last_products[place] for place in places if place in last_products})
    arrivals = [place for place in places if _is(instructions[place], _ARRIVES)]
    return Phase(tuple((copies or products or arrivals)[:_MOST_PRODUCERS]), bool(copies), None)


def _ring(
    instructions: Sequence[Instruction], address: int, started: Mapping[int, int], ends: Sequence[int]
) -> BarrierRing | None:
    """Return the barriers side by side from an address on that are initialised alike, up to the next one in use."""
    following = bisect_right(ends, address)
    end = ends[following] if following < len(ends) else _ADDRESS_MASK
    first = started.get(address)
    if first is None:
        return None
    count = 0
    while address + count * _BARRIER_BYTES < end:
        other = started.get(address + count * _BARRIER_BYTES)
        if other is None or _value_of(instructions[other]) != _value_of(instructions[first]):
            break
        count += 1
    return BarrierRing(address, frozenset(address + number * _BARRIER_BYTES for number in range(count)))


def _unrolled(
    instructions: Sequence[Instruction], addresses: Iterable[int], started: Mapping[int, int]
) -> dict[int, BarrierRing]:
    """Return for each of some addresses the ring that it is in with those side by side which are initialised alike."""
    rings: dict[int, BarrierRing] = {}
    for address in sorted(one for one in addresses if one in started):
        before, value = rings.get(address - _BARRIER_BYTES), _value_of(instructions[started[address]])
        is_alike = before is not None and _value_of(instructions[started[address - _BARRIER_BYTES]]) == value
        first = before.first if before is not None and is_alike else address
        rings[address] = BarrierRing(first, frozenset((address,)))
    return rings


def _value_of(instruction: Instruction) -> frozenset[int]:
    """Return the registers of what a barrier is initialised with: how many arrivals end its phase."""
    return instruction.reads - {register for register, _ in (instruction.mbarrier or Linear()).terms}


def _is(instruction: Instruction, what: str) -> bool:
    return instruction.opcode.startswith(what)


class _Address(NamedTuple):
    """The constant part of an address, and whether a number that goes round in a loop is added to it."""

    constant: int
    goes_round: bool


def _addresses(graph: Graph, about: Sequence[int], budget: StepBudget) -> dict[int, _Address]:
    """Return the address that each of some instructions is about."""
    instructions = graph.instructions
    wanted: set[int] = set()
    more = {register for place in about for register, _ in (instructions[place].mbarrier or Linear()).terms}
    writers: dict[int, list[int]] = defaultdict(list)
    for place, one in enumerate(instructions):
        for register in one.writes:
            writers[register].append(place)
    # Only registers that addresses depend on are followed: sums of sums, until no new register comes.
    while more:
        wanted |= more
        budget.take(sum(len(writers[register]) for register in more))
        sums = [instructions[place].sums for register in more for place in writers[register]]
        more = {register for one in sums if one is not None for register, _ in one.terms} - wanted
    changes = []
    for place, one in enumerate(instructions):
        # A predicated write may leave the old value, so it adds a definition and ends none.
        if written := tuple(sorted(wanted & one.writes)):
            changes.append(HeldChange(place, () if one.is_conditional else written, takes=written))
    definitions = Holders(graph, changes)
    definitions.settle(budget)
    asked = sorted({*about, *(change.position for change in changes)})
    constants = _Constants(graph, definitions, dict(definitions.before(asked)), budget)
    return {place: constants.of(instructions[place].mbarrier or Linear(), place) for place in about}


class _Constants:
    """The constant parts of sums, followed to where their registers are written.

    Args:
        graph: The function.
        definitions: Who may have written each register.
        held: What `definitions` has before each position that may be asked for.
        budget: How many steps it may take.
    """

    def __init__(self, graph: Graph, definitions: Holders, held: Mapping[int, int], budget: StepBudget) -> None:
        self._graph = graph
        self._instructions = graph.instructions
        self._definitions = definitions
        self._held = held
        self._budget = budget
        self._written: dict[tuple[int, int], _Address] = {}
        self._open: set[tuple[int, int]] = set()

    def of(self, linear: Linear, place: int) -> _Address:
        """Return the constant part of a sum where an instruction reads it."""
        total, goes_round = linear.constant, False
        for register, factor in linear.terms:
            read = self._address_of_register(register, place)
            total += factor * read.constant
            goes_round = goes_round or (read.goes_round and factor & _ADDRESS_MASK != 0)
        return _Address(total & _ADDRESS_MASK, goes_round)

    def _address_of_register(self, register: int, place: int) -> _Address:
        """Return that of a register; of what several ways write the least, those left out that lead round to it."""
        facts = self._held[place] & self._definitions.of((register,))
        writers = self._last_writer(place, self._definitions.instructions(facts, _MOST_DEFINITIONS))
        self._budget.take(1 + len(writers))
        every = [self._write(register, one) for one in writers if (register, one) not in self._open]
        goes_round = len(writers) > 1 or any(one.goes_round for one in every)
        return _Address(min((one.constant for one in every), default=0), goes_round)

    def _last_writer(self, place: int, writers: Sequence[int]) -> Sequence[int]:
        """Return the last writer alone where it runs under the predicate of the reader, in the same block."""
        guard, first = self._instructions[place].guard, self._graph.blocks[self._graph.block_of(place)].first
        alike = [one for one in writers if first <= one < place and self._instructions[one].guard == guard]
        return alike[-1:] if self._instructions[place].is_conditional and alike else writers

    def _write(self, register: int, place: int) -> _Address:
        key = register, place
        if len(self._open) >= _DEEPEST:
            return _Address(0, goes_round=False)
        if key not in self._written:
            one = self._instructions[place]
            self._open.add(key)
            is_first = register == (min(one.writes) if register >= 0 else max(one.writes))
            unknown = _Address(0, goes_round=False)
            self._written[key] = unknown if one.sums is None or not is_first else self.of(one.sums, place)
            self._open.discard(key)
        return self._written[key]
