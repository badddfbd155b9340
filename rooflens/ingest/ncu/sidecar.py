"""Where the un-profiled run of a report is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX, UNPROFILED_SUFFIX

if TYPE_CHECKING:
    from pathlib import Path


def sidecar(report: Path) -> Path:
    """Return the path of a report's un-profiled run: the same for a plain and a compressed report."""
    return report.with_name(report.name.removesuffix(PACKED_SUFFIX).removesuffix(PLAIN_SUFFIX) + UNPROFILED_SUFFIX)
