"""Datasheet roofs for the roofline: HBM slope and flat roofs of every known GPU, as rows the chart picks from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.model.gpu import load_gpus
from rooflens.model.units import round_significant
from rooflens.model.whatif import gpu_roofs, peak_key
from rooflens.model.words import resource_label
from rooflens.report import format as fmt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflens.model.gpu import Gpu
    from rooflens.model.whatif import Roofs
    from rooflens.report.roofline_data import Plane

Row = dict[str, Any]

MAX_PIPES = 3
"""Flat roofs of a GPU, the highest of the plane's: 60 GPUs with so many take about 40 kB."""

DIGITS = 4


def datasheet_rows(plane: Plane, gpus: Iterable[Gpu] | None = None) -> list[Row]:
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
    return [row for gpu in (load_gpus() if gpus is None else gpus) for row in _gpu_rows(gpu, plane, keys)]


def short_name(gpu: Gpu) -> str:
    """Name a GPU without its maker."""
    return gpu.name.removeprefix("NVIDIA ")


def _pipe_keys(plane: Plane) -> tuple[str, ...]:
    """List the plane's pipes by the names of the GPU files, the highest roof first."""
    return tuple(dict.fromkeys(peak_key(key) for roof in plane.pipe_roofs for key in roof.keys))[:MAX_PIPES]


def _gpu_rows(gpu: Gpu, plane: Plane, keys: tuple[str, ...]) -> list[Row]:
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


def _row(gpu: Gpu, key: str, place: tuple[float, float], label: str = "") -> Row:
    x, y = (round_significant(value, DIGITS) for value in place)
    row: Row = {"gpu": gpu.id, "key": key, "kind": "level" if key == "dram" else "pipe", "x": x}
    # Whole numbers of FLOP/s take less room without their `.0`.
    return row | {"y": int(y) if y >= 1 else y} | ({"label": label} if label else {})
