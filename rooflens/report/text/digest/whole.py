"""The digest of reports: what ran, then each kernel in a few lines, up to a size, largest possible savings first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from rooflens import format as fmt
from rooflens.errors import InputError
from rooflens.model.ranking import opportunities, worth_a_line
from rooflens.model.records import AnalyzedReport
from rooflens.model.summary import KernelSummary, time_part
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.document import Block, Document, Heading, Paragraph, Span, Words, code, paragraph, spans
from rooflens.report.overview.document import overview
from rooflens.report.overview.steps import failed_lines, unread_lines
from rooflens.report.text.digest.kernel import MOVE_WIDTH, block, fitted, row
from rooflens.report.token_budget import BYTES_PER_TOKEN, DEFAULT_TOKENS, LEAST_TOKENS
from rooflens.report.words.kernel import file_of, plain
from rooflens.report.words.verdict import best_move
from rooflens.report.words.verdicts import MARKS, is_marked, verdict_words
from rooflens.report.writers.markdown import to_markdown

ROWS_PART = 0.25
"""Part of the size that is kept for kernels which get one line each, where there are that many."""

_CUT_BYTES = 200
"""Kept for the line that says what was cut."""

_NAMED = 3
_TITLE_WIDTH = 100
_LINE_WIDTH = 240
_READING = "Gains are estimates and do not add up; limits are bounds. Shares are of the report's peaks at its clock."
_READING_BYTES = len(f"{_READING} {MARKS}.\n\n")


def digest(
    reports: Sequence[AnalyzedReport],
    max_tokens: int = DEFAULT_TOKENS,
    top: int | None = None,
    unread: Sequence[tuple[str, InputError]] = (),
) -> str:
    """Write the essentials of reports in Markdown, for a model or a chat message.

    Kernels that can save most time come first, with verdict, shares, evidence, one move and two hot lines; less
    important kernels get one line, and those that do not fit are counted. No text of a report is read as markup.

    Args:
        reports: The reports, or the selected parts.
        max_tokens: Maximum length, in tokens as estimated by `tokens_of`; at least `LEAST_TOKENS`.
        top: Maximum number of kernels.
        unread: Path and error of each report that could not be read.
    """
    page = build_content(reports, _title(reports), default_thresholds(), unread)
    limit_bytes = max(max_tokens, LEAST_TOKENS) * BYTES_PER_TOKEN
    kernels = opportunities(page.kernels)
    first = [row(1, kernels[0], page)] if kernels else []
    least_bytes = sum(map(_markdown_bytes, first)) + _CUT_BYTES
    head = _head(page, min(limit_bytes // 2, limit_bytes - least_bytes))
    has_room = _markdown_bytes(head) + least_bytes + _READING_BYTES <= limit_bytes
    room_bytes = limit_bytes - _markdown_bytes(head) - (_READING_BYTES if has_room else 0) - _CUT_BYTES
    blocks, rows = _shown_kernels(page, kernels[:top], room_bytes)
    rows = rows if blocks or rows else first
    shown = len(blocks) + len(rows)
    named = (verdict_words(one.analysis) for one in kernels[len(blocks) : shown])
    marks = f" {MARKS}." if any(map(is_marked, named)) else ""
    reading = (paragraph(f"{_READING}{marks}"),) if shown and has_room else ()
    lines = (*_left_out(page, kernels[shown:], limit_bytes // BYTES_PER_TOKEN, top), *reading)
    parts = (*head, *chain.from_iterable(blocks), *chain.from_iterable(rows), *lines)
    return f"{to_markdown(parts)}\n"


def tokens_of(text: str) -> int:
    """Estimate the tokens that a model needs for a text: one per three bytes, which is more than most need."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def _markdown_bytes(blocks: Document) -> int:
    """Return the bytes of a part with the empty line after it."""
    return len(to_markdown(blocks).encode("utf-8", "replace")) + 2


def _title(reports: Sequence[AnalyzedReport]) -> str:
    names = [file_of(report.run.source) for report in reports]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "") or "no report"


def _head(page: Content, most_bytes: int) -> Document:
    """Say what ran, where, and what comes first, in as many parts as fit."""
    kept: Document = (Heading(code(fmt.cut_middle(page.title, _TITLE_WIDTH)), 1),)
    parts = (*overview(page, "digest"), *map(paragraph, _not_counted(page)))
    for part in map(_plain_block, parts):
        more = (*kept, part)
        if _markdown_bytes(more) > most_bytes:
            break
        kept = more
    return kept


def _not_counted(page: Content) -> Iterator[Words]:
    """List what no number includes: failed launches and unreadable reports."""
    yield from failed_lines(page)
    if page.failed_count and not page.kernels:
        yield f"Try: {fitted(best_move(page.failed[0].analysis), MOVE_WIDTH)}."
    yield from unread_lines(page)


def _plain_block(block: Block) -> Block:
    """Write a part of the overview without what Markdown escapes, each line cut to a width."""
    if not isinstance(block, Paragraph):
        return block
    lines = (tuple(_bare(one) for one in spans(words)) for words in block.lines)
    return block._replace(lines=tuple(lines), kind="" if block.kind == "warning" else block.kind)


def _bare(span: Span) -> Span:
    if span.style == "code":
        return span
    return Span(plain(span.text.replace(" \u00b7 ", ", "), _LINE_WIDTH))


def _shown_kernels(
    page: Content, kernels: Sequence[KernelSummary], room_bytes: int
) -> tuple[list[Document], list[Document]]:
    """Show as many kernels as fit: the important ones as a block each, the next ones as a line each."""
    blocks: list[Document] = []
    worth = {group.key for group in worth_a_line(kernels)}
    last = max((place for place, group in enumerate(kernels, start=1) if group.key in worth), default=0)
    for group in kernels[:last]:
        made = block(len(blocks) + 1, group, page)
        later = _next_rows(page, kernels, len(blocks) + 1, int(room_bytes * ROWS_PART))
        if _markdown_bytes(made) + sum(map(_markdown_bytes, later)) > room_bytes:
            break
        blocks.append(made)
        room_bytes -= _markdown_bytes(made)
    return blocks, _next_rows(page, kernels, len(blocks), room_bytes)


def _next_rows(page: Content, kernels: Sequence[KernelSummary], start: int, room_bytes: int) -> list[Document]:
    rows: list[Document] = []
    for place in range(start, len(kernels)):
        made = row(place + 1, kernels[place], page)
        room_bytes -= _markdown_bytes(made)
        if room_bytes < 0:
            break
        rows.append(made)
    return rows


def _left_out(page: Content, left: Sequence[KernelSummary], tokens: int, top: int | None) -> Document:
    """Say how much was left out, if anything; versions of a program have no common time."""
    if not left:
        return ()
    kernels = sum(len(row.members) or 1 for row in left)
    part = None if page.ladder else time_part(left)
    share = "" if part is None else f" with {plain(fmt.percent(part))} of GPU time"
    more = "tokens" if top is None else "kernels or tokens"
    return (
        paragraph(
            f"truncated, {fmt.count(kernels, 'more kernel')}{share}: ask for one by its name, or for more {more} "
            f"(now {tokens:,}, of {BYTES_PER_TOKEN} bytes)."
        ),
    )
