"""The store's table of runs without the profiler: one row a report whose program was also run so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import pyarrow as pa

from rooflens.model.unprofiled import GapsAfter, LaunchCount, Unprofiled

_TEXT, _INT = pa.string(), pa.int64()
_SIZE = pa.list_(_INT, 3)
_COUNT = pa.struct(
    [("name", _TEXT), ("grid", _SIZE), ("block", _SIZE), ("count", _INT), ("time_ns", _INT), ("gap_ns", _INT)]
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
    ]
)


def unprofiled_table(runs: Mapping[str, Unprofiled | None]) -> pa.Table:
    """Make the rows of `unprofiled`, by digest of the report; none for what was not run without the profiler."""
    rows = [{"digest": digest, **asdict(found)} for digest, found in runs.items() if found is not None]
    return pa.Table.from_pylist(rows, schema=UNPROFILED)


def unprofiled_from_row(row: Mapping[str, Any]) -> Unprofiled:
    """Make an un-profiled run of a row of `unprofiled`; cuBLAS's time stays beside the report and is in no store."""
    counts = ({**entry, "grid": tuple(entry["grid"]), "block": tuple(entry["block"])} for entry in row["launch_counts"])
    values = {field.name: row[field.name] for field in fields(Unprofiled) if field.name in UNPROFILED.names}
    return Unprofiled(
        **{
            **values,
            "launch_counts": tuple(LaunchCount(**entry) for entry in counts),
            "gaps_after": tuple(GapsAfter(**entry) for entry in row["gaps_after"]),
        }
    )
