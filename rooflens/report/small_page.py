"""The frame of the small pages: one body with charts and tables, and none of the tools of a report's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.report.embed import json_block, vega_bundle
from rooflens.report.shell import document, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

STYLES = ("page.css", "charts.css", "small.css", "print.css")
SCRIPTS = ("state.js", "theme.js", "charts.js", "reveal.js")


def small_document(title: str, body: Markup, specs: Mapping[str, Mapping[str, Any]], skip: str) -> str:
    """Put a small page together.

    Args:
        title: Stands in the browser's tab.
        body: What is shown.
        specs: Charts by the key of their place in the body.
        skip: Words of the link that leads readers with a keyboard to the tables.
    """
    return document(
        title,
        [body],
        blocks=[json_block(f"spec-{key}", spec) for key, spec in specs.items()],
        styles=STYLES,
        codes=(vega_bundle(), joined(SCRIPTS)),
        skip=("tables", skip),
    )
