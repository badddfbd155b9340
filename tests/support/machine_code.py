"""Write machine code as a disassembler shows it, with its counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from support.sass_text import parse

from rooflens.model.inside.code import MachineCode, pcs_by_line
from rooflens.model.inside.instruction import INSTRUCTION_BYTES, Instruction

BASE = 0x7F0000000000
"""Where the code is loaded to."""


def control(written: int = 7, read: int = 7, waits: int = 0) -> bytes:
    """Encode the control bits of an instruction: the scoreboards it sets, and the mask of those it waits for."""
    return (written << 110 | read << 113 | waits << 116).to_bytes(INSTRUCTION_BYTES, "little")


def listed(*texts: str | tuple[str, bytes], lines: Sequence[int | None] = ()) -> list[Instruction]:
    """Parse consecutive instructions; `->N` in a text is the address of the Nth."""
    found = []
    for place, given in enumerate(texts):
        text, code = given if isinstance(given, tuple) else (given, control())
        head, arrow, number = text.partition("->")
        whole = f"{head}{BASE + int(number) * INSTRUCTION_BYTES:#x}" if arrow else text
        line = lines[place] if place < len(lines) else None
        found.append(
            parse(
                place * INSTRUCTION_BYTES,
                whole,
                code,
                base_address=BASE,
                file=None if line is None else "gemm.cu",
                line=line,
            )
        )
    return found


def machine_code(
    instructions: Sequence[Instruction], runs: Sequence[float], **amounts: Mapping[int, float]
) -> MachineCode:
    """Make machine code with the number of warps that ran each instruction; other amounts by position, by measure."""
    at = {place: one.offset for place, one in enumerate(instructions)}
    executed = {at[place]: float(count) for place, count in enumerate(runs) if count}
    measured = {measure: {at[place]: amount for place, amount in found.items()} for measure, found in amounts.items()}
    threads = {offset: 32.0 * count for offset, count in executed.items()}
    every = {"warp_inst": executed, "thread_inst": threads, **measured}
    return MachineCode(instructions, [0], every, pcs=pcs_by_line(instructions))
