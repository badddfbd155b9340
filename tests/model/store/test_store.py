"""A store returns what was stored, once and whole, whatever happened to its writers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import msgpack
from msgspec.structs import replace
from support.kernels import make_kernel
from support.stored import DIGESTS, commit, digest_of, files_of, make_report, stored

from rooflens.addresses import opened
from rooflens.analyzing import Basis, analyze_paths, analyze_store
from rooflens.errors import InputError
from rooflens.ingest.load import ingest_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.model.catalogue import KERNEL
from rooflens.model.records import Hotspot, Rule, Series
from rooflens.model.store import MARKER
from rooflens.model.store.columns import map_column, maps
from rooflens.model.store.dataset import Store, StoredReport, StoredRun, report_files
from rooflens.model.store.files import Files
from rooflens.model.store.tables import TABLES, ReportRows, kernel_table
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
    commit(tmp_path, report_files(ReportRows(run, kernels)))
    (report,) = stored(tmp_path)
    assert (report.run, report.kernels) == (run, tuple(replace(kernel, source=run.source) for kernel in kernels))


def test_each_report_is_a_file_in_each_table(tmp_path: Path) -> None:
    """Files are named by the digest of their report; a table without rows has none."""
    reports = [make_report(digest_of(number), 1) for number in range(20)]
    commit(tmp_path, *(report_files(ReportRows(run, kernels)) for run, kernels in reports))
    names = {f"{digest_of(number)}.parquet" for number in range(20)}
    found = {table.name: {file.name for file in table.iterdir()} for table in tmp_path.iterdir() if table.is_dir()}
    assert found == {"kernels": names, "hotspots": names, "runs": names}
    assert {one.run.digest: one.kernels for one in stored(tmp_path)} == {run.digest: of for run, of in reports}


def test_a_report_of_one_kernel_is_small(tmp_path: Path, fixtures: Path) -> None:
    """With raw values and verdicts it takes at most 26 kB, a third of what one file for many reports took."""
    reports = find_inputs([str(fixtures / "published" / "GPU-Roofline-Profiler__saxpy.ncu-rep")])
    ingest_reports(reports.jobs, Store(tmp_path / "store"))
    analyze_store(tmp_path / "store", keep=True)
    sizes = {name: len(content) for name, content in contents(tmp_path / "store").items()}
    assert sum(sizes.values()) <= 26_000, sizes


def test_one_ingest_and_many_hold_the_same_kernels(tmp_path: Path) -> None:
    """Reports stored one by one, some twice, give the same kernels as stored together."""
    commit(tmp_path / "once", *(files_of(digest_of(number), 2) for number in range(20)))
    for number in (*range(20), *range(5)):
        commit(tmp_path / "one by one", files_of(digest_of(number), 2))
    assert stored(tmp_path / "one by one") == stored(tmp_path / "once")


def test_a_store_is_written_where_no_thread_can_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is short the second thread is refused: the files are written one after the other, each whole."""
    start, started = threading.Thread.start, []

    def refuse(thread: threading.Thread) -> None:
        started.append(thread)
        if len(started) > 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    files = Files(str(tmp_path / "store"))
    files.make()
    given = {f"kernels/{number}.parquet": bytes([number]) * 100 for number in range(9)}
    monkeypatch.setattr(threading.Thread, "start", refuse)
    files.put(given)
    assert len(started) > 1
    assert contents(tmp_path / "store") == given


def test_a_report_stands_in_a_store_once(tmp_path: Path) -> None:
    """Two copies in one ingest, and another in a later ingest, are one report in every table."""
    for _ in range(2):
        commit(tmp_path, files_of(DIGESTS[1]), files_of(DIGESTS[1]), files_of(DIGESTS[2]))
    assert [report.run.digest for report in stored(tmp_path)] == [*DIGESTS[1:3]]
    assert {table: len(pq.read_table(tmp_path / table)) for table in ("runs", "kernels", "hotspots")} == {
        "runs": 2,
        "kernels": 2,
        "hotspots": 2,
    }


def test_two_ingests_of_the_same_reports_at_once_are_one(tmp_path: Path) -> None:
    """Neither waits, both succeed, and every file is as one ingest alone would write it."""
    reports = [files_of(digest_of(number), 2) for number in range(8)]
    commit(tmp_path / "alone", *reports)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: commit(tmp_path / "both", *reports), range(3)))
    assert stored(tmp_path / "both") == stored(tmp_path / "alone")
    alone, both = contents(tmp_path / "alone"), contents(tmp_path / "both")
    assert alone.keys() == both.keys()
    assert {name for name in alone if alone[name] != both[name]} <= {name for name in alone if name.startswith("runs/")}


