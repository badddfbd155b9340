"""What people note of a print: rows without the table around them, in lists, comments and tables of Markdown.

Only labels that ncu prints are taken, each with a number: the rest is somebody's prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rooflens.ingest.exports.labels import metric_of
from rooflens.ingest.exports.numbers import is_number
from rooflens.ingest.exports.units import dimension_of
from rooflens.model.counters.labels import BUSY

_MOST_GROUPS = 7
"""So many groups of digits, with spaces between them, make one number at most."""
_MOST_CELLS = 6
_LONGEST_NOTE = 300
_EMPHASIS = str.maketrans("", "", "*`")
_AMOUNT = re.compile(r"(?P<value>[\d.,]+(?: [\d.,]+)*) ?(?P<unit>%|[A-Za-zµμ]+(?:/[A-Za-z]+)?)?(?: ?\(.{0,100}\))?")
_LABELLED = re.compile(r"(?P<label>\S.*?)\s\[(?P<unit>[^\[\]]{1,30})\]\s+(?P<value>[\d.,]+)")


def noted(bare: str) -> tuple[str, str, str] | None:
    """Split a line into a known label, its unit and a number; None if it is another line."""
    if len(bare) > _LONGEST_NOTE:
        return None
    if bare.startswith("|"):
        return _of_cells([cell.strip().translate(_EMPHASIS) for cell in bare.strip("| ").split("|")])
    row = _of_words(bare)
    return row or (_of_words(bare[1:].lstrip()) if bare.startswith("# ") else None)  # `# SMs` is a label


def _of_words(bare: str) -> tuple[str, str, str] | None:
    """Parse `LABEL UNIT NUMBER`, with the unit bare or in brackets, as people copy it from ncu's window."""
    if found := _LABELLED.fullmatch(bare):
        label, unit, value = found["label"], found["unit"], found["value"]
        return (label, unit, value) if is_number(value) and _is_known(label, unit) else None
    words = bare.split()
    if (metric_of(" ".join(words[:-1]), "") or "").startswith("launch__"):  # which may be a word
        return " ".join(words[:-1]), "", words[-1]
    for count in range(1, min(len(words), _MOST_GROUPS + 1)):
        value = " ".join(words[-count:])
        if not is_number(value):
            continue
        for units in (1, 0):
            name, unit = " ".join(words[: -count - units]), words[-count - 1] if units else ""
            if len(words) > count + units and _is_known(name, unit):
                return name, unit, value
    return None


def _of_cells(cells: Sequence[str]) -> tuple[str, str, str] | None:
    """Take the row of a table of Markdown that has one value: with more it compares kernels."""
    if not 1 < len(cells) <= _MOST_CELLS:
        return None
    label, *others = cells
    amounts = [found for cell in others if (found := _AMOUNT.fullmatch(cell))]
    if len(amounts) != 1 or not is_number(amounts[0]["value"]):
        return None
    unit = amounts[0]["unit"] or next((cell for cell in others if cell == "%" or dimension_of(cell)), "")
    return (label, unit, amounts[0]["value"]) if _is_known(label, unit) else None


def _is_known(label: str, unit: str) -> bool:
    return metric_of(label, unit) is not None or (label in BUSY and unit == "%")
