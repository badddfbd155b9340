"""The history of a store: a line for each kernel, or for each run of one, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rooflens.format import cut_name, date, duration, percent, plain_name, significant
from rooflens.model.compare.history import Point, Series
from rooflens.model.records import Analysis
from rooflens.model.verdict.sentences import limiter_words
from rooflens.report.data import json_text
from rooflens.report.document import Column, Document, Table, Words, code, rest_note

SCHEMA_VERSION = 1
NAME_WIDTH = 44
KERNELS_SHOWN = 30
BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = "_.-=+*#@"


def overview_document(series: Sequence[Series], blocks: str = BLOCKS) -> Document:
    """Show a line for each kernel: its time over the runs, and what its verdict was and is."""
    columns = (
        Column("kernel", fit="name", most=NAME_WIDTH),
        Column("program", fit="name", worth=7),
        Column("runs", right=True, worth=4),
        Column("first", right=True, worth=5),
        Column("last", right=True, worth=7),
        Column("faster", right=True, worth=8),
        Column("time", worth=3),
        Column("verdict", fit="wrap", least=24),
    )
    table = Table(columns, tuple(_overview_cells(kernel, blocks) for kernel in series[:KERNELS_SHOWN]))
    return (table, *rest_note(len(series), KERNELS_SHOWN, " that take less time"))


def _overview_cells(kernel: Series, blocks: str) -> tuple[Words, ...]:
    first, last = kernel.points[0], kernel.points[-1]
    return (
        code(plain_name(kernel.name)),
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


def limiter(analysis: Analysis) -> str:
    """Say the class of a verdict, where its limiter is and how near it is."""
    verdict = analysis.verdict
    share = f" {percent(verdict.bottleneck.share)}" if verdict.bottleneck and verdict.resource else ""
    return f"{limiter_words(verdict.bound, verdict.resource, analysis.kernel.gpu)}{share}"


def verdicts(analyses: Sequence[Analysis]) -> str:
    """Say the last verdict, and the first one where it was another."""
    first, last = analyses[0].verdict, analyses[-1].verdict
    if (first.bound, first.resource) == (last.bound, last.resource):
        return limiter(analyses[-1])
    return f"{limiter(analyses[0])} -> {limiter(analyses[-1])}"


def runs_document(series: Sequence[Series]) -> Document:
    """Show each kernel run by run."""
    columns = (
        Column("recorded"),
        Column("report", fit="wrap", worth=6, least=20),
        Column("time", right=True, worth=8),
        Column("to the run before", right=True, worth=7),
        Column("DRAM", right=True, worth=4),
        Column("verdict", fit="wrap", least=16),
    )
    return tuple(
        Table(
            columns,
            tuple(run_cells(kernel)),
            (code(plain_name(kernel.name)), f", {kernel.program}, {kernel.gpu or 'unknown GPU'}"),
        )
        for kernel in series
    )


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
            limiter(point.analysis),
        )
        before = now


def to_json(series: Sequence[Series]) -> str:
    """Write every kernel with its runs: SI base units, null where nothing was measured."""
    kernels = [
        {
            "name": kernel.name,
            "program": kernel.program,
            "gpu": kernel.gpu,
            "runs": [_point(point) for point in kernel.points],
        }
        for kernel in series
    ]
    return json_text({"schema_version": SCHEMA_VERSION, "kernels": kernels})


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
        "gain": verdict.gain.factor if verdict.gain else None,
        "limit": verdict.limit.factor,
    }
