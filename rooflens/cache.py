"""Files that can be made again: their folder, and texts in it that are checked whenever they are read."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.files import replacing

if TYPE_CHECKING:
    from collections.abc import Callable


def cache_folder() -> Path:
    """Return the folder of what can be made again: `$XDG_CACHE_HOME/rooflens`, else `~/.cache/rooflens`.

    Raises:
        RuntimeError: Neither the variable nor a home folder is known.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rooflens"


def cached_text(name: str, make: Callable[[], str]) -> str:
    """Read a text from the cache, or make and keep it.

    The file begins with the SHA-256 of the rest: one that is damaged is made again. A cache that cannot be read or
    written costs time and nothing else.
    """
    with contextlib.suppress(OSError, RuntimeError):
        digest, _, kept = (cache_folder() / name).read_bytes().partition(b"\n")
        if digest == _digest(kept):
            return kept.decode()
    made = make()
    with contextlib.suppress(OSError, RuntimeError), replacing(cache_folder() / name) as partial:
        partial.write_bytes(_digest(made.encode()) + b"\n" + made.encode())
    return made


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()
