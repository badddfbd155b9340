"""Take the analyses of a store as they come: hand them on, add them up, and keep them in the store."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.guarding import write_all
from rooflens.model.failed import BUG_HINT, bug_reason, is_bug
from rooflens.model.records import AnalyzedReport
from rooflens.model.totals import slimmed, totals_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rooflens.model.records import Analysis, Run
    from rooflens.model.store.verdicts import VerdictWriter
    from rooflens.model.totals import Total
    from rooflens.model.verdict.thresholds import Thresholds


class Keeper:
    """Keep verdicts in a store while it is analyzed; what goes wrong with that costs no answer.

    Attributes:
        error: Why they are not kept; None where they are, or were not to be.
    """

    def __init__(self, writing: AbstractContextManager[VerdictWriter] | None) -> None:
        self.error: InputError | None = None
        self._writing = writing
        self._stack = ExitStack()
        self._writer: VerdictWriter | None = None

    def __enter__(self) -> Self:
        if self._writing is not None:
            try:
                self._writer = self._stack.enter_context(self._writing)
            except Exception as error:  # noqa: BLE001 - what cannot be stored is told all the same
                self._fail(error)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._stack.__exit__(kind, error, None)
            return
        try:
            self._stack.close()
        except Exception as late:  # noqa: BLE001 - see above
            self.error = self.error or _told(late)

    def needs(self, digests: Iterable[str]) -> bool:
        """Return whether rows of these reports are missing in the store, and are to be kept."""
        writer = self._writer
        return writer is not None and any(writer.needs(digest) for digest in digests)

    def add(self, digests: Sequence[str], tables: Mapping[str, Any] | InputError, kernel_count: int) -> None:
        """Keep the rows of some reports of a part, or of a piece of one; or hear why they could not be made."""
        if isinstance(tables, InputError):
            if self._writer is not None:
                self._fail(tables)
        else:
            self._try(lambda writer: writer.add(digests, tables, kernel_count))

    def add_totals(self, digest: str, totals: Sequence[Total]) -> None:
        """Keep the totals of a report."""
        self._try(lambda writer: writer.add_totals(digest, totals))

    def leave_totals(self, digest: str) -> None:
        """Keep no totals of a report's part: a bug of ours is in them, which may be mended tomorrow."""
        self._try(lambda writer: writer.leave_totals(digest))

    def leave(self, digest: str) -> None:
        """Leave the verdicts of a report's part as they are: it could not be analyzed."""
        self._try(lambda writer: writer.leave(digest))

    def _try(self, act: Callable[[VerdictWriter], None]) -> None:
        if self._writer is not None:
            try:
                act(self._writer)
            except Exception as error:  # noqa: BLE001 - see above
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._writer = None
        try:
            self._stack.__exit__(type(error), error, error.__traceback__)
            self.error = _told(error)
        except Exception as told:  # noqa: BLE001 - the store says it in its own words
            self.error = _told(told)


def _told(error: Exception) -> InputError:
    return error if isinstance(error, InputError) else InputError(bug_reason(error), BUG_HINT)


class Gathered:
    """Reports as they come, large ones in pieces.

    Attributes:
        reports: By digest, with their analyses where these are held.
        totals: By digest, where they are added up.
        failures: Path of each report whose launches could not be added up, and why.
    """

    def __init__(
        self,
        limits: Thresholds,
        on_piece: Callable[[AnalyzedReport], None] | None = None,
        *,
        is_held: bool = True,
        adds_up: bool = False,
        are_slim: bool = False,
    ) -> None:
        """Begin with nothing.

        Args:
            limits: Thresholds of the verdicts.
            on_piece: Takes each report, or piece of one, as it comes.
            is_held: Hold all analyses.
            adds_up: Add launches up by kernel.
            are_slim: The analyses come with no more than that needs.
        """
        self.reports: dict[str, AnalyzedReport] = {}
        self.totals: dict[str, list[Total]] = {}
        self.failures: list[tuple[str, InputError]] = []
        self._limits = limits
        self._on_piece = on_piece
        self._is_held = is_held
        self._adds_up = adds_up
        self._are_slim = are_slim
        self._slim: list[Analysis] = []
        self._current: Run | None = None

    def take(self, runs: Iterable[Run], totals: Iterable[Total]) -> None:
        """Take reports of which the totals are known."""
        for run in runs:
            self.reports[run.digest] = AnalyzedReport(run, ())
            self.totals[run.digest] = []
        for total in totals:
            self.totals[total.digest].append(total)

    def add(self, report: AnalyzedReport, keeper: Keeper) -> None:
        """Take a report, or a piece of one."""
        if self._current is not None and self._current.digest != report.run.digest:
            self.end(keeper)
        self._current = report.run
        if self._is_held or report.run.digest not in self.reports:
            self.reports[report.run.digest] = report if self._is_held else replace(report, analyses=())
        if self._adds_up:
            self._slim += report.analyses if self._are_slim else map(slimmed, report.analyses)
        if self._on_piece is not None:
            self._on_piece(report)

    def end(self, keeper: Keeper) -> None:
        """Add the last report up: all of its pieces have come."""
        run, slim = self._current, self._slim
        self._current, self._slim = None, []
        if run is None or not self._adds_up:
            return
        try:
            totals = write_all((AnalyzedReport(run, tuple(slim)),), self._limits, _totals_of)
        except InputError as error:
            self.failures.append((run.source, error))
            keeper.leave(run.digest)
            return
        self.totals[run.digest] = totals
        if any(is_bug(analysis.kernel) for analysis in slim):
            keeper.leave_totals(run.digest)
        else:
            keeper.add_totals(run.digest, totals)

    def sorted_reports(self, order: Sequence[str]) -> tuple[AnalyzedReport, ...]:
        """Return the reports by their paths, equal ones in an order of digests."""
        places = {digest: place for place, digest in enumerate(order)}
        return tuple(
            sorted(
                self.reports.values(),
                key=lambda report: (report.run.source, places.get(report.run.digest, len(places))),
            )
        )


def _totals_of(reports: Sequence[AnalyzedReport]) -> list[Total]:
    return totals_of([analysis for report in reports for analysis in report.analyses])
