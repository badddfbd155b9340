"""What stands before each line of a pasted text: the number, comment mark, time or bar that another program put there.

No list of such programs is kept. ncu's own lines begin with known words, so what is left of them is the margin; its
digits may change from line to line, its letters not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import unescape

from rooflens.ingest.exports.numbers import is_number

_ANCHOR = re.compile(r"(?P<margin>.*?\S)\s*(?:Section: \S|Metric Name\s+Metric Unit\s|(?<!-)-{3,}+\s++-{3,}+\s++-{3,})")
_WORDS = ("Section: ", "Metric Name", "--- ---", "---\t---")
_LONGEST_MARGIN = 120
_FEWEST = 2
"""So many lines must have a margin, and more than have none."""
_BARS = "│┃║|"
_END = re.compile(rf"\s*[{_BARS}]\s*$")
_PARTS = re.compile(r"\d+|\s+|[^\d\s]+")
_PAIRED = frozenset({4, 6})
"""Cells of a line of the tool's window, which shows two or three labels beside each other, each with its number."""


def margin_of(lines: Iterable[str]) -> re.Pattern[str] | None:
    """Return what stands before ncu's lines in most of them; None if nothing does."""
    margins = Counter(_pattern(line) for line in lines if any(word in line for word in _WORDS))
    if not margins:
        return None
    (pattern, count), *_ = margins.most_common(1)
    return re.compile(pattern) if pattern and count >= _FEWEST else None


def _pattern(line: str) -> str:
    """Write the margin of a line as an expression; empty if it has none, or is no line of ncu's."""
    found = _ANCHOR.match(line[: 2 * _LONGEST_MARGIN])
    if found is None or len(found["margin"]) > _LONGEST_MARGIN or _is_of_ncu(found["margin"]):
        return ""
    parts = _PARTS.findall(found["margin"].lstrip())
    return r"\s*" + "".join(r"\d+" if p.isdigit() else r"\s+" if p.isspace() else re.escape(p) for p in parts)


def _is_of_ncu(margin: str) -> bool:
    """Return whether it is a part of the dashed line itself."""
    return not margin.strip(" \t-")


def without_margin(line: str, margin: re.Pattern[str] | None) -> str:
    """Return a line without its margin, and without the bar at its end where the margin is one."""
    if margin is None or (found := margin.match(line)) is None:
        return line
    rest = line[found.end() :]
    return _END.sub("", rest) if found[0].strip()[:1] in _BARS or found[0][-1] in _BARS else rest


def as_printed(line: str) -> Iterator[str]:
    """Yield a line as ncu prints it: without the marks of HTML, and labels that stand beside each other one by one."""
    if "&lt;" in line or "&gt;" in line:
        line = unescape(line)
    cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else []
    cells = [cell for cell in cells if cell]
    if len(cells) in _PAIRED and all(map(is_number, cells[1::2])) and not any(map(is_number, cells[::2])):
        yield from (f"{label}  {value}" for label, value in zip(cells[::2], cells[1::2], strict=True))
    else:
        yield line
