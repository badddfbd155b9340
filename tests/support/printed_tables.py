"""Tables as PyTorch's profiler and `nsys stats` print them, made of rows: own names and values, the tools' own layout.

PyTorch's layout is of `_build_table` in torch/autograd/profiler_util.py, nsys's of its formatters `column` and `csv`:
https://docs.nvidia.com/nsight-systems/UserGuide/index.html#output-formatters.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

AVERAGES = (
    *("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "Self CUDA %"),
    *("CUDA total", "CUDA time avg", "# of Calls"),
)
SUMMARY = ("Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)")
KERN_SUM = ("Time (%)", "Total Time (ns)", "Instances", *SUMMARY, "Name")
API_SUM = ("Time (%)", "Total Time (ns)", "Num Calls", *SUMMARY, "Name")
MEM_SUM = ("Time (%)", "Total Time (ns)", "Count", *SUMMARY, "Operation")
NVTX_SUM = ("Time (%)", "Total Time (ns)", "Instances", *SUMMARY, "Style", "Range")
GPU_SUM = ("Time (%)", "Total Time (ns)", "Instances", *SUMMARY, "Category", "Operation")
TRACE = (
    *("Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd"),
    *("StcSMem (MB)", "DymSMem (MB)", "Bytes (MB)", "Throughput (MBps)", "SrcMemKd", "DstMemKd", "Device", "Ctx"),
    *("Strm", "Name"),
)
EXEC_TRACE = (
    *("API Start (ns)", "API Dur (ns)", "Queue Start (ns)", "Queue Dur (ns)", "Kernel Start (ns)", "Kernel Dur (ns)"),
    *("Total Dur (ns)", "PID", "TID", "DevId", "API Function", "GridXYZ", "BlockXYZ", "Kernel Name"),
)


def averages(  # noqa: PLR0913 - what the profiler's own function takes
    rows: Sequence[Sequence[str]],
    columns: Sequence[str] = AVERAGES,
    total: str | None = "10.000ms",
    *,
    name_width: int = 55,
    shapes_width: int = 80,
    device: str = "CUDA",
) -> str:
    """Print the profiler's table."""
    widths = [name_width, *(12 for _ in columns[1:])]
    if "Input Shapes" in columns:
        widths[columns.index("Input Shapes")] = shapes_width
    if "Source Location" in columns:
        widths[columns.index("Source Location")] = 75
    dashes = "  ".join("-" * width for width in widths)

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + "  "

    below = ["Self CPU time total: 31.000ms", *([f"Self {device} time total: {total}"] if total else [])]
    return "\n".join((dashes, line(columns), dashes, *map(line, rows), dashes, *below, ""))


def average(name: str, calls: int, host: str, device: str, *more: str) -> tuple[str, ...]:
    """Make a row of the profiler's table: time of the host itself, and of the device itself."""
    return (name, "1.00%", host, "1.00%", host, "1.000us", device, "10.00%", device, "1.000us", str(calls), *more)


def column(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Print a table as `--format column` does, the default on a terminal; the last two columns are left-aligned."""
    widths = [max(len(cells[at]) for cells in (columns, *rows)) for at in range(len(columns))]

    def line(cells: Sequence[str]) -> str:
        last = len(cells) - 1
        return " " + "  ".join(
            cell.ljust(width) if at == last else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )

    head = " " + "  ".join(cell.center(width) for cell, width in zip(columns, widths, strict=True))
    return "\n".join((f" ** {title}:", "", head, line(["-" * width for width in widths]), *map(line, rows), "", ""))


def separated(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Print a table as `--format csv` does."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((columns, *rows))
    return (f"\n ** {title}:\n\n" if title else "") + out.getvalue() + "\n"


def summed(total_ns: int, number: int, *names: str, commas: bool = False) -> tuple[str, ...]:
    """Make a row of a summary of nsys: its mean and median are the same."""
    mean = total_ns / number
    form = "{:,}" if commas else "{}"
    times = (form.format(total_ns), form.format(number), *(form.format(round(mean, 1)) for _ in range(5)))
    return ("10.0", *times, *names)
