"""The units of a GPU that a kernel can fill: the stages of memory levels, and the pipes, by their counters."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rooflens.model.counters.families import OF_ACTIVE
from rooflens.model.records import Kernel

SOC_CAPABILITIES = frozenset({"7.2", "8.7", "10.1", "11.0", "12.1"})
"""Chips that share the host's memory and have no DRAM counters: Xavier, Orin, Thor (both its numbers) and GB10."""


class Stage(Struct, frozen=True):
    """One stage of a level: the counters of its amount and peak, and of its share where only that is stored."""

    level: str
    name: str
    share: str
    amount: str | None = None
    peak: str | None = None


LSU_INPUT = "lsu_input"
"""The stage of L1 that takes the instructions of the LSU pipe: both are as busy wherever a report holds both."""

DATA = "data"
"""The stage of L1 that passes wavefronts, of global as of shared memory."""

SHARED_DATA = "shared_data"
"""The part of L1's data stage that shared memory and shuffles fill."""

L2_INTERNAL = "internal"
"""NVIDIA's own per cent of the L2 slices: it sees units without a counter, as the fabric between halves of an L2."""

WHOLE = "throughput"
"""NVIDIA's own per cent of L1 or DRAM, where no stage is measured; that of L2 is `L2_INTERNAL`."""

WAVEFRONTS_A_CYCLE: Mapping[str, float] = {"7.5": 0.5}
"""Compute capability -> wavefronts that the data stage of an SM's L1 passes a cycle, where that is not one.

ncu counts against one on every chip, but Turing moves 64 bytes a cycle (NVIDIA, whitepaper of GA102: 128, twice as many
as Turing). In 41 launches of public reports on CC 7.5 the counter never reads over 50.0 % of its peak, on other chips
up to 99 %, and NVIDIA's own per cent of L1 is twice that of the data stage wherever that stage leads.
"""

L1_COUNTS_TWICE = frozenset({"7.0", "7.5", "8.6", "8.9"})
"""Chips on which NVIDIA's per cents of L1 count its requests to L2 twice: half of such a per cent may be its load."""

ACCESSES = "accesses"
"""The wavefronts of counted accesses to shared memory, where those of its data stage are not: a lower bound."""

STAGES: tuple[Stage, ...] = (
    Stage("dram", "bus", "dram_bus_share", "dram_bytes", "dram_bus_peak_bytes_per_s"),
    Stage("dram", "controller", "dram_controller_share"),
    Stage("l2", "return", "l2_return_share", "l2_return_bytes", "l2_return_peak_bytes_per_s"),
    Stage("l2", "tag", "l2_tag_share", "l2_tag_bytes", "l2_tag_peak_bytes_per_s"),
    Stage("l2", "tag_requests", "l2_request_share"),
    Stage("l2", "input", "l2_input_share"),
    Stage("l2", "data", "l2_data_share"),
    Stage("l2", L2_INTERNAL, "l2_internal_share"),
    Stage("l1", LSU_INPUT, "l1_lsu_input_share", "lsu_inst", "lsu_peak_inst_per_s"),
    Stage("l1", DATA, "l1_data_share", "l1_data_bytes", "l1_data_peak_bytes_per_s"),
    Stage("l1", SHARED_DATA, "l1_shared_data_share", "l1_shared_data_bytes", "l1_data_peak_bytes_per_s"),
    Stage("l1", "writeback", "l1_writeback_share", "l1_writeback_bytes", "l1_data_peak_bytes_per_s"),
    Stage("l1", "tag", "l1_tag_share", "l1_tag_bytes", "l1_tag_peak_bytes_per_s"),
    Stage("l1", "bank_reads", "l1_bank_read_share"),
    Stage("l1", "bank_writes", "l1_bank_write_share"),
    Stage("l1", "texture_data", "l1_tex_data_share"),
    Stage("l1", "texture_filter", "l1_filter_share"),
    Stage("l1", "to_l2", "l1_to_l2_share"),
    Stage("l1", "from_l2", "l1_from_l2_share"),
    Stage("l1", WHOLE, "sol_l1_share"),
    Stage("smem", "data", "l1_shared_data_share", "l1_shared_data_bytes", "l1_data_peak_bytes_per_s"),
)


class PipeRow(Struct, frozen=True):
    """One non-FLOP view of the execution units.

    Attributes:
        key: Name in `Analysis.pipes`.
        label: What people call it.
        unit: `inst` for instruction slots, `cycle` for busy cycles.
        shares: Counters of its use; the largest counts.
        runs: Dtype keys whose work runs on this pipe: a busy pipe is named after the work that explains it.
        part_of: The pipe that this is a part of: a kernel at its limit is at that of the whole.
    """

    key: str
    label: str
    unit: str
    shares: tuple[str, ...]
    amount: str | None = None
    peak: str | None = None
    runs: tuple[str, ...] = ()
    part_of: str = ""


def _instruction_pipe(key: str, label: str, *shares: str) -> PipeRow:
    """Make the row of a pipe that `pipe_rows` of the counters counts."""
    return PipeRow(key, label, "inst", (f"{key}_inst_share", *shares), f"{key}_inst", f"{key}_peak_inst_per_s")


PIPE_ROWS: tuple[PipeRow, ...] = (
    PipeRow("issue", "instruction issue", "inst", ("issue_active_share",), "issued_inst", "issue_peak_inst_per_s"),
    _instruction_pipe("alu", "ALU pipe", "alu_busy_share"),
    PipeRow("alu_heavy", "heavy ALU pipe", "cycle", ("alu_heavy_busy_share",), part_of="alu"),
    _instruction_pipe("xu", "XU pipe"),
    _instruction_pipe("lsu", "LSU pipe"),
    _instruction_pipe("tex", "texture pipe"),
    _instruction_pipe("adu", "address divergence unit"),
    _instruction_pipe("cbu", "branch unit"),
    _instruction_pipe("uniform", "uniform data path"),
    _instruction_pipe("tmem", "tensor memory pipe"),
    PipeRow("mio", "memory instruction queue", "inst", ("mio_issue_share", "mio_return_share")),
    PipeRow("fma", "FMA pipe", "cycle", ("fma_busy_share", "fma_heavy_busy_share"), runs=("fp32", "fp16")),
    PipeRow("fp64_pipe", "FP64 pipe", "cycle", ("fp64_busy_share",), runs=("fp64", "tensor_fp64")),
    PipeRow("fp16_pipe", "FP16 pipe", "cycle", ("fp16_busy_share",), runs=("fp16",)),
    PipeRow(
        "tensor_pipe", "tensor pipe", "cycle", ("tensor_busy_share", "tensor_float_busy_share"), runs=("tensor_*",)
    ),
)

SHARES = frozenset(
    {"sol_compute", "sol_memory", *(stage.share for stage in STAGES), *(one for row in PIPE_ROWS for one in row.shares)}
)
"""Counters of shares, of single units and of NVIDIA's two sides."""


def wavefronts_a_cycle(kernel: Kernel) -> float:
    """Return how many wavefronts the data stage of an SM's L1 passes a cycle at most."""
    return WAVEFRONTS_A_CYCLE.get(kernel.compute_capability or "", 1.0)


def is_of_active(kernel: Kernel, share: str) -> bool:
    """Return whether the counter of a share holds one of active cycles, which is no less than that of the run."""
    return kernel.counter_sources.get(share, "").endswith(OF_ACTIVE)
