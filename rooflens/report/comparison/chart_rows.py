"""The dots, arrows, roofs and words of a comparison as the rows that its roofline draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens import format as fmt
from rooflens.report.comparison.labels import place_text
from rooflens.report.comparison.rows import wall_words
from rooflens.report.plane.viewport import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflens.report.comparison.labels import Placed, Text
    from rooflens.report.comparison.plane import Move, Moves, Place
    from rooflens.report.plane.placement import Spot

    Row = dict[str, Any]

NAME_WIDTH = 64
SIDES = ("before", "after")
BEYOND = 1e4
"""Lines go so much farther than what is seen: a reader who pans must not find their ends."""


def datasets(found: Moves) -> dict[str, list[Row]]:
    """Make all rows of the chart.

    Keys: `k` and `g` the kernel, `a` area of a dot, `p` places of text and `ts` its words at every class of sizes.
    """
    rows = {move.row.key: move.row for move in (*found.moves, *found.slides)}
    data: dict[str, list[Row]] = {
        "kernels": [
            {"k": row.key, "name": fmt.cut_middle(row.name, NAME_WIDTH), "story": row.sentence} for row in rows.values()
        ]
    }
    if found.moves:
        placed = {level: [place_text(found, level, size) for size in SIZES] for level in found.levels}
        data |= {
            "dots": _dot_rows(found, found.moves),
            "arrows": [_arrow_row(move) for move in found.moves if move.before and move.after],
            "roofs": [row for level in found.levels for row in _roof_rows(found, level, placed[level])],
            "labels": [row for level in found.levels for row in _label_rows(level, placed[level])],
        }
    if found.slides:
        lanes = {key: i for i, key in enumerate(dict.fromkeys(slide.row.key for slide in found.slides))}
        data |= {
            "slideDots": [row | {"lane": lanes[row["k"]]} for row in _dot_rows(found, found.slides)],
            "slideArrows": [
                _arrow_row(one) | {"lane": lanes[one.row.key]} for one in found.slides if one.before and one.after
            ],
            "lanes": [_lane_row(one) | {"lane": lanes[one.row.key]} for one in found.slides],
        }
    return data


def _dot_rows(found: Moves, moves: Sequence[Move]) -> list[Row]:
    """Make one row per dot, large ones first, so that small ones lie on top."""
    rows = [row for move in moves for row in _dots(found, move)]
    return sorted(rows, key=lambda row: -row["a"])


def _dots(found: Moves, move: Move) -> Iterator[Row]:
    timing = move.row.timing
    for side, place, spread, wall in zip(
        SIDES, (move.before, move.after), (timing.base, timing.head), move.row.walls, strict=True
    ):
        if place is not None and wall is not None:
            yield _keys(move) | {
                "side": side,
                "x": _round(place.x),
                "y": _round(place.y),
                "a": round((2 * place.radius_px) ** 2),
                "bound": place.bound,
                "where": _where(found, move, place),
                "wall": wall_words(wall),
                "time": fmt.duration(spread.median_ns),
            }


def _where(found: Moves, move: Move, place: Place) -> str:
    if move in found.slides:
        return f"{fmt.percent(place.x)} of its bandwidth"
    height = f"{fmt.percent(place.y)} of its own roof" if found.in_shares else fmt.si(place.y, "FLOP/s")
    return f"{fmt.intensity(place.x)}, {height}"


def _keys(move: Move) -> Row:
    return {"k": move.row.key, "g": move.row.key, "level": move.level}


def _arrow_row(move: Move) -> Row:
    """Make the row of an arrow: `r` and `r2` are half the widths of the dots at its ends."""
    before, after = move.places
    return _keys(move) | {
        "x": _round(before.x),
        "y": _round(before.y),
        "x2": _round(after.x),
        "y2": _round(after.y),
        "r": round(before.radius_px, 1),
        "r2": round(after.radius_px, 1),
    }


def _lane_row(slide: Move) -> Row:
    ends = [fmt.percent(one.x) if one else "" for one in (slide.before, slide.after)]
    text = " \u2192 ".join(end for end in ends if end)
    how = "" if slide.row.is_matched else f", {slide.row.change.how}"
    return _keys(slide) | {"t": f"{text}{how}", "name": fmt.cut_middle(slide.row.name, NAME_WIDTH)}


def _roof_rows(found: Moves, level: str, placed: Sequence[Placed]) -> Iterator[Row]:
    """Make the lines of the roofs at a level, each with its name's place at every class of sizes."""
    (low, high), (bottom, top) = found.x_domain(), found.y_domain()
    if found.in_shares:
        yield {"level": level, "kind": "flat", "x": low, "y": 1, "x2": high, "y2": 1} | _flat_places(placed, 0)
        for _, x in found.ridges(level):
            yield {"level": level, "kind": "ridge", "x": _round(x), "y": 0, "x2": _round(x), "y2": 1}
        return
    slope = found.slope(level)
    highest = max((pipe.peak for pipe in found.pipes), default=top)
    if slope:
        start, stop = max(low, bottom / slope.peak), min(high, min(top, highest) / slope.peak)
        along = [one.slope for one in placed]
        places = [start * (stop / start) ** one.part if one else None for one in along]
        yield {
            "level": level,
            "kind": "slope",
            "x": _round(start / BEYOND),
            "y": _round(start / BEYOND * slope.peak),
            "x2": _round(stop),
            "y2": _round(stop * slope.peak),
            "ts": [one.text if one else "" for one in along],
            "px": [_round(x) if x else None for x in places],
            "py": [_round(x * slope.peak) if x else None for x in places],
            "up": [one.side if one else 0 for one in along],
        }
    for i, pipe in enumerate(found.pipes):
        start = min(high, max(low, pipe.peak / slope.peak)) if slope else low
        ends = {"x": _round(start), "y": _round(pipe.peak), "x2": high * BEYOND, "y2": _round(pipe.peak)}
        yield {"level": level, "kind": "flat"} | ends | _flat_places(placed, i)


def _flat_places(placed: Sequence[Placed], at: int) -> Row:
    found = [one.flats[at] for one in placed]
    return {"ts": [one[0] if one else "" for one in found], "p": [_spot(one[1] if one else None) for one in found]}


def _label_rows(level: str, placed: Sequence[Placed]) -> list[Row]:
    """Make one row per text with its place at every class of sizes; what fits in none has no row."""
    rows: dict[tuple[str, float, float, str], Row] = {}
    for i, one in enumerate(placed):
        for kind, texts in (("name", one.names), ("ridge", one.ridges)):
            for text in texts:
                if text.spot is not None:
                    row = rows.setdefault((kind, text.x, text.y, text.key), _label_row(kind, level, text, len(placed)))
                    row["p"][i] = _spot(text.spot)
                    row["ts"][i] = text.text
    return list(rows.values())


def _label_row(kind: str, level: str, text: Text, sizes: int) -> Row:
    place = {"level": level, "x": _round(text.x), "y": _round(text.y)}
    return {"s": kind, "g": text.key, "k": text.key, **place, "p": [None] * sizes, "ts": [""] * sizes}


def _spot(spot: Spot | None) -> list[float] | None:
    return spot.row if spot else None


def _round(value: float) -> float:
    return fmt.round_significant(value, 5)
