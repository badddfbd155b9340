from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support.cubin_writer import END, SET_ADDRESS, cubin, line_table, report_with, source_of
from support.hungry import write_csv
from support.ncu_rep_writer import KernelSpec, MetricValue, ReportSpec, encode_report, write_report

import rooflens
from rooflens.analyzing import Basis, analyze_store
from rooflens.cli.group import main
from rooflens.errors import InputError
from rooflens.ingest import load
from rooflens.ingest.load import ingest_reports, load_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.reports.unpacking import likely_bytes
from rooflens.ingest.reports.unprofiled import read_unprofiled
from rooflens.ingest.running import ExecutorChoice
from rooflens.model.records import Kernel, timed
from rooflens.model.store import MARKER, tables
from rooflens.model.store.dataset import Store, StoredReport
from rooflens.model.store.files import Files
from rooflens.model.unprofiled import Unprofiled
from rooflens.model.verdict.thresholds import override_thresholds


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
    """Return the reports of a store, all of which must be whole."""
    reports = list(Store.existing(store).reports())
    assert all(isinstance(report, StoredReport) for report in reports)
    return [replace(report, stored_unix_s=0) for report in reports]


def test_a_folder_takes_reports_and_counts_the_rest(tmp_path: Path) -> None:
    """Both extensions are read, in subfolders too; other files are counted."""
    folder = _reports(tmp_path / "reports", 2)
    (folder / "old").mkdir()
    shutil.copy(folder / "000.ncu-rep", folder / "old" / "a.nsight-cuprof-report")
    (folder / "notes.txt").write_text("no report")
    inputs = find_inputs([str(folder)])
    assert [job.path.name for job in inputs.jobs] == ["000.ncu-rep", "001.ncu-rep", "a.nsight-cuprof-report"]
    assert [path.name for path in inputs.ignored] == ["notes.txt"]


def test_a_path_given_twice_is_read_once(tmp_path: Path) -> None:
    """A file given both by itself and through its folder is read once."""
    folder = _reports(tmp_path / "reports", 1)
    assert len(find_inputs([str(folder), str(folder / "000.ncu-rep")]).jobs) == 1


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    """A folder without reports is refused, and the hint names the extensions."""
    with pytest.raises(InputError, match="no reports") as caught:
        find_inputs([str(tmp_path)])
    assert ".ncu-rep" in caught.value.hint


def test_two_hundred_reports_with_three_bad_ones(tmp_path: Path) -> None:
    """Three damaged files give three errors, and the other 197 reports are stored."""
    folder = _reports(tmp_path / "reports", 200)
    for name in ("017", "100", "199"):
        file = folder / f"{name}.ncu-rep"
        file.write_bytes(file.read_bytes()[:-1])
    assert _ingest(folder, tmp_path / "store") == (197, 3, 0)
    assert len(Store(tmp_path / "store").digests()) == 197


