"""Files of other tools: each is told by its name, with what to give instead, whatever door it comes in by."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import rooflens as rl
from rooflens.cli.group import main
from rooflens.errors import InputError
from rooflens.foreign import FOREIGN, by_lines, by_name, foreign_content
from rooflens.mcp.root import Root
from rooflens.model.selecting import Selection

_JAX = {
    "displayTimeUnit": "ns",
    "metadata": {"highres-ticks": True},
    "traceEvents": [
        {"ph": "X", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2.5, "name": "fusion.7", "args": {"hlo_op": "f"}}
    ],
}
_PROTON = [
    {"children": [{"children": [], "frame": {"name": "gemm"}, "metrics": {"time (ns)": 9}}], "frame": {}, "metrics": {}}
]
_NVBENCH = {"meta": {"argv": ["./bench"], "version": {"nvbench": {"string": "0.1.0"}}}, "devices": [], "benchmarks": []}
_NCCL = """# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#       size         count      type   redop    root     time   algbw   busbw #wrong
           8             2     float     sum      -1    35.10    0.00    0.00      0
"""
_NVPROF = """==4242== NVPROF is profiling process 4242, command: ./a.out
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   61.00%  1.2200ms        10  122.00us  120.00us  130.00us  step(float*)
"""
_CUTLASS = (
    "Problem,Provider,OperationKind,Operation,Disposition,Status,gemm_kind,m,n,k,Runtime,GFLOPs\n"
    "1,CUTLASS,gemm,f,passed,success,universal,8,8,8,0.1,9\n"
)
_ROCPROF = (
    '"Kind","Agent_Id","Queue_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n"KERNEL_DISPATCH",1,1,"f",5,9\n'
)
_NVBENCH_TABLE = (
    "| T | Samples |  CPU Time  |  Noise  |  GPU Time  | Noise  |\n"
    "|---|---|---|---|---|---|\n| F32 | 9x | 7 us | 1% | 5 us | 1% |\n"
)


def _database(*tables: str) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        with closing(sqlite3.connect(file)) as database, database:
            for table in tables:
                database.execute(f'CREATE TABLE "{table}" (id INTEGER)')

    return write


_FILES: dict[str, tuple[str | bytes | Callable[[Path], None], str, str]] = {
    "step.pftrace": (b"\x0a\x10\x08\x01" * 50, "Perfetto's own format", "export_chrome_trace"),
    "host.xplane.pb": (b"\x0a\x9b\x02\x08\x02\x12\x0d/device:GPU:0" + bytes(40), "XPlane", "nsys profile"),
    "renamed.bin": (b"\x0a\x9b\x02\x12\x09/host:CPU" + bytes(40), "XPlane", "nsys profile"),
    "empty.xplane.pb": (b"\x0a\x02\x08\x01", "XPlane", "nsys profile"),
    "perfetto_trace.json.gz": (gzip.compress(json.dumps(_JAX).encode()), "JAX", "nsys profile"),
    "jax.json": (json.dumps(_JAX), "JAX", "nsys profile"),
    "proton.hatchet": (json.dumps(_PROTON), "Proton", "export_chrome_trace"),
    "proton.json": (json.dumps(_PROTON), "Proton", "export_chrome_trace"),
    "bench.json": (json.dumps(_NVBENCH), "nvbench", "ncu --set full"),
    "bench.md": (_NVBENCH_TABLE, "nvbench", "ncu --set full"),
    "results.db": (_database("rocpd_info_agent_1", "rocpd_string_1"), "rocpd", "NVIDIA"),
    "trace.rpd": (_database("rocpd_op", "rocpd_string"), "rocpd", "NVIDIA"),
    "kernel_trace.csv": (_ROCPROF, "rocprof", "NVIDIA"),
    "nccl.log": (_NCCL, "nccl-tests", "predict all-reduce"),
    "gemm.csv": (_CUTLASS, "CUTLASS profiler", "--profiling-iterations"),
    "nvprof.log": (_NVPROF, "nvprof", "ncu --set full"),
    "old.nvvp": (_database("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "StringTable"), "Visual Profiler", "nsys profile"),
    "sizes.csv": (
        "Total (MB),Count,Avg (MB),Operation\n402.6,48,8.4,[CUDA memcpy]\n",
        "no times of kernels",
        "cuda_gpu_kern_sum",
    ),
    "table.parquet": (b"PAR1" + bytes(20), "Parquet", "give the report"),
    "kernel.cubin": (
        b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7) + b"\x02\0\xbe\0" + bytes(99),
        "a cubin",
        "ncu --set full",
    ),
    "kernel.fatbin": (b"\x50\xed\x55\xba" + bytes(99), "a fatbin", "ncu --set full"),
    "core.4711": (b"\x7fELF\x02\x01\x01\0" + bytes(8) + b"\x04\0\x3e\0" + bytes(99), "a core dump", "does not crash"),
    "app": (b"\x7fELF\x02\x01\x01\0" + bytes(8) + b"\x03\0\x3e\0" + bytes(99), "a program", "rooflens profile --"),
    "kernel.ptx": ("//\n.version 8.3\n.target sm_90\n", "PTX", "ncu --set full"),
    "pasted-ptx.txt": ("//\n.version 8.3\n.target sm_90\n", "PTX", "ncu --set full"),
    "kernel.cu": ("__global__ void k() {}\n", "source code", "--source FOLDER"),
    "kernel.cu.gz": (gzip.compress(b"__global__ void k() {}\n"), "source code, gzip-compressed", "--source FOLDER"),
    "train.py": ("import torch\n", "source code of a script", "profile -- python"),
    "note.ipynb": (
        json.dumps({"cells": [{"cell_type": "code", "source": []}], "nbformat": 4}),
        "a notebook",
        "rl.open",
    ),
    "roofline.png": (b"\x89PNG\r\n\x1a\n" + bytes(40), "a picture", "the report itself"),
    "paper.pdf": (b"%PDF-1.7\n" + bytes(40), "a document", "the report itself"),
    "model.pt": (b"PK\x03\x04" + bytes(26) + b"archive/data.pkl" + bytes(20), "a model", "a trace"),
    "w.safetensors": (b"\x3c" + bytes(7) + b'{"w":{"dtype":"F32"}}', "a model or its weights", "a trace"),
    "memory.pickle": (b"\x80\x04}\x94." + bytes(20), "a pickle", "export_chrome_trace"),
    "sheet.xlsx": (b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml" + bytes(20), "a spreadsheet", "as CSV"),
    "perf.data": (b"PERFILE2" + bytes(60), "Linux perf", "nsys profile"),
    "page.html": (
        '<!doctype html>\n<html><head><meta name="generator" content="rooflens"></head></html>',
        "a page that rooflens wrote",
        "the report or the trace",
    ),
    "blob.html": ("\n<!DOCTYPE html>\n<html lang=en>", "a web page", "`Raw`"),
    "view.ncu-proj": (b"\x00\x01project", "window", "ncu-rep"),
}


def _write(folder: Path, name: str) -> tuple[Path, str, str]:
    content, says, instead = _FILES[name]
    file = folder / name
    if isinstance(content, (str, bytes)):
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        content(file)
    return file, says, instead


def _run(*arguments: object, given: bytes = b"") -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments], input=given)


def _said_by_python(file: Path) -> str:
    with pytest.raises(InputError) as raised:
        rl.open(file)
    return f"{raised.value}\n{raised.value.hint}"


def _said_by_server(folder: Path, name: str) -> str:
    """Ask as the server's tools do: for a trace first, then for a report."""
    root = Root(folder)
    try:
        root.programs(name, Selection())
    except InputError as error:
        return f"{error}\n{error.hint}"
    return "\n".join(f"{error}\n{error.hint}" for _, error in root.analyzed(name).failures)


