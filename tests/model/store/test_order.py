"""Hold the order of rows in a part, and columns made of many kernels at once."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.kernels import make_kernel

from rooflens.model.store.parts import PartWriter, sorted_by
from rooflens.model.store.place import Place
from rooflens.model.store.rows import kernel_table
from rooflens.model.store.schema import INSTANCES, KERNELS, KERNELS_TO_WRITE
from rooflens.model.store.tables.columns import map_column, maps

if TYPE_CHECKING:
    from pathlib import Path

KEYS = ("name", "digest", "kernel_index", "instance")


def _table(rows: list[tuple[str, str, int, int]]) -> pa.Table:
    columns = dict(zip(KEYS, zip(*rows, strict=True), strict=True)) if rows else {key: [] for key in KEYS}
    arrays = [pa.array(columns.get(field.name, [None] * len(rows)), field.type) for field in INSTANCES]
    return pa.Table.from_arrays(arrays, schema=INSTANCES)


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_are_sorted_by_text_whatever_their_numbers(*, shuffled: bool) -> None:
    """Of several tables, each with texts numbered in its own way, in the order of the reports or in none."""
    rows = [
        (name, digest, kernel, instance)
        for digest in ("dd", "bb", "cc")
        for kernel in range(3)
        for name in ("z", "a", "m")
        for instance in range(2)
    ]
    if shuffled:
        Random(1).shuffle(rows)  # noqa: S311 - any order will do
    whole = pa.concat_tables([_table(rows[:7]), _table(rows[7:30]), _table([]), _table(rows[30:])])
    found = sorted_by(whole, KEYS)
    assert [tuple(row[key] for key in KEYS) for row in found.to_pylist()] == sorted(rows)
    assert found.schema.equals(INSTANCES)


def test_no_rows_and_one_row_are_sorted() -> None:
    """Nothing is compared with its neighbour there."""
    assert sorted_by(_table([]), KEYS).num_rows == 0
    assert sorted_by(_table([("a", "b", 1, 2)]), KEYS).num_rows == 1


def test_maps_that_are_one_object_come_back_in_their_rows() -> None:
    """None and an empty map among them stay apart."""
    kind = pa.map_(pa.string(), pa.float64())
    shared, other = {"a": 1.0, "b": 2.0}, {"c": 3.0}
    rows = [shared, None, shared, {}, other, shared, None, shared, shared, other, None, shared]
    assert maps(map_column(rows, kind)) == rows
    assert maps(map_column([], kind)) == []


def test_kernels_are_written_as_the_schema_says(tmp_path: Path) -> None:
    """Texts that are packed on their way come back as plain ones, of neighbours with others in one row group too."""
    sources = [{"sm_cycles": "a", "duration_ns": "b"}, {"sm_cycles": "b"}, {}, {"duration_ns": "a"}] * 3
    kernels = [make_kernel(index=index, counter_sources=one) for index, one in enumerate(sources)]
    with PartWriter(Place(tmp_path)) as writer:
        for some in (kernels[:5], kernels[5:]):
            writer.add({"kernels": kernel_table(some, KERNELS_TO_WRITE)})
    (file,) = tmp_path.glob("kernels/*.parquet")
    found = pq.ParquetFile(file).read()
    assert found.schema.types == KERNELS.types
    assert [dict(one) for one in found["counter_sources"].to_pylist()] == sources
