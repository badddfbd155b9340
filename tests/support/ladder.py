"""A simulated recording of the GEMM ladder on an A100: the files that `rooflens profile gemm_ladder` would write.

FLOPs are 2 n^3, the time follows from the share of the fp32 or tensor peak that a rung should reach, and every other
unit has a share of its own. Each report has the un-profiled run beside it, with cuBLAS's time.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from support.chips import A100
from support.fixture_kernels import Shares, by_shares, square_gemm
from support.make_fixtures import Fixture
from support.ncu_rep_writer import KernelSpec
from support.synthetic_kernels import Launch, kernel_spec

from rooflens.ingest.reports.unprofiled import write_unprofiled
from rooflens.model.unprofiled import Unprofiled

N = 4096
FLOP = 2 * N**3
ITERATIONS = 20
CUBLAS_NS = {"fp32": 7_600_000, "fp16": 590_000}
"""One product by cuBLAS: at 0.93 of the fp32 peak, and at 0.75 of the dense tensor peak."""

_CHIP = replace(A100, tensor_opcode=("HMMA.16816.F32", 4096))
_GRID = Launch((1024, 1, 1), (256, 1, 1), registers=64, stalls={"long_scoreboard": 300, "wait": 200})


class Rung(Struct, frozen=True):
    """The properties of a rung."""

    number: int
    name: str
    shares: Shares


RUNGS = (
    Rung(1, "naive", Shares(dram=0.03, l2=0.31, l1=0.93, sectors_per_wavefront=1.1, fp32=0.016)),
    Rung(2, "coalesced", Shares(dram=0.22, l2=0.34, l1=0.88, fp32=0.09)),
    Rung(3, "shared_tile", Shares(dram=0.24, l2=0.3, l1=0.1, smem=0.81, fp32=0.15)),
    Rung(4, "blocktile_1d", Shares(dram=0.25, l2=0.33, l1=0.08, smem=0.84, fp32=0.37)),
    Rung(5, "blocktile_2d", Shares(dram=0.24, l2=0.31, l1=0.06, smem=0.66, conflicts=0.4, fp32=0.64, other_issue=0.08)),
    Rung(6, "vectorized", Shares(dram=0.23, l2=0.27, l1=0.04, smem=0.46, conflicts=0.2, fp32=0.75)),
    Rung(7, "warptile", Shares(dram=0.21, l2=0.25, l1=0.04, smem=0.33, fp32=0.84)),
)
TENSOR = (8, "tensor_core", 0.42)
AUTOTUNED = (9, "autotuned", 0.58)


def ladder_kernels() -> dict[int, KernelSpec]:
    """Describe the kernel of each rung."""
    peak = A100.sm_count * A100.ffma_per_sm * 2 * A100.sm_clock_hz
    found = {}
    for rung in RUNGS:
        time_ns = round(FLOP / (rung.shares.fp32 * peak) * 1e9)
        name = (
            f"gemm_ladder::{rung.name}::gemm_{rung.number:02}_{rung.name}(int, const float *, const float *, float *)"
        )
        found[rung.number] = kernel_spec(by_shares(name, A100, time_ns, rung.shares, _GRID))
    for number, _, share in (TENSOR, AUTOTUNED):
        found[number] = kernel_spec(square_gemm(_CHIP, share, N))
    return found


def record_ladder(folder: Path) -> list[Path]:
    """Write a report and an un-profiled run for each rung; return the reports in order."""
    written = []
    for number, kernel in ladder_kernels().items():
        name = f"gemm_ladder.{number:02}"
        program = f"gemm_ladder-sm_80-{'0' * 64} --rung {number} --n {N} --iterations 1"
        fixture = Fixture(name, "", "", A100, (kernel,), program, "--nvtx --nvtx-include rooflens --clock-control base")
        path = folder / f"{name}.ncu-rep"
        path.write_bytes(fixture.encode())
        kernel_ns = round(kernel.metrics["gpu__time_duration.sum"] * ITERATIONS * 0.93)  # the clock is not locked
        dtype = "fp32" if number < TENSOR[0] else "fp16"
        write_unprofiled(
            path,
            Unprofiled(
                wall_ns=round(kernel_ns * 1.01),
                kernel_ns=kernel_ns,
                launches=ITERATIONS,
                source="workload",
                iterations=ITERATIONS,
                cublas_ns=CUBLAS_NS[dtype] * ITERATIONS,
            ),
        )
        written.append(path)
    return written