KILLED = """
import os, signal, sys
from support.stored import DIGESTS, commit, files_of
from rooflens.model.store.files import Files
move = Files._move
def write(folder, left):
    def dying(files, scratch, name, content):
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        move(files, scratch, name, content)
    Files._move = dying
    commit(folder, files_of(DIGESTS[0]), files_of(DIGESTS[1], 2))
for folder in sys.argv[2:]:
    for step in range(int(sys.argv[1])):
        writer = os.fork()
        if writer == 0:
            write(f"{folder}{step}", step)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]))
"""
"""Writers that end before one of their files each, in processes of their own that import nothing anew."""


def test_an_ingest_that_is_killed_between_two_files_shows_whole_reports(tmp_path: Path) -> None:
    """Whichever file was last, readers see the earlier ingest and no half report, and the next one succeeds."""
    of_reports = 2 * len(("kernels", "hotspots", "runs"))
    for step in range(of_reports):
        commit(tmp_path / str(step), files_of(DIGESTS[0]))
        (tmp_path / f"empty-{step}").mkdir()
    tests = Path(__file__).parents[2]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", KILLED, str(of_reports), f"{tmp_path}/", f"{tmp_path}/empty-"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent)))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["-9"] * 2 * of_reports
    shown = {DIGESTS[0]: 1, DIGESTS[1]: 2}
    for step in range(of_reports):
        found = {report.run.digest: len(report.kernels) for report in stored(tmp_path / str(step))}
        assert DIGESTS[0] in found
        assert found.items() <= shown.items()
        for name in (str(step), f"empty-{step}"):
            commit(tmp_path / name, files_of(DIGESTS[0]), files_of(DIGESTS[1], 2))
            assert {report.run.digest: len(report.kernels) for report in stored(tmp_path / name)} == shown


def test_what_killed_writers_left_goes_after_a_day(tmp_path: Path) -> None:
    """Folders of writers that may still run stay, and so do those with other names."""
    commit(tmp_path, files_of(DIGESTS[0]))
    now_ns = time.time_ns()
    ages_h = {"old": 25, "new": 23}
    names = {age: f".writing-{now_ns - hours * 3600 * 10**9:016x}{'0' * 8}" for age, hours in ages_h.items()}
    for name in (*names.values(), ".writing-mine"):
        (tmp_path / name).mkdir()
    commit(tmp_path, files_of(DIGESTS[1]))
    assert {place.name for place in tmp_path.glob(".writing-*")} == {names["new"], ".writing-mine"}


def test_a_failed_ingest_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception during an ingest commits nothing, and the written files are removed."""
    commit(tmp_path, files_of(DIGESTS[0]))
    before = contents(tmp_path)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflens.model.store.files.os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        commit(tmp_path, files_of(DIGESTS[1]))
    assert contents(tmp_path) == before


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    """Files with other names in a store's folders are neither read nor removed, and those in `runs` are named."""
    commit(tmp_path, files_of(DIGESTS[0]))
    others = [tmp_path / table / name for table in ("runs", "kernels") for name in ("mine.parquet", "odd\udcff")]
    for file in others:
        file.write_bytes(b"mine")
    commit(tmp_path, files_of(DIGESTS[1]))
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
        commit(tmp_path, files_of(DIGESTS[0]))
    with pytest.raises(InputError, match="is not a store"):
        Store.existing(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('{"format": "rooflens-store", "schema_version": 6}', "holds schema version 6, this rooflens reads 11"),
        ('{"schema_version": 12}', "holds schema version 12, this rooflens reads 11"),
        ('{"format": "rooflens-store"}', "is not the marker of a store"),
        ("", "is not the marker of a store"),
        ("[1]", "is not the marker of a store"),
    ],
)
def test_a_store_of_another_version_is_one_error(tmp_path: Path, marker: str, said: str) -> None:
    """Readers and writers refuse another schema or an unreadable marker, and change no file."""
    commit(tmp_path, files_of(DIGESTS[0]))
    (tmp_path / MARKER).write_text(marker)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=said):
        commit(tmp_path, files_of(DIGESTS[1]))
    with pytest.raises(InputError, match=said):
        Store.existing(tmp_path)
    assert contents(tmp_path) == before


