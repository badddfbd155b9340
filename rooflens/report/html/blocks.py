"""What templates set of blocks: texts made safe, words as spans, tables as grids of cells. No mark-up is made here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from rooflens.format import NBSP, cut_middle, printable, unbroken
from rooflens.report.document import (
    Column,
    Document,
    Folded,
    Paragraph,
    Span,
    Table,
    Words,
    rest_note,
    spans,
)
from rooflens.report.html.theme import LOOKS

NAME_WIDTH, TITLE_WIDTH = 160, 2_000
"""Characters of a kernel's name in a table, and where a pointer rests on it."""

WORTH_WORDS = 0.04
"""A strip or cell of a map with less of it has no room for its name."""

MAX_ROWS = 4_000
"""Rows of all tables of a page; those of further tables are only counted."""

TEXTS_KEPT = 4096
"""Texts that are made safe once: names of units, columns and kernels recur in every table."""

_TAGS = {"strong": "b", "dim": "small"}
_CELL_CLASSES = {"keep": "nowrap", "name": "label", "prose": "prose"}
"""How cells of a column give way -> their class."""


@lru_cache(maxsize=TEXTS_KEPT)
def safe(text: str) -> str:
    """Return a text as a page holds it: nothing that steers or hides, numbers beside their units; twice is as once."""
    return unbroken(printable(text.replace(NBSP, " ")))


def plain(words: Words) -> str:
    """Return the text of words."""
    return "".join(span.text for span in spans(words))


class Styled(NamedTuple):
    """A span as templates set it.

    Attributes:
        style: A class of verdicts, whose sign comes first, or the element around it; empty for none.
        pieces: Its texts, and whether each is code.
        link: Part of the page that it leads to; empty for none.
    """

    style: str
    pieces: tuple[tuple[str, bool], ...]
    link: str = ""


def styled(words: Words) -> list[Styled]:
    """Split words into spans, and sentences of ours at backticks."""
    return [_styled(span) for span in spans(words) if span.text or span.style in LOOKS]


def _styled(span: Span) -> Styled:
    if span.style == "code":
        return Styled("", ((safe(span.text), True),), span.link)
    text = safe(span.text).replace(" -> ", " \u2192 ")
    parts = text.split("`")
    if span.style == "literal" or len(parts) % 2 == 0:
        parts = [text]
    pieces = tuple((part, at % 2 == 1) for at, part in enumerate(parts) if part)
    return Styled(span.style if span.style in LOOKS else _TAGS.get(span.style, ""), pieces, span.link)


class TableCell(NamedTuple):
    """A cell of a table.

    Attributes:
        tag: Its element: the first cell of a row is its heading.
        kind: Its class.
        label: Its heading, where a telephone stacks cells.
        title: The whole of what it cuts.
        bar: Share and style, where it is drawn.
        span: Columns that it goes across; 0 for its own.
    """

    tag: str
    kind: str
    words: Words
    label: str = ""
    title: str = ""
    bar: tuple[float, str] | None = None
    span: int = 0


class Grid(NamedTuple):
    """A table as templates set it: class, words and meaning of each heading, rows of cells, and what stands below.

    Attributes:
        marks: What lanes call each row.
        within: The place of the row that each row opens from; -1 for none.
    """

    label: str
    stacks: bool
    heads: tuple[tuple[str, str, str], ...]
    rows: tuple[tuple[TableCell, ...], ...]
    marks: tuple[str, ...]
    within: tuple[int, ...]
    notes: Document


class Room:
    """What a page has room for, and how high the headings of a document are."""

    def __init__(self, lift: int = 0, rows_left: int | None = None) -> None:
        self.lift = lift
        self._rows_left = rows_left
        self._choices = 0

    def next_choice(self) -> str:
        """Name the next choice of the page."""
        self._choices += 1
        return f"choice-{self._choices}"

    def grid(self, table: Table) -> Grid:
        """Lay a table out, as far as the page has room for its rows."""
        rows = table.rows
        if self._rows_left is not None:
            rows = rows[: max(self._rows_left, 0)]
            self._rows_left -= len(rows)
        columns = table.columns
        stacks = any(column.fit == "prose" for column in columns)
        return Grid(
            label=table.label or plain(table.title) or "Table",
            stacks=stacks,
            heads=tuple((_cell_class(column), column.heading, column.about) for column in columns),
            rows=tuple(
                (TableCell("th", "", row[0], span=len(columns)),)
                if table.is_across(row)
                else tuple(_row_cells(columns, row, labelled=stacks))
                for row in rows
            ),
            marks=table.marks or ("",) * len(rows),
            within=table.within or (-1,) * len(rows),
            notes=rest_note(table.amount or len(table.rows), len(rows), table.rest),
        )


def _cell_class(column: Column) -> str:
    return "n" if column.right else _CELL_CLASSES.get(column.fit, "")


def _row_cells(columns: Sequence[Column], row: Sequence[Words], *, labelled: bool) -> Iterator[TableCell]:
    """Lay a row out; where a telephone stacks its cells each has its heading."""
    for i, (column, words) in enumerate(zip(columns, row, strict=True)):
        tag, label = "td" if i else "th", column.heading if labelled and i else ""
        if column.fit == "bar" and i:
            (share,) = spans(words)
            yield TableCell(tag, "drawn", "", label, bar=(float(share.text), share.style))
        elif column.fit == "name" and len(whole := plain(words)) > NAME_WIDTH:
            cut: Words = tuple(
                replace(span, text=cut_middle(span.text, NAME_WIDTH)) if span.style == "code" else span
                for span in spans(words)
            )
            yield TableCell(tag, _cell_class(column), cut, label, cut_middle(whole, TITLE_WIDTH))
        else:
            yield TableCell(tag, _cell_class(column), words, label)


def untitled(folded: Folded) -> Document:
    """Return the blocks of a fold, without a title that the fold has already."""
    first = folded.blocks[0] if folded.blocks else None
    if isinstance(first, Table) and first.title == folded.title:
        return first._replace(title="", label=plain(first.title)), *folded.blocks[1:]
    return folded.blocks


def answer_of(document: Document) -> tuple[Words, Document]:
    """Take the first line of an answer that a document begins with out of it; empty where it begins otherwise."""
    first = document[0] if document else None
    if isinstance(first, Paragraph) and first.kind == "answer" and first.lines:
        return first.lines[0], (first._replace(lines=first.lines[1:]), *document[1:])
    return "", document


def at(places: tuple[int | None, ...]) -> str:
    """Name a part of a choice by the places of the names that it belongs to."""
    return ".".join("" if place is None else str(place) for place in places)


def belongs(places: tuple[int | None, ...], chosen: tuple[int, ...]) -> bool:
    """Return whether a part of a choice is shown."""
    return all(place in {None, one} for place, one in zip(places, chosen, strict=True))
