"""The dots, arrows, roofs and words of a comparison as the rows that its roofline draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct

from rooflens import format as fmt
from rooflens.report.comparison.plane import Move, Moves, Place
from rooflens.report.comparison.rows import limiter_words
from rooflens.report.plane.geometry import Line
from rooflens.report.plane.names import LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.path import rounded
from rooflens.report.plane.placement import Canvas, Text, around, foot_spots, ridge_spots
from rooflens.report.plane.roofs import NamedRoof, Roofs, ridge_text, slope_roof
from rooflens.report.plane.viewport import SIZES, WIDE, SizeClass, point_box
from rooflens.report.roofline.labels import pipe_roof

Row = dict[str, Any]

LONG_LABEL_WIDTH = 40
ROOF_OF_SHARES = "100 % of the kernel's own roof"
NAME_WIDTH = 64
SIDES = ("before", "after")


def datasets(found: Moves) -> dict[str, list[Row]]:
    """Make all rows of the chart.

    Keys: `k` and `g` the kernel, `a` area of a dot, `p` words with their places at every class of sizes.
    """
    rows = {move.row.key: move.row for move in (*found.moves, *found.slides)}
    data: dict[str, list[Row]] = {
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


def _dot_rows(found: Moves, moves: Sequence[Move]) -> list[Row]:
    """Make one row per dot, large ones first, so that small ones lie on top."""
    rows = [row for move in moves for row in _dots(found, move)]
    return sorted(rows, key=lambda row: -row["a"])


def _dots(found: Moves, move: Move) -> Iterator[Row]:
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


def _keys(move: Move) -> Row:
    return {"k": move.row.key, "g": move.row.key, "level": move.level}


def _arrow_row(move: Move) -> Row:
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


def _lane_row(slide: Move) -> Row:
    ends = [fmt.percent(place.x) if place else "" for place in (slide.before, slide.after)]
    text = " \u2192 ".join(end for end in ends if end)
    how = "" if slide.row.is_matched else f", {slide.row.change.how}"
    return _keys(slide) | {"t": f"{text}{how}", "name": fmt.cut_middle(slide.row.name, NAME_WIDTH)}


def _text_rows(found: Moves) -> tuple[list[Row], list[Row]]:
    """Make the lines of the roofs and the texts of every level, each with its place at every class of sizes."""
    roofs: list[Row] = []
    labels: dict[tuple[object, ...], Row] = {}
    for level in found.levels:
        drawn = [_placed(found, level, size) for size in SIZES]
        for key, row in _roof_rows(found, level):
            roofs.append(row | {"level": level, "p": [names.get(key) for names, _ in drawn]})
        for i, (_, texts) in enumerate(drawn):
            for label, text, place in texts:
                row = {"s": label.kind, "g": label.kernel, "k": label.kernel, "level": level}
                row |= {"x": rounded(text.x), "y": rounded(text.y), "p": [None] * len(SIZES)}
                identity = (label.kind, label.kernel or place[0], level, text.x, text.y)
                labels.setdefault(identity, row)["p"][i] = place
    return roofs, list(labels.values())


def _roof_rows(found: Moves, level: str) -> Iterator[tuple[str, Row]]:
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
