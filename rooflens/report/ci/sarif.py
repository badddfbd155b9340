"""SARIF 2.1.0 (OASIS): the findings that stand at lines of the code, as code scanning and editors read them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from rooflens import __version__
from rooflens.format import cut_name, percent, plain_name, printable, sentence_case
from rooflens.model.knowledge.items import find_item
from rooflens.model.records import Analysis, Finding, Place, Severity
from rooflens.report.ci.places import in_checkout, outside_words
from rooflens.report.data import json_text
from rooflens.report.findings import shown
from rooflens.report.writers.markdown import prose

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
"""What the root of the checkout is called in addresses."""

NAME_WIDTH = 100

_LEVELS: Mapping[Severity, tuple[Literal["fail", "informational"], Literal["warning", "note", "none"]]] = {
    "limiter": ("fail", "warning"),
    "contributes": ("fail", "note"),
    "note": ("informational", "none"),
}
"""Severity -> kind and level. None is an error: code that is slow is not wrong, and code scanning blocks on errors."""

_LEAST_SHARE = 0.01
"""A kernel that takes less of its report's GPU time warns of nothing: no change of it would be noticed."""


def to_sarif(analyses: Iterable[Analysis], root: Path) -> tuple[str, str]:
    """Write one result for each finding with a line in the checkout, at its worst one; its other lines are related.

    Args:
        analyses: Kernels, in any order.
        root: The checkout, from which its files are named.

    Returns:
        The document, and what was left out as its files are not in the checkout, in words.
    """
    analyses = tuple(analyses)
    whole_ns: defaultdict[str, float] = defaultdict(float)
    for analysis in analyses:
        whole_ns[analysis.kernel.digest] += analysis.gpu_time_ns or 0.0
    found, outside = [], []
    for analysis in analyses:
        for finding in analysis.findings:
            lines = [place for place in finding.where if place.hotspot.file and place.hotspot.line]
            if here := [place for place in lines if in_checkout(place.hotspot.file or "", root)]:
                found.append((analysis, finding, here))
            elif lines:
                outside.append(lines[0].hotspot.file or "")
    titles = {finding.id: finding.title for _, finding, _ in found}
    rules = {identifier: number for number, identifier in enumerate(titles)}
    document = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "rooflens",
                        "version": __version__,
                        "rules": [_rule(*one) for one in titles.items()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the checkout."}}},
                "results": [
                    _result(*one, rules=rules, root=root, whole_ns=whole_ns[one[0].kernel.digest]) for one in found
                ],
            }
        ],
    }
    return json_text(document), outside_words(outside, root, "finding", "left out")


def _rule(identifier: str, title: str) -> dict[str, Any]:
    short, item = sentence_case(title), find_item("findings", identifier)
    doc = " ".join(filter(None, (item.meaning, item.counters, item.confirm, item.blind))) if item else short
    more = f"`rooflens about {identifier}`"
    return {
        "id": identifier,
        "name": "".join(part.capitalize() for part in identifier.split("_")),
        "shortDescription": {"text": _message(short)},
        "fullDescription": {"text": _message(f"{doc.partition('. ')[0].removesuffix('.')}.")},
        "help": {"text": _message(f"{doc} See {more}."), "markdown": f"{prose(doc)}\n\nMore: {more}"},
        "properties": {"tags": ["performance", "gpu"]},
    }


def _result(  # noqa: PLR0913 - a result says all of these
    analysis: Analysis,
    finding: Finding,
    lines: Sequence[Place],
    *,
    rules: Mapping[str, int],
    root: Path,
    whole_ns: float,
) -> dict[str, Any]:
    kind, level = _LEVELS[finding.severity]
    if level == "warning" and (analysis.gpu_time_ns or 0.0) < _LEAST_SHARE * whole_ns:
        level = "note"
    worst, *others = lines
    result = {
        "ruleId": finding.id,
        "ruleIndex": rules[finding.id],
        "kind": kind,
        "level": level,
        "message": {"text": _message(_text(analysis, finding, worst))},
        "locations": [_location(worst, root, analysis)],
        "partialFingerprints": {"rooflens/v1": _fingerprint(analysis, finding, worst, root)},
        "properties": {
            "severity": finding.severity,
            "confidence": finding.confidence,
            "gain": finding.gain.factor if finding.gain else None,
            "kernel": printable(analysis.kernel.name),
            "gpu": analysis.kernel.gpu,
            "report": analysis.kernel.source,
            "index": analysis.kernel.index,
        },
    }
    if others:
        related = [_location(place, root) for place in others]
        for number, (location, place) in enumerate(zip(related, others, strict=True)):
            location |= {"id": number, "message": {"text": f"{percent(place.share)} of it"}}
        result["relatedLocations"] = related
    return result


def _text(analysis: Analysis, finding: Finding, worst: Place) -> str:
    said = shown(finding)
    gain = f", gain {said.gain}" if said.gain else ""
    kernel = cut_name(plain_name(analysis.kernel.name), NAME_WIDTH)
    return f"{kernel}: {said.name}{gain}; {percent(worst.share)} of it at this line. {sentence_case(said.move)}."


def _location(place: Place, root: Path, analysis: Analysis | None = None) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {
                "uri": quote(in_checkout(place.hotspot.file or "", root) or "", "/", errors="replace"),
                "uriBaseId": ROOT,
            },
            "region": {"startLine": place.hotspot.line},
        }
    }
    if analysis is not None:
        name = printable(analysis.kernel.function_name)
        location["logicalLocations"] = [{"name": name, "kind": "function"}]
    return location


def _fingerprint(analysis: Analysis, finding: Finding, worst: Place, root: Path) -> str:
    """Tell a finding that stays from a new one: lines move, and numbers of a kernel's template arguments do not."""
    hotspot = worst.hotspot
    file = in_checkout(hotspot.file or "", root) or hotspot.file
    parts = (finding.id, analysis.kernel.function_name, file, hotspot.text or str(hotspot.line))
    return hashlib.sha256("\n".join(part or "" for part in parts).encode("utf-8", "replace")).hexdigest()


def _message(text: str) -> str:
    """Escape a plain message: brackets would be a link in it, and braces a placeholder."""
    text = printable(text).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return text.replace("{", "{{").replace("}", "}}")
