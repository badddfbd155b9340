"""Look at a program's kernels without ncu: Nsight Systems (`nsys`) traces it, and its SQLite export is read here."""

from __future__ import annotations

import math
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError, ProgramError
from rooflens.ingest.ncu.unprofiled import LaunchCount, Unprofiled, run_program
from rooflens.ingest.reports.results import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rooflens.ingest.ncu.log import Progress

_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_BUSY_TABLES = (_KERNELS, "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_INSTALL_PATTERNS = ("usr/local/cuda/bin/nsys", "usr/local/cuda-*/bin/nsys", "opt/nvidia/nsight-systems/*/bin/nsys")

Interval = tuple[int, int]


def find_nsys(root: Path = Path("/")) -> str | None:
    """Return the path of nsys, from PATH or where it is usually installed; None where there is none."""
    installed = (str(path) for pattern in _INSTALL_PATTERNS for path in sorted(root.glob(pattern), reverse=True))
    return shutil.which("nsys") or next(installed, None)


def trace_argv(nsys: str, program: Sequence[str], export: Path) -> tuple[str, ...]:
    """Write the command line that traces a program's CUDA work into an SQLite file."""
    report = export.with_suffix("")
    options = ("--trace", "cuda", "--sample", "none", "--cpuctxsw", "none", "--stats", "false")
    return (nsys, "profile", *options, "--export", "sqlite", "--force-overwrite", "true", "-o", str(report), *program)


def trace(
    nsys: str,
    program: Sequence[str],
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Unprofiled | None:
    """Trace a program that is known to work; None where nsys shows no kernels.

    Raises:
        StoppedError: Ctrl-C or a like signal.
    """
    with TemporaryDirectory(prefix="rooflens-") as folder:
        export = Path(folder, "trace.sqlite")
        try:
            run_program(trace_argv(nsys, program, export), timeout_s, on_progress, "tracing")
        except (ProgramError, EnvironmentMissingError):
            return None
        return read_export(export)


def read_export(export: Path) -> Unprofiled | None:
    """Measure the busy time and count the launches in an SQLite export of nsys; None where it shows no kernels.

    Each GPU counts from its first to its last kernel: what a program does before and after is no gap.
    """
    if not export.exists():
        return None
    try:
        with closing(sqlite3.connect(f"file:{export}?mode=ro", uri=True)) as database:
            return _measure(database)
    except sqlite3.DatabaseError:
        return None


def _measure(database: sqlite3.Connection) -> Unprofiled | None:
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if _KERNELS not in tables:
        return None
    by_device = _intervals(database, [table for table in _BUSY_TABLES if table in tables])
    if not by_device:
        return None
    counts = _launch_counts(database)
    return Unprofiled(
        wall_ns=sum(max(end for _, end in spans) - min(start for start, _ in spans) for spans in by_device.values()),
        kernel_ns=sum(union_ns(spans) for spans in by_device.values()),
        launches=sum(entry.count for entry in counts),
        source="nsys",
        launch_counts=counts,
    )


def _intervals(database: sqlite3.Connection, tables: Iterable[str]) -> dict[int, list[Interval]]:
    """Return the busy intervals of each GPU, cut to the span of its kernels."""
    spans = {
        device: (start, end)
        for device, start, end in database.execute(
            f"SELECT deviceId, min(start), max(end) FROM {_KERNELS} GROUP BY deviceId"  # noqa: S608 - our constant
        )
    }
    found: dict[int, list[Interval]] = {device: [] for device in spans}
    for table in tables:
        for device, start, end in database.execute(f"SELECT deviceId, start, end FROM {table}"):  # noqa: S608 - ours
            first, last = spans.get(device, (math.inf, -math.inf))
            if end > first and start < last:
                found[device].append((max(start, int(first)), min(end, int(last))))
    return {device: intervals for device, intervals in found.items() if intervals}


def _launch_counts(database: sqlite3.Connection) -> tuple[LaunchCount, ...]:
    rows = database.execute(
        "SELECT s.value, gridX, gridY, gridZ, blockX, blockY, blockZ, count(*) "  # noqa: S608 - our constant
        f"FROM {_KERNELS} JOIN StringIds AS s ON s.id = demangledName GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 8 DESC, 1"
    )
    return tuple(LaunchCount(short_name(name), tuple(shape[:3]), tuple(shape[3:6]), shape[6]) for name, *shape in rows)


def union_ns(intervals: Iterable[Interval]) -> int:
    """Measure the time that at least one interval covers."""
    total, reached = 0, -math.inf
    for start, end in sorted(intervals):
        total += int(max(0, end - max(reached, start)))
        reached = max(reached, end)
    return total
