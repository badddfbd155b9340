"""HTML from templates, the only place where mark-up is written: everything that is not a template is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup, escape
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict_classes import SHOWN_CLASSES, bound_of
from rooflens.report.document import Chart, Document, Opportunities, Table, Words
from rooflens.report.html import blocks
from rooflens.report.html.embed import json_text
from rooflens.report.html.theme import LOOKS, css_class, is_hollow
from rooflens.report.words import labels


class Drawing(Struct, frozen=True):
    """A chart, ready to be placed.

    Attributes:
        key: Its name in the page: the specification is the JSON block `spec-<key>`.
        spec: What Vega-Lite draws.
        label: What it shows, for readers who do not see it.
        notes: Sentences below it.
        save: What its buttons for saving are called, before the format.
        data: The rows that it draws; None where another part of the page lists them.
        holder: What holds its data where scripts are off.
    """

    key: str
    spec: Mapping[str, Any]
    label: str
    notes: Sequence[Words] = ()
    save: str = ""
    data: Table | None = None
    holder: str = "the table below holds its data"


def render(template: str, **values: Any) -> Markup:
    """Fill a template of `assets`, named `folder/name`, or one of its parts, `folder/name#part`, with values."""
    _macros()
    name, _, part = template.partition("#")
    filled = _environment().get_template(f"{name}.html")
    if not part:
        return Markup(filled.render(**values))  # noqa: S704 -- autoescaped
    return Markup("".join(filled.blocks[part](filled.new_context(values))))  # noqa: S704 -- autoescaped


def write_blocks(document: Document, room: blocks.Room | None = None) -> Markup:
    """Write blocks one after the other, as a part of a page.

    Args:
        document: The blocks.
        room: What the page has room for; by default all.
    """
    return Markup(_macros().blocks(document, room or blocks.Room()))  # noqa: S704 -- autoescaped


def write_document(document: Document, room: blocks.Room) -> Markup:
    """Write what a page of one document shows."""
    return Markup(_macros().whole(document, room))  # noqa: S704 -- autoescaped


def write_keys(*, filters: bool, lanes: bool) -> Markup:
    """Write what keys do on a page that has filters, or lanes."""
    return Markup(_macros().keys(filters, lanes))  # noqa: S704 -- autoescaped


def write_for_notebook(answer: Words, first: Opportunities | None, notes: Sequence[str], picture: str = "") -> Markup:
    """Write an answer with its first rows for the cell of a notebook: no script, no style sheet.

    Args:
        answer: The headline.
        first: What to do first.
        notes: Lines below it.
        picture: An SVG beside it, in base64; empty for none.
    """
    return Markup(_macros().in_notebook(answer, first, notes, picture))  # noqa: S704 -- autoescaped


def write_frame(page: str, height_px: int) -> Markup:
    """Write a page as a frame of another one: it has its own origin, and can reach nothing around it."""
    return Markup(_macros().frame(escape(page), height_px))  # noqa: S704 -- autoescaped


def write_words(words: Words) -> Markup:
    """Write a line of words."""
    return _text(words) if isinstance(words, str) else _spans(words)


@lru_cache(maxsize=blocks.TEXTS_KEPT)
def _text(text: str) -> Markup:
    """Write a text: most hold no code, and a macro takes ten times as long."""
    return _spans(text) if "`" in text else escape(blocks.safe(text).replace(" -> ", " \u2192 "))


def _spans(words: Words) -> Markup:
    return Markup(_macros().spans_of(blocks.styled(words)))  # noqa: S704 -- autoescaped


def _drawn(chart: Chart) -> Drawing | None:
    spec = chart.draw()
    if spec is None:
        return None
    holder = "the words and tables on this page hold its data"
    return Drawing(chart.key, spec, chart.label, chart.notes, save=f"Save the chart {chart.key} as", holder=holder)


_BLOCK = r"</?(?:table|thead|tbody|tr|th|td|ul|ol|li|dl|dt|dd|div|p|section|details|figure|figcaption|h2|h3)\b"
"""Elements before which white space shows nowhere."""


class _Dense(Extension):
    """Drop the indentation of templates: it is for those who read them, and would be a tenth of a page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002 - Jinja's
        """Return a template with every line at its margin, and no line of its own for an element that is a block."""
        margin = re.sub(r"^[ \t]+", "", source, flags=re.MULTILINE)
        return re.sub(rf"\n+(?={_BLOCK})", "", margin)


_SHARED = (
    "rows_table",
    "zoom",
    "isolated",
    "bar",
    "chip",
    "drawing",
    "facts_line",
    "json_block",
    "meter",
    "scrolling",
    "search",
    "shape",
)
"""Macros of blocks that all templates may use."""


@cache
def _macros() -> Any:
    """Load the macros of blocks; every template may use some."""
    environment = _environment()
    module = environment.get_template("shared/blocks.html").module
    environment.globals.update({name: getattr(module, name) for name in _SHARED})
    return module


@cache
def _environment() -> Environment:
    """Make the template environment, with the page's words and number formats as filters."""
    environment = Environment(
        loader=PackageLoader("rooflens.report", "assets"),
        autoescape=True,
        optimized=False,  # to look for constants to fold takes longer than they do
        undefined=StrictUndefined,
        extensions=[_Dense],
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: blocks.safe(value) if type(value) is str else value,
    )
    environment.filters.update(
        grouped="{:,}".format,
        si=fmt.si,
        duration=fmt.duration,
        percent=fmt.percent,
        factor=fmt.factor,
        intensity=fmt.intensity,
        bare_intensity=fmt.bare_intensity,
        limit=fmt.exact_duration,
        cut=fmt.cut_middle,
        date=fmt.date,
        resource=resource_label,
        flag=labels.flag_label,
        flag_name=labels.flag_name,
        words=write_words,
        css=css_class,
        bound_of=bound_of,
        json=json_text,
        kind=lambda block: type(block).__name__,
        untitled=blocks.untitled,
        drawn=_drawn,
        at=blocks.at,
        belongs=blocks.belongs,
        zip=zip,
    )
    environment.tests["hollow"] = is_hollow
    environment.globals.update(
        classes=SHOWN_CLASSES,
        looks=LOOKS,
        count=fmt.count,
        missing=fmt.MISSING,
        worth_words=blocks.WORTH_WORDS,
        write_blocks=write_blocks,
    )
    return environment
