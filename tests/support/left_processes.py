"""Find what one test started and nobody ended; other tests run beside it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rooflens.processes import MARK

TEST = "ROOFLENS_TEST"
"""Environment variable by which a test knows its processes: it sets a value of its own."""


def left_processes(value: str) -> list[int]:
    """List the processes of a run of ours that inherited this value of `TEST`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (folder / "environ").read_bytes()
            if f"{MARK}=".encode() in environment and f"{TEST}={value}\0".encode() in environment:
                found.append(int(folder.name))
    return found
