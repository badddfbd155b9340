from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import pytest

from rooflens.ingest.load import Loaded
from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.overview.document import OverviewRequest, overview
from rooflens.report.overview.kernels import LEGEND
from rooflens.report.words.gain_and_limit import gain_words, limit_factor_words
from rooflens.report.words.labels import evidence_words
from rooflens.report.words.verdict import evidence_lines, verdict_sentence
from rooflens.report.writers.markdown import to_markdown
from rooflens.report.writers.terminal import to_terminal

AVOIDED = (
    r"time is lost",
    r"[0-9] [nµm]?s lost",
    r"to the busiest unit's peak",
    r"at a roof already",
    r"can be ranked",
    r"fixed instruction latency",
    r"eligible warps a cycle",
    r"issue slots",
    r"balanced(-bound)? at ",
    r"\bleader\b",
    r"nearest limiter",
    r"read with care",
    r"change side",
    r"what if another",
    r"falling difference",
    r"as fast as before",
    r"single sample",
    r"(registers|elements|several|FLOP) a (thread|byte)\b",
    r"\b1\.0x faster",
)
"""What no output says, as patterns: words of ours that the field has better ones for."""


def said(analysis: Analysis) -> Iterator[str]:
    """Yield every sentence about a kernel."""
    verdict = analysis.verdict
    yield verdict_sentence(analysis)
    yield limit_factor_words(analysis)
    yield from (gain_words(move.gain, analysis.kernel.duration_ns) for move in verdict.moves)
    yield from (*evidence_lines(analysis), *verdict.advice, verdict.cause or "")
    for finding in analysis.findings:
        yield from (finding.title, finding.move, *(evidence_words(number) for number in finding.evidence))


def printed(content: Content, width: int) -> str:
    """Print what a terminal of this width shows."""
    return to_terminal(overview(content, "terminal", OverviewRequest(place=("x",))), width) + "\n".join(LEGEND)


def outputs(report: AnalyzedReport) -> str:
    """Write all outputs about a report except the page."""
    content = build_content([report], "report", default_thresholds())
    sentences = "\n".join(text for analysis in report.analyses for text in said(analysis))
    return "\n".join((sentences, printed(content, 200), to_markdown(overview(content, "file"))))


@pytest.fixture(scope="module")
def analyzed(loaded: Loaded, analyses: list[Analysis]) -> list[AnalyzedReport]:
    """Collect the analyses into their reports."""
    rest = iter(analyses)
    return [AnalyzedReport(run, tuple(islice(rest, len(kernels)))) for run, kernels in loaded.reports]


@pytest.fixture(scope="module")
def texts(analyzed: list[AnalyzedReport]) -> dict[str, str]:
    """Return all texts about each report, without NVIDIA's own words."""
    return {report.run.source: re.sub(r"NVIDIA('s rule)?[ :][^\n]*", "", outputs(report)) for report in analyzed}


@pytest.mark.parametrize("phrase", AVOIDED)
def test_words_that_the_field_does_not_use_are_not_said(texts: dict[str, str], phrase: str) -> None:
    """No sentence, table or Markdown of the corpus contains a word of ours for which the field has a better one."""
    found = {source: hit[0] for source, text in texts.items() if (hit := re.search(phrase, text, re.IGNORECASE))}
    assert found == {}


def test_dram_is_named_by_its_kind(texts: dict[str, str], analyzed: list[AnalyzedReport]) -> None:
    """No output calls GDDR memory HBM."""
    for report in analyzed:
        sheets = [datasheet_of(analysis.kernel.gpu) for analysis in report.analyses]
        kinds = [sheet.memory_kind for sheet in sheets if sheet is not None]
        if len(kinds) == len(sheets) and not any(kind is None or kind.startswith("HBM") for kind in kinds):
            assert "HBM" not in re.sub(r"`[^`]*`", "", texts[report.run.source])
