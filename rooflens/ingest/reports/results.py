"""Turn one raw result into a kernel record: status, identity, resolved counters, opcode tables, stalls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from math import isfinite, isnan, prod
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import bounded_name, count, some
from rooflens.ingest.metrics.code import Code, Instructions
from rooflens.ingest.metrics.stored import OPCODE_TABLES, THREAD_TABLES, WARP_TABLE, Texts, Value
from rooflens.ingest.reports.resolve import resolve
from rooflens.model.counters.balance import STALLS
from rooflens.model.counters.families import family
from rooflens.model.counters.memory import SM_COUNTS
from rooflens.model.counters.plausible import (
    BLOCK,
    CAPABILITY,
    CODE_BYTES,
    COUNT,
    GRID,
    INTERVAL,
    OPERATIONS,
    PEAK,
    SHARE,
    PlausibleRange,
    beyond,
    find_impossible,
    first_impossible,
    reason,
)
from rooflens.model.counters.recipes import bases_of
from rooflens.model.counters.table import COUNTERS, MEASURED
from rooflens.model.failed import ALL_NAN, failed_kernel
from rooflens.model.keys import bare_name
from rooflens.model.records import NO_VALUES, Kernel, Rule, Series, Status

_DEVICES = ("launch__device_id", "device__attribute_device_index")
"""Metrics with the GPU's index: of the launch or, for results without a launch, of the device attributes."""

_MOST_DEVICES = 1 << 16
"""No process sees so many GPUs: a larger index is damage."""

_CAPABILITY = "device__attribute_compute_capability_"
_CAPABILITIES = (f"{_CAPABILITY}major", f"{_CAPABILITY}minor")
_GRID, _BLOCK = (tuple(f"launch__{what}_dim_{axis}" for axis in "xyz") for what in ("grid", "block"))
_LAUNCH_SIZES = {"launch__grid_size": _GRID, "launch__block_size": _BLOCK}
IDENTITY = (*_CAPABILITIES, *_DEVICES, *_GRID, *_BLOCK)
"""Metrics that identify where a result ran, and its launch size (`identity`)."""
GPU = "device__attribute_display_name"
_LIMITED = (("launch__grid_dim_", GRID), ("launch__block_dim_", BLOCK), (_CAPABILITY, CAPABILITY))
"""Prefixes of metrics read outside the table of counters, with their limits."""

_MOST_SPEEDUP_PCT = 1e4
"""A rule's speed-up cannot exceed 100 %; a number far above is damage."""

_OF_UNIT, _OF_KERNEL = 1, 2
"""Types of an estimated speed-up: of the unit that the rule is about, and of the kernel."""

_BASES = {
    counter.name: frozenset(name for recipe in counter.recipes for base in bases_of(recipe) for name in family(base))
    for counter in COUNTERS
}
"""Counter -> the metrics that it may be read from, without roll-up."""
_WANTED_BASES = frozenset[str]().union(*_BASES.values())
_MEASURED_BASES = frozenset[str]().union(*(_BASES[name] for name in MEASURED))
_WANTED_PREFIXES = (
    "sm__ops_path_tensor_",
    "smsp__pcsamp_warps_issue_stalled_",
    "warpsampling:smsp__pcsamp_warps_issue_stalled_",
    GPU,
    _CAPABILITY,
    "launch__grid_dim_",
    "launch__block_dim_",
    *_DEVICES,
    *OPCODE_TABLES,
)
"""Metrics that a kernel record needs besides the counters of the table."""

_NAMES_KEPT, _SETS_KEPT, _SIZES_KEPT = 1 << 14, 256, 1024
"""Sizes of the caches by name and by set of names: a report has some hundreds of names and a handful of sets."""

_SAMPLED_STALL = re.compile(r"(?:warpsampling:)?smsp__pcsamp_warps_issue_stalled_(\w+?)$")
_SAMPLES, _ISSUED_SAMPLES = "smsp__pcsamp_sample_count", "smsp__pcsamp_warps_issue_stalled_selected"
_NEARLY_ALL = 0.85
"""Stall reasons that cover this share of all stalls count as complete: passes differ by a tenth."""


