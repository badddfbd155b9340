"""Rates per clock cycle and SM that no datasheet states, listed by compute capability."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType

from msgspec import Struct

from rooflens.model.roofline.datasheets import Datasheet


class ClockRates(Struct, frozen=True):
    """Rates of an SM per clock cycle.

    Attributes:
        special: Special functions (MUFU), such as a power of two or a reciprocal.
        issued: Thread instructions that its schedulers issue: 32 each.
    """

    special: int
    issued: int


_HALF, _WHOLE, _TWICE = ClockRates(16, 64), ClockRates(16, 128), ClockRates(32, 128)

CLOCK_RATES: Mapping[str, ClockRates] = MappingProxyType(
    {
        "6.0": _HALF,
        "6.1": _TWICE,
        "7.0": _WHOLE,
        "7.2": _WHOLE,
        "7.5": _WHOLE,
        "8.0": _WHOLE,
        "8.6": _WHOLE,
        "8.7": _WHOLE,
        "8.9": _WHOLE,
        "9.0": _WHOLE,
        "10.0": _WHOLE,
        "10.3": _TWICE,
        "12.0": _WHOLE,
    }
)
"""By compute capability; others are unknown.

CUDA C++ Programming Guide, throughput of arithmetic instructions (reciprocal, exp2f) and number of schedulers; for 10.3
NVIDIA's article `Making Softmax More Efficient with NVIDIA Blackwell Ultra` (2026): twice the rate of 10.0.
"""

RATES_SOURCE = "CUDA C++ Programming Guide, results a clock cycle and SM, at the clock of the peak"

SOFTWARE_ONLY = frozenset({"fp64"})
"""Types whose exponentials are computed in software: special functions have the precision of fp32."""


class SideRates(Struct, frozen=True):
    """A GPU's rates besides its peaks and DRAM bandwidth; infinite if unknown.

    Infinite rates bound nothing, so that the formulas need no branches.
    """

    special_per_s: float = inf
    issued_per_s: float = inf
    l2_bytes_per_s: float = inf


def rates_of_gpu(gpu: Datasheet) -> tuple[float, float]:
    """Return special functions and instructions per clock cycle for a whole GPU; infinite if unknown."""
    known = CLOCK_RATES.get(gpu.compute_capability)
    return (known.special * gpu.sm_count.value, known.issued * gpu.sm_count.value) if known else (inf, inf)


def side_rates(gpu: Datasheet, pipe: str, dtype: str) -> SideRates:
    """Compute the rates at the clock of a pipe's published peak."""
    special, issued = rates_of_gpu(gpu)
    clock_hz = gpu.clock_of(pipe).value
    return SideRates(
        special_per_s=inf if dtype in SOFTWARE_ONLY else special * clock_hz,
        issued_per_s=issued * clock_hz,
        l2_bytes_per_s=gpu.l2_bandwidth.value if gpu.l2_bandwidth else inf,
    )
