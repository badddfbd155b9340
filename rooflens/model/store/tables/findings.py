"""The store's tables of what is found in a kernel's code: `hotspots`, as read, and `findings`, as analyzed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from rooflens.model.records import Analysis, Evidence, Hotspot, Kernel, Place
from rooflens.model.store.tables.columns import map_column, maps, struct_lists, table_of, texts

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()

_PLACE: tuple[tuple[str, pa.DataType], ...] = (
    ("by", _TEXT),
    ("file", _TEXT),
    ("line", _INT),
    ("function", _TEXT),
    ("pc", _INT),
    ("sass", _TEXT),
    ("text", _TEXT),
)
_PLACE_NAMES = tuple(name for name, _ in _PLACE)

_MEASURES = pa.map_(_TEXT, _REAL)

HOTSPOTS = pa.schema([("digest", _TEXT), ("kernel_index", _INT), *_PLACE, ("measures", _MEASURES)])

_EVIDENCE = pa.list_(pa.struct([(name, _REAL if name == "value" else _TEXT) for name in Evidence.__struct_fields__]))
_WHERE = pa.list_(pa.struct([*_PLACE, ("share", _REAL)]))
_PLAIN = ("id", "title", "severity", "speedup_up_to", "move", "confidence")

FINDINGS = pa.schema(
    [
        ("digest", _TEXT),
        ("kernel_index", _INT),
        ("id", _TEXT),
        ("title", _TEXT),
        ("severity", _TEXT),
        ("evidence", _EVIDENCE),
        ("speedup_up_to", _REAL),
        ("move", _TEXT),
        ("confidence", _TEXT),
        ("where", _WHERE),
        ("model_version", _INT),
        ("thresholds_digest", _TEXT),
    ]
)


def hotspot_table(kernels: Iterable[Kernel]) -> pa.Table:
    """Make the rows of `hotspots`, those of a kernel in its order."""
    owned = [(kernel, spot) for kernel in kernels for spot in kernel.hotspots]
    columns: dict[str, Any] = {name: [getattr(spot, name) for _, spot in owned] for name in _PLACE_NAMES}
    columns["digest"] = [kernel.digest for kernel, _ in owned]
    columns["kernel_index"] = [kernel.index for kernel, _ in owned]
    columns["measures"] = map_column([spot.measures for _, spot in owned], _MEASURES)
    return table_of(columns, HOTSPOTS)


def hotspots_from_table(rows: pa.Table) -> dict[str, dict[int, tuple[Hotspot, ...]]]:
    """Make the hot spots of kernels, by run and position in its report, of rows of `hotspots`."""
    found: dict[str, dict[int, list[Hotspot]]] = defaultdict(lambda: defaultdict(list))
    for batch in rows.combine_chunks().to_batches():
        run_ids: list[Any] = texts(batch.column("run_id"))
        places = [
            texts(batch.column(name)) if kind == _TEXT else batch.column(name).to_pylist() for name, kind in _PLACE
        ]
        measures = maps(batch.column("measures"))
        indices = batch.column("kernel_index").to_pylist()
        for run_id, index, *place, measured in zip(run_ids, indices, *places, measures, strict=True):
            found[run_id][index].append(Hotspot(**dict(zip(_PLACE_NAMES, place, strict=True)), measures=measured))
    return {run_id: {index: tuple(spots) for index, spots in known.items()} for run_id, known in found.items()}


def finding_table(analyses: Iterable[Analysis], model_version: int, thresholds_digest: str) -> pa.Table:
    """Make the rows of `findings`: one a kernel and finding, in their order."""
    owned = [(analysis.kernel, finding) for analysis in analyses for finding in analysis.findings]
    columns: dict[str, Any] = {name: [getattr(finding, name) for _, finding in owned] for name in _PLAIN}
    columns["digest"] = [kernel.digest for kernel, _ in owned]
    columns["kernel_index"] = [kernel.index for kernel, _ in owned]
    columns["evidence"] = struct_lists([finding.evidence for _, finding in owned], _EVIDENCE)
    columns["where"] = struct_lists([finding.where for _, finding in owned], _WHERE, _of_place)
    columns["model_version"] = [model_version] * len(owned)
    columns["thresholds_digest"] = [thresholds_digest] * len(owned)
    return table_of(columns, FINDINGS)


def _of_place(place: Place, name: str) -> Any:
    return place.share if name == "share" else getattr(place.hotspot, name)
