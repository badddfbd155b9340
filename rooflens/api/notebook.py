"""The notebook that runs this code, if there is one: its shell, and how to show a page in it."""

from __future__ import annotations

import sys
from html import escape
from typing import TYPE_CHECKING, Any

from rooflens.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


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
    # The frame has its own origin, and cannot reach anything in the notebook.
    frame = (
        f'<iframe sandbox="allow-scripts allow-downloads" style="border:1px solid #888;width:100%;'
        f'height:{height:d}px" srcdoc="{escape(page())}"></iframe>'
    )
    shown({"text/html": frame, "text/plain": "the page of rooflens, which only HTML can show"}, raw=True)
