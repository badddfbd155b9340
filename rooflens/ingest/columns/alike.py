"""What kernels of one layout store: their values in columns, and beside them what identifies each kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rooflens.errors import InputError
from rooflens.ingest.metrics.columns import ABSENT, ValueColumns
from rooflens.ingest.reports.encoded import UnknownContentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooflens.ingest.columns.layouts import Layout
    from rooflens.ingest.columns.walking import Matched, Offsets
    from rooflens.ingest.metrics.stored import Value
    from rooflens.ingest.reports.direct import Direct, Head


_UNKNOWN: Any = object()


class Alike(NamedTuple):
    """Kernels of one layout.

    Attributes:
        heads: All that each result holds beside its metrics.
        values: The metrics, in columns.
        later: Names of the metrics that are not doubles (`Layout`).
    """

    heads: Sequence[Head]
    values: ValueColumns
    later: Sequence[str]


def take(direct: Direct, layout: Layout, found: Matched, indices: Offsets, data: bytes) -> Alike:
    """Take what some kernels store; those that hold anything unknown or damaged are left out.

    Args:
        direct: Reads single results.
        layout: The kernels' layout.
        found: Where their metrics are.
        indices: Indices of the matched results.
        data: The bytes that `found` points into.
    """
    places = (numbers.tolist() for numbers in (indices, found.begins, found.first, found.last, found.ends))
    heads = [
        _head(direct, index, data[begin:first] + data[last:end])
        for index, begin, first, last, end in zip(*places, strict=True)
    ]
    fits = np.array([head is not None for head in heads], np.bool_)
    names = layout.names["other"]
    others = [
        _Other(direct, name, example).values(data, starts.tolist(), stops.tolist(), fits)
        for name, example, starts, stops in zip(names, layout.examples, found.starts, found.stops, strict=True)
    ]
    values = ValueColumns(
        indices, layout.names["double"], found.doubles, layout.names["count"], found.counts, names, others
    )
    known = [head for head, does_fit in zip(heads, fits.tolist(), strict=True) if head is not None and does_fit]
    return Alike(known, values if fits.all() else values.some(fits), layout.later)


def _head(direct: Direct, index: int, encoded: bytes) -> Head | None:
    try:
        return direct.head(index, encoded)
    except (InputError, UnknownContentError):
        return None


class _Other:
    """A metric that is neither a double nor a whole number."""

    def __init__(self, direct: Direct, name: str, example: bytes) -> None:
        self._direct = direct
        self._name = name
        self._example = example
        self._usual = direct.own(example)

    def values(
        self, data: bytes, starts: Sequence[int], stops: Sequence[int], fits: NDArray[np.bool_]
    ) -> list[Value | None]:
        """Return its values, and clear `fits` for results that have another metric there."""
        usual = self._usual.value if self._usual.is_stored else ABSENT
        known = {self._example: usual}
        values: list[Value | None] = []
        for place, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            entry = data[start:stop]
            value = usual if entry == self._example else known.get(entry, _UNKNOWN)
            if value is _UNKNOWN:
                value, fits_too = self._value(entry)
                fits[place] &= fits_too
                if fits_too:
                    known[entry] = value
            values.append(value)
        return values

    def _value(self, entry: bytes) -> tuple[Value | None, bool]:
        """Return the value of an encoded metric, and whether it is this metric."""
        try:
            own = self._direct.own(entry) if entry else None
        except (InputError, UnknownContentError):
            own = None
        if own is None or own.name != self._name or own.is_apart != self._usual.is_apart:
            return None, False
        return (own.value if own.is_stored else ABSENT), True
