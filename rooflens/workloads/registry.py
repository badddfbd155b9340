"""The workloads: every folder here with a `workload.toml`. Adding a folder registers a workload.

The records that they are read into are in `rooflens.model.cases`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rooflens.checking import parse_toml
from rooflens.errors import UnknownNameError
from rooflens.model.cases import KINDS, Case, Expectation, LaunchWork, Workload
from rooflens.model.verdict_classes import BOUNDS

if TYPE_CHECKING:
    from rooflens.checking import CheckedTable

FOLDER = Path(__file__).parent
RANGE_NAME = "rooflens"
"""Name of the single start/end NVTX range that a workload marks for profiling."""


@cache
def load_workloads() -> tuple[Workload, ...]:
    """Load every workload, sorted by name."""
    files = sorted(FOLDER.glob("*/workload.toml"))
    return tuple(parse_workload(file.parent, file.read_text(encoding="utf-8")) for file in files)


def find_workload(name: str) -> Workload:
    """Return a workload by name.

    Raises:
        UnknownNameError: No workload has that name.
    """
    workloads = {workload.name: workload for workload in load_workloads()}
    if name not in workloads:
        raise UnknownNameError("workload", name, workloads, "rooflens workloads")
    return workloads[name]


def parse_workload(folder: Path, text: str) -> Workload:
    """Parse the text of a `workload.toml`; the workload is named after its folder.

    Raises:
        InputError: The text is no TOML, or is incomplete.
    """
    document = parse_toml(text, f"`{folder.name}/workload.toml`")
    document.check_keys(("kind", "summary", "program", "case"), ("profile",))
    return Workload(
        name=folder.name,
        kind=document.one_of("kind", KINDS),
        summary=document.text("summary"),
        program=document.text("program"),
        folder=folder,
        cases=tuple(_case(case) for case in document.tables("case")),
        together="profile" in document and document.one_of("profile", ("first", "all")) == "all",
    )


def _case(table: CheckedTable) -> Case:
    table.check_keys(("name", "parameters", "dtype", "source", "expect"), ("flop", "bytes", "toy", "needs", "part"))
    parameters, expect = _case_sizes(table.table("parameters")), table.table("expect")
    expect.check_keys(("bound", "why"), ("resource",))
    return Case(
        name=table.text("name"),
        parameters=MappingProxyType(parameters),
        dtype=table.text("dtype"),
        source=table.text("source"),
        expect=Expectation(
            expect.one_of("bound", BOUNDS),
            expect.text("resource") if "resource" in expect else None,
            expect.text("why"),
        ),
        flop=table.text("flop") if "flop" in table else None,
        bytes=table.text("bytes") if "bytes" in table else None,
        needs=table.text("needs") if "needs" in table else None,
        toy=MappingProxyType(parameters | (_case_sizes(table.table("toy")) if "toy" in table else {})),
        parts=tuple(_case_part(part) for part in table.tables("part")) if "part" in table else (),
    )


def _case_part(table: CheckedTable) -> LaunchWork:
    names = ("name", "match", "flop", "bytes")
    table.check_keys(names)
    return LaunchWork(*(table.text(name) for name in names))


def _case_sizes(table: CheckedTable) -> dict[str, int]:
    return {name: table.count(name, zero=True) for name in table}
