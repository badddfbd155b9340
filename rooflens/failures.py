"""Explain why profiling failed: a table from ncu's messages to our error, its message and the next step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError, InputError, RooflensError, UsageError
from rooflens.processes import peak_memory_bytes, signal_name

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Failure:
    """One way in which ncu fails.

    Attributes:
        pattern: Regular expression searched for in ncu's messages; its first group fills `{}` in the message.
        error: Class to raise, which sets the exit code.
        message: What went wrong.
        hint: What to do next.
        is_complaint: The message is a consequence of something else, shown only if no cause matches.
    """

    pattern: str
    error: type[RooflensError]
    message: str
    hint: str
    is_complaint: bool = False


NO_PERMISSION = "you may not read this GPU's counters: only root may (ERR_NVGPUCTRPERM)"
PERMISSION_HINT = (
    'run as root, `sudo -E env "PATH=$PATH" rooflens ...`, or with CAP_SYS_ADMIN (containers: `--cap-add '
    "SYS_ADMIN`), or allow all users: put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
    "/etc/modprobe.d/nvidia.conf and reboot"
)
_UNLOCK = "`ncu --clock-control reset` gives the GPU's clocks back where they stayed locked"
_BUSY_HINT = "pause DCGM with `dcgmi profile --pause`, or end the other profiler; afterwards `dcgmi profile --resume`"
_TMPDIR_HINT = "give ncu a folder of your own: `mkdir -p ~/tmp` and `export TMPDIR=~/tmp`"
_REPLAY_HINT = "`--replay-mode application` reruns the program for each pass instead of saving memory"
_BY_HAND = "`--dry-run` prints ncu's command: run it by hand to see all it says"
_CLOCK_HINT = "`--clock-control none` leaves the clocks alone; the page then says so"

FAILURES = (
    Failure(
        r"target vGPU device|InsufficientVGpuPermissions",
        EnvironmentMissingError,
        "this virtual GPU does not let you read its counters",
        "have profiling enabled for the virtual machine (vGPU plugin parameter `enable_profiling`)",
    ),
    Failure(
        r"driver resource was unavailable or the user does not have permission",
        EnvironmentMissingError,
        "the GPU's counters are held by another tool, or only root may read them",
        f"{_BUSY_HINT}; else {PERMISSION_HINT}",
    ),
    Failure(
        r"driver resource was unavailable(?! or the user)|\bResourceUnavailable\b",
        EnvironmentMissingError,
        "another tool holds the GPU's counters",
        _BUSY_HINT,
    ),
    Failure(
        r"ERR_NVGPUCTRPERM|\bInsufficientPermissions\b|"
        r"(?<!or the user )does not have permission to access NVIDIA GPU Performance Counters(?! on the target vGPU)",
        EnvironmentMissingError,
        NO_PERMISSION,
        PERMISSION_HINT,
    ),
    Failure(
        r"uses the Windows Subsystem for Linux|UnsupportedWindowsSubsystemForLinux",
        EnvironmentMissingError,
        "this driver does not allow profiling under WSL",
        "update NVIDIA's Windows driver, and allow all users to access counters in the NVIDIA Control Panel",
    ),
    Failure(
        r"clock frequencies on MIG",
        EnvironmentMissingError,
        "this GPU is split by MIG: its clocks cannot be locked from one instance",
        _CLOCK_HINT,
    ),
    Failure(
        r"Failed to lock (?:GPU(?:'s)? clock frequencies|clocks)|LockingClocksFailed",
        EnvironmentMissingError,
        "ncu may not lock the GPU's clocks",
        _CLOCK_HINT,
    ),
    Failure(
        r"Failed to (?:reset GPU|unlock) clocks",
        EnvironmentMissingError,
        "ncu may not give back the GPU's clocks, which an earlier run locked",
        "run `ncu --clock-control reset` as root, or `nvidia-smi --reset-gpu-clocks`",
    ),
    Failure(
        r"[Cc]onfidential computing mode|\w*Confidential_?Computing_?(?:Permissions|Mode)",
        EnvironmentMissingError,
        "this GPU runs in confidential-computing mode, in which nobody may profile",
        "profile on a GPU in normal mode",
    ),
    Failure(
        r"ERR_NVCMPGPU|UnsupportedCmpConfiguration",
        EnvironmentMissingError,
        "NVIDIA's mining processors cannot be profiled",
        "profile on another GPU",
    ),
    Failure(
        r"[Pp]rotected memory mode",
        EnvironmentMissingError,
        "this GPU runs in protected-memory mode, in which nobody may profile",
        "profile on a GPU in normal mode",
    ),
    Failure(
        r"part of an active SLI group|UnsupportedSliConfiguration",
        EnvironmentMissingError,
        "this GPU is part of an SLI group, and cannot be profiled in it",
        "switch SLI off in the driver's settings",
    ),
    Failure(
        r"==ERROR==.*\bMPS\b",
        EnvironmentMissingError,
        "CUDA's multi-process service (MPS) is in the way",
        "end it with `echo quit | nvidia-cuda-mps-control`, and profile without it",
    ),
    Failure(
        r"LibraryNotLoaded",
        EnvironmentMissingError,
        "ncu finds no driver library for counters (LibraryNotLoaded): this is a sandbox such as gVisor, in which "
        "rented containers often run, or a container or WSL with only a part of the driver",
        "if `dmesg` names gVisor, profile on a machine or VM of your own; start a container of your own with "
        "NVIDIA_DRIVER_CAPABILITIES=all and `--gpus all`; else point --ncu to an ncu of the driver's CUDA version",
    ),
    Failure(
        r"LibraryInvalidVersion",
        EnvironmentMissingError,
        "this ncu does not match the NVIDIA driver (LibraryInvalidVersion)",
        "point --ncu to an Nsight Compute of the driver's CUDA version, which `nvidia-smi` shows",
    ),
    Failure(
        r"Profiling is not supported on (?:this )?device(?: \d+)?\.|\bUnsupportedGpu\b",
        EnvironmentMissingError,
        "this ncu does not support the GPU",
        "`ncu --list-chips` lists those it does: a newer GPU needs a newer ncu, Pascal and Volta an older one",
    ),
    Failure(
        r"[Dd]river is not compatible with Nsight Compute|Insufficient driver version|InsufficientDriverVersion",
        EnvironmentMissingError,
        "the NVIDIA driver is too old for this ncu",
        "update the driver, or point --ncu to an older Nsight Compute",
    ),
    Failure(
        r"CUDA_INJECTION64_PATH",
        EnvironmentMissingError,
        "another tool injects itself into the program (CUDA_INJECTION64_PATH)",
        "`unset CUDA_INJECTION64_PATH`",
    ),
    Failure(
        r"failed to connect to the CUDA driver|Driver could not be loaded",
        EnvironmentMissingError,
        "ncu finds no NVIDIA driver",
        "collect on a machine with an NVIDIA GPU; in a container start it with `--gpus all`",
    ),
    Failure(
        r"create lock file|interprocess lock|InterprocessLockFailed",
        EnvironmentMissingError,
        "ncu's lock file belongs to another user",
        _TMPDIR_HINT,
    ),
    Failure(
        r"Failed to access the temporary directory|Failed to create temporary",
        EnvironmentMissingError,
        "ncu cannot write to its temporary folder",
        _TMPDIR_HINT,
    ),
    Failure(
        r"No space left on device|[Dd]isk (?:is )?full|[Nn]ot enough (?:disk )?space",
        EnvironmentMissingError,
        "the disk is full",
        "free some space, or write elsewhere with -o; TMPDIR chooses where ncu keeps what it saves",
    ),
    Failure(
        r"(?:Performance metric collection is|Query metrics) not supported on (?:the )?underlying platform",
        EnvironmentMissingError,
        "this platform gives no access to the GPU's counters",
        "collect on a machine or VM that passes the whole GPU through: some clouds and emulators do not",
    ),
    Failure(
        r"PM [Ss]ampling is not supported|[Dd]evice (?:does not support PM sampling|is not supported for pm sampling)|"
        r"chip does not support PM sampling",
        EnvironmentMissingError,
        "this GPU cannot be sampled over time (PM sampling), which `--detail deep` asks for",
        "`--detail standard` does without",
    ),
    Failure(
        r"(?:device-launchable graphs|can launch device graphs|set conditional handles|can have conditional nodes|"
        r"which are device-updatable) are not supported",
        InputError,
        "ncu cannot profile single kernels of a CUDA graph that a kernel launches or changes",
        "`--graph-profiling graph` profiles each graph as a whole",
    ),
    Failure(
        r"Profiling during a stream capture",
        EnvironmentMissingError,
        "this driver cannot profile while the program captures a stream into a CUDA graph",
        "update the driver, or profile launches that run after the capture: --launch-skip, --nvtx-include",
    ),
    Failure(
        r"Failed to save (?:the report|profile results?)|Unable to write to file|Could not open (?:report|output) file",
        InputError,
        "ncu could not write the report",
        "give another place with -o",
    ),
    Failure(
        r"Insufficient free memory for profiling",
        EnvironmentMissingError,
        "the GPU has too little free memory for ncu's own data",
        "`--cache-control none`, fewer counters (`--detail quick`), or `--replay-mode application` need less",
    ),
    Failure(
        r"bad allocation|[Oo]ut of memory|\bOutOfMemory\b|Failed to save (?:\w+ )?memory|"
        r"ContextSaveFailed|to save context state|Failed to save (?:block|to backing store)",
        EnvironmentMissingError,
        "there was no memory left to save what the kernel writes",
        _REPLAY_HINT,
    ),
    Failure(
        r"Failed to find metric (?:regex:\^)?(\w+(?:\.\w+)*)",
        InputError,
        "this GPU, or this ncu, has no metric `{}`",
        "`rooflens metrics` lists the names for each chip; --chip tells rooflens which GPU it is",
    ),
    Failure(
        r"Metric (\S+) is not supported in range replay",
        InputError,
        "ncu cannot count `{}` for ranges, nor for whole CUDA graphs",
        "leave it out of --metrics, or profile kernels: `--replay-mode kernel`, `--graph-profiling node`",
    ),
    Failure(
        r"Option '?(?:--)?([^'\n]+?)'? is not supported (?:during range replay|with range-based replay modes)",
        UsageError,
        "ncu has no `--{}` where it replays ranges",
        "leave it out, or use `--replay-mode kernel`",
    ),
    Failure(
        r"Graph-based profiling is only supported with kernel replay",
        UsageError,
        "ncu profiles whole CUDA graphs with kernel replay only",
        "leave out --replay-mode, or --graph-profiling",
    ),
    Failure(
        r"Option '--section (\S+)' did not match any section",
        InputError,
        "ncu has no section `{}`",
        "`ncu --list-sections` lists them",
    ),
    Failure(
        r"unrecognised option '([^']+)'|argument (?:\('[^']*'\) )?for option '([^']+)' is invalid",
        EnvironmentMissingError,
        "this ncu is too old for `{}`",
        "point --ncu to a newer Nsight Compute",
    ),
    Failure(
        r"MIG instance, it is not possible",
        EnvironmentMissingError,
        "this GPU is split by MIG: counters of the parts that its instances share cannot be read",
        "profile on a whole GPU, or an instance that has the whole GPU to itself",
    ),
    Failure(
        r"'([^']+)' does not exist or is not an executable",
        EnvironmentMissingError,
        "ncu cannot start `{}`",
        "give a program that is on PATH, or its path",
    ),
    Failure(
        r"Invalid regex provided to --kernel option\.\s*([^\n]*)",
        UsageError,
        "--kernel is not a valid regular expression: {}",
        "`--kernel regex:EXPRESSION` is matched against names without template arguments and parameters",
    ),
    Failure(
        r"guarantees a consistent|ApplicationReplayMismatch|could be matched across replay passes",
        InputError,
        "the program did not launch the same kernels each time that ncu ran it",
        "application replay needs fixed seeds, sizes and algorithm choices; else use `--replay-mode kernel`",
    ),
    Failure(
        r"installation directory must not contain whitespace",
        EnvironmentMissingError,
        "ncu is in a folder with a space in its path, where it cannot profile",
        "install it elsewhere, and point --ncu to it",
    ),
    Failure(
        r"Failed to prepare (?:kernel|range) for profiling|Unknown [Ee]rror on (?:this )?device",
        EnvironmentMissingError,
        "ncu could not prepare a kernel for profiling, and does not say why",
        "point --ncu to an ncu of the CUDA version that the program was built with; end other profilers (`dcgmi "
        "profile --pause`); `--replay-mode application` does not replay the kernel itself",
        is_complaint=True,
    ),
    Failure(
        r'Failed to profile (?:kernel )?"([^"]*)"',
        InputError,
        "ncu failed on kernel `{}`",
        f"{_REPLAY_HINT}; --kernel, --launch-skip and --launch-count choose other launches",
        is_complaint=True,
    ),
    Failure(
        r"Failed to initialize the profiler: (\w+)",
        EnvironmentMissingError,
        "ncu cannot start its profiler: `{}`",
        "check that the driver works (`nvidia-smi`), and point --ncu to an ncu of its CUDA version",
        is_complaint=True,
    ),
    Failure(
        r"Failed to (?:attach|setup first connection|create (?:profiling session|\w*ApiDebugger)|start \w+ client)",
        EnvironmentMissingError,
        "ncu could not connect to the program it started",
        "it uses ports of 127.0.0.1 from 49152 on, and files in TMPDIR: a firewall, a sandbox or another ncu may block "
        "them; `--ncu-args '--port 50000'` takes other ports",
        is_complaint=True,
    ),
    Failure(
        r"terminated before first instrumented API call|No attachable process found",
        InputError,
        "the program ended under ncu before it used the GPU",
        "check that it uses the GPU without ncu, and in a process that ncu can follow: `--target-processes all`, no "
        "container or remote shell in between",
        is_complaint=True,
    ),
    Failure(
        r"The application returned an error code \((\d+)\)",
        InputError,
        "the program ended with status {} under ncu, though it succeeds without",
        "it may run out of time or memory when kernels are replayed: profile fewer launches with --launch-count",
        is_complaint=True,
    ),
    Failure(
        r"No ranges were profiled",
        InputError,
        "no range was profiled",
        "ranges lie between the program's cudaProfilerStart and cudaProfilerStop, or are named by --nvtx-include: "
        "`NAME` for start/end, `NAME/` for push/pop",
        is_complaint=True,
    ),
    Failure(
        r"No (?:kernels|graphs) were profiled",
        InputError,
        "no kernel was profiled",
        "check --kernel, --nvtx-include and --launch-skip, that the program uses the GPU, and --target-processes all",
        is_complaint=True,
    ),
)
"""All causes that match are reported; if none does, the first complaint, which is a consequence of some cause."""

PROGRAM_FAILURES = (
    Failure(
        r"out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY",
        InputError,
        "the program ran out of GPU memory under ncu, which needs some itself",
        "`--cache-control none`, `--detail quick` or `--replay-mode application` need less; else a smaller problem",
    ),
    Failure(
        r"unspecified launch failure|cudaErrorLaunchFailure|illegal memory access|misaligned address",
        InputError,
        "a kernel of the program failed under ncu",
        "a kernel that overwrites its input, or waits for others, may fail when replayed: `--replay-mode application`; "
        "`compute-sanitizer` finds invalid accesses that otherwise go unnoticed",
    ),
)
"""What the program's own last words mean when ncu says only that it failed."""

