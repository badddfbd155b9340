"""Errors that a user can cause or fix: each has a message, a hint and an exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

READS_SINCE = (3, 11)
"""The Python that reads reports; `collect` and `doctor` also run in 3.10."""

INTACT_HINT = "copy the report again from the machine that wrote it, or profile again"
"""The next step with a report that is cut or damaged."""

MOST_LISTED = 240
"""Most characters of names in a hint: nobody reads more than 300."""

_NAMES_IN_FULL = 12
"""Lists up to this length are written into the hint."""
_CLOSE = 0.65
"""Fraction of a name that must match for the name to be suggested."""


class RooflensError(Exception):
    """Base of all errors: a one-line message about what went wrong, and a hint about what to do next.

    Attributes:
        hint: The next step, shown after `hint:`, or empty.
        exit_code: Exit status of a process that this error ends.
        kept: Path of the partial report kept from a failed collection; None if nothing was kept.
        is_of_program: Whether the profiled program failed by itself, without ncu: another program may still run.
        is_certain: Whether ncu named the cause, so that it would fail with any program.
    """

    exit_code = 1
    is_of_program = False
    is_certain = False
    kept: Path | None = None

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        if hint and hasattr(self, "add_note"):  # since Python 3.11
            self.add_note(f"hint: {hint}")  # tracebacks show it


class InputError(RooflensError):
    """Bad input or data: a damaged report, an unknown file, a broken store (exit code 1).

    Attributes:
        report_count: Number of reports that cannot be read because of it; None if unknown.
    """

    def __init__(self, message: str, hint: str = "", report_count: int | None = 1) -> None:
        super().__init__(message, hint)
        self.report_count = report_count


class UsageError(RooflensError):
    """The command was called in a way that cannot work (exit code 2)."""

    exit_code = 2


class UnknownNameError(UsageError):
    """An unknown name; the hint suggests similar names, or else says where all names are listed.

    Args:
        kind: What the name should name: `workload`, `GPU`.
        name: The given name.
        known: The existing names.
        listing: A command or expression that lists them, or empty.
        synonyms: Other words for some names.
        near: What to suggest, where that is known better than by its spelling.
    """

    def __init__(  # noqa: PLR0913 - each says another part of the hint
        self,
        kind: str,
        name: str,
        choices: Collection[str],
        listing: str = "",
        synonyms: Mapping[str, str] | None = None,
        *,
        near: Sequence[str] = (),
    ) -> None:
        meant = {one: one for one in choices} | dict(synonyms or {})
        if name.casefold() in (synonyms or {}):
            meant = {name: meant[name.casefold()]}
        near = near or list(dict.fromkeys(meant[one] for one in self._near(name, meant)))
        if near:
            hint = f"did you mean {any_of(near)}?"
            hint += f" `{listing}` lists all" if listing else ""
        elif listing and len(choices) > _NAMES_IN_FULL:
            hint = f"`{listing}` lists them"
        else:
            hint = f"one of: {_names_that_fit(list(choices))}"
        super().__init__(f"no {kind} is called `{name}`", hint)

    def _near(self, name: str, choices: Collection[str]) -> list[str]:
        return near_names(name, choices)


class UnknownKeyError(UnknownNameError, KeyError):
    """An unknown key, such as a column, with suggestions: a `KeyError` with a hint."""

    __str__ = Exception.__str__  # `KeyError` would show only the quoted key

    def _near(self, name: str, choices: Collection[str]) -> list[str]:
        return meant_names(name, choices)


def near_names(name: str, choices: Collection[str]) -> list[str]:
    """Return up to three names similar to the typed name, most similar first."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where nothing was found

    folded = {one.casefold(): one for one in choices}
    return [folded[near] for near in get_close_matches(name.casefold(), folded, cutoff=_CLOSE)]


def meant_names(name: str, choices: Collection[str]) -> list[str]:
    """Return up to eight names that contain the word (`gain`: `verdict_gain_factor`), else similar names."""
    word = name.casefold().removesuffix("s")
    holding = [one for one in choices if word in (part.removesuffix("s") for part in one.casefold().split("_"))]
    return sorted(holding, key=lambda one: not one.startswith(word))[:8] or near_names(name, choices)


def _names_that_fit(names: Sequence[str]) -> str:
    shown = len(names)
    while shown > 1 and len(", ".join(names[:shown])) > MOST_LISTED:
        shown -= 1
    more = f" and {len(names) - shown} more" if shown < len(names) else ""
    return f"{', '.join(names[:shown])}{more}"


def any_of(names: Sequence[str]) -> str:
    """Write names as a choice: `` `a`, `b` or `c` ``."""
    *others, last = (f"`{one}`" for one in names)
    return f"{', '.join(others)} or {last}" if others else last


class NoMatchError(InputError):
    """No kernel matches the patterns of kernels, NVTX ranges or GPUs."""


class EnvironmentMissingError(RooflensError):
    """Something that this machine should have is missing: ncu, a GPU, a permission (exit code 3)."""

    exit_code = 3


def need_newer_python(purpose: str) -> None:
    """Check that this Python is new enough for what reads reports.

    Raises:
        EnvironmentMissingError: It is not.
    """
    if sys.version_info[:2] < READS_SINCE:
        since, found = (".".join(map(str, version[:2])) for version in (READS_SINCE, sys.version_info))
        raise EnvironmentMissingError(f"{purpose} needs Python {since}; this is {found}", f"install Python {since}")


def lacking_package(error: ImportError) -> EnvironmentMissingError | None:
    """Name a third-party package that is missing or broken, and how to install it; None for other packages."""
    import shlex  # noqa: PLC0415 - only where something is missing

    module = (error.name or "rooflens").partition(".")[0]
    if module in {"rooflens", "pandas", *sys.stdlib_module_names}:  # pandas is kept out of processes of ours
        return None
    package = _PACKAGES.get(module, module)
    why = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported: {error}"
    name, bringing = package.partition(">")[0], _BROUGHT_BY.get(module, package)
    return EnvironmentMissingError(
        f"this needs the Python package `{name}`, which {why}", f"`pip install {shlex.quote(bringing)}`"
    )


_PACKAGES = {
    "altair": "altair>=6,<7",
    "distributed": "distributed>=2024.1",
    "google": "protobuf>=5.29.5",
    "mcp": "mcp>=2,<3",
    "mcp_types": "mcp>=2,<3",
    "ncu_report": "ncu-report",
    "vl_convert": "vl-convert-python>=1.8",
}
"""Module -> name for pip, if that differs or needs a version."""


_BROUGHT_BY = dict.fromkeys(("jinja2", "markupsafe"), "altair>=6,<7")
"""Module -> the package that a page needs as well, and that installs it."""


class ProgramError(RooflensError):
    """The profiled program failed on its own, without the profiler (exit code 4).

    Attributes:
        status: Exit status of the program; negative for a signal that ended it; None if rooflens ended it.
    """

    exit_code = 4

    def __init__(self, message: str, hint: str = "", status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class GateFailedError(RooflensError):
    """Something got slower than its gate allows (exit code 5)."""

    exit_code = 5


class StoppedError(RooflensError):
    """The user, or the system, asked us to stop (exit code 130, by shells' convention)."""

    exit_code = 130
