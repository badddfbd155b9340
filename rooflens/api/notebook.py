"""The notebook that runs this code, if there is one: its shell, and how to show a page in it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rooflens.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.model.records import Finding, Level


def shell() -> Any:
    """Return the IPython shell that runs this code; None in a plain interpreter."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None


def display() -> Callable[..., Any] | None:
    """Return IPython's `display`; None outside a notebook."""
    if getattr(shell(), "kernel", None) is None:
        return None
    found: Callable[..., Any] = sys.modules["IPython"].display.display
    return found


def show_page(page: Callable[[], str], height: int, name: str) -> None:
    """Show a page in a frame below the notebook's cell.

    Args:
        page: Makes the page.
        height: Height of the frame in pixels.
        name: Name of the object with the page in the hint's example.

    Raises:
        UsageError: Not called in a notebook.
    """
    shown = display()
    if shown is None:
        hint = f'write it to a file, `{name}.save("page.html")`, and open that in a browser'
        raise UsageError("only a notebook can show a page", hint)
    from rooflens.report.templates import write_frame

    shown(
        {"text/html": str(write_frame(page(), height)), "text/plain": "the page of rooflens, which only HTML can show"},
        raw=True,
    )


def register(shell: Any) -> None:
    """Let a notebook's shell show records of the model: findings and levels have no methods of their own."""
    from rooflens.model import records

    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(records.Finding, _finding_html)
    formatter.for_type(records.Level, _level)


def _finding_html(finding: Finding) -> str:
    from rooflens.report.notebook import finding_html

    return finding_html(finding)


def _level(level: Level) -> str:
    from rooflens.report.notebook import level_html

    return level_html(level)
