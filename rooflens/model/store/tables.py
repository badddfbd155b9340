"""The store's tables: their columns, and the conversion between records and rows.

A row is a report in `runs`, a profiled result in `kernels`, a stored value in `metrics`, a value per instance in
`instances`, a hot spot as read from a kernel's code in `hotspots`, a report whose program also ran without the profiler
in `unprofiled`; of the analysis a kernel in `verdicts`, one of its levels or pipes in `roofline`, and a finding in
`findings`. All of these join `runs` on `digest`, those of kernels each other on `digest` and `kernel_index`. `failures`
has a row for each unreadable report.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any, get_type_hints

import pyarrow as pa
from msgspec import Struct, convert, msgpack
from msgspec.structs import asdict as fields_of

from rooflens.model.analyze import MODEL_VERSION
from rooflens.model.catalogue import quantities
from rooflens.model.records import (
    NO_VALUES,
    Analysis,
    Evidence,
    Hotspot,
    Inside,
    Kernel,
    Place,
    Rule,
    Run,
    Series,
    SourceFile,
)
from rooflens.model.store.columns import field_of, lists, map_column, maps, struct_lists, table_of, values_of
from rooflens.model.summary import stake_of
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Unprofiled
from rooflens.report.words.verdict import best_move

SCHEMA_VERSION = 11
"""Increased whenever a column changes name, type or meaning; not for new columns, which older files lack."""

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()
_LOW_CARDINALITY = pa.dictionary(pa.int32(), pa.string())
_KERNEL_ID_COLUMNS = (("digest", _TEXT), ("kernel_index", _INT))

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
        ("files", pa.map_(_TEXT, _INT)),
    ]
)

_AXES = ("x", "y", "z")
_SERIES = pa.map_(_TEXT, pa.list_(_REAL))

KERNELS = pa.schema(
    [
        *_KERNEL_ID_COLUMNS,
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
        ("counters", pa.map_(_TEXT, _REAL)),
        ("counter_sources", pa.map_(_TEXT, _TEXT)),
        ("thread_opcodes", pa.map_(_TEXT, _INT)),
        ("warp_opcodes", pa.map_(_TEXT, _INT)),
        ("tensor_ops", pa.map_(_TEXT, _REAL)),
        ("tensor_peaks_per_s", pa.map_(_TEXT, _REAL)),
        ("stalls", pa.map_(_TEXT, _REAL)),
        ("code_totals", pa.map_(_TEXT, _REAL)),
        ("inside", pa.binary()),
        ("sources", pa.binary()),
        (
            "rules",
            pa.list_(pa.struct([(name, _REAL if name.endswith("_pct") else _TEXT) for name in Rule.__struct_fields__])),
        ),
        ("series_interval_ns", _REAL),
        ("series", _SERIES),
    ]
)

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

HOTSPOTS = pa.schema([*_KERNEL_ID_COLUMNS, *_PLACE, ("measures", pa.map_(_TEXT, _REAL))])

_EVIDENCE = pa.list_(pa.struct([(name, _REAL if name == "value" else _TEXT) for name in Evidence.__struct_fields__]))
_WHERE = pa.list_(pa.struct([*_PLACE, ("share", _REAL)]))

_GAIN = pa.struct([("factor", _REAL), ("time_after_ns", _REAL), ("proven", pa.bool_()), ("changes", _TEXT)])
_COST = pa.struct([("low", _REAL), ("high", _REAL)])

FINDINGS = pa.schema(
    [
        *_KERNEL_ID_COLUMNS,
        ("id", _TEXT),
        ("title", _TEXT),
        ("severity", _TEXT),
        ("evidence", _EVIDENCE),
        ("gain", _GAIN),
        ("cost", _COST),
        ("move", _TEXT),
        ("kind", _TEXT),
        ("confidence", _TEXT),
        ("where", _WHERE),
    ]
)

ROOFLINE = pa.schema(
    [
        *_KERNEL_ID_COLUMNS,
        ("kind", _TEXT),
        ("resource", _TEXT),
        ("unit", _TEXT),
        ("amount", _REAL),
        ("amount_per_s", _REAL),
        ("peak_per_s", _REAL),
        ("peak_source", _TEXT),
        ("share", _REAL),
        ("intensity_flop_per_byte", _REAL),
    ]
)

_IN_VERDICTS = (
    *("name", "function", "short_name", "key", "gpu", "nvtx_range", "status", "synthetic"),
    *("duration_ns", "launches", "gpu_time_ns", "in_program_time_ns"),
    *("grid", "block", "registers_per_thread", "occupancy"),
    *("dram_bytes", "l2_bytes", "l1_bytes", "smem_bytes", "flop_total", "flop_per_s", "dram_intensity"),
    *("dram_share", "l2_share", "l1_share", "smem_share"),
    *("role", "verdict_bound", "verdict_or_bound", "verdict_resource", "verdict_at_roof", "verdict_cause"),
    *("verdict_confidence", "verdict_sentence", "verdict_gain_factor", "verdict_done", "flags"),
    *("verdict_limit_factor", "verdict_limit_far", "verdict_limit_floor_ns", "verdict_limit_by"),
    *("verdict_limit_proven", "verdict_today_resource", "verdict_today_floor_ns"),
)
"""Quantities of the catalogue in `verdicts`: each column costs a file of one kernel some 150 bytes."""

_QUANTITIES = {one.name: one for one in quantities()}
_OF_LAUNCH = tuple(_QUANTITIES[name] for name in _IN_VERDICTS)

VERDICTS = pa.schema(
    [
        *_KERNEL_ID_COLUMNS,
        *map(field_of, _OF_LAUNCH),
        ("verdict_class", _TEXT),
        ("winnable_ns", _REAL),
        ("at_stake_ns", _REAL),
        ("first_move", _TEXT),
        ("first_move_kind", _TEXT),
        ("model_version", _INT),
        ("inputs_digest", _TEXT),
        ("analysis", pa.binary()),
    ]
)

_SIZE_TYPE = pa.list_(_INT, 3)
_COUNT = pa.struct(
    [
        ("name", _TEXT),
        ("grid", _SIZE_TYPE),
        ("block", _SIZE_TYPE),
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

TABLES: dict[str, pa.Schema] = {
    "kernels": KERNELS,
    "metrics": METRICS,
    "instances": INSTANCES,
    "hotspots": HOTSPOTS,
    "unprofiled": UNPROFILED,
    "failures": FAILURES,
    "findings": FINDINGS,
    "roofline": ROOFLINE,
    "verdicts": VERDICTS,
    "runs": RUNS,
}


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


def report_tables(report: ReportRows) -> dict[str, pa.Table]:
    """Make the tables of a report but `runs`, which is written when these are in place.

    Those without rows are left out, except `kernels`.
    """
    tables = {
        "kernels": kernel_table(report.kernels),
        "hotspots": hotspot_table(report.kernels),
        "unprofiled": unprofiled_table({report.run.digest: report.unprofiled}),
        "metrics": METRICS.empty_table() if report.metrics is None else report.metrics,
        "instances": INSTANCES.empty_table() if report.instances is None else report.instances,
    }
    return {name: rows for name, rows in tables.items() if rows.num_rows or name == "kernels"}


def failure_table(failures: Iterable[tuple[str, str, str]]) -> pa.Table:
    """Make rows of `failures` from source, message and hint of each unreadable report."""
    now = int(time.time())
    rows = [dict(zip(FAILURES.names, (*failure, now), strict=True)) for failure in failures]
    return pa.Table.from_pylist(rows, schema=FAILURES)


def run_table(run: Run, ingested_unix_s: int, files: Mapping[str, int | None]) -> pa.Table:
    """Make the row of `runs`.

    Args:
        run: The report.
        ingested_unix_s: When it was stored.
        files: Size in bytes of its files in the other tables; None of one that may be replaced.
    """
    return table_of(
        [run], RUNS, ingested_unix_s=[ingested_unix_s], schema_version=[SCHEMA_VERSION], files=[dict(files)]
    )


def runs_from_table(table: pa.Table) -> list[Run]:
    """Make runs from rows of `runs`.

    Raises:
        ValidationError: A column that every report has is null, or of another type.
    """
    columns = {name: table[name].to_pylist() for name in Run.__struct_fields__}
    rows = zip(*columns.values(), strict=True)
    return convert(
        [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows],
        list[Run],
    )


def kernel_table(kernels: Sequence[Kernel]) -> pa.Table:
    """Make rows of `kernels`."""
    series = [kernel.series for kernel in kernels]
    given: dict[str, Any] = {
        "kernel_index": [kernel.index for kernel in kernels],
        "inside": [kernel.inside and msgpack.encode(kernel.inside) for kernel in kernels],
        "sources": [msgpack.encode(kernel.sources) if kernel.sources else None for kernel in kernels],
        "series_interval_ns": [one.interval_ns if one else None for one in series],
        "series": map_column([one.shares if one else None for one in series], _SERIES),
    }
    for what in ("grid", "block"):
        sizes = [getattr(kernel, what) for kernel in kernels]
        given |= {f"{what}_{axis}": [size and size[i] for size in sizes] for i, axis in enumerate(_AXES)}
    return table_of(kernels, KERNELS, **given)


_AS_IS = tuple(
    name
    for name in Kernel.__struct_fields__
    if name in KERNELS.names and name not in {"digest", "rules", "series", "inside", "sources"}
)
"""Fields of a kernel that map to a single column of the same content."""

_NO_SPOTS: Mapping[int, tuple[Hotspot, ...]] = MappingProxyType({})


def kernels_from_table(
    rows: pa.Table, runs: Mapping[str, Run], hotspots: Mapping[str, Mapping[int, tuple[Hotspot, ...]]]
) -> dict[str, list[Kernel]]:
    """Make kernels from rows of `kernels`, all columns; return them by digest of their report.

    Args:
        rows: The rows.
        runs: Their reports, by digest.
        hotspots: By digest: hot spots by the kernel's position in the report.
    """
    found: dict[str, list[Kernel]] = {digest: [] for digest in runs}
    for batch in rows.combine_chunks().to_batches():
        for kernel in _kernels_of(batch, runs, hotspots):
            found[kernel.digest].append(kernel)
    return found


def _kernels_of(
    batch: pa.RecordBatch, runs: Mapping[str, Run], hotspots: Mapping[str, Mapping[int, tuple[Hotspot, ...]]]
) -> Iterator[Kernel]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    digests = values_of(columns["digest"])
    indices = values_of(columns["kernel_index"])
    made: dict[str, Iterable[Any]] = {
        "digest": digests,
        "source": [runs[digest].source for digest in digests],
        "index": indices,
        "rules": lists(columns["rules"], Rule),
        "series": _series(batch),
        "hotspots": [
            hotspots.get(digest, _NO_SPOTS).get(index, ()) for digest, index in zip(digests, indices, strict=True)
        ],
        "inside": _insides(columns),
        "sources": _sources(columns),
        **{what: _sizes_of_axes(batch, what) for what in ("grid", "block")},
        **{name: values_of(columns[name]) for name in _AS_IS},
    }
    return (Kernel(*row) for row in zip(*(made[name] for name in Kernel.__struct_fields__), strict=True))


def _insides(columns: Mapping[str, pa.Array]) -> list[Inside | None]:
    """Return what was found in the code of each kernel."""
    return [None if packed is None else msgpack.decode(packed, type=Inside) for packed in columns["inside"].to_pylist()]


def _sources(columns: Mapping[str, pa.Array]) -> list[Mapping[str, SourceFile]]:
    return [
        NO_VALUES if packed is None else msgpack.decode(packed, type=dict[str, SourceFile])
        for packed in columns["sources"].to_pylist()
    ]


def _series(batch: pa.RecordBatch) -> list[Series | None]:
    intervals: list[float | None] = batch.column("series_interval_ns").to_pylist()
    if all(interval_ns is None for interval_ns in intervals):
        return [None] * len(intervals)
    shares = maps(batch.column("series"))
    return [
        None if interval_ns is None else Series(interval_ns, {unit: tuple(s) for unit, s in (samples or {}).items()})
        for interval_ns, samples in zip(intervals, shares, strict=True)
    ]


def _sizes_of_axes(batch: pa.RecordBatch, what: str) -> list[tuple[int, int, int] | None]:
    columns = [batch.column(f"{what}_{axis}").to_pylist() for axis in _AXES]
    return [None if size[0] is None else size for size in zip(*columns, strict=True)]


def hotspot_table(kernels: Iterable[Kernel]) -> pa.Table:
    """Make rows of `hotspots`, in each kernel's order."""
    return _owned_table([(kernel, spot) for kernel in kernels for spot in kernel.hotspots], HOTSPOTS)


