"""What the host of a Nsight Systems export did, and the graphs that it launched and nothing recorded."""

from __future__ import annotations

import re
import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflens.ingest.timelines.budget import KEPT, TimelineBudget
from rooflens.ingest.timelines.export import (
    BUSY,
    GRAPHS,
    KERNELS,
    OS_CALLS,
    PUSH_POP,
    RANGES,
    RUNTIME,
    START_END,
    VALUE,
    bounded,
    columns_of,
    has_rows,
    has_strings,
    opened,
    process_of,
    shared,
    strings_of_ranges,
)
from rooflens.ingest.timelines.spans import opened_at
from rooflens.model.program.timeline import LONG_CALL_NS, NO_CALL, BusyEvent, Call, HostSpan, Opened, waits_for_gpu

if TYPE_CHECKING:
    from rooflens.ingest.timelines.export import Columns

_CORRELATION_BITS = 32

_CALL = "typeof(globalTid) = 'integer' AND typeof(start) = 'integer' AND typeof(end) = 'integer' AND end >= start"


def number_of(process: Any, correlation: Any) -> int:
    """Return the number of a call by its process and correlation ID; `NO_CALL` where the export has none."""
    if type(correlation) is not int or not 0 <= correlation < 1 << _CORRELATION_BITS:
        return NO_CALL
    return process_of(process) << _CORRELATION_BITS | correlation


@dataclass(slots=True)
class ExportedHost:
    """What the threads of an export had open, read from the file when asked for."""

    export: Path
    source: str
    budget: TimelineBudget
    _threads: list[int] = field(default_factory=list)

    def calls(self, numbers: array[int]) -> Iterator[Call]:
        """Yield the calls of some numbers."""
        wanted = array("q", sorted({*numbers} - {NO_CALL}))
        self.budget.take(KEPT, len(wanted))
        starts, ends = (array("q", bytes(8 * len(wanted))) for _ in range(2))
        threads = array("i", [NO_CALL]) * len(wanted)
        known = {thread: at for at, thread in enumerate(self._threads)}
        with opened(self.export, self.source, self.budget) as database:
            columns = columns_of(database, self.source)
            if wanted and {"globalTid", "correlationId", "start", "end"} <= columns.get(RUNTIME, set()):
                rows = database.execute(f"SELECT globalTid, correlationId, start, end FROM {RUNTIME} WHERE {_CALL}")  # noqa: S608 - our constants
                for thread, correlation, start, end in rows:
                    number = number_of(thread, correlation)
                    place = bisect_left(wanted, number)
                    if number != NO_CALL and place < len(wanted) and wanted[place] == number and threads[place] < 0:
                        threads[place] = known.setdefault(thread, len(known))
                        starts[place], ends[place] = start, end
        self._threads = [*known]
        for number in numbers:
            place = bisect_left(wanted, number)
            yield Call(NO_CALL, 0, 0) if number == NO_CALL else Call(threads[place], starts[place], ends[place])

    def opened(self, thread: int, moments: Sequence[int]) -> Iterator[Opened]:
        """Yield what a thread had open at each of some moments, which are in order."""
        with opened(self.export, self.source, self.budget) as database:
            columns = columns_of(database, self.source)
            calls = opened_at(_calls_of(database, columns, self._threads[thread], self.budget), moments)
            ranges = opened_at(_ranges_of(database, columns, self._threads[thread], self.budget), moments)
            for own_calls, own_ranges in zip(calls, ranges, strict=True):
                yield Opened(own_calls, (), own_ranges)


def unseen_graphs(database: sqlite3.Connection, columns: Columns, devices: Iterable[int]) -> Iterator[BusyEvent]:
    """Yield when graphs may have run of which nothing was recorded, on each of some GPUs, in order.

    From the call that launched one until a call that waits for the GPU returns, or until the GPU begins what was
    launched after it.
    """
    if not {"globalTid", "correlationId", "start", "end", "nameId"} <= columns.get(RUNTIME, set()):
        return
    names = _call_names(database, columns)
    graphs = [key for key, name in names.items() if "graphlaunch" in name.lower()]
    tables = [table for table in (KERNELS, *BUSY) if "correlationId" in columns.get(table, set())]
    has_whole = GRAPHS in columns and GRAPHS not in tables and has_rows(database, GRAPHS)
    if not graphs or has_whole or _has_nodes(database, columns):
        return
    seen = " UNION ALL ".join(f"SELECT correlationId FROM {table} WHERE correlationId IS NOT NULL" for table in tables)  # noqa: S608 - our constants
    not_seen = f"AND correlationId NOT IN ({seen})" if seen else ""
    launched = database.execute(
        f"SELECT start, end FROM {RUNTIME} WHERE {_CALL} AND nameId IN ({_marks(graphs)}) {not_seen} ORDER BY start",  # noqa: S608 - our constants
        graphs,
    ).fetchall()
    if not launched:
        return
    waiting = [key for key, name in names.items() if "synchronize" in name.lower()]
    waits = database.execute(
        f"SELECT start, end FROM {RUNTIME} WHERE {_CALL} AND nameId IN ({_marks(waiting)}) ORDER BY start",  # noqa: S608 - our constants
        waiting,
    ).fetchall()
    works: list[tuple[int, int]] = []
    for table in tables:
        works += database.execute(
            f"SELECT {RUNTIME}.start, {table}.start FROM {table} JOIN {RUNTIME} USING (correlationId) "  # noqa: S608 - our constants
            f"WHERE typeof({RUNTIME}.start) = 'integer' AND typeof({table}.start) = 'integer'"
        ).fetchall()
    works.sort()
    for start, end in launched:
        ends = []
        if (place := bisect_left(waits, (start, 0))) < len(waits):
            ends.append(waits[place][1])
        if (place := bisect_right(works, (start, 1 << 62))) < len(works):
            ends.append(works[place][1])
        until = max(end, min(ends, default=end))
        yield from (BusyEvent(start, until - start, device, kind="unknown") for device in devices)