_NCU_LINE = re.compile(r"^==(?:ERROR|WARNING)==|^unrecognised option|^the argument ", re.MULTILINE)
_PROGRESS = re.compile(r"^==PROF== (?:Profiling|Connected).*$", re.MULTILINE)
"""Lines that contain names chosen by the program."""

_ENDED_BADLY = re.compile(r"The application returned an error code")
_SHOWN_ERRORS = 2
_SHOWN_KERNELS = 5


def explain(log: str, program_streams: str, status: int | None, kernel: str | None = None) -> RooflensError:
    """Make the error for a failed profile, with every cause that ncu's messages give, and a hint for each.

    If any cause is an EnvironmentMissingError, so is the error, which sets the exit code; else the first cause decides.

    Args:
        log: ncu's log.
        program_streams: Output of ncu and of the program on stdout and stderr.
        status: Exit status of ncu; None if rooflens ended it.
        kernel: The filter of kernel names.
    """
    words = f"{_PROGRESS.sub('', log)}\n{ncu_lines(program_streams)}"
    found = _matches((failure for failure in FAILURES if not failure.is_complaint), words)
    is_certain = bool(found)
    if not found and status is not None and status < 0:
        return _killed(-status)
    if not found and _ENDED_BADLY.search(words):
        found = _matches(PROGRAM_FAILURES, program_streams)
    found = found or _matches((failure for failure in FAILURES if failure.is_complaint), words)[:1]
    if not found:
        return _unknown(words, status)
    errors = [failure.error for failure, _ in found]
    error = EnvironmentMissingError if EnvironmentMissingError in errors else errors[0]
    hints = [failure.hint for failure, _ in found]
    if there := _available(log, kernel):
        hints.insert(0, f"it launched {there}")
    made = error("; also: ".join(message for _, message in found), "; also: ".join(dict.fromkeys(hints)))
    made.is_certain = is_certain
    return made


