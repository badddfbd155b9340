"""Fuzzing targets: readers that get anybody's bytes, and answer with records or our errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from fuzzing.mutate import mutated_bytes, mutated_json, mutated_report, mutated_table
from support.ncu_rep_writer import Instances, KernelSpec, NvtxRange, ReportSpec, RuleText, SessionSpec, encode_report
from support.printing import printed
from support.timelines import Launched, write_export
from support.traces import host, kernel, write_trace
from support.traces import launch as launched_at

from rooflens.analyzing import read_timeline
from rooflens.errors import InputError
from rooflens.ingest.exports.read import read_export
from rooflens.ingest.exports.tables import is_export
from rooflens.ingest.reports.read import ReadOptions, read_bytes
from rooflens.ingest.timelines import chrome, nsys  # imported here to be instrumented: `read` imports them late

sys.path.append(str(Path(__file__).parents[1] / "ingest" / "exports"))

from collections.abc import Callable
from random import Random

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
_READERS = (chrome, nsys)
_SYNTHETIC = Path(__file__).parents[2] / "fixtures" / "synthetic"


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
        rules=(RuleText("Rule", "Roofline", "title", "text"),),
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


TARGETS = {
    "container": Target(read_container, mutated_report, _reports),
    "csv": Target(read_table, mutated_table, _tables),
    "text": Target(read_table, mutated_table, _texts),
    "chrome": Target(read_timeline_of, mutated_json, _traces),
    "nsys": Target(read_timeline_of, mutated_bytes, _databases),
}
