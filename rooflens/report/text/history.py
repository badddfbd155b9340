"""The history of a store as text: a line for each kernel, or for each run of one, and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from rooflens.format import cut_name, date, duration, percent, plain_name, printable, significant
from rooflens.model.verdict.sentences import wall_words
from rooflens.report.data import json_text
from rooflens.report.text.terminal import new_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from rooflens.model.compare.history import Point, Series
    from rooflens.model.records import Analysis

SCHEMA_VERSION = 1
NAME_WIDTH = 44
KERNELS_SHOWN = 30
BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = "_.-=+*#@"


def print_overview(console: Console, series: Sequence[Series]) -> None:
    """Print a line for each kernel: its time over the runs, and what its verdict was and is."""
    blocks = BLOCKS if (console.encoding or "").lower().startswith("utf") else PLAIN_BLOCKS
    headings = ("kernel", "program", "runs", "first", "last", "faster", "time", "verdict")
    table = new_table(headings, right={"runs", "first", "last", "faster"}, wrapping=())
    for kernel in series[:KERNELS_SHOWN]:
        table.add_row(*map(printable, _overview_cells(kernel, blocks)))
    console.print(table, markup=False, highlight=False)
    if (left := len(series) - KERNELS_SHOWN) > 0:
        console.print(f"and {left} more that take less time", style="dim")


def _overview_cells(kernel: Series, blocks: str) -> tuple[str, ...]:
    first, last = kernel.points[0], kernel.points[-1]
    return (
        cut_name(plain_name(kernel.name), NAME_WIDTH),
        kernel.program,
        str(len(kernel.points)),
        _time(first),
        _time(last) + (" a launch" if kernel.is_mean else ""),
        "-" if kernel.factor is None else f"{significant(kernel.factor)}x",
        sparkline([point.time_ns for point in kernel.points], blocks),
        verdicts([point.analysis for point in kernel.points]),
    )


def sparkline(values: Sequence[float | None], blocks: str = BLOCKS) -> str:
    """Draw values as block characters from nothing to the largest; a space where one is missing."""
    most = max((value for value in values if value is not None), default=0.0)
    top = len(blocks) - 1
    return "".join(" " if value is None or not most else blocks[round(value / most * top)] for value in values)


def _time(point: Point) -> str:
    return "-" if point.time_ns is None else duration(point.time_ns)


def wall(analysis: Analysis) -> str:
    """Say the class of a verdict, where its wall is and how near it is."""
    verdict = analysis.verdict
    share = f" {percent(verdict.bottleneck.share)}" if verdict.bottleneck and verdict.resource else ""
    return f"{wall_words(verdict.bound, verdict.resource, analysis.kernel.gpu)}{share}"


def verdicts(analyses: Sequence[Analysis]) -> str:
    """Say the last verdict, and the first one where it was another."""
    first, last = analyses[0].verdict, analyses[-1].verdict
    if (first.bound, first.resource) == (last.bound, last.resource):
        return wall(analyses[-1])
    return f"{wall(analyses[0])} -> {wall(analyses[-1])}"


def print_runs(console: Console, series: Sequence[Series]) -> None:
    """Print each kernel run by run."""
    for kernel in series:
        title = Text(printable(f"{plain_name(kernel.name)}, {kernel.program}, {kernel.gpu or 'unknown GPU'}"))
        headings = ("recorded", "report", "time", "to the run before", "DRAM", "verdict")
        table = new_table(headings, right={"time", "to the run before", "DRAM"}, title=title)
        for cells in run_cells(kernel):
            table.add_row(*map(printable, cells))
        console.print(table, markup=False, highlight=False)
        console.print()


def run_cells(kernel: Series) -> Iterator[tuple[str, ...]]:
    """Write a line for each run: date, report, time, change to the run before, share of DRAM, verdict."""
    before: float | None = None
    for point in kernel.points:
        now, share = point.time_ns, point.analysis.levels["dram"].share
        change = f"{(now / before - 1) * 100:+.1f} %" if now is not None and before else "-"
        name = point.analysis.kernel.name
        yield (
            date(point.run.created_unix_s),
            point.run.source + (f" ({cut_name(plain_name(name), NAME_WIDTH)})" if name != kernel.name else ""),
            _time(point),
            change,
            "-" if share is None else percent(share),
            wall(point.analysis),
        )
        before = now


def to_json(series: Sequence[Series]) -> str:
    """Write every kernel with its runs: SI base units, null where nothing was measured."""
    document = {"schema_version": SCHEMA_VERSION, "kernels": [_series(kernel) for kernel in series]}
    return json_text(document)


def _series(kernel: Series) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "program": kernel.program,
        "gpu": kernel.gpu,
        "runs": [_point(point) for point in kernel.points],
    }


def _point(point: Point) -> dict[str, Any]:
    analysis, verdict = point.analysis, point.analysis.verdict
    return {
        "digest": point.run.digest,
        "source": point.run.source,
        "created_unix_s": point.run.created_unix_s,
        "name": analysis.kernel.name,
        "launches": point.launches,
        "time_ns": point.gpu_time_ns,
        "mean_launch_ns": point.gpu_time_ns / point.launches if point.gpu_time_ns is not None else None,
        "share": {name: level.share for name, level in analysis.levels.items()},
        "bound": verdict.bound,
        "resource": verdict.resource,
        "headroom": verdict.distances.headroom,
    }
