"""Where output files go, in which format, what they must not overwrite, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from rooflens.errors import InputError, UsageError
from rooflens.files import refuse_special, write_whole

FORMATS = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".markdown": "md",
    ".pdf": "pdf",
    ".png": "png",
    ".svg": "svg",
    ".json": "json",
    ".csv": "csv",
}
"""Extension of a file -> its format."""


def format_of(output: Path, style: str | None, formats: Sequence[str]) -> str:
    """Return the format given by --format or the file's extension, which must not contradict each other.

    Args:
        output: The file.
        style: Value of --format, or None.
        formats: Formats that the command can write.

    Raises:
        UsageError: Neither names a format, or they name different ones.
    """
    named = FORMATS.get(output.suffix.lower())
    told = named if named in formats else None
    if style and told and style != told:
        raise UsageError(f"`{output}` ends like {told}, and --format is {style}", "drop one of the two")
    if found := style or told:
        return found
    endings = ", ".join(ending for ending, known in FORMATS.items() if known in formats)
    raise UsageError(f"the extension of `{output}` is not a known format", f"give --format, or one of {endings}")


def check_named(file: Path, formats: Sequence[str], *, force: bool) -> str:
    """Return the format of a file's extension; refuse to overwrite a report, or any file without `force`.

    Raises:
        UsageError: The extension has no such format, or the file exists.
    """
    style = FORMATS.get(file.suffix.lower())
    if style is None or style not in formats:
        endings = ", ".join(ending for ending, known in FORMATS.items() if known in formats)
        raise UsageError(f"the extension of `{file}` is not a format of this output", f"choose one of {endings}")
    refuse_report(file, "give another name")
    check_folder(file)
    check_free(file, force=force, hint="give another name, or force=True to overwrite it")
    return style


def check_folder(output: Path) -> None:
    """Refuse to write into a missing folder: it may be a typo.

    Raises:
        UsageError: The folder is missing.
    """
    if not output.parent.is_dir():
        raise UsageError(
            f"there is no folder `{output.parent}`", f"make it first: `mkdir -p {quote(str(output.parent))}`"
        )


def refuse_report(output: Path, hint: str = "name another file with -o, for example page.html") -> None:
    """Refuse to overwrite a report, forced or not; `hint` says what to do.

    Raises:
        UsageError: The file is a report, or has a report's name.
    """
    from rooflens.ingest.reports.inputs import has_name_of_report, is_report

    if is_report(output):
        what = "the name of a report" if has_name_of_report(output) else "a report"
        raise UsageError(f"`{output}` is {what}", hint)


def check_free(
    output: Path, *, force: bool, hint: str = "give another name with -o, or --force to overwrite it"
) -> None:
    """Refuse to overwrite anything but a regular file, and files without `force`; `hint` says how to force it.

    A page of ours can be written again, and needs no force.

    Raises:
        UsageError: The file must not be overwritten.
    """
    try:
        refuse_special(output)
    except InputError as error:
        raise UsageError(str(error), error.hint) from error
    if output.exists() and not force and not is_page(output):
        raise UsageError(f"`{output}` exists", hint)


_GENERATOR = b'name="generator" content="rooflens"'
_HEAD_BYTES = 4096


def is_page(file: Path) -> bool:
    """Return whether a file is a page that rooflens wrote: its head has our mark as the generator."""
    if FORMATS.get(file.suffix.lower()) != "html":
        return False
    try:
        with file.open("rb") as opened:
            return _GENERATOR in opened.read(_HEAD_BYTES)
    except OSError:
        return False


def write_output(output: Path, content: str | bytes, *, hint: str = "give another place with -o") -> None:
    """Write a file completely or not at all: commands and API write through this function, or through this room.

    Raises:
        InputError: The folder is not writable, or the file exists but is not regular; `hint` says what to do.
    """
    write_whole(output, content, hint=hint)
