from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ncu_report
import pytest
from support.ncu_rep_writer import (
    Instances,
    KernelSpec,
    ReportSpec,
    Rule,
    SessionSpec,
    encode_report,
    write_report,
)

from rooflens.ingest.reports.container import inspect

OPCODES = {"FFMA": 3.0e9, "HMMA.16816.F32.BF16": 12.0, "MUFU.EX2": 0.0}
METRICS = {
    "gpu__time_duration.sum": 12345.5,
    "launch__grid_size": 2**40,
    "device__attribute_display_name": "NVIDIA H200",
    "sass__thread_inst_executed_true_per_opcode_with_modifier_all": Instances(OPCODES, 3.0e9 + 12.0),
    "launch__occupancy_per_block_size": Instances({32: 16, 64: 32}, 48.0),
    "a__without_value.sum": None,
    "a__failed.sum": math.nan,
}
RULE = Rule("SOLBottleneck", "SpeedOfLight", "Small Grid", "This grid is too small.")
KERNEL = KernelSpec("void scale<float, 4>(const float *, int)", METRICS, (4, 3, 2), (64, 2, 1), (RULE,))


def _actions(path: Path, report: ReportSpec) -> list[Any]:
    """Write `report` and return its kernels as NVIDIA's module sees them."""
    context = ncu_report.load_report(str(write_report(path, report)))
    return [action for part in context for action in part]


def _action(path: Path) -> Any:
    """Write a report of one kernel and return it as NVIDIA's module sees it."""
    (action,) = _actions(path, ReportSpec([KERNEL]))
    return action


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a test may write its report."""
    return tmp_path / "written.ncu-rep"


def test_nvidia_reads_every_value_back(path: Path) -> None:
    """Counts, counters, names and NaN come out unchanged, under the same names."""
    action = _action(path)
    assert sorted(action.metric_names()) == sorted(METRICS)
    assert action["gpu__time_duration.sum"].value() == 12345.5
    assert action["launch__grid_size"].value() == 2**40
    assert action["device__attribute_display_name"].value() == "NVIDIA H200"
    assert math.isnan(action["a__failed.sum"].value())
    assert not action["a__without_value.sum"].has_value()


def test_nvidia_reads_every_instance_back(path: Path) -> None:
    """Opcode tables come out with their opcodes, counts and total."""
    table = _action(path)["sass__thread_inst_executed_true_per_opcode_with_modifier_all"]
    opcodes = table.correlation_ids()
    read = {opcodes.as_string(index): table.as_double(index) for index in range(table.num_instances())}
    assert read == OPCODES
    assert table.value() == 3.0e9 + 12.0


def test_instances_may_be_numbered(path: Path) -> None:
    """Numeric correlation ids come out as numbers."""
    table = _action(path)["launch__occupancy_per_block_size"]
    sizes = table.correlation_ids()
    read = {sizes.as_uint64(index): table.as_uint64(index) for index in range(table.num_instances())}
    assert read == {32: 16, 64: 32}


def test_nvidia_reads_names_and_kind_back(path: Path) -> None:
    """The kernel's demangled name, its function name and its kind come out."""
    action = _action(path)
    assert action.name(action.NameBase_DEMANGLED) == "void scale<float, 4>(const float *, int)"
    assert action.name(action.NameBase_FUNCTION) == "scale"
    assert action.workload_type() == action.WorkloadType_KERNEL


def test_nvidia_reads_rules_back(path: Path) -> None:
    """A rule result comes out with identifier, section, title and text."""
    (rule,) = _action(path).rule_results_as_dicts()
    assert (rule["rule_identifier"], rule["section_identifier"]) == ("SOLBottleneck", "SpeedOfLight")
    assert (rule["rule_message"]["title"], rule["rule_message"]["message"]) == ("Small Grid", "This grid is too small.")


@pytest.mark.parametrize("kernels_per_block", [1, 3, 100])
def test_many_kernels_in_many_blocks_are_all_read(path: Path, kernels_per_block: int) -> None:
    """However results are spread over blocks, NVIDIA's module and the container count them all."""
    kernels = [KernelSpec(f"kernel_{number}", {f"a__{number}.sum": float(number)}) for number in range(7)]
    actions = _actions(path, ReportSpec(kernels, kernels_per_block=kernels_per_block))
    assert [action.name() for action in actions] == [kernel.name for kernel in kernels]
    assert [action[f"a__{number}.sum"].value() for number, action in enumerate(actions)] == list(range(7))
    assert inspect(path).result_count == 7


def test_a_written_report_says_that_it_is_synthetic(path: Path) -> None:
    """The container, the process and the command line all say so."""
    container = inspect(write_report(path, ReportSpec([KERNEL])))
    assert container.synthetic
    assert "synthetic" in str(container.sessions[0].process_name)
    assert "synthetic" in str(container.sessions[0].command_line)


def test_a_report_without_writer_version_is_possible(path: Path) -> None:
    """Reports of 2019 and 2020 hold no ncu version, and so may written ones."""
    session = SessionSpec(ncu_version=None, command_line=None)
    (found,) = inspect(write_report(path, ReportSpec([KERNEL], session))).sessions
    assert (found.ncu_version, found.command_line) == (None, None)


def test_the_same_description_gives_the_same_bytes() -> None:
    """Writing is deterministic."""
    assert encode_report(ReportSpec([KERNEL])) == encode_report(ReportSpec([KERNEL]))
