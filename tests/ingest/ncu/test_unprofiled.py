from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from rooflens import collecting
from rooflens.errors import EnvironmentMissingError, InputError, ProgramError
from rooflens.ingest.ncu.command import NEWEST, Collection
from rooflens.ingest.ncu.log import Progress
from rooflens.ingest.ncu.nsys import find_nsys, read_export, trace, trace_argv, union_ns
from rooflens.ingest.ncu.unprofiled import (
    Ran,
    parse_workload,
    read_unprofiled,
    run_program,
    run_workload,
    write_unprofiled,
)
from rooflens.model.unprofiled import GapsAfter, InProgram, LaunchCount, Unprofiled


def python(code: str) -> tuple[str, ...]:
    """Write the command that runs some Python."""
    return (sys.executable, "-ISc", code)


def test_a_program_is_timed_and_heard() -> None:
    """The wall time and the output of a program that works are returned, and progress is told."""
    seen: list[Progress] = []
    ran = run_program(python("import time; time.sleep(0.2); print('done')"), on_progress=seen.append)
    assert ran.stdout == "done\n"
    assert 2e8 < ran.wall_ns < 5e9
    assert seen[-1].doing == "running"


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        (
            "import os; os.write(2, b'Error: no data\\nbye'); os._exit(7)",
            7,
            "status 7, without the profiler: Error: no data",
        ),
        ("raise ValueError('bad shape')", 1, "status 1, without the profiler: ValueError: bad shape"),
        ("print('only this'); import sys; sys.exit(2)", 2, "status 2, without the profiler: only this"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -11, "failed with SIGSEGV, without the profiler"),
    ],
)
def test_a_failing_program_keeps_its_own_status(code: str, status: int, message: str) -> None:
    """A program that fails by itself is exit code 4, with its status and its last words."""
    with pytest.raises(ProgramError) as caught:
        run_program(python(code))
    assert caught.value.exit_code == 4
    assert caught.value.status == status
    assert message in str(caught.value)
    assert "program's own failure" in caught.value.hint


def test_a_program_that_does_not_end_is_ended() -> None:
    """Over its time it is the program's failure too."""
    with pytest.raises(ProgramError, match=r"did not end within 0\.3 s"):
        run_program(python("import time; time.sleep(60)"), timeout_s=0.3)


def test_a_program_that_is_not_there_is_the_environments() -> None:
    """A command that cannot be started exits with 3."""
    with pytest.raises(EnvironmentMissingError, match="`/no/such/program` cannot be started: No such file"):
        run_program(("/no/such/program",))


def test_a_program_has_an_empty_standard_input() -> None:
    """It reads nothing: it is run more than once, and what it read would be gone the second time."""
    assert run_program(python("import sys; print(repr(sys.stdin.read()))")).stdout == "''\n"


def test_a_workload_tells_its_own_times() -> None:
    """The last JSON line of a bundled workload gives wall time, kernel time and launches."""
    line = {"workload": "x", "iterations": 10, "launches": 20, "wall_ns": 1000, "kernel_ns": 799.6, "ok": True}
    found = run_workload(python(f"print('noise'); print('''{json.dumps(line)}''')"))
    assert found == Unprofiled(1000, 800, 20, "workload", 10)
    assert found.gap_share == pytest.approx(0.2)


def test_the_time_of_cublas_is_read_and_kept(tmp_path: Path) -> None:
    """Beside 800 ns of its own, 600 ns of cuBLAS are 75 %; null, as where cuBLAS was not there, is no per cent."""
    line = {"iterations": 10, "launches": 10, "wall_ns": 1000, "kernel_ns": 800, "cublas_ns": 600.2}
    found = parse_workload(Ran(5, json.dumps(line)))
    assert (found.cublas_ns, found.cublas_share) == (600, 0.75)
    write_unprofiled(tmp_path / "a.ncu-rep", found)
    assert read_unprofiled(tmp_path / "a.ncu-rep") == found
    without = parse_workload(Ran(5, json.dumps(line | {"cublas_ns": None})))
    assert (without.cublas_ns, without.cublas_share) == (None, None)


@pytest.mark.parametrize("stdout", ["", "no json", "[1]", '{"wall_ns": null}'])
def test_a_workload_without_its_line_has_wall_time_only(stdout: str) -> None:
    """What is unknown is null, never 0."""
    found = parse_workload(Ran(5, stdout))
    assert found == Unprofiled(5)
    assert found.gap_share is None


