"""Files that can be made again: their folder, and what is kept there, which is checked whenever it is read."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from rooflens.files import replacing


def cache_folder() -> Path:
    """Return the folder of what can be made again: `$XDG_CACHE_HOME/rooflens`, else `~/.cache/rooflens`.

    Raises:
        RuntimeError: Neither the variable nor a home folder is known.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rooflens"


def keep(name: str, data: bytes) -> None:
    """Write data to the cache below the SHA-256 of it; a cache that cannot be written costs time and nothing else."""
    with contextlib.suppress(OSError, RuntimeError), replacing(cache_folder() / name) as partial:
        partial.write_bytes(_digest(data) + b"\n" + data)


def kept(name: str) -> bytes | None:
    """Read data from the cache; None where there is none, or it is damaged."""
    with contextlib.suppress(OSError, RuntimeError):
        digest, _, data = (cache_folder() / name).read_bytes().partition(b"\n")
        if digest == _digest(data):
            return data
    return None


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
