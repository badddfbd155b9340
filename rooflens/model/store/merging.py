"""Merge parts into one: to leave out reports that another part holds, and to compact a store."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from rooflens.model.store.index import open_all_checked
from rooflens.model.store.parts import LEVEL, PartWriter
from rooflens.model.store.schema import DATA
from rooflens.model.store.tables.columns import with_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rooflens.model.store.index import Part
    from rooflens.model.store.parts import PartSummary
    from rooflens.model.store.place import Place

_ROWS_AT_ONCE = 65_536


class Piece(Struct, frozen=True):
    """Some reports of a part.

    Attributes:
        digests: Those that are taken.
    """

    part: Part
    digests: Collection[str]


def merge(place: Place, pieces: Sequence[Piece], *, level: int = LEVEL, healed: Collection[str] = ()) -> PartSummary:
    """Write the reports of some parts as one new part; nothing of the old ones is touched.

    Args:
        place: The store.
        pieces: What to take.
        level: Compression level of zstd.
        healed: Sources that have been read since they failed: their rows of `failures` are left out.

    Raises:
        InputError: A file is damaged.
        OSError: A file is gone, or the place cannot be written to.
    """
    with PartWriter(place, level=level) as writer:
        for piece in pieces:
            writer.add({"runs": _only(piece.part.rows, piece)})
            for table in DATA:
                for rows in _tables(place, piece, table):
                    writer.add({table: rows.filter(_not_in(rows["source"], healed)) if table == "failures" else rows})
    return writer.summary


def _tables(place: Place, piece: Piece, table: str) -> Iterator[pa.Table]:
    with contextlib.ExitStack() as stack:
        for file in open_all_checked(place, piece.part, table):
            for batch in pq.ParquetFile(stack.enter_context(file)).iter_batches(_ROWS_AT_ONCE):
                rows = with_columns(pa.Table.from_batches([batch]), DATA[table])
                if not rows.schema.equals(DATA[table]):  # Parquet knows no lists of a fixed length
                    rows = rows.cast(DATA[table])
                yield _only(rows, piece) if "digest" in rows.column_names else rows


def _only(rows: pa.Table, piece: Piece) -> pa.Table:
    """Leave out the rows of reports that are not taken."""
    if len(piece.digests) == len(piece.part.runs):
        return rows
    return rows.filter(pc.is_in(rows["digest"].cast(pa.string()), pa.array(piece.digests, pa.string())))


def _not_in(column: pa.ChunkedArray, texts: Collection[str]) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(column, pa.array(texts, pa.string())))
