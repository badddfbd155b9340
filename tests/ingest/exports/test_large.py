"""Exports of many launches: what an analyzed launch takes of the memory, and how far the work is."""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
from support.ncu_rep_writer import KernelSpec, MetricValue, ReportSpec, write_report
from texts import launch, text

from rooflens.analyzing import analyze_inputs, analyze_paths
from rooflens.ingest import load
from rooflens.ingest.exports import tables
from rooflens.ingest.reports import report
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model import records

_EXPORTED = {
    "gpu__time_duration.sum": ("ns", 6e5),
    "dram__bytes_read.sum": ("byte", 9e8),
    "dram__bytes_write.sum": ("byte", 3e8),
    "lts__t_bytes.sum": ("byte", 2e9),
    "l1tex__t_bytes.sum": ("byte", 4e9),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", 41.2),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", 61.7),
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": ("%", 33.1),
    "l1tex__throughput.avg.pct_of_peak_sustained_active": ("%", 35.5),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", 71.2),
    "smsp__cycles_active.avg": ("cycle", 7.5e5),
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": ("", 2.1e10),
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": ("", 1e9),
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": ("", 8e8),
    "smsp__inst_executed.sum": ("", 9e8),
    "launch__registers_per_thread": ("", 64.0),
    "launch__waves_per_multiprocessor": ("", 3.2),
    "launch__occupancy_limit_registers": ("", 4.0),
    "launch__occupancy_limit_warps": ("", 8.0),
}
"""What is exported of each launch: unit and mean; what has no unit is the same in all launches of a kernel."""


def _export(file: Path, launches: int) -> Path:
    """Write the raw page of launches of eight kernels, whose times, bytes and per cents vary from launch to launch."""
    chance = Random(1)  # noqa: S311 - repeatable
    names = [*launch(), "device__attribute_display_name", *_EXPORTED]
    rows: list[dict[str, str]] = [{name: unit for name, (unit, _) in _EXPORTED.items()}]
    for number in range(launches):
        values = {
            name: f"{mean * (1 + chance.random() / 20) if unit else mean:.2f}"
            for name, (unit, mean) in _EXPORTED.items()
        }
        named = launch(number, **{"Kernel Name": f"void kernel_{number % 8}<float>(float *)", "CC": "8.0"})
        rows.append({**named, "device__attribute_display_name": "NVIDIA A100-SXM4-40GB", **values})
    file.write_text(text(names, rows), encoding="utf-8")
    return file


def test_a_launch_of_an_export_takes_few_kilobytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An analyzed launch takes under 5.5 kB, as launches hold once what they have in common; it was 7 without that.

    What is held starts empty: tables that earlier tests filled may grow to twice their size in here.
    """
    monkeypatch.setattr(records, "_held", defaultdict(dict))
    analyze_paths([_export(tmp_path / "first.csv", 20)])  # imports and caches
    file = _export(tmp_path / "many.csv", 600)
    tracemalloc.start()
    try:
        found = analyze_paths([file])
        held_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(found.analyses) == 600
    assert held_bytes / 600 < 5500


def test_progress_moves_with_each_report_and_within_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports, texts and tables move the bar by 1 each as they are read and analyzed; so does what cannot be read."""
    monkeypatch.setattr(tables, "_LINES_AT_ONCE", 4)
    monkeypatch.setattr(report, "_AT_ONCE", 2)
    metrics: dict[str, MetricValue] = {"gpu__time_duration.sum": 1000.0}
    write_report(tmp_path / "a.ncu-rep", ReportSpec([KernelSpec("k", metrics)] * 10))
    rows = [{**launch(number), "gpu__time_duration.sum": f"{number}.5"} for number in range(300)]
    (tmp_path / "b.csv").write_text(text([*launch(), "gpu__time_duration.sum"], rows), encoding="utf-8")
    section = "  Section: GPU Speed Of Light Throughput\n    Duration  usecond  72.64\n\n"
    lines = "".join(
        f"  k{number} (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\n{section}" for number in range(9)
    )
    (tmp_path / "c.txt").write_text(f"[1] a.out@127.0.0.1\n{lines}", encoding="utf-8")
    (tmp_path / "d.ncu-rep").write_bytes(b"NVR\0 and no more")
    found = {}
    for file in sorted(tmp_path.iterdir()):
        parts: list[float] = []
        analyze_inputs(find_inputs([str(file)]), reading=ReadOptions(gpu="NVIDIA A100-SXM4-40GB"), on_read=parts.append)
        found[file.name] = (len(parts) > 4, round(sum(parts), 9), min(parts) >= 0)
    assert found == {name: (name[0] != "d", 1.0, True) for name in ("a.ncu-rep", "b.csv", "c.txt", "d.ncu-rep")}
    moved: list[float] = []
    load.load_reports(find_inputs([str(tmp_path)]).jobs, on_read=moved.append, executor="process:2")
    assert moved == [1.0] * len(moved)
