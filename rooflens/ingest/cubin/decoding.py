"""Read an instruction from its 16 bytes, from Volta on: its operation, registers, jump and scoreboards.

NVIDIA documents none of it. What stands here was found by showing words to NVIDIA's disassembler and by holding the
answers against the code of public reports, as `tests/corpus/test_decoding_of_the_corpus.py` does.

    bits 0 to 8      the operation
    9 to 11          which operands are registers, immediates, constants or uniform registers (`_REGISTERS`)
    12 to 15         the predicate that it runs under, and whether that is negated
    16, 24, 32, 64   registers of 8 bits: the result d, and the operands a, b and c; 255 is the zero register
    105 to 125       how it is issued: the scoreboards that it sets and waits for
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from rooflens.ingest.metrics.stored import Kind
from rooflens.model.inside.instruction import INSTRUCTION_BYTES, SCOREBOARDS, Instruction, kind_of_opcode

_OPERATIONS = """
db    002 MOV  013 IABS  038 I2I  045 I2FP  100 FLO  101 BREV  104 F2F  105 F2I  106 I2F  107 FRND
db    108 MUFU  109 POPC  110 F2F  111 F2I  112 I2F  113 FRND
da    003 P2R  03A MOVM  121 ALD  1AD LDTRAM
d     005 CS2R  11C B2R  006 VOTE  119 S2R  125 PIXLD  126 IPA  14E LEPC  153 RPCMOV  155 BMOV  1C0 GETLMEMBASE
dab   007 SEL  008 FSEL  009 FMNMX  00A FSET  017 IMNMX  01A SGXT  01B BMSK  020 FMUL  021 FADD  028 DMUL  030 HADD2
dab   032 HMUL2  033 HSET2  035@100 IADD  036@90 VIADD  03E F2FP  040 HMNMX2  048 VIMNMX  04B FADD2  07C QMUL4
dac   022 FSWZADD  029 DADD  07D QADD4
dabc  00F VIMNMX3  010 IADD3  011 LEA  012 LOP3  014 VABSDIFF  015 VABSDIFF4  016 PRMT  019 SHF  023 FFMA  024 IMAD
dabc  025 IMAD  026 IDP  027 IMAD  02B DFMA  02C CLMAD  031 HFMA2  035 HFMA2  036 HMMA  037 IMMA  039 I2IP  03C HMMA
dabc  03D BMMA  03F DMMA  043 F2IP  046 VIADDMNMX  047 VHMNMX  049 FFMA2  04A FMUL2  076 FMNMX3  07B QFMA4
ab    004 R2P  00B FSETP  00C ISETP  02A DSETP  034 HSETP2  102 FCHK
abc   01F PLOP3
bc    01E PLOP3
b     01D PLOP3  15D NANOSLEEP  148 WARPSYNC  152 RPCMOV  156 BMOV
call  143 CALL  144 CALL
a     11F SETCTAID  149 BRX  14C JMX  150 RET
=da   03B LDSM  120 AL2P  123 ISBERD  17E LDG  180 LD  181 LDG  182 LDC  183 LDL  184 LDS  197 SULD  198 SULD  199 SULD
=da   19A SULD  1A1 MATCH  1AA QSPC  1AE LDGSTS
=d    1EE LDTM
st    185 ST
atoms 18C ATOMS
=ab   17F STG  186 STG  187 STL  188 STS  18E RED  18E@90 REDG  19B SUST  19C SUST  19D SUST  19E SUST
=ab   19F SURED  1A0 SURED  1A6 REDG  1A7 SYNCS  1BD STAS  1BE REDAS
=b    1ED STTM
=dab  18A ATOM  193 SUATOM  195 SUATOM  1A2 ATOM  1A3 ATOMG  1A8 ATOMG
=dabc 07A QMMA  07F OMMA  160 TEX  161 TEX  162 TEX  163 TLD4  164 TLD4  165 TLD4  166 TLD  167 TLD  168 TLD  169 TMML
=dabc 16A TMML  16B TMML  16C TXD  16D TXD  16E TXD  172 FOOTPRINT  173 FOOTPRINT  174 FOOTPRINT
=dabc 18B ATOM  18D ATOMS  194 SUATOM  196 SUATOM  1A9 ATOMG
=dac  16F TXQ  170 TXQ  171 TXQ
=dAc  1F0 HGMMA  1F1 IGMMA  1F2 BGMMA  1F3 QGMMA
shfl  189 SHFL
D     086 VOTEU  0B8 ULDC  0B9 ULDC  0BB ULDC  0CB CS2UR  1AC LDCU  1C3 S2UR  1CE ULEPC  02F ELECT
Da    0CA R2UR  0CC CREDUX  1C2 R2UR  1C4 REDUX
DB    04D UIABS  04E UI2I  05A UI2F  05B UF2F  05C UF2I  05D UFRND  05E UI2FP  082 UMOV  0BD UFLO  0BE UBREV  0BF UPOPC
DAB   049@120 UVIADD  04A@120 UVIMNMX  050 UFMNMX  051 UFSEL  052 UFSET  056 UFMUL  083 UP2UR  085 UIMNMX  087 USEL
DAB   09A USGXT  09B UBMSK  0BA UF2FP  0BC UCLEA
DABC  04F UI2IP  054 UFADD  055 UFFMA  059 UF2IP  090 UIADD3  091 ULEA  092 ULOP3  096 UPRMT  097 UIADD3  099 USHF
DABC  0A4 UIMAD  0A5 UIMAD  0A6 UIMAD
AB    053 UFSETP  084 UR2UP  08C UISETP
ABC   09C UPLOP3  09D UPLOP3  09E UPLOP3  09F UPLOP3  1B4 UTMALDG  1B5 UTMASTG  1B6 UTMAREDG  1B8 UTMAPF  1BA UBLKCP
ABC   1BB UBLKRED  1BC UBLKPF  1E7 UTCCP  1E9 UTCBAR  1EA UTCHMMA
-     001 PMTRIG  01C PLOP3  00D CSMTEST  02D PREEXIT  02E ACQBULK  04C UVIRTCOUNT  077 ACQSHMINIT  118 NOP  11A DEPBAR
-     11B ENDCOLLECTIVE  11D BAR  124 OUT  13F CCTL  140 CCTL  141 BSYNC  142 BREAK  145 BSSY  146 YIELD  147 BRA
-     14A JMP  14D EXIT  14F BPT  157 BMOV  158 BRXU  159 JMXU  15B KILL  15C BPT  15E WARPGROUPSET
-     18F CCTL  190 CCTLL  191 CCTLT  192 MEMBAR  1AB ERRBAR  1AF LDGDEPBAR  1B0 ARRIVES  1B1 SYNCS
-     1B2 SYNCS  1B3 SUQUERY  1B7 UTMACMDFLUSH  1B9 UTMACCTL  1C5 WARPGROUP  1C6 FENCE  1C7 UCGABAR_ARV
-     1C8 USETMAXREG  1C9 USETSHMSZ  1CA UGETNEXTWORKID  1E3 UTCATOMSWS  1E6 UTCSHIFT
"""
"""Operands that are registers, then operations by their number, `@90` where one has another meaning from 9.0 on.

