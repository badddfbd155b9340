"""What published kernels attain: the best times that others measured of an operation, over our floor of each.

    eta = floor / time        attainable = floor / eta, for the best of the points, the median, and nearly all

The points are in `published.csv`, each with its source. An operation is judged by the tuned kernels among its own
points and those of its kind, on other GPUs and in other types too: `docs/explanation/accuracy.md` says which count as
tuned, leaves out each source in turn, and shows how many of its times lie in the interval of the others. Where all
points come from one source, the interval is unproven.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from rooflens.format import duration, significant
from rooflens.model.predict.forecast import forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.roofline.datasheets import the_datasheet

LONG_S = 20e-6
"""Floor from which a time tells what a kernel attains; a shorter time is mostly its launch: products of 512 take 9 us
in any type."""

LAUNCH_S = 10e-6
"""What launch and measurement add to a short time at most; half of it is usual."""

_BETTER, _WORSE, _NEARLY_ALL = 0.5, 4 / 3, 0.95
"""How far another source's times lie beyond the known ones, in time above the floor: the best is half of the best
known, the slowest a third more than 95 % of them. A source seldom has more than 20 points, so its extremes tell little
about the next source."""

_OPERATION_FAMILIES: tuple[frozenset[str], ...] = (
    frozenset({"rmsnorm", "layernorm", "softmax"}),
    frozenset({"gemm", "grouped-gemm", "batched-gemm"}),
)
"""Operations whose kernels come equally near their floors: row-wise ones, and products."""

_LIKE: Mapping[str, str] = {"cross-entropy-loss": "softmax"}
"""Operations with few points of their own -> one with many that does nearly the same: it widens the interval."""


class PublishedPoint(Struct, frozen=True):
    """The best published time of an operation at one size on one GPU.

    Attributes:
        gpu: As `rooflens gpus` lists it.
        sizes: By name, as `rooflens predict` takes them.
        untuned: Why the kernel does not count as tuned; empty if it does.
        floor_s: Our floor, from cold caches.
        is_long: Its floor is long enough that the launch does not matter.
        rereads: As a forecast has it: kernels that read long rows twice are compared with that.
    """

    operation: str
    dtype: str
    gpu: str
    sizes: dict[str, int]
    time_s: float
    implementation: str
    untuned: str
    source: str
    floor_s: float
    is_long: bool
    rereads: float

    @property
    def over_floor(self) -> float:
        """Time over floor: 1 or more."""
        return self.time_s / self.floor_s

    @property
    def over_moved(self) -> float:
        """Time over the floor of what kernels move: that over `over_floor` for long rows alone."""
        return self.over_floor / self.rereads


class PublishedTimes(Struct, frozen=True):
    """The times that published kernels of an operation would take, in seconds.

    Attributes:
        low_s: Half as far above the floor as the best one.
        typical_s: As far above the floor as the median; plus half a launch for short kernels.
        high_s: A third farther above the floor than 95 % of them; plus a launch for short kernels.
        points: How many tuned kernels were published.
        sources: Who published them.
    """

    low_s: float
    typical_s: float
    high_s: float
    points: int
    sources: tuple[str, ...]

    @property
    def proven(self) -> bool:
        """True if they come from more than one source."""
        return len(self.sources) > 1


@cache
def published_points() -> tuple[PublishedPoint, ...]:
    """Return all points, each with its floor."""
    text = Path(__file__).with_name("published.csv").read_text(encoding="utf-8")
    return tuple(_point(row) for row in csv.DictReader(text.splitlines()))


def _point(row: dict[str, str]) -> PublishedPoint:
    sizes = {name: int(value) for name, _, value in (pair.partition("=") for pair in row["sizes"].split())}
    found = forecast(OPERATIONS[row["operation"]], sizes, row["dtype"], the_datasheet(row["gpu"]))
    names = ("operation", "dtype", "gpu", "implementation", "untuned", "source")
    return PublishedPoint(
        **{name: row[name] for name in names},
        sizes=sizes,
        time_s=float(row["time_ms"]) / 1e3,
        floor_s=found.t_lower_s,
        is_long=found.t_lower_s >= LONG_S and found.regime != "overhead",
        rereads=found.rereads,
    )


def attainable(
    operation: str, floor_s: float, points: Iterable[PublishedPoint] | None = None, *, rereads: float = 1.0
) -> PublishedTimes | None:
    """Return the times that published kernels of an operation and its kind would take; None if there are none.

    Args:
        operation: Name of an operation.
        floor_s: The floor of its time.
        points: The published times to judge by; by default all.
        rereads: Bytes that kernels move over those of the floor: the best may not, most do.
    """
    alike = next((kind for kind in _OPERATION_FAMILIES if operation in kind), frozenset({operation}))
    offered = published_points() if points is None else tuple(points)
    tuned = [point for point in offered if point.operation in alike and not point.untuned]
    if not floor_s:
        return None
    like = attainable(_LIKE[operation], floor_s, offered, rereads=rereads) if operation in _LIKE else None
    if not tuned:
        return like
    # Short launches are mostly their own overhead, which `_with_launch` adds for the size asked about.
    over = sorted(point.over_moved for point in [one for one in tuned if one.is_long] or tuned)
    # The best may read each byte once, so re-reads widen the range upwards only.
    low_s = floor_s * (1 + _BETTER * (over[0] - 1))
    high_s = _with_launch(rereads * (1 + _WORSE * (_quantile(over, _NEARLY_ALL) - 1)), floor_s, LAUNCH_S)
    return PublishedTimes(
        low_s=min(low_s, like.low_s) if like else low_s,
        typical_s=_with_launch(rereads * statistics.median(over), floor_s, LAUNCH_S / 2),
        high_s=max(high_s, like.high_s) if like else high_s,
        points=len(tuned),
        sources=tuple(sorted({point.source for point in tuned})),
    )


def _quantile(ordered: list[float], part: float) -> float:
    """Return a quantile of ordered values, interpolated linearly; `part` is 0 to 1."""
    at = part * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def _with_launch(factor: float, floor_s: float, launch_s: float) -> float:
    """Scale a floor by a factor; a short kernel has a launch on top, but takes no longer than one of `LONG_S`."""
    return max(factor * floor_s, min(factor * floor_s + launch_s, factor * LONG_S))


def floor_words(
    floor_s: float, published: PublishedTimes | None, warm_s: float | None = None, fused_s: float | None = None
) -> str:
    """Write the floors and what published kernels attain: `floor 572 µs; tuned kernels take 1.1 to 2.4x as long`.

    Args:
        floor_s: From cold caches.
        published: What published kernels attain; None if none are published.
        warm_s: With operands and results in L2; None if they do not fit.
        fused_s: Of one kernel for all steps of a composite operation; None for another one.
    """
    floor = f"floor {duration(floor_s * 1e9)}"
    if fused_s is not None:
        floor = f"{floor} as separate kernels, {duration(fused_s * 1e9)} fused"
    if warm_s is not None:
        warm = f", {duration(warm_s * 1e9)} with" if warm_s < floor_s else " or with"
        floor += f" from cold caches{warm} its data in L2"
    if published is None:
        return floor
    low, typical, high = (
        significant(time_s / floor_s, 2) for time_s in (published.low_s, published.typical_s, published.high_s)
    )
    unproven = "" if published.proven else " (unproven: one source)"
    cold = " as the cold one" if warm_s is not None and warm_s < floor_s else ""
    return f"{floor}; tuned kernels take {low} to {high}x as long{cold}, typically {typical}x{unproven}"
