"""Reports, kernels, verdicts, findings and levels in the cell of a notebook: without script, all text escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence

from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.model.records import Analysis, AnalyzedReport, Finding, Level
from rooflens.model.verdict.thresholds import Thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.kernel.document import KernelView, finding_document, summary, verdict_document
from rooflens.report.kernel.units import level_document
from rooflens.report.overview.document import headline_words
from rooflens.report.overview.opportunities import opportunities, unlisted
from rooflens.report.roofline.picture import draw_rooflines
from rooflens.report.templates import write_blocks, write_for_notebook

ROWS_SHOWN = 3


def report_html(reports: Sequence[AnalyzedReport], limits: Thresholds, words: Iterable[str]) -> str:
    """Write the first screen: the headline, three rows with the gains of their moves, and the roofline beside them.

    Args:
        reports: The reports.
        limits: The thresholds of their verdicts.
        words: Further lines about the reports.
    """
    content = build_content(reports, "", limits)
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


def _picture(content: Content) -> str:
    try:
        svg = draw_rooflines(content).svg
    except InputError:
        return ""
    return b64encode(svg.encode()).decode()


def kernel_html(report: AnalyzedReport, analysis: Analysis) -> str:
    """Write a kernel: its name and numbers, its verdict, and what to try."""
    return str(write_blocks(summary(KernelView(report, analysis))))


def verdict_html(analysis: Analysis) -> str:
    """Write a verdict: its sentence, its best move's gain, and its limit."""
    return str(write_blocks(verdict_document(analysis)))


def finding_html(finding: Finding) -> str:
    """Write a finding: title, gain, numbers, places and move."""
    return str(write_blocks(finding_document(finding)))


def level_html(level: Level) -> str:
    """Write a memory level: its share, its rate and its peak."""
    return str(write_blocks(level_document(level)))
