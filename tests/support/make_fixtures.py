"""Write the synthetic fixture reports and their part of the manifest: `python -m support.make_fixtures` in `tests`.

Nothing was measured. Amounts come from formulas, durations from the share of a peak that a kernel should reach;
`fixtures/manifest.toml` says for each file what it shows.
"""

from __future__ import annotations

import math
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from support.attention import attention_kernels
from support.chips import A100, ARCHITECTURES, H200, Chip
from support.fixture_kernels import Shares, by_shares, sgemm, square_gemm, triad
from support.ncu_rep_writer import KernelSpec, ReportSpec, Rule, SessionSpec, encode_report
from support.sweep import NCU_OPTIONS, PROGRAM, STEPS, sweep_kernel
from support.synthetic_kernels import Launch, Work, device_metrics, kernel_spec, launch_metrics

MANIFEST = "manifest.toml"
MARK = "# Synthetic reports: everything below is written by tests/support/make_fixtures.py.\n"

_WIDE = Launch((16384, 1, 1), (256, 1, 1))
_MEMORY_STALLS = {"long_scoreboard": 780, "wait": 120, "not_selected": 40, "selected": 60}


class Fixture(Struct, frozen=True):
    """A fixture report.

    Attributes:
        stem: File name without `.synthetic.ncu-rep`.
        shows: The verdict or property that it should show.
        what: A sentence about its kernels.
        program: The program on ncu's command line; by default named after the fixture.
        options: Options of ncu on its command line.
    """

    stem: str
    shows: str
    what: str
    chip: Chip
    kernels: tuple[KernelSpec, ...]
    program: str = ""
    options: str = "--clock-control base"

    @property
    def path(self) -> str:
        """Path below the fixtures' folder."""
        return f"synthetic/{self.stem}.synthetic.ncu-rep"

    def encode(self) -> bytes:
        """Return the bytes of the report."""
        session = SessionSpec(
            process_name=f"/synthetic/{(self.program or self.stem).partition(' ')[0]}",
            ncu_version=f"{self.chip.ncu_version} (build 0) (synthetic)",
            command_line=f"ncu {self.options} -o {self.stem}.synthetic /synthetic/{self.program or self.stem}",
        )
        return encode_report(ReportSpec(self.kernels, session))


def synthetic_fixtures() -> tuple[Fixture, ...]:
    """Return all synthetic fixtures."""
    architectures = tuple(_architecture(chip) for chip in ARCHITECTURES)
    return (*_memory(), *_compute(), *_latency(), *_incomplete(), *architectures, _attention(), *_sweep())


def manifest_entries() -> str:
    """Return the manifest's text about the synthetic fixtures."""
    return "\n".join(
        f'["{fixture.path}"]\n'
        f"synthetic = true\n"
        f'gpu = "{fixture.chip.name}"\n'
        f'shows = "{fixture.shows}"\n'
        f'what = "{fixture.what}"\n'
        f"kernels = {len(fixture.kernels)}\n"
        f'made_by = "tests/support/make_fixtures.py"\n'
        for fixture in synthetic_fixtures()
    )


def write_fixtures(folder: Path) -> None:
    """Write all synthetic fixtures, and the manifest's part about them, below `folder`."""
    (folder / "synthetic").mkdir(parents=True, exist_ok=True)
    for fixture in synthetic_fixtures():
        (folder / fixture.path).write_bytes(fixture.encode())
    manifest = folder / MANIFEST
    before = manifest.read_text(encoding="utf-8").partition(MARK)[0] if manifest.exists() else ""
    manifest.write_text(f"{before}{MARK}\n{manifest_entries()}", encoding="utf-8")


def _verdict(stem: str, shows: str, what: str, work: Work) -> Fixture:
    """Make the fixture of one verdict."""
    return Fixture(f"verdict_{stem}", shows, what, work.chip, (kernel_spec(work),))


def _memory() -> tuple[Fixture, ...]:
    """Make one fixture for each memory level."""
    l2 = Shares(dram=0.03, l2=0.86, l1=0.36, fp32=0.05)
    l1 = Shares(dram=0.05, l2=0.22, l1=0.90, sectors_per_wavefront=2.0, other_issue=0.1)
    smem = Shares(dram=0.12, dram_write=0.5, l2=0.06, l1=0.02, smem=0.88, conflicts=0.85, other_issue=0.1)
    return (
        _verdict("memory_dram", "memory at dram, at the roof", "A triad over 3 GiB.", triad(H200)),
        _verdict(
            "memory_l2",
            "memory at l2, at the roof",
            "Passes over a 30 MB table that stays in L2.",
            by_shares("reread_table<30>(const float4 *, float *, int)", H200, 200_000, l2, _WIDE),
        ),
        _verdict(
            "memory_l1",
            "memory at l1, at the roof",
            "Column reads of row-major data: many L1 wavefronts a request.",
            by_shares("sum_columns(const float *, float *, int, int)", H200, 300_000, l1, _WIDE),
        ),
        _verdict(
            "memory_smem",
            "memory at smem, at the roof, most of it bank conflicts",
            "A transpose through an unpadded tile in shared memory.",
            by_shares("transpose_unpadded<32>(const float *, float *, int)", H200, 150_000, smem, _WIDE),
        ),
    )


