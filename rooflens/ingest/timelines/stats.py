"""Read what `nsys stats` prints: summaries of kernels, copies, calls and ranges, and traces of each launch.

Tables are known by their columns, which stayed the same while reports were renamed (`gpukernsum` in 2021,
`cuda_gpu_kern_sum` since 2023): https://docs.nvidia.com/nsight-systems/UserGuide/index.html#report-scripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rooflens.errors import InputError
from rooflens.format import bounded_name, count, some
from rooflens.ingest.timelines.printed import NS_OF_UNIT, PrintedTable, nanoseconds, whole, without_unit
from rooflens.model.program.timeline import NSYS, BusyEvent, KernelEvent, Timeline
from rooflens.model.program.totals import KernelTotal, Total, TotalOf, Totals

if TYPE_CHECKING:
    from rooflens.model.unprofiled import Shape

KIND = f"{NSYS}, printed"
"""The kind of summaries; what has the time of each launch is a timeline as an export is."""

TRACE_HINT = (
    "gaps and order need `nsys stats --report cuda_gpu_trace --format csv REPORT.nsys-rep`, or "
    "`nsys export --type sqlite REPORT.nsys-rep`"
)
KERNELS_HINT = "give the kernels too: `nsys stats --report cuda_gpu_kern_sum REPORT.nsys-rep`"

_UNIT = re.compile(r"\((\w+)\)")
_COPY = re.compile(r"\[?CUDA mem(?:cpy|set)", re.IGNORECASE)
_DEVICE = re.compile(r"(.*?)\s*\((\d{1,4})\)")
_THREE_SIZES = re.compile(r"\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*")
_CUT_MARKS = ("...", "\u2026")
_MOST_BLOCKS = 1 << 31
_HOST_ONLY = ("osrt_sum", "osrtsum")


class _ReportForm(NamedTuple):
    """A report of `nsys stats`, by the columns that only it has.

    Attributes:
        title: Its name today.
        needs: Headings without units that it has.
        name: Heading of what its rows are of.
        lacks: Headings of other reports with the same needs.
        of: What its rows are of; None for launches one by one.
    """

    title: str
    needs: frozenset[str]
    name: str
    of: TotalOf | None
    lacks: frozenset[str] = frozenset()


_FORMS = (
    _ReportForm("cuda_gpu_trace", frozenset({"start", "duration", "strm", "name"}), "name", None),
    _ReportForm("cuda_kern_exec_trace", frozenset({"kernel start", "kernel dur", "kernel name"}), "kernel name", None),
    _ReportForm("cuda_gpu_sum", frozenset({"total time", "instances", "category", "operation"}), "operation", "kernel"),
    _ReportForm(
        "cuda_gpu_kern_gb_sum",
        frozenset({"total time", "instances", "gridxyz", "blockxyz", "name"}),
        "name",
        "kernel",
        frozenset({"range", "style"}),
    ),
    _ReportForm(
        "nvtx_sum",
        frozenset({"total time", "instances", "range"}),
        "range",
        "range",
        frozenset({"kernel name", "name"}),
    ),
    _ReportForm(
        "cuda_gpu_kern_sum",
        frozenset({"total time", "instances", "name"}),
        "name",
        "kernel",
        frozenset({"range", "style"}),
    ),
    _ReportForm("cuda_api_sum", frozenset({"total time", "num calls", "name"}), "name", "call"),
    _ReportForm(
        "cuda_gpu_mem_time_sum",
        frozenset({"total time", "count", "operation"}),
        "operation",
        "copy",
        frozenset({"category"}),
    ),
    _ReportForm(
        "cuda_gpu_mem_time_sum",
        frozenset({"total time", "operations", "operation"}),
        "operation",
        "copy",
        frozenset({"category"}),
    ),
)
_OF_KERNELS = ("cuda_gpu_kern_gb_sum", "cuda_gpu_kern_sum", "cuda_gpu_sum")
"""Summaries of kernels: the one that tells most apart first, as they are all of the same time."""

_COUNTS = ("instances", "num calls", "count", "operations")


def form_of(columns: Sequence[str]) -> _ReportForm | None:
    """Return the report that has these headings; None if it is none of those that are read."""
    bare = frozenset(map(without_unit, columns))
    return next((form for form in _FORMS if form.needs <= bare and not form.lacks & bare), None)


def has_kernels(tables: Iterable[PrintedTable]) -> bool:
    """Return whether a table is of kernels."""
    forms = [form_of(one.columns) for one in tables]
    return any(form is not None and (form.of is None or form.of == "kernel") for form in forms)


def read_stats(tables: Iterable[PrintedTable], source: str) -> Timeline | Totals:
    """Make one timeline, or one summary, of the tables that nsys printed; no kernel counts twice.

    Of launches one by one a timeline is made; of summaries the one that tells kernels apart best.

    Raises:
        InputError: No table has kernels.
    """
    found: dict[str, list[_StatsTable]] = {}
    for printed in tables:
        form = form_of(printed.columns)
        if form is not None and not (form.of == "call" and printed.title in _HOST_ONLY):
            found.setdefault(form.title, []).append(_StatsTable(form, printed))
    notes: list[str] = []
    for name, several in found.items():
        own, repeated = _once(several)
        found[name] = [own]
        if repeated:
            notes.append(f"{count(len(several), 'table')} `{name}` of different runs: the first is read")
    for name in ("cuda_gpu_trace", "cuda_kern_exec_trace"):
        if name in found:
            return _timeline(found[name][0], source, notes)
    kernels = next((found[name][0] for name in _OF_KERNELS if name in found), None)
    if kernels is None:
        have = some(f"`{name}`" for name in found) or "no table that is read"
        raise InputError(f"`{source}` holds no kernels: it has {have}", KERNELS_HINT)
    return _totals(kernels, found, source, notes)


class _StatsTable:
    def __init__(self, form: _ReportForm, printed: PrintedTable) -> None:
        self.form, self.printed = form, printed
        self.stray_count = printed.stray_count

    def place(self, *names: str) -> int | None:
        """Return the position of a column."""
        return self.printed.place(*names)

    def factor(self, place: int) -> float:
        """Return how many ns the unit of a column has."""
        unit = _UNIT.search(self.printed.columns[place])
        return NS_OF_UNIT.get(unit[1], 1.0) if unit else 1.0

    def times(self, *names: str) -> Callable[[Sequence[str]], float | None]:
        """Return the reader of a column of times."""
        place = self.place(*names)
        if place is None:
            return lambda _: None
        factor = self.factor(place)
        return lambda row: nanoseconds(row[place], factor)

    def counts(self, *names: str) -> Callable[[Sequence[str]], int | None]:
        """Return the reader of a column of whole numbers."""
        place = self.place(*names)
        return (lambda _: None) if place is None else (lambda row: whole(row[place]))

    def texts(self, *names: str) -> Callable[[Sequence[str]], str]:
        """Return the reader of a column of texts."""
        place = self.place(*names)
        return (lambda _: "") if place is None else (lambda row: row[place])

    def named(self) -> Callable[[Sequence[str]], str]:
        """Return the reader of what rows are of."""
        text = self.texts(self.form.name)
        return lambda row: bounded_name(text(row))


def _once(tables: Sequence[_StatsTable]) -> tuple[_StatsTable, bool]:
    """Return the first of several tables of one `nsys stats` report, and whether another has rows that it lacks."""
    first, *others = tables
    rows = set(first.printed.rows)
    return first, any(not set(one.printed.rows) <= rows and not rows <= set(one.printed.rows) for one in others)


def _totals(
    kernels: _StatsTable, tables: Mapping[str, Sequence[_StatsTable]], source: str, notes: Sequence[str]
) -> Totals:
    rows, copies, left_out = _kernels_and_copies(kernels)
    if not rows:
        raise InputError(f"`{source}` holds no kernels: its table `{kernels.form.title}` has none", KERNELS_HINT)
    for table in tables.get("cuda_gpu_sum", ()) if not copies else ():
        _, copies, _ = _kernels_and_copies(table)
    if "cuda_gpu_mem_time_sum" in tables:
        copies = []
    others = [
        one for title in ("cuda_gpu_mem_time_sum", "cuda_api_sum", "nvtx_sum") for one in _other_totals(tables, title)
    ]
    said = [
        f"totals of `nsys stats`: when kernels ran, their gaps and streams are not in it; {TRACE_HINT}",
        "nsys knows no sizes of operators, so that no kernel has a floor",
    ]
    if any(one.name.endswith(_CUT_MARKS) for one in rows):
        said.append("nsys cut long names at 100 characters: `--format csv` prints them whole")
    return Totals(source, KIND, tuple(rows), (*copies, *others), (*said, *_lost(left_out), *notes), "nsys")


def _kernels_and_copies(table: _StatsTable) -> tuple[list[KernelTotal], list[Total], int]:
    """Read the rows of a summary of the GPU's work, and count those that cannot be read."""
    rows, copies, left_out = [], [], table.stray_count
    total, number, name = table.times("total time"), table.counts(*_COUNTS), table.named()
    middle, category = table.times("med", "median"), table.texts("category")
    grid, block = table.texts("gridxyz"), table.texts("blockxyz")
    for row in table.printed.rows:
        time_ns, launches, label = total(row), number(row), name(row)
        if time_ns is None or not launches or not label:
            left_out += 1
        elif _COPY.match(label) or "MEM" in category(row).upper():
            copies.append(Total("copy", label, launches, round(time_ns)))
        else:
            usual_ns = middle(row)
            usual_ns = time_ns / launches if usual_ns is None else usual_ns
            rows.append(
                KernelTotal(
                    label,
                    launches,
                    round(time_ns),
                    round(usual_ns),
                    _launch_shape(grid(row)),
                    _launch_shape(block(row)),
                )
            )
    return rows, copies, left_out


