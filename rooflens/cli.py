"""The command line: one group, one short function a command, and the one place where errors are shown.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import errno
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflens import __version__
from rooflens.cli_collect import collect, profile
from rooflens.cli_show import console, count, default_title, finish, print_table, progress, show_error, write_page
from rooflens.errors import InputError, RooflensError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.ingest.inputs import Inputs
    from rooflens.ingest.load import Loaded
    from rooflens.model.records import Analysis
    from rooflens.model.thresholds import Thresholds

_NAMED_FILES = 3
"""Files left unread that are named; of more, only the count is told."""
COMMANDS = (
    "profile",
    "collect",
    "ingest",
    "analyze",
    "report",
    "calibrate",
    "workloads",
    "gpus",
    "metrics",
    "doctor",
)
"""The commands as `--help` lists them: in the order of the work."""


class _Group(click.Group):
    """Show the errors a user can mend as `error:` and `hint:`; anything else stays a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal that is no UTF-8 shows `?`, and goes on
        try:
            return super().invoke(ctx)
        except RooflensError as error:
            show_error(error)
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            show_error(InputError("no space left to write to", "free some, or write elsewhere"))
            ctx.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rooflens")
def main() -> None:
    """See which wall every GPU kernel is hitting.

    Opens Nsight Compute reports, computes arithmetic intensity and hierarchical roofline positions, and says for each
    kernel what bounds it, how far it is from that wall, and which move can help.
    """


_PATHS = click.argument("paths", nargs=-1, metavar="[PATH]...")
_STORE = click.option("--store", type=click.Path(path_type=Path, file_okay=False), help="Folder of Parquet tables.")
_THRESHOLDS = click.option(
    "--thresholds",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with a [thresholds] table to put over the defaults.",
)


