"""Findings, changes and forecasts are each put into words in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import rooflens

PACKAGE = Path(rooflens.__file__).parent

PLACES = {
    "x faster": "report/words/change.py",
    "not compared, ": "report/words/change.py",
    "no change beyond noise": "report/words/change.py",
    "undoing it: ": "report/words/change.py",
    "-bound from ": "report/words/forecast.py",
    "tuned kernels take ": "model/predict/published.py",
}
"""Words that only a change or a forecast is told in -> the one file that holds them."""


def test_words_of_changes_and_forecasts_stand_in_one_file() -> None:
    """No other file of the package builds a sentence with them."""
    found: dict[str, set[str]] = {words: set() for words in PLACES}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                texts = [part.value for part in node.values if isinstance(part, ast.Constant)]
                for words in PLACES:
                    if any(isinstance(text, str) and words in text for text in texts):
                        found[words].add(path.relative_to(PACKAGE).as_posix())
    assert {words: sorted(files) for words, files in found.items()} == {words: [file] for words, file in PLACES.items()}


def test_a_finding_is_put_into_words_by_one_function() -> None:
    """Only `report/words/findings.py` makes the words of a finding in cards, texts and Markdown."""
    makers = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "ShownFinding(" in path.read_text(encoding="utf-8").replace("class ShownFinding(", "")
    ]
    assert makers == ["report/words/findings.py"]
