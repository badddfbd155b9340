"""The history of a store by program and GPU: its runs in order, and its kernels over them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.compare.ladder import Point, Series
from rooflens.model.compare.pairing import version_name
from rooflens.model.compare.versions import report_labels
from rooflens.model.records import Run

MAX_LINES = 8
"""Kernels drawn as lines, those with most time in the newest run first."""


class Group(Struct, frozen=True):
    """One program on one GPU.

    Attributes:
        runs: Every run in which one of its kernels was recorded, oldest first.
        series: Its kernels, those with most time in their newest run first.
    """

    program: str
    gpu: str | None
    runs: tuple[Run, ...]
    series: tuple[Series, ...]

    @property
    def drawn(self) -> tuple[Series, ...]:
        """Kernels that are drawn: those with a time."""
        return tuple(series for series in self.series if any(point.time_ns for point in series.points))[:MAX_LINES]

    @property
    def is_drawable(self) -> bool:
        """True where there is a way from one run to another."""
        return len(self.runs) > 1 and bool(self.drawn)

    def at(self, point: Point) -> int:
        """Give the number of a point's run, from 0."""
        return next(i for i, run in enumerate(self.runs) if run.digest == point.run.digest)

    def total_ns(self, at: int) -> float | None:
        """Add up the GPU time of all kernels of one run; None where one of them has none."""
        digest = self.runs[at].digest
        times = [point.gpu_time_ns for series in self.series for point in series.points if point.run.digest == digest]
        return sum(time or 0.0 for time in times) if times and all(time is not None for time in times) else None

    @property
    def when(self) -> tuple[str, ...]:
        """Name each run: by its version, else by its day, with the time of day where one has several, or by number."""
        if len({version_name(run) for run in self.runs}) > 1:
            labels = report_labels(self.runs)
            return tuple(labels[run.digest] for run in self.runs)
        days = [fmt.date(run.created_unix_s) for run in self.runs]
        return tuple(
            f"run {i + 1}"
            if run.created_unix_s is None
            else day
            if days.count(day) == 1
            else datetime.fromtimestamp(run.created_unix_s, tz=UTC).strftime("%Y-%m-%d %H:%M")
            for i, (day, run) in enumerate(zip(days, self.runs, strict=True))
        )


def groups(series: Iterable[Series]) -> tuple[Group, ...]:
    """Sort kernels by program and GPU, in the order of their longest kernels."""
    found: dict[tuple[str, str | None], list[Series]] = {}
    for kernel in series:
        found.setdefault((kernel.program, kernel.gpu), []).append(kernel)
    return tuple(Group(program, gpu, _runs(own), tuple(own)) for (program, gpu), own in found.items())


def _runs(series: Iterable[Series]) -> tuple[Run, ...]:
    runs = {point.run.digest: point.run for kernel in series for point in kernel.points}
    return tuple(sorted(runs.values(), key=lambda run: (run.created_unix_s or 0, fmt.natural(run.source))))
