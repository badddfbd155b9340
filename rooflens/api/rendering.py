"""HTML of reports, kernels, verdicts, findings and levels for notebooks: without script, all text escaped."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from rooflens.errors import EnvironmentMissingError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflens.analyzing import Analyzed
    from rooflens.model import records

ROWS_SHOWN = 3


def report_html(found: Analyzed, words: Iterable[str]) -> str:
    """Write the first screen: the headline, three rows with the gains of their moves, and the roofline beside them.

    Args:
        found: The reports.
        words: Further lines about the reports.
    """
    from rooflens.report.content import build_content
    from rooflens.report.overview.document import headline_words
    from rooflens.report.overview.opportunities import opportunities, unlisted
    from rooflens.report.templates import write_for_notebook

    content = build_content(found.reports, "", found.limits)
    first = opportunities(content, ROWS_SHOWN)
    listed = {row.live.group for row in first.rows if row.live} if first else set()
    more = len(unlisted(content, listed))
    said = [*([f"{more:,} more in `report.to_pandas()` and on the page, `report.show()`"] if more else []), *words]
    try:
        picture = _picture(content)
    except EnvironmentMissingError as error:
        picture = ""
        said.append(f"no picture of the roofline: {error}; {error.hint}")
    return str(write_for_notebook(headline_words(content), first, said, picture))


def _picture(page: Any) -> str:
    from rooflens.report.roofline.picture import draw_rooflines

    try:
        svg = draw_rooflines(page).svg
    except InputError:
        return ""
    return b64encode(svg.encode()).decode()


def kernel_html(report: records.AnalyzedReport, analysis: records.Analysis) -> str:
    """Write a kernel: its name and numbers, its verdict, and what to try."""
    from rooflens.report.kernel.document import KernelView, summary
    from rooflens.report.templates import write_blocks

    return str(write_blocks(summary(KernelView(report, analysis))))


def verdict_html(verdict: records.Verdict, time_ns: float | None = None) -> str:
    """Write a verdict: its sentence, its best move's gain, and its limit."""
    from rooflens.report.kernel.document import verdict_document
    from rooflens.report.templates import write_blocks

    return str(write_blocks(verdict_document(verdict, time_ns)))


def finding_html(finding: records.Finding) -> str:
    """Write a finding: title, gain, numbers, places and move."""
    from rooflens.report.kernel.document import finding_document
    from rooflens.report.templates import write_blocks

    return str(write_blocks(finding_document(finding)))


def level_html(level: records.Level) -> str:
    """Write a memory level: its share, its rate and its peak."""
    from rooflens.report.kernel.units import level_document
    from rooflens.report.templates import write_blocks

    return str(write_blocks(level_document(level)))


def register(shell: Any) -> None:
    """Let a notebook's shell show records of the model: findings and levels have no methods of their own."""
    from rooflens.model import records

    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(records.Finding, finding_html)
    formatter.for_type(records.Level, level_html)
