from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support import fake_ncu, fake_nvcc, gpu_day
from support.ladder import record_ladder
from support.left_processes import TEST, left_processes
from support.packing import pack

from rooflens.cli.collecting import progress_line
from rooflens.cli.commands.collect import collect
from rooflens.cli.commands.profile import profile
from rooflens.cli.group import main
from rooflens.collect import plan as planning
from rooflens.collect import profile as profiling
from rooflens.collect import trial
from rooflens.collect.command import DEFAULT_MAX_LAUNCHES, Collection
from rooflens.collect.log import Progress
from rooflens.collect.ranks import NO_COMMUNICATION
from rooflens.collect.tiers import metrics_for
from rooflens.errors import InputError
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.unpacking import INCOMPLETE_SUFFIX
from rooflens.ingest.reports.unprofiled import read_unprofiled
from rooflens.model.unprofiled import Unprofiled
from rooflens.workloads.registry import find_workload

LINE = {"iterations": 20, "launches": 60, "wall_ns": 1_000_000, "kernel_ns": 900_000}
PROGRAM = (sys.executable, "-ISc", f"print('''{json.dumps(LINE)}''')")
START = "from rooflens.cli.group import main; main()"


@pytest.fixture(autouse=True)
def _commands() -> Iterator[None]:
    """Register the commands for these tests, whatever the group contains."""
    before = dict(main.commands)
    main.add_command(collect)
    main.add_command(profile)
    yield
    main.commands.clear()
    main.commands.update(before)


@pytest.fixture
def bare_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine with nothing on PATH; return the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("rooflens.collect.command._INSTALL_PATTERNS", ())
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def torch_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bundled PyTorch workloads run without PyTorch: a program prints their line."""
    monkeypatch.setattr(planning, "require_torch", lambda: None)
    monkeypatch.setattr(planning, "command_for", lambda *_, **__: PROGRAM)
    monkeypatch.setattr(profiling, "measuring_command", lambda *_, **__: PROGRAM)


def run(*arguments: object) -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def names(detail: str) -> str:
    """Write a tier's metrics for GH100 as an argument of ncu."""
    return ",".join(metric.name for metric in metrics_for("gh100", detail))


HOW = "--nvtx --target-processes all --replay-mode kernel --cache-control all"
FIRST = "--launch-count 200"
ALONE = f"--kernel-name {shlex.quote(NO_COMMUNICATION)}"
DEEP = " ".join(
    f"--section {name}"
    for name in ("SpeedOfLight", "SpeedOfLight_RooflineChart", "Occupancy", "LaunchStats", "PmSampling")
)


@pytest.mark.parametrize(("detail", "sections"), [("quick", ""), ("standard", ""), ("deep", f"{DEEP} ")])
def test_a_dry_run_prints_the_whole_command_line(gpu_box: Path, detail: str, sections: str) -> None:
    """A dry run prints one shell-ready line on stdout, and runs and writes nothing."""
    result = run("collect", "--detail", detail, "--dry-run", "-o", "my report.ncu-rep", "--", "./train", "--lr", "1 e")
    head = f"{gpu_box.parent / 'bin' / 'ncu'} --config-file off --export 'my report.ncu-rep' --force-overwrite"
    expected = f"{head} {HOW} {ALONE} {FIRST} {sections}--metrics {names(detail)} ./train --lr '1 e'\n"
    assert result.stdout == expected
    assert result.exit_code == 0
    assert list(gpu_box.iterdir()) == []


def test_a_dry_run_passes_every_option_on(gpu_box: Path) -> None:
    """Each of our options reaches ncu under ncu's name."""
    options = (
        "--kernel regex:gemm --launch-skip 2 --launch-count 3 --nvtx-include step/ --nvtx-include fwd "
        "--replay-mode application --cache-control none --clock-control none --target-processes application-only "
        "--graph-profiling node --import-source --metrics x.sum,y.sum --detail quick"
    )
    argv = shlex.split(run("collect", *options.split(), "--dry-run", "--", "./a.out").stdout)
    expected = (
        "--config-file off --export out/a.ncu-rep --force-overwrite --nvtx --target-processes application-only "
        "--replay-mode application --cache-control none --clock-control none --graph-profiling node "
        "--import-source yes --nvtx-include step/ --nvtx-include fwd --kernel-name regex:gemm --launch-skip 2 "
        "--launch-count 3 "
        f"--metrics {names('quick')},x.sum,y.sum ./a.out"
    )
    assert argv == [str(gpu_box.parent / "bin" / "ncu"), *expected.split()]


def test_a_dry_run_needs_neither_ncu_nor_gpu_where_the_chip_is_named(bare_box: Path) -> None:
    """With --chip a dry run needs neither ncu nor GPU; without it the counters are unknown."""
    result = run("collect", "attention", "--chip", "gh100", "--dry-run", "--detail", "quick")
    program = f"{sys.executable} -m rooflens.workloads.torch_harness attention --case fused --iterations 1"
    assert result.exit_code == 0
    assert result.stdout == (
        f"ncu --config-file off --export out/attention.ncu-rep --force-overwrite {HOW} --nvtx-include rooflens "
        f"{FIRST} --metrics {names('quick')} {program}\n"
    )
    assert run("collect", "--dry-run", "--", "x").exit_code == 3
    assert run("collect", "--chip", "gx1", "--dry-run", "--", "x").exit_code == 2
    assert list(bare_box.iterdir()) == []


