"""Predicted against measured as a section of the page."""

from __future__ import annotations

from markupsafe import Markup

from rooflens.report.content import Content
from rooflens.report.words.expectations import expectations_document
from rooflens.report.writers.html import to_html


def predicted(page: Content) -> Markup:
    """Show every report that has a prediction; nothing if none has."""
    document = expectations_document(page.predictions, page.reports) if page.predictions else ()
    body = Markup(to_html(document))  # noqa: S704 - escaped by the writer
    return _SECTION.format(body) if document else Markup()


_SECTION = Markup('<section id="predicted" aria-label="Predicted against measured">{}</section>')
