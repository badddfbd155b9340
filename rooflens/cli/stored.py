"""What `analyze` prints of a store, in bounded memory: rows as reports come, or kernels with launches added up."""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import chain
from typing import IO, TYPE_CHECKING

from rooflens.cli.console import echo, print_parts, print_programs, print_totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rooflens.analyzing import Analyzed
    from rooflens.model.records import AnalyzedReport

_AT_ONCE = 64
"""Kernels that are written together."""


def print_stored(
    load: Callable[..., Analyzed],
    style: str,
    top: int | None,
    place: Sequence[str],
    *,
    raw_cells: bool = False,
    is_whole: bool = False,
) -> Analyzed | None:
    """Print a store; None where that needs all analyses, and nothing is printed yet.

    Args:
        load: Analyzes the store, given what takes the reports as they come, or that totals are wanted.
        style: As the command's `--format`.
        top: Rows of the table, or of the Markdown, of each GPU.
        place: What to give to a command that tells more.
        raw_cells: Leave the texts of the CSV as they are.
        is_whole: More is asked for of a table than kernels with their launches added up.
    """
    if style == "json":
        return None if sys.stdout.isatty() else _print_json(load)
    if style == "csv":
        return _print_csv(load, raw_cells=raw_cells)
    return None if is_whole else _print_kernels(load, style, top, place)


def _print_json(load: Callable[..., Analyzed]) -> Analyzed:
    """Print the JSON for programs; `load` analyzes the store, and takes what takes the reports as they come."""
    from tempfile import TemporaryFile

    from rooflens.report.text.json_csv import json_parts, json_rows

    with TemporaryFile() as file:
        rows = _Rows(file, lambda report: ",\n".join(json_rows(report.analyses)))
        found = load(on_piece=rows.add)
        print_parts(json_parts(rows.of(found.reports), found.reports), 1)
    return found


def _print_csv(load: Callable[..., Analyzed], *, raw_cells: bool) -> Analyzed:
    """Print the CSV."""
    from tempfile import TemporaryFile

    from rooflens.report.text.json_csv import to_csv

    head = to_csv([], raw_cells=raw_cells)

    def written(report: AnalyzedReport) -> str:
        return to_csv(report.analyses, raw_cells=raw_cells).removeprefix(head)

    with TemporaryFile() as file:
        rows = _Rows(file, written)
        found = load(on_piece=rows.add)
        print_parts(chain([head], rows.of(found.reports)), 1)
    return found


def _print_kernels(load: Callable[..., Analyzed], style: str, top: int | None, place: Sequence[str]) -> Analyzed:
    """Print the table, or Markdown."""
    from rooflens.report.text.table import markdown_of

    found = load(totals=True)
    if style == "table":
        print_totals(found.totals, top, place=place)
        print_programs(found.reports)
    else:
        echo(markdown_of(found.totals, top), nl=False)
    return found


class _Rows:
    """Rows of reports as text in a file, given back in the order asked for."""

    def __init__(self, file: IO[bytes], write: Callable[[AnalyzedReport], str]) -> None:
        self._file = file
        self._write = write
        self._spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)

    def add(self, report: AnalyzedReport) -> None:
        """Write a report, or a piece of one."""
        from msgspec.structs import replace

        for start in range(0, len(report.analyses), _AT_ONCE):
            some = replace(report, analyses=report.analyses[start : start + _AT_ONCE])
            text = self._write(some).encode("utf-8", "surrogatepass")
            self._spans[report.run.digest].append((self._file.tell(), len(text)))
            self._file.write(text)

    def of(self, reports: Sequence[AnalyzedReport]) -> Iterator[str]:
        """Give the rows of reports back."""
        for report in reports:
            for start, size in self._spans[report.run.digest]:
                self._file.seek(start)
                yield self._file.read(size).decode("utf-8", "surrogatepass")
