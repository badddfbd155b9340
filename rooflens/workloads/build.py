"""Compile CUDA workloads with nvcc, once per source, flags, compiler and architecture."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.cache import cache_folder, is_trusted, make_private
from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.files import replacing
from rooflens.local_gpu import local_gpu
from rooflens.processes import capture, find_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.model.cases import Workload

FLAGS = ("-O3", "-std=c++17", "-lineinfo")
"""`-lineinfo` lets ncu map instructions to source lines, and does not change the code."""

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""Architectures that every CUDA workload compiles for."""

_SPECIFIC_ARCHITECTURES = {"sm_90": "sm_90a"}
"""Architectures whose fastest tensor instructions exist only in code for that exact chip."""

_LEAST_DRIVER = {11: 450, 12: 525, 13: 580}
"""CUDA's major version -> oldest driver for its programs: minor-version compatibility, CUDA release notes."""

_INSTALLED = ("usr/local/cuda/bin/nvcc",)
_SHARED = tuple(sorted(Path(__file__).parent.glob("*.cuh")))
_SOURCE_SUFFIXES = {".cu", ".cuh"}
_CUBLAS_HEADER = "cublas_v2.h"
_CUBLAS_PACKAGES = {11: "nvidia-cublas-cu11", 12: "nvidia-cublas-cu12"}
"""CUDA's major version -> the package with its cuBLAS; from 13 on all versions share a name."""
_CACHE_HINT = "set XDG_CACHE_HOME to a folder that you can write to, on a disk with space"
_SHOWN_LINES = 20


@dataclass(frozen=True, slots=True)
class Cublas:
    """A cuBLAS to compile against.

    Attributes:
        library: The file to link; its name has no version in a toolkit, but has one in Python packages.
        headers: Folder of its headers; None if nvcc finds them by itself.
    """

    library: Path
    headers: Path | None = None


@dataclass(frozen=True, slots=True)
class Compiler:
    """An nvcc, and the cuBLAS to link into its programs.

    Attributes:
        version: What `nvcc --version` prints.
        cublas: The cuBLAS of its toolkit, else of this Python environment; None if both lack it.
    """

    path: Path
    version: str
    cublas: Cublas | None = None

    @property
    def cuda(self) -> int | None:
        """Major version of its CUDA; None if unknown."""
        release = re.search(r"release (\d+)", self.version)
        return int(release[1]) if release else None


def build(workload: Workload, architecture: str | None = None) -> Path:
    """Compile a workload unless it is compiled already; return the program.

    Args:
        workload: A workload of kind `cuda`.
        architecture: Such as `sm_90`; None for this machine's GPU.

    Raises:
        InputError: The workload is no CUDA workload.
        EnvironmentMissingError: There is no nvcc, it fails, or the cache cannot be written.
    """
    if workload.kind != "cuda":
        raise InputError(f"workload `{workload.name}` is not compiled: its kind is `{workload.kind}`")
    compiler = find_compiler()
    _check_driver(compiler)
    architecture = architecture or local_architecture()
    flags = (*FLAGS, f"-arch={architecture}", *library_flags(workload, compiler))
    folder = _cache_folder()
    program = folder / f"{workload.name}-{architecture}-{cache_key(workload, flags, compiler.version)}"
    if not is_trusted(program):
        _compile(program, workload, flags, compiler)
    return program


def find_compiler(environment: Mapping[str, str] | None = None) -> Compiler:
    """Find nvcc on PATH, in CUDA_HOME, in CUDA_PATH, else in `/usr/local/cuda`.

    Raises:
        EnvironmentMissingError: nvcc is in none of these places, or does not run.
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
    compiler = Compiler(path, done.stdout)
    return replace(compiler, cublas=_cublas_of_toolkit(path) or _cublas_of_python(compiler.cuda))


def _check_driver(compiler: Compiler) -> None:
    """Raise an error if the driver is too old for the compiler's programs; without a GPU they run elsewhere."""
    try:
        driver = local_gpu().driver
    except EnvironmentMissingError:
        return
    release, branch = re.search(r"release \d+\.\d+", compiler.version), re.match(r"\d+", driver)
    needed = _LEAST_DRIVER.get(compiler.cuda or 0)
    if release and branch and needed and int(branch[0]) < needed:
        cuda = release[0].removeprefix("release ")
        message = f"the NVIDIA driver {driver} is too old for nvcc's CUDA {cuda}, whose programs need {needed} or newer"
        raise EnvironmentMissingError(message, "update the driver, or set CUDA_HOME to an older toolkit")


