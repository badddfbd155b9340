from __future__ import annotations

import os
import pickle
import shutil
import socket
import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from support.kernels import make_kernel
from support.stored import DIGESTS, commit, digest_of, make_report, stored, tables_of

from rooflens.errors import InputError
from rooflens.model.records import Hotspot, Rule, Series
from rooflens.model.store import MARKER, index
from rooflens.model.store import store as stores
from rooflens.model.store.compacting import compact
from rooflens.model.store.lock import writer_of_store
from rooflens.model.store.parts import PartWriter, write_part
from rooflens.model.store.place import Place
from rooflens.model.store.reading import Choice, Chunk, StoredReport
from rooflens.model.store.rows import ReportRows, failure_table, kernel_table, report_tables
from rooflens.model.store.schema import TABLES
from rooflens.model.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path


class Killed(BaseException):
    """What a test ends a writer with."""


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder but the lock."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_every_field_of_a_kernel_comes_back(tmp_path: Path) -> None:
    """Texts, sizes, maps, rules, series, hot spots, and what is missing, are read as they were written."""
    spots = (Hotspot("line", file="a.cu", line=7, measures={"samples": 3.0}), Hotspot("sass", pc=16, sass="FADD"))
    full = make_kernel(
        {"dram_bytes": 1e9},
        digest=DIGESTS[0],
        grid=(1, 2, 3),
        block=(4, 5, 6),
        device=2,
        nvtx_range="train/step",
        counter_sources={"dram_bytes": "dram__bytes.sum"},
        thread_opcodes={"FADD": 5},
        stalls={"wait": 0.5, "barrier": 0.5},
        rules=(Rule("r", "s", "t", "m", 10.0), Rule("r", "s", "t", "other", None, 5.0)),
        series=Series(100.0, {"dram": (0.5, None)}),
        hotspots=spots,
        synthetic=True,
    )
    kernels = (full, make_kernel(digest=DIGESTS[0], index=1), replace(full, index=2, series=Series(5.0, {})))
    run, _ = make_report(DIGESTS[0], 3)
    commit(tmp_path, report_tables(ReportRows(run, kernels)))
    (report,) = Store.existing(tmp_path).reports()
    assert report == StoredReport(run, tuple(replace(kernel, source=run.source) for kernel in kernels))


def test_many_reports_stand_in_one_part(tmp_path: Path) -> None:
    """A thousand reports of one kernel each cost one file a table, and under 1 KB a report."""
    reports = [make_report(digest_of(number), 1) for number in range(1000)]
    with Store(tmp_path).writing() as store:
        with PartWriter(store.place) as writer:
            for run, kernels in reports:
                writer.add_report(ReportRows(run, kernels))
        store.commit(writer.summary)
    assert sum(len(content) for content in contents(tmp_path).values()) < 1000 * 1000
    assert len(list((tmp_path / "kernels").iterdir())) == 1
    assert {report.run.digest: report.kernels for report in stored(tmp_path)} == {
        run.digest: kernels for run, kernels in reports
    }


def test_a_report_stands_in_a_store_once(tmp_path: Path) -> None:
    """Two copies in one part, in two parts of one writer, and in a later writer's, are one report in each table."""
    for _ in range(2):
        with Store(tmp_path).writing() as store:
            for numbers in ((0, 1, 0), (1, 2)):
                with PartWriter(store.place) as writer:
                    for number in numbers:
                        writer.add(tables_of(DIGESTS[number]))
                store.commit(writer.summary)
    assert [report.run.digest for report in sorted(stored(tmp_path), key=lambda r: r.run.digest)] == list(DIGESTS[:3])
    for table in ("runs", "kernels"):
        digests = pq.read_table(tmp_path / table)["digest"].to_pylist()
        assert sorted(digests) == list(DIGESTS[:3]), table


