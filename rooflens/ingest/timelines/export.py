"""SQLite exports of Nsight Systems as databases: opened without trust, their tables, rows and texts."""

from __future__ import annotations

import os
import shlex
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflens.errors import InputError
from rooflens.format import LONGEST_NAME, bounded_name
from rooflens.ingest.reports.unpacking import first_bytes
from rooflens.ingest.timelines.budget import NAME_CHARACTERS, TimelineBudget

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

Columns = dict[str, set[str]]
"""The columns of each table that is there."""

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
OS_CALLS = "OSRT_API"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
"""Graphs traced as a whole: the export does not show what ran in them."""

GPUS, DEVICES = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
BUSY = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", GRAPHS)

PUSH_POP, START_END = (59, 70), (60, 71)
"""Types of NVTX events: ranges of a thread, and ranges of a process."""

_PROCESS_SHIFT, _PROCESS_MASK = 24, 0xFFFFFF
"""Position of the process ID in a global thread ID; the lowest bits are the thread's own."""

_TABLES = (KERNELS, RUNTIME, OS_CALLS, RANGES, GPUS, DEVICES, "StringIds", *BUSY)
_MAY_READ = frozenset({"sqlite_master", *_TABLES})
_MAY_CALL = frozenset({"count", "sum", "substr", "typeof"})
"""Everything that a query may read and call; SQLite asks for permission when it prepares a query."""

_SQL_STEPS = 4000
"""SQLite instructions between two checks whether to continue: about 0.2 ms."""

_MOST_VALUE_BYTES = 1 << 20
"""A longer text or blob is an error: SQLite reads each in one step, and a thousand rows may share it."""

_LEAST_ROW_BYTES = 4
_LATEST_NS = 1 << 62
"""The year 2116: the sum of two times still fits into 64 bits."""

_TIMED = f"typeof(start) = 'integer' AND typeof(end) = 'integer' AND start >= 0 AND end >= start AND end < {_LATEST_NS}"

_HEADER_BYTES = 100
_LONGEST_TABLE, _MOST_TABLES = 200, 1000
AGAIN = "export it again: `nsys export --type sqlite REPORT.nsys-rep`"


def _cut_text(column: str) -> str:
    """Write the SQL for a column's text, cut to one character more than a name may have, which reveals the cut."""
    return f"CASE typeof({column}) WHEN 'text' THEN substr({column}, 1, {LONGEST_NAME + 1}) END"


VALUE = _cut_text("value")


def bounded(text: str, budget: TimelineBudget) -> str:
    """Count a name, and cut it if it is longer than any real name."""
    name = bounded_name(text)
    budget.take(NAME_CHARACTERS, len(name))
    if name != text:
        budget.cut_names.add(name)
    return name


def shared(text: str, texts: dict[str, str], budget: TimelineBudget) -> str:
    """Cut a name as `bounded` does, and return its shared copy."""
    name = bounded_name(text)
    if name not in texts:
        texts[name] = bounded(text, budget)
    return texts[name]


def strings_of_ranges(
    database: sqlite3.Connection, columns: Mapping[str, set[str]], budget: TimelineBudget
) -> dict[int, str]:
    """Return the range names that are stored in the table of texts, by ID."""
    if "textId" not in columns[RANGES] or not has_strings(columns):
        return {}
    ids = f"SELECT textId FROM {RANGES}"  # noqa: S608 - our constant
    rows = database.execute(f"SELECT id, {VALUE} FROM StringIds WHERE id IN ({ids})")  # noqa: S608 - our constants
    return {key: bounded(text, budget) for key, text in rows if text}


def process_of(number: Any) -> int:
    """Return the process ID in a global process or thread ID."""
    return whole(number) >> _PROCESS_SHIFT & _PROCESS_MASK


def are_small(values: Iterable[Any]) -> bool:
    """Return whether values may be kept: a damaged column may hold megabytes of text in each row."""
    return all(value is None or type(value) is int for value in values)


def whole(value: Any) -> int:
    """Return a whole number; 0 for anything else, which a damaged column may hold."""
    return value if type(value) is int else 0


def has_strings(columns: Mapping[str, set[str]]) -> bool:
    """Return whether the export has the table of texts."""
    return {"id", "value"} <= columns.get("StringIds", set())


def timed_rows(
    database: sqlite3.Connection, table: str, columns: set[str], wanted: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield the wanted columns of rows with a time, in start order; a missing column is None."""
    if not {"start", "end"} <= columns:
        return
    yield from database.execute(
        f"SELECT {selected(columns, wanted)} FROM {table} WHERE {_TIMED} ORDER BY start, end"  # noqa: S608 - our constants
    )


def count_rows(database: sqlite3.Connection, table: str) -> int:
    """Return the number of rows of a table whose size was checked: SQLite counts them in one step."""
    (found,) = database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()  # noqa: S608 - our constants
    return int(found)


def selected(columns: set[str], wanted: Sequence[str]) -> str:
    """Write the SQL for the wanted columns; a missing one is NULL."""
    return ", ".join(f'"{name}"' if name in columns else "NULL" for name in wanted)


def has_rows(database: sqlite3.Connection, table: str) -> bool:
    """Return whether a table has any row."""
    return database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None  # noqa: S608 - our constants


def check_size(database: sqlite3.Connection, table: str, budget: TimelineBudget) -> None:
    """Check that a table has no more rows than fit into its file: a hostile table may repeat a page a thousand times.

    Raises:
        DatabaseError: The table has more.
    """
    most = budget.file_bytes // _LEAST_ROW_BYTES
    if database.execute(f"SELECT 1 FROM {table} NOT INDEXED LIMIT 1 OFFSET {most}").fetchone() is not None:  # noqa: S608 - our constants
        raise sqlite3.DatabaseError(f"table {table} has more rows than the file has room for")


def table_names(database: sqlite3.Connection) -> list[str]:
    """Return the begins of the names of some tables, of an export or not."""
    rows = database.execute(f"SELECT substr(name, 1, {_LONGEST_TABLE}) FROM sqlite_master LIMIT {_MOST_TABLES}")  # noqa: S608 - our constants
    return [name for (name,) in rows if isinstance(name, str)]


def columns_of(database: sqlite3.Connection, source: str) -> dict[str, set[str]]:
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
            raise InputError(f"the timeline `{source}` has a view or query instead of the table `{table}`", AGAIN)
        found[table] = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    return found


@contextmanager
def opened(export: Path, source: str, budget: TimelineBudget) -> Iterator[sqlite3.Connection]:
    """Open an export for reading; damage that SQLite finds is an error of the input.

    It is opened as immutable, so that SQLite leaves no files beside it.
    """
    _check_journals(export, source)
    raised: list[BaseException] = []
    watch = _watched(budget, raised)
    next(watch)
    try:
        with closing(sqlite3.connect(f"{export.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.set_progress_handler(watch.__next__, _SQL_STEPS)
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
        raise InputError(f"cannot read the timeline `{source}`: {why}", AGAIN) from error


def _watched(budget: TimelineBudget, raised: list[BaseException]) -> Generator[int, None, None]:
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


def check_whole(export: Path, source: str) -> None:
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
        raise InputError(f"the timeline `{source}` is cut: {has:,} of {page_bytes * pages:,} bytes", AGAIN)
