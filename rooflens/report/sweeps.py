"""The sweep view of the page: a chart and a table for each sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.report.embed import json_block
from rooflens.report.html import render
from rooflens.report.predicted import sizes_text
from rooflens.report.sweep import find_sweeps
from rooflens.report.sweep_chart import sweep_spec

if TYPE_CHECKING:
    from markupsafe import Markup

    from rooflens.report.rows import Page
    from rooflens.report.sweep import Sweep

MAX_SWEEPS = 12


def sweeps(page: Page) -> Markup:
    """Show the sweeps of a page; nothing where there is none."""
    found = find_sweeps(page)
    shown = [(f"sweep-{i}", sweep) for i, sweep in enumerate(found[:MAX_SWEEPS])]
    groups = {launch.key: launch.group_key for launch in page.launches}
    blocks = [
        json_block(
            f"spec-{key}",
            sweep_spec(sweep, title=_title(sweep, synthetic=page.synthetic), subtitle=_subtitle(sweep), groups=groups),
        )
        for key, sweep in shown
    ]
    return render("sweep", shown=shown, blocks=blocks, left_out=len(found) - len(shown), sizes=sizes_text)


def _title(sweep: Sweep, *, synthetic: bool) -> str:
    return f"{sweep.title}{': synthetic data' if synthetic else ''}"


def _subtitle(sweep: Sweep) -> tuple[str, ...]:
    kept = sizes_text(sweep.kept)
    return f"{sweep.gpu}{f', {kept}' if kept else ''}", "Rings: where each case was predicted"