def _has_nodes(database: sqlite3.Connection, columns: Columns) -> bool:
    """Return whether kernels of graphs were recorded one by one."""
    if "graphNodeId" not in columns.get(KERNELS, set()):
        return False
    query = f"SELECT 1 FROM {KERNELS} WHERE graphNodeId IS NOT NULL AND graphNodeId <> 0 LIMIT 1"  # noqa: S608 - our constants
    return database.execute(query).fetchone() is not None


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))


_VERSION_SUFFIX = re.compile(r"_v\d+$")
"""How nsys ends the names of CUDA's calls: `cudaMemcpy_v3020`."""

_MOST_NAMES = 4096
"""Calls of CUDA and of the system that have different names."""


def _call_names(database: sqlite3.Connection, columns: Columns, table: str = RUNTIME) -> dict[int, str]:
    if "nameId" not in columns.get(table, set()) or not has_strings(columns):
        return {}
    rows = database.execute(
        f"SELECT id, {VALUE} FROM StringIds WHERE id IN (SELECT DISTINCT nameId FROM {table}) LIMIT {_MOST_NAMES}"  # noqa: S608 - our constants
    )
    return {key: _VERSION_SUFFIX.sub("", text) for key, text in rows if type(key) is int and text}


def _calls_of(
    database: sqlite3.Connection, columns: Columns, thread: int, budget: TimelineBudget
) -> Iterator[HostSpan]:
    """Yield the calls of a thread that wait for the GPU or take long, in order."""
    found = []
    for table in (RUNTIME, OS_CALLS):
        if not {"globalTid", "start", "end", "nameId"} <= columns.get(table, set()):
            continue
        names = {key: bounded(name, budget) for key, name in _call_names(database, columns, table).items()}
        waiting = [key for key, name in names.items() if waits_for_gpu(name)][:_MOST_WAITING]
        rows = database.execute(
            f"SELECT start, end, nameId FROM {table} WHERE {_CALL} AND globalTid = ? "  # noqa: S608 - our constants
            f"AND (end - start >= {LONG_CALL_NS} OR nameId IN ({_marks(waiting)})) ORDER BY start",
            (thread, *waiting),
        )
        found.append(_spans(rows, names))
    yield from merge(*found, key=_start)


_MOST_WAITING = 512


def _ranges_of(
    database: sqlite3.Connection, columns: Columns, thread: int, budget: TimelineBudget
) -> Iterator[HostSpan]:
    """Yield the NVTX ranges of a thread, and those of its process, in order."""
    known = columns.get(RANGES, set())
    if not {"start", "end", "eventType", "globalTid"} <= known:
        return
    strings = strings_of_ranges(database, columns, budget)
    text = "text" if "text" in known else "NULL"
    text_id = "textId" if "textId" in known else "NULL"
    rows = database.execute(
        f"SELECT start, end, globalTid, eventType, {text}, {text_id} FROM {RANGES} "  # noqa: S608 - our constants
        f"WHERE {_CALL} AND eventType IN ({', '.join(map(str, (*PUSH_POP, *START_END)))}) ORDER BY start"
    )
    process = process_of(thread)
    texts: dict[str, str] = {}
    for start, end, own, kind, said, key in rows:
        if own == thread if kind in PUSH_POP else process_of(own) == process:
            name = shared(said, texts, budget) if type(said) is str and said else strings.get(key)
            if name:
                yield HostSpan(name, start, end)


def _spans(rows: Iterable[tuple[int, int, Any]], names: Mapping[int, str]) -> Iterator[HostSpan]:
    for start, end, key in rows:
        if type(key) is int and key in names:
            yield HostSpan(names[key], start, end)


def _start(span: HostSpan) -> int:
    return span.start_ns
