"""One machine instruction: what its text and its control bits say of flow, registers and scoreboards.

Text is that of NVIDIA's disassembler, with absolute addresses as branch targets. From Volta on an instruction has 128
bits, of which 105 to 125 steer its issue: the scoreboard that it sets when its result is written (110 to 112) or its
operands are read (113 to 115), 7 for none, and the mask of those that it waits for (116 to 121).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

INSTRUCTION_BYTES = 16
SCOREBOARDS = 6
_NO_SCOREBOARD = 7
_WRITTEN_AT, _READ_AT, _WAITED_AT = 110, 113, 116
_MASK = (1 << SCOREBOARDS) - 1

_FORM = re.compile(r"\s*(?:@(?P<guard>!?U?PT|!?U?P\d)\s+)?(?P<opcode>[A-Z][A-Z0-9_.a-z]*)\s*(?P<operands>[^;]*);?\s*")
_TARGET = re.compile(r"(?:^|[\s,])(0x[0-9a-f]+)\s*$")
_REGISTER = re.compile(r"\b(U?R)(\d+)((?:\.[A-Z0-9_]+)*)")
_BARRIER = re.compile(r"\bB(\d+)\b")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_ALWAYS = frozenset({"", "PT", "UPT"})
_NEVER = frozenset({"!PT", "!UPT"})

JUMPS = frozenset({"BRA", "JMP", "UBRA", "BRAU", "JMPU"})
INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
CALLS = frozenset({"CALL", "JCAL", "CAL", "UCALL"})
ENDS = frozenset({"EXIT", "RET", "KILL", "BPT", "RTT"})
_NO_RESULT = frozenset(
    {
        *(JUMPS | INDIRECT | CALLS | ENDS),
        *(
            "ST",
            "STG",
            "STL",
            "STS",
            "STSM",
            "RED",
            "REDG",
            "BAR",
            "DEPBAR",
            "MEMBAR",
            "ERRBAR",
            "FENCE",
            "NOP",
            "CCTL",
        ),
        *("CCTLL", "LDGDEPBAR", "LDGSTS", "BSSY", "BSYNC", "WARPSYNC", "YIELD", "NANOSLEEP", "SUST", "SURED", "REDAS"),
        *("SSY", "SYNC", "PBK", "BRK", "CONT", "PCNT", "BREAK", "ISETP", "FSETP", "DSETP", "HSETP2", "PSETP", "PLOP3"),
        *("UISETP", "UPLOP3", "UTMALDG", "UTMASTG", "UBLKCP", "SYNCS", "ARRIVES", "STTM"),
    }
)
_MATRIX = re.compile(r"[A-Z]+MMA")
_WIDE = re.compile(r"^(?:D(?:ADD|MUL|FMA|MNMX)|IADD64|UIADD64)$")
_BITS = {"64": 2, "128": 4, "256": 8, "96": 3}
_LONGEST_TEXT = 400

KINDS: Mapping[str, frozenset[str]] = {
    "global load": frozenset({"LDG", "LD", "LDGSTS", "UTMALDG", "UBLKCP"}),
    "global store": frozenset({"STG", "ST", "UTMASTG"}),
    "atomic": frozenset({"ATOM", "ATOMG", "RED", "REDG", "UTMAREDG", "ATOMS", "ATOMSCAS"}),
    "local": frozenset({"LDL", "STL"}),
    "shared load": frozenset({"LDS", "LDSM", "LDSMTRANS"}),
    "shared store": frozenset({"STS", "STSM"}),
    "barrier": frozenset(
        {"BAR", "WARPSYNC", "DEPBAR", "LDGDEPBAR", "SYNCS", "WARPGROUP", "UCGABAR_ARV", "UCGABAR_WAIT"}
    ),
    "texture": frozenset({"TEX", "TLD", "TLD4", "TXD", "TXQ", "TMML", "SULD", "SUST", "SURED", "SUATOM"}),
    "special": frozenset({"MUFU", "F2I", "I2F", "F2F", "FRND", "POPC", "FLO", "BREV", "I2FP", "F2IP"}),
    "between threads": frozenset({"SHFL", "VOTE", "MATCH", "REDUX", "CREDUX", "S2R", "S2UR"}),
    "constant load": frozenset({"LDC", "LDCU", "ULDC"}),
}
"""Kind of instruction -> opcodes, where the kind decides what is said of a loop."""
_KIND = {opcode: kind for kind, opcodes in KINDS.items() for opcode in opcodes}


class Instruction(Struct, frozen=True):
    """One instruction.

    Attributes:
        offset: From the start of the kernel's code, in bytes.
        text: As the disassembler writes it, cut.
        opcode: With modifiers; empty if there is no text.
        guard: Predicate that it is under, with `!` where that is negated; empty for none.
        target: Offset that it may jump to, or that threads meet again at; None without one.
        writes: Registers that it writes, `R4` as 4, uniform ones below zero.
        reads: Registers that it reads, those of addresses too.
        sets_written, sets_read: Scoreboards that it sets until its result is written, or its operands are read; None
            for none, and where the control bits are not known.
        waits: Mask of the scoreboards that it waits for.
        has_control: Whether its control bits are known.
        file, line: What it was compiled from; None if unknown.
    """

    offset: int
    text: str = ""
    opcode: str = ""
    guard: str = ""
    target: int | None = None
    writes: frozenset[int] = frozenset()
    reads: frozenset[int] = frozenset()
    sets_written: int | None = None
    sets_read: int | None = None
    waits: int = 0
    has_control: bool = False
    file: str | None = None
    line: int | None = None

    @property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def kind(self) -> str:
        """What it is, as far as waits and loops depend on it; empty for the rest."""
        return _KIND.get(self.base, "")

    @property
    def is_conditional(self) -> bool:
        """Return whether some threads may not run it."""
        return self.guard not in _ALWAYS

    @property
    def never_runs(self) -> bool:
        return self.guard in _NEVER

    @property
    def width_bytes(self) -> int:
        """Bytes that one thread reads or writes by it, as its modifiers say."""
        return width_bytes(self.opcode)

    @property
    def ends_block(self) -> bool:
        """Return whether what runs next need not be what stands next."""
        return (
            self.base in JUMPS
            or self.base in INDIRECT
            or self.base in ENDS
            or self.base in CALLS
            or self.base == "BSYNC"
        )


@cache
def width_bytes(opcode: str) -> int:
    """Return the bytes a thread that a load or store of this opcode moves."""
    base, *modifiers = opcode.split(".")
    if base in {"LDSM", "STSM"}:
        return 4 * max((int(one) for one in modifiers if one in {"1", "2", "4"}), default=1)
    found = [_BITS[one] for one in modifiers if one in _BITS]
    if found:
        return 4 * found[-1]
    if any(one in {"U8", "S8"} for one in modifiers):
        return 1
    return 2 if any(one in {"U16", "S16"} for one in modifiers) else 4


def parse(  # noqa: PLR0913 - one for each thing that is known of an instruction
    offset: int,
    text: str | None,
    code: bytes | None = None,
    *,
    base_address: int = 0,
    file: str | None = None,
    line: int | None = None,
) -> Instruction:
    """Read an instruction.

    Args:
        offset: From the start of the kernel's code, in bytes.
        text: What the disassembler says; None if it has none.
        code: Its 16 bytes; None if unknown, or of a GPU before Volta.
        base_address: Address of the kernel's first instruction, which targets in the text are relative to.
        file: Source file that it was compiled from.
        line: Line of it.
    """
    written = read = None
    waits = 0
    has_control = code is not None and len(code) == INSTRUCTION_BYTES
    if code is not None and has_control:
        bits = int.from_bytes(code, "little")
        written, read = (_scoreboard(bits >> at & 7) for at in (_WRITTEN_AT, _READ_AT))
        waits = bits >> _WAITED_AT & _MASK
    match = _FORM.fullmatch(text[:_LONGEST_TEXT]) if text else None
    if match is None:
        return Instruction(
            offset, sets_written=written, sets_read=read, waits=waits, has_control=has_control, file=file, line=line
        )
    opcode, operands = match["opcode"], match["operands"]
    writes, reads = _registers(opcode, operands)
    target = _TARGET.search(operands)
    base = opcode.partition(".")[0]
    is_flow = base in JUMPS or base in CALLS or base == "BSSY"
    return Instruction(
        offset=offset,
        text=f"{'@' + match['guard'] + ' ' if match['guard'] else ''}{opcode} {operands.strip()}".rstrip(),
        opcode=opcode,
        guard=match["guard"] or "",
        target=int(target[1], 16) - base_address if target and is_flow else None,
        writes=writes,
        reads=reads,
        sets_written=written,
        sets_read=read,
        waits=waits,
        has_control=has_control,
        file=file,
        line=line,
    )


def convergence_barrier(instruction: Instruction) -> str:
    """Name the register in which `BSSY` keeps where threads meet again."""
    match = _BARRIER.search(instruction.text)
    return match[1] if match else ""


def _scoreboard(number: int) -> int | None:
    return number if number < SCOREBOARDS else None


def _registers(opcode: str, operands: str) -> tuple[frozenset[int], frozenset[int]]:
    """Return the registers that an instruction writes and reads; too many rather than too few if widths are unclear."""
    base, *modifiers = opcode.split(".")
    parts = _parts(operands)
    writes: set[int] = set()
    reads: set[int] = set()
    is_matrix = _MATRIX.fullmatch(base) is not None
    width = _result_width(base, modifiers)
    has_result = base not in _NO_RESULT
    for place, part in enumerate(parts):
        in_brackets = "".join(_BRACKETS.findall(part))
        for kind, digits, extra in _REGISTER.findall(part):
            sign = 1 if kind == "R" else -1
            first = int(digits) + (0 if sign > 0 else 1)
            is_result = (
                has_result and not writes and not in_brackets and all(not _is_register(p) for p in parts[:place])
            )
            if is_result:
                count = width
            elif in_brackets:
                count = 2 if ".64" in extra else 4 if "desc" in part and sign < 0 else 1
            elif is_matrix:
                count = 4
            elif base.startswith(("ST", "RED", "ATOM")):
                count = _store_width(modifiers)
            else:
                is_wide = "WIDE" in modifiers and place == len(parts) - 1
                count = 2 if _WIDE.match(base) or is_wide or ".64" in extra else 1
            found = {sign * (first + step) for step in range(count)}
            (writes if is_result else reads).update(found)
    return frozenset(writes), frozenset(reads)


def _parts(operands: str) -> list[str]:
    """Divide operands at the commas outside brackets."""
    found, depth, start = [], 0, 0
    for at, character in enumerate(operands):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif character == "," and not depth:
            found.append(operands[start:at].strip())
            start = at + 1
    return [*found, operands[start:].strip()]


def _is_register(part: str) -> bool:
    return part.lstrip("-|~!").startswith(("R", "UR"))


def _result_width(base: str, modifiers: list[str]) -> int:
    """Return how many registers the result of an instruction fills."""
    if _MATRIX.fullmatch(base):
        return 4
    if base in {"LDSM", "LDTM"}:
        return max((int(one) for one in modifiers if one in {"1", "2", "4"}), default=1)
    if _WIDE.match(base) or "WIDE" in modifiers:
        return 2
    if base.startswith(("LD", "ATOM", "ULDC", "TEX", "TLD", "SULD", "CS2R", "UMOV", "F2F", "I2F", "F2I", "SHFL")) or (
        "64" in modifiers
    ):
        return _store_width(modifiers)
    return 1


def _store_width(modifiers: list[str]) -> int:
    if "F64" in modifiers:
        return 2
    return max((_BITS[one] for one in modifiers if one in _BITS), default=1)
