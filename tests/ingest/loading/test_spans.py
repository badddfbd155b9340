from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report, write_report

from rooflens.errors import InputError
from rooflens.ingest.executors.running import Lost
from rooflens.ingest.loading import tasks
from rooflens.ingest.loading.gathering import gathered, tasks_of
from rooflens.ingest.loading.load import ingest_reports, load_reports
from rooflens.ingest.reports import read, report
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.report import Held, ReadOptions
from rooflens.ingest.reports.spans import Span, plan_spans, read_span
from rooflens.model.store.compacting import compact
from rooflens.model.store.reading import StoredReport
from rooflens.model.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.ingest.reports.pool import Job

KERNELS = 40
"""Of which 30 store values by instruction: more than come with text."""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """One report, which counts as large, and tasks that are small."""
    monkeypatch.setattr(tasks, "_LARGE_BYTES", 0)
    monkeypatch.setattr(tasks, "_LEAST_BYTES", 600)
    monkeypatch.setattr(tasks, "_TASKS_PER_WORKER", 1000)
    monkeypatch.setattr(tasks, "_KERNELS_AT_ONCE", 3)
    sampled = {"inst_executed": Instances({16: 3.0, 32: 4.0}, 7.0)}
    kernels = [
        KernelSpec(f"kernel_{n}()", {"gpu__time_duration.sum": 1000.0 + n * 7 % KERNELS, **(sampled if n % 4 else {})})
        for n in range(KERNELS)
    ]
    write_report(tmp_path / "large.ncu-rep", ReportSpec(kernels))
    return find_inputs([str(tmp_path / "large.ncu-rep")]).jobs[0]


def _spans(job: Job) -> list[Span]:
    return [span for task in tasks_of([job], ReadOptions(), 600, {}) for span in task if isinstance(span, Span)]


def _rows(store: Path) -> dict[str, list[str]]:
    """Return all rows of a store, in an order of their own and without the time at which they were stored."""
    found = {}
    for table in ("runs", "kernels", "metrics", "instances"):
        whole = pa.concat_tables([pq.read_table(file, partitioning=None) for file in (store / table).iterdir()])
        timeless = whole.drop_columns([name for name in whole.column_names if name.endswith("ed_unix_s")])
        found[table] = sorted(map(repr, timeless.to_pylist()))
    return found


def _stored(store: Path) -> list[StoredReport]:
    reports = list(Store.existing(store).reports())
    assert all(isinstance(report, StoredReport) for report in reports)
    return [report for report in reports if isinstance(report, StoredReport)]


def test_a_large_report_is_read_by_several_workers(tmp_path: Path, job: Job) -> None:
    """The store holds what one process writes, as one part that is whole, and so does memory.

    The kernels that may have text come from all spans and are written last.
    """
    assert len(_spans(job)) > 3
    with ThreadPoolExecutor(2) as executor:
        done = ingest_reports([job], Store(tmp_path / "two"), options=ReadOptions(raw="all"), executor=executor)
        loaded = load_reports([job], executor=executor)
    ingest_reports([job], Store(tmp_path / "one"), options=ReadOptions(raw="all"))
    assert (done.report_count, done.kernel_count, done.failures) == (1, KERNELS, [])
    assert loaded.reports == load_reports([job]).reports
    assert _rows(tmp_path / "two") == _rows(tmp_path / "one")
    (stored,) = _stored(tmp_path / "two")
    assert sorted(stored.kernels, key=lambda kernel: kernel.index) == list(loaded.reports[0][1])
    assert len(list((tmp_path / "two" / "metrics").iterdir())) == len(_spans(job))
    assert len(list((tmp_path / "two" / "runs").iterdir())) == 1


