"""The files to read, local or at addresses such as `s3://bucket/folder`, and what may go wrong with each.

A file at an address is downloaded first, through pyarrow as for stores (`rooflens.addresses`). Any file may change
while it is read, and its reader may hit a bug.
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
    from rooflens.ingest.reports.report import ReadReport

CHANGED = "it changed while it was read"
CHANGED_HINT = "read it again when the program that writes it is done"
MEMORY = "reading it needs more memory than there is"
_CHUNK_BYTES = 1 << 20
_FRESH_SECONDS = 2.0
"""Granularity of a file system's clock: a file written more recently may change and keep its time stamp."""

Stamp: TypeAlias = tuple[object, ...]


class Job(Struct, frozen=True):
    """One file to read.

    Attributes:
        path: Where the file is; at an address, the address as shown to users, which ends in the file's name.
        source: The path as the user gave it.
        address: Address to download from; empty for a local file.
        byte_count: Size at the address; 0 for a local file.
    """

    path: Path
    source: str
    address: str = ""
    byte_count: int = 0


class JobOutcome(Struct, frozen=True):
    """The outcome of one job: a report, or the reason there is none."""

    job: Job
    result: ReadReport | InputError


def jobs_at(address: str) -> Iterator[Job]:
    """Find the file at an address, or the files below it at any depth, sorted.

    Raises:
        InputError: The address cannot be opened, or nothing is there.
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
    """Yield path and size of each file below an address, sorted; the path is empty if the address is a file."""
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
    """Estimate a report's unpacked size; at an address, return its stored size."""
    return job.byte_count if job.address else likely_bytes(job.path)


@contextmanager
def fetched(job: Job) -> Iterator[Path]:
    """Give the local file of a job; a download is a temporary file, removed when the block ends.

    Raises:
        InputError: The download failed.
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
        if job.byte_count not in {0, got := path.stat().st_size}:  # Arrow may accept a response that breaks off
            raise InputError(f"cannot be fetched: {got} of its {job.byte_count} bytes came", "read it again")
        yield path


@contextmanager
def said() -> Iterator[None]:
    """Turn exhausted memory or an unexpected exception into an error about the file being read.

    Raises:
        EnvironmentMissingError: A package needed for reading is not installed.
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
    """Check that a file does not change within the block.

    Raises:
        InputError: The file was changed or replaced, so the data read may mix two files.
    """
    before = stamp_of(path)
    error = None
    try:
        yield
    except InputError as damage:  # a half-written file looks damaged
        error = damage
    if stamp_of(path, like=before) != before:
        raise InputError(CHANGED, CHANGED_HINT) from None
    if error is not None:
        raise error


def stamp_of(path: Path, like: Stamp | None = None) -> Stamp:
    """Return what identifies a file's state: inode, size and times, plus its digest if it was just written."""
    try:
        found = path.stat()
        is_fresh = like is not None and like[-1] is not None
        if like is None:
            is_fresh = path.is_file() and time.time() - found.st_mtime < _FRESH_SECONDS
        digest = _digest(path) if is_fresh else None
    except OSError as error:  # opening it will report the error
        return (error.errno, None)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, digest)


def _digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
