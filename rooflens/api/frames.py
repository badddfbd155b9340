"""Opened kernels as tables: the summary, and the tables of a store."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from rooflens.errors import UsageError
from rooflens.model.catalogue import kernel_quantities, quantities
from rooflens.model.store.columns import field_of
from rooflens.model.store.tables import (
    METRICS,
    finding_table,
    hotspot_table,
    kernel_table,
    roofline_table,
    verdict_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rooflens.api.kernel import Kernel
    from rooflens.api.sources import Source

TableName = Literal["summary", "kernels", "verdicts", "roofline", "findings", "hotspots", "metrics"]


def to_table(kernels: Sequence[Kernel], sources: Iterable[Source], table: str) -> pa.Table:
    """Make a table of kernels, in their order.

    Args:
        kernels: The kernels.
        sources: The reports they come from.
        table: One of `TableName`.

    Raises:
        UsageError: The table does not exist.
        InputError: `metrics` were requested, but a report is gone or has changed.
    """
    if table == "summary":
        return _summary(kernels)
    analyses = [kernel.analysis for kernel in kernels]
    makers: Mapping[str, Callable[[], pa.Table]] = {
        "kernels": lambda: kernel_table([analysis.kernel for analysis in analyses]),
        "verdicts": lambda: verdict_table(analyses).drop_columns(["inputs_digest", "analysis"]),
        "roofline": lambda: roofline_table(analyses),
        "findings": lambda: finding_table(analyses),
        "hotspots": lambda: hotspot_table([analysis.kernel for analysis in analyses]),
        "metrics": lambda: _metrics_table(kernels, sources),
    }
    if table not in makers:
        raise UsageError(f"there is no table `{table}`", f"there are {', '.join(get_args(TableName))}")
    return makers[table]()


def _summary(kernels: Sequence[Kernel]) -> pa.Table:
    """Make a column per quantity of the catalogue, and a column with the share of GPU time."""
    fields = [*map(field_of, (*quantities(), kernel_quantities()["time_share"]))]
    columns = [pa.array([kernel[field.name] for kernel in kernels], field.type) for field in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _metrics_table(kernels: Sequence[Kernel], sources: Iterable[Source]) -> pa.Table:
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for kernel in kernels:
        wanted[kernel.analysis.kernel.digest].append(kernel.index)
    tables = [METRICS.empty_table()]
    for source in sources:
        if indices := wanted.get(source.report.run.digest):
            rows = source.metric_table()
            tables.append(rows.filter(pc.is_in(rows["kernel_index"], pa.array(indices, pa.int32()))))
    return pa.concat_tables(tables).unify_dictionaries()
