"""Test reading SQLite exports of nsys and measuring from them; all exports but one are synthetic."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.loops import for_all
from support.timelines import Interval, Launched, write_export

from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.ingest.timelines import budget
from rooflens.ingest.timelines.nsys import read_export
from rooflens.ingest.timelines.read import opened_timeline
from rooflens.model.program.measure import measure
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Unprofiled

NAME = "saxpy(float *)"


def measured(
    path: Path, kernels: list[Interval], copies: tuple[Interval, ...] = (), graphs: tuple[Interval, ...] = ()
) -> Unprofiled:
    """Measure an export of one kernel's launches."""
    launches = [Launched(NAME, start, end, device) for device, start, end in kernels]
    return measure(
        read_export(write_export(path / "t.sqlite", launches, copies=copies, graphs=graphs, gpus=()))
    ).unprofiled


def test_an_export_gives_gaps_and_launch_counts(tmp_path: Path) -> None:
    """Gaps lie between the first and last kernel of each GPU; copies between kernels are not gaps."""
    found = measured(tmp_path, [(0, 100, 200), (0, 250, 300), (1, 0, 50)], ((0, 0, 120), (0, 200, 210), (0, 290, 999)))
    (counted,) = found.launch_counts
    assert (found.wall_ns, found.kernel_ns, found.launches, found.source) == (250, 210, 3, "nsys")
    assert (found.gap_ns, found.gaps_after) == (40, (GapsAfter(None, 1, 40),))
    assert found.gap_share == pytest.approx(0.16)
    assert (found.overlap_ns, found.kernels_ns) == (20 + 10, 200)
    assert counted == LaunchCount("saxpy", (8, 1, 1), (128, 1, 1), 3, 50, 0, 50, 100, 200, streams=(7,))


def test_each_gap_is_shared_by_the_launches_beside_it(tmp_path: Path) -> None:
    """Each gap is split evenly between the launches before and after it; overlapping launches have no gap."""
    found = measured(tmp_path, [(0, 0, 10), (0, 30, 40), (0, 35, 50), (0, 70, 80)])
    (counted,) = found.launch_counts
    assert (counted.time_ns, counted.gap_ns) == (10, 10)
    assert found.gaps_after == (GapsAfter("saxpy", 2, 40),)
    assert found.overlap_ns == 5


def test_one_long_pause_is_no_gap_of_the_typical_launch(tmp_path: Path) -> None:
    """Ten launches back to back, with one pause among them, have no gap at a typical launch."""
    starts = (*range(0, 50, 10), *range(10_000, 10_050, 10))
    found = measured(tmp_path, [(0, start, start + 10) for start in starts])
    assert (found.gap_ns, found.launch_counts[0].gap_ns) == (9950, 0)


OVERLAPPING = (
    ([(0, 10), (5, 20), (30, 40), (32, 33)], 30, 6),
    ([(0, 100), (10, 20), (15, 30), (90, 120)], 120, 20 + 10),
    ([(0, 10), (0, 10), (0, 10)], 10, 10),
    ([(0, 10), (10, 20)], 20, 0),
)


