"""Read the SQLite exports of Nsight Systems: kernels, copies, whole graphs, and the NVTX ranges of their launches.

The schema grew from 2020 to 2025: a table or column that an export lacks reads as nothing. Rows are read one by one,
each time the timeline is gone through, so that millions of kernels take little memory.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections import defaultdict
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.model.timeline import NSYS, BusyEvent, KernelEvent, Timeline
from rooflens.processes import capture, find_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflens.model.unprofiled import Shape

MAGIC = b"SQLite format 3\0"

_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES = "NVTX_EVENTS"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
"""Graphs that were traced as one: nothing in the export shows what ran in them."""

_BUSY = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", _GRAPHS)
_NAMES = ("demangledName", "mangledName", "shortName")
"""Columns of a kernel's name, the best first."""

_PUSH_POP, _START_END = (59, 70), (60, 71)
"""Types of NVTX events: ranges of one thread, and ranges of a whole process."""

_PROCESS_SHIFT, _PROCESS_MASK = 24, 0xFFFFFF
"""Where the number of a process is in the global number of a thread, whose lowest bits are the thread's own."""

_HEADER_BYTES = 100
_AGAIN = "export it again: `nsys export --type sqlite REPORT.nsys-rep`"
_RECORD_HINT = "trace CUDA: `nsys profile --trace=cuda,nvtx --export=sqlite PROGRAM`"
_INSTALL_PATTERNS = ("usr/local/cuda/bin/nsys", "usr/local/cuda-*/bin/nsys", "opt/nvidia/nsight-systems/*/bin/nsys")


def find_nsys(root: Path = Path("/")) -> str | None:
    """Return the path of nsys, from PATH or the usual places; None where there is none."""
    return find_program("nsys", {"PATH": os.environ.get("PATH", "")}, _INSTALL_PATTERNS, root)


@contextmanager
def exported(report: Path) -> Iterator[Path]:
    """Export a report of Nsight Systems to SQLite, for as long as it is read.

    Raises:
        EnvironmentMissingError: nsys is not on this machine.
        InputError: nsys cannot export it.
    """
    nsys = find_nsys()
    if nsys is None:
        command = shlex.join(("nsys", "export", "--type", "sqlite", "-o", f"{report.stem}.sqlite", str(report)))
        raise EnvironmentMissingError(
            f"`{report}` can only be read by Nsight Systems, which is not installed here",
            f"where it was recorded, run `{command}`, and give the `.sqlite` file",
        )
    with TemporaryDirectory(prefix="rooflens-") as folder:
        export = Path(folder, "trace.sqlite")
        done = capture(
            (nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "-o", str(export), str(report))
        )
        if done.status != 0 or not export.exists():
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise InputError(f"nsys cannot export `{report}`" + (f": {said[-1]}" if said else ""), _RECORD_HINT)
        yield export


def read_export(export: Path, source: str | None = None) -> Timeline:
    """Read an SQLite export; its kernels and copies are read from the file each time they are gone through.

    Args:
        export: The file.
        source: What the timeline is called; the file by default.

    Raises:
        InputError: It is cut or damaged, no export of nsys, or has no kernels.
    """
    source = source or str(export)
    with _opened(export, source) as database:
        _check_whole(export, source)
        columns = _columns_of(database)
        counts = {name: _count(database, name) for name in (_KERNELS, _GRAPHS) if name in columns}
        if not any(counts.values()):
            what = "has no kernels" if "StringIds" in columns else "is a database, but no export of nsys"
            raise InputError(f"the timeline `{source}` {what}", _RECORD_HINT)
        gpus = _Gpus(database, columns)
        used = gpus.used(database, columns)
        names = {gpus.names.get(index) for index in used}
        processes = _processes(database, columns)
        return Timeline(
            source=source,
            kind=NSYS,
            kernels=_Kernels(export, source),
            others=_Others(export, source),
            gpu=names.pop() if len(names) == 1 else None,
            notes=(f"{processes} processes ran kernels; they are taken together",) if processes > 1 else (),
        )


