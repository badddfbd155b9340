"""Find the first kernel in the ranking of each report and its share of the report's time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from nvidia_findings import Judged

from rooflens.model.records import AnalyzedReport, Run
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content


class FirstRank(Struct, frozen=True):
    """The first rank of a report with several kernels.

    Attributes:
        time_share: Its share of the report's GPU time, 0 to 1; None if nothing is ranked.
    """

    report: str
    kernel: str
    time_share: float | None


def first_ranks(reports: Iterable[tuple[Run, Sequence[Judged]]]) -> list[FirstRank]:
    """Return the first rank of every report with several kernels that have a time."""
    found = []
    for run, judged in reports:
        analyses = tuple(one.analysis for one in judged)
        content = build_content([AnalyzedReport(run, analyses)], "", default_thresholds())
        if len(content.kernels) > 1 and content.total_ns:
            group = next(iter(content.first), None)
            share = group.time_share if group else None
            found.append(FirstRank(judged[0].nvidia.report, group.name if group else "", share))
    return found
