"""Tables of the bundled workloads, which can be printed on a machine that only collects."""

from __future__ import annotations

from collections.abc import Sequence

from rooflens.format import si, significant
from rooflens.model.cases import Case, Workload
from rooflens.report.document import Column, Table


def workload_table(workloads: Sequence[Workload]) -> Table:
    """Make a table of all workloads."""
    columns = (
        Column("workload"),
        Column("kind", worth=4),
        Column("cases", fit="wrap", worth=6, least=24),
        Column("what it shows", fit="wrap", worth=7, least=24),
    )
    rows = ((one.name, one.kind, ", ".join(case.name for case in one.cases), one.summary) for one in workloads)
    return Table(columns, tuple(rows))


def case_table(cases: Sequence[Case]) -> Table:
    """Make a table of one workload's cases: what each must compute and move, and the expected limiter."""
    numbers = (Column(heading, right=True) for heading in ("FLOP", "bytes", "FLOP/B"))
    columns = (
        Column("case"),
        Column("type", worth=4),
        Column("sizes", fit="wrap", worth=6, least=15),
        *numbers,
        Column("expected", fit="wrap", worth=7, least=16),
    )
    return Table(columns, tuple(map(_case_row, cases)))


def _case_row(case: Case) -> tuple[str, ...]:
    flop, moved, expected = case.flop_count(), case.byte_count(), case.expect
    return (
        case.name,
        case.dtype,
        " ".join(f"{name}={value}" for name, value in case.parameters.items()),
        "-" if flop is None else si(flop, ""),
        "-" if moved is None else si(moved, "B"),
        significant(flop / moved) if flop and moved else "-",
        f"{expected.bound} at {_label(expected.resource)}" if expected.resource else expected.bound,
    )


def _label(resource: str) -> str:
    """Write a level or pipe as verdicts do, whose records are not available on every machine: `DRAM`, `tensor bf16`."""
    return resource.replace("_", " ") if "_" in resource else resource.upper()
