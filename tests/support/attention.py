"""The attention workload on an H200: three naive kernels and one fused, from the formulas of attention.

With batch b, heads h, sequence s and head dimension d: each of Q K^T and P V takes 2 b h s^2 d FLOP; Q, K, V and O hold
b h s d values each, the scores b h s^2. The naive way writes and reads the scores twice; the fused one never does.
"""

from __future__ import annotations

from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import Gemm, tensor_gemm
from support.synthetic_kernels import THREADS_PER_WARP, WAVEFRONT_BYTES, Launch, Work

BATCH, HEADS, SEQUENCE, HEAD_DIM = 4, 32, 2048, 128
BF16_BYTES = 2
FP32_BYTES = 4
PAIRS = BATCH * HEADS
TENSOR_BYTES = PAIRS * SEQUENCE * HEAD_DIM * BF16_BYTES
SCORES = PAIRS * SEQUENCE * SEQUENCE
GEMM_FLOP = 2 * SCORES * HEAD_DIM


def attention_kernels() -> tuple[Work, ...]:
    """Return the naive kernels in launch order, then the fused one."""
    return _scores(), _softmax(), _values(), _fused()


def _scores() -> Work:
    """Describe S = Q K^T."""
    name = "attention_scores_gemm<256, 128, 64>(const __nv_bfloat16 *, const __nv_bfloat16 *, __nv_bfloat16 *)"
    return tensor_gemm(name, H200, Gemm(SEQUENCE, SEQUENCE, HEAD_DIM, PAIRS), duration_ns=340_000)


def _values() -> Work:
    """Describe O = P V."""
    name = "attention_values_gemm<256, 128, 64>(const __nv_bfloat16 *, const __nv_bfloat16 *, __nv_bfloat16 *)"
    return tensor_gemm(name, H200, Gemm(SEQUENCE, HEAD_DIM, SEQUENCE, PAIRS), duration_ns=345_000)


def _softmax() -> Work:
    """Describe P = softmax(scale S): every score is read once and written once."""
    scores_bytes = SCORES * BF16_BYTES
    warps = SCORES // THREADS_PER_WARP
    memory_inst = scores_bytes // 512
    return Work(
        name="attention_scale_softmax<2048>(__nv_bfloat16 *, const __nv_bfloat16 *, float)",
        chip=H200,
        launch=Launch(
            (PAIRS * SEQUENCE, 1, 1), (128, 1, 1), 40, occupancy=0.72, stalls={"long_scoreboard": 800, "wait": 200}
        ),
        duration_ns=508_000,
        dram_read_bytes=scores_bytes,
        dram_write_bytes=scores_bytes,
        l2_read_bytes=scores_bytes,
        l2_write_bytes=scores_bytes,
        l1_tag_bytes=2 * scores_bytes,
        global_wavefronts=2 * scores_bytes // WAVEFRONT_BYTES,
        warp_opcodes={
            H200.opcodes["load"]: memory_inst,
            H200.opcodes["store"]: memory_inst,
            **_softmax_arithmetic(warps),
            "PRMT": warps,
            "SHFL.BFLY": PAIRS * SEQUENCE * 40,
        },
    )


def _softmax_arithmetic(warps: int) -> dict[str, int]:
    """Return the instructions on `warps` times 32 scores."""
    return {"FMUL": 2 * warps, "FADD": warps, "FMUL.FTZ": warps, "FADD.FTZ": warps, "FMNMX": warps, "MUFU.EX2": warps}


def _fused() -> Work:
    """Describe flash attention: blocks of 128 queries walk over all keys and values; scores stay in registers."""
    warps = SCORES // THREADS_PER_WARP
    blocks = PAIRS * SEQUENCE // 128
    query_bytes = TENSOR_BYTES
    staged_bytes = query_bytes + blocks * 2 * SEQUENCE * HEAD_DIM * BF16_BYTES
    fragment_bytes = 4 * (staged_bytes - query_bytes)  # each of 4 warps needs every key and value
    statistics_bytes = PAIRS * SEQUENCE * FP32_BYTES
    gemms = tensor_gemm("", H200, Gemm(SEQUENCE, SEQUENCE, HEAD_DIM, PAIRS), duration_ns=748_000)
    return replace(
        gemms,
        name="flash_attention_forward<128, 128, 64>(FlashParams)",
        launch=Launch(
            (SEQUENCE // 128, BATCH, HEADS), (128, 1, 1), 255, 64 * 1024, occupancy=0.124, eligible_warps=0.8
        ),
        dram_read_bytes=3 * TENSOR_BYTES,
        dram_write_bytes=TENSOR_BYTES + statistics_bytes,
        l2_read_bytes=staged_bytes,
        l2_write_bytes=TENSOR_BYTES + statistics_bytes,
        l1_tag_bytes=staged_bytes + TENSOR_BYTES + statistics_bytes,
        global_wavefronts=(TENSOR_BYTES + statistics_bytes) // WAVEFRONT_BYTES,
        smem_wavefronts=(staged_bytes + fragment_bytes) // WAVEFRONT_BYTES,
        warp_opcodes={
            "HMMA.16816.F32.BF16": 2 * GEMM_FLOP // 4096,
            "LDGSTS.E.BYPASS.128": staged_bytes // 512,
            H200.opcodes["ldsm"]: fragment_bytes // 512,
            H200.opcodes["store"]: TENSOR_BYTES // 512,
            **_softmax_arithmetic(warps),
            "F2FP.BF16.F32.PACK_AB": warps // 2,
            "IMAD.MOV.U32": warps,
        },
    )
