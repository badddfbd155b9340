"""The roofline of one GPU as a figure: a plain layered Altair chart, with its rows, colours and sizes in it.

It has no parameters, no configuration and no named views, so that whatever a user does to a chart works on it. Its own
data are its points, which facets divide; roofs and ridges are drawn in each. Words are placed for the size asked for,
by the engine that places those of the page.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import ceil
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.roofline.unit_names import resource_label
from rooflens.report.html.theme import DARK, LIGHT, Inks, vega_config
from rooflens.report.plane.axes import axes
from rooflens.report.plane.geometry import FONT_PX, text_px
from rooflens.report.plane.later import alt
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import QUIET, Pen, Style, at_spot, binding_bars, either, leads, rounded, ways, written
from rooflens.report.plane.plane import ALL, OWN, Domain, Plane
from rooflens.report.plane.roofs import ruled, slope_at, turned_names
from rooflens.report.plane.viewport import SIZES, WIDE, SizeClass, areas_px2, decades
from rooflens.report.roofline.chart import default_level, notes, sentence
from rooflens.report.roofline.labels import PlaneDrawing, drawings, label_rows
from rooflens.report.roofline.points import ESTIMATED_DASH
from rooflens.report.roofline.rows import Row, pipe_rows, point_records, roof_rows, twin_rows
from rooflens.report.roofline.versions import path_rows, versions
from rooflens.report.words.labels import BOUND_LABELS

Rows = list[Row]

X, Y = "intensity_flop_per_byte", "flop_per_s"

PAD_PT, LABEL_PAD_PT, TITLE_PAD_PT, TITLE_OFFSET_PT = 5, 3, 4, 6
"""Around a drawing, as Vega has it; beside the labels of an axis; beside its title; under the title of the chart."""

WIDEST_TICK = "500 G"
LINE = 1.3
"""Height of a line of text, in sizes of its font."""

SIGN_PT = 26
"""Width of a sign in a legend with the air about it, in a font of 12."""

LEAST_PT = 60
"""The smallest plane, however small the figure: words around it take the rest."""

BEYOND = 100.0
"""Lines go on so far beyond the axes, so that a user may move them."""

TIPS: Mapping[str, tuple[str, str]] = {
    "kernel:N": ("Kernel", ""),
    "verdict:N": ("Verdict", ""),
    "level:N": ("Level", ""),
    f"{X}:Q": ("Intensity", ".3s"),
    f"{Y}:Q": ("Performance", ".3s"),
    "limit_flop_per_s:Q": ("Limit", ".3s"),
    "limited_by:N": ("Limited by", ""),
    "time_share:Q": ("Share of GPU time", ".1%"),
}
"""What a tooltip shows, with its title and format."""


class FigureLook(Struct, frozen=True):
    """The size of a whole figure, of its words, and its ground.

    Attributes:
        width_pt: In points, which are pixels on a screen.
        font_pt: Size of all words.
    """

    width_pt: float
    height_pt: float
    font_pt: float
    dark: bool = False

    @property
    def inks(self) -> Inks:
        """Its neutral colours."""
        return DARK if self.dark else LIGHT

    @property
    def scale(self) -> float:
        """How large its words are beside those of a page."""
        return self.font_pt / FONT_PX

    def style(self, name: str) -> dict[str, Any]:
        """Return how a line or a word of the page is drawn in it."""
        config = vega_config(self.inks, dark=self.dark)["style"][name]
        found = {key: value * self.scale if key == "strokeWidth" else value for key, value in config.items()}
        return found | ({"fontSize": self.font_pt} if "fontSize" in config else {})


def figure(plane: Plane, look: FigureLook, *, level: str | None = None, title: str = "") -> alt.LayerChart:
    """Draw the plane of one GPU, which must hold a point.

    Args:
        plane: Its points and roofs.
        look: Sizes and ground.
        level: Memory level at which kernels stand, or `all`; by default, and where no kernel stands there, the one that
            limits each.
        title: Stands over it.
    """
    shown = level if level in plane.choices else default_level(plane)
    made = _Figure(plane, look, shown, title)
    part = min(1.0, made.size.width_px / WIDE.width_px)
    return replace(made, plane=replace(plane, dot_part=part)).chart()


class _Pen(Pen):
    """Draws in numbers and colours instead of a page's signals and styles."""

    fields = (X, Y, "limit_flop_per_s")

    def __init__(self, look: FigureLook, ends: tuple[Domain, Domain], plane_pt: tuple[int, int]) -> None:
        self._look = look
        self.scale = look.scale
        self.spans = (f"{decades(ends[0]):.4g}", f"{decades(ends[1]):.4g}")
        self.sizes = (str(plane_pt[0]), str(plane_pt[1]))

    def look(self, style: str) -> Style:
        """Return how a mark of a style is drawn in the figure."""
        return self._look.style(style)


