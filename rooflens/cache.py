"""The cache: a folder of reproducible files, checked by their SHA-256 at every read."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from rooflens.files import replacing

_PRIVATE = 0o700


def cache_folder() -> Path:
    """Return the cache's folder: `$XDG_CACHE_HOME/rooflens`, else `~/.cache/rooflens`.

    Raises:
        RuntimeError: Neither the variable nor a home folder is known.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rooflens"


def keep(name: str, data: bytes, *, private: bool = False) -> None:
    """Write data to the cache, with its SHA-256; failing to write it costs time and nothing else.

    Args:
        name: Path of the file below the cache's folder.
        data: Its content.
        private: Make its folder readable for this user only.
    """
    with contextlib.suppress(OSError, RuntimeError):
        file = cache_folder() / name
        if private:
            file.parent.parent.mkdir(parents=True, exist_ok=True)
            file.parent.mkdir(mode=_PRIVATE, exist_ok=True)
        with replacing(file) as partial:
            partial.write_bytes(_digest(data) + b"\n" + data)


def kept(name: str) -> bytes | None:
    """Read data from the cache; None if it is missing or damaged."""
    with contextlib.suppress(OSError, RuntimeError):
        digest, _, data = (cache_folder() / name).read_bytes().partition(b"\n")
        if digest == _digest(data):
            return data
    return None


def trim(folder: str, most_bytes: int) -> None:
    """Remove the oldest files of a cache folder until the rest have at most `most_bytes` bytes."""
    with contextlib.suppress(OSError, RuntimeError):
        files = sorted(((file.stat(), file.path) for file in os.scandir(cache_folder() / folder)), key=_age)
        left_bytes = sum(found.st_size for found, _ in files)
        for found, path in files:
            if left_bytes <= most_bytes:
                break
            Path(path).unlink(missing_ok=True)
            left_bytes -= found.st_size


def _age(file: tuple[os.stat_result, str]) -> int:
    return file[0].st_mtime_ns


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
