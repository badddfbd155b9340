"""Find the GPU that programs on this machine use, from `nvidia-smi` and CUDA, and obstacles to profiling it.

Without `nvidia-smi`, as in many containers, CUDA's driver alone is asked. If the GPUs differ, their order matters:
`nvidia-smi` sorts by bus position; CUDA puts first what it considers fastest unless CUDA_DEVICE_ORDER is PCI_BUS_ID;
and CUDA_VISIBLE_DEVICES uses CUDA's numbers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens import cuda_device
from rooflens.errors import EnvironmentMissingError
from rooflens.processes import Captured, capture, query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FIELDS = "index,uuid,name,compute_cap,driver_version,mig.mode.current"
_ARGV = ("nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader")
_LIMITED = "clocks_throttle_reasons.applications_clocks_setting"
_CLOCKS_ARGV = ("nvidia-smi", f"--query-gpu=name,clocks.sm,clocks.max.sm,{_LIMITED}", "--format=csv,noheader")
_ANSWER_SECONDS = 60.0
_CAP_SYS_ADMIN = 21
"""Bit of the Linux capability that lets users other than root read the counters."""
_NO_GPU_HINT = "collect on a machine with an NVIDIA GPU"
_HANGS_HINT = "the driver or a GPU hangs: `dmesg` names it (look for NVRM and Xid), and a reboot mostly helps"
_VISIBLE, _ORDER = cuda_device.VARIABLES
_BY_BUS = "PCI_BUS_ID"
_KERNEL_MODULE = re.compile(r"Kernel Module\s.*?(\d+\.\d[\d.]*)")

_ASK_CUDA = (sys.executable, "-IS", str(Path(cuda_device.__file__).resolve()))


@dataclass(frozen=True, slots=True)
class LocalGpu:
    """One GPU of this machine.

    Attributes:
        also: Compute capabilities of other GPUs that may be the program's first, if CUDA does not tell.
        assumed: A sentence saying why this GPU is assumed to be the program's; empty if it is certain.
    """

    name: str
    compute_capability: str
    driver: str
    mig: bool = False
    also: tuple[str, ...] = ()
    assumed: str = ""


@dataclass(frozen=True, slots=True)
class _ListedGpu:
    """A GPU as listed by `nvidia-smi`, in bus order."""

    index: str
    uuid: str
    gpu: LocalGpu


def local_gpu(environment: Mapping[str, str] | None = None) -> LocalGpu:
    """Return the first GPU that CUDA programs see: the GPU that they use unless they choose another.

    Raises:
        EnvironmentMissingError: There is no GPU, or no driver answers.
    """
    environment = os.environ if environment is None else environment
    try:
        answer = _answer(shutil.which(_ARGV[0]))
    except EnvironmentMissingError:
        if of_cuda := _of_cuda(environment):
            return of_cuda
        raise
    if answer is None:
        raise EnvironmentMissingError(f"`nvidia-smi` did not answer within {_ANSWER_SECONDS:g} s", _HANGS_HINT)
    rows = [_listed_gpu(line) for line in answer.splitlines() if line.count(",") >= 5]
    visible = environment.get(_VISIBLE)
    found = _of_several(rows, environment) if _differ(rows) else _of_equals(rows, visible)
    found = found or _of_cuda(environment)
    if found is None:
        hint = _NO_GPU_HINT if visible is None else f"{_VISIBLE} is `{visible}`"
        raise EnvironmentMissingError("no NVIDIA GPU is visible", hint)
    return found


def _of_cuda(environment: Mapping[str, str]) -> LocalGpu | None:
    """Return the GPU that CUDA's driver gives to programs first; None if it has none."""
    told = _first_of_cuda(_passed(environment.get(_VISIBLE)), _passed(environment.get(_ORDER)))
    if told is None:
        return None
    name = str(told["name"])
    return LocalGpu(name, str(told["compute_capability"]), loaded_driver() or "unknown", mig=" MIG " in name)


def loaded_driver(root: Path = Path("/")) -> str | None:
    """Return the version of the driver's loaded kernel module; None if it is not loaded.

    Args:
        root: Folder with `/proc`; tests use their own.
    """
    version = _KERNEL_MODULE.search(_file_text(root / "proc/driver/nvidia/version"))
    return version[1] if version else None


