"""Low occupancy has two remedies, more warps and more work per thread: the one with evidence comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.analyzing import analyze_paths

PUBLISHED = Path(__file__).parents[3] / "fixtures" / "published"


def test_more_work_a_thread_comes_first_where_operands_fill_l1() -> None:
    """The next rung of this ladder was 1.45 times as fast at a quarter of the occupancy: more results per thread."""
    (report,) = analyze_paths([str(PUBLISHED / "ESMM-Research__profile_output.ncu-rep")]).reports
    first, second = (one.kernel for one in report.analyses[:2])
    occupancy = [kernel.counters["theoretical_occupancy"] for kernel in (first, second)]
    assert occupancy == [pytest.approx(2 / 3, abs=0.01), pytest.approx(1 / 6, abs=0.01)]
    assert (first.duration_ns or 0) / (second.duration_ns or 1) == pytest.approx(1.45, abs=0.01)
    move = next(finding.move for finding in report.analyses[0].findings if finding.id == "low_occupancy")
    more, _, warps = move.partition("; or ")
    assert more.startswith("let each thread compute more results from what it loads, as L1 is 65 % busy")
    assert warps.startswith("raise occupancy, now at most 67 %: 51 registers")
