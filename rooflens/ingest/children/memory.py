"""How much memory there is, how much of it one of several children may use, and how often garbage is collected."""

from __future__ import annotations

import atexit
import gc
import os
from contextlib import suppress
from pathlib import Path

MAX_CHILDREN = 8
"""The most children at work at once, unless more are asked for."""

SHARERS = "ROOFLENS_SHARERS"
"""Environment variable: how many processes of rooflens share this machine's memory; set for the children."""

_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_LEAST_BYTES = 2 << 30
_SHARE = 0.8


_ALLOCATIONS_PER_COLLECTION = 100_000


def collect_seldom() -> None:
    """Run the cyclic garbage collector seldom: our records hold no cycles, and either live long or die at once.

    At Python's default, every 700 new objects, it takes a tenth of the time of a page; at the end of the process, where
    it would go over all modules once more, a tenth of that of a short command.
    """
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    atexit.unregister(gc.freeze)  # of an earlier call
    atexit.register(gc.freeze)


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def limit_bytes(sharers: int) -> int | None:
    """Return the most that one of so many children may use; None where the system does not say how much there is.

    Four fifths of the memory is divided among the children that may work at once, but each gets at least 2 GiB where
    the machine has them: a report that needs more than its share is rare, and two at once are rarer.
    """
    total_bytes = physical_bytes()
    if total_bytes is None:
        return None
    usable_bytes = int(total_bytes * _SHARE)
    return min(usable_bytes, max(_LEAST_BYTES, usable_bytes // sharers))


def physical_bytes() -> int | None:
    """Return the memory of this machine, or of the container we run in if that has less; None if neither is known."""
    found = [size for file in _CONTROL_GROUPS if (size := _number(file)) is not None]
    with suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((size for size in found if size > 0), default=None)


def inherited_sharers() -> int:
    """Return how many processes may be at work here: what `SHARERS` says, or the cores we may use if they are more."""
    given = os.environ.get(SHARERS, "")
    return max(int(given) if given.isdecimal() else 1, min(usable_cores(), MAX_CHILDREN))


def _number(file: str) -> int | None:
    try:
        return int(Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file, or no limit: `max`
        return None
