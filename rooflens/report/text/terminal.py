"""The terminal: a console that shows no control characters, and tables with bold headings, no lines, two spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table

from rooflens.format import harmless

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text


class Terminal(Console):
    """A console that is steered by nothing that it prints: what was no control of rich's own is text."""

    def __init__(self, **options: Any) -> None:
        """Take the options of rich's console; no names of pictures are looked for in what is printed."""
        super().__init__(emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does, without control characters in the text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))


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
