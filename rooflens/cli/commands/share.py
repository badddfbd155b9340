"""`rooflens share`: the part of a report that can be given away."""

from __future__ import annotations

from pathlib import Path

import click

from rooflens.cli.console import say
from rooflens.cli.usage import Command, completed_by_files, examples
from rooflens.errors import InputError, UsageError


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens share report.ncu-rep -o shared.ncu-rep",
        "rooflens share report.ncu-rep -o nameless.ncu-rep --no-names",
    ),
)
@click.argument("report", type=click.Path(path_type=Path, dir_okay=False), shell_complete=completed_by_files)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="OUT",
    help="The report to write, `.ncu-rep`.",
)
@click.option("--no-names", is_flag=True, help="Number kernels, NVTX ranges and source files instead of naming them.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def share(report: Path, *, output: Path, no_names: bool, force: bool) -> None:
    """Write the part of a report that can be given away: its numbers, as a report that opens anywhere.

    Left out are code and source text, folders, host and user names, command line and environment, and the sentences of
    NVIDIA's rules. Verdicts, findings and the numbers of hot lines are preserved. Names of kernels, NVTX ranges and
    source files are kept unless --no-names is given, which also removes results that depend on a library kernel's name.
    """
    from rooflens.writing.outputs import check_free, write_output
    from rooflens.writing.sharing import shared

    if output.suffix.lower() != ".ncu-rep":
        raise UsageError(f"`{output}` does not have a report's name", "give a name that ends in `.ncu-rep`")
    if not report.is_file():
        raise InputError(f"`{report}` is not a file", "give one report, `.ncu-rep` or `.ncu-repz`")
    if output.exists() and report.exists() and output.samefile(report):
        raise UsageError("the output is the report itself", "give another name")
    check_free(output, force=force, hint="give another name, or --force to overwrite it")
    write_output(output, shared(report, names=not no_names), hint="give another place")
    say(f"wrote {output}")
