"""The same check for anyone: our findings against NVIDIA's own rules over the published figures in `fixtures/`."""

from __future__ import annotations

from pathlib import Path

import finding_goals as goals
import pytest
from nvidia_cache import Cache, read_all
from nvidia_findings import Judged, expected, judge, part, silent, unmatched
from nvidia_table import PUBLISHED


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    """Read the published figures, with NVIDIA's rules and with rooflens, and analyze them without those rules."""
    pytest.importorskip("ncu_report", reason="NVIDIA's own reader reads its rules: pip install ncu-report")
    reports = read_all([PUBLISHED], Cache(tmp_path_factory.mktemp("cache") / "own"))
    return [one for _, pairs in reports for one in judge(pairs)]


def test_published_results_of_nvidia_are_found(published: list[Judged]) -> None:
    """Every estimate of 20 % and more has a finding of its topic, and of the older ones without estimate most have."""
    hits = list(expected(published))
    assert len(hits) >= 15
    assert part(one.severity is not None for one in hits) >= goals.RECALL, [one for one in hits if not one.severity]
    assert part(one.severity is not None for one in unmatched(published)) > 0.6


def test_published_kernels_get_no_false_limiter(published: list[Judged]) -> None:
    """Where a rule had its chance and was silent, our finding of that topic does not bound the kernel."""
    cases = list(silent(published))
    assert part(one.false for one in cases) <= goals.FALSE_LIMITERS


def test_published_results_are_checked_on_the_folder_that_a_clone_has() -> None:
    """The folder holds reports, so that the tests above cannot pass over nothing."""
    assert len(list(Path(PUBLISHED).glob("*.ncu-rep"))) >= 10
