"""The one way from records to the store's rows and back: runs, kernels and failures, column by column."""

from __future__ import annotations

import time
from itertools import groupby, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from rooflens.model.counters.table import COUNTERS
from rooflens.model.records import Kernel, Rule, Run, Series
from rooflens.model.store.schema import AXES, FAILURES, KERNELS, MAPS, RULES, RUNS, SCHEMA_VERSION, SERIES
from rooflens.model.store.tables.columns import lists, map_column, maps, struct_lists, table_of, texts
from rooflens.model.store.tables.findings import hotspot_table
from rooflens.model.store.tables.unprofiled import unprofiled_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.model.records import Hotspot
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
        "kernels": kernel_table(kernels),
        "hotspots": hotspot_table(kernels),
        "unprofiled": unprofiled_table({report.run.digest: report.unprofiled for report in reports}),
    }
    for name in ("metrics", "instances"):
        raw = [table for report in reports if (table := getattr(report, name)) is not None]
        if raw:
            tables[name] = pa.concat_tables(raw)
    return tables


def failure_table(failures: Iterable[tuple[str, str, str]]) -> pa.Table:
    """Make rows of `failures` of the source, message and hint of each report that could not be read."""
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
    """Make the runs of rows of `runs`."""
    columns = [table[name].to_pylist() for name in _RUN_FIELDS]
    return [Run(**dict(zip(_RUN_FIELDS, row, strict=True))) for row in zip(*columns, strict=True)]


def kernel_table(kernels: Sequence[Kernel]) -> pa.Table:
    """Make the rows of `kernels`: every counter a column, missing ones null."""
    columns: dict[str, Any] = {
        "digest": [kernel.digest for kernel in kernels],
        "kernel_index": [kernel.index for kernel in kernels],
        **{name: [getattr(kernel, name) for kernel in kernels] for name in (*_KERNEL_TEXTS, "device", "synthetic")},
        "rules": struct_lists([kernel.rules for kernel in kernels], RULES),
        "series_interval_ns": [kernel.series.interval_ns if kernel.series else None for kernel in kernels],
        "series": map_column([kernel.series.shares if kernel.series else None for kernel in kernels], SERIES),
    }
    for what in ("grid", "block"):
        sizes = [getattr(kernel, what) for kernel in kernels]
        columns |= {f"{what}_{axis}": [size and size[i] for size in sizes] for i, axis in enumerate(AXES)}
    columns |= _counter_columns(kernels)
    columns |= {name: map_column([getattr(kernel, name) for kernel in kernels], kind) for name, kind in MAPS.items()}
    return table_of(columns, KERNELS)


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
    missing = pa.nulls(done, pa.float64())
    return {counter.name: columns.get(counter.name, missing) for counter in COUNTERS}


def kernels_from_batch(
    batch: pa.RecordBatch, sources: Mapping[str, str], hotspots: Mapping[str, Mapping[int, tuple[Hotspot, ...]]]
) -> list[Kernel]:
    """Make the kernels of rows of `kernels`.

    Args:
        batch: Rows, all columns.
        sources: The path of each report, by digest.
        hotspots: By digest, hot spots by the kernel's position in the report.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    digests: list[Any] = texts(columns["digest"])
    indices = columns["kernel_index"].to_pylist()
    made: dict[str, Iterable[Any]] = {
        "digest": digests,
        "source": map(sources.__getitem__, digests),
        "index": indices,
        "counters": _counters(columns),
        "rules": lists(columns["rules"], Rule),
        "series": _series(batch),
        "hotspots": (
            hotspots.get(digest, _NO_SPOTS).get(index, ()) for digest, index in zip(digests, indices, strict=True)
        ),
        **{name: texts(columns[name]) for name in _KERNEL_TEXTS},
        **{name: columns[name].to_pylist() for name in ("device", "synthetic")},
        **{name: maps(columns[name]) for name in MAPS},
        **{what: _sizes(batch, what) for what in ("grid", "block")},
    }
    return [Kernel(*row) for row in zip(*(made[name] for name in _KERNEL_FIELDS), strict=True)]


def _counters(columns: Mapping[str, pa.Array]) -> list[dict[str, float]]:
    """Return the counters of each kernel: those that no kernel lacks are the common case."""
    found = {counter.name: columns[counter.name] for counter in COUNTERS}
    row_count = len(columns["digest"])
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
