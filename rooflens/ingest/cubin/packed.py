"""Packed fp16 multiply-adds by how they are encoded, from Volta on: do they compute, or only load a constant?

Bits 0 to 8 name the operation, 9 to 11 what its operands are. The first factor is the register in bits 24 to 31. The
second one is the register in bits 32 to 39, or that in bits 64 to 71 where those before hold an immediate value or a
place in constant memory to add. Register 255 is zero: with it as a factor nothing is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflens.ingest.metrics.stored import Packed

INSTRUCTION_BYTES = 16

_ZERO = 255
_HFMA2, _HFMA2_MMA = 0x31, 0x35
_OPERATIONS = {
    **dict.fromkeys((70, 72, 75, 80, 86, 87, 89, 90), frozenset({_HFMA2, _HFMA2_MMA})),
    **dict.fromkeys((100, 101, 103, 110, 120, 121), frozenset({_HFMA2})),
}
"""Compute capability -> the operations; in others they may be encoded otherwise."""

_REGISTERS, _IMMEDIATE_ADDED, _CONSTANT_ADDED, _UNIFORM_ADDED = 1, 2, 3, 7
_SECOND_FACTOR_AT = {_REGISTERS: 32, _IMMEDIATE_ADDED: 64, _CONSTANT_ADDED: 64, _UNIFORM_ADDED: 64}
"""Kind of operands -> the first bit of the second factor, where that is a register."""


def packed(instruction: bytes, capability: int) -> Packed | None:
    """Say what an instruction is; None for GPUs whose encoding is not known.

    Args:
        instruction: Its 16 bytes.
        capability: Of the GPU that it is for: 90 for 9.0.
    """
    operations = _OPERATIONS.get(capability)
    if operations is None or len(instruction) < INSTRUCTION_BYTES:
        return None
    bits = int.from_bytes(instruction, "little")
    if bits & 0x1FF not in operations:
        return "other"
    factors = [24, _SECOND_FACTOR_AT.get(bits >> 9 & 7, 24)]
    return "constant" if any(bits >> first & 0xFF == _ZERO for first in factors) else "computes"