def failure_of(text: str) -> tuple[tuple[str, str], ...]:
    """Look up pasted output of ncu: a line, a whole log, or the name of an error.

    Returns:
        Message and hint of each cause in it, else of each consequence; empty if nothing matches.
    """
    words = f"==ERROR== {text}"
    causes = _matches((one for one in (*FAILURES, *PROGRAM_FAILURES) if not one.is_complaint), words, re.IGNORECASE)
    found = causes or _matches((one for one in FAILURES if one.is_complaint), words, re.IGNORECASE)
    return tuple((message, failure.hint) for failure, message in found)


def _available(log: str, kernel: str | None) -> str:
    """List the kernels that ncu names as available, the most similar names first; empty if it names none."""
    _, _, after = log.partition("Available Kernels:")
    names = list(dict.fromkeys(re.findall(r"^\s*\d+\.\s+(\S.*?)\s*$", after, re.MULTILINE)))
    if kernel is not None:
        wanted = re.sub(r"[^\w]+", " ", kernel.removeprefix("regex:")).casefold()
        names.sort(key=lambda name: -SequenceMatcher(None, wanted, name.casefold()).ratio())
    more = f" and {len(names) - _SHOWN_KERNELS} more" if len(names) > _SHOWN_KERNELS else ""
    return ", ".join(f"`{name}`" for name in names[:_SHOWN_KERNELS]) + more


