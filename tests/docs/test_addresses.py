"""Where the project will be is not known yet: each placeholder for it stands in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".md", ".toml", ".yml", ".cff", ".txt"}


@pytest.mark.parametrize(
    ("placeholder", "place", "times"),
    [("git clone ADDRESS", "README.md", 1), ("OWNER", "examples/ci/github-workflow.yml", 2)],
)
def test_a_placeholder_stands_in_one_place(placeholder: str, place: str, times: int) -> None:
    """Whoever publishes changes one file, whose text says what to put there."""
    files = [
        *ROOT.glob("*"),
        *(file for part in ("docs", "examples", ".github", "action") for file in (ROOT / part).rglob("*")),
    ]
    found = {
        file.relative_to(ROOT).as_posix(): len(re.findall(placeholder, file.read_text(encoding="utf-8")))
        for file in files
        if file.is_file() and file.suffix in SUFFIXES
    }
    assert {name: count for name, count in found.items() if count} == {place: times}


def test_nobody_is_told_to_install_from_an_index_that_lacks_it() -> None:
    """`pip install rooflens` would bring nothing, or something of others."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "rooflens").rglob("*.py")]
    told = r"pip install (?!--no-index)\'?rooflens\b(?!-)"
    assert [str(file) for file in files if re.search(told, file.read_text(encoding="utf-8"))] == []
