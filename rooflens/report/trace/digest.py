"""A timeline without a report in a few hundred bytes for a model: as many kernels as have room."""

from __future__ import annotations

from collections.abc import Sequence

from rooflens.model.program.program import Program
from rooflens.report.document import Block, Column, Columns, Document, Table
from rooflens.report.sizes import BYTES_PER_TOKEN, DEFAULT_TOKENS
from rooflens.report.trace.document import SHOWN, traces_document
from rooflens.report.writers.markdown import to_markdown

_KEPT = ("kernel", "time", "share", "launches", "floor", "to win", "operator", "shape", "from")


def digest(programs: Sequence[Program], max_tokens: int | None = None) -> str:
    """Write timelines as Markdown of a bounded size; rows with least to win leave first.

    Args:
        programs: One or more timelines.
        max_tokens: Size, at three bytes a token; 1,500 by default.
    """
    most = (max_tokens or DEFAULT_TOKENS) * BYTES_PER_TOKEN
    text = ""
    for top in range(SHOWN, 0, -1):
        text = to_markdown(_short(traces_document(programs, top)))
        if len(text.encode()) <= most:
            return text
    cut = text.encode()[: most - 4].decode(errors="ignore").rpartition("\n")[0]
    return f"{cut}\n...\n"


def _short(document: Document) -> Document:
    return tuple(_narrow(block) for block in document if not isinstance(block, Columns))


def _narrow(block: Block) -> Block:
    """Leave out the columns of a table that a model can do without."""
    if not isinstance(block, Table):
        return block
    places = [at for at, column in enumerate(block.columns) if column.heading in _KEPT]
    columns: tuple[Column, ...] = tuple(block.columns[at] for at in places)
    rows = tuple(tuple(row[at] for at in places) for row in block.rows)
    return Table(columns, rows, shown=block.shown, amount=block.amount, rest=block.rest, label=block.label)
