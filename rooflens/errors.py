"""The errors a user can cause or mend: each knows its message, its hint and its exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

MOST_LISTED = 240
"""Characters of names in a hint: nobody reads more than 300 of one."""

_NAMES_IN_FULL = 12
"""A list up to this length is written into the hint."""
_CLOSE = 0.65
"""How much of a name must be as it was typed for it to be suggested."""


class RooflensError(Exception):
    """Base of all errors: the message says what went wrong in one line, the hint what to do next.

    Attributes:
        hint: The next step, shown after `hint:`; empty if there is none.
        exit_code: Status of the process when this error ends it.
        kept: Path of the partial report that was kept when collecting failed; None if nothing was kept.
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
        if hint:
            self.add_note(f"hint: {hint}")  # a traceback shows it


class InputError(RooflensError):
    """Bad input or data: a damaged report, an unknown file, a broken store (exit code 1).

    Attributes:
        report_count: How many reports cannot be read because of it; None if unknown.
    """

    def __init__(self, message: str, hint: str = "", report_count: int | None = 1) -> None:
        super().__init__(message, hint)
        self.report_count = report_count


class UsageError(RooflensError):
    """The command was called in a way that cannot work (exit code 2)."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that is not in a list; the hint has the names that come close, or else says where all are listed.

    Args:
        kind: What it should name: `workload`, `GPU`.
        name: What was given.
        known: The names there are.
        listing: What lists them, a command or an expression; empty if there is none.
        synonyms: Other words for some of them.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Collection[str],
        listing: str = "",
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        meant = {one: one for one in known} | dict(synonyms or {})
        if name.casefold() in (synonyms or {}):
            meant = {name: meant[name.casefold()]}
        near = list(dict.fromkeys(meant[one] for one in self._near(name, meant)))
        if near:
            hint = f"did you mean {any_of(near)}?"
            hint += f" `{listing}` lists all" if listing else ""
        elif listing and len(known) > _NAMES_IN_FULL:
            hint = f"`{listing}` lists them"
        else:
            hint = f"one of: {_listed(list(known))}"
        super().__init__(f"no {kind} is called `{name}`", hint)

    def _near(self, name: str, known: Collection[str]) -> list[str]:
        return near_names(name, known)


class UnknownKeyError(UnknownNameError, KeyError):
    """A key of many words that there is not, such as a column: a `KeyError` with a hint."""

    __str__ = Exception.__str__  # not the quoted key that a `KeyError` shows

    def _near(self, name: str, known: Collection[str]) -> list[str]:
        return meant_names(name, known)


def near_names(name: str, known: Collection[str]) -> list[str]:
    """Return at most three names that come close to what was typed, the closest first."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where nothing was found

    folded = {one.casefold(): one for one in known}
    return [folded[near] for near in get_close_matches(name.casefold(), folded, cutoff=_CLOSE)]


def meant_names(name: str, known: Collection[str]) -> list[str]:
    """Return at most eight names with a word among theirs (`gain`: `verdict_gain_factor`), else what comes close."""
    word = name.casefold().removesuffix("s")
    holding = [one for one in known if word in (part.removesuffix("s") for part in one.casefold().split("_"))]
    return sorted(holding, key=lambda one: not one.startswith(word))[:8] or near_names(name, known)


def _listed(names: Sequence[str]) -> str:
    """List names, as many as a hint has room for."""
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


def lacking_package(error: ImportError) -> EnvironmentMissingError | None:
    """Name a package of others that is not installed or broken, and how to install it; None if it is not one."""
    import shlex  # noqa: PLC0415 - only where something is missing

    module = (error.name or "rooflens").partition(".")[0]
    if module in {"rooflens", "pandas", *sys.stdlib_module_names}:  # pandas is kept out of processes of ours
        return None
    package = _PACKAGES.get(module, module)
    why = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported: {error}"
    name = package.partition(">")[0]
    return EnvironmentMissingError(
        f"this needs the Python package `{name}`, which {why}", f"`pip install {shlex.quote(package)}`"
    )


_PACKAGES = {
    "distributed": "distributed>=2024.1",
    "google": "protobuf>=5.29.5",
    "mcp": "mcp>=2,<3",
    "mcp_types": "mcp>=2,<3",
    "ncu_report": "ncu-report",
    "vl_convert": "vl-convert-python>=1.8",
}
"""Module -> what pip installs for it, where that has another name or needs a version."""


class ProgramError(RooflensError):
    """The profiled program failed on its own, without the profiler (exit code 4).

    Attributes:
        status: Exit status of the program; negative for the signal that ended it; None if it had to be ended.
    """

    exit_code = 4

    def __init__(self, message: str, hint: str = "", status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class StoppedError(RooflensError):
    """The user, or the system, asked us to stop (exit code 130, as shells count it)."""

    exit_code = 130
