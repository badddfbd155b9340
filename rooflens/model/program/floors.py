"""Floors of the calls behind the kernels of a timeline: forecasts of `predict` on its GPU.

A floor is from cold caches; only of calls that took less, for which L2 must have held something, it is a warm one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.forecast import LAUNCH_FLOOR_S, Forecast, forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.program.call import Work

if TYPE_CHECKING:
    from rooflens.model.program.kernels import Caches
    from rooflens.model.roofline.datasheets import Datasheet

ROUNDED_NS = 1000
"""Old traces round times to microseconds."""

LAUNCH_NS = LAUNCH_FLOOR_S * 1e9
"""The least time of a launch."""

_SCALAR_FP32 = re.compile(r"sgemm|simt|ffma", re.IGNORECASE)
_WIDE = re.compile(r"gemm_(bf16|f16)|[sh]16816|h1688|nvjet_[th]s|_bf16_bf16|_f16_f16", re.IGNORECASE)
_TENSOR_FP32 = re.compile(r"tf32|s1688|s16816|tensorop|hmma|gmma", re.IGNORECASE)


class Floors:
    """Forecasts of calls on one GPU, cached."""

    def __init__(self, gpu: Datasheet | None) -> None:
        self._gpu = gpu
        self._known: dict[tuple[str, tuple[tuple[str, int], ...], float, str], Forecast | None] = {}

    def of(self, work: Work, kernel: str) -> Forecast | None:
        """Forecast the call behind a kernel; None without a GPU, or if it has no peak for the type."""
        if self._gpu is None:
            return None
        for dtype in _types_for(work, kernel):
            key = work.operation, tuple(work.sizes.items()), work.moved_bytes, dtype
            if key not in self._known:
                self._known[key] = self._forecast(work, dtype, self._gpu)
            if (found := self._known[key]) is not None:
                return found
        return None

    @staticmethod
    def _forecast(work: Work, dtype: str, gpu: Datasheet) -> Forecast | None:
        try:
            return forecast(OPERATIONS[work.operation], work.sizes, dtype, gpu, moved_bytes=work.moved_bytes)
        except (InputError, UsageError):
            return None


def _types_for(work: Work, kernel: str) -> tuple[str, ...]:
    """Name the types to try, best first.

    Products of fp32 may run as tf32, and those of 16 bits in eight where a library converts them, unless the kernel's
    name rules it out; those of four bits run as 16 where nothing else is there.
    """
    if work.dtype == "nvfp4":
        return ("nvfp4", "bf16")
    if work.may_be_fp8 and _WIDE.search(kernel) is None:
        return ("fp8", work.dtype)
    if work.dtype != "fp32" or not work.is_product:
        return (work.dtype,)
    is_scalar = _SCALAR_FP32.search(kernel) is not None and _TENSOR_FP32.search(kernel) is None
    return ("fp32",) if is_scalar else ("tf32", "fp32")


def floor_of(forecast: Forecast, calls: float, time_ns: int, rounded_ns: int) -> tuple[Caches, float] | None:
    """Return the floor of some calls, and the caches it holds for; None if they took less than any floor.

    Args:
        forecast: The forecast of one call.
        calls: How many; with a fraction if several kernels share a call.
        time_ns: The time they took.
        rounded_ns: How much of that time rounding may have cut off.
    """
    caches: Caches = "cold"
    floor_ns = forecast.t_lower_s * 1e9 * calls
    if time_ns >= floor_ns:
        return caches, floor_ns
    if forecast.t_lower_warm_s is not None:
        caches, floor_ns = "warm", forecast.t_lower_warm_s * 1e9 * calls
    elif forecast.l2_size_bytes is not None:
        left_s = (forecast.moved_bytes - forecast.l2_size_bytes) / forecast.bandwidth_bytes_per_s
        caches, floor_ns = "partly", max(forecast.t_without_dram_s, left_s) * 1e9 * calls
    return (caches, min(floor_ns, time_ns)) if floor_ns <= time_ns + rounded_ns else None


def limit_of(forecast: Forecast) -> str:
    """Name what sets the cold floor, however short it is."""
    return "memory" if forecast.longest in {"t_memory_s", "t_l2_s"} else "compute"
