"""The store's tables: their columns, and the conversion between records and rows.

A row is a report in `runs`, a profiled result in `kernels`, a stored value in `metrics`, a value per instance in
`instances`, a hot spot as read from a kernel's code in `hotspots`, a finding of the analysis in `findings`, a kernel at
a level or pipe in `roofline`, and a report whose program also ran without the profiler in `unprofiled`. All of these
join `runs` on `run_id`, which replaces the records' SHA-256 of the report. `failures` has a row for each unreadable
report.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import chain, groupby, repeat
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from msgspec import Struct, msgpack
from msgspec.structs import asdict as fields_of

from rooflens.model.catalogue import quantities
from rooflens.model.counters.table import COUNTERS
from rooflens.model.records import Analysis, Evidence, Hotspot, Inside, Kernel, Place, Rule, Run, Series
from rooflens.model.store.columns import field_of, lists, map_column, maps, packed, struct_lists, table_of, values_of
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Unprofiled

SCHEMA_VERSION = 9
"""Increased whenever a column changes name, type or meaning; not for new columns, which older files lack."""

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()
_LOW_CARDINALITY = pa.dictionary(pa.int32(), pa.string())
_KERNEL = (("digest", _TEXT), ("kernel_index", _INT))
_ANALYZED = (("model_version", _INT), ("thresholds_digest", _TEXT))

RUNS = pa.schema(
    [
        ("digest", _TEXT),
        ("source", _TEXT),
        ("file_bytes", _INT),
        ("kernel_count", _INT),
        ("synthetic", pa.bool_()),
        ("reader", _TEXT),
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

_AXES = ("x", "y", "z")
_SERIES = pa.map_(_TEXT, pa.list_(_REAL))

KERNELS = pa.schema(
    [
        *_KERNEL,
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
        ("counter_sources", pa.map_(_TEXT, _TEXT)),
        ("thread_opcodes", pa.map_(_TEXT, _INT)),
        ("warp_opcodes", pa.map_(_TEXT, _INT)),
        ("tensor_ops", pa.map_(_TEXT, _REAL)),
        ("tensor_peaks_per_s", pa.map_(_TEXT, _REAL)),
        ("stalls", pa.map_(_TEXT, _REAL)),
        ("code_totals", pa.map_(_TEXT, _REAL)),
        ("inside", pa.binary()),
        (
            "rules",
            pa.list_(pa.struct([(name, _REAL if name.endswith("_pct") else _TEXT) for name in Rule.__struct_fields__])),
        ),
        ("series_interval_ns", _REAL),
        ("series", _SERIES),
    ]
)

_SOURCES = KERNELS.get_field_index("counter_sources")
KERNELS_TO_WRITE = KERNELS.set(
    _SOURCES, pa.field("counter_sources", pa.map_(pa.dictionary(pa.int32(), _TEXT), pa.dictionary(pa.int32(), _TEXT)))
)
"""`KERNELS` as written to a file, where both are the same: most kernels share a hundred texts."""

_VALUE: tuple[tuple[str, pa.DataType], ...] = (
    ("value_double", _REAL),
    ("value_uint64", pa.uint64()),
    ("value_string", _LOW_CARDINALITY),
)
_METRIC: tuple[tuple[str, pa.DataType], ...] = (
    ("digest", _LOW_CARDINALITY),
    ("kernel_index", pa.int32()),
    ("name", _LOW_CARDINALITY),
)

METRICS = pa.schema([*_METRIC, *_VALUE])

INSTANCES = pa.schema([*_METRIC, ("instance", pa.int32()), ("instance_key", _LOW_CARDINALITY), *_VALUE])

_PLACE = (
    ("by", _TEXT),
    ("file", _TEXT),
    ("line", _INT),
    ("function", _TEXT),
    ("pc", _INT),
    ("sass", _TEXT),
    ("text", _TEXT),
)

HOTSPOTS = pa.schema([*_KERNEL, *_PLACE, ("measures", pa.map_(_TEXT, _REAL))])

_EVIDENCE = pa.list_(pa.struct([(name, _REAL if name == "value" else _TEXT) for name in Evidence.__struct_fields__]))
_WHERE = pa.list_(pa.struct([*_PLACE, ("share", _REAL)]))

_GAIN = pa.struct([("factor", _REAL), ("time_after_ns", _REAL), ("proven", pa.bool_()), ("changes", _TEXT)])

FINDINGS = pa.schema(
    [
        *_KERNEL,
        ("id", _TEXT),
        ("title", _TEXT),
        ("severity", _TEXT),
        ("evidence", _EVIDENCE),
        ("gain", _GAIN),
        ("move", _TEXT),
        ("kind", _TEXT),
        ("confidence", _TEXT),
        ("where", _WHERE),
        *_ANALYZED,
    ]
)

_PLACED = (
    ("kind", _TEXT),
    ("resource", _TEXT),
    ("unit", _TEXT),
    ("amount", _REAL),
    ("amount_per_s", _REAL),
    ("peak_per_s", _REAL),
    ("share", _REAL),
    ("intensity_flop_per_byte", _REAL),
)

_IN_KERNELS = {*Kernel.__struct_fields__, "function", *(counter.name for counter in COUNTERS)}
_OF_KERNEL = tuple(
    quantity for quantity in quantities() if not quantity.is_of_item and quantity.name not in _IN_KERNELS
)
"""Quantities of a whole kernel, of no level or number type, that are missing from the table `kernels`."""

ROOFLINE = pa.schema([*_KERNEL, *_PLACED, *map(field_of, _OF_KERNEL), *_ANALYZED])

_SIZE = pa.list_(_INT, 3)
_COUNT = pa.struct(
    [
        ("name", _TEXT),
        ("grid", _SIZE),
        ("block", _SIZE),
        *((name, _INT) for name in ("count", "time_ns", "gap_ns", "low_ns", "high_ns", "total_ns")),
        ("streams", pa.list_(_INT)),
        *((name, _TEXT) for name in ("nvtx_range", "operator", "module", "code")),
    ]
)
_GAPS = pa.struct([("name", _TEXT), ("count", _INT), ("gap_ns", _INT)])

UNPROFILED = pa.schema(
    [
        ("digest", _TEXT),
        ("wall_ns", _INT),
        ("kernel_ns", _INT),
        ("launches", _INT),
        ("source", _TEXT),
        ("iterations", _INT),
        ("launch_counts", pa.list_(_COUNT)),
        ("gaps_after", pa.list_(_GAPS)),
        ("overlap_ns", _INT),
        ("gpu", _TEXT),
    ]
)

FAILURES = pa.schema([("source", _TEXT), ("message", _TEXT), ("hint", _TEXT), ("failed_unix_s", _INT)])

RUN_ID = pa.field("run_id", _TEXT)

ANALYZED_UNIX_NS = pa.field("analyzed_unix_ns", _INT)
"""When an analysis was written; the latest of a run counts."""

STORED_UNIX_NS = pa.field("stored_unix_ns", _INT)
"""When a run without the profiler was stored; the latest counts."""


def _stored(schema: pa.Schema, *more: pa.Field) -> pa.Schema:
    """Return the columns of a table in files, where `run_id` replaces the report's digest."""
    return pa.schema([RUN_ID, *(field for field in schema if field.name != "digest"), *more])


