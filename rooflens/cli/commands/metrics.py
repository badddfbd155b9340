"""`rooflens metrics`: what a tier collects, what that costs, and which findings need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import echo, say, show
from rooflens.cli.loading import load_analyzed
from rooflens.cli.usage import CHIPS, examples
from rooflens.errors import RooflensError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.records import AnalyzedReport, Kernel


@click.command(
    epilog=examples(
        "rooflens metrics --chip gh100",
        "rooflens metrics --chip 8.0 --detail deep --names",
        "rooflens metrics --report report.ncu-rep",
    ),
)
@click.option(
    "--chip",
    metavar="CHIP",
    shell_complete=CHIPS,
    help="Chip such as `gh100`, or compute capability such as `9.0`.",
)
@click.option("--detail", type=click.Choice(["quick", "standard", "deep"]), default="standard", show_default=True)
@click.option("--names", is_flag=True, help="Print only the ncu names, one per line.")
@click.option("--findings", is_flag=True, help="List the metrics each finding needs, and the tier that collects them.")
@click.option("--report", metavar="PATH", help="List the findings that this report cannot show, and why.")
def metrics(chip: str | None, detail: str, *, names: bool, findings: bool, report: str | None) -> None:
    """List what a tier collects on a chip and how many passes that takes; needs no GPU."""
    from rooflens.ingest.ncu.passes import count_passes
    from rooflens.ingest.ncu.tiers import hardware_names, metrics_for
    from rooflens.report.text.listings import findings_table, metric_names, metrics_table, passes_text

    if report is not None:
        _print_untold(load_analyzed([report], None).reports, chip)
        return
    if chip is None:
        raise UsageError("--chip is missing", "`rooflens metrics --chip gh100`, or `--report report.ncu-rep`")
    chip = _chip(chip)
    if findings:
        show((findings_table(chip, metrics_for(chip, "deep")),))
        return
    rows = metrics_for(chip, detail)
    if names:
        echo(metric_names(rows))
        return
    passes = count_passes(chip, hardware_names(chip, detail)).hardware_passes
    show((metrics_table(chip, detail, rows, passes),))
    say(passes_text(rows, passes))


def _chip(given: str) -> str:
    """Return the chip that is meant by its name or its compute capability.

    Raises:
        UsageError: None is known by it: the metrics of another one would not be what was asked for.
    """
    from rooflens.model.counters.chips import FAMILIES, check_chip, chip_of

    known = list(dict.fromkeys(capability for capability, _ in FAMILIES))
    if "." in given and given not in known:
        raise UnknownNameError("compute capability", given, known)
    return chip_of(given).chip if "." in given else check_chip(given)


def _print_untold(reports: Sequence[AnalyzedReport], chip: str | None) -> None:
    from rooflens.ingest.ncu.tiers import metrics_for
    from rooflens.model.needs import untold
    from rooflens.report.text.listings import untold_table

    for report in reports:
        kernels = [analysis.kernel for analysis in report.analyses if not analysis.kernel.failed]
        traced = report.unprofiled is not None and any(entry.time_ns for entry in report.unprofiled.launch_counts)
        found = untold(kernels, traced=traced)
        on = _chip(chip) if chip is not None else _chip_of(kernels)
        asked = metrics_for(on, "deep") if on else ()
        show((untold_table(report.run.source, found, len(kernels), on or "", asked),))


def _chip_of(kernels: Sequence[Kernel]) -> str | None:
    """Return the chip whose counters fit the first kernel; None where none is known, as for old GPUs."""
    from rooflens.model.counters.chips import chip_of

    capability = next((kernel.compute_capability for kernel in kernels if kernel.compute_capability), None)
    try:
        return chip_of(capability).chip if capability else None
    except RooflensError:
        return None
