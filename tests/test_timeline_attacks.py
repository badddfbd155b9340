"""A few attacks from the campaign `timelines` of `benchmarks/faults.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.timeline_attacks import attacks, try_timelines

_COUNT = 120


@pytest.mark.skipif(sys.platform != "linux", reason="it forks, and reads /proc")
def test_hostile_timelines_end_well(tmp_path: Path) -> None:
    """Each attack ends within ten seconds and a gigabyte, without traceback or leftovers, and at a signal."""
    (tmp_path / "made").mkdir()
    tally = try_timelines(tmp_path, attacks(tmp_path / "made", _COUNT, seed=7))
    assert tally.losses == []
    assert tally.count == _COUNT
    assert {how for _, how in tally.outcomes} == {"read", "refused"}
