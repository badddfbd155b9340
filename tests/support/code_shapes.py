"""Shapes of machine code that could cost a careless analysis minutes: of any size, all sampled for nine reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, TypeAlias

from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.instruction import INSTRUCTION_BYTES, SCOREBOARDS, Instruction, kind_of_opcode

REASONS = (
    *("long_scoreboard", "short_scoreboard", "lg_throttle", "mio_throttle", "tex_throttle"),
    *("drain", "membar", "barrier", "wait"),
)
_RUNS, _REGISTERS, _MOST_LOOPS = 64.0, 64, 400

Text: TypeAlias = "tuple[str, dict[str, Any]]"
"""An opcode, and further fields of the instruction; `to` is the place in the code that it jumps to."""


def _one(opcode: str, *reads: int, writes: int | None = None, to: int | None = None, **fields: Any) -> Text:
    given = {"reads": frozenset(reads), "writes": frozenset(() if writes is None else (writes,)), **fields}
    return opcode, given if to is None else {**given, "target": to * INSTRUCTION_BYTES}


def _load(place: int, **fields: Any) -> Text:
    return _one("LDG.E", 2, writes=place % _REGISTERS, sets_written=place % SCOREBOARDS, **fields)


def _use(place: int, waits: int = 0, **fields: Any) -> Text:
    return _one("FFMA", place % _REGISTERS, (place + 1) % _REGISTERS, writes=place % _REGISTERS, waits=waits, **fields)


def _back_to_the_start(size: int) -> Iterator[Text]:
    for place in range(1, size):
        yield _one("BRA", to=0, guard="P0") if place % 2 else _use(place)


def _one_barrier(size: int) -> Iterator[Text]:
    yield _one("BAR.SYNC")
    for place in range(2, size):
        yield _use(place)


def _barriers(size: int) -> Iterator[Text]:
    for place in range(1, size):
        yield _one("BAR.SYNC") if place % 2 else _use(place)


def _nest(size: int, *, tests_at_top: bool, has_ways_around: bool = False) -> Iterator[Text]:
    """Yield loops within one another, with as many loads before the next as uses of them behind it.

    Args:
        size: How many instructions in all, about.
        tests_at_top: Each may be left before its body.
        has_ways_around: There are ways around each load, and no uses.
    """
    depth = min(_MOST_LOOPS, size // 8)
    part = (size - 2 * depth) // (2 * depth)
    places = iter(range(size))

    def body(level: int, *, uses: bool) -> Iterator[Text]:
        for number, place in zip(range(part), places, strict=False):
            if has_ways_around and number % 2:
                yield _one("BRA", to=place + 1, guard="P0")
            else:
                yield _use(level + number, 63) if uses and not has_ways_around else _load(level + number)

    headers = []
    for level in range(depth):
        headers.append(level * (part + tests_at_top))
        if tests_at_top:
            # It leads behind the end of its own loop.
            yield _one("BRA", to=(2 * depth - level) * (part + 1), guard="P1")
            next(places)
        yield from body(level, uses=False)
    for level in reversed(range(depth)):
        yield from body(level, uses=True)
        yield _one("BRA", to=headers[level], **({} if tests_at_top else {"guard": "P0"}))
        next(places)


def _loads(size: int) -> Iterator[Text]:
    for place in range(1, size):
        yield _one("LDG.E", 2, writes=place % _REGISTERS, sets_written=0)


def _two_entries(size: int) -> Iterator[Text]:
    for place in range(0, size - 6, 5):
        yield _one("BRA", to=place + 2, guard="P0")
        yield _use(place)
        yield _load(place)
        yield _use(place, 1)
        yield _one("BRA", to=place + 1, guard="P1")


def _anywhere(size: int) -> Iterator[Text]:
    chance = Random(7)  # noqa: S311 - no secret
    for place in range(1, size):
        to = chance.randrange(size)
        yield _one("BRA", to=to, guard="P0") if not place % 3 else _load(place, waits=chance.randrange(64))


def _forward_anywhere(size: int) -> Iterator[Text]:
    chance = Random(7)  # noqa: S311 - no secret
    for place in range(size - 1):
        if place % 3:
            yield _load(place) if place % 2 else _use(place, chance.randrange(64))
        else:
            yield _one("BRA", to=chance.randrange(place + 1, size), guard="P0")


def _table(size: int, *, cases: int) -> Iterator[Text]:
    """Yield jumps by tables, each followed by cases that only a table can lead to."""
    for place in range(0, size - 1, 2 * cases + 1):
        yield _one("BRX", 4)
        for case in range(cases):
            yield _load(place + case)
            yield _one("BRA", to=min(size - 1, place + 2 * cases + 1))


def _calls(size: int) -> Iterator[Text]:
    for place in range(size // 2):
        yield _one("CALL.REL", to=size // 2 + place // 3 * 3) if place % 3 else _use(place)
    for place in range(size // 2, size - 1):
        yield _one("RET") if place % 3 == 2 else _load(place)


def _under_predicates(size: int) -> Iterator[Text]:
    """Yield loads of one register that each may run or not, and uses of it: no scoreboard tells them apart."""
    for place in range(1, size):
        guard = f"P{place % 6}"
        yield _one("LDG.E", 2, writes=5, guard=guard) if place % 2 else _one("FFMA", 5, writes=6, guard=guard)


def _scoreboards(size: int) -> Iterator[Text]:
    chance = Random(3)  # noqa: S311 - no secret
    for place in range(1, size):
        if place % 4 == 3:
            yield _one("BRA", to=place + 2 + chance.randrange(6), guard="P0") if place + 9 < size else _use(place)
        elif place % 4 == 1:
            yield _load(place, sets_read=(place + 1) % SCOREBOARDS)
        else:
            yield _use(place, chance.randrange(64))


def _held_at_many_places(size: int) -> Iterator[Text]:
    """Yield loads that set one scoreboard, and then thousands of ways to instructions that wait for all of them."""
    loads = size // 3
    yield from [_one("LDG.E", 2, writes=5, sets_written=0)] * loads
    for place in range(loads, size - 2, 2):
        yield _one("BRA", to=place + 2, guard="P0")
        yield _one("FFMA", 5, writes=6, waits=1)


def _stores_before_ends(size: int) -> Iterator[Text]:
    for place in range(1, size):
        yield _one("EXIT", guard="P0") if place % 2 else _one("STG.E", 2, place % _REGISTERS, sets_read=place % 6)


def _out_of_a_ladder(size: int) -> Iterator[Text]:
    for place in range(1, size):
        yield _one("BRA", to=size - 1, guard="P0") if place % 2 else _load(place)


def _meetings(size: int) -> Iterator[Text]:
    """Yield places where threads meet again, all kept in one register."""
    for place in range(0, size - 4, 4):
        yield _one("BSSY", to=place + 3, barrier=0)
        yield _one("BRA", to=place + 3, guard="P0")
        yield _load(place)
        yield _one("BSYNC", barrier=0)


def _loops_in_a_row(size: int) -> Iterator[Text]:
    part = max(4, size // _MOST_LOOPS + 1)
    for place in range(1, size):
        yield _one("BRA", to=place - place % part, guard="P0") if place % part == part - 1 else _load(place)


def _copies(size: int) -> Iterator[Text]:
    for place in range(1, size):
        yield (_one("LDGSTS.E", 2, 3), _one("DEPBAR.LE"), _use(place, 1))[place % 3]


def _functions(size: int) -> Iterator[Text]:
    for place in range(0, size - 1, 4):
        yield _load(place)
        yield _use(place, 1 << place % SCOREBOARDS)
        yield _one("BRA", to=place, guard="P0")
        yield _one("RET")


_DEEPER = "400 loops within one another, with ways around each load"
"""The only shape whose waits take more steps than any budget: each block is gone through for each loop around it."""

SHAPES: Mapping[str, Callable[[int], Iterator[Text]]] = {
    "every second instruction jumps to the start": _back_to_the_start,
    "one barrier, and multiply-adds": _one_barrier,
    "every second instruction is a barrier": _barriers,
    "400 loops within one another": lambda size: _nest(size, tests_at_top=False),
    "400 loops within one another, tested at the top": lambda size: _nest(size, tests_at_top=True),
    "400 loops in a row": _loops_in_a_row,
    "loads alone": _loads,
    "cycles with two entries": _two_entries,
    "jumps anywhere": _anywhere,
    "jumps forward to anywhere": _forward_anywhere,
    "jumps by tables of 4": lambda size: _table(size, cases=4),
    "one jump by a table": lambda size: _table(size, cases=size // 2 - 1),
    "calls": _calls,
    "loads under predicates, without scoreboards": _under_predicates,
    "all scoreboards, set and waited for anywhere": _scoreboards,
    "one scoreboard, waited for at thousands of places": _held_at_many_places,
    "a store before each of many ends": _stores_before_ends,
    "a ladder with one way out": _out_of_a_ladder,
    "threads that meet again, by one register": _meetings,
    "asynchronous copies, and waits for them": _copies,
    "thousands of functions, each a loop": _functions,
}
"""What the code consists of -> its instructions but the last, given how many there are about."""


def code_of(shape: str, size: int) -> MachineCode:
    """Return machine code of a shape, all of which ran, with samples of nine reasons at each instruction."""
    written = _nest(size, tests_at_top=True, has_ways_around=True) if shape == _DEEPER else SHAPES[shape](size)
    texts = [*written, _one("EXIT")]
    instructions = []
    for place, (opcode, fields) in enumerate(texts):
        base = opcode.partition(".")[0]
        instructions.append(Instruction(place * INSTRUCTION_BYTES, opcode, base, kind_of_opcode(base), **fields))
    offsets = [one.offset for one in instructions]
    samples = {offset: 1.0 + place * 7919 % 101 for place, offset in enumerate(offsets)}
    starts = offsets[::4] if shape == "thousands of functions, each a loop" else [0]
    amounts = {
        "warp_inst": dict.fromkeys(offsets, _RUNS),
        "thread_inst": dict.fromkeys(offsets, 32 * _RUNS),
        "samples": {offset: len(REASONS) * amount for offset, amount in samples.items()},
        **{f"stall_{reason}": samples for reason in REASONS},
    }
    return MachineCode(instructions, starts, amounts)
