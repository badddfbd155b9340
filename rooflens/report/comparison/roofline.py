"""The roofline of a comparison: where each kernel was and is, the rows that say so, and their Altair chart.

On one GPU at one clock both sides share their roofs: heights are FLOP/s, under the roofs of the head. Where GPUs or
clocks differ no set of roofs holds for both, and FLOP/s would move with the hardware: heights are then shares of each
kernel's own roof min(P, AI x BW), which say on either side how far the limit is.

The chart holds no colour, the theme does. A reader chooses its parameter `level`, a memory level; the page sets `w` and
`h`, pixels of the plane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import log10, sqrt
from typing import Any, Literal

import altair as alt
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.bounds import SHOWN_CLASSES, ShownClass
from rooflens.model.compare.pairing import mean_clock_hz
from rooflens.model.records import LEVELS, Analysis
from rooflens.model.roofline.roofs import Roof
from rooflens.model.summary import gpu_name
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.comparison.conditions import unlike
from rooflens.report.comparison.rows import Program, Row, limiter_words
from rooflens.report.plane.axes import DOTS, axes, seen
from rooflens.report.plane.geometry import Line
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import (
    AT,
    HEAD,
    HEIGHT,
    QUIET,
    WIDTH,
    Param,
    Spec,
    Style,
    at_spot,
    layered,
    leads,
    of_kernels,
    placed,
    specify,
    stacked,
    table,
    titled,
    unchecked,
    values,
    written,
)
from rooflens.report.plane.names import LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.path import rounded
from rooflens.report.plane.placement import Canvas, Text, around, foot_spots, ridge_spots
from rooflens.report.plane.plane import Domain, RoofSet, aired, free_edge, roofs_over
from rooflens.report.plane.plane import Place as Point
from rooflens.report.plane.plane import places as points
from rooflens.report.plane.roofs import (
    NamedRoof,
    Roofs,
    flat_name_layers,
    line_layers,
    ridge_text,
    slope_name_layers,
    slope_roof,
)
from rooflens.report.plane.viewport import SIZES, WIDE, Sheet, SizeClass, decades, point_box
from rooflens.report.roofline.labels import pipe_roof

MAX_DRAWN = 32
"""Kernels with a place in the plane, those with the biggest differences."""

MAX_LANES = 10
"""Kernels with a lane in the strip."""

CROWD = 24
LARGEST_PX2, LARGEST_IN_CROWD_PX2, SMALLEST_PX2 = 280, 160, 40
"""Areas of the longest kernel's dot and of the shortest one's: small, for it is the way between two that counts."""

NAMES_PART = 0.25
"""Part of the width that is kept for the names of flat roofs."""

TOP_SHARE = 1.08
"""Height of a plane of shares: a little over the roof."""


class Place(Struct, frozen=True):
    """Where a kernel is on one side at one level.

    Attributes:
        x: FLOP/B in the plane, share of the level's bandwidth in the strip.
        y: FLOP/s, or share of its own roof; 0 in the strip.
        radius_px: Half the width of its dot.
        unit: What x and y count: FLOP, or OP for integer tensor work.
    """

    x: float
    y: float
    radius_px: float
    bound: ShownClass
    unit: str = "FLOP"


class Move(Struct, frozen=True):
    """A kernel at one level: where it was and where it is; None on a side that lacks it."""

    row: Row
    level: str
    before: Place | None
    after: Place | None

    @property
    def places(self) -> tuple[Place, ...]:
        """The dots that are drawn."""
        return tuple(place for place in (self.before, self.after) if place)

    @property
    def anchor(self) -> Place:
        """The dot that stands for it: the one after, where there is one."""
        return self.places[-1]


class ShareSheet(Sheet, frozen=True):
    """A plane of shares drawn at one size: logarithmic across, linear up."""

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Give the pixels of an intensity and a share."""
        right = log10(x / self.x_domain[0]) / decades(self.x_domain) * self.width_px
        low, high = self.y_domain
        return right, self.height_px * (1 - (y - low) / (high - low))


