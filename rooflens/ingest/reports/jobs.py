"""The files to be read, here or at addresses such as `s3://bucket/folder`, and what may befall each meanwhile.

One at an address is fetched to be read; pyarrow opens it, as it opens stores (`rooflens.addresses`). Any may change
while it is read, or its reader meets a bug.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from rooflens.addresses import is_remote, joined, opened, shown, without_secrets
from rooflens.errors import EnvironmentMissingError, InputError, lacking_package
from rooflens.ingest.reports.unpacking import likely_bytes
from rooflens.model.failed import BUG_HINT, MEMORY_HINT, bug_place

if TYPE_CHECKING:
    from rooflens.ingest.reports.report import Report

CHANGED = "it changed while it was read"
CHANGED_HINT = "read it again when the program that writes it is done"
MEMORY = "reading it needs more memory than there is"
_CHUNK_BYTES = 1 << 20
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
    """The outcome of one job: a report, or the reason there is none."""

    job: Job
    result: Report | InputError


def jobs_at(address: str) -> Iterator[Job]:
    """Find the files at an address: the one that it names, or those below it, at any depth, sorted.

    Raises:
        InputError: It cannot be opened, or nothing is there.
    """
    try:
        found = list(_files_at(address))
    except OSError as error:
        message = f"`{shown(address)}` cannot be listed: {without_secrets(error, address)}"
        raise InputError(message, "check the address") from error
    if not found:
        raise InputError(f"`{shown(address)}` does not exist", "give the address of a report, or of a folder of them")
    for name, byte_count in found:
        whole = joined(address, name) if name else address
        yield Job(Path(shown(whole)), shown(whole), whole, byte_count)


def _files_at(address: str) -> Iterator[tuple[str, int]]:
    """Yield path and size of each file below an address, sorted; an empty path if the address is a file."""
    from pyarrow.fs import FileSelector  # noqa: PLC0415 - only where there is an address

    files, root = opened(address)
    info = files.get_file_info(root)
    if info.is_file:
        yield "", info.size or 0
        return
    below = files.get_file_info(FileSelector(root, allow_not_found=True, recursive=True))
    for entry in sorted(below, key=attrgetter("path")):
        if entry.is_file:
            yield entry.path[len(root) :].lstrip("/"), entry.size or 0


def bytes_of(job: Job) -> int:
    """Return about how large a report is unpacked; at an address, its size as stored there."""
    return job.byte_count if job.address else likely_bytes(job.path)


@contextmanager
def fetched(job: Job) -> Iterator[Path]:
    """Give the file of a job; from an address it is copied to a temporary file, removed when the block ends.

    Raises:
        InputError: It cannot be fetched.
    """
    if not is_remote(job.address):
        yield job.path
        return
    import shutil  # noqa: PLC0415 - as below
    import tempfile  # noqa: PLC0415 - as below

    with tempfile.TemporaryDirectory(prefix="rooflens-") as folder:
        path = Path(folder) / job.path.name
        try:
            files, place = opened(job.address)
            with files.open_input_stream(place, compression=None) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK_BYTES)
        except OSError as error:
            why = without_secrets(error, job.address)
            raise InputError(f"cannot be fetched: {why}", "check the address, and that TMPDIR has room") from error
        if job.byte_count not in {0, got := path.stat().st_size}:  # Arrow may take an answer that breaks off for whole
            raise InputError(f"cannot be fetched: {got} of its {job.byte_count} bytes came", "read it again")
        yield path


@contextmanager
def said() -> Iterator[None]:
    """Turn running out of memory, and an unexpected exception, into an error of the one file that is being read.

    Raises:
        EnvironmentMissingError: A package that reads is not installed.
    """
    try:
        yield
    except (InputError, EnvironmentMissingError):
        raise
    except MemoryError:
        raise InputError(MEMORY, MEMORY_HINT) from None
    except Exception as error:  # noqa: BLE001 - of any reader, on any file
        lacking = lacking_package(error) if isinstance(error, ImportError) else None
        if lacking is not None:
            raise lacking from None
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
