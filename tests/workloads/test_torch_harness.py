"""Run the harness' command line where PyTorch or a GPU is missing, and where it is called wrongly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rooflens.workloads import torch_harness

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from rooflens.workloads.torch_harness import main
sys.exit(main(sys.argv[1:]))
"""


def test_missing_pytorch_is_one_error_with_a_hint() -> None:
    """Without PyTorch the harness exits 3 and says how to get it; stdout stays empty."""
    argv = [sys.executable, "-c", WITHOUT_TORCH, "attention", "--device", "cpu", "--toy"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - this interpreter
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "error: PyTorch is not installed\n\nhint: pip install torch\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nothing"], 2, "error: no workload is called `nothing`\n\nhint: `rooflens workloads` lists them\n"),
        (["mlp", "--case", "x"], 2, "no case of `mlp` is called `x`\n\nhint: one of: batch_1, batch_32, batch_512\n"),
    ],
)
def test_unknown_names_are_usage_errors(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown workload or case is named, with the known ones."""
    assert torch_harness.main(arguments) == status
    output = capsys.readouterr()
    assert (output.out, message in output.err) == ("", True)


@pytest.mark.parametrize("arguments", [[], ["dot", "--iterations", "0"], ["dot", "--device", "tpu"]])
def test_a_wrong_call_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A missing name, no iterations and an unknown device end the process with status 2."""
    with pytest.raises(SystemExit) as caught:
        torch_harness.main(arguments)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_cuda_program_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A workload that nvcc compiles is not this harness' business."""
    workload = torch_harness.find_workload("dot")
    monkeypatch.setattr(torch_harness, "find_workload", lambda _: _as_cuda(workload))
    assert torch_harness.main(["dot"]) == 2
    assert capsys.readouterr().err.startswith("error: workload `dot` is not a PyTorch program")


def _as_cuda(workload: torch_harness.Workload) -> object:
    return type(workload)(workload.name, "cuda", workload.summary, workload.program, workload.folder, workload.cases)
