"""A few attacks from the campaign `timelines` of `benchmarks/faults.py`; most of them only in a full test run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.timeline_attacks import attacks, try_timelines

pytestmark = pytest.mark.if_changed("imports", "fixtures")

_QUICK, _THOROUGH = 36, 120


@pytest.mark.skipif(sys.platform != "linux", reason="it forks, and reads /proc")
def test_hostile_timelines_end_well(tmp_path: Path) -> None:
    """Each attack ends within ten seconds and a gigabyte, without traceback or leftovers, and at a signal."""
    (tmp_path / "made").mkdir()
    is_quick = "ROOFLENS_TEST_ALL" not in os.environ
    count = _QUICK if is_quick else _THOROUGH
    tally = try_timelines(tmp_path, attacks(tmp_path / "made", count, seed=7, is_quick=is_quick))
    assert tally.losses == []
    assert tally.count == count
    assert {how for _, how in tally.outcomes} == {"read", "refused"}
