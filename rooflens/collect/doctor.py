"""Check what a machine can do: reading reports works anywhere, collecting needs a GPU and ncu.

A check fails only if reading reports is affected. Missing software with another purpose is optional; software that is
there but does not work is a warning. Each check says how to fix it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rooflens.collect.command import PER_LAUNCH_CONFIG_SINCE, find_ncu
from rooflens.collect.surroundings import surroundings
from rooflens.errors import READS_SINCE, EnvironmentMissingError, lacking_package
from rooflens.failures import PERMISSION_HINT
from rooflens.ingest.timelines.nsys import find_nsys
from rooflens.local_gpu import counters_are_open, limited_clocks, local_gpu, may_administer, obstacles
from rooflens.processes import query
from rooflens.workloads.build import find_compiler
from rooflens.workloads.commands import check_torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.local_gpu import LocalGpu

State = Literal["ok", "optional", "warn", "fail"]

_MIN_FREE_BYTES = 1e9
"""Space that reports of large workloads and the store need."""

_MIG = "a MIG instance of a GPU"
_NOT_FOR_READING = "reading reports does not need it"
_ON_A_GPU = "collect on a machine with an NVIDIA GPU"
_TORCH = """
import sys
sys.path[:] = filter(None, sys.path)
import torch
there = torch.cuda.is_available()
print(torch.__version__, torch.version.cuda, torch.cuda.get_device_name() if there else "", sep="|")
"""
"""Runs in a process of its own: importing torch takes seconds, and a broken torch may crash. A `torch.py` that lies in
the working directory is not imported."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was found, and how to fix it."""

    name: str
    state: State
    finding: str
    fix: str = ""


def run_checks(root: Path = Path("/")) -> tuple[Check, ...]:
    """Run all checks; `rooflens doctor` prints a line for each.

    Args:
        root: Folder with `/proc` and the usual places of ncu; tests use their own.
    """
    gpu = _gpu_at_hand()
    return (
        _python(),
        _modules("report reader", ("msgspec", "google.protobuf")),
        _modules("tables", ("wcwidth",), "it counts the columns of wide letters"),
        _modules("page", ("altair", "jinja2")),
        _modules("store", ("pyarrow",)),
        _modules("NVIDIA's reader", ("ncu_report",), "it gives the text of instructions"),
        _modules("pictures", ("vl_convert",), "it draws PDF, PNG and SVG"),
        _surroundings_check(gpu, root),
        _driver(gpu, root),
        _gpu(gpu),
        _ncu(root),
        _counters(root),
        _nsys(root),
        _nvcc(),
        _torch(),
        _disk(Path.cwd()),
    )


def _python() -> Check:
    """Say whether this Python reads reports too, or only collects them."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= READS_SINCE:
        return Check("Python", "ok", found)
    since = "{}.{}".format(*READS_SINCE)
    return Check("Python", "fail", f"{found} collects reports; reading them needs {since}", f"install Python {since}")


def _modules(name: str, modules: Sequence[str], purpose: str = "") -> Check:
    """Import the packages that a feature needs; packages with a purpose of their own are optional."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            finding = f"`{module}` cannot be imported: {error}"
            fix = (lacking_package(error) or EnvironmentMissingError("", "install rooflens again")).hint.strip("`")
            return (
                Check(name, "optional", f"{finding}; {purpose}", fix) if purpose else Check(name, "fail", finding, fix)
            )
    verb = "works" if len(modules) == 1 else "work"
    return Check(name, "ok", f"{' and '.join(f'`{module}`' for module in modules)} {verb}")


def _gpu_at_hand() -> LocalGpu | EnvironmentMissingError:
    try:
        return local_gpu()
    except EnvironmentMissingError as error:
        return error


def _surroundings_check(gpu: LocalGpu | EnvironmentMissingError, root: Path) -> Check:
    """Name the container, pod, job or part of a GPU that this is; say how it gets at counters that are closed."""
    found = surroundings(root, os.environ)
    names = [one.name for one in found]
    if not isinstance(gpu, EnvironmentMissingError) and gpu.mig and _MIG not in names:
        names.append(_MIG)
    if not names:
        return Check("place", "ok", "no container, job or virtual machine is to be seen")
    is_closed = (root / "proc/driver/nvidia/params").exists() and not (counters_are_open(root) or may_administer(root))
    fixes = "; ".join(one.fix for one in found) if is_closed else ""
    return Check("place", "warn" if fixes else "ok", ", ".join(names), fixes)


def _driver(gpu: LocalGpu | EnvironmentMissingError, root: Path) -> Check:
    name = "NVIDIA driver"
    if not isinstance(gpu, EnvironmentMissingError):
        return Check(name, "ok", gpu.driver)
    module = _file_text(root / "proc/driver/nvidia/version")
    if module is None:
        return Check(name, "optional", f"none; {_NOT_FOR_READING}", _ON_A_GPU)
    version = module.partition("\n")[0].removeprefix("NVRM version:").strip()
    fix = f"repair the driver until `nvidia-smi` answers: {gpu.hint}"
    return Check(name, "warn", f"{version}, but {gpu}", fix)


