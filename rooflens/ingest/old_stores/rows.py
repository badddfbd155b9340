"""Read one report of a store of schema 2, 3 or 4: a file for each table, without some of today's columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.ingest.metrics.stored import OPCODE_TABLES
from rooflens.ingest.reports.results import RawResult, checked, is_measured, is_wanted, to_kernel
from rooflens.model.records import Hotspot, Run
from rooflens.model.store.rows import ReportRows, kernels_from_batch
from rooflens.model.store.schema import INSTANCES, KERNELS, METRICS
from rooflens.model.store.tables.unprofiled import unprofiled_from_row

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.model.records import Kernel
    from rooflens.model.unprofiled import Unprofiled

WITH_HOTSPOTS = 3
"""The first schema version that kept hot spots."""

_READER = "ncu-report"
"""The reader of every report in those versions."""

_RESOLVED = 4
"""The first schema version whose kernels are taken as they are; older ones are resolved again from raw values."""


def read_old(folder: Path, digest: str) -> ReportRows:
    """Read one report of an old store.

    Raises:
        InputError: A file of it is missing or damaged.
    """
    try:
        (row,) = _table(folder, "runs", digest).to_pylist()
        known = {name: row[name] for name in Run.__struct_fields__ if name in row}
        run = Run(**{**known, "reader": _READER})
        raw = _table(folder, "metrics", digest)
        own = pc.is_null(raw["instance"])
        values, instances = raw.filter(own), raw.filter(pc.invert(own))
        (batch,) = _upgraded(_table(folder, "kernels", digest)).combine_chunks().to_batches() or (None,)
        spots = {digest: _hotspots(folder, digest)}
        kernels = [] if batch is None else kernels_from_batch(batch, {digest: run.source}, spots)
        if row["schema_version"] < _RESOLVED:
            again = _raw_results(kernels, values, instances)
            kernels = [_resolved(kernel, again[kernel.index]) for kernel in kernels]
        kernels = [checked(kernel) for kernel in kernels]
        return ReportRows(
            run,
            kernels,
            _unprofiled(folder, digest),
            values.select(METRICS.names).cast(METRICS),
            instances.select(INSTANCES.names).cast(INSTANCES),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"damaged: {error}", "ingest its report again, once the store is migrated") from error


def _table(folder: Path, name: str, digest: str) -> pa.Table:
    return pq.read_table(folder / name / f"{digest}.parquet", partitioning=None)


def _unprofiled(folder: Path, digest: str) -> Unprofiled | None:
    if not (folder / "unprofiled" / f"{digest}.parquet").exists():
        return None
    rows = _table(folder, "unprofiled", digest).to_pylist()
    return unprofiled_from_row(rows[0]) if rows else None


def _hotspots(folder: Path, digest: str) -> dict[int, tuple[Hotspot, ...]]:
    found: dict[int, list[Hotspot]] = {}
    if (folder / "hotspots" / f"{digest}.parquet").exists():
        for row in _table(folder, "hotspots", digest).to_pylist():
            values = {name: row.get(name) for name in Hotspot.__struct_fields__}
            spot = Hotspot(**{**values, "measures": dict(row["measures"])})
            found.setdefault(row["kernel_index"], []).append(spot)
    return {index: tuple(spots) for index, spots in found.items()}


def _upgraded(table: pa.Table) -> pa.Table:
    """Give a table of kernels all of today's columns; what was not known then is missing."""
    arrays = []
    for field in KERNELS:
        known = table[field.name].to_pylist() if field.name in table.column_names else [None] * table.num_rows
        is_nested = pa.types.is_list(field.type) or (pa.types.is_map(field.type) and field.name != "series")
        arrays.append(pa.array([[] if value is None and is_nested else value for value in known], field.type))
    return pa.Table.from_arrays(arrays, schema=KERNELS)


def _resolved(kernel: Kernel, raw: RawResult) -> Kernel:
    """Resolve the counters of a kernel again; keep what cannot be had from the raw values."""
    again = to_kernel(raw, kernel.digest, kernel.source, synthetic=kernel.synthetic)
    return replace(
        again, name=kernel.name, hotspots=kernel.hotspots, code_totals=kernel.code_totals, series=kernel.series
    )


def _raw_results(kernels: list[Kernel], values: pa.Table, instances: pa.Table) -> dict[int, RawResult]:
    """Rebuild the raw results of kernels, by position in the report."""
    numbers: dict[int, dict[str, float]] = {kernel.index: {} for kernel in kernels}
    texts: dict[int, dict[str, str]] = {kernel.index: {} for kernel in kernels}
    tables: dict[int, dict[str, dict[str, int]]] = {kernel.index: {} for kernel in kernels}
    nan_counts = dict.fromkeys(numbers, 0)
    for index, name, number, whole, text in _columns(
        values, "kernel_index", "name", "value_double", "value_uint64", "value_string"
    ):
        value = whole if number is None else number
        if text is not None:
            texts[index][name] = text
        elif value is not None and math.isnan(value):
            nan_counts[index] += is_measured(name)
        elif value is not None and math.isfinite(value) and is_wanted(name):
            numbers[index][name] = float(value)
    counted = instances.filter(pc.is_in(instances["name"].cast(pa.string()), pa.array(OPCODE_TABLES)))
    for index, name, key, number, whole in _columns(
        counted, "kernel_index", "name", "instance_key", "value_double", "value_uint64"
    ):
        count = whole if number is None else number
        if key is not None and count is not None and math.isfinite(count):
            tables[index].setdefault(name, {})[key] = int(count)
    return {
        kernel.index: RawResult(
            index=kernel.index,
            function_name=kernel.function_name,
            signature=kernel.name,
            workload=kernel.workload,
            numbers=numbers[kernel.index],
            texts=texts[kernel.index],
            tables=tables[kernel.index],
            nan_count=nan_counts[kernel.index],
            rules=kernel.rules,
            process=kernel.process,
            nvtx_range=kernel.nvtx_range,
        )
        for kernel in kernels
    }


def _columns(table: pa.Table, *names: str) -> Any:
    return zip(*(table[name].to_pylist() for name in names), strict=True)
