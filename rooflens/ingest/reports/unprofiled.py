"""The un-profiled run of a program, stored beside its report as `NAME.unprofiled.json`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from rooflens.checking import parse_json
from rooflens.files import read_text, write_whole
from rooflens.ingest.reports.unpacking import sidecar
from rooflens.model.unprofiled import SOURCES, GapsAfter, LaunchCount, Shape, Unprofiled

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.checking import CheckedTable

_SCHEMA_VERSION = 1


def write_unprofiled(report: Path, unprofiled: Unprofiled) -> Path:
    """Store an un-profiled run beside its report."""
    path = sidecar(report)
    values = {"schema_version": _SCHEMA_VERSION, **asdict(unprofiled), "gap_share": unprofiled.gap_share}
    write_whole(path, json.dumps(values, indent=2) + "\n")
    return path


def read_unprofiled(report: Path) -> Unprofiled | None:
    """Return the un-profiled run stored beside a report; None if there is no file.

    Raises:
        InputError: The file is not a valid record.
    """
    path = sidecar(report)
    if not os.path.lexists(path):
        return None
    what, hint = f"`{path}` is not a record of an un-profiled run", "delete it, or collect again"
    document = parse_json(read_text(path, hint, is_named=False), what, hint)
    later = ("gaps_after", "cublas_ns", "cold_ns", "overlap_ns", "gpu")
    names = {field.name for field in fields(Unprofiled)} - set(later)
    document.check_keys(("schema_version", "gap_share", *names), later)
    wall_ns, kernel_ns, launches = (
        None if document.values[key] is None else document.count(key, zero=True)
        for key in ("wall_ns", "kernel_ns", "launches")
    )
    return Unprofiled(
        wall_ns=wall_ns,
        kernel_ns=kernel_ns,
        launches=launches,
        source=document.one_of("source", SOURCES),
        iterations=document.count("iterations"),
        launch_counts=tuple(_launch_count(table) for table in document.tables("launch_counts")),
        gaps_after=tuple(_gaps_after(table) for table in document.tables("gaps_after"))
        if "gaps_after" in document
        else (),
        cublas_ns=_optional_count(document, "cublas_ns"),
        overlap_ns=_optional_count(document, "overlap_ns"),
        gpu=_optional_text(document, "gpu"),
        cold_ns=_optional_count(document, "cold_ns"),
    )


def _launch_count(table: CheckedTable) -> LaunchCount:
    times, texts = ("time_ns", "gap_ns", "low_ns", "high_ns", "total_ns"), ("nvtx_range", "operator", "module", "code")
    table.check_keys(("name", "grid", "block", "count"), (*times, "streams", *texts))
    return LaunchCount(
        table.text("name"),
        _shape_of_key(table, "grid"),
        _shape_of_key(table, "block"),
        table.count("count"),
        time_ns=_optional_count(table, "time_ns"),
        gap_ns=_optional_count(table, "gap_ns"),
        low_ns=_optional_count(table, "low_ns"),
        high_ns=_optional_count(table, "high_ns"),
        total_ns=_optional_count(table, "total_ns"),
        streams=tuple(table.values.get("streams") or ()),
        nvtx_range=_optional_text(table, "nvtx_range"),
        operator=_optional_text(table, "operator"),
        module=_optional_text(table, "module"),
        code=_optional_text(table, "code"),
    )


def _shape_of_key(table: CheckedTable, key: str) -> Shape:
    if table.values[key] is None:
        return None
    x, y, z = table.counts(key, 3)
    return x, y, z


def _gaps_after(table: CheckedTable) -> GapsAfter:
    table.check_keys(("name", "count", "gap_ns"))
    name = None if table.values["name"] is None else table.text("name")
    return GapsAfter(name, table.count("count"), table.count("gap_ns", zero=True))


def _optional_count(table: CheckedTable, key: str) -> int | None:
    return None if table.values.get(key) is None else table.count(key, zero=True)


def _optional_text(table: CheckedTable, key: str) -> str | None:
    return None if table.values.get(key) is None else table.text(key)
