from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report, write_report

from rooflens.errors import InputError
from rooflens.ingest.loading import load, sharing, tasks
from rooflens.ingest.loading.load import ingest_reports, load_reports
from rooflens.ingest.reports.encoded import UnknownContentError
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.store.reading import StoredReport
from rooflens.model.store.store import Store
from rooflens.streaming import analyze_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rooflens.ingest.reports.pool import Outcome
    from rooflens.ingest.reports.report import Report


def _reports(folder: Path, count: int, name: str = "kernel") -> Path:
    folder.mkdir()
    for number in range(count):
        kernels = [KernelSpec(f"{name}_{number}()", {"gpu__time_duration.sum": 1000.0 + number})]
        write_report(folder / f"{number:03}.ncu-rep", ReportSpec(kernels))
    return folder


def _ingest(folder: Path, store: Path) -> tuple[int, int, int]:
    loaded = ingest_reports(find_inputs([str(folder)]).jobs, Store(store))
    return loaded.report_count, len(loaded.failures), loaded.skipped_count


def _stored(store: Path) -> list[StoredReport]:
    """Return the reports of a store, which must all be whole."""
    reports = list(Store.existing(store).reports())
    assert all(isinstance(report, StoredReport) for report in reports)
    return reports


def test_a_folder_takes_reports_and_counts_the_rest(tmp_path: Path) -> None:
    """Both endings are read, in subfolders too; other files are counted."""
    folder = _reports(tmp_path / "reports", 2)
    (folder / "old").mkdir()
    shutil.copy(folder / "000.ncu-rep", folder / "old" / "a.nsight-cuprof-report")
    (folder / "notes.txt").write_text("no report")
    inputs = find_inputs([str(folder)])
    assert [job.path.name for job in inputs.jobs] == ["000.ncu-rep", "001.ncu-rep", "a.nsight-cuprof-report"]
    assert [path.name for path in inputs.ignored] == ["notes.txt"]


def test_a_path_given_twice_is_read_once(tmp_path: Path) -> None:
    """A file named by itself and by its folder is one job."""
    folder = _reports(tmp_path / "reports", 1)
    assert len(find_inputs([str(folder), str(folder / "000.ncu-rep")]).jobs) == 1


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    """A folder without reports is refused with the endings in the hint."""
    with pytest.raises(InputError, match="no reports") as caught:
        find_inputs([str(tmp_path)])
    assert ".ncu-rep" in caught.value.hint


def test_two_hundred_reports_with_three_bad_ones(tmp_path: Path) -> None:
    """Three damaged files cost three errors, and the other 197 reports are stored."""
    folder = _reports(tmp_path / "reports", 200)
    for name in ("017", "100", "199"):
        file = folder / f"{name}.ncu-rep"
        file.write_bytes(file.read_bytes()[:-1])
    assert _ingest(folder, tmp_path / "store") == (197, 3, 0)
    assert len(Store(tmp_path / "store").digests()) == 197


