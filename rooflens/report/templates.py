"""HTML from templates: everything that is not a template is escaped.

Compiling the templates of a small page takes longer than filling them, so what they compile to is kept in the user's
cache folder.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.ext import Extension
from jinja2.filters import FILTERS
from markupsafe import Markup

from rooflens import format as fmt
from rooflens.cache import keep, kept
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict_classes import SHOWN_CLASSES
from rooflens.report.html.parts import bar, code_spans, meter, shape
from rooflens.report.html.theme import css_class
from rooflens.report.words import labels as words
from rooflens.report.words.verdict import gain_figure, gain_how
from rooflens.report.writers.html import drawing

if TYPE_CHECKING:
    from jinja2.bccache import Bucket


def render(template: str, **values: Any) -> Markup:
    """Fill the template `assets/<template>.html`, named `folder/name`, with values."""
    return Markup(_environment().get_template(f"{template}.html").render(**values))  # noqa: S704 -- autoescaped above


_BLOCK = r"</?(?:table|thead|tbody|tr|th|td|ul|ol|li|dl|dt|dd|div|p|section|details|figure|figcaption|h2|h3)\b"
"""Elements before which white space shows nowhere."""


class _Dense(Extension):
    """Drop the indentation of templates: it is for those who read them, and would be a tenth of a page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002 - Jinja's
        """Return a template with every line at its margin, and no line of its own for an element that is a block."""
        margin = re.sub(r"^[ \t]+", "", source, flags=re.MULTILINE)
        return re.sub(rf"\n+(?={_BLOCK})", "", margin)


class _Compiled(BytecodeCache):
    """Keep what templates compile to, for the same text, Jinja, Python and environment."""

    def get_source_checksum(self, source: str) -> str:
        """Name what a template compiles to: its text, and all that reads it."""
        readers = (jinja2.__version__, Path(__file__).read_text(encoding="utf-8"))
        return hashlib.sha256("\0".join((source, *readers)).encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a compiled template, if it is there."""
        data = kept(_compiled_name(bucket))
        if data is not None:
            bucket.bytecode_from_string(data)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a compiled template."""
        keep(_compiled_name(bucket), bucket.bytecode_to_string())


def _compiled_name(bucket: Bucket) -> str:
    return f"templates/{bucket.key}.{sys.implementation.cache_tag}"


def _late(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call a function when a template is filled, even for constants: compiled templates must not depend on our code."""

    @pass_context
    def called(_context: object, *args: Any, **options: Any) -> Any:
        return function(*args, **options)

    return called


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
        finalize=_late(lambda value: fmt.unbroken(value) if type(value) is str else value),
        bytecode_cache=_Compiled(),
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
        figure=gain_figure,
        how=gain_how,
        code=code_spans,
        css=css_class,
        zip=zip,
    )
    environment.filters.update(
        {name: _late(called) for name, called in environment.filters.items() if FILTERS.get(name) is not called}
    )
    environment.globals.update(
        classes=SHOWN_CLASSES,
        bound_labels=words.BOUND_LABELS,
        count=fmt.count,
        missing=fmt.MISSING,
        meter=meter,
        shape=shape,
        bar=bar,
        chart=drawing,
    )
    return environment
