"""The plain roofline plane of comparisons, ladders, forecasts and sweeps: roofs, dots and paths, without a selection.

Roofs, axes, signs and the engine that places words are those of the report's own roofline; here are its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import floor, hypot, log10, sqrt
from typing import Any, NamedTuple

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import Analysis
from rooflens.model.roofline.roofs import RoofSet
from rooflens.model.roofline.standing import Standing
from rooflens.model.roofline.unit_names import binding_label, resource_label
from rooflens.report.plane.axes import axes, still
from rooflens.report.plane.geometry import Box, Line
from rooflens.report.plane.later import alt
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import (
    BAR_NAME_PX,
    BAR_PX,
    HEIGHT,
    PAGE,
    QUIET,
    SPOT,
    WIDTH,
    Spec,
    at_spot,
    binding_bars,
    either,
    layered,
    leads,
    placed,
    specify,
    table,
    titled,
    unchecked,
    values,
    ways,
    written,
    written_out,
)
from rooflens.report.plane.names import LABEL_WIDTH, NARROW_LABEL_WIDTH
from rooflens.report.plane.placement import LINE_PX, Canvas, Spot, Text, apart, around, mark_spots, ridge_spots
from rooflens.report.plane.plane import LEVEL_MARKS, Domain, aired
from rooflens.report.plane.roofs import (
    CORNER_PX,
    NamedRoof,
    Roofs,
    flat_name_layers,
    flat_roof,
    flat_row,
    line_layers,
    ridge_text,
    slope_name_layers,
    slope_roof,
    slope_row,
)
from rooflens.report.plane.viewport import MIDDLE, SIZES, Sheet, SizeClass, point_box
from rooflens.report.words.labels import UNITS

LEAST_DECADES = 3.0
FEW_DECADES = 2.5
NEAR_DECADES, NEAR_AIR = 0.6, 10**0.2
"""The shortest axis that holds the dots alone, and the factor of air at its ends."""

SHARES_AIR = 10**0.15
"""The factor of air over whole shares."""

LARGEST_PX2, SMALLEST_PX2 = 500.0, 60.0
HERE_PX2 = 520

TOGETHER_PX = 18
"""Dots nearer to one another than this are one to the eye: they share a label."""

FAINT = 0.4
"""Opacity of what was, beside what is."""

At = tuple[float, float]
"""Operations per byte, and operations per second."""

OWN_ROOF = NamedRoof("own", 1.0, ("its own roof",))


class BindingBar(NamedTuple):
    """What binds a kernel before the drawn roof: the operations per second at which it would be full, and its name."""

    per_s: float
    name: str


class Dot(Struct, frozen=True):
    """One mark.

    Attributes:
        x: Operations per byte.
        y: Operations per second; a share where the plane is one of shares.
        bound: Verdict or regime, which gives colour, shape and filling.
        name: Title of its tooltip.
        label: What stands beside it; empty for nothing.
        part: Its part of the largest area, 0 to 1.
        is_faint: It is not what the plane is about: what was, or somebody else's.
        level: The memory level whose bytes it goes by; empty if all dots of the plane go by one.
        bar: What binds it before the drawn roof.
        keys: Launches of the page that it stands for: a click isolates the first.
        group: The kernel of that launch.
        facts: Further lines of its tooltip.
    """

    x: float
    y: float
    bound: str
    name: str
    label: str = ""
    part: float = 0.3
    is_faint: bool = False
    level: str = ""
    bar: BindingBar | None = None
    keys: tuple[str, ...] = ()
    group: str = ""
    facts: Mapping[str, str] = {}

    @property
    def at(self) -> At:
        """Its place."""
        return self.x, self.y

    @property
    def area_px2(self) -> float:
        """Its area."""
        return SMALLEST_PX2 + (LARGEST_PX2 - SMALLEST_PX2) * self.part

    @property
    def radius_px(self) -> float:
        """Half its width."""
        return sqrt(self.area_px2) / 2


class Drawn(Struct, frozen=True):
    """A plane.

    Attributes:
        dots: Those whose labels matter most come first.
        slopes: Roofs of memory levels.
        flats: Roofs of arithmetic.
        paths: Places that a line joins, in order.
        links: Places that a dashed line joins: what was measured with what was predicted.
        rings: Places that a ring of `ring_px2` marks.
        chosen: What a reader chooses by (parameter `at`), with the place that a ring then marks.
        shares: Heights are shares of each dot's own roof.
        also: Places that the axes hold as well, so that planes can be compared by eye.
        is_near: The axes hold the dots, and no more of the roofs than is over them.
    """

    title: str
    dots: tuple[Dot, ...]
    subtitle: tuple[str, ...] = ()
    slopes: tuple[NamedRoof, ...] = ()
    flats: tuple[NamedRoof, ...] = ()
    paths: tuple[tuple[At, ...], ...] = ()
    links: tuple[tuple[At, ...], ...] = ()
    rings: tuple[At, ...] = ()
    ring_px2: int = 340
    chosen: Mapping[str, At] = {}
    shares: bool = False
    also: tuple[At, ...] = ()
    is_near: bool = False
    unit: str = "FLOP"

    @property
    def spots(self) -> list[At]:
        """All places that the axes hold."""
        bars = ((dot.x, dot.bar.per_s) for dot in self.dots if dot.bar)
        return [*(dot.at for dot in self.dots), *bars, *self.rings, *self.chosen.values(), *self.also]

    @property
    def x_domain(self) -> Domain:
        """Operations per byte from end to end: all dots and ridges, with air."""
        if self.is_near:
            return _near_domain([x for x, _ in self.spots])
        ridges = [flat.peak / slope.peak for flat in self.flats for slope in self.slopes]
        return aired([*(x for x, _ in self.spots), *ridges], LEAST_DECADES)

    @property
    def y_domain(self) -> Domain:
        """Operations per second from end to end."""
        heights = [y for _, y in self.spots]
        if self.shares:
            return min(aired(heights, 1.0)[0], 0.1), max(1.0, *heights) * SHARES_AIR
        if self.is_near:
            return _near_domain(heights)
        return aired([*heights, *(flat.peak for flat in self.flats)], LEAST_DECADES)

    @property
    def roofs(self) -> Roofs:
        """Its roofs over its axes."""
        flats = (OWN_ROOF,) if self.shares else self.flats
        return Roofs(() if self.shares else self.slopes, flats, self.x_domain, self.y_domain)

    @property
    def corners(self) -> list[tuple[NamedRoof, At]]:
        """Where the slope of the farthest level meets the flat roofs."""
        roofs = self.roofs
        slope = min((one.peak for one in roofs.slopes), default=None)
        return [(flat, (flat.peak / slope, flat.peak)) for flat in roofs.flats] if slope else []

    def sheet(self, size: SizeClass) -> Sheet:
        """Draw it at one size."""
        return Sheet(self.x_domain, self.y_domain, size.width_px, size.height_px)

    def together(self) -> list[list[int]]:
        """Group the places of its dots that are one to the eye."""
        view = self.sheet(MIDDLE)
        groups: list[list[int]] = []
        for place, dot in enumerate(self.dots):
            x, y = view.at(*dot.at)
            near = (one for one in groups if _apart_px(view.at(*self.dots[one[0]].at), (x, y)) < TOGETHER_PX)
            group = next(near, None)
            if group is None:
                groups.append([place])
            else:
                group.append(place)
        return groups


def roofs_of(roofs: RoofSet, levels: Iterable[str], gpu: str | None) -> tuple[tuple[NamedRoof, ...], ...]:
    """Name the slopes of the levels at which dots stand, and the flat roofs."""
    wanted = set(levels)
    slopes = tuple(slope_roof(roof, gpu) for roof in roofs.levels if wanted.intersection(roof.keys))
    return slopes, tuple(map(flat_roof, roofs.pipes))


def dot_of(analysis: Analysis, standing: Standing, name: str, *, in_shares: bool = False, **more: Any) -> Dot:
    """Place a kernel at the level that binds it, with its level, place and roof in its tooltip before other facts.

    Args:
        analysis: The kernel.
        standing: Where it stands, with a roof where heights are shares.
        name: What its tooltip calls it.
        in_shares: Its height is its share of its own roof.
        more: Other attributes of the dot.
    """
    unit = UNITS[standing.unit]
    facts = {
        "Level": resource_label(standing.level, analysis.kernel.gpu),
        "Place": f"{fmt.intensity(standing.intensity, unit)}, {fmt.si(standing.per_s, f'{unit}/s')}",
        "Its roof": roof_words(standing, unit),
        **more.pop("facts", {}),
    }
    height = (standing.share or 0.0) if in_shares else standing.per_s
    bar = (
        BindingBar(standing.binding.per_s, binding_label(standing.binding))
        if standing.binding and not in_shares
        else None
    )
    shown = analysis.verdict.shown_class
    return Dot(standing.intensity, height, shown, name, level=standing.level, bar=bar, facts=facts, **more)


def roof_words(standing: Standing, unit: str) -> str:
    """Say what a kernel is measured against: `1.2 TFLOP/s, of L1 load/store slots, 86 % reached`."""
    if not standing.limit_per_s:
        return "not in the report"
    of = f", of {binding_label(standing.binding)}" if standing.binding else ""
    return f"{fmt.si(standing.limit_per_s, f'{unit}/s')}{of}, {fmt.percent(standing.share)} reached"


@unchecked
def plane_spec(plane: Drawn) -> Spec:
    """Specify a plane for Vega-Lite."""
    data = _datasets(plane)
    has_bars = any(dot.bar for dot in plane.dots)
    words = placed(table("labels"))
    layers = [
        *line_layers(table("roofs"), table("pipes")),
        *slope_name_layers(table("roofs"), SPOT),
        *flat_name_layers(table("pipes"), SPOT),
        table("ridges").mark_point(style="ridge", size=28, **QUIET).encode(**PAGE.at),
        *_mark_charts(plane, data),
        *([binding_bars(table("dots").transform_filter("datum.limit"))] if has_bars else []),
        leads(words),
        *written(words.transform_filter("datum.s !== 'label'"), "note", **at_spot()),
        *written(words.transform_filter("datum.s === 'label'"), "label", **at_spot()),
        _dots(plane),
    ]
    params = [*values(w=WIDTH, h=HEIGHT), *still(plane.x_domain, plane.y_domain)]
    params += values(picked="") if any(dot.keys for dot in plane.dots) else []
    params += values(at=list(plane.chosen)[-1]) if plane.chosen else []
    chart = layered(
        layers,
        name="plane",
        width=WIDTH,
        height=HEIGHT,
        title=titled(plane.title, [*plane.subtitle, *_legend(plane)], is_wrapped=True),
    )
    return specify(chart, params, data)


def _legend(plane: Drawn) -> Iterator[str]:
    if any(dot.bar for dot in plane.dots):
        yield "Short bar: what is full before the roof."
    if not all(roof.is_measured for roof in (*plane.slopes, *plane.flats)):
        yield "Dotted: roofs that are not of these runs."


def _datasets(plane: Drawn) -> dict[str, list[dict[str, Any]]]:
    """Make the rows of roofs, corners, paths, dots and words; `p` of a row holds its place at each class of sizes."""
    roofs, places = plane.roofs, [_placed(plane, size) for size in SIZES]
    labels = [
        {"s": kind, "x": text.x, "y": text.y, "p": [own[1][at] for own in places]}
        for at, (kind, text) in enumerate(_label_texts(plane, SIZES[0]))
        if any(own[1][at] for own in places)
    ]
    data: dict[str, list[dict[str, Any]]] = {
        "roofs": [
            slope_row(slope.key, slope.peak, roofs.top, is_measured=slope.is_measured)
            | {"p": [own[0].get(slope.key) for own in places]}
            for slope in roofs.slopes
        ],
        "pipes": [
            flat_row(flat.peak, roofs.steepest, is_measured=flat.is_measured)
            | {"p": [own[0].get(flat.key) for own in places]}
            for flat in roofs.flats
        ],
        "ridges": [{"x": x, "y": y} for _, (x, y) in plane.corners],
        "dots": [_dot_data(dot) for dot in sorted(plane.dots, key=lambda dot: -dot.part)],
        "labels": labels,
    }
    for name, paths in (("paths", plane.paths), ("links", plane.links)):
        spots = ((path, at, spot) for path, own in enumerate(paths) for at, spot in enumerate(own))
        data[name] = [{"x": x, "y": y, "f": path, "i": at} for path, at, (x, y) in spots]
    data["rings"] = [{"x": x, "y": y} for x, y in plane.rings]
    data["chosen"] = [{"x": x, "y": y, "of": at} for at, (x, y) in plane.chosen.items()]
    return {name: rows for name, rows in data.items() if rows or name not in _OPTIONAL}


def _dot_data(dot: Dot) -> dict[str, Any]:
    return {
        "x": dot.x,
        "y": dot.y,
        "bound": dot.bound,
        "name": dot.name,
        "area": dot.area_px2,
        **({"faint": 1} if dot.is_faint else {}),
        **({"limit": dot.bar.per_s} if dot.bar else {}),
        **({"k": dot.keys[0], "g": dot.group, "ks": list(dot.keys)} if dot.keys else {}),
        **dot.facts,
    }


def _placed(plane: Drawn, size: SizeClass) -> tuple[Mapping[str, list[Any]], list[list[Any] | None]]:
    """Place the names of roofs by their keys, then all other words, at one size."""
    view, roofs = plane.sheet(size), plane.roofs
    walked = (pair for path in (*plane.paths, *plane.links) for pair in pairwise(view.at(*spot) for spot in path))
    canvas = Canvas(view, lines=[*roofs.lines(view), *(Line(*begin, *end) for begin, end in walked)])
    boxes = [point_box(view.at(*dot.at), dot.radius_px) for dot in plane.dots]
    boxes += [point_box(view.at(*spot), sqrt(plane.ring_px2) / 2) for spot in plane.rings]
    boxes += [Box(x, y, BAR_PX / 2, 2, x) for dot in plane.dots if dot.bar for x, y in [view.at(dot.x, dot.bar.per_s)]]
    names = roofs.name(canvas, boxes)
    canvas.taken.extend(boxes)
    canvas.taken.extend(point_box(view.at(*spot), CORNER_PX) for _, spot in plane.corners)
    return names, [canvas.place(text) for _, text in _label_texts(plane, size)]


def _label_texts(plane: Drawn, size: SizeClass) -> list[tuple[str, Text]]:
    """List the words that ask for a place in the order of their worth: labels, levels where they differ, bars, ridges.

    The list is as long at each class of sizes.
    """
    widths = (NARROW_LABEL_WIDTH,) if size.narrow else (FULL_WIDTH, LABEL_WIDTH)
    texts = []
    for dot in (dot for dot in plane.dots if dot.label):
        words = tuple(dict.fromkeys(fmt.cut_middle(dot.label, width) for width in widths))
        texts.append(("label", Text(words, *dot.at, around(dot.radius_px))))
    if len({dot.level for dot in plane.dots}) > 1:
        texts += [
            ("level", Text((LEVEL_MARKS[dot.level],), *dot.at, mark_spots(dot.radius_px)))
            for dot in apart(plane.dots, by_level=True)
            if dot.level
        ]
    over = [Spot(0, -BAR_NAME_PX - LINE_PX / 2, 0), Spot(0, BAR_NAME_PX + LINE_PX / 2, 0)]
    beside = [Spot(BAR_PX / 2 + BAR_NAME_PX, 0, 1), Spot(-BAR_PX / 2 - BAR_NAME_PX, 0, -1)]
    texts += [
        ("bar", Text((dot.bar.name,), dot.x, dot.bar.per_s, [*over, *beside])) for dot in apart(plane.dots) if dot.bar
    ]
    return texts + [("ridge", Text((ridge_text(x, plane.unit),), x, y, ridge_spots())) for _, (x, y) in plane.corners]


FULL_WIDTH = 40
"""Characters of a label where there is much room."""


def _apart_px(place: At, other: At) -> float:
    return hypot(place[0] - other[0], place[1] - other[1])


def _near_domain(values_: Sequence[float]) -> Domain:
    low, high = min(values_) / NEAR_AIR, max(values_) * NEAR_AIR
    grown = max(1.0, 10**NEAR_DECADES / (high / low)) ** 0.5
    return low / grown, high * grown


_OPTIONAL = frozenset({"paths", "links", "rings", "chosen"})


def _mark_charts(plane: Drawn, data: Mapping[str, Any]) -> Iterator[alt.Chart]:
    """Join places by lines, those of a prediction by dashed ones, and mark some with rings, the reader's choice too."""
    if "paths" in data:
        yield from ways(table("paths"))
    if "links" in data:
        line = table("links").mark_line(style="gap", strokeDash=[1, 3], **QUIET)
        yield line.encode(**PAGE.at, detail=alt.Detail("f:N"), order=alt.Order("i:Q"))
    if "rings" in data:
        yield table("rings").mark_point(style="ring", size=plane.ring_px2, strokeWidth=2, **QUIET).encode(**PAGE.at)
    if "chosen" in data:
        here = table("chosen").transform_filter("datum.of === at")
        yield here.mark_point(style="ring", size=HERE_PX2, strokeWidth=3, **QUIET).encode(**PAGE.at)


