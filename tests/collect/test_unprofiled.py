from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from rooflens.collect import cost
from rooflens.collect import plan as planning
from rooflens.collect.command import NEWEST, Collection
from rooflens.collect.log import Progress
from rooflens.collect.nsys import trace, trace_argv
from rooflens.collect.unprofiled import Ran, parse_workload, run_program, run_workload
from rooflens.errors import EnvironmentMissingError, InputError, ProgramError
from rooflens.ingest.reports.unprofiled import read_unprofiled, write_unprofiled
from rooflens.ingest.timelines.nsys import find_nsys
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Unprofiled


def python(code: str) -> tuple[str, ...]:
    """Write the command that runs Python code."""
    return (sys.executable, "-ISc", code)


def test_a_program_is_timed_and_heard() -> None:
    """A successful program gives wall time and output, with progress calls."""
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
    """A failing program gives exit code 4, with its status and its last words."""
    with pytest.raises(ProgramError) as caught:
        run_program(python(code))
    assert caught.value.exit_code == 4
    assert caught.value.status == status
    assert message in str(caught.value)
    assert "program's own failure" in caught.value.hint


def test_a_program_that_does_not_end_is_ended() -> None:
    """A program that exceeds its time limit counts as failed too."""
    with pytest.raises(ProgramError, match=r"did not end within 0\.3 s"):
        run_program(python("import time; time.sleep(60)"), timeout_s=0.3)


def test_a_program_that_is_not_there_is_the_environments() -> None:
    """A command that cannot be started exits with 3."""
    with pytest.raises(EnvironmentMissingError, match="`/no/such/program` cannot be started: No such file"):
        run_program(("/no/such/program",))


def test_a_program_has_an_empty_standard_input() -> None:
    """A program gets empty stdin: it runs more than once, and input would be gone the second time."""
    assert run_program(python("import sys; print(repr(sys.stdin.read()))")).stdout == "''\n"


def test_a_workload_tells_its_own_times() -> None:
    """The last JSON line of a bundled workload gives wall time, kernel time and launches."""
    line = {"workload": "x", "iterations": 10, "launches": 20, "wall_ns": 1000, "kernel_ns": 799.6, "ok": True}
    found = run_workload(python(f"print('noise'); print('''{json.dumps(line)}''')"))
    assert found == Unprofiled(1000, 800, 20, "workload", 10)
    assert found.gap_share == pytest.approx(0.2)


def test_the_time_of_cublas_is_read_and_kept(tmp_path: Path) -> None:
    """Over 800 ns of its own, cuBLAS's 600 ns are 75 %; a missing cuBLAS gives no percentage."""
    line = {"iterations": 10, "launches": 10, "wall_ns": 1000, "kernel_ns": 800, "cublas_ns": 600.2}
    found = parse_workload(Ran(5, json.dumps(line)))
    assert (found.cublas_ns, found.cublas_share) == (600, 0.75)
    write_unprofiled(tmp_path / "a.ncu-rep", found)
    assert read_unprofiled(tmp_path / "a.ncu-rep") == found
    without = parse_workload(Ran(5, json.dumps(line | {"cublas_ns": None})))
    assert (without.cublas_ns, without.cublas_share) == (None, None)


def test_times_with_cold_operands_are_kept_beside_warm_ones(tmp_path: Path) -> None:
    """A workload gives both; a run that was kept before cold times were measured has none."""
    line = {"iterations": 10, "launches": 10, "wall_ns": 1000, "kernel_ns": 800, "cold_ns": 950.4}
    found = parse_workload(Ran(5, json.dumps(line)))
    assert (found.kernel_ns, found.cold_ns) == (800, 950)
    path = write_unprofiled(tmp_path / "a.ncu-rep", found)
    assert read_unprofiled(tmp_path / "a.ncu-rep") == found
    path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "cold_ns"}))
    kept = read_unprofiled(tmp_path / "a.ncu-rep")
    assert kept is not None
    assert (kept.kernel_ns, kept.cold_ns) == (800, None)


@pytest.mark.parametrize("stdout", ["", "no json", "[1]", '{"wall_ns": null}'])
def test_a_workload_without_its_line_has_wall_time_only(stdout: str) -> None:
    """Unknown values are null, never 0."""
    found = parse_workload(Ran(5, stdout))
    assert found == Unprofiled(5)
    assert found.gap_share is None


