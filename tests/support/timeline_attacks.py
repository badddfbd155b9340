"""Damaged and hostile timelines, exports of nsys and traces, and the outcome of reading each.

Each is read by the commands that accept one, in a process of its own, which must end properly, soon, with little
memory, and at once on Ctrl-C or a signal to terminate.
"""

# ruff: noqa: S608 - our own SQL

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct, field
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report
from support.printed_tables import AVERAGES, KERN_SUM, TRACE, average, averages, column, separated, summed
from support.timelines import Launched, write_export

MOST_SECONDS, MOST_STOP_SECONDS = 10.0, 1.0
MOST_BYTES = 1 << 30

_LOADED = (
    "cli.group",
    "cli.loading",
    "analyzing",
    "writing.annotating",
    "ingest.timelines.read",
    "model.program.timeline",
)

_NAMES = ("void ns::often<4>(float*)", "rare(float*)", "triton_poi_fused_add_0", "void f<[lambda(int) (instance 1)]>()")
_ODD: tuple[Any, ...] = (
    *(None, -1, 0, 1 << 62, (1 << 63) - 1, -(1 << 63), 1.5, float("inf"), float("-inf")),
    *("", "text", "\0\x1b[31m", "_Z" + "9" * 5000, "[lambda(" * 3000, "x" * 300_000, b"\xff\xfe", bytes(70_000)),
)
_TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "StringIds", "TARGET_INFO_GPU")
_ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n AS id, 'x' AS value FROM c"
_PAGE_BYTES = 4096
_MOST_CELLS = 680
"""More in a page are an error of SQLite's."""

Attack = tuple[str, str, bytes]
"""Kind, ending of the file's name, content."""


class Tally(Struct):
    """The outcomes of some timelines.

    Attributes:
        count: Timelines.
        runs: Commands run on them, including those ended by a signal.
        outcomes: Kind -> how each ended: `read`, `refused`, or a loss.
        losses: What ended badly, in words.
        worst: The largest seconds of a command, bytes of memory, and seconds to the end after a signal, each with its
            kind.
    """

    count: int = 0
    runs: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    losses: list[str] = field(default_factory=list)
    worst: dict[str, tuple[float, str]] = field(default_factory=dict)

    def note(self, what: str, value: float, kind: str) -> None:
        """Keep the largest value of something."""
        self.worst[what] = max(self.worst.get(what, (0.0, "")), (value, kind))


def attacks(folder: Path, count: int, seed: int, real: Sequence[Path] = ()) -> Iterator[Attack]:
    """Yield handwritten attacks, then damaged copies of synthetic and of real timelines, this many in all.

    Args:
        folder: Where exports are made.
        count: How many.
        seed: Of the damage.
        real: Timelines to damage beside synthetic ones.
    """
    chance = Random(seed)  # noqa: S311 - repeatable, not secret
    return islice(chain(_printed(), _by_statement(folder), _large(folder), _damaged(folder, chance, real)), count)


def try_timelines(folder: Path, found: Iterator[Attack], real: Sequence[Path] = ()) -> Tally:
    """Give each timeline to the commands that accept one, and count the outcomes."""
    for module in _LOADED:  # before it forks: Python's compiler makes an error of syntax of a Ctrl-C
        import_module(f"rooflens.{module}")
    report = write_report(folder / "report.ncu-rep", ReportSpec([_spec(name) for name in (*_NAMES, *_names_in(real))]))
    tally = Tally()
    for number, (kind, ending, data) in enumerate(found):
        file = folder / f"{number:04}{ending}"
        file.write_bytes(data)
        tally.count += 1
        lost_count = len(tally.losses)
        before = set(folder.iterdir())
        for command in ("analyze", "annotate")[: 2 if ending.startswith(".json") else 1]:
            _try(tally, f"{file.name}, {kind}, {command}", _arguments(command, file, report), kind)
            _output(file).unlink(missing_ok=True)
        if beside := set(folder.iterdir()) - before:
            tally.losses.append(f"{file.name}, {kind}: left {sorted(beside)}")
        if len(tally.losses) == lost_count:
            file.unlink()
    return tally