@pytest.mark.parametrize("command", ["collect", "profile"])
def test_without_ncu_a_workload_names_its_replay(gpu_box: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """With a GPU but without ncu, the exit code is 3 and the hint names what works."""
    monkeypatch.setattr("rooflens.collect.command._INSTALL_PATTERNS", ())
    (gpu_box.parent / "bin" / "ncu").unlink()
    monkeypatch.setenv("PATH", str(gpu_box.parent / "bin"))
    result = run(command, "attention")
    assert result.exit_code == 3
    assert "error: Nsight Compute's `ncu` was not found" in result.stderr
    assert "make replay WORKLOAD=attention" in result.stderr
    assert list(gpu_box.iterdir()) == []


@pytest.mark.parametrize("options", [("attention",), ("saxpy",), ("saxpy", "--chip", "gh100"), ("--", "/bin/true")])
@pytest.mark.parametrize("command", ["collect", "profile"])
def test_a_missing_gpu_is_said_before_anything_is_compiled_or_asked(
    bare_box: Path, monkeypatch: pytest.MonkeyPatch, command: str, options: tuple[str, ...]
) -> None:
    """Without a GPU, neither nvcc nor ncu is searched, whatever --chip says."""
    monkeypatch.setattr(planning, "build", lambda *_: pytest.fail("compiled"))
    monkeypatch.setattr(planning, "find_ncu", lambda *_: pytest.fail("asked for ncu"))
    result = run(command, *options)
    assert result.exit_code == 3
    assert "error: no NVIDIA GPU or driver: `nvidia-smi` does not answer" in result.stderr
    assert ("make replay WORKLOAD=attention" in result.stderr) == (options == ("attention",))
    assert list(bare_box.iterdir()) == []


def test_a_workload_without_a_stored_report_names_what_there_is(bare_box: Path) -> None:  # noqa: ARG001 - a place
    """The hint suggests `make replay` only for workloads with a stored report."""
    result = run("profile", "gemm_ladder")
    assert result.exit_code == 3
    assert "make replay" not in result.stderr
    assert "`make demo` draws such a page from published reports" in result.stderr


def test_a_command_of_the_users_has_no_replay(bare_box: Path) -> None:  # noqa: ARG001 - a place
    """The hint suggests a replay only for bundled workloads."""
    result = run("profile", "--", "./mine")
    assert result.exit_code == 3
    assert "replay" not in result.stderr


def test_collect_writes_the_report_and_says_so(gpu_box: Path) -> None:
    """The last line names the report, all messages go to stderr, and the un-profiled run is kept beside the report."""
    result = run("collect", "-o", "my.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 0
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0] == "ncu 2025.3.1.0 on NVIDIA H200, driver 580.65.06"
    assert lines[1].startswith("un-profiled: ")
    assert "how much of it is kernels is unknown" in lines[1]
    assert lines[2].startswith("estimate: at most 200 launches (how many is not known) x ")
    assert lines[3] == "warning: ncu: Something is a little odd."
    assert lines[4].startswith("profiled 3 kernels in ")
    assert lines[4].endswith(", at most 9 passes each; the program was started 2 times")
    assert lines[5:] == ["wrote my.ncu-rep"]
    assert sorted(path.name for path in gpu_box.iterdir()) == ["my.ncu-rep", "my.unprofiled.json"]


@pytest.mark.usefixtures("torch_here")
def test_a_workload_measures_its_gaps(gpu_box: Path) -> None:
    """A workload's own times give gap share and estimate, per iteration."""
    result = run("collect", "attention", "--case", "naive")
    assert result.exit_code == 0
    assert "un-profiled: 1 ms, and no kernel ran in 10% of it" in result.stderr
    assert "estimate: at most 3 launches x " in result.stderr
    assert " x 15.0 µs each" in result.stderr
    assert result.stderr.splitlines()[-1] == "wrote out/attention.naive.ncu-rep"
    kept = read_unprofiled(gpu_box / "out" / "attention.naive.ncu-rep")
    assert kept is not None
    assert kept.gap_share == pytest.approx(0.1)


@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize(("cap", "is_said"), [(3, True), (4, False)])
def test_as_many_profiles_as_may_be_taken_are_doubted(gpu_box: Path, cap: int, is_said: bool) -> None:  # noqa: ARG001, FBT001 - a place, a table
    """If ncu stops at the cap, a note says that the un-profiled run may have missed launches."""
    result = run("collect", "attention", "--case", "naive", "--max-launches", cap)
    assert ("warning: stopped at --max-launches 3: there may be more kernels" in result.stderr) == is_said


def test_counters_that_this_ncu_lacks_are_left_out(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric that ncu does not know is left out with a note; metrics that are no hardware counters are kept."""
    wanted = metrics_for("gh100", "quick")
    hardware = {metric.name.partition(".")[0] for metric in wanted if metric.kind == "hardware"}
    monkeypatch.setenv(fake_ncu.KNOWN, " ".join(hardware - {"dram__bytes"}))
    kept = [metric.name for metric in wanted if not metric.name.startswith("dram__bytes.")]
    argv = shlex.split(run("collect", "--detail", "quick", "--dry-run", "--", "x").stdout)
    assert argv[argv.index("--metrics") + 1] == ",".join(kept)
    result = run("collect", "--detail", "quick", "-o", "x.ncu-rep", "--", "/bin/true")
    assert f"warning: this ncu lacks 3 of {len(wanted)} metrics, which a newer one has" in result.stderr
    assert (gpu_box / "x.ncu-rep").exists()


def test_an_old_ncu_is_not_asked_for_names_it_lacks(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 2021.2 counts by instruction get their old names, and before 2024.1 sampling is left out."""
    monkeypatch.setenv(fake_ncu.VERSION, "Version 2020.3.1.0 (build 1)")
    argv = shlex.split(run("collect", "--detail", "deep", "--dry-run", "--", "x").stdout)
    assert "memory_l2_theoretical_sectors_global" not in argv[argv.index("--metrics") + 1].split(",")
    assert "PmSampling" not in argv
    assert list(gpu_box.iterdir()) == []


TWO_GPUS = "0, GPU-a, Tesla T4, 7.5, 580.1, [N/A]\n1, GPU-b, NVIDIA H100 PCIe, 9.0, 580.1, Disabled\n"


def test_where_gpus_differ_and_nothing_tells_counters_are_those_of_all(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If GPUs differ, the assumed GPU is named and only common counters are collected; --chip chooses."""
    (gpu_box.parent / "bin" / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{TWO_GPUS}'\n")
    monkeypatch.setattr("rooflens.local_gpu._first_of_cuda", lambda *_: None)
    result = run("collect", "-o", "x.ncu-rep", "--", "/bin/true")
    assert "warning: the GPUs here differ (Tesla T4, NVIDIA H100 PCIe), and CUDA does not say" in result.stderr
    own = {chip: [metric.name for metric in metrics_for(chip, "standard")] for chip in ("gh100", "tu102")}
    argv = shlex.split(run("collect", "--dry-run", "--", "x").stdout)
    both = [name for name in own["gh100"] if name in own["tu102"]]
    assert argv[argv.index("--metrics") + 1] == ",".join(both)
    assert len(both) < len(own["tu102"])
    chosen = run("collect", "--dry-run", "--chip", "tu102", "--", "x")
    argv = shlex.split(chosen.stdout)
    assert argv[argv.index("--metrics") + 1] == ",".join(own["tu102"])
    assert "the GPUs here differ" not in chosen.stderr


def test_kernels_of_another_gpu_than_asked_for_are_named(gpu_box: Path) -> None:
    """If the kernels ran on another chip with other counters, a warning says which --chip to use."""
    told = "warning: the kernels ran on NVIDIA H200 (gh100), but the counters of ga100 were asked for: some are missing"
    result = run("collect", "--chip", "ga100", "-o", "x.ncu-rep", "--", "/bin/true")
    assert told in result.stderr
    assert "--chip gh100 asks for the right ones" in result.stderr
    assert "the kernels ran on" not in run("collect", "-o", "y.ncu-rep", "--", "/bin/true").stderr
    assert (gpu_box / "y.ncu-rep").exists()


@pytest.mark.parametrize(("own", "seen"), [(None, "1"), ("8", "8")])
def test_the_profiled_program_compiles_in_its_own_process(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, seen: str
) -> None:
    """Under ncu PyTorch's compiler starts no workers unless the user sets their number; without ncu nothing changes."""
    monkeypatch.delenv("TORCHINDUCTOR_COMPILE_THREADS", raising=False)
    if own is not None:
        monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", own)
    assert run("collect", "-o", "x.ncu-rep", "--", "/bin/sh", "-c", "env >> seen").exit_code == 0
    lines = (gpu_box / "seen").read_text().splitlines()
    assert [line.partition("=")[2] for line in lines if line.startswith("TORCHINDUCTOR")] == [seen] * (2 if own else 1)


def test_a_pytorch_too_old_for_the_workloads_is_named(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PyTorch too old for the workloads gives an error with the version, and a note that own programs work."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "torch" else found(name))
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.4.1+cu121")
    result = run("collect", "attention")
    assert result.exit_code == 3
    assert "error: PyTorch 2.4.1+cu121 is too old for the bundled workloads: they need 2.5" in result.stderr
    assert "hint: pip install 'torch>=2.5'; your own programs are profiled with any" in result.stderr
    assert list(gpu_box.iterdir()) == []


def test_existing_reports_are_kept(gpu_box: Path) -> None:
    """An existing report is overwritten only with --force, which is checked before anything runs."""
    Path("x.ncu-rep").write_text("mine")
    refused = run("collect", "-o", "x.ncu-rep", "--", "/bin/touch", "ran")
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert [path.name for path in gpu_box.iterdir()] == ["x.ncu-rep"]
    assert run("collect", "-o", "x.ncu-rep", "--force", "--", "/bin/true").exit_code == 0
    assert Path("x.ncu-rep").read_bytes()[:3] == b"NVR"


def test_a_program_that_fails_by_itself_exits_with_four(gpu_box: Path) -> None:
    """If the program fails by itself, the exit code is 4 with its status; ncu does not run, nothing is written."""
    result = run("collect", "--", sys.executable, "-ISc", "import sys; sys.exit('Error: bad weather')")
    assert result.exit_code == 4
    assert "error: the program failed with status 1, without the profiler: Error: bad weather\n" in result.stderr
    assert list(gpu_box.iterdir()) == []


@pytest.mark.parametrize(("behaviour", "exit_code"), [("permission", 3), ("no_kernels", 1), ("half", 1)])
def test_a_failure_of_ncu_is_one_error_with_its_hint(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, exit_code: int
) -> None:
    """A failure of ncu prints one error and one hint on stderr, and leaves no report."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, behaviour)
    result = run("profile", "--", "/bin/true")
    assert result.exit_code == exit_code
    assert result.stderr.count("error: ") == 1
    assert result.stderr.count("hint: ") == 1
    left = sorted(path.name for path in gpu_box.rglob("*") if path.is_file())
    part = [f"true.ncu-rep{INCOMPLETE_SUFFIX}", f"true.ncu-rep{INCOMPLETE_SUFFIX}.unprofiled.json"]
    assert left == [*(part if behaviour == "half" else ()), "true.ncu.log"]


def test_what_was_profiled_before_a_failure_can_be_analyzed(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure's hint is a working command that shows the kernels profiled so far."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "broken_off")
    failed = run("collect", "-o", "my x.ncu-rep", "--", "/bin/true")
    assert failed.exit_code == 1
    assert "ncu's messages are kept in `my x.ncu.log`; the report so far is kept, 4 complete kernels: " in failed.stderr
    (command,) = re.findall(r"`rooflens (analyze .*)`", failed.stderr)
    result = run(*shlex.split(command))
    assert result.exit_code == 0
    assert "warning: my x.ncu-rep.incomplete: collecting it failed: 4 complete kernels read" in result.stderr
    assert list(gpu_box.glob("*.ncu-rep")) == []


def test_the_run_without_ncu_can_be_left_out(gpu_box: Path) -> None:
    """`--no-unprofiled` runs the program only under ncu, says what stays unknown, and removes an older run."""
    program = (sys.executable, "-ISc", "open('runs', 'a').write('x')")
    assert run("collect", "-o", "x.ncu-rep", "--", *program).exit_code == 0
    assert Path("runs").read_text() == "xx"
    assert (gpu_box / "x.unprofiled.json").exists()
    result = run("collect", "--no-unprofiled", "--force", "-o", "x.ncu-rep", "--", *program)
    assert Path("runs").read_text() == "xxx"
    assert "not run without ncu: launches are not counted, and the share of gaps stays unknown" in result.stderr
    assert not (gpu_box / "x.unprofiled.json").exists()
    assert "un-profiled" not in run("analyze", "x.ncu-rep").stdout


def test_kill_ends_the_program_after_the_chosen_launches(gpu_box: Path) -> None:
    """`--kill` is passed to ncu with a count, which by default is the cap."""
    argv = shlex.split(run("collect", "--kill", "--dry-run", "--", "x").stdout)
    at = argv.index("--launch-count")
    assert argv[at : at + 4] == ["--launch-count", "200", "--kill", "yes"]
    argv = shlex.split(run("collect", "--kill", "--launch-count", 7, "--dry-run", "--", "x").stdout)
    assert argv[argv.index("--kill") - 1] == "7"
    assert list(gpu_box.iterdir()) == []


def test_the_timeout_holds_for_all_runs_together(gpu_box: Path) -> None:
    """The run without ncu uses up the time limit; ncu does not start when it is spent."""
    nap = (sys.executable, "-ISc", "import time; time.sleep(1.0)")
    start_s = time.monotonic()
    result = run("collect", "--timeout", 1.6, "-o", "x.ncu-rep", "--", *nap)
    assert result.exit_code == 1
    assert "ncu did not finish within 0." in result.stderr
    assert time.monotonic() - start_s < 4
    assert [path.name for path in gpu_box.glob("*.ncu-rep")] == []


def test_ncu_is_not_begun_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch, gpu_box: Path) -> None:
    """The time limit starts with the first program; the error for a spent limit says how to save time."""
    clock = [0.0]
    monkeypatch.setattr(trial.time, "monotonic", lambda: clock[0])
    request = planning.Request(
        planning.command_target(("x",)), Collection((), gpu_box / "x.ncu-rep"), "quick", chip="gh100", timeout_s=5
    )
    plan = planning.make_plan(request, dry_run=True)
    clock[0] = 100.0
    assert plan.limit.left_s() == 5
    clock[0] = 103.0
    assert profiling.choose_launches(plan, Unprofiled(1)).limit.left_s() == 2
    clock[0] = 110.0
    with pytest.raises(InputError, match="no time is left for ncu of the 5 s") as caught:
        profiling.profile(plan, run_first=False)
    assert "--no-unprofiled" in caught.value.hint


@pytest.mark.usefixtures("torch_here")
def test_profile_collects_and_draws(gpu_box: Path) -> None:
    """One command writes report and page, prints the table, and names the page last."""
    result = run("profile", "attention")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-1] == f"wrote {Path('out/attention.html')}"
    assert "bound" in result.stdout or "memory" in result.stdout
    expected = ["attention.html", "attention.ncu-rep", "attention.unprofiled.json"]
    assert sorted(path.name for path in (gpu_box / "out").iterdir()) == expected
    assert run("profile", "attention").exit_code == 2
    assert run("profile", "attention", "--force").exit_code == 0


@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize("package", ["altair", "jinja2", "google"])
def test_profile_misses_what_draws_before_it_collects(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """If a package for the page is missing, nothing starts, and the hint suggests `collect`, which does not need it."""
    calls = gpu_box.parent / "calls"
    monkeypatch.setenv(fake_ncu.CALLS, str(calls))
    code = f"import sys; sys.modules['{package}'] = None; {START}"
    command = [sys.executable, "-c", code, "profile", "--", "/bin/touch", "ran"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 3
    assert f"this needs the Python package `{'protobuf' if package == 'google' else package}`" in done.stderr
    assert "`rooflens collect` does without" in done.stderr
    assert (list(gpu_box.iterdir()), calls.exists()) == ([], False)


def test_a_page_that_cannot_be_drawn_leaves_its_report_with_its_name(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the page cannot be written, the kept report and the command to draw it are printed before the error."""

    def full(*_: object, **__: object) -> None:
        raise InputError("cannot write `out/true.html`: No space left on device", "give another place with -o")

    monkeypatch.setattr("rooflens.cli.commands.report.write_output", full)
    result = run("profile", "--", "/bin/true")
    assert result.exit_code == 1
    assert "what was collected is kept: `rooflens report out/true.ncu-rep`\nerror: cannot write" in result.stderr
    assert (gpu_box / "out" / "true.ncu-rep").exists()


@pytest.mark.usefixtures("torch_here")
def test_a_compressed_report_goes_through_like_a_plain_one(
    gpu_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that ncu compressed is named with its suffix, drawn, and not overwritten without --force."""
    monkeypatch.setenv(fake_ncu.REPORT, str(pack(Path(os.environ[fake_ncu.REPORT]), tmp_path / "packed")))
    monkeypatch.setenv(fake_ncu.PUTS_BEHIND, "z")
    assert run("collect", "-o", "my.ncu-rep", "--", *PROGRAM).stderr.splitlines()[-1] == "wrote my.ncu-repz"
    assert sorted(path.name for path in gpu_box.iterdir()) == ["my.ncu-repz", "my.unprofiled.json"]
    assert read_unprofiled(Path("my.ncu-repz")) is not None
    refused = run("collect", "-o", "my.ncu-rep", "--", *PROGRAM)
    assert (refused.exit_code, "`my.ncu-repz` exists" in refused.stderr) == (2, True)
    missing = run("analyze", "my.ncu-rep")
    assert (missing.exit_code, "`my.ncu-repz` does: ncu compresses" in missing.stderr) == (1, True)
    result = run("profile", "attention")
    assert result.exit_code == 0
    expected = ["attention.html", "attention.ncu-repz", "attention.unprofiled.json"]
    assert sorted(path.name for path in (gpu_box / "out").iterdir()) == expected


@pytest.mark.usefixtures("torch_here")
def test_all_cases_make_a_report_each_and_one_page(
    gpu_box: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each case has its own report and un-profiled run; one page shows all cases."""
    kept = [fixtures / "synthetic" / f"verdict_{name}.synthetic.ncu-rep" for name in ("memory_dram", "memory_l2")]
    monkeypatch.setenv(fake_ncu.REPORT, ":".join(map(str, kept)))
    result = run("profile", "attention", "--all-cases")
    assert result.exit_code == 0, result.stderr
    cases = [case.name for case in find_workload("attention").cases]
    reports = [f"attention.{case}" for case in cases]
    expected = {
        "attention.html",
        *(f"{name}.{ending}" for name in reports for ending in ("ncu-rep", "unprofiled.json")),
    }
    assert {path.name for path in (gpu_box / "out").iterdir()} == expected
    assert len(cases) > 1
    page = (gpu_box / "out" / "attention.html").read_text()
    assert [name in page for name in reports[:2]] == [True, True]
    assert result.stderr.splitlines()[-1] == f"wrote {Path('out/attention.html')}"


def test_a_rung_of_another_gpu_is_left_out() -> None:
    """On an Ampere chip the ladder ends below the rung that needs Hopper, and a note says so."""
    result = run("collect", "gemm_ladder", "--dry-run", "--chip", "ga100")
    rungs = [line.partition("--rung ")[2].split()[0] for line in result.stdout.splitlines()]
    assert rungs == [str(case.parameters["rung"]) for case in find_workload("gemm_ladder").cases if case.needs is None]
    assert "note: `11_wgmma` is left out: it needs a GPU of compute capability 9.0" in result.stderr


def test_a_ladder_is_profiled_whole_unless_a_rung_is_named() -> None:
    """`gemm_ladder` without a case gives a report per rung, in order; with a case only that rung's."""
    lines = run("collect", "gemm_ladder", "--dry-run", "--chip", "gh100").stdout.splitlines()
    rungs = [line.partition("--rung ")[2].split()[0] for line in lines]
    assert rungs == [str(case.parameters["rung"]) for case in find_workload("gemm_ladder").cases]
    one = run("collect", "gemm_ladder", "--case", "07_warptile", "--dry-run", "--chip", "gh100").stdout.splitlines()
    assert [line.partition("--rung ")[2].split()[0] for line in one] == ["7"]


def test_one_command_profiles_and_draws_the_ladder(
    gpu_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ladder's page shows cuBLAS's 111 us beside 900 us of each rung."""
    line = {**LINE, "launches": 20, "cublas_ns": 111_000}
    nvcc = fake_nvcc.install(tmp_path / "toolkit" / "bin", line)
    monkeypatch.setenv("CUDA_HOME", str(nvcc.parent.parent))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "stand-in").mkdir()
    recorded = record_ladder(tmp_path / "stand-in")
    monkeypatch.setenv(fake_ncu.REPORT, os.pathsep.join(map(str, recorded)))
    result = run("profile", "gemm_ladder")
    assert result.exit_code == 0, result.stderr
    rungs = [case.name for case in find_workload("gemm_ladder").cases]
    reports = [gpu_box / "out" / f"gemm_ladder.{rung}.ncu-rep" for rung in rungs]
    assert [report.exists() for report in reports] == [True] * len(rungs)
    page = (gpu_box / "out" / "gemm_ladder.html").read_text()
    table = page[page.index('id="sweeps"') :].partition("</table>")[0]
    assert table.count('<td class="n">12\u00a0%</td>') == len(recorded)


@pytest.mark.usefixtures("torch_here")
def test_a_repeated_case_is_taken_once_and_behind_the_given_name(gpu_box: Path) -> None:
    """A repeated case is taken once; with several cases `-o x.ncu-rep` becomes `x.CASE.ncu-rep`, with one it stays."""
    cases = ("--case", "naive", "--case", "fused", "--case", "naive")
    assert run("collect", "attention", *cases, "-o", "x.ncu-rep").exit_code == 0
    assert sorted(path.name for path in gpu_box.glob("*.ncu-rep")) == ["x.fused.ncu-rep", "x.naive.ncu-rep"]
    (dry,) = run("collect", "attention", *cases, "--dry-run", "--force").stdout.splitlines()
    assert "--export out/attention.all-cases.ncu-rep" in dry
    assert " attention.naive attention.fused --iterations 1 --check 0 --mark-cases" in dry
    each = run("collect", "attention", *cases, "--dry-run", "--force", "--launch-count", "3").stdout
    assert [line.count("--export out/attention.naive") for line in each.splitlines()] == [1, 0]
    refused = run("collect", "attention", "--case", "naive", "--all-cases")
    assert (refused.exit_code, "cannot be combined" in refused.stderr) == (2, True)


def _counted(starts: Path, *lines: dict[str, object], status: int = 0) -> tuple[str, ...]:
    """Write a program that logs its start, prints JSON lines and ends with a status."""
    said = "\n".join(json.dumps({**LINE, **line}) for line in lines)
    code = f"import sys; open({str(starts)!r}, 'a').write('x'); print({said!r}); sys.exit({status})"
    return (sys.executable, "-ISc", code)


@pytest.fixture
def all_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Path]]:
    """Return a function that simulates cases with given times, some of them missing in ncu's report."""
    places = [tmp_path / name for name in ("together", "under", "alone", "calls")]
    together, under, alone, calls = places
    monkeypatch.setenv(fake_ncu.CALLS, str(calls))
    monkeypatch.setattr(planning, "require_torch", lambda: None)
    monkeypatch.setattr(planning, "command_for", lambda *_, **__: _counted(alone))
    monkeypatch.setattr(planning, "profiled_command", lambda *_, **__: _counted(under))

    def make(names: Sequence[str], missing: Sequence[str] = ()) -> list[Path]:
        lines = [{"case": name, "ok": True, "wall_ns": 1_000_000 + at} for at, name in enumerate(names)]
        monkeypatch.setattr(profiling, "measuring_command", lambda *_, **__: _counted(together, *lines))
        kernels = [{"range": f"gemm.{name}", "name": f"of_{name}"} for name in names if name not in missing]
        (tmp_path / "whole.ncu-rep").write_bytes(gpu_day.report_of(kernels, 6))
        monkeypatch.setenv(fake_ncu.REPORT, str(tmp_path / "whole.ncu-rep"))
        return places

    return make


def _profiles(calls: Path) -> int:
    """Count the runs of ncu that profiled the program."""
    return sum("--export" in line and fake_ncu.PROBE not in line for line in calls.read_text().splitlines())


def test_pytorch_starts_twice_for_all_cases(gpu_box: Path, all_cases: Callable[..., list[Path]]) -> None:
    """All cases of gemm share one start without ncu and one with ncu; each has its own report and times."""
    cases = [case.name for case in find_workload("gemm").cases]
    together, under, alone, calls = all_cases(cases)
    result = run("collect", "gemm", "--all-cases")
    assert result.exit_code == 0, result.stderr
    assert f"un-profiled: {len(cases)} of {len(cases)} cases, in one start of PyTorch" in result.stderr
    assert f"gemm: {len(cases)} cases under one ncu, in one start of PyTorch" in result.stderr
    assert "the program was started 2 times" in result.stderr
    assert (len(together.read_text()), len(under.read_text()), alone.exists(), _profiles(calls)) == (1, 1, False, 1)
    reports = [gpu_box / "out" / f"gemm.{name}.ncu-rep" for name in cases]
    assert [[kernel.function_name for kernel in read_report(one, "x").kernels] for one in reports] == [
        [f"of_{name}"] for name in cases
    ]
    kept = [read_unprofiled(report) for report in reports]
    assert [one.wall_ns for one in kept if one] == [1_000_000 + at for at in range(len(cases))]
    assert len(list((gpu_box / "out").iterdir())) == 2 * len(cases)  # the common report is deleted
    assert result.stderr.splitlines()[-1] == f"wrote {Path('out') / reports[-1].name}"


def test_a_case_that_is_not_in_the_report_of_all_is_profiled_alone(
    gpu_box: Path, all_cases: Callable[..., list[Path]]
) -> None:
    """A case missing in the common report, because of the cap or a failure, is profiled alone."""
    cases = [case.name for case in find_workload("gemm").cases][:3]
    _, _, alone, calls = all_cases(cases, missing=cases[1:2])
    result = run("collect", "gemm", *(part for name in cases for part in ("--case", name)))
    assert result.exit_code == 0, result.stderr
    assert f"warning: gemm.{cases[1]}: none of its kernels is in the report" in result.stderr
    assert (len(alone.read_text()), _profiles(calls)) == (1, 2)
    assert all((gpu_box / "out" / f"gemm.{name}.unprofiled.json").exists() for name in cases)


def test_where_one_ncu_for_all_fails_each_case_has_its_own(
    gpu_box: Path, all_cases: Callable[..., list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the common ncu run fails, its error is shown, and each case is profiled by itself."""
    cases = [case.name for case in find_workload("gemm").cases][:2]
    all_cases(cases)
    monkeypatch.setattr(profiling, "profile_cases", _fails)
    result = run("collect", "gemm", *(part for name in cases for part in ("--case", name)))
    assert result.exit_code == 0, result.stderr
    assert "error: gemm: the report is damaged" in result.stderr
    assert all((gpu_box / "out" / f"gemm.{name}.ncu-rep").exists() for name in cases)


def _fails(*_: object) -> None:
    raise InputError("the report is damaged")


def test_a_case_that_the_one_process_did_not_measure_runs_alone(
    gpu_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases with a wrong result or a crash, and those after a crash, run in their own process."""
    alone = tmp_path / "alone"
    lines = [{"case": "naive", "ok": True, "wall_ns": 7}, {"case": "fused", "ok": False, "wall_ns": 8}]
    monkeypatch.setattr(planning, "require_torch", lambda: None)
    monkeypatch.setattr(planning, "command_for", lambda *_, **__: _counted(alone, {"wall_ns": 9}))
    monkeypatch.setattr(
        profiling, "measuring_command", lambda *_, **__: _counted(tmp_path / "together", *lines, status=-6)
    )
    names = [case.name for case in find_workload("attention").cases]
    result = run("collect", "attention", "--all-cases")
    assert result.exit_code == 0, result.stderr
    assert f"un-profiled: 1 of {len(names)} cases, in one start of PyTorch" in result.stderr
    assert len(alone.read_text()) == len(names) - 1 + len(names)  # the remaining cases without ncu, and all under ncu
    kept = [read_unprofiled(gpu_box / "out" / f"attention.{name}.ncu-rep") for name in names]
    assert [one.wall_ns for one in kept if one] == [7 if name == "naive" else 9 for name in names]


@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize("option", ["--no-unprofiled", "--dry-run"])
def test_nothing_runs_without_ncu_where_that_was_not_asked_for(
    gpu_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """A dry run and `--no-unprofiled` do not run the cases without ncu."""
    starts = tmp_path / "together"
    monkeypatch.setattr(profiling, "measuring_command", lambda *_, **__: _counted(starts))
    assert run("collect", "attention", "--all-cases", option).exit_code == 0
    assert not starts.exists()
    assert not list(gpu_box.rglob("*.unprofiled.json"))


def test_a_case_that_fails_costs_only_itself(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that needs a type missing on the GPU fails alone; the others are profiled, and its exit code is kept."""
    fails = (sys.executable, "-ISc", "import sys; sys.stderr.write('error: no fp8 here\\n'); sys.exit(3)")
    monkeypatch.setattr(planning, "require_torch", lambda: None)
    monkeypatch.setattr(planning, "command_for", lambda _, case, *__, **___: fails if case.name == "naive" else PROGRAM)
    monkeypatch.setattr(profiling, "measuring_command", lambda *_, **__: fails)
    result = run("profile", "attention", "--case", "naive", "--case", "fused")
    assert result.exit_code == 3
    assert (
        "error: attention.naive: the program failed with status 3, without the profiler: no fp8 here" in result.stderr
    )
    assert sorted(path.name for path in (gpu_box / "out").glob("*.ncu-rep")) == ["attention.fused.ncu-rep"]
    assert (gpu_box / "out" / "attention.html").exists()


@pytest.mark.usefixtures("torch_here")
def test_what_is_in_the_way_of_all_cases_is_told_once(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If ncu may not read counters, the second case is not tried."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "permission")
    result = run("profile", "attention", "--all-cases")
    assert result.exit_code == 3
    assert result.stderr.count("error: ") == 1
    assert not list(gpu_box.rglob("*.html"))


def test_further_options_reach_ncu(gpu_box: Path) -> None:
    """`--ncu-args` is split like a shell does, with quotes, and may be repeated."""
    further = ("--ncu-args", "--section MemoryWorkloadAnalysis", "--ncu-args", "--kernel-id '::regex:a b:2'")
    argv = shlex.split(run("collect", "--dry-run", "--detail", "quick", *further, "--", "x").stdout)
    assert argv[1:5] == ["--section", "MemoryWorkloadAnalysis", "--kernel-id", "::regex:a b:2"]
    assert argv[0] == str(gpu_box.parent / "bin" / "ncu")


@pytest.mark.parametrize(
    ("given", "says", "hint"),
    [
        (
            "--kernel-name gemm",
            "cannot contain `--kernel-name`: rooflens sets ncu's --kernel-name itself",
            "give --kernel ",
        ),
        ("-k gemm", "cannot contain `-k`: rooflens sets ncu's --kernel-name itself", "give --kernel "),
        (
            "--launch-cou=3",
            "cannot contain `--launch-cou`: rooflens sets ncu's --launch-count itself",
            "--launch-count",
        ),
        ("--call-stack --set full", "cannot contain `--set`", "give --detail"),
        ("--kill yes", "cannot contain `--kill`", "give --kill"),
        ("-o mine", "cannot contain `-o`: rooflens sets ncu's --export itself", "give -o"),
        ("--log-file x", "cannot contain `--log-file`", "it is always set: leave it out"),
        ("--query-metrics", "cannot contain `--query-metrics`: ncu would write no report", "for example"),
        ("-i old.ncu-rep", "cannot contain `-i`: ncu would write no report", "for example"),
        ("python train.py", "begins with `python`, which is not an ncu option", "for example"),
        ("--section 'x", "cannot be split: No closing quotation", "quote its parts"),
    ],
)
def test_what_rooflens_sets_is_refused_in_further_options(gpu_box: Path, given: str, says: str, hint: str) -> None:
    """An option that rooflens sets itself is refused in --ncu-args in every spelling; nothing runs."""
    result = run("collect", "--ncu-args", given, "--", "/bin/touch", "ran")
    assert result.exit_code == 2
    assert f"error: --ncu-args {says}" in result.stderr
    assert hint in result.stderr
    assert list(gpu_box.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [(), ("--",), ("attention", "--", "x"), ("--case", "a", "--", "x"), ("attention", "second"), ("attention", "--no")],
)
def test_what_to_run_must_be_one_thing(gpu_box: Path, arguments: tuple[str, ...]) -> None:  # noqa: ARG001 - a place
    """Giving neither workload nor command, both, or a case without a workload is wrong usage."""
    assert run("collect", *arguments).exit_code == 2


def test_an_unknown_workload_is_named(gpu_box: Path) -> None:  # noqa: ARG001 - a place
    """An unknown workload is wrong usage."""
    result = run("collect", "nosuch")
    assert result.exit_code == 2
    assert "no workload is called `nosuch`" in result.stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "-u", "scripts/train.py", "--x"), "train"),
        (("./build/a.out",), "a"),
        (("bash", "run.sh"), "run"),
        (("torchrun", "--nproc", "1", "x.py"), "x"),
    ],
)
def test_reports_are_named_after_what_runs(command: tuple[str, ...], name: str) -> None:
    """Reports are named after the script, else after the program."""
    assert planning.command_target(command).name == name


def test_the_help_names_the_default_cap() -> None:
    """The cap in the help text is the real default; it is a literal so that help imports nothing."""
    assert f"[default: {DEFAULT_MAX_LAUNCHES}]" in run("collect", "--help").output
    assert "collect [OPTIONS] (WORKLOAD | -- COMMAND...)" in run("collect", "--help").output


def test_progress_is_one_line() -> None:
    """The progress line shows kernels done, time and the current kernel, and suspects a hang only after a while."""
    assert progress_line(Progress("running", 3.2)) == "running the program without ncu, 3 s"
    assert progress_line(Progress("profiling", 9.0, 2, "gemm", 5)) == "profiling: 2 done, 5 passes, 9 s, gemm"
    assert progress_line(Progress("profiling", 1.0, 0, "\x1b[31mred")).endswith(" ?[31mred")
    assert "--replay-mode application" in progress_line(Progress("profiling", 300.0, 0, "nccl", None, 300.0))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_process_and_no_file(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Ctrl-C during a hang ends ncu and its children, prints a message and exits with 130."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "hang")
    monkeypatch.setenv(TEST, str(gpu_box))
    # Quick the first time, when it runs without ncu; forever the second.
    program = (sys.executable, "-ISc", "import os, sys, time; first = not os.path.exists('seen'); open('seen', 'w'); time.sleep(0 if first else 60)")  # fmt: skip # noqa: E501 - one program
    command = [sys.executable, "-c", START, "collect", "--", *program]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603 - ours
    deadline_s = time.monotonic() + 15
    while not list(gpu_box.rglob("*.partial.ncu-rep")) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert len(left_processes(str(gpu_box))) >= 4
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=45)
    assert process.returncode == 130
    assert "error: stopped before the end: nothing was written" in stderr
    assert "Traceback" not in stderr
    assert left_processes(str(gpu_box)) == []
    assert [path.name for path in gpu_box.rglob("*") if path.is_file()] == ["seen"]


@pytest.mark.parametrize("written", ["x.ncu-rep", "x.ncu-repz"])
def test_collecting_needs_no_reader(
    gpu_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """`collect` works without protobuf, pyarrow, wcwidth and ncu-report, as on a bare GPU machine."""
    if written == "x.ncu-repz":
        monkeypatch.setenv(fake_ncu.REPORT, str(pack(Path(os.environ[fake_ncu.REPORT]), tmp_path / "packed")))
    blocked = "google pyarrow wcwidth ncu_report jinja2 numpy pandas vl_convert msgspec"
    code = f"import sys; sys.modules.update(dict.fromkeys('{blocked}'.split())); {START}"
    command = [sys.executable, "-c", code, "collect", "-o", "x.ncu-rep", "--", "/bin/true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.stderr.splitlines()[-1] == f"wrote {written}", done.stderr
    assert (gpu_box / written).exists()


@pytest.mark.parametrize("kept", ["x.ncu-rep.incomplete", "x.ncu-repz.incomplete"])
def test_a_bare_box_counts_what_it_keeps(
    gpu_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """Without a reader the kernels of a partial report are counted; if it cannot be unpacked, ncu's log tells."""
    is_unpacked = kept.startswith("x.ncu-rep.") or sys.version_info >= (3, 14)
    holds = "4 complete kernels" if is_unpacked else "3 kernels by ncu's log"
    if kept.startswith("x.ncu-repz"):
        monkeypatch.setenv(fake_ncu.REPORT, str(pack(Path(os.environ[fake_ncu.REPORT]), tmp_path / "packed")))
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "broken_off")
    blocked = "google pyarrow wcwidth ncu_report jinja2 numpy pandas vl_convert msgspec"
    code = f"import sys; sys.modules.update(dict.fromkeys('{blocked}'.split())); {START}"
    command = [sys.executable, "-c", code, "collect", "-o", "x.ncu-rep", "--", "/bin/true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 1
    assert f"the report so far is kept, {holds}: `rooflens analyze {kept}`" in done.stderr
    assert (gpu_box / kept).exists()


def test_every_option_is_documented() -> None:
    """The page about collecting names all options of both commands."""
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "collecting.md").read_text(encoding="utf-8")
    options = {name for command in (collect, profile) for option in command.params for name in option.opts}
    assert [name for name in options if name.startswith("--") and name not in text] == []
