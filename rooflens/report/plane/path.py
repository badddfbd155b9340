"""The plane that a path walks through, of predictions or of a measured sweep: roofs, ridges, names, arrows.

Altair layers without colours: the theme has them. The page sets the parameters `w` and `h`: the plane's size in
pixels. Rows come by the names of the datasets: `slope`, `pipes`, `ridges`, `arrows`, and what a chart adds. Marks that
repeat what words say are hidden from screen readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import log10, sqrt
from typing import Any

import altair as alt
from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.report.plane import marks
from rooflens.report.plane.axes import seen
from rooflens.report.plane.geometry import Box, Boxes, Line
from rooflens.report.plane.marks import (
    AT,
    HEAD,
    HEIGHT,
    QUIET,
    STRONG,
    WIDTH,
    Spec,
    at_spot,
    leads,
    placed,
    table,
    written,
)
from rooflens.report.plane.placement import Canvas, Text, foot_spots
from rooflens.report.plane.roofs import NamedRoof, Roofs, flat_name_layers, line_layers, ridge_text, slope_name_layers
from rooflens.report.plane.viewport import SIZES, Sheet, SizeClass, decades

Place = tuple[float, float]
Row = dict[str, Any]

ARROW_FROM_PX = 40
"""Parts of the path shorter than this have no room for an arrow between their dots."""

ARROW_AREA_PX2 = 180

NOWHERE = [None] * len(SIZES)
"""Places of a text that finds none at any class of sizes."""


class PathPlane(Struct, frozen=True):
    """A logarithmic plane with the roofs of one memory, and the places that a path joins."""

    roofs: Roofs
    path: tuple[Place, ...]

    @property
    def ridges(self) -> list[tuple[float, NamedRoof]]:
        """The corners of the slope with the flat roofs, by their intensities."""
        return [(x, flat) for flat in self.roofs.flats if (x := self.roofs.ridge(flat))]

    def datasets(
        self,
        texts: Callable[[Sheet, SizeClass], Iterable[tuple[str, Text]]],
        dots: Callable[[Sheet], Sequence[Box]],
        lines: Callable[[Sheet], Iterable[Line]] = lambda _: (),
        *,
        roofs_last: bool = False,
    ) -> tuple[dict[str, list[Row]], dict[str, list[Any]]]:
        """Place all texts at each class of sizes: roofs first, then what the chart adds, then ridges.

        Args:
            texts: Makes the texts of the chart by key, what matters most first.
            dots: Makes the boxes that are never written over; names of roofs may lie there where they must.
            lines: Makes lines that words cross only where there is no other place.
            roofs_last: Let roofs give way: the chart's texts tell more than their names.

        Returns:
            The datasets of roofs, ridges and arrows, and the places of the chart's texts by key.
        """
        found = []
        for size in SIZES:
            sheet = Sheet(self.roofs.x_domain, self.roofs.y_domain, size.width_px, size.height_px)
            way = (Line(*sheet.at(*begin), *sheet.at(*end)) for begin, end in pairwise(self.path))
            canvas = Canvas(sheet, lines=[*self.roofs.lines(sheet), *self._feet(sheet), *way, *lines(sheet)])
            boxes = dots(sheet)
            roofs = {} if roofs_last else self.roofs.name(canvas, boxes)
            canvas.taken.extend(boxes)
            rows = {key: row for key, text in texts(sheet, size) if (row := canvas.place(text))}
            if roofs_last:
                canvas = replace(canvas, taken=Boxes(islice(canvas.taken, len(boxes), None)))
                roofs = self.roofs.name(canvas, boxes)
                canvas.taken.extend(boxes)
            rows |= roofs
            rows |= {key: row for key, text in self._ridge_texts() if (row := canvas.place(text))}
            found.append(rows)
        keys = dict.fromkeys(key for rows in found for key in rows)
        places = {key: [rows.get(key) for rows in found] for key in keys}
        return self._rows(places), places

    def _feet(self, sheet: Sheet) -> list[Line]:
        low = self.roofs.y_domain[0]
        return [Line(*sheet.at(x, low), *sheet.at(x, flat.peak)) for x, flat in self.ridges]

    def _ridge_texts(self) -> list[tuple[str, Text]]:
        low = self.roofs.y_domain[0]
        return [
            (f"ridge {flat.key}", Text((ridge_text(x), f"ridge {fmt.significant(x)}"), x, low, foot_spots()))
            for x, flat in self.ridges
        ]

    def _rows(self, places: Mapping[str, list[Any]]) -> dict[str, list[Row]]:
        return {
            "slope": [
                {"v": rounded(slope.peak), "e": rounded(self.roofs.top), "p": places.get(slope.key, NOWHERE)}
                for slope in self.roofs.slopes
            ],
            "pipes": [
                {"v": rounded(flat.peak), "c": rounded(self.roofs.ridge(flat)), "p": places.get(flat.key, NOWHERE)}
                for flat in self.roofs.flats
            ],
            "ridges": [
                {
                    "x": rounded(x),
                    "y": rounded(self.roofs.y_domain[0]),
                    "y2": rounded(flat.peak),
                    "p": places.get(f"ridge {flat.key}", NOWHERE),
                }
                for x, flat in self.ridges
            ],
            "arrows": [self._arrow(begin, end) for begin, end in pairwise(self.path)],
        }

    def _arrow(self, begin: Place, end: Place) -> Row:
        """Put an arrow on the middle of a part of the path, with its direction in parts of both axes."""
        (x0, y0), (x1, y1) = begin, end
        return {
            "x": rounded(sqrt(x0 * x1)),
            "y": rounded(sqrt(y0 * y1)),
            "right": round(log10(x1 / x0) / decades(self.roofs.x_domain), 4),
            "up": round(log10(y1 / y0) / decades(self.roofs.y_domain), 4),
        }

    def specify(
        self,
        layers: Sequence[alt.Chart],
        datasets: Mapping[str, Any],
        *,
        title: str,
        subtitle: Sequence[str],
        **params: Any,
    ) -> Spec:
        """Put roofs, layers and rows into one specification; `params` are further ones that the page sets."""
        base = [fmt.round_significant(end, 6) for end in (*self.roofs.x_domain, *self.roofs.y_domain)]
        declared = [*marks.values(**params, w=WIDTH, h=HEIGHT, base=base), *seen(zooms=False)]
        drawn = marks.layered([*_ground(), *layers], name="plane", width=WIDTH, height=HEIGHT)
        return marks.specify(drawn.properties(title=marks.titled(title, list(subtitle))), declared, datasets)


def _ground() -> list[alt.Chart]:
    """Draw roofs and ridges with their names."""
    slope, pipes, ridges = table("slope"), table("pipes"), table("ridges")
    foot = ridges.mark_rule(style="gap", strokeDash=[2, 4], opacity=0.6, **QUIET).encode(
        x=alt.X("x:Q"), y=alt.Y("y:Q"), y2=alt.Y2("y2")
    )
    return [
        foot,
        *written(placed(ridges), "note", **at_spot()),
        *line_layers(slope, pipes),
        *slope_name_layers(slope),
        *flat_name_layers(pipes),
    ]


def strong_names(data: str) -> list[alt.Chart]:
    """Write texts strong at their places, led to from afar."""
    rows = placed(table(data))
    return [leads(rows), *written(rows, "strong", **at_spot(), **STRONG)]


def arrows() -> alt.Chart:
    """Draw an arrow on every part of the path that is long enough."""
    right, down = "datum.right * w", "datum.up * -h"
    return (
        table("arrows")
        .transform_filter(f"sqrt(pow({right}, 2) + pow({down}, 2)) >= {ARROW_FROM_PX}")
        .mark_point(
            style="note",
            shape=HEAD,
            filled=True,
            size=ARROW_AREA_PX2,
            opacity=1,
            angle=alt.ExprRef(f"atan2({down}, {right}) * 57.2958"),
            **QUIET,
        )
        .encode(**AT)
    )


def rounded(value: float | None) -> float | None:
    """Round to what can be seen."""
    return None if value is None else fmt.round_significant(value, 5)
