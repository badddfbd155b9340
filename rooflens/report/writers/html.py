"""Write a document as HTML: fragments without script, in which no text of a report is mark-up."""

from __future__ import annotations

from html import escape

from rooflens.format import printable, unbroken
from rooflens.report.document import (
    Block,
    Bullets,
    Column,
    Document,
    Folded,
    Heading,
    Item,
    Paragraph,
    Table,
    Words,
    spans,
)

_TAGS = {"code": "code", "strong": "b", "dim": "small"}


def to_html(document: Document) -> str:
    """Write the blocks one after the other."""
    return "".join(map(_block, document))


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_words(block.words)}</h{block.level}>"
    if isinstance(block, Paragraph):
        kind = f' class="{block.kind}"' if block.kind else ""
        return f"<p{kind}>{'<br>'.join(map(_words, block.lines))}</p>"
    if isinstance(block, Bullets):
        tag = "ol" if block.numbered else "ul"
        return f"<{tag}>{''.join(map(_item, block.items))}</{tag}>"
    if isinstance(block, Folded):
        return f"<details><summary>{_words(block.title)}</summary>{to_html(block.blocks)}</details>"
    return _table(block)


def _item(item: Item) -> str:
    inner = f"<ul>{''.join(f'<li>{_words(words)}</li>' for words in item.items)}</ul>" if item.items else ""
    return f"<li>{'<br>'.join(map(_words, (item.words, *item.lines)))}{inner}</li>"


def _table(table: Table) -> str:
    title = f"<caption>{_words(table.title)}</caption>" if table.title else ""
    head = _row("th", table.columns, tuple(column.heading for column in table.columns))
    body = "".join(_row("td", table.columns, row) for row in table.rows)
    return f"<table>{title}<thead>{head}</thead><tbody>{body}</tbody></table>"


def _row(tag: str, columns: tuple[Column, ...], cells: tuple[Words, ...]) -> str:
    written = (
        f'<{tag} style="text-align:{"right" if column.right else "left"}">{_words(cell)}</{tag}>'
        for column, cell in zip(columns, cells, strict=True)
    )
    return f"<tr>{''.join(written)}</tr>"


def _words(words: Words) -> str:
    return "".join(_span(span.text, span.style) for span in spans(words))


def _span(text: str, style: str) -> str:
    if style == "code":
        return f"<code>{_text(text)}</code>" if text else ""
    if style == "literal":
        return _text(text)
    parts = text.split("`")
    if len(parts) % 2 == 0:
        written = _text(text)
    else:
        written = "".join(f"<code>{_text(part)}</code>" if i % 2 else _text(part) for i, part in enumerate(parts))
    tag = _TAGS.get(style)
    return f"<{tag}>{written}</{tag}>" if tag else written


def _text(text: str) -> str:
    return escape(unbroken(printable(text)))
