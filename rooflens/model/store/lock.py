"""One writer at a time: a lock that ends with its process, and says who holds it."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflens.model.store.place import Place

try:
    import fcntl
except ImportError:  # POSIX only
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(place: Place, *, wait: bool, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the exclusive lock of a store; on object storage there is none, and nothing is held.

    Args:
        place: The store.
        wait: Wait for another writer to finish.
        on_wait: Called with who holds it, before the waiting begins.

    Raises:
        BlockingIOError: Another process holds it, and `wait` is False.
        OSError: The place cannot be written to.
    """
    file = place.lock_file()
    if file is None or fcntl is None:
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            on_wait(_holder(file))
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        file.flush()
        yield


def writer_of_store(place: Place) -> str | None:
    """Say which process is writing a store; None where none is, or where that cannot be told."""
    with contextlib.suppress(OSError):
        file = place.lock_file()
        if file is not None and fcntl is not None:
            with file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return _holder(file)
    return None


def _holder(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(200).decode("utf-8", "replace").strip() or "another process"
