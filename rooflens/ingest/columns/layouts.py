"""The layouts of a report: which metrics kernels store, and in which order, learnt from one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rooflens.errors import InputError
from rooflens.ingest.columns.walking import Entry, Shape, fields_of
from rooflens.ingest.metrics.layouts import DOUBLE_BYTES
from rooflens.ingest.metrics.stored import OPCODE_TABLES
from rooflens.ingest.reports.direct import METRICS_FIELD
from rooflens.ingest.reports.encoded import (
    BEFORE_DOUBLE,
    TAIL,
    UnknownContentError,
    before_value,
    name_id_of,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.ingest.columns.walking import Kind
    from rooflens.ingest.reports.direct import Direct

_ONE_BYTE = 0x80
"""Tags below it take one byte."""

_KINDS: tuple[Kind, ...] = ("double", "count", "other")


class Layout(NamedTuple):
    """A shape with the names of its metrics; a name is empty where the metric is not wanted.

    Attributes:
        names: By kind, in the order of the shape.
        later: Names of the metrics that are not doubles, in the order in which `Direct` reads those of a result.
        examples: The encoded metrics of kind `other`, as in the result that the layout was learnt from.
    """

    shape: Shape
    names: Mapping[Kind, tuple[str, ...]]
    later: tuple[str, ...]
    examples: tuple[bytes, ...]


def learn(direct: Direct, index: int) -> Layout | None:
    """Learn the layout of a kernel; None where kernels like it have to be read one by one."""
    try:
        direct.message(index)
        return _layout(direct, direct.encoded(range(index, index + 1)))
    except (InputError, UnknownContentError):
        return None  # the reader of single results says what is wrong


def _layout(direct: Direct, encoded: bytes) -> Layout | None:
    fields = fields_of(encoded) or []
    tags = [field.number << 3 | field.wire for field in fields]
    are_metrics = [field.number == METRICS_FIELD for field in fields]
    if True not in are_metrics:
        return None
    first, count = are_metrics.index(True), sum(are_metrics)
    if not all(are_metrics[first : first + count]) or max(tags[: first + 1]) >= _ONE_BYTE:
        return None
    stored = [encoded[field.start : field.end] for field in fields[first : first + count]]
    if not all(stored) or min(name_ids := [name_id_of(entry) for entry in stored]) < 0:
        return None
    names = [direct.name(name_id) for name_id in name_ids]
    entries = [_entry(entry, before_value(name_id)) for entry, name_id in zip(stored, name_ids, strict=True)]
    tails = {entry.tail for entry in entries if entry.kind == "count" and entry.tail}
    if not _are_plain(direct, [name for name in names if name]) or len(tails) > 1:
        return None
    found = [*zip(names, stored, entries, strict=True)]
    head = [(tag, field.wire) for tag, field in zip(tags[:first], fields, strict=False)]
    return Layout(
        Shape(head, tags[first], entries),
        {kind: tuple(name for name, _, entry in found if entry.kind == kind) for kind in _KINDS},
        _later(direct, found),
        tuple(encoded for _, encoded, entry in found if entry.kind == "other"),
    )


def _are_plain(direct: Direct, names: Sequence[str]) -> bool:
    """Return whether no metric is stored twice, and none has instances that are read."""
    instances = direct.by_instance | {*OPCODE_TABLES}
    return len({*names}) == len(names) and instances.isdisjoint(names)


def _later(direct: Direct, found: Sequence[tuple[str, bytes, Entry]]) -> tuple[str, ...]:
    """Return the names of the metrics that are not doubles; those decoded apart come last."""
    others = [(name, direct.own(encoded).is_apart) for name, encoded, entry in found if name and entry.kind != "double"]
    return tuple(name for name, _ in sorted(others, key=lambda other: other[1]))


def _entry(encoded: bytes, before: bytes) -> Entry:
    """Tell what kind of metric this is."""
    start = before + BEFORE_DOUBLE
    tail = encoded[len(start) + DOUBLE_BYTES :]
    if encoded.startswith(start) and len(encoded) >= len(start) + DOUBLE_BYTES and tail in {b"", TAIL}:
        return Entry("double", start, tail)
    if whole_number(encoded, {before: ""}) is not None:
        return Entry("count", before, encoded[len(before) + 2 + encoded[len(before) + 1] :])
    return Entry("other")
