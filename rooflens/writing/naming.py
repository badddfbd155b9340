"""What an answer about reports is called, where nobody names it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rooflens.model.records import Run


def default_title(runs: Sequence[Run]) -> str:
    """Name a page after its reports, in the order of their recording."""
    from rooflens.ingest.reports.inputs import ENDINGS
    from rooflens.model.compare.versions import in_order

    names = [Path(run.source).name for run in in_order(runs)]
    for ending in ENDINGS:
        names = [name.removesuffix(ending) for name in names]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
