"""The sweep of square bf16 GEMMs on an H200, N = 128 to 8192, as the bundled workload `gemm` would run it.

FLOPs are 2 N^3 and the operands N x N of 2 bytes. A small product ends before a launch has paid off; the next has too
few tiles for the SMs and leaves its result in L2; the large ones reread operands from memory, as they exceed L2.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import Gemm, tensor_gemm
from support.ncu_rep_writer import KernelSpec
from support.synthetic_kernels import SECTOR_BYTES, kernel_spec

PROGRAM = (
    "python -m rooflens.workloads.torch_harness gemm --case bf16_{size} --iterations 1"  # what `rooflens profile` runs
)
NCU_OPTIONS = "--nvtx --nvtx-include rooflens --filter-mode per-launch-config --launch-count 1"


class Step(Struct, frozen=True):
    """One product of the sweep.

    Attributes:
        tile: Rows and columns of a block's part of the result.
        reads: How often DRAM delivers the operands.
        written: Share of the result that L2 passes on to DRAM.
        occupancy: Resident warps as a share of an SM's maximum.
    """

    size: int
    duration_ns: int
    tile: tuple[int, int]
    reads: float
    written: float
    occupancy: float


STEPS = (
    Step(128, 4_300, (64, 64), 1.0, 0.0, 0.06),
    Step(1024, 13_900, (128, 128), 1.0, 0.0, 0.11),
    Step(4096, 335_000, (256, 128), 1.62, 1.0, 0.124),
    Step(8192, 2_400_000, (256, 128), 2.45, 1.0, 0.124),
)


def sweep_kernel(step: Step) -> KernelSpec:
    """Describe the kernel of one step, with the counter that tells writes to L2 from those passed on to DRAM."""
    gemm = Gemm(step.size, step.size, step.size, tile_m=step.tile[0], tile_n=step.tile[1])
    name = f"gemm_bf16_nn<{step.tile[0]}, {step.tile[1]}, 64>(GemmParams)"
    work = tensor_gemm(name, H200, gemm, step.duration_ns)
    stalls = {"long_scoreboard": 620, "barrier": 180, "wait": 120, "math_pipe_throttle": 80}
    spec = kernel_spec(
        replace(
            work,
            launch=replace(work.launch, occupancy=step.occupancy, stalls=stalls),
            dram_read_bytes=int(gemm.operand_bytes * step.reads) // SECTOR_BYTES * SECTOR_BYTES,
            dram_write_bytes=int(gemm.result_bytes * step.written) // SECTOR_BYTES * SECTOR_BYTES,
        )
    )
    written_sectors = float(gemm.result_bytes // SECTOR_BYTES)
    return replace(spec, metrics={**spec.metrics, "lts__t_sectors_srcunit_tex_op_write.sum": written_sectors})
