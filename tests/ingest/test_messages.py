"""Distinguish damaged messages from too little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rooflens
from rooflens.ingest.messages.messages import decode

DECODE = """
import resource
from pathlib import Path
from rooflens.ingest.messages.messages import decode
decode("StringTable", b"")
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
encoded = {encoded}
resource.setrlimit(resource.RLIMIT_AS, (used + {room} + len(encoded),) * 2)
try:
    print(decode("StringTable", encoded))
except MemoryError:
    print("memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux counts it")
@pytest.mark.parametrize(
    ("encoded", "room", "said"),
    [
        (r"b'\x0a\0' * 10_000_000", 100 << 20, "memory"),
        (r"b'\xff' * 20_000_000", 1 << 30, "None"),
        (r"b'\xff' * 1_000", 1 << 20, "None"),
    ],
)
def test_a_message_without_memory_for_it_is_not_damaged(encoded: str, room: int, said: str) -> None:
    """Protocol buffers report too little memory as damage; we tell the two apart."""
    code = DECODE.format(encoded=encoded, room=room)
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(rooflens.__file__).parents[1],
    )
    assert done.stdout.strip() == said


def test_a_damaged_message_is_none() -> None:
    """A damaged message, small or large, is reported as damaged."""
    assert decode("StringTable", b"\xff" * 9) is None
    assert decode("StringTable", b"\xff" * (2 << 20)) is None
