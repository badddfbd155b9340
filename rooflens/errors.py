"""The errors a user can cause or mend: each knows its message, its hint and its exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class RooflensError(Exception):
    """Carry one line of what went wrong and one of what to do next.

    Attributes:
        hint: The next step, shown after `hint:`; empty when there is none.
        exit_code: Status of the process when this error ends it.
        kept: The part of a report that was there when collecting it failed; None where nothing was kept.
    """

    exit_code = 1
    kept: Path | None = None

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # a traceback shows it


class InputError(RooflensError):
    """Bad input or data: a damaged report, an unknown file, a broken store (exit code 1).

    Attributes:
        report_count: Reports that are lost to it; None where that cannot be told.
    """

    def __init__(self, message: str, hint: str = "", report_count: int | None = 1) -> None:
        super().__init__(message, hint)
        self.report_count = report_count


class UsageError(RooflensError):
    """The command was called in a way that cannot work (exit code 2)."""

    exit_code = 2


class NothingChosenError(InputError):
    """A condition that no kernel of a store meets."""


class NoMatchError(InputError):
    """Patterns of kernels or NVTX ranges that nothing meets."""


class EnvironmentMissingError(RooflensError):
    """Something outside is missing: ncu, a GPU, a permission (exit code 3)."""

    exit_code = 3


class ProgramError(RooflensError):
    """The profiled program failed on its own, without the profiler (exit code 4).

    Attributes:
        status: What the program returned; negative for the signal that ended it; None if it had to be ended.
    """

    exit_code = 4

    def __init__(self, message: str, hint: str = "", status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class StoppedError(RooflensError):
    """The user, or the system, asked us to stop (exit code 130, as shells count it)."""

    exit_code = 130