@for_all("case", OVERLAPPING, lambda case: str(case[0]))
def test_overlap_counts_once_each_moment(
    case: tuple[list[tuple[int, int]], int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Busy time and overlap equal those counted moment by moment."""
    intervals, busy, twice = case
    last = max(end for _, end in intervals)
    at_once = [sum(start <= moment < end for start, end in intervals) for moment in range(last)]
    assert (busy, twice) == (sum(one > 0 for one in at_once), sum(one > 1 for one in at_once))
    found = measured(tmp_path_factory.mktemp("t"), [(0, start, end) for start, end in intervals])
    assert (found.kernel_ns, found.overlap_ns) == (busy, twice)


def test_graphs_that_were_traced_whole_are_busy(tmp_path: Path) -> None:
    """A GPU that runs one graph after another has no gaps, and its number of kernels is unknown."""
    found = measured(tmp_path, [(0, 0, 10)], graphs=((0, 10, 500), (0, 500, 1000), (0, 0, 0)))
    assert (found.wall_ns, found.kernel_ns, found.gap_share, found.launches) == (1000, 1000, 0.0, None)


def test_an_export_of_graphs_alone_is_measured(tmp_path: Path) -> None:
    """Gaps between graphs count, though no kernel is named; graphs without times are ignored."""
    found = measured(tmp_path, [], graphs=((0, 0, 100), (0, 300, 400), (1, 7000, 0)))
    assert (found.wall_ns, found.kernel_ns, found.launches) == (400, 200, None)
    assert found.gaps_after == (GapsAfter(None, 1, 200),)


def test_ranges_are_found_through_the_call_that_launched(tmp_path: Path) -> None:
    """Push and pop apply to their thread, start and end to all; the time of the call counts, not of the kernel."""
    launches = [
        Launched("a", 100, 110, called=12),
        Launched("b", 120, 130, called=12, thread=2),
        Launched("c", 140, 150, called=40),
        Launched("d", 160, 170, called=12, process=4712),
    ]
    ranges = [("step", 10, 30, 1, 59), ("forward", 11, 20, 1, 59), ("epoch", 5, 35, 3, 60), ("late", 90, 200, 1, 59)]
    timeline = read_export(write_export(tmp_path / "t.sqlite", launches, ranges=ranges))
    found = {event.name: event.nvtx_range for event in timeline.kernels}
    assert found == {"a": "epoch/step/forward", "b": "epoch", "c": None, "d": None}
    assert [*timeline.notes] == ["2 processes ran kernels; they are taken together"]
    assert [entry.nvtx_range for entry in measure(timeline).unprofiled.launch_counts][:1] == ["epoch/step/forward"]


def test_columns_that_an_old_export_lacks_read_as_nothing(tmp_path: Path) -> None:
    """Names, times and devices suffice, and names may stand in the table itself."""
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, shortName)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 0, 'gemm'), (NULL, 3, 0, 'gemm')")
        database.execute("CREATE TABLE NVTX_EVENTS (text)")
    timeline = read_export(path)
    (event,) = timeline.kernels
    assert (event.name, event.grid, event.start_ns, event.duration_ns) == ("gemm", None, 5, 4)
    assert (timeline.gpu, measure(timeline).unprofiled.launches) == (None, 1)


def test_the_gpu_is_named_where_there_is_one(tmp_path: Path) -> None:
    """With several GPUs the GPU is named only if one ran everything."""
    both = write_export(
        tmp_path / "a", [Launched("a", 0, 1), Launched("a", 2, 3, device=1)], gpus=("NVIDIA T4", "NVIDIA L4")
    )
    assert read_export(both).gpu is None
    second = write_export(tmp_path / "b", [Launched("a", 2, 3, device=1)], gpus=("NVIDIA T4", "NVIDIA L4"))
    assert read_export(second).gpu == "NVIDIA L4"


def test_kernels_without_a_name_are_counted_or_an_error(tmp_path: Path) -> None:
    """Kernels without a usable name are left out with a note; if none has a name, it is an error."""
    export = write_export(tmp_path / "t.sqlite", [Launched("a", 0, 1), Launched("b", 2, 3)])
    with closing(sqlite3.connect(export)) as database, database:
        database.execute("DELETE FROM StringIds WHERE value = 'a'")
    timeline = read_export(export)
    assert [event.name for event in timeline.kernels] == ["b"]
    assert [*timeline.notes] == ["left out 1 kernel event without a name"]
    with closing(sqlite3.connect(export)) as database, database:
        database.execute("DELETE FROM StringIds")
    with pytest.raises(InputError, match="names of its kernels lead to no text"):
        measure(read_export(export))


def test_nothing_appears_beside_an_export(tmp_path: Path) -> None:
    """A database in WAL mode is read without creating files; with changes left in its log it is refused."""
    export = write_export(tmp_path / "t.sqlite", [Launched("a", 0, 1)])
    with closing(sqlite3.connect(export)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    assert measure(read_export(export)).unprofiled.launches == 1
    assert [*tmp_path.iterdir()] == [export]
    with closing(sqlite3.connect(export)) as database:
        database.execute("INSERT INTO StringIds VALUES (99, 'x')")
        database.commit()
        before = sorted(tmp_path.iterdir())
        with pytest.raises(InputError, match=r"changes to it are still in `t\.sqlite-wal`") as caught:
            read_export(export)
        assert "journal_mode = DELETE" in caught.value.hint
        assert sorted(tmp_path.iterdir()) == before
    assert measure(read_export(export)).unprofiled.launches == 1


def test_ranges_within_one_another_are_cut_with_a_note(tmp_path: Path) -> None:
    """The outermost 128 ranges are kept, and a note says that others are left out."""
    ranges = [(f"r{at}", at, 10_000 - at, 1, 59) for at in range(1000)]
    timeline = read_export(write_export(tmp_path / "t.sqlite", [Launched("a", 5000, 5001)], ranges=ranges))
    (event,) = timeline.kernels
    assert event.nvtx_range == "/".join([*(f"r{at}" for at in range(128)), "…"])
    assert "1 path of ranges cut" in "".join(timeline.notes)


def test_an_endless_query_ends_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite checks the time every so many steps; if it is over, the error says how to allow more."""
    export = write_export(tmp_path / "t.sqlite", [Launched("a", at, at + 1) for at in range(2000)])
    monkeypatch.setattr(budget, "SECONDS", -10.0)
    with pytest.raises(InputError, match="takes more than") as caught:
        measure(read_export(export))
    assert "ROOFLENS_DEADLINE_S" in caught.value.hint


def test_what_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut or empty export, another database, a text and an nsys report each have their own error."""
    whole = write_export(tmp_path / "whole.sqlite", [Launched(f"kernel_{i}", i, i + 1) for i in range(500)])
    data = whole.read_bytes()
    files = {
        "cut.sqlite": (data[: len(data) // 2], "is cut"),
        "damaged.sqlite": (data[:4096] + bytes(len(data) - 4096), "cannot read the timeline"),
        "notes.txt": (b"kernel 5 us", "neither an SQLite database nor JSON"),
        "empty.json": (b"", "neither an SQLite database nor JSON"),
    }
    for name, (content, words) in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=words) as caught, opened_timeline(tmp_path / name) as timeline:
            list(timeline.kernels)
        assert caught.value.hint
    write_export(tmp_path / "none.sqlite", [])
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as database, database:
        database.execute("CREATE TABLE x (y INTEGER)")
    for name, words in (
        ("none.sqlite", "has no kernels"),
        ("other.sqlite", "no export of nsys"),
        ("gone", "No such file"),
    ):
        with pytest.raises(InputError, match=words), opened_timeline(tmp_path / name):
            pass
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "my trace.nsys-rep").write_bytes(b"nsys")
    with pytest.raises(EnvironmentMissingError) as missing, opened_timeline(tmp_path / "my trace.nsys-rep"):
        pass
    assert "nsys export --type sqlite -o 'my trace.sqlite'" in missing.value.hint


def test_a_report_of_nsys_goes_through_its_own_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nsys is installed it exports the report, and the export is read."""
    made = write_export(tmp_path / "made.sqlite", [Launched("a", 0, 10)])
    nsys = tmp_path / "nsys"
    nsys.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp "{made}" "$2"\n')
    nsys.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    report = tmp_path / "x.nsys-rep"
    report.write_bytes(b"nsys")
    with opened_timeline(report) as timeline:
        assert ([event.name for event in timeline.kernels], timeline.source) == (["a"], str(report))
    nsys.write_text("#!/bin/sh\necho broken report >&2\nexit 1\n")
    with pytest.raises(InputError, match="broken report"), opened_timeline(report):
        pass
