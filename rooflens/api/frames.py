"""Opened kernels as tables: our own summary, and the tables as a store would hold them."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from rooflens.api.values import metric_table
from rooflens.errors import UsageError
from rooflens.model.analyze import MODEL_VERSION
from rooflens.model.records import LEVELS
from rooflens.model.store.rows import kernel_table
from rooflens.model.store.schema import METRICS
from rooflens.model.store.tables.findings import finding_table, hotspot_table
from rooflens.model.store.tables.roofline import ROOFLINE, roofline_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rooflens.api.kernel import Kernel
    from rooflens.api.sources import Source

TableName = Literal["summary", "kernels", "roofline", "findings", "hotspots", "metrics"]

_TEXT, _INT, _REAL, _TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()

_AT_LEVELS = {
    "bytes": "amount_bytes",
    "bytes_per_s": "bytes_per_s",
    "share": "share",
    "intensity_flop_per_byte": "intensity_flop_per_byte",
}


def _at(level: str, field: str) -> Callable[[Kernel], Any]:
    value = attrgetter(field)
    return lambda kernel: value(kernel.levels[level])


SUMMARY: Mapping[str, tuple[pa.DataType, Callable[[Kernel], Any]]] = {
    "key": (_TEXT, attrgetter("key")),
    "name": (_TEXT, attrgetter("name")),
    "function_name": (_TEXT, attrgetter("function_name")),
    "source": (_TEXT, attrgetter("source")),
    "digest": (_TEXT, attrgetter("analysis.kernel.digest")),
    "kernel_index": (_INT, attrgetter("index")),
    "gpu": (_TEXT, attrgetter("gpu")),
    "compute_capability": (_TEXT, attrgetter("compute_capability")),
    "nvtx_range": (_TEXT, attrgetter("nvtx_range")),
    "status": (_TEXT, attrgetter("status")),
    "status_reason": (_TEXT, attrgetter("status_reason")),
    "synthetic": (_TRUTH, attrgetter("is_synthetic")),
    "launches": (_INT, attrgetter("launches")),
    "duration_ns": (_REAL, attrgetter("duration_ns")),
    "gpu_time_ns": (_REAL, attrgetter("gpu_time_ns")),
    "time_share": (_REAL, attrgetter("time_share")),
    "bound": (_TEXT, attrgetter("verdict.bound")),
    "resource": (_TEXT, attrgetter("verdict.resource")),
    "at_roof": (_TRUTH, attrgetter("verdict.at_roof")),
    "cause": (_TEXT, attrgetter("verdict.cause")),
    "headroom": (_REAL, attrgetter("verdict.headroom")),
    "potential": (_REAL, attrgetter("verdict.potential")),
    "potential_by_reuse": (_REAL, attrgetter("verdict.potential_by_reuse")),
    "floor_ns": (_REAL, attrgetter("verdict.floor_ns")),
    "confidence": (_TEXT, attrgetter("verdict.confidence")),
    "sentence": (_TEXT, attrgetter("verdict.sentence")),
    "flags": (pa.list_(_TEXT), attrgetter("flags")),
    "flop_total": (_REAL, attrgetter("flop_total")),
    "flop_per_s": (_REAL, attrgetter("flop_per_s")),
    "flop_peak_per_s": (_REAL, attrgetter("analysis.flop_peak_per_s")),
    **{f"{level}_{name}": (_REAL, _at(level, field)) for level in LEVELS for name, field in _AT_LEVELS.items()},
}
"""Column of the summary -> its type, and where its value comes from."""


def to_table(kernels: Sequence[Kernel], sources: Iterable[Source], thresholds_digest: str, table: str) -> pa.Table:
    """Make a table of kernels, in their order.

    Args:
        kernels: The kernels.
        sources: The reports they come from.
        thresholds_digest: Digest of the thresholds behind their verdicts.
        table: One of `TableName`.

    Raises:
        UsageError: There is no such table.
        InputError: `metrics` are requested, but their report is gone or has changed.
    """
    if table == "summary":
        columns = [pa.array(map(value, kernels), kind) for kind, value in SUMMARY.values()]
        return pa.Table.from_arrays(columns, names=[*SUMMARY])
    analyses = [kernel.analysis for kernel in kernels]
    makers: Mapping[str, Callable[[], pa.Table]] = {
        "kernels": lambda: kernel_table([analysis.kernel for analysis in analyses]),
        "roofline": lambda: roofline_table(analyses, MODEL_VERSION, thresholds_digest).cast(ROOFLINE),
        "findings": lambda: finding_table(analyses, MODEL_VERSION, thresholds_digest),
        "hotspots": lambda: hotspot_table([analysis.kernel for analysis in analyses]),
        "metrics": lambda: _metrics(kernels, sources),
    }
    if table not in makers:
        raise UsageError(f"there is no table `{table}`", f"there are {', '.join(get_args(TableName))}")
    return makers[table]()


def _metrics(kernels: Sequence[Kernel], sources: Iterable[Source]) -> pa.Table:
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for kernel in kernels:
        wanted[kernel.analysis.kernel.digest].append(kernel.index)
    tables = [METRICS.empty_table()]
    for source in sources:
        if indices := wanted.get(source.report.run.digest):
            rows = metric_table(source)
            tables.append(rows.filter(pc.is_in(rows["kernel_index"], pa.array(indices, pa.int32()))))
    return pa.concat_tables(tables).unify_dictionaries()
