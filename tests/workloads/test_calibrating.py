from __future__ import annotations

import json
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from rooflens.errors import EnvironmentMissingError, ProgramError
from rooflens.model.roofline.calibrations import parse_attainable
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.workloads import build, calibrating
from rooflens.workloads.calibrating import PROGRAM, calibrate, run_program
from rooflens.workloads.registry import load_workloads

DOCUMENT = {
    "gpu": "NVIDIA H200",
    "compute_capability": "9.0",
    "driver": "580.65.06",
    "sm_clock_hz": 1.98e9,
    "rates": {
        "dram_read": {"unit": "byte/s", "median": 4.4e12, "min": 4.3e12, "max": 4.5e12, "repetitions": 3},
    },
}


def write_program(path: Path, body: str) -> Path:
    """Write a shell script that stands in for a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def only_stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the first folder on PATH, with no nvcc or nvidia-smi behind it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("cat", "chmod", "cp", "sh"):
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "find_program", lambda *_: str(path) if (path := folder / "nvcc").exists() else None)
    return folder


def test_calibrating_is_no_workload() -> None:
    """The calibration program is not listed or profiled as a workload."""
    assert PROGRAM.name not in {workload.name for workload in load_workloads()}


@pytest.mark.parametrize(("capability", "architecture"), [("9.0", "sm_90a"), ("8.0", "sm_80"), ("12.0", "sm_120")])
def test_it_is_compiled_for_this_gpu_and_run(only_stand_ins: Path, capability: str, architecture: str) -> None:
    """The compiler gets this GPU's architecture (Hopper's with all instructions); the document is unchanged."""
    printing = write_program(only_stand_ins / "printing", f"echo \"$@\" >&2\ncat <<'END'\n{json.dumps(DOCUMENT)}\nEND")
    compiling = f'case "$*" in *--version*) echo made ;; *) echo "$*" > {only_stand_ins}/argv; for last; do :; done; '
    write_program(only_stand_ins / "nvcc", f'{compiling}cp {printing} "$last" ;; esac')
    write_program(only_stand_ins / "nvidia-smi", f"echo '0, GPU-0123, NVIDIA GPU, {capability}, 580.65.06, Disabled'")
    text = calibrate()
    assert parse_attainable(text, "output", measured_unix_s=1).rates["dram_read"].median == 4.4e12
    argv = (only_stand_ins / "argv").read_text(encoding="utf-8").split()
    assert f"-arch={architecture}" in argv
    assert str(PROGRAM.folder / "calibrate.cu") in argv


def test_without_nvcc_the_environment_is_missing(only_stand_ins: Path) -> None:
    """Without a compiler the exit code is 3, with a message."""
    write_program(only_stand_ins / "nvidia-smi", "echo '0, GPU-0123, NVIDIA GPU, 9.0, 580.65.06, Disabled'")
    with pytest.raises(EnvironmentMissingError, match="no `nvcc` found") as caught:
        calibrate()
    assert caught.value.exit_code == 3
    assert caught.value.hint


def test_without_a_gpu_nothing_is_compiled(only_stand_ins: Path) -> None:
    """Without a GPU the error comes before compiling, which takes minutes."""
    write_program(only_stand_ins / "nvcc", f"touch {only_stand_ins}/asked")
    with pytest.raises(EnvironmentMissingError, match="no NVIDIA GPU or driver"):
        calibrate()
    assert not (only_stand_ins / "asked").exists()


def test_the_repetitions_are_the_programs_iterations(tmp_path: Path) -> None:
    """The number of repetitions reaches the program like every CUDA program's iterations."""
    program = write_program(tmp_path / "program", """echo "{\\"rates\\": {\\"argv\\": \\"$*\\"}}" """)
    assert json.loads(run_program(program, 7))["rates"]["argv"] == "--iterations 7"


