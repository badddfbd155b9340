"""Rows of the table of counters: how accesses, branches and atomics use the hardware that serves them, the host's too.

What instructions count themselves, and opcode tables, costs no hardware pass and tells most of it: that is in
`standard`. Hardware counters of the same are in `deep`, unless they cost the chip no pass of their own.
"""

from __future__ import annotations

from rooflens.model.counters.chips import (
    AD10X,
    EVERY_CHIP,
    GA10X,
    GA100,
    GB10X,
    GB11X,
    GB20X,
    GR100,
    ORIN,
    OWN_DRAM,
    SPARK,
    TU10X,
    TU11X,
    VOLTA,
)
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.counters.metric import DEEP, SHARE, SOURCE, SUM, Ask
from rooflens.model.counters.recipes import Amount, Counter, HostLink, ShareOfCycles, amount, exact, share

_GLOBAL_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"
_LOCAL_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_local_op_{}.ratio"
_LATER_CHIPS = (Ask("deep", chips=EVERY_CHIP - VOLTA),)
"""gv100 lacks most of these, or takes four passes for them."""

LOCAL: tuple[Counter, ...] = (
    amount(
        "local_load_sectors",
        "sectors of local-memory loads",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld",
        asked=_LATER_CHIPS,
    ),
    amount(
        "local_store_sectors",
        "sectors of local-memory stores",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st",
        asked=_LATER_CHIPS,
    ),
    exact(
        "local_touched_sectors",
        "sectors that the addresses of local memory touch",
        "memory_l2_theoretical_sectors_local",
        asked=SOURCE,
    ),
    amount(
        "local_load_inst",
        "warp instructions that load from local memory",
        "smsp__sass_inst_executed_op_local_ld",
        "smsp__inst_executed_op_local_ld",
        "sass__inst_executed_local_loads",
        asked=_LATER_CHIPS,
    ),
    amount(
        "local_store_inst",
        "warp instructions that store to local memory",
        "smsp__sass_inst_executed_op_local_st",
        "smsp__inst_executed_op_local_st",
        "sass__inst_executed_local_stores",
        asked=_LATER_CHIPS,
    ),
    exact(
        "spill_inst",
        "warp instructions that spill registers to local memory, or fill them from it",
        "sass__inst_executed_register_spilling_mem_local",
    ),
    exact("spill_requests", "requests of spilled registers to local memory", "derived__local_spilling_requests"),
    exact("smem_spill_requests", "requests of spilled registers to shared memory", "derived__shared_spilling_requests"),
)

USE: tuple[Counter, ...] = (
    exact(
        "global_load_bytes_per_sector",
        "bytes used of each 32-byte sector of global loads, mean",
        _GLOBAL_BYTES.format("ld"),
        asked=_LATER_CHIPS,
    ),
    exact(
        "global_store_bytes_per_sector",
        "bytes used of each 32-byte sector of global stores, mean",
        _GLOBAL_BYTES.format("st"),
        asked=_LATER_CHIPS,
    ),
    exact(
        "local_load_bytes_per_sector",
        "bytes used of each 32-byte sector of local-memory loads, mean",
        _LOCAL_BYTES.format("ld"),
        asked=_LATER_CHIPS,
    ),
    exact(
        "local_store_bytes_per_sector",
        "bytes used of each 32-byte sector of local-memory stores, mean",
        _LOCAL_BYTES.format("st"),
        asked=_LATER_CHIPS,
    ),
    exact(
        "threads_per_inst",
        "threads that take part in a warp instruction, mean",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        asked=DEEP,
    ),
    exact(
        "threads_on_per_inst",
        "threads that take part in a warp instruction and are not predicated off, mean",
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
        asked=DEEP,
    ),
    exact(
        "divergent_branch_count",
        "branches at which the threads of a warp part",
        "smsp__sass_branch_targets_threads_divergent.sum",
        "smsp__branch_targets_threads_divergent.sum",
        "smsp__sass_branch_targets_threads_divergent",
        "smsp__branch_targets_threads_divergent",
        asked=_LATER_CHIPS,
    ),
)


