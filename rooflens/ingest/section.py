"""Write a section file: the request of one tier on one chip, in ncu's own format.

ncu rejects a name on `--metrics` that the chip lacks, and a whole section that names an architecture it does not know.
A section without architecture filters, made at run time for the chip at hand, has neither weakness: an unknown name in
it is only a warning. Format: Nsight Compute Customization Guide, "Section Files" (a protocol buffer as text).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.ingest.chips import check_chip
from rooflens.ingest.tiers import metrics_for

if TYPE_CHECKING:
    from rooflens.ingest.tiers import Metric

_ORDER = 1000
"""After ncu's own sections."""


def section_name(detail: str) -> str:
    """Return the identifier to pass as `--section`."""
    return f"Rooflens_{detail}"


def section_file_name(detail: str) -> str:
    """Return the file's name; ncu reads only files that end so."""
    return f"{section_name(detail)}.section"


def section_text(chip: str, detail: str) -> str:
    """Write the section of one tier for one chip.

    Raises:
        UsageError: No such chip, or no such tier.
    """
    metrics = metrics_for(chip, detail)
    lines = [
        f'Identifier: "{section_name(detail)}"',
        f'DisplayName: "rooflens {detail}"',
        f'Description: "What rooflens collects for the tier {detail} on {check_chip(chip)}."',
        f"Order: {_ORDER}",
        "Metrics {",
        *(line for metric in metrics for line in _entry(metric)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _entry(metric: Metric) -> tuple[str, ...]:
    return ("  Metrics {", f'    Label: "{metric.meaning}"', f'    Name: "{metric.name}"', "  }")
