"""The raw page: one row a launch, one column a metric, and a second row of units."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.exports.kernels import identified
from rooflens.ingest.exports.numbers import Printed, parse, style_of
from rooflens.ingest.exports.tables import KERNEL
from rooflens.ingest.exports.units import dimension_of, power_of
from rooflens.ingest.exports.values import add_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflens.ingest.exports.kernels import ExportedKernel
    from rooflens.ingest.exports.numbers import Style
    from rooflens.ingest.exports.tables import Header
    from rooflens.ingest.exports.facts import Facts

_SAMPLE_ROWS = 20
_TIME = "gpu__time_duration.sum"
_DRIVERS_KHZ = frozenset({"device__attribute_clock_rate", "device__attribute_memory_clock_rate"})
"""Clocks as the driver gives them: their base unit is kHz."""

_KHZ = 3
_Column = tuple[int, str, int]
"""Place in the row, metric, and power of ten to its base unit."""


def wide_kernels(header: Header, rows: Iterator[list[str]], facts: Facts, first_index: int) -> Iterator[ExportedKernel]:
    """Yield the launches of a raw page.

    Raises:
        InputError: The row of units is missing and the values are scaled.
    """
    sample = list(islice(rows, _SAMPLE_ROWS))
    units = _units(header, sample[0]) if sample else None
    if units is not None:
        sample = sample[1:]
    columns = _columns(header, units, facts)
    facts.style = style_of(_printed(header, sample, units), facts.style)
    if units is None:
        _check_base_units(header, sample, facts)
    index = first_index
    for cells in chain(sample, rows):
        if len(cells) > len(header.names):
            facts.damage.broken_rows += 1
        elif cells[header.columns[KERNEL]].strip():
            kernel = identified(cells, header, index)
            if len(cells) < len(header.names):
                cells.pop()  # the row ends early, and perhaps within this value
            _fill(kernel, cells, columns, facts.style)
            yield kernel
            index += 1


def _units(header: Header, cells: Sequence[str]) -> Sequence[str] | None:
    """Return the row of units: the one that names no kernel; None where the first row is a launch already."""
    return None if cells[header.columns[KERNEL]].strip() else cells


def _columns(header: Header, units: Sequence[str] | None, facts: Facts) -> list[_Column]:
    columns = []
    for place, name in enumerate(header.names):
        if "_" not in name or place in header.range_columns or not facts.is_wanted(name):
            continue
        unit = units[place].strip() if units and place < len(units) else ""
        power = power_of(unit)
        if power is None:
            facts.unknown_units[unit] += 1
        else:
            is_khz = name in _DRIVERS_KHZ and dimension_of(unit) == "hz"
            columns.append((place, name, power - _KHZ if is_khz else power))
    return columns


def _printed(header: Header, rows: Iterable[Sequence[str]], units: Sequence[str] | None) -> Iterator[Printed]:
    for cells in rows:
        for name, text, unit in zip(header.names, cells, units or [""] * len(cells), strict=False):
            if "__" in name:
                yield Printed(text, unit == "%", is_count=name.endswith(".sum") and "/" not in unit)


def _check_base_units(header: Header, rows: Iterable[Sequence[str]], facts: Facts) -> None:
    """Take values without units for base units only where the times are whole nanoseconds."""
    place = header.columns.get(_TIME)
    times = [cells[place].strip() for cells in rows if place is not None and place < len(cells)]
    if any(("." in text or "," in text) and not (parse(text, facts.style) or 0.5).is_integer() for text in times):
        raise InputError(
            "the raw export has no row of units, and its times are scaled",
            "export again with `ncu --import REPORT --page raw --csv --print-units base`, and keep the second row",
        )
    facts.is_without_units = True


def _fill(kernel: ExportedKernel, cells: list[str], columns: Iterable[_Column], style: Style) -> None:
    """Add the values of one row."""
    end = len(cells)
    for place, name, power in columns:
        if place >= end:
            break
        add_value(kernel, name, cells[place], style, power)
