"""What micro-benchmarks measured on one GPU: rates, each with its unit and spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

MEMORY_UNIT = "byte/s"
FLOAT_UNIT = "FLOP/s"
INTEGER_UNIT = "op/s"

RATE_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "dram_read": MEMORY_UNIT,
        "dram_copy": MEMORY_UNIT,
        "l2": MEMORY_UNIT,
        "smem": MEMORY_UNIT,
        "fp64": FLOAT_UNIT,
        "fp32": FLOAT_UNIT,
        "fp16": FLOAT_UNIT,
        "tensor_bf16": FLOAT_UNIT,
        "tensor_fp16": FLOAT_UNIT,
        "tensor_fp16_acc16": FLOAT_UNIT,
        "tensor_tf32": FLOAT_UNIT,
        "tensor_fp8": FLOAT_UNIT,
        "tensor_int8": INTEGER_UNIT,
        "tensor_fp64": FLOAT_UNIT,
        "tensor_bf16_wgmma": FLOAT_UNIT,
        "tensor_fp16_wgmma": FLOAT_UNIT,
        "tensor_tf32_wgmma": FLOAT_UNIT,
        "tensor_fp8_wgmma": FLOAT_UNIT,
        "tensor_int8_wgmma": INTEGER_UNIT,
    }
)
"""Every rate that can be measured, and its unit; all but DRAM's two are named as levels and pipes are."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One measured rate.

    Attributes:
        median: Median of the repetitions, in `unit`; min and max are their spread.
        unit: As `RATE_UNITS` has it.
        sm_clock_hz: SM clock while this was measured; None where only the run's is known.
        scaled_from_hz: Clock at which it was measured, where it has been scaled to another; None as measured.
    """

    median: float
    min: float
    max: float
    unit: str
    repetitions: int = 1
    sm_clock_hz: float | None = None
    scaled_from_hz: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """What one calibration measured.

    Attributes:
        gpu: Display name, as reports spell it.
        driver: Release of the driver.
        sm_clock_hz: Median SM clock of the whole run.
        measured_unix_s: When, in seconds since 1970.
        rates: By the names of `RATE_UNITS`; absent where the architecture lacks it or it was not measured.
    """

    gpu: str
    compute_capability: str
    driver: str
    sm_clock_hz: float
    measured_unix_s: int
    rates: Mapping[str, Rate] = field(default_factory=dict)
