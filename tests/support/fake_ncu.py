"""Replacement for `ncu` in tests: a program that behaves according to the variable FAKE_NCU.

Its output is that of real ncu: of ncu 2022.3 and 2024.1 run without a GPU, from the texts in their binaries, and from
published logs. It uses only the standard library, and runs by itself.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

BEHAVIOUR, REPORT, VERSION, KNOWN = "FAKE_NCU", "FAKE_NCU_REPORT", "FAKE_NCU_VERSION", "FAKE_NCU_KNOWN"
PUTS_BEHIND, CLOCKS, CALLS = "FAKE_NCU_PUTS_BEHIND", "FAKE_NCU_CLOCKS", "FAKE_NCU_CALLS"
"""The last two: what `--clock-control` takes, as the help lists it; a file that gets the command line of every call."""
PROBE = "probe.py"
"""The bundled program of one kernel, which needs a GPU: it is taken to have run."""
IDLE = ["-IS", "-c", ""]
"""How the program ends that launches nothing."""
_OLD = "base none reset"
_FLAGS = {"--force-overwrite", "--nvtx", "--lockstep-kernel-launch"}
_FAQ = "See https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq for more details."
_SHUTDOWN = (
    '==ERROR== Failed to profile "saxpy" in process 4711\n==PROF== Trying to shutdown target application\n'
    "==ERROR== The application returned an error code (9).\n==ERROR== An error occurred while trying to profile.\n"
    "==WARNING== No kernels were profiled.\n"
)
_CONNECTED = "==PROF== Connected to process 4711 (/home/me/saxpy)\n"


@dataclass(frozen=True)
class Says:
    """What ncu writes to each stream, and its exit code."""

    log: str = ""
    stderr: str = ""
    stdout: str = ""
    status: int = 1


def _driver(message: str) -> Says:
    return Says(log=f"{_CONNECTED}\n==ERROR== An error was reported by the driver:\n==ERROR== {message}\n{_SHUTDOWN}")


FAILURES = {
    "permission": Says(
        log=f"{_CONNECTED}==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
        "Performance Counters on the target device 0. For instructions on enabling permissions and to get more "
        "information see "
        f"https://developer.nvidia.com/ERR_NVGPUCTRPERM\n==PROF== Disconnected from process 4711\n{_SHUTDOWN}"
    ),
    "no_kernels": Says(
        log=f"{_CONNECTED}==PROF== Disconnected from process 4711\n==WARNING== No kernels were profiled.\n", status=0
    ),
    "no_driver": Says(
        stderr="==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).\n",
        log="==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n",
    ),
    "resource": _driver(
        "Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is "
        f"concurrently collecting profiling data. {_FAQ}"
    ),
    "resource_or_permission": _driver(
        "Profiling failed because a driver resource was unavailable or the user does not have permission to access "
        "NVIDIA GPU Performance Counters. Ensure that no other tool (like DCGM) is concurrently collecting profiling "
        f"data. {_FAQ}"
    ),
    "lock": Says(
        log="==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check that this process "
        f"has write permissions on this file. {_FAQ}\n{_SHUTDOWN}",
        status=9,
    ),
    "temporary_folder": Says(
        log="==ERROR== Failed to access the temporary directory.\n"
        "Ensure that /tmp is writable or set the TMPDIR environment variable to another directory.\n"
        "==ERROR== Launching the target application failed.\n"
    ),
    "metric": Says(
        log=f"{_CONNECTED}==ERROR== Failed to find metric regex:^nonsense__x.sum(\\.(sum|min|max|avg))?$\n{_SHUTDOWN}"
    ),
    "range_metric": Says(
        log="==WARNING== Please consult the documentation for current range-based replay mode limitations and "
        "requirements.\n==ERROR== Metric sm__sass_inst_executed.sum is not supported in range replay.\n"
    ),
    "section": Says(
        log="==ERROR== Option '--section Nope' did not match any section.\n"
        "==ERROR== Use --list-sections to see the list of available sections.\n"
    ),
    "option": Says(stdout="==ERROR== unrecognised option '--graph-profiling'. Use --help for further details.\n"),
    "old_filter_mode": Says(
        stderr="the argument for option '--filter-mode' is invalid\n\nUse --help for further details.\n", status=255
    ),
    "mig_clocks": _driver(
        "Cannot lock GPU clock frequencies on MIG! Try locking the clocks externally (e.g. using 'nvidia-smi "
        "--lock-gpu-clocks=tdp,tdp') or profile without fixed frequencies (see '--clock-control')."
    ),
    "mig_metrics": Says(
        log=f"{_CONNECTED}==ERROR== Failed to access the following metrics: pcie__read_bytes.sum. If profiling on a "
        "MIG instance, it is not possible to collect metrics from GPU units that are shared with other MIG instances.\n"
        f"{_SHUTDOWN}"
    ),
    "clocks": _driver("Failed to lock GPU clock frequencies! Try locking the clocks externally."),
    "wsl": Says(
        log=f"{_CONNECTED}==ERROR== Profiling is not supported on device 0 as it uses the Windows Subsystem for Linux "
        "(WSL).\n==WARNING== No kernels were profiled.\n",
        status=0,
    ),
    "vgpu": Says(
        log=f"{_CONNECTED}==ERROR== The user does not have permission to access NVIDIA GPU Performance Counters on the "
        f"target vGPU device 0.\n{_SHUTDOWN}"
    ),
    "unsupported": Says(
        log=f"{_CONNECTED}==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer "
        "--list-chips option.\n==PROF== Disconnected from process 4711\n==WARNING== No kernels were profiled.\n",
        status=0,
    ),
    "old_driver": Says(
        stderr="==ERROR== An error was reported by the driver:\n"
        "==ERROR== Cuda driver is not compatible with Nsight Compute.\n",
        log="==ERROR== The application returned an error code (11).\n",
    ),
    "injection": Says(
        stderr="==ERROR== Another tool/injection might be loaded since CUDA_INJECTION64_PATH is set to /x.so. To run "
        "Nsight Compute unset CUDA_INJECTION64_PATH environment variable.\n"
    ),
    "confidential": _driver(
        "Confidential computing mode detected on device 0. Nsight Compute cannot run in a secure confidential "
        "computing environment."
    ),
    "mining": _driver("ERR_NVCMPGPU - Profiling is not supported on the NVIDIA Crypto Mining Processors (CMP)."),
    "disk": Says(
        log=f'{_CONNECTED}==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 9 passes\n'
        "==ERROR== Failed to write report: No space left on device\n"
    ),
    "unwritable": Says(
        log="==ERROR== Unable to write to file x.ncu-rep. Please verify this file is not locked, and writable.\n"
    ),
    "memory": Says(
        log=f'{_CONNECTED}==PROF== Profiling "saxpy" - 0: 0%\n==WARNING== Backing up device memory in system memory. '
        'Kernel replay might be slow. Consider using "--replay-mode application" to avoid memory save-and-restore.\n'
        f"==ERROR== Unhandled C++ exception: bad allocation\n{_SHUTDOWN}"
    ),
    "free_memory": _driver(
        "Insufficient free memory for profiling on the device. Consider the following options to reduce how much free "
        "memory is required: Set --cache-control none. Use --replay-mode application. Collect fewer metrics. Avoid "
        "collecting source-level metrics together with HW performance metrics."
    ),
    "sandbox": Says(
        log=f"{_CONNECTED}\n==ERROR== An error was reported by the counter measurement library:\n"
        "==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is "
        "loaded.\n==PROF== Trying to shutdown target application\n"
        "==ERROR== The application returned an error code (9).\n",
        status=9,
    ),
    "library_version": Says(log=f"{_CONNECTED}==ERROR== LibraryInvalidVersion\n{_SHUTDOWN}", status=9),
    "counters_fail": Says(
        log=f"{_CONNECTED}==ERROR== Failed to initialize the profiler: InvalidConfiguration.\n"
        "==ERROR== The application returned an error code (9).\n",
        status=9,
    ),
    "prepare": Says(
        log=f"{_CONNECTED}==ERROR== Failed to prepare kernel for profiling\n==ERROR== Unknown Error on device 0.\n"
        f"{_SHUTDOWN}",
        status=9,
    ),
    "attach": Says(
        log="==ERROR== Failed to attach ApiDebugger.\n==ERROR== An error occurred while trying to profile.\n"
        "==WARNING== No kernels were profiled.\n"
    ),
    # We have not seen ncu name MPS: the words are ours, and any error that names it is taken for this.
    "mps": Says(log=f"{_CONNECTED}==ERROR== Profiling is not possible with CUDA MPS.\n{_SHUTDOWN}"),
    "sli": Says(
        log=f"{_CONNECTED}==ERROR== Profiling is not supported on device 0 as it is part of an active SLI group.\n"
        f"{_SHUTDOWN}"
    ),
    "protected": _driver("Protected memory mode detected. Nsight Compute does not support protected memory mode."),
    "blank_in_path": Says(
        log="==ERROR== The installation directory must not contain whitespace characters on this platform.\n"
    ),
    "no_program": Says(
        log="==ERROR== './tarin' does not exist or is not an executable. Please make sure to specify the absolute path "
        "to './tarin' if the executable is not in the local directory.\n",
        status=255,
    ),
    "expression": Says(
        log="==ERROR== Invalid regex provided to --kernel option. Unmatched marking parenthesis ( or \\(.  The error "
        "occurred while parsing the regular expression: '(>>>HERE>>>'.\n",
        status=255,
    ),
    "mismatch": Says(
        log=f"{_CONNECTED}==PROF== Disconnected from process 4711\n==ERROR== Unexpected number of profiled kernels. "
        "Application replay requires that the execution, combined with selected filters, guarantees a consistent set "
        "of kernels in all passes.\n"
    ),
    "no_gpu_call": Says(
        log="==PROF== Target process 3798 terminated before first instrumented API call.\n"
        "==WARNING== No kernels were profiled.\n",
        status=0,
    ),
    "out_of_memory": Says(
        log=f"{_CONNECTED}==ERROR== The application returned an error code (1).\n",
        stderr="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    ),
    "launch_failure": Says(
        log=f"{_CONNECTED}==ERROR== The application returned an error code (1).\n",
        stderr="CUDA error: unspecified launch failure\n",
    ),
    "two_causes": Says(
        log=f"{_CONNECTED}==WARNING== Backing up device memory in system memory.\n"
        "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) "
        f"is concurrently collecting profiling data.\n==ERROR== Failed to lock GPU clock frequencies!\n{_SHUTDOWN}",
        status=9,
    ),
    "machine_and_names": Says(
        log="==ERROR== Failed to find metric nonsense__x.sum\n==ERROR== LibraryNotLoaded\n", status=9
    ),
    "kernel": Says(log=f'{_CONNECTED}==PROF== Profiling "saxpy" - 0: 0%\n==ERROR== UnknownError\n{_SHUTDOWN}'),
    "program": Says(
        log=f'{_CONNECTED}==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 9 passes\n'
        "==PROF== Disconnected from process 4711\n==ERROR== The application returned an error code (7).\n"
    ),
    "unheard_of": Says(log="==ERROR== The moon is in the wrong phase.\n==ERROR== Try again later.\n", status=3),
    "nothing": Says(log=_CONNECTED, status=0),
    "no_counters": _driver("Performance metric collection is not supported on the underlying platform"),
    "other_confidential": _driver(
        "The confidential computing mode set on device 0 is not supported by the current Nsight Compute version."
    ),
    "locking": Says(log=f"{_CONNECTED}==ERROR== Failed to lock clocks.\n{_SHUTDOWN}"),
    "reset_clocks": Says(
        log="==ERROR== Failed to reset GPU clocks. Try manually running 'ncu --clock-control reset'.\n", status=1
    ),
    "not_saved": Says(log="==ERROR== Failed to save the report to file x.ncu-rep\n"),
    "pm_sampling": Says(log=f"{_CONNECTED}==ERROR== PM Sampling is not supported on device 0.\n{_SHUTDOWN}"),
    "device_graphs": Says(
        log=f"{_CONNECTED}==ERROR== Graph kernel nodes in device-launchable graphs are not supported for profiling.\n"
        f"You can profile complete CUDA graphs using --graph-profiling graph.\n{_SHUTDOWN}"
    ),
    "stream_capture": Says(
        log=f"{_CONNECTED}==ERROR== Profiling during a stream capture on the same context is not supported on this "
        f"driver.\n{_SHUTDOWN}"
    ),
    "range_option": Says(log="==ERROR== Option kernel-name is not supported during range replay.\n"),
    "range_mode": Says(
        log="==ERROR== Option '--filter-mode per-launch-config' is not supported with range-based replay modes.\n"
    ),
    "graph_replay": Says(log="==ERROR== Graph-based profiling is only supported with kernel replay.\n"),
    "no_ranges": Says(log=f"{_CONNECTED}==WARNING== No ranges were profiled.\n", status=0),
    "no_graphs": Says(log=f"{_CONNECTED}==WARNING== No graphs were profiled.\n", status=0),
    "other_kernels": Says(
        log=f"{_CONNECTED}==PROF== Disconnected from process 4711\n==WARNING== No kernels were profiled.\n"
        "Available Kernels:\n1. relu_kernel\n2. gemm_bf16\n3. softmax\n",
        status=0,
    ),
}


def main(arguments: list[str]) -> int:
    """Behave as FAKE_NCU says."""
    if arguments == ["--version"]:
        version = os.environ.get(VERSION, "2025.3.1.0")
        sys.stdout.write(f"NVIDIA (R) Nsight Compute Command Line Profiler\nVersion {version} (build 1) (public)\n")
        return 0
    if arguments[0] == "--query-metrics":
        names = os.environ.get(KNOWN, "")
        sys.stdout.write(names.replace(" ", " Counter byte # of things\n") + "\n")
        return 0 if names else 1
    if arguments == ["--help"]:
        sys.stdout.write(_help())
        return 0
    if CALLS in os.environ:
        with Path(os.environ[CALLS]).open("a") as calls:
            calls.write(shlex.join(arguments) + "\n")
    if arguments == ["--clock-control", "reset"]:
        sys.stderr.write("==ERROR== Failed to load the driver.\n" if os.environ.get(BEHAVIOUR) == "no_driver" else "")
        return int(os.environ.get(BEHAVIOUR) == "no_driver")
    return _run(*split(arguments))


def _run(options: dict[str, str], program: list[str]) -> int:
    behaviour = os.environ.get(BEHAVIOUR, "success")
    log = Path(options["--log-file"])
    if refused := _refused(options):
        return _say(Says(log=f"==ERROR== {refused}.\n"), log)
    if behaviour in FAILURES:
        return _say(FAILURES[behaviour], log)
    if program[-3:] == IDLE:
        return _say(Says(log="==WARNING== No kernels were profiled.\n", status=0), log)
    if program[-1].endswith(PROBE):
        program, behaviour = ["/bin/true"], "success"
    return _BEHAVIOURS[behaviour](log, _report(options["--export"]), program)


def _help() -> str:
    values = "\n".join(f"{'':<42}{value}\n{'':<42}(what it does)" for value in os.environ.get(CLOCKS, _OLD).split())
    return (
        "Usage: ncu [options] [program]\n\nProfile Options:\n"
        "  --cache-control arg (=all)            Control the behavior of the GPU caches during profiling.\n"
        f"  --clock-control arg (=base)           Control the behavior of the GPU clocks. Allowed values:\n{values}\n"
        "                                        \nFilter Profile Options:\n"
        f"  --communicator arg                    tcp, shmem\n{os.environ.get('FAKE_NCU_MORE_HELP', '')}\n"
    )


def split(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Split the command line into ncu's options and the program."""
    options: dict[str, str] = {}
    at = 0
    while at < len(arguments) and arguments[at].startswith("--"):
        is_flag = arguments[at] in _FLAGS
        options[arguments[at]] = "" if is_flag else arguments[at + 1]
        at += 1 if is_flag else 2
    return options, arguments[at:]


