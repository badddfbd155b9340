"""Writes docs/reference/columns.md: the columns of a store's tables, from their Arrow schemas."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from support.reference.texts import MADE, joined, table, unit_of

from rooflens.model.counters.table import COUNTERS
from rooflens.model.store.schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = f"""\
# Columns of a store

For anyone who queries a [store](../how-to/store.md) with pandas, Polars or DuckDB.

{MADE}

These are the tables of schema version {SCHEMA_VERSION}. All join on `run_id`, those of kernels also on
`kernel_index`. What was not measured is null, never 0. Amounts are in base units, as the names say. Where each of the
quantities comes from, and what one count is: [Counters](counters/index.md).
"""

_MEANINGS = tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))
_COUNTED = {counter.name: counter.meaning for counter in COUNTERS}


def page() -> str:
    """Write the page."""
    return joined(_HEAD, *(line for name in TABLES for line in _table(name)))


def _table(name: str) -> Iterator[str]:
    yield f"\n## `{name}`\n\n{_MEANINGS['tables'][name]}\n"
    own = _MEANINGS.get(name, {})
    rows = (
        (
            f"`{field.name}`",
            _type(field.type),
            unit_of(field.name) if pa.types.is_floating(field.type) or pa.types.is_integer(field.type) else "",
            own.get(field.name) or _COUNTED.get(field.name) or _MEANINGS["columns"][field.name],
        )
        for field in TABLES[name]
    )
    yield from table(("column", "type", "unit", "meaning"), rows)


def _type(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_map(kind):
        return f"map of {_type(kind.item_type)}"
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"list of {_type(kind.value_type)}"
    if pa.types.is_struct(kind):
        return f"struct ({', '.join(field.name for field in kind)})"
    return {"string": "text", "bool": "true or false", "double": "double"}.get(str(kind), str(kind))
