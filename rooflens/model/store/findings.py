"""The store's tables of what is found in a kernel's code: `hotspots`, as read, and `findings`, as analyzed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rooflens.model.records import Evidence, Hotspot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflens.model.records import Analysis, Finding, Kernel

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

HOTSPOTS = pa.schema([("digest", _TEXT), ("kernel_index", _INT), *_PLACE, ("measures", pa.map_(_TEXT, _REAL))])

_EVIDENCE = pa.struct([(field.name, _REAL if field.name == "value" else _TEXT) for field in fields(Evidence)])

FINDINGS = pa.schema(
    [
        ("digest", _TEXT),
        ("kernel_index", _INT),
        ("id", _TEXT),
        ("title", _TEXT),
        ("severity", _TEXT),
        ("evidence", pa.list_(_EVIDENCE)),
        ("speedup_up_to", _REAL),
        ("move", _TEXT),
        ("confidence", _TEXT),
        ("where", pa.list_(pa.struct([*_PLACE, ("share", _REAL)]))),
        ("model_version", _INT),
        ("thresholds_digest", _TEXT),
    ]
)


def hotspot_table(kernels: Iterable[Kernel]) -> pa.Table:
    """Make the rows of `hotspots`, those of a kernel in its order."""
    rows = [
        {"digest": kernel.digest, "kernel_index": kernel.index, **_place(spot), "measures": list(spot.measures.items())}
        for kernel in kernels
        for spot in kernel.hotspots
    ]
    return pa.Table.from_pylist(rows, schema=HOTSPOTS)


def hotspots_from_rows(rows: Iterable[Mapping[str, Any]]) -> dict[int, tuple[Hotspot, ...]]:
    """Make the hot spots of a report's kernels, by their position, of rows of `hotspots`."""
    found: dict[int, list[Hotspot]] = defaultdict(list)
    for row in rows:
        place = {name: row[name] for name in _PLACE_NAMES}
        found[row["kernel_index"]].append(Hotspot(**place, measures=dict(row["measures"])))
    return {index: tuple(spots) for index, spots in found.items()}


def finding_table(analyses: Iterable[Analysis], model_version: int, thresholds_digest: str) -> pa.Table:
    """Make the rows of `findings`: one a kernel and finding, in their order."""
    stamp = {"model_version": model_version, "thresholds_digest": thresholds_digest}
    rows = [
        {"digest": analysis.kernel.digest, "kernel_index": analysis.kernel.index, **_finding(finding), **stamp}
        for analysis in analyses
        for finding in analysis.findings
    ]
    return pa.Table.from_pylist(rows, schema=FINDINGS)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "title": finding.title,
        "severity": finding.severity,
        "evidence": [asdict(evidence) for evidence in finding.evidence],
        "speedup_up_to": finding.speedup_up_to,
        "move": finding.move,
        "confidence": finding.confidence,
        "where": [{**_place(place.hotspot), "share": place.share} for place in finding.where],
    }


def _place(hotspot: Hotspot) -> dict[str, Any]:
    return {name: getattr(hotspot, name) for name in _PLACE_NAMES}
