"""Find the tables in ncu's output: headers and rows among everything else."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from rooflens.files import encoding_of
from rooflens.format import count, some
from rooflens.ingest.exports.numbers import Style

DELIMITERS = ",;\t|"

ID, PROCESS_ID, PROCESS, HOST, KERNEL = "id", "process id", "process name", "host name", "kernel name"
CONTEXT, STREAM, BLOCK, GRID, DEVICE, CC = "context", "stream", "block size", "grid size", "device", "cc"
KERNEL_TIME = "kernel time"
SECTION, METRIC, UNIT, VALUE = "section name", "metric name", "metric unit", "metric value"
RULE, RULE_TEXT = "rule name", "rule description"
SPEEDUP_OF, SPEEDUP = "estimated speedup type", "estimated speedup"
AVERAGE, INVOCATIONS = "average", "invocations"

IDENTITY = (ID, PROCESS_ID, PROCESS, HOST, KERNEL, KERNEL_TIME, CONTEXT, STREAM, BLOCK, GRID, DEVICE, CC)
"""Columns that identify the launch of a row, in ncu's order; versions before 2021 lack the last four."""

_RANGES = ("Start/Stop_Range", "Push/Pop_Range")
_PROFILER_LINE = re.compile(r"\s*==[A-Z]+==")
_ROW_START = re.compile(r'"?\d*"?[,;\t|] ?"?\d+"?[,;\t|]')
_HEADER_WORDS = ("Kernel Name", "Metric Name", "Kernel_Name", "Metric_Name", "kernel_name", "metric_name")
_OF_TEXT = frozenset({"", METRIC, UNIT, VALUE})
"""Headings of a table in ncu's text, which tabs may separate; an export says which kernel a row is of."""
_FIRST_CELLS = '"ID","Process ID"'
GROUPING = str.maketrans("", "", ".,'\u00a0\u202f\u2019 ")
_MOST_LINES_OF_A_ROW = 500
_LARGEST_CELL = 2**31 - 1
_LINES_AT_ONCE = 1024
"""Lines after which to tell how far a text is read."""


def is_export(head: bytes) -> bool:
    """Return whether a file is a CSV export of Nsight Compute, by its first `TEXT_HEAD_BYTES` or all of it."""
    return any(header_of(line.lstrip("\ufeff")) is not None for line in open_text(head))