Uniform registers are large letters. Arithmetic has b and c in registers only in some forms (`_places`); after `=`, as
in accesses to memory, every form has. `-` is for operations without registers that anything waits for.
"""

_CAPABILITIES = frozenset({70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121})

_BY_KINDS: Mapping[str, Mapping[int, str]] = {
    "shfl": {1: "=dabc", 2: "=dab", 4: "=dac", 0: "=da"},
    "call": {1: "=a", 0: "-"},
    "st": {1: "=ac", 0: "=ab"},
    "atoms": {7: "=da", 0: "=dab"},
}
"""Operands of operations that follow no rule, by the kinds of their operands; 0 for all others."""

_AT: Mapping[str, int] = {"d": 16, "a": 24, "b": 32, "c": 64}
_ZERO, _TRUE = 0xFF, 7
_BLACKWELL = 100
_ZERO_UNIFORM_OF_6_BITS = 0x3F
_REGISTERS, _WITH_UNIFORM, _SECOND_LAST = 1, frozenset({6, 7}), frozenset({2, 3, 7})
"""Kinds of operands: all are registers; bits 32 to 39 name a uniform one; b stands at the place of c."""

_SIZE_AT = 73
_WIDTH_BYTES = (1, 1, 2, 2, 4, 8, 16, 4)
_SMALL, _LARGE = (".U8", ".S8", ".U16", ".S16"), {8: ".64", 16: ".128", 32: ".256"}
_SIZED = frozenset({"LD", "LDG", "LDS", "LDL", "LDC", "LDCU", "ULDC", "ST", "STG", "STS", "STL", "LDGSTS"})
_LOADS_256_BITS = 0x17E
_BY_ADDRESS = frozenset({"LD", "LDG", "ST", "STG", "LDGSTS", "ATOM", "ATOMG", "RED", "REDG"})
"""Accesses to global memory, whose address fills two registers where bit 72 is set."""
_WITH_DESCRIPTOR, _DESCRIPTOR_REGISTERS = _BY_ADDRESS | {"LDS", "STS", "LDSM", "STSM", "ATOMS"}, 4
"""Accesses that a uniform register adds to, or describes, where bit 91 is set."""
_ATOMICS, _ATOMIC_OF_64_BITS = frozenset({"ATOM", "ATOMG", "RED", "REDG"}), frozenset({2, 5, 6})
_DOUBLE = frozenset({"DADD", "DMUL", "DFMA", "DSETP"})
_CONVERSIONS_OF_64_BITS = frozenset({0x110, 0x111, 0x112, 0x113})
"""From or to 64 bits, to where bit 75 is set."""
_ADDS_64_BITS_UNIFORM, _WIDE_SUMS = 0x097, frozenset({0x025, 0x0A5})
_CS2R, _COPY = 0x005, "LDGSTS"
_PACKED_OPERATIONS = frozenset({"HFMA2"})
_MULTIPLY_ADDS = frozenset({"FFMA", "DFMA", "HFMA2", "FFMA2"})

_HMMA_OF_VOLTA = 0x036
_IMMA_SHAPES = {0: "8816", 4: "16816", 5: "16832", 2: "8832", 6: "16864"}
_FLOATS = ("E4M3", "E5M2", "", "E3M2", "E2M3", "E2M1", "", "")
_TCGEN05 = ("UTCHMMA", "UTCIMMA", "UTCHMMA", "UTCQMMA")
_HALVES = ("", ".BF16", ".TF32", "")
_SIGNED_AT = ((76, 83), (78, 84))
"""Where integers are signed, and have 4 bits instead of 8: the left factor, and the right one."""
_BOTH = 3

_JUMP, _CALL_RELATIVE, _MEETING = 0x147, 0x144, 0x145
_WITH_TARGETS = frozenset({_JUMP, _CALL_RELATIVE, _MEETING})
_TARGET_AT, _LONG_TARGETS_FROM, _MEETING_BITS, _TARGET_BITS = 34, 90, 30, 48
_AT_BARRIERS = frozenset({"BSSY", "BSYNC", "BREAK"})
_STEPPING: Mapping[str, bool] = {"IADD3": True, "IADD": False, "UIADD3": True}
"""Integer additions, each with whether a third operand is added, too."""
_IMMEDIATE, _NEGATED_AT, _CARRY_AT = 4, 72, 74
_SECOND_FACTOR: Mapping[int, str] = {1: "b", 2: "c", 3: "c", 7: "c"}
"""Kinds of operands -> where the second factor is, if that is a register."""
_OF_GLOBAL_MEMORY: Mapping[str, Kind] = {"global load": "load", "global store": "store", "atomic": "store"}


class _Operation(NamedTuple):
    name: str
    slots: str


def _operation_table() -> dict[int, list[tuple[int, _Operation]]]:
    """Read the table: by number, each meaning with the capability from which it holds, newest first."""
    found: dict[int, list[tuple[int, _Operation]]] = {}
    for row in _OPERATIONS.strip().split("\n"):
        slots, *words = row.split()
        for number, name in zip(words[::2], words[1::2], strict=True):
            digits, _, since = number.partition("@")
            found.setdefault(int(digits, 16), []).append((int(since or 0), _Operation(name, slots)))
    return {number: sorted(rows, reverse=True) for number, rows in found.items()}


_TABLE = _operation_table()


class _Place(NamedTuple):
    """Where an instruction names a register, or the first of several.

    Attributes:
        at: First of its 8 bits.
        width: How many registers it means.
        is_uniform: They are uniform registers.
        is_result: They are written.
    """

    at: int
    width: int
    is_uniform: bool
    is_result: bool


class _InstructionForm(NamedTuple):
    """What does not depend on the registers of an instruction: most of it, so that it is worked out once.

    Attributes:
        number: The operation's.
        name: Its name; empty if unknown.
        kinds: Bits 9 to 11: the kinds of its operands.
        opcode: With modifiers, but for those that depend on more (`_opcode`).
        kind: What it is, as far as waits and loops depend on it.
        places: Where its registers are.
        writes, reads: First of the 8 bits of each, and what registers these mean by their value.
        is_plain: Nothing but its registers depends on its other bits, as for jumps, sums and moves.
        capability: Compute capability that it is compiled for.
    """

    number: int
    name: str
    kinds: int
    opcode: str
    kind: str
    places: tuple[_Place, ...] = ()
    writes: tuple[tuple[int, Mapping[int, frozenset[int]]], ...] = ()
    reads: tuple[tuple[int, Mapping[int, frozenset[int]]], ...] = ()
    is_plain: bool = False
    capability: int = 0


_OF_FORM = 0xFFF | sum(1 << at for at in (*range(72, 81), *range(82, 87), 91))
"""The bits that a form depends on: the operation, and what modifies it."""


@lru_cache(maxsize=1 << 14)
def _form(bits: int, capability: int) -> _InstructionForm:
    number, kinds = bits & 0x1FF, bits >> 9 & 7
    name, slots = next((one for since, one in _TABLE.get(number, ()) if capability >= since), _Operation("", ""))
    bare = _InstructionForm(number, name, kinds, "", kind_of_opcode(name), capability=capability)
    bare = bare._replace(opcode=_with_modifiers(bare, bits))
    places = [
        _Place(at, _width(bare, bits, letter), is_uniform, is_result=letter == "d" and name != _COPY)
        for letter, at, is_uniform in _registers_of(slots, kinds)
    ]
    if name in _WITH_DESCRIPTOR and bits >> 91 & 1:
        at = _AT["b" if name.startswith("LD") and name != _COPY else "c"]
        width = _DESCRIPTOR_REGISTERS if name in _BY_ADDRESS else 1
        places.append(_Place(at, width, is_uniform=True, is_result=False))
    has_8_bits = capability >= _BLACKWELL
    writes, reads = (
        tuple(
            (one.at, _registers(one.width, is_uniform=one.is_uniform, has_8_bits=has_8_bits))
            for one in places
            if one.is_result is is_result
        )
        for is_result in (True, False)
    )
    return bare._replace(
        places=tuple(places),
        writes=writes,
        reads=reads,
        is_plain=name not in _TAKES_MORE_BITS and number not in _WITH_TARGETS,
    )


class _Registers(dict[int, frozenset[int]]):
    """The registers that 8 bits mean, as `Instruction` counts them, by the value of these bits; made when first used.

    Args:
        width: How many from the first on.
        is_uniform: They are uniform ones.
        has_8_bits: Uniform registers have 8 bits; until Hopper they have 6, and the others mean something else.
    """

    def __init__(self, width: int, *, is_uniform: bool, has_8_bits: bool) -> None:
        super().__init__()
        self._width = width
        self._is_uniform = is_uniform
        self._zero = _ZERO_UNIFORM_OF_6_BITS if is_uniform and not has_8_bits else _ZERO

    def __missing__(self, bits: int) -> frozenset[int]:
        first, found = bits & self._zero, frozenset[int]()
        if first != self._zero:
            numbers = range(first, first + self._width)
            found = frozenset(-number - 1 for number in numbers) if self._is_uniform else frozenset(numbers)
        self[bits] = found
        return found


_registers = cache(_Registers)


def _registers_of(slots: str, kinds: int) -> Iterator[tuple[str, int, bool]]:
    """Yield the operands that are registers: letter, first bit, and whether it is a uniform one.

    Args:
        slots: As the table of operations has them.
        kinds: The kinds of the operands.
    """
    if slots in _BY_KINDS:
        slots = _BY_KINDS[slots].get(kinds, _BY_KINDS[slots][0])
    is_fixed, has_three = slots.startswith("="), "bc" in slots.lower()
    for one in slots.strip("=-"):
        letter, is_uniform = one.lower(), one.isupper()
        if is_fixed or letter in "da" or (letter == "c" and has_three) or kinds == _REGISTERS:
            yield letter, _AT[letter], is_uniform
        elif kinds in _WITH_UNIFORM:
            yield letter, _AT["b"], True


def _width(form: _InstructionForm, bits: int, letter: str) -> int:
    """Return how many registers an operand means; the result is `d`."""
    if form.name.endswith("MMA"):
        return 4
    if form.name in _SIZED or form.name in _BY_ADDRESS or form.name == "LDSM":
        return _width_of_access(form, bits, letter)
    is_result = letter == "d"
    if form.number in _CONVERSIONS_OF_64_BITS:
        is_to_64_bits = bool(bits >> 75 & 1)
        is_wide = is_result is is_to_64_bits if form.name == "F2F" else not is_result or is_to_64_bits
        return 2 if is_wide or form.name == "FRND" else 1
    is_wide_sum = form.number in _WIDE_SUMS and (is_result or (letter == "c" and form.kinds not in _SECOND_LAST))
    return 2 if is_wide_sum or _is_of_64_bits(form, bits) or (form.number == _CS2R and is_result) else 1


def _width_of_access(form: _InstructionForm, bits: int, letter: str) -> int:
    """Return how many registers an operand of an access to memory means: its address or its data."""
    if letter == "a" and form.name in _BY_ADDRESS:
        return 2 if bits >> 72 & 1 or form.name == _COPY else 1
    if letter == "a" or (letter == "d" and form.name == _COPY):
        return 1
    if form.name in _ATOMICS:
        return 2 if _is_of_64_bits(form, bits) else 1
    return max(1, _bytes_of(form, bits) // 4)


def _bytes_of(form: _InstructionForm, bits: int) -> int:
    """Return how many bytes a thread reads or writes by an access to memory."""
    if form.name == _COPY:
        return 4 << (bits >> (73 if form.capability < _BLACKWELL else 74) & 3)
    if form.name == "LDSM":
        return 4 << (bits >> 72 & 3)
    return 32 if form.number == _LOADS_256_BITS else _WIDTH_BYTES[bits >> _SIZE_AT & 7]


def _is_of_64_bits(form: _InstructionForm, bits: int) -> bool:
    if form.name in _ATOMICS:
        return bits >> _SIZE_AT & 7 in _ATOMIC_OF_64_BITS
    is_sum = form.number == _ADDS_64_BITS_UNIFORM or (form.name == "IADD" and bool(bits >> 73 & 1))
    return is_sum or form.name in _DOUBLE


def is_known(capability: int) -> bool:
    """Return whether the encoding of a GPU's instructions is known, by its compute capability: 90 for 9.0."""
    return capability in _CAPABILITIES