class Side(Struct, frozen=True):
    """The kernels of one side by their keys, and their roofs."""

    analyses: Mapping[str, Analysis]
    roofs: RoofSet

    @property
    def gpu(self) -> str:
        """Names of its GPUs."""
        return ", ".join(dict.fromkeys(gpu_name(analysis) for analysis in self.analyses.values())) or "no kernel"

    def slope(self, level: str) -> Roof | None:
        """Give the diagonal roof of a level."""
        return next((roof for roof in self.roofs.levels if level in roof.keys), None)

    def places(self) -> Mapping[str, Mapping[str, Point]]:
        """Place its kernels: by key and level."""
        return {key: {point.level: point for point in points(analysis)} for key, analysis in self.analyses.items()}

    def ridge(self, level: str) -> float | None:
        """Find the ridge of the pipe that does most FLOPs."""
        work: defaultdict[str, float] = defaultdict(float)
        for analysis in self.analyses.values():
            for name, flop in analysis.counted_flop.items() if points(analysis) else ():
                work[name] += flop * analysis.launches
        slope = self.slope(level)
        main = max(work, key=lambda name: work[name], default="")
        pipe = next((roof for roof in self.roofs.pipes if main in roof.keys), None)
        return pipe.peak / slope.peak if pipe and slope else None


