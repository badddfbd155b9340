"""The table of kernels: a line for each, the largest possible savings first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from rooflens.errors import UnknownKeyError
from rooflens.format import count, duration, factor, percent, quantity, si, significant
from rooflens.model.catalogue import KernelQuantity, kernel_quantities
from rooflens.model.keys import short_names
from rooflens.model.ranking import ORDER, in_order, opportunities
from rooflens.model.records import ratio
from rooflens.model.roofline.work import MainWork, main_work
from rooflens.model.summary import KernelSummary, Launch
from rooflens.report.document import Column, Document, Span, Table, Words, code
from rooflens.report.summary import launch_counts
from rooflens.report.words.gain_and_limit import TODAY, limit_cell
from rooflens.report.words.labels import UNITS
from rooflens.report.words.verdict import best_move
from rooflens.report.words.verdicts import MARKS, verdict_cell

_MISSING = "-"
LEGEND = (ORDER, f"limit: {TODAY}; far: over 10x", f"{MARKS}; `rooflens about columns`")
"""Lines that explain the table's order and marks; printed below it."""

_NAME = Column("kernel", fit="name", least=18, most=48)
_REPORT = Column("report", fit="name", worth=6, most=24)
_KERNEL_COLUMNS = (
    Column("time", right=True, worth=9),
    Column("share", right=True, worth=4),
    Column("AI at DRAM", right=True, worth=2),
    Column("FLOP/s of roof", worth=1),
    Column("verdict", fit="wrap", worth=8, least=22, most=28),
    Column("gain", right=True, worth=7),
    Column("limit", right=True, worth=7),
    Column("first move", fit="prose", least=60),
)


_LAUNCH = (Column("a launch", right=True, worth=3), Column("in ncu", right=True, worth=3))
"""Time of a launch without the profiler, and of the one in the report: where both are known."""


