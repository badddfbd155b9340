"""The tables of the terminal: bold headings, no lines, two spaces between columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rich.text import Text


def new_table(
    headings: Iterable[str],
    *,
    right: Collection[str] = (),
    wrapping: Collection[str] | None = None,
    overflow: Literal["ellipsis", "fold"] = "ellipsis",
    title: str | Text | None = None,
    **options: Any,
) -> Table:
    """Make a table without rows.

    Args:
        headings: Of the columns, from the left.
        right: Headings of the columns that are set to the right.
        wrapping: Headings of the columns that may take more lines; None for all.
        overflow: What becomes of a word that is wider than its column.
        title: Stands above, from the left.
        options: Further ones of rich's table.
    """
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left", **options)
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading in right else "left"
        no_wrap = wrapping is not None and heading not in wrapping
        table.add_column(heading, justify=justify, no_wrap=no_wrap, overflow=overflow)
    return table