def test_every_door_names_a_foreign_file(tmp_path: Path) -> None:
    """Command, Python and MCP server say what a file is, and what to give instead, in one error and one hint."""
    offenders = []
    for name in _FILES:
        file, says, instead = _write(tmp_path, name)
        done = _run(file)
        told = {"command": done.stderr, "python": _said_by_python(file), "server": _said_by_server(tmp_path, name)}
        offenders += [(name, door, said) for door, said in told.items() if says not in said or instead not in said]
        offenders += [(name, "status", str(done.exit_code))] * (done.exit_code != 1)
        file.unlink()
    assert offenders == []


@pytest.mark.parametrize("name", ["nccl.log", "nvprof.log", "gemm.csv", "bench.md", "kernel_trace.csv"])
def test_pasted_texts_are_named(tmp_path: Path, name: str) -> None:
    """What is pasted into stdin is named as the file is."""
    file, says, instead = _write(tmp_path, name)
    done = _run("-", given=file.read_bytes())
    assert done.exit_code == 1
    assert says in done.stderr
    assert instead in done.stderr


def test_each_is_recognised_in_one_way_at_least() -> None:
    """No row of the table is out of reach: each is found by content, by a line, by its tables or by its name."""
    for one in FOREIGN:
        assert one.magic or one.keys or one.line or one.tables or one.suffixes, one.what
        assert all(by_name(f"x{suffix}") is one for suffix in one.suffixes), one.what


def test_what_rooflens_reads_is_none_of_them() -> None:
    """Reports, traces and prints of ncu are not named as those of others."""
    assert foreign_content(b"NVR\0\x07") is None
    assert by_lines(["==PROF== Profiling", "  gemm (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"]) is None
    assert by_name("report.ncu-rep") is None
