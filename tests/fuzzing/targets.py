"""What is fuzzed: readers that get bytes of anybody's, and answer with records or with an error of ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from fuzzing.mutate import mutated_report, mutated_table
from support.ncu_rep_writer import Instances, KernelSpec, NvtxRange, ReportSpec, RuleText, SessionSpec, encode_report

from rooflens.errors import InputError
from rooflens.ingest.exports.read import read_export
from rooflens.ingest.exports.tables import is_export
from rooflens.ingest.reports.read import ReadOptions, read_bytes

sys.path.append(str(Path(__file__).parents[1] / "ingest" / "exports"))

from collections.abc import Callable
from random import Random

from texts import LONG, SHARE, TIME, launch, metric, text

FOUND = Path(__file__).parent / "found"
"""What was found, a file each, its name beginning with its target's: read again by the tests."""

_SYNTHETIC = Path(__file__).parents[2] / "fixtures" / "synthetic"


class Target(NamedTuple):
    """A reader, which says whether it took its input for whole, what changes inputs, and inputs to begin with."""

    read: Callable[[bytes], bool]
    mutate: Callable[[bytes, Random], bytes]
    seeds: Callable[[], list[bytes]]


def read_container(data: bytes) -> bool:
    """Read a report with every value; whatever is wrong with it is an error of ours."""
    try:
        report = read_bytes(data, "fuzzed", ReadOptions(raw="all"))
    except InputError:
        return False
    assert all(kernel.index == at for at, kernel in enumerate(report.kernels))
    return True


def read_table(data: bytes) -> bool:
    """Read an export; whatever is wrong with it is an error of ours."""
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


TARGETS = {
    "container": Target(read_container, mutated_report, _reports),
    "csv": Target(read_table, mutated_table, _tables),
}
