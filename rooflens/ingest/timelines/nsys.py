"""Read the SQLite exports of Nsight Systems: kernels, copies, whole graphs, and the NVTX ranges of their launches.

The schema grew from 2020 to 2025: tables and columns missing from an export read as empty. Rows are read one by one,
each time the timeline is iterated, so that millions of kernels need little memory.
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
from rooflens.foreign import by_tables
from rooflens.format import LONGEST_NAME, bounded_name
from rooflens.ingest.reports.unpacking import first_bytes
from rooflens.ingest.timelines.budget import KEPT, NAME_CHARACTERS, Budget
from rooflens.ingest.timelines.ranges import OUTERMOST_FIRST, OpenRanges, Paths, Range
from rooflens.model.program.timeline import NSYS, BusyEvent, KernelEvent, Timeline
from rooflens.processes import capture, find_program

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from rooflens.model.program.timeline import BusyKind
    from rooflens.model.unprofiled import Shape

_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES = "NVTX_EVENTS"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
"""Graphs traced as a whole: the export does not show what ran in them."""

_GPUS, _DEVICES = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
_BUSY = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", _GRAPHS)
_KINDS: dict[str, BusyKind] = dict(zip(_BUSY, ("copy", "memset", "graph"), strict=True))
_NAMES = ("demangledName", "mangledName", "shortName")
"""Columns with a kernel's name, best first."""

_PUSH_POP, _START_END = (59, 70), (60, 71)
"""Types of NVTX events: ranges of a thread, and ranges of a process."""

_PROCESS_SHIFT, _PROCESS_MASK = 24, 0xFFFFFF
"""Position of the process ID in a global thread ID; the lowest bits are the thread's own."""

_TABLES = (_KERNELS, _RUNTIME, _RANGES, _GPUS, _DEVICES, "StringIds", *_BUSY)
_MAY_READ = frozenset({"sqlite_master", *_TABLES})
_MAY_CALL = frozenset({"count", "sum", "substr", "typeof"})
"""Everything that a query may read and call; SQLite asks for permission when it prepares a query."""

_COUNTED = 1024
"""Rows counted at a time."""

_STEPS = 4000
"""SQLite instructions between two checks whether to continue: about 0.2 ms."""

_MOST_VALUE_BYTES = 1 << 20
"""A longer text or blob is an error: SQLite reads each in one step, and a thousand rows may share it."""

_LEAST_ROW_BYTES = 4
_LATEST_NS = 1 << 62
"""The year 2116: the sum of two times still fits into 64 bits."""

_TIMED = f"typeof(start) = 'integer' AND typeof(end) = 'integer' AND start >= 0 AND end >= start AND end < {_LATEST_NS}"
_MOST_BLOCKS = 1 << 31
_MOST_GPUS, _LONGEST_GPU = 1 << 16, 200
"""Limits: GPUs of all processes together, and characters of a GPU's name."""

_HEADER_BYTES = 100
_AGAIN = "export it again: `nsys export --type sqlite REPORT.nsys-rep`"
_RECORD_HINT = "trace CUDA: `nsys profile --trace=cuda,nvtx --export=sqlite PROGRAM`"
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
    budget = Budget(export, source)
    with _opened(export, source, budget) as database:
        _check_whole(export, source)
        columns = _columns_of(database, source)
        if not any(_has_rows(database, name) for name in (_KERNELS, _GRAPHS) if name in columns):
            other = None if "StringIds" in columns else by_tables(_table_names(database))
            if other is not None:
                raise InputError(f"`{source}` is no timeline, but {other.what}", other.instead)
            what = "has no kernels" if "StringIds" in columns else "is a database, but no export of nsys"
            raise InputError(f"the timeline `{source}` {what}", _RECORD_HINT)
        for table in columns:
            _check_size(database, table, budget)
        gpus = _Gpus(database, columns)
        used = gpus.used(database, columns)
        names = {gpus.names.get(index) for index in used}
        processes = _processes(database, columns)
        notes = (f"{processes} processes ran kernels; they are taken together",) if processes > 1 else ()
        return Timeline(
            source=source,
            kind=NSYS,
            kernels=_Kernels(export, source, budget),
            others=_Others(export, source, budget),
            gpu=names.pop() if len(names) == 1 else None,
            notes=Notes(notes, budget),
            node_gpus=len(gpus.names) if len(gpus.names) > 1 else None,
        )


