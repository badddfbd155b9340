"""The build cache, tested through a stand-in `nvcc` on PATH."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import Struct

from rooflens.cache import cache_folder
from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.model.cases import Workload
from rooflens.workloads.build import build, find_compiler, lacking_library, local_architecture
from rooflens.workloads.registry import find_workload

H200 = "0, GPU-0123, NVIDIA H200, 9.0, 580.65.06, Disabled"
"""A line of nvidia-smi's answer."""

STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { cat "$(dirname "$0")/version"; exit 0; }
for argument; do echo "$argument"; done >> "$(dirname "$0")/../argv"
for last; do :; done
[ -e "$(dirname "$0")/../broken" ] && { echo "half" > "$last"; echo "main.cu(3): error: no such thing" >&2; exit 2; }
echo program > "$last"
"""


class Toolkit(Struct, frozen=True):
    """A folder with a stand-in nvcc that logs its calls."""

    root: Path

    @property
    def nvcc(self) -> Path:
        """Return the stand-in."""
        return self.root / "bin" / "nvcc"

    def argv(self) -> list[str]:
        """Return nvcc's calls since the last time, without those for its version."""
        log = self.root / "argv"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def set_version(self, text: str) -> None:
        """Change what `nvcc --version` prints."""
        (self.root / "bin" / "version").write_text(text)

    def add(self, name: str, script: str) -> None:
        """Put a program beside nvcc."""
        path = self.root / "bin" / name
        path.write_text(script)
        path.chmod(0o755)


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolkit:
    """Put a stand-in nvcc first on PATH, and no nvidia-smi of this machine behind it."""
    toolkit = Toolkit(tmp_path / "toolkit")
    (toolkit.root / "bin").mkdir(parents=True)
    toolkit.add("nvcc", STAND_IN)
    toolkit.set_version("release 13.0")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "cat", "dirname"):
        (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    monkeypatch.setenv("PATH", f"{toolkit.root / 'bin'}{os.pathsep}{tools}")
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return toolkit


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    """Return saxpy with a copy of its sources that a test may change."""
    original = find_workload("saxpy")
    folder = tmp_path / "sources" / "saxpy"
    shutil.copytree(original.folder, folder)
    return replace(original, folder=folder)


def test_argv_of_nvcc(toolkit: Toolkit, workload: Workload) -> None:
    """The command line consists of flags, architecture, program and output."""
    program = build(workload, "sm_90")
    argv = toolkit.argv()
    output = argv.pop()
    assert argv == [
        "-O3",
        "-std=c++17",
        "-lineinfo",
        "-arch=sm_90",
        str(workload.folder / "main.cu"),
        "-o",
    ]
    assert Path(output).parent == program.parent
    assert Path(output) != program
    assert program.read_text() == "program\n"
    assert program.name.startswith("saxpy-sm_90-")
    assert [path.name for path in program.parent.iterdir()] == [program.name]


def test_second_build_does_not_compile(toolkit: Toolkit, workload: Workload) -> None:
    """A compiled program is found again instead of being compiled."""
    first = build(workload, "sm_90")
    assert toolkit.argv()
    assert build(workload, "sm_90") == first
    assert toolkit.argv() == []


def test_a_program_that_others_may_have_written_is_compiled_again(toolkit: Toolkit, workload: Workload) -> None:
    """A program that others may write is not run, nor one behind a link: both are replaced, in a private folder."""
    program = build(workload, "sm_90")
    assert stat.S_IMODE(program.stat().st_mode) == stat.S_IMODE(program.parent.stat().st_mode) == 0o700
    program.chmod(0o777)
    build(workload, "sm_90")
    program.rename(program.with_name("elsewhere"))
    program.symlink_to("elsewhere")
    assert build(workload, "sm_90") == program
    assert not program.is_symlink()
    assert toolkit.argv().count("-o") == 3


def test_changed_source_compiles_again(toolkit: Toolkit, workload: Workload) -> None:
    """A changed source and an additional header each give another program."""
    programs = {build(workload, "sm_90")}
    with (workload.folder / "main.cu").open("a") as source:
        source.write("// changed\n")
    programs.add(build(workload, "sm_90"))
    (workload.folder / "more.cuh").write_text("#pragma once\n")
    programs.add(build(workload, "sm_90"))
    assert len(programs) == 3
    assert toolkit.argv().count("-o") == 3


def test_changed_shared_header_compiles_again(
    toolkit: Toolkit, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shared headers count as sources of every program."""
    first = build(workload, "sm_90")
    other = tmp_path / "common.cuh"
    other.write_text("// another one\n")
    monkeypatch.setattr("rooflens.workloads.build._SHARED", (other,))
    assert build(workload, "sm_90") != first
    assert toolkit.argv().count("-o") == 2


def test_architecture_and_compiler_are_part_of_the_key(toolkit: Toolkit, workload: Workload) -> None:
    """Another GPU or another nvcc gives another program."""
    programs = {build(workload, architecture) for architecture in ("sm_80", "sm_90")}
    toolkit.set_version("release 13.1")
    programs.add(build(workload, "sm_90"))
    assert len(programs) == 3


def test_failing_compile_leaves_nothing(toolkit: Toolkit, workload: Workload) -> None:
    """The error has nvcc's own words, no partial program remains, and the next build tries again."""
    (toolkit.root / "broken").touch()
    with pytest.raises(EnvironmentMissingError, match=r"main\.cu\(3\): error: no such thing") as caught:
        build(workload, "sm_90")
    assert "`saxpy` (status 2)" in str(caught.value)
    assert caught.value.hint
    assert list((cache_folder() / "cuda").iterdir()) == []
    (toolkit.root / "broken").unlink()
    assert build(workload, "sm_90").exists()


def test_silent_failure_is_one_too(toolkit: Toolkit, workload: Workload) -> None:
    """An nvcc that succeeds without writing the program counts as failed."""
    toolkit.add("nvcc", "#!/bin/sh\nexit 0\n")
    with pytest.raises(EnvironmentMissingError, match="could not compile"):
        build(workload, "sm_90")


def test_cublas_is_linked_where_it_is_used_and_found(
    toolkit: Toolkit, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a workload that includes cuBLAS is linked with it, and only if header and library exist."""
    ladder = find_workload("gemm_ladder")
    monkeypatch.setattr("rooflens.workloads.build._cublas_of_python", lambda _: None)
    build(ladder, "sm_90")
    assert "-DROOFLENS_CUBLAS" not in toolkit.argv()
    for name in ("include/cublas_v2.h", "lib64/libcublas.so"):
        (toolkit.root / name).parent.mkdir()
        (toolkit.root / name).touch()
    build(ladder, "sm_90")
    libraries = toolkit.root / "lib64"
    assert toolkit.argv()[4:9] == [
        "-DROOFLENS_CUBLAS",
        f"-L{libraries}",
        "-lcublas",
        "-Xlinker",
        f"-rpath={libraries}",
    ]
    build(workload, "sm_90")
    assert "-lcublas" not in toolkit.argv()


@pytest.mark.parametrize("release", ["13.0", "12.8"])
def test_cublas_is_found_among_pythons_packages(
    toolkit: Toolkit, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    """The library of NVIDIA's Python packages is linked if the major version in its name is nvcc's."""
    site = tmp_path / "site"
    package = site / "nvidia" / ("cu13" if release == "13.0" else "cublas")
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda _: SimpleNamespace(submodule_search_locations=[site / "nvidia"])
    )
    toolkit.set_version(f"Cuda compilation tools, release {release}, V{release}.1")
    ladder, cuda = find_workload("gemm_ladder"), release.partition(".")[0]
    assert "of CUDA " + cuda in lacking_library(ladder)
    assert f"`pip install nvidia-cublas{'-cu12' if cuda == '12' else ''}` brings it" in lacking_library(ladder)
    for name in ("include/cublas_v2.h", "lib/libcublas.so.11"):
        (package / name).parent.mkdir(parents=True)
        (package / name).touch()
    assert find_compiler().cublas is None
    (package / "lib" / f"libcublas.so.{cuda}").touch()
    assert (lacking_library(ladder), lacking_library(workload)) == ("", "")
    build(ladder, "sm_90")
    assert toolkit.argv()[4:11] == [
        "-DROOFLENS_CUBLAS",
        "-Xcompiler",
        f"-idirafter,{package / 'include'}",
        f"-L{package / 'lib'}",
        f"-l:libcublas.so.{cuda}",
        "-Xlinker",
        f"-rpath={package / 'lib'}",
    ]


def test_a_cache_that_cannot_be_written_is_named_before_nvcc_runs(
    toolkit: Toolkit, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in place of the cache folder, and a missing home, are environment errors with a hint."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        EnvironmentMissingError, match=r"^cannot write to the cache of compiled programs, `.*/cuda`"
    ) as caught:
        build(workload, "sm_90")
    assert "XDG_CACHE_HOME" in caught.value.hint
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(
        Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("Could not determine home directory."))
    )
    with pytest.raises(EnvironmentMissingError, match="compiled programs have no place"):
        build(workload, "sm_90")
    assert toolkit.argv() == []


def test_no_nvcc_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without nvcc, a single error says where it was searched."""
    monkeypatch.setattr("rooflens.workloads.build.os.access", lambda *_: False)
    with pytest.raises(EnvironmentMissingError, match="no `nvcc` found") as caught:
        find_compiler({"PATH": str(tmp_path)})
    assert caught.value.exit_code == 3
    assert "CUDA_HOME" in caught.value.hint


@pytest.mark.parametrize("name", ["CUDA_HOME", "CUDA_PATH"])
def test_nvcc_is_found_beside_path(toolkit: Toolkit, tmp_path: Path, name: str) -> None:
    """CUDA_HOME and CUDA_PATH lead to nvcc if PATH does not."""
    compiler = find_compiler({"PATH": str(tmp_path), name: str(toolkit.root)})
    assert compiler.path == toolkit.nvcc
    assert compiler.version == "release 13.0"


def test_nvcc_that_does_not_run(toolkit: Toolkit) -> None:
    """A broken nvcc is named with its output."""
    toolkit.add("nvcc", "#!/bin/sh\necho broken pipe dream >&2\nexit 1\n")
    with pytest.raises(EnvironmentMissingError, match="broken pipe dream"):
        find_compiler()


@pytest.mark.parametrize(
    ("answer", "architecture"),
    [
        (f"echo '{H200}'; echo '{H200.replace('9.0', '8.0')}'", "sm_90a"),
        (f"echo '{H200.replace('9.0', '12.0')}'", "sm_120"),
        (f"echo '{H200.replace('9.0', '[N/A]')}'", "native"),
        ("echo No devices were found; exit 6", "native"),
    ],
)
def test_architecture_of_this_machine(toolkit: Toolkit, answer: str, architecture: str) -> None:
    """The first visible GPU decides the architecture; without an answer it is left to nvcc."""
    toolkit.add("nvidia-smi", f"#!/bin/sh\n{answer}\n")
    assert local_architecture() == architecture


@pytest.mark.usefixtures("toolkit")
def test_architecture_without_nvidia_smi() -> None:
    """Without `nvidia-smi` the architecture is left to nvcc."""
    assert local_architecture() == "native"


def test_local_architecture_is_the_default(toolkit: Toolkit, workload: Workload) -> None:
    """Without a given architecture the program is built for this machine."""
    toolkit.add("nvidia-smi", f"#!/bin/sh\necho '{H200.replace('9.0', '8.9')}'\n")
    assert build(workload).name.startswith("saxpy-sm_89-")
    assert "-arch=sm_89" in toolkit.argv()


def test_only_cuda_is_compiled(workload: Workload) -> None:
    """A PyTorch workload is refused, as there is nothing to build."""
    with pytest.raises(InputError, match="its kind is `torch`"):
        build(replace(workload, kind="torch"), "sm_90")