def kind_of(code: bytes, capability: int) -> Kind | None:
    """Tell what our counts need of an instruction; None if the GPU's encoding is unknown, or `code` is cut.

    Args:
        code: Its 16 bytes.
        capability: Compute capability that it is compiled for: 90 for 9.0.
    """
    if len(code) < INSTRUCTION_BYTES or not is_known(capability):
        return None
    bits = int.from_bytes(code, "little")
    form = _form(bits & _OF_FORM, capability)
    if form.name in _PACKED_OPERATIONS:
        return "constant" if _loads_constant(bits) else "computes"
    return _OF_GLOBAL_MEMORY.get(form.kind, "other")


def _loads_constant(bits: int) -> bool:
    """Return whether a packed multiply-add has the zero register as a factor: it only loads a constant."""
    factors = {"a", _SECOND_FACTOR.get(bits >> 9 & 7, "a")}
    return any(bits >> _AT[letter] & _ZERO == _ZERO for letter in factors)


def decode(  # noqa: PLR0913 - one for each thing that is known of an instruction
    offset: int,
    code: bytes,
    capability: int,
    *,
    file: str | None = None,
    line: int | None = None,
    path: tuple[tuple[str, int], ...] = (),
) -> Instruction:
    """Read an instruction; its opcode is empty if its operation is unknown.

    Args:
        offset: From the start of the kernel's code, in bytes; targets of jumps count from there, too.
        code: Its 16 bytes.
        capability: Compute capability that it is compiled for: 90 for 9.0.
        file: Source file that it was compiled from.
        line: Line of it.
        path: As `Instruction.path`.
    """
    bits = int.from_bytes(code, "little")
    form = _form(bits & _OF_FORM, capability)
    writes = reads = _NONE
    for at, registers in form.writes:
        writes = writes | registers[bits >> at & _ZERO] if writes else registers[bits >> at & _ZERO]
    for at, registers in form.reads:
        reads = reads | registers[bits >> at & _ZERO] if reads else registers[bits >> at & _ZERO]
    guard = _GUARDS[bits >> 12 & 15]
    written, read, waits = _BOARDS[bits >> 110 & 7], _BOARDS[bits >> 113 & 7], bits >> 116 & (1 << SCOREBOARDS) - 1
    if form.is_plain:
        # By place, as most instructions are: names cost a third of the time.
        return Instruction(
            *(offset, form.opcode, form.name, form.kind, guard, None, False, None, writes, reads, None, None, False),
            *(False, written, read, waits, file, line, None, path),
        )
    opcode = _opcode(form, bits)
    return Instruction(
        offset=offset,
        opcode=opcode,
        base=opcode.partition(".")[0],
        kind=form.kind,
        guard=guard,
        target=_target(form, bits, capability, offset),
        may_fall_through=form.number == _JUMP and _may_fall_through(form, bits),
        barrier=bits >> 16 & 15 if form.name in _AT_BARRIERS else None,
        writes=writes,
        reads=reads,
        adds_to=_register_added_to(form, bits) if form.name in _MULTIPLY_ADDS else None,
        step=_step_of_register(form, bits) if form.name in _STEPPING else None,
        loads_constant=form.name in _PACKED_OPERATIONS and _loads_constant(bits),
        is_indexed_constant=form.name == "LDC" and bits >> _AT["a"] & _ZERO != _ZERO,
        sets_written=written,
        sets_read=read,
        waits=waits,
        file=file,
        line=line,
        path=path,
        leaves_groups=bits >> 38 & 0x3F if form.name == "DEPBAR" and bits >> 44 & 15 == _AT_MOST_GROUPS else None,
        leaves_products=bits >> 72 & 7 if opcode == "WARPGROUP.DEPBAR" else None,
        closes_products=form.name in _OF_WARPGROUPS and bits >> 84 & 7 != _TRUE,
    )


