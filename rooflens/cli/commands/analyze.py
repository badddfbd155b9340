"""`rooflens analyze`: the table on the terminal, or the same as data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rooflens.cli.console import deliver, finish
from rooflens.cli.expectations import find_expected, read_stated
from rooflens.cli.loading import (
    GPU,
    KERNEL,
    NVTX,
    PATHS,
    PREDICT,
    RAW_CELLS,
    READER,
    SOURCE,
    STORE,
    THRESHOLDS,
    TIMELINE,
    WITHOUT_NVIDIA,
    answer_of,
    load_analyzed,
    place_of,
    refuse_with_traces,
    traces_of,
    with_wanted,
)
from rooflens.cli.usage import Command, examples
from rooflens.errors import UsageError
from rooflens.report.token_budget import BYTES_PER_TOKEN, DEFAULT_TOKENS, LEAST_TOKENS

if TYPE_CHECKING:
    from rooflens.cli.wanted import Wanted
    from rooflens.model.program.grouping import GroupedBy


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens analyze report.ncu-rep",
        'rooflens analyze reports/ --kernel "gemm*" --top 10',
        "rooflens analyze report.ncu-rep --format json | jq .kernels",
        "rooflens analyze --store runs --gpu V100",
        "rooflens analyze report.ncu-rep --timeline trace.sqlite",
        "rooflens analyze trace.json.gz",
        "rooflens analyze trace.json.gz --by operator",
        "gunzip -c report.ncu-rep.gz | rooflens analyze -",
    ),
)
@PATHS
@STORE
@KERNEL
@NVTX
@THRESHOLDS
@TIMELINE
@SOURCE
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "md", "digest"]),
    default="table",
    show_default=True,
    help="`digest` is short Markdown for a language model or a chat message.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show only the first N kernels of each GPU.")
@click.option(
    "--max-tokens",
    type=click.IntRange(min=LEAST_TOKENS),
    metavar="N",
    help=f"Size of a digest, in tokens estimated at {BYTES_PER_TOKEN} bytes each.  [default: {DEFAULT_TOKENS}]",
)
@click.option("--launches", is_flag=True, help="Show one row per launch instead of one per kernel.")
@click.option(
    "--by",
    type=click.Choice(["operator", "module", "kernel", "shape"]),
    help="Sum the kernels of a trace up by their operator, module, name, or operator and sizes.",
)
@click.option(
    "--columns",
    metavar="NAME,...",
    help="Show these quantities instead of the usual columns: names of columns in `--format csv`, of totals, "
    "or heads of tables.",
)
@WITHOUT_NVIDIA
@RAW_CELLS
@READER
@GPU
@PREDICT
@with_wanted
def analyze(
    *,
    wanted: Wanted,
    style: str,
    top: int | None,
    max_tokens: int | None,
    launches: bool,
    by: GroupedBy | None,
    columns: str | None,
    raw_cells: bool,
) -> None:
    """Show what limits each kernel.

    Kernels are in the same order here, on pages, in digests and in Python: by time at stake: best gain, else above the
    floor; libraries and fills last. One move for many kernels is one row.

    A PyTorch profiler's trace, or an export of nsys, is also read without a report: its kernels by what can be won
    above the floors of their operators' sizes, gaps, and the commands that profile the right kernels.
    """
    _check_options(style, top, columns=columns, predict=wanted.predict, max_tokens=max_tokens)
    from msgspec.structs import replace

    from rooflens.addresses import shown
    from rooflens.writing.answers import View, of_kernels, of_sums

    view = View(
        top=top,
        max_tokens=max_tokens,
        columns=tuple(name.strip() for name in columns.split(",") if name.strip()) if columns else (),
        each_launch=launches,
        by=by,
        raw_cells=raw_cells,
        indented=sys.stdout.isatty(),
    )
    if traces := traces_of(wanted):
        refuse_with_traces(traces, wanted, launches=launches)
        deliver(answer_of(traces, wanted, view), style)
        return
    if by is not None and click.get_current_context().get_parameter_source("by") is ParameterSource.COMMANDLINE:
        raise UsageError(
            "--by sums up the kernels of a trace, and no trace is given", "give the trace, without reports"
        )
    stated = read_stated(wanted.predict)
    keep = not wanted.without_nvidia
    place = place_of(wanted)
    # The other formats name places and show no code.
    reading = replace(wanted.reading, texts=style in {"json", "digest"})
    may_sum = keep and style in {"table", "md"} and not (launches or columns or wanted.predict)
    found = load_analyzed(replace(wanted, reading=reading), keep=keep, may_sum=may_sum)
    wrote = f"wrote {shown(wanted.store)}" if wanted.store and found.kept_count else ""
    if found.summed is not None:
        deliver(of_sums(found.summed, top), style)
        finish(found, wrote)
        return
    expected = None if stated is None else find_expected(found.reports, stated).check(found.reports)
    deliver(of_kernels(found, view, place=place, expected=expected), style)
    finish(found, wrote)


def _check_options(
    style: str, top: int | None, *, columns: str | None, predict: str | None, max_tokens: int | None
) -> None:
    """Refuse options that the requested format cannot use.

    Raises:
        UsageError: An option belongs to another format.
    """
    if predict is not None and style not in {"table", "md", "json"}:
        raise UsageError(f"--predict works with table, md and json, not with --format {style}", "drop one of the two")
    if columns is not None and style not in {"table", "md"}:
        hint = "CSV and JSON hold all of them; `md` takes --columns"
        raise UsageError(f"--columns works with the table, not with --format {style}", hint)
    if top is not None and style in {"json", "csv"}:
        hint = "it lists every launch: select with `jq`, `sort` or `head`, or use `--format md`, which takes --top"
        raise UsageError(f"--top works with tables of kernels, not with --format {style}", hint)
    if max_tokens is not None and style != "digest":
        raise UsageError("--max-tokens is the size of a digest", "give it with --format digest")
