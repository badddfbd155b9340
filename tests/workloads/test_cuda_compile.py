"""Compile every CUDA workload for every architecture, and check the machine code against the lessons' claims.

All are compiled as one program, so that nvcc reads the headers (its slowest part) and the disassembler starts once per
architecture. Each is compiled alone, too, as users do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from support.one_source import namespace_of, write_one_source

from rooflens.errors import EnvironmentMissingError
from rooflens.model.cases import Workload
from rooflens.workloads import build
from rooflens.workloads.build import FLAGS, Compiler, compile_command, find_compiler, library_flags
from rooflens.workloads.registry import load_workloads

pytestmark = pytest.mark.nvcc

WORKLOADS = [workload for workload in load_workloads() if workload.kind == "cuda"]
AT_ONCE = 2
SPECIFIC = {"sm_90", "sm_100", "sm_120"}
"""Architectures with instructions that exist only in code for the exact chip."""

ARCHITECTURES = tuple(f"{one}a" if one in SPECIFIC else one for one in build.ARCHITECTURES)
WARNINGS = ("-Xcompiler", "-Wall,-Wextra,-Werror", "-Werror", "all-warnings")
EVERY_ARCHITECTURE = tuple(f"-gencode=arch=compute_{name[3:]},code={name}" for name in ARCHITECTURES)
AMPERE_ON = tuple(name for name in ARCHITECTURES if name != "sm_75")

Opcodes = dict[tuple[str, str], Counter[str]]
"""(Architecture, kernel) -> count of each opcode."""


class Claim(NamedTuple):
    """Count of opcodes with a prefix in a kernel's machine code."""

    workload: str
    kernel: str
    architectures: tuple[str, ...]
    opcode: str
    least: int
    most: int


