"""Write a document as a page of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflens.report.document import (
    Block,
    Chart,
    Choice,
    Columns,
    Document,
    Filtered,
    Folded,
    Heading,
    Lanes,
    OnPage,
    Opportunities,
    Words,
)
from rooflens.report.html.blocks import MAX_ROWS, Room, answer_of, plain
from rooflens.report.templates import write_document, write_keys, write_words
from rooflens.report.writers.frame import Page, framed


def to_page(title: str, facts: Sequence[str], document: Document, synthetic: str = "") -> str:
    """Write one self-contained page; it fetches nothing, and its words and tables read without scripts.

    Args:
        title: The heading of the page.
        facts: What it is about, in a line below the heading.
        document: What it says; its highest headings come right below that of the page. The first line of an answer
            that it begins with is the headline.
        synthetic: Which data a generator wrote; empty if all was measured.
    """
    highest = min((block.level for block in _all(document) if isinstance(block, Heading)), default=2)
    first = document[0] if document else None
    answer: Words = ""
    if isinstance(first, Heading) and plain(first.words) == title:
        document = document[1:]
    else:
        answer, document = answer_of(document)
    kinds = (Chart, Choice, Filtered, Lanes, Opportunities)
    has = {kind: any(isinstance(block, kind) for block in _all(document)) for kind in kinds}
    room = Room(lift=highest - 2, rows_left=MAX_ROWS)
    return framed(
        Page(
            title=title.replace(" -> ", " \u2192 "),
            facts=[*facts],
            sections=[write_document(document, room)],
            headline=write_words(answer) if answer else "",
            synthetic=synthetic,
            keys=write_keys(filters=has[Filtered], lanes=has[Lanes]),
            styles=(
                "shared/document.css",
                *(("report/selectors.css", "report/filtered_table.css") if has[Filtered] else ()),
                *(("report/lanes.css",) if has[Lanes] else ()),
                *(("report/first_screen.css",) if has[Opportunities] else ()),
            ),
            scripts=("shared/choice.js",) if has[Choice] else (),
            late_scripts=(
                *(("report/format.js",) if has[Lanes] or has[Filtered] else ()),
                *(("report/filtered_table.js", "report/selectors.js") if has[Filtered] else ()),
                *(("report/lanes.js",) if has[Lanes] else ()),
            ),
            skip=("document", "Skip to what it says"),
            charts=has[Chart],
            draws=has[Lanes],
        )
    )


def _all(document: Document) -> Iterator[Block]:
    for block in document:
        yield block
        if isinstance(block, (Folded, OnPage)):
            yield from _all(block.blocks)
        elif isinstance(block, (Columns, Choice)):
            for part in block.parts if isinstance(block, Columns) else (blocks for _, blocks in block.parts):
                yield from _all(part)
