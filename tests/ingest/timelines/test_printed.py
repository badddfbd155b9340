"""Tables that other profilers print: `key_averages().table()` of PyTorch, and `nsys stats`."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.printed_tables import (
    API_SUM,
    AVERAGES,
    EXEC_TRACE,
    GPU_SUM,
    KERN_SUM,
    MEM_SUM,
    NVTX_SUM,
    TRACE,
    average,
    averages,
    column,
    separated,
    summed,
)

import rooflens as rl
from rooflens.cli.group import main
from rooflens.errors import InputError
from rooflens.ingest.reports.inputs import is_timeline
from rooflens.model.program.program import Program
from rooflens.programs import read_programs

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_tn"
ROWS = (
    average("aten::mm", 10, "2.000ms", "6.000ms"),
    average(GEMM, 10, "0.000us", "6.000ms"),
    average("aten::add", 20, "1.000ms", "3.000ms"),
    average("void at::native::vectorized_elementwise_kernel<4, at::nat...", 20, "0.000us", "3.000ms"),
    average("aten::linear", 10, "500.000us", "0.000us"),
    average("cudaLaunchKernel", 30, "900.000us", "0.000us"),
    average("Memcpy HtoD (Pageable -> Device)", 4, "0.000us", "1.000ms"),
    average("ProfilerStep*", 2, "700.000us", "0.000us"),
    average("ProfilerStep*", 2, "0.000us", "11.000ms"),
)
KERNELS = (
    summed(7_000_000, 70, "void gemm<float, 4>(const float *, int)", commas=True),
    summed(2_000_000, 10, "softmax(float *)", commas=True),
)
COPIES = (summed(500_000, 5, "[CUDA memcpy Host-to-Device]", commas=True),)
CALLS = (summed(9_000_000, 80, "cudaLaunchKernel", commas=True),)
RANGES = (summed(12_000_000, 2, "PushPop", ":step", commas=True),)


def _read(folder: Path, text: str | bytes, name: str = "printed.txt", **given: Any) -> Program:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert is_timeline(file)
    return read_programs([file], **given)[0]


def _kernels(program: Program) -> dict[str, tuple[int, int]]:
    return {one.name: (one.count, one.time_ns) for one in program.every}


def test_averages_count_each_nanosecond_once(tmp_path: Path) -> None:
    """Operators and their kernels are the same time: each counts once, and one launched by one operator names it."""
    program = _read(tmp_path, averages(ROWS))
    assert program.time_ns == 9_000_000
    assert {one.name: one.operator for one in program.every} == {
        GEMM: "aten::mm",
        "void at::native::vectorized_elementwise_kernel<4, at::nat...": "aten::add",
    }
    assert [(one.of, one.name, one.count, one.time_ns) for one in program.totals] == [
        ("call", "cudaLaunchKernel", 30, 900_000),
        ("copy", "Memcpy HtoD (Pageable -> Device)", 4, 1_000_000),
        ("range", "ProfilerStep*", 2, 700_000),
    ]


def test_what_totals_cannot_say_is_null_and_said(tmp_path: Path) -> None:
    """Wall time, gaps, order and exposed communication of a printed summary are null; a note says what has them."""
    program = _read(tmp_path, averages((*ROWS, average("ncclDevKernel_AllReduce_Sum", 2, "0.000us", "4.000ms"))))
    told = program.unprofiled
    assert (told.wall_ns, told.kernel_ns, told.gap_ns, told.overlap_ns) == (None, None, None, None)
    assert {(one.gap_ns, one.launch) for one in program.every} == {(None, None)}
    assert program.communication is not None
    assert program.communication.exposed_ns is None
    assert "gaps and streams are not in it" in program.notes[0]
    assert "export_chrome_trace" in program.notes[0]


def test_averages_by_shape_have_floors(tmp_path: Path) -> None:
    """Sizes that the table prints give floors by hand: 16 bits an element, as it prints no types."""
    columns = (*AVERAGES, "Input Shapes")
    rows = (
        average("aten::mm", 2, "1.000ms", "6.000ms", "[[4096, 4096], [4096, 4096]]"),
        average("aten::add", 1, "1.000ms", "2.000ms", "[[67108864], [67108864], []]"),
        average("aten::mul", 1, "1.000ms", "1.000ms", f"[{'[33554432, 1], ' * 6}"[:80]),
        average(GEMM, 2, "0.000us", "6.000ms", "[]"),
    )
    program = _read(tmp_path, averages(rows, columns), gpu="a100-sxm4-80gb")
    known = {one.operator: one for one in program.every}
    assert known["aten::mm"].shape == "[4096, 4096] [4096, 4096]"
    assert known["aten::mm"].floor_cold_ns == pytest.approx(2 * (2 * 4096**3 / 312e12) * 1e9, rel=1e-3)
    moved = 3 * 2 * 67108864
    assert known["aten::add"].floor_cold_ns == pytest.approx(moved / 2.039e12 * 1e9, rel=1e-3)
    assert known["aten::add"].dtype is None
    assert known["aten::mul"].floor_ns is None
    assert known["aten::mm"].name == GEMM
    assert program.time_ns == 9_000_000
    assert any("no types" in note for note in program.notes)


_OLD = ("Name", "Self CPU total %", "Self CPU total", "CPU total %", "CPU total", "CPU time avg")


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        (AVERAGES, ()),
        ((*AVERAGES[:6], *(one.replace("CUDA", "device") for one in AVERAGES[6:])), ()),
        ((*_OLD, *AVERAGES[6:10], "Number of Calls"), ()),
        ((*AVERAGES[:10], "CPU Mem", "Self CPU Mem", "CUDA Mem", "Self CUDA Mem", "# of Calls"), ("0 b", "-8 b") * 2),
        ((*AVERAGES, "Node ID"), ("-1",)),
        ((*AVERAGES, "Total GFLOPs"), ("--",)),
        ((*AVERAGES, "Input Shapes", "Source Location", "Total KFLOPs"), ("[]", "model.py(3): forward", "--")),
        (("Name", "Overload Name", *AVERAGES[1:]), ("Tensor",)),
    ],
)
def test_all_columns_of_averages(tmp_path: Path, columns: tuple[str, ...], more: tuple[str, ...]) -> None:
    """Every set of columns that the profiler prints gives the same kernels."""
    at = {"Overload Name": 1, "CPU Mem": 10}.get(
        next((one for one in columns if one in {"Overload Name", "CPU Mem"}), ""), 11
    )
    rows = [(*row[:at], *more, *row[at:]) for row in ROWS]
    assert _kernels(_read(tmp_path, averages(rows, columns))) == _kernels(_read(tmp_path, averages(ROWS)))


def test_stacks_below_rows_are_no_rows(tmp_path: Path) -> None:
    """With `group_by_stack_n` further lines of a stack follow a row, and its first line is where it comes from."""
    columns = (*AVERAGES, "Source Location")
    rows = [
        average("aten::mm", 10, "2.000ms", "6.000ms", "train.py(7): step"),
        ("",) * 11 + ("train.py(90): main",),
        ("",) * 12,
        average(GEMM, 10, "0.000us", "6.000ms", ""),
    ]
    (kernel,) = _read(tmp_path, averages(rows, columns)).every
    assert (kernel.name, kernel.code, kernel.time_ns) == (GEMM, "train.py(7): step", 6_000_000)


def test_rows_that_a_table_leaves_out_are_counted(tmp_path: Path) -> None:
    """`row_limit` cuts rows: the table's own total tells how much is in none of them."""
    program = _read(tmp_path, averages(ROWS, total="20.000ms"))
    assert any(note.startswith("50 % of the GPU's time is in no row") for note in program.notes)


