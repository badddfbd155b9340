"""What an analyzed launch of an export takes of the memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from random import Random

from texts import launch, text

from rooflens.analyzing import analyze_paths

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


def test_a_launch_of_an_export_takes_few_kilobytes(tmp_path: Path) -> None:
    """An analyzed launch takes under 5 kB, as launches hold once what they have in common; it was 7 without that."""
    analyze_paths([_export(tmp_path / "first.csv", 20)])  # imports and caches
    file = _export(tmp_path / "many.csv", 800)
    tracemalloc.start()
    try:
        found = analyze_paths([file])
        held_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(found.analyses) == 800
    assert held_bytes / 800 < 5000
