from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, write_report

from rooflens.errors import InputError
from rooflens.ingest.reader import read_report

if TYPE_CHECKING:
    from pathlib import Path

DURATION = {"gpu__time_duration.sum": 1000.0}


def test_opcode_tables_and_every_value_are_read(tmp_path: Path) -> None:
    """A kernel's opcode table reaches its record, and every stored value the raw columns, to the digit."""
    table = Instances({"FFMA": 2**53 - 1, "HMMA.16816.F32.BF16": 5}, 0)
    metrics = {**DURATION, "sass__inst_executed_per_opcode_with_modifier_all": table, "a__text": "as it was"}
    file = write_report(tmp_path / "one.ncu-rep", ReportSpec([KernelSpec("void kernel<int>(float *)", metrics)]))
    report = read_report(file, "one", with_raw=True)
    (kernel,) = report.kernels
    assert kernel.warp_opcodes == {"FFMA": 2**53 - 1, "HMMA.16816.F32.BF16": 5}
    assert (kernel.name, kernel.function_name) == ("kernel<int>", "kernel")
    assert report.raw is not None
    values = list(zip(report.raw.name, report.raw.instance_key, report.raw.value_uint64, strict=True))
    assert ("sass__inst_executed_per_opcode_with_modifier_all", "FFMA", 2**53 - 1) in values
    assert "as it was" in report.raw.value_string


def test_a_kernel_of_nan_is_failed_and_has_no_counters(tmp_path: Path) -> None:
    """A kernel whose profiling failed keeps its place, and none of its NaN becomes a number."""
    kernels = [KernelSpec("good()", DURATION), KernelSpec("bad()", {"gpu__time_duration.sum": math.nan})]
    file = write_report(tmp_path / "nan.ncu-rep", ReportSpec(kernels))
    good, bad = read_report(file, "nan", with_raw=False).kernels
    assert (good.status, bad.status) == ("ok", "failed")
    assert bad.index == 1
    assert bad.counters == {}


def test_different_metric_lists_in_one_report_stay_apart(tmp_path: Path) -> None:
    """A counter that one kernel has and its neighbour lacks is missing there, not zero."""
    kernels = [KernelSpec("first()", {**DURATION, "dram__bytes.sum": 64.0}), KernelSpec("second()", DURATION)]
    file = write_report(tmp_path / "lists.ncu-rep", ReportSpec(kernels))
    first, second = read_report(file, "lists", with_raw=False).kernels
    assert first.counters["dram_bytes"] == 64.0
    assert "dram_bytes" not in second.counters


def test_a_report_without_results_is_an_error(tmp_path: Path) -> None:
    """A report of no kernels is refused: it is never `0 kernels`."""
    file = write_report(tmp_path / "none.ncu-rep", ReportSpec([]))
    with pytest.raises(InputError):
        read_report(file, "none", with_raw=False)
