"""Predicted against measured as a section of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from msgspec.structs import replace

from rooflens.model.predict.expectations import check_reports
from rooflens.model.predict.measured import Prediction, Rule
from rooflens.report.content import Content
from rooflens.report.words.expectations import expectations_document
from rooflens.report.writers.html import to_html


def with_predictions(page: Content, predictions: Mapping[str, Prediction], rules: Sequence[Rule] = ()) -> Content:
    """Compare predictions with measurements: reports by digest, kernels by name."""
    return replace(page, predictions=check_reports(page.reports, predictions, rules))


def predicted(page: Content) -> Markup:
    """Show every report that has a prediction; nothing if none has."""
    document = expectations_document(page.predictions, page.reports)
    body = Markup(to_html(document))  # noqa: S704 - escaped by the writer
    return _SECTION.format(body) if document else Markup()


_SECTION = Markup('<section id="predicted" aria-label="Predicted against measured">{}</section>')
