"""Predicted against measured: what one iteration of a workload must compute and move, beside its counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rooflens.model.units import percent, si, significant
from rooflens.model.words import resource_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.records import Analysis


class Expectation(Protocol):
    """The wall a case is expected to hit."""

    @property
    def bound(self) -> str:
        """Class of the verdict."""

    @property
    def resource(self) -> str | None:
        """Level or pipe, where the class has one."""


class Case(Protocol):
    """What a prediction needs of a workload's case."""

    @property
    def expect(self) -> Expectation:
        """The wall it is expected to hit."""

    def flop_count(self) -> float | None:
        """Return the FLOP of one iteration."""

    def byte_count(self) -> float | None:
        """Return the bytes one iteration must move to and from device memory."""


def prediction_lines(case: Case, analyses: Sequence[Analysis]) -> tuple[str, str]:
    """Write what was predicted for one iteration, and what the profiled kernels did, each on a line.

    The measured side adds up the kernels of the report: where ncu profiled equal launches once, it is a lower bound.
    """
    flop, moved = case.flop_count(), case.byte_count()
    predicted = [*_amounts(flop, moved), _wall(case.expect.bound, case.expect.resource)]
    measured = [*_measured(flop, moved, analyses), _longest(analyses)]
    kernels = f"{len(analyses)} kernel{'' if len(analyses) == 1 else 's'}"
    return f"predicted, one iteration: {', '.join(predicted)}", f"measured, {kernels}: {', '.join(measured)}"


def _amounts(flop: float | None, moved: float | None) -> list[str]:
    return [*([si(flop, "FLOP")] if flop else []), *([f"{si(moved, 'B')} at HBM"] if moved else [])]


def _measured(flop: float | None, moved: float | None, analyses: Sequence[Analysis]) -> list[str]:
    done = [analysis.flop_total for analysis in analyses]
    bytes_ = [analysis.levels["dram"].amount_bytes for analysis in analyses]
    words = []
    if flop:
        words.append(_beside(done, flop, "FLOP"))
    if moved:
        words.append(f"{_beside(bytes_, moved, 'B')} at HBM")
    return words


def _beside(measured: Sequence[float | None], predicted: float, unit: str) -> str:
    known = [value for value in measured if value is not None]
    if len(known) < len(measured) or not known:
        return f"{unit} not measured"
    return f"{si(sum(known), unit)} ({significant(sum(known) / predicted)}x)"


def _wall(bound: str, resource: str | None) -> str:
    return f"{bound} at {resource_label(resource)}" if resource else bound


def _longest(analyses: Sequence[Analysis]) -> str:
    """Name the verdict of the longest kernel, with its part of the time."""
    timed = [(analysis.kernel.duration_ns or 0.0, analysis) for analysis in analyses]
    total_ns = sum(time_ns for time_ns, _ in timed)
    if not total_ns:
        return "no time measured"
    time_ns, analysis = max(timed, key=lambda pair: pair[0])
    return f"{_wall(analysis.verdict.bound, analysis.verdict.resource)} for {percent(time_ns / total_ns)} of the time"
