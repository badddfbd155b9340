"""Tell kinds of instructions apart by their encoding, from Volta on, as far as our counts need it.

Bits 0 to 8 hold the operation, bits 9 to 11 the kinds of its operands. In a packed fp16 multiply-add, bits 24 to 31
name the register of the first factor. The second factor is in bits 32 to 39, or in bits 64 to 71 if the former hold an
immediate value or a constant-memory address to add. Register 255 reads as zero: if it is a factor, the instruction only
loads a constant. Checked against NVIDIA's disassembler on each of these GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflens.ingest.metrics.stored import Kind

INSTRUCTION_BYTES = 16

_LOAD_OPCODES = frozenset({0x180, 0x181, 0x1AE})
"""LD, LDG, and LDGSTS (a copy to shared memory)."""
_STORES = frozenset({0x185, 0x186, 0x18A, 0x18B, 0x18E, 0x1A8, 0x1A9})
"""ST, STG, atomics and reductions: all of them write."""
_HFMA2, _HFMA2_MMA = 0x31, 0x35

_PACKED_OPCODES: Mapping[int, frozenset[int]] = {
    **dict.fromkeys((70, 72, 75, 80, 86, 87, 89, 90), frozenset({_HFMA2, _HFMA2_MMA})),
    **dict.fromkeys((100, 101, 103, 110, 120, 121), frozenset({_HFMA2})),
}
"""Compute capability -> packed multiply-adds; other GPUs may encode everything differently."""

_ZERO = 255
_FIRST_FACTOR_AT = 24
_SECOND_FACTOR_AT = {1: 32, 2: 64, 3: 64, 7: 64}
"""Kinds of operands -> the first bit of the second factor, where that is a register."""


def kind_of(instruction: bytes, capability: int) -> Kind | None:
    """Return the kind of an instruction; None if the GPU's encoding is unknown.

    Args:
        instruction: Its 16 bytes.
        capability: Compute capability that it is compiled for: 90 for 9.0.
    """
    packed = _PACKED_OPCODES.get(capability)
    if packed is None or len(instruction) < INSTRUCTION_BYTES:
        return None
    bits = int.from_bytes(instruction, "little")
    operation = bits & 0x1FF
    if operation in _LOAD_OPCODES:
        return "load"
    if operation in _STORES:
        return "store"
    if operation not in packed:
        return "other"
    return "constant" if is_constant_load(bits) else "computes"


def is_constant_load(bits: int) -> bool:
    """Return whether a packed multiply-add, given as a number, has zero as a factor: it loads a constant."""
    factors = {_FIRST_FACTOR_AT, _SECOND_FACTOR_AT.get(bits >> 9 & 7, _FIRST_FACTOR_AT)}
    return any(bits >> first & 0xFF == _ZERO for first in factors)
