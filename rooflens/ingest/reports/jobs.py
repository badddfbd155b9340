"""The files to be read, and what may befall each while it is read: it changes, or its reader meets a bug."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from rooflens.errors import InputError
from rooflens.ingest.reports.report import Report
from rooflens.model.failed import BUG_HINT, MEMORY_HINT, bug_place

CHANGED = "it changed while it was read"
CHANGED_HINT = "read it again when the program that writes it is done"
MEMORY = "reading it needs more memory than there is"
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


@contextmanager
def said() -> Iterator[None]:
    """Turn running out of memory, and an unexpected exception, into an error of the one file that is being read."""
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(MEMORY, MEMORY_HINT) from None
    except Exception as error:  # noqa: BLE001 - of any reader, on any file
        raise InputError(f"cannot be read: {bug_place(error)}: {error}", BUG_HINT) from None


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Check that a file is the same at the end of the block as at its start.

    Raises:
        InputError: It was changed or replaced, so that what was read may mix two files.
    """
    before = stamp_of(path)
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
    """Return what tells one file from another: inode, size and times, and its digest if it was just written."""
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