_AT_MOST_GROUPS = 8
"""What bits 44 to 47 of a `DEPBAR.LE SB0` say: the scoreboard, and that it may still count some."""
_NONE: frozenset[int] = frozenset()
_BOARDS = (*range(SCOREBOARDS), None, None)
"""What 3 bits say of a scoreboard that is set."""

_GUARDS = tuple(f"{'!' * (number >> 3)}P{'T' if number & 7 == _TRUE else number & 7}" for number in range(16))


def _with_modifiers(form: _InstructionForm, bits: int) -> str:
    """Return an opcode with those modifiers that loops, widths and operations depend on, as far as a form has them."""
    name = form.name
    if name in _SIZED:
        size = bits >> _SIZE_AT & 7
        is_small = name != _COPY and size < len(_SMALL)
        return name + (_SMALL[size] if is_small else _LARGE.get(_bytes_of(form, bits), ""))
    modifiers = _MODIFIERS[name](bits) if name in _MODIFIERS else ""
    return f"{name}.{modifiers}" if modifiers else name


def _opcode(form: _InstructionForm, bits: int) -> str:
    """Return the opcode with those of its modifiers that loops, widths and operations depend on."""
    if form.name == "IMAD":
        return "IMAD.MOV" if _only_moves(form, bits) else "IMAD"
    if form.name == "WARPGROUP":
        return "WARPGROUP.DEPBAR" if bits >> 47 & 1 else "WARPGROUP.ARRIVE"
    if form.name in _OF_WARPGROUPS:
        return f"{form.name}.{_OF_WARPGROUPS[form.name](bits)}"
    if form.name != "UTCHMMA":
        return form.opcode
    # Products of types of 4 bits are those of halves with a register for scales.
    name = _TCGEN05[bits >> 72 & 3]
    return "UTCOMMA" if name == "UTCHMMA" and bits >> 48 & _ZERO != _ZERO else name