def _try(tally: Tally, what: str, arguments: Sequence[str], kind: str) -> None:
    """Run a command to its end, and again until Ctrl-C or a signal to terminate, in turn."""
    status, seconds, peak_bytes, said = _run(arguments)
    how = "read" if status == 0 else "refused" if status == 1 and "error: " in said else "lost"
    tally.outcomes[kind, how] += 1
    tally.note("seconds", seconds, kind)
    tally.note("bytes", peak_bytes, kind)
    if how == "lost":
        tally.losses.append(f"{what}: status {status}: {said[-600:]}")
    if seconds > MOST_SECONDS or peak_bytes > MOST_BYTES:
        tally.losses.append(f"{what}: {seconds:.1f} s, {peak_bytes >> 20} MiB")
    number = (signal.SIGINT, signal.SIGTERM)[tally.runs // 2 % 2]
    _, stopped_s, _, said = _run(arguments, number, min(max(seconds / 2, 0.02), 1.0))
    if stopped_s > MOST_STOP_SECONDS:  # once more: another process may have had the core
        _, again_s, _, said = _run(arguments, number, min(max(seconds / 2, 0.02), 1.0))
        stopped_s = min(stopped_s, again_s)
    tally.runs += 2
    tally.note("seconds to stop", stopped_s, kind)
    if stopped_s > MOST_STOP_SECONDS or (
        "Traceback" in said and "Exception ignored in" not in said
    ):  # Python ignores it in its own callbacks
        tally.losses.append(f"{what}: {number.name} took {stopped_s:.1f} s: {said[-600:]}")


def _arguments(command: str, file: Path, report: Path) -> tuple[str, ...]:
    if (
        command == "analyze" and file.suffix == ".txt"
    ):  # a printed summary is a program, not only what is beside a report
        return (command, str(file), "--gpu", "h100-sxm", "--format", "json")
    if command == "analyze":
        return (command, str(report), "--timeline", str(file), "--format", "json")
    return (command, str(file), str(report), "-o", str(_output(file)), "--force")


def _output(file: Path) -> Path:
    return file.with_name(f"{file.name}.out.json")


def _run(
    arguments: Sequence[str], number: signal.Signals | None = None, after_s: float = 0.0
) -> tuple[int, float, int, str]:
    """Run a command in a fork: status, seconds (after a signal, if there is one), peak memory, and its output.

    This process's memory, which the child shares, is not counted.
    """
    out, into = os.pipe()
    own_bytes = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    started_s, before_s = time.monotonic(), 0.0
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the child can handle it
    if not (child := os.fork()):
        os.close(out)
        _serve(arguments, into)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.close(into)
    if number is not None:
        time.sleep(after_s)
        started_s, before_s = time.monotonic(), _processor_s(child)
        os.kill(child, number)
    with os.fdopen(out, errors="replace") as stream:
        said = stream.read()  # until it ends
    _, status, usage = os.wait4(child, 0)
    # Other programs run too, so the time on a processor counts, unless it hardly waited for one.
    seconds = min(time.monotonic() - started_s, usage.ru_utime + usage.ru_stime - before_s)
    return os.waitstatus_to_exitcode(status), seconds, max(0, (usage.ru_maxrss << 10) - own_bytes), said


def _processor_s(process: int) -> float:
    """Return the processor time of a process; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _serve(arguments: Sequence[str], into: int) -> None:
    """Run a command, and end this process with its status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CPU, (2 * int(MOST_SECONDS), 3 * int(MOST_SECONDS)))  # what hangs is ended
    os.dup2(into, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, errors="replace") for number in (1, 2))
    status = 0
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        import_module("rooflens.cli.group").main(arguments)
    except SystemExit as ended:
        status = int(ended.code or 0)
    except KeyboardInterrupt:
        status = 130
    except BaseException:  # noqa: BLE001 - told to the parent
        import traceback  # noqa: PLC0415 - seldom

        traceback.print_exc()
        status = 70
    finally:  # whatever a late signal raises, as this process must not continue as its parent
        os._exit(status)


def _spec(name: str) -> KernelSpec:
    metrics: dict[str, Any] = {"gpu__time_duration.sum": 1000.0, "launch__grid_size": 8, "launch__block_size": 128}
    return KernelSpec(name, metrics, grid=(8, 1, 1), block=(128, 1, 1))