class RawResult(Struct, frozen=True):
    """One profiled result as stored in the report.

    Attributes:
        numbers: Metric -> value in base units; metrics without a value, or with NaN, are left out.
        texts: Metric -> string value.
        tables: Metric with instances -> {instance key: count}.
        nan_count: Number of measurements that are NaN: all of them if profiling this result failed.
        series: Samples taken while it ran.
        process: Name and ID of the process that launched it.
        nvtx_range: Path of the NVTX ranges around the launch.
        instructions: Data stored by instruction; None if there is none.
        listing: Function that lists its instructions from the address of the first; None if their form is unknown.
        unread: Names of the metrics whose values are in unknown fields.
    """

    index: int
    function_name: str
    signature: str
    workload: str
    numbers: Mapping[str, float]
    texts: Mapping[str, str]
    tables: Mapping[str, Mapping[str, int]]
    nan_count: int
    rules: tuple[Rule, ...]
    series: Series | None = None
    process: str | None = None
    nvtx_range: str | None = None
    instructions: Instructions | None = None
    listing: Callable[[int | None], Texts | None] = lambda _: None
    unread: tuple[str, ...] = ()


_LONGEST_LABEL, LONGEST_RANGE = 200, 1000


def shortened(label: str | None, most: int = _LONGEST_LABEL) -> str | None:
    """Shorten a label: real GPUs, hosts and processes have shorter names, and pages grow with long ones."""
    return label if label is None or len(label) <= most else f"{label[: most - 1]}…"


def _with_what_is_known(raw: RawResult) -> Mapping[str, float]:
    """Return a result's numbers, adding sizes of grid and block, and the SM count from the GPU's datasheet.

    Reports store all of these; exports have them in the line that names the kernel, or not at all.
    """
    more = {}
    # Reports of 2018 claim one thread per block for every launch.
    is_told = prod(raw.numbers.get(axis, 1.0) for axis in _BLOCK) > 1
    for size, axes in _LAUNCH_SIZES.items() if is_told else ():
        lengths = [raw.numbers[axis] for axis in axes if axis in raw.numbers]
        if size not in raw.numbers and len(lengths) == len(axes):
            more[size] = prod(lengths)
    if not any(name in raw.numbers for name in SM_COUNTS):
        from rooflens.model.roofline.datasheets import datasheet_of  # noqa: PLC0415 - reports have the number

        if (gpu := datasheet_of(raw.texts.get(GPU))) is not None:
            more[SM_COUNTS[0]] = gpu.sm_count.value
    return {**raw.numbers, **more} if more else raw.numbers


def to_kernel(raw: RawResult, digest: str, source: str, *, synthetic: bool) -> Kernel:
    """Resolve one raw result into a kernel record, still without its code (`with_code`)."""
    resolved = resolve(_with_what_is_known(raw))
    capability, device, grid, block = identity(*map(raw.numbers.get, IDENTITY))
    # All NaN: profiling failed. Some NaN: these counters are missing.
    is_measured_at_all = not raw.nan_count or bool(resolved.values.keys() & MEASURED)
    lacks_some = raw.nan_count or raw.unread or "duration_ns" not in resolved.values
    status: Status = "failed" if not is_measured_at_all else "partial" if lacks_some else "ok"
    kernel = Kernel(
        digest=digest,
        source=source,
        index=raw.index,
        name=bare_name(bounded_name(raw.signature)),
        function_name=bounded_name(raw.function_name),
        status=status,
        status_reason=ALL_NAN if status == "failed" else unread_reason(raw.unread),
        workload=raw.workload,
        gpu=shortened(raw.texts.get(GPU)),
        compute_capability=capability,
        device=device,
        process=shortened(raw.process),
        nvtx_range=shortened(raw.nvtx_range, LONGEST_RANGE),
        grid=grid,
        block=block,
        synthetic=synthetic,
        counters=resolved.values,
        counter_sources=resolved.sources,
        thread_opcodes=thread_opcodes(raw.tables),
        warp_opcodes=dict(table) if (table := raw.tables.get(WARP_TABLE)) else NO_VALUES,
        tensor_ops=resolved.tensor_ops,
        tensor_peaks_per_s=resolved.tensor_peaks_per_s,
        stalls=stalls_of(raw.numbers, resolved.values),
        rules=tuple(map(_checked_rule, raw.rules)),
        series=raw.series,
    )
    # Read outside the table of counters, so the check of counters (`checked`) does not see them.
    for name, limit in limits_of_others(tuple(raw.numbers)):
        if (why := beyond(raw.numbers[name], limit)) is not None:
            return failed_kernel(kernel, reason(name, raw.numbers[name], why))
    return checked(kernel)


