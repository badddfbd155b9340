"""Say what went wrong with a profile: one table from ncu's words to our error, its message and its next step."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rooflens.errors import EnvironmentMissingError, InputError, RooflensError


@dataclass(frozen=True, slots=True)
class Failure:
    """One way for ncu to fail.

    Attributes:
        pattern: Expression that is searched in ncu's messages; its first group fills `{}` in the message.
        error: Class to raise, which sets the exit code.
        message: What went wrong.
        hint: What to do next.
    """

    pattern: str
    error: type[RooflensError]
    message: str
    hint: str


_PERMISSION_HINT = (
    "run as root or with CAP_SYS_ADMIN (containers: `--cap-add SYS_ADMIN`), or let everybody: put "
    "`options nvidia NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia.conf and reboot"
)
_BUSY_HINT = "pause DCGM with `dcgmi profile --pause`, or end the other profiler; afterwards `dcgmi profile --resume`"
_TMPDIR_HINT = "give ncu a folder of your own: `mkdir -p ~/tmp` and `export TMPDIR=~/tmp`"
_REPLAY_HINT = "`--replay-mode application` reruns the program for each pass instead of saving memory"
_BY_HAND = "`--dry-run` prints its command: run it by hand to see all it says"
_CLOCK_HINT = "`--clock-control none` leaves the clocks alone; the page then says so"

FAILURES = (
    Failure(
        r"target vGPU device",
        EnvironmentMissingError,
        "this virtual GPU does not let you read its counters",
        "have profiling enabled for the virtual machine (vGPU plugin parameter `enable_profiling`)",
    ),
    Failure(
        r"driver resource was unavailable or the user does not have permission",
        EnvironmentMissingError,
        "the GPU's counters are held by another tool, or are for root only",
        f"{_BUSY_HINT}; else {_PERMISSION_HINT}",
    ),
    Failure(
        r"driver resource was unavailable|counter availability image \(error = ResourceUnavailable\)",
        EnvironmentMissingError,
        "another tool holds the GPU's counters",
        _BUSY_HINT,
    ),
    Failure(
        r"ERR_NVGPUCTRPERM|does not have permission to access NVIDIA GPU Performance Counters",
        EnvironmentMissingError,
        "you may not read this GPU's counters: they are for root only (ERR_NVGPUCTRPERM)",
        _PERMISSION_HINT,
    ),
    Failure(
        r"uses the Windows Subsystem for Linux",
        EnvironmentMissingError,
        "this driver does not allow profiling under WSL",
        "update the NVIDIA driver of Windows and allow counters to all users in its control panel",
    ),
    Failure(
        r"clock frequencies on MIG",
        EnvironmentMissingError,
        "this GPU is split by MIG, and its clocks cannot be locked from a part of it",
        _CLOCK_HINT,
    ),
    Failure(
        r"Failed to lock GPU clock frequencies",
        EnvironmentMissingError,
        "ncu may not lock the GPU's clocks",
        _CLOCK_HINT,
    ),
    Failure(
        r"Confidential computing mode",
        EnvironmentMissingError,
        "this GPU runs in confidential-computing mode, in which nobody may profile",
        "profile on a GPU in normal mode",
    ),
    Failure(
        r"ERR_NVCMPGPU",
        EnvironmentMissingError,
        "NVIDIA's mining processors cannot be profiled",
        "profile on another GPU",
    ),
    Failure(
        r"Profiling is not supported on (?:this )?device",
        EnvironmentMissingError,
        "this ncu does not know the GPU",
        "`ncu --list-chips` says which it knows: take a newer one for a newer GPU, an older one for Pascal or Volta",
    ),
    Failure(
        r"[Dd]river is not compatible with Nsight Compute|Insufficient driver version",
        EnvironmentMissingError,
        "the NVIDIA driver is too old for this ncu",
        "update the driver, or point --ncu to an older Nsight Compute",
    ),
    Failure(
        r"CUDA_INJECTION64_PATH",
        EnvironmentMissingError,
        "another tool injects itself into the program",
        "`unset CUDA_INJECTION64_PATH`",
    ),
    Failure(
        r"failed to connect to the CUDA driver|Driver could not be loaded",
        EnvironmentMissingError,
        "ncu finds no NVIDIA driver",
        "collect on a machine with an NVIDIA GPU; in a container start it with `--gpus all`",
    ),
    Failure(
        r"lock file|interprocess lock|InterprocessLockFailed",
        EnvironmentMissingError,
        "ncu's lock file belongs to another user",
        _TMPDIR_HINT,
    ),
    Failure(
        r"Failed to access the temporary directory",
        EnvironmentMissingError,
        "ncu cannot write to its temporary folder",
        _TMPDIR_HINT,
    ),
    Failure(
        r"No space left on device|[Dd]isk (?:is )?full|[Nn]ot enough (?:disk )?space",
        EnvironmentMissingError,
        "the disk is full",
        "make room, or write elsewhere with -o; TMPDIR chooses where ncu keeps what it saves",
    ),
    Failure(
        r"Unable to write to file|Could not open (?:report|output) file",
        InputError,
        "ncu could not write the report",
        "give another place with -o",
    ),
    Failure(
        r"bad allocation|[Oo]ut of memory|Failed to save memory|ContextSaveFailed|to save context state",
        EnvironmentMissingError,
        "there was no memory left to save what the kernel writes",
        _REPLAY_HINT,
    ),
    Failure(
        r"Failed to find metric (?:regex:\^)?(\w+(?:\.\w+)*)",
        InputError,
        "this GPU, or this ncu, has no metric `{}`",
        "`rooflens metrics` lists the names for each chip; --chip says which GPU it is",
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
        r'Failed to profile "([^"]*)"',
        InputError,
        "ncu failed on kernel `{}`",
        f"{_REPLAY_HINT}; --kernel, --launch-skip and --launch-count choose other launches",
    ),
    Failure(
        r"The application returned an error code \((\d+)\)",
        InputError,
        "the program ended with status {} under ncu, though it ends well without",
        "it may run out of time or memory when kernels are replayed: profile fewer launches with --launch-count",
    ),
    Failure(
        r"No kernels were profiled",
        InputError,
        "no kernel was profiled",
        "check --kernel, --nvtx-include and --launch-skip, that the program uses the GPU, and --target-processes all",
    ),
)
"""First match wins: the causes stand above the complaints that follow from them."""

_NCU_LINE = re.compile(r"^==(?:ERROR|WARNING)==|^unrecognised option|^the argument ", re.MULTILINE)
_SHOWN_ERRORS = 2


def explain(log: str, program_streams: str, status: int | None) -> RooflensError:
    """Make the error for a failed profile.

    Args:
        log: ncu's log.
        program_streams: What came out on stdout and stderr, where ncu's messages stand among the program's.
        status: What ncu returned.
    """
    words = f"{log}\n{ncu_lines(program_streams)}"
    for failure in FAILURES:
        found = re.search(failure.pattern, words)
        if found:
            detail = next((group for group in found.groups() if group), "")
            return failure.error(failure.message.format(detail), failure.hint)
    return _unknown(words, status)


def ncu_lines(text: str) -> str:
    """Return the lines that ncu itself wrote."""
    return "\n".join(line for line in text.splitlines() if _NCU_LINE.match(line))


def _unknown(words: str, status: int | None) -> RooflensError:
    errors = [line.removeprefix("==ERROR==").strip() for line in words.splitlines() if line.startswith("==ERROR==")]
    said = f": {' / '.join(errors[:_SHOWN_ERRORS])}" if errors else ""
    if status == 0:
        return InputError(f"ncu ended well but wrote no report{said}", _BY_HAND)
    return InputError(
        f"ncu failed with status {status}{said}",
        _BY_HAND,
    )


def too_slow(timeout_s: float, kernel: str | None) -> RooflensError:
    """Make the error for a profile that did not end in time."""
    where = f" in kernel `{kernel}`" if kernel else ""
    return InputError(
        f"ncu did not finish within {timeout_s:g} s; it was{where or ' before the first kernel'}",
        "kernels that wait for one another (NCCL, cooperative ones) hang when each is replayed alone: "
        "`--replay-mode application`; else a longer --timeout, or fewer launches with --launch-count",
    )
