"""Write a document for a terminal: no control character but our own reaches it, and no number is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflens.format import MISSING, NBSP, cut_apart, cut_end, printable, unbroken
from rooflens.report.document import (
    SPARE,
    Block,
    Bullets,
    Column,
    Document,
    Excerpt,
    Folded,
    Heading,
    Item,
    Paragraph,
    Style,
    Table,
    Words,
    for_text,
    spans,
)

UNLIMITED = 200
"""Width of tables where there is no terminal; lines of text stay whole there, for `grep` and logs."""

_GAP = "  "
_INDENT = "  "
_LEAST = 4
_NOTHING = {"", "-", MISSING}
_COMBINING = "\u0300"
"""The first character that takes another number of columns than one: Latin letters, `µ` and `²` come before it."""
_BREAKS = "/\\_,:;<>()[]-.="
"""Signs behind which a word breaks that is longer than a line."""

_PARAGRAPHS: dict[str, Style] = {"note": "dim", "answer": "strong"}

_CODES: dict[str, str] = {
    "strong": "1",
    "dim": "2",
    "memory": "34",
    "compute": "31",
    "latency": "35",
    "overhead": "33",
    "balanced": "32",
    "unknown": "2",
    "communication": "36",
}


def to_terminal(document: Document, width: int | None = None, *, colour: bool = False) -> str:
    """Write the blocks one below the other, with an empty line before headings and between paragraphs.

    Args:
        document: What is to be shown.
        width: Columns of the terminal; None if there is none.
        colour: Whether it shows bold text and colours.
    """
    paper = _Paper(width, colour)
    lines: list[str] = []
    blocks = [*for_text(document)]
    for before, block in zip((None, *blocks), blocks, strict=False):
        if lines and _begins(before, block):
            lines.append("")
        lines += paper.block(block)
    return "".join(f"{line}\n" for line in lines)


def _begins(before: Block | None, block: Block) -> bool:
    """Return whether an empty line sets a block apart from the one before."""
    if isinstance(block, Heading):
        return True
    if isinstance(block, (Table, Excerpt)):
        return bool(block.title)
    return isinstance(block, Paragraph) and isinstance(before, Paragraph) and "note" not in {block.kind, before.kind}


class _Paper:
    def __init__(self, width: int | None, colour: bool) -> None:  # noqa: FBT001 - of this module alone
        self._width = width
        self._colour = colour

    def block(self, block: Block) -> Iterator[str]:
        if isinstance(block, Heading):
            yield from self._wrapped(block.words, style="strong")
        elif isinstance(block, Paragraph):
            for line in block.lines:
                yield from self._wrapped(line, style=_PARAGRAPHS.get(block.kind, "plain"))
        elif isinstance(block, Bullets):
            for place, item in enumerate(block.items, start=1):
                yield from self._item(item, f"{place}. " if block.numbered else "  ")
        elif isinstance(block, Folded):
            yield from self._wrapped((*spans(block.title), ":"), style="strong")
            for inner in for_text(block.blocks):
                yield from self.block(inner)
        elif isinstance(block, Table):
            yield from self._table(block)
        elif isinstance(block, Excerpt):
            yield from self._excerpt(block)

    def _excerpt(self, block: Excerpt) -> Iterator[str]:
        yield from self._wrapped(block.title)
        for line, row in zip(block.lines, block.rows(), strict=True):
            text = printable(f"{_INDENT}{row}").rstrip()
            cut = text if self._width is None else cut_end(text, self._width)
            yield self._set(cut, "strong" if line.kind else "dim")

    def _item(self, item: Item, mark: str) -> Iterator[str]:
        yield from self._wrapped(item.words, mark)
        indent = " " * len(mark)
        for line in item.lines:
            yield from self._wrapped(line, indent)
        for line in item.items:
            yield from self._wrapped(line, f"{indent}- ")

    def _wrapped(self, words: Words, mark: str = "", style: Style = "plain", hang: int = 0) -> Iterator[str]:
        """Break a line at words; spans keep their own style."""
        text = _plain_text(words)
        lines = [f"{mark}{text}".rstrip()] if self._width is None else wrapped(text, self._width, mark, hang)
        if not self._colour or style != "plain":
            return (self._set(line, style) for line in lines)
        styles = (span.style for span in spans(words) for char in printable(span.text) if char != " ")
        return (line[: len(mark)] + self._spanned(line[len(mark) :], styles) for line in lines)

    def _spanned(self, line: str, styles: Iterator[Style]) -> str:
        """Set each part of a line in the style of its span."""
        runs: list[tuple[str, Style]] = []
        for char in line:
            style = next(styles) if char != " " else runs[-1][1] if runs else "plain"
            before = runs.pop()[0] if runs and runs[-1][1] == style else ""
            runs.append((before + char, style))
        return "".join(self._set(text, style) for text, style in runs)

    def _set(self, text: str, style: Style) -> str:
        number = _CODES.get(style, _CODES.get(style.removesuffix("?"))) if self._colour and text else None
        return f"\x1b[{number}m{text}\x1b[0m" if number else text

    def _table(self, table: Table) -> Iterator[str]:
        if table.title:
            yield from self._wrapped(table.title, style="strong", hang=len(_INDENT))
        columns, across = table.columns, [table.is_across(row) for row in table.rows]
        indent = _INDENT if any(across) else ""
        rows = [[_span_texts(cell) for cell in row] for row in table.rows]
        lines = [row for row, names in zip(rows, across, strict=True) if not names]
        widths = _widths(columns, lines, (self._width or UNLIMITED) - len(indent))
        below = [i for i, column in enumerate(columns) if column.fit == "prose" and i not in widths]
        head = (_aligned(columns[i].heading, size, right=columns[i].right) for i, size in widths.items())
        yield self._set(indent + _GAP.join(head).rstrip(), "strong")
        # Names of one table are cut together: each alone, `gemm_128x64` and `gemm_128x32` could end up the same.
        cut = {i: _cut_names([row[i] for row in lines], size) for i, size in widths.items() if columns[i].fit == "name"}
        for row, cells, names in zip(rows, table.rows, across, strict=True):
            if names:
                yield from self._wrapped(cells[0], hang=len(indent))
                continue
            fitted = [
                [
                    self._set(_aligned(line, size, right=columns[i].right), spans(cells[i])[0].style)
                    for line in _fitted(row[i], size, columns[i], cut.get(i, {}))
                ]
                for i, size in widths.items()
            ]
            for number in range(max(map(len, fitted))):
                line = (
                    parts[number] if number < len(parts) else " " * size
                    for size, parts in zip(widths.values(), fitted, strict=True)
                )
                yield (indent + _GAP.join(line)).rstrip()
            for i in below:
                if any(row[i]):
                    yield from self._wrapped(cells[i], _INDENT)


def _plain_text(words: Words) -> str:
    return "".join(_span_texts(words))


def _span_texts(words: Words) -> list[str]:
    if isinstance(words, str):
        return [printable(words)]
    return [printable(span.text) for span in spans(words)]


def _columns_taken(text: str) -> int:
    # Not len(): a CJK character takes two columns and a combining mark none.
    if text.isascii() or max(text) < _COMBINING:
        return len(text)
    try:
        from wcwidth import wcswidth  # noqa: PLC0415 - most texts are plain
    except ImportError:  # where only collecting is to work
        return len(text)
    columns = wcswidth(text)
    return len(text) if columns < 0 else columns


def _aligned(text: str, width: int, *, right: bool) -> str:
    space = " " * max(width - _columns_taken(text), 0)
    return space + text if right else text + space


def wrapped(text: str, width: int, mark: str = "", hang: int = 0) -> list[str]:
    """Break a text at spaces, but not between a number and its unit; further lines are indented below it, or by `hang`.

    A word that is longer than a line is broken behind a sign in it.
    """
    indent = " " * (hang or len(mark))
    lines, line = [], mark
    for word in unbroken(text).split(" "):
        rest = word
        while _columns_taken(line) + bool(line.strip() and line != mark) + _columns_taken(rest) > width:
            room = width - len(indent)
            if line not in {mark, indent}:
                lines.append(line)
            elif room > 1:
                end = max((i + 1 for i, char in enumerate(rest[:room]) if char in _BREAKS), default=room)
                lines.append(line + rest[:end])
                rest = rest[end:]
            else:
                break
            line = indent
        line += f" {rest}" if line not in {mark, indent} else rest
    return [one.replace(NBSP, " ").rstrip() for one in (*lines, line)]


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[list[str]]], width: int) -> dict[int, int]:
    """Share the width out: prose goes below, columns leave by their worth, texts and names give way.

    Returns:
        Width by position, of the columns that have one.
    """
    heads = [_columns_taken(column.heading) for column in columns]
    whole = {i: max(heads[i], *(sum(map(_columns_taken, row[i])) for row in rows), 0) for i in range(len(columns))}
    tight = {
        i: size if columns[i].fit == "keep" else min(size, max(heads[i], columns[i].least)) for i, size in whole.items()
    }
    roomy = {
        i: tight[i] if columns[i].fit == "prose" else max(tight[i], min(size, columns[i].most or size))
        for i, size in whole.items()
    }
    leaving = sorted((i for i in whole if i and columns[i].fit != "prose"), key=lambda i: (columns[i].worth, -i))
    spare = [i for i in leaving if columns[i].worth <= SPARE]
    known = [i for i in whole if i not in spare or any("".join(row[i]) not in _NOTHING for row in rows)]

    def room(sizes: dict[int, int]) -> int:
        return width - sum(sizes[i] for i in shown) - len(_GAP) * (len(shown) - 1)

    shown = known
    if room(whole) >= 0:
        return {i: whole[i] for i in known}
    shown = [i for i in known if i not in spare]
    # A sentence cut to ten characters says nothing, so prose moves below its row before any number leaves.
    has_prose = room(roomy) >= 0
    shown = [i for i in known if has_prose or columns[i].fit != "prose"]
    for sizes, some in ((roomy, spare), (tight, leaving[len(spare) :])):
        for i in some:
            if i in shown and room(sizes) < 0:
                shown.remove(i)
    sizes = {i: tight[i] for i in shown}
    for wanted in (roomy, whole):
        while room(sizes) > 0 and (hungry := [i for i in sizes if sizes[i] < wanted[i]]):
            # One column at a time to the narrowest: long names would otherwise take all that is left.
            sizes[min(hungry, key=sizes.__getitem__)] += 1
    if room(sizes) < 0 and columns[0].fit != "keep":
        sizes[0] = max(sizes[0] + room(sizes), _LEAST)
    return sizes


def _cut_names(cells: Sequence[list[str]], width: int) -> dict[str, str]:
    """Cut the names of a column, each to what the rest of its cell leaves."""
    room: dict[str, int] = {}
    for name, *rest in cells:
        room[name] = min(room.get(name, width), width - sum(map(_columns_taken, rest)))
    return cut_apart(room)


def _fitted(texts: list[str], width: int, column: Column, names: dict[str, str]) -> list[str]:
    """Fit a cell into its width: on one line, or on several where it wraps."""
    text = "".join(texts)
    if _columns_taken(text) <= width or column.fit == "keep":
        return [text]
    if column.fit == "name":
        return ["".join((names[texts[0]], *texts[1:]))]
    return [cut_end(text, width)] if column.fit == "end" else wrapped(text, width)
