"""Limits on the time of NVIDIA's module and on unpacked size, which the environment can override."""

from __future__ import annotations

import math
import os
import re

from rooflens.errors import UsageError
from rooflens.ingest.reports.unpacking import MAX_UNPACKED_BYTES

DEADLINE = "ROOFLENS_DEADLINE_S"
MAX_UNPACKED = "ROOFLENS_MAX_UNPACKED"

_DEADLINE_SECONDS = 120.0
_SIZE_TEXT = re.compile(r"(\d+(?:\.\d*)?(?:e\d{1,2})?)\s*([kmgt]?)(i?b?)", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_MOST_BYTES = 2.0**60


def deadline_s() -> float:
    """Return the seconds that NVIDIA's module may take for a report.

    Raises:
        UsageError: The environment variable is not a time.
    """
    given = os.environ.get(DEADLINE)
    try:
        seconds = float(given) if given else _DEADLINE_SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 1e6:
        raise UsageError(f"{DEADLINE}: `{given}` is not a time", "give seconds, for example 600")
    return seconds


def max_unpacked_bytes() -> int:
    """Return the limit in bytes on a file's unpacked size, and on what comes through a pipe.

    Sizes have a unit: `4GiB`, `500 MB`, `1e9`; a bare K, M or G is a power of 1024, like KiB.

    Raises:
        UsageError: The environment variable is not a size.
    """
    given = os.environ.get(MAX_UNPACKED)
    if not given:
        return MAX_UNPACKED_BYTES
    match = _SIZE_TEXT.fullmatch(given.strip())
    base = 1000 if match and match[3].upper() == "B" else 1024
    size_bytes = float(match[1]) * base ** _POWERS[match[2].upper()] if match else 0.0
    if not 1 <= size_bytes < _MOST_BYTES:
        raise UsageError(f"{MAX_UNPACKED}: `{given}` is not a size", "write it like 4GiB, 500MB or 1000000")
    return int(size_bytes)
