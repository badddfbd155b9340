"""`rooflens metrics`: what a tier collects and costs, which findings need it, and what a report's metrics gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import echo, finish, say, show
from rooflens.cli.loading import load_analyzed
from rooflens.cli.usage import CHIPS, Command, examples
from rooflens.errors import RooflensError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.ingest.reports.jobs import Outcome
    from rooflens.model.records import Kernel


@click.command(
    cls=Command,
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
@click.option(
    "--report",
    metavar="PATH",
    help="List what this report's metrics gave, those not understood, and findings it cannot show.",
)
def metrics(chip: str | None, detail: str, *, names: bool, findings: bool, report: str | None) -> None:
    """List what a tier collects on a chip and how many passes that takes; needs no GPU."""
    from rooflens.ingest.ncu.passes import count_passes
    from rooflens.ingest.ncu.tiers import hardware_names, metrics_for
    from rooflens.report.text.listings import findings_table, metric_names, metrics_table, passes_text

    if report is not None:
        _print_understood(report, chip)
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


def _print_understood(path: str, chip: str | None) -> None:
    """Print what the metrics of a report gave, which ones nothing reads, and the findings that others would tell."""
    from rooflens.ingest.ncu.tiers import metrics_for
    from rooflens.ingest.reports.report import ReadOptions, Report
    from rooflens.ingest.reports.understood import Understood, understood
    from rooflens.model.needs import untold
    from rooflens.model.verdict.collecting import collect_command
    from rooflens.report.document import paragraph
    from rooflens.report.text.listings import missing_text, understood_document, untold_table

    names: dict[str, Understood] = {}

    def heard(outcome: Outcome) -> None:
        if isinstance(outcome.result, Report):
            names[outcome.result.run.digest] = understood(outcome.result)

    found = load_analyzed([path], None, reading=ReadOptions(raw="all"), on_outcome=heard)
    for report in found.reports:
        kernels = [analysis.kernel for analysis in report.analyses if not analysis.kernel.failed]
        traced = report.unprofiled is not None and any(entry.time_ns for entry in report.unprofiled.launch_counts)
        lacking = untold(kernels, traced=traced)
        on = _chip(chip) if chip is not None else _chip_of(kernels)
        asked = metrics_for(on, "deep") if on else ()
        said, command = names[report.run.digest], collect_command("", report.run.command_line)
        show(
            (
                *understood_document(report.run.source, said.used, said.unread, said.spare_count),
                untold_table(report.run.source, lacking, len(kernels), on or "", asked),
                *(paragraph(text) for text in (missing_text(lacking, on or "", asked, command),) if text),
            )
        )
    finish(found, "")


def _chip_of(kernels: Sequence[Kernel]) -> str | None:
    """Return the chip whose counters fit the first kernel; None where none is known, as for old GPUs."""
    from rooflens.model.counters.chips import chip_of

    capability = next((kernel.compute_capability for kernel in kernels if kernel.compute_capability), None)
    try:
        return chip_of(capability).chip if capability else None
    except RooflensError:
        return None
