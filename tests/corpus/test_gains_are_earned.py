"""A gain is our own figure supported by counters: none of a finding of low confidence, none from NVIDIA's estimates."""

from __future__ import annotations

import csv
from pathlib import Path

from rooflens.model.findings.nvidia import NVIDIA_RULE
from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.model.verdict.collecting import not_profiled

_FEWEST = 31
"""Boundable pairs, of 68, whose slower kernel keeps a gain at medium or high confidence; 49 when this was written."""
_WITHIN, _PART = 2.0, 0.6
"""A gain is within this factor of what was reached, for this part of the pairs in which one thing changed."""
_IN_VAIN = {"coalesce", "pad", "spill", "divergence", "shape"}
"""Kinds of moves that end work in vain, which is too much whatever limits the kernel."""


def test_no_gain_stands_at_low_confidence_or_is_nvidias(published: list[AnalyzedReport]) -> None:
    """No move has a gain if its finding only hints at the waste, and NVIDIA's estimate remains NVIDIA's."""
    offenders = []
    for report in published:
        for analysis in report.analyses:
            sure = {finding.id: finding.confidence for finding in analysis.findings}
            moves = [(move.finding, move.gain) for move in analysis.verdict.moves]
            findings = [(finding.id, finding.gain) for finding in analysis.findings]
            for name, gain in (*moves, *findings):
                if gain is not None and (sure.get(name or "") == "low" or name == NVIDIA_RULE):
                    offenders.append((report.run.source[-40:], name, gain.factor))
    assert not offenders, (len(offenders), offenders[:5])


def test_the_first_move_of_an_unknown_kernel_collects(published: list[AnalyzedReport]) -> None:
    """If nothing tells what limits a kernel, the first move collects what would; only known waste goes before it."""
    offenders = []
    for report in published:
        for analysis in report.analyses:
            can_collect = not_profiled(analysis.kernel.compute_capability) is None  # else nothing more can be had
            if analysis.verdict.bound == "unknown" and not analysis.kernel.failed and can_collect:
                first = next((move for move in analysis.verdict.moves if move.kind not in _IN_VAIN), None)
                if first is None or first.kind != "collect":
                    offenders.append((report.run.source[-40:], first and first.text[:80]))
    assert not offenders, (len(offenders), offenders[:5])


def test_sure_gains_come_near_what_was_reached(corpus: Path, published: list[AnalyzedReport]) -> None:
    """Most pairs keep a gain; if a single thing changed, most are within a factor of two of the outcome."""
    root = corpus.parent / "outcomes"
    by_place: dict[tuple[str, int], Analysis] = {
        (report.run.source, analysis.kernel.index): analysis for report in published for analysis in report.analyses
    }
    with (root / "siblings_all.tsv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["boundable"] == "y"]
    kept, near = 0, []
    for row in rows:
        verdict = by_place[str(root / "reports" / row["path"]), int(row["index"])].verdict
        if verdict.gain is None or verdict.confidence == "low":
            continue
        kept += 1
        if row["single"]:
            off = verdict.gain.factor / float(row["actual"])
            near.append(1 / _WITHIN <= off <= _WITHIN)
    assert kept >= _FEWEST, (kept, len(rows))
    assert sum(near) >= _PART * len(near) > 0, (sum(near), len(near))
