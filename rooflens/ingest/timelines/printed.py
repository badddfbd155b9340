"""Find the tables in a printed text: under dashes, between bars, or as separated values, among anything else.

A terminal, a log and a chat change a table: prefixes, quote marks and colours are left out; cells are cut at the places
that the dashes show, or where these no longer hold, at two blanks or more.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, NamedTuple

from rooflens.errors import InputError
from rooflens.files import MAX_TEXT_BYTES, encoding_of
from rooflens.ingest.timelines.budget import KEPT, NAME_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rooflens.ingest.timelines.budget import TimelineBudget

_LONGEST_LINE = 1 << 18
"""Longer lines are no rows: a kernel's name has at most 64 kB."""

_CHECKED = 1024
"""Lines between two looks at the time."""

_MARKUP = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|^(?:\ufeff|\d{4}-\d\d-\d\dT[\d:.]+Z ?|\[\d+,\d+\]<std(?:out|err)>: ?|\[rank\d+\]: ?)+"
    r"|^\s*(?:(?:>|//|#)(?: |$))+"
)
_BLANKS = str.maketrans({"\u00a0": " ", "\u2007": " ", "\u200b": ""})
_DASHES = re.compile(r"\s*-{2,}(?:\s+-{2,}){2,}\s*")
_RULE = re.compile(r"[\s|+:=\u2500-\u257f-]*")
_GAP = re.compile(r"\s{2,}|\t")
_BARS = str.maketrans(dict.fromkeys("\u2502\u2503\u2551", "|"))
_SEPARATORS = (",", ";", "\t", "|")
_MOST_COLUMNS = 64
_MOST_STRAY = 3
"""A table ends at so many lines in a row that are no rows of it."""

_TITLE = re.compile(r"\(([a-z][a-z0-9_]{3,40})\):\s*$|Executing '([a-z0-9_]{3,40})'|/([a-z0-9_]{3,40})\.py\]")


class PrintedTable(NamedTuple):
    """A table of a text.

    Attributes:
        columns: Its headings, in lower case and with single blanks.
        title: What the line above calls it, as `cuda_gpu_kern_sum`; empty without one.
        rows: Its cells, as many as headings.
        after: The first lines after it.
        stray_count: Lines within it that are no rows.
    """

    columns: tuple[str, ...]
    title: str
    rows: list[tuple[str, ...]]
    after: list[str]
    stray_count: int

    def place(self, *names: str) -> int | None:
        """Return the position of the first heading that is one of some names, with or without a unit."""
        return next((at for at, one in enumerate(self.columns) if without_unit(one) in names), None)


def without_unit(heading: str) -> str:
    """Leave the unit out of a heading: `total time (ns)` -> `total time`."""
    return heading.partition("(")[0].strip()


def read_text(file: Path, source: str) -> str:
    """Read a text in any encoding that consoles write.

    Raises:
        InputError: It cannot be read, or is larger than any printed table.
    """
    from rooflens.ingest.reports.unpacking import chunks, is_packed  # noqa: PLC0415 - few are packed

    hint = "give the trace or the export itself: they are read in parts"
    try:
        if is_packed(file):
            data = b"".join(chunks(file, MAX_TEXT_BYTES))
        else:
            with file.open("rb") as stream:
                data = stream.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read `{source}`: {error.strerror or error}", "check the path") from error
    if len(data) > MAX_TEXT_BYTES:
        raise InputError(f"`{source}` is over {MAX_TEXT_BYTES >> 20} MiB, too large for a printed table", hint)
    return data.decode(encoding_of(data), "replace")


def tables_in(text: str, is_wanted: Callable[[Sequence[str]], bool], budget: TimelineBudget) -> Iterator[PrintedTable]:
    """Yield the tables of a text whose headings are wanted, in its order.

    Args:
        text: All that was printed.
        is_wanted: Whether headings, in lower case, are those of a table to read.
        budget: Limits rows, names and time.

    Raises:
        TooMuchError: There is more than any real text of its size has.
    """
    lines = [_cleaned(line) for line in text.splitlines()]
    at, title = 0, ""
    while at < len(lines):
        if not at % _CHECKED:
            budget.check_time()
        if found := _TITLE.search(lines[at][:_LONGEST_TITLE]):
            title = next(part for part in found.groups() if part)
        layout = _layout_at(lines, at, is_wanted)
        if layout is None:
            at += 1
            continue
        rows, end, stray_count = layout.rows(lines, budget)
        yield PrintedTable(layout.columns, title, rows, lines[end : end + _AFTER], stray_count)
        at, title = max(end, at + 1), ""


_AFTER = 6
_LONGEST_TITLE = 1000


