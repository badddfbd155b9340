"""Find the processes that a test started and nobody ended, beside those of other tests."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rooflens.processes import MARK

TEST = "ROOFLENS_TEST"
"""Environment variable by which a test knows its processes: it sets a value of its own."""


def left_processes(value: str) -> list[int]:
    """List our processes that inherited this value of `TEST`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (folder / "environ").read_bytes()
            if f"{MARK}=".encode() in environment and f"{TEST}={value}\0".encode() in environment:
                found.append(int(folder.name))
    return found
