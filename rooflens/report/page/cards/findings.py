"""Findings of a card: what costs time, why, where and what to do; then what is true and costs none."""

from __future__ import annotations

from msgspec import Struct

from rooflens.model.records import Analysis
from rooflens.report.findings import ShownFinding, shown


class Findings(Struct, frozen=True):
    """What costs time, dearest first, and notes."""

    costing: tuple[ShownFinding, ...]
    notes: tuple[ShownFinding, ...]


def findings(analysis: Analysis) -> Findings:
    """Put the findings of a kernel into words."""
    costing = tuple(shown(finding) for finding in analysis.findings if finding.severity != "note")
    notes = tuple(shown(finding) for finding in analysis.findings if finding.severity == "note")
    return Findings(costing, notes)


def has_costing(analysis: Analysis) -> bool:
    """Return whether a kernel has findings that cost time: their moves replace those of its class."""
    return any(finding.severity != "note" for finding in analysis.findings)
