"""A store returns what was stored, once and whole, whatever happened to its writers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from support.kernels import make_kernel
from support.stored import DIGESTS, commit, digest_of, make_report, stored, tables_of

from rooflens.analyzing import Basis, analyze_store
from rooflens.errors import InputError
from rooflens.model.records import Hotspot, Rule, Series
from rooflens.model.store import MARKER
from rooflens.model.store.columns import map_column, maps
from rooflens.model.store.dataset import Store, StoredReport
from rooflens.model.store.tables import (
    KERNELS_TO_WRITE,
    TABLES,
    ReportRows,
    kernel_table,
    report_tables,
    unprofiled_table,
)
from rooflens.model.unprofiled import Unprofiled
from rooflens.model.verdict.thresholds import override_thresholds


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_every_field_of_a_kernel_comes_back(tmp_path: Path) -> None:
    """Texts, sizes, maps, rules, series, hot spots and missing values are read as they were written."""
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


def test_many_reports_are_one_file_a_table(tmp_path: Path) -> None:
    """Reports of one kernel each, by the hundred, give one file per table and less than 1 KB per report."""
    reports = [make_report(digest_of(number), 1) for number in range(300)]
    commit(tmp_path, *(report_tables(ReportRows(run, kernels)) for run, kernels in reports))
    assert sum(len(content) for content in contents(tmp_path).values()) < 300 * 1000
    assert len(list((tmp_path / "kernels").iterdir())) == 1
    assert {one.run.digest: one.kernels for one in stored(tmp_path)} == {run.digest: of for run, of in reports}


def test_one_ingest_and_many_hold_the_same_kernels(tmp_path: Path) -> None:
    """Reports stored one by one, some twice, give the same kernels as stored together."""
    commit(tmp_path / "once", *(tables_of(digest_of(number), 2) for number in range(20)))
    for number in (*range(20), *range(5)):
        commit(tmp_path / "one by one", tables_of(digest_of(number), 2))
    assert stored(tmp_path / "one by one") == stored(tmp_path / "once")


def test_a_report_stands_in_a_store_once(tmp_path: Path) -> None:
    """Two copies in one ingest, in the same tables or in others, and another in a later ingest are one report."""
    twice = pa.concat_tables([tables_of(DIGESTS[0])["runs"]] * 2)
    for _ in range(2):
        commit(tmp_path, tables_of(DIGESTS[1]), tables_of(DIGESTS[1]), tables_of(DIGESTS[2]))
    assert [report.run.digest for report in stored(tmp_path)] == [*DIGESTS[1:3]]
    assert [len(pq.read_table(file)) for file in (tmp_path / "kernels").iterdir()] == [2, 2]
    commit(tmp_path, {**tables_of(DIGESTS[0]), "runs": twice.slice(0, 1)})
    assert len(stored(tmp_path)) == 3


def test_runs_of_one_ingest_have_names_of_their_own(tmp_path: Path) -> None:
    """A copy that comes with a new report uses up no name of the following reports."""
    runs = [make_report(digest, 1) for digest in DIGESTS[:3]]
    rows = [ReportRows(run, kernels) for run, kernels in runs]
    commit(tmp_path, report_tables(rows[0]), report_tables(rows[0], rows[1]), report_tables(rows[2]))
    assert len(set(Store(tmp_path).run_ids().values())) == 3
    assert [report.run for report in stored(tmp_path)] == [run for run, _ in runs]


def test_two_ingests_of_the_same_reports_at_once_are_one(tmp_path: Path) -> None:
    """Neither waits, both succeed, and for each report the run that began first counts."""
    tables = [tables_of(digest_of(number), 2) for number in range(8)]
    with ThreadPoolExecutor(2) as pool:
        ids = sorted(pool.map(lambda _: commit(tmp_path, *tables), range(2)))
    assert sorted(file.stem for file in (tmp_path / "runs").iterdir()) == ids
    assert [len(report.kernels) for report in stored(tmp_path)] == [2] * 8
    assert {run_id.partition("-")[0] for run_id in Store(tmp_path).run_ids().values()} == {ids[0]}


KILLED = """
import os, signal, sys
from support.stored import DIGESTS, commit, tables_of
from rooflens.model.store.dataset import Store
put = Store._put
def write(folder, left):
    def dying(store, path, *names):
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        put(store, path, *names)
    Store._put = dying
    commit(folder, tables_of(DIGESTS[0]), tables_of(DIGESTS[1], 2))
