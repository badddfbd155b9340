"""What published kernels reach: the best times of an operation that others measured, over our floor of each.

    eta = floor / time        attainable = floor / eta, from the fastest of the points to the slowest, and a launch

The points are in `published.csv`, each with its source. An operation is judged by its own points and those of its kind,
on other GPUs and in other types too: that is what leaving out each GPU in turn was tried with
(docs/explanation/accuracy.md). Where all of them come from one source, the interval is unproven.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from msgspec import Struct

from rooflens.model.predict.forecast import Forecast, forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.roofline.datasheets import the_datasheet

SHORT_S = 10e-6
"""Published times of short kernels hold a launch and what measures them: products of 512 take 9 us in any type."""

_KINDS: tuple[frozenset[str], ...] = (
    frozenset({"rmsnorm", "layernorm", "softmax"}),
    frozenset({"gemm", "grouped-gemm"}),
)
"""Operations that reach alike: row by row, and products."""


class Point(Struct, frozen=True):
    """The best published time of an operation at one size on one GPU.

    Attributes:
        gpu: As `rooflens gpus` lists it.
        sizes: By name, as `rooflens predict` takes them.
        eta: Our floor over the time, 0 to 1.
    """

    operation: str
    dtype: str
    gpu: str
    sizes: dict[str, int]
    time_s: float
    implementation: str
    source: str
    eta: float


class Reached(Struct, frozen=True):
    """What published kernels of an operation reach, as times in seconds.

    Attributes:
        low_s: As near to the floor as the best of them.
        typical_s: As near as the median one.
        high_s: As near as the farthest of them, and a launch.
        proven: More than one source measured them.
    """

    low_s: float
    typical_s: float
    high_s: float
    proven: bool
    points: tuple[Point, ...]


@cache
def published_points() -> tuple[Point, ...]:
    """Return all points, each with its share of the floor."""
    text = Path(__file__).with_name("published.csv").read_text(encoding="utf-8")
    return tuple(_point(row) for row in csv.DictReader(text.splitlines()))


def _point(row: dict[str, str]) -> Point:
    sizes = {name: int(value) for name, _, value in (pair.partition("=") for pair in row["sizes"].split())}
    floor_s = forecast(OPERATIONS[row["operation"]], sizes, row["dtype"], the_datasheet(row["gpu"])).t_lower_s
    time_s = float(row["time_ms"]) / 1e3
    names = ("operation", "dtype", "gpu", "implementation", "source")
    return Point(**{name: row[name] for name in names}, sizes=sizes, time_s=time_s, eta=floor_s / time_s)


def points_of(operation: str, points: Iterable[Point] | None = None) -> tuple[Point, ...]:
    """Choose the points of an operation and of its kind."""
    alike = next((kind for kind in _KINDS if operation in kind), frozenset({operation}))
    return tuple(point for point in points or published_points() if point.operation in alike)


def reached(operation: str, floor_s: float, points: Iterable[Point] | None = None) -> Reached | None:
    """Say what published kernels of an operation would take, given its floor; None where none are published."""
    chosen = points_of(operation, points)
    if not chosen or not floor_s:
        return None
    etas = [point.eta for point in chosen]
    # A kernel shorter than a launch says nothing of how slow a long one is.
    long = [point.eta for point in chosen if point.eta * point.time_s >= SHORT_S] or etas
    typical_s = floor_s / statistics.median(etas)
    sources = {point.source for point in chosen}
    return Reached(floor_s / max(etas), typical_s, floor_s / min(long) + SHORT_S, len(sources) > 1, chosen)


def reached_by(result: Forecast, operation: str) -> Reached | None:
    """Say it of a forecast."""
    return reached(operation, result.t_lower_s)


def left_out(gpu: str) -> tuple[int, int]:
    """Count the points of a GPU that fall into the interval of all others, and all of its points."""
    own = [point for point in published_points() if point.gpu == gpu]
    others = [point for point in published_points() if point.gpu != gpu]
    inside = 0
    for point in own:
        interval = reached(point.operation, point.eta * point.time_s, others)
        inside += interval is not None and interval.low_s <= point.time_s <= interval.high_s
    return inside, len(own)
