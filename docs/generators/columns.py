"""Write docs/reference/columns.md: the quantities of a kernel, and the columns of a store's tables."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from generators.texts import MADE, joined, shown_unit, table, unit_of
from rooflens.model.catalogue import quantities
from rooflens.model.store.tables import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = f"""\
# Columns

The columns of `rooflens analyze --format csv`, of the frames of the API, and of a [store](../how-to/store.md).

{MADE}

What was not measured is null, never 0. Amounts are in base units.

## A launch

Each quantity of a launch has one name in CSV, in `Report.to_arrow()`, `to_pandas()` and `to_polars()`, and in the
table `verdicts` of a store, which has the most asked ones. It is the path of the key in the [JSON](json.md): the item,
then the quantity (`levels.dram.share` is `dram_share`), other groups first (`verdict.bound` is `verdict_bound`). Frames
have one column more: `time_share`, of the GPU time of all that was opened.
"""

_STORE = f"""
## Tables of a store

These are the tables of schema version {SCHEMA_VERSION}. All join on `digest`, those of kernels also on
`kernel_index`. Where each of the quantities comes from, and what one count is: [Counters](counters/index.md).
"""

_MEANINGS = tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))


def page() -> str:
    """Write the page."""
    return joined(_HEAD, *_launch(), _STORE, *(line for name in TABLES for line in _table(name)))


def _launch() -> Iterator[str]:
    rows = (
        (f"`{q.name}`", q.label, q.kind.replace("real", "number"), shown_unit(q.key.unit), q.key.meaning)
        for q in quantities()
    )
    yield from table(("column", "label", "type", "unit", "meaning"), rows)


def _table(name: str) -> Iterator[str]:
    yield f"\n### `{name}`\n\n{_MEANINGS['tables'][name]}\n"
    own = _MEANINGS.get(name, {})
    rows = (
        (
            f"`{field.name}`",
            _type(field.type),
            _unit(field),
            _of_catalogue(field, "meaning") or own.get(field.name) or _MEANINGS["columns"][field.name],
        )
        for field in TABLES[name]
    )
    yield from table(("column", "type", "unit", "meaning"), rows)


def _of_catalogue(field: pa.Field, name: str) -> str:
    return (field.metadata or {}).get(name.encode(), b"").decode()


def _unit(field: pa.Field) -> str:
    if unit := _of_catalogue(field, "unit"):
        return shown_unit(unit)
    return unit_of(field.name) if pa.types.is_floating(field.type) or pa.types.is_integer(field.type) else ""


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
