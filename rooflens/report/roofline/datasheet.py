"""Roofs of other GPUs by their datasheets: their numbers, and the range of the plane that holds them.

The chart draws those of the GPU that is chosen, and works out from the numbers where their names stand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from rooflens.format import round_significant
from rooflens.model.predict.other_gpu import Roofs, gpu_roofs, peak_key
from rooflens.model.roofline.datasheets import ARCHITECTURES, Datasheet, load_datasheets
from rooflens.report.plane.plane import HALF_DECADE, Domain, Plane
from rooflens.report.plane.roofs import joined
from rooflens.report.roofline.rows import rounded

Domains = tuple[Domain, Domain]

MAX_PIPES = 3
"""Flat roofs of a GPU, the highest of the plane's."""

DIGITS = 4


class DatasheetRoofs(Struct, frozen=True):
    """The roofs of one GPU by its datasheet.

    Attributes:
        gpu: Its id.
        name: Its name without the maker.
        bytes_per_s: Slope of its memory.
        flop_per_s: Flat roofs with the names of their pipes, the highest first.
    """

    gpu: str
    name: str
    bytes_per_s: float
    flop_per_s: tuple[tuple[float, str], ...]

    @property
    def row(self) -> dict[str, Any]:
        """Write it as the chart's data hold it; each flat roof with its name and the one above it."""
        above = (None, *(rounded(peak) for peak, _ in self.flop_per_s))
        flat = [[rounded(peak), name, high] for (peak, name), high in zip(self.flop_per_s, above, strict=False)]
        return {"gpu": self.gpu, "name": self.name, "bytes": rounded(self.bytes_per_s), "flop": flat}


def datasheet_roofs(plane: Plane, gpus: Iterable[Datasheet] | None = None) -> list[DatasheetRoofs]:
    """List the roofs that the plane's launches use, for each GPU, by default all that are known."""
    if not plane.points:
        return []
    # The pipes of the plane by the names of the GPU files, the highest roof first.
    keys = list(dict.fromkeys(peak_key(key) for roof in plane.pipe_roofs for key in roof.keys))[:MAX_PIPES]
    return [_roofs_of(gpu, gpu_roofs(gpu), keys) for gpu in (load_datasheets() if gpus is None else gpus)]


def _roofs_of(gpu: Datasheet, roofs: Roofs, keys: Iterable[str]) -> DatasheetRoofs:
    """Give pipes of one peak one line."""
    lines: dict[float, list[str]] = {}
    for key in keys:
        if key in roofs.peaks_per_s:
            lines.setdefault(round_significant(roofs.peaks_per_s[key], DIGITS), []).append(key)
    flat = tuple((peak, joined(lines[peak])) for peak in sorted(lines, reverse=True))
    return DatasheetRoofs(gpu.id, short_name(gpu), round_significant(roofs.bandwidth_bytes_per_s, DIGITS), flat)


def short_name(gpu: Datasheet) -> str:
    """Name a GPU without its maker."""
    return gpu.name.removeprefix("NVIDIA ")


def gpu_choices(here: Collection[str] = ()) -> list[tuple[str, list[tuple[str, str]]]]:
    """Group all GPUs by architecture, the newest first: heading, then id and name of each; those `here` come before."""
    groups: dict[str, list[tuple[str, str]]] = {"Profiled here": []}
    groups |= {name: [] for name in ARCHITECTURES.values()}
    for gpu in sorted(load_datasheets(), key=lambda gpu: gpu.name.casefold()):
        if gpu.id in here:
            groups["Profiled here"].append((gpu.id, f"{short_name(gpu)}: this GPU's datasheet"))
        else:
            groups.setdefault(gpu.architecture, []).append((gpu.id, short_name(gpu)))
    return [(heading, options) for heading, options in groups.items() if options]


def _reaches(gpus: Iterable[DatasheetRoofs]) -> dict[str, Domains]:
    """Find the range of each GPU's ridges with half a decade of air."""
    found = {}
    for roofs in gpus:
        if peaks := [peak for peak, _ in roofs.flop_per_s]:
            corners = [peak / roofs.bytes_per_s for peak in peaks]
            x, y = ((min(ends) / HALF_DECADE, max(ends) * HALF_DECADE) for ends in (corners, peaks))
            found[roofs.gpu] = x, y
    return found


def widest(own: Domains, gpus: Iterable[DatasheetRoofs]) -> Domains:
    """Find the range that holds a plane's own and the roofs of every GPU."""
    found = [own, *_reaches(gpus).values()]
    lows = [min(domains[axis][0] for domains in found) for axis in (0, 1)]
    highs = [max(domains[axis][1] for domains in found) for axis in (0, 1)]
    return (lows[0], highs[0]), (lows[1], highs[1])


def reaches(gpus: Iterable[DatasheetRoofs]) -> Mapping[str, list[float]]:
    """Write the range that the ridges of each GPU need: lowest and highest x, lowest and highest y."""
    return {gpu: [*x, *y] for gpu, (x, y) in _reaches(gpus).items()}
