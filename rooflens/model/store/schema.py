"""The store's tables as Arrow schemas.

`runs` has one row a report, `kernels` one a profiled result, `metrics` one a stored value, `instances` one a value by
instance; `tables/` has `roofline`, `hotspots`, `findings` and `unprofiled`. All of them join `runs` on `run_id`, which
stands in each file where the records have the report's SHA-256. `failures` has a row for each report that could not be
read.
"""

from __future__ import annotations

import pyarrow as pa

from rooflens.model.counters.table import COUNTERS
from rooflens.model.records import Rule
from rooflens.model.store.tables.findings import FINDINGS, HOTSPOTS
from rooflens.model.store.tables.roofline import ROOFLINE
from rooflens.model.store.tables.unprofiled import UNPROFILED

SCHEMA_VERSION = 7
"""Raised whenever a column changes its name, type or meaning; not where one is added, which older files lack."""

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()
_LOW_CARDINALITY = pa.dictionary(pa.int32(), pa.string())

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

MAPS: dict[str, pa.MapType] = {
    "counter_sources": pa.map_(_TEXT, _TEXT),
    "thread_opcodes": pa.map_(_TEXT, _INT),
    "warp_opcodes": pa.map_(_TEXT, _INT),
    "tensor_ops": pa.map_(_TEXT, _REAL),
    "tensor_peaks_per_s": pa.map_(_TEXT, _REAL),
    "stalls": pa.map_(_TEXT, _REAL),
    "code_totals": pa.map_(_TEXT, _REAL),
}
RULES = pa.list_(pa.struct([(name, _REAL if name.endswith("_pct") else _TEXT) for name in Rule.__struct_fields__]))
SERIES = pa.map_(_TEXT, pa.list_(_REAL))
AXES = ("x", "y", "z")

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
        *((f"{what}_{axis}", _INT) for what in ("grid", "block") for axis in AXES),
        *((counter.name, _REAL) for counter in COUNTERS),
        *MAPS.items(),
        ("rules", RULES),
        ("series_interval_ns", _REAL),
        ("series", SERIES),
    ]
)

_SOURCES = KERNELS.get_field_index("counter_sources")
KERNELS_TO_WRITE = KERNELS.set(
    _SOURCES, pa.field("counter_sources", pa.map_(pa.dictionary(pa.int32(), _TEXT), pa.dictionary(pa.int32(), _TEXT)))
)
"""`KERNELS` on their way into a file, in which they are the same: most kernels have a hundred texts in common."""

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

FAILURES = pa.schema([("source", _TEXT), ("message", _TEXT), ("hint", _TEXT), ("failed_unix_s", _INT)])

ANALYZED_UNIX_NS = pa.field("analyzed_unix_ns", _INT)
"""When an analysis was written: of two of one run the later one counts."""

STORED_UNIX_NS = pa.field("stored_unix_ns", _INT)
"""When a run without the profiler was stored: of two of one run the later one counts."""


def _stored(schema: pa.Schema, *more: pa.Field) -> pa.Schema:
    """Return the columns of a table in its files: `run_id` stands for the report's digest."""
    return pa.schema([RUN_ID, *(field for field in schema if field.name != "digest"), *more])


RUN_ID = pa.field("run_id", _TEXT)

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
"""In the order in which files get their place: the last one, of an ingest or an analysis, commits the others."""