def _conflict_counters(key: str, op: str, of: str) -> tuple[Counter, ...]:
    return (
        amount(
            f"smem_{key}_conflict_wavefronts",
            f"shared-memory wavefronts of {of} that were bank-conflict replays",
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}",
            asked=DEEP,
        ),
        amount(
            f"smem_{key}_wavefronts",
            f"shared-memory wavefronts of {of}",
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}",
            asked=DEEP,
        ),
    )


CONFLICTS: tuple[Counter, ...] = (
    *_conflict_counters("load", "ld", "loads"),
    *_conflict_counters("store", "st", "stores"),
)

_LATE_INPUT = VOLTA | TU10X | TU11X | GA100 | GA10X | AD10X | GB20X | SPARK
_LATE_ATOMICS = VOLTA | GA100 | ORIN | AD10X | GB20X | SPARK
"""Chips on which these cost `standard` an additional pass."""
_ATOMIC_SECTORS = "lts__t_sectors_srcunit_tex_op_{}"

ATOMICS: tuple[Counter, ...] = (
    Counter(
        "atomic_inst",
        "warp instructions with atomics on global memory",
        (
            Amount(
                (
                    (
                        "smsp__inst_executed_op_global_red",
                        "smsp__inst_executed_op_generic_atom_dot_alu",
                        "smsp__inst_executed_op_generic_atom_dot_cas",
                    ),
                )
            ),
        ),
    ),
    Counter(
        "l2_atomic_sectors",
        "sectors of atomics in L2",
        (
            Amount(
                (
                    tuple(_ATOMIC_SECTORS.format(op) for op in ("red", "atom_dot_alu", "atom_dot_cas")),
                    tuple(_ATOMIC_SECTORS.format(op) for op in ("red", "atom")),
                )
            ),
        ),
        tuple(
            Ask("standard", f"sectors of {what} in L2", _ATOMIC_SECTORS.format(op), SUM, later=_LATE_ATOMICS)
            for op, what in (("red", "reductions"), ("atom", "atomics that return a value"))
        ),
    ),
    share(
        "l2_atomic_share",
        "L2 input of atomics",
        "lts__d_atomic_input_cycles_active",
        asked=(Ask("standard", later=_LATE_INPUT),),
    ),
)

ACCESSES: tuple[Counter, ...] = (*LOCAL, *USE, *CONFLICTS, *ATOMICS)

_FILLED, _FILLED_BESIDE = "lts__d_sectors_fill_sysmem", "syslts__d_sectors_fill_sysmem"
_SYSMEM = "t_sectors_srcunit_tex_aperture_sysmem_op"
_SLICES_BESIDE = GB10X | GB11X | GB20X | GR100
"""Chips with slices of L2 of their own for the host's memory."""

HOST: tuple[Counter, ...] = (
    Counter(
        "host_read_bytes",
        "bytes that L2 filled from the host's memory",
        (
            Amount(((_FILLED_BESIDE,), (_FILLED,)), SECTOR_BYTES),
            ShareOfCycles(_FILLED, "lts__cycles_elapsed", SECTOR_BYTES),
            Amount(
                ((f"syslts__{_SYSMEM}_read_lookup_miss",), (f"lts__{_SYSMEM}_read_lookup_miss",)),
                SECTOR_BYTES,
            ),
        ),
        asked=(
            Ask("deep", base=_FILLED, forms=("sum", SHARE), chips=OWN_DRAM - _SLICES_BESIDE),
            Ask("standard", base=_FILLED_BESIDE, chips=_SLICES_BESIDE - GR100),
        ),
    ),
    amount(
        "host_write_bytes",
        "bytes that the SMs wrote to the host's memory",
        f"syslts__{_SYSMEM}_write",
        f"lts__{_SYSMEM}_write",
        f"syslts__{_SYSMEM}_write_lookup_miss",
        f"lts__{_SYSMEM}_write_lookup_miss",
        scale=SECTOR_BYTES,
    ),
    share("host_fill_share", "fill path of L2, from the host's memory", _FILLED),
    share(
        "device_fill_share",
        "fill path of L2, from DRAM",
        "lts__d_sectors_fill_device",
        asked=(Ask("deep", chips=OWN_DRAM - _SLICES_BESIDE),),
    ),
    Counter(
        "host_link_peak_bytes_per_s",
        "what the link to the host carries in each direction",
        (HostLink(),),
    ),
)