def test_a_report_read_again_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """What the later writer brings counts; the other reports of the old part stay."""
    commit(tmp_path, tables_of(DIGESTS[0]), tables_of(DIGESTS[1]))
    run, _ = make_report(DIGESTS[1], 1)
    commit(tmp_path, report_tables(ReportRows(replace(run, host="new"), ())))
    assert {report.run.digest: (report.run.host, len(report.kernels)) for report in stored(tmp_path)} == {
        DIGESTS[0]: (None, 1),
        DIGESTS[1]: ("new", 0),
    }


def fail_after(steps: int, patched: pytest.MonkeyPatch) -> None:
    """End the process, as far as a test can, before the step after so many: no step after it is taken either."""
    left = steps

    def dying(real: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return real(*arguments, **named)

        return call

    for owner, name in ((os, "fsync"), (os, "replace"), (os, "unlink"), (Place, "remove")):
        patched.setattr(owner, name, dying(getattr(owner, name)))


def test_a_writer_killed_at_any_step_leaves_a_whole_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever sync, rename or removal was the last, each report is there whole, and the next writer tidies up."""
    run, kernels = make_report(DIGESTS[1], 2)
    new = report_tables(ReportRows(replace(run, host="new"), kernels))
    outcomes = []
    commit(tmp_path / "before", tables_of(DIGESTS[0]), tables_of(DIGESTS[1]))
    for step in count(0, 2):
        folder = shutil.copytree(tmp_path / "before", tmp_path / str(step))
        with monkeypatch.context() as patched:
            fail_after(step, patched)
            try:
                commit(folder, new)
                break
            except Killed:
                pass
        for _ in range(2):  # as it was left, and after the next writer
            found = {report.run.digest: (report.run.host, len(report.kernels)) for report in stored(folder)}
            assert found[DIGESTS[0]] == (None, 1)
            assert found[DIGESTS[1]] in {(None, 1), ("new", 2)}
            with Store(folder).writing():
                pass
        outcomes.append(found[DIGESTS[1]])
        keys = {file.stem for file in (folder / "runs").iterdir()}
        assert {file.stem for table in TABLES for file in (folder / table).iterdir()} == keys
    assert outcomes == sorted(outcomes, key=lambda outcome: outcome[0] == "new")
    assert {host for host, _ in outcomes} == {None, "new"}


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """The second waits, hears who is writing, and both batches are there at the end."""
    heard: list[str] = []
    first = Store(tmp_path)
    waiting = threading.Event()

    def second() -> None:
        with Store(tmp_path, lambda who: (heard.append(who), waiting.set())).writing() as store:
            store.commit(write_part(store.place, tables_of(DIGESTS[1])))

    with first.writing():
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(10)
        first.commit(write_part(first.place, tables_of(DIGESTS[0])))
    thread.join(10)
    assert heard == [f"process {os.getpid()} on {socket.gethostname()}"]
    assert {report.run.digest for report in stored(tmp_path)} == {*DIGESTS[:2]}


def test_a_writer_that_will_not_wait_is_told_who_writes(tmp_path: Path) -> None:
    """It gets an error with the process, and nothing is swept from under the first one."""
    with Store(tmp_path).writing() as store:
        part = write_part(store.place, tables_of(DIGESTS[0]))
        with pytest.raises(InputError, match=f"being written by process {os.getpid()}"):
            Store(tmp_path).writing(wait=False).__enter__()
        store.commit(part)
    assert len(stored(tmp_path)) == 1


def test_a_reader_is_told_of_a_writer(tmp_path: Path) -> None:
    """A store whose first report is not there yet is not called empty; one that nobody writes is."""
    with Store(tmp_path).writing(), pytest.raises(InputError, match="is being written by process"):
        Store.existing(tmp_path).reports()
    with pytest.raises(InputError, match="is empty"):
        Store.existing(tmp_path).reports()


def test_files_of_others_are_never_removed(tmp_path: Path) -> None:
    """Parquet and partial files that no writer of a store named stay, in every table, and are named by the index."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    others = [
        tmp_path / table / name for table in TABLES for name in ("mine.parquet", "x.partial", f"{'A' * 64}.parquet")
    ]
    for file in others:
        file.write_bytes(b"mine")
    commit(tmp_path, tables_of(DIGESTS[1]))
    assert all(file.read_bytes() == b"mine" for file in others)
    assert len(stored(tmp_path)) == 2
    assert set(Store.existing(tmp_path).foreign()) == {"mine.parquet", "x.partial", f"{'A' * 64}.parquet"}


