"""The command line: one group, one short function a command, and the one place where errors are shown.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import errno
import io
import sys
from pathlib import Path
from typing import Any

import click

from rooflens import __version__
from rooflens.cli_collect import collect, profile
from rooflens.cli_compare import compare
from rooflens.cli_history import history
from rooflens.cli_load import PATHS, find_reports
from rooflens.cli_predict import predict
from rooflens.cli_report import analyze, report
from rooflens.cli_show import console, count, finish, progress, show_error
from rooflens.errors import InputError, RooflensError

COMMANDS = (
    "profile",
    "collect",
    "ingest",
    "analyze",
    "report",
    "compare",
    "history",
    "predict",
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


@main.command()
@PATHS
@click.option("--store", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write to.")
def ingest(paths: tuple[str, ...], store: Path) -> None:
    """Read reports, or folders of them, into a Parquet store.

    A report that is stored already is skipped; a damaged one is named and costs nothing but itself.
    """
    from rooflens.ingest.load import ingest_reports
    from rooflens.model.store import Store

    inputs = find_reports(paths)
    with progress(len(inputs.jobs)) as advance:
        loaded = ingest_reports(inputs.jobs, Store(store), advance)
    kernel_count = sum(len(kernels) for _, kernels in loaded.reports)
    skipped = f", {count(loaded.skipped_count, 'report')} already there" if loaded.skipped_count else ""
    click.echo(f"stored {count(len(loaded.reports), 'report')} with {count(kernel_count, 'kernel')}{skipped}", err=True)
    finish(loaded, f"wrote {store}")


for _command in (analyze, report, collect, profile, compare, history, predict):
    main.add_command(_command)


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