def _listed_gpu(line: str) -> _ListedGpu:
    index, uuid, name, capability, driver, mig, *_ = (cell.strip() for cell in line.split(","))
    return _ListedGpu(index, uuid, LocalGpu(name, capability, driver, mig == "Enabled"))


def _differ(rows: Sequence[_ListedGpu]) -> bool:
    return len({(row.gpu.name, row.gpu.mig) for row in rows}) > 1


@cache
def _answer(nvidia_smi: str | None) -> str | None:  # noqa: ARG001 - part of the cache key
    """Ask once per process: unless something keeps the driver awake, the answer takes seconds. None if it hangs.

    Errors are not cached.
    """
    try:
        answer = capture(_ARGV, _ANSWER_SECONDS)
    except EnvironmentMissingError:
        answer = Captured(1, "", "")
    if answer.status is None:
        return None
    if answer.status == 0:
        return answer.stdout
    if re.search(r"version mismatch", answer.stdout + answer.stderr, re.IGNORECASE):
        message = "NVIDIA's driver was updated while the old one is still loaded (NVML: version mismatch)"
        raise EnvironmentMissingError(message, "reboot, or unload and load the driver's kernel modules again")
    raise EnvironmentMissingError("no NVIDIA GPU or driver: `nvidia-smi` does not answer", _NO_GPU_HINT)


def _of_equals(rows: Sequence[_ListedGpu], visible: str | None) -> LocalGpu | None:
    """Return the first visible of identical GPUs, whose order does not matter."""
    if visible is None:
        return rows[0].gpu if rows else None
    row = _by_name(rows, visible.split(",")[0].strip())
    return row.gpu if row else None


def _of_several(rows: Sequence[_ListedGpu], environment: Mapping[str, str]) -> LocalGpu | None:
    """Return the first visible of differing GPUs, with a sentence about the choice in `assumed`."""
    visible = environment.get(_VISIBLE)
    wanted = ["0", "1"] if visible is None else [part.strip() for part in visible.split(",")]
    if environment.get(_ORDER) == _BY_BUS or not wanted[0].isdigit():
        row = _by_name(rows, wanted[0])
        return _with_assumption(row.gpu, rows, f"{row.gpu.name} is the program's first", wanted) if row else None
    told = _first_of_cuda(_passed(visible), _passed(environment.get(_ORDER)))
    if told is not None:
        row = next((row for row in rows if row.uuid == told["uuid"]), None)
        return _with_assumption(row.gpu, rows, f"CUDA gives {row.gpu.name} to programs first", wanted) if row else None
    return _guessed(rows, wanted[0])


def _with_assumption(gpu: LocalGpu, rows: Sequence[_ListedGpu], why: str, wanted: Sequence[str]) -> LocalGpu:
    if len(wanted) == 1:
        return gpu
    words = f"the GPUs here differ ({_names(rows)}): {why}, and its counters are asked for"
    return replace(gpu, assumed=f"{words}; {_VISIBLE} chooses another GPU, --chip another one's counters")


def _guessed(rows: Sequence[_ListedGpu], index: str) -> LocalGpu | None:
    """Assume that the newest GPU comes first, as CUDA mostly decides, and say so in `assumed`."""
    newest = sorted(rows, key=lambda row: [-int(part) for part in re.findall(r"\d+", row.gpu.compute_capability)])
    if int(index) >= len(newest):
        return None
    gpu = newest[int(index)].gpu
    also = {row.gpu.compute_capability: None for row in newest if row.gpu.compute_capability != gpu.compute_capability}
    words = (
        f"the GPUs here differ ({_names(rows)}), and CUDA does not say which is the program's: {gpu.name} is assumed"
    )
    sure = f"{_ORDER}={_BY_BUS} with {_VISIBLE}=N settles it, and so does --chip"
    asked = f"{words}, and only counters that all of them have are asked for" if also else words
    return replace(gpu, also=tuple(also), assumed=f"{asked}; {sure}")


