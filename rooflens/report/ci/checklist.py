"""A checklist as text: the table of the terminal, and JSON."""

from __future__ import annotations

from typing import Any

from rooflens.format import MISSING, duration, percent
from rooflens.model.compare.checklist import Checklist, Climb, Point, point_name
from rooflens.report.data import json_text
from rooflens.report.document import Column, Document, Paragraph, Table

_COLUMNS = (
    Column("kernel", fit="name", least=20),
    Column("version", fit="name", worth=6),
    Column("runs", right=True, worth=4),
    Column("best", right=True, worth=8),
    Column("slowest / best rate", right=True, worth=3),
    Column("of its roof", right=True, worth=9),
    Column("roof"),
    Column("rating", worth=7),
)


def checklist_document(found: Checklist) -> Document:
    """Show a line for each kernel, and what each version or size gained over the one before."""
    climbs = tuple(_climb(climb) for climb in found.climbs if climb.gains)
    table = Table(_COLUMNS, tuple(map(_cells, found.points)))
    return (table, Paragraph(climbs)) if climbs else (table,)


def _cells(point: Point) -> tuple[str, ...]:
    return (
        point_name(point),
        point.version,
        f"{len(point.runs):,}",
        duration(point.best_ns),
        percent(point.stability) if len(point.runs) > 1 else MISSING,
        MISSING if point.share is None else percent(point.share),
        point.unit,
        point.rating or MISSING,
    )


def _climb(climb: Climb) -> str:
    steps = (f"{label} {signed(gain)}" for label, gain in zip(climb.labels[1:], climb.gains, strict=True))
    return f"{climb.of}: {climb.labels[0]}, {', '.join(steps)}"


def signed(gain: float) -> str:
    """Write a gain with its sign: `+12 %`, `-3.0 %`."""
    return f"{'-' if gain < 0 else '+'}{percent(abs(gain))}"


def to_json(found: Checklist) -> str:
    """Write all of it: shares and gains as fractions, times in nanoseconds; what was not measured is null."""
    return json_text(
        {
            "kernels": [_object(point) for point in found.points],
            "climbs": [{"of": one.of, "steps": list(one.labels), "gains": list(one.gains)} for one in found.climbs],
            "unmet": list(found.unmet),
        }
    )


def _object(point: Point) -> dict[str, Any]:
    return {
        "name": point.name,
        "gpu": point.gpu,
        "version": point.version,
        "runs": len(point.runs),
        "best_ns": point.best_ns,
        "slowest_over_best_rate": point.stability,
        "share_of_roof": point.share,
        "roof": point.unit,
        "rating": point.rating,
        "flop": point.flop,
        "unmet": list(point.unmet),
    }
