from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rooflens.errors import InputError
from rooflens.ingest.reports.read import ReadOptions, read_report

TIME, SHARE = "gpu__time_duration.sum", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
OPCODES = "sass__inst_executed_per_opcode_with_modifier_all"
EXPORT = f"""==PROF== Connected to process 4711
"ID","Process ID","Process Name","Kernel Name","Device","CC","{TIME}","{SHARE}","{OPCODES}","my__own.sum"
"","","","","","","usecond","%","inst","inst"
"0","4711","a.out","void f<int>(int *)","0","8.6","28.128000","61.840000","10 (FFMA: 9; EXIT: 1)","5"
"1","4711","a.out","void f<int>(int *)","0","8.6","nan","nan","n/a","n/a"
"""


def test_an_export_is_read_whatever_its_name(tmp_path: Path) -> None:
    """Content decides what a file is: kernels, digest, reader and notes are those of a report."""
    path = tmp_path / "profile.ncu-rep"
    path.write_text(EXPORT)
    report = read_report(path, "given name", ReadOptions(gpu="NVIDIA A10"))
    assert (report.run.source, report.run.reader, report.run.process_name) == ("given name", "csv", "a.out")
    assert (report.run.file_bytes, report.run.kernel_count, len(report.run.digest)) == (len(EXPORT), 2, 64)
    good, failed = report.kernels
    assert (good.gpu, good.name, good.duration_ns, good.status) == ("NVIDIA A10", "f<int>", 28_128, "ok")
    assert good.warp_opcodes == {"FFMA": 9, "EXIT": 1}
    assert (failed.index, failed.status, failed.duration_ns) == (1, "failed", None)
    assert report.notes == ()


def test_every_value_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    """The table `metrics` has all values of an export in base units, also those that no kernel record needs."""
    path = tmp_path / "raw.csv"
    path.write_text(EXPORT)
    report = read_report(path, "raw.csv", ReadOptions(raw="all"))
    assert report.raw is not None
    assert report.instances is not None
    rows = {(row["kernel_index"], row["name"]): row["value_double"] for row in report.raw.to_pylist()}
    assert (rows[0, TIME], rows[0, OPCODES], rows[0, "my__own.sum"]) == (28_128, 10, 5)
    assert (1, "my__own.sum") not in rows
    assert [(row["instance_key"], row["value_uint64"]) for row in report.instances.to_pylist()] == [
        ("FFMA", 9),
        ("EXIT", 1),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Time (%),Total Time (ns),Instances,Name\n99.0,1,2,f\n", "nsys"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "ERR_NVGPUCTRPERM"),
        (EXPORT.partition("\n")[0], "only ncu's messages"),
    ],
)
def test_text_that_is_no_export_is_named(tmp_path: Path, text: str, said: str) -> None:
    """Other output of ncu or another profiler is refused by name, with what to do."""
    path = tmp_path / "profile.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as error:
        read_report(path, "profile.csv")
    assert error.value.hint


@pytest.mark.parametrize(("pct", "peak"), [("0.02", None), ("12.50", 32e9 / 0.125)])
def test_no_peak_is_divided_out_of_a_coarse_share(tmp_path: Path, pct: str, peak: float | None) -> None:
    """No peak is derived from 0.02 %, whose last digit is a quarter of it; the share itself stays."""
    rate = "dram__bytes_read.sum"
    path = tmp_path / "raw.csv"
    path.write_text(
        f'"ID","Kernel Name","CC","{TIME}","{rate}","{rate}.pct_of_peak_sustained_elapsed"\n'
        f'"","","","ns","byte","%"\n"0","f","8.6","1000","32000","{pct}"\n'
    )
    (kernel,) = read_report(path, "raw.csv").kernels
    assert kernel.counters.get("dram_bus_peak_bytes_per_s") == (peak and pytest.approx(peak))
    assert kernel.counter_sources.keys() == kernel.counters.keys()


def test_an_export_needs_no_library_of_nvidias(tmp_path: Path) -> None:
    """Exports are read without NVIDIA's module, and without pyarrow."""
    path = tmp_path / "raw.csv"
    path.write_text(EXPORT)
    before = set(sys.modules)
    read_report(path, "raw.csv")
    assert not {name.partition(".")[0] for name in set(sys.modules) - before} & {"ncu_report", "pyarrow"}
