"""A store that is too large to show each kernel, in sums: GPU time by class, and the functions that take most of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from rooflens.format import count, duration, percent
from rooflens.model.records import ratio
from rooflens.model.summary import UNKNOWN_GPU
from rooflens.report.document import Column, Document, Span, Style, Table, Words, bullets, code

if TYPE_CHECKING:
    from rooflens.model.store.sums import Sum, Sums

_SHOWN = 10
"""Functions of each GPU."""

_SUM_COLUMNS = (
    Column("launches", right=True),
    Column("time", right=True),
    Column("share", right=True),
    Column("to win", right=True),
)


def sums_document(sums: Sums, kernel_count: int, top: int | None = None) -> Document:
    """Make two tables of each GPU, the GPU with most time first, and say how to see more.

    Args:
        sums: The sums.
        kernel_count: Kernels of the store.
        top: Functions of each GPU; ten by default.
    """
    by_class, by_function = sums.by("gpu", "verdict_class"), sums.by("gpu", "function")
    blocks: list[Table] = []
    for gpu in sums.by("gpu"):
        title = f"{gpu.gpu or UNKNOWN_GPU}: {count(gpu.launches, 'launch')}, {duration(gpu.gpu_time_ns)} of GPU time"
        classes = [(_class(one), one) for one in by_class if one.gpu == gpu.gpu]
        functions = [(code(one.function or "(no name)"), one) for one in by_function if one.gpu == gpu.gpu]
        shown = functions[: top or _SHOWN]
        left = f", {len(shown)} of {len(functions):,}" if len(shown) < len(functions) else ""
        blocks += [
            _sums_table("class", classes, gpu, title),
            _sums_table("function", shown, gpu, f"Functions by time{left}"),
        ]
    more = "`rooflens analyze` of some of its reports shows each kernel, `views.sql` is for questions in DuckDB"
    return (*blocks, bullets([f"{count(kernel_count, 'profile')}: too many to show each; {more}"]))


def _sums_table(head: str, rows: Sequence[tuple[Words, Sum]], whole: Sum, title: str) -> Table:
    cells = [
        (
            name,
            f"{one.launches:,}",
            duration(one.gpu_time_ns),
            percent(ratio(one.gpu_time_ns, whole.gpu_time_ns) or 0.0),
            duration(one.winnable_ns) if one.winnable_ns else "-",
        )
        for name, one in rows
    ]
    return Table((Column(head, fit="name", least=18, most=48), *_SUM_COLUMNS), tuple(cells), title)


def _class(total: Sum) -> Span:
    name = total.verdict_class or "unknown"
    return Span(name, cast("Style", name))
