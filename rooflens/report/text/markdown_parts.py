"""Tables and text in GitHub-flavoured Markdown, where text stays text whatever a report puts into it.

Names out of a report stand in code spans: nothing in one is HTML, a link, a mention or a reference. Sentences are
escaped, and what GitHub links without any mark-up is taken apart by an invisible joiner.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_JOINER = "\u2060"
_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LINKED = (re.compile(r"(@|#)()"), re.compile(r"(:)(//)"), re.compile(r"(www)(\.)", re.IGNORECASE))
"""What GitHub links as bare words: the joiner goes between, for a link would swallow the escapes behind it."""

_TICKS = re.compile("`+")
_SPACES = " \t\r\n\v\f\u2028\u2029\u0085"

# Renderers differ in how they read a backslash before a pipe inside a cell, so that none may stand there.
_CELL = str.maketrans({"|": "\\|", "\\": "\u29f5"})


def code(text: str) -> str:
    """Set a text as one code span on one line; empty text stays empty."""
    line = _one_line(text)
    if not line:
        return ""
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(line)), default=0))
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def code_cell(text: str) -> str:
    """Set a text as a code span in a table's cell: its pipes end no cell."""
    return code(text).translate(_CELL)


def prose(text: str) -> str:
    """Escape a sentence; what stands between backticks in it becomes code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "".join(_escaped(part) if i % 2 == 0 else code(part) for i, part in enumerate(parts))


def heading(text: str) -> str:
    """Escape a text without reading backticks in it as code."""
    return _escaped(text).strip()


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()) -> str:
    """Write a table of cells that are Markdown themselves, as `code_cell` and `prose` make it.

    Args:
        headings: Of the columns, from the left.
        rows: As many cells each.
        right: Headings of the columns that are set to the right.
    """
    rules = "|".join("---:" if heading in right else "---" for heading in headings)
    return "\n".join((_line(headings), f"|{rules}|", *map(_line, rows)))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    text = _SPECIAL.sub(r"\\\1", _visible(text)).translate(_ENTITIES)
    for linked in _LINKED:
        text = linked.sub(rf"\1{_JOINER}\2", text)
    return text


def _one_line(text: str) -> str:
    return " ".join(_visible(text).split())


def _visible(text: str) -> str:
    """Make line ends spaces, and replace what would be invisible or would turn the text around."""
    return "".join(" " if char in _SPACES else char if char.isprintable() or char == "\u00a0" else "?" for char in text)