class Moves(Struct, frozen=True):
    """The plane of one program, and the strip of its kernels without FLOPs.

    Attributes:
        slides: Places in the strip.
        why_shares: Why heights are shares of roofs; empty where they are FLOP/s.
        base: The kernels of the base and their roofs; likewise `head`.
        unplaced: Drawn kernels that have neither FLOPs nor a share of bandwidth on a side that has them.
        left_out: Kernels beyond `MAX_DRAWN` or `MAX_LANES`.
    """

    why_shares: str
    gpu: str
    clock: str
    moves: tuple[Move, ...]
    slides: tuple[Move, ...]
    base: Side
    head: Side
    unplaced: int
    left_out: int

    @property
    def in_shares(self) -> bool:
        """True where heights are shares."""
        return bool(self.why_shares)

    @property
    def drawable(self) -> bool:
        """True when anything has a place."""
        return bool(self.moves or self.slides)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels at which anything stands, far to near."""
        present = {move.level for move in (*self.moves, *self.slides)}
        return tuple(level for level in LEVELS if level in present)

    @property
    def bounds(self) -> tuple[ShownClass, ...]:
        """Verdict classes of all dots."""
        dots = [place for move in (*self.moves, *self.slides) for place in (move.before, move.after) if place]
        present = {place.bound for place in dots}
        return tuple(bound for bound in SHOWN_CLASSES if bound in present)

    @property
    def pipes(self) -> tuple[Roof, ...]:
        """Flat roofs: those of the head, and those that only the base used; a plane of shares has none."""
        return () if self.in_shares else _both(self.head.roofs.pipes, self.base.roofs.pipes)

    @property
    def clocks_hz(self) -> Domain | None:
        """Lowest and highest SM clock of the side whose roofs are drawn."""
        return self.head.roofs.clocks_hz or self.base.roofs.clocks_hz

    def slope(self, level: str) -> Roof | None:
        """Give the diagonal roof of a level; a plane of shares has none."""
        return None if self.in_shares else self.head.slope(level) or self.base.slope(level)

    def ridges(self, level: str) -> list[tuple[str, float]]:
        """Name the intensities at which the roof of the main pipe turns flat, on each side of a plane of shares."""
        sides = (("before", self.base), ("after", self.head))
        found = [(f"ridge {name}", side.ridge(level)) for name, side in sides if self.in_shares]
        return [(name, x) for name, x in found if x is not None]

    def x_domain(self) -> Domain:
        """Find the range of intensities: dots and ridges of all levels with half a decade of air."""
        ridges = [x for level in self.levels for _, x in self.ridges(level)]
        slopes = [roof.peak for level in self.levels if (roof := self.slope(level))]
        ridges += [pipe.peak / slope for pipe in self.pipes for slope in slopes]
        low, high = aired([place.x for move in self.moves for place in move.places] + ridges, 3)
        # The names of flat roofs stand at their right end, clear of the diagonals.
        free = free_edge(max(ridges), low, NAMES_PART) if ridges and self.pipes else high
        return low, max(high, free)

    def y_domain(self) -> Domain:
        """Find the range of heights."""
        heights = [place.y for move in self.moves for place in move.places]
        if self.in_shares:
            return 0.0, max([TOP_SHARE, *(1.04 * height for height in heights)])
        return aired(heights + [pipe.peak for pipe in self.pipes] + self._slope_heights(), 3)

    def _slope_heights(self) -> list[float]:
        """List the heights of the diagonals over the dots: without a flat roof they are all there is."""
        return [
            slope.peak * place.x
            for move in self.moves
            for place in move.places
            if not self.pipes and (slope := self.slope(move.level))
        ]

    def sheet(self, width_px: float, height_px: float) -> Sheet:
        """Draw the plane at one size."""
        kind = ShareSheet if self.in_shares else Sheet
        return kind(self.x_domain(), self.y_domain(), width_px, height_px)


def moves(program: Program) -> Moves:
    """Place the kernels of a program on both sides."""
    comparison = program.comparison
    why = unlike(comparison)
    drawn = program.rows[:MAX_DRAWN]
    before, after = _side(drawn, "base"), _side(drawn, "head")
    radii = _Radii(drawn)
    found = tuple(_moves(drawn, before, after, radii, shares=bool(why)))
    moving = {move.row.key for move in found}
    still = [row for row in drawn if row.key not in moving]
    lanes = [row for row in still if any(_slides(row, radii))]
    clock = mean_clock_hz(comparison.head)
    return Moves(
        why_shares=why,
        gpu=before.gpu if before.gpu == after.gpu else f"{before.gpu} \u2192 {after.gpu}",
        clock=fmt.si(clock, "Hz") if clock and not why else "",
        moves=found,
        slides=tuple(slide for row in lanes[:MAX_LANES] for slide in _slides(row, radii)),
        base=before,
        head=after,
        unplaced=len(still) - len(lanes),
        left_out=len(comparison.changes) - len(drawn) + len(lanes[MAX_LANES:]),
    )


class _Radii:
    """Sizes of dots: their area grows with GPU time, on one scale for both sides."""

    def __init__(self, rows: Sequence[Row]) -> None:
        times = [t for row in rows for t in (row.timing.base.median_ns, row.timing.head.median_ns) if t]
        self._longest_ns = max(times, default=1.0)
        self._largest = LARGEST_PX2 if len(rows) <= CROWD else LARGEST_IN_CROWD_PX2

    def of(self, time_ns: float | None) -> float:
        """Work out half the width of a dot."""
        part = (time_ns or 0.0) / self._longest_ns
        return sqrt(SMALLEST_PX2 + (self._largest - SMALLEST_PX2) * part) / 2


def _side(rows: Iterable[Row], name: Literal["base", "head"]) -> Side:
    """Take the kernels of one side."""
    analyses = {row.key: analysis for row in rows if (analysis := getattr(row.change, name)) is not None}
    return Side(analyses, roofs_over(analyses.values()))


def _moves(rows: Iterable[Row], base: Side, head: Side, radii: _Radii, *, shares: bool) -> Iterator[Move]:
    """Place each kernel at each level where every side that has it has a place."""
    before, after = base.places(), head.places()
    for row in rows:
        old, new = before.get(row.key, {}), after.get(row.key, {})
        for level in LEVELS:
            was = _place(row.change.base, old.get(level), radii.of(row.timing.base.median_ns), shares=shares)
            now = _place(row.change.head, new.get(level), radii.of(row.timing.head.median_ns), shares=shares)
            if _is_whole(row, was, now):
                yield Move(row, level, was, now)


def _is_whole(row: Row, was: Place | None, now: Place | None) -> bool:
    """Return whether every side that has the kernel has a place: half a kernel would look new or gone."""
    return (was is not None) == (row.change.base is not None) and (now is not None) == (row.change.head is not None)


def _place(analysis: Analysis | None, point: Point | None, radius_px: float, *, shares: bool) -> Place | None:
    if analysis is None or point is None or (shares and not point.roof_flop_per_s):
        return None
    height = point.flop_per_s / (point.roof_flop_per_s or 1.0) if shares else point.flop_per_s
    return Place(point.intensity_flop_per_byte, height, radius_px, analysis.verdict.shown_class, point.unit)


def _slides(row: Row, radii: _Radii) -> list[Move]:
    """Place a kernel by its shares of bandwidth, at each level where every side that has it has one."""
    found = []
    for level in LEVELS:
        was = _shared(row.change.base, level, row.timing.base.median_ns, radii)
        now = _shared(row.change.head, level, row.timing.head.median_ns, radii)
        if _is_whole(row, was, now):
            found.append(Move(row, level, was, now))
    return found


def _shared(analysis: Analysis | None, level: str, time_ns: float | None, radii: _Radii) -> Place | None:
    share = analysis.levels[level].share if analysis else None
    if analysis is None or share is None:
        return None
    return Place(share, 0.0, radii.of(time_ns), analysis.verdict.shown_class)


def _both(mine: Sequence[Roof], others: Sequence[Roof]) -> tuple[Roof, ...]:
    known = {key for roof in mine for key in roof.keys}
    roofs = (*mine, *(roof for roof in others if not known & set(roof.keys)))
    return tuple(sorted(roofs, key=lambda roof: -roof.peak))


Datum = dict[str, Any]

LONG_LABEL_WIDTH = 40
ROOF_OF_SHARES = "100 % of the kernel's own roof"
NAME_WIDTH = 64
SIDES = ("before", "after")


def datasets(found: Moves) -> dict[str, list[Datum]]:
    """Make all rows of the chart.

    Keys: `k` the kernel, `a` area of a dot, `p` words with their places at every class of sizes.
    """
    rows = {move.row.key: move.row for move in (*found.moves, *found.slides)}
    data: dict[str, list[Datum]] = {
        "kernels": [
            {"k": row.key, "name": fmt.cut_middle(row.name, NAME_WIDTH), "story": row.sentence} for row in rows.values()
        ]
    }
    if found.moves:
        roofs, labels = _text_rows(found)
        data |= {
            "dots": _dot_rows(found, found.moves),
            "arrows": [_arrow_row(move) for move in found.moves if move.before and move.after],
            "roofs": roofs,
            "labels": labels,
        }
    if found.slides:
        lanes = {key: i for i, key in enumerate(dict.fromkeys(slide.row.key for slide in found.slides))}
        data |= {
            "slideDots": [row | {"lane": lanes[row["k"]]} for row in _dot_rows(found, found.slides)],
            "slideArrows": [
                _arrow_row(slide) | {"lane": lanes[slide.row.key]}
                for slide in found.slides
                if slide.before and slide.after
            ],
            "lanes": [_lane_row(slide) | {"lane": lanes[slide.row.key]} for slide in found.slides],
        }
    return data


def _dot_rows(found: Moves, moves: Sequence[Move]) -> list[Datum]:
    """Make one row per dot, large ones first, so that small ones lie on top."""
    rows = [row for move in moves for row in _dots(found, move)]
    return sorted(rows, key=lambda row: -row["a"])


def _dots(found: Moves, move: Move) -> Iterator[Datum]:
    timing = move.row.timing
    for side, place, spread, limiter in zip(
        SIDES, (move.before, move.after), (timing.base, timing.head), move.row.limiters, strict=True
    ):
        if place is not None and limiter is not None:
            yield _keys(move) | {
                "side": side,
                "x": rounded(place.x),
                "y": rounded(place.y),
                "a": round((2 * place.radius_px) ** 2),
                "bound": place.bound,
                "where": _where(found, move, place),
                "limiter": limiter_words(limiter),
                "time": fmt.duration(spread.median_ns),
            }


def _where(found: Moves, move: Move, place: Place) -> str:
    if move in found.slides:
        return f"{fmt.percent(place.x)} of its bandwidth"
    height = f"{fmt.percent(place.y)} of its own roof" if found.in_shares else fmt.si(place.y, f"{place.unit}/s")
    return f"{fmt.intensity(place.x, place.unit)}, {height}"


def _keys(move: Move) -> Datum:
    return {"k": move.row.key, "level": move.level}


def _arrow_row(move: Move) -> Datum:
    """Make the row of an arrow: `r` and `r2` are half the widths of the dots at its ends."""
    before, after = move.places
    return _keys(move) | {
        "x": rounded(before.x),
        "y": rounded(before.y),
        "x2": rounded(after.x),
        "y2": rounded(after.y),
        "r": round(before.radius_px, 1),
        "r2": round(after.radius_px, 1),
    }


def _lane_row(slide: Move) -> Datum:
    ends = [fmt.percent(place.x) if place else "" for place in (slide.before, slide.after)]
    text = " \u2192 ".join(end for end in ends if end)
    how = "" if slide.row.is_matched else f", {slide.row.change.how}"
    return _keys(slide) | {"t": f"{text}{how}", "name": fmt.cut_middle(slide.row.name, NAME_WIDTH)}


def _text_rows(found: Moves) -> tuple[list[Datum], list[Datum]]:
    """Make the lines of the roofs and the texts of every level, each with its place at every class of sizes."""
    roofs: list[Datum] = []
    labels: dict[tuple[object, ...], Datum] = {}
    for level in found.levels:
        drawn = [_placed(found, level, size) for size in SIZES]
        for key, row in _roof_rows(found, level):
            roofs.append(row | {"level": level, "p": [names.get(key) for names, _ in drawn]})
        for i, (_, texts) in enumerate(drawn):
            for label, text, place in texts:
                row = {"s": label.kind, "k": label.kernel, "level": level}
                row |= {"x": rounded(text.x), "y": rounded(text.y), "p": [None] * len(SIZES)}
                identity = (label.kind, label.kernel or place[0], level, text.x, text.y)
                labels.setdefault(identity, row)["p"][i] = place
    return roofs, list(labels.values())


def _roof_rows(found: Moves, level: str) -> Iterator[tuple[str, Datum]]:
    """List the lines of the roofs at a level by the keys of their names."""
    roofs = _roofs(found, level)
    for slope in roofs.slopes:
        yield slope.key, {"kind": "slope", "v": rounded(slope.peak), "e": rounded(roofs.top)}
    for flat in roofs.flats:
        yield flat.key, {"kind": "flat", "v": rounded(flat.peak), "c": rounded(roofs.ridge(flat))}
    for _, x in found.ridges(level):
        yield "", {"kind": "ridge", "x": rounded(x)}


def _roofs(found: Moves, level: str, size: SizeClass = WIDE) -> Roofs:
    slope = found.slope(level)
    slopes = (slope_roof(slope.keys, slope.peak),) if slope else ()
    flats = [pipe_roof(pipe, found.clocks_hz, size) for pipe in found.pipes]
    if found.in_shares:
        flats = [NamedRoof("roof", 1.0, (ROOF_OF_SHARES, "its own roof"))]
    return Roofs(slopes, tuple(flats), found.x_domain(), found.y_domain())


class _Label(Struct, frozen=True):
    """A text at a dot or a ridge; `texts` are its alternatives, the best one first."""

    kind: str
    kernel: str
    texts: tuple[Text, ...]


def _placed(found: Moves, level: str, size: SizeClass) -> tuple[dict[str, Any], list[tuple[_Label, Text, Any]]]:
    """Place the text of one level at one class of sizes: roofs, then the biggest differences, then ridges."""
    view = found.sheet(size.width_px, size.height_px)
    roofs = _roofs(found, level, size)
    here = [move for move in found.moves if move.level == level]
    dots = [point_box(view.at(place.x, place.y), place.radius_px) for move in here for place in move.places]
    lines = [Line(*view.at(x, 0), *view.at(x, 1)) for _, x in found.ridges(level)]
    lines += [
        Line(*view.at(move.before.x, move.before.y), *view.at(move.after.x, move.after.y))
        for move in here
        if move.before and move.after
    ]
    canvas = Canvas(view, lines=[*roofs.lines(view), *lines])
    names = roofs.name(canvas, dots)
    canvas.taken.extend(dots)
    texts: list[tuple[_Label, Text, Any]] = []
    for label in _labels(found, level, size):
        tries = ((label, text, place) for text in label.texts if (place := canvas.place(text)))
        texts += islice(tries, 1)
    return names, texts


def _labels(found: Moves, level: str, size: SizeClass) -> Iterator[_Label]:
    """Ask for names of the kernels with the biggest differences, whole or cut short, then for ridges."""
    widths = (NARROW_LABEL_WIDTH,) if size.narrow else (LONG_LABEL_WIDTH, LABEL_WIDTH)
    named = [short_names({**found.base.analyses, **found.head.analyses}, width) for width in widths]
    here = [move for move in found.moves if move.level == level]
    for move in here[: size.names]:
        how = "" if move.row.is_matched else f" ({move.row.change.how})"
        words = tuple(dict.fromkeys(names[move.row.key] + how for names in named))
        texts = tuple(Text(words, place.x, place.y, around(place.radius_px)) for place in reversed(move.places))
        yield _Label("name", move.row.key, texts)
    for name, x in found.ridges(level):
        yield _Label("ridge", "", (Text((f"{name} {fmt.intensity(x)}",), x, 0.0, foot_spots()),))
    slope = found.slope(level)
    for pipe in found.pipes if slope else ():
        x = pipe.peak / slope.peak if slope else 0.0
        yield _Label("ridge", "", (Text((ridge_text(x),), x, pipe.peak, ridge_spots()),))


LANE_PX = 44

HEAD_PX = 4.5
"""Half the length of an arrow's head."""

