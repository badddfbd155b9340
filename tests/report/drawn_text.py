"""Positions of a roofline's text, calculated only from its specification, for the tests of labels.

It shares no geometry with the package: a text is a grid of points, rotated with its line, and two texts overlap if a
point of one is inside the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import atan2, cos, hypot, log10, sin, sqrt
from typing import Any

from msgspec import Struct

CHAR_PX = 5.6
"""Width of a character of the usual fonts at 12 px, over words of small letters and digits."""

HIGH_PX = 11
LIFT_PX = 3
STEP_PX = 2.0
EDGE_PX = 1.0


class Shape(Struct, frozen=True):
    """A rectangle given by its centre and rotation; `name` identifies it in a failed test."""

    name: str
    x: float
    y: float
    wide: float
    high: float
    angle: float = 0.0

    def grid(self) -> Iterator[tuple[float, float]]:
        """Yield points in a grid over it."""
        columns, rows = (max(2, int(size / STEP_PX) + 1) for size in (self.wide, self.high))
        for i in range(columns):
            for j in range(rows):
                along, down = (i / (columns - 1) - 0.5) * self.wide, (j / (rows - 1) - 0.5) * self.high
                c, s = cos(self.angle), sin(self.angle)
                yield self.x + along * c - down * s, self.y + along * s + down * c

    def holds(self, x: float, y: float) -> bool:
        """Return whether a point is inside."""
        c, s = cos(self.angle), sin(self.angle)
        along, down = (x - self.x) * c + (y - self.y) * s, (y - self.y) * c - (x - self.x) * s
        return abs(along) < self.wide / 2 and abs(down) < self.high / 2

    def overlaps(self, other: Shape) -> bool:
        """Return whether two shapes share a point."""
        if hypot(self.x - other.x, self.y - other.y) > (self.wide + self.high + other.wide + other.high) / 2:
            return False
        return any(other.holds(*at) for at in self.grid()) or any(self.holds(*at) for at in other.grid())


class Drawn(Struct, frozen=True):
    """A roofline at one size and level."""

    spec: Mapping[str, Any]
    level: str
    width: float
    height: float

    @property
    def data(self) -> Mapping[str, list[dict[str, Any]]]:
        """The rows of the specification."""
        data: Mapping[str, list[dict[str, Any]]] = self.spec["datasets"]
        return data

    def value(self, name: str) -> Any:
        """Read a parameter."""
        return next(param["value"] for param in self.spec["params"] if param["name"] == name)

    @property
    def slot(self) -> int:
        """Class of sizes: wide, middle, narrow."""
        return 0 if self.width >= 690 else 1 if self.width >= 480 else 2

    @property
    def ranged(self) -> str:
        """The level whose range is shown: for a level that the plane lacks, that of all levels."""
        return self.level if self.level in self.value("ranges") else "all"

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixels of a place."""
        x0, x1, y0, y1 = self.value("ranges")[self.ranged]
        right = log10(x / x0) / log10(x1 / x0) * self.width
        return right, self.height - log10(y / y0) / log10(y1 / y0) * self.height

    def texts(self) -> list[Shape]:
        """List everything written in the plane."""
        return [*self._slope_names(), *self._flat_names(), *self._labels()]

    def points(self) -> list[Shape]:
        """List the points shown at the level."""
        kernels = {row["k"]: row for row in self.data["kernels"]}
        most = max(row["time"] for row in kernels.values()) or 1.0
        smallest, largest = (64, 800) if len(kernels) <= 40 else (48, 320)
        return [
            Shape(f"point {row['k']}", *self.at(row["x"], row["y"]), side, side)
            for row in self.data["points"]
            if (row.get("near") if self.level == "own" else self.level in {"all", row["level"]})
            for kernel in [kernels[row["k"]]]
            for area in [smallest + (largest - smallest) * kernel["time"] / most]
            for side in [sqrt(max(area, 18**2) if "numbered" in kernel else area)]
        ]

    def _slope_names(self) -> Iterator[Shape]:
        x0, x1, y0, y1 = self.value("ranges")[self.ranged]
        top = min(y1, self.value("top") or y1)
        angle = -atan2(self.height / log10(y1 / y0), self.width / log10(x1 / x0))
        for row in self.data["roofs"]:
            if place := row["p"][self.ranged][self.slot]:
                text, part, side = place
                low, high = max(x0, y0 / row["v"]), min(x1, top / row["v"])
                x = low * (high / low) ** part
                right, down = self.at(x, x * row["v"])
                wide, off = len(text) * CHAR_PX, side * (LIFT_PX + HIGH_PX / 2 + 1)
                centre = (
                    right + wide / 2 * cos(angle) + off * sin(angle),
                    down + wide / 2 * sin(angle) - off * cos(angle),
                )
                yield Shape(text, *centre, wide, HIGH_PX, angle)

    def _flat_names(self) -> Iterator[Shape]:
        _, x1, _, _ = self.value("ranges")[self.ranged]
        for row in self.data["pipes"]:
            if place := row["p"][self.ranged][self.slot]:
                yield _words(place, self.at(x1, row["v"]))

    def _labels(self) -> Iterator[Shape]:
        for row in self.data["labels"]:
            if row["level"] == self.level and (place := row["p"][self.slot]):
                # A number is inside its own point, and nowhere else.
                inside = "number " if row["s"] == "rank" else ""
                yield _words(place, self.at(row["x"], row["y"]), row["t"], inside)


def _words(place: Sequence[Any], anchor: tuple[float, float], usual: str = "", kind: str = "") -> Shape:
    text = place[0] or usual
    wide = len(text) * CHAR_PX
    return Shape(f"{kind}{text}", anchor[0] + place[1] + place[3] * wide / 2, anchor[1] + place[2], wide, HIGH_PX)


def troubles(drawn: Drawn) -> list[tuple[str, str]]:
    """List each text together with what it overlaps: another text, a point, or the edge of the plane."""
    texts, points = drawn.texts(), drawn.points()
    roofs = {
        place[0]
        for rows in ("roofs", "pipes")
        for row in drawn.data[rows]
        if (place := row["p"][drawn.ranged][drawn.slot])
    }
    # The name of a roof may lie under a point, and so under its number.
    pairs = [
        (one, other)
        for i, one in enumerate(texts)
        for other in texts[i + 1 :]
        if not (one.name in roofs and other.name.startswith("number "))
    ]
    found = [(one.name, other.name) for one, other in pairs if one.overlaps(other)]
    # The name of a roof may have to cover a point, as a roof without a name is useless.
    free = [text for text in texts if text.name not in roofs and not text.name.startswith("number ")]
    found += [(text.name, point.name) for text in free for point in points if text.overlaps(point)]
    inside = Shape("plane", drawn.width / 2, drawn.height / 2, drawn.width + EDGE_PX, drawn.height + EDGE_PX)
    return found + [(text.name, "edge") for text in texts if not all(inside.holds(*at) for at in text.grid())]
