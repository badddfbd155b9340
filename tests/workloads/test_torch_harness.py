"""The harness' command line without PyTorch or a GPU, and with wrong arguments."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import pytest

from rooflens.errors import EnvironmentMissingError
from rooflens.workloads import torch_harness

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from rooflens.workloads.torch_harness import main
sys.exit(main(sys.argv[1:]))
"""


def test_missing_pytorch_is_one_error_with_a_hint() -> None:
    """Without PyTorch the harness exits with 3 and says how to get it; stdout stays empty."""
    argv = [sys.executable, "-c", WITHOUT_TORCH, "attention", "--device", "cpu", "--toy"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - this interpreter
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "error: PyTorch is not installed\n\nhint: pip install torch\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nothing"], 2, "error: no workload is called `nothing`\n\nhint: `rooflens workloads` lists them\n"),
        (["mlp.x"], 2, "no case of `mlp` is called `x`\n\nhint: one of: batch_1, batch_32, batch_512\n"),
        (["mlp", "dot", "--case", "x"], 2, "--case is for one workload\n\nhint: name cases of several as NAME.CASE\n"),
        (["mlp", "--case", "x"], 2, "no case of `mlp` is called `x`\n\nhint: one of: batch_1, batch_32, batch_512\n"),
    ],
)
def test_unknown_names_are_usage_errors(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown workload or case is an error that lists the known ones."""
    assert torch_harness.main(arguments) == status
    output = capsys.readouterr()
    assert (output.out, message in output.err) == ("", True)


class _Measure(ModuleType):
    """A stand-in for `torch_measure`: batch_1 does not fit into memory, batch_32 has a wrong result."""

    MeasurePlan = staticmethod(lambda *_, **__: None)

    @staticmethod
    def find_device(name: str, _: str) -> str:
        """Find any device."""
        return name

    @staticmethod
    def measure(_: object, parameters: dict[str, int], *__: object) -> Measured:
        """Fail, give a wrong result, or a right one."""
        if "batch" not in parameters:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if parameters["batch"] == 1:
            raise EnvironmentMissingError("the case does not fit", "try another case")
        return Measured(wall_ns=parameters["batch"], ok=parameters["batch"] != 32)


@dataclass
class Measured:
    """The result of a case."""

    wall_ns: int
    ok: bool


def test_a_case_that_fails_is_named_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One process runs the cases in order; the first that fails decides the exit status."""
    stands_in = {"torch": SimpleNamespace(__version__="2.9.0"), "rooflens.workloads.torch_measure": _Measure("m")}
    monkeypatch.setattr(torch_harness, "_import", stands_in.get)
    cases = [case.name for case in torch_harness.find_workload("mlp").cases]
    named = [part for name in cases for part in ("--case", name)]
    assert torch_harness.main(["mlp", *named]) == 3
    output = capsys.readouterr()
    lines = [json.loads(line) for line in output.out.splitlines()]
    assert [(line["case"], line["wall_ns"], line["ok"]) for line in lines] == [
        ("batch_32", 32, False),
        ("batch_512", 512, True),
    ]
    assert output.err == "error: mlp.batch_1: the case does not fit\n\nhint: try another case\n"
    assert torch_harness.main(["mlp", "--case", "batch_512"]) == 0
    assert torch_harness.main(["mlp", "--case", "batch_512", "--case", "batch_32"]) == 1
    assert torch_harness.main(["mlp.batch_512", "mlp.batch_32", "--mark-cases"]) == 0
    assert torch_harness.main(["mlp", "--mark-cases"]) == 3
    capsys.readouterr()
    assert torch_harness.main(["softmax", "mlp.batch_512", "mlp"]) == 1
    output = capsys.readouterr()
    assert [json.loads(line)["case"] for line in output.out.splitlines()] == ["batch_512"]
    assert output.err.startswith("error: softmax.bf16_4096: Traceback ")
    assert "an illegal memory access" in output.err
    assert torch_harness.main(["mlp.batch_512", "mlp.batch_1", "--seconds", "0"]) == 0
    said = capsys.readouterr()
    assert [json.loads(line)["case"] for line in said.out.splitlines()] == ["batch_512"]
    assert said.err == "mlp.batch_1: left out: 0.0 s are left, and one took 0.0 s\n"


@pytest.mark.parametrize("arguments", [[], ["dot", "--iterations", "0"], ["dot", "--device", "tpu"]])
def test_a_wrong_call_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A missing name, zero iterations and an unknown device exit with 2."""
    with pytest.raises(SystemExit) as caught:
        torch_harness.main(arguments)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_cuda_program_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A compiled workload is refused by the harness."""
    workload = torch_harness.find_workload("dot")
    monkeypatch.setattr(torch_harness, "find_workload", lambda _: _as_cuda(workload))
    assert torch_harness.main(["dot"]) == 2
    assert capsys.readouterr().err.startswith("error: workload `dot` is not a PyTorch program")


def _as_cuda(workload: torch_harness.Workload) -> object:
    return type(workload)(workload.name, "cuda", workload.summary, workload.program, workload.folder, workload.cases)
