"""The calibration's machine code: each kernel's loop does what it claims to measure, and little else."""

from __future__ import annotations

import shutil
import subprocess
from typing import NamedTuple

import pytest
from support.loops import for_all
from support.sass import Kernel, count, parse_sass

from rooflens.errors import EnvironmentMissingError
from rooflens.workloads.build import ARCHITECTURES, FLAGS, find_compiler
from rooflens.workloads.calibrating import PROGRAM

pytestmark = pytest.mark.nvcc

HOPPER = "sm_90a"
TARGETS = (*ARCHITECTURES, HOPPER)
TURING = {"sm_75"}
AMPERE_AND_LATER = set(TARGETS) - TURING
FP8 = {"sm_89", "sm_120"}


class Loop(NamedTuple):
    """What one pass of a kernel's loop does.

    Attributes:
        kernel: Part of its mangled name.
        opcode: Pattern of the measured opcode.
        times: How many of them are in one pass.
        others: Most other instructions, not counting NOP.
        where: Architectures that have the instruction; on the others the kernel is empty.
    """

    kernel: str
    opcode: str
    times: int
    others: int
    where: set[str]


LOOPS = (
    Loop("9read_dram", r"LDG\.E\.EF\.128", 8, 32, set(TARGETS)),
    Loop("9copy_dram", r"LDG\.E\.EF\.128", 8, 32, set(TARGETS)),
    Loop("9copy_dram", r"STG\.E\.EF\.128", 8, 32, set(TARGETS)),
    Loop("7read_l2", r"LDG\.E\.128\.STRONG\.GPU", 8, 32, set(TARGETS)),
    Loop("11read_shared", r"LDS\.(U\.)?128", 32, 136, set(TARGETS)),
    Loop("10fma_chainsIdE", r"DFMA", 512, 6, set(TARGETS)),
    Loop("10fma_chainsIfE", r"FFMA", 512, 6, set(TARGETS)),
    Loop("10fma_chainsI7__half2E", r"HFMA2", 512, 6, set(TARGETS)),
    Loop("10TuringFp16E", r"HMMA\.1688\.F32$", 32, 6, TURING),
    Loop("15TuringFp16Acc16E", r"HMMA\.1688\.F16$", 32, 6, TURING),
    Loop("10TuringInt8E", r"IMMA\.8816\.S8\.S8$", 32, 6, TURING),
    Loop("7MmaBf16E", r"HMMA\.16816\.F32\.BF16$", 32, 6, AMPERE_AND_LATER),
    Loop("7MmaFp16E", r"HMMA\.16816\.F32$", 32, 6, AMPERE_AND_LATER),
    Loop("12MmaFp16Acc16E", r"HMMA\.16816\.F16$", 32, 6, AMPERE_AND_LATER),
    Loop("7MmaTf32E", r"HMMA\.1688\.F32\.TF32$", 32, 6, AMPERE_AND_LATER),
    Loop("7MmaInt8E", r"IMMA\.16832\.S8\.S8$", 32, 6, AMPERE_AND_LATER),
    Loop("7MmaFp64E", r"DMMA\.(884|8x8x4)$", 32, 6, AMPERE_AND_LATER),
    Loop("6MmaFp8E", r"QMMA\.16832\.F32\.E4M3\.E4M3$", 32, 40, FP8),
    Loop("9WgmmaBf16E", r"HGMMA\.64x128x16\.F32\.BF16$", 16, 64, {HOPPER}),
    Loop("9WgmmaFp16E", r"HGMMA\.64x128x16\.F32$", 16, 64, {HOPPER}),
    Loop("9WgmmaTf32E", r"HGMMA\.64x128x8\.F32\.TF32$", 16, 64, {HOPPER}),
    Loop("8WgmmaFp8E", r"QGMMA\.64x128x32\.F32\.E4M3\.E4M3$", 16, 64, {HOPPER}),
    Loop("9WgmmaInt8E", r"IGMMA\.64x128x32\.S8\.S8$", 16, 64, {HOPPER}),
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Kernel]]:
    """Compile for all architectures at once and disassemble."""
    try:
        compiler = find_compiler()
    except EnvironmentMissingError as error:
        pytest.skip(str(error))
    beside = str(compiler.path.resolve().parent)
    cuobjdump = shutil.which("cuobjdump") or shutil.which("cuobjdump", path=beside)
    if cuobjdump is None:
        pytest.skip("no cuobjdump: it comes with the CUDA toolkit")
    fatbin = tmp_path_factory.mktemp("calibrate") / "calibrate.fatbin"
    targets = [f"-gencode=arch={one.replace('sm', 'compute')},code={one}" for one in TARGETS]
    source = str(PROGRAM.folder / PROGRAM.program)
    _run(
        [str(compiler.path), *FLAGS, *targets, "--threads=0", "-Werror=all-warnings", "-fatbin", source, f"-o={fatbin}"]
    )
    return parse_sass(_run([cuobjdump, "-sass", str(fatbin)]))


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our argv
    assert done.returncode == 0, done.stderr
    return done.stdout


@for_all("target", TARGETS)
@for_all("loop", LOOPS, lambda loop: loop.kernel)
def test_a_kernel_does_what_it_measures(kernels: dict[str, dict[str, Kernel]], target: str, loop: Loop) -> None:
    """Each loop has every instruction that a pass counts; without the instruction there is no loop."""
    (kernel,) = (found for name, found in kernels[target].items() if loop.kernel in name)
    body = kernel.loop_of(loop.opcode)
    if target not in loop.where:
        assert body == ()
        return
    assert count(body, loop.opcode) == loop.times
    assert len(body) - loop.times - count(body, "NOP") <= loop.others


@for_all("target", TARGETS)
def test_no_kernel_spills(kernels: dict[str, dict[str, Kernel]], target: str) -> None:
    """No kernel keeps operands in local memory, which would be measured too."""
    spilling = [name for name, kernel in kernels[target].items() if count(kernel.opcodes, "LDL|STL")]
    assert spilling == []


@for_all("target", TARGETS)
def test_every_kernel_reads_its_clock_twice(kernels: dict[str, dict[str, Kernel]], target: str) -> None:
    """The measured code is between two timer readings, which were not moved into the loop."""
    for loop in LOOPS:
        (kernel,) = (found for name, found in kernels[target].items() if loop.kernel in name)
        if target not in loop.where:
            continue
        timer = [at for at, opcode, operands in kernel.code if "GLOBALTIMER" in operands and opcode.startswith("CS2")]
        measured = [at for at, opcode, _ in kernel.code if count((opcode,), loop.opcode)]
        assert len(timer) == 2
        inside = [at for at in measured if timer[0] < at < timer[1]]
        assert len(inside) >= loop.times