def _only_moves(form: _InstructionForm, bits: int) -> bool:
    """Return whether a multiply-add has two factors of zero: compilers move registers with it."""
    second = {_REGISTERS: "b", 2: "c", 3: "c"}.get(form.kinds)
    is_sum = bool(bits >> _CARRY_AT & 1)
    return second is not None and not is_sum and bits >> _AT["a"] & _ZERO == bits >> _AT[second] & _ZERO == _ZERO


def _bit(bits: int, *places: int) -> int:
    """Return a number of single bits, the lowest first."""
    return sum((bits >> place & 1) << weight for weight, place in enumerate(places))


def _of_hmma(bits: int) -> str:
    sums = "F32" if _bit(bits, 76) else "F16"
    if bits & 0x1FF == _HMMA_OF_VOLTA:
        return f"884.{sums}"
    shape = ("1688", "16816", "1684", "16832")[_bit(bits, 75, 78)]
    return f"{'SP.' * _bit(bits, 73)}{shape}.{sums}{_HALVES[bits >> 82 & 3]}"


def _of_imma(bits: int) -> str:
    shape = _IMMA_SHAPES.get(_bit(bits, 75, 85, 86), "")
    signed = (f"{'S' if _bit(bits, sign) else 'U'}{4 if _bit(bits, small) else 8}" for sign, small in _SIGNED_AT)
    return f"{'SP.' * _bit(bits, 72)}{shape}.{'.'.join(signed)}"


