"""Read texts, and write files completely or not at all: under another name, then renamed. Standard library only.

A process that is killed while writing leaves the previous file, and at most a file that ends in `.partial`. If two
processes write the same file at once, the complete file of the last one remains.
"""

from __future__ import annotations

import codecs
import os
import reprlib
import stat
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TEXT_HEAD_BYTES = 1 << 20
"""How far into a text a table may begin: a log, or a program's own output, comes first."""

PARTIAL = ".partial"
"""Ending of a file that is being written."""

_LONGEST_STEM = 40
"""Characters of a file's name that its partial file starts with: names have at most 255 bytes, with all suffixes."""

_PRIVATE = 0o600


MAX_TEXT_BYTES = 64 << 20
"""Any text that we read is far smaller: a larger file must be something else."""


def base_folder(variable: str, below_home: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return a base folder of the user by the XDG specification, which ignores a variable that is no absolute path.

    Args:
        variable: Such as `XDG_CACHE_HOME`.
        below_home: The folder without it, such as `.cache`.
        environ: Where to look the variable up.

    Raises:
        RuntimeError: Neither the variable nor a home folder is known.
    """
    given = environ.get(variable, "")
    return Path(given) if os.path.isabs(given) else Path.home() / below_home  # noqa: PTH117 - of a text that may be empty


def path_text(given: object) -> str:
    """Return the text of a path given by the user.

    Raises:
        UsageError: The path is empty, which Python takes for the current folder, or is no path at all.
    """
    if not isinstance(given, (str, os.PathLike)) or not isinstance(text := os.fspath(given), str):
        raise UsageError(f"{reprlib.repr(given)} is not a path", 'for example "last-week.ncu-rep"')
    if not text:
        raise UsageError("one of the paths is empty", "`.` is the current folder")
    return text


def read_text(file: Path, hint: str = "", *, is_named: bool = True, most_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return the text of a UTF-8 file.

    Args:
        file: The file.
        hint: What to do if it cannot be read.
        is_named: Whether the user named the file. Files that were merely found must be regular: opening a pipe can
            block forever.
        most_bytes: Size beyond which the file must be something else.

    Raises:
        InputError: The file is unreadable, is no text, or is too large.
    """
    try:
        if not is_named and not stat.S_ISREG(file.stat().st_mode):
            raise InputError(f"`{file}` is not a regular file", hint)
        with file.open("rb") as stream:
            data = stream.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise InputError(f"`{file}` is over {most_bytes >> 20} MiB, too large for such a file", hint)
        return data.decode()
    except OSError as error:
        raise InputError(f"cannot read `{file}`: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise InputError(f"`{file}` is not a text file", hint) from error


_SAMPLE_BYTES = 1 << 16


def encoding_of(data: bytes) -> str:
    """Return the encoding of a text by its first bytes: UTF-8, PowerShell's UTF-16, or a Windows code page."""
    sample = data[:_SAMPLE_BYTES]
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    first, second = (2 * half.count(0) > len(half) for half in (sample[::2], sample[1::2]))
    if first is not second:  # nothing but zeros is no text
        return "utf-16-be" if first else "utf-16-le"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def is_utf16(data: bytes) -> bool:
    """Return whether a text is in UTF-16, with a byte-order mark or without, by its first bytes."""
    return encoding_of(data).startswith("utf-16")


def refuse_special(file: Path) -> None:
    """Refuse to overwrite anything but a regular file.

    Symbolic links are refused too: only the user knows whether the link is meant, or the file behind it.

    Raises:
        InputError: The path is a folder, link, device, named pipe or socket.
    """
    try:
        mode = file.lstat().st_mode
    except OSError:
        return  # missing or inaccessible: writing it will report the error
    if stat.S_ISREG(mode):
        return
    kind = next((name for name, test in _SPECIAL.items() if test(mode)), "not a regular file")
    hint = f"it leads to `{_target(file)}`" if stat.S_ISLNK(mode) else "without -o, or with `-o -`, it goes to stdout"
    raise InputError(f"`{file}` is {kind}: it is not overwritten", hint)


_SPECIAL = {
    "a folder": stat.S_ISDIR,
    "a symbolic link": stat.S_ISLNK,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
    "a named pipe": stat.S_ISFIFO,
    "a socket": stat.S_ISSOCK,
}


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return "?"


@contextmanager
def replacing(file: Path, *, durable: bool = False, private: bool = False) -> Iterator[Path]:
    """Give a new private file beside `file`, which replaces `file` at the end of the block; on failure it is removed.

    Missing folders above are made. The new file gets the permissions of the replaced file; otherwise the usual
    permissions, or those set by the writer. A symbolic link is itself replaced, never its target.

    Args:
        file: The file to write.
        durable: Wait until content and name are on disk, so that the file survives a power cut.
        private: Leave the file readable for its user only.

    Raises:
        OSError: The folder is not writable.
    """
    make_folder(file.parent)
    partial = file.with_name(f".{file.name[:_LONGEST_STEM]}.{os.urandom(8).hex()}{PARTIAL}")
    try:  # from before it is made: a signal may come at any moment
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), _PRIVATE))
        yield partial
        if not private:
            _set_mode(partial, file)
        give_back(partial)
        if durable:
            _sync(partial, os.O_RDWR)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
    if durable and hasattr(os, "O_DIRECTORY"):  # systems that cannot open folders make renames durable by themselves
        _sync(file.parent, os.O_DIRECTORY)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, owned by the user who called `sudo`, if known."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    give_back(*new)


def give_back(*written: Path) -> None:
    """Give files written under `sudo` to the user who called it: only the counters need root."""
    if sys.platform != "win32" and (caller := _sudo_caller()) is not None:
        for path in written:
            with suppress(OSError):
                os.chown(path, *caller, follow_symlinks=False)


def is_ours(status: os.stat_result) -> bool:
    """Return whether a file belongs to this user, or to the user who called `sudo`."""
    if sys.platform == "win32":  # it has no such numbers
        return True
    return status.st_uid in {os.geteuid(), *(_sudo_caller() or ())[:1]}


def _sudo_caller() -> tuple[int, int] | None:
    """Return user and group of who called `sudo`; None unless this is root by `sudo`."""
    owner = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if sys.platform == "win32" or os.geteuid() != 0 or not all(number.isdecimal() for number in owner):
        return None
    return int(owner[0]), int(owner[1])


def _set_mode(partial: Path, file: Path) -> None:
    """Set a file's permissions to those of the file it replaces, or to the default if it is new."""
    with suppress(FileNotFoundError):
        if stat.S_ISREG(replaced := file.lstat().st_mode):
            partial.chmod(stat.S_IMODE(replaced))
            return
    if stat.S_IMODE(partial.stat().st_mode) == _PRIVATE:  # a compiler replaces the file by an executable
        masked = os.umask(0o077)
        os.umask(masked)
        partial.chmod(0o666 & ~masked)


def write_whole(
    file: Path, content: str | bytes, *, hint: str = "give another place with -o", durable: bool = False
) -> None:
    """Write a file like `replacing`; text is written as UTF-8, with `?` for characters that cannot be encoded.

    Raises:
        InputError: The folder is not writable, or the file exists but is not regular; `hint` says what to do.
    """
    refuse_special(file)
    try:
        with replacing(file, durable=durable) as partial:
            partial.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    except OSError as error:
        raise InputError(f"cannot write `{file}`: {error.strerror}", hint) from error


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
