"""The options `--kernel` and `--nvtx`, which mean the same in every command that reads, and what they leave."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from rooflens.cli.console import say, show_failures
from rooflens.errors import NoMatchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.analyzing import Analyzed
    from rooflens.model.selecting import Chooser

_KERNEL = click.option(
    "--kernel",
    multiple=True,
    metavar="PATTERN",
    help="Only kernels whose name contains this; or a glob (`flash*`), `re:` and a regular expression, or a "
    "key. Repeatable.",
)
_NVTX = click.option(
    "--nvtx",
    multiple=True,
    metavar="PATTERN",
    help="Only kernels launched in an NVTX range of this name: a glob, or `re:` and a regular expression. Repeatable.",
)


def with_selection(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose kernels; they come together, as `selection`, None where all are wanted."""

    @_KERNEL
    @_NVTX
    @functools.wraps(function)
    def command(*arguments: Any, kernel: tuple[str, ...], nvtx: tuple[str, ...], **given: Any) -> None:
        selection = None
        if kernel or nvtx:
            from rooflens.model.selecting import Selection

            selection = Selection(kernel, nvtx)
        function(*arguments, selection=selection, **given)

    return command


def chosen(found: Analyzed, chooser: Chooser) -> Analyzed:
    """Leave out the launches that are not wanted, and the reports that hold none of the others.

    Raises:
        NoMatchError: No launch is wanted.
    """
    from msgspec.structs import replace

    left = replace(found, reports=tuple(one for one in map(chooser.chosen, found.reports) if one.analyses))
    if not found.reports and found.failures:
        return left
    try:
        chooser.check()
    except NoMatchError:
        show_failures(found)
        raise
    for pattern in chooser.idle:
        say(f"warning: nothing matches `{pattern}`")
    return left