def _owned_table(owned: Sequence[tuple[Kernel, Any]], schema: pa.Schema, **given: Any) -> pa.Table:
    return table_of(
        [record for _, record in owned],
        schema,
        digest=[kernel.digest for kernel, _ in owned],
        kernel_index=[kernel.index for kernel, _ in owned],
        **given,
    )


def hotspots_from_table(rows: pa.Table) -> dict[str, dict[int, tuple[Hotspot, ...]]]:
    """Read the hot spots of kernels from rows of `hotspots`, by digest and position in the report."""
    names = Hotspot.__struct_fields__
    found: dict[str, dict[int, list[Hotspot]]] = defaultdict(lambda: defaultdict(list))
    for batch in rows.combine_chunks().to_batches():
        columns = [values_of(batch.column(name)) for name in ("digest", "kernel_index", *names)]
        for digest, index, *spot in zip(*columns, strict=True):
            found[digest][index].append(Hotspot(*spot))
    return {digest: {index: tuple(spots) for index, spots in known.items()} for digest, known in found.items()}


def finding_table(analyses: Iterable[Analysis]) -> pa.Table:
    """Make rows of `findings`: a row per kernel and finding, in order."""
    owned = [(analysis.kernel, finding) for analysis in analyses for finding in analysis.findings]
    return _owned_table(
        owned,
        FINDINGS,
        gain=pa.array([finding.gain and fields_of(finding.gain) for _, finding in owned], _GAIN),
        cost=pa.array([finding.cost and fields_of(finding.cost) for _, finding in owned], _COST),
        where=struct_lists([finding.where for _, finding in owned], _WHERE, _of_place),
    )


