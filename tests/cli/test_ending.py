"""A command that is told to end leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_temporary_files_go_with_the_command(tmp_path: Path, name: str) -> None:
    """A signal removes what came through a pipe so far, and shows in the exit status."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rooflens", "analyze", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    end_s = time.monotonic() + 30
    while not list(tmp_path.glob("*/stdin")) and time.monotonic() < end_s:
        time.sleep(0.01)
    assert list(tmp_path.glob("*/stdin"))
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + getattr(signal, name)
    assert b"Traceback" not in said
    assert list(tmp_path.iterdir()) == []
