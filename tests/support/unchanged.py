"""Tests whose answer depends on some files alone: they run when these changed since the tests last passed.

`tests/passed.sha256` holds the digests of those files, a line for each file of tests and what it depends on. A run in
which all its tests passed, none left out, writes the line anew; it is committed with the change.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSED = ROOT / "tests" / "passed.sha256"
THOROUGH = "ROOFLENS_TEST_ALL"
"""Set in the environment, tests run too whose finds the others make almost surely: `make test-all` does it."""

WORKLOADS = (
    "rooflens/workloads",
    "rooflens/model/cases.py",
    "tests/workloads",
    "tests/support/cuda",
    "tests/support/cuda_emulator.py",
    "tests/support/one_source.py",
    "tests/support/sass.py",
)
PAGE = ("rooflens/report", "tests/report", "tests/support/samples.py", "tests/support/rendered.py")
CHOOSE = ("keyword", "markexpr", "lf", "deselect")
"""Options of pytest, as it calls them, that leave out tests of a file."""
PROPERTY = "if_changed"
"""What the report of a test says that its file depends on, for the process that writes `PASSED`."""


def is_due(tests: Path, paths: Iterable[str]) -> bool:
    """Return whether the files at some paths differ from those that a file of tests passed with, or all tests run."""
    return bool(os.environ.get(THOROUGH)) or _line(_key(tests, tuple(paths))) not in _passed()


def skip_module_unless_due(tests: str, *paths: str) -> None:
    """Skip a file of tests before it imports what takes seconds."""
    if not is_due(Path(tests), paths):
        pytest.skip(reason(paths), allow_module_level=True)


def reason(paths: Iterable[str]) -> str:
    """Say why tests are skipped."""
    return f"nothing changed in {', '.join(paths)} since these passed: `make test-all` runs them, or {THOROUGH}=1"


def choose(items: Iterable[pytest.Item]) -> None:
    """Skip the tests that are not due; note on the others what they depend on."""
    for item in items:
        marker = item.get_closest_marker("if_changed")
        if marker is None or item.get_closest_marker("skip"):
            continue
        if is_due(item.path, marker.args):
            item.user_properties.append((PROPERTY, _key(item.path, marker.args)))
        else:
            item.add_marker(pytest.mark.skip(reason=reason(marker.args)))


class Passed:
    """Collects what became of the tests, and writes the digests of those files of which all passed."""

    def __init__(self) -> None:
        self._outcomes: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a phase of a test."""
        for name, key in report.user_properties:
            if name == PROPERTY:
                self._outcomes[str(key)].add(report.outcome)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the digests, unless a part of a file's tests was chosen or left out."""
        is_part = any(getattr(session.config.option, name, None) for name in CHOOSE)
        is_part = is_part or any("::" in one for one in session.config.args)
        if is_part or session.shouldfail or session.shouldstop:
            return
        passed = {key for key, outcomes in self._outcomes.items() if outcomes == {"passed"}}
        known = _passed()
        kept = {line for line in known if line.split("  ", 1)[1] not in passed}
        lines = sorted(kept | {_line(key) for key in passed}, key=lambda line: line.split("  ", 1)[1])
        if set(lines) != known:
            PASSED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _key(tests: Path, paths: tuple[str, ...]) -> str:
    return " ".join((tests.relative_to(ROOT).as_posix(), *paths))


def _passed() -> set[str]:
    return set(PASSED.read_text(encoding="utf-8").splitlines()) if PASSED.exists() else set()


@cache
def _line(key: str) -> str:
    """Return the digest of the files that a key names, and the key."""
    whole = hashlib.sha256()
    for path in key.split(" ")[1:]:
        place = ROOT / path
        files = [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.is_file())
        for file in files:
            if "__pycache__" not in file.parts:
                whole.update(f"{file.relative_to(ROOT).as_posix()}\n".encode() + file.read_bytes())
    return f"{whole.hexdigest()}  {key}"