def _killed(number: int) -> RooflensError:
    """Make the error for an ncu that was ended by a signal."""
    name = signal_name(number)
    how, is_killed = f"{name}, signal {number}", name == "SIGKILL"
    needed = f"the largest process had {peak / 1e9:.1f} GB of memory" if (peak := peak_memory_bytes()) else ""
    if is_killed:
        words = "this happens where a machine or container runs out of memory, in which ncu saves what kernels write"
        hint = f"{words}; {_REPLAY_HINT}, and fewer launches (--launch-count) or counters (`--detail quick`) need less"
    else:
        hint = "point --ncu to another version; `--replay-mode application` and `--detail quick` avoid much of its work"
    said = f"ncu was killed ({how})" if is_killed else f"ncu crashed ({how})"
    return InputError(f"{said}; {needed}" if needed else said, f"{hint}; {_UNLOCK}")


def _matches(failures: Iterable[Failure], words: str, flags: int = 0) -> list[tuple[Failure, str]]:
    """Return the failures whose pattern matches, each with its message."""
    found = ((failure, re.search(failure.pattern, words, flags)) for failure in failures)
    return [
        (failure, failure.message.format(next((group for group in match.groups() if group), "")))
        for failure, match in found
        if match
    ]


def ncu_lines(text: str) -> str:
    """Return the lines that ncu itself wrote."""
    return "\n".join(line for line in text.splitlines() if _NCU_LINE.match(line))


