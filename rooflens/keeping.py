"""Write the verdicts of a store back to it; if that fails, the answer still stands."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from rooflens.errors import InputError
from rooflens.model.failed import bug_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rooflens.model.store.verdicts import VerdictWriter
    from rooflens.model.totals import Total


class Keeper:
    """Writes verdicts to a store while it is analyzed; the first error stops the writing, not the analysis.

    Attributes:
        error: Why verdicts were not kept; None where they were, or were not meant to be.
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
            except Exception as error:  # noqa: BLE001 - the answer stands without the store
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
        """Return whether the store is being written and lacks rows of any of these reports."""
        writer = self._writer
        return writer is not None and any(writer.needs(digest) for digest in digests)

    def add(self, digests: Sequence[str], tables: Mapping[str, Any] | InputError, kernel_count: int) -> None:
        """Write the rows of some reports of a part, or of a piece of one; an error in their place stops the writing."""
        if isinstance(tables, InputError):
            if self._writer is not None:
                self._fail(tables)
        else:
            self._try(lambda writer: writer.add(digests, tables, kernel_count))

    def add_totals(self, digest: str, totals: Sequence[Total]) -> None:
        """Write the totals of a report."""
        self._try(lambda writer: writer.add_totals(digest, totals))

    def leave_totals(self, digest: str) -> None:
        """Write no totals for the part of a report: they met a bug in rooflens, which a later version may not have."""
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
    return error if isinstance(error, InputError) else bug_error(error)
