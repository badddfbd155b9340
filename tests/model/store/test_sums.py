"""A store that is too large to hold each kernel is summed up, whatever of it was judged before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflens.analyzing import analyze_store
from rooflens.cli.group import main
from rooflens.ingest.load import ingest_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.model.records import timed
from rooflens.model.store.dataset import Store


@pytest.fixture
def store(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of the published figures, which is taken for a large one."""
    monkeypatch.setattr("rooflens.analyzing.MOST_HELD", 10)
    ingest_reports(find_inputs([str(fixtures / "published")]).jobs, Store(tmp_path / "store"))
    return tmp_path / "store"


def test_sums_are_those_of_the_launches(store: Path) -> None:
    """By GPU and class they equal sums over the analyses, judged now, stored, and in part; verdicts are kept."""
    analyses = timed(analyze_store(store).analyses)
    times: Counter[tuple[str | None, str]] = Counter()
    launches: Counter[tuple[str | None, str]] = Counter()
    for one in analyses:
        times[one.kernel.gpu, one.verdict.shown_class] += one.gpu_time_ns or 0.0  # type: ignore[assignment]  # sums
        launches[one.kernel.gpu, one.verdict.shown_class] += one.launches
    for kept in (29, 0, 1):
        if kept == 1:
            min((store / "verdicts").iterdir()).unlink()
        found = analyze_store(store, keep=True, may_sum=True)
        assert found.summed is not None
        assert (found.reports, found.report_count, found.kept_count) == ((), 29, kept)
        sums = found.summed.sums.by("gpu", "verdict_class")
        assert {(one.gpu, one.verdict_class): one.gpu_time_ns for one in sums} == pytest.approx(dict(times))
        assert {(one.gpu, one.verdict_class): one.launches for one in sums} == dict(launches)


def test_a_large_store_is_shown_as_sums(store: Path) -> None:
    """Table and Markdown show classes and the functions with most time; who asks for some kernels gets these."""
    for style in ("table", "md"):
        shown = CliRunner().invoke(main, ["analyze", "--store", str(store), "--format", style, "--top", "2"])
        assert shown.exit_code == 0, shown.output
        assert "GeForce RTX 3090: 9 launches" in shown.stdout
        assert "Functions by time, 2 of 4" in shown.stdout
        assert "248 profiles: too many to show each" in shown.stdout
    some = CliRunner().invoke(main, ["analyze", "--store", str(store), "--kernel", "kernel_A"])
    assert "too many" not in some.stdout
    assert "kernel_A" in some.stdout


def test_a_damaged_report_of_a_large_store_is_named(store: Path) -> None:
    """Its stored verdicts still count where they are whole; without them the damage is named and the rest is summed."""
    analyze_store(store, keep=True)
    digest = min((store / "kernels").iterdir()).stem
    (store / "kernels" / f"{digest}.parquet").write_bytes(b"")
    (store / "verdicts" / f"{digest}.parquet").write_bytes(b"")
    shown = CliRunner().invoke(main, ["analyze", "--store", str(store)])
    assert shown.exit_code == 1
    assert f"kernels/{digest}.parquet" in shown.stderr
    assert "1 of 29 reports could not be read" in shown.stderr
