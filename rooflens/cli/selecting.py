"""The options `--kernel` and `--nvtx`, which mean the same in every command that reads, and what they leave."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self

import click

from rooflens.cli.console import say, show_failures
from rooflens.errors import NoMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rooflens.analyzing import Analyzed
    from rooflens.model.records import Analysis, AnalyzedReport
    from rooflens.model.selecting import Chooser, Selection

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


class Choice:
    """Keeps the launches that are wanted while reports come, in pieces or as a whole."""

    def __init__(self, chooser: Chooser, on_piece: Callable[[AnalyzedReport], None] | None) -> None:
        self._chooser = chooser
        self._on_piece = on_piece
        self._held: dict[str, list[Analysis]] = {}

    @classmethod
    def of(cls, selection: Selection | None, on_piece: Callable[[AnalyzedReport], None] | None = None) -> Self | None:
        """Make one, where anything is to be chosen.

        Args:
            selection: Which launches are wanted.
            on_piece: Takes what is wanted of each piece that comes; None to hold it.

        Raises:
            UsageError: A pattern cannot be read.
        """
        if not selection:
            return None
        from rooflens.model.selecting import Chooser

        return cls(Chooser(selection), on_piece)

    def take(self, piece: AnalyzedReport) -> None:
        """Take a report of a store, or a piece of one."""
        wanted = self._chooser.chosen(piece)
        if wanted.analyses:
            held = self._held.setdefault(piece.run.digest, [])
            if self._on_piece is None:
                held += wanted.analyses
            else:
                self._on_piece(wanted)

    def of_store(self, found: Analyzed) -> Analyzed:
        """Put what was taken into its reports, and leave the others out.

        Raises:
            NoMatchError: No launch is wanted.
        """
        from msgspec.structs import replace

        reports = (report for report in found.reports if report.run.digest in self._held)
        return self._checked(
            found, (replace(report, analyses=tuple(self._held[report.run.digest])) for report in reports)
        )

    def of_paths(self, found: Analyzed) -> Analyzed:
        """Leave out what is not wanted of reports that were read whole.

        Raises:
            NoMatchError: No launch is wanted.
        """
        return self._checked(found, (report for report in map(self._chooser.chosen, found.reports) if report.analyses))

    def _checked(self, found: Analyzed, reports: Iterable[AnalyzedReport]) -> Analyzed:
        from msgspec.structs import replace

        chosen = replace(found, reports=tuple(reports))
        if not found.reports and found.failures:
            return chosen
        try:
            self._chooser.check()
        except NoMatchError:
            show_failures(found)
            raise
        for pattern in self._chooser.idle:
            say(f"warning: nothing matches `{pattern}`")
        return chosen