@pytest.mark.corpus
def test_the_same_kernels_have_text_however_many_read(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all spans together the kernels that took longest have their hottest instructions in text, and no other."""
    monkeypatch.setattr(tasks, "_LARGE_BYTES", 0)
    for module in (read, report):
        monkeypatch.setattr(module, "MOST_IN_TEXT", 3)
    (job,) = find_inputs([str(next(corpus.rglob("GPU-MMS__profile.ncu-rep")))]).jobs
    assert len(plan_spans(job, ReadOptions(), 1 << 20)) > 2
    monkeypatch.setattr(tasks, "_LEAST_BYTES", 1 << 20)
    with ThreadPoolExecutor(2) as executor:
        split = load_reports([job], executor=executor)
    whole = load_reports([job])
    assert (split.reports, split.notes) == (whole.reports, whole.notes)
    assert sum(any(spot.sass for spot in kernel.hotspots) for kernel in split.reports[0][1]) == 3


def test_a_part_of_many_files_is_checked_compacted_and_replaced_as_a_whole(tmp_path: Path, job: Job) -> None:
    """A missing file of any worker is damage; read again the report stands once; compaction leaves one file a table."""
    store = tmp_path / "store"
    with ThreadPoolExecutor(2) as executor:
        ingest_reports([job], Store(store), executor=executor)
        (part,) = Store(store).index().parts.values()
        (store / "kernels" / f"{part.commit.keys[-1]}.parquet").unlink()
        assert list(Store(store).damage()) == [part.key]
        assert ingest_reports([job], Store(store), executor=executor).report_count == 1
    assert Store(store).damage() == {}
    assert not list(store.rglob(f"{part.key}.parquet"))
    before = _stored(store)
    compact(Store(store))
    (stored,) = _stored(store)
    assert [stored] == before
    assert len(list((store / "kernels").iterdir())) == 1


def test_a_writer_sweeps_the_files_of_spans_that_were_never_committed(tmp_path: Path, job: Job) -> None:
    """What a killed ingest left of a large report shows nowhere and goes; what is committed stays, and is complete."""
    store = Store(tmp_path / "store")
    with ThreadPoolExecutor(2) as executor:
        ingest_reports([job], store, executor=executor)
    committed = {*(tmp_path / "store").rglob("*.parquet")}
    with store.writing():
        tasks.IngestTask(store.place, ReadOptions(raw="values"), lambda _: None)((_spans(job)[1],))
    assert len({*(tmp_path / "store").rglob("*.parquet")} - committed) == 2
    assert [len(one.kernels) for one in _stored(tmp_path / "store")] == [KERNELS]
    with store.writing():
        pass
    assert {*(tmp_path / "store").rglob("*.parquet")} == committed
    assert store.damage() == {}


def test_a_damaged_span_costs_the_whole_report(tmp_path: Path, job: Job) -> None:
    """The error is the one that one process gives, and no span of the report is left in the store."""
    encoded = encode_report(
        ReportSpec([KernelSpec(f"kernel_{n}()", {"gpu__time_duration.sum": 1.0}) for n in range(9)])
    )
    place = encoded.rindex(b"kernel_8")  # the name of the last kernel's field gets a wrong length
    job.path.write_bytes(encoded[: place - 1] + b"\xff" + encoded[place:])
    assert len(plan_spans(job, ReadOptions(), 200)) > 1
    with ThreadPoolExecutor(2) as executor:
        done = ingest_reports([job], Store(tmp_path / "store"), executor=executor)
        loaded = load_reports([job], executor=executor)
    (alone,) = load_reports([job]).failures
    assert (done.report_count, loaded.reports) == (0, [])
    assert [(source, str(error)) for source, error in (*done.failures, *loaded.failures)] == [
        (job.source, str(alone[1])),
        (job.source, str(alone[1])),
    ]
    assert not list((tmp_path / "store" / "kernels").iterdir())


def test_a_file_that_changes_after_it_was_planned_is_an_error(job: Job) -> None:
    """A worker that comes late finds another file, and does not mix the two."""
    span = _spans(job)[1]
    job.path.write_bytes(job.path.read_bytes()[:-8] + b"\0" * 8)
    with pytest.raises(Exception, match="changed while it was read"):
        list(read_span(span, ReadOptions(), Held()))


def test_a_span_that_no_worker_survives_costs_its_report_alone(tmp_path: Path, job: Job) -> None:
    """The report is a failure that says so, and what other workers wrote of it is gone."""
    store, error = Store(tmp_path / "store"), InputError("the worker was killed by SIGKILL")
    with store.writing():
        task = tasks.IngestTask(store.place, ReadOptions(raw="values"), lambda _: None)
        first, *others = spans = _spans(job)
        results = [*(task((span,)) for span in others), Lost(first, error)]
        assert len(list((tmp_path / "store" / "metrics").iterdir())) == len(others)
        (written,) = gathered(results, task, {job: tuple(spans)})
    assert (written.jobs, written.failures, written.part) == ((job,), ((job.source, error),), None)
    assert not list((tmp_path / "store" / "metrics").iterdir())