def test_reports_come_back_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Parallel reading does not show in the order of the results."""
    loaded = load_reports(find_inputs([str(_reports(tmp_path / "reports", 12))]).jobs)
    assert [kernels[0].function_name for _, kernels in loaded.reports] == [f"kernel_{number}" for number in range(12)]


def test_the_same_file_twice_is_stored_once(tmp_path: Path) -> None:
    """A second ingest of the same content skips it, under another name too."""
    folder = _reports(tmp_path / "reports", 2)
    store = tmp_path / "store"
    assert _ingest(folder, store) == (2, 0, 0)
    shutil.copy(folder / "000.ncu-rep", folder / "copy.ncu-rep")
    assert _ingest(folder, store) == (0, 0, 3)
    assert len(Store(store).digests()) == 2


def test_a_store_gives_back_what_was_read(tmp_path: Path, fixtures: Path) -> None:
    """Kernels and runs from the store equal those read from the reports, counters, tables and rules included."""
    jobs = find_inputs([str(fixtures)]).jobs
    direct = load_reports(jobs).reports
    ingest_reports(jobs, Store(tmp_path / "store"))
    stored = [(report.run, report.kernels) for report in _stored(tmp_path / "store")]
    by_source = partial(sorted, key=lambda report: report[0].source)
    assert by_source(stored) == by_source(direct)


def test_duckdb_and_pandas_read_the_store_as_it_stands(tmp_path: Path, fixtures: Path) -> None:
    """The tables join on the digest in DuckDB and load in pandas, without any of our code."""
    store = tmp_path / "store"
    ingest_reports(find_inputs([str(fixtures)]).jobs, Store(store))
    reports = analyze_store(store, keep=True).reports
    count = sum(len(report.analyses) for report in reports)
    query = (
        f"select count(*), count(distinct k.digest) from '{store}/kernels/*.parquet' k"  # noqa: S608 - a test's folder
        f" join '{store}/runs/*.parquet' r using (digest)"
    )
    assert duckdb.sql(query).fetchall() == [(count, len(reports))]
    rooflines = pd.read_parquet(store / "roofline")
    assert rooflines.groupby(["digest", "kernel_index"]).ngroups == count
    metrics = pd.read_parquet(store / "metrics")
    assert metrics.loc[metrics["name"] == "gpu__time_duration.sum", "value_double"].count() > 0


def test_a_damaged_store_file_costs_its_report_and_can_be_mended(tmp_path: Path) -> None:
    """An emptied store file is named with its reports; the others are read, and a new ingest takes its place."""
    store, folder = tmp_path / "store", _reports(tmp_path / "reports", 2)
    _ingest(folder, store)
    _ingest(_reports(tmp_path / "more", 1, "other"), store)
    (part,) = [part for part in Store(store).index().parts.values() if len(part.runs) == 2]
    (store / "kernels" / f"{part.key}.parquet").write_bytes(b"")
    (_, error), one = Store(store).reports()
    assert one.run.source.endswith("more/000.ncu-rep")
    assert "damaged store file" in str(error)
    assert "000.ncu-rep" in error.hint
    assert _ingest(folder, store) == (2, 0, 0)
    assert len(_stored(store)) == 3


def test_a_store_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """A file where the folder should be is named, with a hint."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write to the store"):
        _ingest(_reports(tmp_path / "reports", 1), tmp_path / "file" / "store")


def test_copies_of_a_report_count_once(tmp_path: Path) -> None:
    """The same content under two names is one report, in memory as in a store."""
    folder = _reports(tmp_path / "reports", 1)
    shutil.copy(folder / "000.ncu-rep", folder / "copy.ncu-rep")
    loaded = load_reports(find_inputs([str(folder)]).jobs)
    assert (len(loaded.reports), loaded.skipped_count) == (1, 1)
    assert _ingest(folder, tmp_path / "store") == (1, 0, 1)


def test_a_large_report_is_stored_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece the store gets what it gets at once: each kernel and value, and one run."""
    metrics = {"gpu__time_duration.sum": 1000.0, "inst_executed": Instances({16: 3.0, 32: 4.0}, 7.0)}
    kernels = [KernelSpec(f"kernel_{number}()", metrics) for number in range(30)]
    folder = tmp_path / "reports"
    folder.mkdir()
    write_report(folder / "large.ncu-rep", ReportSpec(kernels))
    jobs = find_inputs([str(folder)]).jobs
    ingest_reports(jobs, Store(tmp_path / "whole"), options=ReadOptions(raw="all"))
    monkeypatch.setattr(tasks, "_LARGE_BYTES", 0)
    monkeypatch.setattr(tasks, "_KERNELS_AT_ONCE", 4)
    ingest_reports(jobs, Store(tmp_path / "pieces"), options=ReadOptions(raw="all"))
    whole, pieces = _stored(tmp_path / "whole"), _stored(tmp_path / "pieces")
    assert len(whole) == len(pieces) == 1
    assert sorted(pieces[0].kernels, key=lambda kernel: kernel.index) == list(whole[0].kernels)
    for table in ("metrics", "instances"):
        found = [pq.read_table(tmp_path / store / table).to_pylist() for store in ("whole", "pieces")]
        assert sorted(map(repr, found[0])) == sorted(map(repr, found[1]))


def test_a_large_report_that_is_damaged_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pieces before the damage are thrown away with it."""
    report = encode_report(ReportSpec([KernelSpec(f"kernel_{n}()", {"gpu__time_duration.sum": 1.0}) for n in range(9)]))
    place = report.rindex(b"kernel_8")  # the name of the last kernel's field gets a wrong length
    (tmp_path / "damaged.ncu-rep").write_bytes(report[: place - 1] + b"\xff" + report[place:])
    monkeypatch.setattr(tasks, "_LARGE_BYTES", 0)
    monkeypatch.setattr(tasks, "_KERNELS_AT_ONCE", 2)
    done = ingest_reports(find_inputs([str(tmp_path / "damaged.ncu-rep")]).jobs, Store(tmp_path / "store"))
    assert (done.report_count, len(done.failures)) == (0, 1)
    assert "damaged" in str(done.failures[0][1])
    assert not list((tmp_path / "store").glob("kernels/*"))


