"""Pages of the tests, each rendered once: many tests open the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.report.page.page import render_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.records import Analysis, Run

_PAGES: dict[str, str] = {}


def rendered(runs: Sequence[Run], analyses: Sequence[Analysis], title: str) -> str:
    """Render the page of these records, or return it where that was done before."""
    key = repr((list(runs), list(analyses), title))
    if key not in _PAGES:
        _PAGES[key] = render_page(runs, analyses, title=title)
    return _PAGES[key]
