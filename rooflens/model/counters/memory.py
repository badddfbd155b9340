"""Rows of the table of counters: clocks, DRAM, L2, L1 and shared memory."""

from __future__ import annotations

from rooflens.model.counters.chips import (
    EVERY_CHIP,
    GA100,
    GB11X,
    GB20X,
    GR100,
    LGDS,
    ONE_FMA,
    OWN_DRAM,
    SOC,
    TCGEN05,
    TU10X,
    TU11X,
    VOLTA,
)
from rooflens.model.counters.families import SECTOR_BYTES, SM_CYCLES
from rooflens.model.counters.metric import DEEP, LOAD, QUICK, SHARE, SOURCE, SPEED_OF_LIGHT, STANDARD, Ask
from rooflens.model.counters.recipes import (
    Amount,
    BusAtClock,
    Counter,
    CyclesOverClock,
    CyclesOverRate,
    CyclesOverTime,
    Exact,
    Mean,
    MemoryBus,
    OverOwnRate,
    Peak,
    PerSm,
    Quotient,
    RateOverShare,
    Same,
    Share,
    SumOverRate,
    amount,
    exact,
    share,
)

NS_PER_S = 1e9
WAVEFRONT_BYTES = 128.0
"""Bytes one L1 data-stage wavefront carries at most: 32 banks of 4 bytes (Nsight Compute, memory tables)."""
SM_COUNTS = ("device__attribute_multiprocessor_count", "launch__sm_count")
"""Metrics with the number of SMs of the device, best first."""

_RENAMED = GB20X | GR100
"""Chips that name the two parts of DRAM traffic anew."""
_SMEM = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
_SASS_SMEM = f"smsp__sass_{_SMEM.replace('__', '_')}"
_WRITEBACK = "wavefronts returned from L1 to registers"


def _cycles(unit: str) -> tuple[str, ...]:
    return tuple(f"{unit}__cycles_elapsed.{rollup}" for rollup in ("max", "avg"))


def _clocks(unit: str) -> tuple[str, ...]:
    return tuple(f"{unit}__cycles_elapsed.{rollup}.per_second" for rollup in ("avg", "max"))


_SM_CLOCKS = (
    *(f"{unit}__cycles_elapsed.avg.per_second" for unit in ("sm", "smsp", "gpc")),
    "gpc__frequency",
    *(f"{unit}__cycles_elapsed.max.per_second" for unit in ("sm", "smsp", "gpc")),
)
_SM_COUNTS_OF_CYCLES = tuple(name for unit in SM_CYCLES for name in _cycles(unit))

CLOCKS: tuple[Counter, ...] = (
    Counter(
        "duration_ns",
        "GPU time of the launch",
        (
            Exact(
                (
                    "gpu__time_duration.sum",
                    "gpu__time_duration.avg",
                    "gpu__time_duration.max",
                    "gpu__time_duration",
                )
            ),
            CyclesOverRate(("sm__cycles_elapsed", "smsp__cycles_elapsed", "gpc__cycles_elapsed"), NS_PER_S),
            OverOwnRate(NS_PER_S),
            *(
                SumOverRate((f"dram__{read}.sum", f"dram__{write}.sum", "dram__bytes.sum.per_second"), NS_PER_S)
                for read, write in (("bytes_read", "bytes_write"), ("bytes_op_read", "bytes_op_write"))
            ),
            *(
                Quotient(f"{unit}__cycles_elapsed.max", f"{unit}__cycles_elapsed.avg.per_second", NS_PER_S)
                for unit in ("gpc", "sm", "smsp")
            ),
            CyclesOverClock(_SM_COUNTS_OF_CYCLES, _SM_CLOCKS, NS_PER_S),
            *(CyclesOverClock(_cycles(unit), _clocks(unit), NS_PER_S) for unit in ("l1tex", "lts", "dram")),
        ),
        QUICK,
    ),
    Counter(
        "sm_clock_hz",
        "SM clock while profiling",
        (
            Exact(_SM_CLOCKS),
            CyclesOverTime(
                (
                    "sm__cycles_elapsed.max",
                    "sm__cycles_elapsed.avg",
                    "gpc__cycles_elapsed.max",
                    "sm__elapsed_cycles_avg",
                    *_SM_COUNTS_OF_CYCLES,
                )
            ),
        ),
        asked=(Ask("quick", "SM clock"),),
    ),
    Counter(
        "l1_clock_hz",
        "L1/TEX clock; equal to the SM clock wherever a report holds both",
        (Exact(_clocks("l1tex")), Same("sm_clock_hz")),
        asked=(Ask("standard", "L1 clock"),),
    ),
    Counter(
        "l2_clock_hz",
        "L2 slice clock",
        (Exact((*_clocks("lts"), "ltc__frequency")), CyclesOverTime(_cycles("lts"))),
        asked=(Ask("quick", "L2 clock"),),
    ),
    Counter(
        "dram_clock_hz",
        "DRAM clock",
        (Exact((*_clocks("dram"), "dram__frequency")), CyclesOverTime(_cycles("dram"))),
        asked=(Ask("quick", chips=OWN_DRAM),),
    ),
    exact(
        "sm_count",
        "streaming multiprocessors of the device",
        *SM_COUNTS,
    ),
    Counter(
        "sm_cycles_active_avg",
        "cycles with work, mean over the SMs",
        (Mean("sm__cycles_active"),),
        asked=(Ask("quick", "cycles in which an SM had work", forms=("avg", "max")),),
    ),
    exact("sm_cycles_active_max", "cycles with work, busiest SM", "sm__cycles_active.max"),
    exact(
        "elapsed_cycles",
        "elapsed GPC or SM cycles",
        "gpc__cycles_elapsed.max",
        "sm__cycles_elapsed.max",
        "smsp__cycles_elapsed.max",
        *(f"{unit}__cycles_elapsed.avg" for unit in SM_CYCLES),
        asked=(Ask("quick", "elapsed SM cycles", base="sm__cycles_elapsed"),),
    ),
)