def unread_reason(names: Sequence[str]) -> str | None:
    """Say that some values could not be read; None if all were read."""
    if not names:
        return None
    return f"{count(len(names), 'metric')} not read, stored in a form that rooflens does not know: {some(names)}"


def with_code(kernel: Kernel, code: Code) -> Kernel:
    """Add the data of a kernel's instructions to its record; an impossible value of theirs makes it a failed one."""
    if kernel.failed:
        return kernel
    offsets = [spot.pc for spot in code.hotspots if spot.pc is not None]
    why = first_impossible(code.totals, COUNT, "sum over the instructions of") or first_impossible(
        {"furthest": max(offsets, default=0)}, CODE_BYTES, "offset of the code,"
    )
    return (
        failed_kernel(kernel, why)
        if why
        else replace(kernel, hotspots=code.hotspots, code_totals=code.totals, sources=code.sources)
    )


def checked(kernel: Kernel) -> Kernel:
    """Mark a kernel as failed if it holds an impossible value, where damage enters, before anything uses it."""
    why = (
        find_impossible(kernel.counters, kernel.counter_sources)
        or first_impossible(kernel.thread_opcodes, COUNT, "thread instructions of")
        or first_impossible(kernel.warp_opcodes, COUNT, "warp instructions of")
        or first_impossible(kernel.tensor_ops, OPERATIONS, "operations of")
        or first_impossible(kernel.tensor_peaks_per_s, PEAK, "peak of")
        or (_impossible_series(kernel.series) if kernel.series else None)
    )
    return kernel if why is None else failed_kernel(kernel, why)


@lru_cache(maxsize=_SETS_KEPT)
def limits_of_others(names: tuple[str, ...]) -> tuple[tuple[str, PlausibleRange], ...]:
    """Return the limits of the numbers that are read outside the table of counters."""
    return (
        *((name, limit) for prefix, limit in _LIMITED for name in names if name.startswith(prefix)),
        *((name, COUNT) for name in stall_names(names).values()),
    )


def _impossible_series(series: Series) -> str | None:
    known = {unit: [share for share in shares if share is not None] for unit, shares in series.shares.items()}
    extremes = {f"{unit} ({x.__name__})": x(shares) for unit, shares in known.items() if shares for x in (min, max)}
    return first_impossible({"interval": series.interval_ns}, INTERVAL, "sampling") or first_impossible(
        extremes, SHARE, "sampled share of"
    )


def _checked_rule(rule: Rule) -> Rule:
    """Drop a rule's impossible speed-ups; its text stays."""
    whole, unit = (_estimate(pct) for pct in (rule.speedup_pct, rule.unit_speedup_pct))
    is_sound = (whole, unit) == (rule.speedup_pct, rule.unit_speedup_pct)
    return rule if is_sound else replace(rule, speedup_pct=whole, unit_speedup_pct=unit)


def speedups(kind: Any, pct: Any) -> dict[str, float | None]:
    """Return a rule's speed-up under its field name in `Rule`; other types are dropped."""
    known = float(pct) if isinstance(pct, (int, float)) and isfinite(pct) else None
    return {
        "speedup_pct": known if kind == _OF_KERNEL else None,
        "unit_speedup_pct": known if kind == _OF_UNIT else None,
    }


def _estimate(pct: float | None) -> float | None:
    return pct if pct is not None and 0 <= pct <= _MOST_SPEEDUP_PCT else None


def thread_opcodes(tables: Mapping[str, Mapping[str, int]]) -> Mapping[str, int]:
    """Return the most detailed table of thread instructions by opcode; empty if there is no table."""
    return next((dict(tables[name]) for name in THREAD_TABLES if tables.get(name)), NO_VALUES)


