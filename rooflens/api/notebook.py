"""`%load_ext rooflens` and `%%rooflens`: a cell profiled as its own program.

Not yet run on a GPU: tested with a stand-in for ncu.
"""

from __future__ import annotations

import argparse
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rooflens.errors import RooflensError, UsageError
from rooflens.files import write_whole
from rooflens.model.counters.metric import DETAILS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.api.report import Report


def load_ipython_extension(ipython: Any) -> None:
    """Add `%%rooflens` to a notebook: `%load_ext rooflens` calls this.

    The cell is written to a file and profiled as its own program, which knows nothing about the other cells: it needs
    its own imports and data. Its `Report` is shown, and bound to the name that `--name` gives.

        %%rooflens --tier quick --name report
        import torch
        torch.ones(4096, 4096, device="cuda") @ torch.ones(4096, 4096, device="cuda")

    Args:
        ipython: The running `InteractiveShell`.

    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> import rooflens as rl
    >>> shell = InteractiveShell()
    >>> rl.load_ipython_extension(shell)
    >>> "rooflens" in shell.magics_manager.magics["cell"]
    True
    """

    def rooflens(line: str, cell: str) -> Report:
        return _run(ipython, line, cell)

    ipython.register_magic_function(rooflens, "cell", "rooflens")


def shell() -> Any:
    """Return the IPython shell that this runs in; None in a plain interpreter."""
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
        name: What an example calls the object that has the page.

    Raises:
        UsageError: This is not a notebook.
    """
    shown = display()
    if shown is None:
        hint = f'write it to a file, `{name}.save("page.html")`, and open that in a browser'
        raise UsageError("only a notebook can show a page", hint)
    # A frame of its own origin, which can reach nothing of the notebook.
    frame = (
        f'<iframe sandbox="allow-scripts allow-downloads" style="border:1px solid #888;width:100%;'
        f'height:{height:d}px" srcdoc="{escape(page())}"></iframe>'
    )
    shown({"text/html": frame, "text/plain": "the page of rooflens, which only HTML can show"}, raw=True)


def _run(ipython: Any, line: str, cell: str) -> Report:
    """Profile a cell as `rooflens profile` does a program; errors show as IPython's own, without a traceback."""
    from IPython.core.error import UsageError as MagicError

    from rooflens import collecting
    from rooflens.api.opening import open as open_report
    from rooflens.api.profiling import check_place, kept_folder
    from rooflens.ingest.ncu.command import Collection

    parser = _Parser("%%rooflens", add_help=False)
    parser.add_argument("--tier", choices=DETAILS, default="standard")
    parser.add_argument("--name")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--force", action="store_true")
    try:
        options = parser.parse_args(line.split())
        folder = kept_folder(keeps_failures=False)
        file = folder / "cell.py"
        write_whole(file, cell)
        if options.output is not None:
            check_place(options.output, force=options.force)
        target = collecting.command_target((sys.executable, str(file)))
        collection = Collection(program=(), output=options.output or folder / "cell.ncu-rep")
        plan = collecting.make_plan(collecting.Request(target, collection, options.tier), dry_run=False)
        report = open_report(collecting.profile(plan).collected.report)
    except RooflensError as error:
        raise MagicError(f"{error}\n\nhint: {error.hint}" if error.hint else str(error)) from error
    if options.name:
        ipython.user_ns[options.name] = report
    return report


class _Parser(argparse.ArgumentParser):
    """A parser that raises errors instead of ending the notebook's kernel."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage().strip())
