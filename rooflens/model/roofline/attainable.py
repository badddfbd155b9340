"""What a GPU attains: rates that micro-benchmarks measured on it, and the roofs they make for a kernel.

The roofs of a report are NVIDIA's peaks at the profiled clock, and no kernel reaches them. These are the lower ones
that a kernel which does nothing else reaches. `rooflens calibrate` measures them; docs/how-to/calibration.md says how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from msgspec import structs

from rooflens.model.calibration import MeasuredRates, Rate
from rooflens.model.records import Kernel, Level, Pipe
from rooflens.model.roofline.datasheets import name_key

CLOCK_TOLERANCE = 0.02
"""Clocks closer than this count as equal: repeated measurements differ by as much."""

_DRAM_RATES = frozenset({"dram_read", "dram_copy"})
_WGMMA = "_wgmma"
_FASTER_THAN_MMA = frozenset({"9", "10", "11"})
"""Major compute capabilities with a tensor instruction that reaches more than mma.sync: wgmma, tcgen05."""


def find_attainable(
    gpu: str | None, sm_clock_hz: float | None, calibrations: Iterable[MeasuredRates]
) -> MeasuredRates | None:
    """Choose the calibration of a GPU for a kernel's clock, and bring its rates to that clock.

    The newest within `CLOCK_TOLERANCE` of the clock comes first, else the newest. None without any of this GPU.
    """
    of_gpu = [one for one in calibrations if gpu is not None and name_key(one.gpu) == name_key(gpu)]
    of_gpu.sort(key=lambda one: one.measured_unix_s, reverse=True)
    at_its_clock = [one for one in of_gpu if sm_clock_hz is not None and _same_clock(one.sm_clock_hz, sm_clock_hz)]
    chosen = next(iter(at_its_clock or of_gpu), None)
    return None if chosen is None else at_clock(chosen, sm_clock_hz)


def at_clock(attainable: MeasuredRates, sm_clock_hz: float | None) -> MeasuredRates:
    """Bring the rates of a calibration to another SM clock.

    Pipes, shared memory and L2 are proportional to it; DRAM has a clock of its own and stays. Without a clock only
    DRAM is known.
    """
    rates = {
        name: scaled
        for name, rate in attainable.rates.items()
        if (scaled := rate if name in _DRAM_RATES else _scaled(rate, attainable.sm_clock_hz, sm_clock_hz)) is not None
    }
    return replace(attainable, rates=MappingProxyType(rates))


def attainable_roofs(kernel: Kernel, attainable: MeasuredRates) -> dict[str, Rate]:
    """Map a calibration that was brought to the kernel's clock to the levels and pipes of the kernel.

    A level or pipe that is absent has no attainable roof: its peak is all that is known about it.
    """
    rates = attainable.rates
    roofs = {name: rate for name, rate in rates.items() if name not in _DRAM_RATES and not name.startswith("tensor_")}
    roofs |= _tensor_roofs(kernel, attainable)
    dram = _dram_roof(kernel, rates)
    return roofs if dram is None else roofs | {"dram": dram}


def with_attainable(
    levels: Mapping[str, Level], pipes: Mapping[str, Pipe], roofs: Mapping[str, Rate]
) -> tuple[dict[str, Level], dict[str, Pipe]]:
    """Add attainable roofs to the peaks; one above its peak is the error of a measurement, and the peak counts."""
    return (
        {
            name: structs.replace(one, attainable_per_s=_lower_rate(one.peak_bytes_per_s, roofs.get(name)))
            for name, one in levels.items()
        },
        {
            name: structs.replace(one, attainable_per_s=_lower_rate(one.peak_per_s, roofs.get(name)))
            for name, one in pipes.items()
        },
    )


def _lower_rate(peak: float | None, roof: Rate | None) -> float | None:
    return None if roof is None else min(roof.median, peak or roof.median)


def _dram_roof(kernel: Kernel, rates: Mapping[str, Rate]) -> Rate | None:
    """Mix the rates of reading and copying by what the kernel writes: the time of its parts adds up.

    A copy writes half of what it moves. Where the writes are not known, all is taken as read: the higher roof.
    """
    read, copy = rates.get("dram_read"), rates.get("dram_copy")
    if read is None or copy is None:
        return read or copy
    total, written = kernel.counters.get("dram_bytes"), kernel.counters.get("dram_write_bytes")
    copied = min(1.0, 2 * written / total) if total and written is not None else 0.0
    median, low, high = (
        1 / ((1 - copied) / of_read + copied / of_copy)
        for of_read, of_copy in ((read.median, copy.median), (read.min, copy.min), (read.max, copy.max))
    )
    return replace(read, median=median, min=low, max=high)


def _tensor_roofs(kernel: Kernel, attainable: MeasuredRates) -> dict[str, Rate]:
    """Name the tensor rates as the kernel's pipes are.

    Where a faster instruction than mma.sync exists, a pipe without an instruction in its name may be that one's, unless
    the opcodes say otherwise. It gets the faster rate, or none: mma.sync's would call it done far below its roof.
    """
    tensor = {name: rate for name, rate in attainable.rates.items() if name.startswith("tensor_")}
    has_faster = attainable.compute_capability.partition(".")[0] in _FASTER_THAN_MMA
    if kernel.warp_opcodes and not any("GMMA" in op or op.startswith("UTC") for op in kernel.warp_opcodes):
        has_faster = False
    if not has_faster:
        return tensor
    faster = {name: rate for name, rate in tensor.items() if name.endswith(_WGMMA)}
    fp64 = {name: rate for name, rate in tensor.items() if name == "tensor_fp64"}
    return fp64 | faster | {name.removesuffix(_WGMMA): rate for name, rate in faster.items()}


def _scaled(rate: Rate, run_clock_hz: float, sm_clock_hz: float | None) -> Rate | None:
    if sm_clock_hz is None:
        return None
    measured_hz = rate.sm_clock_hz or run_clock_hz
    if _same_clock(measured_hz, sm_clock_hz):
        return rate
    factor = sm_clock_hz / measured_hz
    return replace(
        rate,
        median=rate.median * factor,
        min=rate.min * factor,
        max=rate.max * factor,
        sm_clock_hz=sm_clock_hz,
        scaled_from_hz=measured_hz,
    )


def _same_clock(clock_hz: float, other_hz: float) -> bool:
    return abs(clock_hz / other_hz - 1) <= CLOCK_TOLERANCE
