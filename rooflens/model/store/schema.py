"""The store's tables as Arrow schemas, and the one way from records to rows and back.

`runs` has one row a report, `kernels` one a profiled result, `metrics` one a stored value, `roofline` one a kernel and
resource; `findings.py` has `hotspots` and `findings`, `unprofiled.py` that of the run without the profiler. All join on
`digest`, the report's SHA-256; those of kernels also on `kernel_index`.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rooflens.model.counters.table import COUNTERS
from rooflens.model.records import Kernel, Rule, Run, Series
from rooflens.model.store.findings import FINDINGS, HOTSPOTS
from rooflens.model.store.unprofiled import UNPROFILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflens.model.records import Analysis, Hotspot

SCHEMA_VERSION = 4
"""Raised whenever a table changes; a store of another version is read again from its reports."""

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()
_LOW_CARDINALITY = pa.dictionary(pa.int32(), pa.string())

RUNS = pa.schema(
    [
        ("digest", _TEXT),
        ("source", _TEXT),
        ("file_bytes", _INT),
        ("kernel_count", _INT),
        ("synthetic", pa.bool_()),
        ("ncu_version", _TEXT),
        ("command_line", _TEXT),
        ("host", _TEXT),
        ("process_name", _TEXT),
        ("clock_control", _TEXT),
        ("cache_control", _TEXT),
        ("replay_mode", _TEXT),
        ("created_unix_s", _INT),
        ("ingested_unix_s", _INT),
        ("schema_version", _INT),
    ]
)

_MAPS: dict[str, pa.DataType] = {
    "counter_sources": pa.map_(_TEXT, _TEXT),
    "thread_opcodes": pa.map_(_TEXT, _INT),
    "warp_opcodes": pa.map_(_TEXT, _INT),
    "tensor_ops": pa.map_(_TEXT, _REAL),
    "tensor_peaks_per_s": pa.map_(_TEXT, _REAL),
    "stalls": pa.map_(_TEXT, _REAL),
    "code_totals": pa.map_(_TEXT, _REAL),
}
_RULE = pa.struct([(field.name, _REAL if field.name.endswith("_pct") else _TEXT) for field in fields(Rule)])
_AXES = ("x", "y", "z")

KERNELS = pa.schema(
    [
        ("digest", _TEXT),
        ("kernel_index", _INT),
        ("name", _TEXT),
        ("function_name", _TEXT),
        ("status", _TEXT),
        ("status_reason", _TEXT),
        ("workload", _TEXT),
        ("gpu", _TEXT),
        ("compute_capability", _TEXT),
        ("device", _INT),
        ("process", _TEXT),
        ("nvtx_range", _TEXT),
        ("synthetic", pa.bool_()),
        *((f"{what}_{axis}", _INT) for what in ("grid", "block") for axis in _AXES),
        *((counter.name, _REAL) for counter in COUNTERS),
        *_MAPS.items(),
        ("rules", pa.list_(_RULE)),
        ("series_interval_ns", _REAL),
        ("series", pa.map_(_TEXT, pa.list_(_REAL))),
    ]
)

METRICS = pa.schema(
    [
        ("digest", _LOW_CARDINALITY),
        ("kernel_index", pa.int32()),
        ("name", _LOW_CARDINALITY),
        ("instance", pa.int32()),
        ("instance_key", _LOW_CARDINALITY),
        ("value_double", _REAL),
        ("value_uint64", pa.uint64()),
        ("value_string", _LOW_CARDINALITY),
    ]
)

ROOFLINE = pa.schema(
    [
        ("digest", _TEXT),
        ("kernel_index", _INT),
        ("kind", _TEXT),
        ("resource", _TEXT),
        ("unit", _TEXT),
        ("amount", _REAL),
        ("amount_per_s", _REAL),
        ("peak_per_s", _REAL),
        ("share", _REAL),
        ("intensity_flop_per_byte", _REAL),
        ("flop_total", _REAL),
        ("flop_per_s", _REAL),
        ("flop_peak_per_s", _REAL),
        ("bound", _TEXT),
        ("bound_resource", _TEXT),
        ("at_roof", pa.bool_()),
        ("cause", _TEXT),
        ("headroom", _REAL),
        ("confidence", _TEXT),
        ("sentence", _TEXT),
        ("flags", pa.list_(_TEXT)),
        ("model_version", _INT),
        ("thresholds_digest", _TEXT),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "runs": RUNS,
    "unprofiled": UNPROFILED,
    "kernels": KERNELS,
    "metrics": METRICS,
    "hotspots": HOTSPOTS,
    "roofline": ROOFLINE,
    "findings": FINDINGS,
}


def run_table(run: Run, ingested_unix_s: int) -> pa.Table:
    """Make the one row of `runs`."""
    return pa.Table.from_pylist(
        [{**asdict(run), "ingested_unix_s": ingested_unix_s, "schema_version": SCHEMA_VERSION}], schema=RUNS
    )


def run_from_row(row: Mapping[str, Any]) -> Run:
    """Make a run of a row of `runs`."""
    return Run(**{field.name: row[field.name] for field in fields(Run)})


def kernel_table(kernels: Iterable[Kernel]) -> pa.Table:
    """Make the rows of `kernels`: every counter a column, missing ones null."""
    return pa.Table.from_pylist([_kernel_row(kernel) for kernel in kernels], schema=KERNELS)


def _kernel_row(kernel: Kernel) -> dict[str, Any]:
    row: dict[str, Any] = {
        "digest": kernel.digest,
        "kernel_index": kernel.index,
        "name": kernel.name,
        "function_name": kernel.function_name,
        "status": kernel.status,
        "status_reason": kernel.status_reason,
        "workload": kernel.workload,
        "gpu": kernel.gpu,
        "compute_capability": kernel.compute_capability,
        "device": kernel.device,
        "process": kernel.process,
        "nvtx_range": kernel.nvtx_range,
        "synthetic": kernel.synthetic,
        "rules": [asdict(rule) for rule in kernel.rules],
        "series_interval_ns": kernel.series.interval_ns if kernel.series else None,
        "series": list(kernel.series.shares.items()) if kernel.series else None,
        **kernel.counters,
    }
    for what, size in (("grid", kernel.grid), ("block", kernel.block)):
        row.update({f"{what}_{axis}": size[i] if size else None for i, axis in enumerate(_AXES)})
    row.update({name: list(getattr(kernel, name).items()) for name in _MAPS})
    return row


def kernel_from_row(row: Mapping[str, Any], source: str, hotspots: tuple[Hotspot, ...] = ()) -> Kernel:
    """Make a kernel of a row of `kernels` and its hot spots."""
    maps: dict[str, Any] = {name: dict(row[name]) for name in _MAPS}
    return Kernel(
        digest=row["digest"],
        source=source,
        index=row["kernel_index"],
        name=row["name"],
        function_name=row["function_name"],
        status=row["status"],
        status_reason=row.get("status_reason"),
        workload=row["workload"],
        gpu=row["gpu"],
        compute_capability=row["compute_capability"],
        device=row["device"],
        process=row["process"],
        nvtx_range=row["nvtx_range"],
        grid=_size(row, "grid"),
        block=_size(row, "block"),
        synthetic=row["synthetic"],
        counters={counter.name: row[counter.name] for counter in COUNTERS if row.get(counter.name) is not None},
        rules=tuple(Rule(**rule) for rule in row["rules"]),
        series=_series(row),
        hotspots=hotspots,
        **maps,
    )


def _series(row: Mapping[str, Any]) -> Series | None:
    interval_ns = row["series_interval_ns"]
    return None if interval_ns is None else Series(interval_ns, {unit: tuple(s) for unit, s in row["series"]})


def _size(row: Mapping[str, Any], what: str) -> tuple[int, int, int] | None:
    x, y, z = (row[f"{what}_{axis}"] for axis in _AXES)
    return None if x is None else (x, y, z)


def roofline_table(analyses: Iterable[Analysis], model_version: int, thresholds_digest: str) -> pa.Table:
    """Make the rows of `roofline`: one a kernel and level or pipe, the verdict repeated on each.

    A kernel that was placed nowhere has one row without a resource, so that it does not vanish.
    """
    stamp = {"model_version": model_version, "thresholds_digest": thresholds_digest}
    rows = [{**row, **stamp} for analysis in analyses for row in _roofline_rows(analysis)]
    return pa.Table.from_pylist(rows, schema=ROOFLINE)


def _roofline_rows(analysis: Analysis) -> Sequence[dict[str, Any]]:
    verdict = analysis.verdict
    common = {
        "digest": analysis.kernel.digest,
        "kernel_index": analysis.kernel.index,
        "flop_total": analysis.flop_total,
        "flop_per_s": analysis.flop_per_s,
        "flop_peak_per_s": analysis.flop_peak_per_s,
        "bound": verdict.bound,
        "bound_resource": verdict.resource,
        "at_roof": verdict.at_roof,
        "cause": verdict.cause,
        "headroom": verdict.distances.headroom,
        "confidence": verdict.confidence,
        "sentence": verdict.sentence,
        "flags": list(analysis.flags),
    }
    return [{**common, **position} for position in _positions(analysis)] or [common]


def _positions(analysis: Analysis) -> Iterator[dict[str, Any]]:
    for name, level in analysis.levels.items():
        if level.amount_bytes is not None or level.share is not None:
            yield {
                "kind": "level",
                "resource": name,
                "unit": "byte",
                "amount": level.amount_bytes,
                "amount_per_s": level.bytes_per_s,
                "peak_per_s": level.peak_bytes_per_s,
                "share": level.share,
                "intensity_flop_per_byte": level.intensity_flop_per_byte,
            }
    for name, pipe in analysis.pipes.items():
        yield {
            "kind": "pipe",
            "resource": name,
            "unit": pipe.unit,
            "amount": pipe.amount,
            "amount_per_s": pipe.amount_per_s,
            "peak_per_s": pipe.peak_per_s,
            "share": pipe.share,
        }