LEAST_ARROW_PX = 10
"""A dot that moved less than this beyond its own size has no arrow."""

AT_LEVEL = "datum.level === level"

_LEVEL = "({dram: 'DRAM', l2: 'L2', l1: 'L1', smem: 'SMEM'})[datum.level]"
_TOOLTIP = (
    f"{{title: datum.name, 'Side': datum.side, 'Place': datum.where + ' at ' + {_LEVEL}, 'Limiter': datum.limiter, "
    "'Time': datum.time, 'What became of it': datum.story}"
)
_DESCRIPTION = "datum.name + ', ' + datum.side + ', ' + datum.where + ', ' + datum.limiter"


@unchecked
def arrows_spec(found: Moves, *, title: str) -> Spec:
    """Specify the plane, and the strip below it when kernels without FLOPs exist."""
    parts = ([_plane_chart(found)] if found.moves else []) + ([_strip_chart(found)] if found.slides else [])
    params = [_level(found.levels), *values(w=WIDTH, h=HEIGHT)]
    if found.moves:
        base = [fmt.round_significant(end, 6) for end in (*found.x_domain(), *found.y_domain())]
        # Both axes zoom by one factor; shares have a roof and a floor, and need none.
        params += [*values(base=base), *seen(zooms=not found.in_shares, is_log=not found.in_shares)]
    undrawn = found.unplaced + found.left_out
    more = f" Not drawn: {fmt.count(undrawn, 'kernel')}." if undrawn else ""
    subtitle = f"Hollow: before. Filled: after. Area: GPU time.{more}"
    chart = stacked(parts, title=titled(title, subtitle))
    return specify(chart, params, datasets(found))


