from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rooflens.errors import EnvironmentMissingError
from rooflens.workloads import torch_harness
from rooflens.workloads.commands import HARNESS, command_for, measuring_command, profiled_command, require_torch
from rooflens.workloads.registry import find_workload, parse_workload

CUDA = parse_workload(
    Path("fma"),
    """
kind = "cuda"
summary = "a chain of multiply-adds"
program = "main.cu"

[[case]]
name = "long"
parameters = { size = 1024, iters = 64 }
dtype = "fp32"
source = "by counting"
expect = { bound = "compute", resource = "fp32", why = "no memory" }
""",
)


def test_a_cuda_workload_gets_its_parameters() -> None:
    """A compiled program gets each parameter of the case by name, and the iterations."""
    command = command_for(CUDA, CUDA.case(None), 20, Path("/cache/fma"))
    assert command == ("/cache/fma", "--size", "1024", "--iters", "64", "--iterations", "20")
    assert command_for(CUDA, CUDA.case(None), 20, Path("/cache/fma"), watch_kernels=True) == command


def test_a_cuda_workload_needs_its_program() -> None:
    """For a compiled workload without its program there is no command."""
    with pytest.raises(ValueError, match="its program is needed"):
        command_for(CUDA, CUDA.case(None), 1)


@pytest.mark.parametrize("watch_kernels", [False, True])
def test_the_harness_understands_its_command(watch_kernels: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A PyTorch workload runs in this interpreter's harness, which parses the options as meant."""
    workload = find_workload("attention")
    command = command_for(workload, workload.case("naive"), 3, watch_kernels=watch_kernels)
    assert command[:3] == (sys.executable, "-m", HARNESS)
    assert torch_harness.__name__ == HARNESS
    options = torch_harness.parse_options(command[3:])
    assert (options.names, options.cases, options.iterations) == (["attention"], ["naive"], 3)
    assert (options.timing == "profiler") == watch_kernels
    assert not options.toy


def test_cases_of_several_workloads_are_one_command() -> None:
    """One harness runs all cases: timed, they are checked and traced; under ncu they are marked instead."""
    names = ["attention.naive", "gemm.bf16_128"]
    timed = torch_harness.parse_options(measuring_command(names, 20, 30.4)[3:])
    profiled = torch_harness.parse_options(profiled_command(names)[3:])
    assert timed.names == profiled.names == names
    assert (timed.iterations, timed.timing, timed.check, timed.mark_cases, timed.seconds) == (
        20,
        "profiler",
        1,
        False,
        30,
    )
    assert (profiled.iterations, profiled.timing, profiled.check, profiled.mark_cases) == (1, "wall", 0, True)
    assert profiled.seconds is None


def test_missing_torch_is_said_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch is looked for without being imported."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(EnvironmentMissingError, match="PyTorch is not installed") as caught:
        require_torch()
    assert caught.value.hint == "pip install torch"
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    require_torch()
