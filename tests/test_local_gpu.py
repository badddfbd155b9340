"""The GPU of this machine, as `nvidia-smi` tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rooflens.errors import EnvironmentMissingError
from rooflens.local_gpu import LocalGpu, local_gpu, obstacles

if TYPE_CHECKING:
    from pathlib import Path

TWO_GPUS = "0, GPU-aaa, Tesla T4, 7.5, 550.1, [N/A]\n1, GPU-bbb, NVIDIA A100-SXM4-40GB, 8.0, 550.1, Enabled\n"


@pytest.mark.parametrize(
    ("visible", "name"),
    [(None, "Tesla T4"), ("0,1", "Tesla T4"), ("1", "NVIDIA A100-SXM4-40GB"), ("GPU-bb", "NVIDIA A100-SXM4-40GB")],
)
def test_the_gpu_is_the_first_that_programs_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, name: str
) -> None:
    """CUDA_VISIBLE_DEVICES chooses by index or identity."""
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{TWO_GPUS}'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    gpu = local_gpu({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    assert gpu.name == name
    assert gpu.mig == (name != "Tesla T4")
    with pytest.raises(EnvironmentMissingError, match="no NVIDIA GPU is to be seen") as caught:
        local_gpu({"CUDA_VISIBLE_DEVICES": "-1"})
    assert "CUDA_VISIBLE_DEVICES" in caught.value.hint


def test_the_driver_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer holds for the whole process; no answer does not."""
    smi = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    smi.write_text("#!/bin/sh\nexit 9\n")
    smi.chmod(0o755)
    with pytest.raises(EnvironmentMissingError):
        local_gpu({})
    smi.write_text(f"#!/bin/sh\nprintf '{TWO_GPUS}'\n")
    assert local_gpu({}).name == "Tesla T4"
    smi.write_text("#!/bin/sh\nexit 9\n")
    assert local_gpu({}).name == "Tesla T4"


def test_no_driver_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an nvidia-smi that answers there is no GPU to speak of."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match="`nvidia-smi` does not answer"):
        local_gpu({})


def test_what_is_in_the_way_is_said() -> None:
    """MIG, WSL and virtual GPUs are named; a plain GPU has nothing in its way."""
    assert obstacles(LocalGpu("NVIDIA H200", "9.0", "580"), "6.1.0-amd64") == ()
    assert "MIG" in obstacles(LocalGpu("NVIDIA H200", "9.0", "580", mig=True), "6.1.0")[0]
    assert "WSL" in obstacles(LocalGpu("NVIDIA RTX 4090", "8.9", "580"), "5.15.90.1-microsoft-standard-WSL2")[0]
    assert "virtual GPU" in obstacles(LocalGpu("GRID A100-10C", "8.0", "550"), "6.1.0")[0]
