"""`rooflens metrics`: what a tier collects and costs, which findings need it, and what was read from a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import echo, echo_command, finish, say, show
from rooflens.cli.loading import GPU, load_analyzed
from rooflens.cli.usage import CHIPS, Command, examples
from rooflens.errors import RooflensError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rooflens.ingest.reports.jobs import JobOutcome
    from rooflens.model.counters.metric import Metric
    from rooflens.model.records import Kernel


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens metrics --chip gh100",
        "rooflens metrics --chip 8.0 --detail deep --names",
        "rooflens metrics --report report.ncu-rep",
        "rooflens metrics --report report.ncu-rep --all",
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
    help="Show what was read from this report's metrics, what is missing, what it would tell, and how to collect it.",
)
@click.option("--all", "whole", is_flag=True, help="With --report, also list each quantity, and each way to a finding.")
@GPU
def metrics(
    chip: str | None,
    detail: str,
    *,
    names: bool,
    findings: bool,
    report: str | None,
    whole: bool,
    gpu: str | None,
) -> None:
    """List what a tier collects on a chip and how many passes that takes; needs no GPU."""
    from rooflens.collect.passes import count_passes
    from rooflens.collect.tiers import hardware_names, metrics_for
    from rooflens.report.text.listings import findings_table, metric_names, metrics_table, passes_text

    if report is not None:
        _print_understood(report, chip, gpu, whole=whole)
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
    """Return the chip with this name or compute capability.

    Raises:
        UsageError: No chip matches: another chip's metrics would mislead.
    """
    from rooflens.model.counters.chips import FAMILIES, check_chip, chip_of

    known = list(dict.fromkeys(capability for capability, _ in FAMILIES))
    if "." in given and given not in known:
        raise UnknownNameError("compute capability", given, known)
    return chip_of(given).chip if "." in given else check_chip(given)


def _print_understood(path: str, chip: str | None, gpu: str | None, *, whole: bool) -> None:
    """Print what was read from a report's metrics, what is missing, what it would tell, and how to collect it."""
    from rooflens.cli.wanted import Wanted
    from rooflens.collect.tiers import metrics_for
    from rooflens.ingest.reports.report import ReadOptions, ReadReport
    from rooflens.ingest.reports.understood import Understood, understood
    from rooflens.model.needs import names_missing, unplaced, untold
    from rooflens.model.selecting import Selection
    from rooflens.report.text.listings import missing_document, understood_document, understood_tables, untold_table

    names: dict[str, Understood] = {}

    def heard(outcome: JobOutcome) -> None:
        if isinstance(outcome.result, ReadReport):
            names[outcome.result.run.digest] = understood(outcome.result)

    wanted = Wanted(paths=(path,), reading=ReadOptions(raw="all", gpu=gpu), selection=Selection())
    found = load_analyzed(wanted, on_outcome=heard)
    for report in found.reports:
        analyses = [analysis for analysis in report.analyses if not analysis.kernel.failed]
        kernels = [analysis.kernel for analysis in analyses]
        traced = report.unprofiled is not None and any(entry.time_ns for entry in report.unprofiled.launch_counts)
        lacking = untold(kernels, traced=traced)
        on = _chip(chip) if chip is not None else _chip_of(kernels)
        asked = metrics_for(on, "deep") if on else ()
        missing = names_missing(lacking, unplaced(analyses), asked, on or "")
        said, source = names[report.run.digest], report.run.source
        show(understood_document(source, len(kernels), len(said.used), said.unread, lacking))
        if missing:
            show(missing_document(missing, asked))
            _print_commands(missing, asked, kernels, report.run.command_line)
        elif lacking and on is None:
            say("hint: the GPU is not known: `--gpu NAME` or `--chip CHIP` says what to collect on it")
        if whole:
            read = understood_tables(source, said.used, said.unread)
            show((*read, untold_table(source, lacking, len(kernels), on or "", asked)))
    finish(found, "")


def _print_commands(
    missing: Collection[str], asked: Sequence[Metric], kernels: Sequence[Kernel], command_line: str | None
) -> None:
    """Print the commands that collect what is missing, with ncu and with rooflens; for a lone kernel, by its name."""
    from rooflens.model.verdict.collecting import PROGRAM, not_profiled, split_command

    is_deep = any(metric.detail == "deep" and metric.name in missing for metric in asked)
    functions = {kernel.function_name for kernel in kernels}
    of_kernel = [f"--kernel-name={functions.pop()}", "--launch-count=1"] if len(functions) == 1 else []
    _, program = split_command(command_line) or ((), (PROGRAM,))
    echo("\nWith ncu, or with rooflens, which adds the rest of its tier:")
    echo_command(["ncu", "--metrics", ",".join(missing), *of_kernel, "-o", "missing", *program])
    ours = [option.replace("--kernel-name", "--kernel") for option in of_kernel]
    echo_command(["rooflens", "profile", *(["--detail", "deep"] if is_deep else []), *ours, "--", *program])
    if kernels and (cannot := not_profiled(kernels[0].compute_capability)):
        say(f"note: {cannot}")


def _chip_of(kernels: Sequence[Kernel]) -> str | None:
    """Return the chip whose counters fit the first kernel; None if there is no such chip, as for old GPUs."""
    from rooflens.model.counters.chips import chip_of
    from rooflens.model.roofline.datasheets import datasheet_of

    sheets = (datasheet_of(kernel.gpu) for kernel in kernels)
    named = (kernel.compute_capability for kernel in kernels)
    capability = next((one for one in (*named, *(sheet.compute_capability for sheet in sheets if sheet)) if one), None)
    try:
        return chip_of(capability).chip if capability else None
    except RooflensError:
        return None
