"""Kinds of instructions by their encoding; the texts are from NVIDIA's disassembler."""

from __future__ import annotations

import pytest
from support.loops import for_all

from rooflens.ingest.cubin.decoding import kind_of

_CONTROL = 0xFE4 << 104


def _encoded(low: int, middle: int = 0) -> bytes:
    return (low | middle << 64 | _CONTROL).to_bytes(16, "little")


@pytest.mark.parametrize(
    ("instruction", "capability", "kind"),
    [
        pytest.param(0xFE400000001FF00000000FF027435, 90, "constant", id="HFMA2.MMA R2, -RZ, RZ, 0, 0"),
        pytest.param(0xFE400000001FF00000000FF027431, 120, "constant", id="HFMA2 R2, -RZ, RZ, 0, 0"),
        pytest.param(0xFC6000040081D8000001C021D7231, 86, "computes", id="HFMA2 R29, R2.H0_H0, -R28.H0_NH1, R29"),
    ],
)
def test_a_factor_of_zero_loads_a_constant(instruction: int, capability: int, kind: str) -> None:
    """A packed multiply-add with the zero register as a factor computes nothing."""
    assert kind_of(instruction.to_bytes(16, "little"), capability) == kind


@pytest.mark.parametrize(
    ("capability", "kind"), [(90, "computes"), (100, "other"), (120, "other"), (61, None), (130, None)]
)
def test_an_operation_is_told_by_its_gpu(capability: int, kind: str | None) -> None:
    """HFMA2.MMA up to Hopper is an integer addition on Blackwell; unknown GPUs give no kinds."""
    assert kind_of(_encoded(0x4_04_7235, 4), capability) == kind


@for_all(
    "operation, kind",
    [
        (0x381, "load"),
        (0x980, "load"),
        (0xFAE, "load"),
        (0x386, "store"),
        (0x3A8, "store"),
        (0x98E, "store"),
    ],
)
def test_loads_are_told_from_what_writes(operation: int, kind: str) -> None:
    """LDG, LD and LDGSTS read; STG, ATOMG and RED write."""
    assert kind_of(_encoded(operation), 80) == kind


def test_half_an_instruction_is_nothing() -> None:
    """There is no kind beyond the end of the code."""
    assert kind_of(b"\0" * 8, 80) is None