def _refused(options: dict[str, str]) -> str:
    """Return the error of ncu 2022.3 and 2024.1 for options refused with ranges and whole graphs; empty if allowed."""
    ranged = options["--replay-mode"] in {"range", "app-range"}
    graphs = options.get("--graph-profiling") == "graph"
    if graphs and options["--replay-mode"] != "kernel":
        return "Graph-based profiling is only supported with kernel replay"
    for name in ("kernel-name", "kernel-id", "import-source", "profile-from-start"):
        if ranged and f"--{name}" in options:
            return f"Option {name} is not supported during range replay"
    for metric in options.get("--metrics", "").split(","):
        if (ranged or graphs) and ("__sass_" in metric or metric.startswith(("memory_", "inst_exec", "thread_inst"))):
            return f"Metric {metric} is not supported in range replay"
    return ""


def _report(export: str) -> Path:
    """Treat the name as ncu does: add the suffix, and read `%%` as `%`."""
    name = export.replace("%%", "%")
    behind = "" if name.endswith(".ncu-rep") else ".ncu-rep"
    return Path(name + os.environ.get(PUTS_BEHIND, behind))


def _say(says: Says, log: Path) -> int:
    log.write_text(says.log)
    sys.stdout.write(says.stdout)
    sys.stderr.write(says.stderr)
    return says.status