@main.command()
@_PATHS
@click.option("--store", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write to.")
def ingest(paths: tuple[str, ...], store: Path) -> None:
    """Read reports, or folders of them, into a Parquet store.

    A report that is stored already is skipped; a damaged one is named and costs nothing but itself.
    """
    from rooflens.ingest.load import ingest_reports
    from rooflens.model.store import Store

    inputs = _find(paths)
    with progress(len(inputs.jobs)) as advance:
        loaded = ingest_reports(inputs.jobs, Store(store), advance)
    kernel_count = sum(len(kernels) for _, kernels in loaded.reports)
    skipped = f", {count(loaded.skipped_count, 'report')} already there" if loaded.skipped_count else ""
    click.echo(f"stored {count(len(loaded.reports), 'report')} with {count(kernel_count, 'kernel')}{skipped}", err=True)
    finish(loaded, f"wrote {store}")


@main.command()
@_PATHS
@_STORE
@_THRESHOLDS
@click.option(
    "--format", "style", type=click.Choice(["table", "json", "csv", "md"]), default="table", show_default=True
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Print only the N longest launches of each GPU.")
def analyze(paths: tuple[str, ...], store: Path | None, thresholds: Path | None, style: str, top: int | None) -> None:
    """Say for every kernel which wall it hits."""
    loaded, analyses = _analyses(paths, store, _thresholds(thresholds))
    if style == "table":
        print_table(analyses, top)
    else:
        from rooflens.report import contract, terminal

        writers = {"json": contract.to_json, "csv": contract.to_csv, "md": terminal.to_markdown}
        click.echo(writers[style](analyses), nl=style == "json")
    finish(loaded, f"wrote {store}" if store else "")


@main.command()
@_PATHS
@_STORE
@_THRESHOLDS
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("report.html"),
    show_default=True,
    help="File to write.",
)
@click.option("--title", help="Title of the page; by default the names of the reports.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
@click.option("--table", is_flag=True, help="Also print the table of `analyze`.")
def report(
    paths: tuple[str, ...],
    store: Path | None,
    thresholds: Path | None,
    output: Path,
    title: str | None,
    *,
    force: bool,
    table: bool,
) -> list[Analysis]:
    """Write one offline HTML page about all kernels."""
    _check_output(output, force=force)
    limits = _thresholds(thresholds)
    loaded, analyses = _analyses(paths, store, limits)
    if not analyses:
        finish(loaded, "")
        return analyses
    from rooflens.report.page import render_page

    runs = [run for run, _ in loaded.reports]
    unread = [(job.source, str(error)) for job, error in loaded.failures]
    html = render_page(runs, analyses, title=title or default_title(runs), limits=limits, unread=unread)
    write_page(output, html)
    if table:
        print_table(analyses)
    finish(loaded, f"wrote {output}")
    return analyses


main.add_command(collect)
main.add_command(profile)


@main.command()
@click.argument("name", required=False)
def workloads(name: str | None) -> None:
    """List the bundled workloads, or show the cases of one."""
    from rooflens.report.workloads import case_table, workload_table
    from rooflens.workloads.registry import find_workload, load_workloads

    console().print(case_table(find_workload(name).cases) if name else workload_table(load_workloads()))


@main.command()
@click.option("--chip", required=True, metavar="CHIP", help="Chip as `gh100`, or compute capability as `9.0`.")
@click.option("--detail", type=click.Choice(["quick", "standard", "deep"]), default="standard", show_default=True)
@click.option("--names", is_flag=True, help="Print the bare ncu names, one a line.")
def metrics(chip: str, detail: str, *, names: bool) -> None:
    """List what a tier collects on a chip and how many passes that takes, with no GPU."""
    from rooflens.ingest.chips import check_chip, chip_of
    from rooflens.ingest.passes import count_passes
    from rooflens.ingest.tiers import hardware_names, metrics_for
    from rooflens.report.metrics import metric_names, metrics_table, passes_text

    chip = chip_of(chip).chip if "." in chip else check_chip(chip)
    rows = metrics_for(chip, detail)
    if names:
        click.echo(metric_names(rows))
        return
    passes = count_passes(chip, hardware_names(chip, detail)).hardware_passes
    console().print(metrics_table(chip, detail, rows, passes))
    click.echo(passes_text(rows, passes), err=True)


@main.command()
def calibrate() -> None:
    """Measure what this GPU can reach, to be drawn as dashed roofs from then on (needs a GPU and nvcc)."""
    import time

    from rooflens.model.calibrations import calibrations_folder, parse_attainable, save_attainable
    from rooflens.workloads.calibrating import calibrate as run_calibration

    measured = parse_attainable(run_calibration(), "the calibration's output", int(time.time()))
    click.echo(f"wrote {save_attainable(measured, calibrations_folder())}", err=True)


@main.command()
@click.argument("name", required=False)
def gpus(name: str | None) -> None:
    """List the GPUs with datasheet numbers, or show one."""
    from rooflens.model.gpu import load_gpus
    from rooflens.report.gpus import gpu_details, gpu_table, matching_gpus

    if name is None:
        console().print(gpu_table(load_gpus()))
        return
    found = matching_gpus(name)
    if not found:
        raise InputError(f"no GPU is called `{name}`", "`rooflens gpus` lists the names")
    console().print(gpu_details(found[0]) if len(found) == 1 else gpu_table(found))


@main.command()
def doctor() -> None:
    """Check what this machine can do: each line ok, warn or fail, with the fix."""
    from rooflens.doctor import run_checks

    checks = run_checks()
    for check in checks:
        click.echo(
            f"{check.state:<5} {check.name}: {check.finding}" + (f"\n      hint: {check.fix}" if check.fix else "")
        )
    if any(check.state == "fail" for check in checks):
        click.get_current_context().exit(3)


def _check_output(output: Path, *, force: bool) -> None:
    """Refuse to write over a report, ever, and over anything else without being told to."""
    from rooflens.ingest.inputs import ENDINGS

    if output.name.endswith(ENDINGS):
        raise UsageError(f"`{output}` is the name of a report", "name the page with -o, for example page.html")
    if output.exists() and not force:
        raise UsageError(f"`{output}` exists", "give another name with -o, or --force to write over it")


def _find(paths: Sequence[str]) -> Inputs:
    from rooflens.ingest.inputs import find_inputs

    if not paths:
        raise UsageError("no report given", "give a `.ncu-rep` file or a folder of them")
    inputs = find_inputs(paths)
    if inputs.ignored:
        names = ", ".join(path.name for path in inputs.ignored[:_NAMED_FILES])
        more = ", ..." if len(inputs.ignored) > _NAMED_FILES else ""
        verb = "is" if len(inputs.ignored) == 1 else "are"
        click.echo(f"left {count(len(inputs.ignored), 'file')} unread that {verb} no report: {names}{more}", err=True)
    return inputs


def _analyses(paths: Sequence[str], store: Path | None, limits: Thresholds) -> tuple[Loaded, list[Analysis]]:
    """Load reports from paths or from a store and analyze them; a store also gets its table `roofline`."""
    from rooflens.ingest.load import load_reports

    if bool(paths) == bool(store):
        raise UsageError("give reports or --store, one of the two", "`rooflens analyze report.ncu-rep`")
    if store is not None:
        loaded = _from_store(store)
    else:
        inputs = _find(paths)
        with progress(len(inputs.jobs)) as advance:
            loaded = load_reports(inputs.jobs, advance)
    by_report = analyze_loaded(loaded, limits)
    if store is not None:
        _keep_rooflines(store, by_report, limits)
    return loaded, [analysis for analyses in by_report for analysis in analyses]


def _from_store(store: Path) -> Loaded:
    from rooflens.ingest.load import Loaded
    from rooflens.ingest.supervise import Job
    from rooflens.model.store import Store

    reports, failures = Store.existing(store).load()
    return Loaded(reports=reports, failures=[(Job(file, str(file)), error) for file, error in failures])


def analyze_loaded(loaded: Loaded, limits: Thresholds) -> list[list[Analysis]]:
    """Analyze report by report, each with its un-profiled run and the calibration of its GPU, where there are any."""
    from collections import Counter
    from dataclasses import replace

    from rooflens.ingest.unprofiled import read_unprofiled
    from rooflens.model.analyze import analyze as analyze_kernel
    from rooflens.model.attainable import find_attainable
    from rooflens.model.calibrations import calibrations_folder, load_calibrations
    from rooflens.model.records import Outside

    calibrations = load_calibrations(calibrations_folder())
    by_report = []
    for run, kernels in loaded.reports:
        unprofiled = read_unprofiled(Path(run.source))
        total_ns = sum(kernel.duration_ns or 0.0 for kernel in kernels)
        one_each = Outside(
            gap_share=unprofiled.gap_share if unprofiled else None,
            slowdown=unprofiled.slowdown(total_ns, len(kernels)) if unprofiled else None,
        )
        profiled = Counter((kernel.name, kernel.grid, kernel.block) for kernel in kernels)
        analyses = []
        for kernel in kernels:
            shape = kernel.name, kernel.grid, kernel.block
            launches = unprofiled.launches_of(*shape, profiled[shape]) if unprofiled else 1
            attainable = find_attainable(kernel.gpu, kernel.counters.get("sm_clock_hz"), calibrations)
            outside = replace(one_each, launches=launches, attainable=attainable)
            analyses.append(analyze_kernel(kernel, limits, outside))
        by_report.append(analyses)
    return by_report


def _keep_rooflines(store: Path, by_report: Sequence[Sequence[Analysis]], limits: Thresholds) -> None:
    """Write positions and verdicts back to the store; where that fails, the analysis is still worth showing."""
    from rooflens.model.store import Store

    try:
        Store(store).put_rooflines(by_report, limits)
    except InputError as error:
        click.echo(f"warning: {error}; verdicts are not kept", err=True)


def _thresholds(file: Path | None) -> Thresholds:
    from rooflens.model.thresholds import default_thresholds, override_thresholds

    if file is None:
        return default_thresholds()
    try:
        return override_thresholds(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise InputError(f"cannot read `{file}`: {error.strerror}", "docs/method.md shows a thresholds file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"`{file}` is no text", "docs/method.md shows a thresholds file") from error