def _of_place(place: Place, name: str) -> Any:
    return place.share if name == "share" else getattr(place.hotspot, name)


def roofline_table(analyses: Sequence[Analysis]) -> pa.Table:
    """Make rows of `roofline`: a row per kernel and level or pipe."""
    rows = [
        (analysis.kernel.digest, analysis.kernel.index, *row) for analysis in analyses for row in _positions(analysis)
    ]
    columns = [*zip(*rows, strict=True)] or [()] * len(ROOFLINE)
    return table_of((), ROOFLINE, **dict(zip(ROOFLINE.names, columns, strict=True)))


def _positions(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    """Yield where a kernel is at each level and pipe: all columns of `ROOFLINE` but those of the kernel."""
    for name, level in analysis.levels.items():
        if level.amount_bytes is not None or level.share is not None:
            amounts = level.amount_bytes, level.bytes_per_s, level.peak_bytes_per_s, level.peak_source
            yield ("level", name, "byte", *amounts, level.share, level.intensity_flop_per_byte)
    for name, pipe in analysis.pipes.items():
        amounts = pipe.amount, pipe.amount_per_s, pipe.peak_per_s, pipe.peak_source
        yield ("pipe", name, pipe.unit, *amounts, pipe.share, None)


_ANALYSIS_FIELDS = Analysis.__struct_fields__[1:]
_HINTS = get_type_hints(Analysis)
_ANALYSIS = msgpack.Decoder(tuple[tuple(_HINTS[name] for name in _ANALYSIS_FIELDS)])  # type: ignore[misc]  # at run time


def verdict_table(analyses: Sequence[Analysis], inputs_digest: str = "") -> pa.Table:
    """Make rows of `verdicts`: a row per kernel.

    Args:
        analyses: The kernels of a report.
        inputs_digest: Of what their verdicts depend on besides the model and the report.
    """
    times = [stake_of(analysis) for analysis in analyses]
    bests = [analysis.verdict.best for analysis in analyses]
    given: dict[str, Any] = {
        **{one.name: [*map(one.value, analyses)] for one in _OF_LAUNCH},
        "digest": [analysis.kernel.digest for analysis in analyses],
        "kernel_index": [analysis.kernel.index for analysis in analyses],
        "verdict_class": [analysis.verdict.shown_class for analysis in analyses],
        "winnable_ns": [winnable_ns for winnable_ns, _ in times],
        "at_stake_ns": [at_stake_ns for _, at_stake_ns in times],
        "first_move": [best_move(analysis) for analysis in analyses],
        "first_move_kind": [best and best.kind for best in bests],
        "model_version": [MODEL_VERSION] * len(analyses),
        "inputs_digest": [inputs_digest] * len(analyses),
        "analysis": [msgpack.encode([getattr(one, name) for name in _ANALYSIS_FIELDS]) for one in analyses],
    }
    return table_of((), VERDICTS, **given)


def analysis_of(packed: bytes, kernel: Kernel) -> Analysis:
    """Make the analysis of a kernel from its `analysis` in `verdicts`.

    Raises:
        msgspec.MsgspecError: Another version wrote it.
    """
    return Analysis(kernel, *_ANALYSIS.decode(packed))


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
