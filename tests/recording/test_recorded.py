"""Replay every recorded report of `fixtures/`, without a GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import record
from judge import judge, truths
from slim import slim
from stored import ALL_FIXTURES_BYTES, Entry, files_of, read_entries
from support.recorded import only

from rooflens.ingest.reports.container import inspect

FIXTURES = Path(__file__).parents[2] / "fixtures"
RECORDED = tuple(read_entries(FIXTURES).values())


def replay(folder: Path, entry: Entry) -> None:
    """Check that a recording is whole, slim, anonymous and as its manifest says."""
    report = folder / entry.path
    container = inspect(report)
    assert container.result_count == entry.kernels
    assert container.synthetic == entry.synthetic
    assert {session.host for session in container.sessions} <= {None, "host"}
    assert slim(report.read_bytes(), with_code=entry.code) == report.read_bytes()
    judgement = judge(folder, [entry])
    assert judgement.unread == {}
    assert [truth for truth in truths(judgement) if truth.state == "fail"] == []


@pytest.mark.parametrize(
    "entry",
    RECORDED or [pytest.param(None, marks=pytest.mark.skip("nothing is recorded yet: `make gpu` does it on a GPU"))],
    ids=lambda entry: entry.path if entry else "none",
)
def test_a_recording_replays(entry: Entry) -> None:
    """A recorded report gives the verdict and amounts that its workload must have."""
    assert not entry.synthetic
    replay(FIXTURES, entry)


def test_a_stand_in_replays(gpu_box: Path) -> None:
    """A recording made on a simulated machine passes the same checks."""
    assert record.main(["--folder", "fx", *only("saxpy")]) == 0
    (entry,) = read_entries(gpu_box / "fx").values()
    assert entry.synthetic
    replay(gpu_box / "fx", replace(entry, kernels=1))  # the simulated log mentions more than its report has


def test_recordings_are_small_together() -> None:
    """All fixtures stay below their limit."""
    stored = (file for entry in RECORDED for file in files_of(FIXTURES, entry))
    synthetic = (FIXTURES / "synthetic").iterdir()
    assert sum(file.stat().st_size for file in (*stored, *synthetic)) <= ALL_FIXTURES_BYTES