CLAIMS = [
    Claim("saxpy", "saxpy", ARCHITECTURES, "LDG.E.128", 2, 2),
    Claim("fma", "fma_chain", ARCHITECTURES, "FFMA", 64, 80),
    Claim("roofline", "roofline_saxpy", ARCHITECTURES, "LDG.E.128", 2, 2),
    Claim("roofline", "roofline_fma", ARCHITECTURES, "FFMA", 4, 80),
    Claim("fp16_fma", "fp16_fma", ARCHITECTURES, "HFMA2", 64, 80),
    Claim("l2_stream", "l2_stream", ARCHITECTURES, "LDG.E.128", 8, 20),
    Claim("gather", "gather", ARCHITECTURES, "LDG", 2, 2),
    Claim("pointer_chase", "pointer_chase", ARCHITECTURES, "LDG", 1, 1),
    Claim("tiny_launches", "tiny", ARCHITECTURES, "FFMA", 1, 1),
    Claim("transpose", "transpose", ARCHITECTURES, "LDS", 4, 4),
    Claim("transpose", "transpose", ARCHITECTURES, "STS", 4, 4),
    Claim("int8_mma", "int8_mma", ("sm_75",), "IMMA.8816.S8.S8", 128, 160),
    Claim("int8_mma", "int8_mma", AMPERE_ON, "IMMA.16832.S8.S8", 32, 40),
    Claim("gemm_ladder", "gemm_03_shared_tile", ARCHITECTURES, "LDS", 40, 40),
    Claim("gemm_ladder", "gemm_03_shared_tile", ARCHITECTURES, "FFMA", 32, 32),
    Claim("gemm_ladder", "gemm_04_blocktile_1d", ARCHITECTURES, "LDS", 24, 24),
    Claim("gemm_ladder", "gemm_04_blocktile_1d", ARCHITECTURES, "FFMA", 64, 64),
    Claim("gemm_ladder", "gemm_05_blocktile_2d", ARCHITECTURES, "LDS", 36, 36),
    Claim("gemm_ladder", "gemm_05_blocktile_2d", ARCHITECTURES, "FFMA", 512, 512),
    Claim("gemm_ladder", "gemm_05_blocktile_2d", ARCHITECTURES, "LDG", 8, 8),
    Claim("gemm_ladder", "gemm_06_vectorized", ARCHITECTURES, "LDG.E.128", 2, 2),
    Claim("gemm_ladder", "gemm_06_vectorized", ARCHITECTURES, "FFMA", 512, 512),
    Claim("gemm_ladder", "gemm_07_warptile", ARCHITECTURES, "FFMA", 512, 512),
    Claim("gemm_ladder", "gemm_08_tensor_core", ("sm_75",), "HMMA.1688.F32", 128, 128),
    Claim("gemm_ladder", "gemm_08_tensor_core", AMPERE_ON, "HMMA.16816.F32", 64, 64),
    Claim("gemm_ladder", "gemm_09_autotuned", AMPERE_ON, "HMMA.16816.F32", 32, 128),
    Claim("gemm_ladder", "gemm_10_multistage", ("sm_75",), "HMMA.1688.F32", 256, 256),
    Claim("gemm_ladder", "gemm_10_multistage", AMPERE_ON, "LDGSTS.E.BYPASS.128", 32, 64),
    Claim("gemm_ladder", "gemm_10_multistage", AMPERE_ON, "HMMA.16816.F32", 128, 256),
    Claim("gemm_ladder", "gemm_10_multistage", ARCHITECTURES, "LDSM.16.M", 32, 64),
    Claim("gemm_ladder", "gemm_10_multistage", ARCHITECTURES, "STG.E.64", 64, 64),
    Claim("gemm_ladder", "gemm_11_wgmma", ("sm_90a",), "HGMMA.64x256x16.F32", 4, 4),
    Claim("gemm_ladder", "gemm_11_wgmma", ("sm_90a",), "UTMALDG.2D", 5, 5),
    Claim("gemm_ladder", "gemm_11_wgmma", ("sm_90a",), "STG.E.64", 64, 64),
    Claim("attention_ladder", "attention_01_scores", ARCHITECTURES, "LDG", 128, 128),
    Claim("attention_ladder", "attention_01_scores", ARCHITECTURES, "FFMA", 64, 64),
    Claim("attention_ladder", "attention_02_online_softmax", ARCHITECTURES, "LDS", 48, 48),
    Claim("attention_ladder", "attention_02_online_softmax", ARCHITECTURES, "FFMA", 512, 600),
    Claim("attention_ladder", "attention_03_tensor_core", ("sm_75",), "HMMA.1688.F32", 256, 256),
    Claim("attention_ladder", "attention_03_tensor_core", AMPERE_ON, "HMMA.16816.F32", 128, 256),
    Claim("attention_ladder", "attention_03_tensor_core", AMPERE_ON, "LDGSTS.E.BYPASS.128", 16, 24),
    Claim("attention_ladder", "attention_03_tensor_core", ARCHITECTURES, "LDSM.16.M", 32, 64),
    Claim("attention_ladder", "attention_03_tensor_core", ARCHITECTURES, "MUFU.EX2", 68, 136),
    Claim("int8_wgmma", "int8_wgmma", ("sm_90a",), "IGMMA.64x128x32.S8.S8", 4, 4),
    Claim("stencil", "laplacian_fp64", ARCHITECTURES, "DFMA", 12, 60),
    Claim("histogram", "histogram_global", ARCHITECTURES, "RED", 16, 48),
    Claim("histogram", "histogram_shared", ARCHITECTURES, "ATOMS", 16, 48),
    Claim("spill", "spilled", ARCHITECTURES, "LDL", 40, 60),
    Claim("spill", "in_registers", ARCHITECTURES, "FFMA", 72, 72),
]
"""What the machine code must contain: loops that were not optimised away, and the instruction that a rung is about."""


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    """Return this machine's nvcc; skip the test if there is none."""
    try:
        return find_compiler()
    except EnvironmentMissingError as error:
        pytest.skip(f"{error}: nothing is compiled for {', '.join(ARCHITECTURES)}")


