from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report, write_report

from rooflens.errors import InputError
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.model.analyze import analyze
from rooflens.report.data import to_json

DURATION = {"gpu__time_duration.sum": 1000.0}


def test_opcode_tables_and_every_value_are_read(tmp_path: Path) -> None:
    """A kernel's opcode table is in its record, and every stored value is in the raw columns, to the digit."""
    table = Instances({"FFMA": 2**53 - 1, "HMMA.16816.F32.BF16": 5}, 0)
    metrics = {**DURATION, "sass__inst_executed_per_opcode_with_modifier_all": table, "a__text": "as it was"}
    file = write_report(tmp_path / "one.ncu-rep", ReportSpec([KernelSpec("void kernel<int>(float *)", metrics)]))
    report = read_report(file, "one", ReadOptions(raw="all"))
    (kernel,) = report.kernels
    assert kernel.warp_opcodes == {"FFMA": 2**53 - 1, "HMMA.16816.F32.BF16": 5}
    assert (kernel.name, kernel.function_name) == ("kernel<int>", "kernel")
    assert report.raw is not None
    assert report.instances is not None
    stored = report.instances.to_pydict()
    values = list(zip(stored["name"], stored["instance_key"], stored["value_uint64"], strict=True))
    assert ("sass__inst_executed_per_opcode_with_modifier_all", "FFMA", 2**53 - 1) in values
    assert "as it was" in report.raw["value_string"].to_pylist()


def test_a_kernel_of_nan_is_failed_and_has_no_counters(tmp_path: Path) -> None:
    """A kernel whose profiling failed keeps its place, and none of its NaN values becomes a number."""
    kernels = [KernelSpec("good()", DURATION), KernelSpec("bad()", {"gpu__time_duration.sum": math.nan})]
    file = write_report(tmp_path / "nan.ncu-rep", ReportSpec(kernels))
    good, bad = read_report(file, "nan").kernels
    assert (good.status, bad.status) == ("ok", "failed")
    assert bad.index == 1
    assert bad.counters == {}


def test_different_metric_lists_in_one_report_stay_apart(tmp_path: Path) -> None:
    """A counter that only a neighbouring kernel has is missing, not zero."""
    kernels = [KernelSpec("first()", {**DURATION, "dram__bytes.sum": 64.0}), KernelSpec("second()", DURATION)]
    file = write_report(tmp_path / "lists.ncu-rep", ReportSpec(kernels))
    first, second = read_report(file, "lists").kernels
    assert first.counters["dram_bytes"] == 64.0
    assert "dram_bytes" not in second.counters


def test_a_metric_without_a_value_has_none(tmp_path: Path) -> None:
    """NVIDIA's module gives 0 for it; here the raw columns have its name without a number, and it gives no counter."""
    metrics = {**DURATION, "dram__bytes.sum": None}
    file = write_report(tmp_path / "empty.ncu-rep", ReportSpec([KernelSpec("kernel()", metrics)]))
    report = read_report(file, "empty", ReadOptions(raw="all"))
    assert report.raw is not None
    (row,) = [row for row in report.raw.to_pylist() if row["name"] == "dram__bytes.sum"]
    assert (row["value_double"], row["value_uint64"], row["value_string"]) == (None, None, None)
    assert "dram_bytes" not in report.kernels[0].counters


def test_a_report_without_results_is_an_error(tmp_path: Path) -> None:
    """A report without kernels is refused, never read as `0 kernels`."""
    file = write_report(tmp_path / "none.ncu-rep", ReportSpec([]))
    with pytest.raises(InputError):
        read_report(file, "none")


def test_text_that_is_no_utf8_is_replaced(tmp_path: Path) -> None:
    """Kernel names in Latin-1 and file names that are not UTF-8 become text that every writer accepts."""
    data = encode_report(ReportSpec([KernelSpec("kernel_XX(int)", DURATION)])).replace(b"kernel_XX", b"kernel_\xe9\xff")
    file = tmp_path / os.fsdecode(b"caf\xe9.ncu-rep")
    file.write_bytes(data)
    report = read_report(file, str(file), ReadOptions(raw="all"))
    (kernel,) = report.kernels
    assert kernel.function_name == "kernel_\ufffd\ufffd"
    to_json([analyze(kernel)]).encode("utf-8")
    report.run.source.encode("utf-8")


def test_numbers_that_are_none_do_not_stop_the_reading(tmp_path: Path) -> None:
    """Infinite launch figures are left out, and the kernel is read."""
    metrics = {
        **DURATION,
        "launch__grid_dim_x": math.inf,
        "launch__grid_dim_y": 1.0,
        "launch__grid_dim_z": 1.0,
    }
    file = write_report(tmp_path / "odd.ncu-rep", ReportSpec([KernelSpec("kernel()", metrics)]))
    (kernel,) = read_report(file, "odd").kernels
    assert (kernel.grid, kernel.status) == (None, "ok")


def test_an_impossible_count_of_an_opcode_fails_its_kernel(tmp_path: Path) -> None:
    """A count too large for the store is damage: the kernel fails with the reason, and the report is read."""
    table = Instances({"FFMA": 2**63 + 5, "FADD": 7}, 0)
    metrics = {**DURATION, "sass__inst_executed_per_opcode_with_modifier_all": table}
    file = write_report(
        tmp_path / "odd.ncu-rep", ReportSpec([KernelSpec("odd()", metrics), KernelSpec("k()", DURATION)])
    )
    odd, good = read_report(file, "odd").kernels
    assert (odd.status, odd.warp_opcodes, good.status) == ("failed", {}, "ok")
    assert "FFMA" in (odd.status_reason or "")


def test_values_are_packed_in_blocks_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report larger than one block gives the rows of all its blocks, in order."""
    monkeypatch.setattr("rooflens.ingest.metrics.raw.ROWS_PER_BLOCK", 3)
    metrics = {f"m__{number}.sum": float(number) for number in range(10)}
    file = write_report(tmp_path / "blocks.ncu-rep", ReportSpec([KernelSpec("kernel()", metrics)]))
    raw = read_report(file, "blocks", ReadOptions(raw="all")).raw
    assert raw is not None
    assert raw["value_double"].to_pylist() == [float(number) for number in range(10)]
    assert raw["digest"].combine_chunks().dictionary.to_pylist() == [read_report(file, "b").run.digest]
