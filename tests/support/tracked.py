"""The files tracked by git, which everyone who clones the project gets."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@cache
def tracked() -> tuple[str, ...]:
    """List the files of the clone as git spells them; in a copy without git the test is skipped."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no clone of git")
    listed = subprocess.run((git, "ls-files", "-z"), cwd=ROOT, capture_output=True, check=True, text=True)  # noqa: S603 - git alone
    return tuple(listed.stdout.rstrip("\0").split("\0"))
