"""The same comparison for everyone: our findings and NVIDIA's rules over the published figures in `fixtures/`."""

from __future__ import annotations

import finding_goals as goals
import pytest
from nvidia_cache import Cache, read_all
from nvidia_findings import Judged, expected, judge, part, unmatched
from nvidia_table import PUBLISHED


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    """Read the published figures, with NVIDIA's rules and with rooflens, and analyze them without those rules."""
    pytest.importorskip("ncu_report", reason="NVIDIA's own reader reads its rules: pip install ncu-report")
    reports = read_all([PUBLISHED], Cache(tmp_path_factory.mktemp("cache") / "own"))
    return [one for _, pairs in reports for one in judge(pairs)]


def test_published_results_of_nvidia_are_found(published: list[Judged]) -> None:
    """Every estimate of 20 % or more has a finding of its topic, and so have most older results without estimate."""
    hits = list(expected(published))
    assert len(hits) >= 15
    assert part(one.severity is not None for one in hits) >= goals.RECALL, [one for one in hits if not one.severity]
    assert part(one.severity is not None for one in unmatched(published)) > 0.6
