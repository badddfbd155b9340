"""The trial kernel without a GPU: its calls run against a stand-in for the driver, its text is assembled."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rooflens.collect import probe

CUDA = """
#include <stdio.h>
#include <string.h>
static int step = 0;
#define CALL(name, is_right) { printf(name " "); return step++ == FAILS ? 719 : !(is_right); }
int cuInit(unsigned flags) CALL("init", flags == 0)
int cuDeviceGet(int *device, int ordinal) { *device = 7; CALL("device", ordinal == 0) }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)8; CALL("retain", device == 7) }
int cuCtxSetCurrent(void *context) CALL("current", context == (void *)8)
int cuModuleLoadData(void **module, const char *text) { *module = (void *)9; CALL("load", strstr(text, ".entry")) }
int cuModuleGetFunction(void **kernel, void *module, const char *name) {
    *kernel = (void *)10;
    CALL("function", module == (void *)9 && !strcmp(name, "rooflens_probe"))
}
int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra)
    CALL("launch", kernel == (void *)10 && gx * gy * gz * bx * by * bz == 1 && !shared && !stream && !extra)
int cuCtxSynchronize(void) CALL("synchronize", 1)
"""
"""A stand-in for the driver that checks the arguments of each call, and fails call number FAILS."""

CALLS = ["init", "device", "retain", "current", "load", "function", "launch", "synchronize"]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler")
@pytest.mark.parametrize(("fails", "status"), [(99, 0), (0, 1), (6, 1)])
def test_the_probe_launches_one_thread(tmp_path: Path, fails: int, status: int) -> None:
    """The probe calls the driver in order with earlier results, and ends at the first failing call, naming it."""
    (tmp_path / "cuda.c").write_text(CUDA)
    library = tmp_path / "libcuda.so.1"
    build = ["gcc", "-shared", "-fPIC", f"-DFAILS={fails}", "-o", str(library), str(tmp_path / "cuda.c")]
    subprocess.run(build, check=True)  # noqa: S603 - our own stand-in
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-IS", probe.__file__],
        capture_output=True,
        text=True,
        check=False,
        env={"LD_LIBRARY_PATH": str(tmp_path)},
    )
    assert done.returncode == status, done.stderr
    assert done.stdout.split() == CALLS[: fails + 1]
    assert ("failed with status 719" in done.stderr) == bool(status)


@pytest.mark.nvcc
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90a", "sm_120a"])
def test_the_probes_kernel_assembles(tmp_path: Path, architecture: str) -> None:
    """CUDA's assembler accepts the kernel's text for the oldest and the newest GPUs."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc on this machine")
    (tmp_path / "probe.ptx").write_text(probe.PTX.strip() + "\n")
    argv = [nvcc, "-cubin", f"-arch={architecture}", "-o", str(tmp_path / "probe.cubin"), str(tmp_path / "probe.ptx")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - nvcc
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "probe.cubin").stat().st_size > 0
