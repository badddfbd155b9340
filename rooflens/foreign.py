"""Files of other tools that rooflens does not read: how each is recognised, what it is, and what to give instead.

The one table of them, which every door asks. Content counts more than a name. Standard library only: a bare GPU machine
asks it too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Foreign(NamedTuple):
    """A kind of file that rooflens does not read.

    Attributes:
        what: What it is, after `this is` or `but`.
        instead: What to give or to do instead.
        magic: Where its first bytes have which content; None of JSON.
        keys: What its first bytes all hold besides.
        line: Expression that a line of its text matches.
        tables: How names of tables of its SQLite database begin.
        suffixes: How its name may end.
    """

    what: str
    instead: str
    magic: tuple[int, bytes] | None = None
    keys: tuple[bytes, ...] = ()
    line: str = ""
    tables: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        """Say both, where only a hint is shown."""
        return f"this is {self.what}: {self.instead}"


_READ = "`rooflens FILE` reads it, and --timeline beside a report"
_NSYS = "`nsys profile --trace=cuda,nvtx --export=sqlite PROGRAM` writes a `.sqlite` that is read"
_NCU = "profile with Nsight Compute: `ncu --set full -o REPORT PROGRAM`"
_XPLANE = "a trace of JAX or TensorFlow (XPlane)"
_UNDER_NSYS = f"run the program under nsys: {_NSYS}"
_COUNTS, _NAMES = ("instances", "count", "operations", "num calls"), ("name", "operation", "range")
_SUMMARY = (
    *(("self cpu", calls) for calls in ("# of calls", "number of calls")),
    *((total, amount, name) for total in ("total time (", "total time(") for amount in _COUNTS for name in _NAMES),
    ("start (", "duration (", "strm", "name"),
    ("kernel start", "kernel dur"),
)
"""Headings of the tables that PyTorch's profiler and `nsys stats` print."""

_HOLDS_CODE = "it holds code and no measurement: profile the program that runs it, `ncu --set full -o REPORT PROGRAM`"
_ELF = b"\x7fELF"
_AMD = "rooflens reads profiles of NVIDIA's GPUs alone"

