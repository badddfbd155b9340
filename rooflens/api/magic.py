"""`%load_ext rooflens` and `%%rooflens`: profile a cell as a program of its own.

Not yet run on a GPU: tested with a stand-in for ncu.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rooflens.errors import RooflensError, UsageError
from rooflens.model.counters.metric import DETAILS
from rooflens.writing.outputs import write_output

if TYPE_CHECKING:
    from rooflens.api.report import Report


def load_ipython_extension(ipython: Any) -> None:
    """Add `%%rooflens` to a notebook: `%load_ext rooflens` calls this.

    The cell is written to a file and profiled as a separate program, without access to the other cells: it needs its
    own imports and data. Its `Report` is shown, and assigned to the name given with `--name`.

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


def _run(ipython: Any, line: str, cell: str) -> Report:
    """Profile a cell like `rooflens profile` profiles a program; errors show as IPython's own, without a traceback."""
    from IPython.core.error import UsageError as MagicError

    from rooflens.api.opening import open as open_report
    from rooflens.api.profiling import check_place, kept_folder
    from rooflens.collect.command import Collection
    from rooflens.collect.plan import Request, command_target, make_plan
    from rooflens.collect.profile import profile

    parser = _Parser("%%rooflens", add_help=False)
    parser.add_argument("--tier", choices=DETAILS, default="standard")
    parser.add_argument("--name")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--force", action="store_true")
    try:
        options = parser.parse_args(line.split())
        folder = kept_folder(keeps_failures=False)
        file = folder / "cell.py"
        write_output(file, cell)
        if options.output is not None:
            check_place(options.output, force=options.force)
        target = command_target((sys.executable, str(file)))
        collection = Collection(program=(), output=options.output or folder / "cell.ncu-rep")
        plan = make_plan(Request(target, collection, options.tier), dry_run=False)
        report = open_report(profile(plan).collected.report)
    except RooflensError as error:
        raise MagicError(f"{error}\n\nhint: {error.hint}" if error.hint else str(error)) from error
    if options.name:
        ipython.user_ns[options.name] = report
    return report


class _Parser(argparse.ArgumentParser):
    """A parser that raises errors instead of ending the notebook's kernel."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage().strip())
