"""NVIDIA's reader in children that may die: a damaged file costs itself and nothing else.

The reader can abort the whole process, can hang, and keeps most of what it has read in memory. So it runs in children,
each with one file at a time (`rooflens.ingest.children`).
"""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from rooflens.errors import InputError
from rooflens.ingest.reports.unpacking import likely_bytes
from rooflens.model.failed import BUG_HINT, bug_place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from rooflens.ingest.children.children import Children
    from rooflens.ingest.reports.report import Report

DEADLINE_SECONDS = 120.0
SECONDS_PER_BYTE = 1e-6
"""A file may take two minutes, and a second for each megabyte unpacked: far more than any report needs."""

CHANGED = "it changed while it was read"
CHANGED_HINT = "read it again when the program that writes it is done"
_FRESH_SECONDS = 2.0
"""How coarse a file system's clock may be: a file written so recently may change and keep its time stamp."""

Stamp: TypeAlias = tuple[object, ...]


class Job(Struct, frozen=True):
    """One file to read.

    Attributes:
        path: Where it is; for one at an address, the address as shown, which has its name.
        source: What the user called it.
        address: Where it is fetched from; empty for a local file.
        byte_count: Its size at the address; 0 for a local file.
    """

    path: Path
    source: str
    address: str = ""
    byte_count: int = 0


class Outcome(Struct, frozen=True):
    """What became of one job: a report, or why there is none."""

    job: Job
    result: Report | InputError


_making = threading.Lock()


def _readers() -> Children:
    """Return the one pool of children, also when several threads ask for it first."""
    with _making:
        return _children()


@cache
def _children() -> Children:
    from rooflens.ingest.children.children import Children  # noqa: PLC0415 - most reports need none

    return Children("NVIDIA's reader")


def end_children(threads: Collection[int] = ()) -> None:
    """End the idle children, and those at work for these threads, whose calls then fail."""
    if _children.cache_info().currsize:
        _readers().abandon(threads)
        _readers().rest()


def in_child(
    function: Callable[..., Any], path: Path, *arguments: Any, deadline_s: float = DEADLINE_SECONDS, **options: Any
) -> Any:
    """Call a function that reads a file with NVIDIA's reader, in a child.

    Args:
        function: One that can be imported by its name; it gets the path, the other arguments and the options.
        path: The file; the call may take longer for a larger one.
        arguments: Its further arguments, pickled.
        deadline_s: Seconds that the call may take, before the allowance for the file's size.
        options: Its keyword arguments, pickled.

    Raises:
        InputError: The function raised it, has a bug, or its child died; or the file changed while it was read.
    """
    most_s = deadline_s + likely_bytes(path) * SECONDS_PER_BYTE
    return _readers().call(_guarded, (function, path, arguments, options), most_s)


def _guarded(function: Callable[..., Any], path: Path, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Make the call in the child, where an exception still has its traceback."""
    with said(), unchanged(path):
        return function(path, *arguments, **options)


@contextmanager
def said() -> Iterator[None]:
    """Turn an unexpected exception into an error that names its place in the code: it costs one file, not others."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - of any reader, on any file
        raise InputError(f"cannot be read: {bug_place(error)}: {error}", BUG_HINT) from None


@contextmanager
def unchanged(path: Path, since: Stamp | None = None) -> Iterator[None]:
    """Check that a file is the same at the end of the block as at its start.

    Args:
        path: The file.
        since: Its stamp when it was first looked at, maybe on another machine; by default its stamp now.

    Raises:
        InputError: It was changed or replaced, so that what was read may mix two files.
    """
    before = since or stamp_of(path)
    error = None
    try:
        yield
    except InputError as damage:  # as a half-written file seems to have
        error = damage
    if stamp_of(path, like=before) != before:
        raise InputError(CHANGED, CHANGED_HINT) from None
    if error is not None:
        raise error


def stamp_of(path: Path, like: Stamp | None = None) -> Stamp:
    """Return what tells one file from another: inode, size and times, and its digest if it was just written.

    The device number is no part of it: machines that share a file system have different ones.
    """
    try:
        found = path.stat()
        is_fresh = like is not None and like[-1] is not None
        if like is None:
            is_fresh = path.is_file() and time.time() - found.st_mtime < _FRESH_SECONDS
        digest = _digest(path) if is_fresh else None
    except OSError as error:  # opening it will say so
        return (error.errno, None)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, digest)


def _digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