@pytest.mark.parametrize("name", ["data.parquet", "runs/data.parquet", "kernels/0.parquet", f"runs/{'0' * 64}.parquet"])
def test_a_folder_that_is_no_store_is_refused(tmp_path: Path, name: str) -> None:
    """Reading and writing leave every file of a folder without our marker as it is."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"a": [1]}), file)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="neither empty nor a store"), Store(tmp_path).writing():
        pass
    with pytest.raises(InputError, match="is not a store"):
        Store.existing(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('{"format": "rooflens-store", "schema_version": 6}', "holds schema version 6, this is 5: a newer"),
        ('{"format": "rooflens-store"}', "is not the marker of a store"),
        ("", "is not the marker of a store"),
        ("[1]", "is not the marker of a store"),
    ],
)
def test_a_store_of_another_version_is_not_written_to(tmp_path: Path, marker: str, said: str) -> None:
    """A newer schema, and a marker that says nothing, are refused by readers and writers, and no file changes."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    (tmp_path / MARKER).write_text(marker)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=said), Store(tmp_path).writing():
        pass
    with pytest.raises(InputError, match=said):
        Store.existing(tmp_path)
    assert contents(tmp_path) == before


def emptied(file: Path, other: Path) -> None:
    """Put a table of the same columns and no rows in the place of a file."""
    pq.write_table(pq.read_table(other).slice(0, 0), file)


def swapped(file: Path, other: Path) -> None:
    """Put the file of another part in the place of a file."""
    file.write_bytes(other.read_bytes())


def cut(file: Path, _: Path) -> None:
    """Leave the first half of a file."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def lost(file: Path, _: Path) -> None:
    """Remove a file."""
    file.unlink()


@pytest.mark.parametrize("damage", [emptied, swapped, cut, lost])
@pytest.mark.parametrize("table", ["kernels", "hotspots", "runs"])
def test_a_file_that_is_not_what_was_committed_is_an_error(tmp_path: Path, table: str, damage: Any) -> None:
    """It is named, the other part is read, and reading its report in again mends it."""
    broken, other = commit(tmp_path, tables_of(DIGESTS[0])), commit(tmp_path, tables_of(DIGESTS[1]))
    damage(tmp_path / table / f"{broken}.parquet", tmp_path / table / f"{other}.parquet")
    found = list(Store.existing(tmp_path).reports())
    assert [report.run.digest for report in found if isinstance(report, StoredReport)] == [DIGESTS[1]]
    failures = [failure for failure in found if not isinstance(failure, StoredReport)]
    if (table, damage) != ("runs", lost):  # with its file in `runs` a part is gone: that is what a commit is
        ((_, error),) = failures
        assert f"{table}/{broken}.parquet" in str(error)
        assert "ingest" in error.hint
    assert not Store(tmp_path).is_current(DIGESTS[0])
    commit(tmp_path, tables_of(DIGESTS[0]))
    if table != "runs":
        assert {report.run.digest for report in stored(tmp_path)} == {*DIGESTS[:2]}


def test_a_damaged_part_goes_when_all_of_its_reports_are_read_again(tmp_path: Path) -> None:
    """Until then what is not read again is a failure, and never silently gone."""
    key = commit(tmp_path, tables_of(DIGESTS[0]), tables_of(DIGESTS[1]))
    (tmp_path / "kernels" / f"{key}.parquet").write_bytes(b"")
    commit(tmp_path, tables_of(DIGESTS[0]))
    kinds = [isinstance(one, StoredReport) for one in Store.existing(tmp_path).reports()]
    assert sorted(kinds) == [False, True]
    commit(tmp_path, tables_of(DIGESTS[1]))
    assert len(stored(tmp_path)) == 2
    assert not (tmp_path / "runs" / f"{key}.parquet").exists()


def test_a_part_that_is_replaced_while_it_is_read_is_read_where_it_went(tmp_path: Path) -> None:
    """A reader that has listed the parts loses none to a writer that merges them, and has none twice."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    commit(tmp_path, tables_of(DIGESTS[1]), tables_of(DIGESTS[2]))
    reader = Store.existing(tmp_path).reports()
    first = next(reader)
    commit(tmp_path, tables_of(DIGESTS[2], host="new"))
    rest = list(reader)
    assert all(isinstance(report, StoredReport) for report in (first, *rest))
    assert [report.run.digest for report in (first, *rest)] == list(DIGESTS[:3])


