"""The tutorials' exercises are solved by the model answers only."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

EXERCISES = Path(__file__).parent.parent / "docs" / "tutorials" / "exercises"
NAMES = sorted(path.stem for path in (EXERCISES / "solution").glob("*.py"))


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tests(name: str, answer: Path, patch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """Return an exercise's tests, which import `answer` under the exercise's name."""
    patch.setitem(sys.modules, name, _load(answer, name))
    module = _load(EXERCISES / f"test_{name}.py", f"exercise_{name}")
    return [value for key, value in vars(module).items() if key.startswith("test_")]


@pytest.mark.parametrize("name", NAMES)
def test_the_model_answer_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests of an exercise pass with its model answer."""
    tests = _tests(name, EXERCISES / "solution" / f"{name}.py", monkeypatch)
    assert len(tests) > 5
    for test in tests:
        test()


@pytest.mark.parametrize("name", NAMES)
def test_the_unsolved_exercise_passes_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test of an exercise passes before the file is filled in."""
    for test in _tests(name, EXERCISES / f"{name}.py", monkeypatch):
        with pytest.raises(NotImplementedError):
            test()


def test_every_exercise_is_on_the_page_of_exercises() -> None:
    """Each model answer has its file to fill in and its tests, and the exercises' page names both."""
    listed = (EXERCISES / "index.md").read_text(encoding="utf-8")
    assert len(NAMES) == 3
    for name in NAMES:
        assert all((EXERCISES / file).is_file() for file in (f"{name}.py", f"test_{name}.py"))
        assert f"({name}.py)" in listed
        assert f"test_{name}.py" in listed