def _of_qmma(bits: int) -> str:
    shape = "16864" if _bit(bits, 76, 80) == _BOTH else "16832" if _bit(bits, 75) else "16816"
    types = f"{_FLOATS[_bit(bits, 78, 82, 83)]}.{_FLOATS[_bit(bits, 79, 84, 85)]}"
    return f"{'SP.' * _bit(bits, 80)}{shape}.{'F32' if _bit(bits, 77) else 'F16'}.{types}"


def _of_hgmma(bits: int) -> str:
    kind = bits >> 76 & 3
    shape = _of_warpgroup(bits >> 53 & 0x1F, 8 if kind == 2 else 16)
    return f"{shape}.{'F32' if _bit(bits, 75) else 'F16'}{_HALVES[kind]}"


def _of_qgmma(bits: int) -> str:
    return f"{_of_warpgroup(bits >> 53 & 0x1F, 32)}.{'F32' if _bit(bits, 75) else 'F16'}.E4M3"


def _of_igmma(bits: int) -> str:
    # Widths are 8, 16, 24, 32, and from there on multiples of 16.
    step = (bits >> 53 & 0x3F) // 3
    return f"{_of_warpgroup(step if step < 4 else 2 * step - 3, 32)}.S8"


def _of_warpgroup(columns: int, depth: int) -> str:
    """Return the shape of a product of four warps, given how many times 8 columns it has, less one."""
    return f"64x{8 * (columns + 1)}x{depth}"


