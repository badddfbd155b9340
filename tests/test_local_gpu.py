"""The GPU of this machine, according to `nvidia-smi` and CUDA."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from rooflens import local_gpu as local_gpus
from rooflens.errors import EnvironmentMissingError
from rooflens.local_gpu import LocalGpu, loaded_driver, local_gpu, obstacles
from rooflens.processes import capture

T4 = "GPU-00000000-0000-0000-0000-00000000aaaa"
A100 = "GPU-00000000-0000-0000-0000-00000000bbbb"
TWO_GPUS = f"0, {T4}, Tesla T4, 7.5, 550.1, [N/A]\n1, {A100}, NVIDIA A100-SXM4-40GB, 8.0, 550.1, Enabled\n"
PARTS = f"GPU 0: Tesla T4 (UUID: {T4})\nGPU 1: NVIDIA A100 (UUID: {A100})\n  MIG 1g.5gb Device 0: (UUID: MIG-77)\n"
BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
CUDA = """
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int ordinal) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *device = visible && !strcmp(visible, "1") ? 0xaa : 0xbb;
    return 0;
}
int cuDeviceGetUuid(unsigned char *uuid, int device) {
    memset(uuid, 0, 16);
    uuid[14] = uuid[15] = device;
    return 0;
}
int cuDeviceGetName(char *name, int length, int device) {
    strncpy(name, device == 0xaa ? "Tesla T4" : "NVIDIA A100-SXM4-40GB", length);
    return 0;
}
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (attribute == 13) return 1;
    *value = attribute == 75 ? (device == 0xaa ? 7 : 8) : attribute == 76 ? (device == 0xaa ? 5 : 0) : attribute;
    return 0;
}
"""
"""A stand-in for CUDA's driver whose faster A100 is number 0 and whose T4 is number 1."""


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine with a T4 and an A100, whose CUDA does not answer; return the folder of its tools."""
    lists = f"#!/bin/sh\n[ \"$1\" = -L ] && printf '{PARTS}' || printf '{TWO_GPUS}'\n"
    (tmp_path / "nvidia-smi").write_text(lists)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    (tmp_path / "libcuda.so.1").write_text("no library")  # hides an installed driver
    local_gpus._first_of_cuda.cache_clear()
    return tmp_path


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("visible", "name"),
    [
        (None, "Tesla T4"),
        ("0,1", "Tesla T4"),
        ("1", "NVIDIA A100-SXM4-40GB"),
        (A100[:-2], "NVIDIA A100-SXM4-40GB"),
        ("MIG-77", "NVIDIA A100-SXM4-40GB"),
        (f"MIG-{A100}/3/0", "NVIDIA A100-SXM4-40GB"),
        ("MIG-unheard-of", "NVIDIA A100-SXM4-40GB"),
    ],
)
def test_the_gpu_is_the_first_that_programs_see(visible: str | None, name: str) -> None:
    """CUDA_VISIBLE_DEVICES selects by index, UUID, or the UUID of a part; with bus order this is certain."""
    gpu = local_gpu(BY_BUS if visible is None else {**BY_BUS, "CUDA_VISIBLE_DEVICES": visible})
    assert gpu.name == name
    assert gpu.mig == (name != "Tesla T4")
    assert gpu.also == ()
    assert ("Tesla T4 is the program's first" in gpu.assumed) == (visible in {None, "0,1"})
    for nothing in ("-1", "", "2", "GPU-ff"):
        with pytest.raises(EnvironmentMissingError, match="no NVIDIA GPU is visible") as caught:
            local_gpu({**BY_BUS, "CUDA_VISIBLE_DEVICES": nothing})
        assert "CUDA_VISIBLE_DEVICES" in caught.value.hint


@pytest.fixture
def with_cuda(two_gpus: Path) -> Path:
    """Let CUDA's driver answer on that machine."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no compiler")
    source = two_gpus / "cuda.c"
    source.write_text(CUDA)
    command = [compiler, "-shared", "-fPIC", "-o", two_gpus / "libcuda.so.1", source]
    subprocess.run(command, check=True)  # noqa: S603 - our own stand-in
    return two_gpus


@pytest.mark.usefixtures("with_cuda")
def test_where_gpus_differ_cuda_says_which_is_first() -> None:
    """If nvidia-smi's order may differ from CUDA's, CUDA is asked, and its answer is stated."""
    first = local_gpu({})
    assert (first.name, first.also) == ("NVIDIA A100-SXM4-40GB", ())
    assert "the GPUs here differ (Tesla T4, NVIDIA A100-SXM4-40GB): CUDA gives NVIDIA A100" in first.assumed
    assert "--chip another one's counters" in first.assumed
    second = local_gpu({"CUDA_VISIBLE_DEVICES": "1"})
    assert (second.name, second.assumed) == ("Tesla T4", "")


@pytest.mark.parametrize("answer", [None, "", "exit 9"])
def test_without_nvidia_smi_the_gpu_is_the_one_that_cuda_names(with_cuda: Path, answer: str | None) -> None:
    """Where `nvidia-smi` is missing, fails or lists nothing, name and compute capability come from the driver."""
    (with_cuda / "nvidia-smi").unlink()
    if answer is not None:
        (with_cuda / "nvidia-smi").write_text(f"#!/bin/sh\n{answer}\n")
        (with_cuda / "nvidia-smi").chmod(0o755)
    local_gpus._answer.cache_clear()
    assert local_gpu({}) == LocalGpu("NVIDIA A100-SXM4-40GB", "8.0", "unknown")
    assert local_gpu({"CUDA_VISIBLE_DEVICES": "1"}) == LocalGpu("Tesla T4", "7.5", "unknown")


