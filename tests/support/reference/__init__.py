"""Writes the pages of docs/reference that are made of the code: `make reference` does, or their test when asked."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from support.reference import about, chips, cli, columns, counters, gpus, json_fields, metrics, thresholds, workloads

from rooflens.report.data import schema_text

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parents[3] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "../../rooflens/report/analysis.schema.json": schema_text,
    "cli.md": cli.page,
    "columns.md": columns.page,
    "gpus.md": partial(gpus.page, FOLDER / "gpus.md"),
    **chips.pages(FOLDER),
    **counters.pages(FOLDER),
    "json.md": json_fields.page,
    "metrics.md": metrics.page,
    "thresholds.md": thresholds.page,
    **about.pages(),
    "workloads.md": partial(workloads.page, FOLDER / "workloads.md"),
}
"""Page -> what writes its text."""


def write() -> list[str]:
    """Write every page; return the names of those that changed."""
    changed = []
    for name, make in PAGES.items():
        file, text = FOLDER / name, make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            changed.append(name)
    return changed
