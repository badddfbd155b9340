"""An answer as blocks, built once from records; `writers` show it on a terminal, as Markdown and as HTML.

Words are sentences of ours, in which text between backticks is code, or spans: whatever comes out of a report is in
a `code` span or is escaped by the writer, and is never mark-up.
The records are of the standard library, so that a machine that only collects shows lists, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Style = Literal[
    "plain",
    "strong",
    "dim",
    "code",
    "literal",
    "memory",
    "compute",
    "latency",
    "overhead",
    "balanced",
    "unknown",
]
"""How a span is set: `code` and `literal` hold text as it is; those named after verdicts are coloured on a terminal."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line."""

    text: str
    style: Style = "plain"


Words: TypeAlias = "str | Span | tuple[str | Span, ...]"


def code(text: str) -> Span:
    """Set a name, a path or a command apart."""
    return Span(text, "code")


def strong(text: str) -> Span:
    """Set a sentence in bold."""
    return Span(text, "strong")


def spans(words: Words) -> tuple[Span, ...]:
    """Split a line into spans; a sentence is one span."""
    parts = words if isinstance(words, tuple) else (words,)
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def joined(separator: str, several: list[Words]) -> tuple[str | Span, ...]:
    """Join lines to one."""
    found: list[str | Span] = []
    for words in several:
        found += [*([separator] if found else []), *spans(words)]
    return tuple(found)


def few(names: Sequence[Words], shown: int, amount: int | None = None) -> tuple[str | Span, ...]:
    """Name the first few of several, and count the others of `amount`, by default of those given."""
    more = (len(names) if amount is None else amount) - min(len(names), shown)
    return *joined(", ", [*names[:shown]]), f" and {more:,} more" if more > 0 else ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is that of the whole."""

    words: Words
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One or more lines; `facts` keep their lines separate, a `warning` is emphasised, a `note` is muted."""

    lines: tuple[Words, ...]
    kind: Literal["", "facts", "warning", "note"] = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a list: its line, further lines below it, and a list of its own."""

    words: Words
    lines: tuple[Words, ...] = ()
    items: tuple[Words, ...] = ()


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; numbered where its order says something."""

    items: tuple[Item, ...]
    numbered: bool = False


SPARE = 3
"""Columns worth no more than this are shown only where they hold something and nothing is cut for them."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        right: Set to the right, as numbers are.
        fit: How a cell gives way on a narrow terminal: a number is kept; of a `name` the middle of its first span is
            cut, so that rows stay different; of code the `end` is cut; other texts `wrap`, and `prose` goes below its
            row where it has no room beside it.
        worth: Where room lacks, the columns worth least leave first, but never the first column, nor prose.
        least: Characters that a column which gives way keeps before another one leaves.
        most: Characters of a cell for which columns worth least leave; 0 for any number.
    """

    heading: str
    right: bool = False
    fit: Literal["keep", "name", "end", "wrap", "prose"] = "keep"
    worth: int = 5
    least: int = 12
    most: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of as many cells as there are columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Words, ...], ...]
    title: Words = ""


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that are read by few; where nothing folds they stand below their title."""

    title: str
    blocks: tuple[Paragraph, ...]


Block: TypeAlias = "Heading | Paragraph | Bullets | Table | Folded"
Document: TypeAlias = "tuple[Block, ...]"


def paragraph(*lines: Words) -> Paragraph:
    """Make a paragraph of the lines that are not empty."""
    return Paragraph(tuple(line for line in lines if line))


def facts(*lines: Words) -> Paragraph:
    """Make a paragraph of the lines that are not empty, each a line of its own."""
    return Paragraph(tuple(line for line in lines if line), "facts")


def rest_note(amount: int, shown: int, words: str) -> tuple[Paragraph, ...]:
    """Count below a table the rows that it does not show; nothing where it shows all."""
    return (Paragraph((f"and {amount - shown} more{words}",), "note"),) if amount > shown else ()


def bullets(lines: list[Words], *, numbered: bool = False) -> Bullets:
    """Make a list of single lines."""
    return Bullets(tuple(Item(line) for line in lines), numbered)
