"""Test the rows of a trace by operator, module, kernel and shape, against sums worked out from the trace itself."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from support.traces import Event, host, kernel, launch, write_trace

from rooflens.cli.group import main
from rooflens.model.program.grouping import GROUPED_BY
from rooflens.model.program.program import Program
from rooflens.programs import read_programs

GPU = "NVIDIA A100-SXM4-40GB"
CALLS = [
    # operator, rows of its tensors, module, kernel, microseconds
    ("aten::mul", 4096, "Attention_0", "mul_kernel", 200.0),
    ("aten::mul", 4096, "Attention_1", "mul_kernel", 210.0),
    ("aten::mul", 8192, "Feed_0", "mul_kernel", 400.0),
    ("aten::cos", 4096, "Feed_0", "cos_kernel", 190.0),
    ("aten::unique", 4096, "Feed_0", "sort_kernel", 90.0),
    (None, 0, None, "memory_kernel", 50.0),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a trace of six launches in three modules."""
    events: list[Event] = []
    for number, (operator, rows, module, name, took) in enumerate(CALLS, 1):
        at = 20.0 * number
        if module:
            events.append(host("python_function", f"nn.Module: {module}", at, 18))
        if operator:
            args = {"Input type": ["float"], "Input Dims": [[rows, 4096]]}
            events.append(host("cpu_op", operator, at + 1, 12, **args))
        events += [launch(at + 3, number), kernel(name, 1000.0 + 500 * number, took, correlation=number)]
    return write_trace(tmp_path / "t.json", events, deviceProperties=[{"id": 0, "name": GPU}])


@pytest.fixture
def program(path: Path) -> Program:
    """Read it."""
    return read_programs([path])[0]


def by_hand(key: Any) -> dict[Any, tuple[int, int]]:
    """Sum launches and nanoseconds of the calls up."""
    found: defaultdict[Any, list[float]] = defaultdict(lambda: [0, 0.0])
    for call in CALLS:
        found[key(*call)][0] += 1
        found[key(*call)][1] += call[4]
    return {name: (int(count), round(1000 * took)) for name, (count, took) in found.items()}


def test_groups_are_the_sums_of_their_calls(program: Program) -> None:
    """Launches and times by operator, module, kernel and shape are those of the trace; numbered modules are one."""
    hands = {
        "operator": by_hand(lambda operator, *_: operator),
        "module": by_hand(lambda _, __, module, *___: module if module != "Attention_1" else "Attention_0"),
        "kernel": by_hand(lambda *call: call[3]),
        "shape": by_hand(lambda operator, rows, *_: f"{operator} [{rows}, 4096]" if operator else None),
    }
    hands["module"]["Attention_*"] = hands["module"].pop("Attention_0")
    found = {by: {one.name: (one.count, one.time_ns) for one in program.grouped(by)} for by in GROUPED_BY}
    assert found == hands


def test_groups_open_to_their_kernels_and_add_up(program: Program) -> None:
    """The rows of a group are its launches, the groups all of the program's, and a part that has no floor is said."""
    for by in GROUPED_BY:
        groups = program.grouped(by)
        assert sum(group.time_ns for group in groups) == program.time_ns
        assert sum(group.share for group in groups) == pytest.approx(program.parts.kernels_ns / program.parts.wall_ns)
        assert all(sum(row.time_ns for row in group.rows) == group.time_ns for group in groups)
        assert sum(group.floor_ns or 0.0 for group in groups) == pytest.approx(
            sum(one.floor_ns or 0.0 for one in program.every)
        )
    feed = next(group for group in program.grouped("module") if group.name == "Feed_0")
    assert (feed.time_ns, feed.floor_time_ns) == (680_000, 590_000)
    assert [row.kernel.name for row in feed.rows] == ["mul_kernel", "cos_kernel", "sort_kernel"]


def test_a_terminal_and_json_show_the_groups(path: Path) -> None:
    """`--by` sets the groups in the table in place of the kernels; JSON holds operators and modules with their rows."""
    texts = {by: CliRunner().invoke(main, ["analyze", str(path), "--by", by]) for by in GROUPED_BY}
    assert {by: result.exit_code for by, result in texts.items()} == dict.fromkeys(GROUPED_BY, 0)
    assert "aten::mul" in texts["operator"].stdout
    assert "Attention_*" in texts["module"].stdout
    assert "aten::mul [8192, 4096]" in texts["shape"].stdout
    assert "To win, most first" not in texts["operator"].stdout
    written = json.loads(CliRunner().invoke(main, ["analyze", str(path), "--format", "json"]).stdout)
    assert [(one["name"], one["time_ns"]) for one in written["operators"]][:2] == [
        ("aten::mul", 810_000),
        ("aten::cos", 190_000),
    ]
    assert [row["shape"] for row in written["operators"][0]["rows"]] == ["[4096, 4096]", "[8192, 4096]"]
    schema = Path(__file__).parents[3] / "rooflens" / "report" / "trace.schema.json"
    jsonschema.validate(written, json.loads(schema.read_text(encoding="utf-8")))


def test_by_is_for_traces(tmp_path: Path) -> None:
    """A report has no operators to sum up by."""
    report = tmp_path / "report.ncu-rep"
    report.write_bytes(b"NVR\0")
    result = CliRunner().invoke(main, ["analyze", str(report), "--by", "operator"])
    assert result.exit_code == 2
    assert "--by sums up the kernels of a trace" in result.stderr
