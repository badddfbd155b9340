"""`rooflens analyze`: the table on the terminal, or the same as data."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from rooflens.cli.console import analyses_of, echo, finish, print_parts, print_programs, print_table
from rooflens.cli.expectations import PREDICT, find_expected, print_expected, read_stated
from rooflens.cli.loading import PATHS, RAW_CELLS, STORE, THRESHOLDS, WHERE, load_analyzed, place_of, with_reading
from rooflens.cli.stored import print_stored
from rooflens.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rooflens.analyzing import Analyzed
    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.model.records import AnalyzedReport


@click.command()
@PATHS
@STORE
@WHERE
@THRESHOLDS
@click.option(
    "--format", "style", type=click.Choice(["table", "json", "csv", "md"]), default="table", show_default=True
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show only the first N kernels of each GPU.")
@click.option("--launches", is_flag=True, help="Show each launch by itself, not the kernels.")
@click.option("--plot", is_flag=True, help="Also draw the roofline of each GPU, below its table.")
@click.option(
    "--without-nvidia", is_flag=True, help="Withhold what NVIDIA's own rules say; the store then keeps no verdicts."
)
@RAW_CELLS
@with_reading
@PREDICT
def analyze(
    paths: tuple[str, ...],
    store: str | None,
    where: str | None,
    thresholds: Path | None,
    *,
    style: str,
    top: int | None,
    launches: bool,
    plot: bool,
    without_nvidia: bool,
    raw_cells: bool,
    reading: ReadOptions,
    predict: str | None,
) -> None:
    """Say for every kernel which wall it hits."""
    if plot and style != "table":
        raise UsageError(f"--plot goes with the table, not with --format {style}", "leave one of the two out")
    if predict is not None and style != "table":
        raise UsageError(f"--predict goes with the table, not with --format {style}", "leave one of the two out")
    if plot:
        from rooflens.report.text.plot import check_library

        check_library()
    from rooflens.analyzing import read_thresholds
    from rooflens.guarding import write_all

    stated = read_stated(predict)
    keep = not without_nvidia and where is None
    load = partial(
        load_analyzed,
        paths,
        store,
        read_thresholds(thresholds),
        where=where,
        keep=keep,
        without_nvidia=without_nvidia,
        reading=replace(reading, texts=style != "table"),  # the table names places and shows no code
    )
    place = place_of(paths, store)
    is_whole = plot or launches or stated is not None
    printed = print_stored(load, style, top, place, raw_cells=raw_cells, is_whole=is_whole) if store else None
    if printed is not None:
        finish(printed, _last_line(printed, store, keep=keep))
        return
    found = load()
    if style == "table":
        print_table(found, top, plot=plot, each_launch=launches, place=place)
        print_programs(found.reports)
        if stated is not None:
            print_expected(found.reports, find_expected(found.reports, stated))
    elif style == "json" and not sys.stdout.isatty():
        from rooflens.report.text.json_csv import json_lines

        print_parts(json_lines(analyses_of(found.reports), found.reports))
    else:
        echo(write_all(found.reports, found.limits, partial(_document, style, raw_cells=raw_cells)), nl=False)
    finish(found, _last_line(found, store, keep=keep))


def _last_line(found: Analyzed, store: str | None, *, keep: bool) -> str:
    return f"wrote {store}" if store and keep and found.not_kept is None else ""


def _document(style: str, reports: Sequence[AnalyzedReport], *, raw_cells: bool) -> str:
    """Write reports as JSON for people, as CSV or as Markdown."""
    analyses = analyses_of(reports)
    if style == "json":
        from rooflens.report.text.json_csv import to_json

        return f"{to_json(analyses, reports)}\n"
    if style == "csv":
        from rooflens.report.text.json_csv import to_csv

        return to_csv(analyses, raw_cells=raw_cells)
    from rooflens.report.text.table import to_markdown

    return to_markdown(analyses)