FOREIGN: tuple[Foreign, ...] = (
    Foreign(
        "an SQLite file, perhaps of Nsight Systems",
        _READ,
        magic=(0, b"SQLite format 3\0"),
    ),
    Foreign(
        "an HDF5 file, as Nsight Systems exports it",
        "export SQLite: `nsys export --type sqlite REPORT.nsys-rep`",
        magic=(0, b"\x89HDF"),
    ),
    Foreign("a Parquet file", "give the report or the trace that it was made of", magic=(0, b"PAR1")),
    Foreign(
        "a model or its weights, as `torch.save` writes it",
        "give a trace of the program that runs it, or a report",
        magic=(0, b"PK\x03\x04"),
        keys=(b"data.pkl",),
        suffixes=(".pt", ".pth", ".ckpt", ".safetensors", ".onnx", ".npy", ".npz"),
    ),
    Foreign(
        "a sheet of a spreadsheet program",
        "save it as CSV, and give that",
        magic=(0, b"PK\x03\x04"),
        keys=(b"[Content_Types].xml",),
        suffixes=(".xlsx", ".ods", ".xls"),
    ),
    Foreign("a ZIP archive", "unpack it, and give what is in it", magic=(0, b"PK\x03\x04")),
    Foreign("a 7z archive", "unpack it, and give what is in it", magic=(0, b"7z\xbc\xaf\x27\x1c")),
    Foreign("a tar archive", "unpack it, and give what is in it", magic=(257, b"ustar")),
    Foreign(
        "compressed with bzip2",
        "unpack it with `bunzip2`, or compress it with gzip or zstd instead",
        magic=(0, b"BZh"),
    ),
    Foreign(
        "compressed with xz",
        "unpack it with `unxz`, or compress it with gzip or zstd instead",
        magic=(0, b"\xfd7zXZ\0"),
    ),
    Foreign(
        "a Git LFS pointer",
        "fetch the file itself with `git lfs pull`",
        magic=(0, b"version https://git-lfs"),
    ),
    # <elf.h>: `e_type` and `e_machine` stand at 16 and 18; the latter of NVIDIA's GPUs is `EM_CUDA`.
    Foreign(
        "GPU code (a cubin)", _HOLDS_CODE, magic=(18, b"\xbe\0"), keys=(_ELF,), suffixes=(".cubin", ".sass", ".fatbin")
    ),
    Foreign("GPU code (a fatbin)", _HOLDS_CODE, magic=(0, b"\x50\xed\x55\xba")),
    Foreign(
        "a core dump",
        "it holds memory and no measurement: profile a run that does not crash",
        magic=(16, b"\x04\0"),
        keys=(_ELF,),
    ),
    Foreign("a program or library", "profile it: `rooflens profile -- ./PROGRAM`", magic=(0, _ELF)),
    Foreign(
        "a page that rooflens wrote",
        "give the report or the trace that it was made of; `rooflens report REPORT -o FILE.json` writes data",
        magic=(0, b"<!doctype html>"),
        keys=(b'name="generator" content="rooflens"',),
    ),
    Foreign("a picture", "give the report itself: rooflens reads no numbers off pictures", magic=(0, b"\x89PNG")),
    Foreign(
        "a picture or a document",
        "give the report itself, or paste its text: `rooflens -`",
        magic=(0, b"%PDF-"),
        suffixes=(".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf", ".docx"),
    ),
    Foreign(
        "a profile of the CPU (Linux perf)", _UNDER_NSYS, magic=(0, b"PERFILE"), suffixes=("perf.data", "gmon.out")
    ),
    Foreign(
        "a notebook",
        "open reports in it: `import rooflens as rl`, `rl.open(REPORT)`",
        keys=(b'"cell_type"',),
        suffixes=(".ipynb",),
    ),
    # tsl/profiler/protobuf/xplane.proto: planes stand first, each begins with its name
    Foreign(_XPLANE, _UNDER_NSYS, magic=(0, b"\n"), keys=(b"/device:GPU",), suffixes=(".xplane.pb",)),
    Foreign(_XPLANE, _UNDER_NSYS, magic=(0, b"\n"), keys=(b"/host:",)),
    # tensorboard_plugin_profile and xprof, convert/trace_events.cc: their header names `highres-ticks`.
    Foreign(
        "a trace of JAX or TensorFlow for Perfetto, which does not mark kernels",
        _UNDER_NSYS,
        keys=(b'"highres-ticks"',),
        suffixes=("perfetto_trace.json.gz",),
    ),
    # triton/third_party/proton/csrc/lib/Data/TreeData.cpp: `frame`, `metrics`, `children` of each node.
    Foreign(
        "a profile of Triton's Proton (`.hatchet`), which adds up times by call path",
        'record a trace of the program: `prof.export_chrome_trace("step.json.gz")`',
        keys=(b'"frame"', b'"metrics"', b'"children"'),
        suffixes=(".hatchet",),
    ),
    Foreign(
        "a result of nvbench",
        "profile the benchmark: `ncu --set full -o REPORT BENCHMARK --profile`",
        keys=(b'"nvbench"', b'"meta"'),
        line=r"\|\s*Samples\s*\|\s*CPU Time\s*\|\s*Noise\s*\|\s*GPU Time\s*\|",
    ),
    Foreign(
        "a database of ROCm's profiler (rocpd)",
        _AMD,
        tables=("rocpd_",),
        suffixes=(".rpd",),
    ),
    Foreign(
        "a table of ROCm's profiler (rocprof)",
        _AMD,
        line=r'^"?Kind"?,"?Agent_Id"?,|^"?Index"?,"?KernelName"?,"?gpu-id"?|^"?Name"?,"?Calls"?,"?TotalDurationNs"?',
    ),
    Foreign(
        "the output of nccl-tests",
        "`rooflens predict all-reduce --bytes N --gpus 8 --gpu NAME --measured MS` sets a time beside the link; the "
        "collectives of a program are in its trace",
        line=r"# nThread \d+ nGpus \d+ minBytes|\btime\s+algbw\s+busbw\b",
    ),
    # cutlass/tools/profiler/src/performance_report.cpp, print_csv_header_
    Foreign(
        "a table of the CUTLASS profiler, which has times and no counters",
        "profile a kernel of it: `ncu --set full -o REPORT cutlass_profiler --kernels=NAME --profiling-iterations=1`",
        line=r"^Problem,Provider,OperationKind,Operation,Disposition",
    ),
    Foreign(
        "a database of nvprof or the Visual Profiler",
        f"{_NCU}; or {_NSYS}",
        tables=("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "StringTable"),
        suffixes=(".nvvp", ".nvprof"),
    ),
    Foreign(
        "a table of nvprof",
        f"{_NCU}; or {_NSYS}",
        line=r"NVPROF is profiling|==\d+== Profiling|\"?Metric Description\"?,\"?Min|\"?Time\(%\)\"?,\"?Time\"?,"
        r"|GPU activities:",
    ),
    Foreign(
        "a table of Nsight Systems that has no times of kernels",
        "`nsys stats --report cuda_gpu_kern_sum REPORT.nsys-rep` prints one that is read",
        line=r"Time ?\(%\)|Total Time ?\(\w+\)|Total ?\(MB\)|\bStart ?\(\w+\)|Duration ?\(\w+\)",
    ),
    Foreign(
        "a report of Nsight Systems",
        "`rooflens FILE` reads it where nsys is installed; else `nsys export --type sqlite FILE`",
        suffixes=(".nsys-rep", ".qdrep"),
    ),
    Foreign(
        "a trace in Perfetto's own format",
        'rooflens reads the JSON that `prof.export_chrome_trace("trace.json.gz")` writes',
        suffixes=(".pftrace", ".perfetto-trace"),
    ),
    Foreign(
        "a project of Nsight Compute's window",
        "it names reports (`.ncu-rep`), and holds none: give those",
        suffixes=(".ncu-proj",),
    ),
    Foreign(
        "code between compilers (PTX, LLVM, Triton)",
        _HOLDS_CODE,
        line=r"^\.version \d+\.\d+\s*$|^\.target sm_\d+|^target triple = \"nvptx",
        suffixes=(".ptx", ".ll", ".ttir", ".ttgir", ".llir", ".mlir"),
    ),
    Foreign(
        "source code of a script",
        "profile it: `rooflens profile -- python SCRIPT`",
        suffixes=(".py",),
    ),
    Foreign(
        "source code",
        "profile its program: `rooflens profile -- ./PROGRAM`; `rooflens REPORT --source FOLDER` shows its lines",
        suffixes=(".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hip", ".mojo", ".jl", ".f90"),
    ),
    Foreign(
        "a pickle, such as PyTorch's snapshot of memory, which could run code as it is opened",
        'give a trace: `prof.export_chrome_trace("step.json.gz")`',
        suffixes=(".pkl", ".pickle"),
    ),
    Foreign(
        "a web page",
        "download the file itself (on GitHub with `Raw`), or copy the text and paste it: `rooflens -`",
        line=r"(?i)^\s*<(?:!doctype html|html\b)",
        suffixes=(".html", ".htm"),
    ),
)

_SUMMED = Foreign("a table of times, as `nsys stats` or PyTorch's profiler prints it", _READ)
_TRACE_KEYS = (b'"traceEvents"', b'"schemaVersion"', b'"ph"', b'"deviceProperties"')
_TRACE = Foreign("a trace, as PyTorch's profiler writes it", _READ)


_PACKED_SUFFIX = re.compile(r"\.(?:gz|zst)$")


def foreign_content(head: bytes) -> Foreign | None:
    """Name a file by its first bytes, some 4 kB; None if it is none of these, or a text."""
    is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}
    for one in FOREIGN:
        begins = is_json if one.magic is None else head[one.magic[0] :].startswith(one.magic[1])
        if begins and (one.magic or one.keys) and all(key in head for key in one.keys):
            return one
    return _TRACE if is_json and any(key in head for key in _TRACE_KEYS) else None


