"""Write a document as GitHub-flavoured Markdown, where text stays text whatever a report puts into it.

Names out of a report stand in code spans: nothing in one is HTML, a link, a mention or a reference. Sentences are
escaped, and what GitHub links without any mark-up is taken apart by an invisible joiner.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rooflens.report.document import (
    Block,
    Bullets,
    Document,
    Excerpt,
    Folded,
    Heading,
    Item,
    Paragraph,
    Span,
    Table,
    Words,
    for_text,
    spans,
)

_JOINER = "\u2060"
_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LINKED = (re.compile(r"(@|#)()"), re.compile(r"(:)(//)"), re.compile(r"(www)(\.)", re.IGNORECASE))
"""What GitHub links as bare words: the joiner goes between, for a link would swallow the escapes behind it."""

_WRITTEN = re.compile(
    r"(?P<block>^(?P<bar>`{3,})text\n(?:.*\n)*?(?P=bar)$)|"
    rf"\\(?P<escaped>[\\`*_\[\]|~$])|\\(?=\n)|(?P<code>(?P<fence>`+)(?!`).*?(?<!`)(?P=fence)(?!`))"
    rf"|&(?P<entity>amp|lt|gt);|{_JOINER}",
    re.MULTILINE,
)
_NAMED = {"amp": "&", "lt": "<", "gt": ">"}
_TICKS = re.compile("`+")
_SPACES = " \t\r\n\v\f\u2028\u2029\u0085"

# Renderers differ in how they read a backslash before a pipe inside a cell, so that none may stand there.
_BACKSLASH = "\u29f5"
_CELL = str.maketrans({"|": "\\|", "\\": _BACKSLASH})


def to_markdown(document: Document) -> str:
    """Write the blocks with an empty line between them; it holds no HTML but folded parts."""
    return "\n\n".join(filter(None, map(_block, for_text(document))))


def unescaped(text: str) -> str:
    """Take the escapes out of what `to_markdown` wrote, for a model, which reads the text and renders nothing."""
    return _WRITTEN.sub(_as_it_is, text)


def _as_it_is(match: re.Match[str]) -> str:
    """Return what was written; in a row of a table, code has its pipes and backslashes again, and only code."""
    if match["block"]:
        return match["block"]
    is_cell = match.string.startswith("| ", match.string.rfind("\n", 0, match.start()) + 1)
    if match["code"]:
        return match["code"].replace("\\|", "|").replace(_BACKSLASH, "\\") if is_cell else match["code"]
    if match["escaped"] == "|" and is_cell:
        return match[0]
    return match["escaped"] or _NAMED.get(match["entity"] or "", "")


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {line(block.words)}"
    if isinstance(block, Paragraph):
        if block.kind == "warning":
            return "\n".join(("> [!WARNING]", *(f"> {line(words)}" for words in block.lines)))
        return ("\\\n" if block.kind == "facts" else "\n").join(map(line, block.lines))
    if isinstance(block, Bullets):
        items = (_item(item, f"{i}. " if block.numbered else "- ") for i, item in enumerate(block.items, start=1))
        return "\n".join(items)
    if isinstance(block, Folded):
        return f"<details><summary>{line(block.title)}</summary>\n\n{to_markdown(block.blocks)}\n\n</details>"
    return _table(block) if isinstance(block, Table) else _excerpt(block) if isinstance(block, Excerpt) else ""


def _excerpt(block: Excerpt) -> str:
    return f"{line(block.title)}\n\n{_fenced(block.rows())}"


def _fenced(rows: Iterable[str]) -> str:
    """Set lines as a block of code, which no line of them ends."""
    lines = [_visible(row).rstrip() for row in rows]
    longest = max((len(run) for row in lines for run in _TICKS.findall(row)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}text", *lines, fence))


def _item(item: Item, mark: str) -> str:
    indent = " " * len(mark)
    lines = [f"{mark}{line(item.words)}", *(f"{indent}{line(words)}" for words in item.lines)]
    return "\n".join((*lines, *(f"{indent}- {line(words)}" for words in item.items)))


def _table(table: Table) -> str:
    rules = "|".join("---:" if column.right else "---" for column in table.columns)
    empty = [""] * (len(table.columns) - 1)
    rows = (_row([*map(_cell, row), *(empty if table.is_across(row) else ())]) for row in table.rows)
    head = _row([prose(column.heading) for column in table.columns])
    title = f"**{line(table.title)}**\n\n" if table.title else ""
    return title + "\n".join((head, f"|{rules}|", *rows))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(words: Words) -> str:
    """Write a cell: the pipes in a code span end none."""
    return "".join(
        code(span.text).translate(_CELL) if span.style == "code" else _span(span) for span in spans(words)
    ).strip()


def line(words: Words) -> str:
    """Write a line."""
    return "".join(map(_span, spans(words)))


def _span(span: Span) -> str:
    if span.style == "code":
        return code(span.text)
    if span.style == "literal":
        return _escaped(span.text)
    return f"**{prose(span.text)}**" if span.style == "strong" and span.text else prose(span.text)


def code(text: str) -> str:
    """Set a text as one code span on one line; empty text stays empty."""
    text = " ".join(_visible(text).split())
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str) -> str:
    """Escape a sentence; text between backticks becomes code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "".join(_escaped(part) if i % 2 == 0 else code(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    text = _SPECIAL.sub(r"\\\1", _visible(text)).translate(_ENTITIES)
    for linked in _LINKED:
        text = linked.sub(rf"\1{_JOINER}\2", text)
    return text


def _visible(text: str) -> str:
    """Make line ends spaces, and replace what would be invisible or would turn the text around."""
    return "".join(" " if char in _SPACES else char if char.isprintable() or char == "\u00a0" else "?" for char in text)
