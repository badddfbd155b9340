"""Which GPUs the kernels of a report ran on: a program may choose another than the counters were meant for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def devices_of(report: Path) -> dict[str, str]:
    """Return the compute capability of each GPU in a report, by its name; empty if it cannot be read here."""
    try:
        from rooflens.ingest.reports.read import read_report  # noqa: PLC0415 - needs what a bare GPU box may lack

        kernels = read_report(report, report.name).kernels
    except (ImportError, InputError):
        return {}
    return {kernel.gpu: kernel.compute_capability for kernel in kernels if kernel.gpu and kernel.compute_capability}
