"""Compiles CUDA workloads with nvcc, once for each source, flags, compiler and architecture."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.cache import cache_folder
from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.files import replacing
from rooflens.local_gpu import local_gpu
from rooflens.processes import capture, find_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.model.cases import Workload

FLAGS = ("-O3", "-std=c++17", "-lineinfo")
"""`-lineinfo` lets ncu lead back to the source, and does not change the code."""

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""Architectures that every CUDA workload compiles for."""

_SPECIFIC_ARCHITECTURES = {"sm_90": "sm_90a"}
"""Architectures whose fastest tensor instruction is only in code for the one chip."""

_LEAST_DRIVER = {11: 450, 12: 525, 13: 580}
"""CUDA's major version -> the oldest driver that runs its programs: minor-version compatibility, CUDA release notes."""

_INSTALLED = ("usr/local/cuda/bin/nvcc",)
_COMMON = Path(__file__).parent / "common.cuh"
_SOURCE_SUFFIXES = {".cu", ".cuh"}
_CUBLAS_HEADER = "cublas_v2.h"
_SHOWN_LINES = 20


@dataclass(frozen=True, slots=True)
class Compiler:
    """An nvcc, and the cuBLAS of its toolkit.

    Attributes:
        version: What `nvcc --version` prints.
        cublas_libraries: Folder of the toolkit's cuBLAS; None where it lacks the header or the library.
    """

    path: Path
    version: str
    cublas_libraries: Path | None = None


def build(workload: Workload, architecture: str | None = None, cache: Path | None = None) -> Path:
    """Compile a workload, or find it compiled; return the program.

    Args:
        workload: One of kind `cuda`.
        architecture: `sm_90`, or None for the GPU of this machine.
        cache: Folder of the compiled programs, `cache_folder()` for None.

    Raises:
        InputError: The workload is not a CUDA one.
        EnvironmentMissingError: There is no nvcc, or it fails.
    """
    if workload.kind != "cuda":
        raise InputError(f"workload `{workload.name}` is not compiled: its kind is `{workload.kind}`")
    compiler = find_compiler()
    _check_driver(compiler)
    architecture = architecture or local_architecture()
    flags = (*FLAGS, f"-arch={architecture}", *library_flags(workload, compiler))
    folder = (cache or cache_folder()) / "cuda"
    program = folder / f"{workload.name}-{architecture}-{cache_key(workload, flags, compiler.version)}"
    if not program.exists():
        _compile_into(program, workload, flags, compiler)
    return program


def find_compiler(environment: Mapping[str, str] | None = None) -> Compiler:
    """Find nvcc on PATH, in CUDA_HOME, in CUDA_PATH, else in `/usr/local/cuda`.

    Raises:
        EnvironmentMissingError: It is in none of them, or does not run.
    """
    found = find_program("nvcc", os.environ if environment is None else environment, _INSTALLED)
    if found is None:
        raise EnvironmentMissingError(
            "no `nvcc` found on PATH, in CUDA_HOME, in CUDA_PATH or in /usr/local/cuda",
            "install the CUDA toolkit, or set CUDA_HOME to the folder that holds bin/nvcc",
        )
    path = Path(found)
    done = capture([found, "--version"])
    if done.status != 0:
        raise EnvironmentMissingError(f"`{path} --version` fails: {_tail(done.stderr)}", "reinstall the CUDA toolkit")
    return Compiler(path, done.stdout, _find_cublas(path))


def _check_driver(compiler: Compiler) -> None:
    """Raise where this machine's driver is too old for the compiler's programs; without a GPU they run elsewhere."""
    try:
        driver = local_gpu().driver
    except EnvironmentMissingError:
        return
    release, branch = re.search(r"release (\d+)\.\d+", compiler.version), re.match(r"\d+", driver)
    needed = _LEAST_DRIVER.get(int(release[1])) if release else None
    if release and branch and needed and int(branch[0]) < needed:
        cuda = release[0].removeprefix("release ")
        message = f"the NVIDIA driver {driver} is too old for nvcc's CUDA {cuda}, whose programs need {needed} or newer"
        raise EnvironmentMissingError(message, "update the driver, or set CUDA_HOME to an older toolkit")


def _find_cublas(nvcc: Path) -> Path | None:
    """Return the folder of libcublas in nvcc's toolkit where the header is there too."""
    root = nvcc.resolve().parent.parent
    targets = sorted(root.glob("targets/*"))
    header = any((folder / "include" / _CUBLAS_HEADER).exists() for folder in (root, *targets))
    folders = (root / "lib64", root / "lib", *(target / "lib" for target in targets))
    library = next((folder for folder in folders if (folder / "libcublas.so").exists()), None)
    return library if header else None


def local_architecture() -> str:
    """Return the architecture of the first GPU that programs see: `sm_90a`, or `native` where only nvcc can tell."""
    try:
        capability = local_gpu().compute_capability
    except EnvironmentMissingError:
        return "native"
    return architecture_of(capability) if re.fullmatch(r"\d+\.\d+", capability) else "native"


def architecture_of(compute_capability: str) -> str:
    """Return what nvcc calls a compute capability: `sm_80` for `8.0`, and with all of its instructions `sm_90a`."""
    name = f"sm_{compute_capability.replace('.', '')}"
    return _SPECIFIC_ARCHITECTURES.get(name, name)


def sources(workload: Workload) -> tuple[Path, ...]:
    """List the files that a program is made of: its folder's and the common header."""
    own = sorted(path for path in workload.folder.iterdir() if path.suffix in _SOURCE_SUFFIXES)
    return (*own, _COMMON)


def library_flags(workload: Workload, compiler: Compiler) -> tuple[str, ...]:
    """Return what links cuBLAS, for workloads that compare with it and compilers that have it."""
    uses = any(f"<{_CUBLAS_HEADER}>" in path.read_text(encoding="utf-8") for path in sources(workload))
    if not uses or compiler.cublas_libraries is None:
        return ()
    folder = str(compiler.cublas_libraries)
    return ("-DROOFLENS_CUBLAS", f"-L{folder}", "-lcublas", "-Xlinker", f"-rpath={folder}")


def cache_key(workload: Workload, flags: Sequence[str], version: str) -> str:
    """Hash all that a program depends on: names and contents of its sources, flags and architecture, nvcc's version."""
    digest = hashlib.sha256()
    for part in (version, *flags):
        digest.update(part.encode() + b"\0")
    for path in sources(workload):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def compile_command(compiler: Compiler, workload: Workload, flags: Sequence[str], output: Path) -> list[str]:
    """Write nvcc's argv."""
    return [str(compiler.path), *flags, str(workload.folder / workload.program), "-o", str(output)]


def _compile_into(program: Path, workload: Workload, flags: Sequence[str], compiler: Compiler) -> None:
    with replacing(program) as output:
        done = capture(compile_command(compiler, workload, flags, output))
        if done.status != 0 or not output.exists() or not output.stat().st_size:
            raise EnvironmentMissingError(
                f"nvcc could not compile `{workload.name}` (status {done.status}):\n"
                f"{_tail(done.stderr or done.stdout)}",
                "nvcc must know this GPU's architecture and accept the host compiler: "
                "a newer CUDA toolkit, or an older g++, is the usual cure",
            )
        output.chmod(output.stat().st_mode | stat.S_IXUSR)  # a compiler may fill the file that is there


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_SHOWN_LINES:])
