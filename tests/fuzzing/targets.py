"""Fuzzing targets: readers that get anybody's bytes, and answer with records or our errors."""

from __future__ import annotations

import json
import re
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from click import Choice, Context, Group, Option
from click.testing import CliRunner
from fuzzing.mutate import (
    mutated_bytes,
    mutated_code,
    mutated_json,
    mutated_operands,
    mutated_report,
    mutated_settings,
    mutated_store,
    mutated_table,
    packed_files,
    unpacked_files,
)
from support.cubin_writer import END, SET_ADDRESS, STEP, cubin, line_table, report_with, source_of
from support.encoded_code import loads_then_sums, loop_metrics
from support.ncu_rep_writer import Instances, KernelSpec, NvtxRange, ReportSpec, Rule, SessionSpec, encode_report
from support.printed_tables import AVERAGES, KERN_SUM, MEM_SUM, average, averages, column, separated, summed
from support.printing import printed
from support.stored import DIGESTS, commit, files_of
from support.timelines import Launched, write_export
from support.traces import host, kernel, write_trace
from support.traces import launch as launched_at

from rooflens.analyzing import analyze_store, read_timeline
from rooflens.cli.group import main
from rooflens.cli.settings import NOT_IN_FILES, option_names
from rooflens.errors import InputError
from rooflens.ingest.exports.read import read_export
from rooflens.ingest.exports.tables import is_export
from rooflens.ingest.reports.read import ReadOptions, read_bytes
from rooflens.ingest.reports.report import ReadReport
from rooflens.ingest.timelines import chrome, nsys  # imported here to be instrumented: `read` imports them late
from rooflens.model.analyze import analyze
from rooflens.model.failed import BUG_HINT, is_bug
from rooflens.model.program import operators
from rooflens.model.store import MARKER
from rooflens.programs import read_programs
from rooflens.report.data import to_json
from rooflens.writing.answers import of_traces

sys.path += [
    str(Path(__file__).parents[1] / "ingest" / "exports"),
    str(Path(__file__).parents[1] / "model" / "program"),
]

from collections.abc import Callable
from random import Random

from test_operators import BY_HAND
from texts import LONG, RULES, SHARE, TIME, launch, metric, text

FOUND = Path(__file__).parent / "found"
"""Inputs that were found, a file each, named after the target: the tests read them again."""

_PRINTED = (
    metric("Elapsed Cycles", "cycle", "102,095", "GPU Speed Of Light Throughput"),
    metric("DRAM Throughput", "%", "92.20", "GPU Speed Of Light Throughput"),
    metric("Duration", "usecond", "72.64", "GPU Speed Of Light Throughput"),
    metric("Grid Size", "", "2,048", "Launch Statistics"),
)
_RULE = {
    "Section Name": "SchedulerStats",
    "Rule Name": "IssueSlotUtilization",
    "Rule Type": "OPT",
    "Rule Description": "Each scheduler only issues an instruction every 6.9 cycles.",
    "Estimated Speedup Type": "local",
    "Estimated Speedup": "7.804",
}
_SYNTHETIC = Path(__file__).parents[2] / "fixtures" / "synthetic"
_READERS = (chrome, nsys, operators)
_STORED = re.compile(r"[a-z]+/[0-9a-f]{64}\.parquet")
_REPORT = str(_SYNTHETIC / "attention.synthetic.ncu-rep")
_LINES = {
    "analyze": (_REPORT,),
    "explain": (_REPORT,),
    "compare": (_REPORT, _REPORT),
    "predict": ("all-reduce", "--bytes", "1048576", "--gpus", "8"),
    "collect": ("--dry-run", "--chip", "gh100", "saxpy"),
}
"""Command -> what it is given besides its settings: nothing is written or run, whatever they say."""


class Target(NamedTuple):
    """A target: a reader, which says whether it accepted its input as complete, a mutator, and inputs to start from."""

    read: Callable[[bytes], bool]
    mutate: Callable[[bytes, Random], bytes]
    seeds: Callable[[], list[bytes]]


