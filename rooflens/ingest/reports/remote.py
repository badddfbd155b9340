"""Reports at addresses, such as `s3://bucket/folder`: listed, and fetched to be read.

The file systems are those of stores (`rooflens.model.store.place`).
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.reports.unpacking import likely_bytes
from rooflens.model.store.address import is_remote, joined, shown, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK_BYTES = 1 << 20


def jobs_at(address: str) -> Iterator[Job]:
    """Find the files at an address: the one that it names, or those below it, at any depth, sorted.

    Raises:
        InputError: It cannot be opened, or nothing is there.
    """
    from rooflens.model.store.place import Place  # noqa: PLC0415 - pyarrow: only where there is an address

    try:
        found = list(Place(address).files())
    except OSError as error:
        message = f"`{shown(address)}` cannot be listed: {without_secrets(error, address)}"
        raise InputError(message, "check the address") from error
    if not found:
        raise InputError(f"`{shown(address)}` does not exist", "give the address of a report, or of a folder of them")
    for name, byte_count in found:
        whole = joined(address, name) if name else address
        yield Job(Path(shown(whole)), shown(whole), whole, byte_count)


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

    from rooflens.model.store.place import Place  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory(prefix="rooflens-") as folder:
        path = Path(folder) / job.path.name
        try:
            with Place(job.address).stream() as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK_BYTES)
        except OSError as error:
            why = without_secrets(error, job.address)
            raise InputError(f"cannot be fetched: {why}", "check the address, and that TMPDIR has room") from error
        yield path
