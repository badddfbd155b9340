"""Run every case of every PyTorch workload with toy sizes on the CPU, by command line or in this process."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import warnings
from types import ModuleType

import pytest

from rooflens.errors import EnvironmentMissingError
from rooflens.model.cases import Case, Workload
from rooflens.workloads import torch_harness
from rooflens.workloads.registry import load_workloads

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from rooflens.workloads import torch_measure  # noqa: E402 - it imports torch

with warnings.catch_warnings():
    # Inductor imports it at its first compilation, and with it setuptools, which replaces distutils, warns about that,
    # and stays half imported where a warning is an error. Here no test has run yet.
    warnings.simplefilter("ignore")
    importlib.import_module("torch.utils.cpp_extension")

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a Triton kernel is defined

WORKLOADS = [workload for workload in load_workloads() if workload.kind == "torch"]
CASES = [(workload, case) for workload in WORKLOADS for case in workload.cases]


def _marks(workload: Workload) -> list[pytest.MarkDecorator]:
    """Skip Triton workloads if Triton is not installed: CI never has it, and the others pass without it."""
    program = (workload.folder / workload.program).read_text(encoding="utf-8")
    is_lacking = "import triton" in program and importlib.util.find_spec("triton") is None
    return [pytest.mark.skip(reason="Triton is not installed: pip install triton")] if is_lacking else []


EVERY_WORKLOAD = pytest.mark.parametrize(
    "workload", [pytest.param(one, marks=_marks(one), id=one.name) for one in WORKLOADS]
)
EVERY_CASE = pytest.mark.parametrize(
    ("workload", "case"),
    [
        pytest.param(workload, case, id=f"{workload.name}-{case.name}", marks=_marks(workload))
        for workload, case in CASES
    ],
)
# torch.compile imports PyTorch modules that PyTorch deprecates; Triton announces a changed default.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION is unset:UserWarning"),
]
FIELDS = {
    "workload": str,
    "case": str,
    "iterations": int,
    "launches": int | None,
    "wall_ns": int,
    "kernel_ns": int | None,
    "cold_ns": int | None,
    "max_relative_error": float | None,
    "tolerance": float,
    "ok": bool,
}


@pytest.fixture(autouse=True, scope="module")
def _only_what_cases_leave_is_collected() -> None:
    """Keep earlier tests' objects out of garbage collection before each case: it took longer than the cases."""
    gc.collect()
    gc.freeze()


def _load(workload: Workload) -> ModuleType:
    try:
        return torch_harness.load_program(workload)
    except EnvironmentMissingError as error:
        pytest.skip(f"{error}: {error.hint}")


def _arguments(workload: Workload, case: Case, *more: str) -> list[str]:
    return [workload.name, "--case", case.name, "--iterations", "2", "--device", "cpu", "--toy", *more]


def _check_line(text: str, workload: Workload, case: Case) -> None:
    assert text.count("\n") == 1
    line = json.loads(text)
    assert list(line) == list(FIELDS)
    assert all(isinstance(line[name], kind) for name, kind in FIELDS.items())
    assert (line["workload"], line["case"], line["iterations"]) == (workload.name, case.name, 2)
    assert line["wall_ns"] > 0
    assert line["max_relative_error"] <= line["tolerance"]
    assert line["ok"] is True


def _skip_without_what_it_needs(workload: Workload, case: Case) -> None:
    _load(workload)
    is_compiled = case.name in {"cos_cos_fused", "fused"} and "fused" in case.parameters
    if is_compiled and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("torch.compile needs a C++ compiler for the CPU: g++ or clang++")


@EVERY_WORKLOAD
def test_the_command_line_prints_one_line_and_exits_0(workload: Workload) -> None:
    """The first case of a workload runs in its own process, as a profiler would start it."""
    case = workload.cases[0]
    argv = [sys.executable, "-m", "rooflens.workloads.torch_harness", *_arguments(workload, case)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - this interpreter
    assert done.returncode == 0, done.stderr
    _check_line(done.stdout, workload, case)


@EVERY_CASE
def test_every_case_matches_its_reference(workload: Workload, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """Every case with toy sizes is within its tolerance; on the CPU there are no kernels to count."""
    _skip_without_what_it_needs(workload, case)
    assert torch_harness.main(_arguments(workload, case, "--timing", "profiler")) == 0
    output = capsys.readouterr().out
    _check_line(output, workload, case)
    assert (json.loads(output)["launches"], json.loads(output)["kernel_ns"]) == (None, None)


@EVERY_CASE
def test_a_result_off_by_five_per_cent_would_be_noticed(workload: Workload, case: Case) -> None:
    """No tolerance is so wide that a forgotten scale of five percent passes."""
    program = _load(workload)
    torch.manual_seed(torch_measure.SEED)
    state = program.prepare(case.toy, torch_measure.DTYPES[case.dtype].torch, torch.device("cpu"))
    reference = program.reference(*state)
    wrong = tuple(1.05 * tensor for tensor in reference) if isinstance(reference, tuple) else 1.05 * reference
    error = torch_measure.relative_error(wrong, reference)
    assert error is not None
    assert error > program.TOLERANCE[case.dtype]


@EVERY_WORKLOAD
def test_tolerances_have_a_reason_for_every_type(workload: Workload) -> None:
    """Each type in a workload's cases has a tolerance, explained by a sentence after it."""
    program = _load(workload)
    assert set(program.TOLERANCE) == {case.dtype for case in workload.cases}
    source = (workload.folder / workload.program).read_text(encoding="utf-8")
    assert source.partition("\nTOLERANCE = ")[2].splitlines()[1].startswith('"""')


def test_no_gpu_is_an_error_with_status_3(capsys: pytest.CaptureFixture[str]) -> None:
    """If a GPU is requested but missing, the harness exits with 3, with empty stdout and a hint."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert torch_harness.main(["attention"]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert "hint: `--device cpu --toy` checks the program without a GPU" in output.err


def test_a_wrong_result_exits_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A result outside its tolerance is printed, and shows in the exit status."""
    program = torch_harness.load_program(torch_harness.find_workload("softmax"))
    monkeypatch.setattr(program, "TOLERANCE", {"bf16": 1e-9})
    assert torch_harness.main(["softmax", "--device", "cpu", "--toy"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_a_result_that_is_not_finite_is_still_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NaN is printed as null, which every JSON parser accepts."""
    program = torch_harness.load_program(torch_harness.find_workload("softmax"))
    monkeypatch.setattr(program, "run", lambda rows: rows * float("nan"))
    assert torch_harness.main(["softmax", "--device", "cpu", "--toy"]) == 1
    line = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (line["max_relative_error"], line["ok"]) == (None, False)


@pytest.mark.gpu
@EVERY_CASE
def test_every_case_matches_its_reference_on_a_gpu(
    workload: Workload, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a GPU every case with real sizes is right, and the profiler saw its kernels within the wall time."""
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU here")
    status = torch_harness.main([workload.name, "--case", case.name, "--iterations", "3", "--timing", "profiler"])
    output = capsys.readouterr()
    if status == 3:
        pytest.skip(output.err)
    assert status == 0, output
    line = json.loads(output.out)
    assert line["launches"] >= 3
    assert line["kernel_ns"] > 0
