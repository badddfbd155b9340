"""Read the samples that a report took while a kernel ran: units over time, from the kernel's start to its end.

Samples come from one or more passes, each with its own clock. Their time stamps tell the pass, and all passes are
aligned at the start of the kernel. Samples before and after the kernel are dropped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeGuard

from msgspec import Struct

from rooflens.ingest.metrics.stored import Metrics, Stored, Value
from rooflens.model.records import RESIDENT, Series

_PCT = ".avg.pct_of_peak_sustained_elapsed"

_SERIES_UNITS: Mapping[str, tuple[str, ...]] = {
    "dram": (f"dramc__throughput{_PCT}", f"dram__bytes{_PCT}"),
    "l2": (f"lts__throughput{_PCT}", f"lts__t_sectors_realtime{_PCT}", f"lts__lts2xbar_cycles_active_realtime{_PCT}"),
    "l1": (f"l1tex__throughput{_PCT}", f"l1tex__data_pipe_lsu_wavefronts{_PCT}", f"l1tex__lsu_writeback_active{_PCT}"),
    "tensor_pipe": (f"sm__pipe_tensor_cycles_active_realtime{_PCT}",),
    "fma": (f"sm__pipe_fma_cycles_active_realtime{_PCT}",),
    "alu": (f"sm__inst_executed_pipe_alu_realtime{_PCT}",),
    "xu": (f"sm__inst_executed_pipe_xu_realtime{_PCT}",),
    "issue": (f"sm__inst_executed_realtime{_PCT}",),
}
"""Level or pipe -> the metrics that sample it, in percent of its peak, best first."""

_RESIDENT = ("tpc__warps_active.sum.per_cycle_elapsed", "smsp__warps_active.sum", "sm__cycles_active.avg")
"""Metrics that follow the number of resident warps, in any unit: only the shape over time is used."""

_ON_THE_SM = (
    *_RESIDENT,
    *(name for unit, names in _SERIES_UNITS.items() if unit not in {"dram", "l2"} for name in names),
)
"""Metrics that are zero while no kernel runs: they mark its start and end if a report has no time stamps for them."""

_SAMPLED = re.compile(r"(?:pmsampling:|(?:\w+\.)?Triage\w*\.)(?P<name>.+)")
"""Names of sampled metrics: until 2024 ncu put the group of passes before the metric, since then a prefix."""
_WANTED = frozenset(name for group in (*_SERIES_UNITS.values(), _RESIDENT) for name in group)
_START, _END = "profiler__timestamp_workload_start_", "profiler__timestamp_workload_end_"

Course = tuple[float | None, ...]
"""Values at equal time steps from the start of the kernel; None for a missing sample."""

MIN_SAMPLES = 8
"""Fewer samples do not show a course over time."""
MOST_SAMPLES = 65_536
"""ncu's buffer holds far fewer samples per metric: more is damage."""
MOST_KEPT = 240
"""As many points as a small chart can show; of more samples, neighbours are averaged."""


class _Samples(Struct, frozen=True):
    """One sampled metric: time stamps in nanoseconds of some clock, each with a value."""

    times_ns: tuple[int, ...]
    values: tuple[float, ...]


def uses(name: str) -> bool:
    """Return whether the instances of this metric are read."""
    match = _SAMPLED.fullmatch(name)
    return name.startswith((_START, _END)) or (match is not None and match["name"] in _WANTED)


def read_series(metrics: Metrics) -> Series | None:
    """Read the series of a result; None if nothing, or too little, was sampled while it ran."""
    names = {match["name"]: name for name in metrics.names() if (match := _SAMPLED.fullmatch(name))}
    stored = {short: _samples(metrics.metric(name)) for short, name in names.items() if short in _WANTED}
    samples = {name: found for name, found in stored.items() if found is not None}
    windows = _windows(metrics) or _active_windows(samples)
    interval_ns = _interval_ns(samples.values())
    if not windows or interval_ns is None:
        return None
    courses = {name: course for name, found in samples.items() if (course := _course(found, windows, interval_ns))}
    shares = {unit: _over(_first(courses, group), 100.0) for unit, group in _SERIES_UNITS.items()}
    resident = _first(courses, _RESIDENT)
    most = max((value for value in resident if value is not None), default=0.0)
    if most:
        shares[RESIDENT] = _over(resident, most)
    return _even({unit: share for unit, share in shares.items() if share}, interval_ns)


