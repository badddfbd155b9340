"""Write made-up reports of tests to files."""

from __future__ import annotations

from pathlib import Path

from rooflens.ingest.reports.encoding import (
    PUBLISHED_PROVIDER,
    Instances,
    KernelSpec,
    MetricValue,
    NvtxRange,
    ReportSpec,
    Scalar,
    SessionSpec,
    encode_report,
)
from rooflens.model.records import Rule

__all__ = [
    "PUBLISHED_PROVIDER",
    "Instances",
    "KernelSpec",
    "MetricValue",
    "NvtxRange",
    "ReportSpec",
    "Rule",
    "Scalar",
    "SessionSpec",
    "encode_report",
    "write_report",
]


def write_report(path: Path, report: ReportSpec) -> Path:
    """Write `report` to `path` and return it."""
    path.write_bytes(encode_report(report))
    return path
