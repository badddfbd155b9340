"""An opened report, whole, with its origin, so that more can be read from it later."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from rooflens.api.values import ReportMetrics
    from rooflens.ingest.reports.jobs import Job
    from rooflens.model.records import AnalyzedReport


class Source:
    """A report with all its kernels, and its origin."""

    def __init__(self, report: AnalyzedReport, place: Job | str, gpu: str | None) -> None:
        """Take a report.

        Args:
            report: With all of its kernels.
            place: The job that read it, or the store that holds it.
            gpu: Name of the GPU given to its reader, or None.
        """
        self.report = report
        self.place = place
        self.gpu = gpu

    @cached_property
    def metrics(self) -> ReportMetrics:
        """The metrics stored in the report.

        Raises:
            InputError: The report is gone, or has changed since it was opened.
        """
        from rooflens.api.values import ReportMetrics

        return ReportMetrics(self.metric_table())

    def metric_table(self) -> pa.Table:
        """Read the metrics, a value per row, as rows of the store's table `metrics`.

        Raises:
            InputError: As above.
        """
        from rooflens.api.values import metric_table

        return metric_table(self.report.run, self.place, self.gpu)
