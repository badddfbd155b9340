"""HTML from templates: everything that is not a template is escaped."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup, escape

from rooflens import format as fmt
from rooflens.model.records import BOUNDS
from rooflens.model.verdict.sentences import resource_label
from rooflens.report import labels as words
from rooflens.report.html.theme import LOOKS


def render(template: str, **values: Any) -> Markup:
    """Fill the template `assets/<template>.html`, named `folder/name`, with values."""
    return Markup(_environment().get_template(f"{template}.html").render(**values))  # noqa: S704 -- autoescaped above


def code_spans(text: str) -> Markup:
    """Escape text and set what stands between backticks as code."""
    parts = fmt.unbroken(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    spans = (escape(part) if i % 2 == 0 else Markup("<code>{}</code>").format(part) for i, part in enumerate(parts))
    return Markup("").join(spans)


_BLOCK = r"</?(?:table|thead|tbody|tr|th|td|ul|ol|li|dl|dt|dd|div|p|section|details|figure|figcaption|h2|h3)\b"
"""Elements before which white space shows nowhere."""


class _Dense(Extension):
    """Drop the indentation of templates: it is for those who read them, and would be a tenth of a page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002 - Jinja's
        """Return a template with every line at its margin, and no line of its own for an element that is a block."""
        margin = re.sub(r"^[ \t]+", "", source, flags=re.MULTILINE)
        return re.sub(rf"\n+(?={_BLOCK})", "", margin)


@cache
def _environment() -> Environment:
    """Make the template environment, with the page's words and number formats as filters."""
    environment = Environment(
        loader=PackageLoader("rooflens.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=[_Dense],
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: fmt.unbroken(value) if type(value) is str else value,
    )
    environment.filters.update(
        number=fmt.significant,
        grouped="{:,}".format,
        si=fmt.si,
        duration=fmt.duration,
        seconds=lambda seconds: fmt.duration(seconds * 1e9),
        percent=fmt.percent,
        factor=fmt.factor,
        intensity=fmt.intensity,
        bare_intensity=fmt.bare_intensity,
        given_percent=fmt.given_percent,
        limit=fmt.exact_duration,
        cut=fmt.cut_middle,
        date=fmt.date,
        level=resource_label,
        resource=resource_label,
        stall=words.stall_label,
        flag=words.flag_label,
        flag_name=words.flag_name,
        code=code_spans,
        zip=zip,
    )
    environment.globals.update(
        bounds=BOUNDS, looks=LOOKS, bound_labels=words.BOUND_LABELS, count=fmt.count, missing=fmt.MISSING
    )
    return environment