def _names(rows: Sequence[_ListedGpu]) -> str:
    return ", ".join(dict.fromkeys(row.gpu.name for row in rows))


def _passed(value: str | None) -> str:
    """Encode a variable for the question to CUDA: `-` for an unset variable."""
    return "-" if value is None else f"={value}"


@cache
def _first_of_cuda(visible: str, order: str) -> Mapping[str, object] | None:
    """Return what the driver says of its GPU 0 under these variables; None if it does not answer."""
    answer = query((*_ASK_CUDA, visible, order))
    told = json.loads(answer) if answer else None
    return told if isinstance(told, dict) else None


def _by_name(rows: Sequence[_ListedGpu], wanted: str) -> _ListedGpu | None:
    """Return the GPU named by an entry of CUDA_VISIBLE_DEVICES: a number, a UUID, or the UUID of a part of it."""
    for row in rows:
        if (wanted.isdigit() and row.index == wanted) or (wanted.startswith("GPU-") and row.uuid.startswith(wanted)):
            return row
    return _with_part(rows, wanted) if wanted.startswith("MIG-") else None


def _with_part(rows: Sequence[_ListedGpu], wanted: str) -> _ListedGpu | None:
    """Return the GPU that contains a MIG device; if that is unknown, the first GPU split by MIG."""
    if wanted.startswith("MIG-GPU-"):  # the form of older drivers
        return next((row for row in rows if row.uuid == wanted.removeprefix("MIG-").partition("/")[0]), None)
    current = None
    for line in (query((_ARGV[0], "-L")) or "").splitlines():
        uuid = re.search(r"\(UUID: ((?:GPU|MIG)-[^)]+)\)", line)
        if uuid and uuid[1].startswith("GPU-"):
            current = uuid[1]
        elif uuid and uuid[1].startswith(wanted):
            return next((row for row in rows if row.uuid == current), None)
    return next((row for row in rows if row.gpu.mig), rows[0] if rows else None)


def limited_clocks() -> str:
    """Name the GPU whose clocks are limited, as by a killed ncu; empty if there is none, or if unknown."""
    for line in (query(_CLOCKS_ARGV) or "").splitlines():
        name, now, most, is_limited, *_ = (*(cell.strip() for cell in line.split(",")), *[""] * 3)
        if is_limited == "Active":
            return f"the clocks of {name} are limited by a setting, at {now} of {most}"
    return ""


def counters_are_open(root: Path = Path("/")) -> bool | None:
    """Return whether the driver lets every user read the counters; None if it does not say.

    Args:
        root: Folder with `/proc`; tests use their own.
    """
    restricted = re.search(
        r"^RmProfilingAdminOnly:\s*(\d+)", _file_text(root / "proc/driver/nvidia/params"), re.MULTILINE
    )
    return None if restricted is None else restricted[1] == "0"


def may_administer(root: Path = Path("/")) -> bool:
    """Return whether this user has CAP_SYS_ADMIN, which root has outside containers."""
    capabilities = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", _file_text(root / "proc/self/status"), re.MULTILINE)
    if capabilities is None:
        return sys.platform != "win32" and os.geteuid() == 0
    return bool(int(capabilities[1], 16) >> _CAP_SYS_ADMIN & 1)


def _file_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def obstacles(gpu: LocalGpu, kernel_release: str | None = None) -> tuple[str, ...]:
    """List, in sentences, what makes counters unavailable on this machine."""
    release = _kernel_release() if kernel_release is None else kernel_release
    found = []
    if gpu.mig:
        found.append(f"{gpu.name} is split by MIG: counters of parts that instances share cannot be read")
    if re.search("microsoft", release, re.IGNORECASE):
        found.append("this is WSL: counters may need the driver's permission on the Windows side, and some are missing")
    if re.search(r"GRID|vGPU|-\d+[ABCQ]$", gpu.name):
        found.append(f"{gpu.name} is a virtual GPU: its counters must be enabled on the host, and some are missing")
    return tuple(found)


def _kernel_release() -> str:
    path = Path("/proc/sys/kernel/osrelease")
    return path.read_text(encoding="utf-8") if path.exists() else ""