def _in_direction(direction: str) -> tuple[str, ...]:
    return tuple(f"dram__{name}" for name in (f"bytes_{direction}", f"bytes_op_{direction}", f"{direction}_throughput"))


DRAM: tuple[Counter, ...] = (
    Counter(
        "dram_bytes",
        "bytes moved to and from DRAM",
        (
            Amount(
                (
                    ("dram__bytes",),
                    ("dram__bytes_read", "dram__bytes_write"),
                    ("dram__bytes_op_read", "dram__bytes_op_write"),
                    ("dram__read_bytes", "dram__write_bytes"),
                )
            ),
        ),
        asked=(Ask("quick", forms=LOAD, chips=OWN_DRAM),),
    ),
    Counter(
        "dram_read_bytes",
        "bytes read from DRAM",
        (Amount((("dram__bytes_read",), ("dram__bytes_op_read",), ("dram__read_bytes",))),),
        asked=(Ask("quick", chips=OWN_DRAM - _RENAMED), Ask("quick", base="dram__bytes_op_read", chips=_RENAMED)),
    ),
    Counter(
        "dram_write_bytes",
        "bytes written to DRAM",
        (Amount((("dram__bytes_write",), ("dram__bytes_op_write",), ("dram__write_bytes",))),),
        asked=(Ask("quick", chips=OWN_DRAM - _RENAMED), Ask("quick", base="dram__bytes_op_write", chips=_RENAMED)),
    ),
    Counter(
        "dram_bus_peak_bytes_per_s",
        "peak rate of DRAM at the profiled clock",
        (
            Peak("dram__bytes", "dram_clock_hz"),
            Peak("dram__bytes_read", "dram_clock_hz"),
            Peak("dram__bytes_op_read", "dram_clock_hz"),
        ),
    ),
    Counter(
        "device_dram_peak_bytes_per_s",
        "peak rate of DRAM at its own top clock",
        (MemoryBus(),),
    ),
    Counter(
        "dram_pins_peak_bytes_per_s",
        "what the memory bus carries at the profiled clock of DRAM",
        (BusAtClock("dram_clock_hz"),),
    ),
    Counter(
        "dram_bus_share",
        "use of DRAM",
        (
            Share(("dram__bytes", "dram__cycles_active")),
            Exact(
                (
                    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                ),
                0.01,
            ),
            Exact(("fbpa__sol_pct", "dram__sol_pct"), 0.01),
        ),
        asked=(Ask("deep", "NVIDIA's DRAM throughput", "gpu__dram_throughput", SPEED_OF_LIGHT, chips=OWN_DRAM),),
    ),
    share("dram_controller_share", "DRAM's controllers", "fbpa__dram_sectors", asked=(Ask("quick", chips=OWN_DRAM),)),
    share("dram_read_share", "DRAM by reads", *_in_direction("read"), meaning="use of {}"),
    share("dram_write_share", "DRAM by writes", *_in_direction("write"), meaning="use of {}"),
    amount(
        "l2_read_miss_bytes",
        "bytes read from device memory that missed in L2",
        "lts__t_sectors_aperture_device_op_read_lookup_miss",
        "lts__t_sectors_srcunit_tex_aperture_device_op_read_lookup_miss",
        scale=SECTOR_BYTES,
    ),
    amount(
        "sysmem_bytes",
        "bytes between L2 and system memory: the memory of chips without their own",
        "lts__t_sectors_aperture_sysmem",
        scale=SECTOR_BYTES,
        asked=(Ask("quick", "sectors between L2 and system memory", chips=SOC),),
    ),
)


