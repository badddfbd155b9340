"""What decides which tests have nothing new to find, and records what they passed with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import imports, unchanged
from support.loops import for_all

KEY = "tests/test_a.py sources notes.md"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with a file of tests, a folder of sources and a page."""
    for name in ("tests/test_a.py", "sources/one.cu", "sources/deep/two.cu", "notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(unchanged, "ROOT", tmp_path)
    monkeypatch.setattr(unchanged, "GPU", tmp_path / "nvidiactl")
    monkeypatch.setattr(unchanged, "PASSED", tmp_path / "tests" / "passed.sha256")
    monkeypatch.delenv(unchanged.THOROUGH, raising=False)
    return tmp_path


def finish(*outcomes: str, chosen: str = "", stopped: bool = False) -> None:
    """End a session in which a test file's tests had these results."""
    unchanged.forget()
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
    """Return whether the tests must run."""
    unchanged.forget()
    return unchanged.is_due(house / "tests" / "test_a.py", KEY.split()[1:])


def test_tests_run_until_they_passed_and_again_after_any_change(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed, new, removed or renamed file makes tests due; so do a full run and a GPU."""
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
    (house / "nvidiactl").touch()
    assert is_due(house)
    (house / "nvidiactl").unlink()
    monkeypatch.setenv(unchanged.THOROUGH, "1")
    assert is_due(house)


def test_reports_beside_the_repository_count_by_their_content(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are due if a file in their folder changed, appeared or vanished, or the folder is incomplete here."""
    reports = house.parent / f"{house.name}-reports"
    monkeypatch.setitem(unchanged.GROUPS, "notes.md", (f"../{reports.name}",))
    for content in ((), ("a.txt",), ("a.txt", "deep/b.py")):
        for name in content:
            (reports / name).parent.mkdir(parents=True, exist_ok=True)
            (reports / name).write_text(str(content))
        assert is_due(house)
        finish("passed")
        assert not is_due(house)
    (reports / "a.txt").write_text("other")
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
    """After a failure, a missing tool, a partial or an interrupted run, the tests stay due."""
    finish(*outcomes, **more)
    assert is_due(house)


def test_two_branches_may_be_merged_by_keeping_all_lines(house: Path) -> None:
    """Any line that fits the files counts; the next passing run keeps a single line."""
    file = house / "tests" / "passed.sha256"
    finish("passed")
    mine = file.read_text()
    file.write_text(f"{'0' * 64}  {KEY}\n{mine}{'1' * 64}  tests/test_b.py other\n")
    assert not is_due(house)
    finish("passed")
    assert file.read_text() == f"{mine}{'1' * 64}  tests/test_b.py other\n"


@pytest.fixture
def package(house: Path) -> Path:
    """Add a package whose command line imports its commands by name, and a test file for one of its rooms."""
    sources = {
        "rooflens/__init__.py": "if TYPE_CHECKING:\n    from rooflens.api import read\n",
        "rooflens/api.py": "from rooflens.report import draw",
        "rooflens/report/__init__.py": "",
        "rooflens/ingest/__init__.py": "import os\ndef load():\n    from rooflens.report import draw\n",
        "rooflens/ingest/read.py": "def read():\n    from rooflens import bytes_of\n",
        "rooflens/ingest/table.toml": "",
        "rooflens/bytes_of.py": "",
        "rooflens/cli/group.py": "from rooflens import __version__",
        "rooflens/cli/commands/ingest.py": "",
        "rooflens/cli/commands/report.py": "from rooflens.report import draw",
        "tests/conftest.py": "",
        "tests/support/writer.py": "WRITES = 'rooflens.ncu'",
        "tests/test_read.py": "from support import writer\nfrom rooflens.ingest.read import (\n    read,\n)\n",
        "tests/test_group.py": "from rooflens.cli.group import main\n",
        "tests/test_api.py": "import rooflens\n",
    }
    for name, text in sources.items():
        (house / name).parent.mkdir(parents=True, exist_ok=True)
        (house / name).write_text(text)
    return house


READ = "__init__ bytes_of ingest/__init__ ingest/read ingest/table.toml"


@for_all(
    "tests, named, without, expected",
    [
        ("read", "", "", READ),
        ("read", "", "rooflens/bytes_of.py", "__init__ ingest/__init__ ingest/read ingest/table.toml"),
        ("group", "", "", "__init__ cli/commands/ingest cli/commands/report cli/group report/__init__"),
        ("group", "rooflens/cli/commands/ingest.py", "", "__init__ cli/commands/ingest cli/group"),
        ("group", "", "rooflens/report", "__init__ cli/commands/ingest cli/commands/report cli/group"),
        ("api", "", "", "__init__ api report/__init__"),
    ],
)
def test_files_are_walked_from_import_to_import(
    package: Path, tests: str, named: str, without: str, expected: str
) -> None:
    """Late imports, package modules, data beside them, and all commands not named count as dependencies; texts do not.

    Of a package's `__init__` only what it loads at once counts, unless a name from it is imported.
    """
    places = imports.reached(package, f"tests/test_{tests}.py", named.split(), without.split())
    assert {"tests/conftest.py", f"tests/test_{tests}.py"} <= places
    assert ("tests/support/writer.py" in places) == (tests == "read")
    ours = {place.removeprefix("rooflens/").removesuffix(".py") for place in places if place.startswith("rooflens/")}
    assert ours == set(expected.split())


def test_a_file_is_left_out_whole_only_where_all_its_tests_have_the_marker(house: Path) -> None:
    """A test file that is not due is not even imported."""
    finish("passed")
    tests = house / "tests" / "test_a.py"
    marker = 'pytest.mark.if_changed("sources", "notes.md")'
    for text, is_whole in (
        (f"pytestmark = {marker}", True),
        (f"pytestmark = [\n    {marker},\n]", True),
        (f"@{marker}", False),
    ):
        tests.write_text(text)
        assert unchanged.has_passed(tests) == is_whole
    (house / "notes.md").write_text("other")
    unchanged.forget()
    assert not unchanged.has_passed(tests)
