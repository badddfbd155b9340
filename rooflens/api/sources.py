"""A report that was opened: whole, with the place it came from, so that more can be read of it later."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from rooflens.api.values import Metrics
    from rooflens.ingest.reports.jobs import Job
    from rooflens.model.records import AnalyzedReport


class Source:
    """One report, whole, and where it came from."""

    def __init__(self, report: AnalyzedReport, place: Job | str, gpu: str | None) -> None:
        """Take a report.

        Args:
            report: With all of its kernels.
            place: The job that read it, or the store that holds it.
            gpu: Name of the GPU that was given to its reader; None where none was.
        """
        self.report = report
        self.place = place
        self.gpu = gpu

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics that the report itself stores.

        Raises:
            InputError: It is gone, or has changed since it was opened.
        """
        from rooflens.api.values import Metrics

        return Metrics(self.metric_table())

    def metric_table(self) -> pa.Table:
        """Read them, one value each, as rows of the store's table `metrics`.

        Raises:
            InputError: As above.
        """
        from rooflens.api.values import metric_table

        return metric_table(self.report.run, self.place, self.gpu)