def _dots(plane: Drawn) -> alt.Chart:
    tips = [alt.Tooltip("name:N", title="Name")]
    tips += [alt.Tooltip(f"{name}:N") for name in dict.fromkeys(name for dot in plane.dots for name in dot.facts)]
    marks = table("dots").mark_point(strokeWidth=2, clip=True, description=alt.ExprRef("datum.name"))
    width = {"strokeWidth": alt.StrokeWidthValue(**either("indexof(datum.ks, picked) >= 0", 4, 2))}
    return marks.encode(
        **axes([plane.unit], in_shares=plane.shares),
        **verdict_channels({dot.bound for dot in plane.dots}),
        size=alt.Size("area:Q", scale=None, legend=None),
        opacity=alt.OpacityValue(**either("datum.faint", FAINT, 1)),
        fillOpacity=alt.FillOpacityValue(0.85),
        tooltip=tips,
        **(width if any(dot.keys for dot in plane.dots) else {}),
    )


def finished(chart: Any, title: str, subtitle: Sequence[str] = (), **properties: Any) -> Spec:
    """Give a chart its title and sizes, and write it as its specification."""
    named = alt.TitleParams(title, subtitle=list(subtitle), limit=alt.ExprRef("width"))
    return written_out(chart.properties(title=named, **({"width": 640} | properties)))