def test_a_workload_that_misses_something_exits_with_three() -> None:
    """Exit status 3 of a bundled workload means, as it prints, that PyTorch or a GPU is missing."""
    with pytest.raises(EnvironmentMissingError, match="without the profiler: PyTorch finds no NVIDIA GPU"):
        run_workload(python("import sys; print('error: PyTorch finds no NVIDIA GPU', file=sys.stderr); sys.exit(3)"))


def test_it_is_kept_beside_the_report(tmp_path: Path) -> None:
    """A written run is read back with its counts of launches; a missing file is no run."""
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


def export(path: Path) -> Path:
    """Write an SQLite file like nsys's export, with one kernel of 10 ns."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("INSERT INTO StringIds VALUES (7, 'saxpy(float *)')")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName INTEGER)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 10, 7)")
    return path


def test_nsys_is_run_and_its_failure_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in nsys's trace is read; if nsys fails, the counts stay unknown."""
    made = export(tmp_path / "made.sqlite")
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
    """Tracing with nsys covers only CUDA, including kernels inside graphs, without samples, exported as SQLite."""
    options = (
        "profile --trace=cuda --sample=none --cpuctxsw=none --stats=false --cuda-graph-trace=node "
        "--export=sqlite --force-overwrite=true -o"
    )
    expected = ("/opt/nsys", *options.split(), str(tmp_path / "t"), "python", "x.py")
    assert trace_argv("/opt/nsys", ("python", "x.py"), tmp_path / "t.sqlite") == expected


@pytest.mark.parametrize(("known", "is_asked"), [("--cuda-graph-trace=", True), ("--trace=", False)])
def test_an_old_nsys_is_not_asked_for_graphs_by_node(tmp_path: Path, known: str, is_asked: bool) -> None:  # noqa: FBT001 - a table
    """An nsys whose help lacks the graph option does not get it, since it would fail at once."""
    made = export(tmp_path / "made.sqlite")
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
    request = planning.Request(planning.command_target(("x",)), collection, "quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "_passes", lambda *_: passes)
        return cost.estimate_cost(planning.Plan(request, NEWEST, None, "gh100", ("x",), collection), unprofiled)


def test_the_estimate_multiplies_what_is_known() -> None:
    """The estimate is launches x passes x time + saved memory; of 20 iterations one is profiled."""
    text = _estimate(Unprofiled(1, kernel_ns=160_000_000, launches=80, iterations=20), 3)
    assert text == (
        "estimate: at most 4 launches x 3 passes (ncu adds 1 to 3) x 2.00 ms each = 24.0 ms "
        "+ saving and restoring what the kernels write, for each pass (how much is not known)"
    )


def test_the_estimate_says_what_is_not_known() -> None:
    """Unknown launches, passes and times are called unknown; application replay saves no memory."""
    text = _estimate(None, None, replay_mode="application", launch_count=200)
    assert text == (
        "estimate: at most 200 launches (how many is not known) x passes (not counted) x the kernels' time (not known)"
        "; the program is run again for each pass, nothing is saved"
    )


@pytest.mark.parametrize(
    ("profiled_ns", "count", "expected"), [(300.0, 2, 3.0), (300.0, 1, None), (300.0, 3, None), (100.0, 2, 1.0)]
)
def test_slowdown_compares_one_iteration_with_one(profiled_ns: float, count: int, expected: float | None) -> None:
    """20 launches in 10 iterations took 1000 ns, so two profiled launches of 300 ns are three times slower."""
    run = Unprofiled(wall_ns=2000, kernel_ns=1000, launches=20, source="workload", iterations=10)
    assert run.slowdown(profiled_ns, count) == expected


@pytest.mark.ncu
def test_the_real_nsys_knows_our_options(tmp_path: Path) -> None:
    """The real nsys accepts every option with its value, and runs the program to its end."""
    nsys = os.environ.get("ROOFLENS_NSYS") or find_nsys()
    if nsys is None:
        pytest.skip("no nsys on this machine: install Nsight Systems, or set ROOFLENS_NSYS to one")
    program = (sys.executable, "-ISc", f"open({str(tmp_path / 'ran')!r}, 'w')")
    argv = trace_argv(nsys, program, tmp_path / "t.sqlite")
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - nsys
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ran").exists()
    assert list(tmp_path.glob("t.*"))
