"""`rooflens explain`: everything that matters about one kernel."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import deliver, finish, say
from rooflens.cli.expectations import find_expected, read_stated
from rooflens.cli.loading import (
    GPU,
    KERNEL,
    NVTX,
    PATHS,
    PREDICT,
    READER,
    SOURCE,
    STORE,
    THRESHOLDS,
    TIMELINE,
    load_analyzed,
    with_wanted,
)
from rooflens.cli.usage import Command, examples
from rooflens.errors import InputError
from rooflens.format import count

if TYPE_CHECKING:
    from rooflens.cli.wanted import Wanted


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens explain report.ncu-rep",
        "rooflens explain report.ncu-rep --kernel x_279",
    ),
)
@PATHS
@STORE
@KERNEL
@NVTX
@THRESHOLDS
@TIMELINE
@SOURCE
@READER
@GPU
@PREDICT
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "md", "json"]),
    help="By default Markdown, or a table on a terminal; JSON holds every matching launch, loops included.",
)
@with_wanted
def explain(*, wanted: Wanted, style: str | None) -> None:
    """Explain one kernel: what limits it, why, where, and what to try first, with the counters behind it.

    If several kernels or launches match, the one with the most to win is explained. A prediction is compared with that
    launch alone.
    """
    from msgspec.structs import replace

    from rooflens.model.ranking import most_at_stake
    from rooflens.report.kernel.document import KernelView, kernel_document
    from rooflens.report.kernel.predicted import expectations_document
    from rooflens.writing.answers import Answer, of_kernels

    stated = read_stated(wanted.predict)
    found = load_analyzed(wanted)
    analyses = found.analyses
    chosen = most_at_stake(analyses)
    if chosen is None and found.failures:
        finish(found, "")
    if chosen is None:
        raise InputError("there is no kernel to explain", "give a report with at least one")
    report = found.whole_of(chosen)
    alone = [replace(report, analyses=(chosen,))]
    expected = None if stated is None else find_expected(alone, stated).check(alone)
    answer = Answer(
        lambda: (*kernel_document(KernelView(report, chosen)), *expectations_document(expected or (), alone)),
        of_kernels(found, expected=expected).data,
    )
    deliver(answer, style or ("table" if sys.stdout.isatty() else "md"))
    others = {(one.kernel.digest, one.kernel.name) for one in analyses} - {(chosen.kernel.digest, chosen.kernel.name)}
    if others and style != "json":
        say(f"{count(len(others), 'other kernel')} left out: choose with `--kernel NAME`")
    finish(found, "")
