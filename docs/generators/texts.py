"""Common parts of the pages of the reference: tables, and units in names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_UNITS = {
    "_bytes_per_s": "byte/s",
    "_flop_per_byte": "FLOP/byte",
    "_flop_per_s": "FLOP/s",
    "_flop_peak_per_s": "FLOP/s",
    "_inst_per_s": "instructions/s",
    "_threads_per_s": "thread instructions/s",
    "_bytes": "byte",
    "_flop": "FLOP",
    "_flop_total": "FLOP",
    "_hz": "Hz",
    "_unix_s": "s since 1970",
    "_ns": "ns",
    "_pct": "%",
    "_pct_of_peak": "%",
    "_share": "0 to 1",
    "_rate": "0 to 1",
    "_sectors_per_request": "sectors of 32 bytes",
    "_sectors": "sectors of 32 bytes",
    "_cycles": "cycles",
    "_requests": "requests",
    "_wavefronts": "wavefronts",
    "_inst": "warp instructions",
    "_inst_per_cycle": "warp instructions",
    "_threads": "thread instructions",
    "_warps": "warps",
    "_warps_per_cycle": "warps",
    "_bytes_per_sector": "byte",
    "_occupancy": "0 to 1",
    "_samples": "samples",
    "_stall": "0 to 1",
    "_drop": "0 to 1",
    "_spread": "0 to 1",
    "_lead": "0 to 1",
    "_explained": "0 to 1",
    "_filled": "0 to 1",
    "_part": "0 to 1",
}
"""End of a name -> unit; the longest end that fits counts."""

_OF_CATALOGUE = {"share": "0 to 1", "B": "byte", "B/s": "byte/s", "FLOP/B": "FLOP/byte"}

_NAMED = {
    "share": "0 to 1",
    "at_share": "0 to 1",
    "bottleneck_share": "0 to 1",
    "factor": "factor",
    "active_threads": "threads",
    "slowdown": "factor",
    "limiter_gain": "factor",
    "fp64_slower_factor": "factor",
    "open_room": "factor",
    "small_grid_waves": "waves",
    "waves": "waves",
    "sol_compute": "0 to 1",
    "sol_memory": "0 to 1",
}


def unit_of(name: str) -> str:
    """Return the unit in a name; empty for text, counts and identifiers."""
    fitting = [end for end in _UNITS if f"_{name}".endswith(end)]
    return _NAMED.get(name) or (_UNITS[max(fitting, key=len)] if fitting else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a Markdown table; a bar within a cell is escaped."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|").strip() for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def filled(text: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Put tables into a handwritten page, each where a line ends with `<!-- table NAME -->`.

    Raises:
        AssertionError: The page has no place of that name.
    """
    for name, lines in tables.items():
        new = "\n".join(lines)
        text, found = re.subn(rf"^.*<!-- table {name} -->$", lambda _, new=new: new, text, flags=re.MULTILINE)
        assert found == 1, name
    return text


def joined(*lines: str) -> str:
    """Join the lines of a page."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


MADE = "<!-- Written by `make docs` from the code. -->"


def shown_unit(unit: str) -> str:
    """Write a unit of the catalogue as the reference writes units."""
    return _OF_CATALOGUE.get(unit, unit)
