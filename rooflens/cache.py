"""The cache: a private folder of reproducible files, checked by their SHA-256 at every read.

Some of what it holds is run, so a file is read only if nobody else can have written it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
from typing import TYPE_CHECKING

from rooflens.files import base_folder, give_back, is_ours, make_folder, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PRIVATE = 0o700
_OPENING = ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
"""What files are opened with, as far as the system has it."""


def cache_folder() -> Path:
    """Return the cache's folder: `$XDG_CACHE_HOME/rooflens`, else `~/.cache/rooflens`.

    Raises:
        RuntimeError: Neither the variable nor a home folder is known.
    """
    return base_folder("XDG_CACHE_HOME", ".cache") / "rooflens"


def keep(name: str, data: bytes) -> None:
    """Write data to the cache, with its SHA-256; failing to write it costs time and nothing else.

    Args:
        name: Path of the file below the cache's folder: a name, or `folder/name`.
        data: Its content.
    """
    with contextlib.suppress(OSError, RuntimeError):
        file = cache_folder() / name
        make_private(file.parent)
        with replacing(file, private=True) as partial:
            partial.write_bytes(_digest(data) + b"\n" + data)


def kept(name: str) -> bytes | None:
    """Read data from the cache; None if it is missing, damaged, or if somebody else may have written it."""
    with contextlib.suppress(OSError, RuntimeError):
        file = cache_folder() / name
        if is_trusted(file):
            digest, _, data = _read_regular_file(file).partition(b"\n")
            if digest == _digest(data):
                return data
    return None


def trim(folder: str, most_bytes: int) -> None:
    """Remove the oldest files of a cache folder until the rest have at most `most_bytes` bytes."""
    with contextlib.suppress(OSError, RuntimeError):
        place = cache_folder() / folder
        make_private(place)
        files = sorted(((file.lstat(), file) for file in place.iterdir()), key=_age)
        left_bytes = sum(found.st_size for found, _ in files)
        for found, file in files:
            if left_bytes <= most_bytes:
                break
            file.unlink(missing_ok=True)
            left_bytes -= found.st_size


def make_private(folder: Path) -> None:
    """Make a folder of the cache for this user only; one that is there is closed to others.

    Raises:
        OSError: It cannot be made, is a link, or belongs to another user.
    """
    make_folder(cache_folder().parent)
    for one in _folders(folder):
        with contextlib.suppress(FileExistsError):
            one.mkdir(_PRIVATE)
            give_back(one)
        found = one.lstat()
        if not stat.S_ISDIR(found.st_mode) or not is_ours(found):
            raise PermissionError(errno.EPERM, "it is no folder of this user's", str(one))
        if stat.S_IMODE(found.st_mode) != _PRIVATE:
            one.chmod(_PRIVATE)


def is_trusted(file: Path) -> bool:
    """Return whether nobody else can have written a file of the cache: a regular file, in folders, all ours alone."""
    try:
        places = [(file.lstat(), stat.S_ISREG), *((one.lstat(), stat.S_ISDIR) for one in _folders(file.parent))]
    except OSError:
        return False
    return all(is_kind(found.st_mode) and is_ours(found) and not _is_open(found) for found, is_kind in places)


def _folders(folder: Path) -> Iterator[Path]:
    """Yield the cache's folder, and those in it down to this one."""
    top = cache_folder()
    yield top
    for one in reversed((folder, *folder.parents)):
        if one != top and one.is_relative_to(top):
            yield one


def _is_open(status: os.stat_result) -> bool:
    """Return whether others may write a file; Windows closes a user's folders by lists that no mode shows."""
    return sys.platform != "win32" and bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _read_regular_file(file: Path) -> bytes:
    """Read a file that was just seen to be regular; should a link or a pipe be there by now, it is not waited for."""
    descriptor = os.open(file, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in _OPENING))
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def _age(file: tuple[os.stat_result, Path]) -> int:
    return file[0].st_mtime_ns


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
