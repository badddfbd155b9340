from __future__ import annotations

from pathlib import Path

import pytest
from support.loops import for_all

from rooflens.workloads.commands import HARNESS, command_for, command_of_case, in_turn_command
from rooflens.workloads.recognize import Recognized, recognize
from rooflens.workloads.registry import load_workloads

DIGEST = "0123456789abcdef" * 4
NCU = "/opt/ncu --nvtx --nvtx-include rooflens --filter-mode per-launch-config --launch-count 1 --metrics a.sum,b.sum"


def program(name: str, options: str, architecture: str = "sm_90") -> str:
    """Write the command line of a compiled workload under ncu."""
    return f"{NCU} /home/me/.cache/rooflens/cuda/{name}-{architecture}-{DIGEST} {options}"


def found(command_line: str) -> Recognized:
    """Recognize what must be recognized."""
    recognized = recognize(command_line)
    assert recognized is not None
    return recognized


def test_every_case_is_recognized_by_its_own_command() -> None:
    """The command line of `profile` is recognized in its report, with all sizes."""
    for workload in load_workloads():
        for case in workload.cases:
            binary = Path(f"/cache/{workload.name}-sm_90-{DIGEST}") if workload.kind == "cuda" else None
            recognized = found(" ".join(("ncu", "--export", "x", *command_for(workload, case, 1, binary))))
            assert (recognized.workload.name, recognized.case.name) == (workload.name, case.name)
            assert dict(recognized.parameters) == dict(case.parameters)
            assert recognized.as_listed
            assert recognized.iterations == 1


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90a", "native"])
def test_other_sizes_keep_the_formulas_of_the_nearest_case(architecture: str) -> None:
    """A program with the user's sizes gets the formulas of the most similar case, without its expected limiter."""
    recognized = found(program("gemm_ladder", "--rung 8 --n 2048 --check 0 --iterations 5", architecture))
    assert recognized.case.name == "08_tensor_core"
    assert not recognized.as_listed
    assert recognized.iterations == 5
    assert recognized.case.flop_count(recognized.parameters) == 2 * 2048**3
    assert recognized.case.byte_count(recognized.parameters) == 8 * 2048**2


def test_formulas_that_are_equally_near_are_not_guessed() -> None:
    """Sizes shared equally by two cases with different formulas give no prediction."""
    assert recognize(program("pointer_chase", "--lines 8192 --steps 16384 --iterations 1")) is None
    assert recognize(program("fma", "--n 4096 --iters 512 --iterations 1")) is not None


def test_the_harness_is_read_as_it_reads_itself() -> None:
    """Without options the first case runs once; a toy run has toy sizes; `=` joins like a space."""
    first = found(f"ncu python -m {HARNESS} gemm")
    assert (first.case.name, first.iterations) == ("bf16_4096", 1)
    toy = found(f"ncu python3 -u -m {HARNESS} attention --case=naive --toy --iterations=3")
    assert toy.parameters["length"] == 32
    assert not toy.as_listed
    assert toy.iterations == 3


@for_all(
    "command_line",
    [
        None,
        "",
        "ncu ./gemm --m 4096 --n 4096 --k 4096",
        "ncu ./saxpy --n 65536 --iterations 1",
        "ncu ./saxpy-sm_90 --n 65536 --iterations 1",
        f"ncu ./saxpy-sm_90-{DIGEST[:63]} --n 65536 --iterations 1",
        f"ncu ./mine-sm_90-{DIGEST} --n 65536 --iterations 1",
        f"ncu ./gemm-sm_90-{DIGEST} --m 1 --n 1 --k 1",
        program("saxpy", ""),
        program("saxpy", "--iterations 1"),
        program("saxpy", "--n 65536 --iterations 0"),
        program("saxpy", "--n 65536 --iterations 1 --seed 4"),
        program("saxpy", "--n 65536 --iterations"),
        program("saxpy", "--n many --iterations 1"),
        program("saxpy", f"--n {'9' * 5000} --iterations 1"),
        program("saxpy", "n 65536"),
        program("saxpy", "--n 65536 ./other"),
        f"ncu python -m {HARNESS}",
        f"ncu python -m {HARNESS} nosuch",
        f"ncu python -m {HARNESS} saxpy",
        f"ncu python -m {HARNESS} gemm --case nosuch",
        f"ncu python -m {HARNESS} gemm --case",
        f"ncu python -m {HARNESS} gemm --toy=1",
        f"ncu python -m {HARNESS} gemm --iterations {'9' * 5000}",
        f"ncu python -m {HARNESS} gemm --case fp16_4096 --case bf16_4096",
        f"ncu python -m {HARNESS} gemm --batch 4",
        f"ncu python -m {HARNESS} gemm | tee log",
        f"ncu python train.py {HARNESS} gemm",
    ],
)
def test_what_is_not_ours_is_left_alone(command_line: str | None) -> None:
    """Somebody else's program with a workload's name, or a line that cannot be parsed to its end, is not recognized."""
    assert recognize(command_line) is None


def test_a_case_of_many_is_recognized_by_its_part_of_the_command_line() -> None:
    """The command line of one process, or of programs in turn, is reduced to the words of one case."""
    several = f"ncu --nvtx python -m {HARNESS} gemm.bf16_1024 attention.fused --iterations 1 --check 0 --mark-cases"
    assert recognize(several) is None
    part = found(command_of_case(several, "attention.fused"))
    assert (part.workload.name, part.case.name, part.iterations) == ("attention", "fused", 1)
    programs = {
        f"saxpy.{case}": (f"/cache/saxpy-sm_90a-{DIGEST}", "--n", size, "--iterations", "1", "--check", "0")
        for case, size in (("n16", "65536"), ("n28", "268435456"))
    }
    in_turn = f"{NCU} {' '.join(in_turn_command(programs, 55))}"
    assert recognize(in_turn) is None
    for name, argv in programs.items():
        line = command_of_case(in_turn, name)
        assert line == f"{NCU} {' '.join(argv)}"
        assert found(line).case.name == name.partition(".")[2]
    for other in (several, in_turn, f"{NCU} sh -c true", "ncu ./a.out"):
        assert command_of_case(other, "gemm.fp8_4096") == other
