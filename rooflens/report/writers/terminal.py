"""Write a document for a terminal: no control character but our own reaches it, and no number is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import TextWrapper, wrap

from rooflens.format import cut_end, cut_middle, cut_name, printable
from rooflens.report.document import (
    Block,
    Bullets,
    Column,
    Document,
    Folded,
    Heading,
    Item,
    Paragraph,
    Style,
    Table,
    Words,
    spans,
)

UNLIMITED = 200
"""Width of tables where there is no terminal; lines of text stay whole there, for `grep` and logs."""

_GAP = "  "
_LEAST = 8
_CODES: dict[Style, str] = {
    "strong": "1",
    "dim": "2",
    "memory": "34",
    "compute": "31",
    "latency": "35",
    "overhead": "33",
    "balanced": "32",
    "unknown": "2",
}


def to_terminal(document: Document, width: int | None = None, *, colour: bool = False) -> str:
    """Write the blocks one below the other, with an empty line before headings and between paragraphs.

    Args:
        document: What is to be shown.
        width: Columns of the terminal; None where there is none.
        colour: Whether it shows bold text and colours.
    """
    paper = _Paper(width, colour)
    lines: list[str] = []
    for before, block in zip((None, *document), document, strict=False):
        if lines and _begins(before, block):
            lines.append("")
        lines += paper.block(block)
    return "".join(f"{line}\n" for line in lines)


def _begins(before: Block | None, block: Block) -> bool:
    """Return whether an empty line sets a block apart from the one before."""
    if isinstance(block, Heading):
        return True
    if isinstance(block, Table):
        return bool(block.title)
    return isinstance(block, Paragraph) and isinstance(before, Paragraph) and "note" not in {block.kind, before.kind}


class _Paper:
    def __init__(self, width: int | None, colour: bool) -> None:  # noqa: FBT001 - of this module alone
        self._width = width
        self._colour = colour

    def block(self, block: Block) -> Iterator[str]:
        if isinstance(block, Heading):
            yield self._set(_text(block.words), "strong")
        elif isinstance(block, Paragraph):
            for line in block.lines:
                yield from self._wrapped(line, "", dim=block.kind == "note")
        elif isinstance(block, Bullets):
            for place, item in enumerate(block.items, start=1):
                yield from self._item(item, f"{place}. " if block.numbered else "  ")
        elif isinstance(block, Folded):
            yield self._set(f"{printable(block.title)}:", "strong")
            for inner in block.blocks:
                yield from self.block(inner)
        else:
            yield from self._table(block)

    def _item(self, item: Item, mark: str) -> Iterator[str]:
        yield from self._wrapped(item.words, mark)
        indent = " " * len(mark)
        for line in item.lines:
            yield from self._wrapped(line, indent)
        for line in item.items:
            yield from self._wrapped(line, f"{indent}- ")

    def _wrapped(self, words: Words, mark: str, *, dim: bool = False) -> Iterator[str]:
        """Break a line at words, the next ones indented as far as the first."""
        text = _text(words)
        if self._width is None:
            lines = [f"{mark}{text}"]
        else:
            hanging = TextWrapper(self._width, mark, " " * len(mark), break_long_words=False, break_on_hyphens=False)
            lines = hanging.wrap(text)
        styles = {span.style for span in spans(words)}
        style: Style = "dim" if dim else next(iter(styles)) if len(styles) == 1 else "plain"
        return (self._set(line, style) for line in lines or [mark.rstrip()])

    def _set(self, text: str, style: Style) -> str:
        number = _CODES.get(style) if self._colour and text else None
        return f"\x1b[{number}m{text}\x1b[0m" if number else text

    def _table(self, table: Table) -> Iterator[str]:
        if table.title:
            yield self._set(_text(table.title), "strong")
        width = self._width or UNLIMITED
        rows = [[_texts(cell) for cell in row] for row in table.rows]
        shown = [i for i, column in enumerate(table.columns) if column.from_width <= width]
        widths = _widths(table.columns, rows, shown, width)
        head = (_aligned(table.columns[i].heading, widths[i], right=table.columns[i].right) for i in widths)
        yield self._set(_GAP.join(head).rstrip(), "strong")
        for row, cells in zip(rows, table.rows, strict=True):
            columns = [
                [
                    self._set(_aligned(line, widths[i], right=table.columns[i].right), spans(cells[i])[0].style)
                    for line in _fitted(row[i], widths[i], table.columns[i])
                ]
                for i in widths
            ]
            for number in range(max(map(len, columns))):
                line = (
                    lines[number] if number < len(lines) else " " * widths[i]
                    for i, lines in zip(widths, columns, strict=True)
                )
                yield _GAP.join(line).rstrip()


def _text(words: Words) -> str:
    return "".join(_texts(words))


def _texts(words: Words) -> list[str]:
    if isinstance(words, str):
        return [printable(words)]
    return [printable(span.text) for span in spans(words)]


def _cells(text: str) -> int:
    """Count the columns that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - most texts are plain

    return cell_len(text)


def _aligned(text: str, width: int, *, right: bool) -> str:
    space = " " * max(width - _cells(text), 0)
    return space + text if right else text + space


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[list[str]]], shown: Sequence[int], width: int
) -> dict[int, int]:
    """Share the width out: what each column needs, then the widest text gives way; last, columns leave.

    Returns:
        Width by position, of the columns that are shown.
    """
    heads = {i: _cells(columns[i].heading) for i in shown}
    needed = {i: max(heads[i], *(sum(map(_cells, row[i])) for row in rows), 0) for i in shown}
    if sum(needed.values()) + len(_GAP) * (len(needed) - 1) <= width:
        return needed
    needed = {i: max(heads[i], min(size, columns[i].most or size)) for i, size in needed.items()}
    while True:
        room = width - len(_GAP) * (len(needed) - 1)
        for least in (lambda column: column.least, lambda _: _LEAST):
            over = sum(needed.values()) - room
            while over > 0:
                texts = {i: size for i, size in needed.items() if columns[i].fit != "keep" and size > least(columns[i])}
                if not texts:
                    break
                widest_first = sorted(texts.values(), reverse=True)
                i = max(texts, key=texts.__getitem__)
                below = max(least(columns[i]), widest_first[1] - 1 if len(widest_first) > 1 else 0)
                cut = min(over, texts[i] - below)
                needed[i] -= cut
                over -= cut
        leaving = max(needed, key=lambda i: columns[i].from_width)
        if over <= 0 or not columns[leaving].from_width:
            return needed
        del needed[leaving]


def _fitted(texts: list[str], width: int, column: Column) -> list[str]:
    """Fit a cell into its width: on one line, or on several where it wraps."""
    text = "".join(texts)
    if _cells(text) <= width or column.fit == "keep":
        return [text]
    if column.fit == "name":
        rest = "".join(texts[1:])
        return [cut_name(texts[0], max(width - len(rest), 1)) + rest]
    if column.fit == "wrap":
        return wrap(text, width, break_on_hyphens=False)
    return [(cut_end if column.fit == "end" else cut_middle)(text, width)]
