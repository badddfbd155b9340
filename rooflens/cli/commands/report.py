"""`rooflens report`: a file about all kernels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import deliver, finish, say, show
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
    answer_of,
    load_analyzed,
    refuse_with_traces,
    traces_of,
    with_wanted,
)
from rooflens.cli.usage import Command, examples
from rooflens.errors import UsageError
from rooflens.writing.outputs import check_folder, check_free, format_of, refuse_report, write_output

if TYPE_CHECKING:
    from rooflens.cli.wanted import Wanted
    from rooflens.writing.answers import Answer

_STDOUT = Path("-")

_FORMATS = ("html", "md", "pdf", "png", "svg", "json", "csv")
_PICTURES = ("pdf", "png", "svg")
_BINARY = frozenset({"pdf", "png"})


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens report report.ncu-rep -o page.html",
        "rooflens report v1.ncu-rep v2.ncu-rep -o versions.html",
        "rooflens report report.ncu-rep -o summary.md",
        "rooflens report report.ncu-rep -o figure.pdf",
        "rooflens report trace.json.gz -o program.html",
        "rooflens report --store runs -o nightly.html --title nightly",
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
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="File to write, or `-` for stdout.  [default: report.FORMAT]",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(_FORMATS),
    help="What to write; by default taken from the file's extension, else html.",
)
@click.option("--theme", type=click.Choice(["light", "dark"]), help="Colours of a pdf, png or svg.  [default: light]")
@click.option("--title", help="Title of the page; by default the names of the reports.")
@PREDICT
@READER
@GPU
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--open", "opened", is_flag=True, help="Open the file in the browser.")
@click.option("--table", is_flag=True, help="Also print the table of `analyze`.")
@with_wanted
def report(
    *,
    wanted: Wanted,
    output: Path | None,
    style: str | None,
    theme: str | None,
    title: str | None,
    force: bool,
    opened: bool,
    table: bool,
) -> None:
    """Write a file on all kernels: an offline page, Markdown for a pull request, a picture or JSON."""
    if output not in {None, _STDOUT}:
        refuse_report(output)
    style = _format_of(output, style)
    output = output or Path(f"report.{style}")
    _check_output(output, style, force=force, table=table, opened=opened)
    _check_options(style, theme, wanted.predict, table=table)
    if traces := traces_of(wanted):
        refuse_with_traces(traces, wanted)
        _report_traces(answer_of(traces, wanted, is_drawn=True), style, output, title, table=table, opened=opened)
        return
    from rooflens.writing.answers import of_kernels
    from rooflens.writing.naming import default_title
    from rooflens.writing.rendering import render

    stated = read_stated(wanted.predict)
    found = load_analyzed(wanted, keep=True)
    if not found.analyses:
        finish(found, "")
        return
    expected = find_expected(found.reports, stated)
    title = title or default_title([one.run for one in found.reports])
    rendered = render(found, style, title=title, expected=expected, dark=theme == "dark")
    for note in rendered.notes:
        say(f"note: {note}")
    if output == _STDOUT:
        click.echo(rendered.data, nl=False)
    else:
        write_output(output, rendered.data)
    if table:
        tabled = of_kernels(found, expected=expected.check(found.reports))
        show(tabled.shown())
        for line in tabled.remarks():
            say(line)
    if opened:
        _open(output)
    finish(found, "" if output == _STDOUT else f"wrote {output}")


def _report_traces(answer: Answer, style: str, output: Path, title: str | None, *, table: bool, opened: bool) -> None:
    from msgspec.structs import replace

    if style in _PICTURES:
        raise UsageError(f"a trace has no roofline to draw as {style}", "write html, md or json")
    if title and answer.heading:
        _, facts, synthetic = answer.heading()
        answer = replace(answer, heading=lambda: (title, facts, synthetic))
    deliver(answer, style, None if output == _STDOUT else output)
    if table:
        show(answer.shown())
    if opened:
        _open(output)


def _open(page: Path) -> None:
    if click.launch(page.resolve().as_uri()) != 0:
        say(f"note: no browser could be started: open {page} yourself")


def _format_of(output: Path | None, style: str | None) -> str:
    """Return the format of --format or the file's ending, which must not contradict each other."""
    if output is None or (output != _STDOUT and not output.suffix):
        return style or "html"
    if output == _STDOUT:
        if style is None:
            raise UsageError("`-o -` needs --format", "for example `--format md`")
        return style
    return format_of(output, style, _FORMATS)


def _check_options(style: str, theme: str | None, predict: str | None, *, table: bool) -> None:
    """Refuse options that the format cannot use."""
    if theme and style not in _PICTURES:
        raise UsageError(f"--theme is for pictures, not for {style}", "leave it out; a page has its own switch")
    if predict is not None and style not in {"html", "md"} and not table:
        hint = "`rooflens analyze --predict ... --format json` writes it as data"
        raise UsageError(f"--predict works with html, md or --table, not with {style} alone", hint)


def _check_output(output: Path, style: str, *, force: bool, table: bool, opened: bool) -> None:
    """Refuse to overwrite a file without `--force`, to write two outputs to stdout, or to open something but a file."""
    if output == _STDOUT:
        if opened:
            raise UsageError("--open needs a file", "name it with -o")
        if table:
            raise UsageError("--table and `-o -` both write to stdout", "drop one of the two")
        if style in _BINARY and _stdout_is_terminal():
            raise UsageError(f"a terminal cannot show a {style}", "name a file with -o, or pipe it somewhere")
        return
    check_folder(output)
    check_free(output, force=force)


def _stdout_is_terminal() -> bool:
    return sys.stdout.isatty()
