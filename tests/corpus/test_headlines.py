"""The headlines of everything at hand: each report and export alone, and each folder."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import pytest

from rooflens.analyzing import analyze_paths
from rooflens.model.records import AnalyzedReport
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.overview.headline import headline
from rooflens.report.words.headline import MOST_WORDS, closes

MOST_SIDES = 40
"""Reports of one page; larger folders hold strangers."""

_THAN = re.compile(r"(?<!faster)(?<!slower)(?<!fewer)(?<!more) than")
_CUT = re.compile(r"[(:;,]$|[.;:,] ?[.;:]|\(\W*\)")


@pytest.fixture(scope="module")
def headlines(published: Sequence[AnalyzedReport], fixtures: Path) -> dict[str, str]:
    """Write the headline of each report, and of each folder of several."""
    reports = [*published, *analyze_paths([fixtures]).reports]
    folders: defaultdict[str, list[AnalyzedReport]] = defaultdict(list)
    for report in reports:
        folders[str(PurePath(report.run.source).parent)].append(report)
    every = {report.run.source: [report] for report in reports}
    every |= {f"{folder}/": own for folder, own in folders.items() if 1 < len(own) <= MOST_SIDES}
    return {
        name: headline(build_content(own, name, default_thresholds())).text.replace("\u00a0", " ")
        for name, own in every.items()
    }


def _offences(text: str) -> Iterator[str]:
    if len(text.split()) > MOST_WORDS:
        yield "too long"
    if not closes(text):
        yield "a bracket is left open"
    if _THAN.search(text):
        yield "nothing is compared"
    if _CUT.search(text) or "`" in text:
        yield "cut out of a sentence"


def test_headlines_are_short_and_whole(headlines: dict[str, str]) -> None:
    """At most 16 words, brackets that close, no `than` without a comparison, nothing cut out of a sentence."""
    found = [(name, why, text) for name, text in headlines.items() for why in _offences(text)]
    assert len(headlines) > 100
    assert found == []
