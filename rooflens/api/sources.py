"""Where opened reports were read from: their metrics are read on demand."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        from rooflens.api.values import Metrics, metric_table

        return Metrics(metric_table(self))
