"""A word changed where it is made changes in every face: terminal, Markdown, JSON, page, digest, MCP and notebook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import rooflens as rl
from rooflens.analyzing import analyze_paths
from rooflens.mcp.answers import Answers
from rooflens.mcp.root import Root
from rooflens.model.verdict import sentences
from rooflens.report.words import headline
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
    monkeypatch.setattr(sentences, "gain_how", lambda _: NEW)
    monkeypatch.setattr(headline, "gain_how", lambda _: NEW)
    assert lacking(reports) == []
