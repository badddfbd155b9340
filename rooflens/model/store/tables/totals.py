"""The store's table of kernels with all of their launches added up: one row a kernel and report, failed ones apart."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rooflens.model.records import Bottleneck, Distances
from rooflens.model.store.tables.columns import map_column, maps, table_of, texts
from rooflens.model.totals import Total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TEXT, _INT, _REAL, _TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_COUNTS = pa.map_(_TEXT, _INT)

_PLAIN: dict[str, pa.DataType] = {
    "digest": _TEXT,
    "gpu": _TEXT,
    "name": _TEXT,
    "is_failed": _TRUTH,
    "records": _INT,
    "launches": _INT,
    "synthetic": _TRUTH,
    "duration_ns": _REAL,
    "at_stake_ns": _REAL,
    "unit": _TEXT,
    "work_per_s": _REAL,
    "work_peak_per_s": _REAL,
    "intensity": _REAL,
    "dram_peak_bytes_per_s": _REAL,
    "is_estimated": _TRUTH,
    "bound": _TEXT,
    "at_roof": _TRUTH,
    "resource": _TEXT,
    "cause": _TEXT,
    "confidence": _TEXT,
    "ready_warps": _REAL,
    "costing": _TEXT,
    "move": _TEXT,
    "where": _TEXT,
    "has_hotspots": _TRUTH,
    "clock_hz": _REAL,
    "clock_ns": _REAL,
}
_DISTANCES: dict[str, pa.DataType] = {
    "headroom": _REAL,
    "potential": _REAL,
    "potential_by_reuse": _REAL,
    "by_fusing_only": _TRUTH,
    "floor_ns": _REAL,
    "why_null": _TEXT,
}
_BOTTLENECK = {"bottleneck": _TEXT, "bottleneck_share": _REAL}
_MAPS = {"cautions": _COUNTS, "reasons": _COUNTS}

TOTALS = pa.schema(
    [
        *_PLAIN.items(),
        *_DISTANCES.items(),
        *_BOTTLENECK.items(),
        *_MAPS.items(),
        ("model_version", _INT),
        ("thresholds_digest", _TEXT),
    ]
)


def total_table(totals: Sequence[Total], model_version: int, thresholds_digest: str) -> pa.Table:
    """Make the rows of `totals`, in the order given."""
    units = [total.bottleneck for total in totals]
    columns: dict[str, Any] = {name: [*map(attrgetter(name), totals)] for name in _PLAIN}
    columns |= {name: [getattr(total.distances, name) for total in totals] for name in _DISTANCES}
    columns["bottleneck"] = [unit and unit.resource for unit in units]
    columns["bottleneck_share"] = [unit and unit.share for unit in units]
    columns |= {name: map_column([getattr(total, name) for total in totals], kind) for name, kind in _MAPS.items()}
    columns["model_version"] = [model_version] * len(totals)
    columns["thresholds_digest"] = [thresholds_digest] * len(totals)
    return table_of(columns, TOTALS)


def totals_from_table(table: pa.Table, sources: Mapping[str, str]) -> list[Total]:
    """Make the totals of rows of `totals`; `sources` has the path of each report by its digest."""
    rows = table.combine_chunks()
    named = {name: _values(rows[name]) for name in _PLAIN}
    distances = [
        Distances(**dict(zip(_DISTANCES, row, strict=True)))
        for row in zip(*(_values(rows[name]) for name in _DISTANCES), strict=True)
    ]
    units = [
        None if share is None else Bottleneck(resource, share)
        for resource, share in zip(*(_values(rows[name]) for name in _BOTTLENECK), strict=True)
    ]
    counts = [_maps(rows[name]) for name in _MAPS]
    return [
        Total(
            source=sources[row[0]],
            **dict(zip(_PLAIN, row, strict=True)),
            distances=of,
            bottleneck=unit,
            cautions=cautions,
            reasons=reasons,
        )
        for row, of, unit, cautions, reasons in zip(
            zip(*named.values(), strict=True), distances, units, *counts, strict=True
        )
    ]


def _values(column: pa.ChunkedArray) -> list[Any]:
    chunk = column.combine_chunks()
    return texts(chunk) if chunk.type == _TEXT else list(chunk.to_pylist())


def _maps(column: pa.ChunkedArray) -> list[Any]:
    return maps(column.combine_chunks()) if len(column) else []
