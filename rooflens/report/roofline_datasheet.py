"""Roofs of another GPU in the plane, by its datasheet: lines, names, ridges, and the range that holds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from rooflens.report.domains import HALF_DECADE
from rooflens.report.picked_boxes import own_boxes
from rooflens.report.placement import Wish, place, text_box
from rooflens.report.point_labels import ridge_spots, ridge_text
from rooflens.report.roof_labels import (
    Flat,
    Slope,
    at_level,
    drawing,
    name_boxes,
    name_flat,
    name_slope,
    point_boxes,
)
from rooflens.report.roofline_rows import rounded
from rooflens.report.roofline_texts import flats, slopes
from rooflens.report.sheet import Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.report.domains import Domain
    from rooflens.report.roof_labels import Drawing
    from rooflens.report.roofline_data import Plane
    from rooflens.report.roofline_rows import Row
    from rooflens.report.roofline_texts import Sized

MAX_OBSTACLES = 40
"""Points that names keep clear of, the longest launches' first."""

STEP_PX = 20
"""How far apart the places are that the name of a slope tries: there are many GPUs, and one is shown at a time."""

Domains = tuple["Domain", "Domain"]


@dataclass(frozen=True, slots=True)
class Sheetlines:
    """The roofs of one GPU by its datasheet.

    Attributes:
        bytes_per_s: Slope of its memory, with its name.
        flop_per_s: Flat roofs with their names, the highest first.
    """

    gpu: str
    bytes_per_s: float
    name: str
    flop_per_s: tuple[tuple[float, str], ...]


def gather(rows: Iterable[Row]) -> list[Sheetlines]:
    """Read the lines of each GPU from rows with `gpu`, `kind`, `x`, `y` and, at one end of each line, `label`."""
    by_gpu: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("label"):
            by_gpu.setdefault(row["gpu"], []).append(row)
    return [lines for gpu, own in by_gpu.items() if (lines := _lines(gpu, own))]


def _lines(gpu: str, rows: Sequence[Row]) -> Sheetlines | None:
    slope = next((row for row in rows if row["kind"] == "level"), None)
    if slope is None:
        return None
    flat = sorted(((row["y"], row["label"]) for row in rows if row["kind"] == "pipe"), reverse=True)
    return Sheetlines(gpu, slope["y"] / slope["x"], slope["label"], tuple(flat))


def reach(plane: Plane, lines: Sheetlines) -> Domains:
    """Find the range that holds the plane and a GPU's ridges, with half a decade of air."""
    (x_lo, x_hi), (y_lo, y_hi) = plane.x_domain(), plane.y_domain()
    peaks = [peak for peak, _ in lines.flop_per_s]
    corners = [peak / lines.bytes_per_s for peak in peaks]
    return (
        (min(x_lo, min(corners, default=inf) / HALF_DECADE), max(x_hi, max(corners, default=0.0) * HALF_DECADE)),
        (min(y_lo, min(peaks, default=inf) / HALF_DECADE), max(y_hi, max(peaks, default=0.0) * HALF_DECADE)),
    )


def widest(plane: Plane, gpus: Iterable[Sheetlines]) -> Domains | None:
    """Find the range that holds the roofs of every GPU; None without any."""
    found = [reach(plane, lines) for lines in gpus]
    if not found:
        return None
    lows = [min(domains[axis][0] for domains in found) for axis in (0, 1)]
    highs = [max(domains[axis][1] for domains in found) for axis in (0, 1)]
    return (lows[0], highs[0]), (lows[1], highs[1])


def reaches(plane: Plane, gpus: Iterable[Sheetlines]) -> Mapping[str, list[float]]:
    """Write the range of the plane by GPU, its own under an empty name: lowest and highest x, lowest and highest y."""
    own = plane.x_domain(), plane.y_domain()
    found = {"": own} | {lines.gpu: reach(plane, lines) for lines in gpus}
    return {gpu: [*x, *y] for gpu, (x, y) in found.items() if not gpu or (x, y) != own}


def line_rows(plane: Plane, sizes: Sequence[Sized], gpus: Iterable[Sheetlines]) -> list[Row]:
    """Make one row per line, with the places of its words at each class of sizes.

    Keys: `v` bytes or FLOP per second, `t` name, `p` its places; of a slope `e` the highest flat roof, where it ends;
    of a flat roof `c` the intensity of its corner, `r` that in words, `q` places of these.
    """
    return [row for lines in gpus for row in _gpu_rows(plane, sizes, lines)]


def _gpu_rows(plane: Plane, sizes: Sequence[Sized], lines: Sheetlines) -> list[Row]:
    drawn = [_drawing(plane, one, lines) for one in sizes]
    top = lines.flop_per_s[0][0] if lines.flop_per_s else None
    rows: list[Row] = []
    for peak, name in lines.flop_per_s:
        corner = peak / lines.bytes_per_s
        flat = Flat(name, peak, _texts(name))
        found = [name_flat(flat, [one], [[]]) for one in drawn]
        wish = Wish(ridge_text(corner), corner, peak, ridge_spots())
        ridges = [place(wish, [one.canvas]) for one in drawn]
        rows.append(
            {"gpu": lines.gpu, "v": rounded(peak), "c": rounded(corner), "t": flat.texts[0], "r": wish.text}
            | {"p": [[_unless(flat.texts[0], spot[0]), *spot[1].row] if spot else None for spot in found]}
            | {"q": [spot.row if spot else None for spot in ridges]}
        )
    slope = Slope(lines.name, lines.bytes_per_s, top, _texts(lines.name), STEP_PX)
    along = [name_slope(slope, [one], []) for one in drawn]
    row: Row = {
        "gpu": lines.gpu,
        "v": rounded(lines.bytes_per_s),
        "t": slope.texts[0],
        "p": [[_unless(slope.texts[0], one.text), one.part, one.side] if one else None for one in along],
    }
    return [row | ({"e": rounded(top)} if top else {}), *rows]


def _texts(name: str) -> tuple[str, str]:
    return f"{name}, datasheet", name


def _unless(usual: str, text: str) -> str:
    """Leave a text out where it is the usual one of its row."""
    return "" if text == usual else text


def _drawing(plane: Plane, one: Sized, lines: Sheetlines) -> Drawing:
    """Draw the plane over the GPU's range, with all that is seen of the plane at first."""
    x, y = reach(plane, lines)
    sheet = Sheet(x, y, one.size.widths_px[0], one.size.height_px)
    drawn = drawing(sheet, plane)
    boxes = name_boxes(slopes(plane), flats(plane, one.size), one.names, sheet)
    boxes += [text_box(label.wish, label.spot, sheet.at) for label in one.labels if label.spot]
    boxes += own_boxes(one.first, one.first.picked, one.size, sheet.at)
    boxes += point_boxes(plane, at_level(plane, one.first.level)[:MAX_OBSTACLES], sheet)
    return replace(drawn, canvas=replace(drawn.canvas, taken=boxes))
