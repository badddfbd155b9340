"""Read the SQLite exports of Nsight Systems: kernels, copies, whole graphs, and the NVTX ranges of their launches.

The schema grew from 2020 to 2025: tables and columns missing from an export read as empty. Rows are read one by one,
each time the timeline is iterated, so that millions of kernels need little memory.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.foreign import by_tables
from rooflens.ingest.timelines.budget import KEPT, NAME_CHARACTERS, TimelineBudget
from rooflens.ingest.timelines.export import (
    AGAIN,
    BUSY,
    DEVICES,
    GPUS,
    GRAPHS,
    KERNELS,
    PUSH_POP,
    RANGES,
    RUNTIME,
    START_END,
    VALUE,
    are_small,
    bounded,
    check_size,
    check_whole,
    columns_of,
    count_rows,
    has_rows,
    has_strings,
    opened,
    process_of,
    selected,
    shared,
    strings_of_ranges,
    table_names,
    timed_rows,
    whole,
)
from rooflens.ingest.timelines.exported_host import ExportedHost, number_of, unseen_graphs
from rooflens.ingest.timelines.ranges import OUTERMOST_FIRST, OpenRanges, Paths, Range
from rooflens.model.program.steps import StepRanges
from rooflens.model.program.timeline import NSYS, BusyEvent, KernelEvent, StepRange, Timeline
from rooflens.processes import capture, find_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflens.model.program.timeline import BusyKind
    from rooflens.model.unprofiled import Shape

_COPIES = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}
_MEMORIES = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
"""Numbers of `ENUM_CUDA_MEMCPY_OPER` and `ENUM_CUDA_MEM_KIND` -> what the PyTorch profiler calls the same."""

_BUSY_KINDS: dict[str, BusyKind] = dict(zip(BUSY, ("copy", "memset", "graph"), strict=True))
_NAME_COLUMNS = ("demangledName", "mangledName", "shortName")
"""Columns with a kernel's name, best first."""

_ROWS_COUNTED = 1024
"""Rows counted at a time."""

_MOST_BLOCKS = 1 << 31
_MOST_COPIED_BYTES = 1 << 50
_MOST_GPUS, _LONGEST_GPU = 1 << 16, 200
"""Limits: GPUs of all processes together, and characters of a GPU's name."""

_RECORD_HINT = "trace CUDA: `nsys profile --trace=cuda,nvtx --export=sqlite PROGRAM`"
_GRAPH_HINT = "record with `nsys profile --cuda-graph-trace=node`: it shows the kernels in graphs, at some cost"
_INSTALL_PATTERNS = ("usr/local/cuda/bin/nsys", "usr/local/cuda-*/bin/nsys", "opt/nvidia/nsight-systems/*/bin/nsys")


def find_nsys(root: Path = Path("/")) -> str | None:
    """Return the path of nsys, from PATH or the usual places; None if there is none."""
    return find_program("nsys", {"PATH": os.environ.get("PATH", "")}, _INSTALL_PATTERNS, root)


