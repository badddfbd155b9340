"""The store's tables as Arrow schemas.

`runs` has one row a report, `kernels` one a profiled result, `metrics` one a stored value, `instances` one a value by
instance; `tables/` has `roofline`, `totals`, `hotspots`, `findings` and `unprofiled`. All join on `digest`, the
report's SHA-256; those of kernels also on `kernel_index`. `failures` has a row for each report that could not be read.
"""

from __future__ import annotations

import pyarrow as pa

from rooflens.model.counters.table import COUNTERS
from rooflens.model.records import Rule
from rooflens.model.store.tables.findings import FINDINGS, HOTSPOTS
from rooflens.model.store.tables.roofline import ROOFLINE
from rooflens.model.store.tables.totals import TOTALS
from rooflens.model.store.tables.unprofiled import UNPROFILED

SCHEMA_VERSION = 5
"""Raised whenever a table changes; `rooflens store migrate` brings an older store to this version."""

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

DATA: dict[str, pa.Schema] = {
    "kernels": KERNELS,
    "metrics": METRICS,
    "instances": INSTANCES,
    "hotspots": HOTSPOTS,
    "unprofiled": UNPROFILED,
    "failures": FAILURES,
}
"""Tables of a part, in the order of writing; the row in `runs` follows and commits it."""

VERDICTS: dict[str, pa.Schema] = {"roofline": ROOFLINE, "findings": FINDINGS, "totals": TOTALS}
"""Tables that an analysis adds to a part later, and rewrites when the model or the thresholds change."""

TABLES: dict[str, pa.Schema] = {"runs": RUNS, **DATA, **VERDICTS}
