"""What published kernels attain: the best times of an operation that others measured, over our floor of each.

    eta = floor / time        attainable = floor / eta, from the fastest of the points to the slowest, and a launch

The points are in `published.csv`, each with its source. An operation is judged by its own points and those of its kind,
on other GPUs and in other types too: `docs/explanation/accuracy.md` leaves out each GPU in turn, and shows how many of
its times lie in the interval of the others. Where all points come from one source, the interval is unproven.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from msgspec import Struct

from rooflens.format import duration, significant
from rooflens.model.predict.forecast import forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.roofline.datasheets import the_datasheet

SHORT_S = 10e-6
"""Published times of short kernels hold a launch and what measures them: products of 512 take 9 us in any type."""

_KINDS: tuple[frozenset[str], ...] = (
    frozenset({"rmsnorm", "layernorm", "softmax"}),
    frozenset({"gemm", "grouped-gemm"}),
)
"""Operations whose kernels attain alike: those that go row by row, and products."""


class Point(Struct, frozen=True):
    """The best published time of an operation at one size on one GPU.

    Attributes:
        gpu: As `rooflens gpus` lists it.
        sizes: By name, as `rooflens predict` takes them.
        floor_s: Our floor of it.
    """

    operation: str
    dtype: str
    gpu: str
    sizes: dict[str, int]
    time_s: float
    implementation: str
    source: str
    floor_s: float

    @property
    def eta(self) -> float:
        """Floor over time, 0 to 1."""
        return self.floor_s / self.time_s


class Attainable(Struct, frozen=True):
    """What published kernels of an operation would take, as times in seconds.

    Attributes:
        low_s: As near to the floor as the best of them.
        typical_s: As near as the median one.
        high_s: As near as the slowest of them, and a launch.
        points: How many kernels were published.
        sources: Who published them.
    """

    low_s: float
    typical_s: float
    high_s: float
    points: int
    sources: tuple[str, ...]

    @property
    def proven(self) -> bool:
        """True where more than one source measured them."""
        return len(self.sources) > 1


@cache
def published_points() -> tuple[Point, ...]:
    """Return all points, each with its floor."""
    text = Path(__file__).with_name("published.csv").read_text(encoding="utf-8")
    return tuple(_point(row) for row in csv.DictReader(text.splitlines()))


def _point(row: dict[str, str]) -> Point:
    """Read one line, and predict its floor."""
    sizes = {name: int(value) for name, _, value in (pair.partition("=") for pair in row["sizes"].split())}
    floor_s = forecast(OPERATIONS[row["operation"]], sizes, row["dtype"], the_datasheet(row["gpu"])).t_lower_s
    names = ("operation", "dtype", "gpu", "implementation", "source")
    return Point(
        **{name: row[name] for name in names}, sizes=sizes, time_s=float(row["time_ms"]) / 1e3, floor_s=floor_s
    )


def attainable(operation: str, floor_s: float, points: Iterable[Point] | None = None) -> Attainable | None:
    """Return what published kernels of an operation and of its kind would take; None where none are published.

    Args:
        operation: Name of an operation.
        floor_s: The floor of its time.
        points: The published times to judge by; by default all.
    """
    alike = next((kind for kind in _KINDS if operation in kind), frozenset({operation}))
    chosen = [point for point in (published_points() if points is None else points) if point.operation in alike]
    if not chosen or not floor_s:
        return None
    etas = [point.eta for point in chosen]
    # A kernel shorter than a launch says nothing of how slow a long one is.
    long = [point.eta for point in chosen if point.floor_s >= SHORT_S] or etas
    return Attainable(
        low_s=floor_s / max(etas),
        typical_s=floor_s / statistics.median(etas),
        high_s=floor_s / min(long) + SHORT_S,
        points=len(chosen),
        sources=tuple(sorted({point.source for point in chosen})),
    )


def floor_words(floor_s: float, found: Attainable | None) -> str:
    """Say what the floor is and what is attained: `floor 572 µs; published kernels reach 1.3 to 1.9 times that`."""
    floor = f"floor {duration(floor_s * 1e9)}"
    if found is None:
        return floor
    low, typical, high = (significant(time_s / floor_s, 2) for time_s in (found.low_s, found.typical_s, found.high_s))
    unproven = "" if found.proven else "; unproven: one source"
    return f"{floor}; published kernels reach {low} to {high} times that (median {typical}{unproven})"


def time_words(time_s: float, floor_s: float, found: Attainable | None) -> str:
    """Set a known time against the floor and against what is attained, and say whether to stop."""
    taken = f"{duration(time_s * 1e9)} is {significant(time_s / floor_s)} times the floor"
    if time_s < floor_s:
        return f"{taken}: it did less work than predicted, or the time is wrong"
    if found is None:
        return taken
    taken += f" and {significant(time_s / found.typical_s)} times the median of published kernels"
    if time_s > found.high_s:
        return f"{taken}: slower than all of them"
    if time_s > found.typical_s:
        return f"{taken}: slower than half of them; the best would take {duration(found.low_s * 1e9)}"
    return f"{taken}: faster than half of them, stop here"