TABLES: dict[str, pa.Schema] = {
    "kernels": _stored(KERNELS),
    "metrics": _stored(METRICS),
    "instances": _stored(INSTANCES),
    "hotspots": _stored(HOTSPOTS),
    "unprofiled": _stored(UNPROFILED, STORED_UNIX_NS),
    "failures": FAILURES,
    "findings": _stored(FINDINGS, ANALYZED_UNIX_NS),
    "roofline": _stored(ROOFLINE, ANALYZED_UNIX_NS),
    "runs": pa.schema([RUN_ID, *RUNS]),
}
"""In the order in which files are put in place: the last file of an ingest or analysis commits the others."""


class ReportRows(Struct, frozen=True):
    """What one report adds to a store.

    Attributes:
        unprofiled: Its run without the profiler, if there was one.
        metrics: Rows of `METRICS`; None if raw values are not kept.
        instances: Rows of `INSTANCES`; None if they are not kept.
    """

    run: Run
    kernels: Sequence[Kernel]
    unprofiled: Unprofiled | None = None
    metrics: pa.Table | None = None
    instances: pa.Table | None = None


def report_tables(*reports: ReportRows) -> dict[str, pa.Table]:
    """Make the tables of several reports at once: most of the cost of a table is per column."""
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
    """Make rows of `failures` from source, message and hint of each unreadable report."""
    now = int(time.time())
    rows = [dict(zip(FAILURES.names, (*failure, now), strict=True)) for failure in failures]
    return pa.Table.from_pylist(rows, schema=FAILURES)


def run_table(runs: Sequence[Run], ingested_unix_s: int) -> pa.Table:
    """Make rows of `runs`."""
    return table_of(
        runs, RUNS, ingested_unix_s=[ingested_unix_s] * len(runs), schema_version=[SCHEMA_VERSION] * len(runs)
    )