@lru_cache(maxsize=_NAMES_KEPT)
def is_wanted(metric: str) -> bool:
    """Return whether a stored metric can be part of a kernel record; an analysis need not read the others."""
    return metric.partition(".")[0] in _WANTED_BASES or metric.startswith(_WANTED_PREFIXES)


@lru_cache(maxsize=_NAMES_KEPT)
def is_measured(metric: str) -> bool:
    """Return whether a metric is measured in a run, so that NaN means that profiling failed.

    Launch parameters, device attributes and samples may lack a value merely because the report has no counters.
    """
    return metric.partition(".")[0] in _MEASURED_BASES


def sort_values(values: Mapping[str, Value | None]) -> tuple[dict[str, float], dict[str, str], int]:
    """Split values into numbers and texts, and count the NaN measurements."""
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    nan_count = 0
    for name, value in values.items():
        if type(value) is str:
            texts[name] = value
        elif value is None:
            continue
        elif isfinite(value):  # type: ignore[arg-type]  # it is not a text
            numbers[name] = float(value)
        elif isnan(value):  # type: ignore[arg-type]  # as above
            nan_count += is_measured(name)
    return numbers, texts, nan_count


Size: TypeAlias = "tuple[int, int, int] | None"


@lru_cache(maxsize=_SIZES_KEPT)
def identity(*numbers: float | None) -> tuple[str | None, int | None, Size, Size]:
    """Return compute capability, GPU index, grid and block from the numbers of `IDENTITY`."""
    found = iter(numbers)
    parts = (tuple(islice(found, len(names))) for names in (_CAPABILITIES, _DEVICES, _GRID, _BLOCK))
    capability, devices, grid, block = parts
    return _capability_text(capability), _device(devices), _dim3(grid, GRID), _dim3(block, BLOCK)


def _capability_text(parts: Sequence[float | None]) -> str | None:
    known = [f"{part:.0f}" for part in parts if part is not None and beyond(part, CAPABILITY) is None]
    return ".".join(known) if len(known) == len(parts) else None


def _device(numbers: Iterable[float | None]) -> int | None:
    found = [number for number in numbers if number is not None and 0 <= number < _MOST_DEVICES]
    return int(found[0]) if found else None


def _dim3(sizes: Sequence[float | None], limit: PlausibleRange) -> Size:
    known = [int(size) for size in sizes if size is not None and beyond(size, limit) is None]
    if len(known) < len(sizes):
        return None
    x, y, z = known
    return x, y, z


def stalls_of(numbers: Mapping[str, float], counters: Mapping[str, float]) -> Mapping[str, float]:
    """Return the share of each stall reason, 0 to 1 with a sum of 1: of samples if there are any, else of counters.

    Issued samples (`selected`) are not stalls. The result is empty if stalls were not measured, or only for a few
    reasons, whose shares of the whole are unknown.
    """
    samples = {reason: numbers[name] for reason, name in stall_names(tuple(numbers)).items()}
    ways = [(samples, numbers.get(_SAMPLES, 0.0) - numbers.get(_ISSUED_SAMPLES, 0.0))]
    # One of the cycles between two instructions of a warp is the cycle in which it issues.
    if latency := counters.get("warp_latency_cycles"):
        for form, whole in (("cycles", latency - 1), ("share", 1 - 1 / latency)):
            ways.append(({reason: counters.get(f"stall_{reason}_{form}", 0.0) for reason in sorted(STALLS)}, whole))
    for stalls, whole in ways:
        total = sum(stalls.values())
        # With two of twenty reasons stored, each would look like half of all waiting.
        if total > 0 and total >= _NEARLY_ALL * whole:
            return {reason: value / total for reason, value in stalls.items() if value > 0}
    return NO_VALUES


@lru_cache(maxsize=_SETS_KEPT)
def stall_names(names: tuple[str, ...]) -> dict[str, str]:
    """Return the metric of each sampled stall reason."""
    return {
        match[1]: name
        for name in names
        if (match := _SAMPLED_STALL.match(name)) and match[1] != "selected" and not match[1].endswith("_not_issued")
    }