def read_container(data: bytes) -> bool:
    """Read a report with every value; all faults are our errors."""
    try:
        report = read_bytes(data, "fuzzed", ReadOptions(raw="all"))
    except InputError:
        return False
    assert all(kernel.index == at for at, kernel in enumerate(report.kernels))
    return True


def read_table(data: bytes) -> bool:
    """Read an export; all faults are our errors."""
    is_export(data)
    try:
        export = read_export(data, gpu="NVIDIA A10")
        assert all(isinstance(value, float | int) for kernel in export for value in kernel.numbers.values())
        assert all(export.notes)
    except InputError:
        return False
    return True


def _reports() -> list[bytes]:
    kernel = KernelSpec(
        "void kernel<float>(float *)",
        {
            "gpu__time_duration.sum": 1000.0,
            "launch__grid_size": 8,
            "a_file": "/home/kernel.cu",
            "sass__inst_executed_per_opcode_with_modifier_all": Instances({"FFMA": 128, "HMMA": 1}, 129),
        },
        rules=(Rule("Rule", "Roofline", "title", "text"),),
        ranges=(NvtxRange("train/step"),),
    )
    session = SessionSpec(process_name="/home/train", host="box", command_line="ncu -o x train", clock_control="Base")
    stored = [path.read_bytes() for path in sorted(_SYNTHETIC.glob("*.ncu-rep"))]
    return [encode_report(ReportSpec([kernel, kernel], session)), *stored]


def _tables() -> list[bytes]:
    columns = {**launch(), TIME: "28.13", SHARE: "61.84"}
    wide = text(list(columns), [{TIME: "us", SHARE: "%"}, columns, {**columns, "ID": "1"}])
    rows = [{**launch(at), **metric(TIME, "us", "28.13")} for at in range(3)]
    rows += [{**launch(at), **metric(SHARE, "%", "61.84")} for at in range(3)]
    printed = "==PROF== Connected to process 4711 (/home/a.out)\nloss 1.5\n"
    semicolons = text(LONG, [{**row, "Metric Value": "28,13"} for row in rows], ";")
    return [one.encode() for one in (wide, printed + wide, text(LONG, rows), printed + text(LONG, rows), semicolons)]


def _texts() -> list[bytes]:
    rows = [{**launch(at), **one} for at in range(2) for one in (*_PRINTED, _RULE)]
    export = text((*LONG, *RULES), rows)
    pages = (printed(export), printed(export, is_plain=True), f"$ make run\n{printed(export)}loss 1.5\n")
    return [page.encode() for page in pages]


def read_timeline_of(data: bytes) -> bool:
    """Read and sum a timeline, which readers open by name; all faults are our errors."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "timeline"
        file.write_bytes(data)
        try:
            timed = read_timeline(file)
        except InputError:
            return False
    assert all(one.total_ns is None or one.total_ns >= 0 for one in timed.program.launch_counts)
    return True


def _traces() -> list[bytes]:
    events = [
        host("python_function", "nn.Module: Linear_0", 0.0, 90.0, **{"Python id": 1}),
        host("user_annotation", "step", 0.0, 80.0),
        host("cpu_op", "aten::mm", 1.0, 20.0, **{"Sequence number": 3}),
    ]
    for at in range(3):
        events += [launched_at(2.0 + at, at), kernel("gemm", 9.0 + 6 * at, correlation=at)]
    with TemporaryDirectory() as folder:
        named = write_trace(Path(folder) / "t.json", events, deviceProperties=[{"id": 0, "name": "NVIDIA A100"}])
        packed = write_trace(Path(folder) / "t.json.gz", events)
        whole = named.read_bytes()
        odd = whole.replace(b'"gemm"', b'"g\\emm"', 1).replace(b"5.0", b"NaN", 1)
        return [whole, json.dumps(events).encode(), odd, packed.read_bytes()]


def _databases() -> list[bytes]:
    launches = [Launched(f"kernel{at % 2}", 1000 * at, 1000 * at + 400) for at in range(1, 6)]
    ranges = (("step", 0, 9000, 1, 59), ("forward", 500, 3000, 1, 59), ("all", 0, 9000, 1, 60))
    with TemporaryDirectory() as folder:
        full = write_export(Path(folder) / "full.sqlite", launches, ranges=ranges, copies=((0, 100, 900),))
        return [full.read_bytes(), write_export(Path(folder) / "few.sqlite", launches[:1]).read_bytes()]


def read_code(data: bytes) -> bool:
    """Read a report of a kernel with this compiled code, look into it and judge it; all faults are our errors."""
    spec = KernelSpec("void kernel()", loop_metrics(1e5), function="kernel", module=1)
    try:
        report = read_bytes(report_with(source_of(data), kernels=(spec,)), "fuzzed")
    except InputError:
        return False
    _judged(report)
    return all(kernel.inside is not None and not kernel.inside.note for kernel in report.kernels)


def read_counters(data: bytes) -> bool:
    """Read JSON of counters and judge its kernels; all faults are our errors."""
    try:
        report = read_bytes(data, "fuzzed", ReadOptions(gpu="NVIDIA H200"))
    except InputError:
        return False
    _judged(report)
    return True


def _judged(report: ReadReport) -> None:
    """Judge the kernels of a report, and write their JSON: a fault is raised here, and costs its kernel elsewhere."""
    to_json([analyze(kernel) for kernel in report.kernels])  # which refuses what is no number


def read_operators(data: bytes) -> bool:
    """Read a trace, and work out the floors of its operators; all faults are our errors."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        file.write_bytes(data)
        try:
            programs = read_programs([file])
        except InputError:
            return False
    of_traces(programs).text("json")  # which refuses what is no number
    return True


