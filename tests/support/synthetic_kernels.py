"""Turn the amounts of a synthetic kernel into the metrics that a `standard` collection of it would have.

Everything follows from a few amounts, the duration and the chip's peaks, so that rates, per cents and opcode tables
cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from support.chips import Chip
from support.ncu_rep_writer import Instances, KernelSpec, MetricValue, Rule

THREADS_PER_WARP = 32
SECTOR_BYTES = 32
WAVEFRONT_BYTES = 128
SCHEDULERS_PER_SM = 4
_RESERVED_SMEM_BYTES = 1024

THREAD_TABLE = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
WARP_TABLE = "sass__inst_executed_per_opcode_with_modifier_all"

# Pipe by the first word of the opcode; other instructions only issue.
_PIPES = {
    "alu": ("IADD3", "LOP3", "SHF", "ISETP", "FMNMX", "SEL", "FSETP", "PRMT"),
    "xu": ("MUFU", "I2F", "F2I", "F2F"),
    "lsu": ("LDG", "STG", "LDS", "STS", "LDSM", "LDGSTS", "SHFL", "RED"),
    "tensor": ("HMMA", "UTCHMMA"),
}


class Launch(Struct, frozen=True):
    """How the kernel was launched, and how well its warps could be scheduled."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int = 32
    smem_bytes: int = 0
    occupancy: float = 0.85
    eligible_warps: float = 1.5
    active_share: float = 0.97
    stalls: Mapping[str, int] = field(
        default_factory=lambda: {"wait": 500, "not_selected": 400, "long_scoreboard": 300}
    )

    @property
    def blocks(self) -> int:
        """Thread blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]


class Work(Struct, frozen=True):
    """The amounts of one launch.

    Attributes:
        l2_read_bytes: Bytes that L2 returned to the SMs.
        l2_write_bytes: Bytes that the SMs sent to L2.
        l1_tag_bytes: Bytes looked up in the L1 tag stage.
        global_wavefronts: LSU data-stage wavefronts of global memory; likewise of shared memory.
        smem_conflicts: Shared-memory wavefronts added by bank conflicts.
        warp_opcodes: SASS opcode -> warp instructions, all threads on.
        tensor_ops: Base name of a tensor counter -> operations, if the collection has such counters.
    """

    name: str
    chip: Chip
    launch: Launch
    duration_ns: int
    dram_read_bytes: int
    dram_write_bytes: int
    l2_read_bytes: int
    l2_write_bytes: int
    l1_tag_bytes: int
    global_wavefronts: int
    warp_opcodes: Mapping[str, int]
    smem_wavefronts: int = 0
    smem_conflicts: int = 0
    tensor_ops: Mapping[str, int] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    def pipe_inst(self, pipe: str) -> int:
        """Return the warp instructions of one pipe."""
        return sum(count for opcode, count in self.warp_opcodes.items() if opcode.split(".")[0] in _PIPES[pipe])


class _Counter(Struct, frozen=True):
    """A counter's amount, with the peak of its unit per cycle and that unit's clock."""

    name: str
    amount: float
    peak: float
    clock_hz: float

    def metrics(self, duration_ns: int) -> dict[str, MetricValue]:
        """Return the amount and the forms that need no further pass."""
        seconds = duration_ns * 1e-9
        return {
            f"{self.name}.sum": float(self.amount),
            f"{self.name}.sum.per_second": self.amount / seconds,
            f"{self.name}.sum.peak_sustained": float(self.peak),
            f"{self.name}.sum.pct_of_peak_sustained_elapsed": 100.0
            * self.amount
            / (self.peak * self.clock_hz * seconds),
        }


def kernel_spec(work: Work) -> KernelSpec:
    """Describe `work` as a kernel of a report."""
    metrics = device_metrics(work.chip) | launch_metrics(work.chip, work.launch) | _time_metrics(work)
    for counter in _counters(work):
        metrics |= counter.metrics(work.duration_ns)
    metrics |= _scheduler_metrics(work) | _peak_metrics(work.chip) | _tensor_metrics(work) | _opcode_tables(work)
    return KernelSpec(work.name, metrics, work.launch.grid, work.launch.block, work.rules)


def device_metrics(chip: Chip) -> dict[str, MetricValue]:
    """Return the attributes of the device."""
    major, minor = chip.compute_capability
    attributes: dict[str, MetricValue] = {
        "architecture": chip.chip_id // 16 * 16,
        "chip": chip.chip_id,
        "compute_capability_major": major,
        "compute_capability_minor": minor,
        "display_name": chip.name,
        "l2_cache_size": chip.l2_bytes,
        "max_blocks_per_multiprocessor": chip.blocks_per_sm,
        "max_shared_memory_per_multiprocessor": chip.smem_bytes_per_sm,
        "max_threads_per_multiprocessor": chip.warps_per_sm * THREADS_PER_WARP,
        "max_warps_per_multiprocessor": chip.warps_per_sm,
        "multiprocessor_count": chip.sm_count,
        "num_schedulers_per_multiprocessor": SCHEDULERS_PER_SM,
        "warp_size": THREADS_PER_WARP,
    }
    return {f"device__attribute_{name}": value for name, value in attributes.items()}


def launch_metrics(chip: Chip, launch: Launch) -> dict[str, MetricValue]:
    """Return grid, block and the limits on an SM's blocks; ncu stores counts as floats up to 2024.2."""
    limits = _block_limits(chip, launch)
    resident = min(limits.values())
    warps = -(-launch.threads // THREADS_PER_WARP)
    sizes = {
        "grid_size": launch.blocks,
        "grid_dim_x": launch.grid[0],
        "grid_dim_y": launch.grid[1],
        "grid_dim_z": launch.grid[2],
        "block_size": launch.threads,
        "block_dim_x": launch.block[0],
        "block_dim_y": launch.block[1],
        "block_dim_z": launch.block[2],
        "thread_count": launch.blocks * launch.threads,
        "registers_per_thread": launch.registers,
        "shared_mem_per_block": launch.smem_bytes + _RESERVED_SMEM_BYTES,
        "shared_mem_per_block_dynamic": launch.smem_bytes,
        "sm_count": chip.sm_count,
    }
    as_stored = int if chip.ncu_version >= "2024.3" else float
    metrics: dict[str, MetricValue] = {f"launch__{name}": as_stored(size) for name, size in sizes.items()}
    metrics |= {f"launch__occupancy_limit_{name}": float(limit) for name, limit in limits.items()}
    metrics["launch__waves_per_multiprocessor"] = launch.blocks / (chip.sm_count * resident)
    metrics["sm__maximum_warps_per_active_cycle_pct"] = (
        100.0 * min(resident * warps, chip.warps_per_sm) / chip.warps_per_sm
    )
    return metrics


def _block_limits(chip: Chip, launch: Launch) -> dict[str, int]:
    """Return how many blocks an SM can hold by each resource."""
    warps = -(-launch.threads // THREADS_PER_WARP)
    return {
        "blocks": chip.blocks_per_sm,
        "registers": 65536 // (launch.registers * warps * THREADS_PER_WARP),
        "shared_mem": chip.smem_bytes_per_sm // (launch.smem_bytes + _RESERVED_SMEM_BYTES),
        "warps": chip.warps_per_sm // warps,
    }


def _time_metrics(work: Work) -> dict[str, MetricValue]:
    """Return duration, clocks and cycles."""
    chip = work.chip
    cycles = round(work.duration_ns * 1e-9 * chip.sm_clock_hz)
    active = cycles * work.launch.active_share * min(1.0, work.launch.blocks / chip.sm_count)
    return {
        "gpu__time_duration.sum": float(work.duration_ns),
        "sm__cycles_elapsed.max": float(cycles),
        "sm__cycles_active.avg": active,
        "sm__cycles_active.max": cycles * min(1.0, work.launch.active_share * 1.02),
        "sm__cycles_elapsed.avg.per_second": chip.sm_clock_hz,
        "l1tex__cycles_elapsed.avg.per_second": chip.sm_clock_hz,
        "lts__cycles_elapsed.avg.per_second": chip.l2_clock_hz,
        "dram__cycles_elapsed.avg.per_second": chip.dram_clock_hz,
        "profiler__replayer_passes": 4.0,
    }


def _counters(work: Work) -> list[_Counter]:
    """List the hardware counters with their peaks."""
    chip = work.chip
    read, write = chip.dram_parts
    dram = (chip.dram_bytes_per_clk, chip.dram_clock_hz)
    tags = (chip.l2_tag_sectors_per_clk, chip.l2_clock_hz)
    one_per_sm = (chip.sm_count, chip.sm_clock_hz)
    l2_sectors = (work.l2_read_bytes + work.l2_write_bytes) // SECTOR_BYTES
    wavefronts = work.global_wavefronts + work.smem_wavefronts
    return [
        _Counter("dram__bytes", work.dram_read_bytes + work.dram_write_bytes, *dram),
        _Counter(read, work.dram_read_bytes, *dram),
        _Counter(write, work.dram_write_bytes, *dram),
        _Counter("lts__t_sectors_srcunit_tex", l2_sectors, *tags),
        _Counter("lts__t_sectors", l2_sectors, *tags),
        _Counter("lts__lts2xbar_cycles_active", work.l2_read_bytes // SECTOR_BYTES, chip.l2_slices, chip.l2_clock_hz),
        _Counter("l1tex__t_bytes", work.l1_tag_bytes, chip.sm_count * WAVEFRONT_BYTES, chip.sm_clock_hz),
        _Counter("l1tex__data_pipe_lsu_wavefronts", wavefronts, *one_per_sm),
        _Counter("l1tex__data_pipe_lsu_wavefronts_mem_shared", work.smem_wavefronts, *one_per_sm),
        *(
            _Counter(f"sm__inst_executed_pipe_{pipe}", work.pipe_inst(pipe), chip.sm_count * per_sm, chip.sm_clock_hz)
            for pipe, per_sm in (("alu", chip.alu_per_sm), ("xu", chip.xu_per_sm), ("lsu", chip.lsu_per_sm))
        ),
    ]


def _scheduler_metrics(work: Work) -> dict[str, MetricValue]:
    """Return bank conflicts, what the warp schedulers did, and their samples."""
    chip, launch = work.chip, work.launch
    issued = sum(work.warp_opcodes.values())
    slots = SCHEDULERS_PER_SM * chip.sm_count * work.duration_ns * 1e-9 * chip.sm_clock_hz
    busy = launch.active_share * min(1.0, launch.blocks / chip.sm_count)
    samples = {f"smsp__pcsamp_warps_issue_stalled_{reason}": count for reason, count in launch.stalls.items()}
    return {
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": float(work.smem_conflicts),
        "sm__inst_executed_pipe_tensor.sum": float(work.pipe_inst("tensor")),
        "smsp__inst_executed.sum": float(issued),
        "smsp__issue_active.sum": float(issued),
        "smsp__issue_active.avg.per_cycle_active": issued / (slots * busy),
        "smsp__issue_active.avg.pct_of_peak_sustained_elapsed": 100.0 * issued / slots,
        "smsp__warps_eligible.avg.per_cycle_active": launch.eligible_warps,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 100.0 * launch.occupancy,
        "smsp__pcsamp_sample_count": sum(launch.stalls.values()),
        **samples,
    }


def _peak_metrics(chip: Chip) -> dict[str, MetricValue]:
    """Return the peaks of FMA and tensor instructions, which need no pass."""
    fma = {"ffma": chip.ffma_per_sm, "dfma": chip.dfma_per_sm, "hfma": chip.hfma_per_sm}
    peaks: dict[str, MetricValue] = {
        f"sm__sass_thread_inst_executed_op_{op}_pred_on.sum.peak_sustained": float(chip.sm_count * per_sm)
        for op, per_sm in fma.items()
    }
    tensor = chip.tensor_per_sm.items()
    return peaks | {f"sm__ops_path_tensor_{base}.sum.peak_sustained": chip.sm_count * rate for base, rate in tensor}


def _tensor_metrics(work: Work) -> dict[str, MetricValue]:
    """Return the operation counters that tcgen05 kernels need, whose opcodes carry no shape."""
    metrics: dict[str, MetricValue] = {}
    for base, operations in work.tensor_ops.items():
        peak = work.chip.sm_count * work.chip.tensor_per_sm[base]
        metrics |= _Counter(f"sm__ops_path_tensor_{base}", operations, peak, work.chip.sm_clock_hz).metrics(
            work.duration_ns
        )
    if work.tensor_ops:
        wavefronts = work.pipe_inst("tensor") * WAVEFRONT_BYTES
        metrics["l1tex__data_pipe_tc_wavefronts_mem_shared.sum"] = float(wavefronts)
    return metrics


def _opcode_tables(work: Work) -> dict[str, MetricValue]:
    """Return the two opcode tables."""
    warps = {opcode: float(count) for opcode, count in work.warp_opcodes.items()}
    threads = {opcode: count * THREADS_PER_WARP for opcode, count in warps.items()}
    return {
        WARP_TABLE: Instances(warps, sum(warps.values())),
        THREAD_TABLE: Instances(threads, sum(threads.values())),
    }