def test_without_a_gpu_the_environment_is_missing(tmp_path: Path) -> None:
    """The program's message about the GPU is passed on, with exit code 3."""
    program = write_program(tmp_path / "program", "echo 'error: no NVIDIA GPU can be used: none found' >&2; exit 1")
    with pytest.raises(EnvironmentMissingError, match="needs a GPU: no NVIDIA GPU can be used: none found") as caught:
        run_program(program)
    assert caught.value.hint == "run `rooflens calibrate` on a machine with an NVIDIA GPU and its driver"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo first >&2; echo 'error: out of memory' >&2; exit 1", r"failed \(status 1\): out of memory"),
        ("exit 7", r"failed \(status 7\): it said nothing"),
        ("kill -SEGV $$", r"failed \(signal SIGSEGV\)"),
        ("echo done", "printed no JSON document: done"),
        ("exit 0", "printed no JSON document: it said nothing"),
        ("echo '{\"rates\": {'", "printed no JSON document"),
        ("echo '[]'", "printed no JSON document"),
        ("echo '{\"gpu\": 1}'", "printed no JSON document"),
        ("echo '{\"rates\": {}}'; echo '{\"rates\": {}}'", "printed no JSON document"),
    ],
)
def test_a_program_that_fails_says_how(tmp_path: Path, body: str, message: str) -> None:
    """A failure, and output other than one document, are program errors whose hint is the command line."""
    program = write_program(tmp_path / "program", body)
    with pytest.raises(ProgramError, match=message) as caught:
        run_program(program, 3)
    assert f"`{program} --iterations 3`" in caught.value.hint


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration that takes far too long is stopped and reported."""
    monkeypatch.setattr(calibrating, "_LONGEST_S", 0.2)
    with pytest.raises(ProgramError, match=r"did not end in 0\.2 s"):
        run_program(write_program(tmp_path / "program", "exec sleep 30"))


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    """A missing program gives no traceback."""
    with pytest.raises(ProgramError, match="cannot be started"):
        run_program(tmp_path / "gone")


def _need_nvcc() -> build.Compiler:
    try:
        return build.find_compiler()
    except EnvironmentMissingError as error:
        pytest.skip(str(error))


def _has_gpu() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


PRINTING = """
#include "calibrate/document.cuh"

int main() {
  cudaDeviceProp gpu{};
  std::snprintf(gpu.name, sizeof gpu.name, "A \\"quoted\\" GPU");
  gpu.major = 12;
  calibrate::print_document(gpu, {{"dram_read", "byte/s", {3e12, 1e12, 2e12, 2.5e12}, {1.5e9, 1.7e9, 1.6e9, 1.6e9}},
                                  {"tensor_int8", "op/s", {7.0}, {1.9e9}}});
  return 0;
}
"""


@pytest.mark.nvcc
def test_the_model_reads_what_the_program_prints(tmp_path: Path) -> None:
    """A document of made-up rates, printed by the program's own code, is parsed with medians and spread."""
    compiler = _need_nvcc()
    source, program = tmp_path / "printing.cu", tmp_path / "printing"
    source.write_text(PRINTING, encoding="utf-8")
    include = f"-I{PROGRAM.folder.parent}"
    command = [str(compiler.path), *build.FLAGS, include, str(source), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our argv
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True)  # noqa: S603 - just built
    read = parse_attainable(printed.stdout, "output", measured_unix_s=1)
    assert (read.gpu, read.compute_capability, read.sm_clock_hz) == ('A "quoted" GPU', "12.0", 1.6e9)
    rate = read.rates["dram_read"]
    assert (rate.median, rate.min, rate.max) == (2.25e12, 1e12, 3e12)
    assert (rate.repetitions, rate.sm_clock_hz) == (4, 1.6e9)
    assert read.rates["tensor_int8"].unit == "op/s"


@pytest.mark.nvcc
def test_on_a_machine_without_a_gpu_it_compiles_and_says_so() -> None:
    """With nvcc and without a GPU the real program is built, starts, and says what is missing."""
    _need_nvcc()
    if _has_gpu():
        pytest.skip("there is a GPU here: the next test measures it")
    with pytest.raises(EnvironmentMissingError, match="no NVIDIA GPU can be used"):
        run_program(build.build(PROGRAM))


@pytest.mark.gpu
@pytest.mark.nvcc
def test_this_gpu_is_measured() -> None:
    """On a GPU every rate has a small spread, and none exceeds its published value."""
    _need_nvcc()
    if not _has_gpu():
        pytest.skip("no GPU here")
    measured = parse_attainable(run_program(build.build(PROGRAM), 5), "output", measured_unix_s=int(time.time()))
    assert {"dram_read", "dram_copy", "l2", "smem", "fp64", "fp32", "fp16", "tensor_fp16"} <= measured.rates.keys()
    for name, rate in measured.rates.items():
        assert rate.max / rate.min < 1.25, name
    gpu = datasheet_of(measured.gpu)
    if gpu is None:
        pytest.skip(f"`{measured.gpu}` is in no GPU file: nothing to compare with")
    assert measured.rates["dram_read"].median < 1.02 * gpu.dram_bandwidth.value
    for name, peak in gpu.peaks.items():
        rate = measured.rates.get(name)
        if rate is not None:
            clock_hz = rate.sm_clock_hz or measured.sm_clock_hz
            assert rate.median < 1.02 * peak.value * max(1.0, clock_hz / gpu.boost_clock.value), name