def test_a_part_that_was_swept_is_not_committed(tmp_path: Path) -> None:
    """A part written outside of the writer's time may be gone: committing it is an error, and no damage."""
    with Store(tmp_path).writing() as store:
        late = write_part(store.place, tables_of(DIGESTS[0]))
    with Store(tmp_path).writing() as store:
        store.commit(write_part(store.place, tables_of(DIGESTS[1])))
        with pytest.raises(InputError, match="is not there as it was written"):
            store.commit(late)
    assert [report.run.digest for report in stored(tmp_path)] == [DIGESTS[1]]


def test_an_unwritable_place_is_an_error(tmp_path: Path) -> None:
    """A file where the folder should be is named with a hint."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write to the store"), Store(tmp_path / "file" / "store").writing():
        pass


def test_a_place_is_the_same_on_the_other_side_of_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that stands in another folder writes to the store that was meant."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with Store("store").writing() as store:
        sent = pickle.dumps(store.place)
        monkeypatch.chdir(tmp_path / "there")
        part = write_part(pickle.loads(sent), tables_of(DIGESTS[0]))  # noqa: S301 - our own
        store.commit(pickle.loads(pickle.dumps(part)))  # noqa: S301 - our own
    assert len(stored(tmp_path / "here" / "store")) == 1


def test_an_address_that_pyarrow_does_not_know_goes_through_fsspec() -> None:
    """A store in fsspec's memory holds what was put there; without fsspec the hint names it."""
    pytest.importorskip("fsspec")
    place = f"memory://{os.getpid()}/store"
    with Store(place).writing() as store:
        store.commit(write_part(store.place, tables_of(DIGESTS[0])))
    ((report),) = Store.existing(place).reports()
    assert isinstance(report, StoredReport)
    assert report.run.digest == DIGESTS[0]


def test_kernels_are_made_column_by_column() -> None:
    """A table of no kernels has all columns, and a kernel without counters is one row of nulls."""
    assert kernel_table([]).column_names == TABLES["kernels"].names
    row = kernel_table([make_kernel({"duration_ns": None})]).to_pylist()[0]
    assert row["duration_ns"] is None
    assert row["series"] is None
    assert row["counter_sources"] == []


def test_a_reader_misses_nothing_that_is_compacted_while_it_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts that went after they were listed are looked for where they are now."""
    for digest in DIGESTS[:2]:
        commit(tmp_path, tables_of(digest))
    read = index.read_commit

    def read_late(place: Place, key: str) -> Any:
        monkeypatch.setattr(index, "read_commit", read)
        compact(Store(tmp_path))
        return read(place, key)

    monkeypatch.setattr(index, "read_commit", read_late)
    found = index.read_index(Place(tmp_path))
    assert {*found.owner} == {*DIGESTS[:2]}
    assert len(found.parts) == 1


def test_a_part_that_is_compacted_after_it_was_read_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two parts the first is read, then both are compacted: what stands for both is all that counts."""
    for digest in DIGESTS[:2]:
        commit(tmp_path, tables_of(digest))
    read, calls = index.read_commit, count()

    def read_late(place: Place, key: str) -> Any:
        if next(calls) == 1:
            monkeypatch.setattr(index, "read_commit", read)
            compact(Store(tmp_path))
        return read(place, key)

    monkeypatch.setattr(index, "read_commit", read_late)
    assert len(index.read_index(Place(tmp_path)).parts) == 1