def _by_operation(base: str) -> tuple[tuple[str, ...], ...]:
    """Name the parts of L2's sectors by operation, with atomics and without: few kernels have any."""
    plain = (f"{base}_op_read", f"{base}_op_write")
    return (*plain, f"{base}_op_atom", f"{base}_op_red"), plain


L2: tuple[Counter, ...] = (
    Counter(
        "l2_bytes",
        "bytes between the SMs and L2, both directions",
        (
            Amount((("lts__t_sectors_srcunit_tex",),), SECTOR_BYTES),
            Amount((("l1tex__m_xbar2l1tex_read_bytes", "l1tex__m_l1tex2xbar_write_bytes"),)),
            Amount((("l1tex__m_xbar2l1tex_read_sectors", "l1tex__m_l1tex2xbar_write_sectors"),), SECTOR_BYTES),
            Amount(_by_operation("lts__t_sectors_srcunit_tex"), SECTOR_BYTES),
        ),
        asked=(Ask("quick", "sectors between the SMs and L2"),),
    ),
    Counter(
        "l2_atomic_bytes",
        "bytes of atomics that return a value: looked up once at L2, and moved to it and back",
        (
            Amount(
                (
                    ("lts__t_sectors_srcunit_tex_op_atom",),
                    ("lts__t_sectors_srcunit_tex_op_atom_dot_alu", "lts__t_sectors_srcunit_tex_op_atom_dot_cas"),
                ),
                SECTOR_BYTES,
            ),
        ),
    ),
    Counter(
        "l2_write_bytes",
        "bytes written from the SMs to L2",
        (
            Amount((("l1tex__m_l1tex2xbar_write_bytes",),)),
            Amount((("lts__t_sectors_srcunit_tex_op_write",), ("lts__t_sectors_op_write",)), SECTOR_BYTES),
        ),
        asked=(Ask("quick", "sectors written from the SMs to L2", "lts__t_sectors_srcunit_tex_op_write", later=VOLTA),),
    ),
    Counter(
        "l2_tag_bytes",
        "bytes looked up in the L2 tag stage",
        (
            Amount((("lts__t_sectors",),), SECTOR_BYTES),
            Amount((("lts__t_bytes",),)),
            Amount(_by_operation("lts__t_sectors"), SECTOR_BYTES),
        ),
        asked=(Ask("quick", "sectors looked up in the L2 tag stage", forms=LOAD),),
    ),
    Counter(
        "l2_tag_peak_bytes_per_s",
        "peak rate of the L2 tag stage",
        (Peak("lts__t_sectors", "l2_clock_hz", SECTOR_BYTES), Peak("lts__t_bytes", "l2_clock_hz")),
    ),
    share("l2_tag_share", "L2 tag stage", "lts__t_sectors", "lts__t_bytes"),
    Counter(
        "l2_return_bytes",
        "bytes returned from L2 to the SMs",
        (Amount((("lts__lts2xbar_cycles_active",),), SECTOR_BYTES), Amount((("l1tex__m_xbar2l1tex_read_bytes",),))),
        asked=(
            Ask("standard", "sectors returned from L2 to the SMs", forms=LOAD),
            Ask("deep", "bytes filled from L2 to the SMs", "l1tex__m_xbar2l1tex_read_bytes"),
        ),
    ),
    Counter(
        "l2_return_peak_bytes_per_s",
        "peak rate of the path from L2 to the SMs",
        (
            Peak("lts__lts2xbar_cycles_active", "l2_clock_hz", SECTOR_BYTES),
            RateOverShare("l1tex__m_xbar2l1tex_read_bytes", "lts__lts2xbar_cycles_active"),
        ),
    ),
    share("l2_return_share", "path from L2 to the SMs", "lts__lts2xbar_cycles_active"),
    share("l2_input_share", "path from the SMs to L2", "lts__xbar2lts_cycles_active", asked=STANDARD),
    share(
        "l2_data_share",
        "L2 data banks",
        "lts__d_sectors",
        asked=(Ask("standard", later=VOLTA | TU10X | TU11X | GA100),),
    ),
    share(
        "l2_request_share",
        "L2 tag stage, counted in requests",
        "lts__t_tag_requests",
        asked=(Ask("standard", "requests to the L2 tag stage", later=VOLTA | GA100),),
    ),
    share(
        "l2_internal_share",
        "L2 slices, what lies between them included",
        "lts__throughput",
        asked=(Ask("deep", "NVIDIA's L2 throughput", forms=SPEED_OF_LIGHT),),
    ),
    exact(
        "l2_hit_rate",
        "share of L2 sector look-ups that hit",
        "lts__t_sector_hit_rate.pct",
        scale=0.01,
        asked=(Ask("deep", "share of L2 look-ups that hit"),),
    ),
    exact(
        "l2_compression_rate",
        "share of the sectors offered for compression that L2 compressed",
        "lts__average_gcomp_input_sector_success_rate.pct",
        scale=0.01,
    ),
)

