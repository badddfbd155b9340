"""Convert records to columns and back without a dict per row: maps, lists of records, and repeated texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from rooflens.model.catalogue import CellKind, KernelQuantity


def table_of(records: Sequence[Any], schema: pa.Schema, **given: Any) -> pa.Table:
    """Make a table of records; a column is a given list or array, else the records' field of the same name."""
    arrays = [
        _array(given[field.name] if field.name in given else [getattr(one, field.name) for one in records], field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(column: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if pa.types.is_map(kind):
        return map_column(column, kind)
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        return struct_lists(column, kind)
    return pa.array(column, kind)


def values_of(column: pa.Array) -> list[Any]:
    """Return the values of a column of texts, numbers or maps."""
    if pa.types.is_map(column.type):
        return maps(column)
    return texts(column) if _is_text(column) else list(column.to_pylist())


_ARROW_TYPES: dict[CellKind, pa.DataType] = {
    "text": pa.string(),
    "real": pa.float64(),
    "count": pa.int64(),
    "truth": pa.bool_(),
    "texts": pa.list_(pa.string()),
    "counts": pa.list_(pa.int64()),
}


def field_of(quantity: KernelQuantity) -> pa.Field:
    """Return the column of a quantity, with unit, label and meaning as metadata."""
    words = {"unit": quantity.key.unit, "label": quantity.label, "meaning": quantity.key.meaning}
    return pa.field(quantity.name, _ARROW_TYPES[quantity.kind], metadata=words)


def map_column(maps: Sequence[Mapping[str, Any] | None], kind: pa.MapType) -> pa.Array:
    """Make a column of maps; None becomes null. An object that occurs many times is converted once."""
    distinct, owners = _distinct(maps)
    if owners is not None:
        return map_column(distinct, kind).take(owners)
    offsets = [0]
    keys: list[str] = []
    items: list[Any] = []
    for one in maps:
        if one:
            keys.extend(one)
            items.extend(one.values())
        offsets.append(len(keys))
    starts = [None if one is None else start for one, start in zip(maps, offsets, strict=False)]
    return pa.MapArray.from_arrays(
        pa.array([*starts, offsets[-1]], pa.int32()),
        pa.array(keys, kind.key_type),
        pa.array(items, kind.item_type),
        kind,
    )


def struct_lists(
    lists: Sequence[Sequence[Any]], kind: pa.ListType, get: Callable[[Any, str], Any] = getattr
) -> pa.Array:
    """Make a column of lists of records; `get` returns a record's value for a field of the struct."""
    offsets = [0]
    for one in lists:
        offsets.append(offsets[-1] + len(one))
    flat = list(chain.from_iterable(lists))
    distinct, owners = _distinct(flat)
    if owners is not None:
        made = struct_lists([distinct], kind, get).values.take(owners)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), made, kind)
    struct = kind.value_type
    fields = [struct.field(position) for position in range(struct.num_fields)]
    arrays = [pa.array([get(record, field.name) for record in flat], field.type) for field in fields]
    values = pa.StructArray.from_arrays(arrays, fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, kind)


def _distinct(values: Sequence[Any]) -> tuple[list[Any], pa.Array | None]:
    """Return the distinct objects, and for each value the index of its object; None if few values repeat."""
    ids = [*map(id, values)]
    known = dict(zip(ids, values, strict=True))
    if not 0 < 2 * len(known) <= len(values):
        return [], None
    places = dict(zip(known, range(len(known)), strict=True))
    return [*known.values()], pa.array([*map(places.__getitem__, ids)], pa.int32())


def texts(column: pa.Array) -> list[str | None]:
    """Return the texts of a column, with equal texts as a single object to save memory."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    known = column.dictionary.to_pylist()
    return [None if index is None else known[index] for index in column.indices.to_pylist()]


def maps(column: pa.Array) -> list[dict[str, Any] | None]:
    """Return the maps of a column, with equal maps of texts as a single object; null becomes None."""
    first, last = _bounds_of_list(column)
    keys, items = (values_of(part.slice(first, last - first)) for part in (column.keys, column.items))
    are_shared = _is_text(column.items)
    known: dict[tuple[str, ...], dict[str, Any]] = {}
    found: list[dict[str, Any] | None] = []
    for start, end in _list_bounds(column, first):
        if start is None:
            found.append(None)
            continue
        made = None
        if are_shared:
            made = known.get(same := (*keys[start:end], *items[start:end]))
        if made is None:
            made = dict(zip(keys[start:end], items[start:end], strict=True))
            if are_shared:
                known[same] = made
        found.append(made)
    return found


def lists(column: pa.Array, make: Callable[..., Any]) -> list[tuple[Any, ...] | None]:
    """Return a column's lists of records, made from the fields of its struct; equal records are a single object."""
    first, last = _bounds_of_list(column)
    values = column.values.slice(first, last - first)
    fields = [values_of(values.field(position)) for position in range(values.type.num_fields)]
    made: dict[tuple[Any, ...], Any] = {}
    records = []
    for row in zip(*fields, strict=True):
        if row not in made:
            made[row] = make(*row)
        records.append(made[row])
    return [None if start is None else tuple(records[start:end]) for start, end in _list_bounds(column, first)]


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_dictionary(column.type))


def _bounds_of_list(column: pa.Array) -> tuple[int, int]:
    """Return the start and end of a list column's items in the array that the column is a slice of."""
    offsets = column.offsets
    return (offsets[0].as_py(), offsets[-1].as_py()) if len(offsets) else (0, 0)


def _list_bounds(column: pa.Array, first: int) -> Iterator[tuple[int | None, int]]:
    """Yield start and end of each row's items in a list column, counted from the first item; None for a null."""
    ends = [offset - first for offset in column.offsets.to_pylist()]
    starts: Iterable[int | None] = ends
    if column.null_count:
        valid = column.is_valid().to_pylist()
        starts = [start if is_valid else None for start, is_valid in zip(ends, valid, strict=False)]
    return zip(starts, ends[1:], strict=False)
