"""Limits of every quantity, each with its reason: values beyond them are impossible on any GPU.

A flipped bit in a report makes a clock of 1e308 Hz as easily as one of 2 GHz, and what is computed from it is noise at
best. Limits are those of physics or of a format, with room to spare: real reports hold per cents well over 100 where
replay passes disagree, and counters of programs that nobody has profiled yet. Within the limits damage cannot be told
from a measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from rooflens.model.counters.table import COUNTERS

_NS_PER_S = 1e9
_MOST_COUNTED = 2.0**62
"""No kernel does more of anything, and the store's whole numbers end at 2^63."""


class PlausibleRange(Struct, frozen=True):
    """What a quantity can be.

    Attributes:
        low: Least value.
        high: Greatest value.
        why: What holds of every real value, as the end of a sentence.
        least: Least value above 0: nothing that is measured is as small as numbers can be.
        most_per_s: Most of it in a second of the launch's duration; None if that is not a limit.
    """

    low: float
    high: float
    why: str
    least: float = 1e-18
    most_per_s: float | None = None


_CLOCK = PlausibleRange(1e6, 1e10, "the clocks of GPUs are between 1 MHz and 10 GHz")
SHARE = PlausibleRange(0.0, 100.0, "shares are from 0 on, and 10,000 % is more than passes disagree by")
_BYTES_RANGE = PlausibleRange(0.0, _MOST_COUNTED, "amounts are from 0 to 2^62 bytes", most_per_s=1e17)
_CYCLES_EACH = PlausibleRange(0.0, 1e12, "no instruction takes 10^12 cycles")
_OF_LAUNCH = PlausibleRange(0.0, 2.0**40, "no launch and no SM has 2^40 of anything", 0.5)
COUNT = PlausibleRange(0.0, _MOST_COUNTED, "counts are from 0 to 2^62")
OPERATIONS = PlausibleRange(0.0, 2.0**80, "no kernel does 2^80 operations")
PEAK = PlausibleRange(1e3, 1e20, "peaks of GPUs are between a thousand and 10^20 a second")
GRID = PlausibleRange(0.0, 2.0**32, "CUDA launches at most 2^31 blocks in a direction")
BLOCK = PlausibleRange(0.0, 1e5, "CUDA launches at most 1,024 threads a block")
CODE_BYTES = PlausibleRange(0.0, 2.0**40, "no kernel has 2^40 bytes of code")
INTERVAL = PlausibleRange(1.0, 1e15, "samples are between a nanosecond and ten days apart")
CAPABILITY = PlausibleRange(0.0, 99.0, "the parts of a compute capability have two digits at most")

_BY_NAME: Mapping[str, PlausibleRange] = {
    "duration_ns": PlausibleRange(1.0, 1e17, "launches take between a nanosecond and three years"),
    "dram_clock_hz": PlausibleRange(1e6, 1e11, "the clocks of GPU memory are between 1 MHz and 100 GHz"),
    "sm_count": PlausibleRange(1.0, 1e5, "GPUs have between 1 and 100,000 SMs"),
    "grid_size": PlausibleRange(0.0, 2.0**63, "CUDA launches at most 2^63 blocks"),
    "waves": PlausibleRange(0.0, 2.0**63, "CUDA launches at most 2^63 blocks"),
    "block_size": BLOCK,
    **dict.fromkeys(("threads_per_inst", "threads_on_per_inst"), PlausibleRange(0.0, 100.0, "a warp has 32 threads")),
    **dict.fromkeys(("sol_compute", "sol_memory"), SHARE),
    **dict.fromkeys(
        (
            "passes",
            "fp64_slower_factor",
            "smem_per_block_bytes",
            "smem_static_per_block_bytes",
            "smem_dynamic_per_block_bytes",
            "sm_smem_bytes",
            "smem_config_bytes",
            "smem_driver_bytes",
        ),
        _OF_LAUNCH,
    ),
}

_BY_ENDING: tuple[tuple[tuple[str, ...], PlausibleRange], ...] = (
    (("_clock_hz",), _CLOCK),
    (("_per_s",), PEAK),
    (("_share", "_rate", "_occupancy"), SHARE),
    (("_per_cycle",), PlausibleRange(0.0, 1e4, "no SM does 10,000 instructions a cycle")),
    (("_per_sector",), PlausibleRange(0.0, 1e4, "a sector has 32 bytes")),
    (("_per_request",), PlausibleRange(0.0, 1e4, "a warp has 32 threads")),
    (("_bytes",), _BYTES_RANGE),
    (("_cycles_active_avg", "_cycles_active_max", "_cycles_elapsed_avg", "elapsed_cycles"), COUNT),
    (("_cycles",), _CYCLES_EACH),
    (("_registers", "_warps", "_smem", "_blocks", "_barriers", "_per_thread"), _OF_LAUNCH),
    (("_inst", "_threads", "_sectors", "_requests", "_wavefronts", "_samples", "_count"), COUNT),
)
"""Limits of what has none of its own, by how the name ends: that is its unit."""


@cache
def limits() -> dict[str, PlausibleRange]:
    """Return the limit of every counter of the table.

    Raises:
        LookupError: A counter has none: its unit is new.
    """
    return {counter.name: _limit(counter.name) for counter in COUNTERS}


def _limit(name: str) -> PlausibleRange:
    if name in _BY_NAME:
        return _BY_NAME[name]
    for endings, limit in _BY_ENDING:
        if name.endswith(endings):
            return limit
    raise LookupError(f"no limits are known for counters like `{name}`")


def find_impossible(counters: Mapping[str, float], sources: Mapping[str, str]) -> str | None:
    """Return why the counters of a kernel cannot be what a GPU did; None if they can."""
    limit_of, duration_ns = limits(), counters.get("duration_ns")
    for name, value in counters.items():
        if (why := beyond(value, limit_of[name], duration_ns)) is not None:
            return reason(name, value, why, sources.get(name))
    return None


def first_impossible(values: Mapping[str, float], limit: PlausibleRange, what: str) -> str | None:
    """Return why one of some values of a kind cannot be; None if all can.

    Args:
        values: By name.
        limit: Of each.
        what: What they are values of, for the reason: `warp instructions of`.
    """
    for name, value in values.items():
        if (why := beyond(value, limit)) is not None:
            return reason(f"{what} {name}", value, why)
    return None


def beyond(value: float, limit: PlausibleRange, duration_ns: float | None = None) -> str | None:
    """Return why a value cannot be, for a launch of some duration where that is known; None if it can."""
    if not limit.low <= value <= limit.high:
        return limit.why
    if 0.0 < value < limit.least:
        return f"what is not 0 is at least {limit.least:g}"
    if limit.most_per_s is not None and duration_ns is not None and value > limit.most_per_s / _NS_PER_S * duration_ns:
        return f"no GPU moves {limit.most_per_s:.0e} of it in a second, and the launch took {duration_ns:.3g} ns"
    return None


def reason(name: str, value: float, why: str, source: str | None = None) -> str:
    """Say in a sentence that a value is impossible, and why."""
    origin = f", of `{source}`," if source else ""
    return f"{name} = {value:.3g}{origin} is impossible: {why}"
