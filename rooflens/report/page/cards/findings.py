"""Findings of a card: what costs time, why, where and what to do; then what is true and costs none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.about.pages import every_page
from rooflens.report.labels import evidence_words, place_label

if TYPE_CHECKING:
    from rooflens.model.records import Analysis, Finding, Hotspot, Place

CODE_WIDTH = 100
"""Characters of a source line or an instruction at most."""


class ShownPlace(Struct, frozen=True):
    """Where a finding stands.

    Attributes:
        share: Part of what the finding is about that is there, in words.
        code: The source line where the report embeds it, else the instruction; empty where it has neither.
    """

    label: str
    share: str
    code: str


class ShownFinding(Struct, frozen=True):
    """One finding in words.

    Attributes:
        name: Its title as it stands within a sentence.
        about: Name of its explanation on the page; empty where it has none.
        gain: `up to 1.4x`; empty where it cannot be bounded.
        doubt: How sure it is, where it is not quite.
    """

    title: str
    name: str
    about: str
    gain: str
    doubt: str
    evidence: tuple[str, ...]
    move: str
    places: tuple[ShownPlace, ...]


class Findings(Struct, frozen=True):
    """What costs time, dearest first, and notes."""

    costing: tuple[ShownFinding, ...]
    notes: tuple[ShownFinding, ...]


def findings(analysis: Analysis) -> Findings:
    """Put the findings of a kernel into words."""
    costing = tuple(_shown(finding) for finding in analysis.findings if finding.severity != "note")
    notes = tuple(_shown(finding) for finding in analysis.findings if finding.severity == "note")
    return Findings(costing, notes)


def has_costing(analysis: Analysis) -> bool:
    """Tell whether a kernel has findings that cost time: their moves stand instead of those of its class."""
    return any(finding.severity != "note" for finding in analysis.findings)


def code_of(hotspot: Hotspot) -> str:
    """Return the source line of a place, else its instruction, on one line and cut."""
    code = " ".join((hotspot.text or hotspot.sass or "").split())
    return code if len(code) <= CODE_WIDTH else f"{code[: CODE_WIDTH - 1]}…"


def _shown(finding: Finding) -> ShownFinding:
    gain = finding.speedup_up_to
    return ShownFinding(
        title=fmt.sentence_case(finding.title),
        name=finding.title,
        about=finding.id if f"findings/{finding.id}" in every_page() else "",
        gain="" if gain is None else f"up to {fmt.factor(gain)}",
        doubt="" if finding.confidence == "high" else f"confidence {finding.confidence}",
        evidence=tuple(evidence_words(evidence) for evidence in finding.evidence),
        move=finding.move,
        places=tuple(_place(place) for place in finding.where),
    )


def _place(place: Place) -> ShownPlace:
    return ShownPlace(place_label(place.hotspot), fmt.percent(place.share), code_of(place.hotspot))
