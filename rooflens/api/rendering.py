"""HTML of reports, kernels, verdicts, findings and levels for notebooks: without script, all text escaped."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Any

from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.format import duration, percent, printable, si, unbroken
from rooflens.report.html import theme

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflens.analyzing import Analyzed
    from rooflens.model import records
    from rooflens.report.summary import Ranked

ROWS_SHOWN = 3


def report_html(found: Analyzed, words: Iterable[str]) -> str:
    """Write the first screen: three rows with the gains of their first moves, and the roofline beside them.

    Args:
        found: The reports.
        words: Further lines about the reports.
    """
    from rooflens.report.content import build_content
    from rooflens.report.summary import ranking

    page = build_content(found.reports, "", found.limits)
    rows = ranking(page)
    longest = max((row.group.duration_ns or 0.0 for row in rows), default=0.0) or 1.0
    items = "".join(_row(row, longest) for row in rows[:ROWS_SHOWN])
    more = len(page.kernels) - sum(len(row.group.members) or 1 for row in rows[:ROWS_SHOWN])
    said = [*([f"{more:,} more in `report.to_pandas()` and on the page, `report.show()`"] if more else []), *words]
    try:
        picture = _picture(page)
    except EnvironmentMissingError as error:
        picture = ""
        said.append(f"no picture of the roofline: {error}; {error.hint}")
    parts = f'<div style="flex:1 1 320px;max-width:460px">{items}{_lines(said)}</div>{picture}'
    return f'<div style="display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start">{parts}</div>'


def _row(row: Ranked, longest_ns: float) -> str:
    time_ns = row.group.duration_ns or 0.0
    bar = _bar(time_ns / longest_ns, row.group.analysis.verdict.shown_class)
    why = ", ".join(part for part in (row.limiter, row.limit, row.where) if part)
    figure = row.figure or duration(row.group.duration_ns)
    return (
        f"<p><b>{row.rank} <code>{_text(row.group.shown)}</code></b> {_text(figure)}{bar}"
        f"{_text(row.move[:1].upper() + row.move[1:])}<br><small>{_text(why)}</small></p>"
    )


def _bar(share: float, bound: str) -> str:
    return f'<div style="height:6px;width:{100 * share:.1f}%;background:{theme.LOOKS[bound].light}"></div>'


def _picture(page: Any) -> str:
    from rooflens.report.roofline.picture import draw_rooflines

    try:
        svg = draw_rooflines(page).svg
    except InputError:
        return ""
    source = b64encode(svg.encode()).decode()
    return f'<div style="flex:2 1 480px"><img alt="roofline" src="data:image/svg+xml;base64,{source}"></div>'


def kernel_html(analysis: records.Analysis) -> str:
    """Write a kernel: its name, its verdict, and the findings that cost time."""
    costing = "".join(finding_html(one) for one in analysis.findings if one.severity != "note")
    name = f"<p><b><code>{_text(analysis.short_name)}</code></b></p>"
    return f"<div>{name}{verdict_html(analysis.verdict, analysis.kernel.duration_ns)}{costing}</div>"


def verdict_html(verdict: records.Verdict, time_ns: float | None = None) -> str:
    """Write a verdict: its sentence, its first move's gain, and its limit."""
    from rooflens.report.words.findings import confidence_words
    from rooflens.report.words.verdict import best_gain_words, limit_factor_words

    numbers = (
        best_gain_words(verdict, time_ns),
        limit_factor_words(verdict),
        confidence_words(verdict.confidence),
    )
    return f"<p>{_text(verdict.sentence)}</p>{_lines([', '.join(number for number in numbers if number)])}"


def finding_html(finding: records.Finding) -> str:
    """Write a finding: title, gain, move, numbers and places."""
    from rooflens.report.words.findings import shown

    one = shown(finding)
    gain = f" {_text(one.gain)}" if one.gain else ""
    where = [f"{place.label} {place.share} {place.code}" for place in one.places]
    return f"<p><b>{_text(one.title)}</b>{gain}: {_text(one.move)}</p>{_lines([', '.join(one.numbers), *where])}"


def level_html(level: records.Level) -> str:
    """Write a memory level: its rate, its peak, and its share of the peak as a bar."""
    share = level.share or 0.0
    rates = [si(rate, "B/s") for rate in (level.bytes_per_s, level.peak_bytes_per_s) if rate]
    bar = f'<div style="max-width:320px">{_bar(min(share, 1), "memory")}</div>'
    return f"<p>{_text(' of '.join(rates) or 'not measured')}, {percent(level.share)}</p>{bar}"


def _lines(texts: Iterable[str]) -> str:
    return "".join(f"<p><small>{_text(text)}</small></p>" for text in texts if text)


def _text(words: str) -> str:
    """Escape a report's text, without characters that steer a terminal or hide text."""
    return escape(unbroken(printable(words)))


def register(shell: Any) -> None:
    """Let a notebook's shell show records of the model: findings and levels have no methods of their own."""
    from rooflens.model import records

    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(records.Finding, finding_html)
    formatter.for_type(records.Level, level_html)