def rowed(rows: Iterable[Mapping[str, Any]]) -> alt.Chart:
    """Begin a layer with its rows."""
    return alt.Chart(alt.InlineData(values=list(rows)))


def ticks(domain: Domain) -> list[float]:
    """List where an axis has its lines: the powers of ten, or 1, 2 and 5 of each where it is short."""
    powers = range(floor(log10(domain[0])), floor(log10(domain[1])) + 1)
    steps = (1, 2, 5) if log10(domain[1] / domain[0]) < FEW_DECADES else (1,)
    return [step * 10.0**power for power in powers for step in steps if domain[0] <= step * 10.0**power <= domain[1]]


def time_label(longest_ns: float | None = None) -> str:
    """Write the expression that labels an axis of nanoseconds, in the unit of its longest time or each in its own."""
    units = ((1e9, "s"), (1e6, "ms"), (1e3, "\u00b5s"), (1.0, "ns"))
    if longest_ns is None:
        cases = (f"datum.value >= {factor:g} ? {_in_unit(factor, unit)}" for factor, unit in units[:-1])
        return f"{' : '.join(cases)} : {_in_unit(*units[-1])}"
    return _in_unit(*next((one for one in units if longest_ns >= one[0]), units[-1]))


def _in_unit(factor: float, unit: str) -> str:
    return f"format(datum.value / {factor:g}, '~g') + ' {unit}'"