def _level(levels: Sequence[str]) -> Param:
    """Let a reader choose the memory level, where there are several."""
    radios = {"input": "radio", "options": [*levels], "labels": [*map(resource_label, levels)], "name": "Memory level"}
    return {"name": "level", "value": levels[0]} | ({"bind": radios} if len(levels) > 1 else {})


def _plane_chart(found: Moves) -> alt.LayerChart:
    dots = _dots_layer(_at_level("dots"), found, axes(shares=found.in_shares))
    if not found.in_shares:
        dots = dots.properties(name=DOTS)
    names, ridges = (
        placed(_at_level("labels").transform_filter(f"datum.s === '{kind}'")) for kind in ("name", "ridge")
    )
    halo, label = written(names, "label", **at_spot())
    # Words stand on cleared ground under the dots, so that none is cut.
    layers = [
        *_roof_layers(found),
        halo,
        *written(ridges, "note", **at_spot()),
        leads(names),
        *_arrow_layers(found),
        dots,
        label,
    ]
    view = alt.ViewBackground() if found.in_shares else alt.ViewBackground(cursor="grab")
    return layered(layers, name="plane", width=WIDTH, height=HEIGHT, view=view)


def _at_level(data: str) -> alt.Chart:
    return table(data).transform_filter(AT_LEVEL)


