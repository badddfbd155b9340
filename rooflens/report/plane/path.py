"""The plane that a path walks through, of predictions or of a measured sweep: roofs, ridges, names, arrows.

A Vega-Lite specification without colours: the theme has them. The page sets the signals `w` and `h`: the plane's size
in pixels. Rows come by the names of the datasets: `slope`, `pipes`, `ridges`, `arrows`, and what a chart adds. Marks
that repeat what words say are hidden from screen readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report.plane import axes as log_plane
from rooflens.report.plane.placement import LINE_PX
from rooflens.report.plane.roof_names import LIFT_PX
from rooflens.report.plane.text_marks import SLOT, at_spot, leads
from rooflens.report.plane.viewport import decades

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.report.plane.plane import Domain

    Style = Mapping[str, Any]

WIDTH = 800
HEIGHT = 440

ARROW_FROM_PX = 40
"""Parts of the path shorter than this have no room for an arrow between their dots."""
ARROW_AREA_PX2 = 120
DEGREES_PER_RADIAN = 57.2958
QUIET: Style = {"aria": False}
_SPOT = f"datum.spots[{SLOT}]"


@dataclass(frozen=True, slots=True)
class PathPlane:
    """A logarithmic plane by the ranges of its axes; `intensity_title` says at which level the intensity is."""

    x_domain: Domain
    y_domain: Domain
    intensity_title: str

    def x(self, field: str = "x") -> alt.X:
        """Encode arithmetic intensity."""
        return log_plane.intensity(self.x_domain, self.intensity_title, field)

    def y(self, field: str = "y") -> alt.Y:
        """Encode FLOP per second."""
        return log_plane.performance(self.y_domain, field)

    def ridges(self) -> list[alt.Chart]:
        """Draw where roofs meet, with their names."""
        rule = named("ridges").mark_rule(style="gap", strokeDash=[2, 4], opacity=0.6, **QUIET)
        return [rule.encode(self.x(), self.y(), alt.Y2("y2")), *self.names("ridges", "note")]

    def roofs(self) -> list[alt.Chart]:
        """Draw the slope and the flat roofs, with their names."""
        turned = decades(self.x_domain) / decades(self.y_domain)
        text: Style = {
            "align": "left",
            "baseline": "middle",
            "angle": alt.ExprRef(f"-atan2(h * {turned:.4g}, w) * {DEGREES_PER_RADIAN}"),
            "dy": alt.ExprRef(f"-datum.sides[{SLOT}] * {LIFT_PX + LINE_PX / 2:g}"),
            **QUIET,
        }
        along = (
            named("slope")
            .transform_filter(f"datum.texts && datum.xs && datum.xs[{SLOT}] !== null")
            .transform_calculate(nx=f"datum.xs[{SLOT}]", ny=f"datum.ys[{SLOT}]", text=f"datum.texts[{SLOT}]")
        )
        return [
            named("slope").mark_line(style="roof", clip=True, **QUIET).encode(self.x(), self.y()),
            named("pipes").mark_rule(style="roof", **QUIET).encode(self.x(), alt.X2("x2"), self.y()),
            *(
                along.mark_text(style=style, **text).encode(self.x("nx"), self.y("ny"), alt.Text("text:N"))
                for style in ("halo", "label")
            ),
            *self.names("pipes", "label", x="x2"),
        ]

    def names(self, data: str, style: str, x: str = "x") -> list[alt.Chart]:
        """Write texts at the places found for the size at hand, on cleared ground; strong ones are led to from afar."""
        placed = (
            named(data)
            .transform_filter(f"{_SPOT} !== null")
            .transform_calculate(spot=_SPOT, text=f"datum.texts[{SLOT}]")
        )
        text: Style = {**at_spot(), **QUIET}
        bold: Style = {"fontWeight": 600, "fontSize": 13} if style == "strong" else {}
        words = [
            placed.mark_text(style="halo", **text, **bold).encode(self.x(x), self.y(), alt.Text("text:N")),
            placed.mark_text(style=style, **text).encode(self.x(x), self.y(), alt.Text("text:N")),
        ]
        return [leads(placed).encode(self.x(x), self.y(), alt.X2(x), alt.Y2("y")), *words] if bold else words

    def arrows(self) -> alt.Chart:
        """Draw an arrow on every part of the path that is long enough."""
        right, down = "datum.right * w", "datum.up * -h"
        arrow: alt.Chart = (
            named("arrows")
            .transform_filter(f"sqrt(pow({right}, 2) + pow({down}, 2)) >= {ARROW_FROM_PX}")
            .mark_point(
                style="note",
                shape="triangle-right",
                filled=True,
                size=ARROW_AREA_PX2,
                opacity=1,
                angle=alt.ExprRef(f"atan2({down}, {right}) * {DEGREES_PER_RADIAN}"),
                **QUIET,
            )
            .encode(self.x(), self.y())
        )
        return arrow


def named(data: str) -> alt.Chart:
    """Begin a layer over a dataset that the specification brings along."""
    return alt.Chart(alt.NamedData(name=data))


def specify(
    layers: Sequence[alt.Chart],
    datasets: Mapping[str, Any],
    *,
    title: str,
    subtitle: Sequence[str],
    **parameters: Any,
) -> dict[str, Any]:
    """Put layers and rows into one specification; `parameters` are further ones that the page sets."""
    parameters |= {"w": WIDTH, "h": HEIGHT}
    size: Style = {"limit": alt.ExprRef("w"), "fontSize": alt.ExprRef("w < 480 ? 12 : 14")}
    chart = (
        alt.LayerChart(layer=list(layers))
        .properties(name="plane", width=WIDTH, height=HEIGHT, title=alt.Title(title, subtitle=list(subtitle), **size))
        .add_params(
            *(alt.param(name=name, value=value) for name, value in {**parameters, "w": WIDTH, "h": HEIGHT}.items())
        )
    )
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    spec["datasets"] = datasets
    return spec