def by_name(name: str) -> Foreign | None:
    """Name a file by its ending; None if that is of none of these."""
    lower = name.lower()
    names = (lower, _PACKED_SUFFIX.sub("", lower))
    return next((one for name in names for one in FOREIGN if name.endswith(one.suffixes or ("/",))), None)


def foreign_file(head: bytes, name: str) -> Foreign | None:
    """Name a file by its first bytes, else by its ending; None if it is none of these."""
    return foreign_content(head) or by_name(name)


def by_tables(names: Iterable[str]) -> Foreign | None:
    """Name an SQLite database by its tables; None if it is none of these."""
    found = tuple(names)
    return next((one for one in FOREIGN if any(name.startswith(one.tables or ("\0",)) for name in found)), None)


def by_lines(lines: Iterable[str]) -> Foreign | None:
    """Return the format of the first line that the pattern of a foreign tool matches; None if none does."""
    known = _line_patterns()
    for line in lines:
        if is_summary_heading(line):
            return _SUMMED
        if (found := next((one for one, pattern in known if pattern.search(line)), None)) is not None:
            return found
    return None


def is_summary_heading(line: str) -> bool:
    """Return whether a line has the headings of a table that PyTorch's profiler or `nsys stats` prints."""
    small = line.casefold()
    return any(all(word in small for word in words) for words in _SUMMARY)


@lru_cache(maxsize=1)
def _line_patterns() -> tuple[tuple[Foreign, re.Pattern[str]], ...]:
    return tuple((one, re.compile(one.line)) for one in FOREIGN if one.line)
