"""A kernel's machine code, instruction by instruction: the input of loops and waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from rooflens.model.inside.instruction import Instruction

MOST_INSTRUCTIONS = 20_000
"""A kernel with more is left out: it takes seconds, and its page megabytes."""


class MachineCode(Struct, frozen=True):
    """The instructions of a kernel and of what it calls, with all that was measured of them.

    Attributes:
        instructions: In the order of their offsets, from the start of each function to the last that was measured.
        starts: Offset of the first instruction of each function, sorted; the kernel itself starts at 0 or at one of
            them.
        amounts: Amount by offset, by measure: those of hot spots (`rooflens.model.hotspots.MEASURES`), and
            `global_sectors`, loads and stores together; zeros left out.
        outside: Sum by measure of what lies outside of these instructions.
        digest: SHA-256 of the bytes of these instructions, in hex; empty if the report lacks some.
        pcs: Offsets of the instructions of each line, by file and line.
    """

    instructions: Sequence[Instruction]
    starts: Sequence[int]
    amounts: Mapping[str, Mapping[int, float]]
    outside: Mapping[str, float] = field(default_factory=dict)
    digest: str = ""
    pcs: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)


def pcs_by_line(instructions: Iterable[Instruction]) -> dict[tuple[str, int], tuple[int, ...]]:
    """Return the offsets of the instructions of each line, by file and line."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for one in instructions:
        if one.file is not None and one.line is not None:
            found[one.file, one.line].append(one.offset)
    return {place: tuple(offsets) for place, offsets in found.items()}
