"""The options that name reports, and the one way from them to analyzed reports: analyze, then say what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import progress
from rooflens.errors import UsageError
from rooflens.format import count, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.analyzing import Analyzed
    from rooflens.ingest.reports.inputs import Inputs
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


def load_analyzed(
    paths: Sequence[str],
    store: Path | None,
    limits: Thresholds | None = None,
    *,
    keep: bool = False,
    without_nvidia: bool = False,
) -> Analyzed:
    """Analyze reports from paths or from a store, and print the warnings.

    Args:
        paths: Reports, or folders of them.
        store: A store, in their place.
        limits: Thresholds; the shipped ones by default.
        keep: Write the verdicts into the store.
        without_nvidia: Withhold what NVIDIA's own rules say.

    Raises:
        UsageError: Neither was given, or both.
        InputError: There is nothing to read.
    """
    from rooflens.analyzing import analyze_inputs, analyze_store

    if bool(paths) == bool(store):
        raise UsageError("give reports or --store, one of the two", "`rooflens analyze report.ncu-rep`")
    if store is not None:
        found = analyze_store(store, limits, keep=keep, without_nvidia=without_nvidia)
    else:
        inputs = find_reports(paths)
        with progress(len(inputs.jobs)) as advance:
            found = analyze_inputs(inputs, limits, advance, without_nvidia=without_nvidia)
    _print_warnings(found)
    return found


def _print_warnings(found: Analyzed) -> None:
    for missing in found.missing:
        names = _some([printable(name) for name in missing.names])
        kernels = count(len(missing.names), "kernel")
        words = f"{printable(missing.source)}: launches of {kernels} ran and are not in the report: {names}"
        click.echo(f"warning: {words}; `--kernel NAME` profiles them", err=True)
    for source, error in found.warnings:
        click.echo(f"warning: {printable(source)}: left out: {printable(str(error))}; {error.hint}", err=True)
    if found.not_kept is not None:
        click.echo(f"warning: {found.not_kept}; verdicts are not kept", err=True)