def test_a_workload_that_misses_something_exits_with_three() -> None:
    """Status 3 of a bundled workload means that PyTorch or a GPU is missing, as it says itself."""
    with pytest.raises(EnvironmentMissingError, match="without the profiler: PyTorch finds no NVIDIA GPU"):
        run_workload(python("import sys; print('error: PyTorch finds no NVIDIA GPU', file=sys.stderr); sys.exit(3)"))


def test_kernels_that_overlap_count_once() -> None:
    """The gap share is of the union of intervals; more kernel time than wall time is no negative gap."""
    assert union_ns([(0, 10), (5, 20), (30, 40), (32, 33)]) == 30
    assert union_ns([]) == 0
    assert Unprofiled(10, 12).gap_share == 0.0
    assert Unprofiled(0, 12).gap_share is None


def test_it_is_kept_beside_the_report(tmp_path: Path) -> None:
    """What is written comes back, counts of launches too; no file is no run."""
    report = tmp_path / "a.b.ncu-rep"
    counts = (LaunchCount("k<int>", (1, 2, 3), (4, 5, 6), 20, 40, 0), LaunchCount("l", (1, 1, 1), (1, 1, 1), 1))
    found = Unprofiled(1000, 800, 20, "nsys", 1, counts, (GapsAfter("k<int>", 3, 150), GapsAfter(None, 1, 50)))
    assert read_unprofiled(report) is None
    path = write_unprofiled(report, found)
    assert path.name == "a.b.unprofiled.json"
    assert read_unprofiled(report) == found
    assert json.loads(path.read_text())["gap_share"] == pytest.approx(0.2)
    assert list(tmp_path.iterdir()) == [path]
    older = {
        key: value for key, value in json.loads(path.read_text()).items() if key not in {"gaps_after", "cublas_ns"}
    }
    older["launch_counts"] = [{key: "k<int>" if key == "name" else [1, 2, 3] for key in ("name", "grid", "block")}]
    older["launch_counts"][0]["count"] = 20
    path.write_text(json.dumps(older))
    kept = read_unprofiled(report)
    assert kept is not None
    assert (kept.launch_counts, kept.gaps_after) == ((LaunchCount("k<int>", (1, 2, 3), (1, 2, 3), 20),), ())
    path.write_text("{}")
    with pytest.raises(InputError, match="not a record of an un-profiled run"):
        read_unprofiled(report)


