"""How much memory there is, how much of it one of several children may take, and how often cycles are looked for."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

MAX_CHILDREN = 8
"""Children that work side by side unless more are asked for."""

SHARERS = "ROOFLENS_SHARERS"
"""Environment variable: how many processes share this machine's memory with us, where somebody started several."""

_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_LEAST_BYTES = 2 << 30
_SHARE = 0.8


_ALLOCATIONS_PER_COLLECTION = 100_000


def collect_seldom() -> None:
    """Look for cycles seldom: most of what we make lives long, or goes at once, in records without cycles.

    At each 700 new objects, as Python does by default, that takes a tenth of a page's time.
    """
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def limit_bytes(sharers: int) -> int | None:
    """Return the most that one of so many children may take; None where the system does not say how much there is.

    The memory is shared out among as many children as may work at once, but 2 GiB are given where they are there: a
    report that needs more than its share is rare, and two of them at once are rarer.
    """
    total_bytes = physical_bytes()
    if total_bytes is None:
        return None
    usable_bytes = int(total_bytes * _SHARE)
    return min(usable_bytes, max(_LEAST_BYTES, usable_bytes // sharers))


def physical_bytes() -> int | None:
    """Return the memory of this machine, or of the container that we run in."""
    found = [size for file in _CONTROL_GROUPS if (size := _number(file)) is not None]
    with suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((size for size in found if size > 0), default=None)


def inherited_sharers() -> int:
    """Return how many processes may be at work on this machine: as many as it was said, or as cores are used."""
    given = os.environ.get(SHARERS, "")
    return max(int(given) if given.isdecimal() else 1, min(usable_cores(), MAX_CHILDREN))


def _number(file: str) -> int | None:
    try:
        return int(Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):  # there is none, or no limit: `max`
        return None