_OF_SYNCS = 0xFFF
_SYNCS: Mapping[int, str] = {0x5B2: "EXCH", 0x5A7: "PHASECHK", 0x9A7: "ARRIVE"}
"""What is done to an mbarrier, by the operation and the kinds of its operands."""

_MODIFIERS: Mapping[str, Callable[[int], str]] = {
    "HMMA": _of_hmma,
    "IMMA": _of_imma,
    "BMMA": lambda bits: ("88128", "168128", "168256", "")[bits >> 75 & 3],
    "DMMA": lambda bits: ("8x8x4", "16x8x4", "16x8x8", "16x8x16")[bits >> 76 & 3],
    "QMMA": _of_qmma,
    "OMMA": lambda _: "SF.16864.F32.E2M1",
    "LDSM": lambda bits: str(1 << (bits >> 72 & 3)),
    "HADD2": lambda bits: "F32" if bits >> 78 & 1 else "",
    "SYNCS": lambda bits: _SYNCS.get(bits & _OF_SYNCS, ""),
}
"""How an opcode goes on: shape and types of matrix instructions, and the like."""

_OF_WARPGROUPS: Mapping[str, Callable[[int], str]] = {"HGMMA": _of_hgmma, "IGMMA": _of_igmma, "QGMMA": _of_qgmma}
"""The same of products of four warps, whose width stands where others have an immediate."""