def test_a_store_without_reports_is_called_empty(tmp_path: Path) -> None:
    """The hint says how to fill the store."""
    Store(tmp_path).prepare()
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
def test_damaged_kernels_cost_their_report(tmp_path: Path, damage: Callable[[Path, Path], None]) -> None:
    """The file is named, the other reports are read, and following the hint repairs the store."""
    commit(tmp_path, *(files_of(digest) for digest in DIGESTS[:3]))
    file, other = (tmp_path / "kernels" / f"{digest}.parquet" for digest in DIGESTS[:2])
    damage(file, other)
    (place, error), *reports = Store.existing(tmp_path).reports()
    assert [one.run.digest for one in reports if isinstance(one, StoredReport)] == [*DIGESTS[1:3]]
    assert (place, place in str(error), error.report_count) == (str(file), True, 1)
    assert "ingest `0.ncu-rep` again" in error.hint
    if "remove" in error.hint:  # as large as it was
        assert damage in {flipped, swapped}
        assert f"remove `{tmp_path}/runs/{DIGESTS[0]}.parquet`" in error.hint
        (tmp_path / "runs" / f"{DIGESTS[0]}.parquet").unlink()
    commit(tmp_path, files_of(DIGESTS[0]))
    assert {report.run.digest for report in stored(tmp_path)} == {*DIGESTS[:3]}


def nameless(file: Path, _: Path) -> None:
    """Write a file of `runs` anew, without the source of its report."""
    rows = pq.read_table(file)
    at = rows.column_names.index("source")
    pq.write_table(rows.set_column(at, rows.field(at), pa.nulls(rows.num_rows, pa.string())), file)


def foreign(file: Path, _: Path) -> None:
    """Write a file anew, with the digest of another report in its rows."""
    rows = pq.read_table(file)
    at = rows.column_names.index("digest")
    pq.write_table(rows.set_column(at, rows.field(at), pa.array(["f" * 64] * rows.num_rows)), file)


@pytest.mark.parametrize(
    ("table", "damage"), [("runs", nameless), *((table, foreign) for table in ("hotspots", "runs", "unprofiled"))]
)
def test_well_formed_rows_that_are_not_its_report_are_damage(
    tmp_path: Path, table: str, damage: Callable[[Path, Path], None]
) -> None:
    """A file that a reader of Parquet accepts is named all the same, and the other reports are read."""
    test_other_damaged_files_are_named(tmp_path, table, damage)


def test_verdicts_of_another_report_are_judged_again(tmp_path: Path) -> None:
    """Stored verdicts are only saved time: a file that holds another report's is no error."""
    commit(tmp_path, files_of(DIGESTS[0]))
    assert analyze_store(tmp_path, keep=True).failures == ()
    (file,) = (tmp_path / "verdicts").glob("*.parquet")
    foreign(file, tmp_path)
    assert [one.kernel.digest for one in analyze_store(tmp_path, keep=True).analyses] == [DIGESTS[0]]


@pytest.mark.parametrize("damage", [cut, flipped, lost])
@pytest.mark.parametrize("table", ["hotspots", "runs", "unprofiled"])
def test_other_damaged_files_are_named(tmp_path: Path, table: str, damage: Callable[[Path, Path], None]) -> None:
    """Nothing disappears silently except a report whose file in `runs` is gone, as that file commits it."""
    run, kernels = make_report(DIGESTS[0], 1)
    commit(tmp_path, report_files(ReportRows(run, kernels, Unprofiled(wall_ns=1))), files_of(DIGESTS[1]))
    file = tmp_path / table / f"{DIGESTS[0]}.parquet"
    damage(file, tmp_path)
    found = list(Store.existing(tmp_path).reports())
    read = [one.run.digest for one in found if isinstance(one, StoredReport)]
    assert read == [*(DIGESTS[:2] if table == "unprofiled" else DIGESTS[1:2])]
    named = [one[0] for one in found if not isinstance(one, StoredReport)]
    assert named == ([] if damage is lost and table == "runs" else [str(file)])


def test_an_unwritable_place_is_an_error(tmp_path: Path) -> None:
    """A file in the place of the folder is named with a hint."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write to the store"):
        commit(tmp_path / "file" / "store", files_of(DIGESTS[0]))


def test_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    """An empty name is refused too."""
    for place, said in ((tmp_path / "odd\udcff", "is not UTF-8"), ("", "an empty name")):
        with pytest.raises(InputError, match=said):
            Store(place)


def test_an_address_that_needs_a_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lacking is a package, not a right address; a person without it can fetch the file."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match="fsspec") as refused:
        opened("https://example.org/a.ncu-rep")
    assert "fetch the file first" in refused.value.hint


def test_an_address_that_pyarrow_does_not_know_goes_through_fsspec() -> None:
    """A store in fsspec's memory returns what was stored."""
    pytest.importorskip("fsspec")
    place = f"memory://{os.getpid()}/store"
    store = Store(place)
    store.prepare()
    store.put([files_of(DIGESTS[0])])
    (report,) = Store.existing(place).reports()
    assert isinstance(report, StoredReport)
    assert report.run.digest == DIGESTS[0]


