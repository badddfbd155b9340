from __future__ import annotations

import os
import pickle
import signal
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

from rooflens.ingest.loading import load, tasks
from rooflens.ingest.loading.load import ingest_reports, load_reports
from rooflens.ingest.loading.tasks import IngestTask, grouped, task_bytes
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.pool import Job, Outcome
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.store.parts import PartWriter
from rooflens.model.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.ingest.executors.opening import ExecutorChoice
    from rooflens.model.store.rows import ReportRows
    from rooflens.model.unprofiled import Unprofiled

COUNT = 7
BAD = "003.ncu-rep"


@pytest.fixture
def jobs(tmp_path: Path) -> tuple[Job, ...]:
    """Seven reports, one of them cut."""
    folder = tmp_path / "reports"
    folder.mkdir()
    for number in range(COUNT):
        kernels = [KernelSpec(f"kernel_{number}()", {"gpu__time_duration.sum": 1000.0 + number})]
        write_report(folder / f"{number:03}.ncu-rep", ReportSpec(kernels))
    (folder / BAD).write_bytes((folder / BAD).read_bytes()[:-1])
    return find_inputs([str(folder)]).jobs


def _rows(store: Path) -> dict[str, list[dict[str, object]]]:
    """Return all rows of a store, in an order of their own and without the time at which they were stored."""
    found = {}
    for table in ("runs", "kernels", "metrics", "failures"):
        whole = pa.concat_tables([pq.read_table(file, partitioning=None) for file in (store / table).iterdir()])
        timeless = whole.drop_columns([name for name in whole.column_names if name.endswith("ed_unix_s")])
        found[table] = sorted(timeless.to_pylist(), key=repr)
    return found


@pytest.mark.parametrize("choice", ["process:2", ThreadPoolExecutor(2)], ids=["processes", "threads"])
def test_every_executor_gives_what_this_process_gives(
    tmp_path: Path, jobs: tuple[Job, ...], choice: ExecutorChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports, rows of the store and failures are the same wherever they were read, in tasks of one or two reports."""
    monkeypatch.setattr(tasks, "_LEAST_BYTES", 2 * jobs[0].path.stat().st_size)
    here, there = load_reports(jobs), load_reports(jobs, executor=choice)
    assert (there.reports, there.skipped_count) == (here.reports, 0)
    assert [source for source, _ in there.failures] == [source for source, _ in here.failures] == [jobs[3].source]
    for name, executor in (("here", None), ("there", choice)):
        read: list[Job] = []
        done = ingest_reports(jobs, Store(tmp_path / name), read.append, executor=executor)
        assert (done.report_count, done.kernel_count, len(done.failures), done.skipped_count) == (6, 6, 1, 0)
        assert sorted(job.source for job in read) == [job.source for job in jobs]
    assert _rows(tmp_path / "here") == _rows(tmp_path / "there")


def die_at_the_fifth(path: Path) -> Unprofiled | None:
    """Take the worker along at one report, as a machine that fails does."""
    if path.name == "005.ncu-rep" and os.environ.get("TEST_PARENT") != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return None


def test_a_report_that_kills_its_worker_is_a_failure_and_the_others_are_stored(
    tmp_path: Path, jobs: tuple[Job, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task is tried again, then report by report; the store keeps why the one is not in it."""
    monkeypatch.setenv("TEST_PARENT", str(os.getpid()))
    two = jobs[4:6]
    done = ingest_reports(two, Store(tmp_path / "store"), unprofiled_of=die_at_the_fifth, executor="process:1")
    ((source, error),) = done.failures
    assert (done.report_count, source) == (1, jobs[5].source)
    assert "killed (SIGKILL)" in str(error)
    assert [row["source"] for row in _rows(tmp_path / "store")["failures"]] == [source]


def test_a_report_that_no_table_takes_is_a_failure_and_the_others_are_stored(
    tmp_path: Path, jobs: tuple[Job, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that cannot be written costs its report, not those that share its part."""
    add = PartWriter.add_report

    def refuse(writer: PartWriter, rows: ReportRows) -> None:
        if rows.run.source == jobs[4].source:
            raise pa.ArrowInvalid("no such value")
        add(writer, rows)

    monkeypatch.setattr(PartWriter, "add_report", refuse)
    done = ingest_reports(jobs, Store(tmp_path / "store"))
    assert (done.report_count, [source for source, _ in done.failures]) == (5, [jobs[3].source, jobs[4].source])
    assert "the store cannot take: ArrowInvalid at test_executors.py:" in str(done.failures[1][1])
    assert str(done.failures[1][1]).endswith(": no such value")


def test_much_is_read_by_processes_and_little_here(jobs: tuple[Job, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes start where there is much to read, more than one core, and not one report that cannot be split."""
    assert load._plan(jobs, ReadOptions(), None)[1] is None
    monkeypatch.setattr(load, "_MUCH_BYTES", 1)
    monkeypatch.setattr(load, "usable_cores", lambda: 4)
    total_bytes, workers = load._plan(jobs, ReadOptions(), None)
    assert total_bytes == sum(job.path.stat().st_size for job in jobs)
    assert workers is not None
    assert load._plan(jobs[:1], ReadOptions(), None)[1] is not None
    assert load._plan(jobs[:1], ReadOptions(reader="ncu-report"), None)[1] is None
    monkeypatch.setattr(load, "usable_cores", lambda: 1)
    assert load._plan(jobs, ReadOptions(), None)[1] is None


def test_reports_are_put_together_by_size_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks have about the bytes asked for; a larger report is one by itself, and no task has too many."""
    sizes = [10, 20, 30, 100, 5, 5, 5, 5]
    some = []
    for number, size in enumerate(sizes):
        path = tmp_path / str(number)
        path.write_bytes(bytes(size))
        some.append(Job(path, str(size)))

    def groups(most_bytes: int) -> list[list[str]]:
        return [[job.source for job in group] for group in grouped(some, most_bytes)]

    assert groups(60) == [["10", "20", "30"], ["100"], ["5", "5", "5", "5"]]
    monkeypatch.setattr(tasks, "_MOST_JOBS", 2)
    assert groups(60) == [["10", "20"], ["30"], ["100"], ["5", "5"], ["5", "5"]]
    assert list(grouped([], 60)) == []
    assert task_bytes(100 << 30, 2) == 128 << 20
    assert task_bytes(320 << 20, 2) == 40 << 20
    assert task_bytes(1000, 2) == 4 << 20


def test_what_a_task_returns_is_small(tmp_path: Path, jobs: tuple[Job, ...]) -> None:
    """A worker hands back names, counts and the rows of `runs`, and no kernel: those it has written."""
    store = Store(tmp_path / "store")
    with store.writing():
        task = IngestTask(store.place, load.ReadOptions(raw="all"), load._no_unprofiled)
        (written,) = pickle.loads(pickle.dumps(task))(jobs)  # noqa: S301 - our own
    assert written.part is not None
    assert len(written.part.digests) == 6
    assert len(written.failures) == 1
    assert len(pickle.dumps(written)) < 20_000
    assert not any(isinstance(value, Outcome) for value in (written.jobs, written.failures, written.part))


def test_an_executor_is_not_ended_by_who_borrows_it(jobs: tuple[Job, ...]) -> None:
    """A program's own executor goes on after reports were read with it."""
    with ThreadPoolExecutor(1) as executor:
        lent: Executor = executor
        assert len(load_reports(jobs, executor=lent).reports) == 6
        assert executor.submit(int, 3).result() == 3