def _roof_layers(found: Moves) -> list[alt.Chart]:
    """Draw the roofs of the chosen level with their names, and in a plane of shares its ridges."""
    ridges, slopes, flats = (
        _at_level("roofs").transform_filter(f"datum.kind === '{kind}'") for kind in ("ridge", "slope", "flat")
    )
    foot = ridges.transform_calculate(bottom="0", top="1")
    return [
        foot.mark_rule(style="note", strokeDash=[2, 4], **QUIET).encode(
            x=alt.X("x:Q"), y=alt.Y("bottom:Q"), y2=alt.Y2("top")
        ),
        *(line_layers(slopes, flats)[1:] if found.in_shares else line_layers(slopes, flats)),
        *flat_name_layers(flats),
        *([] if found.in_shares else slope_name_layers(slopes)),
    ]


def _arrow_layers(found: Moves) -> list[alt.Chart]:
    """Draw an arrow from the edge of the dot before to that of the dot after, where there is room between them."""
    up = "datum.y2 - datum.y" if found.in_shares else "log(datum.y2 / datum.y) / LN10"
    rows = _turned(_at_level("arrows"), "log(datum.x2 / datum.x) / LN10 / spanX * w", f"({up}) / -spanY * h")
    return [
        _shaft(rows, {**AT, "x2": alt.X2("x2"), "y2": alt.Y2("y2")}),
        _tip(rows, {"x": alt.X("x2:Q"), "y": alt.Y("y2:Q")}),
    ]