for folder in sys.argv[2:]:
    for step in range(int(sys.argv[1])):
        writer = os.fork()
        if writer == 0:
            write(f"{folder}{step}", step)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]))
"""
"""Writers that end before one of their files each, in processes of their own that import nothing anew."""


def test_an_ingest_that_is_killed_between_two_files_shows_nothing(tmp_path: Path) -> None:
    """Whichever file was put in place last, readers see the earlier ingest, and the next ingest succeeds."""
    files = 1 + len([table for table in tables_of(DIGESTS[0]) if table != "unprofiled"])
    for step in range(files):
        commit(tmp_path / str(step), tables_of(DIGESTS[0]))
        (tmp_path / f"empty-{step}").mkdir()
    tests = Path(__file__).parents[2]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", KILLED, str(files), f"{tmp_path}/", f"{tmp_path}/empty-"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent)))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["-9"] * 2 * files
    for step in range(files):
        assert [report.run.digest for report in stored(tmp_path / str(step))] == [DIGESTS[0]]
        for name in (str(step), f"empty-{step}"):
            commit(tmp_path / name, tables_of(DIGESTS[0]), tables_of(DIGESTS[1], 2))
            found = {report.run.digest: len(report.kernels) for report in stored(tmp_path / name)}
            assert found == {DIGESTS[0]: 1, DIGESTS[1]: 2}


def test_what_killed_writers_left_goes_after_a_day(tmp_path: Path) -> None:
    """Folders of writers that may still run stay, and so do those with other names."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    now_ns = time.time_ns()
    ages_h = {"old": 25, "new": 23}
    names = {age: f".writing-{now_ns - hours * 3600 * 10**9:016x}{'0' * 8}" for age, hours in ages_h.items()}
    for name in (*names.values(), ".writing-mine"):
        (tmp_path / name).mkdir()
    commit(tmp_path, tables_of(DIGESTS[1]))
    assert {place.name for place in tmp_path.glob(".writing-*")} == {names["new"], ".writing-mine"}


def test_a_failed_ingest_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    """An exception during an ingest commits nothing, and the written files are removed."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    before = contents(tmp_path)

    def fail() -> None:
        with Store(tmp_path).writing() as writer:
            writer.add_reports(tables_of(DIGESTS[1]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert contents(tmp_path) == before


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    """Files with other names in a store's folders are neither read nor removed, and those in `runs` are named."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    others = [tmp_path / table / name for table in ("runs", "kernels") for name in ("mine.parquet", "odd\udcff")]
    for file in others:
        file.write_bytes(b"mine")
    commit(tmp_path, tables_of(DIGESTS[1]))
    assert all(file.read_bytes() == b"mine" for file in others)
    assert len(stored(tmp_path)) == 2
    assert Store.existing(tmp_path).foreign() == ("mine.parquet", "odd\udcff")


@pytest.mark.parametrize("name", ["data.parquet", "runs/data.parquet", "kernels/0.parquet"])
def test_a_folder_that_is_no_store_is_refused(tmp_path: Path, name: str) -> None:
    """Reading and writing leave every file unchanged in a folder without our marker."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"a": [1]}), file)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="neither empty nor a store"):
        commit(tmp_path, tables_of(DIGESTS[0]))
    with pytest.raises(InputError, match="is not a store"):
        Store.existing(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('{"format": "rooflens-store", "schema_version": 6}', "holds schema version 6, this rooflens reads 9"),
        ('{"schema_version": 10}', "holds schema version 10, this rooflens reads 9"),
        ('{"format": "rooflens-store"}', "is not the marker of a store"),
        ("", "is not the marker of a store"),
        ("[1]", "is not the marker of a store"),
    ],
)
def test_a_store_of_another_version_is_one_error(tmp_path: Path, marker: str, said: str) -> None:
    """Readers and writers refuse another schema or an unreadable marker, and change no file."""
    commit(tmp_path, tables_of(DIGESTS[0]))
    (tmp_path / MARKER).write_text(marker)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=said):
        commit(tmp_path, tables_of(DIGESTS[1]))
    with pytest.raises(InputError, match=said):
        Store.existing(tmp_path)
    assert contents(tmp_path) == before


def test_a_store_without_reports_is_called_empty(tmp_path: Path) -> None:
    """The hint says how to fill the store."""
    with Store(tmp_path).writing():
        pass
    with pytest.raises(InputError, match="is empty"):
        list(Store.existing(tmp_path).reports())


def emptied(file: Path, other: Path) -> None:
    """Replace a file by a table with the same columns and no rows."""
    pq.write_table(pq.read_table(other).slice(0, 0), file)


def swapped(file: Path, other: Path) -> None:
    """Replace a file by the file of another ingest."""
    file.write_bytes(other.read_bytes())


def cut(file: Path, _: Path) -> None:
    """Keep the first half of a file."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flipped(file: Path, _: Path) -> None:
    """Change a byte of the first page of values."""
    content = bytearray(file.read_bytes())
    content[40] ^= 0xFF
    file.write_bytes(content)


