"""A word changed where it is made changes in every face: terminal, Markdown, JSON, page, digest, MCP and notebook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

import rooflens as rl
from rooflens.analyzing import analyze_paths
from rooflens.mcp.answers import Answers
from rooflens.mcp.root import Root
from rooflens.model.findings import find
from rooflens.report import notebook
from rooflens.report.kernel.document import KernelView, kernel_document
from rooflens.report.words import gain_and_limit, headline
from rooflens.report.writers.markdown import to_markdown
from rooflens.report.writers.terminal import to_terminal
from rooflens.writing.answers import of_kernels
from rooflens.writing.rendering import Expected, of_report

NEW = "zweifellos"
"""A word that nothing of ours says."""


@pytest.fixture
def reports(fixtures: Path) -> Path:
    """Return a folder of reports."""
    return fixtures / "published"


def faces(reports: Path) -> Mapping[str, str]:
    """Write every face of one report."""
    file = reports / "GPU_workshop__MW_Baseline.ncu-rep"
    found = analyze_paths([file])
    answer = of_kernels(found)
    return {
        "terminal": to_terminal(answer.shown(), 200),
        "Markdown": to_markdown(answer.document()),
        "JSON": answer.text("json"),
        "digest": answer.text("digest"),
        "page": of_report(found, "MW", Expected()).text("html"),
        "MCP": Answers(Root(reports)).open_report(file.name).text,
        "notebook": rl.open(file)._repr_html_(),
    }


def lacking(reports: Path) -> list[str]:
    """Name the faces that do not say the new word."""
    return [name for name, text in faces(reports).items() if NEW not in text]


def test_no_face_says_it_by_itself(reports: Path) -> None:
    """The word that the other tests look for stands nowhere before."""
    assert [name for name, text in faces(reports).items() if NEW in text] == []


def test_a_word_of_a_headline_is_made_in_one_place(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time after a move is worded by the headline's grammar alone."""
    monkeypatch.setattr(headline.Wins, "said", lambda _: iter([NEW]))
    assert lacking(reports) == []


def test_a_word_of_a_gain_is_made_in_one_place(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How sure a gain is, is said by one function, in headlines, rows and sentences."""
    monkeypatch.setattr(gain_and_limit, "gain_how", lambda _: NEW)
    monkeypatch.setattr(headline, "gain_how", lambda _: NEW)
    assert lacking(reports) == []


def test_a_word_of_a_finding_is_made_in_one_place(
    reports: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A finding has its title from its rule, in every face of its kernel."""
    file = reports / "GPU_workshop__MW_Baseline.ncu-rep"
    (rule,) = (one for one in find.CAUSES if one.id == "fp64_divisions")
    monkeypatch.setattr(find, "CAUSES", tuple(replace(one, title=NEW) if one is rule else one for one in find.CAUSES))
    find._that_can_tell.cache_clear()
    request.addfinalizer(find._that_can_tell.cache_clear)
    found = analyze_paths([file])
    (report,) = found.reports
    analysis = next(one for one in report.analyses if any(each.id == rule.id for each in one.findings))
    view = KernelView(report, analysis)
    (kernel,) = (one for one in rl.open(file) if one.key == analysis.key)
    texts = {
        "terminal": to_terminal(kernel_document(view), 200),
        "Markdown": kernel.explain(),
        "JSON": of_kernels(found).text("json"),
        "page": of_report(found, "MW", Expected()).text("html"),
        "MCP": Answers(Root(reports)).explain_kernel(file.name, analysis.key).text,
        "notebook": notebook.finding_html(next(one for one in analysis.findings if one.id == rule.id)),
    }
    assert [name for name, text in texts.items() if NEW not in text] == []
