"""Data as text, JSON and CSV, whatever names are in it: nothing steers a terminal, and no cell is a formula."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from rooflens.format import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_STEERING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What JSON need not escape, and a terminal or an editor obeys or hides: `json` escapes the rest."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_QUOTED = re.compile('[",\r\n]')


def json_text(document: Any, *, dense: bool = False) -> str:
    """Write JSON with letters of any script as they are, and invisible characters as escapes.

    Args:
        document: Of lists, dicts, texts and finite numbers.
        dense: Write it for programs: on one line, without spaces.
    """
    indent, separators = (None, (",", ":")) if dense else (2, None)
    text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, raw_cells: bool = False) -> str:
    """Write CSV with a line of headings; what is None is empty, and further keys of a row are left out.

    A text that a spreadsheet would run gets an apostrophe before it, and its control characters become `?`; the CSV
    button of the page does the same.

    Args:
        columns: Keys of the rows, and headings.
        rows: Texts and numbers by column.
        raw_cells: Keep texts as they are.
    """
    lines = [columns, *([row.get(column) for column in columns] for row in rows)]
    return "".join(f"{','.join(_cell(value, raw=raw_cells) for value in line)}\n" for line in lines)


def _cell(value: Any, *, raw: bool) -> str:
    if value is None:
        return ""
    text = str(value)
    if isinstance(value, str) and not raw:
        text = harmless(f"'{text}" if text.startswith(_FORMULA) else text)
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(text) else text
