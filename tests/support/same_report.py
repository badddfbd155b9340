"""Find differences between two reports of one file, apart from who read them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from msgspec.structs import replace

from rooflens.ingest.reports.report import ReadReport


def differences_of(ours: ReadReport, theirs: ReadReport) -> Iterator[str]:
    """Yield the differences: the run, fields of kernels, stored values and instances."""
    if replace(ours.run, reader="direct") != replace(theirs.run, reader="direct"):
        yield "the run"
    if len(ours.kernels) != len(theirs.kernels):
        yield f"{len(ours.kernels)} kernels, not {len(theirs.kernels)}"
    for kernel, other in zip(ours.kernels, theirs.kernels, strict=False):
        # NVIDIA's module gives no bytes of the code, in which we look for loops.
        names = [name for name in kernel.__struct_fields__ if name not in {"inside", "sources"}]
        # Nor what the line table says of a file.
        texts = ({file: one.text for file, one in each.sources.items() if one.text} for each in (kernel, other))
        if next(texts) != next(texts):
            yield f"source files of result {kernel.index}"
        yield from (
            f"{name} of result {kernel.index}" for name in names if getattr(kernel, name) != getattr(other, name)
        )
    for what, table, other_table in (("values", ours.raw, theirs.raw), ("instances", ours.instances, theirs.instances)):
        if table is not None and other_table is not None and not comparable(table).equals(comparable(other_table)):
            yield f"stored {what}"


def comparable(table: pa.Table) -> pa.Table:
    """Return a table with its rows sorted, as readers differ in their order, and doubles as their bits."""
    columns: dict[str, pa.Array] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        columns[name] = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, whole.type)
    bits = columns["value_double"].view(pa.int64())
    order = [(name, "ascending") for name in ("kernel_index", "name", "instance") if name in columns]
    return pa.table(columns | {"value_double": bits}).sort_by(order)
