"""The one way from records to the store's rows and back: runs, kernels and failures, column by column."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, repeat
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from msgspec import Struct

from rooflens.model.counters.table import COUNTERS
from rooflens.model.records import Hotspot, Kernel, Rule, Run, Series
from rooflens.model.store.schema import (
    AXES,
    FAILURES,
    KERNELS,
    KERNELS_TO_WRITE,
    MAPS,
    RULES,
    RUNS,
    SCHEMA_VERSION,
    SERIES,
)
from rooflens.model.store.tables.columns import lists, map_column, maps, struct_lists, table_of, texts
from rooflens.model.store.tables.findings import hotspot_table
from rooflens.model.store.tables.unprofiled import unprofiled_table
from rooflens.model.unprofiled import Unprofiled

_KERNEL_FIELDS = Kernel.__struct_fields__
_NO_SPOTS: Mapping[int, tuple[Hotspot, ...]] = MappingProxyType({})
_RUN_FIELDS = Run.__struct_fields__
_KERNEL_TEXTS = (
    *("name", "function_name", "status", "status_reason", "workload", "gpu", "compute_capability"),
    *("process", "nvtx_range"),
)


class ReportRows(Struct, frozen=True):
    """What one report adds to a store.

    Attributes:
        unprofiled: Its run without the profiler, where there was one.
        metrics: Rows of `METRICS`; None where raw values are not kept.
        instances: Rows of `INSTANCES`; None where they are not kept.
    """

    run: Run
    kernels: Sequence[Kernel]
    unprofiled: Unprofiled | None = None
    metrics: pa.Table | None = None
    instances: pa.Table | None = None


def report_tables(*reports: ReportRows) -> dict[str, pa.Table]:
    """Make the tables of reports, those of many at once: most of the cost of a table is that of its columns."""
    kernels = [kernel for report in reports for kernel in report.kernels]
    tables = {
        "runs": run_table([report.run for report in reports], int(time.time())),
        "kernels": kernel_table(kernels, KERNELS_TO_WRITE),
        "hotspots": hotspot_table(kernels),
        "unprofiled": unprofiled_table({report.run.digest: report.unprofiled for report in reports}),
    }
    for name in ("metrics", "instances"):
        raw = [table for report in reports if (table := getattr(report, name)) is not None]
        if raw:
            tables[name] = pa.concat_tables(raw)
    return tables


def failure_table(failures: Iterable[tuple[str, str, str]]) -> pa.Table:
    """Make rows of `failures` from the source, message and hint of each report that could not be read."""
    now = int(time.time())
    rows = [*failures]
    columns: dict[str, list[Any]] = {
        name: [row[position] for row in rows] for position, name in enumerate(("source", "message", "hint"))
    }
    return table_of({**columns, "failed_unix_s": [now] * len(rows)}, FAILURES)


def run_table(runs: Sequence[Run], ingested_unix_s: int) -> pa.Table:
    """Make rows of `runs`."""
    columns: dict[str, list[Any]] = {name: [getattr(run, name) for run in runs] for name in _RUN_FIELDS}
    columns["ingested_unix_s"] = [ingested_unix_s] * len(runs)
    columns["schema_version"] = [SCHEMA_VERSION] * len(runs)
    return table_of(columns, RUNS)


def runs_from_table(table: pa.Table) -> list[Run]:
    """Make runs from rows of `runs`."""
    columns = [table[name].to_pylist() for name in _RUN_FIELDS]
    return [Run(**dict(zip(_RUN_FIELDS, row, strict=True))) for row in zip(*columns, strict=True)]


def kernel_table(kernels: Sequence[Kernel], schema: pa.Schema = KERNELS) -> pa.Table:
    """Make the rows of `kernels`: every counter a column, missing ones null."""
    fields_ = (*_KERNEL_TEXTS, "digest", "device", "synthetic", "rules", "series", "grid", "block", *MAPS)
    columns: dict[str, Any] = {name: [getattr(kernel, name) for kernel in kernels] for name in fields_}
    columns["kernel_index"] = [kernel.index for kernel in kernels]
    return kernel_rows(columns | _counter_columns(kernels), schema)


def kernel_rows(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Make rows of `kernels`.

    Args:
        columns: By field of a kernel, the number in the report as `kernel_index`, and by counter: a list or an array.
            Counters that no kernel has may be missing.
        schema: `KERNELS`, or `KERNELS_TO_WRITE`.
    """
    series: Sequence[Series | None] = columns["series"]
    missing = pa.nulls(len(series), pa.float64())
    made: dict[str, Any] = {
        **{counter.name: missing for counter in COUNTERS},
        **columns,
        "rules": struct_lists(columns["rules"], RULES),
        "series_interval_ns": [one.interval_ns if one else None for one in series],
        "series": map_column([one.shares if one else None for one in series], SERIES),
        **{name: map_column(columns[name], schema.field(name).type) for name in MAPS},
    }
    for what in ("grid", "block"):
        made |= {f"{what}_{axis}": [size and size[i] for size in columns[what]] for i, axis in enumerate(AXES)}
    return table_of(made, schema)


