"""What the charts share, in Altair: tables of rows by name, words at their places, and the frame of a chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from json import dumps
from textwrap import wrap
from typing import Any, ParamSpec, TypeAlias, TypeVar

from rooflens import format as fmt
from rooflens.report.plane.later import alt
from rooflens.report.plane.placement import LEAD_TO_PART

Style = dict[str, Any]
Spec = dict[str, Any]
Param = Mapping[str, Any]

Drawing: TypeAlias = "alt.Chart | alt.LayerChart"
"""A layer, or several as one."""

_Made = TypeVar("_Made")
_Asked = ParamSpec("_Asked")


def unchecked(build: Callable[_Asked, _Made]) -> Callable[_Asked, _Made]:
    """Build a chart without validating each of its parts, which costs as much as the rest of a small page.

    Users gain nothing by it: the charts are ours, and `tests/report/test_charts_valid.py` validates them.
    """

    @wraps(build)
    def built(*arguments: _Asked.args, **named: _Asked.kwargs) -> _Made:
        from altair.utils.schemapi import debug_mode  # noqa: PLC0415 - Altair: only where a chart is built

        with debug_mode(arg=False):
            return build(*arguments, **named)

    return built


QUIET: Style = {"clip": True, "aria": False}
"""Lines end at the plane's edge, and tell a screen reader nothing new: it has the points."""


class Pen:
    """How and in which terms the layers of a plane are drawn: by the styles of a page's theme and the signals it sets.

    Attributes:
        fields: Names of intensity and performance in the rows, and of what a kernel is measured against.
        scale: How large signs and words are beside those of a page.
        spans: Expressions of the decades across and up.
        sizes: Expressions of the pixels across and up.
    """

    fields: tuple[str, str, str] = ("x", "y", "limit")
    scale: float = 1
    spans: tuple[str, str] = ("spanX", "spanY")
    sizes: tuple[str, str] = ("w", "h")

    def look(self, style: str) -> Style:
        """Return how a mark of a style is drawn."""
        return {"style": style}

    @property
    def at(self) -> Style:
        """Where a row stands."""
        return {"x": alt.X(f"{self.fields[0]}:Q"), "y": alt.Y(f"{self.fields[1]}:Q")}


PAGE = Pen()


FAINT_DOT = 0.14
FAINT_BAR = 0.2
"""Opacity of the other kernels' marks while one kernel is isolated."""

SPOT = "datum.p[slot]"
"""Expression of the place of a row's words at the size at hand."""

HEAD = "M-0.9,-0.8L1,0L-0.9,0.8L-0.4,0Z"
"""Shape of an arrow's head to the right: an equilateral triangle, turned, does not tell its direction."""

DIGITS = 4
"""Significant digits of numbers that are drawn: a thousandth of a decade is a third of a pixel."""

WIDTH = 800
HEIGHT = 440
"""Pixels of a plane until the page sets its parameters `w` and `h`."""


LIT_BAR = {"expr": f"kernel === '' || datum.g === kernel ? 1 : {FAINT_BAR}"}
"""Fades the bars of other kernels while one is isolated (parameter `kernel`)."""


def table(name: str) -> alt.Chart:
    """Begin a layer with the rows of a table, which the page holds by its name."""
    return alt.Chart(alt.NamedData(name))