class Header(Struct, frozen=True, eq=False):
    """The header line of a table. Each table has its own header object, even if the lines are equal.

    Attributes:
        names: Its cells as they are written.
        columns: Position by name, metrics as written and others in lower case; the first if a name repeats.
        range_columns: Positions of the NVTX ranges, start/stop ranges first: they hold for every thread.
    """

    names: tuple[str, ...]
    delimiter: str
    columns: Mapping[str, int]
    range_columns: tuple[int, ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether each row holds one metric."""
        return METRIC in self.columns

    def cell(self, cells: Sequence[str], name: str) -> str:
        """Return a cell of a row, without blanks around it; empty if the table has no such column, or the row ends."""
        place = self.columns.get(name)
        return cells[place].strip() if place is not None and place < len(cells) else ""


class ExportFacts(Struct):
    """What all tables of an export share, and what was left out of them.

    Attributes:
        is_wanted: Whether to read a metric.
        on_read: Called with parts of the text as they are read.
        style: How numbers are written, according to the last table that showed it.
        unknown_labels: Labels of the details page without a known metric -> number of rows.
        unknown_units: Units that cannot be converted to a base unit -> number of values.
        coarse_times: Launches whose duration was scaled to fewer than three digits.
        is_without_units: Units are missing, so values were taken as base units.
        broken_rows: Rows that end within a quoted cell, or were interrupted by other output.
        is_cut: The file ends within a quoted cell.
        cut: ID of a kernel with incomplete text -> the reason.
        empty: Kernels that have a name and nothing else.
        doubled: Launches that appeared twice.
        merged: Kernels of a summary -> number of launches averaged.
    """

    is_wanted: Callable[[str], bool]
    on_read: Callable[[float], None] = lambda _: None
    style: Style = field(default_factory=Style)
    unknown_labels: Counter[str] = field(default_factory=Counter)
    unknown_units: Counter[str] = field(default_factory=Counter)
    coarse_times: int = 0
    is_without_units: bool = False
    broken_rows: int = 0
    is_cut: bool = False
    cut: dict[str, str] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    doubled: int = 0
    merged: dict[str, int] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """Say what was left out, a sentence each."""
        said = []
        if self.merged:
            means = some(f"{count(launches, 'launch')} of `{name}`" for name, launches in self.merged.items())
            said.append(f"a summary (`--print-summary`): each kernel is the mean of its launches, {means}")
        if self.doubled:
            said.append(f"{count(self.doubled, 'launch')} twice in the file, counted once")
        if self.broken_rows:
            said.append(f"left out {count(self.broken_rows, 'row')}, cut or broken")
        if self.unknown_labels:
            labels = count(len(self.unknown_labels), "label")
            said.append(f"left out {labels} of unknown metrics: {_some(self.unknown_labels)}")
        if self.unknown_units:
            units = count(len(self.unknown_units), "unknown unit")
            said.append(f"left out values in {units}: {_some(self.unknown_units)}")
        if self.coarse_times:
            launches = count(self.coarse_times, "launch")
            said.append(f"times of {launches} have fewer than 3 digits: `--print-units base` prints all")
        if self.is_without_units:
            said.append("the export has no units: values are read as base units, as `--print-units base` prints them")
        return said


def _some(counted: Counter[str]) -> str:
    return some(f"`{name}`" for name, _ in counted.most_common())


def open_text(data: bytes) -> io.TextIOWrapper:
    """Open a text in any encoding that ncu's output arrives in: UTF-8, PowerShell's UTF-16, a Windows code page."""
    return _decoded(io.BytesIO(data), encoding_of(data))


def lines_of(data: bytes, facts: ExportFacts) -> Iterator[str]:
    """Yield the lines of a text, and tell how far it is read."""
    stream, done = io.BytesIO(data), 0
    for number, line in enumerate(_decoded(stream, encoding_of(data))):
        yield line
        if not (number + 1) % _LINES_AT_ONCE:
            facts.on_read((stream.tell() - done) / len(data))
            done = stream.tell()


def _decoded(stream: io.BytesIO, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")


def header_of(line: str) -> Header | None:
    """Read a line as the header of an export; None if it is no header."""
    if not any(word in line for word in _HEADER_WORDS):
        return None
    start = max(line.find(_FIRST_CELLS), 0)  # the program's last output may lack a line end
    for delimiter in DELIMITERS:
        try:
            cells = _split_cells([line[start:]], delimiter)
        except csv.Error:
            return None
        names = tuple(cell.strip() for cell in cells)
        columns = {_column_key(name): place for place, name in reversed(list(enumerate(names)))}
        if METRIC in columns and VALUE not in columns and AVERAGE in columns:
            columns[VALUE] = columns[AVERAGE]
        if _is_header(columns, names):
            return Header(names, delimiter, columns, _range_columns(names))
    return None


def _range_columns(names: Sequence[str]) -> tuple[int, ...]:
    places = {kind: place for place, name in enumerate(names) for kind in _RANGES if kind in name}
    return tuple(places[kind] for kind in _RANGES if kind in places)


def _is_header(columns: Mapping[str, int], names: Sequence[str]) -> bool:
    if METRIC in columns:
        return VALUE in columns and not {*columns} <= _OF_TEXT
    return KERNEL in columns and any("__" in name for name in names)


def records(lines: Iterable[str], facts: ExportFacts) -> Iterator[tuple[Header, list[str] | None]]:
    """Yield each header alone, then with the cells of each row below it; skip all other lines.

    Raises:
        csv.Error: A row cannot be split into cells.
    """
    limit = csv.field_size_limit(_LARGEST_CELL)
    header: Header | None = None
    try:
        for record in _records(lines, facts):
            found = header_of(record[0])
            if found is not None:
                header = found
                yield header, None
                continue
            cells = _split_cells(record, header.delimiter) if header is not None else []
            if facts.is_cut and cells:
                cells.pop()  # the file ends within this value
            if header is not None and len(cells) > 1 and _is_row(cells, header):
                yield header, cells
            else:
                facts.broken_rows += facts.is_cut
    finally:
        csv.field_size_limit(limit)


def _records(lines: Iterable[str], facts: ExportFacts) -> Iterator[list[str]]:
    """Join lines of cells with line breaks; drop the profiler's messages, and rows whose quotes never close.

    An open last row is closed at the end of the file, and `ExportFacts.is_cut` is set.
    """
    held: list[str] = []
    for line in lines:
        bare = line.lstrip("\ufeff")
        if held and _starts_anew(bare, held):
            facts.broken_rows += 1
            held = []
        is_odd = bare.count('"') % 2 == 1
        if held:
            held.append(bare)
            if is_odd:
                yield held
                held = []
        elif is_odd and bare.startswith('"'):
            held = [bare]
        elif not _PROFILER_LINE.match(bare):
            yield [bare]
    if held:
        facts.is_cut = True
        yield [*held[:-1], f'{held[-1].rstrip()}"']


def _starts_anew(line: str, held: Sequence[str]) -> bool:
    """Return whether a line begins a row or a table, so the open quote was never closed."""
    return (
        len(held) > _MOST_LINES_OF_A_ROW
        or _ROW_START.match(line) is not None
        or _PROFILER_LINE.match(line) is not None
        or header_of(line) is not None
    )


def _split_cells(lines: Sequence[str], delimiter: str) -> list[str]:
    return next(csv.reader(lines, delimiter=delimiter, skipinitialspace=True), [])


def _is_row(cells: Sequence[str], header: Header) -> bool:
    """Tell rows from other output: a row's ID is a number, or empty in the row of units."""
    needed = header.columns[METRIC if header.is_long else KERNEL]
    if len(cells) <= needed:
        return False
    number = header.cell(cells, ID).translate(GROUPING)
    return not number or number.isdigit()


def _column_key(name: str) -> str:
    return name if "__" in name else " ".join(name.casefold().replace("_", " ").split())