def _unknown(words: str, status: int | None) -> RooflensError:
    errors = [line.removeprefix("==ERROR==").strip() for line in words.splitlines() if line.startswith("==ERROR==")]
    said = f": {' / '.join(errors[:_SHOWN_ERRORS])}" if errors else ""
    if status == 0:
        return InputError(f"ncu succeeded but wrote no report{said}", _BY_HAND)
    return InputError(
        f"ncu failed with status {status}{said}",
        _BY_HAND,
    )


def too_slow(timeout_s: float, kernel: str | None) -> RooflensError:
    """Make the error for a profile that exceeded its time limit."""
    where = f" in kernel `{kernel}`" if kernel else ""
    return InputError(
        f"ncu did not finish within {timeout_s:.3g} s; it was{where or ' before the first kernel'}",
        "kernels that wait for one another (NCCL, cooperative ones) hang when each is replayed alone: "
        "`--replay-mode application`; else a longer --timeout, or fewer launches with --launch-count; "
        f"{_UNLOCK}",
    )


def stuck(kernel: str, quiet_s: float) -> RooflensError:
    """Make the error for a profile that hangs in a kernel that waits for other ranks."""
    return InputError(
        f"no kernel finished for {quiet_s:.0f} s inside `{kernel}`, which waits for other ranks",
        "without --kernel such kernels are left out; to profile them all ranks must move in step: "
        "`--ncu-args '--communicator shmem --communicator-shmem-num-peers N --lockstep-kernel-launch'`, in older "
        f"versions of ncu `--communicator tcp --communicator-tcp-num-peers N`; {_UNLOCK}",
    )
