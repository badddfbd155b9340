"""The parts of a comparison with independent numbers: results with their stored values, pairs and rows."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.ingest.load import read_group
from rooflens.ingest.reports.inputs import find_inputs, has_name_of_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.analyze import analyze

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from rooflens.ingest.reports.report import ReadReport
    from rooflens.model.records import Analysis, Kernel

Value = float | int | str | None

AS_USUAL = 0.01
PASSES = "amount and oracle come from different replay passes of one kernel: 1 % is their usual spread"
SAME_COUNTERS = "both sides come from the same counters: only rounding of floating-point numbers"
COUNTS = "both sides are exact counts: only rounding of floating-point numbers"
ROUNDED = 1e-9
"""Relative: far above the rounding of doubles, far below one count in any report."""


class Result(Struct, frozen=True):
    """One profiled result: the kernel as rooflens reads and analyzes it, and every value as stored."""

    report: str
    kernel: Kernel
    analysis: Analysis
    stored: Mapping[str, Value]

    def number(self, name: str) -> float | None:
        """Return a stored number; None if it is missing or NaN."""
        value = self.stored.get(name)
        return float(value) if isinstance(value, float | int) and value == value else None  # noqa: PLR0124 - NaN

    def total(self, names: Iterable[str]) -> float | None:
        """Add stored numbers; None if one is missing."""
        values = [self.number(name) for name in names]
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None


class Pair(Struct, frozen=True):
    """One comparison: what is compared, our deviation in the unit of its row, and the reason if known."""

    report: str
    index: int
    label: str
    deviation: float
    reason: str = ""


class Row(Struct, frozen=True):
    """One row of the table.

    Attributes:
        unit: `relative`, `points` of a per cent, `digits` (units of the last printed digit) or `class` (0 same, 1 not).
        why: Source of the tolerance.
    """

    key: str
    what: str
    oracle: str
    unit: str
    tolerance: float
    why: str
    pairs: tuple[Pair, ...]

    @property
    def kernel_count(self) -> int:
        """Results compared."""
        return len({(pair.report, pair.index) for pair in self.pairs})

    @property
    def report_count(self) -> int:
        """Reports compared."""
        return len({pair.report for pair in self.pairs})

    @property
    def median(self) -> float | None:
        """Median absolute deviation; None if nothing was compared."""
        return median(abs(pair.deviation) for pair in self.pairs) if self.pairs else None

    @property
    def largest(self) -> float | None:
        """Largest absolute deviation; None if nothing was compared."""
        return max((abs(pair.deviation) for pair in self.pairs), default=None)

    @property
    def outside(self) -> tuple[Pair, ...]:
        """The pairs outside the tolerance."""
        return tuple(pair for pair in self.pairs if not abs(pair.deviation) <= self.tolerance)


def read_folder(folder: Path) -> tuple[list[Result], list[str]]:
    """Read every report of a folder; return the results, and one line for each report that could not be read."""
    results, failures = [], []
    jobs = [job for job in find_inputs([str(folder)]).jobs if has_name_of_report(job.path)]
    for outcome in sorted(read_group(ReadOptions(raw="values"), jobs).outcomes, key=lambda outcome: outcome.job.source):
        if isinstance(outcome.result, Exception):
            failures.append(f"{outcome.job.path.name}: {outcome.result}")
        else:
            results += _results(outcome.job.path.name, outcome.result)
    return results, failures


def _results(name: str, report: ReadReport) -> Iterator[Result]:
    stored: dict[int, dict[str, Value]] = {kernel.index: {} for kernel in report.kernels}
    if report.raw is not None:
        columns = ("kernel_index", "name", "value_double", "value_uint64", "value_string")
        for index, metric, *values in zip(*(report.raw[c].to_pylist() for c in columns), strict=True):
            stored[index][metric] = next((value for value in values if value is not None), None)
    for kernel in report.kernels:
        yield Result(name, kernel, analyze(kernel), stored[kernel.index])


def relative(ours: float, theirs: float) -> float:
    """Return our deviation relative to theirs; infinite if theirs is zero and ours is not."""
    if theirs:
        return ours / theirs - 1
    return 0.0 if not ours else float("inf")


def pair_of(result: Result, deviation: float, reason: str = "") -> Pair:
    """Note a comparison under the name of its kernel."""
    return Pair(result.report, result.kernel.index, result.kernel.name, deviation, reason)
