"""`rooflens report`: one file about all kernels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from rooflens.cli.console import (
    analyses_of,
    check_free,
    default_title,
    finish,
    format_of,
    print_table,
    refuse_report,
    say,
)
from rooflens.cli.expectations import PREDICT, find_expected, print_expected, read_stated
from rooflens.cli.loading import PATHS, STORE, THRESHOLDS, WHERE, load_analyzed, with_reading
from rooflens.errors import UsageError
from rooflens.files import write_whole

if TYPE_CHECKING:
    from rooflens.analyzing import Analyzed
    from rooflens.cli.expectations import Expected
    from rooflens.ingest.reports.report import ReadOptions

_STDOUT = Path("-")

_FORMATS = ("html", "md", "png", "svg", "json")
_PICTURES = ("png", "svg")


class Content(Struct, frozen=True):
    """What a file is written of."""

    found: Analyzed
    title: str
    expected: Expected


@click.command()
@PATHS
@STORE
@WHERE
@THRESHOLDS
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
    help="What to write; by default what the ending of the file says, else html.",
)
@click.option("--theme", type=click.Choice(["light", "dark"]), help="Colours of a png or svg.  [default: light]")
@click.option("--title", help="Title; by default the names of the reports.")
@PREDICT
@with_reading
@click.option("--force", is_flag=True, help="Write over an existing file.")
@click.option("--table", is_flag=True, help="Also print the table of `analyze`.")
def report(
    paths: tuple[str, ...],
    store: str | None,
    where: str | None,
    thresholds: Path | None,
    output: Path | None,
    *,
    style: str | None,
    theme: str | None,
    title: str | None,
    predict: str | None,
    reading: ReadOptions,
    force: bool,
    table: bool,
) -> None:
    """Write one offline file about all kernels: the page, Markdown for a pull request, a picture or JSON."""
    if output not in {None, _STDOUT}:
        refuse_report(output)
    style = _format_of(output, style)
    output = output or Path(f"report.{style}")
    _check_output(output, style, force=force, table=table)
    if theme and style not in _PICTURES:
        raise UsageError(f"--theme is for pictures, not for {style}", "leave it out; a page has its own switch")
    if predict is not None and style != "html" and not table:
        raise UsageError(f"--predict goes with a page or --table, not with {style} alone", "leave one of the two out")
    from rooflens.analyzing import read_thresholds
    from rooflens.guarding import write_all

    limits, stated = read_thresholds(thresholds), read_stated(predict)
    found = load_analyzed(paths, store, limits, where=where, keep=True, reading=reading)
    if not analyses_of(found.reports):
        finish(found, "")
        return
    expected = find_expected(found.reports, stated)
    content = Content(found, title or default_title([one.run for one in found.reports]), expected)
    data = write_all(
        found.reports,
        found.limits,
        lambda reports: _rendered(style, replace(content, found=replace(found, reports=reports)), dark=theme == "dark"),
    )
    if output == _STDOUT:
        click.echo(data, nl=False)
    else:
        write_whole(output, data)
    if table:
        print_table(found)
        print_expected(found.reports, expected)
    finish(found, "" if output == _STDOUT else f"wrote {output}")


def _format_of(output: Path | None, style: str | None) -> str:
    """Find the format in --format or in the ending of the file; the two may not contradict each other."""
    if output is None or (output != _STDOUT and not output.suffix):
        return style or "html"
    if output == _STDOUT:
        if style is None:
            raise UsageError("`-o -` needs --format", "for example `--format md`")
        return style
    return format_of(output, style, _FORMATS)


def _check_output(output: Path, style: str, *, force: bool, table: bool) -> None:
    """Refuse to write over a file without being told to, or two things at once."""
    if output == _STDOUT:
        if table:
            raise UsageError("--table and `-o -` both write to stdout", "leave one of the two out")
        if style == "png" and _stdout_is_terminal():
            raise UsageError("a terminal cannot show a png", "name a file with -o, or pipe it somewhere")
        return
    check_free(output, force=force, hint="give another name with -o, or --force to write over it")


def _stdout_is_terminal() -> bool:
    return sys.stdout.isatty()


def _rendered(style: str, content: Content, *, dark: bool) -> bytes:
    """Write the analyses in one of the formats."""
    found, expected = content.found, content.expected
    if style == "json":
        from rooflens.report.text.json_csv import to_json

        return _encoded(to_json(analyses_of(found.reports), found.reports) + "\n")
    if style == "html":
        from rooflens.report.page.page import render_page

        text = render_page(
            found.reports,
            title=content.title,
            limits=found.limits,
            unread=found.failures,
            predictions=expected.reports,
            rules=expected.rules,
        )
        return _encoded(text)
    from rooflens.report.content import build_content

    page = build_content(found.reports, content.title, found.limits, found.failures)
    if style == "md":
        from rooflens.report.text.markdown import render_markdown

        return _encoded(render_markdown(page))
    from rooflens.report.roofline.picture import draw_rooflines

    picture = draw_rooflines(page, dark=dark)
    for note in picture.notes:
        say(f"note: {note}")
    return picture.png() if style == "png" else _encoded(picture.svg)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
