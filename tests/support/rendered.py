"""Pages of the tests, each rendered once, as many tests open the same page."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from rooflens.model.records import AnalyzedReport
from rooflens.report.page.page import render_page

_PAGES: dict[bytes, str] = {}


def rendered(reports: Sequence[AnalyzedReport], title: str) -> str:
    """Render the page of these reports, or return it if it was rendered before."""
    key = pickle.dumps((list(reports), title))
    if key not in _PAGES:
        _PAGES[key] = render_page(reports, title=title)
    return _PAGES[key]
