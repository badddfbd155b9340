"""The hot spots of a kernel as text: a table for each kernel, JSON and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct

from rooflens.format import MISSING, count, cut_middle, duration, percent, plain_name, si, significant
from rooflens.model.catalogue import (
    HOTSPOT,
    NUMBER,
    POSITION,
    TEXT,
    Key,
    choice,
    fixed,
    hotspots_of,
    items,
    mapping,
)
from rooflens.model.hotspots import MEASURES, STALL, leading_part, leading_stall
from rooflens.model.records import Analysis, Grain, Hotspot, Kernel, ratio
from rooflens.report.data import csv_text, json_text
from rooflens.report.document import Block, Column, Document, Paragraph, Table, Words, code
from rooflens.report.kernel.source import in_context
from rooflens.report.words.inside import wait_words
from rooflens.report.words.labels import line_label

SCHEMA_VERSION = 1
GRAINS: tuple[Grain, ...] = ("line", "sass", "function")
NAME_WIDTH = 200

_PLACE_COLUMNS = ("by", "file", "line", "function", "pc", "sass", "text", "share_of_samples", "leading_stall")
CSV_COLUMNS = ("source", "index", "name", *_PLACE_COLUMNS, *MEASURES, "key")


class HotspotListing(Struct, frozen=True):
    """The hot spots of a kernel to show.

    Attributes:
        by: Lines, instructions or functions.
        hotspots: The most samples first.
        key: Key of the launch, the same from run to run.
        short_name: The part of the name that distinguishes the kernel in its report.
    """

    kernel: Kernel
    by: Grain
    hotspots: tuple[Hotspot, ...]
    key: str = ""
    short_name: str = ""


def listings(analyses: Iterable[Analysis], by: Grain | None, top: int) -> tuple[HotspotListing, ...]:
    """Select what is shown for each kernel with hot spots, the longest kernel first.

    Args:
        analyses: Kernels, in any order.
        by: What is shown; by default lines if they are known, else instructions.
        top: Maximum number for each kernel.
    """
    ordered = sorted(analyses, key=lambda analysis: -(analysis.gpu_time_ns or 0.0))
    found = (_listing(analysis, by, top) for analysis in ordered)
    return tuple(listing for listing in found if listing.hotspots)


def _listing(analysis: Analysis, by: Grain | None, top: int) -> HotspotListing:
    kernel = analysis.kernel
    grain = by or ("line" if any(hotspot.by == "line" for hotspot in kernel.hotspots) else "sass")
    shown = tuple(hotspot for hotspot in kernel.hotspots if hotspot.by == grain)[:top]
    return HotspotListing(kernel, grain, shown, analysis.key, analysis.short_name)


def hotspots_document(shown: Sequence[HotspotListing]) -> Document:
    """Show a table for each kernel, with its full name below its first table if that differs."""
    blocks: list[Block] = []
    said = {""}
    for listing in shown:
        blocks.append(_hotspots_table(listing))
        blocks += in_context(listing.kernel, next(iter(listing.hotspots), None))
        full = plain_name(listing.kernel.name).strip()
        if full not in {*said, listing.short_name}:
            blocks.append(Paragraph((("full name: ", code(cut_middle(full, NAME_WIDTH))),), "note"))
        said.add(full)
    return tuple(blocks)


def _hotspots_table(listing: HotspotListing) -> Table:
    written = _columns_with_data(listing)
    columns = (
        Column(
            heading,
            right=heading in _NUMBER_COLUMNS and heading != "waits for",
            fit=_FITS.get(heading, "keep"),
            worth=_WORTH.get(heading, 9),
            least=20,
            most=20 if heading == "waits for" else 0,  # before the name of a place is cut, its wait takes a second line
        )
        for heading in written
    )
    rows = (
        tuple(
            code(write(listing.kernel, hotspot)) if heading in _CODE else write(listing.kernel, hotspot)
            for heading, write in written.items()
        )
        for hotspot in listing.hotspots
    )
    return Table(tuple(columns), tuple(rows), _heading(listing))


def _heading(listing: HotspotListing) -> Words:
    kernel = listing.kernel
    name = code(listing.short_name)
    samples = kernel.code_totals.get("samples")
    more = f", {count(int(samples), 'sample')}" if samples is not None else ""
    return name, f": {duration(kernel.duration_ns)}{more} (result {kernel.index} of ", code(kernel.source), ")"


def _columns_with_data(listing: HotspotListing) -> dict[str, Callable[[Kernel, Hotspot], str]]:
    totals = listing.kernel.code_totals
    numbers = {
        name: write for name, (write, needs) in _NUMBER_COLUMNS.items() if any(totals.get(need) for need in needs)
    }
    places = dict(_PLACES[listing.by])
    if not any(hotspot.text for hotspot in listing.hotspots):
        places.pop("source", None)
    return {**numbers, **places}


def _measure_writer(measure: str) -> Callable[[Kernel, Hotspot], str]:
    return lambda _, hotspot: si(hotspot.measures.get(measure, 0.0), "").rstrip()


def _excess_writer(parts: tuple[str, ...], wholes: tuple[str, ...]) -> Callable[[Kernel, Hotspot], str]:
    def write(_: Kernel, hotspot: Hotspot) -> str:
        part, whole = (sum(hotspot.measures.get(name, 0.0) for name in names) for names in (parts, wholes))
        return f"{si(part, '').rstrip()} ({percent(part / whole)})" if whole else MISSING

    return write


_SECTORS, _WAVEFRONTS = ("load_excess_sectors", "store_excess_sectors"), ("shared_excess_wavefronts",)


def _leading_wait(kernel: Kernel, hotspot: Hotspot) -> str:
    """Name the reason of most samples there with its share, and the instruction waited for, if known."""
    reason, part = leading_stall(hotspot), leading_part(hotspot)
    leading = f"{reason}, {percent(part)}" if reason and part else ""
    return "; ".join(filter(None, (leading, wait_words(kernel.inside, hotspot)))) or MISSING


_NUMBER_COLUMNS: Mapping[str, tuple[Callable[[Kernel, Hotspot], str], tuple[str, ...]]] = {
    "samples": (
        lambda kernel, hotspot: percent(ratio(hotspot.measures.get("samples", 0.0), kernel.code_totals.get("samples"))),
        ("samples",),
    ),
    "waits for": (_leading_wait, ("samples",)),
    "executed": (_measure_writer("warp_inst"), ("warp_inst",)),
    "threads of 32": (
        lambda _, spot: significant(ratio(spot.measures.get("thread_inst", 0.0), spot.measures.get("warp_inst"))),
        ("thread_inst",),
    ),
    "excess sectors": (_excess_writer(_SECTORS, ("load_sectors", "store_sectors")), _SECTORS),
    "excess passes": (_excess_writer(_WAVEFRONTS, ("shared_wavefronts",)), _WAVEFRONTS),
    "local sectors": (_measure_writer("local_sectors"), ("local_sectors",)),
}
"""Heading -> what writes the cell, and the measures, at least one of which must be present."""


def _hotspot_line(kernel: Kernel, hotspot: Hotspot) -> str:
    return line_label(hotspot, kernel.inside) or MISSING


_PLACES: Mapping[Grain, Mapping[str, Callable[[Kernel, Hotspot], str]]] = {
    "line": {"line": _hotspot_line, "source": lambda _, hotspot: hotspot.text or MISSING},
    "sass": {
        "offset": lambda _, hotspot: f"0x{hotspot.pc or 0:04x}",
        "line": _hotspot_line,
        "instruction": lambda _, hotspot: hotspot.sass or MISSING,
    },
    "function": {"function": lambda _, hotspot: hotspot.function or MISSING},
}

_WORTH: Mapping[str, int] = {
    "local sectors": 1,
    "threads of 32": 2,
    "executed": 3,
    "excess passes": 4,
    "excess sectors": 5,
    "waits for": 6,
    "source": 7,
    "instruction": 7,
}
"""Columns that leave a narrow terminal; samples and places stay longest."""

_FITS: Mapping[str, Literal["name", "end", "wrap"]] = {
    "waits for": "wrap",
    "line": "name",
    "source": "end",
    "instruction": "end",
    "function": "name",
}
"""What is cut or wrapped where a terminal is narrow: numbers never are."""

_CODE = frozenset({"line", "source", "instruction", "function"})

_LISTING = fixed(
    Key("source", TEXT, value=attrgetter("kernel.source")),
    Key("index", POSITION, value=attrgetter("kernel.index")),
    Key("name", TEXT, value=attrgetter("kernel.name")),
    Key("function", TEXT, value=attrgetter("kernel.function_name")),
    Key("key", TEXT),
    Key("duration_ns", NUMBER, value=attrgetter("kernel.duration_ns")),
    Key("by", choice(*GRAINS)),
    Key("totals", mapping(NUMBER), value=attrgetter("kernel.code_totals")),
    Key("hotspots", items(HOTSPOT), value=lambda listing: hotspots_of(listing.kernel, listing.hotspots)),
)


def to_json(shown: Iterable[HotspotListing]) -> str:
    """Write every listing: the keys of `analyze`'s hot spots, and the kernel's totals by measure."""
    document = {"schema_version": SCHEMA_VERSION, "kernels": [_LISTING.json(listing) for listing in shown]}
    return json_text(document)


def to_csv(shown: Iterable[HotspotListing], *, raw_cells: bool = False) -> str:
    """Write one line per hot spot: a value that was not measured is empty, and a measured absence is 0."""
    rows = [row for listing in shown for row in _csv_rows(listing)]
    stalls = sorted({name for row in rows for name in row if name.startswith(STALL)})
    return csv_text([*CSV_COLUMNS, *stalls], rows, raw_cells=raw_cells)


def _csv_rows(listing: HotspotListing) -> Iterator[dict[str, Any]]:
    written = _LISTING.json(listing)
    nothing = dict.fromkeys(written["totals"], 0)
    for hotspot in written["hotspots"]:
        yield {**written, **nothing, **hotspot, **hotspot["measures"]}
