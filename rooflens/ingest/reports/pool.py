"""NVIDIA's reader in children that may die: a damaged file costs itself and nothing else.

The reader can abort the whole process, hang, and keeps most of what it has read. So it works in children, each with one
file at a time (`rooflens.ingest.children`).
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
"""A file may take two minutes and a second more for each megabyte, unpacked: far over what any report needs."""

CHANGED = "it changed while it was read"
CHANGED_HINT = "read it again when the program that writes it is done"
_FRESH_SECONDS = 2.0
"""How coarse the clock of a file system may be: a file written so lately may change and keep its time."""

Stamp: TypeAlias = tuple[object, ...]


class Job(Struct, frozen=True):
    """One file to read.

    Attributes:
        path: Where it is; of one at an address, that as it is shown, for its name.
        source: What the user called it.
        address: Where it is fetched from; empty for a file.
        byte_count: Its size there.
    """

    path: Path
    source: str
    address: str = ""
    byte_count: int = 0


class Outcome(Struct, frozen=True):
    """What became of one job: a report, or the error that says why not."""

    job: Job
    result: Report | InputError


_making = threading.Lock()


def _readers() -> Children:
    """Return the children; several threads may ask for the first."""
    with _making:
        return _children()


@cache
def _children() -> Children:
    from rooflens.ingest.children.children import Children  # noqa: PLC0415 - most reports need none

    return Children("NVIDIA's reader")


def end_children(threads: Collection[int] = ()) -> None:
    """End the children that have nothing to do, and those at work for these threads: their calls fail."""
    if _children.cache_info().currsize:
        _readers().abandon(threads)
        _readers().rest()


def in_child(
    function: Callable[..., Any], path: Path, *arguments: Any, deadline_s: float = DEADLINE_SECONDS, **options: Any
) -> Any:
    """Call a function that reads a file with NVIDIA's reader, in a child.

    Args:
        function: Pickled by its name; it gets the path, the other arguments and the options.
        path: The file; its size counts for the time that the call may take.
        arguments: Whatever else it wants, pickled.
        deadline_s: Seconds that a file of no size may take.
        options: Its keyword arguments.

    Raises:
        InputError: The function raised it, has a bug, or its child died; or the file changed while it was read.
    """
    most_s = deadline_s + likely_bytes(path) * SECONDS_PER_BYTE
    return _readers().call(_guarded, (function, path, arguments, options), most_s)


def _guarded(function: Callable[..., Any], path: Path, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Make the call, in the child, where the exception still knows its place."""
    with said(), unchanged(path):
        return function(path, *arguments, **options)


@contextmanager
def said() -> Iterator[None]:
    """Make an error that names the place of whatever damage cannot explain: it costs one file, and not the others."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - of any reader, on any file
        raise InputError(f"cannot be read: {bug_place(error)}: {error}", BUG_HINT) from None


@contextmanager
def unchanged(path: Path, since: Stamp | None = None) -> Iterator[None]:
    """Hold that a file is the same at the end of the block as at its start, whoever reads it in between.

    Args:
        path: The file.
        since: Its stamp when it was first looked at, maybe on another machine; by default that of now.

    Raises:
        InputError: It was changed or replaced: what was read may be of two files.
    """
    before = since or stamp_of(path)
    error = None
    try:
        yield
    except InputError as damage:  # which half a file looks like
        error = damage
    if stamp_of(path, like=before) != before:
        raise InputError(CHANGED, CHANGED_HINT) from None
    if error is not None:
        raise error


def stamp_of(path: Path, like: Stamp | None = None) -> Stamp:
    """Return what tells one file from another: its place and times, and its digest where it was just written.

    The number of the device is no part of it: machines that share a file system differ in that.
    """
    try:
        found = path.stat()
        is_fresh = like is not None and like[-1] is not None
        if like is None:
            is_fresh = path.is_file() and time.time() - found.st_mtime < _FRESH_SECONDS
        digest = _digest(path) if is_fresh else None
    except OSError as error:  # who reads it says so
        return (error.errno, None)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, digest)


def _digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