def _names_in(real: Sequence[Path]) -> list[str]:
    """Return the names of some kernels of real timelines."""
    from rooflens.ingest.timelines.read import opened_timeline  # noqa: PLC0415 - not of interest where there is none

    found: dict[str, None] = {}
    for file in real:
        with opened_timeline(file) as timeline:
            found |= dict.fromkeys(event.name for event in islice(timeline.kernels, 50))
    return list(found)


def _launches(number: int = 20, step: int = 100) -> list[Launched]:
    return [Launched(_NAMES[at % 4], at * step, at * step + step // 2, called=at * step - 1) for at in range(number)]


def _export(folder: Path, change: Callable[[sqlite3.Connection], Any] = lambda _: None, **tables: Any) -> bytes:
    """Write an export, change it, and return its bytes."""
    path = folder / "made.sqlite"
    path.unlink(missing_ok=True)
    ranges = tables.pop("ranges", [("step", 0, 500, 1, 59), ("all", 0, 9000, 1, 60)])
    write_export(path, tables.pop("launches", _launches()), ranges=ranges, **tables)
    with closing(sqlite3.connect(path)) as database:
        database.text_factory = bytes
        change(database)
        database.commit()
    data = path.read_bytes()
    path.unlink()
    return data


def _scripts() -> Iterator[tuple[str, str]]:
    """Yield SQL statements that change exports."""
    view = f"DROP TABLE StringIds; CREATE VIEW StringIds AS {_ENDLESS};"
    yield "endless view", view
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    yield (
        "view of kernels",
        f"ALTER TABLE {kernel} RENAME TO k; CREATE VIEW {kernel} AS SELECT a.* FROM k a, k b, k c, k d, k e, k f;",
    )
    lie = "UPDATE sqlite_master SET type = 'table', rootpage = 2 WHERE name = 'StringIds';"
    yield "view called a table", f"{view} PRAGMA writable_schema = ON; {lie}"
    hide = "UPDATE sqlite_master SET name = 'hidden' WHERE name = 'StringIds';"
    show = "UPDATE sqlite_master SET name = 'StringIds' WHERE name = 'other';"
    other = f"CREATE TABLE other (id, value); {view} PRAGMA writable_schema = ON; {hide} {show}"
    yield "view under another name", other
    yield "trigger", "CREATE TRIGGER StringIds AFTER INSERT ON NVTX_EVENTS BEGIN SELECT 1; END;"
    yield "virtual table", "DROP TABLE StringIds; CREATE VIRTUAL TABLE StringIds USING fts5(id, value);"
    yield (
        "generated column",
        "DROP TABLE StringIds; CREATE TABLE StringIds (id INTEGER, value AS (hex(zeroblob(100000000))));",
    )
    yield "index on an expression", "CREATE INDEX i ON StringIds (length(hex(value)));"
    yield (
        "message of no text",
        (
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = CAST(x'ffc3' AS TEXT), "
            "sql = CAST(x'435245415445205441424c4520ff28' AS TEXT) WHERE name = 'StringIds';"
        ),
    )
    yield "names lead nowhere", "DELETE FROM StringIds;"
    yield "text in globalPid", f"UPDATE {kernel} SET globalPid = 'process', streamId = 'stream', deviceId = 'gpu';"
    yield "blobs in all columns", f"UPDATE {kernel} SET correlationId = x'ff', gridX = x'00', deviceId = zeroblob(99);"
    yield "times that run back", f"UPDATE {kernel} SET start = 5000 - start, end = start;"
    yield "times without end", f"UPDATE {kernel} SET end = 9223372036854775807 - start;"
    yield "times of 62 bits", f"UPDATE {kernel} SET end = 4611686018427387000 - start;"
    yield "times that are no numbers", f"UPDATE {kernel} SET start = 'NaN', end = 9e999;"
    yield "a long name", "UPDATE StringIds SET value = hex(zeroblob(3000000));"
    yield "a name of 40 MB", "UPDATE StringIds SET value = hex(zeroblob(20000000)) WHERE id = 2;"
    yield "long names of ranges", "UPDATE NVTX_EVENTS SET text = hex(zeroblob(3000000));"
    yield (
        "many columns",
        f"ALTER TABLE {kernel} ADD COLUMN a DEFAULT 'x';"
        + "".join(f"ALTER TABLE {kernel} ADD COLUMN c{at};" for at in range(200)),
    )


def _printed() -> Iterator[Attack]:
    """Yield tables of other profilers made to cost time and memory, or to be read wrongly."""
    for kind, text in _tables():
        yield f"printed, {kind}", ".txt", text.encode("utf-8", "surrogateescape")


def _tables() -> Iterator[tuple[str, str]]:
    """Yield printed texts."""
    by_shape = (*AVERAGES, "Input Shapes")
    kernels = [summed(at + 1, 1, f"{at}" + "k" * 200) for at in range(20_000)]
    yield "rows without end", separated(KERN_SUM, kernels)
    yield "rows under dashes", column(KERN_SUM, kernels)
    yield "names of 200 kB", separated(KERN_SUM, [summed(9, 1, f"{at}" + "k" * 200_000) for at in range(50)])
    yield "one line of 30 MB", "Total Time (ns)" + " Instances" * 3_000_000 + " Name"
    yield "headings without end", "Total Time (ns)  Instances  Name\n" * 100_000
    yield "headings in one line", "Total Time (ns)  Instances  " * 100_000
    yield "starts in one line", "Start (ns)" * 100_000
    yield "averages in one line", "Self CPU %" * 100_000
    yield "columns without end", column([*KERN_SUM[:3], *(f"c{at}" for at in range(2000)), "Name"], [])
    yield "dashes without end", ("--  " * 1_000_000 + "\n") * 8
    yield "bars without end", "| Total Time (ns) | Instances | Name |\n" + "|---" * 1_000_000
    yield "quotes that never close", separated(KERN_SUM, kernels[:5]) + '1,2,3,4,5,6,7,8,"' + "x,\n" * 1_000_000
    yield "numbers of 5,000 digits", separated(KERN_SUM, [("1", "9" * 5000, "9" * 5000, *"12345", "f")] * 100)
    yield (
        "numbers beyond any",
        separated(KERN_SUM, [("1", "1e99", "1e99", *"12345", "f"), ("1", "nan", "inf", *"12345", "f")]),
    )
    yield "no launches", separated(KERN_SUM, [("1", "10", "0", *"12345", "f")])
    yield "times of 10^17", separated(KERN_SUM, [summed(9 * 10**17, 10**17, "f")] * 3)
    for shapes in (
        "[" * 5000 + "]" * 5000,
        "[[" + "9" * 5000 + "]]",
        "[[-1]]",
        "[[1e9]]",
        "__import__('os')",
        "[[0, 0], [0, 0]]",
    ):
        row = average("aten::mm", 1, "1.000us", "9.000ms", shapes)
        yield "shapes", averages([row], by_shape, shapes_width=max(80, len(shapes)))
    many = f"[{', '.join(['[2, 2]'] * 9000)}]"
    yield (
        "9,000 operands",
        averages([average("aten::mm", 1, "1.000us", "9.000ms", many)], by_shape, shapes_width=len(many)),
    )
    yield "equal times", averages([average(f"op{at % 2}", 1, f"{at % 2}.000us", "9.000ms") for at in range(20_000)])
    yield "escape codes", averages([average("\x1b]0;title\x07\x1b[2J" * 100, 1, "0.000us", "9.000ms")])
    yield "starts that run back", separated(TRACE, [_launched_in_table(1000 - at, 5) for at in range(900)])
    yield "starts beyond any", separated(TRACE, [_launched_in_table(9 * 10**17, 9 * 10**17) for _ in range(9)])
    yield "cut in a row", column(KERN_SUM, kernels[:50])[:-400]


def _launched_in_table(start_ns: int, time_ns: int) -> tuple[str, ...]:
    sizes = ("4294967296", "-1", "x", "128", "1", "1")
    return (str(start_ns), str(time_ns), "1", *sizes, *("",) * 7, "GPU (99999)", "1", "7", "f")


def _by_statement(folder: Path) -> Iterator[Attack]:
    """Yield exports changed by SQL."""
    for kind, script in _scripts():
        yield kind, ".sqlite", _export(folder, lambda database, script=script: database.executescript(script))  # type: ignore[misc]


def _large(folder: Path) -> Iterator[Attack]:
    """Yield exports made to cost time and memory, and traces."""
    nested = [(f"range {at}", at * 10, 10**6 - at, 1, 59) for at in range(10_000)]
    yield "nested ranges", ".sqlite", _export(folder, launches=_launches(4000, 25), ranges=nested)
    shared = [(f"range {at}", at, 10**6 - at, at, 60) for at in range(5000)]
    threads = [one._replace(thread=at) for at, one in enumerate(_launches(4000, 25))]
    yield "threads times ranges", ".sqlite", _export(folder, launches=threads, ranges=shared)
    copies = [(0, at, 10**9 + at) for at in range(20_000)]
    yield "copies without end", ".sqlite", _export(folder, launches=_launches(20_000, 25), copies=copies)
    for table, name in (("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName"), ("NVTX_EVENTS", "text")):
        for length in (1_000_000, 15_000_000):
            yield f"a {name} of {length:,} bytes in 680 rows", ".sqlite", _shared_text(folder, table, name, length)
    for depth in (1, 4):
        yield f"pages that stand {depth} times in themselves", ".sqlite", _shared_pages(folder, depth)
    wal = bytearray(_export(folder))
    wal[18:20] = b"\2\2"
    yield "a write-ahead log is named", ".sqlite", bytes(wal)
    yield "UTF-16", ".sqlite", _utf16(folder)
    yield from (
        (kind, ".json.gz", gzip.compress(data.encode("utf-8", "surrogateescape"), 6)) for kind, data in _texts()
    )


def _shared_text(folder: Path, table: str, column: str, length: int) -> bytes:
    """Return an export with a table whose rows are all the same cell with a long text."""

    def change(database: sqlite3.Connection) -> None:
        database.execute(f"DELETE FROM {table} WHERE rowid > (SELECT min(rowid) FROM {table})")
        database.execute(f"UPDATE {table} SET {column} = ?", ("x" * length,))

    data = bytearray(_export(folder, change))
    at = (_root(folder, data, table) - 1) * _PAGE_BYTES
    data[at + 3 : at + 5] = _MOST_CELLS.to_bytes(2, "big")
    data[at + 8 : at + 8 + 2 * _MOST_CELLS] = data[at + 8 : at + 10] * _MOST_CELLS
    return bytes(data)


def _root(folder: Path, data: bytes, table: str) -> int:
    """Return the page number where a table begins."""
    path = folder / "pages.sqlite"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    path.unlink()
    return int(root)


def _shared_pages(folder: Path, depth: int) -> bytes:
    """Return an export whose kernel table has inner pages whose children are all the same page."""
    data = bytearray(_export(folder, launches=_launches(2000, 25)))
    at = (_root(folder, data, "CUPTI_ACTIVITY_KIND_KERNEL") - 1) * _PAGE_BYTES
    leaf = int.from_bytes(data[at + 8 : at + 12], "big")
    child = leaf
    for level in range(depth):
        page = bytearray(_PAGE_BYTES)
        cells = 500
        page[0:12] = bytes((5, 0, 0)) + cells.to_bytes(2, "big") + b"\0\0\0" + child.to_bytes(4, "big")
        for cell in range(cells):
            place = _PAGE_BYTES - 5 * (cell + 1)
            page[12 + 2 * cell : 14 + 2 * cell] = place.to_bytes(2, "big")
            page[place : place + 5] = child.to_bytes(4, "big") + bytes((cell % 127,))
        page[5:7] = (_PAGE_BYTES - 5 * cells).to_bytes(2, "big")
        if level == depth - 1:
            data[at : at + _PAGE_BYTES] = page
        else:
            data += page
            child = len(data) // _PAGE_BYTES
    data[28:32] = (len(data) // _PAGE_BYTES).to_bytes(4, "big")
    return bytes(data)


def _utf16(folder: Path) -> bytes:
    path = folder / "utf16.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA encoding = 'UTF-16'")
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, shortName)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 0, 'rare')")
    data = path.read_bytes()
    path.unlink()
    return data


