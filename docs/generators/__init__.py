"""Generate the parts of the reference derived from the code, pages and tables, for each build of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from generators import (
    about,
    chips,
    cli,
    columns,
    counters,
    failures,
    forms,
    gpus,
    json_fields,
    metrics,
    partial_sets,
    printed,
    thresholds,
    workloads,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FOLDER = Path(__file__).parents[1] / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli.page,
    "columns.md": columns.page,
    "forecast.md": json_fields.forecast_page,
    "json.md": json_fields.page,
    "metrics.md": metrics.page,
    "thresholds.md": thresholds.page,
    **about.pages(),
    **printed.pages(),
}
"""Page of docs/reference -> what writes its text; none of them is in the repository."""
WRITTEN_WHOLE = frozenset((FOLDER / name).parent for name in PAGES) - {FOLDER}
"""Folders of docs/reference that hold no page by hand."""
TABLES: dict[str, Callable[[], Mapping[str, Sequence[str]]]] = {
    "gpus.md": gpus.tables,
    "messages/collecting.md": failures.tables,
    "partial-sets.md": lambda: {**partial_sets.tables(), **forms.tables()},
    "workloads.md": workloads.tables,
    **chips.tables(),
    **counters.tables(),
}
"""Page of docs/reference that is written by hand -> what makes its tables, by name."""


def write() -> None:
    """Write every page into docs/reference, and remove those of earlier versions.

    Correct files are not touched, as builds may run side by side.
    """
    for name, make in PAGES.items():
        file, text = FOLDER / name, make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    for folder in WRITTEN_WHOLE:
        for file in set(folder.glob("*.md")) - {FOLDER / name for name in PAGES}:
            file.unlink(missing_ok=True)
