"""Data of single instructions, from reports whose numbers can be added up by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import ncu_report
import pytest
from support.ncu_rep_writer import Instances, KernelSpec, MetricValue, ReportSpec, write_report
from support.nvidia_reads import read_with_nvidia

from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.hotspots import hottest, leading_stall, places
from rooflens.model.records import Kernel

START = 0x7F00_0000_1000
LOAD, STORE, COPY, OTHER = START, START + 16, START + 32, START + 48
STALL = "smsp__pcsamp_warps_issue_stalled_"
DURATION = {"gpu__time_duration.sum": 1000.0}
EXECUTED = {"inst_executed": Instances({LOAD: 10, STORE: 10, COPY: 4, OTHER: 2}, 26)}


def _read(tmp_path: Path, metrics: Mapping[str, MetricValue]) -> Kernel:
    file = write_report(tmp_path / "code.ncu-rep", ReportSpec([KernelSpec("kernel()", {**DURATION, **metrics})]))
    (kernel,) = read_with_nvidia(file, "code", ReadOptions()).kernels
    return kernel


def _lines(monkeypatch: pytest.MonkeyPatch, lines: Mapping[int, tuple[str, int]]) -> None:
    """Give instructions a source line, as written reports have no line table."""

    def source_info(_: object, pc: int) -> SimpleNamespace | None:
        return SimpleNamespace(file_name=lambda: lines[pc][0], line=lambda: lines[pc][1]) if pc in lines else None

    monkeypatch.setattr(ncu_report.IAction, "source_info", source_info)


def test_a_report_without_instructions_has_neither_hot_spots_nor_sums(tmp_path: Path) -> None:
    """Without data by instruction there is no code."""
    kernel = _read(tmp_path, {"inst_executed": 26})
    assert (kernel.hotspots, kernel.code_totals) == ((), {})


def test_samples_are_summed_and_placed(tmp_path: Path) -> None:
    """The instruction with the most samples comes first, with its share, its offset and its stall."""
    metrics = {
        "smsp__pcsamp_sample_count": Instances({LOAD: 1, STORE: 6, OTHER: 3}, 10),
        STALL + "long_scoreboard": Instances({LOAD: 0, STORE: 5, OTHER: 1}, 6),
        STALL + "long_scoreboard_not_issued": Instances({LOAD: 0, STORE: 100, OTHER: 1}, 101),
        STALL + "wait": Instances({LOAD: 1, STORE: 1, OTHER: 0}, 2),
        STALL + "selected": Instances({LOAD: 0, STORE: 0, OTHER: 2}, 2),
        **EXECUTED,
    }
    kernel = _read(tmp_path, metrics)
    assert kernel.code_totals == {"samples": 10, "warp_inst": 26, "stall_long_scoreboard": 6, "stall_wait": 2}
    first, second, _ = places(kernel, "samples")
    assert (first.hotspot.pc, first.share, leading_stall(first.hotspot)) == (16, 0.6, "long_scoreboard")
    assert (second.hotspot.pc, second.share) == (48, 0.3)
    assert first.hotspot.measures == {"samples": 6, "warp_inst": 10, "stall_long_scoreboard": 5, "stall_wait": 1}
    assert first.hotspot.function == "kernel"


@pytest.mark.parametrize("prefix", ["", "warpsampling:"])
def test_samples_by_reason_add_up_to_the_samples(tmp_path: Path, prefix: str) -> None:
    """If only reasons are stored, under either name, their sum is the samples, including issued ones."""
    metrics = {
        prefix + STALL + "barrier": Instances({LOAD: 2, STORE: 1}, 3),
        prefix + STALL + "selected": Instances({LOAD: 1, STORE: 4}, 5),
    }
    assert _read(tmp_path, metrics).code_totals == {"samples": 8, "stall_barrier": 3}


def test_sectors_are_divided_into_loads_and_stores(tmp_path: Path) -> None:
    """A copy to shared memory is a load, an atomic is a store; the excess is what exceeds the ideal."""
    metrics = {
        "memory_l2_theoretical_sectors_global": Instances({LOAD: 320, STORE: 80, COPY: 16, OTHER: 7}, 423),
        "memory_l2_theoretical_sectors_global_ideal": Instances({LOAD: 40, STORE: 40, COPY: 16, OTHER: 8}, 104),
        "memory_access_type": Instances({LOAD: 2, STORE: 4, COPY: 6, OTHER: 6}, 0),
        "memory_type": Instances({LOAD: 4, STORE: 4, COPY: 20, OTHER: 4}, 0),
    }
    assert _read(tmp_path, metrics).code_totals == {
        "load_sectors": 336,
        "load_excess_sectors": 280,
        "store_sectors": 87,
        "store_excess_sectors": 40,
    }


def test_a_metric_that_counted_nothing_is_zero(tmp_path: Path) -> None:
    """A stored sum of 0 is measured, with or without instances; a metric that is not stored is missing."""
    metrics = {"memory_l2_theoretical_sectors_local": 0, "memory_l1_wavefronts_shared": Instances({LOAD: 3}, 3)}
    assert _read(tmp_path, metrics).code_totals == {"local_sectors": 0, "shared_wavefronts": 3}


def test_lines_hold_the_sum_of_their_instructions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line's amounts are those of all its instructions, with its text if the file is embedded."""
    _lines(monkeypatch, {LOAD: ("a.cu", 2), STORE: ("a.cu", 2), COPY: ("b.cu", 9)})
    monkeypatch.setattr(ncu_report.IAction, "source_files", lambda _: {"a.cu": "int i;\n  y[i] = x[i];\n", "b.cu": ""})
    kernel = _read(tmp_path, EXECUTED)
    lines = hottest(kernel.hotspots, "warp_inst", by="line")
    assert [(h.file, h.line, h.text, h.measures["warp_inst"]) for h in lines] == [
        ("a.cu", 2, "y[i] = x[i];", 20),
        ("b.cu", 9, None, 4),
    ]
    assert [h.measures["warp_inst"] for h in kernel.hotspots if h.by == "function"] == [26]


