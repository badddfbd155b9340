"""Hold the totals that a store keeps against all analyses, over the published reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.alike import are_alike

from rooflens.model.store.parts import PartWriter
from rooflens.model.store.rows import ReportRows
from rooflens.model.store.store import Store
from rooflens.model.totals import totals_of
from rooflens.streaming import analyze_store

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.ingest.load import Loaded

pytestmark = pytest.mark.corpus


def test_stored_totals_are_those_of_all_analyses(loaded: Loaded, tmp_path: Path) -> None:
    """The table is made of the same numbers and words when they are read, streamed, or worked out at once."""
    with Store(tmp_path).writing() as store:
        with PartWriter(store.place) as writer:
            for run, kernels in loaded.reports:
                writer.add_report(ReportRows(run, kernels))
        store.commit(writer.summary)
    reports = analyze_store(tmp_path).reports
    whole = totals_of([analysis for report in reports for analysis in report.analyses])
    assert len(whole) > 50
    streamed = analyze_store(tmp_path, keep=True, totals=True)
    assert streamed.not_kept is None
    assert are_alike(streamed.totals, whole)
    assert are_alike(analyze_store(tmp_path, totals=True).totals, whole)