@contextmanager
def exported(report: Path) -> Iterator[Path]:
    """Export a Nsight Systems report to SQLite; the export is deleted when the block ends.

    Raises:
        EnvironmentMissingError: nsys is not installed here.
        InputError: nsys cannot export the report.
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
    """Read an SQLite export; kernels and copies are read from the file at each iteration.

    Args:
        export: The file.
        source: Name of the timeline in messages; by default the file.

    Raises:
        InputError: The file is cut or damaged, no export of nsys, or has no kernels.
    """
    source = source or str(export)
    budget = TimelineBudget(export, source)
    with opened(export, source, budget) as database:
        check_whole(export, source)
        columns = columns_of(database, source)
        for table in columns:
            check_size(database, table, budget)
        gpus = _Gpus(database, columns)
        used = gpus.used(database, columns)
        unseen = []
        for one in unseen_graphs(database, columns, sorted(used) or [0]):
            budget.take(KEPT)
            unseen.append(one)
        has_whole = GRAPHS in columns and has_rows(database, GRAPHS)
        if not (has_whole or unseen or (KERNELS in columns and has_rows(database, KERNELS))):
            other = None if "StringIds" in columns else by_tables(table_names(database))
            if other is not None:
                raise InputError(f"`{source}` is no timeline, but {other.what}", other.instead)
            what = "has no kernels" if "StringIds" in columns else "is a database, but no export of nsys"
            raise InputError(f"the timeline `{source}` {what}", _RECORD_HINT)
        names = {gpus.names.get(index) for index in used}
        processes = _processes(database, columns)
        notes = (f"{processes} processes ran kernels; they are taken together",) if processes > 1 else ()
        return Timeline(
            source=source,
            kind=NSYS,
            kernels=_ExportedKernels(export, source, budget, has_graphs=has_whole or bool(unseen)),
            others=_Others(export, source, budget, unseen),
            gpu=names.pop() if len(names) == 1 else None,
            notes=Notes(notes, budget),
            host=ExportedHost(export, source, budget),
            graph_hint=_GRAPH_HINT if unseen or has_whole else None,
            node_gpus=len(gpus.names) if len(gpus.names) > 1 else None,
        )


@dataclass(frozen=True, slots=True)
class _ExportedKernels:
    export: Path
    source: str
    budget: TimelineBudget
    has_graphs: bool

    def __iter__(self) -> Iterator[KernelEvent]:
        with opened(self.export, self.source, self.budget) as database:
            columns = columns_of(database, self.source)
            if KERNELS not in columns:
                return
            known = columns[KERNELS]
            gpus, names = _Gpus(database, columns), _kernel_names(database, columns, self.budget)
            paths = _range_paths(database, columns, self.budget)
            shapes: dict[tuple[Any, ...], tuple[Shape, Shape]] = {}
            processes: dict[tuple[Any, Any], tuple[int, dict[int, _Opened]]] = {}
            timed = unnamed = 0
            wanted = ("start", "end", "deviceId", "streamId", "globalPid", "correlationId", *_NAME_COLUMNS, *_SHAPE)
            for row in timed_rows(database, KERNELS, known, wanted):
                start, end, device, stream, process, correlation, *rest = row
                timed += 1
                label = names.get(rest[0]) or names.get(rest[1]) or names.get(rest[2])
                if label is None:
                    unnamed += 1
                    continue
                sizes = tuple(rest[len(_NAME_COLUMNS) :])
                if (shape := shapes.get(sizes)) is None:
                    shape = _launch_shape(sizes[:3]), _launch_shape(sizes[3:])
                    if are_small(sizes):
                        shapes[sizes] = shape
                if (found := processes.get((process, device))) is None:
                    found = gpus.index(process, device), paths.get(process_of(process), {})
                    if are_small((process, device)):
                        processes[process, device] = found
                index, own = found
                path, step = own.get(correlation, _NOTHING_OPEN) if own else _NOTHING_OPEN
                yield KernelEvent(
                    label,
                    *shape,
                    start,
                    end - start,
                    index,
                    whole(stream),
                    path,
                    launched_by=number_of(process, correlation),
                    step=step,
                )
            untimed = count_rows(database, KERNELS) - timed
            self.budget.left_out = {
                what: number for what, number in (("without a name", unnamed), ("without a time", untimed)) if number
            }
            if timed == unnamed and not self.has_graphs:
                why = "names of its kernels lead to no text" if unnamed else "kernels have no times"
                raise InputError(f"the timeline `{self.source}` names no kernels: the {why}", AGAIN)


@dataclass(frozen=True, slots=True)
class _Others:
    """The copies, memsets and whole graphs of an export, read at each iteration."""

    export: Path
    source: str
    budget: TimelineBudget
    unseen: Sequence[BusyEvent]

    def __iter__(self) -> Iterator[BusyEvent]:
        with opened(self.export, self.source, self.budget) as database:
            columns = columns_of(database, self.source)
            gpus = _Gpus(database, columns)
            tables = [
                self._events_of_table(database, table, columns[table], gpus) for table in BUSY if table in columns
            ]
            yield from merge(*tables, self.unseen, key=itemgetter(0, 1))

    @staticmethod
    def _events_of_table(
        database: sqlite3.Connection, table: str, columns: set[str], gpus: _Gpus
    ) -> Iterator[BusyEvent]:
        wanted = ("start", "end", "deviceId", "streamId", "globalPid", "correlationId", "bytes", *_COPIED)
        kind = _BUSY_KINDS[table]
        for start, end, device, stream, process, correlation, moved, *copied in timed_rows(
            database, table, columns, wanted
        ):
            if end > start:
                yield BusyEvent(
                    start,
                    end - start,
                    gpus.index(process, device),
                    whole(stream),
                    kind,
                    _copy_name(kind, *copied),
                    moved if type(moved) is int and 0 <= moved < _MOST_COPIED_BYTES else None,
                    number_of(process, correlation),
                )


_COPIED = ("copyKind", "srcKind", "dstKind")


def _copy_name(kind: BusyKind, copied: Any, source: Any, target: Any) -> str | None:
    """Name a copy as the PyTorch profiler does; None where the export does not say."""
    if kind == "memset":
        return "Memset"
    direction = _COPIES.get(copied) if type(copied) is int else None
    if direction is None:
        return None
    memories = [_MEMORIES.get(one) if type(one) is int else None for one in (source, target)]
    return f"Memcpy {direction}" + (f" ({memories[0]} -> {memories[1]})" if all(memories) else "")


class Notes:
    """What was left out of an export; complete once its kernels have been iterated."""

    def __init__(self, first: Sequence[str], budget: TimelineBudget) -> None:
        self._first, self._budget = first, budget

    def __iter__(self) -> Iterator[str]:
        yield from (*self._first, *self._budget.notes())


_SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")


class _Gpus:
    """The GPUs of an export, where each process numbers its visible GPUs from 0."""

    def __init__(self, database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> None:
        self.names: dict[int, str] = {}
        self._by_process: dict[tuple[int, int], int] = {}
        if {"id", "name"} <= columns.get(GPUS, set()):
            rows = database.execute(f"SELECT id, substr(name, 1, {_LONGEST_GPU}) FROM {GPUS} LIMIT {_MOST_GPUS}")  # noqa: S608 - our constants
            self.names = {index: name for index, name in rows if type(index) is int and isinstance(name, str)}
        if {"gpuId", "cudaId", "pid"} <= columns.get(DEVICES, set()):
            rows = database.execute(f"SELECT pid, cudaId, gpuId FROM {DEVICES} LIMIT {_MOST_GPUS}")  # noqa: S608 - our constants
            self._by_process = {row[:2]: row[2] for row in rows if all(type(one) is int for one in row)}

    def index(self, process: Any, device: Any) -> int:
        """Return a GPU's index in the machine; if that is unknown, its index in the process."""
        own = whole(device)
        return self._by_process.get((process_of(process), own), own)

    def used(self, database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> set[int]:
        """Return the GPUs that ran kernels or graphs."""
        found = set()
        for table in (KERNELS, GRAPHS):
            if table in columns:
                wanted = selected(columns[table], ("globalPid", "deviceId"))
                found |= {self.index(*row) for row in database.execute(f"SELECT DISTINCT {wanted} FROM {table}")}  # noqa: S608 - our constants
        return found


_Opened = tuple["str | None", "StepRange | None"]
"""The NVTX ranges that were open at a launch, and the step of the program."""

_NOTHING_OPEN: _Opened = (None, None)


def _range_paths(
    database: sqlite3.Connection, columns: Mapping[str, set[str]], budget: TimelineBudget
) -> dict[int, dict[int, _Opened]]:
    """Return the NVTX ranges that were open on the host at each launch, by process and correlation ID.

    Calls and ranges are iterated together in start order, thread by thread. Ranges that were started and ended by name
    belong to a whole process.
    """
    if not columns.get(RANGES) or {"globalTid", "correlationId", "start"} - columns.get(RUNTIME, set()):
        return {}
    by_thread, by_process = _read_ranges(database, columns, budget)
    if not by_thread and not by_process:
        return {}
    found: defaultdict[int, dict[int, _Opened]] = defaultdict(dict)
    paths = Paths(budget)
    last: dict[int, tuple[int, str | None]] = {}
    threads: dict[int, tuple[Sequence[OpenRanges], dict[int, _Opened]]] = {}
    shared: dict[_Opened, _Opened] = {_NOTHING_OPEN: _NOTHING_OPEN}
    steps = _step_ranges(by_thread, by_process)
    path_count = 0
    calls = database.execute(
        f"SELECT globalTid, start, correlationId FROM {RUNTIME} "  # noqa: S608 - our constant
        "WHERE typeof(globalTid) = 'integer' AND typeof(correlationId) = 'integer' AND typeof(start) = 'integer' "
        "ORDER BY start"
    )
    for thread, start, correlation in calls:
        if (own := threads.get(thread)) is None:
            both = by_thread.get(thread), by_process.get(process := process_of(thread))
            own = threads[thread] = [ranges for ranges in both if ranges is not None], found[process]
        opened, of_process = own
        changes = 0
        for ranges in opened:
            ranges.go_to(start)
            changes += ranges.changes
        if (known := last.get(thread)) is None or known[0] != changes:
            known = last[thread] = changes, paths.of(*opened)
        one = known[1] or None, steps.at(process_of(thread), start) if steps else None
        if (open_then := shared.setdefault(one, one)) is not _NOTHING_OPEN:
            of_process[correlation] = open_then
            path_count += 1
            if not path_count % _ROWS_COUNTED:
                budget.take(KEPT, _ROWS_COUNTED)
    return found


def _step_ranges(by_thread: Mapping[int, OpenRanges], by_process: Mapping[int, OpenRanges]) -> StepRanges:
    """Find the ranges that mark steps, in each process."""
    spans: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
    whose = [(process_of(thread), one) for thread, one in by_thread.items()]
    for process, ranges in (*whose, *by_process.items()):
        spans[process] += [(start, -negated, name) for start, negated, name in ranges.all]
    return StepRanges(spans)


def _read_ranges(
    database: sqlite3.Connection, columns: Mapping[str, set[str]], budget: TimelineBudget
) -> tuple[dict[int, OpenRanges], dict[int, OpenRanges]]:
    known = columns[RANGES]
    if {"start", "end", "eventType", "globalTid"} - known:
        return {}, {}
    strings = strings_of_ranges(database, columns, budget)
    of_thread: defaultdict[int, list[Range]] = defaultdict(list)
    of_process: defaultdict[int, list[Range]] = defaultdict(list)
    wanted = selected(known, ("start", "end", "eventType", "globalTid", "textId", "text"))
    texts: dict[str, str] = {}
    range_count = 0
    for start, end, kind, thread, text_id, text in database.execute(f"SELECT {wanted} FROM {RANGES}"):  # noqa: S608 - our constants
        if not (type(start) is type(end) is type(thread) is int):
            continue
        if not text or type(text) is not str:
            name = strings.get(text_id)
        else:
            name = texts.get(text) or shared(text, texts, budget)
        if not name:
            continue
        if kind in PUSH_POP:
            of_thread[thread].append((start, -end, name))
        elif kind in START_END:
            of_process[process_of(thread)].append((start, -end, name))
        range_count += 1
        if not range_count % _ROWS_COUNTED:
            budget.take(KEPT, _ROWS_COUNTED)
    by_thread, by_process = (
        {number: OpenRanges(sorted(ranges, key=OUTERMOST_FIRST)) for number, ranges in found.items()}
        for found in (of_thread, of_process)
    )
    return by_thread, by_process


def _processes(database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> int:
    if "globalPid" not in columns.get(KERNELS, set()):
        return 1
    (found,) = database.execute(f"SELECT COUNT(DISTINCT globalPid) FROM {KERNELS}").fetchone()  # noqa: S608 - our constant
    return int(found)


def _kernel_names(
    database: sqlite3.Connection, columns: Mapping[str, set[str]], budget: TimelineBudget
) -> dict[Any, str]:
    """Return kernel names by the content of their column: an ID, or in old exports the name itself."""
    found: dict[Any, str] = {}
    known = columns[KERNELS]
    value, joined = (VALUE, "LEFT JOIN StringIds ON id = key") if has_strings(columns) else ("NULL", "")
    for column in reversed(_NAME_COLUMNS):
        if column in known:
            keys = f"SELECT DISTINCT {column} AS key FROM {KERNELS} WHERE {column} IS NOT NULL"  # noqa: S608 - our constants
            for key, text in database.execute(f"SELECT key, {value} FROM ({keys}) {joined}"):  # noqa: S608 - our constants
                name = text or key
                if isinstance(name, str):
                    budget.take(NAME_CHARACTERS, len(key) if isinstance(key, str) else 0)
                    found[key] = bounded(name, budget)
    return found


def _launch_shape(numbers: Sequence[Any]) -> Shape:
    x, y, z = numbers
    return (x, y, z) if all(type(one) is int and 0 < one < _MOST_BLOCKS for one in numbers) else None
