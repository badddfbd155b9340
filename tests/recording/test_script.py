from __future__ import annotations

import os
from pathlib import Path

import pytest
import script

from rooflens.errors import UsageError


def test_nothing_begins_after_the_time() -> None:
    """A budget of zero seconds is spent at once, an unlimited one never."""
    assert script.Budget(-1.0).is_spent
    assert not script.Budget(1e9).is_spent
    assert not script.Budget(None).is_spent


def test_an_error_is_told_as_the_commands_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Message and hint go to stderr, and the exit code is the error's own."""
    assert script.tell(UsageError("no such step", "the steps are: a")) == 2
    assert capsys.readouterr().err == "error: no such step\n\nhint: the steps are: a\n"


def test_programs_find_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkout precedes the existing entries of PYTHONPATH."""
    monkeypatch.setenv("PYTHONPATH", "/mine")
    script.lend_package()
    checkout, mine = os.environ["PYTHONPATH"].split(os.pathsep)
    assert (Path(checkout) / "rooflens" / "errors.py").is_file()
    assert mine == "/mine"
