"""One machine instruction: what loops and waits need to know of its flow, registers and scoreboards.

A scoreboard is set when an instruction issues and freed when its result is written, or its operands are read; another
instruction names those that it waits for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from rooflens.model.roofline.opcodes import COPIES

INSTRUCTION_BYTES = 16
SCOREBOARDS = 6

_ALWAYS = frozenset({"", "PT", "UPT"})
_NEVER = frozenset({"!PT", "!UPT"})

JUMPS = frozenset({"BRA", "JMP", "UBRA", "BRAU", "JMPU"})
INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
CALLS = frozenset({"CALL", "JCAL", "CAL", "UCALL"})
ENDS = frozenset({"EXIT", "RET", "KILL", "BPT", "RTT"})
END_BLOCKS = JUMPS | INDIRECT | CALLS | ENDS | {"BSYNC"}
"""Opcodes behind which what runs next need not be what stands next."""

_BITS = {"64": 2, "128": 4, "256": 8, "96": 3}

KINDS: Mapping[str, frozenset[str]] = {
    "global load": frozenset({"LDG", "LD", *COPIES}),
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


class Linear(NamedTuple):
    """A sum of registers, each times a number, and a constant, of 32 bits.

    Attributes:
        constant: The constant.
        terms: Registers, counted as `Instruction.writes` has them, and their factors.
    """

    constant: int = 0
    terms: tuple[tuple[int, int], ...] = ()


class Instruction(Struct, frozen=True):
    """One instruction.

    Attributes:
        offset: From the start of the kernel's code, in bytes.
        opcode: With the modifiers that give the width of an access, and shape and types of a product; empty if its
            operation is unknown.
        base: The opcode without modifiers.
        kind: What it is, as far as waits and loops depend on it (`KINDS`); empty for the rest.
        guard: Predicate that it is under, with `!` where that is negated; empty for none.
        target: Offset that it may jump to, or that threads meet again at; None without one.
        may_fall_through: A jump that has a condition besides its guard.
        barrier: Register in which `BSSY` keeps where threads meet again; None for what has nothing to do with it.
        writes: Registers that it writes, `R4` as 4, uniform ones below zero.
        reads: Registers that it reads, those of addresses too.
        adds_to: Register that a multiply-add adds to; None for others, and where that is zero or a constant.
        step: What it adds to a register of its own; None if it does not count so.
        loads_constant: A multiply-add with a factor of zero: compilers load constants with it.
        is_indexed_constant: It loads a constant by an index that is known at run time only.
        sets_written, sets_read: Scoreboards that it sets until its result is written, or its operands are read; None
            for none.
        waits: Mask of the scoreboards that it waits for.
        leaves_groups: It waits for groups of asynchronous copies, all but so many of the newest; None for others.
        file, line: What it was compiled from, as NVIDIA's tools say it; None if unknown.
        path: Files and lines of the calls that inlined it, outermost first, and its own; empty if unknown.
        leaves_products: It waits for groups of products of four warps, all but so many of the newest; None for others.
        closes_products: It is the last product of a group.
        sums: What it writes, where that is a sum of registers, in kernels with mbarriers; None elsewhere.
        mbarrier: The address of the mbarrier in shared memory that it is about; None for others.
    """

    offset: int
    opcode: str = ""
    base: str = ""
    kind: str = ""
    guard: str = ""
    target: int | None = None
    may_fall_through: bool = False
    barrier: int | None = None
    writes: frozenset[int] = frozenset()
    reads: frozenset[int] = frozenset()
    adds_to: int | None = None
    step: int | None = None
    loads_constant: bool = False
    is_indexed_constant: bool = False
    sets_written: int | None = None
    sets_read: int | None = None
    waits: int = 0
    file: str | None = None
    line: int | None = None
    leaves_groups: int | None = None
    path: tuple[tuple[str, int], ...] = ()
    leaves_products: int | None = None
    closes_products: bool = False
    sums: Linear | None = None
    mbarrier: Linear | None = None

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


def kind_of_opcode(base: str) -> str:
    """Return the kind of instruction that an opcode without modifiers is; empty for what nothing depends on."""
    return _KIND.get(base, "")
