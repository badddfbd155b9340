"""Read texts, and write files whole or not at all: under another name, then renamed. Standard library only.

A process that is killed while it writes leaves what was there before, and at most a file that ends in `.partial`. If
two write the same file at once, the last one's is there in the end, whole.
"""

from __future__ import annotations

import os
import reprlib
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rooflens.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTIAL = ".partial"
"""Ending of what is being written."""

_LONGEST_STEM = 40
"""Characters of a file's name that its partial one begins with: a name may have 255 bytes, with all that is added."""

_PRIVATE = 0o600


MAX_TEXT_BYTES = 64 << 20
"""No text that is read here comes near this: a larger file is something else."""


def path_text(given: object) -> str:
    """Return the text of a path that a user gave.

    Raises:
        UsageError: It is empty, which Python takes for the current folder, or no path at all.
    """
    if not isinstance(given, (str, os.PathLike)) or not isinstance(text := os.fspath(given), str):
        raise UsageError(f"{reprlib.repr(given)} is not a path", 'for example "last-week.ncu-rep"')
    if not text:
        raise UsageError("one of the paths is empty", "`.` is the current folder")
    return text


def read_text(file: Path, hint: str = "", *, is_named: bool = True) -> str:
    """Return the text of a file, UTF-8.

    Args:
        file: Where it is.
        hint: What to do where it cannot be read.
        is_named: Whether the user named it: of files that were merely found, only regular ones are read, since opening
            a pipe can block for ever.

    Raises:
        InputError: It cannot be read, is not text, or has over `MAX_TEXT_BYTES`.
    """
    try:
        if not is_named and not stat.S_ISREG(file.stat().st_mode):
            raise InputError(f"`{file}` is not a regular file", hint)
        with file.open("rb") as stream:
            data = stream.read(MAX_TEXT_BYTES + 1)
        if len(data) > MAX_TEXT_BYTES:
            raise InputError(f"`{file}` is over {MAX_TEXT_BYTES >> 20} MiB, too large for such a file", hint)
        return data.decode()
    except OSError as error:
        raise InputError(f"cannot read `{file}`: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise InputError(f"`{file}` is not a text file", hint) from error


def refuse_special(file: Path) -> None:
    """Refuse to overwrite anything that is not a regular file.

    A symbolic link is refused too: whether the link is meant, or the file that it leads to, only the user knows.

    Raises:
        InputError: A folder, link, device, named pipe or socket is there.
    """
    try:
        mode = file.lstat().st_mode
    except OSError:
        return  # nothing there, or nothing that can be looked at: who writes says why not
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
def replacing(file: Path, *, durable: bool = False) -> Iterator[Path]:
    """Give a new private file beside `file` to write to, which replaces it at the end; on failure it is removed.

    Folders above are made. The new file takes the permissions of the one it replaces; otherwise it has the usual ones,
    or those that the writer gave it. A symbolic link is replaced itself, never what it leads to.

    Args:
        file: What is to be written.
        durable: Wait until the content and the new name are on the disk: what was committed survives a power cut.

    Raises:
        OSError: The place cannot be written to.
    """
    make_folder(file.parent)
    partial = file.with_name(f".{file.name[:_LONGEST_STEM]}.{os.urandom(8).hex()}{PARTIAL}")
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), _PRIVATE))
    try:
        yield partial
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
    """Make a folder with those above it, for the user who called `sudo` where that is known."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    give_back(*new)


def give_back(*written: Path) -> None:
    """Give what was written under `sudo` to the user who called it: it is the counters that only root may read."""
    if sys.platform == "win32":
        return
    owner = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if all(number.isdecimal() for number in owner) and os.geteuid() == 0:
        for path in written:
            with suppress(OSError):
                os.chown(path, int(owner[0]), int(owner[1]), follow_symlinks=False)


def _set_mode(partial: Path, file: Path) -> None:
    """Give a written file the permissions of the file it replaces, or the default ones if it is new."""
    with suppress(FileNotFoundError):
        if stat.S_ISREG(replaced := file.lstat().st_mode):
            partial.chmod(stat.S_IMODE(replaced))
            return
    if stat.S_IMODE(partial.stat().st_mode) == _PRIVATE:  # a compiler makes the file anew, executable
        masked = os.umask(0o077)
        os.umask(masked)
        partial.chmod(0o666 & ~masked)


def write_whole(
    file: Path, content: str | bytes, *, hint: str = "give another place with -o", durable: bool = False
) -> None:
    """Write a file as `replacing` does; a text as UTF-8, with `?` for what is not Unicode.

    Raises:
        InputError: The place cannot be written to, or holds no regular file; `hint` says what to do about it.
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
