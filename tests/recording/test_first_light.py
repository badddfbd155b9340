from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import first_light
import pytest
import unattended
from packing import Packer
from support import gpu_day
from support.arrived import contents, kernels_by_range
from unattended import Call, Profile

from rooflens.collect import plan as planning
from rooflens.collect.command import Collection
from rooflens.collect.plan import can_run
from rooflens.collect.run import Collected
from rooflens.errors import InputError
from rooflens.ingest.reports.unpacking import log_of
from rooflens.local_gpu import LocalGpu
from rooflens.processes import Captured, Finished, ProcessCommand
from rooflens.workloads import in_turn, torch_harness
from rooflens.workloads.commands import CASE_VARIABLE, HARNESS, IN_TURN
from rooflens.workloads.registry import find_workload, load_workloads

SCRIPT = Path(first_light.__file__)
NO_PROFILES = ("--version", "--help", "--list-", "--query-metrics")
ASKS = ("-q", "--query-gpu=", "--format=", "--loop=")
"""What nvidia-smi may be asked for; its other options may change settings."""


def words_of(argv: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of a command and of the commands inside a shell line or run in turn."""
    yield list(argv)
    for option, line in pairwise(argv):
        if option == "-c" and ";" in line:
            for part in line.split(";"):
                yield [word for word in shlex.split(part) if "=" not in word.partition("-")[0]]
        if (option, line) == ("-m", IN_TURN):
            yield from (words for _, words in in_turn.parse(argv[list(argv).index(IN_TURN) + 1 :])[1])


def touches_clocks(words: Sequence[str]) -> bool:
    """Return whether a command may set clocks: ncu, and what starts it, must say `none`; nvidia-smi may only query."""
    program = Path(words[0]).name if words else ""
    if program == "nvidia-smi":
        return not all(word.startswith(ASKS) for word in words[1:])
    profiles = program == "ncu" and not words[1].startswith(NO_PROFILES)
    if not profiles and "collect" not in words and "profile" not in words:
        return "ncu" in {Path(word).name for word in words[1:]}
    chosen = [value for option, value in pairwise(words) if option == "--clock-control"]
    return chosen != ["none"] or any(word.startswith("--clock-control=") for word in words)


def plan(*arguments: str) -> dict[str, list[list[str]]]:
    """Return what `--plan` prints."""
    options = first_light.parse(["--plan", *arguments])
    found = first_light.plan(Path("/light"), first_light._stages(options))
    return {str(stage): commands for stage, commands in json.loads(json.dumps(found)).items()}


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine without GPU, ncu and nvcc."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(first_light, "find_ncu", _no_ncu)
    monkeypatch.setattr(planning, "find_ncu", _no_ncu)
    return tmp_path


def _no_ncu(*_: object) -> None:
    raise first_light.EnvironmentMissingError("no ncu")


@pytest.mark.usefixtures("bare")
def test_no_command_of_a_day_touches_the_clocks() -> None:
    """Every ncu that profiles, in a shell line or through `collect`, leaves the clocks alone, and none is `reset`."""
    planned = plan()
    assert list(planned) == ["beside", *first_light.STAGES]
    commands = [words for stage in planned.values() for argv in stage for words in words_of(argv)]
    assert not [words for words in commands if touches_clocks(words)]
    assert sum("ncu" in {Path(word).name for word in words} and "none" in words for words in commands) > 20
    offending = (
        ["ncu", "--set", "full", "./x"],
        ["/opt/ncu", "--clock-control", "base", "./x"],
        ["ncu", "--clock-control", "none", "--clock-control", "reset"],
        ["ncu", "--clock-control=reset"],
        ["sh", "-c", "true; ncu --set full ./x; true"],
        ["nvidia-smi", "--lock-gpu-clocks=1980"],
        ["nvidia-smi", "-pm", "1"],
        ["env", "ncu", "./x"],
        ["python", "-m", "rooflens", "collect", "saxpy"],
        ["python", "-m", IN_TURN, "ROOFLENS_CASE=a.b", "ncu", "--set", "full", "./x"],
        ["ncu", "--clock-control", "none", "python", "-m", IN_TURN, "ROOFLENS_CASE=a.b", "nvidia-smi", "-lgc", "1980"],
    )
    assert all(any(map(touches_clocks, words_of(argv))) for argv in offending)


@pytest.mark.usefixtures("bare")
def test_only_an_own_machine_has_its_clocks_locked() -> None:
    """`--own-machine` adds one stage to the default ones, with the clocks that this ncu chooses."""
    whole = plan("--own-machine")
    ((argv,)) = whole.pop(first_light.DEFAULT_CLOCKS)
    assert touches_clocks(argv)
    assert "--clock-control" not in argv
    assert whole == plan()


def test_every_case_is_taken_once_and_those_of_the_seeds_first() -> None:
    """The stages together contain the cases of all workloads, and each case that is named by itself exists."""
    groups = (first_light.SEEDS, first_light.LADDER, first_light.ROOFS, first_light.TINY)
    rest = [name for kind in ("torch", "cuda") for name in first_light._others(kind)]
    taken = [name for group in (*groups, rest) for name in group]
    assert Counter(taken) == Counter(f"{one.name}.{case.name}" for one in load_workloads() for case in one.cases)
    alone = (*first_light.EXACT, *first_light.MATRIX, first_light.ONE_KERNEL, first_light.KNOWN)
    assert {*alone, first_light.KNOWN_OF_TORCH} <= set(taken)
    assert list(first_light.STAGES)[:3] == ["env", "seeds", "ladder"]


def day(box: Path, *arguments: str, scale: float = 0.01, refuses: str = "") -> subprocess.CompletedProcess[str]:
    """Make a call on a simulated machine, where all costs are scaled."""
    environment = {**os.environ, **gpu_day.install(box, scale, refuses)}
    command = [sys.executable, str(SCRIPT), "--out", str(box / "home"), "--folder", str(box / "light"), *arguments]
    return subprocess.run(  # noqa: S603 - ours
        command, env=environment, cwd=box, capture_output=True, text=True, check=False
    )


def starts(box: Path) -> Mapping[str, int]:
    """Count the starts of ncu, PyTorch and nvcc."""
    return Counter(line.split()[0] for line in (box / "starts").read_text().splitlines())


def answers(home: Mapping[str, bytes], name: str) -> list[str]:
    """Return the cases that were timed and found to be right, in order."""
    lines = [json.loads(line) for line in home[name].splitlines()]
    assert all(line["ok"] is True and line["max_relative_error"] is not None for line in lines)
    return [f"{line['workload']}.{line['case']}" for line in lines]


def test_a_call_brings_home_what_it_is_for(tmp_path: Path) -> None:
    """PyTorch's cases are one report and two starts, the rungs two; there are few files, and no clock is set."""
    done = day(tmp_path, "--stages", "seeds,ladder")
    assert (done.returncode, done.stderr) == (0, "")
    assert [file.name for file in (tmp_path / "home").iterdir()] == ["first_light.1.tar"]
    home = contents(tmp_path / "home")
    rungs = [
        name
        for name in first_light.LADDER
        for workload, _, case in [name.partition(".")]
        if can_run(find_workload(workload).case(case), "gh100")
    ]
    assert answers(home, "seeds/seeds.alone.out") == list(first_light.SEEDS)
    assert answers(home, "ladder/ladder.alone.out") == rungs
    parts = {"seeds/seeds": first_light.SEEDS, "ladder/ladder": rungs[::2], "ladder/ladder.2": rungs[1::2]}
    for report, cases in parts.items():
        ranges = kernels_by_range(home[f"{report}.ncu-rep"], tmp_path)
        assert list(ranges) == [f"rooflens/{case}" for case in cases]
    assert starts(tmp_path) == {"ncu": 3, "torch": 2, "nvcc": len(first_light._compiled()) + 1}
    profiled = [shlex.split(line) for line in (tmp_path / "starts").read_text().splitlines() if line.startswith("ncu ")]
    assert not [words for words in profiled if touches_clocks(words)]
    listed = {(line["stage"], line["name"]): line for line in json.loads(home["done.json"])}
    assert not [line for line in listed.values() if "error" in line or "skipped" in line]
    report = listed["seeds", "seeds"]
    assert (report["kernels"], report["passes"], report["clock_control"]) == (3 * len(first_light.SEEDS), 6, "none")
    assert [name for name in home if name.endswith("clocks.csv") and home[name]] == ["seeds/clocks.csv"]


@pytest.mark.parametrize("refuses", ["nvcc", "counters"])
def test_one_failure_costs_itself(tmp_path: Path, refuses: str) -> None:
    """Without nvcc PyTorch's cases are recorded; without counters times, checks and the calibration are."""
    done = day(tmp_path, "--stages", "env,seeds,ladder,roofs,exact", refuses=refuses)
    assert (done.returncode, done.stderr) == (0, "")
    home = contents(tmp_path / "home")
    reports = {name for name in home if name.endswith(".ncu-rep")}
    assert answers(home, "seeds/seeds.alone.out") == list(first_light.SEEDS)
    if refuses == "nvcc":
        assert {"seeds/seeds.ncu-rep", "exact/matrix.ncu-rep", "exact/passes.standard.ncu-rep"} <= reports
        assert not [name for name in home if name.startswith(("ladder/", "roofs/"))]
        assert b"nvcc could not compile" in home["done.json"]
    else:
        assert not reports
        assert starts(tmp_path)["ncu"] == 1
        assert answers(home, "ladder/ladder.alone.out")[0] == first_light.LADDER[0]
        assert json.loads(home["roofs/calibration.out"]) == {"rates": {}}
        assert b"ERR_NVGPUCTRPERM" in home["env/probe.ncu.log"]


def test_a_whole_day_and_its_second_call(tmp_path: Path) -> None:
    """Every case of every workload is recorded, and a second call in the same folder overwrites nothing."""
    done = day(tmp_path, "--stages", ",".join(first_light.STAGES), scale=0.02)
    assert (done.returncode, done.stderr) == (0, "")
    home = contents(tmp_path / "home")
    found = {name for name, content in home.items() if name.endswith(".ncu-rep") and content}
    ranges = {one for name in found for one in kernels_by_range(home[name], tmp_path)}
    cases = {f"rooflens/{one.name}.{case.name}" for one in load_workloads() for case in one.cases}
    assert cases - ranges <= {f"rooflens/{name}" for name in first_light.TINY}
    assert not [line for line in json.loads(home["done.json"]) if "error" in line]
    assert home["env/ncu_version.out"].startswith(b"NVIDIA (R) Nsight Compute")
    again = tmp_path / "again"
    environment = {**os.environ, **gpu_day.install(again, 0.01)}
    command = [sys.executable, str(SCRIPT), "--out", str(again / "home"), "--folder", str(tmp_path / "light")]
    subprocess.run([*command, "--stages", "ladder"], env=environment, check=True, cwd=again)  # noqa: S603 - ours
    assert {name.partition("/")[0] for name in contents(again / "home")} == {"ladder.2", "done.json"}


class SlowMachine:
    """A GPU machine on a clock that only its programs move: what each start takes is given in seconds."""

    def __init__(self, program_s: float, ncu_s: float, torch_s: float) -> None:
        self.now_s = 0.0
        self.program_s, self.ncu_s, self.torch_s = program_s, ncu_s, torch_s
        self.reports: dict[str, list[str]] = {}

    def clock(self) -> float:
        return self.now_s

    def take(self, seconds: float, limit_s: float | None) -> bool:
        """Let time pass; False if the limit ended it."""
        limit_s = seconds if limit_s is None else limit_s
        self.now_s += min(seconds, limit_s)
        return seconds <= limit_s

    def program(self, argv: Sequence[str], under_ncu: float) -> tuple[list[str], str]:
        """Run a command without a limit of its own; return the cases that ran, and its messages."""
        words = list(argv)
        said = io.StringIO()
        if IN_TURN in words:
            seconds, commands = in_turn.parse(words[words.index(IN_TURN) + 1 :])
            begun: list[str] = []

            def run(_: Sequence[str], limit_s: float) -> Captured:
                begun.append(os.environ[CASE_VARIABLE])
                self.take(self.program_s * under_ncu, limit_s)
                return Captured(0, "", "")

            with redirect_stderr(said), redirect_stdout(io.StringIO()):
                in_turn.run_in_turn(commands, in_turn.LastStart(seconds, self.clock), run)
            return begun, said.getvalue()
        if HARNESS in words:
            options = torch_harness.parse_options(words[words.index(HARNESS) + 1 :])
            last_start, ran = in_turn.LastStart(options.seconds, self.clock), []
            self.now_s += self.torch_s * under_ncu
            for name in options.names:
                if last_start.refusal:
                    break
                last_start.begin()
                self.now_s += 1.5 * under_ncu
                last_start.end()
                ran.append(name)
            return ran, ""
        self.now_s += self.program_s if words[0].startswith("/cache") else 0.0
        return [], ""

    def run(self, command: ProcessCommand, limit_s: float, _watch: object) -> Finished:
        """Stand in for a program without ncu, or one that starts ncu itself; questions cost nothing."""
        if not {"--clock-control", IN_TURN, HARNESS} & {*command.argv} and not command.argv[0].startswith("/cache"):
            return Finished(0, 1)
        before_s = self.now_s
        self.now_s += self.ncu_s if "--clock-control" in command.argv else 0.0
        _, said = self.program(command.argv, 1.0)
        command.stderr.write_text(said)
        took_s = self.now_s - before_s
        self.now_s = before_s
        in_time = self.take(took_s, limit_s)
        return Finished(0 if in_time else None, 1, timed_out=not in_time)

    def collect(self, _ncu: object, collection: Collection, limit_s: float) -> Collected:
        """Stand in for a collection, which fails if it takes too long."""
        before_s = self.now_s
        self.now_s += self.ncu_s
        cases, said = self.program(collection.program, 1.1)
        self.now_s += 0.5 * len(cases)
        log_of(collection.output).write_text(said)
        took_s = self.now_s - before_s
        self.now_s = before_s
        if not self.take(took_s, limit_s):
            raise InputError(f"{took_s:.0f} s of {limit_s:.0f} s")
        self.reports[f"{collection.output.parent.name}/{collection.output.stem}"] = cases
        collection.output.write_text(" ".join(cases))
        return Collected(collection.output, len(cases), 1, took_s, capped=False, warnings=())


def rehearsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: SlowMachine, seconds: float) -> Call:
    """Make a whole call on such a machine, in no time."""
    gpu = LocalGpu("NVIDIA H100 80GB HBM3", "9.0", "580.65.06")
    for module in (first_light, planning):
        monkeypatch.setattr(module, "local_gpu", lambda: gpu)
    monkeypatch.setattr(unattended, "run", machine.run)
    monkeypatch.setattr(unattended, "collect", machine.collect)
    monkeypatch.setattr(unattended, "WATCH_ARGV", ("/no/such/program",))
    monkeypatch.setattr(
        Profile,
        "plan",
        lambda step, folder: SimpleNamespace(
            ncu=None,
            collection=Collection(step.command, folder / f"{step.name}.ncu-rep", clock_control="none"),
        ),
    )
    monkeypatch.setattr(unattended, "plain_file", lambda report: report)
    monkeypatch.setattr(unattended, "slim_file", lambda _: None)
    done: dict[str, Future[Path]] = {}
    for workload in (*first_light._compiled(), first_light.PROGRAM):
        done[workload.name] = Future()
        done[workload.name].set_result(Path("/cache", workload.name))
    monkeypatch.setattr(first_light.Box, "compile_all", lambda box: box.compiling.update(done))
    monkeypatch.setenv(CASE_VARIABLE, "")
    call = Call(tmp_path, Packer(tmp_path, tmp_path, "x"), seconds, machine.clock)
    first_light.light(call, first_light.box_of(call), first_light.STAGES)
    return call