@dataclass(frozen=True, slots=True)
class _Kernels:
    """The kernels of an export, read at each iteration."""

    export: Path
    source: str
    budget: Budget

    def __iter__(self) -> Iterator[KernelEvent]:
        with _opened(self.export, self.source, self.budget) as database:
            columns = _columns_of(database, self.source)
            if _KERNELS not in columns:
                return
            known = columns[_KERNELS]
            gpus, names = _Gpus(database, columns), _names(database, columns, self.budget)
            paths = _range_paths(database, columns, self.budget)
            shapes: dict[tuple[Any, ...], tuple[Shape, Shape]] = {}
            processes: dict[tuple[Any, Any], tuple[int, dict[int, str]]] = {}
            timed = unnamed = 0
            wanted = ("start", "end", "deviceId", "streamId", "globalPid", "correlationId", *_NAMES, *_SHAPE)
            for row in _rows(database, _KERNELS, known, wanted):
                start, end, device, stream, process, correlation, *rest = row
                timed += 1
                label = names.get(rest[0]) or names.get(rest[1]) or names.get(rest[2])
                if label is None:
                    unnamed += 1
                    continue
                sizes = tuple(rest[len(_NAMES) :])
                if (shape := shapes.get(sizes)) is None:
                    shape = _shape(sizes[:3]), _shape(sizes[3:])
                    if _are_small(sizes):
                        shapes[sizes] = shape
                if (found := processes.get((process, device))) is None:
                    found = gpus.index(process, device), paths.get(_process(process), {})
                    if _are_small((process, device)):
                        processes[process, device] = found
                index, own = found
                path = own.get(correlation) if own else None
                yield KernelEvent(label, *shape, start, end - start, index, _whole(stream), path)
            untimed = _count(database, _KERNELS) - timed
            self.budget.left_out = {
                what: number for what, number in (("without a name", unnamed), ("without a time", untimed)) if number
            }
            if timed == unnamed and not (_GRAPHS in columns and _has_rows(database, _GRAPHS)):
                why = "names of its kernels lead to no text" if unnamed else "kernels have no times"
                raise InputError(f"the timeline `{self.source}` names no kernels: the {why}", _AGAIN)


@dataclass(frozen=True, slots=True)
class _Others:
    """The copies, memsets and whole graphs of an export, read at each iteration."""

    export: Path
    source: str
    budget: Budget

    def __iter__(self) -> Iterator[BusyEvent]:
        from heapq import merge  # noqa: PLC0415 - only here

        with _opened(self.export, self.source, self.budget) as database:
            columns = _columns_of(database, self.source)
            gpus = _Gpus(database, columns)
            tables = [self._of(database, table, columns[table], gpus) for table in _BUSY if table in columns]
            yield from merge(*tables)

    @staticmethod
    def _of(database: sqlite3.Connection, table: str, known: set[str], gpus: _Gpus) -> Iterator[BusyEvent]:
        wanted = ("start", "end", "deviceId", "streamId", "globalPid")
        for start, end, device, stream, process in _rows(database, table, known, wanted):
            if end > start:
                yield BusyEvent(start, end - start, gpus.index(process, device), _whole(stream), _KINDS[table])


class Notes:
    """What was left out of an export; complete once its kernels have been iterated."""

    def __init__(self, first: Sequence[str], budget: Budget) -> None:
        self._first, self._budget = first, budget

    def __iter__(self) -> Iterator[str]:
        yield from (*self._first, *self._budget.notes())


_SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")


