"""HTML from templates: everything that is not a template is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rooflens import format as fmt
from rooflens.model.records import BOUNDS
from rooflens.model.verdict.sentences import resource_label
from rooflens.report import labels as words
from rooflens.report.html.theme import LOOKS


def render(template: str, **values: Any) -> Markup:
    """Fill the template `assets/<template>.html` with values."""
    return Markup(_environment().get_template(f"{template}.html").render(**values))  # noqa: S704 -- autoescaped above


def code_spans(text: str) -> Markup:
    """Escape text and set what stands between backticks as code."""
    parts = fmt.unbroken(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    spans = (escape(part) if i % 2 == 0 else Markup("<code>{}</code>").format(part) for i, part in enumerate(parts))
    return Markup("").join(spans)


@cache
def _environment() -> Environment:
    """Make the template environment, with the page's words and number formats as filters."""
    environment = Environment(
        loader=PackageLoader("rooflens.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: fmt.unbroken(value) if type(value) is str else value,
    )
    environment.filters.update(
        number=fmt.significant,
        si=fmt.si,
        duration=fmt.duration,
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
    )
    environment.globals.update(
        bounds=BOUNDS, looks=LOOKS, bound_labels=words.BOUND_LABELS, count=fmt.count, missing=fmt.MISSING
    )
    return environment