def kernels_document(  # noqa: PLR0913 - what can be chosen of a table
    kernels: Sequence[KernelSummary],
    top: int | None = None,
    names: Sequence[str] = (),
    *,
    each: bool = False,
    are_versions: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Document:
    """Make a table of each GPU, the GPU with most time first.

    Args:
        kernels: Kernels or single launches, of any number of reports.
        top: Show this many rows for each GPU, and count the others.
        names: Quantities of the catalogue that the table shows instead of its default columns, also by the headings of
            tables.
        each: Make a row for each of the kernels; otherwise one for all with the same move, unless columns are chosen.
        labels: What reports are called, by digest; by default their files.
        are_versions: The reports are versions of a program: nothing is added up over them, and shares are of their own.

    Raises:
        UnknownKeyError: There is no such quantity.
    """
    chosen = [_quantity(name) for name in names if name.casefold() != _NAME.heading]
    gpus: defaultdict[str, list[KernelSummary]] = defaultdict(list)
    for kernel in kernels:
        gpus[kernel.analysis.kernel.gpu or "GPU not named in the report"].append(kernel)
    by_time = sorted(gpus.items(), key=lambda item: -_total_ns(item[1]))
    view = _View(top, tuple(chosen), labels, each or bool(chosen), are_versions)
    return tuple(_section(gpu, members, view) for gpu, members in by_time)


class _View(NamedTuple):
    """What can be chosen of the tables, as `kernels_document` takes it."""

    top: int | None
    chosen: tuple[KernelQuantity, ...]
    labels: Mapping[str, str]
    each: bool
    are_versions: bool


_OF_HEADS = {
    "time": "kernel_time_ns",
    "a launch": "in_program_time_ns",
    "in ncu": "duration_ns",
    "ai at dram": "dram_intensity",
    "ai": "dram_intensity",
    "flop/s of roof": "flop_per_s",
    "first move": "verdict_sentence",
}
"""Heads of the usual table whose cell is made of several quantities, or has another label -> the one asked for."""


def _quantity(name: str) -> KernelQuantity:
    """Find a quantity by its name or by its heading in a table, ignoring case."""
    known = kernel_quantities()
    if name in known:
        return known[name]
    heads = {(one.key.label or one.label).casefold(): called for called, one in reversed(known.items())} | _OF_HEADS
    asked = name.casefold()
    if asked in heads:
        return known[heads[asked]]
    raise UnknownKeyError("column", name, list(known), "rooflens about columns", heads)


def _total_ns(kernels: Sequence[KernelSummary]) -> float:
    return sum(kernel.duration_ns or 0.0 for kernel in kernels)


def _section(gpu: str, kernels: Sequence[KernelSummary], view: _View) -> Table:
    """Show the kernels of one GPU, failed ones last; shares are of its GPU time, those of versions of their own."""
    chosen = view.chosen
    total_ns = 0.0 if view.are_versions else _total_ns(kernels)
    listed = in_order(kernels) if view.each else opportunities(kernels)
    several = len({kernel.analysis.kernel.digest for kernel in kernels}) > 1
    has_program = any(kernel.analysis.in_program for kernel in listed) and not chosen
    columns = tuple(map(_column, chosen)) or _KERNEL_COLUMNS
    columns = (*columns[:2], *_LAUNCH, *columns[2:]) if has_program else columns
    rows = tuple(
        (
            _name_with_launches(kernel),
            *((_report_name(kernel, view.labels),) if several else ()),
            *(
                [shown(one, one.value(kernel)) for one in chosen]
                if chosen
                else _kernel_cells(kernel, total_ns, has_program=has_program)
            ),
        )
        for kernel in listed[: view.top]
    )
    heads = (_NAME, *((_REPORT,) if several else ()), *columns)
    hidden = [] if view.top is None or view.are_versions else listed[view.top :]
    left = ratio(_total_ns(hidden), total_ns) if hidden else None
    rest = f", {percent(left)} of GPU time" if left is not None else ""
    return Table(heads, rows, _gpu_heading(gpu, kernels, total_ns), amount=len(listed), rest=rest)


def _gpu_heading(gpu: str, kernels: Sequence[KernelSummary], total_ns: float) -> str:
    sound = [kernel for kernel in kernels if not kernel.is_failed]
    names = len({(kernel.name, kernel.analysis.kernel.digest) for kernel in sound})
    launches = sum(kernel.launch_count for kernel in sound)
    failed = sum(len(kernel.launches) for kernel in kernels if kernel.is_failed)
    counted = ", ".join((count(names, "kernel"), *launch_counts(launches, failed, names)))
    clocks = [
        (launch.duration_ns or 0.0, hz)
        for kernel in sound
        for launch in kernel.launches
        if (hz := launch.analysis.kernel.counters.get("sm_clock_hz")) is not None
    ]
    clock = f", SM {si(max(clocks, key=itemgetter(0))[1], 'Hz')}" if clocks else ""
    how = " without the profiler" if any(kernel.analysis.in_program for kernel in sound) else ""
    return f"{gpu}{clock}: {counted}" + (f", {duration(total_ns)} of GPU time{how}" if total_ns else "")


def _report_name(kernel: KernelSummary, labels: Mapping[str, str]) -> str:
    return labels.get(kernel.analysis.kernel.digest) or kernel.report.removesuffix(".ncu-rep")


def _name_with_launches(kernel: KernelSummary) -> Words:
    """Write a name with its launches: `gemm<128, 64> x12`."""
    times = f" x{kernel.launch_count:,}" if kernel.launch_count > 1 else ""
    return code(kernel.shown if kernel.shown.strip() else "(no name)"), times


def _column(quantity: KernelQuantity) -> Column:
    is_number = quantity.kind in {"real", "count"}
    return Column(
        quantity.label.lower() if not quantity.key.label else quantity.label,
        right=is_number,
        fit="keep" if is_number else "name",
    )


def shown(column: KernelQuantity, value: Any) -> str:
    """Write a value of the catalogue for people, scaled and with its unit."""
    if value is None:
        return _MISSING
    if column.kind == "truth":
        return "yes" if value else "no"
    if column.kind == "text":
        return str(value)
    if column.kind in {"texts", "counts"}:
        return " ".join(map(str, value)) or _MISSING
    return quantity(value, column.key.unit)


def _kernel_cells(kernel: KernelSummary, total_ns: float, *, has_program: bool) -> tuple[Words, ...]:
    """Write a kernel: the times of all its launches, and the values of the median launch."""
    analysis = kernel.analysis
    share = ratio(kernel.duration_ns, total_ns) if total_ns else kernel.time_share
    verdict = analysis.verdict
    work = main_work(analysis)
    intensity = work.intensity(analysis.levels["dram"])
    alone_ns = analysis.in_program.time_ns if analysis.in_program else None
    launch_ns = (alone_ns, analysis.kernel.duration_ns) if has_program else ()
    return (
        duration(kernel.duration_ns) if kernel.duration_ns is not None else _MISSING,
        percent(share) if share is not None else _MISSING,
        *(duration(one) if one is not None else _MISSING for one in launch_ns),
        f"{significant(intensity)} {UNITS[work.unit]}/B" if intensity is not None else _MISSING,
        _achieved(kernel.representative, work),
        Span(verdict_cell(kernel), verdict.shown_class),
        factor(verdict.gain.factor) if verdict.gain else _MISSING,
        limit_cell(verdict.limit, _MISSING),
        Span(best_move(analysis).partition(": ")[0], "dim"),
    )


def _achieved(launch: Launch, work: MainWork) -> str:
    """Write the achieved rate and the roof above the kernel at DRAM: min(peak, intensity x bandwidth).

    It counts FLOPs, or operations of integer tensors, with their unit, if these are the main work.
    """
    is_float = work.unit == "FLOP"
    about = "~" if is_float and launch.estimated else ""
    unit = "" if is_float else f"{UNITS[work.unit]}/s"
    above = work.roof_per_s(launch.analysis.levels["dram"])
    if not work.per_s:
        return f"{_MISSING} of {about}{si(above, unit)}" if above else _MISSING
    roof = above or work.peak_per_s
    return about + (f"{si(work.per_s, '')} of {si(roof, unit)}" if roof else si(work.per_s, unit))


def not_profiled(names: Sequence[str], shares: Sequence[float]) -> Document:
    """List the kernels of a timeline that its reports lack, below those they have: nothing is known about them yet.

    Args:
        names: The most expensive first.
        shares: Their shares of the program's kernel time.
    """
    if not names:
        return ()
    columns = (_NAME, Column("share", right=True, worth=9), Column("verdict", fit="wrap", worth=8))
    short = short_names(names)
    rows = tuple(
        (code(short[name]), percent(share), Span("unknown", "unknown"))
        for name, share in zip(names, shares, strict=True)
    )
    title = f"Not profiled: {count(len(names), 'kernel')}, {percent(sum(shares))} of the program's kernel time"
    return (Table(columns, rows, title, shown=_MOST_MISSING, rest=" with less time"),)


_MOST_MISSING = 10