def _write(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def _profile(log: Path, index: int, pause_s: float = 0.0) -> None:
    _write(log, f'==PROF== Profiling "kernel_{index}" - {index}: 0%....50%')
    time.sleep(pause_s)
    _write(log, "....100% - 9 passes\n")


def _success(log: Path, report: Path, program: list[str]) -> int:
    _write(log, _CONNECTED)
    done = subprocess.run(program, check=False)  # noqa: S603 - the program of the test
    for index in range(3):
        _profile(log, index, float(os.environ.get("FAKE_NCU_PAUSE", "0")))
    _write(log, "==WARNING== Something is a little odd.\n==PROF== Disconnected from process 4711\n")
    report.write_bytes(_next_report(report.parent).read_bytes())
    _write(log, f"==PROF== Report: {report}\n")
    return done.returncode


def _next_report(folder: Path) -> Path:
    """Use another report from the folder each time, if several are named, separated by `:`."""
    reports = os.environ[REPORT].split(os.pathsep)
    return Path(reports[len(list(folder.glob("[!.]*.ncu-rep"))) % len(reports)])


def _half(log: Path, report: Path, _program: list[str]) -> int:
    _profile(log, 0)
    report.write_bytes(Path(os.environ[REPORT]).read_bytes()[:-100])
    return 0


def _die(log: Path, report: Path, program: list[str]) -> int:
    _half(log, report, program)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def _crash(log: Path, report: Path, program: list[str]) -> int:
    _half(log, report, program)
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def _broken_off(log: Path, report: Path, _program: list[str]) -> int:
    """Fail at the fourth kernel, and write the report of those before it, as ncu does."""
    for index in range(3):
        _profile(log, index)
    _write(
        log, '==PROF== Profiling "kernel_3" - 3: 0%....50%.... - 19 passes\n==ERROR== Failed to profile "kernel_3" in '
    )
    _write(log, "process 24701\n==PROF== Trying to shutdown target application\n")
    _write(log, "==ERROR== The application returned an error code (15).\n==ERROR== An error occurred while trying to ")
    report.write_bytes(Path(os.environ[REPORT]).read_bytes())
    _write(log, f"profile.\n==PROF== Report: {report}\n")
    sys.stderr.write("the program's last words\n")
    return 15


def _application(log: Path, report: Path, _program: list[str]) -> int:
    """Run the program once per pass, and report kernels as FAKE_NCU_KERNELS says: some versions name none."""
    kernels = int(os.environ.get("FAKE_NCU_KERNELS", "0"))
    for number in range(1, 4):
        _write(log, _CONNECTED)
        for index in range(kernels):
            _write(log, f'==PROF== Profiling "kernel_{index}" - {index}: Application replay pass {number}\n')
        _write(log, "==PROF== Disconnected from process 4711\n")
    _write(log, "==PROF== Creating report from application replay data: 0%.....................100%\n")
    report.write_bytes(Path(os.environ[REPORT]).read_bytes())
    _write(log, f"==PROF== Report: {report}\n")
    return 0


def _killed(log: Path, report: Path, _program: list[str]) -> int:
    """End the program after the last requested profile, and return its status."""
    _success(log, report, ["/bin/true"])
    _write(log, "==ERROR== The application returned an error code (15).\n")
    return 15


def _hang(log: Path, report: Path, program: list[str]) -> int:
    """Start children in every possible way, begin to write a report, and never end."""
    for own_session in (False, True):
        subprocess.Popen(program, start_new_session=own_session)  # noqa: S603 - the program of the test
    subprocess.Popen(["/bin/sh", "-c", "setsid sleep 60 & exit 0"]).wait()  # an orphan in its own session
    kernel = os.environ.get("FAKE_NCU_KERNEL", "ncclDevKernel")
    _write(log, f'==PROF== Profiling "{kernel}" - 0: 0%....50%')
    report.write_bytes(b"NVR\0")
    time.sleep(60)
    return 0


def _stubborn(log: Path, report: Path, program: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    return _hang(log, report, program)


def _many(log: Path, report: Path, _program: list[str]) -> int:
    """Profile one kernel after another; when interrupted write the report of those, as ncu does."""
    try:
        for index in range(1000):
            _profile(log, index, 0.02)
    except KeyboardInterrupt:
        _write(log, "==PROF== Received signal\n==PROF== Trying to shutdown target application\n")
        report.write_bytes(Path(os.environ[REPORT]).read_bytes())
        _write(log, f"==ERROR== The application returned an error code (15).\n==PROF== Report: {report}\n")
    return 1


_BEHAVIOURS = {
    "success": _success,
    "half": _half,
    "dies": _die,
    "crashes": _crash,
    "broken_off": _broken_off,
    "application": _application,
    "killed": _killed,
    "hang": _hang,
    "stubborn": _stubborn,
    "many": _many,
}


def install(folder: Path) -> Path:
    """Install this program as `ncu`, and an `nvidia-smi` with one GPU, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _script(folder / "nvidia-smi", 'echo "0, GPU-0123, NVIDIA H200, 9.0, 580.65.06, Disabled"')
    return _script(folder / "ncu", f'exec "{sys.executable}" -IS "{Path(__file__).resolve()}" "$@"')


def _script(path: Path, line: str) -> Path:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