def _lost(left_out: int) -> Iterator[str]:
    if left_out:
        yield f"left out {count(left_out, 'line')} that could not be read: cut or broken"


def _other_totals(tables: Mapping[str, Sequence[_StatsTable]], title: str) -> Iterator[Total]:
    """Yield the rows of a summary of something else than kernels."""
    for table in tables.get(title, ()):
        total, number, name = table.times("total time"), table.counts(*_COUNTS), table.named()
        for row in table.printed.rows:
            time_ns, amount, label = total(row), number(row), name(row)
            if time_ns is not None and amount and label and table.form.of is not None:
                yield Total(table.form.of, label, amount, round(time_ns))


def _timeline(table: _StatsTable, source: str, notes: list[str]) -> Timeline:
    is_api = table.form.title == "cuda_kern_exec_trace"
    start, took = (
        (table.times("kernel start"), table.times("kernel dur"))
        if is_api
        else (table.times("start"), table.times("duration"))
    )
    name, stream, device = table.named(), table.counts("strm"), table.texts("device", "devid")
    kernels, others, gpus = [], [], dict[str, None]()
    left_out, shapes = table.stray_count, _shapes(table)
    for row in table.printed.rows:
        start_ns, time_ns, label = start(row), took(row), name(row)
        if start_ns is None or time_ns is None or not label:
            left_out += 1
            continue
        gpu, index = _device(device(row))
        at, lasts, on = round(start_ns), round(time_ns), stream(row) or 0
        if _COPY.match(label):
            others.append(BusyEvent(at, lasts, index, on))
            continue
        if gpu:
            gpus[gpu] = None
        kernels.append(KernelEvent(label, *shapes(row), at, lasts, index, on))
    if not kernels:
        raise InputError(f"`{source}` holds no kernels: its table `{table.form.title}` has none", KERNELS_HINT)
    if is_api:
        notes.append("copies and streams are not in this table: gaps may be copies; `cuda_gpu_trace` has them")
    kernels.sort(key=lambda one: (one.start_ns, one.duration_ns))
    others.sort()
    names = [*gpus]
    return Timeline(source, NSYS, kernels, others, names[0] if len(names) == 1 else None, (*_lost(left_out), *notes))


