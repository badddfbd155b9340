"""What decides which tests have nothing new to find, and writes down what they passed with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import unchanged
from support.loops import for_all

KEY = "tests/test_a.py sources notes.md"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with a file of tests, a folder of sources and a page."""
    for name in ("tests/test_a.py", "sources/one.cu", "sources/deep/two.cu", "notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(unchanged, "ROOT", tmp_path)
    monkeypatch.setattr(unchanged, "PASSED", tmp_path / "tests" / "passed.sha256")
    monkeypatch.delenv(unchanged.THOROUGH, raising=False)
    return tmp_path


def finish(*outcomes: str, chosen: str = "", stopped: bool = False) -> None:
    """End a session of one file of tests, whose tests ended so."""
    unchanged._line.cache_clear()
    passed = unchanged.Passed()
    for outcome in outcomes:
        passed.pytest_runtest_logreport(_report(outcome))
    options = SimpleNamespace(keyword=chosen, markexpr="")
    config = SimpleNamespace(option=options, args=["tests"])
    session: Any = SimpleNamespace(config=config, shouldfail=stopped, shouldstop=False)
    passed.pytest_sessionfinish(session)


def _report(outcome: str) -> Any:
    return SimpleNamespace(outcome=outcome, user_properties=[("if_changed", KEY), ("other", "x")])


def is_due(house: Path) -> bool:
    """Ask whether the tests are due."""
    unchanged._line.cache_clear()
    return unchanged.is_due(house / "tests" / "test_a.py", KEY.split()[1:])


def test_tests_run_until_they_passed_and_again_after_any_change(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed, a new, a removed and a renamed file each make them due; so does a run of all tests."""
    assert is_due(house)
    finish("passed", "passed")
    assert not is_due(house)
    deep, page = house / "sources" / "deep" / "two.cu", house / "notes.md"
    changes: list[tuple[Callable[[], object], Callable[[], object]]] = [
        (lambda: page.write_text("other"), lambda: page.write_text("notes.md")),
        (lambda: deep.rename(deep.with_name("three.cu")), lambda: deep.with_name("three.cu").rename(deep)),
        ((house / "sources" / "new.toml").touch, (house / "sources" / "new.toml").unlink),
        (deep.unlink, lambda: deep.write_text("sources/deep/two.cu")),
    ]
    for change, back in changes:
        change()
        assert is_due(house)
        back()
        assert not is_due(house)
    monkeypatch.setenv(unchanged.THOROUGH, "1")
    assert is_due(house)


@for_all(
    "outcomes, more",
    [
        (("passed", "failed"), {}),
        (("passed", "skipped"), {}),
        (("passed",), {"chosen": "one"}),
        (("passed",), {"stopped": True}),
        ((), {}),
    ],
)
def test_what_did_not_pass_whole_is_not_written(house: Path, outcomes: tuple[str, ...], more: dict[str, Any]) -> None:
    """A failure, a test that lacked its tool, a part of a file, a run broken off: the tests stay due."""
    finish(*outcomes, **more)
    assert is_due(house)


def test_two_branches_may_be_merged_by_keeping_all_lines(house: Path) -> None:
    """Any line that fits the files counts; the next run that passes keeps one."""
    file = house / "tests" / "passed.sha256"
    finish("passed")
    mine = file.read_text()
    file.write_text(f"{'0' * 64}  {KEY}\n{mine}{'1' * 64}  tests/test_b.py other\n")
    assert not is_due(house)
    finish("passed")
    assert file.read_text() == f"{mine}{'1' * 64}  tests/test_b.py other\n"