def lost(file: Path, _: Path) -> None:
    """Remove a file."""
    file.unlink()


@pytest.mark.parametrize("damage", [emptied, swapped, cut, flipped, lost])
def test_damaged_kernels_cost_their_ingest(tmp_path: Path, damage: Callable[[Path, Path], None]) -> None:
    """The file is named, the other ingest is read, and following the hint repairs the store."""
    broken, other = commit(tmp_path, tables_of(DIGESTS[0])), commit(tmp_path, tables_of(DIGESTS[1]))
    damage(tmp_path / "kernels" / f"{broken}.parquet", tmp_path / "kernels" / f"{other}.parquet")
    (place, error), report = Store.existing(tmp_path).reports()
    assert isinstance(report, StoredReport)
    assert report.run.digest == DIGESTS[1]
    assert place.endswith(f"kernels/{broken}.parquet")
    assert (place in str(error), error.report_count) == (True, 1)
    assert "ingest `0.ncu-rep` again" in error.hint
    if damage in {flipped, swapped} and "remove" in error.hint:  # as large as it was
        assert f"remove `{tmp_path}/runs/{broken}.parquet`" in error.hint
        (tmp_path / "runs" / f"{broken}.parquet").unlink()
    commit(tmp_path, tables_of(DIGESTS[0]))
    assert {report.run.digest for report in stored(tmp_path)} == {*DIGESTS[:2]}


@pytest.mark.parametrize("damage", [cut, flipped, lost])
@pytest.mark.parametrize("table", ["hotspots", "runs", "unprofiled"])
def test_other_damaged_files_are_named(tmp_path: Path, table: str, damage: Callable[[Path, Path], None]) -> None:
    """Nothing disappears silently except an ingest whose file in `runs` is gone, as that file commits it."""
    run, kernels = make_report(DIGESTS[0], 1)
    broken = commit(tmp_path, report_tables(ReportRows(run, kernels, Unprofiled(wall_ns=1))))
    commit(tmp_path, tables_of(DIGESTS[1]))
    damage(tmp_path / table / f"{broken}.parquet", tmp_path)
    found = [one for one in Store.existing(tmp_path).reports() if not isinstance(one, StoredReport)]
    if damage is lost and table == "runs":
        assert not found
    else:
        ((place, _),) = found if table != "unprofiled" or damage is not cut else found[:1]
        assert place.endswith(f"{table}/{broken}.parquet")


def test_an_unwritable_place_is_an_error(tmp_path: Path) -> None:
    """A file in the place of the folder is named with a hint."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write to the store"):
        commit(tmp_path / "file" / "store", tables_of(DIGESTS[0]))


def test_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    """An empty name is refused too."""
    for place, said in ((tmp_path / "odd\udcff", "is not UTF-8"), ("", "an empty name")):
        with pytest.raises(InputError, match=said):
            Store(place)


def test_an_address_that_pyarrow_does_not_know_goes_through_fsspec() -> None:
    """A store in fsspec's memory returns what was stored."""
    pytest.importorskip("fsspec")
    place = f"memory://{os.getpid()}/store"
    with Store(place).writing() as writer:
        writer.add_reports(tables_of(DIGESTS[0]))
    (report,) = Store.existing(place).reports()
    assert isinstance(report, StoredReport)
    assert report.run.digest == DIGESTS[0]