def _shapes(table: _StatsTable) -> Callable[[Sequence[str]], tuple[Shape, Shape]]:
    """Return the reader of grid and block, from a column each, or from a column of each size."""
    if table.place("gridxyz") is not None:
        grid, block = table.texts("gridxyz"), table.texts("blockxyz")
        return lambda row: (_launch_shape(grid(row)), _launch_shape(block(row)))
    sizes = [[table.texts(f"{kind}{axis}") for axis in "xyz"] for kind in ("grd", "blk")]

    def read(row: Sequence[str]) -> tuple[Shape, Shape]:
        grid, block = (_launch_shape(" ".join(one(row).replace(",", "") for one in each)) for each in sizes)
        return grid, block

    return read


def _launch_shape(text: str) -> Shape:
    if not (found := _THREE_SIZES.fullmatch(text[:64])):
        return None
    x, y, z = (int(part) for part in found.groups())
    return (x, y, z) if all(0 < one < _MOST_BLOCKS for one in (x, y, z)) else None


def _device(text: str) -> tuple[str, int]:
    """Return name and index of a device: `NVIDIA A100-SXM4-40GB (0)`, or only the index."""
    if found := _DEVICE.fullmatch(text[:200]):
        return found[1], int(found[2])
    index = whole(text[:10])
    return "", index if index is not None else 0
