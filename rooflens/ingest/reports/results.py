"""Turn one raw result into a kernel record: status, identity, resolved counters, opcode tables, stalls."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rooflens.ingest.metrics.code import Code
from rooflens.ingest.reports.resolve import Resolver
from rooflens.model.counters.recipes import bases_of
from rooflens.model.counters.table import COUNTERS, MEASURED
from rooflens.model.records import Kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.ingest.metrics.stored import Value
    from rooflens.model.records import Rule, Series, Status

THREAD_TABLES = (
    "sass__thread_inst_executed_true_per_opcode_with_modifier_all",
    "sass__thread_inst_executed_true_per_opcode",
)
WARP_TABLE = "sass__inst_executed_per_opcode_with_modifier_all"

_DEVICES = ("launch__device_id", "device__attribute_device_index")
"""Number of the GPU: of the launch, or, for what has no launch figures, of the device attributes."""

_MOST_DEVICES = 1 << 16
"""No process sees more GPUs: a larger number is damage."""

_WANTED_BASES = frozenset(base for counter in COUNTERS for recipe in counter.recipes for base in bases_of(recipe))
_MEASURED_BASES = frozenset(
    base for counter in COUNTERS if counter.name in MEASURED for recipe in counter.recipes for base in bases_of(recipe)
)
_WANTED_PREFIXES = (
    "sm__ops_path_tensor_",
    "smsp__pcsamp_warps_issue_stalled_",
    "warpsampling:smsp__pcsamp_warps_issue_stalled_",
    "smsp__average_warps_issue_stalled_",
    "device__attribute_display_name",
    "device__attribute_compute_capability_",
    "launch__grid_dim_",
    "launch__block_dim_",
    *_DEVICES,
    *THREAD_TABLES,
    WARP_TABLE,
)
"""What a kernel record is made of beside the counters of the table."""

_TENSOR = "sm__ops_path_tensor_"
_SAMPLED_STALL = re.compile(r"(?:warpsampling:)?smsp__pcsamp_warps_issue_stalled_(\w+?)$")
_COUNTED_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio$")


@dataclass(frozen=True, slots=True)
class RawResult:
    """One profiled result as the report stores it.

    Attributes:
        numbers: Metric -> value in base units; NaN and valueless metrics left out.
        texts: Metric -> string value.
        tables: Instanced metric -> {instance key: count}.
        nan_count: How many measurements were NaN: all of them when profiling this result failed.
        series: What was sampled while it ran.
        process: Name and number of the process that launched it.
        nvtx_range: Path of the NVTX ranges it was launched in.
        code: What is stored of its instructions.
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
    code: Code = field(default_factory=Code)


_LONGEST_LABEL, _LONGEST_RANGE = 200, 1000


def shortened(label: str | None, most: int = _LONGEST_LABEL) -> str | None:
    """Cut the end off what only labels something: no GPU, host or process has such a name, and pages grow with it."""
    return label if label is None or len(label) <= most else f"{label[: most - 1]}…"


def to_kernel(raw: RawResult, digest: str, source: str, *, synthetic: bool) -> Kernel:
    """Resolve one raw result into a kernel record."""
    resolver = Resolver(raw.numbers)
    resolver.run()
    tensor_ops, tensor_peaks = _tensor(resolver)
    return Kernel(
        digest=digest,
        source=source,
        index=raw.index,
        name=short_name(raw.signature),
        function_name=raw.function_name,
        status=_status(raw, resolver),
        workload=raw.workload,
        gpu=shortened(raw.texts.get("device__attribute_display_name")),
        compute_capability=_compute_capability(raw),
        device=_device(raw.numbers),
        process=shortened(raw.process),
        nvtx_range=shortened(raw.nvtx_range, _LONGEST_RANGE),
        grid=_dim3(raw, "grid"),
        block=_dim3(raw, "block"),
        synthetic=synthetic,
        counters=resolver.values,
        counter_sources=resolver.sources,
        thread_opcodes=thread_opcodes(raw.tables),
        warp_opcodes=dict(raw.tables.get(WARP_TABLE, {})),
        tensor_ops=tensor_ops,
        tensor_peaks_per_s=tensor_peaks,
        stalls=_stalls(raw.numbers),
        rules=raw.rules,
        series=raw.series,
        hotspots=raw.code.hotspots,
        code_totals=raw.code.totals,
    )


