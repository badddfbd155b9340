"""The metrics of a report as stored, read on demand from its file or its store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rooflens.addresses import shown
from rooflens.errors import InputError
from rooflens.ingest.reports.jobs import fetched
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.model.store.dataset import Store
from rooflens.model.store.tables import METRICS

if TYPE_CHECKING:
    from rooflens.ingest.metrics.stored import Value
    from rooflens.ingest.reports.jobs import Job
    from rooflens.model.records import Run

_VALUES = ("value_double", "value_uint64", "value_string")


class ReportMetrics:
    """The metrics of one report, by kernel.

    Attributes:
        names: The metrics of any of its kernels.
    """

    def __init__(self, table: pa.Table) -> None:
        """Take rows of the store's table `metrics`."""
        rows = table.sort_by("kernel_index")
        runs = pc.run_end_encode(rows["kernel_index"].combine_chunks())
        ends = runs.run_ends.to_pylist()
        self._rows = rows.select(["name", *_VALUES])
        self._spans = dict(zip(runs.values.to_pylist(), zip([0, *ends], ends, strict=False), strict=True))
        self.names: frozenset[str] = frozenset(pc.unique(table["name"]).to_pylist())

    def of(self, index: int) -> dict[str, Value]:
        """Return the values of a result by metric; empty if it has none."""
        start, end = self._spans.get(index, (0, 0))
        names, *columns = (column.to_pylist() for column in self._rows.slice(start, end - start).columns)
        values: list[Any] = [next((v for v in row if v is not None), None) for row in zip(*columns, strict=True)]
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def metric_table(run: Run, place: Job | str, gpu: str | None) -> pa.Table:
    """Read the metrics of a report, a value per row, as rows of the store's table `metrics`.

    Args:
        run: The opened report.
        place: The job that read it, or the store that holds it.
        gpu: Name of the GPU given to its reader.

    Raises:
        InputError: The report is gone, or has changed since it was opened.
    """
    if isinstance(place, str):
        rows = Store.existing(place).metrics(run.digest)
        if rows is None:
            raise InputError(f"`{shown(place)}` no longer holds `{run.source}`", "open it again")
        return rows
    with fetched(place) as path:
        report = read_report(path, place.source, ReadOptions(raw="values", gpu=gpu, reads_code=False))
    if report.run.digest != run.digest:
        raise InputError(f"`{run.source}` has changed since it was opened", "open it again")
    return METRICS.empty_table() if report.raw is None else report.raw