def _compute() -> tuple[Fixture, ...]:
    """Make one fixture for each kind of pipe, and the balanced one."""
    alu = Shares(dram=0.05, l2=0.05, l1=0.02, alu=0.91, other_issue=0.08)
    issue = Shares(dram=0.05, l2=0.05, l1=0.02, alu=0.62, xu=0.3, other_issue=0.57)
    stencil = Shares(dram=0.72, l2=0.30, l1=0.35, fp32=0.70, other_issue=0.1)
    return (
        _verdict("compute_fp32", "compute at fp32, at the roof", "An fp32 GEMM of FFMA instructions.", sgemm(A100)),
        _verdict("compute_tensor", "compute at tensor_bf16", "A bf16 GEMM of 8192^3.", square_gemm(A100, 0.86)),
        _verdict(
            "compute_alu",
            "compute at alu, at the roof, no FLOP",
            "Integer hashing.",
            by_shares("hash_blocks<64>(const unsigned int *, unsigned int *)", H200, 400_000, alu, _WIDE),
        ),
        _verdict(
            "compute_issue",
            "compute at issue, at the roof, no FLOP",
            "Random numbers: integer, conversion and exponential work that together fills the issue slots.",
            by_shares("philox_normal(float *, unsigned long, long)", H200, 400_000, issue, _WIDE),
        ),
        _verdict(
            "balanced",
            "balanced: dram and fp32 within 10 points",
            "A stencil near the ridge.",
            by_shares("stencil_25_point(const float *, float *, int3)", A100, 500_000, stencil, _WIDE),
        ),
    )


def _latency() -> tuple[Fixture, ...]:
    """Make the fixtures that no roof limits."""
    small = Launch((32, 1, 1), (128, 1, 1), occupancy=0.06, eligible_warps=0.2, stalls=_MEMORY_STALLS)
    gather = Launch((8448, 1, 1), (256, 1, 1), 40, occupancy=0.7, eligible_warps=0.3, stalls=_MEMORY_STALLS)
    tiny = Launch((264, 1, 1), (256, 1, 1), occupancy=0.3, active_share=0.6, eligible_warps=0.5)
    rule = Rule("SOLBottleneck", "SpeedOfLight", "Small Grid", "Synthetic: this grid is too small for the device.")
    few = Shares(dram=0.04, l2=0.03, l1=0.02, fp32=0.02, other_issue=0.01)
    reduction = by_shares("reduce_rows(const float *, float *, int)", H200, 25_000, few, small)
    some = Shares(dram=0.34, dram_write=0.05, l2=0.20, l1=0.18, sectors_per_wavefront=2.0, fp32=0.02)
    return (
        _verdict(
            "latency_small_grid",
            "latency: grid below one wave",
            "A reduction by 32 blocks on 132 SMs.",
            replace(reduction, rules=(rule,)),
        ),
        _verdict(
            "latency_memory",
            "latency: long_scoreboard",
            "A gather through an index array with too few loads in flight.",
            by_shares("gather_embeddings(const float *, const int *, float *, int)", H200, 400_000, some, gather),
        ),
        _verdict(
            "overhead",
            "overhead: shorter than 5 us",
            "A bias added to a small tensor.",
            by_shares("add_bias(float *, const float *, int)", H200, 2_400, replace(some, dram=0.15), tiny),
        ),
    )


def _incomplete() -> tuple[Fixture, ...]:
    """Make the fixtures with missing counters or failed profiling."""
    name = "copy_rows(const float4 *, float4 *, int)"
    time = {"gpu__time_duration.sum": 50_000.0, "sm__cycles_elapsed.avg.per_second": H200.sm_clock_hz}
    timed = KernelSpec(name, device_metrics(H200) | launch_metrics(H200, _WIDE) | time, _WIDE.grid, _WIDE.block)
    good = kernel_spec(triad(H200))
    counters = [
        name for name in good.metrics if name.startswith(("gpu__", "sm__", "dram__", "lts__", "l1tex__", "smsp__"))
    ]
    failed = KernelSpec("faults(float *)", device_metrics(H200) | dict.fromkeys(counters, math.nan))
    return (
        Fixture("verdict_unknown", "unknown: only the time was collected", "A copy, timed.", H200, (timed,)),
        Fixture("failed_kernel", "a failed kernel behind a good one", "A triad, then a fault.", H200, (good, failed)),
    )


def _architecture(chip: Chip) -> Fixture:
    """Make the fixture of one architecture: a memory-bound and a compute-bound kernel with its names."""
    major, minor = chip.compute_capability
    gemm = square_gemm(chip) if chip.tensor_opcode else sgemm(chip)
    return Fixture(
        f"arch_cc{major}{minor}",
        f"the metric names and opcodes of compute capability {major}.{minor}",
        "A triad at 92 % of the memory bandwidth, and a GEMM.",
        chip,
        (kernel_spec(triad(chip)), kernel_spec(gemm)),
    )


def _attention() -> Fixture:
    """Make the workload fixture."""
    return Fixture(
        "attention",
        "naive attention, bound by the scores' trips to memory, beside a fused kernel without them",
        "Batch 4, 32 heads, sequence 2048, head dimension 128, bf16: two GEMMs, softmax, and flash attention.",
        H200,
        tuple(kernel_spec(work) for work in attention_kernels()),
    )


def _sweep() -> tuple[Fixture, ...]:
    """Make a report for every step of the sweep, with the workload's command line."""
    return tuple(
        Fixture(
            f"sweep_gemm_bf16_{step.size}",
            "one step of a sweep, with the command line of a bundled workload",
            f"A bf16 GEMM of {step.size}^3, as the case bf16_{step.size} of the workload gemm.",
            H200,
            (sweep_kernel(step),),
            PROGRAM.format(size=step.size),
            f"{NCU_OPTIONS} --clock-control base",
        )
        for step in STEPS
    )


if __name__ == "__main__":
    write_fixtures(Path(__file__).parent.parent.parent / "fixtures")
