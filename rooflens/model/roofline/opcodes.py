"""SASS opcodes -> operations: what one instruction of an opcode table computes.

Sources: opcode tables checked against the SASS counters (equal on every report that holds both) and against NVIDIA's
tensor operation counters; shapes and types stand in the opcode itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from msgspec import Struct

THREAD_FLOP: dict[str, tuple[str, int]] = {
    "FADD": ("fp32", 1),
    "FMUL": ("fp32", 1),
    "FFMA": ("fp32", 2),
    "FFMA32I": ("fp32", 2),
    "FADD32I": ("fp32", 1),
    "FMUL32I": ("fp32", 1),
    "FADD2": ("fp32", 2),
    "FMUL2": ("fp32", 2),
    "FFMA2": ("fp32", 4),
    "DADD": ("fp64", 1),
    "DMUL": ("fp64", 1),
    "DFMA": ("fp64", 2),
    "HADD2": ("fp16", 2),
    "HADD2_32I": ("fp16", 2),
    "HMUL2": ("fp16", 2),
    "HMUL2_32I": ("fp16", 2),
    "HFMA2": ("fp16", 4),
    "HFMA2_32I": ("fp16", 4),
}
"""Opcode without modifiers -> dtype and FLOP of a thread instruction; `...2` opcodes work on packed pairs."""

FP64_DIVISION_INST = 7
"""fp64 instructions of a division at least: four to refine the reciprocal, one to multiply, two to correct."""

WORD_BYTES, WIDEST_BYTES = 4, 16
"""What a thread loads or stores at once: a word where the opcode says nothing else, and four of them at most."""

GROUPS: dict[str, str] = {
    "matrix products": r"(?:HMMA|IMMA|BMMA|DMMA|QMMA|OMMA|HGMMA|IGMMA|BGMMA|QGMMA)|UTC[A-Z]*MMA",
    "FP64": r"D(?:ADD|MUL|FMA|SETP|MNMX|SET|SEL)",
    "FP16": r"H(?:ADD2|MUL2|FMA2|SETP2|SET2|MNMX2)(?:_32I)?",
    "FP32": r"F(?:ADD|MUL|FMA)(?:32I|2)?|F(?:SETP|SET|MNMX3?|SEL|CHK|SWZADD|CMP|ADD3)",
    "special functions": r"MUFU|RRO|FMUFU",
    "conversions": r"[FI]2[FI]P?|FRND|F2FP|I2FP|I2IP|F2IP|F2F32|[FI]2[FI]_.*",
    "global memory": r"LDG|STG|LD|ST|RED|REDG|ATOM|ATOMG|CCTL|CCTLL|CCTLT|PREFETCH",
    "local memory": r"LDL|STL",
    "shared memory": r"LDS|STS|LDSM|STSM|ATOMS",
    "tensor memory": r"LDTM|STTM|UTCCP|UTCBAR|UTCSHIFT|UTCATOMSWS",
    "asynchronous copies": r"LDGSTS|LDGDEPBAR|UTMA[A-Z]*|UBLK[A-Z]*|ARRIVES|SYNCS",
    "textures and surfaces": r"TEX|TLD4?|TMML|TXD|TXQ|SULD|SUST|SURED|SUATOM|SUQ",
    "constants": r"LDC|LDCU|ULDC",
    "between threads": r"SHFL|VOTE|VOTEU|MATCH|REDUX|CREDUX|ELECT",
    "synchronisation": r"BAR|DEPBAR|MEMBAR|ERRBAR|FENCE|WARPSYNC|NANOSLEEP|WARPGROUP|UCGABAR_.*|ENDCOLLECTIVE",
    "control": r"BRA|BRX|BRXU|JMP|JMX|JMXU|CALL|RET|EXIT|PREEXIT|BREAK|BSSY|BSYNC|BMOV|KILL|NOP|PAUSE|RPCMOV|RTT|YIELD"
    r"|SSY|SYNC|PBK|BRK|CONT|PCNT|BPT|ACQBULK|ACQSHMINIT|LEPC",
    "moves and selects": r"MOV|MOV32I|MOVM|SEL|PRMT|P2R|R2P|R2UR|I2I|PSETP|PLOP3|R2UP|S2R|S2UR|CS2R|B2R|R2B",
    "integer": r"I(?:ABS|ADD|ADD3|ADD32I|DP|DP4A|MAD|MAD32I|MNMX|MUL|MUL32I|SCADD|SETP|SET)|LEA|LOP|LOP3|LOP32I|SHF|SHL"
    r"|SHR|BFE|BFI|BMSK|BREV|FLO|POPC|SGXT|XMAD|VABSDIFF4?|VIADD|VIADDMNMX|VIMNMX3?|VHMNMX",
}
"""Purpose of instructions -> pattern that matches their whole opcodes, without modifiers."""

UNIFORM_GROUP, OTHER_GROUP = "uniform data path", "other"
"""Instructions of the uniform data path, and those that no row names."""

WARPS_PER_WARPGROUP = 4
"""Each of its four warps issues a warpgroup instruction, so one count is a quarter of the operation."""

_TENSOR = re.compile(r"^(HMMA|IMMA|BMMA|DMMA|QMMA|OMMA|HGMMA|IGMMA|BGMMA|QGMMA)\b")
_TCGEN05 = re.compile(r"^UTC[A-Z]*MMA\b")
_WARPGROUP_SHAPE = re.compile(r"^(\d+)x(\d+)x(\d+)$")

_SHAPES: dict[str, tuple[int, int, int]] = {
    "884": (8, 8, 4),
    "1684": (16, 8, 4),
    "1688": (16, 8, 8),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
    "168128": (16, 8, 128),
    "168256": (16, 8, 256),
    "8816": (8, 8, 16),
    "8832": (8, 8, 32),
    "88128": (8, 8, 128),
}
"""Digits of a warp-wide tensor opcode -> M, N, K."""

_TYPES: dict[str, str] = {
    "BF16": "bf16",
    "TF32": "tf32",
    "E4M3": "fp8",
    "E5M2": "fp8",
    "E3M2": "fp6",
    "E2M3": "fp6",
    "E2M1": "fp4",
    "S8": "int8",
    "U8": "int8",
    "S4": "int4",
    "U4": "int4",
}
_DEFAULT_TYPE: dict[str, str] = {
    "HMMA": "fp16",
    "HGMMA": "fp16",
    "IMMA": "int8",
    "IGMMA": "int8",
    "BMMA": "int1",
    "BGMMA": "int1",
    "DMMA": "fp64",
    "QMMA": "fp8",
    "QGMMA": "fp8",
    "OMMA": "fp4",
}


class TensorOp(Struct, frozen=True):
    """What one warp instruction of a tensor opcode does.

    Attributes:
        dtype: Type of the operands: bf16, fp16, tf32, fp8, fp6, fp4, fp64, int8, int4, int1.
        half_accumulate: Accumulates in fp16.
        warpgroup: Issued by four warps together (wgmma); the count of such opcodes is an estimate.
        sparse: Works on 2:4 sparse operands; `ops` counts the nominal, dense-equivalent work.
        ops: Operations of a warp instruction; a multiply-add is two.
    """

    dtype: str
    half_accumulate: bool
    warpgroup: bool
    sparse: bool
    ops: float


@cache
def opcode_group(opcode: str) -> str:
    """Say what an instruction is for; a multiply-add that compilers move a register with is a move."""
    base, _, modifiers = opcode.partition(".")
    if base == "IMAD" and modifiers.startswith("MOV"):
        return "moves and selects"
    named = (group for group, pattern in GROUPS.items() if re.fullmatch(pattern, base))
    return next(named, UNIFORM_GROUP if base.startswith("U") else OTHER_GROUP)


@cache
def thread_flop(opcode: str) -> tuple[str, int] | None:
    """Return dtype and FLOP of a thread instruction, or None for opcodes that do no floating-point arithmetic.

    `HADD2.F32` converts half to float and is left out.
    """
    base, _, modifiers = opcode.partition(".")
    if base == "HADD2" and "F32" in modifiers.split("."):
        return None
    return THREAD_FLOP.get(base)


@cache
def is_tcgen05(opcode: str) -> bool:
    """Return whether an opcode is a tcgen05 matrix instruction, which names neither shape nor type."""
    return _TCGEN05.match(opcode) is not None


THREAD_COPY = "LDGSTS"
"""`cp.async`: each thread copies to shared memory, past its registers."""
BULK_COPIES = frozenset({"UTMALDG", "UBLKCP"})
"""What one thread asks TMA for, and an mbarrier counts."""
COPIES: Mapping[str, str] = {THREAD_COPY: "cp.async", "UBLKCP": "bulk copies", "UTMALDG": "TMA"}
"""Opcode of an asynchronous copy to shared memory, without modifiers -> what programs call it."""
WARPGROUP_PRODUCTS = frozenset({"HGMMA", "IGMMA", "BGMMA", "QGMMA"})
"""Products of four warps, in the background: `wgmma`."""


def is_newest_product(opcode: str) -> bool:
    """Return whether an opcode multiplies by `wgmma` or `tcgen05`, in the background."""
    return is_tcgen05(opcode) or opcode.partition(".")[0] in WARPGROUP_PRODUCTS


def works_by_warpgroups(table: Mapping[str, int]) -> bool:
    """Return whether warpgroups multiply, or TMA copies: such a kernel fills an SM with few warps, by design."""
    return any(
        count and (is_newest_product(opcode) or opcode.partition(".")[0] in BULK_COPIES)
        for opcode, count in table.items()
    )


def executed(table: Mapping[str, int], opcodes: Collection[str]) -> float:
    """Count the instructions of an opcode table by opcode, ignoring modifiers."""
    return float(sum(count for opcode, count in table.items() if opcode.partition(".")[0] in opcodes))


@cache
def is_matrix(opcode: str) -> bool:
    """Return whether an opcode is a warp-wide or warpgroup-wide matrix instruction, readable or not."""
    return _TENSOR.match(opcode) is not None


def uses_tensor_cores(opcodes: Iterable[str]) -> bool:
    """Return whether any of some opcodes is a matrix instruction, tcgen05 ones included."""
    return any(is_matrix(opcode) or is_tcgen05(opcode) for opcode in opcodes)


@cache
def tensor_op(opcode: str) -> TensorOp | None:
    """Parse a warp-wide or warpgroup-wide tensor opcode; None for others and for shapes that are not known."""
    match = _TENSOR.match(opcode)
    if match is None:
        return None
    base, modifiers = match[1], opcode.split(".")[1:]
    shapes = (
        tuple(map(int, match.groups())) if (match := _WARPGROUP_SHAPE.match(modifier)) else _SHAPES.get(modifier)
        for modifier in modifiers
    )
    shape = next(filter(None, shapes), None)
    if shape is None:
        return None
    warpgroup = base.endswith("GMMA")
    half = base in {"HMMA", "HGMMA", "QMMA", "QGMMA"} and "F16" in modifiers and "F32" not in modifiers
    # A Volta warp's `mma.m8n8k4` is four 8x8x4 products, issued in four steps, or in two where it accumulates in fp16.
    products = 2 if half and "884" in modifiers else 1
    # The first type named is that of the operands, because the accumulator's comes before it.
    dtype = next((_TYPES[modifier] for modifier in modifiers if modifier in _TYPES), _DEFAULT_TYPE[base])
    if dtype == "fp4" and base == "QMMA":
        dtype = "fp6"  # QMMA runs fp4 at the rate of fp6 and fp8; NVIDIA counts them together, apart from OMMA's
    return TensorOp(
        dtype=dtype,
        half_accumulate=half,
        warpgroup=warpgroup,
        sparse="SP" in modifiers,
        ops=2.0 * math.prod(shape) / (WARPS_PER_WARPGROUP if warpgroup else 1) * products,
    )
