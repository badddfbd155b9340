"""From the paths or the store that a command is given to analyzed kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import progress
from rooflens.errors import InputError, UsageError
from rooflens.files import read_text
from rooflens.format import count, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.ingest.reports.inputs import Inputs
    from rooflens.ingest.reports.load import Loaded
    from rooflens.model.records import Analysis, Run
    from rooflens.model.verdict.thresholds import Thresholds

_NAMED = 3
"""Files left unread, or kernels, that are named; of more, only the count is told."""

PATHS = click.argument("paths", nargs=-1, metavar="[PATH]...")
STORE = click.option("--store", type=click.Path(path_type=Path, file_okay=False), help="Folder of Parquet tables.")
THRESHOLDS = click.option(
    "--thresholds",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with a [thresholds] table to put over the defaults.",
)


def find_reports(paths: Sequence[str]) -> Inputs:
    """Find the reports that were given; say on stderr what else stood in their folders."""
    from rooflens.ingest.reports.inputs import find_inputs

    if not paths:
        raise UsageError("no report given", "give a `.ncu-rep` file or a folder of them")
    inputs = find_inputs(paths)
    if inputs.ignored:
        names = _some([path.name for path in inputs.ignored])
        verb = "is" if len(inputs.ignored) == 1 else "are"
        click.echo(f"left {count(len(inputs.ignored), 'file')} unread that {verb} no report: {names}", err=True)
    return inputs


def _some(names: Sequence[str]) -> str:
    """List the first few names, and show that there are more."""
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def load_analyses(paths: Sequence[str], store: Path | None, limits: Thresholds) -> tuple[Loaded, list[Analysis]]:
    """Load reports from paths or from a store and analyze them; a store also gets its table `roofline`."""
    from rooflens.ingest.reports.load import load_reports

    if bool(paths) == bool(store):
        raise UsageError("give reports or --store, one of the two", "`rooflens analyze report.ncu-rep`")
    if store is not None:
        loaded = _from_store(store)
    else:
        inputs = find_reports(paths)
        with progress(len(inputs.jobs)) as advance:
            loaded = load_reports(inputs.jobs, advance)
    by_report = analyze_loaded(loaded, limits)
    if store is not None:
        _keep_rooflines(store, by_report, limits)
    return loaded, [analysis for analyses in by_report for analysis in analyses]


def _from_store(store: Path) -> Loaded:
    from rooflens.ingest.reports.load import Loaded
    from rooflens.ingest.reports.pool import Job
    from rooflens.model.store.store import Store

    reports, failures = Store.existing(store).load()
    return Loaded(reports=reports, failures=[(Job(file, str(file)), error) for file, error in failures])


def analyze_loaded(loaded: Loaded, limits: Thresholds) -> list[list[Analysis]]:
    """Analyze report by report, each with its un-profiled run and the calibration of its GPU, where there are any."""
    from collections import Counter
    from dataclasses import replace

    from rooflens.ingest.ncu.unprofiled import read_unprofiled
    from rooflens.model.analyze import analyze as analyze_kernel
    from rooflens.model.records import Outside
    from rooflens.model.roofline.attainable import find_attainable
    from rooflens.model.roofline.calibrations import calibrations_folder, load_calibrations

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
        if unprofiled and _should_hold_each(run):
            _warn_of_missing(run.source, unprofiled.names_without(profiled))
        analyses = []
        for kernel in kernels:
            shape = kernel.name, kernel.grid, kernel.block
            launches = unprofiled.launches_of(*shape, profiled[shape]) if unprofiled else 1
            attainable = find_attainable(kernel.gpu, kernel.counters.get("sm_clock_hz"), calibrations)
            outside = replace(one_each, launches=launches, attainable=attainable)
            analyses.append(analyze_kernel(kernel, limits, outside))
        by_report.append(analyses)
    return by_report


def _should_hold_each(run: Run) -> bool:
    """Tell whether a report was to hold each distinct launch of its program."""
    from rooflens.model.predict.measured import read_coverage

    coverage = read_coverage(run)
    return coverage.once_each and not coverage.in_range and "--kernel-" not in (run.command_line or "")


def _warn_of_missing(source: str, names: Sequence[str]) -> None:
    """Name kernels that ran and are not in a report: ncu took their launches for others', or was stopped."""
    if names:
        told = _some([printable(name) for name in names])
        kernels = count(len(names), "kernel")
        words = f"{printable(source)}: launches of {kernels} ran and are not in the report: {told}"
        click.echo(f"warning: {words}; `--kernel NAME` profiles them", err=True)


def _keep_rooflines(store: Path, by_report: Sequence[Sequence[Analysis]], limits: Thresholds) -> None:
    """Write positions and verdicts back to the store; where that fails, the analysis is still worth showing."""
    from rooflens.model.store.store import Store

    try:
        Store(store).put_rooflines(by_report, limits)
    except InputError as error:
        click.echo(f"warning: {error}; verdicts are not kept", err=True)


def read_thresholds(file: Path | None) -> Thresholds:
    """Read the thresholds that a file puts over the defaults."""
    from rooflens.model.verdict.thresholds import default_thresholds, override_thresholds

    if file is None:
        return default_thresholds()
    return override_thresholds(read_text(file, "docs/method.md shows a thresholds file"), str(file))