def thread_opcodes(tables: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the best of a result's tables of thread instructions by opcode; empty where it has none."""
    return next((dict(tables[name]) for name in THREAD_TABLES if tables.get(name)), {})


def is_wanted(metric: str) -> bool:
    """Return whether a stored metric can be part of a kernel record: the others need not be read for an analysis."""
    return metric.partition(".")[0] in _WANTED_BASES or metric.startswith(_WANTED_PREFIXES)


def is_measured(metric: str) -> bool:
    """Return whether only a run can give a stored metric: NaN in place of it says that profiling failed.

    Launch figures, attributes of the device and samples can be without a value in a report that just has no counters.
    """
    return metric.partition(".")[0] in _MEASURED_BASES


def sort_values(values: Mapping[str, Value | None]) -> tuple[dict[str, float], dict[str, str], int]:
    """Divide values into numbers and texts, and count the measurements that are NaN."""
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    nan_count = 0
    for name, value in values.items():
        if isinstance(value, str):
            texts[name] = value
        elif value is None:
            continue
        elif math.isfinite(value):
            numbers[name] = float(value)
        elif math.isnan(value):
            nan_count += is_measured(name)
    return numbers, texts, nan_count


def short_name(signature: str) -> str:
    """Drop the return type and the argument list of a demangled signature; keep template arguments.

    `void at::native::relu<float>(float *, int)` -> `at::native::relu<float>`.
    """
    depth, end = 0, len(signature)
    if signature.endswith(")"):
        for position in range(len(signature) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(signature[position], 0)
            if depth == 0:
                end = position
                break
    return signature[:end].removeprefix("void ").strip() or signature


def _status(raw: RawResult, resolver: Resolver) -> Status:
    """Tell a result whose profiling failed (NaN in place of every measurement) from one that lacks some."""
    if raw.nan_count and not resolver.values.keys() & MEASURED:
        return "failed"
    return "partial" if raw.nan_count or "duration_ns" not in resolver.values else "ok"


def _compute_capability(raw: RawResult) -> str | None:
    major = raw.numbers.get("device__attribute_compute_capability_major")
    minor = raw.numbers.get("device__attribute_compute_capability_minor")
    return None if major is None or minor is None else f"{major:.0f}.{minor:.0f}"


def _device(numbers: Mapping[str, float]) -> int | None:
    found = [numbers[name] for name in _DEVICES if 0 <= numbers.get(name, -1) < _MOST_DEVICES]
    return int(found[0]) if found else None


def _dim3(raw: RawResult, what: str) -> tuple[int, int, int] | None:
    sizes = [raw.numbers.get(f"launch__{what}_dim_{axis}") for axis in "xyz"]
    if any(size is None for size in sizes):
        return None
    x, y, z = (int(size or 0) for size in sizes)
    return x, y, z


def _tensor(resolver: Resolver) -> tuple[dict[str, float], dict[str, float]]:
    """Find the amounts and peaks of every tensor counter the report stores, by name without prefix and roll-up."""
    bases = sorted({name.partition(".")[0] for name in resolver.stored if name.startswith(_TENSOR)})
    ops: dict[str, float] = {}
    peaks: dict[str, float] = {}
    for base in bases:
        key = base.removeprefix(_TENSOR)
        amount, peak = resolver.amount(base), resolver.peak_per_s(base, "sm_clock_hz")
        if amount is not None:
            ops[key] = amount[0]
        if peak is not None:
            peaks[key] = peak[0]
    return ops, peaks


def _stalls(numbers: Mapping[str, float]) -> dict[str, float]:
    """Divide the stalls of a warp by reason, samples before counters; 0 to 1, summing to 1.

    Issued samples (`selected`) are no stall, and no samples at all means not measured.
    """
    for pattern in (_SAMPLED_STALL, _COUNTED_STALL):
        found = {match[1]: value for name, value in numbers.items() if (match := pattern.match(name))}
        stalls = {
            reason: value
            for reason, value in found.items()
            if reason != "selected" and not reason.endswith("_not_issued")
        }
        total = sum(stalls.values())
        if total > 0:
            return {reason: value / total for reason, value in stalls.items() if value > 0}
    return {}
