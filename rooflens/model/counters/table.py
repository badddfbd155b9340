"""The counters: one row a quantity: the stored names and formulas that can give it, and how ncu is asked for it.

Reports hold the same quantity under different names by metric set, ncu version and chip. A row lists recipes in order
of trust; `rooflens.ingest.reports.resolve` tries them and records the one that worked. It also says in which tier and
on which chips a collection asks for it, by what name: `rooflens.collect.tiers` walks the rows. To add a metric, add
a row: the column of the table `kernels`, the JSON, the pages and the collection follow.

Every name carries its unit. `*_share` is a fraction of the peak over the elapsed time, 0 to 1. Rows are resolved in
order, which is also that of the columns and of what ncu is asked for.
"""

from __future__ import annotations

from rooflens.model.counters.accesses import ACCESSES, HOST
from rooflens.model.counters.balance import BALANCE, CAPACITY, WAITS
from rooflens.model.counters.chips import EVERY_CHIP, LGDS, TU10X, TU11X, VOLTA
from rooflens.model.counters.execution import FLOPS, PIPES, REPORT, WARPS
from rooflens.model.counters.memory import CLOCKS, DRAM, L1, L2, SMEM
from rooflens.model.counters.metric import BARE, SUM, Ask
from rooflens.model.counters.recipes import Counter

COUNTERS: tuple[Counter, ...] = (
    *CLOCKS,
    *DRAM,
    *HOST,
    *L2,
    *L1,
    *SMEM,
    *FLOPS,
    *PIPES,
    *WARPS,
    *REPORT,
    *ACCESSES,
    *BALANCE,
    *WAITS,
    *CAPACITY,
)
NAMES = frozenset(counter.name for counter in COUNTERS)

MEASURED = frozenset(
    {"duration_ns", *(row.name for row in (*DRAM, *HOST, *L2, *L1, *SMEM, *FLOPS, *PIPES) if "_peak_" not in row.name)}
)
"""Counters that only a profiled run gives; failed kernels have peaks and launch figures, too."""

BESIDE: tuple[Ask, ...] = (
    Ask(
        "quick",
        "thread instructions by opcode",
        "sass__thread_inst_executed_true_per_opcode_with_modifier_all",
        BARE,
        kind="sass",
    ),
    Ask("quick", "warp instructions by opcode", "sass__inst_executed_per_opcode_with_modifier_all", BARE, kind="sass"),
    Ask("standard", "warp instructions by address", "inst_executed", BARE, kind="sass"),
    Ask("standard", "thread instructions by address", "thread_inst_executed_true", BARE, kind="sass"),
    Ask("standard", "loads or stores, by address", "memory_access_type", BARE, kind="sass"),
    Ask("standard", "memory space, by address", "memory_type", BARE, kind="sass"),
    Ask("standard", "what sampled warps wait for", "group:smsp__pcsamp_warp_stall_reasons", BARE, kind="sampling"),
    Ask("deep", "bytes loaded by TMA", "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld", SUM, LGDS),
    Ask("deep", "bytes stored by TMA", "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st", SUM, LGDS),
    Ask(
        "deep",
        "bytes loaded by cp.async",
        "smsp__sass_data_bytes_mem_global_op_ldgsts",
        SUM,
        EVERY_CHIP - VOLTA - TU10X - TU11X,
    ),
    Ask("deep", "NVIDIA's L1 throughput", "l1tex__throughput", ("avg.pct_of_peak_sustained_active",)),
)
"""What ncu is asked for besides the quantities: opcode tables, stall reasons, and what explains a kernel to people."""
