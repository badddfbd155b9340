"""Synthetic SQLite exports of nsys, in the schema of the real ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple


class Launched(NamedTuple):
    """A kernel of an export: its name, when it ran, and how it was launched."""

    name: str
    start: int
    end: int
    device: int = 0
    stream: int = 7
    grid: tuple[int, int, int] = (8, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    thread: int = 1
    called: int | None = None
    """When the host called; just before the start by default."""
    process: int = 4711


_KERNEL = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
    "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, "
    "shortName INTEGER NOT NULL, mangledName INTEGER, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
    "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, "
    "graphNodeId INTEGER"
)
_RUNTIME = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER"
)
_RANGES = (
    "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, text TEXT, globalTid INTEGER, "
    "endGlobalTid INTEGER, textId INTEGER, domainId INTEGER"
)
_GPUS = "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, clockRate INTEGER, smCount INTEGER"
_COPY = "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL"

Interval = tuple[int, int, int]
"""Device, start and end."""


def write_export(  # noqa: PLR0913 - a table each
    path: Path,
    launches: Iterable[Launched],
    *,
    copies: Sequence[Interval] = (),
    graphs: Sequence[Interval] = (),
    ranges: Sequence[tuple[str, int, int, int, int]] = (),
    gpus: Sequence[str] = ("NVIDIA A100-SXM4-40GB",),
) -> Path:
    """Write an export; a range is text, start, end, thread and type (59: of a thread, 60: of a process)."""
    strings: dict[str, int] = {}
    with closing(sqlite3.connect(path)) as database, database:
        tables = {
            "CUPTI_ACTIVITY_KIND_KERNEL": _KERNEL,
            "CUPTI_ACTIVITY_KIND_RUNTIME": _RUNTIME,
            "NVTX_EVENTS": _RANGES,
            "TARGET_INFO_GPU": _GPUS,
            "CUPTI_ACTIVITY_KIND_MEMCPY": _COPY,
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_COPY}, graphId INTEGER NOT NULL",
            "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
        }
        for name, columns in tables.items():
            database.execute(f"CREATE TABLE {name} ({columns})")
        kernels, calls = [], []
        for number, one in enumerate(launches, 1):
            name = strings.setdefault(one.name, len(strings) + 1)
            pid = one.process << 24
            called = one.start - 1 if one.called is None else one.called
            kernels.append(
                (
                    one.start,
                    one.end,
                    one.device,
                    1,
                    one.stream,
                    number,
                    pid,
                    name,
                    name,
                    None,
                    *one.grid,
                    *one.block,
                    None,
                )
            )
            calls.append((called, called + 1, 0, pid + one.thread, number, 0, 0, None))
        marks = ",".join("?" * 17)
        database.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})", kernels)  # noqa: S608 - ours
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,?,?)", calls)
        for text, start, end, thread, kind in ranges:
            row = (start, end, kind, None, text, (4711 << 24) + thread, None, None, 0)
            database.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,?,?,?,?,?,?,?)", row)
        for table, intervals, rest in (("MEMCPY", copies, ()), ("GRAPH_TRACE", graphs, (1,))):
            rows = [(start, end, device, 7, *rest) for device, start, end in intervals]
            marks = ",".join("?" * (4 + len(rest)))
            database.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES ({marks})", rows)  # noqa: S608 - ours
        database.executemany("INSERT INTO TARGET_INFO_GPU VALUES (0, ?, ?, 0, 0)", enumerate(gpus))
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", ((key, text) for text, key in strings.items()))
    return path