def test_only_the_kernels_own_function_has_its_name(tmp_path: Path) -> None:
    """Of several functions the kernel is the one that each warp entered once; others are named by offset."""
    metrics = {
        "inst_executed": Instances({LOAD: 70, STORE: 70, COPY: 4, OTHER: 4}, 148),
        "launch__function_pcs": Instances({0: LOAD, 1: COPY}, LOAD + COPY),
        "launch__grid_size": 2,
        "launch__block_size": 48,
    }
    kernel = _read(tmp_path, metrics)
    functions = {h.function: h.measures["warp_inst"] for h in kernel.hotspots if h.by == "function"}
    assert functions == {"function at +0x0": 140, "kernel": 8}


def test_samples_of_other_code_count_only_in_the_sum(tmp_path: Path) -> None:
    """A sample far behind the kernel's last instruction is in the total, but no hot spot."""
    metrics = {"smsp__pcsamp_sample_count": Instances({LOAD: 1, OTHER + 16: 2, OTHER + 2**20: 50}, 53), **EXECUTED}
    kernel = _read(tmp_path, metrics)
    assert kernel.code_totals["samples"] == 53
    assert [h.pc for h in kernel.hotspots if h.by == "sass" and h.measures.get("samples")] == [64, 0]


def test_few_hot_spots_are_kept_of_many_instructions(tmp_path: Path) -> None:
    """Of thousands of instructions at most 28 are kept, including the hottest by samples and by each other measure."""
    count = 3000
    metrics = {
        "smsp__pcsamp_sample_count": Instances({START + 16 * i: i for i in range(count)}, count * (count - 1) // 2),
        "inst_executed": Instances({START + 16 * i: 5000 - i for i in range(count)}, 1),
    }
    kernel = _read(tmp_path, metrics)
    kept = [h.pc for h in kernel.hotspots if h.by == "sass"]
    assert len(kept) <= 28
    assert kept[:20] == [16 * i for i in range(count - 1, count - 21, -1)]
    assert {0, 16, 32, 48, 64} <= set(kept)


@pytest.mark.parametrize("absurd", [float("nan"), float("inf"), -5.0, 2.0**63])
def test_damaged_amounts_are_left_out(tmp_path: Path, absurd: float) -> None:
    """An impossible count is neither summed nor shown."""
    kernel = _read(tmp_path, {"inst_executed": Instances({LOAD: absurd, STORE: 3.0}, 3.0)})
    assert kernel.code_totals == {"warp_inst": 3}


def test_instances_by_name_are_no_instructions(tmp_path: Path) -> None:
    """A damaged metric with text instead of addresses or values is left out."""
    metrics = {"inst_executed": Instances({"x": 3}, 3), "memory_l2_theoretical_sectors_local": Instances({LOAD: "x"})}
    assert _read(tmp_path, metrics).code_totals == {}


def test_packed_fp16_is_unknown_without_kinds_and_zero_without_such_opcodes(tmp_path: Path) -> None:
    """Without instructions' kinds constants are unknown, except for a kernel whose opcode table has no such opcode."""
    threads = {"thread_inst_executed_true": Instances({LOAD: 64, STORE: 32}, 96)}
    table = "sass__thread_inst_executed_true_per_opcode"
    with_packed = {**threads, table: Instances({"HFMA2.MMA": 32, "LDG": 64}, 96)}
    without = {**threads, table: Instances({"FFMA": 32, "LDG": 64}, 96)}
    assert "fp16_constant_threads" not in _read(tmp_path, with_packed).code_totals
    assert _read(tmp_path, without).code_totals["fp16_constant_threads"] == 0
