from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.stored import DIGESTS, commit, make_report, stored, tables_of

from rooflens.errors import NothingChosenError
from rooflens.model.analyze import analyze
from rooflens.model.records import AnalyzedReport
from rooflens.model.store.compacting import compact
from rooflens.model.store.rows import failure_table
from rooflens.model.store.schema import TABLES
from rooflens.model.store.store import Store
from rooflens.model.store.verdicts import verdict_tables
from rooflens.model.totals import totals_of
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.streaming import analyze_store, check_chosen

if TYPE_CHECKING:
    from pathlib import Path


def keep_verdicts(folder: Path) -> None:
    """Write the verdicts of every report of a store into it."""
    reports = [AnalyzedReport(one.run, tuple(analyze(kernel) for kernel in one.kernels)) for one in stored(folder)]
    keep(folder, reports)


def keep(folder: Path, reports: list[AnalyzedReport]) -> None:
    """Write the verdicts of some reports into their store."""
    with Store.existing(folder).keeping(default_thresholds()) as writer:
        for report in reports:
            tables = verdict_tables(report.analyses, default_thresholds().digest)
            writer.add([report.run.digest], tables, len(report.analyses))
            writer.add_totals(report.run.digest, totals_of(report.analyses))


def test_compaction_keeps_every_row(tmp_path: Path) -> None:
    """Parts become one, in each table with the rows there were, verdicts too; a second time changes nothing."""
    for number in range(3):
        commit(tmp_path, tables_of(DIGESTS[number], number + 1))
    keep_verdicts(tmp_path)
    before = {table: pq.read_table(tmp_path / table).num_rows for table in ("runs", "kernels", "hotspots", "roofline")}
    reports = sorted(stored(tmp_path), key=lambda report: report.run.digest)
    done = compact(Store.existing(tmp_path))
    assert (done.parts_before, done.parts, dict(done.damaged)) == (3, 1, {})
    assert sorted(stored(tmp_path), key=lambda report: report.run.digest) == reports
    after = {table: pq.read_table(tmp_path / table).num_rows for table in before}
    assert after == before
    files = {file for table in TABLES for file in (tmp_path / table).iterdir()}
    assert len({file.stem for file in files}) == 1
    compact(Store.existing(tmp_path))
    assert {file for table in TABLES for file in (tmp_path / table).iterdir()} == files


def test_parts_older_than_a_counter_are_read_and_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels stored before there was a counter lack it, in conditions as well, and keep all others."""
    with monkeypatch.context() as patch:
        names = [name for name in TABLES["kernels"].names if name != "host_read_bytes"]
        patch.setitem(TABLES, "kernels", pa.schema([TABLES["kernels"].field(name) for name in names]))
        commit(tmp_path, tables_of(DIGESTS[0], 2))
    commit(tmp_path, tables_of(DIGESTS[1], 1))
    for _ in range(2):
        durations_ns = [[kernel.duration_ns for kernel in report.kernels] for report in stored(tmp_path)]
        assert sorted(durations_ns) == [[1e3], [1e3, 2e3]]
        found = analyze_store(tmp_path, where="duration_ns > 1000")
        assert ([len(report.analyses) for report in found.reports], found.failures) == ([1], ())
        with pytest.raises(NothingChosenError):
            check_chosen(analyze_store(tmp_path, where="host_read_bytes > 0"), tmp_path)
        compact(Store.existing(tmp_path))


def test_compaction_touches_nothing_that_is_damaged(tmp_path: Path) -> None:
    """A damaged part stays and is named; it goes where that is asked for."""
    broken = commit(tmp_path, tables_of(DIGESTS[0]))
    for number in (1, 2):
        commit(tmp_path, tables_of(DIGESTS[number]))
    file = tmp_path / "kernels" / f"{broken}.parquet"
    file.write_bytes(b"damaged")
    done = compact(Store.existing(tmp_path))
    assert ({*done.damaged}, done.parts, file.read_bytes()) == ({broken}, 2, b"damaged")
    done = compact(Store.existing(tmp_path), drop_damaged=True)
    assert (done.parts, file.exists()) == (1, False)
    assert [report.run.digest for report in stored(tmp_path)] == list(DIGESTS[1:3])


def test_failures_go_when_their_reports_were_read(tmp_path: Path) -> None:
    """A row of `failures` is dropped by compaction where its source is stored; others stay."""
    healed, _ = make_report(DIGESTS[0], 1)
    commit(tmp_path, {"failures": failure_table([(healed.source, "damaged", "h"), ("b.ncu-rep", "damaged", "h")])})
    commit(tmp_path, tables_of(DIGESTS[0]))
    assert len(Store.existing(tmp_path).failures()) == 2
    compact(Store.existing(tmp_path))
    assert Store.existing(tmp_path).failures() == [("b.ncu-rep", "damaged")]


def test_verdicts_are_written_once(tmp_path: Path) -> None:
    """The same model and thresholds leave the files of verdicts as they are; a lost or damaged one is written again."""
    commit(tmp_path, tables_of(DIGESTS[0], 2))
    keep_verdicts(tmp_path)
    (roofline,) = (tmp_path / "roofline").iterdir()
    written_ns = roofline.stat().st_mtime_ns
    keep_verdicts(tmp_path)
    assert roofline.stat().st_mtime_ns == written_ns
    roofline.write_bytes(b"")
    keep_verdicts(tmp_path)
    assert pq.read_table(roofline).num_rows >= 2


def test_an_analysis_of_a_part_of_a_store_writes_no_verdicts(tmp_path: Path) -> None:
    """Verdicts of some reports of a part do not stand for all of them."""
    commit(tmp_path, tables_of(DIGESTS[0]), tables_of(DIGESTS[1]))
    one = stored(tmp_path)[0]
    report = AnalyzedReport(one.run, tuple(analyze(kernel) for kernel in one.kernels))
    keep(tmp_path, [report])
    assert not list((tmp_path / "roofline").iterdir())
