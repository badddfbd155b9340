"""The bundled workloads and their cases, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rich.table import Table

from rooflens.model.units import si, significant
from rooflens.model.words import resource_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Expectation(Protocol):
    @property
    def bound(self) -> str: ...
    @property
    def resource(self) -> str | None: ...


class _Case(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, int]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def expect(self) -> _Expectation: ...
    def flop_count(self) -> float | None: ...
    def byte_count(self) -> float | None: ...


class _Workload(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def cases(self) -> Sequence[_Case]: ...


def workload_table(workloads: Sequence[_Workload]) -> Table:
    """Make a table of all workloads."""
    table = _table("workload", "kind", "cases", "what it shows")
    for workload in workloads:
        table.add_row(workload.name, workload.kind, ", ".join(case.name for case in workload.cases), workload.summary)
    return table


def case_table(cases: Sequence[_Case]) -> Table:
    """Make a table of one workload's cases: what each must compute and move, and the wall it should hit."""
    table = _table("case", "type", "sizes", "FLOP", "bytes", "FLOP/B", "expected")
    for case in cases:
        flop, moved = case.flop_count(), case.byte_count()
        expected = case.expect
        table.add_row(
            case.name,
            case.dtype,
            " ".join(f"{name}={value}" for name, value in case.parameters.items()),
            "-" if flop is None else si(flop, ""),
            "-" if moved is None else si(moved, "B"),
            significant(flop / moved) if flop and moved else "-",
            expected.bound + (f" at {resource_label(expected.resource)}" if expected.resource else ""),
        )
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading)
    return table
