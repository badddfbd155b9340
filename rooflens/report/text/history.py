"""The history of a store: a line for each kernel, or a ladder of the runs of one, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rooflens.format import cut_name, date, plain_name
from rooflens.model.compare.ladder import Point, Series, rungs_of
from rooflens.report.data import json_text
from rooflens.report.document import Column, Document, Table, Words, code, rest_note
from rooflens.report.ladder import BLOCKS, KERNELS_SHOWN, NAME_WIDTH, ladder_rows, series_cells

SCHEMA_VERSION = 1
RUN_COLUMNS = ("recorded", "report", "time", "x first", "limited by", "what changed")


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
    rows: list[tuple[Words, ...]] = [
        (code(plain_name(one.name)), one.program, *series_cells(one, blocks)) for one in series[:KERNELS_SHOWN]
    ]
    return (Table(columns, tuple(rows)), *rest_note(len(series), KERNELS_SHOWN, " that take less time"))


def runs_document(series: Sequence[Series]) -> Document:
    """Show each kernel run by run."""
    recorded, report, time, factor, limited, changed = RUN_COLUMNS
    columns = (
        Column(recorded),
        Column(report, fit="wrap", worth=6, least=20),
        Column(time, right=True, worth=8),
        Column(factor, right=True, worth=7),
        Column(limited, fit="wrap", worth=4),
        Column(changed, fit="prose", least=36),
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
    """Write a line for each run: date, report, time of a launch, factor to the first run, limiter, what changed."""
    for point, row in zip(kernel.points, ladder_rows(rungs_of(kernel)), strict=True):
        name = point.analysis.kernel.name
        yield (
            date(point.run.created_unix_s),
            row.marked + (f" ({cut_name(plain_name(name), NAME_WIDTH)})" if name != kernel.name else ""),
            row.time,
            row.against_first,
            row.limiter,
            row.changed,
        )


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
        "or_bound": list(verdict.or_bound),
        "resource": verdict.resource,
        "gain": verdict.gain.factor if verdict.gain else None,
        "limit": verdict.limit.factor,
        "limit_proven": verdict.limit.proven,
    }