def _gpu(gpu: LocalGpu | EnvironmentMissingError) -> Check:
    """Check whether there is a GPU, whether we have its datasheet, and what hinders reading its counters."""
    if isinstance(gpu, EnvironmentMissingError):
        return Check("GPU", "optional", f"{gpu}; {_NOT_FOR_READING}", gpu.hint)
    described = f"{gpu.name}, compute capability {gpu.compute_capability}"
    in_the_way = obstacles(gpu)
    if in_the_way:
        return Check("GPU", "warn", "; ".join((described, *in_the_way)), "collect on a whole GPU, on native Linux")
    if limited := limited_clocks():
        fix = "`ncu --clock-control reset`, or as root `nvidia-smi --reset-gpu-clocks`"
        return Check("GPU", "warn", f"{described}; {limited}: a killed ncu leaves them so", fix)
    if gpu.assumed:
        return Check("GPU", "warn", f"{described}; {gpu.assumed}", "name the GPU, or the chip, when you collect")
    if not _is_in_table(gpu.name):
        finding = f"{described}, not in the table: no datasheet roofs beside the measured ones"
        return Check(
            "GPU", "warn", finding, "add a file with its numbers beside `rooflens/gpus/h200.toml` of the package"
        )
    return Check("GPU", "ok", f"{described}, in the table")


def _is_in_table(gpu: str) -> bool:
    """Return whether a GPU has a datasheet; also True on a bare machine, which lacks the packages to read them."""
    try:
        from rooflens.model.roofline.datasheets import datasheet_of  # noqa: PLC0415 - needs what a bare GPU box may lack
    except ImportError:
        return True
    return datasheet_of(gpu) is not None


def _ncu(root: Path) -> Check:
    try:
        ncu = find_ncu(root=root)
    except EnvironmentMissingError as error:
        return Check("ncu", "optional", f"{error}; {_NOT_FOR_READING}", error.hint)
    finding = f"{ncu.version_text} at {ncu.path}"
    if ncu.version is None:
        return Check("ncu", "warn", f"{ncu.path} does not say its version", "install Nsight Compute again")
    if ncu.skipped:
        finding = f"{finding} (skipped `{'`, `'.join(ncu.skipped)}`, which is not Nsight Compute)"
    if not ncu.knows(PER_LAUNCH_CONFIG_SINCE):
        since = "{}.{}".format(*PER_LAUNCH_CONFIG_SINCE)
        fix = f"install {since} or newer"
        return Check("ncu", "warn", f"{finding}: too old to profile each kernel once in each shape", fix)
    return Check("ncu", "ok", finding)


def _counters(root: Path) -> Check:
    """Say who may read the GPU's counters: all users, or only CAP_SYS_ADMIN, which root has outside containers."""
    name = "counter permission"
    if not (root / "proc/driver/nvidia/params").exists():
        return Check(name, "optional", f"not known without a driver; {_NOT_FOR_READING}", PERMISSION_HINT)
    is_open = counters_are_open(root)
    if is_open:
        return Check(name, "ok", "open to all users")
    if may_administer(root):
        return Check(name, "ok", "restricted to administrators, and this user is one")
    is_root = sys.platform != "win32" and os.geteuid() == 0
    root_without = "even root needs CAP_SYS_ADMIN here" if is_root else "this user is not one"
    known = "restricted to administrators" if is_open is False else "probably restricted to administrators"
    return Check(name, "warn", f"{known}, and {root_without}; {_NOT_FOR_READING}", PERMISSION_HINT)


def _nsys(root: Path) -> Check:
    """Look for Nsight Systems, the only tool that sees the gaps between the kernels of a user's program."""
    path = find_nsys(root)
    if path is None:
        lost = "gaps between kernels, and how often each is launched, stay unknown for your own programs"
        fix = "install Nsight Systems (it comes with the CUDA toolkit), and put `nsys` on PATH"
        return Check("nsys", "optional", f"not found: {lost}; {_NOT_FOR_READING}", fix)
    found = re.search(r"version (\d+(?:\.\d+)+)", query((path, "--version")) or "")
    if found is None:
        return Check("nsys", "warn", f"{path} does not say its version", "install Nsight Systems again")
    return Check("nsys", "ok", f"{found[1]} at {path}")


def _nvcc() -> Check:
    try:
        compiler = find_compiler()
    except EnvironmentMissingError as error:
        return Check("nvcc", "optional", f"{error}; CUDA workloads need it, {_NOT_FOR_READING}", error.hint)
    release = re.search(r"release ([\d.]+)", compiler.version)
    cublas = f"cuBLAS at {compiler.cublas.library}" if compiler.cublas else "no cuBLAS to compare the ladder with"
    return Check("nvcc", "ok", f"{release[1] if release else 'of unknown release'} at {compiler.path}, {cublas}")


def _torch() -> Check:
    if importlib.util.find_spec("torch") is None:
        missing = f"not installed; PyTorch workloads need it, {_NOT_FOR_READING}"
        return Check("torch", "optional", missing, "pip install torch")
    answer = query((sys.executable, "-c", _TORCH))
    if answer is None:
        return Check("torch", "warn", f"installed, but it cannot be imported; {_NOT_FOR_READING}", "install it again")
    version, cuda, device = answer.strip().splitlines()[-1].split("|")
    try:
        check_torch(version)
    except EnvironmentMissingError as error:
        return Check("torch", "warn", f"{error}; {_NOT_FOR_READING}", error.hint)
    if cuda == "None":
        fix = "install a build with CUDA: https://pytorch.org/get-started/locally"
        return Check("torch", "warn", f"{version} without CUDA; {_NOT_FOR_READING}", fix)
    if not device:
        fix = "its CUDA must not be newer than the driver supports; CUDA_VISIBLE_DEVICES hides GPUs"
        return Check("torch", "warn", f"{version}, CUDA {cuda}, sees no GPU; {_NOT_FOR_READING}", fix)
    return Check("torch", "ok", f"{version}, CUDA {cuda}, on {device}")


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    if free > _MIN_FREE_BYTES:
        return Check("disk", "ok", f"{free / 1e9:.1f} GB free")
    return Check("disk", "warn", f"{free / 1e9:.1f} GB free", "free some space: reports and their Parquet need 1 GB")


def _file_text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