@pytest.fixture(scope="module")
def program(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile all workloads for all architectures into one program, whose first argument selects the workload."""
    folder = tmp_path_factory.mktemp("program")
    libraries = dict.fromkeys(flag for workload in WORKLOADS for flag in library_flags(workload, compiler))
    source = write_one_source(WORKLOADS, folder / "all.cu")
    flags = (*FLAGS, *EVERY_ARCHITECTURE, *WARNINGS, f"--threads={AT_ONCE}", *libraries)
    _compile([str(compiler.path), *flags, str(source), "-o", str(folder / "all")])
    return folder / "all"


def _compile(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - nvcc, our sources
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def opcodes(program: Path) -> Opcodes:
    """Count the opcodes of every kernel; skip the test without a disassembler."""
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin"
    places = os.pathsep.join([os.environ.get("PATH", ""), str(find_compiler().path.parent), str(wheels)])
    cuobjdump = shutil.which("cuobjdump", path=places)
    if cuobjdump is None or shutil.which("nvdisasm", path=places) is None:
        pytest.skip("no cuobjdump and nvdisasm: pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm")

    def list_one(architecture: str) -> Opcodes:
        command = [cuobjdump, "-sass", "-arch", architecture, str(program)]
        done = subprocess.run(  # noqa: S603 - the disassembler, our program
            command, capture_output=True, text=True, check=True, env={"PATH": places}
        )
        return _count(architecture, done.stdout)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {key: codes for one in pool.map(list_one, ARCHITECTURES) for key, codes in one.items()}


def _count(architecture: str, listing: str) -> Opcodes:
    counts: Opcodes = defaultdict(Counter)
    kernel = ""
    for line in listing.splitlines():
        if match := re.search(r"Function : (\S+)", line):
            kernel = match[1]
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+ +)?([A-Z][\w.]*)", line):
            counts[architecture, kernel][match[1]] += 1
    return counts


def test_compiles_for_every_architecture(program: Path) -> None:
    """All programs compile without a warning for each architecture."""
    assert program.stat().st_size > 0


def test_each_program_compiles_alone(compiler: Compiler, tmp_path: Path) -> None:
    """Each program compiles alone, without a warning and without another's headers.

    It is read and compiled for one chip, as headers are the same for all; all programs as one are assembled and linked.
    """

    def compile_one(workload: Workload) -> None:
        flags = (*FLAGS, "-ptx", "-arch=sm_90a", *WARNINGS, *library_flags(workload, compiler))
        _compile(compile_command(compiler, workload, flags, tmp_path / workload.name))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(compile_one, WORKLOADS))
    assert {path.name for path in tmp_path.iterdir()} == {workload.name for workload in WORKLOADS}


def test_holds_every_architecture(opcodes: Opcodes) -> None:
    """The compiled program has machine code of every workload for each architecture."""
    for workload in WORKLOADS:
        found = {architecture for architecture, kernel in opcodes if _is_of(workload.name, kernel)}
        assert found == set(ARCHITECTURES)


def _is_of(workload: str, mangled: str) -> bool:
    """Return whether a kernel belongs to a workload: its mangled name begins with the workload's namespace."""
    return mangled.startswith(f"_ZN{len(namespace_of(workload))}{namespace_of(workload)}")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.kernel}-{claim.opcode}")
def test_machine_code_does_what_the_lesson_says(opcodes: Opcodes, claim: Claim) -> None:
    """Loops are not optimised away, loads have the claimed width and number, tensor opcodes the named shape."""
    found = {
        key: sum(count for code, count in codes.items() if code.startswith(claim.opcode))
        for key, codes in opcodes.items()
        if key[0] in claim.architectures and _is_of(claim.workload, key[1])
        if claim.kernel in key[1].partition(namespace_of(claim.workload))[2]
    }
    assert {architecture for architecture, _ in found} == set(claim.architectures)
    assert all(claim.least <= count <= claim.most for count in found.values()), found


def test_only_the_kernel_made_to_spill_uses_local_memory(opcodes: Opcodes) -> None:
    """No kernel keeps operands in local memory on any architecture, except the one that teaches it."""
    using = {key for key, codes in opcodes.items() if any(code.startswith(("LDL", "STL")) for code in codes)}
    made_to = {key for key in opcodes if _is_of("spill", key[1]) and "7spilled" in key[1]}
    assert using == made_to
    assert {architecture for architecture, _ in made_to} == set(ARCHITECTURES)


def test_programs_refuse_a_machine_without_gpu(program: Path) -> None:
    """Without a GPU a program prints one line and exits with 1; real GPUs are hidden from it."""
    for workload in WORKLOADS:
        done = subprocess.run(  # noqa: S603 - our program
            [program, workload.name], capture_output=True, text=True, check=False, env={"CUDA_VISIBLE_DEVICES": ""}
        )
        assert done.returncode == 1
        assert done.stdout == ""
        assert re.fullmatch(r"error: no NVIDIA GPU can be used: [^\n]+\n", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", "many"], "error: `--n` takes a whole number, not `many`\n"),
        (["--m", "4"], "error: this workload has no argument `--m`\n"),
        (["n", "4"], "error: arguments are pairs `--name number`, not `n`\n"),
        (["--n"], "error: arguments are pairs `--name number`, not `--n`\n"),
        (["--iterations", "0"], "error: `--iterations` must be 1 to 1000000\n"),
        (["--n", "0"], "error: `--n` must be 1 to 8589934592\n"),
    ],
)
def test_programs_refuse_bad_arguments(program: Path, arguments: list[str], message: str) -> None:
    """A misspelled or impossible argument is named before anything is allocated."""
    done = subprocess.run(  # noqa: S603 - our program
        [program, "saxpy", *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
