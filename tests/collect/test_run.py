from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import fake_ncu
from support.left_processes import TEST, left_processes
from support.packing import pack

from rooflens import processes
from rooflens.collect.command import Collection, Ncu, find_ncu
from rooflens.collect.log import LogFollower, Progress
from rooflens.collect.run import Collected, check_place, collect, reset_clocks
from rooflens.errors import EnvironmentMissingError, InputError, RooflensError, StoppedError
from rooflens.failures import FAILURES, PROGRAM_FAILURES, explain
from rooflens.ingest.reports.container import inspect
from rooflens.ingest.reports.unpacking import INCOMPLETE_SUFFIX, unpacked

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.*ncu\.log:pytest.PytestUnraisableExceptionWarning"),
]
"""Signals may arrive between opening ncu's log and the `with` that closes it."""


SLEEP = (sys.executable, "-ISc", "import time; time.sleep(60)")
TRUE = ("/bin/true",)


@pytest.fixture
def bin_folder(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in ncu on PATH."""
    folder = tmp_path / "bin"
    fake_ncu.install(folder)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv(TEST, str(tmp_path))
    monkeypatch.setenv(fake_ncu.REPORT, str(fixtures / "synthetic" / "attention.synthetic.ncu-rep"))
    return folder


def take(tmp_path: Path, behaviour: str, program: tuple[str, ...] = TRUE, **options: object) -> Collected:
    """Collect with a given behaviour of the stand-in."""
    os.environ[fake_ncu.BEHAVIOUR] = behaviour
    timeout_s = options.pop("timeout_s", None)
    on_progress = options.pop("on_progress", lambda _: None)
    output = tmp_path / "new" / f"a 100%i{options.pop('suffix', '.ncu-rep')}"
    collection = Collection(program, output, ("gpu__time_duration.sum",), **options)  # type: ignore[arg-type]
    return collect(Ncu("ncu", (2025, 3)), collection, timeout_s, on_progress)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _clean_behaviour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "success")


def left_files(tmp_path: Path) -> list[str]:
    """List the files in the report's folder."""
    return sorted(path.name for path in (tmp_path / "new").iterdir())


def test_a_report_appears_under_its_name_alone(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """A successful run leaves exactly the complete report, even if its name has characters that ncu expands."""
    collected = take(tmp_path, "success")
    assert left_files(tmp_path) == ["a 100%i.ncu-rep"]
    assert inspect(collected.report).result_count > 0
    assert (collected.profiled_count, collected.max_passes, collected.capped) == (3, 9, False)
    assert collected.warnings == ("Something is a little odd.",)


def test_progress_is_told_while_ncu_runs(tmp_path: Path, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - on PATH
    """The callback sees kernels finish one by one, with name, passes and increasing time."""
    monkeypatch.setenv("FAKE_NCU_PAUSE", "0.15")
    seen: list[Progress] = []
    take(tmp_path, "success", on_progress=seen.append)
    assert {0, 1, 2, 3} <= {progress.profiled_count for progress in seen}
    assert {"kernel_0", "kernel_1", "kernel_2"} <= {progress.kernel for progress in seen}
    assert seen[-1].passes == 9
    assert seen[-1].elapsed_s > seen[0].elapsed_s
    assert seen[0].doing == "profiling"


EXPECTED = {
    "permission": (3, "only root may (ERR_NVGPUCTRPERM)", "NVreg_RestrictProfilingToAdminUsers=0"),
    "no_kernels": (1, "no kernel was profiled", "--nvtx-include"),
    "no_driver": (3, "ncu finds no NVIDIA driver", "machine with an NVIDIA GPU"),
    "resource": (3, "another tool holds the GPU's counters", "dcgmi profile --pause"),
    "resource_or_permission": (3, "held by another tool, or only root may read them", "dcgmi profile --pause"),
    "lock": (3, "lock file belongs to another user", "TMPDIR"),
    "temporary_folder": (3, "temporary folder", "TMPDIR"),
    "metric": (1, "no metric `nonsense__x.sum`", "rooflens metrics"),
    "range_metric": (1, "cannot count `sm__sass_inst_executed.sum` for ranges", "--replay-mode kernel"),
    "range_option": (2, "ncu has no `--kernel-name` where it replays ranges", "--replay-mode kernel"),
    "range_mode": (2, "ncu has no `--filter-mode per-launch-config` where it replays ranges", "leave it out"),
    "graph_replay": (2, "whole CUDA graphs with kernel replay only", "--graph-profiling"),
    "no_ranges": (1, "no range was profiled", "cudaProfilerStart"),
    "no_graphs": (1, "no kernel was profiled", "--nvtx-include"),
    "section": (1, "ncu has no section `Nope`", "--list-sections"),
    "option": (3, "too old for `--graph-profiling`", "newer"),
    "old_filter_mode": (3, "too old for `--filter-mode`", "newer"),
    "mig_clocks": (3, "split by MIG: its clocks", "--clock-control none"),
    "mig_metrics": (3, "split by MIG: counters", "whole GPU"),
    "clocks": (3, "may not lock the GPU's clocks", "--clock-control none"),
    "wsl": (3, "under WSL", "Windows driver"),
    "vgpu": (3, "virtual GPU", "enable_profiling"),
    "unsupported": (3, "does not support the GPU", "--list-chips"),
    "old_driver": (3, "driver is too old", "--ncu"),
    "injection": (3, "another tool injects itself", "unset CUDA_INJECTION64_PATH"),
    "confidential": (3, "confidential-computing", "normal mode"),
    "mining": (3, "mining", "another GPU"),
    "disk": (3, "the disk is full", "TMPDIR"),
    "unwritable": (1, "could not write the report", "-o"),
    "memory": (3, "no memory left to save", "--replay-mode application"),
    "kernel": (1, "ncu failed on kernel `saxpy`", "--replay-mode application"),
    "program": (1, "ended with status 7 under ncu", "--launch-count"),
    "unheard_of": (1, "status 3: The moon is in the wrong phase. / Try again later.", "--dry-run"),
    "nothing": (1, "ncu succeeded but wrote no report", "--dry-run"),
    "free_memory": (3, "too little free memory", "`--cache-control none`, fewer counters (`--detail quick`)"),
    "sandbox": (3, "LibraryNotLoaded): this is a sandbox such as gVisor", "NVIDIA_DRIVER_CAPABILITIES=all"),
    "library_version": (3, "does not match the NVIDIA driver", "nvidia-smi"),
    "counters_fail": (3, "ncu cannot start its profiler: `InvalidConfiguration`", "nvidia-smi"),
    "prepare": (3, "could not prepare a kernel", "CUDA version"),
    "attach": (3, "could not connect to the program", "--port 50000"),
    "mps": (3, "MPS) is in the way", "nvidia-cuda-mps-control"),
    "sli": (3, "SLI", "switch SLI off"),
    "protected": (3, "protected-memory mode", "normal mode"),
    "blank_in_path": (3, "a space in its path", "install it elsewhere"),
    "no_program": (3, "ncu cannot start `./tarin`", "on PATH"),
    "expression": (
        2,
        "not a valid regular expression: Unmatched marking parenthesis",
        "without template arguments",
    ),
    "mismatch": (1, "did not launch the same kernels each time", "fixed seeds"),
    "no_gpu_call": (1, "ended under ncu before it used the GPU", "--target-processes all"),
    "out_of_memory": (1, "ran out of GPU memory under ncu", "--cache-control none"),
    "launch_failure": (1, "a kernel of the program failed under ncu", "compute-sanitizer"),
    "two_causes": (
        3,
        "holds the GPU's counters; also: ncu may not lock the GPU's clocks",
        "; also: `--clock-control none`",
    ),
    "machine_and_names": (3, "(LibraryNotLoaded)", "rooflens metrics"),
    "broken_off": (1, "ncu failed on kernel `kernel_3`", ".ncu-rep.incomplete'"),
    "half": (1, "cannot be read: truncated", "profile again"),
    "dies": (1, "ncu was killed (SIGKILL, signal 9); the largest process had ", "`--launch-skip 1` goes on after"),
    "crashes": (1, "ncu crashed (SIGSEGV, signal 11); the largest process had ", "`ncu --clock-control reset`"),
    "no_counters": (3, "gives no access to the GPU's counters", "passes the whole GPU through"),
    "other_confidential": (3, "confidential-computing", "normal mode"),
    "locking": (3, "may not lock the GPU's clocks", "--clock-control none"),
    "reset_clocks": (3, "may not give back the GPU's clocks", "`ncu --clock-control reset` as root"),
    "not_saved": (1, "could not write the report", "-o"),
    "pm_sampling": (3, "cannot be sampled over time", "`--detail standard`"),
    "device_graphs": (1, "single kernels of a CUDA graph", "`--graph-profiling graph`"),
    "stream_capture": (3, "captures a stream", "update the driver"),
    "other_kernels": (1, "no kernel was profiled", "it launched `relu_kernel`, `gemm_bf16`, `softmax`; also: check"),
}
"""Behaviour of the stand-in -> exit code, part of the message, part of the hint."""


@pytest.mark.parametrize("behaviour", EXPECTED)
def test_each_failure_has_its_message_hint_and_exit_code(tmp_path: Path, bin_folder: Path, behaviour: str) -> None:  # noqa: ARG001 - on PATH
    """Messages of ncu become one error with cause and remedy, and partial files are kept under other names."""
    exit_code, message, hint = EXPECTED[behaviour]
    with pytest.raises(RooflensError) as caught:
        take(tmp_path, behaviour)
    assert caught.value.exit_code == exit_code
    assert message in str(caught.value)
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value) + caught.value.hint
    part = [f"a 100%i.ncu-rep{INCOMPLETE_SUFFIX}"] * (behaviour in {"half", "dies", "crashes", "broken_off"})
    assert left_files(tmp_path) == [*part, "a 100%i.ncu.log"]
    assert ("a 100%i.ncu.log`" in caught.value.hint, "rooflens analyze" in caught.value.hint) == (True, bool(part))


def test_every_failure_of_the_stand_in_is_expected() -> None:
    """The table above covers every failure of the stand-in, and every row of our table matches one."""
    assert set(fake_ncu.FAILURES) <= set(EXPECTED)
    says = fake_ncu.FAILURES.values()
    messages = [str(explain(one.log, one.stdout + one.stderr, one.status)) for one in says]
    for failure in (*FAILURES, *PROGRAM_FAILURES):
        start = failure.message.partition("{}")[0]
        assert any(message.startswith(start) for message in messages), failure.message


def test_kernels_that_were_there_are_listed_nearest_first(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """If the filter matched no kernel, ncu's list is repeated, starting with the most similar name."""
    with pytest.raises(InputError, match="no kernel was profiled") as caught:
        take(tmp_path, "other_kernels", kernel="regex:gemm_fp16")
    assert caught.value.hint.startswith("it launched `gemm_bf16`, `relu_kernel`, `softmax`; also: check --kernel")


@pytest.mark.usefixtures("bin_folder")
@pytest.mark.parametrize(
    ("kernel", "options", "says"),
    [
        ("ncclDevKernel_AllReduce", (), "inside `ncclDevKernel_AllReduce`, which waits for other ranks"),
        ("gemm", (), "did not finish within"),
        ("ncclDevKernel", ("--communicator", "tcp"), "did not finish within"),
    ],
)
def test_a_kernel_that_waits_for_other_ranks_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, options: tuple[str, ...], says: str
) -> None:
    """A waiting kernel that does not finish in time is named, with a remedy; other kernels may take longer."""
    monkeypatch.setenv("FAKE_NCU_KERNEL", kernel)
    monkeypatch.setattr("rooflens.collect.run.WATCHDOG_SECONDS", 0.3)
    with pytest.raises(InputError) as caught:
        take(tmp_path, "hang", SLEEP, options=options, timeout_s=1.5)
    assert says in str(caught.value)
    assert "`ncu --clock-control reset`" in caught.value.hint
    assert caught.value.exit_code == 1
    assert left_processes(str(tmp_path)) == []


def test_clocks_are_given_back_on_request(bin_folder: Path) -> None:
    """Clocks that a killed ncu left locked are unlocked by ncu itself; its refusal is an environment error."""
    ncu = Ncu(str(bin_folder / "ncu"))
    reset_clocks(ncu)
    os.environ[fake_ncu.BEHAVIOUR] = "no_driver"
    with pytest.raises(EnvironmentMissingError, match="failed: Failed to load the driver"):
        reset_clocks(ncu)


def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """A file in place of the output folder is found at once, and nothing is created."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="no permission to write in"):
        check_place(tmp_path / "file" / "deep" / "x.ncu-rep")
    check_place(tmp_path / "new" / "deep" / "x.ncu-rep")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("behaviour", ["half", "nothing", "unheard_of"])
def test_a_full_disk_is_named_where_ncu_does_not(
    tmp_path: Path,
    bin_folder: Path,  # noqa: ARG001 - on PATH
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
) -> None:
    """On a full disk that is the error: for a missing or cut report, and before a program starts."""
    monkeypatch.setattr("rooflens.collect.run.shutil.disk_usage", lambda _: SimpleNamespace(free=2048))
    with pytest.raises(EnvironmentMissingError, match=r"^the disk behind `.*` is full: 2 KiB are free\n") as caught:
        take(tmp_path, behaviour)
    assert "write to another disk with -o" in caught.value.hint
    with pytest.raises(EnvironmentMissingError, match="is full: 2 KiB are free"):
        check_place(tmp_path / "new" / "x.ncu-rep")


def test_words_that_the_program_chose_are_no_causes() -> None:
    """Kernel names and program output that look like ncu's messages are ignored."""
    named = '==PROF== Profiling "LibraryNotLoaded" - 0: 0%\n==ERROR== UnknownError\n'
    error = explain(named, "No space left on device, says the program\n", 1)
    assert str(error) == "ncu failed with status 1: UnknownError"


def test_what_was_profiled_before_a_failure_is_kept_whole(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """Kernels profiled before a failure are kept in a partial report, with ncu's log, command and last words."""
    with pytest.raises(InputError) as caught:
        take(tmp_path, "broken_off")
    kept = caught.value.kept
    assert kept is not None
    assert kept.read_bytes() == Path(os.environ[fake_ncu.REPORT]).read_bytes()
    log = (tmp_path / "new" / "a 100%i.ncu.log").read_text()
    assert log.startswith("$ ncu --config-file off --export ")
    assert 'Failed to profile "kernel_3"' in log
    assert log.endswith("--- stderr\nthe program's last words\n")
    take(tmp_path, "success")
    assert left_files(tmp_path) == ["a 100%i.ncu-rep", kept.name]


@pytest.mark.usefixtures("bin_folder")
@pytest.mark.parametrize(("named", "told"), [(0, (4, 0, False)), (5, (5, 3, False))])
def test_application_replay_counts_its_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: int, told: tuple[int, int, bool]
) -> None:
    """In application replay the report tells the number of kernels, since the log repeats or omits them."""
    monkeypatch.setenv("FAKE_NCU_KERNELS", str(named))
    collected = take(tmp_path, "application", replay_mode="application", max_launches=2)
    assert inspect(collected.report).result_count == 4
    assert (collected.profiled_count, collected.max_passes, collected.capped) == told


def test_a_kernel_that_failed_is_not_counted(tmp_path: Path) -> None:
    """A kernel counts as profiled only at 100 %: ncu also prints the passes of a failed kernel."""
    log = tmp_path / "log"
    log.write_text(
        '==PROF== Profiling "a" - 0: 0%\n==WARNING== Backing up device memory in system memory.\n....50%....100% - 9 '
        'passes\n==PROF== Profiling "b" - 1: 0%....50%.... - 19 passes\n==ERROR== Failed to profile "b" in process 1\n'
    )
    progress = LogFollower(log).progress(1.0)
    assert (progress.profiled_count, progress.passes, progress.kernel) == (1, 9, "b")


@pytest.mark.usefixtures("bin_folder")
def test_what_ncu_had_when_it_was_stopped_is_kept(tmp_path: Path) -> None:
    """After Ctrl-C the kernels that ncu wrote are kept as an incomplete report, and named."""
    threading.Timer(0.6, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(StoppedError, match=r"^stopped before the end\n") as caught:
        take(tmp_path, "many", launch_count=900)
    assert "the report so far is kept, 4 complete kernels: `rooflens analyze" in caught.value.hint
    assert left_files(tmp_path) == ["a 100%i.ncu-rep.incomplete", "a 100%i.ncu.log"]


@pytest.mark.parametrize(("count", "is_taken"), [(3, True), (4, False)])
def test_a_program_that_ncu_ends_when_it_has_enough_is_no_failure(
    tmp_path: Path,
    bin_folder: Path,  # noqa: ARG001 - on PATH
    count: int,
    is_taken: bool,  # noqa: FBT001 - a table
) -> None:
    """With --kill the ended program's status is ignored, but too few profiles are an error."""
    if is_taken:
        assert take(tmp_path, "killed", kill=True, launch_count=count).profiled_count == 3
    else:
        with pytest.raises(InputError, match="ended with status 15"):
            take(tmp_path, "killed", kill=True, launch_count=count)


def test_what_a_killed_run_left_is_swept(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """A dead process's partial report is removed by the next run; a living process's is left alone."""
    (tmp_path / "new").mkdir()
    for pid in (2**22 + 1, os.getppid()):
        for suffix in (".ncu-rep", ".ncu-repz", ".ncu-rep.ncu-repz"):
            (tmp_path / "new" / f".a 100%i.{pid}.partial{suffix}").touch()
    take(tmp_path, "success")
    alive = [f".a 100%i.{os.getppid()}.partial{suffix}" for suffix in (".ncu-rep", ".ncu-rep.ncu-repz", ".ncu-repz")]
    assert left_files(tmp_path) == [*alive, "a 100%i.ncu-rep"]


@pytest.fixture
def packing(tmp_path: Path, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the stand-in compress its report; return the uncompressed one."""
    del bin_folder
    plain = Path(os.environ[fake_ncu.REPORT])
    monkeypatch.setenv(fake_ncu.REPORT, str(pack(plain, tmp_path / "packed")))
    return plain


@pytest.mark.parametrize("asked", [".ncu-rep", ".ncu-repz"])
@pytest.mark.parametrize("behind", ["", "z", ".ncu-rep", ".ncu-repz"])
def test_a_compressed_report_is_taken_wherever_ncu_puts_it(
    tmp_path: Path, packing: Path, monkeypatch: pytest.MonkeyPatch, asked: str, behind: str
) -> None:
    """A compressed report always ends up as `NAME.ncu-repz`, alone and complete, whatever name ncu gives it."""
    monkeypatch.setenv(fake_ncu.PUTS_BEHIND, behind)
    collected = take(tmp_path, "success", suffix=asked)
    assert left_files(tmp_path) == ["a 100%i.ncu-repz"]
    assert collected.report.name == "a 100%i.ncu-repz"
    with unpacked(collected.report) as plain:
        assert plain.read_bytes() == packing.read_bytes()


def test_a_plain_report_is_called_so(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """An ncu that does not compress leaves `NAME.ncu-rep`, whichever suffix was requested."""
    assert take(tmp_path, "success", suffix=".ncu-repz").report.name == "a 100%i.ncu-rep"
    assert left_files(tmp_path) == ["a 100%i.ncu-rep"]
    with pytest.raises(InputError, match="does not end in a report's suffix"):
        take(tmp_path, "success", suffix=".txt")


def test_a_report_takes_the_place_of_the_other_kind(tmp_path: Path, packing: Path) -> None:
    """A compressed report replaces an earlier uncompressed report of the same name, unless ncu failed."""
    old = tmp_path / "new" / "a 100%i.ncu-rep"
    old.parent.mkdir()
    old.write_bytes(packing.read_bytes())
    with pytest.raises(InputError):
        take(tmp_path, "metric")
    assert left_files(tmp_path) == [old.name, "a 100%i.ncu.log"]
    take(tmp_path, "success")
    assert left_files(tmp_path) == ["a 100%i.ncu-repz"]


def test_half_a_compressed_report_is_put_aside(tmp_path: Path, packing: Path) -> None:
    """A truncated compressed report is refused, and kept under the name of an incomplete report."""
    with pytest.raises(InputError, match="cannot be read: damaged: the compressed report cannot be unpacked") as caught:
        take(tmp_path, "half")
    del packing
    assert left_files(tmp_path) == [f"a 100%i.ncu-repz{INCOMPLETE_SUFFIX}", "a 100%i.ncu.log"]
    assert f"a 100%i.ncu-repz{INCOMPLETE_SUFFIX}" in caught.value.hint


def test_an_old_report_survives_a_failure(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """A failed run leaves an earlier report unchanged."""
    report = take(tmp_path, "success").report
    before = report.read_bytes()
    with pytest.raises(InputError):
        take(tmp_path, "half")
    assert report.read_bytes() == before


def test_a_hang_ends_at_the_timeout_with_all_children(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """A hanging profile is ended with its children in other sessions, and the hint suggests application replay."""
    with pytest.raises(InputError, match=r"did not finish within 0\.6 s; it was in kernel `ncclDevKernel`") as caught:
        take(tmp_path, "hang", SLEEP, timeout_s=0.6)
    assert "--replay-mode application" in caught.value.hint
    assert left_processes(str(tmp_path)) == []
    assert left_files(tmp_path) == ["a 100%i.ncu.log"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_ncu_and_all_its_children(tmp_path: Path, bin_folder: Path, number: int) -> None:  # noqa: ARG001 - on PATH
    """Ctrl-C, SIGTERM and SIGHUP leave no process and no file."""
    threading.Timer(0.6, lambda: os.kill(os.getpid(), number)).start()
    with pytest.raises(StoppedError):
        take(tmp_path, "hang", SLEEP)
    assert left_processes(str(tmp_path)) == []
    assert left_files(tmp_path) == []


def test_one_that_ignores_signals_is_killed(
    tmp_path: Path,
    bin_folder: Path,  # noqa: ARG001 - on PATH
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An ncu that ignores SIGINT and SIGTERM gets SIGKILL after its grace period."""
    endings = tuple((number, 0.2) for number, _ in processes._ENDINGS)
    monkeypatch.setattr(processes, "_ENDINGS", endings)
    start_s = time.monotonic()
    with pytest.raises(InputError, match="did not finish"):
        take(tmp_path, "stubborn", SLEEP, timeout_s=0.6)
    assert time.monotonic() - start_s < 5
    assert left_processes(str(tmp_path)) == []


def test_the_cap_stops_ncu_and_keeps_what_it_has(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """When profiling each distinct launch once, ncu is interrupted at the cap, and writes what it has."""
    collected = take(tmp_path, "many", max_launches=5, one_of_each=True)
    assert collected.capped
    assert collected.profiled_count >= 5
    assert left_files(tmp_path) == ["a 100%i.ncu-rep"]


def test_a_report_needs_its_suffix(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """A name without `.ncu-rep` is refused: ncu would add it, and the report would have another name."""
    with pytest.raises(InputError, match="does not end in a report's suffix"):
        collect(find_ncu(), Collection(TRUE, tmp_path / "report", ("x.sum",)))


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path, bin_folder: Path) -> None:  # noqa: ARG001 - on PATH
    """A file in place of the output folder is named before anything runs."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        collect(find_ncu(), Collection(TRUE, tmp_path / "file" / "x.ncu-rep", ("x.sum",)))


def test_an_ncu_that_vanished_is_an_error(tmp_path: Path, bin_folder: Path) -> None:
    """An ncu that cannot be started is an environment error."""
    ncu = find_ncu()
    (bin_folder / "ncu").unlink()
    with pytest.raises(EnvironmentMissingError, match="cannot be started"):
        collect(ncu, Collection(TRUE, tmp_path / "x.ncu-rep", ("x.sum",)))
    assert list(tmp_path.glob("*.ncu-rep")) == []