def test_a_large_report_with_something_unknown_late_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written before it is thrown away, and the report is stored once, by the reader that knows it."""
    read_parts = tasks.read_parts

    def read_some(*arguments: Any) -> Iterator[Report]:
        yield next(read_parts(*arguments))
        raise UnknownContentError("field 9 of a metric")

    kernels = [KernelSpec(f"kernel_{number}()", {"gpu__time_duration.sum": 1.0}) for number in range(9)]
    write_report(tmp_path / "new.ncu-rep", ReportSpec(kernels))
    monkeypatch.setattr(tasks, "_LARGE_BYTES", 0)
    monkeypatch.setattr(tasks, "_KERNELS_AT_ONCE", 2)
    monkeypatch.setattr(tasks, "read_parts", read_some)
    done = ingest_reports(find_inputs([str(tmp_path / "new.ncu-rep")]).jobs, Store(tmp_path / "store"))
    assert (done.report_count, done.kernel_count, done.failures) == (1, 9, [])
    assert pq.read_table(tmp_path / "store" / "kernels").num_rows == 9


def test_a_report_that_fails_may_have_any_name(tmp_path: Path) -> None:
    """A name that is not UTF-8 goes into the table of failures with a mark in it, once however often it is tried."""
    odd = tmp_path / "odd\udcff.ncu-rep"
    odd.write_bytes(b"NVR\0")
    store = Store(tmp_path / "store")
    for _ in range(2):
        assert len(ingest_reports(find_inputs([str(odd)]).jobs, store).failures) == 1
    ((source, _),) = store.failures()
    assert source == str(tmp_path / "odd\N{REPLACEMENT CHARACTER}.ncu-rep")


def test_one_more_process_reads_beside_us_where_there_is_enough_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports and errors are those that come here alone, in the order that was asked for; without a core, all do."""
    folder = _reports(tmp_path / "reports", 6)
    (folder / "003.ncu-rep").write_bytes(b"NVR\x00" + bytes(100))
    jobs = find_inputs([str(folder)]).jobs
    alone = load_reports(jobs)
    beside: list[int] = []
    read_beside = sharing.read_beside

    def counted(*arguments: Any) -> Iterator[Outcome]:
        beside.append(len(arguments[0]))
        return read_beside(*arguments)

    monkeypatch.setattr(sharing, "read_beside", counted)
    monkeypatch.setattr(load, "_WORTH_SHARING_BYTES", 1)
    monkeypatch.setattr(load, "usable_cores", lambda: 2)
    shared = load_reports(jobs)
    assert (shared.reports, shared.digests) == (alone.reports, alone.digests)
    assert [(source, str(error)) for source, error in shared.failures] == [
        (source, str(error)) for source, error in alone.failures
    ]
    monkeypatch.setattr(load, "usable_cores", lambda: 1)
    load_reports(jobs)
    assert beside == [6]