def runs_from_table(table: pa.Table) -> list[Run]:
    """Make runs from rows of `runs`."""
    columns = [table[name].to_pylist() for name in Run.__struct_fields__]
    return [Run(*row) for row in zip(*columns, strict=True)]


def kernel_table(kernels: Sequence[Kernel], schema: pa.Schema = KERNELS) -> pa.Table:
    """Make rows of `kernels`: a column per counter, null if it is missing.

    Args:
        kernels: The kernels.
        schema: `KERNELS`, or `KERNELS_TO_WRITE`.
    """
    missing = pa.nulls(len(kernels), _REAL)
    series = [kernel.series for kernel in kernels]
    given: dict[str, Any] = {
        **{counter.name: missing for counter in COUNTERS},
        **_counter_columns(kernels),
        "kernel_index": [kernel.index for kernel in kernels],
        "inside": [kernel.inside and msgpack.encode(kernel.inside) for kernel in kernels],
        "series_interval_ns": [one.interval_ns if one else None for one in series],
        "series": map_column([one.shares if one else None for one in series], _SERIES),
    }
    for what in ("grid", "block"):
        sizes = [getattr(kernel, what) for kernel in kernels]
        given |= {f"{what}_{axis}": [size and size[i] for size in sizes] for i, axis in enumerate(_AXES)}
    return table_of(kernels, schema, **given)


