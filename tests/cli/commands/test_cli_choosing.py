"""What `collect` checks before it starts the user's program, and which launches it then profiles."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support import fake_ncu, fake_nsys, fake_nvcc

from rooflens.cli.group import main
from rooflens.collect import profile as profiling
from rooflens.collect import trial
from rooflens.collect.ranks import NO_COMMUNICATION
from rooflens.errors import InputError
from rooflens.ingest.reports.unprofiled import read_unprofiled

PROGRAM = (sys.executable, "-Sc", "open('started', 'a').write('x')")
"""A program that counts its starts in a file, a letter each."""
ATTENTION = (
    ("void attention_scores_gemm<256, 128, 64>(float *)", 16384, 256, 150, 300),
    ("void attention_scale_softmax<2048>(float *)", 262144, 128, 100, 100),
    ("void gone<1>(float *)", 7, 128, 10, 4500),
    ("ncclDevKernel_AllReduce(int)", 8, 128, 1, 500),
)
"""Kernels as nsys counts them; the first two are in the stand-in's report, and take 55,000 of 100,500 ns."""


@pytest.fixture(autouse=True)
def _nothing_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test run its own trial kernel."""
    monkeypatch.setattr(trial, "_tried", set())


@pytest.fixture
def calls(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the stand-in ncu log its command lines to a file."""
    monkeypatch.setenv(fake_ncu.CALLS, str(gpu_box.parent / "calls"))
    return gpu_box.parent / "calls"


def run(*arguments: object) -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def starts() -> int:
    """Return how often the program was started."""
    return len(Path("started").read_text()) if Path("started").exists() else 0


def option(calls: Path, name: str) -> str | None:
    """Return an option's value in ncu's last command line."""
    argv = shlex.split(calls.read_text().splitlines()[-1])
    return argv[argv.index(name) + 1] if name in argv else None


