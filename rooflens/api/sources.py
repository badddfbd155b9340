"""An opened report, whole, with its origin, so that more can be read from it later."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from rooflens.analyzing import looked_into

if TYPE_CHECKING:
    import pyarrow as pa

    from rooflens.analyzing import Analyzed
    from rooflens.api.values import Metrics
    from rooflens.ingest.reports.jobs import Job
    from rooflens.model.records import Analysis, AnalyzedReport


class Source:
    """A report with all its kernels, and its origin."""

    def __init__(self, found: Analyzed, report: AnalyzedReport, place: Job | str, gpu: str | None) -> None:
        """Take a report.

        Args:
            found: Everything opened with it.
            report: The report with all its kernels.
            place: The job that read it, or the store that holds it.
            gpu: Name of the GPU given to its reader, or None.
        """
        self.report = report
        self.place = place
        self.gpu = gpu
        self._found = found
        self._looked_into: dict[int, tuple[AnalyzedReport, Analysis]] = {}

    def looked_into(self, analysis: Analysis) -> tuple[AnalyzedReport, Analysis]:
        """Look inside one of its kernels, once; return the report and the kernel with the results."""
        index = analysis.kernel.index
        if index not in self._looked_into:
            self._looked_into[index] = looked_into(self._found, analysis)
        return self._looked_into[index]

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics stored in the report.

        Raises:
            InputError: The report is gone, or has changed since it was opened.
        """
        from rooflens.api.values import Metrics

        return Metrics(self.metric_table())

    def metric_table(self) -> pa.Table:
        """Read the metrics, a value per row, as rows of the store's table `metrics`.

        Raises:
            InputError: As above.
        """
        from rooflens.api.values import metric_table

        return metric_table(self.report.run, self.place, self.gpu)
