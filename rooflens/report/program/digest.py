"""A timeline without a report in a few hundred bytes for a model: as many kernels as have room."""

from __future__ import annotations

from collections.abc import Sequence

from rooflens.model.program.program import Program
from rooflens.report.document import Block, Column, Document, Table
from rooflens.report.program.document import SHOWN, traces_document
from rooflens.report.program.words import SHARES
from rooflens.report.token_budget import BYTES_PER_TOKEN, DEFAULT_TOKENS
from rooflens.report.writers.markdown import to_markdown

_DIGEST_COLUMNS = {"kernel", "time", *SHARES, "launches", "floor", "to win", "operator", "shape", "from", "first move"}


def digest(programs: Sequence[Program], max_tokens: int | None = None, most_rows: int | None = None) -> str:
    """Write timelines as Markdown of a bounded size; rows with least to win leave first.

    Args:
        programs: One or more timelines.
        max_tokens: Size, at three bytes a token; 1,500 by default.
        most_rows: Rows of each list at most.
    """
    most = (max_tokens or DEFAULT_TOKENS) * BYTES_PER_TOKEN
    text = ""
    for top in range(most_rows or SHOWN, 0, -1):
        text = to_markdown(_narrowed(traces_document(programs, top, brief=True)))
        if len(text.encode()) <= most:
            return text
    cut = text.encode()[: most - 4].decode(errors="ignore").rpartition("\n")[0]
    return f"{cut}\n...\n"


def _narrowed(document: Document) -> Document:
    return tuple(_narrow(block) for block in document)


def _narrow(block: Block) -> Block:
    """Leave out the columns of a table that a model can do without."""
    if not isinstance(block, Table) or block.columns[0].heading not in _DIGEST_COLUMNS:
        return block
    places = [at for at, column in enumerate(block.columns) if column.heading in _DIGEST_COLUMNS]
    columns: tuple[Column, ...] = tuple(block.columns[at] for at in places)
    rows = tuple(tuple(row[at] for at in places) for row in block.rows)
    return block._replace(columns=columns, rows=rows)