@pytest.mark.parametrize("write", [column, separated])
def test_stats_of_nsys(tmp_path: Path, write: Any) -> None:
    """Summaries of kernels, copies, calls and ranges are one program, in columns and as CSV."""
    text = "Processing [report.sqlite] with [/opt/nvidia/nsys/reports/cuda_gpu_kern_sum.py]...\n\n"
    text += write(NVTX_SUM, RANGES, "NVTX Range Summary (nvtx_sum)")
    text += write(API_SUM, CALLS, "CUDA API Summary (cuda_api_sum)")
    text += write(API_SUM, [summed(99_000_000, 9, "poll")], "OS Runtime Summary (osrt_sum)")
    text += write(KERN_SUM, KERNELS, "CUDA GPU Kernel Summary (cuda_gpu_kern_sum)")
    text += write(MEM_SUM, COPIES, "CUDA GPU MemOps Summary (by Time) (cuda_gpu_mem_time_sum)")
    program = _read(tmp_path, text)
    assert _kernels(program) == {row[-1]: (int(row[2]), int(row[1].replace(",", ""))) for row in KERNELS}
    assert {one.launch_ns for one in program.every} == {100_000, 200_000}
    assert [(one.of, one.name, one.count, one.time_ns) for one in program.totals] == [
        ("copy", "[CUDA memcpy Host-to-Device]", 5, 500_000),
        ("call", "cudaLaunchKernel", 80, 9_000_000),
        ("range", ":step", 2, 12_000_000),
    ]