def _counter_columns(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """Return the column of each counter: neighbours mostly have the same ones, and are turned over together."""
    columns: dict[str, list[float | None]] = {}
    done = 0
    for names, alike in groupby((kernel.counters for kernel in kernels), key=tuple):
        rows = [values.values() for values in alike]
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            column = columns.setdefault(name, [])
            column.extend(repeat(None, done - len(column)))
            column.extend(values)
        done += len(rows)
    for column in columns.values():
        column.extend(repeat(None, done - len(column)))
    return columns


def kernels_from_batch(
    batch: pa.RecordBatch, runs: Mapping[str, Run], hotspots: Mapping[str, Mapping[int, tuple[Hotspot, ...]]]
) -> list[Kernel]:
    """Make kernels from rows of `kernels`.

    Args:
        batch: Rows, all columns.
        runs: Their reports, by `run_id`.
        hotspots: By `run_id`, hot spots by the kernel's position in the report.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    run_ids = [str(run_id) for run_id in texts(columns["run_id"])]
    owners = [runs[run_id] for run_id in run_ids]
    spots = [hotspots.get(run_id, _NO_SPOTS) for run_id in run_ids]
    indices = columns["kernel_index"].to_pylist()
    made: dict[str, Iterable[Any]] = {
        "digest": [run.digest for run in owners],
        "source": [run.source for run in owners],
        "index": indices,
        "counters": _counters(columns),
        "rules": lists(columns["rules"], Rule),
        "series": _series(batch),
        "hotspots": [of_report.get(index, ()) for of_report, index in zip(spots, indices, strict=True)],
        **{name: texts(columns[name]) for name in _KERNEL_TEXTS},
        **{name: columns[name].to_pylist() for name in ("device", "synthetic")},
        **{name: maps(columns[name]) for name in MAPS},
        **{what: _sizes(batch, what) for what in ("grid", "block")},
    }
    return [Kernel(*row) for row in zip(*(made[name] for name in _KERNEL_FIELDS), strict=True)]


def _counters(columns: Mapping[str, pa.Array]) -> list[dict[str, float]]:
    """Return the counters of each kernel: those that no kernel lacks are the common case.

    A file that was written before there was a counter has no column of it.
    """
    found = {counter.name: columns[counter.name] for counter in COUNTERS if counter.name in columns}
    row_count = len(columns["run_id"])
    known = {name: column for name, column in found.items() if column.null_count < row_count}
    if not known:
        return [{} for _ in range(row_count)]
    names, rows = tuple(known), zip(*(column.to_pylist() for column in known.values()), strict=True)
    if not any(column.null_count for column in known.values()):
        return [dict(zip(names, row, strict=True)) for row in rows]
    return [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]


def _series(batch: pa.RecordBatch) -> list[Series | None]:
    intervals: list[float | None] = batch.column("series_interval_ns").to_pylist()
    if all(interval_ns is None for interval_ns in intervals):
        return [None] * len(intervals)
    shares = maps(batch.column("series"))
    return [
        None if interval_ns is None else Series(interval_ns, {unit: tuple(s) for unit, s in (samples or {}).items()})
        for interval_ns, samples in zip(intervals, shares, strict=True)
    ]


def _sizes(batch: pa.RecordBatch, what: str) -> list[tuple[int, int, int] | None]:
    columns = [batch.column(f"{what}_{axis}").to_pylist() for axis in AXES]
    return [None if size[0] is None else size for size in zip(*columns, strict=True)]
