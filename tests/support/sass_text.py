"""Read an instruction from NVIDIA's text of it, an oracle for what `rooflens.ingest.cubin.decoding` reads of its bits.

Branch targets in the text are absolute addresses. Control bits stand in no text: they come from the 16 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rooflens.model.inside.instruction import (
    CALLS,
    ENDS,
    INDIRECT,
    INSTRUCTION_BYTES,
    JUMPS,
    SCOREBOARDS,
    Instruction,
    Linear,
    kind_of_opcode,
)

_WRITTEN_AT, _READ_AT, _WAITED_AT = 110, 113, 116
_MASK = (1 << SCOREBOARDS) - 1

_FORM = re.compile(r"\s*(?:@(?P<guard>!?U?PT|!?U?P\d)\s+)?(?P<opcode>[A-Z][A-Z0-9_.a-z]*)\s*(?P<operands>[^;]*);?\s*")
_TARGET = re.compile(r"(?:^|[\s,])(0x[0-9a-f]+)\s*$")
_REGISTER = re.compile(r"\b(U?R)(\d+)((?:\.[A-Z0-9_]+)*)")
_BARRIER = re.compile(r"\bB(\d+)\b")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_STEP = re.compile(r"\bU?IADD3?(?:\.64)? (U?R\d+), (?:U?!?P[T\d], )*(U?R\d+), (-?0x[0-9a-f]+)(?:, U?RZ)?$")
"""An addition of a number to a register: `IADD3 R5, R5, 0x4, RZ`."""
_ADDEND = re.compile(r"(?<!U)R(\d+)[^,]*$")
_BY_ADDRESS = frozenset({"LD", "LDG", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG"})
_INDEXED = re.compile(r"\[U?R\d")
_MULTIPLY_ADDS = frozenset({"FFMA", "DFMA", "HFMA2", "FFMA2"})
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
        *(
            "CCTLL",
            "R2P",
            "FCHK",
            "LDGDEPBAR",
            "LDGSTS",
            "BSSY",
            "BSYNC",
            "WARPSYNC",
            "YIELD",
            "NANOSLEEP",
            "SUST",
            "SURED",
            "REDAS",
        ),
        *("SSY", "SYNC", "PBK", "BRK", "CONT", "PCNT", "BREAK", "ISETP", "FSETP", "DSETP", "HSETP2", "PSETP", "PLOP3"),
        *("UISETP", "UPLOP3", "UTMALDG", "UTMASTG", "UBLKCP", "STAS", "SYNCS", "ARRIVES", "STTM"),
    }
)
_GROUPS = re.compile(r"SB0, (0x[0-9a-f]+)")
_PRODUCTS = re.compile(r"gsb0, (0x[0-9a-f]+)")
_MATRIX = re.compile(r"[A-Z]+MMA")
_WIDE = re.compile(r"^(?:D(?:ADD|MUL|FMA|MNMX|SETP)|IADD64|UIADD64)$")
_BITS = {"64": 2, "128": 4, "256": 8, "96": 3}
_LONGEST_TEXT = 400


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
    if code is not None and len(code) == INSTRUCTION_BYTES:
        bits = int.from_bytes(code, "little")
        written, read = (_scoreboard(bits >> at & 7) for at in (_WRITTEN_AT, _READ_AT))
        waits = bits >> _WAITED_AT & _MASK
    match = _FORM.fullmatch(text[:_LONGEST_TEXT]) if text else None
    if match is None:
        return Instruction(offset, sets_written=written, sets_read=read, waits=waits, file=file, line=line)
    opcode, operands = match["opcode"], match["operands"]
    writes, reads = _registers(opcode, operands)
    target, barrier = _TARGET.search(operands), _BARRIER.search(operands)
    base = opcode.partition(".")[0]
    is_flow = base in JUMPS or base in CALLS or base == "BSSY"
    return Instruction(
        offset=offset,
        opcode=opcode,
        base=base,
        kind=kind_of_opcode(base),
        guard=match["guard"] or "",
        target=int(target[1], 16) - base_address if target and is_flow else None,
        may_fall_through=base in JUMPS and _may_fall_through(opcode, operands),
        barrier=int(barrier[1]) if barrier and base in {"BSSY", "BSYNC", "BREAK"} else None,
        writes=writes,
        reads=reads,
        adds_to=_adds_to(base, operands),
        step=_step(f"{opcode} {operands.strip()}"),
        loads_constant=_loads_constant(base, operands),
        is_indexed_constant=base == "LDC" and _INDEXED.search(operands) is not None,
        sets_written=written,
        sets_read=read,
        waits=waits,
        file=file,
        line=line,
        leaves_groups=int(groups[1], 16) if opcode == "DEPBAR.LE" and (groups := _GROUPS.match(operands)) else None,
        leaves_products=int(left[1], 16) if base == "WARPGROUP" and (left := _PRODUCTS.match(operands)) else None,
        closes_products=base.endswith("GMMA") and "gsb0" in operands,
        sums=_sums(base, set(opcode.split(".")[1:]), _parts(operands)),
        mbarrier=None if opcode.startswith("UBLKCP.G.S") else _mbarrier(base, operands),
    )


_SUMMED = frozenset({"MOV", "IADD3", "VIADD", "IADD", "R2UR", "IMAD", "LEA", "SHF", "LOP3", "PRMT"})


def _sums(base: str, modifiers: set[str], parts: list[str]) -> Linear | None:
    """Return what a sum, a move or a shift writes, by its operands; None for others, and where a constant is loaded."""
    name = base if base == "R2UR" else base.removeprefix("U")
    is_wide_move = name == "MOV" and "64" in modifiers and "0x" in parts[1]
    if name not in _SUMMED or is_wide_move or {"X", "HI", "R"} & modifiers:
        return None
    _, *operands = [part for part in parts if not re.fullmatch(r"!?U?P[T\d]", part)] or [""]
    terms = [value for part in operands if (value := _value(part)) is not None]
    if len(terms) < len(operands):
        return None
    numbers = [None if one.terms else one.constant for one in terms]
    scaled: list[tuple[Linear, int | None]] = [(one, 1) for one in terms]
    if name == "IMAD":
        which = 0 if numbers[1] is not None else 1
        scaled = [(terms[which], numbers[1 - which]), (terms[2], 1)]
    elif name == "LEA":
        scaled = [(terms[0], 1 << (numbers[2] or 0)), (terms[1], 1)]
    elif name == "SHF":
        scaled = [(terms[0], None if numbers[1] is None or terms[2] != Linear() else 1 << (numbers[1] & 31))]
    elif name == "LOP3":
        # Other tables than that of "and" are no mask.
        scaled = [(terms[0], 1 if numbers[3] == 0xC0 and (numbers[1] or 0) & 0xFFFFF8 == 0xFFFFF8 else None)]
    elif name == "PRMT":
        scaled = [(terms[2], 1 if numbers[1] == 0x654 else None)]
    known = [(one, factor) for one, factor in scaled if factor is not None]
    return _linear(known) if len(known) == len(scaled) else None


def _linear(parts: list[tuple[Linear, int]]) -> Linear:
    terms = tuple((register, factor * by) for one, by in parts for register, factor in one.terms)
    return Linear(sum(one.constant * by for one, by in parts) & 0xFFFFFFFF, terms)


def _value(part: str) -> Linear | None:
    """Return the value of an operand; None for what the launch or another unit gives."""
    part = part.removesuffix(".reuse")
    if re.fullmatch(r"-?U?RZ", part):
        return Linear()
    if register := re.fullmatch(r"(-?)(U?)R(\d+)", part):
        number = -int(register[3]) - 1 if register[2] else int(register[3])
        return Linear(0, ((number, -1 if register[1] else 1),))
    return Linear(int(part, 16) & 0xFFFFFFFF) if re.fullmatch(r"-?0x[0-9a-f]+", part) else None


def _mbarrier(base: str, operands: str) -> Linear | None:
    """Return the address of the mbarrier that an operation is about: of a copy, behind that of its destination."""
    place = _BRACKETS.search(operands)
    if place is None or base not in {"SYNCS", "UTCBAR", "UTMALDG", "UBLKCP"}:
        return None
    address = _linear([(one, 1) for one in _summed(place[0].strip("[]"))])
    if base not in {"UTMALDG", "UBLKCP"}:
        return address
    return Linear(0, tuple((register - 1, by) for register, by in address.terms))


def _summed(text: str) -> Iterator[Linear]:
    for part in text.split("+"):
        if (value := _value(part)) is not None:
            yield value


def _may_fall_through(opcode: str, operands: str) -> bool:
    """Return whether a jump may not be taken: with a predicate as its first operand, or by a modifier."""
    return "," in operands or ".DIV" in opcode or ".CONV" in opcode or ".U.ANY" in opcode


def _adds_to(base: str, operands: str) -> int | None:
    match = _ADDEND.search(operands) if base in _MULTIPLY_ADDS else None
    return int(match[1]) if match else None


def _step(text: str) -> int | None:
    match = _STEP.search(text)
    return int(match[3], 16) if match and match[1] == match[2] else None


def _loads_constant(base: str, operands: str) -> bool:
    """Return whether a packed multiply-add has zero as a factor."""
    parts = [part.strip().lstrip("-|") for part in operands.split(",")]
    return base == "HFMA2" and any(part.startswith("RZ") for part in parts[-3:-1] + parts[1:3])


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
    has_result = base not in _NO_RESULT and not (base == "BMOV" and operands.startswith("B"))
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
                is_long = ".64" in extra or (sign > 0 and base in _BY_ADDRESS and "E" in modifiers)
                count = 2 if is_long else 4 if "desc" in part and sign < 0 else 1
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
    if _WIDE.match(base) or "WIDE" in modifiers or (base == "CS2R" and "32" not in modifiers):
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
