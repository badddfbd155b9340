"""Roofs of another GPU in the plane, by its datasheet: lines, names, ridges, and the range that holds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from rooflens import format as fmt
from rooflens.format import round_significant
from rooflens.model.predict.other_gpu import gpu_roofs, peak_key
from rooflens.model.roofline.datasheets import load_gpus
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.plane.placement import Wish, place, text_box
from rooflens.report.plane.plane import HALF_DECADE
from rooflens.report.plane.roof_names import (
    Flat,
    Slope,
    at_level,
    drawing,
    name_boxes,
    name_flat,
    name_slope,
    point_boxes,
)
from rooflens.report.plane.viewport import Sheet
from rooflens.report.roofline.label_rows import flats, slopes
from rooflens.report.roofline.labels import ridge_spots, ridge_text
from rooflens.report.roofline.rows import rounded
from rooflens.report.roofline.selection import own_boxes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.model.predict.other_gpu import Roofs
    from rooflens.model.roofline.datasheets import Datasheet
    from rooflens.report.plane.plane import Domain, Plane
    from rooflens.report.plane.roof_names import Drawing
    from rooflens.report.roofline.label_rows import Sized
    from rooflens.report.roofline.rows import Row


MAX_OBSTACLES = 40
"""Points that names keep clear of, the longest launches' first."""

STEP_PX = 20
"""How far apart the places are that the name of a slope tries: there are many GPUs, and one is shown at a time."""

Domains = tuple["Domain", "Domain"]

Line = dict[str, Any]

MAX_PIPES = 3
"""Flat roofs of a GPU, the highest of the plane's: 60 GPUs with so many take about 40 kB."""

DIGITS = 4


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


def datasheet_rows(plane: Plane, gpus: Iterable[Datasheet] | None = None) -> list[Line]:
    """Make two rows per line, from left to right, for the roofs that the plane's launches use.

    Args:
        plane: The roofline of one GPU.
        gpus: All known ones by default.

    Returns:
        Rows with `gpu` (its id), `key`, `kind` (`level` or `pipe`), `x` and `y`. Where the line's name belongs, at the
        left end of a slope and the right one of a flat roof, `label` is there too. Lines may leave the plane's top.
    """
    if not plane.points:
        return []
    keys = _pipe_keys(plane)
    return [row for gpu in (load_gpus() if gpus is None else gpus) for row in _line_rows(gpu, plane, keys)]


def short_name(gpu: Datasheet) -> str:
    """Name a GPU without its maker."""
    return gpu.name.removeprefix("NVIDIA ")


def _pipe_keys(plane: Plane) -> tuple[str, ...]:
    """List the plane's pipes by the names of the GPU files, the highest roof first."""
    return tuple(dict.fromkeys(peak_key(key) for roof in plane.pipe_roofs for key in roof.keys))[:MAX_PIPES]


def _line_rows(gpu: Datasheet, plane: Plane, keys: tuple[str, ...]) -> list[Line]:
    """Draw the slope up to the highest flat roof, and each flat roof from the slope to the right edge."""
    roofs = gpu_roofs(gpu)
    lines = _merged(roofs, keys)
    (x_lo, x_hi), (y_lo, _) = plane.x_domain(), plane.y_domain()
    bandwidth = roofs.bandwidth_bytes_per_s
    end = min(max((peak for peak, _ in lines), default=x_hi * bandwidth) / bandwidth, x_hi)
    start = min(max(x_lo, y_lo / bandwidth), end)
    name = short_name(gpu)
    rows = [
        _row(gpu, "dram", (start, start * bandwidth), f"{name} {resource_label('dram')} {fmt.si(bandwidth, 'B/s')}"),
        _row(gpu, "dram", (end, end * bandwidth)),
    ]
    for peak, names in lines:
        if peak / bandwidth < x_hi:
            label = f"{name} {', '.join(resource_label(key) for key in names)} {fmt.si(peak, 'FLOP/s')}"
            rows += [_row(gpu, names[0], (peak / bandwidth, peak)), _row(gpu, names[0], (x_hi, peak), label)]
    return rows


def _merged(roofs: Roofs, keys: tuple[str, ...]) -> list[tuple[float, list[str]]]:
    """Give pipes of one peak one line."""
    lines: dict[float, list[str]] = {}
    for key in keys:
        if key in roofs.peaks_per_s:
            lines.setdefault(roofs.peaks_per_s[key], []).append(key)
    return sorted(lines.items(), key=lambda line: -line[0])


def _row(gpu: Datasheet, key: str, place: tuple[float, float], label: str = "") -> Line:
    x, y = (round_significant(value, DIGITS) for value in place)
    row: Line = {"gpu": gpu.id, "key": key, "kind": "level" if key == "dram" else "pipe", "x": x}
    # Whole numbers of FLOP/s take less room without their `.0`.
    return row | {"y": int(y) if y >= 1 else y} | ({"label": label} if label else {})
