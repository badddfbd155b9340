"""Parts of a program are profiled in a child process, through the stand-in for ncu."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import fake_ncu

import rooflens as rl
from rooflens.api import marking
from rooflens.collect.command import NEWEST, Collection, build_argv
from rooflens.errors import UsageError

SCRIPT = """
import sys
import rooflens as rl
log = open("log", "a")

def tell(*words):
    print(*words, file=log, flush=True)

tell("begins", *sys.argv[1:])
with rl.profile(tier="quick", output="first.ncu-rep") as first:
    tell("first")
tell("found", len(first.report))

class Model:
    @rl.profile
    def step(self, scale):
        tell("step", scale)
        return 2 * scale

model = Model()
tell("twice", model.step(21), model.step(scale=4), len(Model.step.report))
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script."""
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    argv = [sys.executable, "script.py", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)  # noqa: S603 - ours


def test_a_program_runs_again_up_to_the_end_of_each_part(gpu_box: Path) -> None:
    """Children get the same arguments, skip earlier parts using their reports, and stop after their part."""
    done = run(gpu_box, "--size", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert (gpu_box / "log").read_text().splitlines() == [
        "begins --size 3",
        "first",
        *("begins --size 3", "first"),
        "found 4",
        "step 21",
        *("begins --size 3", "first", "found 4", "step 21"),
        "step 4",
        "twice 42 8 4",
    ]
    assert (gpu_box / "first.ncu-rep").is_file()


def test_a_report_that_is_there_stays(gpu_box: Path) -> None:
    """An existing output is refused before anything runs."""
    (gpu_box / "first.ncu-rep").write_bytes(b"mine")
    done = run(gpu_box)
    assert done.returncode == 1
    assert "exists" in done.stderr
    assert (gpu_box / "log").read_text() == "begins\n"


def test_what_fails_under_ncu_is_raised_with_its_hint(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without permission the part runs, and an error at its end says what to do."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "permission")
    done = run(gpu_box)
    assert (gpu_box / "log").read_text() == "begins\nfirst\n"
    assert "rooflens.errors.EnvironmentMissingError" in done.stderr
    assert "\nhint: " in done.stderr


@pytest.mark.parametrize(("behaviour", "is_left"), [("success", False), ("broken_off", True)])
def test_what_a_failure_names_is_there_when_the_program_has_ended(
    gpu_box: Path,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
    is_left: bool,  # noqa: FBT001 - a table
) -> None:
    """A temporary report is deleted at exit; a log and a partial report named by an error are kept."""
    (gpu_box / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(gpu_box / "tmp"))
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, behaviour)
    (gpu_box / "x.py").write_text("import rooflens as rl\nwith rl.profile(tier='quick'):\n    pass\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "x.py"], capture_output=True, text=True, check=False, cwd=gpu_box)
    left = sorted((gpu_box / "tmp").rglob("x.*"))
    assert [path.name for path in left] == ["x.0.ncu-rep.incomplete", "x.0.ncu.log"] * is_left
    assert all(str(path) in done.stderr for path in left)


def test_ncu_looks_at_the_part_alone(tmp_path: Path) -> None:
    """The command line of ncu waits for the program's own mark."""
    collection = Collection(program=("a",), output=tmp_path / "a.ncu-rep", metrics=("m",), from_start=False)
    argv = build_argv(NEWEST, collection)
    assert argv[argv.index("--profile-from-start") + 1] == "off"


def test_the_mark_goes_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a current context the mark enters the first GPU's, then profiling starts; after the part it stops."""
    calls: list[str] = []

    class Driver:
        def __getattr__(self, name: str) -> object:
            return lambda *_: calls.append(name) or 0

    monkeypatch.setattr("ctypes.CDLL", lambda _: Driver())
    marking.start()
    marking.stop()
    assert calls[-3:] == ["cuProfilerStart", "cuCtxSynchronize", "cuProfilerStop"]
    assert calls[:-3] == ["cuInit", "cuCtxGetCurrent", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"]


def test_a_machine_without_a_driver_has_nothing_to_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a driver both marks do nothing: ncu reports what is missing."""
    monkeypatch.setattr(marking, "_DRIVER", "libnothing-of-the-kind.so")
    marking.start()
    marking.stop()


def test_only_a_script_can_be_profiled_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook is told to write the cell to a file; an unknown tier and a coroutine are refused at once."""
    monkeypatch.setattr("rooflens.api.notebook.shell", object)
    with pytest.raises(UsageError) as raised, rl.profile():
        pass
    assert "%%writefile" in raised.value.hint
    with pytest.raises(UsageError, match="no tier `all`"):
        rl.profile(tier="all")  # type: ignore[call-overload]

    async def work() -> None:
        """Do nothing, later."""

    with pytest.raises(UsageError, match="has not run yet when its call returns"):
        rl.profile(work)


def test_a_part_that_raises_is_not_profiled(gpu_box: Path) -> None:
    """An exception in the block is raised unchanged, and there is no report."""
    profiled = rl.profile(tier="quick")
    with pytest.raises(ZeroDivisionError), profiled:
        raise ZeroDivisionError
    with pytest.raises(UsageError, match="nothing has been profiled yet"):
        _ = profiled.report
    assert list(gpu_box.iterdir()) == []