class _Gpus:
    """The GPUs of an export, where each process numbers its visible GPUs from 0."""

    def __init__(self, database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> None:
        self.names: dict[int, str] = {}
        self._by_process: dict[tuple[int, int], int] = {}
        if {"id", "name"} <= columns.get(_GPUS, set()):
            rows = database.execute(f"SELECT id, substr(name, 1, {_LONGEST_GPU}) FROM {_GPUS} LIMIT {_MOST_GPUS}")  # noqa: S608 - our constants
            self.names = {index: name for index, name in rows if type(index) is int and isinstance(name, str)}
        if {"gpuId", "cudaId", "pid"} <= columns.get(_DEVICES, set()):
            rows = database.execute(f"SELECT pid, cudaId, gpuId FROM {_DEVICES} LIMIT {_MOST_GPUS}")  # noqa: S608 - our constants
            self._by_process = {row[:2]: row[2] for row in rows if all(type(one) is int for one in row)}

    def index(self, process: Any, device: Any) -> int:
        """Return a GPU's index in the machine; if that is unknown, its index in the process."""
        own = _whole(device)
        return self._by_process.get((_process(process), own), own)

    def used(self, database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> set[int]:
        """Return the GPUs that ran kernels or graphs."""
        found = set()
        for table in (_KERNELS, _GRAPHS):
            if table in columns:
                wanted = _selected(columns[table], ("globalPid", "deviceId"))
                found |= {self.index(*row) for row in database.execute(f"SELECT DISTINCT {wanted} FROM {table}")}  # noqa: S608 - our constants
        return found


def _range_paths(
    database: sqlite3.Connection, columns: Mapping[str, set[str]], budget: Budget
) -> dict[int, dict[int, str]]:
    """Return the NVTX ranges that were open on the host at each launch, by process and correlation ID.

    Calls and ranges are iterated together in start order, thread by thread. Ranges that were started and ended by name
    belong to a whole process.
    """
    if not columns.get(_RANGES) or {"globalTid", "correlationId", "start"} - columns.get(_RUNTIME, set()):
        return {}
    by_thread, by_process = _ranges(database, columns, budget)
    if not by_thread and not by_process:
        return {}
    found: defaultdict[int, dict[int, str]] = defaultdict(dict)
    paths = Paths(budget)
    last: dict[int, tuple[int, str | None]] = {}
    threads: dict[int, tuple[Sequence[OpenRanges], dict[int, str]]] = {}
    path_count = 0
    calls = database.execute(
        f"SELECT globalTid, start, correlationId FROM {_RUNTIME} "  # noqa: S608 - our constant
        "WHERE typeof(globalTid) = 'integer' AND typeof(correlationId) = 'integer' AND typeof(start) = 'integer' "
        "ORDER BY start"
    )
    for thread, start, correlation in calls:
        if (one := threads.get(thread)) is None:
            both = by_thread.get(thread), by_process.get(process := _process(thread))
            one = threads[thread] = [ranges for ranges in both if ranges is not None], found[process]
        opened, of_process = one
        changes = 0
        for ranges in opened:
            ranges.go_to(start)
            changes += ranges.changes
        if (known := last.get(thread)) is None or known[0] != changes:
            known = last[thread] = changes, paths.of(*opened)
        if known[1]:
            of_process[correlation] = known[1]
            path_count += 1
            if not path_count % _COUNTED:
                budget.take(KEPT, _COUNTED)
    return found


def _ranges(
    database: sqlite3.Connection, columns: Mapping[str, set[str]], budget: Budget
) -> tuple[dict[int, OpenRanges], dict[int, OpenRanges]]:
    """Read the NVTX ranges of each thread and of each process."""
    known = columns[_RANGES]
    if {"start", "end", "eventType", "globalTid"} - known:
        return {}, {}
    strings = _strings_of_ranges(database, columns, budget)
    of_thread: defaultdict[int, list[Range]] = defaultdict(list)
    of_process: defaultdict[int, list[Range]] = defaultdict(list)
    wanted = _selected(known, ("start", "end", "eventType", "globalTid", "textId", "text"))
    texts: dict[str, str] = {}
    range_count = 0
    for start, end, kind, thread, text_id, text in database.execute(f"SELECT {wanted} FROM {_RANGES}"):  # noqa: S608 - our constants
        if not (type(start) is type(end) is type(thread) is int):
            continue
        if not text or type(text) is not str:
            name = strings.get(text_id)
        else:
            name = texts.get(text) or _shared(text, texts, budget)
        if not name:
            continue
        if kind in _PUSH_POP:
            of_thread[thread].append((start, -end, name))
        elif kind in _START_END:
            of_process[_process(thread)].append((start, -end, name))
        range_count += 1
        if not range_count % _COUNTED:
            budget.take(KEPT, _COUNTED)
    by_thread, by_process = (
        {number: OpenRanges(sorted(ranges, key=OUTERMOST_FIRST)) for number, ranges in found.items()}
        for found in (of_thread, of_process)
    )
    return by_thread, by_process


def _strings_of_ranges(database: sqlite3.Connection, columns: Mapping[str, set[str]], budget: Budget) -> dict[int, str]:
    """Return the range names that are stored in the table of texts, by ID."""
    if "textId" not in columns[_RANGES] or not _has_strings(columns):
        return {}
    ids = f"SELECT textId FROM {_RANGES}"  # noqa: S608 - our constant
    rows = database.execute(f"SELECT id, {_VALUE} FROM StringIds WHERE id IN ({ids})")  # noqa: S608 - our constants
    return {key: _bounded(text, budget) for key, text in rows if text}


def _cut_text(column: str) -> str:
    """Write the SQL for a column's text, cut to one character more than a name may have, which reveals the cut."""
    return f"CASE typeof({column}) WHEN 'text' THEN substr({column}, 1, {LONGEST_NAME + 1}) END"


_VALUE = _cut_text("value")


def _bounded(text: str, budget: Budget) -> str:
    """Count a name, and cut it if it is longer than any real name."""
    name = bounded_name(text)
    budget.take(NAME_CHARACTERS, len(name))
    if name != text:
        budget.cut_names.add(name)
    return name


def _shared(text: str, texts: dict[str, str], budget: Budget) -> str:
    """Cut a name as `_bounded` does, and return its shared copy."""
    name = bounded_name(text)
    if name not in texts:
        texts[name] = _bounded(text, budget)
    return texts[name]


def _process(number: Any) -> int:
    """Return the process ID in a global process or thread ID."""
    return _whole(number) >> _PROCESS_SHIFT & _PROCESS_MASK


def _are_small(values: Iterable[Any]) -> bool:
    """Return whether values may be kept: a damaged column may hold megabytes of text in each row."""
    return all(value is None or type(value) is int for value in values)


def _whole(value: Any) -> int:
    """Return a whole number; 0 for anything else, which a damaged column may hold."""
    return value if type(value) is int else 0


def _processes(database: sqlite3.Connection, columns: Mapping[str, set[str]]) -> int:
    if "globalPid" not in columns.get(_KERNELS, set()):
        return 1
    (found,) = database.execute(f"SELECT COUNT(DISTINCT globalPid) FROM {_KERNELS}").fetchone()  # noqa: S608 - our constant
    return int(found)


def _has_strings(columns: Mapping[str, set[str]]) -> bool:
    """Return whether the export has the table of texts."""
    return {"id", "value"} <= columns.get("StringIds", set())


def _names(database: sqlite3.Connection, columns: Mapping[str, set[str]], budget: Budget) -> dict[Any, str]:
    """Return kernel names by the content of their column: an ID, or in old exports the name itself."""
    found: dict[Any, str] = {}
    known = columns[_KERNELS]
    value, joined = (_VALUE, "LEFT JOIN StringIds ON id = key") if _has_strings(columns) else ("NULL", "")
    for column in reversed(_NAMES):
        if column in known:
            keys = f"SELECT DISTINCT {column} AS key FROM {_KERNELS} WHERE {column} IS NOT NULL"  # noqa: S608 - our constants
            for key, text in database.execute(f"SELECT key, {value} FROM ({keys}) {joined}"):  # noqa: S608 - our constants
                name = text or key
                if isinstance(name, str):
                    budget.take(NAME_CHARACTERS, len(key) if isinstance(key, str) else 0)
                    found[key] = _bounded(name, budget)
    return found


def _shape(numbers: Sequence[Any]) -> Shape:
    """Return a grid or block; None if the export does not say."""
    x, y, z = numbers
    return (x, y, z) if all(type(one) is int and 0 < one < _MOST_BLOCKS for one in numbers) else None


def _rows(
    database: sqlite3.Connection, table: str, known: set[str], wanted: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield the wanted columns of rows with a time, in start order; a missing column is None."""
    if not {"start", "end"} <= known:
        return
    yield from database.execute(
        f"SELECT {_selected(known, wanted)} FROM {table} WHERE {_TIMED} ORDER BY start, end"  # noqa: S608 - our constants
    )


def _count(database: sqlite3.Connection, table: str) -> int:
    """Return the number of rows of a table whose size was checked: SQLite counts them in one step."""
    (found,) = database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()  # noqa: S608 - our constants
    return int(found)


def _selected(known: set[str], wanted: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' if name in known else "NULL" for name in wanted)


def _has_rows(database: sqlite3.Connection, table: str) -> bool:
    return database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None  # noqa: S608 - our constants


def _check_size(database: sqlite3.Connection, table: str, budget: Budget) -> None:
    """Check that a table has no more rows than fit into its file: a hostile table may repeat a page a thousand times.

    Raises:
        DatabaseError: The table has more.
    """
    most = budget.file_bytes // _LEAST_ROW_BYTES
    if database.execute(f"SELECT 1 FROM {table} NOT INDEXED LIMIT 1 OFFSET {most}").fetchone() is not None:  # noqa: S608 - our constants
        raise sqlite3.DatabaseError(f"table {table} has more rows than the file has room for")


def _table_names(database: sqlite3.Connection) -> list[str]:
    """Return the begins of the names of some tables."""
    rows = database.execute(f"SELECT substr(name, 1, {_LONGEST_GPU}) FROM sqlite_master LIMIT {_COUNTED}")  # noqa: S608 - our constants
    return [name for (name,) in rows if isinstance(name, str)]


def _columns_of(database: sqlite3.Connection, source: str) -> dict[str, set[str]]:
    """Return the columns of each table that we read.

    Raises:
        InputError: A table is really a view: reading it would run the file's own query.
    """
    kinds = database.execute(
        "SELECT name, type = 'table' AND rootpage > 0 AND substr(sql, 1, 13) = 'CREATE TABLE ' FROM sqlite_master "  # noqa: S608 - marks
        f"WHERE type <> 'index' AND name IN ({', '.join('?' * len(_TABLES))})",
        _TABLES,
    )
    found: dict[str, set[str]] = {}
    for table, is_table in kinds:
        if not is_table:
            raise InputError(f"the timeline `{source}` has a view or query instead of the table `{table}`", _AGAIN)
        found[table] = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    return found


@contextmanager
def _opened(export: Path, source: str, budget: Budget) -> Iterator[sqlite3.Connection]:
    """Open an export for reading; damage that SQLite finds is an error of the input.

    It is opened as immutable, so that SQLite leaves no files beside it.
    """
    _check_journals(export, source)
    raised: list[BaseException] = []
    watch = _watched(budget, raised)
    next(watch)
    try:
        with closing(sqlite3.connect(f"{export.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.set_progress_handler(watch.__next__, _STEPS)
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            _restrict(database)
            yield database
    except (sqlite3.Error, OverflowError, UnicodeError, MemoryError, OSError) as error:
        if raised:
            raise raised[0] from None
        if budget.is_late:
            raise budget.too_slow() from None
        why = (
            "SQLite's message about it is no text" if isinstance(error, UnicodeError) else str(error) or "out of memory"
        )
        raise InputError(f"cannot read the timeline `{source}`: {why}", _AGAIN) from error


def _watched(budget: Budget, raised: list[BaseException]) -> Generator[int, None, None]:
    """Decide repeatedly whether a query must stop: its time is over, or a signal came.

    SQLite drops exceptions of its callback, and Python runs signal handlers at the start of a function, before anything
    in it could catch them. A generator resumes in the middle, where it can catch them.
    """
    while True:
        try:
            yield int(bool(raised) or budget.is_late)
        except GeneratorExit:
            return
        except BaseException as error:  # noqa: BLE001 - raised again by whoever asked
            raised.append(error)


def _restrict(database: sqlite3.Connection) -> None:
    """Let queries read our tables only: views of a hostile file may reach for more."""
    for limit, most in ((sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE_BYTES), (sqlite3.SQLITE_LIMIT_ATTACHED, 0)):
        database.setlimit(limit, most)
    for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
        database.execute(f"PRAGMA {setting}")
    database.set_authorizer(_may)


def _may(action: int, first: str | None, second: str | None, _database: str | None, within: str | None) -> int:
    """Say whether SQLite may do something for a query; the text of a view may do nothing."""
    is_allowed = within is None and (
        action == sqlite3.SQLITE_SELECT
        or (action == sqlite3.SQLITE_READ and first in _MAY_READ)
        or (action == sqlite3.SQLITE_FUNCTION and second in _MAY_CALL)
        or (action == sqlite3.SQLITE_PRAGMA and first == "table_info")
    )
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _check_journals(export: Path, source: str) -> None:
    """Refuse an export with recent changes in a journal beside it: SQLite would have to write to merge them.

    Raises:
        InputError: There is a journal.
    """
    for ending in ("-wal", "-journal"):
        journal = export.with_name(export.name + ending)
        if first_bytes(journal, 1).strip(b"\0"):
            finish = shlex.join(("sqlite3", str(export), "PRAGMA journal_mode = DELETE"))
            raise InputError(
                f"the timeline `{source}` is not finished: changes to it are still in `{journal.name}`",
                f"wait until it is written; if nothing writes it any more, `{finish}` takes them in",
            )


def _check_whole(export: Path, source: str) -> None:
    """Compare the file's size with the size in its header.

    Raises:
        InputError: The file is cut.
    """
    with export.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        has = file.seek(0, os.SEEK_END)
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    pages = int.from_bytes(header[28:32], "big") if header[24:28] == header[92:96] else 0
    if has < page_bytes * pages:
        raise InputError(f"the timeline `{source}` is cut: {has:,} of {page_bytes * pages:,} bytes", _AGAIN)
