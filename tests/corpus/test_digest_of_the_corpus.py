"""Check the length of digests of published reports, and that each has its required content."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

import pytest

from rooflens.ingest.load import Loaded
from rooflens.model.analyze import analyze
from rooflens.model.records import AnalyzedReport, timed
from rooflens.model.summary import identity
from rooflens.report.kernel.document import explain
from rooflens.report.text.digest import DEFAULT_TOKENS, digest, tokens_of


@pytest.fixture(scope="module")
def reports(loaded: Loaded) -> list[AnalyzedReport]:
    """Analyze every report of the corpus."""
    return [AnalyzedReport(run, tuple(map(analyze, kernels))) for run, kernels in loaded.reports]


@pytest.fixture(scope="module")
def single(reports: list[AnalyzedReport]) -> list[AnalyzedReport]:
    """Make a report of each kernel, with its launches."""
    found: list[AnalyzedReport] = []
    for report in reports:
        kernels = defaultdict(list)
        for analysis in timed(report.analyses):
            kernels[identity(analysis)].append(analysis)
        found += [AnalyzedReport(report.run, tuple(launches)) for launches in kernels.values()]
    return found


def test_a_kernel_takes_under_950_bytes_at_the_median(single: list[AnalyzedReport]) -> None:
    """A kernel's digest with heading and headline takes under 950 bytes at the median, 1,500 at most."""
    sizes = [len(digest([one]).encode()) for one in single]
    assert len(sizes) > 60
    assert median(sizes) < 950
    assert max(sizes) < 1500


def test_a_report_of_154_launches_takes_under_6_kb(reports: list[AnalyzedReport]) -> None:
    """The launches are those of five kernels, and all are in the digest."""
    (large,) = (report for report in reports if len(report.analyses) == 154)
    text = digest([large])
    assert len(text.encode()) < 6000
    assert "154 launches" in text
    assert "truncated" not in text


def test_no_digest_of_a_report_is_over_its_size(reports: list[AnalyzedReport]) -> None:
    """Each report, and all together, stay within the default size; of all together something is cut."""
    for report in reports:
        assert tokens_of(digest([report])) <= DEFAULT_TOKENS, report.run.source
    whole = digest(reports)
    assert tokens_of(whole) <= DEFAULT_TOKENS
    assert "truncated, " in whole


def test_a_digest_says_verdict_and_move_and_an_explanation_more(single: list[AnalyzedReport]) -> None:
    """Each kernel has a confidence and a move, and its explanation takes less than 10.5 kB."""
    for one in single:
        text = digest([one])
        assert "Class confidence: " in text
        assert "\n- try: " in text
        explained = explain(one, one.analyses[0])
        assert "## What to try, in this order" in explained
        assert len(explained.encode()) < 10_500


def test_the_line_and_the_move_of_a_known_kernel_are_first(reports: list[AnalyzedReport]) -> None:
    """The digest begins with a weather model's slow kernel, the line that NVIDIA marks, and the move: no divisions."""
    (report,) = (one for one in reports if one.run.source.endswith("MW_Baseline.ncu-rep"))
    first = digest([report]).partition("\n## 2.")[0]
    assert "## 1. `compute_tendencies_x_279_gpu`" in first
    assert "compute reciprocals once" in first
    assert "- hot: `miniWeather_mpi_openacc.F90:288`" in first
