"""Time a program's kernels without ncu: Nsight Systems (`nsys`) traces it, and its SQLite export is read here."""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError, ProgramError
from rooflens.ingest.ncu.unprofiled import run_program
from rooflens.model.keys import short_name
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Unprofiled
from rooflens.processes import find_program, query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rooflens.ingest.ncu.log import Progress

_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
"""Graphs that were traced as one: nothing in the export shows what ran in them."""
_COPIES = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_GAPS_KEPT = 20
_INSTALL_PATTERNS = ("usr/local/cuda/bin/nsys", "usr/local/cuda-*/bin/nsys", "opt/nvidia/nsight-systems/*/bin/nsys")

Interval = tuple[int, int]
Launched = tuple[str, tuple[int, int, int], tuple[int, int, int]]
"""Name, grid and block."""


@dataclass(frozen=True, slots=True)
class _Busy:
    """An interval in nanoseconds in which a GPU worked, and what it ran; None for copies and whole graphs."""

    start: int
    end: int
    launched: Launched | None = None


def find_nsys(root: Path = Path("/")) -> str | None:
    """Return the path of nsys, from PATH or the usual places; None where there is none."""
    return find_program("nsys", {"PATH": os.environ.get("PATH", "")}, _INSTALL_PATTERNS, root)


_GRAPHS_BY_NODE = "--cuda-graph-trace=node"
"""Without it newer drivers trace each graph as one, without its kernels; nsys has the option since 2021.4."""


def trace_argv(nsys: str, program: Sequence[str], export: Path, *, by_node: bool = True) -> tuple[str, ...]:
    """Write the command line that traces a program's CUDA work into an SQLite file.

    Args:
        nsys: The program to run.
        program: What is traced.
        export: The file; its name ends in `.sqlite`.
        by_node: Trace the kernels of graphs one by one, which older versions do anyway, and have no option for.
    """
    return (
        nsys,
        "profile",
        *("--trace=cuda", "--sample=none", "--cpuctxsw=none", "--stats=false"),
        *((_GRAPHS_BY_NODE,) if by_node else ()),
        *("--export=sqlite", "--force-overwrite=true", "-o", str(export.with_suffix(""))),
        *program,
    )


def _has_graph_option(nsys: str) -> bool:
    """Return whether nsys names the option in its help; without an answer it is taken to be a current one."""
    answer = query((nsys, "profile", "--help"))
    return answer is None or _GRAPHS_BY_NODE.partition("=")[0] in answer


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
            argv = trace_argv(nsys, program, export, by_node=_has_graph_option(nsys))
            run_program(argv, timeout_s, on_progress, "tracing")
        except (ProgramError, EnvironmentMissingError):
            return None
        return read_export(export)


def read_export(export: Path) -> Unprofiled | None:
    """Measure the busy time and count the launches in an SQLite export of nsys; None where it shows no kernels.

    Each GPU counts from its first to its last kernel: before and after there is no gap. A graph that was
    traced as one counts as busy from end to end, and then launches are not counted.
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
    kernels = _kernels(database) if _KERNELS in tables else {}
    graphs = _unnamed(database, _GRAPHS) if _GRAPHS in tables else {}
    copies = [_unnamed(database, table) for table in _COPIES if table in tables]
    by_device = {
        device: _cut(
            [*kernels.get(device, ()), *graphs.get(device, ())],
            [busy for part in copies for busy in part.get(device, ())],
        )
        for device in sorted({*kernels, *graphs})
    }
    if not by_device:
        return None
    gaps = [gap for spans in by_device.values() for gap in _gaps(spans)]
    return Unprofiled(
        wall_ns=sum(max(busy.end for busy in spans) - spans[0].start for spans in by_device.values()),
        kernel_ns=sum(union_ns((busy.start, busy.end) for busy in spans) for spans in by_device.values()),
        launches=None if graphs else sum(len(launches) for launches in kernels.values()),
        source="nsys",
        launch_counts=_launch_counts([busy for launches in kernels.values() for busy in launches], gaps),
        gaps_after=_gaps_after(gaps),
    )


def _kernels(database: sqlite3.Connection) -> dict[int, list[_Busy]]:
    rows = database.execute(
        "SELECT deviceId, start, end, s.value, gridX, gridY, gridZ, blockX, blockY, blockZ "  # noqa: S608 - our constant
        f"FROM {_KERNELS} JOIN StringIds AS s ON s.id = demangledName"
    )
    names: dict[str, str] = {}
    found = defaultdict(list)
    for device, start, end, name, *shape in rows:
        short = names.setdefault(name, short_name(name))
        found[device].append(_Busy(start, end, (short, (shape[0], shape[1], shape[2]), (shape[3], shape[4], shape[5]))))
    return dict(found)


def _unnamed(database: sqlite3.Connection, table: str) -> dict[int, list[_Busy]]:
    """Read the intervals of copies or whole graphs; those without times are left out."""
    found = defaultdict(list)
    for device, start, end in database.execute(f"SELECT deviceId, start, end FROM {table}"):  # noqa: S608 - our constant
        if 0 <= start < end:
            found[device].append(_Busy(start, end))
    return found


def _cut(work: Sequence[_Busy], copies: Iterable[_Busy]) -> list[_Busy]:
    """Sort the work of one GPU, with the copies between its first and its last kernel."""
    first, last = min(busy.start for busy in work), max(busy.end for busy in work)
    within = (
        _Busy(max(copy.start, first), min(copy.end, last)) for copy in copies if copy.end > first and copy.start < last
    )
    return sorted([*work, *within], key=lambda busy: (busy.start, busy.end))


def _gaps(spans: Sequence[_Busy]) -> Iterator[tuple[_Busy, _Busy]]:
    """Yield what ran last before each gap of one GPU, and what ran first after it."""
    last = spans[0]
    for busy in spans[1:]:
        if busy.start > last.end:
            yield last, busy
        if busy.end >= last.end:
            last = busy


def _launch_counts(launches: Sequence[_Busy], gaps: Iterable[tuple[_Busy, _Busy]]) -> tuple[LaunchCount, ...]:
    beside_ns: defaultdict[int, float] = defaultdict(float)
    for before, after in gaps:
        for side in (before, after):
            beside_ns[id(side)] += (after.start - before.end) / 2
    by_launched: defaultdict[Launched, list[_Busy]] = defaultdict(list)
    for launch in launches:
        if launch.launched is not None:
            by_launched[launch.launched].append(launch)
    counts = (
        LaunchCount(
            *launched,
            count=len(alike),
            time_ns=round(median(launch.end - launch.start for launch in alike)),
            gap_ns=round(median(beside_ns[id(launch)] for launch in alike)),
        )
        for launched, alike in by_launched.items()
    )
    return tuple(sorted(counts, key=lambda entry: (-entry.count, entry.name, entry.grid, entry.block)))


def _gaps_after(gaps: Iterable[tuple[_Busy, _Busy]]) -> tuple[GapsAfter, ...]:
    count: Counter[str | None] = Counter()
    sums_ns: Counter[str | None] = Counter()
    for before, after in gaps:
        name = before.launched[0] if before.launched else None
        count[name] += 1
        sums_ns[name] += after.start - before.end
    return tuple(GapsAfter(name, count[name], gap_ns) for name, gap_ns in sums_ns.most_common(_GAPS_KEPT))


def union_ns(intervals: Iterable[Interval]) -> int:
    """Measure the time that at least one interval covers."""
    total, reached = 0, -math.inf
    for start, end in sorted(intervals):
        total += int(max(0, end - max(reached, start)))
        reached = max(reached, end)
    return total