def test_kernels_are_chosen_by_what_nsys_counted(gpu_box: Path, calls: Path) -> None:
    """If there are too many launches, each kernel is profiled once per shape, and the report's coverage is printed."""
    fake_nsys.install(gpu_box.parent / "bin", ATTENTION)
    result = run("collect", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 0, result.stderr
    assert starts() == 3
    assert option(calls, "--filter-mode") == "per-launch-config"
    assert option(calls, "--kernel-id") == f"::{NO_COMMUNICATION}:1"
    assert option(calls, "--launch-count") is None
    assert "estimate: at most 3 distinct launches x " in result.stderr
    assert "the program was started 3 times" in result.stderr
    assert "in the report: 2 of 4 kernel names, 55 % of the time; without gone<1>: --kernel NAME" in result.stderr


def test_few_launches_are_all_profiled(gpu_box: Path, calls: Path) -> None:
    """Up to --max-launches every launch is profiled, whatever its name and shape."""
    fake_nsys.install(gpu_box.parent / "bin", ATTENTION)
    result = run("collect", "--max-launches", 261, "-o", "x.ncu-rep", "--", *PROGRAM)
    assert (option(calls, "--launch-count"), option(calls, "--kernel-id")) == ("261", None)
    assert "estimate: at most 261 launches x " in result.stderr


def test_of_too_many_shapes_the_longest_are_profiled(gpu_box: Path, calls: Path) -> None:
    """If there are too many shapes, the longest kernels are profiled, and the others are named."""
    shapes = [(f"many<{n}>(int)", n, 128, 1, 10 + n) for n in range(29)]
    fake_nsys.install(gpu_box.parent / "bin", [*ATTENTION, *shapes])
    result = run("collect", "--max-launches", 3, "-o", "x.ncu-rep", "--", *PROGRAM)
    names = "attention_scores_gemm|gone|attention_scale_softmax"
    assert option(calls, "--kernel-id") == f"::regex:^({names})$:1"
    assert "without gone<1>, many<28>, many<27> and 27 more" in result.stderr


@pytest.mark.parametrize("options", [("--nvtx-include", "step"), ("--launch-count", "3"), ("--replay-mode", "range")])
def test_the_users_own_choice_stays(gpu_box: Path, calls: Path, options: tuple[str, ...]) -> None:
    """With an NVTX range or --launch-count, launches are profiled in order."""
    fake_nsys.install(gpu_box.parent / "bin", ATTENTION)
    run("collect", *options, "-o", "x.ncu-rep", "--", *PROGRAM)
    assert option(calls, "--kernel-id") is None
    assert option(calls, "--launch-count") == ("3" if "3" in options else "200")


WHOLE = {
    "range": (("--replay-mode", "range"), "ranges"),
    "app-range": (("--replay-mode", "app-range"), "ranges"),
    "graph": (("--graph-profiling", "graph"), "CUDA graphs"),
}


@pytest.mark.parametrize("mode", WHOLE)
def test_ranges_and_graphs_are_not_counted_by_instruction(gpu_box: Path, calls: Path, mode: str) -> None:
    """Ranges and graphs are profiled without counts by instruction and without a kernel filter.

    The kernels that nsys counted are neither used to choose nor compared with the report.
    """
    fake_nsys.install(gpu_box.parent / "bin", ATTENTION)
    options, whole = WHOLE[mode]
    result = run("collect", *options, "--detail", "deep", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 0, result.stderr
    asked = (option(calls, "--metrics") or "").split(",")
    assert [name for name in asked if "sass" in name or "pcsamp" in name or "inst_executed_true" in name] == []
    assert "dram__bytes_read.sum" in asked
    assert (option(calls, "--kernel-name"), option(calls, "--kernel-id")) == (None, None)
    assert f"metrics count by instruction, which ncu does not do for {whole}" in result.stderr
    assert f"estimate: at most 200 {whole} (how many is not known)" in result.stderr
    assert f"profiled 3 {'workloads' if mode == 'graph' else 'ranges'} in " in result.stderr
    assert "in the report: " not in result.stderr
    assert (gpu_box / "x.ncu-rep").exists()


@pytest.mark.parametrize("mode", WHOLE)
def test_no_kernel_is_chosen_in_ranges_and_graphs(gpu_box: Path, calls: Path, mode: str) -> None:
    """With ranges and graphs `--kernel` is refused before looking for ncu, the program or a GPU."""
    (gpu_box.parent / "bin" / "nvidia-smi").unlink()
    result = run("collect", *WHOLE[mode][0], "--kernel", "gemm", "--", *PROGRAM)
    assert result.exit_code == 2
    assert f"error: --kernel cannot choose kernels where {WHOLE[mode][1]} are profiled whole" in result.stderr
    assert "hint: leave it out; " in result.stderr
    assert (starts(), calls.exists()) == (0, False)


@pytest.mark.parametrize("mode", ["range", "app-range", "application"])
def test_the_command_line_is_read_in_its_mode_before_the_program(gpu_box: Path, calls: Path, mode: str) -> None:
    """The trial finds options that ncu refuses in this mode, so the user's program is not started."""
    options = ("--replay-mode", mode, "--detail", "quick")
    assert run("collect", *options, "-o", "x.ncu-rep", "--", *PROGRAM).exit_code == 0
    read, tried, profiled = (shlex.split(line) for line in calls.read_text().splitlines())
    assert read[-3:] == fake_ncu.IDLE
    assert tried[-1].endswith(fake_ncu.PROBE)
    for name in ("--replay-mode", "--metrics", "--launch-count"):
        assert read[read.index(name) + 1] == profiled[profiled.index(name) + 1]
    before = starts()
    result = run("collect", *options, "--metrics", "inst_executed", "-o", "y.ncu-rep", "--", *PROGRAM)
    assert (result.exit_code, starts()) == ((0, before + 2) if mode == "application" else (1, before))
    assert ("error: ncu cannot count `inst_executed` for ranges" in result.stderr) == (mode != "application")
    assert (gpu_box / "y.ncu.log").exists() == (mode != "application")


def test_the_run_without_ncu_is_not_worth_the_report(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the un-profiled run cannot be written, the report stays, and an older un-profiled run is removed."""
    Path("x.unprofiled.json").write_text("of an older report")

    def full(*_: object) -> None:
        raise InputError("cannot write `x.unprofiled.json`: No space left on device")

    monkeypatch.setattr(profiling, "write_unprofiled", full)
    result = run("collect", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 0
    assert "warning: `x.ncu-rep` is written, but not the figures of the run without ncu" in result.stderr
    assert "No space left on device" in result.stderr
    assert sorted(path.name for path in gpu_box.iterdir()) == ["started", "x.ncu-rep"]


@pytest.mark.parametrize("given", [("--", "train.py", "--lr", "1 e"), ("train.py",)])
@pytest.mark.parametrize("command", ["collect", "profile"])
def test_a_script_without_its_python_gets_the_line_to_type(
    gpu_box: Path, calls: Path, command: str, given: tuple[str, ...]
) -> None:
    """A script that the system cannot start is refused, with or without `--`; an executable script runs."""
    script = gpu_box / "train.py"
    script.write_text("#!/bin/sh\n")
    result = run(command, *given)
    rest = " --lr '1 e'" if "--lr" in given else ""
    assert result.exit_code == 2
    assert "error: `train.py` is a Python script, which does not start by itself" in result.stderr
    assert f"hint: `rooflens {command} -- python train.py{rest}`" in result.stderr
    assert not calls.exists()
    script.chmod(0o755)
    assert run("collect", "-o", "x.ncu-rep", "--", "./train.py").exit_code == 0


def test_without_a_list_the_first_launches_are_profiled(gpu_box: Path, calls: Path) -> None:
    """Without counts the first launches are profiled without a message, and the trial does not start the program."""
    result = run("collect", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 0
    assert starts() == 2
    assert (option(calls, "--filter-mode"), option(calls, "--launch-count")) == (None, "200")
    assert "kernel names" not in result.stderr
    assert (gpu_box / "x.ncu-rep").exists()


TORCH = """
import json, os, sys
class profiler:
    class ProfilerActivity:
        CUDA = "cuda"
    class profile:
        def __init__(self, activities): assert activities == ["cuda"]
        def start(self): pass
        def stop(self): pass
        def export_chrome_trace(self, path):
            with open(path, "w") as file: file.write(os.environ["FAKE_TRACE"])
"""


def event(name: str, grid: int, block: int) -> dict[str, object]:
    """Make a kernel's entry as PyTorch's profiler writes it."""
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "ts": 7.0,
        "dur": 3.0,
        "args": {"grid": [grid, 1, 1], "block": [block, 1, 1]},
    }


@pytest.fixture
def torch_here(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a PyTorch whose profiler sees two kernels."""
    folder = gpu_box.parent / "site"
    folder.mkdir()
    (folder / "torch.py").write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    seen = [event(name, grid, block) for name, grid, block, *_ in ATTENTION[:2] for _ in range(150)]
    other = [{"cat": "cuda_runtime", "name": "cudaLaunchKernel"}, {"cat": "gpu_memcpy", "name": "Memcpy HtoD"}]
    monkeypatch.setenv("FAKE_TRACE", json.dumps({"traceEvents": [*seen, *other]}))


@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize("how", ["script", "module", "code", "grouped"])
def test_pytorchs_profiler_counts_where_nsys_is_missing(gpu_box: Path, calls: Path, how: str) -> None:
    """A Python program runs normally, with its arguments, folder and Python options, and is counted."""
    (gpu_box / "pkg").mkdir()
    check = "import sys, helper; assert sys.argv[1:] == ['--lr', '1'], sys.argv; assert sys.flags.dont_write_bytecode\n"
    (gpu_box / "pkg" / "train.py").write_text(f"{check}open('started', 'a').write('x')\n")
    (gpu_box / "pkg" / "helper.py").write_text("")
    (gpu_box / "helper.py").write_text("")
    code = "import pkg.train"
    ways = {"script": ("pkg/train.py",), "module": ("-m", "pkg.train"), "code": ("-c", code), "grouped": ("-uc", code)}
    result = run("collect", "-o", "x.ncu-rep", "--", sys.executable, "-B", "-W", "ignore", *ways[how], "--lr", "1")
    assert result.exit_code == 0, result.stderr
    assert starts() == 3
    assert option(calls, "--kernel-id") == f"::{NO_COMMUNICATION}:1"
    assert "in the report: 2 of 2 kernel names, 100 % of the time" in result.stderr
    kept = read_unprofiled(gpu_box / "x.ncu-rep")
    assert kept is not None
    assert (kept.source, kept.launches, kept.kernel_ns, kept.gap_share) == ("trace", 300, None, None)
    assert {(one.count, one.time_ns, one.gap_ns) for one in kept.launch_counts} == {(150, 3000, None)}


@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize(
    "trace", ["", "[]", '{"traceEvents": []}', '{"traceEvents": [{"cat": "kernel", "name": "x"}]}']
)
def test_a_trace_that_says_nothing_costs_nothing(
    gpu_box: Path, calls: Path, monkeypatch: pytest.MonkeyPatch, trace: str
) -> None:
    """If the trace is empty or odd, the first launches are profiled."""
    monkeypatch.setenv("FAKE_TRACE", trace)
    result = run("collect", "-o", "x.ncu-rep", "--", sys.executable, "-c", PROGRAM[2])
    assert result.exit_code == 0, result.stderr
    assert starts() == 3
    assert option(calls, "--launch-count") == "200"
    assert (gpu_box / "x.ncu-rep").exists()


@pytest.mark.parametrize(
    ("behaviour", "exit_code", "says"),
    [
        ("permission", 3, "only root may"),
        ("mig_metrics", 3, "split by MIG"),
        ("resource", 3, "another tool holds"),
        ("library_version", 3, "does not match the NVIDIA driver"),
        ("metric", 1, "no metric `nonsense__x.sum`"),
        ("expression", 2, "--kernel is not a valid regular expression"),
        ("pm_sampling", 3, "cannot be sampled over time"),
    ],
)
def test_what_ncu_would_fail_on_is_found_before_the_program(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, exit_code: int, says: str
) -> None:
    """If ncu fails on the trial kernel and says why, the program is not started."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, behaviour)
    result = run("collect", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == exit_code
    assert says in result.stderr
    assert "one kernel was tried first, and the program was not started" in result.stderr
    assert "ncu's messages are kept in `x.ncu.log`" in result.stderr
    assert starts() == 0
    assert [path.name for path in gpu_box.iterdir()] == ["x.ncu.log"]


def test_the_trial_runs_under_the_options_of_the_profile(gpu_box: Path, calls: Path) -> None:
    """The trial uses the requested counters and clocks, and its filter contains the user's expression."""
    options = ("--kernel", "regex:gemm", "--nvtx-include", "step", "--clock-control", "none", "--launch-skip", "9")
    assert run("collect", *options, "-o", "x.ncu-rep", "--", *PROGRAM).exit_code == 0
    tried, profiled = (shlex.split(line) for line in calls.read_text().splitlines()[-2:])
    for name in ("--metrics", "--clock-control", "--cache-control"):
        assert tried[tried.index(name) + 1] == profiled[profiled.index(name) + 1]
    assert tried[tried.index("--kernel-name") + 1] == "regex:gemm|^rooflens_probe$"
    assert not {"--nvtx-include", "--launch-skip"} & set(tried)
    assert tried[-1].endswith("probe.py")
    assert sorted(path.name for path in gpu_box.glob("x.*")) == ["x.ncu-rep", "x.unprofiled.json"]


def test_a_trial_that_fails_by_itself_is_only_a_warning(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the trial fails without a reason from ncu, the program is profiled anyway, with a warning."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "nothing")
    result = run("collect", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 1
    assert starts() == 1
    assert "warning: one kernel could not be profiled on trial: ncu succeeded but wrote no report" in result.stderr
    assert [path.name for path in gpu_box.iterdir() if path.name != "started"] == ["x.ncu.log", "x.ncu-rep"][:1]


def test_a_trial_that_hangs_ends_it(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial that hangs ends the command: ncu would hang on the program too."""
    (gpu_box.parent / "bin" / "ncu").write_text(
        (gpu_box.parent / "bin" / "ncu").read_text().replace("exec", 'case "$*" in *probe.py) sleep 30;; esac; exec')
    )
    monkeypatch.setattr(trial, "_TRIAL_SECONDS", 0.5)
    result = run("collect", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 3
    assert "error: ncu did not profile one kernel of one thread within 0.5 s" in result.stderr
    assert starts() == 0


def test_permission_is_read_before_anything_runs(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the driver denies access to counters, neither ncu nor the program is started."""
    monkeypatch.setattr(trial, "counters_are_open", lambda: False)
    monkeypatch.setattr(trial, "may_administer", lambda: False)
    result = run("collect", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 3
    assert "error: you may not read this GPU's counters" in result.stderr
    assert 'sudo -E env "PATH=$PATH" rooflens ...' in result.stderr
    assert (starts(), calls.exists()) == (0, False)


def test_a_place_that_cannot_be_written_is_seen_first(gpu_box: Path, calls: Path) -> None:
    """If the output folder's name is taken by a file, the command ends before the program."""
    (gpu_box / "out").write_text("")
    result = run("collect", "--", *PROGRAM)
    assert result.exit_code == 1
    assert "error: cannot write `out/" in result.stderr
    assert (starts(), calls.exists()) == (0, False)


def test_checks_can_be_left_out(gpu_box: Path, calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--no-trial` starts the program at once; a process tries the same options only once."""
    monkeypatch.setattr(trial, "counters_are_open", lambda: False)
    monkeypatch.setattr(trial, "may_administer", lambda: False)
    assert run("collect", "--no-trial", "-o", "x.ncu-rep", "--", *PROGRAM).exit_code == 0
    assert calls.read_text().count("probe.py") == 0
    monkeypatch.setattr(trial, "counters_are_open", lambda: True)
    for name in ("y", "z"):
        assert run("collect", "-o", f"{name}.ncu-rep", "--", *PROGRAM).exit_code == 0
    assert calls.read_text().count("probe.py") == 1
    assert (gpu_box / "z.ncu-rep").exists()


def test_a_driver_older_than_the_toolkit_is_found_before_compiling(
    gpu_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver older than the toolkit's CUDA is an environment error, found before compiling."""
    smi = '#!/bin/sh\necho "0, GPU-0123, NVIDIA H200, 9.0, 535.104.05, Disabled"\n'
    (gpu_box.parent / "bin" / "nvidia-smi").write_text(smi)
    nvcc = fake_nvcc.install(tmp_path / "toolkit" / "bin", {})
    monkeypatch.setenv("CUDA_HOME", str(nvcc.parent.parent))
    monkeypatch.setenv("PATH", f"{gpu_box.parent / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    result = run("collect", "saxpy")
    assert result.exit_code == 3
    assert (
        "error: the NVIDIA driver 535.104.05 is too old for nvcc's CUDA 13.0, whose programs need 580" in result.stderr
    )
    assert "CUDA_HOME" in result.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("asked", "given"), [(None, None), ("none", "none"), ("boost", "boost")])
def test_clocks_are_ncus_own_unless_the_user_says(
    gpu_box: Path, calls: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None, given: str | None
) -> None:
    """By default ncu gets no clock option: its own default differs by version, and its report says which it used."""
    monkeypatch.setenv(fake_ncu.CLOCKS, "base boost force-boost none reset")
    options = ("--clock-control", asked) if asked else ()
    assert run("collect", *options, "-o", "x.ncu-rep", "--", *PROGRAM).exit_code == 0
    assert option(calls, "--clock-control") == given
    assert (gpu_box / "x.ncu-rep").exists()


def test_clocks_that_this_ncu_does_not_have_are_named(gpu_box: Path) -> None:
    """`boost` with an ncu before 2026.1 is an environment error that lists what this ncu has."""
    result = run("collect", "--clock-control", "boost", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert result.exit_code == 3
    assert "error: ncu 2025.3.1.0 has no `--clock-control boost`: it has base, none, reset" in result.stderr
    assert (starts(), list(gpu_box.iterdir())) == (0, [])


def test_on_mig_clocks_are_left_alone(gpu_box: Path, calls: Path) -> None:
    """On MIG `none` is passed for the clocks, with a message, since one instance cannot lock them."""
    smi = '#!/bin/sh\necho "0, GPU-0123, NVIDIA H200, 9.0, 580.65.06, Enabled"\n'
    (gpu_box.parent / "bin" / "nvidia-smi").write_text(smi)
    result = run("collect", "-o", "x.ncu-rep", "--", *PROGRAM)
    assert option(calls, "--clock-control") == "none"
    assert "warning: clocks are left alone: MIG does not let one instance lock them" in result.stderr


def test_locked_clocks_are_given_back(gpu_box: Path, calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--clock-control reset` needs no program: ncu unlocks the clocks, or its error is shown."""
    result = run("collect", "--clock-control", "reset")
    assert (result.exit_code, result.stderr) == (0, "the GPU's clocks are as they were\n")
    assert calls.read_text() == "--clock-control reset\n"
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "no_driver")
    assert run("profile", "--clock-control", "reset").exit_code == 3
    assert list(gpu_box.iterdir()) == []


@pytest.mark.parametrize("starter", ["accelerate", "deepspeed", "vllm"])
def test_kernels_that_wait_are_left_out_under_every_starter(gpu_box: Path, calls: Path, starter: str) -> None:
    """Without --kernel, kernels that wait for other ranks are left out with a note; otherwise all run as requested."""
    script = gpu_box.parent / "bin" / starter
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    result = run("collect", "-o", "x.ncu-rep", "--", starter, "launch", "train.py")
    assert option(calls, "--kernel-name") == NO_COMMUNICATION
    assert "note: kernels that wait for other ranks (NCCL, NVSHMEM) run unprofiled" in result.stderr
    assert "--communicator tcp --communicator-tcp-num-peers N" in result.stderr
    run("collect", "--kernel", "gemm", "-o", "y.ncu-rep", "--", starter)
    assert option(calls, "--kernel-name") == "gemm"
    run("collect", "--ncu-args", "--communicator tcp --lockstep-kernel-launch", "-o", "z.ncu-rep", "--", starter)
    assert option(calls, "--kernel-name") is None


def test_ranks_in_step_share_one_ncu_and_no_nvls(gpu_box: Path, calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If ncu moves ranks in step, it profiles `torchrun` as a whole, and NCCL runs without NVLS."""
    monkeypatch.setenv("FAKE_NCU_MORE_HELP", "  --communicator-shmem-num-peers arg")
    monkeypatch.delenv("NCCL_NVLS_ENABLE", raising=False)
    script = gpu_box.parent / "bin" / "torchrun"
    script.write_text('#!/bin/sh\necho "$NCCL_NVLS_ENABLE." >> seen\n')
    script.chmod(0o755)
    one = "--communicator shmem --communicator-shmem-num-peers 2 --lockstep-kernel-launch"
    result = run("collect", "--ncu-args", one, "-o", "x.ncu-rep", "--", "torchrun", "--nproc-per-node", "2", "train.py")
    assert result.exit_code == 0, result.stderr
    assert shlex.split(calls.read_text().splitlines()[-1])[-4:] == ["torchrun", "--nproc-per-node", "2", "train.py"]
    assert Path("seen").read_text() == ".\n0.\n"
    noted = run("collect", "-o", "y.ncu-rep", "--", "accelerate", "x.py")
    assert "--communicator shmem --communicator-shmem-num-peers N" in noted.stderr


@pytest.mark.parametrize("command", ["collect", "profile"])
def test_another_program_called_ncu_is_passed_over(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """npm-check-updates on PATH is named and skipped for the next ncu; alone it does not count as ncu."""
    other = gpu_box.parent / "node"
    other.mkdir()
    (other / "ncu").write_text("#!/bin/sh\necho 17.1.3\n")
    (other / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{other}:{gpu_box.parent / 'bin'}:/usr/bin:/bin")
    result = run(command, "--", *PROGRAM)
    assert result.exit_code == 0, result.stderr
    assert f"warning: `{other / 'ncu'}` is not Nsight Compute and was skipped" in result.stderr


def test_a_name_that_is_no_reports_is_wrong_usage(gpu_box: Path) -> None:
    """`collect -o x.html` is refused before anything runs, with a hint to `profile`."""
    result = run("collect", "-o", "x.html", "--", *PROGRAM)
    assert result.exit_code == 2
    assert "error: `x.html` does not end in a report's suffix" in result.stderr
    assert "`rooflens profile` draws the page" in result.stderr
    assert (starts(), list(gpu_box.iterdir())) == (0, [])
