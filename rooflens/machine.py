"""Cores and memory of this machine, and how our processes use them."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_LEAST_BYTES = 2 << 30
_SHARE = 0.8
_ALLOCATIONS_PER_COLLECTION = 100_000


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def physical_bytes() -> int | None:
    """Return the memory of this machine, or of our container if that is smaller; None if both are unknown."""
    found = [size for file in _CONTROL_GROUPS if (size := _number_in_file(file)) is not None]
    if sys.platform != "win32":
        with suppress(ValueError, OSError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((size for size in found if size > 0), default=None)


def _number_in_file(file: str) -> int | None:
    try:
        return int(Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file, or no limit: `max`
        return None


def limit_memory(sharers: int = 1) -> None:
    """Limit this process's address space, so that it runs out of memory alone, not together with the machine.

    Four fifths of the memory are divided among the sharing processes, but each gets at least 2 GiB if the machine has
    that much. A lower existing limit stays. Windows has no such limit.
    """
    total_bytes = physical_bytes()
    if sys.platform == "win32" or total_bytes is None:
        return
    import resource  # noqa: PLC0415 - POSIX only

    usable_bytes = int(total_bytes * _SHARE)
    most_bytes = min(usable_bytes, max(_LEAST_BYTES, usable_bytes // sharers))
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft > most_bytes:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (most_bytes, hard))


def collect_seldom() -> None:
    """Run the cyclic garbage collector rarely: our records have no cycles, and live either long or briefly.

    By default, every 700 new objects, it takes a tenth of a page's time; at exit, when it would scan all modules again,
    a tenth of a short command's time.
    """
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    atexit.unregister(gc.freeze)  # registered by an earlier call
    atexit.register(gc.freeze)


class _Refusing:
    """An import hook that hides pandas from Python."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse pandas, and leave everything else to the next hook."""
        if name == "pandas":
            message = "pandas is kept out of this process"
            raise ModuleNotFoundError(message, name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Block the import of pandas, which pyarrow does for its first array and which takes 0.2 s.

    pyarrow then takes it as missing, and looks for it again if asked for a data frame after the block. Only for our own
    processes: programs that import rooflens decide for themselves.
    """
    sys.meta_path.insert(0, _Refusing)
    try:
        yield
    finally:
        sys.meta_path.remove(_Refusing)