def _event(category: str, name: Any, ts: Any, dur: Any, **rest: Any) -> dict[str, Any]:
    args = {key.replace("_", " "): value for key, value in rest.pop("args", {}).items()}
    return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1, "args": args, **rest}


def _launched(number: int = 20, step: int = 100) -> list[dict[str, Any]]:
    """Return kernels with their launches."""
    found = []
    for at in range(number):
        args = {"correlation": at, "device": 0, "stream": 7, "grid": [8, 1, 1], "block": [128, 1, 1]}
        found.append(_event("kernel", _NAMES[at % 4], at * step, step // 2, args=args, tid=7))
        found.append(_event("cuda_runtime", "cudaLaunchKernel", at * step, 1, args={"correlation": at}))
    return found


def _texts() -> Iterator[tuple[str, str]]:
    """Yield traces as text."""

    def trace(*events: Any) -> str:
        return json.dumps({"traceEvents": [*_launched(), *events]})

    def with_text(text: str) -> str:
        return trace(_event("cpu_op", "HERE", 0, 9)).replace("HERE", text)

    yield "bad escapes", with_text("\\q" * 1_000_000)
    yield "bad escapes of Unicode", with_text("\\u12 \\ud800 \\\\p" * 100_000)
    yield "escapes cut by chunks", with_text("\\\\\\p\\u00e9" * 300_000)
    yield "a bad escape in each event", json.dumps([*_launched(20_000)]).replace("rare", "\\p\\rare")
    ranges = [_event("user_annotation", f"range {at}", at, 10**6 - 2 * at) for at in range(6000)]
    yield "ranges times launches", json.dumps([*_launched(6000, 1), *ranges])
    operators = [_event("cpu_op", f"aten::{at}", at, 10**6 - 2 * at) for at in range(6000)]
    yield "operators times launches", json.dumps([*_launched(6000, 1), *operators])
    copies = [_event("gpu_memcpy", "copy", at, 10**7, args={"device": 0}) for at in range(10_000)]
    yield "copies without end", json.dumps([*_launched(10_000, 10), *copies])
    for depth in (900, 980, 100_000):
        deep = "[" * depth + "]" * depth
        yield f"nested {depth} times", trace(_event("cpu_op", "x", 0, 9)).replace('"cpu_op"', deep)
        yield f"kernel's arguments nested {depth} times", json.dumps(_launched()).replace("[8, 1, 1]", deep)
        yield (
            f"call stack nested {depth} times",
            trace(_event("cpu_op", "x", 0, 9, args={"Call_stack": "HERE", "Sequence_number": 1}))
            .replace('"HERE"', deep)
            .replace('"pid": 1', f'"pid": {deep}'),
        )
    yield "a value of empty objects", '{"x": [' + "{}," * 6_000_000 + '0], "traceEvents": []}'
    yield "a value of small objects", '{"x": [' + '{"a":1},' * 1_000_000 + '0], "traceEvents": []}'
    yield "a text without end", '[{"name": "' + "x" * 30_000_000
    yield "kernels without end", "[" + json.dumps(_launched(1)[0]) + ("," + json.dumps(_launched(1)[0])) * 50_000
    yield "names that all differ", json.dumps([_event("kernel", f"{at}" + "k" * 60_000, at, 1) for at in range(900)])
    yield "lambdas", json.dumps([_event("kernel", "[lambda(" * 8000 + f"{at}", at, 1) for at in range(200)])
    yield "mangled lengths", json.dumps([_event("kernel", "_Z" + "9" * 9000, 0, 1), _event("kernel", "_ZN9999x", 0, 1)])
    yield "mangled parts", json.dumps([_event("kernel", "_ZN" + "1a" * 30_000 + f"{at}", at, 1) for at in range(50)])
    yield "numbers of 5,000 digits", trace(_event("cpu_op", "x", 0, 9)).replace('"tid": 1', '"tid": ' + "9" * 5000)
    yield "numbers of 4,000 digits", trace().replace('"device": 0', '"device": ' + "9" * 4000)
    yield "grids of 4,000 digits", trace().replace("[8, 1, 1]", f"[{'9' * 4000}, 1, 1]")
    yield (
        "times of 62 bits",
        json.dumps([_event("kernel", _NAMES[at % 2], (at - 50) * 4 * 10**13, 10**15) for at in range(100)]),
    )
    yield (
        "times that are no numbers",
        json.dumps([*_launched(), *(_event("kernel", "rare", float(one), 1) for one in ("nan", "inf", "-inf"))]),
    )
    yield (
        "times that run back",
        json.dumps([_event("kernel", "rare", 100 - at, -1 if at % 2 else 5) for at in range(100)]),
    )
    tiny = trace(_event("kernel", "rare", "1e999999999", 1)).replace('"dur": 1,', '"dur": 1e-999999999,')
    yield "times with exponents", tiny
    yield (
        "keys twice",
        f'{{"traceEvents": [{{"name": "x", {json.dumps(_launched()[0])[1:-1]}, "ts": 5, "args": {{}}}}]}}',
    )
    yield "a stack without end", trace(_event("cpu_op", "x", 0, 10**6, args={"Call_stack": "a.py(" * 1_000_000}))
    yield "undecodable", trace(_event("kernel", "rare\udcff\udcfe", 0, 1)).replace("\\udcff", "\udcff")
    yield "two layers of events", json.dumps({"traceEvents": [{"traceEvents": _launched()}]})


def _damaged(folder: Path, chance: Random, real: Sequence[Path]) -> Iterator[Attack]:
    """Yield damaged copies without end."""
    exports = [_export(folder), *(one.read_bytes() for one in real if one.suffix == ".sqlite")]
    traces = [json.dumps({"traceEvents": _launched()}).encode()]
    traces += [gzip.decompress(one.read_bytes()) for one in real if one.suffix == ".gz"]
    while True:
        yield "export, bytes", ".sqlite", _damaged_bytes(chance.choice(exports), chance)
        yield "export, values", ".sqlite", _with_odd_values(folder, chance.choice(exports), chance)
        yield "trace, bytes", ".json", _damaged_bytes(chance.choice(traces), chance)
        yield "trace, values", ".json", _with_odd_members(chance.choice(traces), chance)


def _damaged_bytes(data: bytes, chance: Random) -> bytes:
    """Flip, cut, repeat or remove bytes."""
    copy, kind = bytearray(data), chance.randrange(4)
    if kind == 0:
        return bytes(copy[: chance.randrange(len(copy))])
    for _ in range(chance.choice((1, 8, 64))):
        at = chance.randrange(len(copy))
        if kind == 1:
            copy[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            copy[at : at + 4] = chance.randbytes(4)
        else:
            length = chance.choice((1, 100, _PAGE_BYTES))
            copy[at:at] = copy[at : at + length]
    return bytes(copy)


def _with_odd_values(folder: Path, data: bytes, chance: Random) -> bytes:
    """Put odd values into some cells of an export."""
    path = folder / "values.sqlite"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as database, database:
        for _ in range(chance.choice((1, 3, 10))):
            table = chance.choice(_TABLES)
            column = chance.choice([row[1] for row in database.execute(f"PRAGMA table_info({table})")])
            where = chance.choice(("1", "rowid % 2", f"rowid = (SELECT min(rowid) FROM {table})"))
            query = f'UPDATE OR IGNORE {table} SET "{column}" = ? WHERE {where}'
            try:
                database.execute(query, (chance.choice(_ODD),))
            except sqlite3.IntegrityError:
                continue
    found = path.read_bytes()
    path.unlink()
    return found


def _with_odd_members(data: bytes, chance: Random) -> bytes:
    """Put odd values into some events of a trace, repeat some and remove some."""
    trace = json.loads(data)
    events = trace["traceEvents"]
    for _ in range(chance.choice((1, 5, 50))):
        at = chance.randrange(len(events))
        event = events[at] = dict(events[at])
        owner = event["args"] = dict(event["args"]) if isinstance(event.get("args"), dict) else {}
        owner = chance.choice((event, owner)) or event
        key = chance.choice([*owner])
        odd = chance.choice([one for one in _ODD if not isinstance(one, bytes)] + [[[]], {}, True, [1, 2], "1e400"])
        kind = chance.randrange(8)
        if kind == 0:
            events.insert(chance.randrange(len(events)), event)
        elif kind == 1:
            del owner[key]
        else:
            owner[key] = odd
    return json.dumps(trace).replace("HERE", "\\q").encode("utf-8", "surrogateescape")