@dataclass(frozen=True, slots=True)
class _Kernels:
    """The kernels of an export, read when they are gone through."""

    export: Path
    source: str

    def __iter__(self) -> Iterator[KernelEvent]:
        with _opened(self.export, self.source) as database:
            columns = _columns_of(database)
            if _KERNELS not in columns:
                return
            gpus, names = _Gpus(database, columns), _names(database, columns[_KERNELS])
            paths = _range_paths(database, columns)
            known = columns[_KERNELS]
            shapes: dict[tuple[Any, ...], tuple[Shape, Shape]] = {}
            indices: dict[tuple[Any, Any], int] = {}
            wanted = ("start", "end", "deviceId", "streamId", "globalPid", "correlationId", *_NAMES, *_SHAPE)
            for row in _rows(database, _KERNELS, known, wanted):
                start, end, device, stream, process, correlation, *rest = row
                label = names.get(rest[0]) or names.get(rest[1]) or names.get(rest[2])
                if label is None:
                    continue
                sizes = tuple(rest[len(_NAMES) :])
                if sizes not in shapes:
                    shapes[sizes] = _shape(sizes[:3]), _shape(sizes[3:])
                if (process, device) not in indices:
                    indices[process, device] = gpus.index(process, device)
                path = paths.get((_process(process), correlation)) if paths else None
                grid, block = shapes[sizes]
                yield KernelEvent(label, grid, block, start, end - start, indices[process, device], stream or 0, path)


@dataclass(frozen=True, slots=True)
class _Others:
    """The copies, memsets and whole graphs of an export, read when they are gone through."""

    export: Path
    source: str

    def __iter__(self) -> Iterator[BusyEvent]:
        from heapq import merge  # noqa: PLC0415 - only here

        with _opened(self.export, self.source) as database:
            columns = _columns_of(database)
            gpus = _Gpus(database, columns)
            tables = [self._of(database, table, columns[table], gpus) for table in _BUSY if table in columns]
            yield from merge(*tables)

    @staticmethod
    def _of(database: sqlite3.Connection, table: str, known: set[str], gpus: _Gpus) -> Iterator[BusyEvent]:
        wanted = ("start", "end", "deviceId", "streamId", "globalPid")
        for start, end, device, stream, process in _rows(database, table, known, wanted):
            if end > start:
                yield BusyEvent(start, end - start, gpus.index(process, device), stream or 0, table == _GRAPHS)


_SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")


