"""A unit is named with its own per cent, in every form of every report: never with another unit's."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.errors import InputError
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, Level, Pipe

pytestmark = pytest.mark.corpus

_ROUNDED = 0.005
_RELATIVE = 0.02
"""Shares of the run made from printed shares of active cycles, clocks and cycles."""
_NAMED_BY_WORK = frozenset({"smem", "fp32", "fp64"})
"""What a full pipe or L1's data stage is called after, where most of what fills it is this."""


def misnamed(analysis: Analysis) -> str:
    """Say which unit is named with another per cent than its own, or has none of its own; empty where none is."""
    bottleneck = analysis.verdict.bottleneck
    name = bottleneck.resource if bottleneck else None
    if bottleneck is None or name is None or name in _NAMED_BY_WORK or name.startswith("tensor_"):
        return ""
    place: Level | Pipe | None = analysis.levels.get(name) or analysis.pipes.get(name)
    own = place.share if place else None
    if own is None and name in {"dram", "issue"}:  # lower bounds, by bytes or by instructions that were counted
        return ""
    if own is None or abs(bottleneck.share - own) > _ROUNDED + _RELATIVE * own:
        return f"{analysis.kernel.source} {analysis.kernel.index}: {name} {bottleneck.share:.3f}, its own {own}"
    return ""


def test_no_unit_has_another_units_per_cent(corpus: Path, analyses: list[Analysis]) -> None:
    """Of reports, and of what ncu prints of them where that is at hand."""
    printed = []
    for path in sorted((corpus.parent / "outcomes" / "printed").rglob("*.txt")):
        try:
            printed += [analyze(kernel) for kernel in read_report(path, path.name, ReadOptions()).kernels]
        except InputError:  # a text with no share of a peak
            continue
    wrong = [said for analysis in (*analyses, *printed) if (said := misnamed(analysis))]
    assert analyses
    assert wrong == []