def _counter_columns(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """Return the column of each counter; neighbouring kernels mostly share counters, and are transposed together."""
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


_AS_IS = tuple(
    name
    for name in Kernel.__struct_fields__
    if name in KERNELS.names and name not in {"digest", "rules", "series", "inside"}
)
"""Fields of a kernel that map to a single column of the same content."""

_NO_SPOTS: Mapping[int, tuple[Hotspot, ...]] = MappingProxyType({})


def kernels_from_batch(
    batch: pa.RecordBatch, runs: Mapping[str, Run], hotspots: Mapping[str, Mapping[int, tuple[Hotspot, ...]]]
) -> list[Kernel]:
    """Make kernels from rows of `kernels`.

    Args:
        batch: Rows, all columns.
        runs: Their reports, by `run_id`.
        hotspots: By `run_id`: hot spots by the kernel's position in the report.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    run_ids = values_of(columns["run_id"])
    indices = values_of(columns["kernel_index"])
    made: dict[str, Iterable[Any]] = {
        "digest": [runs[run_id].digest for run_id in run_ids],
        "source": [runs[run_id].source for run_id in run_ids],
        "index": indices,
        "counters": _counters(columns),
        "rules": lists(columns["rules"], Rule),
        "series": _series(batch),
        "hotspots": [
            hotspots.get(run_id, _NO_SPOTS).get(index, ()) for run_id, index in zip(run_ids, indices, strict=True)
        ],
        "inside": _insides(columns),
        **{what: _sizes(batch, what) for what in ("grid", "block")},
        **{name: values_of(columns[name]) for name in _AS_IS},
    }
    return [Kernel(*row) for row in zip(*(made[name] for name in Kernel.__struct_fields__), strict=True)]


def _counters(columns: Mapping[str, pa.Array]) -> list[dict[str, float]]:
    """Return the counters of each kernel, fast for the common case of counters that no kernel lacks.

    A file written before a counter existed has no column for it.
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


def _insides(columns: Mapping[str, pa.Array]) -> list[Inside | None]:
    """Return what was found in the code of each kernel; None for files of before it was kept."""
    if "inside" not in columns:
        return [None] * len(columns["run_id"])
    return [None if packed is None else msgpack.decode(packed, type=Inside) for packed in columns["inside"].to_pylist()]


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
    columns = [batch.column(f"{what}_{axis}").to_pylist() for axis in _AXES]
    return [None if size[0] is None else size for size in zip(*columns, strict=True)]


def hotspot_table(kernels: Iterable[Kernel]) -> pa.Table:
    """Make rows of `hotspots`, in each kernel's order."""
    return _owned_table([(kernel, spot) for kernel in kernels for spot in kernel.hotspots], HOTSPOTS)


def _owned_table(owned: Sequence[tuple[Kernel, Any]], schema: pa.Schema, **given: Any) -> pa.Table:
    """Make a table of records that belong to kernels."""
    return table_of(
        [record for _, record in owned],
        schema,
        digest=[kernel.digest for kernel, _ in owned],
        kernel_index=[kernel.index for kernel, _ in owned],
        **given,
    )


def hotspots_from_table(rows: pa.Table) -> dict[str, dict[int, tuple[Hotspot, ...]]]:
    """Read the hot spots of kernels from rows of `hotspots`, by run and position in the report."""
    names = Hotspot.__struct_fields__
    found: dict[str, dict[int, list[Hotspot]]] = defaultdict(lambda: defaultdict(list))
    for batch in rows.combine_chunks().to_batches():
        columns = [values_of(batch.column(name)) for name in ("run_id", "kernel_index", *names)]
        for run_id, index, *spot in zip(*columns, strict=True):
            found[run_id][index].append(Hotspot(*spot))
    return {run_id: {index: tuple(spots) for index, spots in known.items()} for run_id, known in found.items()}


def finding_table(analyses: Iterable[Analysis], model_version: int, thresholds_digest: str) -> pa.Table:
    """Make rows of `findings`: a row per kernel and finding, in order."""
    owned = [(analysis.kernel, finding) for analysis in analyses for finding in analysis.findings]
    return _owned_table(
        owned,
        FINDINGS,
        gain=pa.array([finding.gain and fields_of(finding.gain) for _, finding in owned], _GAIN),
        where=struct_lists([finding.where for _, finding in owned], _WHERE, _of_place),
        model_version=[model_version] * len(owned),
        thresholds_digest=[thresholds_digest] * len(owned),
    )


def _of_place(place: Place, name: str) -> Any:
    return place.share if name == "share" else getattr(place.hotspot, name)


_PACKED_ROOFLINE = packed(ROOFLINE)


def roofline_table(analyses: Sequence[Analysis], model_version: int, thresholds_digest: str) -> pa.Table:
    """Make rows of `roofline`: a row per kernel and level or pipe, each repeating the kernel's own quantities.

    A kernel without any position has a row without a resource, so that it does not vanish. Texts are
    dictionary-encoded, as most repeat in each row of a kernel.
    """
    positions = [[*_positions(analysis)] or [(None,) * len(_PLACED)] for analysis in analyses]
    owner = pa.array([i for i, rows in enumerate(positions) for _ in rows], pa.int64())
    placed = [*zip(*chain.from_iterable(positions), strict=True)] or [()] * len(_PLACED)
    once = {
        "digest": [analysis.kernel.digest for analysis in analyses],
        "kernel_index": [analysis.kernel.index for analysis in analyses],
        "model_version": [model_version] * len(analyses),
        "thresholds_digest": [thresholds_digest] * len(analyses),
        **{quantity.name: [*map(quantity.value, analyses)] for quantity in _OF_KERNEL},
    }
    repeated = {name: pa.array(values, _PACKED_ROOFLINE.field(name).type).take(owner) for name, values in once.items()}
    return table_of((), _PACKED_ROOFLINE, **dict(zip((name for name, _ in _PLACED), placed, strict=True)), **repeated)


def _positions(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    """Yield the values of `_PLACED` for each level and pipe."""
    for name, level in analysis.levels.items():
        if level.amount_bytes is not None or level.share is not None:
            yield (
                "level",
                name,
                "byte",
                level.amount_bytes,
                level.bytes_per_s,
                level.peak_bytes_per_s,
                level.share,
                level.intensity_flop_per_byte,
            )
    for name, pipe in analysis.pipes.items():
        yield "pipe", name, pipe.unit, pipe.amount, pipe.amount_per_s, pipe.peak_per_s, pipe.share, None


def unprofiled_table(runs: Mapping[str, Unprofiled | None]) -> pa.Table:
    """Make rows of `unprofiled`, by digest of the report; no row for a program that ran only under the profiler."""
    rows = [{"digest": digest, **asdict(found)} for digest, found in runs.items() if found is not None]
    return pa.Table.from_pylist(rows, schema=UNPROFILED)


def unprofiled_from_row(row: Mapping[str, Any]) -> Unprofiled:
    """Make an un-profiled run from a row of `unprofiled`; cuBLAS's time stays beside the report, not in a store."""
    values: dict[str, Any] = {
        field.name: row.get(field.name) for field in fields(Unprofiled) if field.name in UNPROFILED.names
    }
    values["launch_counts"] = tuple(_launch_count(entry) for entry in row["launch_counts"])
    values["gaps_after"] = tuple(GapsAfter(**entry) for entry in row["gaps_after"])
    return Unprofiled(**values)


def _launch_count(entry: Mapping[str, Any]) -> LaunchCount:
    """Convert a row's lists to tuples; rows of older stores lack the later fields."""
    grid, block = (None if entry[key] is None else tuple(entry[key]) for key in ("grid", "block"))
    return LaunchCount(**{**entry, "grid": grid, "block": block, "streams": tuple(entry.get("streams") or ())})