def _turned(rows: alt.Chart, right: str, down: str) -> alt.Chart:
    """Work out direction and length of arrows in pixels, and leave out those without room."""
    rows = rows.transform_calculate(right=right, down=down)
    rows = rows.transform_calculate(
        turn="atan2(datum.down, datum.right)", far="sqrt(datum.right * datum.right + datum.down * datum.down)"
    )
    return rows.transform_filter(f"datum.far >= datum.r + datum.r2 + {LEAST_ARROW_PX}")


def _shaft(rows: alt.Chart, at: Style) -> alt.Chart:
    off = f"(datum.r2 + {2 * HEAD_PX - 1:g})"
    return rows.mark_rule(
        style="gap",
        strokeWidth=1.5,
        xOffset=alt.ExprRef("cos(datum.turn) * datum.r"),
        yOffset=alt.ExprRef("sin(datum.turn) * datum.r"),
        x2Offset=alt.ExprRef(f"-cos(datum.turn) * {off}"),
        y2Offset=alt.ExprRef(f"-sin(datum.turn) * {off}"),
        **QUIET,
    ).encode(**at)


def _tip(rows: alt.Chart, at: Style) -> alt.Chart:
    off = f"(datum.r2 + {HEAD_PX + 1:g})"
    return rows.mark_point(
        style="label",
        shape=HEAD,
        filled=True,
        size=(2 * HEAD_PX) ** 2,
        angle=alt.ExprRef("datum.turn * 57.2958"),
        xOffset=alt.ExprRef(f"-cos(datum.turn) * {off}"),
        yOffset=alt.ExprRef(f"-sin(datum.turn) * {off}"),
        **QUIET,
    ).encode(**at)


def _dots_layer(rows: alt.Chart, found: Moves, at: Style) -> alt.Chart:
    """Draw the dots: shape and colour by verdict, hollow before and filled after."""
    dots = rows.transform_lookup("k", of_kernels(("name", "story"))).mark_point(
        filled=True,
        strokeWidth=2,
        clip=True,
        tooltip=alt.ExprRef(_TOOLTIP),
        description=alt.ExprRef(_DESCRIPTION),
        ariaRoleDescription="kernel",
    )
    return dots.encode(
        **at,
        **verdict_channels(found.bounds),
        size=alt.Size("a:Q", scale=None, legend=None),
        fillOpacity=alt.condition("datum.side === 'before'", alt.value(0), alt.value(0.78)),
    )


def _strip_chart(found: Moves) -> alt.LayerChart:
    """Draw kernels without FLOPs by their share of the level's bandwidth, a lane for each."""
    lanes = len({slide.row.key for slide in found.slides})
    widest = max([1.0, *(place.x for slide in found.slides for place in slide.places)])
    title = "Without FLOPs: share of the level's bandwidth"
    look = alt.Axis(format=".0%", tickCount=5, title=title, titlePadding=12)
    scale = alt.Scale(domain=[0, widest], nice=False)
    lane = {"y": alt.Y("at:Q", axis=None, scale=alt.Scale(domain=[lanes, 0], nice=False, zero=False))}
    x, x2 = ({"x": alt.X(f"{field}:Q", axis=look, scale=scale)} for field in ("x", "x2"))
    names = _at_level("lanes").transform_calculate(at="datum.lane + 0.2")
    quiet: Style = {"baseline": "middle", **QUIET}
    across = f"(datum.x2 - datum.x) / {widest:.6g} * w"
    arrows = _turned(_at_level("slideArrows").transform_calculate(at="datum.lane + 0.68"), across, "0")
    layers = [
        names.mark_text(style="label", align="left", limit=alt.ExprRef("w - 150"), **quiet).encode(
            **lane, text=alt.Text("name:N"), x=alt.value(0)
        ),
        names.mark_text(style="note", align="right", **quiet).encode(
            **lane, text=alt.Text("t:N"), x=alt.value("width")
        ),
        _shaft(arrows, {**x, **lane, "x2": alt.X2("x2")}),
        _tip(arrows, {**x2, **lane}),
        _dots_layer(_at_level("slideDots").transform_calculate(at="datum.lane + 0.68"), found, {**x, **lane}),
    ]
    return layered(layers, width=WIDTH, height=LANE_PX * lanes)
