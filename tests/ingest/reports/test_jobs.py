"""What distinguishes one state of a file from the next."""

from __future__ import annotations

import os
from pathlib import Path

from rooflens.ingest.reports.jobs import stamp_of


def test_a_file_just_written_is_told_by_its_bytes(tmp_path: Path) -> None:
    """A fresh file is digested, as file systems' clocks are coarse; an older file is known by its times."""
    file = tmp_path / "a"
    file.write_bytes(b"A")
    fresh = stamp_of(file)
    file.write_bytes(b"B")
    assert fresh[-1] is not None
    assert stamp_of(file, like=fresh)[-1] != fresh[-1]
    os.utime(file, (0, 0))
    assert stamp_of(file)[-1] is None
