"""What the model says is facts: sentences stand in `rooflens/report/words`, but for the places that are listed here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import rooflens

MODEL = Path(rooflens.__file__).parent / "model"

_OF_A_MOVE = "a move and its title are written with their numbers by the rule that finds them, one place for a finding"
_WHY_NOT = "why something cannot be told, or what a row was worked out from, beside the number that it explains"
_METRICS = "the formula or the metrics that a number comes from, for whoever checks it"
_SKETCH = "notes and sketches of an edit, made by the rule that knows the statement"
_OF_CHANGES = "what changed between two recordings and why: to leave as a change gets kinds"
_OF_PREDICTIONS = "what explains the difference to a prediction: to leave as a gap gets kinds"

HELD: dict[str, str] = {
    "findings": _OF_A_MOVE,
    "verdict/advice.py": _OF_A_MOVE,
    "verdict/collecting.py": _OF_A_MOVE,
    "verdict/decide.py": _OF_A_MOVE,
    "verdict/library.py": _OF_A_MOVE,
    "verdict/pipelined.py": _OF_A_MOVE,
    "ranking.py": _OF_A_MOVE,
    "program/call.py": _OF_A_MOVE,
    "verdict/limit.py": _WHY_NOT,
    "same_work.py": _WHY_NOT,
    "failed.py": _WHY_NOT,
    "inside": _WHY_NOT,
    "program": _WHY_NOT,
    "printed.py": _WHY_NOT,
    "store": _WHY_NOT,
    "source/same.py": _WHY_NOT,
    "source": _SKETCH,
    "counters": _METRICS,
    "roofline": _METRICS,
    "records.py": _METRICS,
    "about.py": "what a page of the explanations lists",
    "compare": _OF_CHANGES,
    "predict": _OF_PREDICTIONS,
}
"""File or folder of the model -> why f-strings of four words or more stand in it."""

_WORD = re.compile(r"[A-Za-z][a-z']+")


def _sentences(path: Path) -> list[str]:
    """Return the f-strings of four words or more, but those of errors."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    raised = {id(node) for stop in ast.walk(tree) if isinstance(stop, ast.Raise) for node in ast.walk(stop)}
    inner = {id(node) for value in ast.walk(tree) if isinstance(value, ast.FormattedValue) for node in ast.walk(value)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or id(node) in raised | inner:
            continue
        texts = (part.value for part in node.values if isinstance(part, ast.Constant))
        if len(_WORD.findall(" ".join(map(str, texts)))) >= 4:
            found.append(f"{path.relative_to(MODEL).as_posix()}:{node.lineno}")
    return found


def test_sentences_stand_in_the_words_of_the_report() -> None:
    """No f-string of four words or more is in a file that is not listed, and no file is listed in vain."""
    found = [one for path in sorted(MODEL.rglob("*.py")) for one in _sentences(path)]
    assert [one for one in found if not any(one.startswith((f"{held}/", f"{held}:")) for held in HELD)] == []
    assert [held for held in HELD if not any(one.startswith((f"{held}/", f"{held}:")) for one in found)] == []
    assert not any(one.startswith(("verdict/done.py", "summary.py", "analyze.py", "catalogue.py")) for one in found)
