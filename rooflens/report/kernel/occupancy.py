"""Curves of the occupancy that other launches would allow."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.roofline.occupancy import Curve, Property

WIDTH, HEIGHT = 180, 60
"""Of a drawing, in its own units; half of a pixel is not seen."""

_TITLES: Mapping[Property, str] = {
    "registers": "Registers per thread",
    "block size": "Threads per block",
    "shared memory": "Shared memory per block",
}
_NOUNS: Mapping[Property, str] = {"registers": "register", "block size": "thread"}


class CurveDot(Struct, frozen=True):
    """A place on the drawing."""

    x: int
    y: int


class OccupancyCurve(Struct, frozen=True):
    """How occupancy falls while one property of the launch, such as registers, grows from 0 to its maximum.

    Attributes:
        path: Its steps.
        now: The launch as it is.
        better: The nearest change that allows clearly more; None if none does.
        most: The right end of the axis in words.
        words: Both dots in words.
    """

    title: str
    path: str
    now: CurveDot
    better: CurveDot | None
    most: str
    words: str


def occupancy_curve(curve: Curve) -> OccupancyCurve:
    """Draw a curve."""
    most = curve.steps[-1][0]

    def dot(value: float, occupancy: float) -> CurveDot:
        return CurveDot(round(WIDTH * min(1.0, value / most)), round(HEIGHT * (1 - occupancy)))

    points = [dot(*step) for step in curve.steps]
    return OccupancyCurve(
        title=_TITLES[curve.of],
        path="".join(f"{'V' if i else 'M0 '}{point.y}H{point.x}" for i, point in enumerate(points)),
        now=dot(curve.now, curve.occupancy),
        better=None if curve.better is None else dot(*curve.better),
        most=f"{most:,.0f}" if curve.of in _NOUNS else _value_words(curve, most),
        words=_curve_words(curve),
    )


def _curve_words(curve: Curve) -> str:
    """Write `56 registers: 50 %; at 40 registers: 75 % (+25)`."""
    now = f"{_value_words(curve, curve.now)}: {fmt.percent(curve.occupancy)}"
    if curve.better is None:
        return now
    value, occupancy = curve.better
    more = round(100 * occupancy) - round(100 * curve.occupancy)
    return f"{now}; at {_value_words(curve, value)}: {fmt.percent(occupancy)} (+{more})"


def _value_words(curve: Curve, value: float) -> str:
    noun = _NOUNS.get(curve.of)
    return fmt.count(round(value), noun) if noun else fmt.si(value, "B")
