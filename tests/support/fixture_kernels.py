"""The synthetic kernels of the fixtures: some from a formula, the others from shares of peaks."""

from __future__ import annotations

from msgspec import Struct
from support.chips import Chip
from support.synthetic_kernels import SCHEDULERS_PER_SM, SECTOR_BYTES, THREADS_PER_WARP, WAVEFRONT_BYTES, Launch, Work

_BF16_BYTES = 2
_COPY_BYTES = 512  # a warp's 128-bit loads, stores and asynchronous copies
_TMA_BYTES = 16384  # a box of 64 x 128 bf16 values
_LDSM_BYTES = 512  # `ldmatrix.x4` of a warp


class Shares(Struct, frozen=True):
    """Shares of the peaks that a kernel should reach, 0 to 1.

    Attributes:
        dram_write: Share of the DRAM traffic that is written.
        l2: Share of the return path from L2.
        l1: Share of the L1 data stage by global memory; likewise `smem`.
        sectors_per_wavefront: 4 where global accesses are coalesced.
        conflicts: Share of the shared-memory wavefronts added by bank conflicts.
        other_issue: Issue slots of instructions that need none of the other pipes.
    """

    dram: float = 0.0
    dram_write: float = 0.3
    l2: float = 0.0
    l1: float = 0.0
    sectors_per_wavefront: float = 4.0
    smem: float = 0.0
    conflicts: float = 0.0
    fp32: float = 0.0
    alu: float = 0.0
    xu: float = 0.0
    other_issue: float = 0.05


def by_shares(name: str, chip: Chip, duration_ns: int, shares: Shares, launch: Launch) -> Work:
    """Describe a kernel by the shares it should reach on `chip`."""
    seconds = duration_ns * 1e-9
    sm_cycles = chip.sm_count * chip.sm_clock_hz * seconds
    dram_bytes = _even(shares.dram * chip.dram_bytes_per_s * seconds)
    l2_sectors = int(shares.l2 * chip.l2_slices * chip.l2_clock_hz * seconds)
    wavefronts = int(shares.l1 * sm_cycles)
    smem_wavefronts = int(shares.smem * sm_cycles)
    dram_write_bytes = _even(dram_bytes * shares.dram_write)
    return Work(
        name=name,
        chip=chip,
        launch=launch,
        duration_ns=duration_ns,
        dram_read_bytes=dram_bytes - dram_write_bytes,
        dram_write_bytes=dram_write_bytes,
        l2_read_bytes=l2_sectors * SECTOR_BYTES,
        l2_write_bytes=dram_write_bytes,
        l1_tag_bytes=int(wavefronts * shares.sectors_per_wavefront) * SECTOR_BYTES,
        global_wavefronts=wavefronts,
        smem_wavefronts=smem_wavefronts,
        smem_conflicts=int(smem_wavefronts * shares.conflicts),
        warp_opcodes={
            chip.opcodes["load"]: wavefronts // 8,
            chip.opcodes["store"]: wavefronts // 24,
            "LDS": int(smem_wavefronts * (1 - shares.conflicts)) // 2,
            "STS": int(smem_wavefronts * (1 - shares.conflicts)) // 8,
            "FFMA": int(shares.fp32 * chip.ffma_per_sm / THREADS_PER_WARP * sm_cycles),
            "LOP3.LUT": int(shares.alu * chip.alu_per_sm * sm_cycles) // 2,
            "IADD3": int(shares.alu * chip.alu_per_sm * sm_cycles) // 2,
            "MUFU.EX2": int(shares.xu * chip.xu_per_sm * sm_cycles),
            "IMAD": int(shares.other_issue * SCHEDULERS_PER_SM * sm_cycles),
        },
    )