class _Figure(Struct, frozen=True):
    plane: Plane
    look: FigureLook
    level: str
    title: str

    def chart(self) -> alt.LayerChart:
        """Draw roofs over dots, so that what a user adds belongs to the dots, and words over both."""
        drawn = drawings(self.plane, "", (self.level,), (self.size,))
        points, ridges = self._dot_rows(label_rows(self.plane, drawn, ""))
        width, height = self._plane_pt
        bound = any(row["limited_by"] for row in points)
        chart = alt.layer(
            self._dots(),
            *self._roofs(),
            *self._paths(),
            *([binding_bars(alt.Chart().transform_filter("datum.limited_by"), self.pen)] if bound else ()),
            *self._corners(ridges),
            *self._roof_names(drawn[self.level][0]),
            *(self._placed_words("mark", "note") if any("mark" in row for row in points) else ()),
            *self._placed_words("label", "label"),
            data=_inline_data("points", points),
            width=width,
            height=height,
            title=self._figure_title(),
            view=alt.ViewBackground(stroke=self.look.inks.grid),
        )
        if self.look.dark:
            chart.background = self.look.inks.page
        return cast("alt.LayerChart", chart)

    @property
    def pen(self) -> _Pen:
        """How its layers are drawn, in numbers of its own size."""
        return _Pen(self.look, self._axis_domains, self._plane_pt)

    @property
    def _axis_domains(self) -> tuple[Domain, Domain]:
        return self.plane.x_domain(self.level), self.plane.y_domain(self.level)

    @property
    def _left_pt(self) -> float:
        return text_px(WIDEST_TICK) * self.look.scale + LABEL_PAD_PT

    @property
    def _plane_pt(self) -> tuple[int, int]:
        """Work out the size of the plane: what axes, heading and legend leave of the figure."""
        font, line = self.look.font_pt, LINE * self.look.font_pt
        signs = ceil(len(self._bounds) / self._legend_columns) if len(self._bounds) > 1 else 0
        lines = [*self._title_lines, *self._notes]
        over = (font + line * (len(lines) - 1) + TITLE_OFFSET_PT) if lines else 0.0
        over += (signs * line + TITLE_OFFSET_PT) if signs else 0.0
        height = self.look.height_pt - 2 * PAD_PT - over - 2 * font - LABEL_PAD_PT - TITLE_PAD_PT
        return round(max(self._plane_width_pt, LEAST_PT)), round(max(height, LEAST_PT))

    @property
    def _bounds(self) -> tuple[str, ...]:
        return self.plane.bounds_at(self.level)

    @property
    def _legend_columns(self) -> int:
        """Count the signs that one line of the legend holds."""
        widest = max((text_px(BOUND_LABELS[bound]) for bound in self._bounds), default=0.0) + SIGN_PT
        return max(1, int(self._plane_width_pt / (widest * self.look.scale)))

    @property
    def size(self) -> SizeClass:
        """The class of sizes whose words the plane has room for, at its own size in a page's pixels."""
        width, height = (side / self.look.scale for side in self._plane_pt)
        return replace(next(one for one in SIZES if width >= one.from_px), width_px=width, height_px=height)

    @property
    def _notes(self) -> list[str]:
        """Say what the legend does not, in lines as wide as the figure."""
        left_out = {
            "beyond the axes": self._beyond,
            "without a place in it": self.plane.unplaced + len({share.launch.key for share in self.plane.shares}),
        }
        more = [f"{fmt.count(count, 'launch')} {why}" for why, count in left_out.items() if count]
        return self._wrapped(sentence([*notes(self.plane), *more]))

    @property
    def _title_lines(self) -> list[str]:
        return self._wrapped(self.title)

    def _wrapped(self, words: str) -> list[str]:
        """Break words into lines as wide as the plane."""
        return list(_wrapped_lines(words, self._plane_width_pt / self.look.scale))

    @property
    def _plane_width_pt(self) -> float:
        return self.look.width_pt - 2 * PAD_PT - self._left_pt - TITLE_PAD_PT - self.look.font_pt

    @property
    def _beyond(self) -> int:
        (low, high), (bottom, _) = self._axis_domains
        points = self.plane.points_at(self.level)
        return len({p.launch.key for p in points if not low <= p.intensity <= high or p.per_s < bottom})

    def _figure_title(self) -> Any:
        if not (self._title_lines or self._notes):
            return alt.Undefined
        muted = self.look.style("note")
        font, line = self.look.font_pt, LINE * self.look.font_pt
        return alt.TitleParams(
            self._title_lines,
            subtitle=self._notes,
            limit=self._plane_width_pt,
            anchor="start",
            frame="group",
            fontWeight=600,
            color=self.look.style("label")["color"],
            subtitleColor=muted["color"],
            offset=TITLE_OFFSET_PT,
            subtitlePadding=0,
            fontSize=font,
            subtitleFontSize=font,
            lineHeight=line,
            subtitleLineHeight=line,
        )

    def _dot_rows(self, labels: Iterable[Row]) -> tuple[Rows, Rows]:
        """Make a row per dot and per corner, with the words that stand there: its name, and the letter of its level."""
        words: defaultdict[tuple[Any, Any], Row] = defaultdict(dict)
        for row in labels:
            if place := row["p"][0]:
                words[row["x"], row["y"]] |= self._word("mark" if row["s"] == "mark" else "label", row["t"], place)
        points = [
            row | words.pop((rounded(row[X]), rounded(row[Y])), {})
            for row in point_records(self.plane)
            if self.level == ALL or (row["is_binding"] if self.level == OWN else row["level"] == self.level)
        ]
        corners = self.plane.ridges(self.plane.first_level if self.level in {ALL, OWN} else self.level)
        return points, [{X: x, Y: y, **words[rounded(x), rounded(y)]} for x, y in corners]

    def _word(self, kind: str, text: str, place: Sequence[Any]) -> Row:
        """Make the row of a text label: its words and its position."""
        name, right, down, *rest = place
        spot = ["", right * self.pen.scale, down * self.pen.scale, *rest]
        return {kind: name or text, f"{kind}_spot": spot}

    def _dots(self) -> alt.Chart:
        look, ((x0, x1), (y0, y1)) = self.look, self._axis_domains
        muted = look.style("note")["color"]
        axis: dict[str, Any] = {
            "labelColor": muted,
            "titleColor": muted,
            "gridColor": look.inks.grid,
            "labelFontSize": look.font_pt,
            "titleFontSize": look.font_pt,
            "titleFontWeight": "normal",
            "labelPadding": LABEL_PAD_PT,
            "titlePadding": TITLE_PAD_PT,
            "ticks": False,
            "domain": False,
        }
        across, up = look.font_pt + LABEL_PAD_PT, self._left_pt
        smallest, largest = (area * look.scale**2 for area in areas_px2(self.plane))
        words = {"labelColor": look.style("label")["color"], "labelFontSize": look.font_pt, "columnPadding": 8}
        signs = verdict_channels(
            self._bounds,
            columns=self._legend_columns,
            field="verdict",
            dark=look.dark,
            offset=TITLE_OFFSET_PT,
            rowPadding=LINE,
            symbolSize=60 * look.scale**2 + 20,
            symbolStrokeWidth=1,
            **words,
        )
        dots = alt.Chart().mark_point(clip=True, strokeWidth=1.5 * look.scale, fillOpacity=0.72)
        return dots.encode(
            **axes(
                self.plane.units,
                pen=self.pen,
                ends=[x0, x1, y0, y1],
                looks=(axis | _extent(across), axis | _extent(up)),
            ),
            **signs,
            size=alt.Size(
                "time_share:Q",
                scale=alt.Scale(type="linear", domain=[0, self.plane.longest_share], range=[smallest, largest]),
                legend=None,
            ),
            strokeDash=alt.StrokeDashValue(**either("datum.is_estimated", ESTIMATED_DASH, [1, 0])),
            tooltip=[alt.Tooltip(name, title=title, format=shape) for name, (title, shape) in TIPS.items()],
        )

    def _roofs(self) -> Iterator[alt.Chart]:
        """Draw the roofs, and the attainable ones lighter."""
        found = twin_rows(self.plane)
        twins = self._ends_of(found.get("twinSlopes", ()), found.get("twinFlats", ()))
        if rows := [*twins]:
            yield ruled(_rows_chart("attainable", rows), slope_at(), "twin", self.pen)
        roofs = self._ends_of(roof_rows(self.plane), pipe_rows(self.plane))
        yield ruled(_rows_chart("roofs", [*roofs]), slope_at(), "roof", self.pen)

    def _ends_of(self, slopes: Iterable[Row], flats: Iterable[Row]) -> Iterator[Row]:
        (x0, x1), _ = self._axis_domains
        for row in slopes:
            ends = x0 / BEYOND, row["e"] / row["v"] if row["e"] else x1 * BEYOND
            yield self._roof_line(row, ends, row["v"])
        for row in flats:
            yield self._roof_line(row, (row["c"] or x0 / BEYOND, x1 * BEYOND), None)

    def _roof_line(self, row: Row, ends: tuple[float, float], slope: float | None) -> Row:
        ya, yb = (end * slope if slope else row["v"] for end in ends)
        dash = [px * self.pen.scale for px in row.get("dash", (1, 0))]
        key = row.get("level") or row.get("key")
        named = {"name": resource_label(key, self.plane.gpu)} if key else {}
        return {**named, "xa": ends[0], "ya": ya, "xb": ends[1], "yb": yb, "dash": dash}

    def _paths(self) -> Iterator[alt.Chart]:
        """Join the versions of a kernel in their order."""
        at = OWN if self.level == OWN else self.plane.first_level if self.level == ALL else self.level
        rows = [
            {"f": row["f"], "i": row["i"], X: row["x"], Y: row["y"]}
            for row in path_rows(self.plane, versions(self.plane))
            if ("near" in row if at == OWN else row["level"] == at)
        ]
        if rows:
            yield from ways(_rows_chart("versions", rows), self.pen)

    def _corners(self, ridges: Sequence[Row]) -> Iterator[alt.Chart]:
        """Mark where roofs meet, with the intensities of those that have room."""
        if ridges:
            table = _rows_chart("ridges", ridges)
            size = 28 * self.pen.scale**2
            yield table.mark_point(size=size, **QUIET, **self.pen.look("ridge")).encode(**self.pen.at)
            yield from self._placed_words("label", "note", table)

    def _placed_words(self, kind: str, style: str, rows: alt.Chart | None = None) -> Iterator[alt.Chart]:
        """Write one kind of words at their places, with a thin line to those that stand away."""
        spot = f"datum.{kind}_spot"
        named = (rows or alt.Chart()).transform_filter(spot)
        yield leads(named, spot, self.pen)
        yield from written(named, style, pen=self.pen, field=kind, **at_spot(spot))

    def _roof_names(self, drawing: PlaneDrawing) -> Iterator[alt.Chart]:
        """Write the names of flat roofs at their ends, and those of slopes along them."""
        (x0, x1), (y0, y1) = self._axis_domains
        flats = [
            {X: x1, Y: row["v"], **self._word("label", "", place)}
            for row in pipe_rows(self.plane)
            if (place := drawing.roofs.get(row["key"]))
        ]
        if flats:
            at_edge = at_spot("datum.label_spot")
            yield from written(_rows_chart("flat_roofs", flats), "label", pen=self.pen, field="label", **at_edge)
        slopes = []
        for row in roof_rows(self.plane):
            if spot := drawing.roofs.get(row["level"]):
                low, high = max(x0, y0 / row["v"]), min(x1, min(y1, row["e"] or y1) / row["v"])
                x = low * (high / low) ** spot[1]
                slopes.append({"words": spot[0], "px": x, "py": x * row["v"], "spot": spot})
        if slopes:
            # In a chart of charts there is no one width: there the angle stays that of the size asked for.
            (width, height), (span_x, span_y) = self.pen.sizes, self.pen.spans
            turn = f"-atan2((height || {height}) / {span_y}, (width || {width}) / {span_x}) * 57.2958"
            yield from turned_names(_rows_chart("slopes", slopes), turn, self.pen)


def _rows_chart(name: str, rows: Sequence[Row]) -> alt.Chart:
    return alt.Chart(_inline_data(name, rows))


def _inline_data(name: str, rows: Sequence[Row]) -> alt.InlineData:
    """Name rows by what they are and hold: two figures side by side may not share a name for different ones."""
    digest = sha256(json.dumps(rows).encode()).hexdigest()
    return alt.InlineData(values=list(rows), name=f"{name}_{digest[:8]}")


def _extent(size_pt: float) -> dict[str, float]:
    """Fix the room for the labels of an axis, in points, however long they are."""
    return {"minExtent": size_pt, "maxExtent": size_pt}


def _wrapped_lines(words: str, width_px: float) -> Iterator[str]:
    """Break a sentence into lines of at most so many pixels of a page."""
    line = ""
    for word in words.split():
        longer = f"{line} {word}".strip()
        if line and text_px(longer) > width_px:
            yield line
            longer = word
        line = longer
    if line:
        yield line
