"""Check what a machine can do: reading reports everywhere, collecting them where a GPU and ncu are."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["ok", "warn", "fail"]

_MIN_FREE_BYTES = 1e9
"""Reports of large workloads and the store want about this much."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, what was found, and how to mend it."""

    name: str
    state: State
    finding: str
    fix: str = ""


def run_checks() -> tuple[Check, ...]:
    """Run every check; only what reading reports needs can fail, the rest warns."""
    return (
        _reader(),
        _page(),
        _gpu_driver(),
        _tool("ncu", "collecting needs it"),
        _tool("nvcc", "CUDA workloads need it"),
        _torch(),
        _disk(),
    )


def _reader() -> Check:
    return _module("report reader", "ncu_report", "pip install ncu-report")


def _page() -> Check:
    return _module("page", "vl_convert", "pip install vl-convert-python")


def _module(name: str, module: str, fix: str) -> Check:
    try:
        importlib.import_module(module)
    except ImportError as error:
        return Check(name, "fail", f"`{module}` cannot be imported: {error}", fix)
    return Check(name, "ok", f"`{module}` works")


def _gpu_driver() -> Check:
    version = Path("/proc/driver/nvidia/version")
    if version.exists():
        return Check("NVIDIA driver", "ok", version.read_text(encoding="utf-8").partition("\n")[0].strip())
    return Check(
        "NVIDIA driver",
        "warn",
        "none: reports can be read here, not collected",
        "collect on a machine with an NVIDIA GPU",
    )


def _tool(name: str, need: str) -> Check:
    path = shutil.which(name)
    if path:
        return Check(name, "ok", path)
    return Check(
        name, "warn", f"not on PATH; {need}, reading reports does not", "install it, or add its folder to PATH"
    )


def _torch() -> Check:
    if importlib.util.find_spec("torch"):
        return Check("torch", "ok", "installed")
    return Check(
        "torch", "warn", "not installed; PyTorch workloads need it, reading reports does not", "pip install torch"
    )


def _disk() -> Check:
    free = shutil.disk_usage(Path.cwd()).free
    state: State = "ok" if free > _MIN_FREE_BYTES else "warn"
    return Check("disk", state, f"{free / 1e9:.1f} GB free", "" if state == "ok" else "free some space")