def export(path: Path, kernels: list[tuple[int, int, int]], copies: list[tuple[int, int, int]] | None = None) -> Path:
    """Write an SQLite file as nsys exports it; a kernel or copy is device, start and end."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("INSERT INTO StringIds VALUES (7, 'saxpy(float *)')")
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL "
            "(start INTEGER, end INTEGER, deviceId INTEGER, demangledName INTEGER, "
            "gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER)"
        )
        for device, start, end in kernels:
            row = (start, end, device, 7, 8, 1, 1, 128, 1, 1)
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?,?,?)", row)
        if copies is not None:
            database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER)")
            rows = [(start, end, device) for device, start, end in copies]
            database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?)", rows)
    return path


def test_nsys_export_gives_gaps_and_launch_counts(tmp_path: Path) -> None:
    """From the first to the last kernel of each GPU: copies between them are no gap, the rest does not count."""
    path = export(tmp_path / "t.sqlite", [(0, 100, 200), (0, 250, 300), (1, 0, 50)], [(0, 0, 120), (0, 200, 210)])
    found = read_export(path)
    counts = (LaunchCount("saxpy", (8, 1, 1), (128, 1, 1), 3, time_ns=50, gap_ns=0),)
    assert found == Unprofiled(250, 210, 3, "nsys", 1, counts, (GapsAfter(None, 1, 40),))
    assert found.gap_ns == 40
    assert found.gap_share == pytest.approx(0.16)


def test_each_gap_is_shared_by_the_launches_beside_it(tmp_path: Path) -> None:
    """Half of a gap is that of the launch before it and half that of the one after; overlapping launches have none."""
    launches = [(0, 0, 10), (0, 30, 40), (0, 35, 50), (0, 70, 80)]
    found = read_export(export(tmp_path / "t.sqlite", launches))
    assert found is not None
    (count,) = found.launch_counts
    assert (count.time_ns, count.gap_ns) == (10, 10)
    assert found.gaps_after == (GapsAfter("saxpy", 2, 40),)
    assert found.in_program("saxpy", (8, 1, 1), (128, 1, 1)) == InProgram(10, 10)
    assert found.in_program("saxpy", (9, 1, 1), (128, 1, 1)) is None


def test_one_long_pause_is_no_gap_of_the_typical_launch(tmp_path: Path) -> None:
    """Ten launches back to back with one pause in their midst wait for nothing beside a typical one."""
    launches = [(0, start, start + 10) for start in (*range(0, 50, 10), *range(10_000, 10_050, 10))]
    found = read_export(export(tmp_path / "t.sqlite", launches))
    assert found is not None
    assert found.gap_ns == 9950
    assert found.launch_counts[0].gap_ns == 0


def graphs(path: Path, intervals: list[tuple[int, int, int]]) -> Path:
    """Add graphs that were traced whole to an export of nsys; each is device, start and end."""
    with closing(sqlite3.connect(path)) as database, database:
        columns = "start INTEGER, end INTEGER, deviceId INTEGER, graphId INTEGER"
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE ({columns})")
        rows = [(start, end, device) for device, start, end in intervals]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?,?,?,1)", rows)
    return path


def test_graphs_that_were_traced_whole_are_busy(tmp_path: Path) -> None:
    """A GPU that runs one graph after another has no gaps, and how many kernels it ran is not known."""
    found = read_export(graphs(export(tmp_path / "t.sqlite", [(0, 0, 10)]), [(0, 10, 500), (0, 500, 1000), (0, 0, 0)]))
    assert found is not None
    assert (found.wall_ns, found.kernel_ns, found.gap_share, found.launches) == (1000, 1000, 0.0, None)


def test_an_export_of_graphs_alone_is_measured(tmp_path: Path) -> None:
    """Gaps between graphs are gaps, though no kernel is named; a graph without times says nothing."""
    found = read_export(graphs(export(tmp_path / "t.sqlite", []), [(0, 0, 100), (0, 300, 400), (1, 7000, 0)]))
    assert found == Unprofiled(400, 200, None, "nsys", 1, (), (GapsAfter(None, 1, 200),))


def test_an_export_without_kernels_says_nothing(tmp_path: Path) -> None:
    """No file, no kernels, no such table, no database: nothing is known."""
    (tmp_path / "text").write_text("no database at all, but long enough to be read as one")
    assert read_export(tmp_path / "nowhere") is None
    assert read_export(tmp_path / "text") is None
    assert read_export(export(tmp_path / "empty.sqlite", [])) is None
    with closing(sqlite3.connect(tmp_path / "bare.sqlite")) as database, database:
        database.execute("CREATE TABLE x (y INTEGER)")
    assert read_export(tmp_path / "bare.sqlite") is None


def test_nsys_is_run_and_its_failure_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace of a stand-in nsys is read; one that fails leaves the question open."""
    made = export(tmp_path / "made.sqlite", [(0, 0, 10)])
    nsys = tmp_path / "nsys"
    nsys.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp "{made}" "$2.sqlite"\n')
    nsys.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_nsys(tmp_path) == str(nsys)
    found = trace(str(nsys), ("/bin/true",))
    assert found is not None
    assert found.kernel_ns == 10
    assert trace("/bin/false", ("/bin/true",)) is None


def test_the_command_line_of_nsys(tmp_path: Path) -> None:
    """It traces CUDA alone and the kernels inside of graphs, samples nothing, and exports SQLite."""
    options = (
        "profile --trace=cuda --sample=none --cpuctxsw=none --stats=false --cuda-graph-trace=node "
        "--export=sqlite --force-overwrite=true -o"
    )
    expected = ("/opt/nsys", *options.split(), str(tmp_path / "t"), "python", "x.py")
    assert trace_argv("/opt/nsys", ("python", "x.py"), tmp_path / "t.sqlite") == expected


