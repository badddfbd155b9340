"""Where files are written, and in which format: what no file may take the place of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.errors import InputError, UsageError
from rooflens.files import refuse_special

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMATS = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".markdown": "md",
    ".png": "png",
    ".svg": "svg",
    ".json": "json",
    ".csv": "csv",
    ".xml": "junit",
}
"""Ending of a file -> the format it is written in."""


def format_of(output: Path, style: str | None, formats: Sequence[str]) -> str:
    """Find a file's format in --format or in its ending; the two may not contradict each other.

    Args:
        output: The file.
        style: What --format says; None where it was not given.
        formats: What the command can write.

    Raises:
        UsageError: Neither names a format, or they name two.
    """
    named = FORMATS.get(output.suffix.lower())
    told = named if named in formats else None
    if style and told and style != told:
        raise UsageError(f"`{output}` ends like {told}, and --format is {style}", "drop one of the two")
    if found := style or told:
        return found
    endings = ", ".join(ending for ending, known in FORMATS.items() if known in formats)
    raise UsageError(f"the ending of `{output}` names no format", f"give --format, or one of {endings}")


def refuse_report(output: Path, hint: str = "name another file with -o, for example page.html") -> None:
    """Refuse to write over a report, forced or not; `hint` says what to do.

    Raises:
        UsageError: There is one, or the name is one's.
    """
    from rooflens.ingest.reports.inputs import has_name_of_report, is_report

    if is_report(output):
        what = "the name of a report" if has_name_of_report(output) else "a report"
        raise UsageError(f"`{output}` is {what}", hint)


def check_place(output: Path, *, force: bool) -> None:
    """Refuse to write over a report, and over what `check_free` refuses.

    Raises:
        UsageError: The place is taken.
    """
    refuse_report(output)
    check_free(output, force=force, hint="give another name with -o, or --force to overwrite it")


def check_free(output: Path, *, force: bool, hint: str) -> None:
    """Refuse to write over what is no ordinary file, and over a file without being told to; `hint` says how to.

    Raises:
        UsageError: The place is taken.
    """
    try:
        refuse_special(output)
    except InputError as error:
        raise UsageError(str(error), error.hint) from error
    if output.exists() and not force:
        raise UsageError(f"`{output}` exists", hint)