class _Gpus:
    """The GPUs of an export: each process numbers those that it sees from 0."""

    def __init__(self, database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> None:
        self.names: dict[int, str] = {}
        self._by_process: dict[tuple[int, int], int] = {}
        if {"id", "name"} <= columns.get("TARGET_INFO_GPU", set()):
            rows = database.execute("SELECT id, name FROM TARGET_INFO_GPU")
            self.names = {index: name for index, name in rows if isinstance(name, str)}
        if {"gpuId", "cudaId", "pid"} <= columns.get("TARGET_INFO_CUDA_DEVICE", set()):
            rows = database.execute("SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE WHERE gpuId IS NOT NULL")
            self._by_process = {(process, device): gpu for process, device, gpu in rows}

    def index(self, process: int | None, device: int | None) -> int:
        """Return the number of a GPU in the machine; where that is unknown, that in the process."""
        return self._by_process.get((_process(process), device or 0), device or 0)

    def used(self, database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> set[int]:
        """Return the GPUs that ran kernels or graphs."""
        found = set()
        for table in (_KERNELS, _GRAPHS):
            if table in columns:
                wanted = _selected(columns[table], ("globalPid", "deviceId"))
                found |= {self.index(*row) for row in database.execute(f"SELECT DISTINCT {wanted} FROM {table}")}  # noqa: S608 - our constants
        return found


def _range_paths(database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> dict[tuple[int, int], str]:
    """Return the NVTX ranges that were open on the host at each launch, by process and correlation id.

    Calls and ranges are gone through together in the order in which they began, thread by thread. Ranges that were
    started and ended by name are of a whole process.
    """
    if not columns.get(_RANGES) or {"globalTid", "correlationId", "start"} - columns.get(_RUNTIME, set()):
        return {}
    by_thread, by_process = _ranges(database, columns)
    if not by_thread and not by_process:
        return {}
    found: dict[tuple[int, int], str] = {}
    texts: dict[tuple[str, ...], str] = {}
    open_on: dict[int, _Open] = {}
    calls = database.execute(
        f"SELECT globalTid, start, correlationId FROM {_RUNTIME} "  # noqa: S608 - our constant
        "WHERE globalTid IS NOT NULL AND correlationId IS NOT NULL AND typeof(start) = 'integer' ORDER BY start"
    )
    for thread, start, correlation in calls:
        process = _process(thread)
        if thread not in open_on:
            ranges = [*by_thread.get(thread, ()), *by_process.get(process, ())]
            open_on[thread] = _Open(sorted(ranges, key=lambda one: (one[0], -one[1])))
        if path := open_on[thread].at(start):
            found[process, correlation] = texts.setdefault(path, "/".join(path))
    return found


class _Open:
    """The ranges of a thread, gone through in the order in which they begin."""

    def __init__(self, ranges: list[tuple[int, int, str]]) -> None:
        self._ranges = ranges
        self._next = 0
        self._open: list[tuple[int, int, str]] = []

    def at(self, time_ns: int) -> tuple[str, ...]:
        """Return the names of the ranges that are open at a time, which is not before the last one asked for."""
        while self._next < len(self._ranges) and self._ranges[self._next][0] <= time_ns:
            self._open.append(self._ranges[self._next])
            self._next += 1
        if any(end < time_ns for _, end, _ in self._open):
            self._open = [one for one in self._open if one[1] >= time_ns]
        return tuple(text for _, _, text in self._open)


_Ranges = dict[int, list[tuple[int, int, str]]]


def _ranges(database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> tuple[_Ranges, _Ranges]:
    """Read the NVTX ranges: start, end and text by thread, and those of a process."""
    known = columns[_RANGES]
    if {"start", "end", "eventType", "globalTid"} - known:
        return {}, {}
    strings = {}
    if "textId" in known and "StringIds" in columns:
        query = f"SELECT id, value FROM StringIds WHERE id IN (SELECT textId FROM {_RANGES})"  # noqa: S608 - our constant
        strings = dict(database.execute(query))
    by_thread, by_process = defaultdict(list), defaultdict(list)
    wanted = _selected(known, ("start", "end", "eventType", "globalTid", "text", "textId"))
    for start, end, kind, thread, text, text_id in database.execute(f"SELECT {wanted} FROM {_RANGES}"):  # noqa: S608 - our constants
        name = text or strings.get(text_id)
        if not name or not isinstance(start, int) or not isinstance(end, int) or thread is None:
            continue
        if kind in _PUSH_POP:
            by_thread[thread].append((start, end, str(name)))
        elif kind in _START_END:
            by_process[_process(thread)].append((start, end, str(name)))
    return by_thread, by_process


def _process(number: int | None) -> int:
    """Return the process in the global number of a process or thread."""
    return (number or 0) >> _PROCESS_SHIFT & _PROCESS_MASK


def _processes(database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> int:
    if "globalPid" not in columns.get(_KERNELS, set()):
        return 1
    (found,) = database.execute(f"SELECT COUNT(DISTINCT globalPid) FROM {_KERNELS}").fetchone()  # noqa: S608 - our constant
    return int(found)


def _names(database: sqlite3.Connection, known: set[str]) -> dict[Any, str]:
    """Return the names of kernels by what the columns of names hold: an id, or in old exports the name itself."""
    found: dict[Any, str] = {}
    for column in reversed(_NAMES):
        if column in known:
            query = (
                f"SELECT DISTINCT {column}, value FROM {_KERNELS} LEFT JOIN StringIds ON id = {column} "  # noqa: S608 - our constants
                f"WHERE {column} IS NOT NULL"
            )
            for key, value in database.execute(query):
                if isinstance(value, str) or isinstance(key, str):
                    found[key] = str(value or key)
    return found


def _shape(numbers: Sequence[Any]) -> Shape:
    """Return a grid or block; None where the export does not say."""
    x, y, z = numbers
    return (x, y, z) if all(isinstance(one, int) and one > 0 for one in numbers) else None


def _rows(
    database: sqlite3.Connection, table: str, known: set[str], wanted: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield the wanted columns of what has a time, in the order in which it began; a column that lacks is None."""
    if not {"start", "end"} <= known:
        return
    yield from database.execute(
        f"SELECT {_selected(known, wanted)} FROM {table} WHERE typeof(start) = 'integer' "  # noqa: S608 - our constants
        "AND typeof(end) = 'integer' AND start >= 0 AND end >= start ORDER BY start, end"
    )


def _selected(known: set[str], wanted: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' if name in known else "NULL" for name in wanted)


def _count(database: sqlite3.Connection, table: str) -> int:
    (found,) = database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()  # noqa: S608 - our constants
    return int(found)


def _columns_of(database: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the columns of each table that is read."""
    rows = database.execute(
        "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
    )
    found = defaultdict(set)
    for table, column in rows:
        found[table].add(column)
    return dict(found)


@contextmanager
def _opened(export: Path, source: str) -> Iterator[sqlite3.Connection]:
    """Open an export for reading; what SQLite finds damaged is an error of the input."""
    try:
        with closing(sqlite3.connect(f"{export.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            yield database
    except (sqlite3.Error, OverflowError) as error:
        raise InputError(f"cannot read the timeline `{source}`: {error}", _AGAIN) from error


def _check_whole(export: Path, source: str) -> None:
    """Compare the size that the header states with that of the file.

    Raises:
        InputError: It is cut.
    """
    with export.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        has = file.seek(0, os.SEEK_END)
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    pages = int.from_bytes(header[28:32], "big") if header[24:28] == header[92:96] else 0
    if has < page_bytes * pages:
        raise InputError(f"the timeline `{source}` is cut: {has:,} of {page_bytes * pages:,} bytes", _AGAIN)