def test_reports_come_back_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Reading in parallel does not change the order of the results."""
    loaded = load_reports(find_inputs([str(_reports(tmp_path / "reports", 12))]).jobs)
    assert [kernels[0].function_name for _, kernels in loaded.reports] == [f"kernel_{number}" for number in range(12)]


def test_the_same_file_twice_is_stored_once(tmp_path: Path) -> None:
    """A second ingest skips content that is stored, under another name too."""
    folder = _reports(tmp_path / "reports", 2)
    store = tmp_path / "store"
    assert _ingest(folder, store) == (2, 0, 0)
    shutil.copy(folder / "000.ncu-rep", folder / "copy.ncu-rep")
    assert _ingest(folder, store) == (0, 0, 3)
    assert len(Store(store).digests()) == 2


def test_a_store_gives_back_what_was_read(tmp_path: Path, fixtures: Path) -> None:
    """Kernels and runs from the store equal those read from the reports, including counters, tables and rules."""
    jobs = find_inputs([str(fixtures)]).jobs
    direct = load_reports(jobs).reports
    ingest_reports(jobs, Store(tmp_path / "store"))
    stored = [(report.run, report.kernels) for report in _stored(tmp_path / "store")]
    by_source = partial(sorted, key=lambda report: report[0].source)
    assert by_source(stored) == by_source(direct)


def test_other_libraries_read_a_store_that_was_filled_twice(tmp_path: Path, fixtures: Path) -> None:
    """The files themselves, and DuckDB's views, give each kernel, verdict and finding once."""
    store = tmp_path / "store"
    jobs = find_inputs([str(fixtures)]).jobs
    files = load.make_files(ReadOptions(raw="values"), read_unprofiled, jobs).files
    for _ in range(2):  # as two ingests at once would
        Store(store).prepare()
        Store(store).put(files)
    analyze_store(store, Basis(limits=override_thresholds("[thresholds]\nslowdown = 1.9\n", "other.toml")), keep=True)
    found = analyze_store(store, keep=True)
    analyses = [one for report in found.reports for one in report.analyses]
    classes: Counter[str] = Counter()
    for one in timed(analyses):
        classes[one.verdict.shown_class] += one.gpu_time_ns or 0.0
    expected = {
        "runs": len(found.reports),
        "kernels": len(analyses),
        "verdicts": len(analyses),
        "findings": sum(len(one.findings) for one in analyses),
    }
    with duckdb.connect() as database:
        database.execute(f"set variable store = '{store}'")
        database.execute((store / "views.sql").read_text())
        viewed, plain = (
            {name: database.execute(f"select count(*) from {of(name)}").fetchall()[0][0] for name in expected}  # noqa: S608 - ours
            for of in (str, lambda name: f"'{store}/{name}/*.parquet'")
        )
        sums = database.execute(
            f"select verdict_class, sum(gpu_time_ns) from '{store}/verdicts/*.parquet' group by 1"  # noqa: S608 - as above
        ).fetchall()
        assert database.execute("select count(distinct source) from verdicts").fetchall() == [(len(found.reports),)]
    assert viewed == plain == expected
    assert {name: total_ns for name, total_ns in sums if total_ns} == pytest.approx(dict(classes))
    assert len(pd.read_parquet(store / "verdicts")) == len(analyses)
    assert pl.scan_parquet(store / "kernels/*.parquet").collect().height == len(analyses)


def test_a_damaged_store_file_costs_its_report_and_can_be_mended(tmp_path: Path) -> None:
    """An emptied store file is named with its report, the others are read, and the hint repairs the store."""
    store, folder = tmp_path / "store", _reports(tmp_path / "reports", 2)
    _ingest(folder, store)
    file = min((store / "kernels").iterdir())
    file.write_bytes(b"")
    (_, error), one = Store(store).reports()
    assert ("damaged store file" in str(error), error.report_count) == (True, 1)
    named = ({"000.ncu-rep", "001.ncu-rep"} - {Path(one.run.source).name}).pop()
    assert named in error.hint
    assert _ingest(folder, store) == (1, 0, 1)
    assert len(_stored(store)) == 2


def test_a_store_with_a_missing_file_is_mended_by_ingesting_again(tmp_path: Path) -> None:
    """Readers name the missing file and the repair, and give the rest; an ingest stores the affected report anew."""
    folder = _reports(tmp_path / "reports", 2)
    jobs = find_inputs([str(folder)]).jobs
    wrong = []
    for table in ("kernels", "metrics", "unprofiled"):
        store = tmp_path / table
        ingest_reports(jobs, Store(store), unprofiled_of=lambda _: Unprofiled(wall_ns=1))
        expected = _stored(store)
        file = min((store / table).iterdir())
        file.unlink()
        (name, error), *left = Store(store).reports()
        lost = int(table == "kernels")
        if (name, error.report_count, len(left)) != (str(file), lost, 2 - lost):
            wrong.append(f"{table}: {name}, {error.report_count} lost, {len(left)} read")
        if "it is missing" not in str(error) or "ingest `" not in error.hint:
            wrong.append(f"{table}: {error}; {error.hint}")
        if table == "metrics":
            with pytest.raises(InputError, match="it is missing"):
                Store(store).metrics(file.stem)
        done = ingest_reports(jobs, Store(store), unprofiled_of=lambda _: Unprofiled(wall_ns=1))
        again = ingest_reports(jobs, Store(store), unprofiled_of=lambda _: Unprofiled(wall_ns=1))
        if (done.report_count + len(done.notes), again.report_count, again.notes) != (1, 0, []):
            wrong.append(f"{table}: {done}, {again}")
        if _stored(store) != expected:
            wrong.append(f"{table}: not mended")
    assert not wrong