def _first(courses: Mapping[str, Course], names: Iterable[str]) -> Course:
    return next((courses[name] for name in names if name in courses), ())


def _over(course: Course, whole: float) -> Course:
    return tuple(None if value is None else value / whole for value in course)


def _even(shares: Mapping[str, Course], interval_ns: float) -> Series | None:
    """Give all units the median length, as passes differ by a sample; average neighbours if there are too many."""
    from statistics import median  # noqa: PLC0415 - only where something was sampled

    length = int(median(len(share) for share in shares.values())) if shares else 0
    if length < MIN_SAMPLES:
        return None
    step = -(-length // MOST_KEPT)
    even = {unit: (*share, *(None,) * length)[:length] for unit, share in shares.items()}
    return Series(interval_ns * step, {unit: _thinned(share, step) for unit, share in even.items()})


def _thinned(course: Course, step: int) -> Course:
    parts = [[value for value in course[i : i + step] if value is not None] for i in range(0, len(course), step)]
    return tuple(sum(part) / len(part) if part else None for part in parts)


def _samples(stored: Stored | None) -> _Samples | None:
    if stored is None or not stored.keys or not MIN_SAMPLES <= len(stored.values) <= MOST_SAMPLES:
        return None
    if not (_are_numbers(stored.keys) and _are_numbers(stored.values)):
        return None
    pairs = sorted((int(time), float(value)) for time, value in zip(stored.keys, stored.values, strict=True))
    if min(value for _, value in pairs) < 0:
        return None
    return _Samples(tuple(time for time, _ in pairs), tuple(value for _, value in pairs))


def _are_numbers(values: Sequence[Value]) -> TypeGuard[Sequence[float]]:
    return {*map(type, values)} <= {int, float} and all(map(math.isfinite, values))  # type: ignore[arg-type]  # no texts


def _windows(metrics: Metrics) -> list[tuple[int, int]]:
    """Return the kernel's start and end in each pass, in nanoseconds of that pass's clock."""
    stamps: dict[str, int] = {}
    for name in metrics.names():
        if name.startswith((_START, _END)):
            stored = metrics.metric(name)
            if stored is not None and stored.keys and isinstance(stored.keys[0], int):
                stamps[name] = stored.keys[0]
    starts = {name.removeprefix(_START): time for name, time in stamps.items() if name.startswith(_START)}
    ends = {number: stamps.get(f"{_END}{number}") for number in starts}
    return [(start, end) for number, start in starts.items() if (end := ends[number]) is not None and end > start]


def _active_windows(samples: Mapping[str, _Samples]) -> list[tuple[int, int]]:
    """Return the part of each pass in which the SMs were active, for reports without the kernel's time stamps."""
    passes: dict[tuple[int, int], list[int]] = {}
    for name in _ON_THE_SM:
        if (found := samples.get(name)) is not None:
            busy = [time for time, value in zip(found.times_ns, found.values, strict=True) if value > 0]
            passes.setdefault((found.times_ns[0], found.times_ns[-1]), []).extend(busy)
    return [(min(busy), max(busy)) for busy in passes.values() if busy]


def _interval_ns(samples: Iterable[_Samples]) -> float | None:
    from statistics import median  # noqa: PLC0415 - as above

    steps = [later - earlier for found in samples for earlier, later in pairwise(found.times_ns)]
    return float(median(steps)) or None if steps else None


def _course(samples: _Samples, windows: Sequence[tuple[int, int]], interval_ns: float) -> Course:
    """Return the samples inside the kernel at equal steps from its start; None for a missing sample."""
    within = [(start, end) for start, end in windows if start < samples.times_ns[-1] and end > samples.times_ns[0]]
    if not within:
        return ()
    start, end = within[0]
    places: dict[int, float] = {}
    for time, value in zip(samples.times_ns, samples.values, strict=True):
        if start <= time <= end:
            places[round((time - start) / interval_ns)] = value
    return tuple(places.get(i) for i in range(max(places, default=-1) + 1))
