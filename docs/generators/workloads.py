"""Make the tables of docs/reference/workloads.md from the workloads; the text around them is handwritten."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from generators.texts import table
from rooflens.format import MISSING
from rooflens.model.cases import KINDS
from rooflens.workloads.registry import load_workloads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflens.model.cases import Case, Kind

_HEAD = ("workload", "case", "FLOP", "bytes", "expected limiter", "why")


def tables() -> dict[str, list[str]]:
    """Return a table for each kind of workload."""
    return {kind: table(_HEAD, _rows(kind)) for kind in KINDS}


def _rows(kind: Kind) -> Iterator[tuple[str, ...]]:
    """Yield a row for each group of cases that differ only in their sizes."""
    for workload in load_workloads():
        if workload.kind == kind:
            for said, cases in groupby(workload.cases, _said):
                yield f"`{workload.name}`", ", ".join(f"`{case.name}`" for case in cases), *said


def _said(case: Case) -> tuple[str, ...]:
    formulas = (f"`{formula}`" if formula else MISSING for formula in (case.flop, case.bytes))
    return *formulas, " ".join(filter(None, (case.expect.bound, case.expect.resource))), case.expect.why
