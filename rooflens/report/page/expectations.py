"""Predicted against measured as a section of the page."""

from __future__ import annotations

from markupsafe import Markup

from rooflens.report.content import Content
from rooflens.report.kernel.predicted import expectations_document
from rooflens.report.templates import render, write_blocks


def predicted(page: Content) -> Markup:
    """Show every report that has a prediction; nothing if none has."""
    document = expectations_document(page.predictions, page.reports) if page.predictions else ()
    return render("report/page#predicted", body=write_blocks(document)) if document else Markup()