def test_files_older_than_a_column_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels stored before a column existed lack it, and keep all others."""
    with monkeypatch.context() as patch:
        fields = [field for field in TABLES["kernels"] if field.name != "status_reason"]
        for place in ("tables.KERNELS", "tables.TABLES"):
            old = pa.schema(fields) if place.endswith("KERNELS") else {**TABLES, "kernels": pa.schema(fields)}
            patch.setattr(f"rooflens.model.store.{place}", old)
        patch.setitem(TABLES, "kernels", pa.schema(fields))
        commit(tmp_path, files_of(DIGESTS[0], 2))
    assert "status_reason" not in pq.read_schema(tmp_path / "kernels" / f"{DIGESTS[0]}.parquet").names
    commit(tmp_path, files_of(DIGESTS[1], 1))
    assert [[kernel.duration_ns for kernel in one.kernels] for one in stored(tmp_path)] == [[1e3, 2e3], [1e3]]


def test_stored_verdicts_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is the same, and nothing is judged again, until what verdicts depend on changes; that is said."""
    commit(tmp_path, files_of(DIGESTS[0], 2), files_of(DIGESTS[1]))

    def anew(*of: Any, is_told: bool = True) -> int:
        found = analyze_store(tmp_path, *of, keep=True)
        assert found.not_kept is None
        assert bool(found.notes) == (bool(found.kept_count) and is_told), found.notes
        assert found.reports == analyze_store(tmp_path, *of).reports
        return found.kept_count

    assert (anew(is_told=False), anew()) == (2, 0)
    commit(tmp_path, files_of(DIGESTS[2]))
    assert (anew(is_told=False), anew()) == (1, 0)
    other = Basis(limits=override_thresholds("[thresholds]\nslowdown = 1.9\n", "other.toml"))
    assert (anew(other), anew(other)) == (3, 0)
    (tmp_path / "verdicts" / f"{DIGESTS[0]}.parquet").write_bytes(b"")
    assert (anew(other), anew(other)) == (1, 0)
    store = Store(tmp_path)
    stored_run = store.run(DIGESTS[1], store.listing())
    assert isinstance(stored_run, StoredRun)
    store.put_unprofiled(stored_run, Unprofiled(wall_ns=2))
    assert (anew(other), anew(other)) == (1, 0)
    monkeypatch.setattr("rooflens.model.store.dataset.MODEL_VERSION", 99)
    monkeypatch.setattr("rooflens.model.store.tables.MODEL_VERSION", 99)
    assert (anew(other), anew(other)) == (3, 0)
    assert len(list((tmp_path / "verdicts").iterdir())) == 3


def test_verdicts_of_an_earlier_version_hold_their_sentences_and_are_judged_anew(tmp_path: Path) -> None:
    """Before version 10 a verdict held its sentence, its evidence and the roof in words, and not what these need."""
    commit(tmp_path, files_of(DIGESTS[0], 2))
    now = analyze_store(tmp_path, keep=True)
    place = tmp_path / "verdicts" / f"{DIGESTS[0]}.parquet"
    rows = pq.read_table(place).to_pylist()
    for row in rows:
        packed = msgpack.decode(row["analysis"])
        (verdict,) = (part for part in packed if isinstance(part, dict) and "bound" in part)
        for name in ("causes", "is_wait_explained", "full_for_a_while", "share_while_active", "is_brief"):
            del verdict[name]
        verdict |= {"sentence": "Too short.", "evidence": ["one line"], "done": "93 % of HBM3"}
        row |= {"analysis": msgpack.encode(packed), "model_version": 9, "verdict_sentence": "Too short."}
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(place)), place)
    assert pq.read_table(place)["verdict_sentence"].to_pylist() == ["Too short."] * 2
    again = analyze_store(tmp_path, keep=True)
    assert (again.reports, again.kept_count) == (now.reports, 1)
    assert "1 of 1 report anew" in again.notes[0][1]
    assert "Too short." not in pq.read_table(place)["verdict_sentence"].to_pylist()


