"""The raw page: a row per launch, a column per metric, units in the second row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter

from rooflens.errors import InputError
from rooflens.ingest.exports.kernels import ExportedKernel, identified
from rooflens.ingest.exports.numbers import PrintedValue, Style, parse, style_of
from rooflens.ingest.exports.tables import KERNEL, ExportFacts, Header
from rooflens.ingest.exports.units import dimension_of, is_count, power_of

_SAMPLE_ROWS = 20
_DURATION_METRIC = "gpu__time_duration.sum"
_DRIVERS_KHZ = frozenset({"device__attribute_clock_rate", "device__attribute_memory_clock_rate"})
"""Clocks reported by the driver, in kHz."""

_KHZ = 3
_FEWEST_DIGITS = 3
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
_Column = tuple[int, str, int]
"""Position in the row, metric, and power of ten to the base unit."""


def wide_kernels(header: Header, rows: Iterator[list[str]], facts: ExportFacts) -> Iterator[ExportedKernel]:
    """Yield the launches of a raw page.

    Raises:
        InputError: The row of units is missing and the values are scaled.
    """
    sample = list(islice(rows, _SAMPLE_ROWS))
    # In the row of units the cell of the kernel's name is empty.
    units = sample.pop(0) if sample and not sample[0][header.columns[KERNEL]].strip() else None
    columns = _metric_columns(header, units, facts)
    facts.style = style_of(_printed_values(header, sample, units), facts.style)
    if units is None:
        _check_base_units(header, sample, facts)
    time = next((place for place, name, power in columns if name == _DURATION_METRIC and power), None)
    filler = _Filler(columns, sample, facts.style)
    usual = min(len(header.names), max(map(len, sample), default=0))
    for cells in chain(sample, rows):
        if len(cells) > len(header.names):
            facts.broken_rows += 1
        elif cells[header.columns[KERNEL]].strip():
            kernel = identified(cells, header)
            if len(cells) < len(header.names):
                cells.pop()  # the row ends early, so this value may be cut too
                kernel.lost = "its row ends early" if len(cells) + 1 < usual or facts.is_cut else None
            filler.fill(kernel, cells)
            facts.coarse_times += time is not None and time < len(cells) and _is_coarse(cells[time])
            yield kernel


def _metric_columns(header: Header, units: Sequence[str] | None, facts: ExportFacts) -> list[_Column]:
    columns = []
    ranges = header.range_columns
    for place, name in enumerate(header.names):
        if "_" not in name or place in ranges or not facts.is_wanted(name):
            continue
        unit = units[place].strip() if units and place < len(units) else ""
        power = power_of(unit)
        if power is None:
            facts.unknown_units[unit] += 1
        else:
            is_khz = name in _DRIVERS_KHZ and dimension_of(unit) == "hz"
            columns.append((place, name, power - _KHZ if is_khz else power))
    return columns


def _printed_values(
    header: Header, rows: Iterable[Sequence[str]], units: Sequence[str] | None
) -> Iterator[PrintedValue]:
    for cells in rows:
        for name, text, unit in zip(header.names, cells, units or [""] * len(cells), strict=False):
            if "__" in name:
                yield PrintedValue(text, unit == "%", is_count=is_count(name, unit))


def _check_base_units(header: Header, rows: Iterable[Sequence[str]], facts: ExportFacts) -> None:
    """Check values without units: they are in base units only if durations are whole nanoseconds.

    Raises:
        InputError: Durations have fractions, so values were scaled to unknown units.
    """
    place = header.columns.get(_DURATION_METRIC)
    times = [cells[place].strip() for cells in rows if place is not None and place < len(cells)]
    if any(("." in text or "," in text) and not (parse(text, facts.style) or 0.5).is_integer() for text in times):
        raise InputError(
            "the raw export has no row of units, and its times are scaled",
            "export again with `ncu --import REPORT --page raw --csv --print-units base`, and keep the second row",
        )
    facts.is_without_units = True


def _is_coarse(text: str) -> bool:
    """Return whether a scaled duration has too few digits: `0.000058` seconds may be 58,499 ns."""
    digits = re.sub(r"\D", "", text).lstrip("0")
    return 0 < len(digits) < _FEWEST_DIGITS


class _Filler:
    """Put the values of rows into kernels; columns of plain numbers in base units are converted at once."""

    def __init__(self, columns: Sequence[_Column], sample: Sequence[Sequence[str]], style: Style) -> None:
        is_point = style.decimal == "."
        self._plain = [one for one in columns if is_point and one[2] == 0 and _are_plain(sample, one[0])]
        plain = {place for place, _, _ in self._plain}
        self._others = [one for one in columns if one[0] not in plain]
        self._names = [name for _, name, _ in self._plain]
        self._style = style
        self._last_place = max(plain, default=-1)
        self._take = itemgetter(*plain_places) if len(plain_places := [one[0] for one in self._plain]) > 1 else None

    def fill(self, kernel: ExportedKernel, cells: list[str]) -> None:
        """Add the values of a row."""
        columns = self._others if self._fill_plain(kernel, cells) else chain(self._plain, self._others)
        for place, name, power in columns:
            if place < len(cells):
                kernel.add(name, cells[place], self._style, power)

    def _fill_plain(self, kernel: ExportedKernel, cells: Sequence[str]) -> bool:
        """Add the columns of plain numbers; return False and add nothing if a cell of this row is no number."""
        if self._take is None or self._last_place >= len(cells):
            return False
        try:
            values = list(map(float, self._take(cells)))
        except ValueError:
            return False
        if not all(map(math.isfinite, values)):
            return False
        kernel.numbers.update(zip(self._names, values, strict=True))
        return True


def _are_plain(sample: Iterable[Sequence[str]], place: int) -> bool:
    return all(place < len(cells) and _PLAIN.fullmatch(cells[place]) for cells in sample)
