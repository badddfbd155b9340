"""What GPU stands in this machine, as `nvidia-smi` tells, and what about it is in the way of profiling."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError
from rooflens.processes import query

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELDS = "index,uuid,name,compute_cap,driver_version,mig.mode.current"
_ARGV = ("nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader")
_NO_GPU_HINT = "collect on a machine with an NVIDIA GPU"


@dataclass(frozen=True, slots=True)
class LocalGpu:
    """One GPU of this machine."""

    name: str
    compute_capability: str
    driver: str
    mig: bool = False


def local_gpu(environment: Mapping[str, str] | None = None) -> LocalGpu:
    """Return the first GPU that CUDA programs see.

    Raises:
        EnvironmentMissingError: There is none, or no driver that answers.
    """
    answer = _answer(shutil.which(_ARGV[0]))
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.splitlines() if line.count(",") >= 5]
    visible = (os.environ if environment is None else environment).get("CUDA_VISIBLE_DEVICES")
    row = _first_visible(rows, visible)
    if row is None:
        hint = _NO_GPU_HINT if visible is None else f"CUDA_VISIBLE_DEVICES is `{visible}`"
        raise EnvironmentMissingError("no NVIDIA GPU is to be seen", hint)
    return LocalGpu(row[2], row[3], row[4], row[5] == "Enabled")


@cache
def _answer(nvidia_smi: str | None) -> str:  # noqa: ARG001 - the key: another one may answer otherwise
    """Ask once a process: where nothing keeps the driver awake the answer takes seconds. An error is asked again."""
    answer = query(_ARGV)
    if answer is None:
        raise EnvironmentMissingError("no NVIDIA GPU or driver was found: `nvidia-smi` does not answer", _NO_GPU_HINT)
    return answer


def _first_visible(rows: list[list[str]], visible: str | None) -> list[str] | None:
    if visible is None:
        return rows[0] if rows else None
    wanted = visible.split(",")[0].strip()
    for row in rows:
        is_index = wanted.isdigit() and row[0] == wanted
        if is_index or (wanted.startswith("GPU-") and row[1].startswith(wanted)):
            return row
    # A part of a MIG device: any GPU of the machine is as good a guess as another.
    return rows[0] if rows and wanted.startswith("MIG-") else None


def obstacles(gpu: LocalGpu, kernel_release: str | None = None) -> tuple[str, ...]:
    """Say what about this machine leaves counters out or slows profiling down."""
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
