"""A trace opened in Python says what the terminal says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.traces import host, kernel, launch, write_trace

import rooflens as rl
from rooflens.cli.group import main
from rooflens.errors import InputError, UsageError

STEP = "examples/step.synthetic.json"


def test_a_trace_is_a_program_in_python_as_in_the_terminal() -> None:
    """`open` and `trace` give the same program, whose headline, sums and rows are those of the command's JSON."""
    program = rl.open(STEP)
    written = json.loads(CliRunner().invoke(main, ["analyze", STEP, "--format", "json"]).output)
    assert program.record == rl.trace(STEP).record
    assert program.headline in CliRunner().invoke(main, ["analyze", STEP]).output
    assert [one["name"] for one in written["kernels"]] == list(program.kernels.to_pandas()["name"])
    assert sum(program.operators.to_pandas()["time_ns"]) == program.time_ns
    parts = program.parts
    assert parts.kernels_ns + parts.idle_ns + parts.copies_ns + parts.communication_ns == parts.wall_ns
    assert len(program.steps) == len(written["steps"])
    assert len(repr(program)) < 160


def test_two_traces_are_compared_and_a_report_is_no_side_of_them() -> None:
    """Opened or as paths, a program is as fast as itself; strangers of another kind are refused."""
    compared = rl.compare(STEP, rl.open(STEP))
    assert (compared.lost_ns, compared.outcome) == (0, "same")
    with pytest.raises(InputError, match="one side is a trace"):
        rl.compare(STEP, "fixtures/synthetic/attention.synthetic.ncu-rep")
    with pytest.raises(UsageError, match="2 traces"):
        rl.open(STEP, STEP)


def test_a_report_beside_a_trace_refines_it() -> None:
    """`open(TRACE, REPORT)` counts what the report has measured."""
    beside = rl.open(STEP, "fixtures/synthetic/attention.synthetic.ncu-rep")
    assert any(one.measured for one in beside.kernels)


def test_a_comparison_is_the_same_each_time(tmp_path: Path) -> None:
    """Kernels of one name stand in the order of the trace, and not of a set, which each process draws anew."""
    events = []
    for number in range(8):
        dims = {"Input Dims": [[8 + number, 8], [8, 8]], "Input type": ["float", "float"]}
        events += [
            host("cpu_op", "aten::mm", 10.0 * number, 8.0, **dims),
            launch(10.0 * number + 1, number),
            kernel("gemm", 200.0 + 10 * number, correlation=number),
        ]
    trace = str(write_trace(tmp_path / "step.json", events))
    command = [sys.executable, "-m", "rooflens", "compare", trace, trace, "--format", "json"]
    answers = {
        subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(answers) == 1