def rounded(value: float | None) -> float | int | None:
    """Round to what can be seen; whole numbers take less room without their `.0`."""
    if value is None:
        return None
    rounded = fmt.round_significant(value, DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded


def placed(rows: alt.Chart, spot: str = SPOT) -> alt.Chart:
    """Keep the texts that have a place at the size at hand: `p` of a row holds one for each class of sizes."""
    return (
        rows.transform_calculate(spot=spot)
        .transform_filter("datum.spot")
        .transform_calculate(words="datum.spot[0] || datum.t")
    )


def at_spot(spot: str = "datum.spot") -> Style:
    """Set words at the place that was found for them."""
    return {
        "align": alt.ExprRef(f"{spot}[3] > 0 ? 'left' : {spot}[3] < 0 ? 'right' : 'center'"),
        "baseline": "middle",
        "dx": alt.ExprRef(f"{spot}[1]"),
        "dy": alt.ExprRef(f"{spot}[2]"),
    }


def written(
    rows: alt.Chart, style: str, at: Style | None = None, *, pen: Pen = PAGE, field: str = "words", **look: Any
) -> list[alt.Chart]:
    """Write the texts of rows on cleared ground."""
    shape = {key: value for key, value in look.items() if key != "opacity"}
    looks = (pen.look("halo") | shape, pen.look(style) | look)
    text = alt.Text(f"{field}:N")
    return [rows.mark_text(**QUIET, **one).encode(**(at or pen.at), text=text) for one in looks]


def leads(rows: alt.Chart, spot: str = "datum.spot", pen: Pen = PAGE) -> alt.Chart:
    """Draw a thin line from a mark to each text that stands away from it."""
    away = rows.transform_filter(f"isValid({spot}[4])")
    x, y, _ = pen.fields
    return away.mark_rule(
        xOffset=alt.ExprRef(f"{spot}[1] * {spot}[4]"),
        yOffset=alt.ExprRef(f"{spot}[2] * {spot}[4]"),
        x2Offset=alt.ExprRef(f"{spot}[1] * {LEAD_TO_PART}"),
        y2Offset=alt.ExprRef(f"{spot}[2] * {LEAD_TO_PART}"),
        **QUIET,
        **pen.look("lead"),
    ).encode(**pen.at, x2=alt.X2(x), y2=alt.Y2(y))


HEAD_AREA_PX2 = 150
HEAD_FROM_PX = 22
"""Area of an arrow's head, and how long a part of a path must be to have one."""

HEAD_AT = 0.55
"""Where the arrow head is on its part: beyond the middle, as both ends may lie under large dots."""


def ways(rows: alt.Chart, pen: Pen = PAGE) -> list[alt.Chart]:
    """Join the places `i` of each path `f` in order, with a head on each part that is long enough."""
    (x, y, _), (span_x, span_y), (width, height) = pen.fields, pen.spans, pen.sizes
    parts = rows.transform_window(
        x_next=f"lead({x})", y_next=f"lead({y})", groupby=["f"], sort=[alt.SortField("i", "ascending")]
    )
    parts = parts.transform_filter("datum.x_next").transform_calculate(
        right=f"log(datum.x_next / datum.{x}) / LN10 / {span_x} * {width}",
        down=f"-log(datum.y_next / datum.{y}) / LN10 / {span_y} * {height}",
        headX=f"datum.{x} * pow(datum.x_next / datum.{x}, {HEAD_AT})",
        headY=f"datum.{y} * pow(datum.y_next / datum.{y}, {HEAD_AT})",
    )
    least = HEAD_FROM_PX * pen.scale
    heads = parts.transform_filter(f"sqrt(pow(datum.right, 2) + pow(datum.down, 2)) >= {least:g}")
    path = pen.look("path")
    return [
        rows.mark_line(**path, **QUIET).encode(**pen.at, order=alt.Order("i:Q"), detail=alt.Detail("f:N")),
        heads.mark_point(
            shape=HEAD,
            filled=True,
            size=HEAD_AREA_PX2 * pen.scale**2,
            angle=alt.ExprRef("atan2(datum.down, datum.right) * 57.2958"),
            **path,
            **QUIET,
        ).encode(x=alt.X("headX:Q"), y=alt.Y("headY:Q")),
    ]


BAR_PX, BAR_NAME_PX = 26, 5
"""Length of the bar of what binds before the drawn roof, and how far over it its name stands."""


def binding_bars(rows: alt.Chart, pen: Pen = PAGE, **look: Any) -> alt.Chart:
    """Draw short bars where what binds a kernel before the drawn roof would be full."""
    size, thickness = BAR_PX * pen.scale, 3 * pen.scale
    look = pen.look("gap") | QUIET | look
    bars = rows.mark_tick(orient="horizontal", size=size, thickness=thickness, **look)
    return bars.encode(x=alt.X(f"{pen.fields[0]}:Q"), y=alt.Y(f"{pen.fields[2]}:Q"))


def of_kernels(fields: Sequence[str]) -> alt.LookupData:
    """Look up fields of the table `kernels` by its key `k`."""
    return alt.LookupData(alt.NamedData("kernels"), "k", list(fields))


def either(test: str, then: Any, otherwise: Any) -> Style:
    """Choose between two values by an expression: the arguments of a channel's `Value` class.

    `alt.condition` does the same, but leaves Altair to find the class, which takes it a millisecond or five.
    """
    return {"value": otherwise, "condition": {"test": test, "value": then}}


def values(**named: Any) -> list[Param]:
    """Declare parameters by their first values."""
    return [{"name": name, "value": value} for name, value in named.items()]


def expressions(**named: str) -> list[Param]:
    """Declare parameters that follow from others."""
    return [{"name": name, "expr": expression} for name, expression in named.items()]


def _as_it_is(chart: Any, deep: Any = True, ignore: list[str] | None = None) -> Any:  # noqa: FBT002 - Altair's signature
    """Copy a chart without its parts where that is enough."""
    if deep is not False:
        return alt.SchemaBase.copy(chart, deep, ignore)
    copied = type(chart)()
    copied._kwds.update(chart._kwds)  # noqa: SLF001 - where Altair keeps what a chart has
    return copied


_Kind = TypeVar("_Kind")


@cache
def _final(kind: type[_Kind]) -> type[_Kind]:
    """Make a kind of charts whose parts are final: Altair would copy each of them at every step, to lift parameters."""
    return type(kind.__name__, (kind,), {"copy": _as_it_is})


def layered(layers: Iterable[Drawing], **properties: Any) -> alt.LayerChart:
    """Lay layers over each other, as they are."""
    chart = _final(alt.LayerChart)(**properties)
    chart.layer = list(layers)
    return chart


def stacked(charts: Iterable[alt.LayerChart], **properties: Any) -> alt.VConcatChart:
    """Put charts below each other, as they are."""
    chart = _final(alt.VConcatChart)(spacing=24, **properties)
    chart.vconcat = list(charts)
    return chart


NARROW_CHARS = 44
"""Characters of a title that a telephone has room for."""


def titled(text: str, subtitle: str | Sequence[str], *, is_wrapped: bool = False) -> alt.TitleParams:
    """Write the title of a chart, no wider than its plane: the page fits the whole drawing to its room.

    Args:
        text: The title.
        subtitle: Lines below it.
        is_wrapped: A long title has several lines where the plane is narrow.
    """
    lines = wrap(text, NARROW_CHARS) if is_wrapped else []
    narrow = alt.ExprRef(f"w < 480 ? {dumps(lines)} : {dumps(text)}")
    return alt.TitleParams(
        narrow if len(lines) > 1 else text,
        subtitle=subtitle,
        limit=alt.ExprRef("w"),
        fontSize=alt.ExprRef("w < 480 ? 12 : 14"),
    )


def specify(
    chart: alt.LayerChart | alt.VConcatChart, params: Iterable[Param], datasets: Mapping[str, Iterable[Any]]
) -> Spec:
    """Write a chart, what the page sets, and its tables as one specification; the theme has its colours.

    Values and rows are plain already: Altair would copy them at every step, and the page must not wait for that.
    """
    return filled(written_out(chart), params, datasets)


def filled(spec: Spec, params: Iterable[Param], datasets: Mapping[str, Iterable[Any]]) -> Spec:
    """Give a specification what the page sets, and its tables."""
    return spec | {"params": [*params, *spec.get("params", ())], "datasets": dict(datasets)}


def written_out(chart: alt.TopLevelMixin) -> Spec:
    """Write a chart as its specification, unvalidated (see `unchecked`); the theme has its colours."""
    spec: Spec = chart.to_dict(validate=False)
    spec.pop("config", None)
    return spec
