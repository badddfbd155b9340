"""What all pages are made of: signs, bars, tables, and charts with their notes and the table behind each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct

from rooflens.report.html.theme import LOOKS


class Table(Struct, frozen=True):
    """A table of texts.

    Attributes:
        label: What it holds, for readers who do not see it.
        columns: Headings; `#` before one marks a column of numbers.
        rows: The cells of each row; the first is its heading.
        more: How many rows are left out, and where they are; empty where all are there.
    """

    label: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: str = ""


class Figure(Struct, frozen=True):
    """A chart, ready to be placed.

    Attributes:
        key: Its name in the page: the specification is the JSON block `spec-<key>`.
        spec: What Vega-Lite draws.
        label: What it shows, for readers who do not see it.
        save: What its buttons for saving are called, before the format.
        notes: Sentences below it.
        data: The rows that it draws; None where another part of the page lists them.
        holder: What holds its data where scripts are off.
    """

    key: str
    spec: dict[str, Any]
    label: str
    save: str
    notes: Sequence[str] = ()
    data: Table | None = None
    holder: str = "the table below holds its data"


def shape(bound: str) -> Markup:
    """Draw the sign of a verdict class."""
    hollow = " hollow" if bound == "unknown" else ""
    sign = f'<svg class="shape{hollow}" style="color:var(--{bound})" viewBox="0 0 12 12" aria-hidden="true">'
    return Markup(f'{sign}<path d="{LOOKS[bound].path}"/></svg>')  # noqa: S704 -- of our own table of looks


def signed(bound: str, words: str = "") -> Markup:
    """Write a verdict class, or words for it, after its sign."""
    return shape(bound) + escape(words or bound)


def bar(share: float | None, kind: str) -> Markup:
    """Draw a share, 0 to 1, as a bar in the colour of its kind."""
    width = 100 * min(share or 0.0, 1.0)
    return Markup('<span class="bar {}"><i style="width:{:.2f}%"></i></span>').format(kind, width)
