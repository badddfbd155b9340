"""What the tests of recording share: the scripts of `fixtures/`, and a simulated machine with a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import fake_ncu, fake_nvcc

sys.path.append(str(Path(__file__).parents[2] / "fixtures"))

import record

from rooflens.collect import plan as planning
from rooflens.errors import EnvironmentMissingError

LINE = {"iterations": 20, "launches": 20, "wall_ns": 1_000_000, "kernel_ns": 990_000}


@pytest.fixture
def gpu_box(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine with an H200, ncu and nvcc but without PyTorch; return the folder to work in."""
    fake_ncu.install(tmp_path / "bin")
    fake_nvcc.install(tmp_path / "bin", LINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "success")
    monkeypatch.setenv(fake_ncu.REPORT, str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for module in (record, planning):
        monkeypatch.setattr(module, "require_torch", _no_torch)
    return tmp_path


def _no_torch() -> None:
    raise EnvironmentMissingError("PyTorch is not installed")