def read_settings(data: bytes) -> bool:
    """Run a command with these settings; whatever is wrong in them is our error."""
    named = next((name for name in _LINES if f"[{name}".encode() in data or f".{name}".encode() in data), "analyze")
    with TemporaryDirectory() as folder, chdir(folder):
        Path(".git").mkdir()  # no folder above is searched
        Path("pyproject.toml" if data.startswith(b"[tool") else "rooflens.toml").write_bytes(data)
        done = CliRunner().invoke(main, [named, *_LINES[named]])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return not done.exit_code


def read_store(data: bytes) -> bool:
    """Judge the reports of a store, and keep the verdicts there; all faults are our errors."""
    with TemporaryDirectory() as folder:
        for name, content in unpacked_files(data).items():
            if name == MARKER or _STORED.fullmatch(name):
                (Path(folder) / name).parent.mkdir(exist_ok=True)
                (Path(folder) / name).write_bytes(content)
        try:
            found = analyze_store(folder, keep=True)
        except InputError:
            return False
    faults = [error for _, error in found.failures] + [found.not_kept] * (found.not_kept is not None)
    assert not [error for error in faults if error.hint == BUG_HINT], faults
    assert not [one.kernel.status_reason for one in found.analyses if is_bug(one.kernel)]
    return not faults


def _codes() -> list[bytes]:
    table = line_table(SET_ADDRESS + STEP * 8 + END)
    return [cubin(table, code=loads_then_sums()), cubin(table, code=loads_then_sums() * 20)]


def _counters() -> list[bytes]:
    metrics = {
        "gpu__time_duration.sum": 72640,
        "dram__bytes_read.sum": "1,234,567",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": {"value": 61.84, "unit": "%"},
        "smsp__warp_issue_stalled_long_scoreboard.avg": 0.5,
        "launch__grid_size": 1024,
        "launch__block_size": 256,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 1.0e9,
        "device__attribute_display_name": "NVIDIA H200",
    }
    forms: tuple[object, ...] = (
        {"void gemm<float>(float *)": metrics, "copy": metrics},
        {"kernels": [{"name": "gemm", "metrics": metrics}, {"kernel_name": "copy", **metrics}]},
        [{"Kernel Name": "gemm", "counters": metrics}],
    )
    return [json.dumps(form).encode() for form in forms]