class _Layout(NamedTuple):
    """How the rows of a table are written.

    Attributes:
        columns: The headings.
        first: Position of the line after the headings.
        spans: Where the dashes say that cells stand; empty without dashes.
        separator: Between cells; empty of a table whose cells stand at places or between blanks.
        ends_with_dashes: Dashes follow its last row; else a blank line does.
    """

    columns: tuple[str, ...]
    first: int
    spans: tuple[tuple[int, int], ...] = ()
    separator: str = ""
    ends_with_dashes: bool = False

    def rows(self, lines: Sequence[str], budget: TimelineBudget) -> tuple[list[tuple[str, ...]], int, int]:
        """Read the rows: their cells, the position of the line after the table, and how many lines are no rows."""
        found: list[tuple[str, ...]] = []
        stray_count = since = 0
        at = self.first
        while at < len(lines):
            line = lines[at]
            if not (at + 1) % _CHECKED:
                budget.check_time()
            if _DASHES.fullmatch(line) and (found or not self.ends_with_dashes):
                at += 1
                break
            if not line.strip():
                if found and not self.ends_with_dashes:
                    break
            elif self.separator == "|" and _RULE.fullmatch(line):
                pass
            elif (cells := self._cut_cells(line)) is None:
                since += 1
                if since == _MOST_STRAY:
                    at -= _MOST_STRAY - 1
                    break
            else:
                stray_count, since = stray_count + since, 0
                budget.take(KEPT)
                budget.take(NAME_CHARACTERS, sum(map(len, cells)))
                found.append(cells)
            at += 1
        return found, at, stray_count

    def _cut_cells(self, line: str) -> tuple[str, ...] | None:
        """Cut a line into as many cells as there are headings; None if it is no row."""
        if len(line) > _LONGEST_LINE:
            return None
        if self.separator:
            cells = _separated(line, self.separator)
        elif self.spans and _is_aligned(line, self.spans):
            cells = [line[slice(*self._reach(place))] for place in range(len(self.spans))]
        else:
            cells = _GAP.split(line.strip())
        return tuple(cell.strip() for cell in cells) if len(cells) == len(self.columns) else None

    def _reach(self, place: int) -> tuple[int, int | None]:
        """Return where a cell may stand: the last one to the end of its line."""
        start, end = self.spans[place]
        return start, None if place == len(self.spans) - 1 else end


def _layout_at(lines: Sequence[str], at: int, is_wanted: Callable[[Sequence[str]], bool]) -> _Layout | None:
    """Recognise the headings of a wanted table in a line; None if they are not there."""
    line = lines[at]
    if not line.strip() or len(line) > _LONGEST_LINE or _RULE.fullmatch(line):
        return None
    for neighbour in (at + 1, at - 1):
        if not 0 <= neighbour < len(lines) or not _DASHES.fullmatch(lines[neighbour][:_LONGEST_LINE]):
            continue
        spans = tuple(part.span() for part in re.finditer("-+", lines[neighbour]))
        if len(spans) > _MOST_COLUMNS:
            continue
        cells = [line[start:end] for start, end in spans] if _is_aligned(line, spans) else _GAP.split(line.strip())
        columns = _headings(cells)
        if len(columns) == len(spans) and is_wanted(columns):
            is_between = at > 0 and _DASHES.fullmatch(lines[at - 1][:_LONGEST_LINE]) is not None
            first = at + 2 if neighbour == at + 1 else at + 1
            return _Layout(columns, first, spans, ends_with_dashes=is_between)
    for separator in _SEPARATORS:
        if line.count(separator) >= 2:
            columns = _headings(_separated(line, separator))
            if len(columns) <= _MOST_COLUMNS and is_wanted(columns):
                return _Layout(columns, at + 1, separator=separator)
    columns = _headings(_GAP.split(line.strip())) if "  " in line else ()
    return _Layout(columns, at + 1) if 2 < len(columns) <= _MOST_COLUMNS and is_wanted(columns) else None


def _headings(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(cell.casefold().replace("(", " (").split()) for cell in cells)


def _is_aligned(line: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a line has nothing between the places of its cells, so that these can be cut there."""
    ends = [end for _, end in spans[:-1]]
    starts = [start for start, _ in spans[1:]]
    return not line[: spans[0][0]].strip() and not any(
        line[end:start].strip() for end, start in zip(ends, starts, strict=True)
    )


def _separated(line: str, separator: str) -> list[str]:
    if separator == "|":
        return line.strip().strip("|").split("|")
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return []


def _cleaned(line: str) -> str:
    """Leave out colours, quote marks and what a log writes before each line."""
    if len(line) > _LONGEST_LINE:
        return line[:_LONGEST_LINE] + " "
    first = line.lstrip()[:1]
    if "\x1b" in line or (first and (first in ">/[#\ufeff" or first.isdigit())):
        line = _MARKUP.sub("", line)
    return line.translate(_BLANKS).translate(_BARS).rstrip()


NS_OF_UNIT: Mapping[str, float] = {
    **dict.fromkeys(("ns", "nsec"), 1.0),
    **dict.fromkeys(("us", "usec", "\u00b5s", "\u03bcs"), 1e3),
    **dict.fromkeys(("ms", "msec"), 1e6),
    **dict.fromkeys(("s", "sec"), 1e9),
}
_MOST_NS = 1e18
_TABLE_NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?|\.[0-9]+", re.IGNORECASE)


def nanoseconds(text: str, factor: float) -> float | None:
    """Read a time, with commas between thousands or without; None if it is none, or beyond any program's."""
    text = text.strip()
    if len(text) > 40 or not _TABLE_NUMBER.fullmatch(text):
        return None
    found = float(text.replace(",", "")) * factor
    return found if 0 <= found < _MOST_NS else None


def whole(text: str) -> int | None:
    """Read a count, with commas between thousands or without; None if it is none."""
    found = nanoseconds(text, 1.0)
    return None if found is None or found != int(found) else int(found)
