"""Run tests that depend only on certain files when these changed since the tests last passed.

`tests/passed.sha256` has the digests of those files, one line per test file and its dependencies. A run in which all
its tests passed, with none left out, rewrites the line, which is committed with the change.

With `IMPORTS` among the paths no list is needed: the files are found by following imports. A path after `-` is not
followed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from support.imports import listing, reached

ROOT = Path(__file__).parents[2]
PASSED = ROOT / "tests" / "passed.sha256"
GPU = Path("/dev/nvidiactl")
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
IMPORTS = "imports"
"""Stands for what a file of tests, and each named file, imports at any depth, and for the data beside that."""
ANSWERS = (
    "-rooflens/api",
    "-rooflens/mcp",
    "-rooflens/report",
    "-rooflens/writing",
    "-rooflens/model/compare",
    "-rooflens/model/findings",
    "-rooflens/model/knowledge",
    "-rooflens/model/predict",
    "-rooflens/model/verdict/",
    "-rooflens/model/about.py",
    "-rooflens/model/analyze.py",
    "-rooflens/model/needs.py",
    "-rooflens/model/summary.py",
)
"""What says something of kernels once they are read, which tests of collecting, reading and storing do not look at."""
COLLECTING = "collecting"
READING = "reading"
PUBLISHED = "published"
BESIDE = "../"
"""How the path of a folder beside the repository begins: its content counts, and not what that imports."""
GROUPS = {
    PUBLISHED: tuple(f"{BESIDE}shared/{name}" for name in ("corpus", "cases", "outcomes", "candidates")),
    COLLECTING: (
        IMPORTS,
        "rooflens/collect/profile.py",
        *(f"rooflens/cli/commands/{name}.py" for name in ("collect", "profile", "calibrate")),
        "fixtures",
        *ANSWERS,
    ),
    READING: (IMPORTS, *(f"rooflens/cli/commands/{name}.py" for name in ("analyze", "ingest")), "fixtures", *ANSWERS),
}
"""Paths by a name, which stands for them in a marker and in `PASSED`."""
CHOOSE = ("keyword", "markexpr", "lf", "deselect")
"""Options of pytest, as it calls them, that leave out tests of a file."""
_UNCHANGED = f"nothing changed since these passed: `make test-all` runs them, or {THOROUGH}=1"
_WHOLE = re.compile(r"^pytestmark = (?:\[[^\]]*?|)pytest\.mark\.if_changed\(", re.MULTILINE)
"""A file all of whose tests have the marker."""
PROPERTY = "if_changed"
"""What the report of a test says that its file depends on, for the process that writes `PASSED`."""


def is_due(tests: Path, paths: Iterable[str]) -> bool:
    """Return whether the files at some paths differ from those with which a test file passed.

    Also true if all tests are requested, if `ROOFLENS_CORPUS` names other published reports, and on a machine with an
    NVIDIA GPU, where more of them run.
    """
    is_asked = any(os.environ.get(name) for name in (THOROUGH, "ROOFLENS_CORPUS")) or GPU.exists()
    return is_asked or _line(_key(tests, tuple(paths))) not in _passed()


class PassedModule(pytest.Module):
    """A test file that passed with its dependencies: skipped as a whole, before it is imported."""

    def collect(self) -> list[pytest.Item]:
        """Skip it."""
        pytest.skip(f"{self.name}: {_UNCHANGED}")


def has_passed(tests: Path) -> bool:
    """Return whether all tests of a file depend on files with which they passed."""
    start = f"{tests.relative_to(ROOT).as_posix()} "
    keys = [key for key in (line.split("  ", 1)[1] for line in _passed()) if key.startswith(start)]
    text = tests.read_text(encoding="utf-8") if keys else ""
    is_whole = bool(_WHOLE.search(text)) and text.count("if_changed(") == 1
    return is_whole and not all(is_due(tests, key.removeprefix(start).split(" ")) for key in keys)


def reason(paths: Iterable[str]) -> str:
    """Say why tests are skipped."""
    return f"{', '.join(paths)}: {_UNCHANGED}"


def choose(items: Iterable[pytest.Item]) -> None:
    """Skip the tests that are not due; note the dependencies of the others."""
    for item in items:
        marker = item.get_closest_marker("if_changed")
        if marker is None or item.get_closest_marker("skip") or item.get_closest_marker("gpu"):
            continue
        if is_due(item.path, marker.args):
            item.user_properties.append((PROPERTY, _key(item.path, marker.args)))
        else:
            item.add_marker(pytest.mark.skip(reason=reason(marker.args)))


class Passed:
    """Collect the outcomes of tests, and write the digests of files in which all passed."""

    def __init__(self) -> None:
        self._outcomes: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a phase of a test."""
        for name, key in report.user_properties:
            if name == PROPERTY:
                self._outcomes[str(key)].add(report.outcome)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the digests, unless some of a file's tests were selected or deselected."""
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
    tests, *given = key.split(" ")
    paths = [path for name in given for path in GROUPS.get(name, (name,))]
    files = [file for path in paths if not path.startswith(BESIDE) for file in _files(path)]
    if IMPORTS in paths:
        files = sorted(reached(ROOT, tests, files, [path[1:] for path in paths if path.startswith("-")]))
    for file in files:
        whole.update(_content(file))
    for path in paths:
        if path.startswith(BESIDE):
            whole.update(_folder(path))
    return f"{whole.hexdigest()}  {key}"


@cache
def _files(path: str) -> list[str]:
    """Return a file, or those of a folder, by their paths from the root."""
    place = ROOT / path
    if place.is_file():
        return [path]
    files = (file for file in sorted(place.rglob("*")) if file.is_file() and "__pycache__" not in file.parts)
    return [file.relative_to(ROOT).as_posix() for file in files]


@cache
def _folder(path: str) -> bytes:
    """Return the digest of a folder beside the repository, whose content is too large to keep."""
    whole = hashlib.sha256()
    for file in _files(path):
        whole.update(f"{file}\n".encode())
        with (ROOT / file).open("rb") as content:
            whole.update(hashlib.file_digest(content, "sha256").digest())
    return whole.digest()


@cache
def _content(path: str) -> bytes:
    """Return a file's path and content."""
    return f"{path}\n".encode() + (ROOT / path).read_bytes()


def forget() -> None:
    """Discard the cached digests."""
    for cached in (_line, _folder, _content, _files, listing):
        cached.cache_clear()
