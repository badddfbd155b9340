"""Read the kernels of a report in columns, straight into rows of the store: what thousands have in common is done once.

Kernels that are encoded alike are decoded together (`rooflens.ingest.columns.walking`); their counters are resolved,
checked for impossible values and put into tables by column, without a record of any kernel. Whatever is out of the
ordinary is left to the reader of single results: kernels with values by instruction or opcode or with samples, with
impossible values, that failed or are damaged, and results that are not kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooflens.errors import InputError
from rooflens.ingest.columns.alike import take
from rooflens.ingest.columns.kernels import kernel_tables
from rooflens.ingest.columns.layouts import learn
from rooflens.ingest.columns.walking import PADDING, Buffer
from rooflens.ingest.reports.container import KERNEL
from rooflens.ingest.reports.encoded import UnknownContentError
from rooflens.ingest.reports.report import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from rooflens.ingest.columns.alike import Alike
    from rooflens.ingest.columns.layouts import Layout
    from rooflens.ingest.columns.walking import Matched, Offsets
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.reports.container import Container
    from rooflens.ingest.reports.direct import Direct
    from rooflens.ingest.reports.results import RawResult

_MOST_AT_ONCE, _MOST_BYTES_AT_ONCE = 1_000, 32 << 20
"""The most results, and bytes of them, that are decoded together."""

_LEAST_ALIKE = 16
"""Fewer kernels are read one by one: setting up columns costs as much as reading some kernels."""

_MOST_TRIES, _MOST_LEARNT = 4, 64
"""The most layouts learnt in one batch, and in a report: a report has a handful."""


def read_rows(direct: Direct, raw: RawTable | None, container: Container) -> Iterator[RawResult | Rows]:
    """Read the results of a report, many at once where possible.

    Args:
        direct: Reads single results.
        raw: Takes every stored value; None where those are not kept.
        container: What the report says of itself.

    Raises:
        InputError: One is damaged.
        UnknownContentError: One holds something unknown.
    """
    return _ColumnReader(direct, raw, container).results()


class _ColumnReader:
    """Reads the results of one report; arguments as for `read_rows`."""

    def __init__(self, direct: Direct, raw: RawTable | None, container: Container) -> None:
        self._direct = direct
        self._raw = raw
        self._container = container
        self._layouts: list[Layout] = []
        self._learnt_count = 0

    def results(self) -> Iterator[RawResult | Rows]:
        """Read all results; the rows of a batch come before its single results."""
        for indices in self._batches():
            rows, left = self._together(indices)
            yield from rows
            yield from map(self._direct.result, left)

    def _batches(self) -> Iterator[range]:
        """Divide the results into batches that are decoded together."""
        everything = self._direct.indices
        start, batch_bytes = everything.start, 0
        for index in everything:
            place = self._direct.place(index)
            size = place.end - place.start
            if index > start and (index - start >= _MOST_AT_ONCE or batch_bytes + size > _MOST_BYTES_AT_ONCE):
                yield range(start, index)
                start, batch_bytes = index, 0
            batch_bytes += size
        yield range(start, everything.stop)

    def _together(self, indices: range) -> tuple[list[Rows], list[int]]:
        """Return the rows of results that are alike, and the indices of the others, in order."""
        waiting = np.array([index for index in indices if self._direct.place(index).kind == KERNEL], np.int64)
        if len(waiting) < _LEAST_ALIKE:
            return [], [*indices]
        encoded = _Encoded(self._direct, indices)
        rows: list[Rows] = []
        is_left = np.ones(len(indices), np.bool_)
        known, tries = [*self._layouts], _MOST_TRIES
        while len(waiting) >= _LEAST_ALIKE and (known or tries):
            if known:
                layout = known.pop(0)
            else:
                tries -= 1
                learnt = self._learn(int(waiting[0]))
                if learnt is None:
                    waiting = waiting[1:]
                    continue
                layout = learnt
            found = encoded.match(layout, waiting)
            taken = waiting[found.which]
            alike = self._taken(layout, found, taken, encoded.buffer.data) if len(taken) >= _LEAST_ALIKE else None
            if alike is not None:
                taken = alike.values.indices  # those left out may still fit another layout
                tables, are_plain = self._rows(alike)
                rows += map(Rows, tables)
                is_left[taken[are_plain] - indices.start] = False
            waiting = np.setdiff1d(waiting, taken)
        return rows, (np.nonzero(is_left)[0] + indices.start).tolist()

    def _taken(self, layout: Layout, found: Matched, indices: Offsets, data: bytes) -> Alike | None:
        """Decode results of one layout; None where what they have in common is damaged or unknown."""
        try:
            return take(self._direct, layout, found, indices, data)
        except (InputError, UnknownContentError):
            return None  # the reader of single results says what is wrong

    def _rows(self, alike: Alike) -> tuple[list[pa.Table], NDArray[np.bool_]]:
        """Make rows of kernels of one layout; return them with a mask of the kernels that they hold."""
        tables, are_plain = kernel_tables(alike, self._container.digest, synthetic=self._container.synthetic)
        if self._raw is not None and are_plain.any():
            self._raw.add_columns(alike.values if are_plain.all() else alike.values.some(are_plain))
        return tables, are_plain

    def _learn(self, index: int) -> Layout | None:
        if self._learnt_count >= _MOST_LEARNT:
            return None
        self._learnt_count += 1
        layout = learn(self._direct, index)
        if layout is not None:
            self._layouts.insert(0, layout)
        return layout


class _Encoded:
    """The bytes of consecutive results."""

    def __init__(self, direct: Direct, indices: range) -> None:
        places = [direct.place(index) for index in indices]
        begin = places[0].start
        self.buffer = Buffer(direct.encoded(indices, PADDING))
        self._first = indices.start
        self._starts = np.array([place.start for place in places], np.int64) - begin
        self._ends = np.array([place.end for place in places], np.int64) - begin

    def match(self, layout: Layout, indices: Offsets) -> Matched:
        """Decode those of the results with these indices that have a layout."""
        at = indices - self._first
        return layout.shape.match(self.buffer, self._starts[at], self._ends[at])
