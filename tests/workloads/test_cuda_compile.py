"""Compile every CUDA workload for every architecture, and read in the machine code what the lessons claim."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rooflens.errors import EnvironmentMissingError
from rooflens.workloads.build import ARCHITECTURES, FLAGS, compile_command, find_compiler, library_flags
from rooflens.workloads.registry import load_workloads

if TYPE_CHECKING:
    from rooflens.model.cases import Workload

pytestmark = pytest.mark.nvcc

WORKLOADS = [workload for workload in load_workloads() if workload.kind == "cuda"]
AT_ONCE = 2
AMPERE_ON = tuple(name for name in ARCHITECTURES if name != "sm_75")

Opcodes = dict[tuple[str, str, str], Counter[str]]
"""Workload, architecture, kernel -> how often each opcode stands in it."""


class Claim(NamedTuple):
    """How often opcodes with a prefix stand in a kernel's machine code."""

    workload: str
    kernel: str
    architectures: tuple[str, ...]
    opcode: str
    least: int
    most: int


CLAIMS = [
    Claim("saxpy", "saxpy", ARCHITECTURES, "LDG.E.128", 2, 2),
    Claim("fma", "fma_chain", ARCHITECTURES, "FFMA", 64, 80),
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
    Claim("gemm_ladder", "gemm_05_blocktile_2d", ARCHITECTURES, "LDS", 32, 32),
    Claim("gemm_ladder", "gemm_05_blocktile_2d", ARCHITECTURES, "FFMA", 512, 512),
    Claim("gemm_ladder", "gemm_05_blocktile_2d", ARCHITECTURES, "LDG", 8, 8),
    Claim("gemm_ladder", "gemm_06_vectorized", ARCHITECTURES, "LDG.E.128", 2, 2),
    Claim("gemm_ladder", "gemm_06_vectorized", ARCHITECTURES, "FFMA", 512, 512),
    Claim("gemm_ladder", "gemm_07_warptile", ARCHITECTURES, "FFMA", 512, 512),
    Claim("gemm_ladder", "gemm_07_warptile", ARCHITECTURES, "LDL", 0, 0),
    Claim("gemm_ladder", "gemm_08_tensor_core", ("sm_75",), "HMMA.1688.F32", 128, 128),
    Claim("gemm_ladder", "gemm_08_tensor_core", AMPERE_ON, "HMMA.16816.F32", 64, 64),
    Claim("gemm_ladder", "gemm_08_tensor_core", ARCHITECTURES, "LDL", 0, 0),
]
"""What must stand in the machine code: loops that were not optimised away, the instruction that a rung is about."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Compile each workload once, for all architectures in one program."""
    try:
        compiler = find_compiler()
    except EnvironmentMissingError as error:
        pytest.skip(f"{error}: nothing is compiled for {', '.join(ARCHITECTURES)}")
    folder = tmp_path_factory.mktemp("programs")
    generate = [f"-gencode=arch=compute_{name[3:]},code={name}" for name in ARCHITECTURES]
    warnings = ["-Xcompiler", "-Wall,-Wextra,-Werror", "-Werror", "all-warnings"]

    def compile_one(workload: Workload) -> tuple[str, Path]:
        flags = [*FLAGS, *generate, *warnings, *library_flags(workload, compiler)]
        output = folder / workload.name
        command = compile_command(compiler, workload, flags, output)
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - nvcc, our sources
        assert done.returncode == 0, done.stderr
        return workload.name, output

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(pool.map(compile_one, WORKLOADS))


@pytest.fixture(scope="module")
def opcodes(programs: dict[str, Path]) -> Opcodes:
    """Count the opcodes of every kernel; skip where there is no disassembler."""
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin"
    places = os.pathsep.join([os.environ.get("PATH", ""), str(find_compiler().path.parent), str(wheels)])
    cuobjdump = shutil.which("cuobjdump", path=places)
    if cuobjdump is None or shutil.which("nvdisasm", path=places) is None:
        pytest.skip("no cuobjdump and nvdisasm: pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm")
    counts: Opcodes = defaultdict(Counter)
    for name, program in programs.items():
        done = subprocess.run(  # noqa: S603 - the disassembler, our program
            [cuobjdump, "-sass", str(program)], capture_output=True, text=True, check=True, env={"PATH": places}
        )
        _count(name, done.stdout, counts)
    return counts


def _count(name: str, listing: str, counts: Opcodes) -> None:
    architecture = kernel = ""
    for line in listing.splitlines():
        if match := re.search(r"arch = (sm_\d+)", line):
            architecture = match[1]
        elif match := re.search(r"Function : (\S+)", line):
            kernel = match[1]
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+ +)?([A-Z][\w.]*)", line):
            counts[name, architecture, kernel][match[1]] += 1


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_compiles_for_every_architecture(workload: Workload, programs: dict[str, Path]) -> None:
    """Each program compiles without a warning for all seven architectures."""
    assert programs[workload.name].stat().st_size > 0


def test_holds_every_architecture(opcodes: Opcodes) -> None:
    """The compiled programs hold machine code for each of them."""
    for workload in WORKLOADS:
        assert {architecture for name, architecture, _ in opcodes if name == workload.name} == set(ARCHITECTURES)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.kernel}-{claim.opcode}")
def test_machine_code_does_what_the_lesson_says(opcodes: Opcodes, claim: Claim) -> None:
    """Loops are not optimised away, loads are as wide and as many as claimed, tensor opcodes have the shape named."""
    found = {
        (architecture, name): sum(count for code, count in codes.items() if code.startswith(claim.opcode))
        for (owner, architecture, name), codes in opcodes.items()
        if owner == claim.workload
        and claim.kernel in name
        and "fill_kernel" not in name
        and architecture in claim.architectures
    }
    assert {architecture for architecture, _ in found} == set(claim.architectures)
    assert all(claim.least <= count <= claim.most for count in found.values()), found


def test_programs_refuse_a_machine_without_gpu(programs: dict[str, Path]) -> None:
    """Without a GPU a program ends with status 1 and one line; with a GPU it would run, so none is shown to it."""
    for program in programs.values():
        done = subprocess.run(  # noqa: S603 - our program
            [program], capture_output=True, text=True, check=False, env={"CUDA_VISIBLE_DEVICES": ""}
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
def test_programs_refuse_bad_arguments(programs: dict[str, Path], arguments: list[str], message: str) -> None:
    """A misspelt or impossible argument is named before anything is allocated."""
    done = subprocess.run(  # noqa: S603 - our program
        [programs["saxpy"], *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
