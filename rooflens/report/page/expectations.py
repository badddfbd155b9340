"""Predicted against measured as a section of the page."""

from __future__ import annotations

from markupsafe import Markup

from rooflens.report.content import Content
from rooflens.report.templates import write_blocks
from rooflens.report.words.expectations import expectations_document


def predicted(page: Content) -> Markup:
    """Show every report that has a prediction; nothing if none has."""
    document = expectations_document(page.predictions, page.reports) if page.predictions else ()
    body = write_blocks(document)
    return _SECTION.format(body) if document else Markup()


_SECTION = Markup('<section id="predicted" aria-label="Predicted against measured">{}</section>')