PARTS = [f"{stage}/{part}" for stage, groups in first_light.GROUPS.items() for one in groups for part in one.parts()]


@pytest.mark.parametrize(
    ("program_s", "ncu_s", "torch_s"),
    [(0.3, 2, 8), (6.6, 2, 8), (6.6, 6, 15), (10, 4, 12), (12, 2, 8)],
)
def test_every_group_that_begins_brings_a_report_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program_s: float, ncu_s: float, torch_s: float
) -> None:
    """However long programs take to start, every group has a report of some cases, and nothing is begun in vain."""
    machine = SlowMachine(program_s, ncu_s, torch_s)
    call = rehearsed(tmp_path, monkeypatch, machine, first_light.CALL_S)
    assert {part: len(machine.reports.get(part, ())) for part in PARTS if not machine.reports.get(part)} == {}
    in_vain = [line for line in call.done if "error" in line or "over" in line]
    assert in_vain == []
    assert machine.now_s <= first_light.CALL_S - unattended._CLOSING_S
    if program_s < 1:
        cases = {f"{one.name}.{case.name}" for one in load_workloads() for case in one.cases}
        brought = {case for cases in machine.reports.values() for case in cases}
        assert cases - brought <= {*first_light.TINY, "gemm_ladder.none"}


def test_a_short_call_brings_the_first_groups_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With time for some groups only, those of most worth have a report, and what is left out says so."""
    machine = SlowMachine(6.6, 2, 8)
    call = rehearsed(tmp_path, monkeypatch, machine, 150)
    assert [part for part in PARTS if machine.reports.get(part)][:4] == PARTS[:4]
    assert machine.now_s <= 150
    assert not [line for line in call.done if "error" in line or "over" in line]
    assert [line["name"] for line in call.done if str(line.get("skipped", "")).startswith("no time was left")]


def test_without_a_machine_it_says_what_is_missing(tmp_path: Path) -> None:
    """Without a GPU, ncu or any installed package a call ends with exit code 3, and its steps say why."""
    clean = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    places = ("--out", str(tmp_path / "home"), "--folder", str(tmp_path / "light"))
    command = [sys.executable, "-IS", str(SCRIPT), *places, "--stages", "ladder,roofs,exact"]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 3
    assert done.stderr.startswith("error: not one step gave a result: ")
    assert f"hint: `{tmp_path / 'light' / 'done.json'}` says why each did not" in done.stderr
    home = contents(tmp_path / "home")
    errors = {line["name"]: line["error"] for line in json.loads(home["done.json"]) if "error" in line}
    assert any(word in errors["matrix"] for word in ("ncu", "Nsight Compute", "GPU"))
    assert "no NVIDIA GPU" in errors["nvcc: gemm_ladder"]
    assert not [name for name in home if name.endswith(".ncu-rep")]


def test_a_reader_that_goes_ends_the_plan_without_a_word() -> None:
    """`--plan | head` shows no traceback."""
    command = [sys.executable, str(SCRIPT), "--plan", "--stages", "ladder"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as planning:  # noqa: S603 - ours
        assert planning.stdout is not None
        planning.stdout.close()
        assert planning.stderr is not None
        said = planning.stderr.read()
    assert (planning.returncode, said) == (0, b"")


def test_a_machine_that_lends_no_places_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only checkout, no home folder, or another user's lock of ncu does not stop a call."""
    monkeypatch.delenv("OUT", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", "/no/such/folder")
    monkeypatch.setattr("os.access", lambda *_: False)
    options = first_light.parse([])
    assert (options.folder, options.out) == tuple(
        tmp_path / "rooflens" / name for name in ("first_light", "first_light_home")
    )
    (tmp_path / "nsight-compute-lock").touch()
    first_light._lend_places(tmp_path / "light")
    assert (os.environ["HOME"], os.environ["TMPDIR"]) == (str(tmp_path / "light/.home"), str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    first_light._lend_places(tmp_path / "light")
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(tmp_path / "light/.tmp")
    assert Path(tempfile.gettempdir()).is_dir()


def test_a_compiler_that_hangs_costs_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for until all others are done, and reported once; if it ends after all, its program runs."""
    monkeypatch.setattr(first_light, "_COMPILED_S", 0.05)
    told: list[str] = []
    box = first_light.Box(tmp_path, complain=lambda name, error: told.append(f"{name}: {error}"))
    hanging: Future[Path] = Future()
    box.lacking, box.compiling["saxpy"] = None, hanging
    saxpy = find_workload("saxpy")
    box.quiet()
    assert [box.program(saxpy), box.program(saxpy)] == [None, None]
    assert told == ["nvcc: saxpy: it is still being compiled"]
    hanging.set_result(tmp_path)
    assert box.program(saxpy) == tmp_path


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--folder", "file"], "cannot write into `file`: File exists"),
        (["--out", "file"], "cannot write into `file`: File exists"),
        (["--stages", "seeds,nothing"], "no stage is called `nothing`"),
        (["--stages", "default_clocks"], "no stage is called `default_clocks`"),
    ],
)
def test_what_cannot_work_is_said_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    error: str,
) -> None:
    """A wrong folder or stage is an error with a hint."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert first_light.main(arguments) == (2 if "--stages" in arguments else 1)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("error: ")
    assert error in said[0]
    assert said[2].startswith("hint: ")
    assert not [place for place in tmp_path.rglob("*.tar") if tarfile.is_tarfile(place)]
