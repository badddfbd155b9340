"""Reports at addresses, such as `s3://bucket/folder`: listed, and fetched to be read.

pyarrow opens them, as it opens stores (`rooflens.addresses`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path

from rooflens.addresses import is_remote, joined, opened, shown, without_secrets
from rooflens.errors import InputError
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.reports.unpacking import likely_bytes

_CHUNK_BYTES = 1 << 20


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
    """Yield path and bytes of each file below an address, sorted; of one that is a file, an empty path."""
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
        yield path