def test_a_run_without_the_profiler_that_is_lost_with_its_record_is_forgotten(tmp_path: Path) -> None:
    """An ingest mends the store though the record beside the report is gone, and says no longer that one is missing."""
    jobs, store = find_inputs([str(_reports(tmp_path / "reports", 1))]).jobs, Store(tmp_path / "store")
    for damage in (Path.unlink, lambda file: file.write_bytes(b"")):
        ingest_reports(jobs, store, unprofiled_of=lambda _: Unprofiled(wall_ns=1))
        (file,) = (tmp_path / "store" / "unprofiled").iterdir()
        damage(file)
        assert len(list(store.reports())) == 2
        ingest_reports(jobs, store)
        assert [one.unprofiled for one in _stored(tmp_path / "store")] == [None]


def test_a_run_without_the_profiler_outlives_the_ingest_of_its_report(tmp_path: Path) -> None:
    """A run without the profiler, stored later and since deleted, survives when its report is stored anew."""
    jobs, store = find_inputs([str(_reports(tmp_path / "reports", 1))]).jobs, Store(tmp_path / "store")
    ingest_reports(jobs, store)
    ingest_reports(jobs, store, unprofiled_of=lambda _: Unprofiled(wall_ns=7))
    for table in ("kernels", "runs"):
        (file,) = (tmp_path / "store" / table).iterdir()
        file.write_bytes(b"")
        ingest_reports(jobs, store)
        assert [one.unprofiled for one in _stored(tmp_path / "store")] == [Unprofiled(wall_ns=7)], table


def test_a_store_without_its_marker_gets_it_from_the_next_ingest(tmp_path: Path) -> None:
    """Readers point out a missing marker; an ingest restores it, but leaves folders alone that hold other files."""
    folder, store = _reports(tmp_path / "reports", 1), tmp_path / "store"
    _ingest(folder, store)
    (store / MARKER).unlink()
    (store / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="neither empty nor a store"):
        _ingest(folder, store)
    (store / "mine.txt").unlink()
    with pytest.raises(InputError, match=r"rooflens-store\.json` is missing"):
        Store.existing(store)
    assert _ingest(folder, store) == (0, 0, 1)
    assert len(_stored(store)) == 1


def test_a_large_ingest_is_stored_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part says what is stored so far and survives a kill; copies of a report in several parts count once."""
    monkeypatch.setattr(load, "_MOST_JOBS", 4)
    folder = _reports(tmp_path / "reports", 9)
    shutil.copy(folder / "000.ncu-rep", folder / "008.ncu-rep")
    jobs, said = find_inputs([str(folder)]).jobs, list[int]()

    def die(so_far: load.Ingested) -> None:
        said.append(so_far.report_count)
        if len(said) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest_reports(jobs, Store(tmp_path / "killed"), on_stored=die)
    assert said == [4, 8]
    assert len(_stored(tmp_path / "killed")) == 8
    done = ingest_reports(jobs, Store(tmp_path / "whole"))
    assert (done.report_count, done.skipped_count) == (8, 1)
    assert len(_stored(tmp_path / "whole")) == 8
    told = CliRunner().invoke(main, ["ingest", str(folder), "--store", str(tmp_path / "told")])
    assert told.exit_code == 0
    assert "stored 4 reports so far; more follow" in told.stderr
    assert "stored 8 reports with 8 kernels, 1 report already there" in told.stderr


def test_an_ingest_that_fails_in_a_later_part_says_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error counts the reports that earlier parts have stored."""
    monkeypatch.setattr(load, "_MOST_JOBS", 2)
    jobs, real = find_inputs([str(_reports(tmp_path / "reports", 6))]).jobs, Files.put
    calls: list[int] = []

    def put(files: Files, contents: dict[str, bytes]) -> None:
        calls.append(len(contents))
        if len([count for count in calls if count > 1]) > 4:
            raise OSError(28, "No space left on device")
        real(files, contents)

    monkeypatch.setattr(Files, "put", put)
    with pytest.raises(InputError, match="No space left on device; 4 reports of this ingest were stored before that"):
        ingest_reports(jobs, Store(tmp_path / "store"))
    assert len(_stored(tmp_path / "store")) == 4