_TAKES_MORE_BITS = (
    _OF_WARPGROUPS.keys()
    | _AT_BARRIERS
    | _MULTIPLY_ADDS
    | _STEPPING.keys()
    | _PACKED_OPERATIONS
    | {"IMAD", "UTCHMMA", "LDC", "DEPBAR", "WARPGROUP"}
)
"""Operations of which bits that no form depends on tell more than registers."""


def _target(form: _InstructionForm, bits: int, capability: int, offset: int) -> int | None:
    """Return where an instruction may jump to, or where threads meet again."""
    if form.number == _MEETING:
        return offset + INSTRUCTION_BYTES + 4 * _signed(bits >> _TARGET_AT, _MEETING_BITS)
    if form.number not in {_JUMP, _CALL_RELATIVE} or (form.number == _CALL_RELATIVE and form.kinds == _REGISTERS):
        return None
    words = _signed(bits >> _TARGET_AT, _TARGET_BITS)
    if capability >= _LONG_TARGETS_FROM:
        words = words << 8 | bits >> _AT["d"] & 0xFF
    return offset + INSTRUCTION_BYTES + 4 * words


def _signed(number: int, width: int) -> int:
    number &= (1 << width) - 1
    return number - (1 << width) if number >> width - 1 else number


def _may_fall_through(form: _InstructionForm, bits: int) -> bool:
    """Return whether a jump may not be taken though it runs under no predicate: it has a condition of its own."""
    has_predicate, kind, is_any = bits >> 87 & 7 != _TRUE, bits >> 32 & 3, bits >> 84 & 1
    return has_predicate or form.kinds == 2 or kind > 1 or (kind == 1 and bool(is_any))


def _register_added_to(form: _InstructionForm, bits: int) -> int | None:
    """Return the register that a multiply-add adds to; None if that is zero, a constant or uniform."""
    if form.kinds in _SECOND_LAST:
        return None
    number = bits >> _AT["c"] & _ZERO
    return None if number == _ZERO else number


def _step_of_register(form: _InstructionForm, bits: int) -> int | None:
    """Return what an instruction adds to a register of its own; None if it is no such sum."""
    has_third = _STEPPING[form.name]
    if form.kinds != _IMMEDIATE or (has_third and bits >> _NEGATED_AT & 0b101):
        return None
    third = bits >> _AT["c"] & 0xFF
    is_sum = has_third and third not in {_ZERO, _ZERO_UNIFORM_OF_6_BITS if form.places[0].is_uniform else _ZERO}
    if is_sum or bits >> _AT["d"] & 0xFF != bits >> _AT["a"] & 0xFF:
        return None
    return _signed(bits >> _AT["b"], 32)