def test_a_folder_becomes_a_store_under_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two first writers one makes the marker, and the other waits: half a marker is nobody's to read."""
    mark, writers = stores.mark, []

    def marked(place: Place) -> None:
        writers.append(writer_of_store(place))
        mark(place)

    monkeypatch.setattr(stores, "mark", marked)
    with Store(tmp_path / "store").writing():
        assert writers == [f"process {os.getpid()} on {socket.gethostname()}"]


def test_a_report_that_is_read_again_leaves_the_failures_beside_it(tmp_path: Path) -> None:
    """What compaction put into one part with it is kept when the report is stored anew."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    commit(tmp_path, {"failures": failure_table([("b.ncu-rep", "damaged", "h")])})
    compact(Store(tmp_path))
    commit(tmp_path, tables_of(DIGESTS[0], 2))
    assert Store(tmp_path).failures() == [("b.ncu-rep", "damaged")]
    assert [len(report.kernels) for report in stored(tmp_path)] == [2]


def test_names_that_are_not_utf8_do_no_harm(tmp_path: Path) -> None:
    """Such a file in a store is left alone, such a folder is refused, and so is a store with no name."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    (tmp_path / "runs" / "odd\udcff").touch()
    assert Store.existing(tmp_path).foreign() == ("odd\udcff",)
    for place, said in ((tmp_path / "odd\udcff", "is not UTF-8"), ("", "an empty name")):
        with pytest.raises(InputError, match=said), Store(place).writing():
            pass


def test_hot_spots_stay_with_their_kernels_in_pieces(tmp_path: Path) -> None:
    """However few kernels of a report come at once, each has its own hot spots, and the pieces are the report."""
    commit(tmp_path, tables_of(DIGESTS[1], 7), tables_of(DIGESTS[0], 2))
    whole = list(Store.existing(tmp_path).reports())
    for at_once in (1, 3, 7, 100):
        pieces = [
            one for one in Store.existing(tmp_path).reports(Choice(at_once=at_once)) if isinstance(one, StoredReport)
        ]
        assert max(len(piece.kernels) for piece in pieces) == min(at_once, 7)
        for report in whole:
            assert isinstance(report, StoredReport)
            of_report = [piece.kernels for piece in pieces if piece.run == report.run]
            assert tuple(kernel for kernels in of_report for kernel in kernels) == report.kernels


def test_pieces_are_sent_to_another_process_in_one(tmp_path: Path) -> None:
    """Cut from rows that were read together, they are not each sent with the whole, and make the same records there."""
    commit(tmp_path, tables_of(DIGESTS[1], 512))

    def chunk(at_once: int) -> Chunk:
        (found,) = Store.existing(tmp_path).chunks(Choice(at_once=at_once), lambda _: ())
        assert isinstance(found, Chunk)
        return found

    whole, in_pieces = pickle.dumps(chunk(512)), pickle.dumps(chunk(8))
    assert len(in_pieces) < 2 * len(whole)
    (report,), pieces = (pickle.loads(sent).reports() for sent in (whole, in_pieces))  # noqa: S301 - our own
    assert len(pieces) == 512 / 8
    assert [kernel for piece in pieces for kernel in piece.kernels] == [*report.kernels]
    assert report.kernels == chunk(512).reports()[0].kernels
    assert report.kernels[0].hotspots