def test_a_store_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """A file in the place of the store's folder is named in the error, with a hint."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write to the store"):
        _ingest(_reports(tmp_path / "reports", 1), tmp_path / "file" / "store")


def test_copies_of_a_report_count_once(tmp_path: Path) -> None:
    """Two files with the same content are one report, in memory and in a store."""
    folder = _reports(tmp_path / "reports", 1)
    shutil.copy(folder / "000.ncu-rep", folder / "copy.ncu-rep")
    loaded = load_reports(find_inputs([str(folder)]).jobs)
    assert (len(loaded.reports), loaded.skipped_count) == (1, 1)
    assert _ingest(folder, tmp_path / "store") == (1, 0, 1)


def test_a_report_that_is_damaged_late_leaves_nothing(tmp_path: Path) -> None:
    """The kernels read before the damage are discarded with the report."""
    report = encode_report(ReportSpec([KernelSpec(f"kernel_{n}()", {"gpu__time_duration.sum": 1.0}) for n in range(9)]))
    place = report.rindex(b"kernel_8")  # the name of the last kernel's field gets a wrong length
    (tmp_path / "damaged.ncu-rep").write_bytes(report[: place - 1] + b"\xff" + report[place:])
    done = ingest_reports(find_inputs([str(tmp_path / "damaged.ncu-rep")]).jobs, Store(tmp_path / "store"))
    assert (done.report_count, len(done.failures)) == (0, 1)
    assert "damaged" in str(done.failures[0][1])
    assert not list((tmp_path / "store").glob("kernels/*"))


def test_a_report_that_fails_may_have_any_name(tmp_path: Path) -> None:
    """A name that is not UTF-8 is recorded among the failures with a replacement character, once for all tries."""
    odd = tmp_path / "odd\udcff.ncu-rep"
    odd.write_bytes(b"NVR\0")
    store = Store(tmp_path / "store")
    for _ in range(2):
        assert len(ingest_reports(find_inputs([str(odd)]).jobs, store).failures) == 1
    ((source, _),) = store.failures()
    assert source == str(tmp_path / "odd\N{REPLACEMENT CHARACTER}.ncu-rep")


BAD = "003.ncu-rep"


@pytest.fixture
def jobs(tmp_path: Path) -> tuple[Job, ...]:
    """Seven reports, one of which is cut."""
    folder = _reports(tmp_path / "reports", 7)
    (folder / BAD).write_bytes((folder / BAD).read_bytes()[:-1])
    return find_inputs([str(folder)]).jobs


def _rows(store: Path) -> dict[str, list[dict[str, object]]]:
    """Return all rows of a store, sorted and without the time at which they were stored."""
    found = {}
    for table in ("runs", "kernels", "metrics", "failures"):
        whole = pa.concat_tables([pq.read_table(file, partitioning=None) for file in (store / table).iterdir()])
        own = [name for name in whole.column_names if name.endswith("ed_unix_s")]
        timeless = whole.drop_columns(own)
        found[table] = sorted(timeless.to_pylist(), key=repr)
    return found


@pytest.mark.parametrize("choice", ["process:2", ThreadPoolExecutor(2)], ids=["processes", "threads"])
def test_every_executor_gives_what_this_process_gives(
    tmp_path: Path, jobs: tuple[Job, ...], choice: ExecutorChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports, rows of the store and failures do not depend on where and in what groups the reports were read."""
    monkeypatch.setattr(load, "_LEAST_BYTES", 2 * jobs[0].path.stat().st_size)
    here, there = load_reports(jobs), load_reports(jobs, executor=choice)
    assert (there.reports, there.skipped_count) == (here.reports, 0)
    assert [source for source, _ in there.failures] == [source for source, _ in here.failures] == [jobs[3].source]
    for name, executor in (("here", None), ("there", choice)):
        parts: list[float] = []
        done = ingest_reports(jobs, Store(tmp_path / name), parts.append, executor=executor)
        assert (done.report_count, done.kernel_count, len(done.failures), done.skipped_count) == (6, 6, 1, 0)
        assert sum(parts) == len(jobs)
    assert _rows(tmp_path / "here") == _rows(tmp_path / "there")