@pytest.mark.usefixtures("with_cuda")
def test_cuda_describes_the_gpu() -> None:
    """What the driver says comes in SI units, and null where it does not know an attribute."""
    told = json.loads(capture((*local_gpus._ASK_CUDA, "-", "-")).stdout)
    assert told == {
        "name": "NVIDIA A100-SXM4-40GB",
        "uuid": A100,
        "compute_capability": "8.0",
        "cuda": "12.4",
        "sm_count": 16,
        "sm_clock_hz": None,
        "memory_clock_hz": 36_000,
        "memory_bus_bits": 37,
        "l2_bytes": 38,
        "ecc": 32,
    }


def test_the_driver_is_the_loaded_kernel_module(tmp_path: Path) -> None:
    """Both of NVIDIA's kernel modules name their version in `/proc`; without one it is unknown."""
    assert loaded_driver(tmp_path) is None
    place = tmp_path / "proc/driver/nvidia/version"
    place.parent.mkdir(parents=True)
    for module in ("NVIDIA UNIX x86_64 Kernel Module ", "NVIDIA UNIX Open Kernel Module for x86_64 "):
        place.write_text(f"NVRM version: {module} 580.65.06  Sun Jul 27 07:01:00 UTC 2025\nGCC version: gcc 12.2.0\n")
        assert loaded_driver(tmp_path) == "580.65.06"


@pytest.mark.usefixtures("two_gpus")
def test_where_cuda_does_not_say_the_newest_is_assumed() -> None:
    """The assumed GPU is named with what would settle it, and the other GPU is remembered."""
    gpu = local_gpu({})
    assert (gpu.name, gpu.also) == ("NVIDIA A100-SXM4-40GB", ("7.5",))
    assert "CUDA does not say which is the program's: NVIDIA A100-SXM4-40GB is assumed" in gpu.assumed
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in gpu.assumed
    assert local_gpu({"CUDA_VISIBLE_DEVICES": "1"}).name == "Tesla T4"
    with pytest.raises(EnvironmentMissingError, match="no NVIDIA GPU is visible"):
        local_gpu({"CUDA_VISIBLE_DEVICES": "7"})


def test_gpus_of_one_kind_need_no_word(two_gpus: Path) -> None:
    """For identical GPUs the order does not matter: nothing is assumed, and CUDA is not asked."""
    rows = "".join(f"{at}, GPU-{at}{at}, NVIDIA H200, 9.0, 580.1, Disabled\n" for at in range(8))
    (two_gpus / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{rows}'\n")
    local_gpus._answer.cache_clear()
    assert local_gpu({"CUDA_VISIBLE_DEVICES": "5,6"}) == LocalGpu("NVIDIA H200", "9.0", "580.1")
    with pytest.raises(EnvironmentMissingError):
        local_gpu({"CUDA_VISIBLE_DEVICES": "8"})


def test_the_driver_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is cached for the process; a missing answer is not."""
    smi = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    smi.write_text("#!/bin/sh\nexit 9\n")
    smi.chmod(0o755)
    with pytest.raises(EnvironmentMissingError):
        local_gpu({})
    smi.write_text(f"#!/bin/sh\nprintf '{TWO_GPUS}'\n")
    assert local_gpu(BY_BUS).name == "Tesla T4"
    smi.write_text("#!/bin/sh\nexit 9\n")
    assert local_gpu(BY_BUS).name == "Tesla T4"


def test_no_driver_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer from nvidia-smi there is no GPU."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match="`nvidia-smi` does not answer"):
        local_gpu({})


def test_what_is_in_the_way_is_said() -> None:
    """MIG, WSL and virtual GPUs are named as obstacles; a plain GPU has none."""
    assert obstacles(LocalGpu("NVIDIA H200", "9.0", "580"), "6.1.0-amd64") == ()
    assert "MIG" in obstacles(LocalGpu("NVIDIA H200", "9.0", "580", mig=True), "6.1.0")[0]
    assert "WSL" in obstacles(LocalGpu("NVIDIA RTX 4090", "8.9", "580"), "5.15.90.1-microsoft-standard-WSL2")[0]
    assert "virtual GPU" in obstacles(LocalGpu("GRID A100-10C", "8.0", "550"), "6.1.0")[0]


def test_a_driver_that_hangs_is_no_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging nvidia-smi is waited for once per process, and the error says what to look at."""
    asked = tmp_path / "asked"
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho x >> {asked}\nexec sleep 30\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(local_gpus, "_ANSWER_SECONDS", 0.3)
    for _ in range(2):
        with pytest.raises(EnvironmentMissingError, match=r"^`nvidia-smi` did not answer within 0\.3 s\n") as caught:
            local_gpu({})
        assert "Xid" in caught.value.hint
    assert asked.read_text() == "x\n"


def test_a_tool_that_cannot_even_be_killed_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program stuck in the driver cannot be killed, so nobody waits for its end."""
    started: list[subprocess.Popen[str]] = []

    def never(process: subprocess.Popen[str], timeout: float | None = None) -> None:
        started.append(process)
        raise subprocess.TimeoutExpired("nvidia-smi", timeout or 0.0)

    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "wait", never)
        patched.setattr(subprocess.Popen, "communicate", never)
        assert capture(["/bin/sleep", "30"], 0.01).status is None
    assert started[0].wait() == -signal.SIGKILL