def test_summaries_of_the_same_kernels_count_once(tmp_path: Path) -> None:
    """`cuda_gpu_sum` beside `cuda_gpu_kern_sum` adds nothing; alone it has kernels and copies."""
    both = (*((*row[:-1], "CUDA_KERNEL", row[-1]) for row in KERNELS), (*COPIES[0][:-1], "MEMORY_OPER", COPIES[0][-1]))
    alone = _read(tmp_path, column(GPU_SUM, both), "alone.txt")
    assert alone.time_ns == 9_000_000
    assert [one.time_ns for one in alone.totals] == [500_000]
    beside = _read(tmp_path, column(GPU_SUM, both) + column(KERN_SUM, KERNELS) * 2, "beside.txt")
    assert _kernels(beside) == _kernels(alone)
    assert beside.totals == alone.totals
    assert not any("different runs" in note for note in beside.notes)


def test_headings_of_older_versions_and_other_units(tmp_path: Path) -> None:
    """2020's headings, and `--timeunit`, give the same times."""
    old = ("Time(%)", "Total Time (ns)", "Instances", "Average", "Minimum", "Maximum", "StdDev", "Name")
    rows = [(*row[:4], *row[5:]) for row in KERNELS]
    new = _kernels(_read(tmp_path, column(KERN_SUM, KERNELS), "new.txt"))
    assert _kernels(_read(tmp_path, column(old, rows), "old.txt")) == new
    units = [one.replace("(ns)", "(\u03bcs)") for one in KERN_SUM]
    scaled = [(row[0], f"{int(row[1].replace(',', '')) / 1000:,}", *row[2:]) for row in KERNELS]
    assert _kernels(_read(tmp_path, separated(units, scaled), "units.csv")) == new


def _launch(start: int, took: int, name: str, stream: str = "7") -> tuple[str, ...]:
    sizes = ("", "", "", "", "", "", "") if name.startswith("[") else ("8", "2", "1", "128", "1", "1", "32")
    return (str(start), str(took), "1", *sizes, "", "", "", "", "", "", "NVIDIA A100-SXM4-80GB (0)", "1", stream, name)


@pytest.mark.parametrize("write", [column, separated])
def test_trace_of_nsys_is_a_timeline(tmp_path: Path, write: Any) -> None:
    """`cuda_gpu_trace` has starts and durations: gaps, shapes, the GPU and copies, by hand."""
    rows = (
        _launch(1000, 500, "first(float *, int)"),
        _launch(1600, 300, "[CUDA memcpy DtoH]"),
        _launch(2000, 400, "second(float *)", "13"),
    )
    program = _read(tmp_path, write(TRACE, rows, "CUDA GPU Trace (cuda_gpu_trace)"))
    told = program.unprofiled
    assert (told.wall_ns, told.kernel_ns, told.gap_ns) == (1400, 1200, 200)
    assert program.gpu == "NVIDIA A100-SXM4-80GB"
    assert {(one.name, one.grid, one.block) for one in program.every} == {
        ("first(float *, int)", (8, 2, 1), (128, 1, 1)),
        ("second(float *)", (8, 2, 1), (128, 1, 1)),
    }


def test_execution_trace_of_nsys_is_a_timeline(tmp_path: Path) -> None:
    """`cuda_kern_exec_trace` has kernels but no copies, which a note says."""
    cells = (
        "0",
        "9",
        "9",
        "80",
        "{}",
        "400",
        "500",
        "1",
        "1",
        "0",
        "cudaLaunchKernel",
        "   8    2    1",
        " 128    1    1",
    )
    rows = [(*(cell.format(at) for cell in cells), "step(float *)") for at in (100, 600)]
    program = _read(tmp_path, separated(EXEC_TRACE, rows))
    assert (program.unprofiled.wall_ns, program.unprofiled.gap_ns, program.every[0].grid) == (900, 100, (8, 2, 1))
    assert any("copies" in note for note in program.notes)


def test_a_table_survives_a_chat_and_a_log(tmp_path: Path) -> None:
    """Quote marks, ranks, colours, tabs, bars, gzip and PowerShell's encoding change nothing."""
    plain = column(KERN_SUM, KERNELS)
    whole = _kernels(_read(tmp_path, plain))
    told = {
        "quoted": "".join(f"> {line}\n" for line in plain.splitlines()),
        "ranks": "".join(f"[rank0]: {line}\n" for line in plain.splitlines()),
        "coloured": plain.replace("Name", "\x1b[1mName\x1b[0m"),
        "tabs": "\n".join("\t".join(row) for row in (KERN_SUM, *KERNELS)),
        "bars": "\n".join(f"| {' | '.join(row)} |" for row in (KERN_SUM, ["---"] * len(KERN_SUM), *KERNELS)),
        "blanks": "\n".join("  ".join(row) for row in (KERN_SUM, *KERNELS)),
        "later": "step 1\n" * 300_000 + plain,
    }
    for name, text in told.items():
        assert _kernels(_read(tmp_path, text, f"{name}.txt")) == whole, name
    assert _kernels(_read(tmp_path, plain.encode("utf-16"), "powershell.txt")) == whole
    assert _kernels(_read(tmp_path, gzip.compress(plain.encode()), "packed.txt.gz")) == whole


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (
            averages([(*average("aten::mm", 1, "1.000ms", "")[:6], "1")], (*AVERAGES[:6], "# of Calls"), None),
            "no time of a GPU",
            "ProfilerActivity.CUDA",
        ),
        (column(API_SUM, CALLS), "holds no kernels: it has `cuda_api_sum`", "--report cuda_gpu_kern_sum"),
        (column(MEM_SUM, COPIES), "holds no kernels", "--report cuda_gpu_kern_sum"),
    ],
)
def test_tables_without_kernels_say_what_to_print(tmp_path: Path, text: str, said: str, hint: str) -> None:
    """A table that has no kernels is refused with the option that prints them."""
    with pytest.raises(InputError, match=said) as raised:
        _read(tmp_path, text)
    assert hint in raised.value.hint