def _cublas_of_toolkit(nvcc: Path) -> Cublas | None:
    """Return the cuBLAS of nvcc's toolkit if it has both header and library."""
    root = nvcc.resolve().parent.parent
    targets = sorted(root.glob("targets/*"))
    header = any((folder / "include" / _CUBLAS_HEADER).exists() for folder in (root, *targets))
    folders = (root / "lib64", root / "lib", *(target / "lib" for target in targets))
    library = next((file for folder in folders if (file := folder / "libcublas.so").exists()), None)
    return Cublas(library) if header and library else None


def _cublas_of_python(cuda: int | None) -> Cublas | None:
    """Return the cuBLAS of NVIDIA's Python packages if its major version is nvcc's: another would not link."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations if spec else None) or ():
        for package in (Path(place, f"cu{cuda}"), Path(place, "cublas")):
            library, headers = package / "lib" / f"libcublas.so.{cuda}", package / "include"
            if library.exists() and (headers / _CUBLAS_HEADER).exists():
                return Cublas(library, headers)
    return None


def local_architecture() -> str:
    """Return the architecture of the first visible GPU: `sm_90a`, or `native` if only nvcc can tell."""
    try:
        capability = local_gpu().compute_capability
    except EnvironmentMissingError:
        return "native"
    return architecture_of(capability) if re.fullmatch(r"\d+\.\d+", capability) else "native"


def architecture_of(compute_capability: str) -> str:
    """Return nvcc's name of a compute capability: `sm_80` for `8.0`, or `sm_90a` with all of its instructions."""
    name = f"sm_{compute_capability.replace('.', '')}"
    return _SPECIFIC_ARCHITECTURES.get(name, name)


def sources(workload: Workload) -> tuple[Path, ...]:
    """List a program's sources: the files of its folder and the shared headers."""
    own = sorted(path for path in workload.folder.iterdir() if path.suffix in _SOURCE_SUFFIXES)
    return (*own, *_SHARED)


def library_flags(workload: Workload, compiler: Compiler) -> tuple[str, ...]:
    """Return the flags that link cuBLAS, if the workload compares with it and the compiler has it."""
    if compiler.cublas is None or not _uses_cublas(workload):
        return ()
    library, headers = compiler.cublas.library, compiler.cublas.headers
    # After nvcc's own headers: the folder of Python packages may hold headers of another CUDA too.
    found = ("-Xcompiler", f"-idirafter,{headers}") if headers else ()
    name = "-lcublas" if library.suffix == ".so" else f"-l:{library.name}"
    folder = library.parent
    return ("-DROOFLENS_CUBLAS", *found, f"-L{folder}", name, "-Xlinker", f"-rpath={folder}")


def _uses_cublas(workload: Workload) -> bool:
    return any(f"<{_CUBLAS_HEADER}>" in path.read_text(encoding="utf-8") for path in sources(workload))


def lacking_library(workload: Workload) -> str:
    """Say that a workload cannot be compared with cuBLAS because it is missing; empty if there is no problem.

    Raises:
        EnvironmentMissingError: There is no nvcc, or it does not run.
    """
    if workload.kind != "cuda" or not _uses_cublas(workload):
        return ""
    compiler = find_compiler()
    if compiler.cublas is not None:
        return ""
    package = _CUBLAS_PACKAGES.get(compiler.cuda or 0, "nvidia-cublas")
    looked = f"nvcc's toolkit has no cuBLAS, nor have the packages of this Python one of CUDA {compiler.cuda or '?'}"
    return f"{looked}: `% of cuBLAS` stays empty; `pip install {package}` brings it"


def cache_key(workload: Workload, flags: Sequence[str], version: str) -> str:
    """Hash everything that a program depends on: source names and contents, flags, architecture, nvcc's version."""
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


def _cache_folder() -> Path:
    """Return the folder of compiled programs.

    Raises:
        EnvironmentMissingError: There is no home folder for it.
    """
    try:
        return cache_folder() / "cuda"
    except RuntimeError as error:
        raise EnvironmentMissingError(f"compiled programs have no place: {error}", _CACHE_HINT) from error


def _compile(program: Path, workload: Workload, flags: Sequence[str], compiler: Compiler) -> None:
    try:
        make_private(program.parent)
        with replacing(program, private=True) as output:
            done = capture(compile_command(compiler, workload, flags, output))
            if done.status != 0 or not output.exists() or not output.stat().st_size:
                raise EnvironmentMissingError(
                    f"nvcc could not compile `{workload.name}` (status {done.status}):\n"
                    f"{_tail(done.stderr or done.stdout)}",
                    "nvcc must know this GPU's architecture and accept the host compiler: "
                    "a newer CUDA toolkit, or an older g++, is the usual cure",
                )
            output.chmod(stat.S_IRWXU)  # a compiler may write into the existing file, or make one that the umask opens
    except OSError as error:
        message = f"cannot write to the cache of compiled programs, `{program.parent}`: {error.strerror}"
        raise EnvironmentMissingError(message, _CACHE_HINT) from error


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_SHOWN_LINES:])
