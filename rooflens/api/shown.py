"""Show opened reports in notebooks and write them to files: the table, the page, and the rooflines as a picture."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from rooflens.api import notebook
from rooflens.errors import UsageError
from rooflens.files import write_whole
from rooflens.model.records import LEVELS
from rooflens.writing.outputs import FORMATS, check_free, refuse_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import altair as alt

    from rooflens.analyzing import Analyzed
    from rooflens.model.records import AnalyzedReport
    from rooflens.report.document import Block

_MOST_ROWS = 50
"""Kernels of each GPU that a notebook lists: a longer table is what the page is for."""

_FRAME = "border:1px solid #888;width:100%"
_WRITTEN = ("html", "md", "png", "svg", "json", "csv")


def check_output(file: Path, formats: Sequence[str], *, force: bool) -> str:
    """Return the format that a file's extension names, and refuse to overwrite a report, or any file without `force`.

    Raises:
        UsageError: The extension names none of these formats, or the file exists.
    """
    style = FORMATS.get(file.suffix.lower())
    if style is None or style not in formats:
        endings = ", ".join(ending for ending, known in FORMATS.items() if known in formats)
        raise UsageError(
            f"the extension of `{file}` names no format that this can be written in", f"choose one of {endings}"
        )
    refuse_report(file, "give another name")
    check_free(file, force=force, hint="give another name, or force=True to overwrite it")
    return style


def draw(found: Analyzed, level: str | None, *, dark: bool) -> alt.VConcatChart:
    """Draw the rooflines; errors as those of `Report.chart`."""
    from rooflens.report.content import build_content
    from rooflens.report.plane.plane import ALL
    from rooflens.report.roofline.inlined import inlined
    from rooflens.report.roofline.picture import placed_planes, spec_of

    if level not in {None, *LEVELS, ALL}:
        raise UsageError(f"there is no level `{level}`", f"choose one of {', '.join((*LEVELS, ALL))}")
    page = build_content(found.reports, "", found.limits)
    return inlined([spec_of(plane, page, level) for plane in placed_planes(page)], dark=dark)


def write(found: Analyzed, file: Path, title: str | None, *, force: bool) -> Path:
    """Write a file; errors as those of `Report.save`."""
    from rooflens.writing.rendering import default_title, render

    style = check_output(file, _WRITTEN, force=force)
    title = default_title([report.run for report in found.reports]) if title is None else title
    write_whole(file, render(found, style, title=title).data, hint="give another place")
    return file


def show_page(found: Analyzed, height: int) -> None:
    """Show the page in a frame of its own origin, which can reach nothing of the notebook; errors as `Report.show`."""
    from rooflens.writing.rendering import default_title, render

    display = notebook.display()
    if display is None:
        hint = 'write it to a file, `report.save("page.html")`, and open that in a browser'
        raise UsageError("only a notebook can show a page", hint)
    page = render(found, "html", title=default_title([report.run for report in found.reports])).data.decode()
    sandbox = "allow-scripts allow-downloads"
    frame = f'<iframe sandbox="{sandbox}" style="{_FRAME};height:{height:d}px" srcdoc="{escape(page)}"></iframe>'
    display({"text/html": frame, "text/plain": "the page of rooflens, which only HTML can show"}, raw=True)


def table_html(reports: Sequence[AnalyzedReport], notes: Iterable[str]) -> str:
    """Write the table of each GPU as HTML without script, most time at stake first.

    Args:
        reports: The reports.
        notes: Lines to write below it.
    """
    from rooflens.model.summary import summarize
    from rooflens.report.document import Table, paragraph
    from rooflens.report.text.table import kernels_document
    from rooflens.report.writers.html import to_html

    blocks: list[Block] = []
    for block in kernels_document(summarize([analysis for report in reports for analysis in report.analyses])):
        if isinstance(block, Table) and len(block.rows) > _MOST_ROWS:
            more = paragraph(f"{len(block.rows) - _MOST_ROWS:,} more")
            blocks += [replace(block, rows=block.rows[:_MOST_ROWS]), more]
        else:
            blocks.append(block)
    return f"<div>{to_html((*blocks, paragraph(*notes)))}</div>"