_LSU_BYTES = {
    space: tuple(f"l1tex__t_bytes_pipe_lsu_mem_{space}_op_{op}" for op in ("ld", "st")) for space in ("global", "local")
}

L1: tuple[Counter, ...] = (
    Counter(
        "l1_tag_bytes",
        "bytes looked up in the L1 tag stage",
        (Amount((("l1tex__t_bytes",),)), Amount((("l1tex__t_sectors",),), SECTOR_BYTES)),
        asked=(Ask("standard", forms=LOAD),),
    ),
    Counter(
        "l1_tag_peak_bytes_per_s",
        "peak rate of the L1 tag stage",
        (Peak("l1tex__t_bytes", "l1_clock_hz"), PerSm(WAVEFRONT_BYTES, "l1_clock_hz")),
    ),
    Counter(
        "l1_access_bytes",
        "bytes of global accesses, and of local ones where these are counted, looked up in the L1 tag stage",
        (Amount(((*_LSU_BYTES["global"], *_LSU_BYTES["local"]), _LSU_BYTES["global"])),),
    ),
    share("l1_tag_share", "L1 tag stage", "l1tex__t_bytes", "l1tex__t_sectors"),
    amount(
        "l1_writeback_bytes",
        "bytes returned from L1 to registers: loads only, none for asynchronous copies",
        "l1tex__lsu_writeback_active_mem_lgds",
        "l1tex__lsu_writeback_active_mem_lg",
        "l1tex__lsu_writeback_active",
        scale=WAVEFRONT_BYTES,
        asked=(
            Ask("standard", _WRITEBACK, forms=LOAD, chips=LGDS, later=GB11X | GR100),
            Ask(
                "standard",
                _WRITEBACK,
                "l1tex__lsu_writeback_active_mem_lg",
                LOAD,
                EVERY_CHIP - VOLTA - LGDS,
                later=TU10X | TU11X | GA100,
            ),
        ),
    ),
    Counter("l1_data_peak_bytes_per_s", "one wavefront a cycle and SM", (PerSm(WAVEFRONT_BYTES, "l1_clock_hz"),)),
    share(
        "l1_writeback_share",
        "return path from L1 to registers",
        "l1tex__lsu_writeback_active",
        "l1tex__lsu_writeback_active_mem_lgds",
        "l1tex__lsu_writeback_active_mem_lg",
        asked=(Ask("deep", forms=("sum", SHARE)),),
    ),
    amount(
        "l1_data_bytes",
        "wavefronts of the L1 data stage x 128: all memory spaces, conflict and divergence replays included",
        "l1tex__data_pipe_lsu_wavefronts",
        scale=WAVEFRONT_BYTES,
        asked=(Ask("standard", "wavefronts of the L1 data stage", forms=LOAD),),
    ),
    share("l1_data_share", "L1 data stage by the LSU", "l1tex__data_pipe_lsu_wavefronts"),
    share(
        "l1_bank_read_share",
        "L1 data banks by reads",
        "l1tex__data_bank_reads",
        asked=(Ask("deep", "L1 data banks, reads"),),
    ),
    share(
        "l1_bank_write_share",
        "L1 data banks by writes",
        "l1tex__data_bank_writes",
        asked=(Ask("deep", "L1 data banks, writes"),),
    ),
    share(
        "l1_tex_data_share",
        "L1 data stage by textures",
        "l1tex__data_pipe_tex_wavefronts",
        asked=(Ask("standard", "L1 data stage, textures", chips=EVERY_CHIP - GR100, later=ONE_FMA | GB11X),),
    ),
    share(
        "l1_filter_share",
        "texture filter stage",
        "l1tex__f_wavefronts",
        asked=(Ask("standard", chips=EVERY_CHIP - GR100, later=VOLTA),),
    ),
    share(
        "l1_lsu_input_share",
        "input of L1 for load and store instructions",
        "l1tex__lsuin_requests",
        "sm__inst_executed_pipe_lsu",
    ),
    share("l1_to_l2_share", "request path from L1 to L2", "l1tex__m_l1tex2xbar_req_cycles_active", asked=DEEP),
    share("l1_from_l2_share", "fill path from L2 to L1", "l1tex__m_xbar2l1tex_read_sectors", asked=DEEP),
    exact(
        "l1_hit_rate",
        "share of L1 sector look-ups that hit",
        "l1tex__t_sector_hit_rate.pct",
        scale=0.01,
        asked=(Ask("deep", "share of L1 look-ups that hit"),),
    ),
    amount("global_load_sectors", "sectors of global loads", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld", asked=DEEP),
    amount(
        "global_load_requests", "requests of global loads", "l1tex__t_requests_pipe_lsu_mem_global_op_ld", asked=DEEP
    ),
    amount(
        "global_store_sectors", "sectors of global stores", "l1tex__t_sectors_pipe_lsu_mem_global_op_st", asked=DEEP
    ),
    amount(
        "global_store_requests", "requests of global stores", "l1tex__t_requests_pipe_lsu_mem_global_op_st", asked=DEEP
    ),
    *(
        exact(
            f"global_{side}_sectors_per_request",
            f"sectors that a request of global {side}s touches, mean",
            f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio",
        )
        for side, op in (("load", "ld"), ("store", "st"))
    ),
    exact(
        "global_touched_sectors",
        "sectors that the addresses of global accesses touch",
        "memory_l2_theoretical_sectors_global",
        asked=SOURCE,
    ),
    exact(
        "global_ideal_sectors",
        "sectors that the bytes of global accesses would fill",
        "memory_l2_theoretical_sectors_global_ideal",
        asked=SOURCE,
    ),
)

SMEM: tuple[Counter, ...] = (
    amount(
        "l1_shared_data_bytes",
        "shared-memory wavefronts of the L1 data stage x 128: shuffles and bank-conflict replays included",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared",
        scale=WAVEFRONT_BYTES,
        asked=(Ask("standard", "wavefronts of shared memory", forms=LOAD),),
    ),
    share("l1_shared_data_share", "shared-memory data stage", "l1tex__data_pipe_lsu_wavefronts_mem_shared"),
    Counter(
        "smem_op_bytes",
        "bytes of shared-memory loads, stores and atomics, bank-conflict replays included",
        (
            Amount(
                (
                    (f"{_SMEM}_op_ld", f"{_SMEM}_op_st", f"{_SMEM}_op_atom"),
                    (f"{_SMEM}_op_ld", f"{_SASS_SMEM}_op_st", f"{_SMEM}_op_atom"),
                ),
                WAVEFRONT_BYTES,
            ),
        ),
    ),
    amount(
        "smem_async_bytes",
        "bytes that cp.async stored to shared memory",
        f"{_SASS_SMEM}_op_ldgsts",
        f"{_SMEM}_op_ldgsts",
        scale=WAVEFRONT_BYTES,
    ),
    amount("smem_wgmma_bytes", "bytes that wgmma read of shared memory", f"{_SMEM}_op_gmma", scale=WAVEFRONT_BYTES),
    amount(
        "smem_other_bytes",
        "shared-memory wavefronts x 128 that are neither loads nor stores",
        f"{_SMEM}_op_misc",
        scale=WAVEFRONT_BYTES,
    ),
    amount(
        "smem_conflict_bytes",
        "part of the delivered bytes that were bank-conflict replays",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared",
        scale=WAVEFRONT_BYTES,
        asked=(Ask("standard", "shared-memory replays of bank conflicts"),),
    ),
    amount(
        "smem_tensor_wavefronts",
        "shared-memory wavefronts of the tensor pipe (tcgen05); their width is not documented",
        "l1tex__data_pipe_tc_wavefronts_mem_shared",
        asked=(Ask("standard", "shared-memory wavefronts of the tensor pipe", chips=TCGEN05),),
    ),
    exact(
        "smem_useful_bytes",
        "bytes that instructions asked of shared memory",
        "smsp__sass_data_bytes_mem_shared.sum",
        asked=(Ask("deep", patched=VOLTA),),
    ),
    exact(
        "smem_access_wavefronts",
        "wavefronts that the addresses of shared-memory accesses need",
        "memory_l1_wavefronts_shared",
        asked=SOURCE,
    ),
    exact(
        "smem_ideal_wavefronts",
        "wavefronts that the bytes of shared-memory accesses would fill",
        "memory_l1_wavefronts_shared_ideal",
        asked=SOURCE,
    ),
)