def triad(chip: Chip, share: float = 0.92, elements: int = 1 << 28) -> Work:
    """Describe c = a + s * b over fp32 arrays at a share of the memory bandwidth: 12 bytes and 2 FLOP an element."""
    array_bytes = 4 * elements
    warps = elements // 4 // THREADS_PER_WARP
    load, store = chip.opcodes["load"], chip.opcodes["store"]
    return Work(
        name="stream_triad(const float4 *, const float4 *, float4 *, float, long)",
        chip=chip,
        launch=Launch(
            (elements // 4 // 256, 1, 1), (256, 1, 1), registers=24, stalls={"long_scoreboard": 900, "wait": 100}
        ),
        duration_ns=round(3 * array_bytes / (share * chip.dram_bytes_per_s) * 1e9),
        dram_read_bytes=2 * array_bytes,
        dram_write_bytes=array_bytes,
        l2_read_bytes=2 * array_bytes,
        l2_write_bytes=array_bytes,
        l1_tag_bytes=3 * array_bytes,
        global_wavefronts=3 * array_bytes // WAVEFRONT_BYTES,
        warp_opcodes={load: 2 * warps, store: warps, "FFMA": 4 * warps, "IMAD.WIDE": 3 * warps, "ISETP.GE.AND": warps},
    )


class Gemm(Struct, frozen=True):
    """`batch` products of m x k and k x n 16-bit matrices, in tiles that blocks of 8 warps compute."""

    m: int
    n: int
    k: int
    batch: int = 1
    tile_m: int = 256
    tile_n: int = 128

    @property
    def flop(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def tiles(self) -> int:
        """Thread blocks."""
        return self.batch * (self.m // self.tile_m) * (self.n // self.tile_n)

    @property
    def operand_bytes(self) -> int:
        """Bytes of both operands, each once, as read from DRAM."""
        return self.batch * (self.m + self.n) * self.k * _BF16_BYTES

    @property
    def result_bytes(self) -> int:
        """Bytes of the product."""
        return self.batch * self.m * self.n * _BF16_BYTES

    @property
    def staged_bytes(self) -> int:
        """Bytes that all tiles copy from L2 to shared memory."""
        return self.tiles * (self.tile_m + self.tile_n) * self.k * _BF16_BYTES

    @property
    def fragment_bytes(self) -> int:
        """Bytes that 8 warps per tile, each with a 64 x 64 part, load from shared memory."""
        return self.tiles * 8 * (64 + 64) * self.k * _BF16_BYTES


def tensor_gemm(name: str, chip: Chip, gemm: Gemm, duration_ns: int) -> Work:
    """Describe a GEMM on the tensor cores.

    With TMA copies, staging passes neither the L1 tag stage nor the LSU; with tcgen05 the tensor cores read
    shared memory themselves.
    """
    opcode, flop_each = chip.tensor_opcode or ("", 1)
    is_tcgen05 = opcode.startswith("UTC")
    has_tma = chip.opcodes["copy"].startswith("UTMA")
    fragment_bytes = 0 if is_tcgen05 else gemm.fragment_bytes
    lsu_staged_bytes = 0 if has_tma else gemm.staged_bytes
    copies = gemm.staged_bytes // (_TMA_BYTES if has_tma else _COPY_BYTES)
    idle_counters = {
        "src_fp16_dst_fp16": 0,
        "src_fp16_dst_fp32": 0,
        "src_tf32_dst_fp32": 0,
        "src_fp64": 0,
        "src_int8": 0,
    }
    loads = {} if is_tcgen05 else {chip.opcodes["ldsm"]: fragment_bytes // _LDSM_BYTES}
    return Work(
        name=name,
        chip=chip,
        launch=Launch((gemm.tiles, 1, 1), (256, 1, 1), 168, 48 * 1024, occupancy=0.124, eligible_warps=0.6),
        duration_ns=duration_ns,
        dram_read_bytes=gemm.operand_bytes,
        dram_write_bytes=gemm.result_bytes,
        l2_read_bytes=gemm.staged_bytes,
        l2_write_bytes=gemm.result_bytes,
        l1_tag_bytes=lsu_staged_bytes + gemm.result_bytes,
        global_wavefronts=gemm.result_bytes // WAVEFRONT_BYTES,
        smem_wavefronts=(lsu_staged_bytes + fragment_bytes) // WAVEFRONT_BYTES,
        warp_opcodes={
            opcode: gemm.flop // flop_each,
            chip.opcodes["copy"]: copies,
            **loads,
            chip.opcodes["store"]: gemm.result_bytes // _COPY_BYTES,
            "IMAD.MOV.U32": gemm.staged_bytes // _COPY_BYTES,
            "LOP3.LUT": gemm.staged_bytes // _COPY_BYTES,
        },
        tensor_ops={"src_bf16_dst_fp32": gemm.flop, **idle_counters} if is_tcgen05 else {},
    )


def square_gemm(chip: Chip, share: float = 0.80, size: int = 8192) -> Work:
    """Describe a square GEMM at a share of the dense tensor peak that its instructions can reach."""
    opcode, _ = chip.tensor_opcode or ("", 1)
    is_tcgen05 = opcode.startswith("UTC")
    gemm = Gemm(size, size, size, tile_m=512, tile_n=256) if is_tcgen05 else Gemm(size, size, size)
    dtype = "bf16" if is_tcgen05 or "BF16" in opcode else "fp16"
    peak = next(rate for base, rate in chip.tensor_per_sm.items() if _is_peak_of(base, opcode)) * chip.sm_count
    duration_ns = round(gemm.flop / (share * peak * chip.sm_clock_hz) * 1e9)
    return tensor_gemm(f"gemm_{dtype}_{size}<{gemm.tile_m}, {gemm.tile_n}, 32>(GemmParams)", chip, gemm, duration_ns)


def sgemm(chip: Chip, share: float = 0.85) -> Work:
    """Describe an fp32 GEMM that runs on FFMA instructions."""
    shares = Shares(dram=0.1, l2=0.2, l1=0.1, smem=0.45, fp32=share)
    launch = Launch((4096, 1, 1), (256, 1, 1), 128, 16 * 1024, occupancy=0.24)
    return by_shares("sgemm_128x128<8, 8>(const float *, const float *, float *, int)", chip, 4_000_000, shares, launch)


def _is_peak_of(base: str, opcode: str) -> bool:
    """Return whether a tensor counter's peak is that of 16-bit products with `opcode`."""
    family = "op_utchmma_" if opcode.startswith("UTC") else "op_hmma_" if "op_" in base else ""
    return base.startswith((f"{family}src_bf16_dst_fp32", f"{family}src_fp16_bf16_tf32"))


def _even(amount: float) -> int:
    """Round down to whole sectors."""
    return int(amount) // SECTOR_BYTES * SECTOR_BYTES
