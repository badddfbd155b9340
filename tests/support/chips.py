"""Properties of each GPU for synthetic reports: names, sizes, clocks and peaks.

Peaks are units per cycle of the unit's clock. Those of CC 7.0, 7.5, 8.0, 9.0 and 12.0 follow
`.peak_sustained` values of published reports; the others (CC 8.6 tensor, 8.9, 10.0) follow datasheets.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Chip(Struct, frozen=True):
    """A GPU at its profiling clocks.

    Attributes:
        chip_id: Value of `device__attribute_chip`.
        dram_bytes_per_clk: Peak of `dram__bytes.sum`.
        dram_parts: Base names of the read and the write counter.
        l2_slices: Peak of `lts__lts2xbar_cycles_active.sum`.
        l2_tag_sectors_per_clk: Peak of `lts__t_sectors`.
        ffma_per_sm: Thread instructions per SM and cycle; likewise for double and packed half.
        alu_per_sm: Warp instructions per SM and cycle; likewise for the XU and LSU pipes.
        tensor_per_sm: Dense operations per SM and cycle by base name of the tensor counter.
        tensor_opcode: Tensor instruction of a 16-bit GEMM, with the FLOP of one; None if opcodes do not show it.
        opcodes: This architecture's spelling of load, store, asynchronous copy and matrix load.
    """

    name: str
    compute_capability: tuple[int, int]
    chip_id: int
    ncu_version: str
    sm_count: int
    sm_clock_hz: float
    l2_clock_hz: float
    dram_clock_hz: float
    dram_bytes_per_clk: int
    l2_slices: int
    l2_tag_sectors_per_clk: int
    l2_bytes: int
    smem_bytes_per_sm: int
    warps_per_sm: int
    blocks_per_sm: int
    ffma_per_sm: int
    dfma_per_sm: int
    hfma_per_sm: int
    tensor_opcode: tuple[str, int] | None
    tensor_per_sm: Mapping[str, float] = field(default_factory=dict)
    dram_parts: tuple[str, str] = ("dram__bytes_read", "dram__bytes_write")
    alu_per_sm: float = 2.0
    xu_per_sm: float = 0.5
    lsu_per_sm: float = 1.0
    opcodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def dram_bytes_per_s(self) -> float:
        """Peak bandwidth of DRAM."""
        return self.dram_bytes_per_clk * self.dram_clock_hz


_SYS = {"load": "LDG.E.128.SYS", "store": "STG.E.128.SYS", "copy": "LDG.E.128.SYS", "ldsm": "LDSM.16.M88.4"}
_LTC = {"load": "LDG.E.128", "store": "STG.E.128", "copy": "LDGSTS.E.BYPASS.LTC128B.128", "ldsm": "LDSM.16.M88.4"}
_BYPASS = _LTC | {"copy": "LDGSTS.E.BYPASS.128"}
_TMA = _LTC | {"copy": "UTMALDG.2D"}
_HMMA_BF16 = ("HMMA.16816.F32.BF16", 4096)


def _ampere_tensor(flop: float, fp64: float = 0.0) -> dict[str, float]:
    """Return the tensor peaks of CC 8.x from its bf16 rate."""
    rows = {
        "src_bf16_dst_fp32_sparsity_off": flop,
        "src_fp16_dst_fp32_sparsity_off": flop,
        "src_fp16_dst_fp16_sparsity_off": flop,
        "src_tf32_dst_fp32_sparsity_off": flop / 2,
        "src_int8_sparsity_off": flop * 2,
    }
    return rows | ({"src_fp64": fp64} if fp64 else {})


_HOPPER_TENSOR = {
    "op_hgmma_src_bf16_dst_fp32_sparsity_off": 4096.0,
    "op_hgmma_src_fp16_sparsity_off": 4096.0,
    "op_hgmma_src_tf32_dst_fp32_sparsity_off": 2048.0,
    "op_hmma_src_bf16_dst_fp32_sparsity_off": 360448 / 132,
    "op_hmma_src_fp16_dst_fp16_sparsity_off": 360448 / 132,
    "op_hmma_src_fp16_dst_fp32_sparsity_off": 360448 / 132,
    "op_hmma_src_tf32_dst_fp32_sparsity_off": 180224 / 132,
    "op_igmma_src_int8_sparsity_off": 8192.0,
    "op_imma_src_int8_sparsity_off": 720896 / 132,
    "src_fp8_sparsity_off": 8192.0,
    "src_fp64": 256.0,
}

V100 = Chip(
    name="Tesla V100-SXM2-32GB",
    compute_capability=(7, 0),
    chip_id=320,
    ncu_version="2022.2.0.0",
    sm_count=80,
    sm_clock_hz=1.312e9,
    l2_clock_hz=1.312e9,
    dram_clock_hz=0.877e9,
    dram_bytes_per_clk=1024,
    l2_slices=64,
    l2_tag_sectors_per_clk=64,
    l2_bytes=6_291_456,
    smem_bytes_per_sm=98_304,
    warps_per_sm=64,
    blocks_per_sm=32,
    ffma_per_sm=64,
    dfma_per_sm=32,
    hfma_per_sm=64,
    tensor_opcode=None,
    opcodes=_SYS,
)
T4 = Chip(
    name="Tesla T4",
    compute_capability=(7, 5),
    chip_id=356,
    ncu_version="2025.1.1.0",
    sm_count=40,
    sm_clock_hz=0.585e9,
    l2_clock_hz=0.855e9,
    dram_clock_hz=4.999e9,
    dram_bytes_per_clk=64,
    l2_slices=32,
    l2_tag_sectors_per_clk=32,
    l2_bytes=4_194_304,
    smem_bytes_per_sm=65_536,
    warps_per_sm=32,
    blocks_per_sm=16,
    ffma_per_sm=64,
    dfma_per_sm=2,
    hfma_per_sm=64,
    tensor_opcode=("HMMA.1688.F32", 2048),
    tensor_per_sm={
        "src_fp16_bf16_tf32_dst_fp32": 1024.0,
        "src_fp16_dst_fp16": 1024.0,
        "src_int8": 2048.0,
        "src_int4": 4096.0,
        "src_int1": 16384.0,
    },
    opcodes=_SYS,
)
A100 = Chip(
    name="NVIDIA A100-SXM4-40GB",
    compute_capability=(8, 0),
    chip_id=368,
    ncu_version="2025.1.0.0",
    sm_count=108,
    sm_clock_hz=1.095e9,
    l2_clock_hz=1.064e9,
    dram_clock_hz=1.215e9,
    dram_bytes_per_clk=1280,
    l2_slices=160,
    l2_tag_sectors_per_clk=240,
    l2_bytes=41_943_040,
    smem_bytes_per_sm=167_936,
    warps_per_sm=64,
    blocks_per_sm=32,
    ffma_per_sm=64,
    dfma_per_sm=32,
    hfma_per_sm=128,
    tensor_opcode=_HMMA_BF16,
    tensor_per_sm=_ampere_tensor(2048.0, fp64=128.0),
    opcodes=_LTC,
)
A10G = Chip(
    name="NVIDIA A10G",
    compute_capability=(8, 6),
    chip_id=370,
    ncu_version="2023.1.1.0",
    sm_count=80,
    sm_clock_hz=1.32e9,
    l2_clock_hz=1.24e9,
    dram_clock_hz=6.25e9,
    dram_bytes_per_clk=96,
    l2_slices=48,
    l2_tag_sectors_per_clk=48,
    l2_bytes=6_291_456,
    smem_bytes_per_sm=102_400,
    warps_per_sm=48,
    blocks_per_sm=16,
    ffma_per_sm=128,
    dfma_per_sm=2,
    hfma_per_sm=64,
    tensor_opcode=_HMMA_BF16,
    tensor_per_sm=_ampere_tensor(512.0),
    opcodes=_LTC,
)
RTX_4090 = Chip(
    name="NVIDIA GeForce RTX 4090",
    compute_capability=(8, 9),
    chip_id=402,
    ncu_version="2024.3.2.0",
    sm_count=128,
    sm_clock_hz=2.235e9,
    l2_clock_hz=2.235e9,
    dram_clock_hz=10.501e9,
    dram_bytes_per_clk=96,
    l2_slices=96,
    l2_tag_sectors_per_clk=96,
    l2_bytes=75_497_472,
    smem_bytes_per_sm=102_400,
    warps_per_sm=48,
    blocks_per_sm=24,
    ffma_per_sm=128,
    dfma_per_sm=2,
    hfma_per_sm=64,
    tensor_opcode=_HMMA_BF16,
    tensor_per_sm=_ampere_tensor(512.0) | {"src_fp8_sparsity_off": 1024.0},
    opcodes=_LTC,
)
H200 = Chip(
    name="NVIDIA H200",
    compute_capability=(9, 0),
    chip_id=384,
    ncu_version="2025.3.0.0",
    sm_count=132,
    sm_clock_hz=1.5e9,
    l2_clock_hz=1.69e9,
    dram_clock_hz=3.125e9,
    dram_bytes_per_clk=1536,
    l2_slices=192,
    l2_tag_sectors_per_clk=288,
    l2_bytes=62_914_560,
    smem_bytes_per_sm=233_472,
    warps_per_sm=64,
    blocks_per_sm=32,
    ffma_per_sm=128,
    dfma_per_sm=64,
    hfma_per_sm=128,
    tensor_opcode=_HMMA_BF16,
    tensor_per_sm=_HOPPER_TENSOR,
    opcodes=_TMA,
)
B200 = Chip(
    name="NVIDIA B200",
    compute_capability=(10, 0),
    chip_id=416,
    ncu_version="2025.2.1.0",
    sm_count=148,
    sm_clock_hz=1.131e9,
    l2_clock_hz=1.5e9,
    dram_clock_hz=3.989e9,
    dram_bytes_per_clk=2048,
    l2_slices=256,
    l2_tag_sectors_per_clk=384,
    l2_bytes=132_644_864,
    smem_bytes_per_sm=233_472,
    warps_per_sm=64,
    blocks_per_sm=32,
    ffma_per_sm=128,
    dfma_per_sm=64,
    hfma_per_sm=128,
    tensor_opcode=("UTCHMMA", 2 * 128 * 256 * 16),
    tensor_per_sm={
        # The base counters' own peaks are sparse, twice the dense ones.
        "src_bf16_dst_fp32": 16384.0,
        "src_fp16_dst_fp16": 16384.0,
        "src_fp16_dst_fp32": 16384.0,
        "src_tf32_dst_fp32": 8192.0,
        "src_int8": 32768.0,
        "src_fp64": 128.0,
        "op_utchmma_src_bf16_dst_fp32_sparsity_off": 8192.0,
        "op_utchmma_src_fp16_dst_fp32_sparsity_off": 8192.0,
        "op_utchmma_src_tf32_dst_fp32_sparsity_off": 4096.0,
        "op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_off": 16384.0,
        "op_utcomma_src_fp4_dst_fp32_sparsity_off": 32768.0,
        "op_hmma_src_bf16_dst_fp32_sparsity_off": 1024.0,
        "op_hmma_src_fp16_dst_fp32_sparsity_off": 1024.0,
    },
    opcodes=_TMA,
)
RTX_5090 = Chip(
    name="NVIDIA GeForce RTX 5090",
    compute_capability=(12, 0),
    chip_id=434,
    ncu_version="2025.4.1.0",
    sm_count=170,
    sm_clock_hz=1.902e9,
    l2_clock_hz=1.815e9,
    dram_clock_hz=13.782e9,
    dram_bytes_per_clk=128,
    l2_slices=96,
    l2_tag_sectors_per_clk=96,
    l2_bytes=100_663_296,
    smem_bytes_per_sm=102_400,
    warps_per_sm=48,
    blocks_per_sm=24,
    ffma_per_sm=128,
    dfma_per_sm=2,
    hfma_per_sm=64,
    tensor_opcode=_HMMA_BF16,
    tensor_per_sm={
        "op_hmma_src_bf16_dst_fp32_sparsity_off": 512.0,
        "op_hmma_src_fp16_dst_fp32_sparsity_off": 512.0,
        "op_hmma_src_fp16_dst_fp16_sparsity_off": 1024.0,
        "op_hmma_src_tf32_dst_fp32_sparsity_off": 256.0,
        "op_imma_src_int8_sparsity_off": 2048.0,
        "src_fp8_dst_fp32_sparsity_off": 1024.0,
        "src_fp4_dst_fp32_sparsity_off": 4096.0,
    },
    dram_parts=("dram__bytes_op_read", "dram__bytes_op_write"),
    opcodes=_BYPASS,
)

ARCHITECTURES = (V100, T4, A100, A10G, RTX_4090, H200, B200, RTX_5090)