@pytest.mark.parametrize(("known", "is_asked"), [("--cuda-graph-trace=", True), ("--trace=", False)])
def test_an_old_nsys_is_not_asked_for_graphs_by_node(tmp_path: Path, known: str, is_asked: bool) -> None:  # noqa: FBT001 - a table
    """What its help does not name would end it at once: graphs are then traced as that version does."""
    made = export(tmp_path / "made.sqlite", [(0, 0, 10)])
    nsys = tmp_path / "nsys"
    lines = (
        "#!/bin/sh",
        f'if [ "$2" = --help ]; then echo "  {known}"; exit; fi',
        f'echo "$@" > "{tmp_path}/asked"',
        'while [ "$1" != -o ]; do shift; done',
        f'cp "{made}" "$2.sqlite"',
    )
    nsys.write_text("\n".join(lines))
    nsys.chmod(0o755)
    assert trace(str(nsys), ("/bin/true",)) is not None
    assert ("--cuda-graph-trace=node" in (tmp_path / "asked").read_text()) == is_asked


def _estimate(unprofiled: Unprofiled | None, passes: int | None, **how: str | int) -> str:
    collection = Collection(("x",), Path("x.ncu-rep"), **how)  # type: ignore[arg-type]
    request = collecting.Request(collecting.command_target(("x",)), collection, "quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "_passes", lambda *_: passes)
        return collecting.estimate_cost(collecting.Plan(request, NEWEST, None, "gh100", ("x",), collection), unprofiled)


def test_the_estimate_multiplies_what_is_known() -> None:
    """Launches x passes x time + saved memory; of 20 iterations one is profiled."""
    text = _estimate(Unprofiled(1, kernel_ns=160_000_000, launches=80, iterations=20), 3)
    assert text == (
        "estimate: at most 4 distinct launches x 3 passes (ncu adds 1 to 3) x 2 ms each = 24 ms "
        "+ saving and restoring what the kernels write, for each pass (how much is not known)"
    )


def test_the_estimate_says_what_is_not_known() -> None:
    """Unknown launches, passes and times are called so; application replay saves nothing."""
    text = _estimate(None, None, replay_mode="application", launch_count=200)
    assert text == (
        "estimate: at most 200 launches (how many is not known) x passes (not counted) x the kernels' time (not known)"
        "; the program is run again for each pass, nothing is saved"
    )


@pytest.mark.parametrize(
    ("profiled_ns", "count", "expected"), [(300.0, 2, 3.0), (300.0, 1, None), (300.0, 3, None), (100.0, 2, 1.0)]
)
def test_slowdown_compares_one_iteration_with_one(profiled_ns: float, count: int, expected: float | None) -> None:
    """20 launches of 10 iterations took 1000 ns: two profiled ones of 300 ns are three times slower."""
    run = Unprofiled(wall_ns=2000, kernel_ns=1000, launches=20, source="workload", iterations=10)
    assert run.slowdown(profiled_ns, count) == expected


@pytest.mark.parametrize(
    ("name", "profiled", "expected"), [("gemm", 1, 30), ("gemm", 3, 10), ("gemm", 60, 1), ("other", 1, 1)]
)
def test_a_profile_of_each_distinct_launch_stands_for_all_of_them(name: str, profiled: int, expected: int) -> None:
    """60 launches in 2 iterations are 30 each: one profile stands for all 30, three for 10 each, a full one for 1."""
    counts = (LaunchCount("gemm", (8, 1, 1), (128, 1, 1), 60), LaunchCount("gemm", (9, 1, 1), (128, 1, 1), 7))
    run = Unprofiled(wall_ns=1, iterations=2, launch_counts=counts)
    assert run.launches_of(name, (8, 1, 1), (128, 1, 1), profiled) == expected


@pytest.mark.ncu
def test_the_real_nsys_knows_our_options(tmp_path: Path) -> None:
    """Every option is accepted by the real nsys, with the value that it is given: it runs the program to its end."""
    nsys = os.environ.get("ROOFLENS_NSYS") or find_nsys()
    if nsys is None:
        pytest.skip("no nsys on this machine: install Nsight Systems, or set ROOFLENS_NSYS to one")
    program = (sys.executable, "-ISc", f"open({str(tmp_path / 'ran')!r}, 'w')")
    argv = trace_argv(nsys, program, tmp_path / "t.sqlite")
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - nsys
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ran").exists()
    assert list(tmp_path.glob("t.*"))