def die_at_the_fifth(path: Path) -> Unprofiled | None:
    """Kill the worker at one report, as a failing machine does."""
    if path.name == "005.ncu-rep" and os.environ.get("TEST_PARENT") != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return None


def test_a_report_that_kills_its_worker_is_a_failure_and_the_others_are_stored(
    tmp_path: Path, jobs: tuple[Job, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store records why this report is missing."""
    monkeypatch.setenv("TEST_PARENT", str(os.getpid()))
    done = ingest_reports(jobs, Store(tmp_path / "store"), unprofiled_of=die_at_the_fifth, executor="process:2")
    (_, (source, error)) = done.failures
    assert (done.report_count, source) == (5, jobs[5].source)
    assert str(error) == "the process that read it died, as happens when memory runs out"
    assert [row["source"] for row in _rows(tmp_path / "store")["failures"]] == [jobs[3].source, source]


def test_a_report_that_no_table_takes_is_a_failure_and_the_others_are_stored(
    tmp_path: Path, jobs: tuple[Job, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that cannot be written costs its own report, not those that share its tables."""
    make = tables.kernel_table

    def refuse(kernels: Sequence[Kernel]) -> pa.Table:
        if kernels[0].source == jobs[4].source:
            raise pa.ArrowInvalid("no such value")
        return make(kernels)

    monkeypatch.setattr(tables, "kernel_table", refuse)
    done = ingest_reports(jobs, Store(tmp_path / "store"))
    assert (done.report_count, [source for source, _ in done.failures]) == (5, [jobs[3].source, jobs[4].source])
    assert "the store cannot take: ArrowInvalid at test_load.py:" in str(done.failures[1][1])
    assert str(done.failures[1][1]).endswith(": no such value")


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(2)], ids=["here", "threads"])
def test_a_report_that_comes_back_without_an_answer_is_named(
    jobs: tuple[Job, ...], executor: ExecutorChoice | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are counted before and after, so that none is lost without an error."""
    read = load.read_group

    def lose(options: ReadOptions, group: Sequence[Job], *_: object) -> load.Batch:
        return load.Batch([one for one in read(options, group).outcomes if one.job != jobs[5]])

    monkeypatch.setattr(load, "read_group", lose)
    loaded = load_reports(jobs, executor=executor)
    assert len(loaded.reports) == 5
    assert [source for source, _ in loaded.failures] == [jobs[3].source, jobs[5].source]
    assert "no answer" in str(loaded.failures[1][1])


def test_a_failure_holds_nothing_of_what_was_read(jobs: tuple[Job, ...]) -> None:
    """An error that is kept holds no frame of the reader, whose variables may hold a whole report."""
    ((_, error),) = load_reports(jobs).failures
    assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)


def test_much_is_read_by_processes_and_little_here(jobs: tuple[Job, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are started if there is much to read, in several reports, and more than one core."""
    monkeypatch.setattr(load, "usable_cores", lambda: 4)
    assert load.processes_for(jobs) is None
    monkeypatch.setattr(load, "_MUCH_WORK", 1)
    assert load.processes_for(jobs) is not None
    assert load.processes_for(jobs[:1]) is None
    monkeypatch.setattr(load, "usable_cores", lambda: 1)
    assert load.processes_for(jobs) is None


def test_kernels_decide_on_processes_and_not_bytes(tmp_path: Path) -> None:
    """A report counts by its kernels, with machine code more, whatever else it holds; if they are unknown, by size."""
    metrics: dict[str, MetricValue] = {"gpu__time_duration.sum": 1.0}
    many = write_report(tmp_path / "many.ncu-rep", ReportSpec([KernelSpec("k", metrics)] * 300, kernels_per_block=7))
    long = write_report(tmp_path / "long.ncu-rep", ReportSpec([KernelSpec("k" * 60_000, metrics)]))
    code = tmp_path / "code.ncu-rep"
    code.write_bytes(report_with(source_of(cubin(line_table(SET_ADDRESS + END)))))
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes(many.read_bytes()[:-1])
    packed = tmp_path / "packed.ncu-rep"
    packed.write_bytes(gzip.compress(bytes(1 << 20)))
    export = tmp_path / "export.csv"
    export.write_bytes(b"x" * (1 << 20))
    files = (many, long, code, cut, packed, export, tmp_path / "missing", tmp_path)
    assert long.stat().st_size > many.stat().st_size
    likely = likely_bytes(packed) // (20 << 10)
    assert [load._work_of(Job(file, file.name)) - 8 for file in files] == [300, 1, 20, 294, likely, 1024, 0, 0]
    assert load._work_of(Job(Path("far"), "far", "s3://bucket/far", 40 << 10)) - 8 == 2


def test_reports_are_put_together_by_size_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups have about the requested number of bytes, larger reports are alone, and no group has too many."""
    sizes = [10, 20, 30, 100, 5, 5, 5, 5]
    some = []
    for number, size in enumerate(sizes):
        path = tmp_path / str(number)
        path.write_bytes(bytes(size))
        some.append(Job(path, str(size)))

    def groups(most_bytes: int) -> list[list[str]]:
        return [[job.source for job in group] for group in load.grouped(some, most_bytes)]

    assert groups(60) == [["10", "20", "30"], ["100"], ["5", "5", "5", "5"]]
    monkeypatch.setattr(load, "_MOST_JOBS", 2)
    assert groups(60) == [["10", "20"], ["30"], ["100"], ["5", "5"], ["5", "5"]]
    assert list(load.grouped([], 60)) == []
    assert load.group_bytes(100 << 30, 2) == 128 << 20
    assert load.group_bytes(320 << 20, 2) == 40 << 20
    assert load.group_bytes(1000, 2) == 4 << 20


_HUNGRY_BYTES, _ADDRESS_SPACE_KIB = 600_000_000, 1_500_000
_ALONE = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
_MAIN = "from rooflens.cli.group import main; main()"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be held to one core here")
@pytest.mark.parametrize(
    ("command", "where"),
    list(product(("ingest", "analyze"), ("here", "processes"))),
)
def test_a_report_that_exhausts_memory_costs_itself(tmp_path: Path, command: str, where: str) -> None:
    """Of eleven reports ten are read and one is named, and the exit code tells."""
    folder = _reports(tmp_path / "reports", 10)
    write_csv(folder / "0045.csv", _HUNGRY_BYTES)
    code = _MAIN if where == "processes" else _ALONE + _MAIN
    arguments = [command, str(folder)]
    if command == "ingest":
        arguments += ["--store", str(tmp_path / "store")]
        arguments += ["--executor", "process:2"] if where == "processes" else []
    else:
        arguments += ["--format", "json"]
    limited = ("sh", "-c", f'ulimit -v {_ADDRESS_SPACE_KIB}; exec "$@"', "sh", sys.executable, "-c", code, *arguments)
    environment = {**os.environ, "PYTHONPATH": str(Path(rooflens.__file__).parents[1])}
    done = subprocess.run(limited, capture_output=True, text=True, check=False, env=environment)  # noqa: S603 - ours
    assert done.returncode == 1, done.stderr
    assert "0045.csv: reading it needs more memory than there is" in done.stderr
    assert "1 of 11 reports could not be read" in done.stderr
    if command == "ingest":
        assert len(Store(tmp_path / "store").digests()) == 10
    else:
        assert len(json.loads(done.stdout)["kernels"]) == 10