def _operators() -> list[bytes]:
    calls = list(BY_HAND.values())
    seeds = []
    for first in range(0, len(calls), 8):
        events = []
        for at, (operator, operands, _, _) in enumerate(calls[first : first + 8]):
            args = {
                "Input Dims": [list(dims) for dims in operands.dims],
                "Input type": list(operands.types),
                "Concrete Inputs": list(operands.values) or [""] * len(operands.dims),
                "Input Strides": [list(strides) for strides in operands.strides] or [[]] * len(operands.dims),
            }
            events.append(host("cpu_op", f"aten::{operator.removeprefix('aten::')}", 20.0 * at, 15.0, **args))
            events += [launched_at(20.0 * at + 1, at), kernel(f"kernel_{at}", 20.0 * at + 5, correlation=at)]
        device = [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]
        seeds.append(json.dumps({"schemaVersion": 1, "deviceProperties": device, "traceEvents": events}).encode())
    return seeds


_VALUES = {"INTEGER": "300", "FLOAT": "2.5", "BOOLEAN": "false"}
_GIVEN = {
    "gpu": '"H200"',
    "columns": '"kernel,time"',
    "fail-on": '"5%"',
    "floor": '"2us"',
    "threshold": '"2%"',
    "kernel": '"*"',
    "detail": '"quick"',
}


_OF_OTHERS = {"by", "max-tokens", "link", "network-gb-per-s"}
"""Options that a command refuses without another one, or for another kind of what it is about."""


def _summaries() -> list[bytes]:
    """Return what PyTorch's profiler and nsys print at the end."""
    rows = [
        average("aten::mm", 10, "2.000ms", "6.000ms"),
        average("ampere_sgemm_128x64_tn", 10, "0.000us", "6.000ms"),
        average("Memcpy HtoD (Pageable -> Device)", 4, "0.000us", "1.000ms"),
    ]
    kernels = [summed(7_000_000, 70, "void gemm<float, 4>(const float *, int)", commas=True)]
    copies = [summed(500_000, 5, "[CUDA memcpy Host-to-Device]")]
    shapes = averages([(*row, "[[64, 32], [32, 16]]") for row in rows], (*AVERAGES, "Input Shapes"))
    texts = (averages(rows), shapes, column(KERN_SUM, kernels), separated(MEM_SUM, copies, "cuda_gpu_mem_time_sum"))
    return [text.encode() for text in (*texts[:3], texts[2] + texts[3])]


def _settings() -> list[bytes]:
    seeds = []
    for name in _LINES:
        command = main.get_command(Context(main), name)
        if isinstance(command, Group):
            command = command.get_command(Context(command), _LINES[name][0])
        assert command is not None
        options = {key: one for key, one in option_names(command).items() if key not in NOT_IN_FILES | _OF_OTHERS}
        lines = [f"{key} = {given}" for key, one in options.items() if (given := _setting(key, one)) is not None]
        seeds += ["\n".join([f"[{table}{name}]", *lines, ""]).encode() for table in ("", "tool.rooflens.")]
    return seeds


def _setting(key: str, option: Option) -> str | None:
    """Return a value that an option takes in a file; None if it needs a file of its own, or another option."""
    if key in _GIVEN:
        return f"[{_GIVEN[key]}]" if option.multiple else _GIVEN[key]
    if isinstance(option.type, Choice):
        return f'"{option.type.choices[0]}"'
    return next((value for kind, value in _VALUES.items() if kind.casefold() in option.type.name), None)


def _stores() -> list[bytes]:
    with TemporaryDirectory() as folder:
        store = Path(folder)
        commit(store, files_of(DIGESTS[0], 3), files_of(DIGESTS[1]))
        commit(store, files_of(DIGESTS[2], 2))
        ingested = _files_of(store)
        analyze_store(store, keep=True)
        return [packed_files(files) for files in (ingested, _files_of(store))]


def _files_of(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


TARGETS = {
    "container": Target(read_container, mutated_report, _reports),
    "csv": Target(read_table, mutated_table, _tables),
    "text": Target(read_table, mutated_table, _texts),
    "chrome": Target(read_timeline_of, mutated_json, _traces),
    "nsys": Target(read_timeline_of, mutated_bytes, _databases),
    "code": Target(read_code, mutated_code, _codes),
    "operators": Target(read_operators, mutated_operands, _operators),
    "summaries": Target(read_operators, mutated_table, _summaries),
    "settings": Target(read_settings, mutated_settings, _settings),
    "counters": Target(read_counters, mutated_json, _counters),
    "store": Target(read_store, mutated_store, _stores),
}
