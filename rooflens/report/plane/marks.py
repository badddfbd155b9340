"""Layers of Vega-Lite, made without Altair: it copies a chart at every change, and a page has two hundred layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from rooflens.report.html.embed import SCHEMA_URL
from rooflens.report.plane.placement import LEAD_TO_PART

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Style = Mapping[str, Any]

Layer = dict[str, Any]

QUIET: Style = {"clip": True, "aria": False}
"""Lines end at the plane's edge, and are no news to a screen reader, which has the points."""

SPOT = "datum.p[slot]"
"""Expression of the place of a row's words at the size at hand."""

HEAD = "M-0.9,-0.8L1,0L-0.9,0.8L-0.4,0Z"
"""Shape of an arrow's head to the right: an equilateral triangle, turned, does not tell its direction."""

WIDTH = 800
HEIGHT = 440
"""Pixels of a plane until the page sets its signals `w` and `h`."""


class Rows(Struct, frozen=True):
    """The rows of a dataset, those of the layer around it where `data` is empty, and what is worked out from them."""

    data: str = ""
    steps: tuple[Layer, ...] = ()

    def where(self, test: str) -> Rows:
        """Keep the rows for which an expression holds."""
        return self.then({"filter": test})

    def having(self, **fields: str) -> Rows:
        """Work out fields, all from those there were before."""
        return self.then(*({"calculate": expression, "as": name} for name, expression in fields.items()))

    def then(self, *steps: Layer) -> Rows:
        """Go on with steps of Vega-Lite."""
        return replace(self, steps=(*self.steps, *steps))

    def mark(self, kind: str, channels: Style, **look: Any) -> Layer:
        """Draw a mark for each row."""
        layer: Layer = {"mark": {"type": kind, **look}, "encoding": dict(channels)}
        layer |= {"transform": list(self.steps)} if self.steps else {}
        return layer | ({"data": {"name": self.data}} if self.data else {})


def expr(expression: str) -> dict[str, str]:
    """Let the chart work out the value of a property."""
    return {"expr": expression}


def place(x: str = "x", y: str = "y", x2: str = "", y2: str = "") -> Layer:
    """Encode the fields of a place, or of both ends of a line; one layer of a plane says how its axes are."""
    channels: Layer = {"x": quantity(x), "y": quantity(y)}
    return channels | {name: {"field": field} for name, field in (("x2", x2), ("y2", y2)) if field}


def quantity(field: str, **more: Any) -> Layer:
    """Encode a field of numbers."""
    return {"field": field, "type": "quantitative", **more}


def nominal(field: str, **more: Any) -> Layer:
    """Encode a field of names or of text."""
    return {"field": field, "type": "nominal", **more}


def words(field: str = "words") -> Layer:
    """Write a field of text."""
    return {"text": nominal(field)}


def lookup(key: str, data: str, fields: Sequence[str]) -> Layer:
    """Add the fields of another dataset by a key."""
    return {"lookup": key, "from": {"data": {"name": data}, "key": key, "fields": list(fields)}}


def placed(rows: Rows, spot: str = SPOT) -> Rows:
    """Keep the texts that have a place at the size at hand: `p` of a row holds one for each class of sizes."""
    return rows.having(spot=spot).where("datum.spot").having(words="datum.spot[0] || datum.t")


def at_spot() -> Layer:
    """Set words at the place that was found for them."""
    return {
        "align": expr("datum.spot[3] > 0 ? 'left' : datum.spot[3] < 0 ? 'right' : 'center'"),
        "baseline": "middle",
        "dx": expr("datum.spot[1]"),
        "dy": expr("datum.spot[2]"),
    }


def written(rows: Rows, style: str, at: Style | None = None, **look: Any) -> list[Layer]:
    """Write the texts of rows on cleared ground."""
    shape = {key: value for key, value in look.items() if key != "opacity"}
    channels = {**(at or place()), **words()}
    return [
        rows.mark("text", channels, style="halo", **QUIET, **shape),
        rows.mark("text", channels, style=style, **QUIET, **look),
    ]


def leads(rows: Rows, at: Style | None = None, **look: Any) -> Layer:
    """Draw a thin line from a mark to each text that stands away from it."""
    begin = at or place()
    ends = {**begin, "x2": {"field": begin["x"]["field"]}, "y2": {"field": begin["y"]["field"]}}
    return rows.where("isValid(datum.spot[4])").mark(
        "rule",
        ends,
        style="lead",
        xOffset=expr("datum.spot[1] * datum.spot[4]"),
        yOffset=expr("datum.spot[2] * datum.spot[4]"),
        x2Offset=expr(f"datum.spot[1] * {LEAD_TO_PART}"),
        y2Offset=expr(f"datum.spot[2] * {LEAD_TO_PART}"),
        **QUIET,
        **look,
    )


def specify(
    drawing: Layer, params: Sequence[Layer], datasets: Mapping[str, Any], *, title: str, subtitle: str | Sequence[str]
) -> dict[str, Any]:
    """Put layers, parameters and rows into one specification."""
    return {
        "$schema": SCHEMA_URL,
        # The title may not be wider than the plane: the page fits the whole drawing to its room.
        "title": {
            "text": title,
            "subtitle": subtitle,
            "limit": expr("w"),
            "fontSize": expr("w < 480 ? 12 : 14"),
        },
        "params": list(params),
        **drawing,
        "datasets": dict(datasets),
    }


def values(**named: Any) -> list[Layer]:
    """Declare parameters by their first values."""
    return [{"name": name, "value": value} for name, value in named.items()]


def expressions(**named: str) -> list[Layer]:
    """Declare parameters that follow from others."""
    return [{"name": name, "expr": expression} for name, expression in named.items()]


def op(kind: str, field: str | None, name: str) -> dict[str, str]:
    """Write one result of a transform over rows, such as a sum of a field; no field where it only counts."""
    return {"op": kind, "as": name} | ({} if field is None else {"field": field})


def let(name: str, expression: str) -> dict[str, str]:
    """Write the transform that gives each row a field by an expression."""
    return {"calculate": expression, "as": name}