def test_stored_analyses_are_those_of_the_reports(tmp_path: Path, fixtures: Path) -> None:
    """Every field of every analysis of the fixtures comes back, for all their chips, findings and moves."""
    ingest_reports(find_inputs([str(fixtures)]).jobs, Store(tmp_path / "store"))
    first = analyze_store(tmp_path / "store", keep=True)
    again = analyze_store(tmp_path / "store", keep=True)
    assert (first.kept_count > 10, again.kept_count) == (True, 0)
    assert again.reports == first.reports
    direct = {one.run.digest: one.analyses for one in analyze_paths([fixtures]).reports}
    assert {one.run.digest: one.analyses for one in again.reports} == direct


def test_tables_of_verdicts_hold_what_json_holds(tmp_path: Path, fixtures: Path) -> None:
    """Classes, shares and amounts of each level and pipe are those of the JSON, by the same names."""
    ingest_reports(find_inputs([str(fixtures / "published")]).jobs, Store(tmp_path / "store"))
    found = analyze_store(tmp_path / "store", keep=True)
    written = {(one.kernel.digest, one.kernel.index): KERNEL.json(one) for one in found.analyses}
    verdicts = pq.read_table(tmp_path / "store" / "verdicts").to_pylist()
    wrong = []
    for row in verdicts:
        kernel = written[row["digest"], row["kernel_index"]]
        for level, numbers in kernel["levels"].items():
            if (row[f"{level}_bytes"], row[f"{level}_share"]) != (kernel["bytes"][level], numbers["share"]):
                wrong.append((row["name"], level))
        if row["verdict_bound"] != kernel["verdict"]["bound"]:
            wrong.append((row["name"], "bound"))
    roofline = pq.read_table(tmp_path / "store" / "roofline").to_pylist()
    for row in roofline:
        numbers = written[row["digest"], row["kernel_index"]][f"{row['kind']}s"][row["resource"]]
        rate = numbers["bytes_per_s" if row["kind"] == "level" else "amount_per_s"]
        if (row["share"], row["amount_per_s"]) != (numbers["share"], rate):
            wrong.append((row["kernel_index"], row["resource"]))
    assert wrong == []
    assert len(verdicts) == len(written)
    assert {"smem", "alu", "mio"} <= {row["resource"] for row in roofline}


def test_a_later_run_without_the_profiler_counts(tmp_path: Path) -> None:
    """It takes the place of the report's own, and outlives another ingest of the report."""
    run, kernels = make_report(DIGESTS[0], 1)
    commit(tmp_path, report_files(ReportRows(run, kernels, Unprofiled(wall_ns=1))))
    store = Store(tmp_path)
    (known,), _ = store.runs()
    store.put_unprofiled(known, Unprofiled(wall_ns=2))
    assert [one.unprofiled for one in stored(tmp_path)] == [Unprofiled(wall_ns=2)]


def test_kernels_are_made_column_by_column() -> None:
    """A table without kernels has all columns, and a kernel without counters is one row of nulls."""
    assert kernel_table([]).column_names == TABLES["kernels"].names
    row = kernel_table([make_kernel({"duration_ns": None})]).to_pylist()[0]
    assert row["counters"] == []
    assert row["series"] is None
    assert row["counter_sources"] == []


def test_maps_that_are_one_object_come_back_in_their_rows() -> None:
    """None and an empty map among them remain distinct."""
    kind = pa.map_(pa.string(), pa.float64())
    shared, other = {"a": 1.0, "b": 2.0}, {"c": 3.0}
    rows: list[Any] = [shared, None, shared, {}, other, shared, None, shared, shared, other, None, shared]
    assert maps(map_column(rows, kind)) == rows
    assert maps(map_column([], kind)) == []


def test_a_store_of_another_version_names_the_command_that_ingests_again(tmp_path: Path) -> None:
    """The hint names the reports that it was made of, or their folders, and a new place."""
    commit(tmp_path / "store", files_of(DIGESTS[1]), files_of(DIGESTS[2]))
    (tmp_path / "store" / MARKER).write_text('{"schema_version": 9}')
    with pytest.raises(InputError, match="holds schema version 9") as caught:
        Store.existing(tmp_path / "store")
    assert f"`rooflens ingest 1.ncu-rep 2.ncu-rep --store {tmp_path}/store-11`" in caught.value.hint
    (tmp_path / "store" / "runs" / f"{DIGESTS[1]}.parquet").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        Store.existing(tmp_path / "store")
    assert f"`rooflens ingest REPORTS --store {tmp_path}/store-11`" in caught.value.hint
