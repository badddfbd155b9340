"""Fixtures of the tests of the Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import fake_ncu

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def gpu_box(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make this machine one with an H200 and an ncu; return the folder to work in."""
    fake_ncu.install(tmp_path / "bin")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "success")
    monkeypatch.setenv(fake_ncu.REPORT, str(fixtures / "synthetic" / "attention.synthetic.ncu-rep"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return work
