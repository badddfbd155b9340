from __future__ import annotations

from rooflens.model.records import Analysis
from rooflens.model.summary import cautions

RARE = 1 / 8
"""A badge on more launches than this says nothing."""


def test_a_badge_is_rare(analyses: list[Analysis]) -> None:
    """At most one launch in eight has a flag that changes its verdict, though most have some flag."""
    flagged = sum(bool(cautions(analysis)) for analysis in analyses)
    assert 0 < flagged <= RARE * len(analyses)
    assert sum(bool(analysis.flags) for analysis in analyses) > len(analyses) / 2
