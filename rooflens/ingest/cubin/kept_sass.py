"""SASS text in the user's cache: NVIDIA's disassembler takes seconds to give it.

It is kept by the digest of the report and by the installed disassembler, so it is read again for a changed report or
with another version of the module. The text holds the addresses that the code was loaded to, so one report's text is of
no use to another, even of the same program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TypeAlias

import msgspec

from rooflens.cache import keep, kept, trim

Texts: TypeAlias = "dict[int, dict[int, str | None]]"
"""Text by address, by index of the result; None where the disassembler has none."""

MOST_BYTES = 32 << 20
"""How much is kept, enough for some thousand reports; beyond that the oldest are dropped."""

_FOLDER = "sass-1"
_WRITES_BETWEEN_TRIMS = 256
_MODULE = "ncu_report"
_writes = count()


def kept_sass(digest: str, wanted: Mapping[int, Sequence[int]]) -> dict[int, dict[int, str]] | None:
    """Return the text of instructions from the cache; None where any that is wanted is not there.

    Args:
        digest: SHA-256 of the report, in hex.
        wanted: Addresses, by index of the result.

    Returns:
        The text by address, by index of the result, without those for which the disassembler has none.
    """
    name = _name(digest)
    data = kept(name) if name else None
    if data is None:
        return None
    try:
        texts = msgspec.json.decode(data, type=dict[int, dict[int, str | None]])
        return {
            index: {address: text for address in addresses if (text := texts[index][address]) is not None}
            for index, addresses in wanted.items()
        }
    except (msgspec.DecodeError, LookupError):
        return None


def keep_sass(digest: str, wanted: Mapping[int, Sequence[int]], found: Mapping[int, Mapping[int, str]]) -> None:
    """Keep what the disassembler gave for all that was wanted.

    Args:
        digest: SHA-256 of the report, in hex.
        wanted: Addresses, by index of the result.
        found: Text by address, by index of the result.
    """
    name = _name(digest)
    if name is None:
        return
    texts: Texts = {
        index: {address: found.get(index, {}).get(address) for address in addresses}
        for index, addresses in wanted.items()
    }
    keep(name, msgspec.json.encode(texts), private=True)
    if next(_writes) % _WRITES_BETWEEN_TRIMS == 0:
        trim(_FOLDER, MOST_BYTES)


def _name(digest: str) -> str | None:
    """Return the name of a report's text in the cache; None where no disassembler is installed."""
    try:
        spec = find_spec(_MODULE)
        if spec is None or spec.origin is None:
            return None
        module = Path(spec.origin).stat()
    except (ImportError, ValueError, OSError):
        return None
    key = f"{digest} {module.st_size} {module.st_mtime_ns}"
    return f"{_FOLDER}/{hashlib.sha256(key.encode()).hexdigest()}"