def test_the_table_that_torch_itself_prints(tmp_path: Path) -> None:
    """A table of the installed PyTorch's own `_build_table` reads as the events it was made of."""
    util = pytest.importorskip("torch.autograd.profiler_util")
    kinds = pytest.importorskip("torch.autograd").DeviceType
    events = util.EventList([], use_device="cuda")

    def event(name: str, times: tuple[float, float], calls: int, kind: Any, shapes: Any = ()) -> None:
        one = util.FunctionEventAvg()
        one.key, one.count, one.node_id, one.input_shapes, one.use_device = name, calls, -1, shapes, "cuda"
        one.device_type, one.is_async, one.is_user_annotation, one.is_legacy = kind, False, False, False
        one.self_cpu_time_total = one.cpu_time_total = times[0]
        one.self_device_time_total = one.device_time_total = times[1]
        one.stack = one.overload_name = None
        events.append(one)

    event("aten::bmm", (120.0, 5001.0), 3, kinds.CPU, [[8, 64, 64], [8, 64, 64]])
    event("aten::gelu", (80.0, 40.25), 2, kinds.CPU, [[8, 64, 64], []])
    event("void gelu_kernel<float>(float*)", (0.0, 40.25), 2, kinds.CUDA)
    event(GEMM, (0.0, 5001.0), 3, kinds.CUDA)
    printed = util._build_table(events, sort_by="self_cuda_time_total")
    program = _read(tmp_path, printed)
    assert {(one.name, one.operator, one.shape, one.count, one.time_ns) for one in program.every} == {
        (GEMM, "aten::bmm", "[8, 64, 64] [8, 64, 64]", 3, 5_001_000),
        ("void gelu_kernel<float>(float*)", "aten::gelu", "[8, 64, 64]", 2, 40_250),
    }


def test_summaries_are_compared_by_the_sum_of_their_kernels(tmp_path: Path) -> None:
    """Two printed summaries are compared by kernel time; idle time and overlaps are no rows, and a note says so."""
    slower = [row if row[0] not in {"aten::mm", GEMM} else (*row[:6], "8.000ms", *row[7:]) for row in ROWS]
    (tmp_path / "before.txt").write_text(averages(ROWS))
    (tmp_path / "after.txt").write_text(averages(slower))
    found = rl.compare(tmp_path / "before.txt", tmp_path / "after.txt")
    assert (found.base.wall_ns, found.head.wall_ns, found.factor) == (9_000_000, 11_000_000, 9 / 11)
    assert {one.name: one.lost_ns for one in found.changes} == {"aten::mm": 2_000_000, "aten::add": 0}
    assert any("added up" in warning for warning in found.warnings)


def test_a_kernels_part_of_the_program_is_null(tmp_path: Path) -> None:
    """What a kernel takes of the wall time is unknown, not 0."""
    assert {one.wall_ns for one in _read(tmp_path, averages(ROWS)).every} == {None}


def test_commands_that_need_a_report_say_who_reads_a_table(tmp_path: Path) -> None:
    """`explain` of a printed table says which command reads it."""
    (tmp_path / "stats.txt").write_text(column(KERN_SUM, KERNELS))
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "stats.txt")])
    assert (done.exit_code, "`rooflens FILE` reads it" in done.stderr) == (1, True)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """Tags and escape codes of a table's names are harmless on the page and on a terminal."""
    name = "<script>alert(1)</script>\x1b[31mred"
    (file := tmp_path / "t.csv").write_text(
        separated(KERN_SUM, [summed(9, 1, name)]) + separated(API_SUM, [summed(9, 1, name)])
    )
    page = tmp_path / "page.html"
    assert CliRunner().invoke(main, ["report", str(file), "-o", str(page)]).exit_code == 0
    assert "<script>alert(1)" not in page.read_text()
    assert "\x1b" not in CliRunner().invoke(main, [str(file)]).stdout