def test_files_older_than_a_counter_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels stored before a counter existed lack it, and keep all others."""
    with monkeypatch.context() as patch:
        names = [name for name in TABLES["kernels"].names if name != "host_read_bytes"]
        patch.setitem(TABLES, "kernels", pa.schema([TABLES["kernels"].field(name) for name in names]))
        commit(tmp_path, tables_of(DIGESTS[0], 2))
    commit(tmp_path, tables_of(DIGESTS[1], 1))
    assert [[kernel.duration_ns for kernel in one.kernels] for one in stored(tmp_path)] == [[1e3, 2e3], [1e3]]


def verdicts(folder: Path) -> list[set[str]]:
    """Return the runs in each file of `roofline`, by their reports."""
    owners = {run_id: digest for digest, run_id in Store(folder).run_ids().items()}
    files = sorted((folder / "roofline").glob("*.parquet"))
    return [{owners[run_id] for run_id in pq.read_table(file)["run_id"].to_pylist()} for file in files]


def test_verdicts_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model and thresholds write nothing; new reports, other thresholds or damaged files are written anew."""
    commit(tmp_path, tables_of(DIGESTS[0], 2))
    for _ in range(2):
        assert analyze_store(tmp_path, keep=True).not_kept is None
        assert verdicts(tmp_path) == [{DIGESTS[0]}]
    commit(tmp_path, tables_of(DIGESTS[1]))
    analyze_store(tmp_path, keep=True)
    assert verdicts(tmp_path) == [{DIGESTS[0]}, {DIGESTS[1]}]
    other = Basis(limits=override_thresholds("[thresholds]\nslowdown = 1.9\n", "other.toml"))
    analyze_store(tmp_path, other, keep=True)
    analyze_store(tmp_path, other, keep=True)
    assert verdicts(tmp_path)[2:] == [{*DIGESTS[:2]}]
    monkeypatch.setattr("rooflens.model.store.dataset.MODEL_VERSION", 99)
    analyze_store(tmp_path, other, keep=True)
    assert len(verdicts(tmp_path)) == 4
    max((tmp_path / "roofline").iterdir()).write_bytes(b"")
    analyze_store(tmp_path, other, keep=True)
    assert len(list((tmp_path / "roofline").iterdir())) == 5


def test_a_later_run_without_the_profiler_counts(tmp_path: Path) -> None:
    """It is stored separately, beside the report's own run."""
    run, kernels = make_report(DIGESTS[0], 1)
    commit(tmp_path, report_tables(ReportRows(run, kernels, Unprofiled(wall_ns=1))))
    store = Store(tmp_path)
    with store.writing() as writer:
        writer.add("unprofiled", unprofiled_table({DIGESTS[0]: Unprofiled(wall_ns=2)}), store.run_ids())
    assert [one.unprofiled for one in stored(tmp_path)] == [Unprofiled(wall_ns=2)]


def test_kernels_are_made_column_by_column() -> None:
    """A table without kernels has all columns, and a kernel without counters is one row of nulls."""
    assert kernel_table([]).column_names[1:] == TABLES["kernels"].names[1:]
    row = kernel_table([make_kernel({"duration_ns": None})]).to_pylist()[0]
    assert row["duration_ns"] is None
    assert row["series"] is None
    assert row["counter_sources"] == []


def test_maps_that_are_one_object_come_back_in_their_rows() -> None:
    """None and an empty map among them remain distinct."""
    kind = pa.map_(pa.string(), pa.float64())
    shared, other = {"a": 1.0, "b": 2.0}, {"c": 3.0}
    rows: list[Any] = [shared, None, shared, {}, other, shared, None, shared, shared, other, None, shared]
    assert maps(map_column(rows, kind)) == rows
    assert maps(map_column([], kind)) == []


def test_kernels_are_written_as_the_schema_says(tmp_path: Path) -> None:
    """Texts that are encoded on the way are read as plain texts, also with different neighbours in one row group."""
    sources = [{"sm_cycles": "a", "duration_ns": "b"}, {"sm_cycles": "b"}, {}, {"duration_ns": "a"}] * 3
    kernels = [make_kernel(digest=DIGESTS[0], index=at, counter_sources=one) for at, one in enumerate(sources)]
    runs = tables_of(DIGESTS[0])["runs"]
    with Store(tmp_path).writing() as writer:
        writer.add_reports({"runs": runs, "kernels": kernel_table(kernels[:5], KERNELS_TO_WRITE)})
        writer.add("kernels", kernel_table(kernels[5:], KERNELS_TO_WRITE), {DIGESTS[0]: f"{writer.id}-0"})
    (file,) = tmp_path.glob("kernels/*.parquet")
    found = pq.ParquetFile(file).read()
    assert found.schema.types == TABLES["kernels"].types
    assert [dict(one) for one in found["counter_sources"].to_pylist()] == sources
