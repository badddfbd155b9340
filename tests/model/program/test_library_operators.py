"""Test what operators of libraries and servers must compute and move, against FLOPs and bytes worked out by hand.

Names and the order of arguments are those of the sources that each row of the table cites.
"""

from __future__ import annotations

from typing import Any

from rooflens.model.predict.forecast import work_of
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.sizes import checked_sizes
from rooflens.model.program.call import RequestSums, Work, sums_of_step
from rooflens.model.program.operators import OPERATORS, sums_around, work_of_call
from rooflens.model.program.timeline import Operands

F, H, B, E4 = "float", "c10::Half", "c10::BFloat16", "c10::Float8_e4m3fn"
U, I4, L, I8 = "unsigned char", "int", "long int", "signed char"
N = ("",)
"""An optional tensor that is not given."""


def call(*arguments: Any) -> Operands:
    """Write the arguments of a call: a type with sizes, or a value."""
    dims = tuple(tuple(one[1:]) if isinstance(one, tuple) else () for one in arguments)
    types = tuple(one[0] if isinstance(one, tuple) else "Scalar" for one in arguments)
    values = tuple("" if isinstance(one, tuple) else str(one) for one in arguments)
    return Operands(dims, types, (), values)


def amounts(work: Work | None) -> tuple[float, float, str]:
    """Return FLOPs by the operation of `predict`, bytes by the tensors, and the type of the arithmetic."""
    assert work is not None
    row = OPERATIONS[work.operation]
    return work_of(row, checked_sizes(row, work.sizes), "bf16")[0], work.moved_bytes, work.dtype


DENSE = (H, 2, 64, 4, 32), (H, 2, 64, 2, 32), (H, 2, 64, 2, 32)
"""Two sequences of 64 tokens, four heads and two of keys, of 32 elements."""
PACKED = (H, 128, 4, 32), (H, 128, 2, 32), (H, 128, 2, 32)
"""128 tokens of sequences of unknown lengths."""
PAGED = (B, 10, 8, 64), (B, 100, 16, 2, 64), (B, 100, 16, 2, 64)
"""Ten new tokens of eight heads, and a cache of 100 pages of 16 tokens and two heads."""
BOUNDS = (I4, 3)
FULL, CAUSAL = 2 * 64 * 64, 2 * (64 * 65 // 2)
DENSE_BYTES = 2 * 2 * 64 * 32 * (4 + 2 + 2 + 4)
AT_LEAST = 2 * (64 * 65 // 2)
"""Pairs of two sequences of 128 tokens together: the fewest if they are equally long."""
BACKWARD_BYTES = 2 * 2 * 64 * 32 * (4 + 4 + 2 + 2 + 4 + 4 + 2 + 2) + 4 * 2 * 4 * 64
ATTENDED = "execute_12_context_1(sq8sk20sqsq64sqsk160)_generation_2(sq2sk50sqsq2sqsk50)"
"""A request of eight new tokens that sees 20, and two of one token that see 50."""
PAIRS = 20 * 8 - 8 * 7 // 2 + 50
PAGED_BYTES = 2 * 2 * 10 * 8 * 64 + 2 * 70 * 2 * 2 * 64
V1 = ((B, 10, 8, 64), (B, 10, 8, 64), (B, 100, 2, 8, 16, 8), (B, 100, 2, 64, 16))


def attention(pairs: int, heads: int, width: int) -> int:
    """Count two products and the softmax of pairs."""
    return heads * pairs * (4 * width + 5)


BY_HAND: dict[str, tuple[tuple[str, ...], Operands, tuple[float, float, str]]] = {
    # case: operators, operands, FLOPs, bytes and type
    "FlashAttention": (
        ("flash_attn::_flash_attn_forward", "flashattn::_flash_attn_forward"),
        call(*DENSE, 0.0, 0.18, "False", -1, -1, 0.0, N, "False"),
        (attention(FULL, 4, 32), DENSE_BYTES, "fp16"),
    ),
    "FlashAttention's function": (
        ("FlashAttnFunc",),
        call(*DENSE, 0.0, 0.18, "True"),
        (attention(CAUSAL, 4, 32), DENSE_BYTES, "fp16"),
    ),
    "FlashAttention, packed": (
        ("flash_attn::_flash_attn_varlen_forward", "flashattn::_flash_attn_varlen_forward", "FlashAttnVarlenFunc"),
        call(*PACKED, BOUNDS, BOUNDS, 100, 100, 0.0, 0.18, "True", -1, -1, 0.0, N, "False", N),
        (attention(AT_LEAST, 4, 32), DENSE_BYTES, "fp16"),
    ),
    "gradients of FlashAttention": (
        ("flash_attn::_flash_attn_backward", "flashattn::_flash_attn_backward"),
        call(DENSE[0], *DENSE, DENSE[0], (F, 2, 4, 64), *DENSE, 0.0, 0.18, "True", -1, -1, 0.0, N, "False"),
        (4 * CAUSAL * (10 * 32 + 5), BACKWARD_BYTES, "fp16"),
    ),
    "gradients of FlashAttention, packed": (
        ("flash_attn::_flash_attn_varlen_backward", "flashattn::_flash_attn_varlen_backward"),
        call(
            *(PACKED[0], *PACKED, PACKED[0], (F, 4, 128), *PACKED, BOUNDS, BOUNDS),
            *(100, 100, 0.0, 0.18, "False", -1, -1, 0.0),
        ),
        (4 * 2 * 64 * 64 * (10 * 32 + 5), BACKWARD_BYTES, "fp16"),
    ),
    "FlashAttention 3": (
        ("flash_attn_3::fwd", "_vllm_fa3_C::fwd", "sgl_kernel::fwd"),
        call(*DENSE, *[N] * 20, 0.18, "True", -1, -1),
        (attention(CAUSAL, 4, 32), DENSE_BYTES, "fp16"),
    ),
    "FlashAttention 2 of vLLM, packed": (
        ("_vllm_fa2_C::varlen_fwd",),
        call(*PACKED, N, BOUNDS, BOUNDS, *[N] * 4, 100, 100, 0.0, 0.18, "False", "True", -1, -1),
        (attention(AT_LEAST, 4, 32), DENSE_BYTES, "fp16"),
    ),
    "FlashAttention 2 of vLLM, with a cache": (
        ("_vllm_fa2_C::varlen_fwd",),
        call(*PAGED, N, BOUNDS, BOUNDS, (I4, 3), N, (I4, 3, 10), N, 8, 50, 0.0, 0.18, "False", "True", -1, -1),
        (attention(PAIRS, 8, 64), PAGED_BYTES, "bf16"),
    ),
    "xformers": (
        ("xformers_flash::flash_fwd",),
        call(*DENSE, N, N, N, 64, 64, 0.0, 0.18, "True", -1, -1),
        (attention(CAUSAL, 4, 32), DENSE_BYTES, "fp16"),
    ),
    "attention of vLLM": (
        ("vllm::unified_attention_with_output",),
        call((B, 10, 8, 64), (B, 10, 2, 64), (B, 10, 2, 64), (B, 10, 8, 64), "'layer'"),
        (attention(PAIRS, 8, 64), PAGED_BYTES - 70 * 2 * 2 * 64, "bf16"),  # the type of its cache is not known
    ),
    "attention of vLLM with a result of its own": (
        ("vllm::unified_attention",),
        call((B, 10, 8, 64), (B, 10, 2, 64), (B, 10, 2, 64), "'layer'"),
        (attention(PAIRS, 8, 64), PAGED_BYTES - 70 * 2 * 2 * 64, "bf16"),
    ),
    "PagedAttention": (
        ("_C::paged_attention_v1",),
        call(*V1, 2, 0.18, (I4, 3, 10), (I4, 3), 16, 50),
        (attention(PAIRS, 8, 64), PAGED_BYTES, "bf16"),
    ),
    "PagedAttention in parts": (
        ("_C::paged_attention_v2",),
        call(V1[0], (F, 10, 8, 2), (F, 10, 8, 2), (B, 10, 8, 2, 64), *V1[1:], 2, 0.18, (I4, 3, 10), (I4, 3), 16, 50),
        (attention(PAIRS, 8, 64), PAGED_BYTES, "bf16"),
    ),
    "RMS norm": (
        ("_C::rms_norm", "sgl_kernel::rmsnorm", "sgl_kernel::gemma_rmsnorm", "flashinfer::rmsnorm"),
        call((B, 16, 64), (B, 16, 64), (B, 64), 1e-6),
        (4 * 16 * 64, 2 * (16 * 64 + 64 + 16 * 64), "bf16"),
    ),
    "RMS norm into eight bits": (
        ("_C::rms_norm_static_fp8_quant", "_C::rms_norm_dynamic_per_token_quant"),
        call((E4, 16, 64), (B, 16, 64), (B, 64), (F, 1), 1e-6),
        (4 * 16 * 64, 2 * (16 * 64 + 64) + 16 * 64, "bf16"),
    ),
    "sum and RMS norm": (
        (
            *("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm", "sgl_kernel::gemma_fused_add_rmsnorm"),
            "flashinfer::fused_add_rmsnorm",
        ),
        call((B, 16, 64), (B, 16, 64), (B, 64), 1e-6),
        (4 * 16 * 64, 2 * (4 * 16 * 64 + 64), "bf16"),
    ),
    "sum and RMS norm into eight bits": (
        ("_C::fused_add_rms_norm_static_fp8_quant",),
        call((E4, 16, 64), (B, 16, 64), (B, 16, 64), (B, 64), (F, 1), 1e-6),
        (4 * 16 * 64, 2 * (3 * 16 * 64 + 64) + 16 * 64, "bf16"),
    ),
    "gated activation": (
        (
            *("_C::silu_and_mul", "_C::mul_and_silu", "_C::gelu_and_mul", "_C::gelu_tanh_and_mul"),
            *("_C::fatrelu_and_mul", "_C::swigluoai_and_mul", "sgl_kernel::silu_and_mul"),
            *("sgl_kernel::gelu_and_mul", "sgl_kernel::gelu_tanh_and_mul"),
        ),
        call((B, 16, 64), (B, 16, 128)),
        (4 * 16 * 64, 2 * 3 * 16 * 64, "fp32"),
    ),
    "gated activation into eight bits": (
        ("_C::silu_and_mul_quant",),
        call((E4, 16, 64), (B, 16, 128), (F, 1)),
        (4 * 16 * 64, 2 * 16 * 128 + 16 * 64, "fp32"),
    ),
    "activation": (
        ("_C::gelu_new", "_C::gelu_fast", "_C::gelu_quick"),
        call((B, 16, 64), (B, 16, 64)),
        (16 * 64, 4 * 16 * 64, "fp32"),
    ),
    "rotary embedding": (
        ("_C::rotary_embedding",),
        call((L, 16), (B, 16, 512), (B, 16, 128), 64, (B, 4096, 64), "True"),
        (3 * 16 * 640, 2 * 2 * 16 * 640, "fp32"),
    ),
    "rotary embedding of SGLang": (
        ("sgl_kernel::apply_rope_pos_ids_cos_sin_cache",),
        call((B, 16, 8, 64), (B, 16, 2, 64), (B, 16, 8, 64), (B, 16, 2, 64), (F, 4096, 64), (L, 16)),
        (3 * 16 * 640, 2 * 2 * 16 * 640, "fp32"),
    ),
    "converted to eight bits": (
        ("_C::static_scaled_fp8_quant", "_C::dynamic_scaled_fp8_quant"),
        call((E4, 16, 64), (B, 16, 64), (F, 1)),
        (16 * 64, 3 * 16 * 64, "fp32"),
    ),
    "converted to whole numbers": (
        ("_C::static_scaled_int8_quant",),
        call((I8, 16, 64), (B, 16, 64), (F, 1), N),
        (16 * 64, 3 * 16 * 64, "fp32"),
    ),
    "converted token by token": (
        ("_C::dynamic_per_token_scaled_fp8_quant", "_C::dynamic_scaled_int8_quant"),
        call((E4, 16, 64), (B, 16, 64), (F, 16, 1), N),
        (16 * 64, 3 * 16 * 64 + 4 * 16, "fp32"),
    ),
    "converted group by group": (
        (
            *("_C::per_token_group_fp8_quant", "_C::per_token_group_quant_int8"),
            *("sgl_kernel::sgl_per_token_group_quant_fp8", "sgl_kernel::sgl_per_token_group_quant_int8"),
            "sgl_kernel::sgl_per_token_quant_fp8",
        ),
        call((B, 16, 256), (E4, 16, 256), (F, 16, 2), 128),
        (16 * 256, 3 * 16 * 256 + 4 * 32, "fp32"),
    ),
    "converted as a whole": (
        ("sgl_kernel::sgl_per_tensor_quant_fp8",),
        call((B, 16, 256), (E4, 16, 256), (F, 1), "True"),
        (16 * 256, 3 * 16 * 256, "fp32"),
    ),
    "converted to four bits": (
        ("_C::scaled_fp4_quant", "sgl_kernel::scaled_fp4_quant"),
        call((U, 16, 128), (B, 16, 256), (I4, 128, 4), (F, 1)),
        (16 * 256, 2 * 16 * 256 + 16 * 128, "fp32"),
    ),
    "product of eight bits": (
        ("_C::cutlass_scaled_mm",),
        call((B, 16, 64), (E4, 16, 32), (E4, 32, 64), (F, 16, 1), (F, 1, 64), (B, 64)),
        (2 * 16 * 64 * 32, 16 * 32 + 32 * 64 + 4 * (16 + 64) + 2 * 64 + 2 * 16 * 64, "fp8"),
    ),
    "product of whole numbers with zero points": (
        ("_C::cutlass_scaled_mm_azp",),
        call((B, 16, 64), (I8, 16, 32), (I8, 32, 64), (F, 16, 1), (F, 1, 64), (I4, 64), N, N),
        (2 * 16 * 64 * 32, 16 * 32 + 32 * 64 + 4 * (16 + 64) + 4 * 64 + 2 * 16 * 64, "int8"),
    ),
    "product of four bits": (
        ("_C::cutlass_scaled_fp4_mm", "sgl_kernel::cutlass_scaled_fp4_mm"),
        call((B, 16, 64), (U, 16, 32), (U, 64, 32), (E4, 128, 4), (E4, 128, 4), (F, 1)),
        (2 * 16 * 64 * 64, 16 * 32 + 64 * 32 + 2 * 128 * 4 + 2 * 16 * 64, "nvfp4"),
    ),
    "products of experts": (
        ("_C::cutlass_moe_mm",),
        call((B, 16, 64), (E4, 16, 32), (E4, 8, 32, 64), (F, 16, 1), (F, 8, 64)),
        (2 * 16 * 64 * 32, 16 * 32 + 32 * 64 + 2 * 16 * 64, "fp8"),
    ),
    "products of experts in four bits": (
        ("_C::cutlass_fp4_group_mm", "sgl_kernel::cutlass_fp4_group_mm"),
        call((B, 16, 64), (U, 16, 32), (U, 8, 64, 32)),
        (2 * 16 * 64 * 64, 16 * 32 + 64 * 32 + 2 * 16 * 64, "nvfp4"),
    ),
    "products of experts of SGLang": (
        ("sgl_kernel::fp8_blockwise_scaled_grouped_mm",),
        call((B, 16, 64), *[(L, 8)] * 5, (E4, 16, 32), (E4, 8, 32, 64)),
        (2 * 16 * 64 * 32, 16 * 32 + 32 * 64 + 2 * 16 * 64, "fp8"),
    ),
    "packed weights": (
        ("_C::marlin_gemm",),
        call((B, 16, 256), N, (I4, 16, 128), N, (B, 2, 64), *[N] * 5, (I4, 528), 8, 16, 64, 256),
        (2 * 16 * 64 * 256, 2 * 16 * 256 + 4 * 16 * 128 + 2 * 2 * 64 + 2 * 16 * 64, "bf16"),
    ),
    "packed weights of SGLang": (
        ("sgl_kernel::gptq_marlin_gemm",),
        call((B, 16, 256), N, (I4, 16, 128), (B, 2, 64), *[N] * 4, (I4, 528), 8, 16, 64, 256),
        (2 * 16 * 64 * 256, 2 * 16 * 256 + 4 * 16 * 128 + 2 * 2 * 64 + 2 * 16 * 64, "bf16"),
    ),
    "scaled product of SGLang": (
        ("sgl_kernel::fp8_scaled_mm", "sgl_kernel::fp8_blockwise_scaled_mm"),
        call((E4, 16, 32), (E4, 32, 64), (F, 16, 1), (F, 1, 64), 15, N),
        (2 * 16 * 64 * 32, 16 * 32 + 32 * 64 + 4 * (16 + 64) + 2 * 16 * 64, "fp8"),
    ),
    "scaled product of whole numbers": (
        ("sgl_kernel::int8_scaled_mm",),
        call((I8, 16, 32), (I8, 32, 64), (F, 16, 1), (F, 1, 64), 5, N),
        (2 * 16 * 64 * 32, 16 * 32 + 32 * 64 + 4 * (16 + 64) + 2 * 16 * 64, "int8"),
    ),
    "projection of DeepSeek": (
        ("sgl_kernel::dsv3_fused_a_gemm",),
        call((B, 16, 64), (B, 16, 32), (B, 32, 64)),
        (2 * 16 * 64 * 32, 2 * (16 * 32 + 32 * 64 + 16 * 64), "bf16"),
    ),
    "new keys and values": (
        ("_C_cache_ops::reshape_and_cache", "_C_cache_ops::reshape_and_cache_flash"),
        call((B, 16, 2, 64), (B, 16, 2, 64), (U, 100, 16, 2, 64), (U, 100, 16, 2, 64), (L, 10), "'fp8'"),
        (0, 2 * 10 * 2 * 64 * (2 + 1) + 8 * 10, "fp32"),
    ),
    "router": (
        ("_moe_C::topk_softmax",),
        call((F, 16, 2), (I4, 16, 2), (I4, 16, 2), (F, 16, 8)),
        (5 * 16 * 8, 4 * (16 * 8 + 16 * 2), "fp32"),
    ),
    "router of SGLang": (
        ("sgl_kernel::topk_softmax",),
        call((F, 16, 2), (I4, 16, 2), (F, 16, 8), "True"),
        (5 * 16 * 8, 4 * (16 * 8 + 16 * 2), "fp32"),
    ),
    "sum of experts": (("_moe_C::moe_sum",), call((B, 16, 2, 64), (B, 16, 64)), (2048, 2 * (2048 + 1024), "fp32")),
    "experts": (
        (
            *("vllm::outplace_fused_experts", "vllm::inplace_fused_experts"),
            *("sglang::outplace_fused_experts", "sglang::inplace_fused_experts"),
        ),
        call((B, 16, 64), (B, 8, 96, 64), (B, 8, 64, 48), (F, 16, 2), (I4, 16, 2), "'silu'"),
        (2 * 16 * 2 * 64 * (96 + 48), 2 * (2 * 16 * 64 + 2 * 64 * (96 + 48)) + 4 * 16 * 2, "bf16"),
    ),
    "product of Transformer Engine": (
        ("tex_ts::te_gemm_ts",),
        call(
            *((U, 64, 32), (F, 1), 0, 7, 1, (U, 16, 32), (F, 1), 1, 7, 0, (B, 16, 64)),
            *((F, 1), 6, (F, 1), (B, 64), 6, (B, 0), 0, (U, 1024), 1024, 0, 0),
        ),
        (2 * 16 * 64 * 32, 16 * 32 + 64 * 32 + 2 * 64 + 2 * 16 * 64, "fp8"),
    ),
    "layer of Transformer Engine": (
        ("_Linear",),
        call((B, 64, 32), (B, 4, 4, 32), (B, 64), "True"),
        (2 * 16 * 64 * 32, 2 * (64 * 32 + 16 * 32 + 16 * 64), "bf16"),
    ),
    "norm and layer of Transformer Engine": (
        ("_LayerNormLinear",),
        call((B, 4, 4, 32), (B, 32), N, (B, 64, 32), N, 1e-5),
        (2 * 16 * 64 * 32, 2 * (16 * 32 + 32 + 64 * 32 + 16 * 64), "bf16"),
    ),
    "norm and two layers of Transformer Engine": (
        ("_LayerNormMLP",),
        call((B, 4, 4, 32), (B, 32), (B, 32), (B, 128, 32), (B, 128), "True", (B, 32, 64), (B, 32), "True", 1e-5),
        (2 * 16 * 32 * (128 + 64), 2 * (16 * 32 + 128 * 32 + 32 * 64 + 16 * 32), "bf16"),
    ),
    "sums of bags of embeddings": (
        (
            "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function",
            "fb::split_embedding_codegen_lookup_rowwise_adagrad_function",
        ),
        call(
            *((F, 0), (H, 4000), (H, 0), (H, 0, 0), (I4, 3), (L, 3), (I4, 4), 112, 64, (L, 4), 9, (L, 500), (L, 49), 0),
            *(N, N, (I4, 0), "False", 1.0, "False", (F, 90), (F, 0), (I4, 3), (L, 3), 1e-8, 0.1, 0.0, 0, 0),
        ),
        (0, 8 * 500 + 8 * 49 + 16 * 112, "fp32"),
    ),
    "checked indices": (
        ("fbgemm::bounds_check_indices",),
        call((L, 3), (L, 500), (L, 49), 1, (L, 1), N, N, -1),
        (0, 8 * 500 + 8 * 49, "fp32"),
    ),
    "rows in eight bits": (
        ("fbgemm::FloatToFP8RowwiseQuantized", "fbgemm::FloatToFused8BitRowwiseQuantized"),
        call((F, 16, 30), "True"),
        (16 * 30, 4 * 16 * 30 + 16 * (32 + 8), "fp32"),
    ),
    "rows from eight bits": (
        ("fbgemm::FP8RowwiseQuantizedToFloat", "fbgemm::Fused8BitRowwiseQuantizedToFloat"),
        call((U, 16, 40), "True"),
        (16 * 32, 16 * 40 + 4 * 16 * 32, "fp32"),
    ),
    "floats in eight bits": (
        ("fbgemm::FloatToHFP8Quantized",),
        call((F, 1000), 4, 15, 0.9),
        (1000, 5 * 1000, "fp32"),
    ),
    "floats from eight bits": (("fbgemm::HFP8QuantizedToFloat",), call((U, 1000), 4, 15), (1000, 5 * 1000, "fp32")),
    "embeddings in another order": (
        (
            *("fbgemm::permute_pooled_embs", "fbgemm::permute_pooled_embs_auto_grad"),
            "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_pooled_embs_gpu> >",
            "fbgemm::recat_embedding_grad_output_mixed_D_batch",
        ),
        call((F, 16, 70), (L, 4), (L, 3), (L, 4), (L, 3)),
        (0, 2 * 4 * 16 * 70, "fp32"),
    ),
    "sums so far, and that of all": (
        ("fbgemm::asynchronous_complete_cumsum",),
        call((I4, 100)),
        (100, 4 * 201, "fp32"),
    ),
    "sums so far": (
        ("fbgemm::asynchronous_inclusive_cumsum", "fbgemm::asynchronous_exclusive_cumsum"),
        call((I4, 100)),
        (100, 4 * 200, "fp32"),
    ),
    "RMS norm of Liger": (
        ("LigerRMSNormFunction",),
        call((B, 16, 64), (B, 64), 1e-6),
        (4 * 16 * 64, 2 * (2 * 16 * 64 + 64), "bf16"),
    ),
    "gated activation of Liger": (
        ("LigerSiLUMulFunction", "LigerGELUMulFunction"),
        call((B, 16, 64), (B, 16, 64)),
        (4 * 16 * 64, 2 * 3 * 16 * 64, "fp32"),
    ),
    "loss of Liger": (
        ("LigerCrossEntropyFunction",),
        call((B, 16, 1000), (L, 16), N, -100),
        (5 * 16 * 1000, 2 * 16_000 + 8 * 16, "fp32"),
    ),
    "a kernel of Inductor": (
        ("triton_poi_fused_add_cos_0",),
        call((F, 10, 10), (F, 1000), (F, 10, 10), 100),
        (0, 4 * 300, "fp32"),
    ),
}


def test_work_is_what_a_hand_works_out() -> None:
    """FLOPs, bytes and type of each call follow from its sizes, and from the annotation of a server's step."""
    found = {
        (name, operator): amounts(work_of_call(operator, operands, sums=sums_around(operator, ATTENDED)))
        for name, (operators, operands, _) in BY_HAND.items()
        for operator in operators
    }
    assert found == {(name, operator): hand for name, (operators, _, hand) in BY_HAND.items() for operator in operators}


def test_every_row_of_libraries_and_servers_is_worked_out_by_hand() -> None:
    """No row of the table is without a case above, and none without its source."""
    worked = {operator for operators, *_ in BY_HAND.values() for operator in operators}
    assert {name for name in OPERATORS if not name.startswith("aten::")} <= worked
    assert not [name for name, row in OPERATORS.items() if "," not in row.source and "/" not in row.source]


def test_more_of_pytorch_by_hand() -> None:
    """Gradients of norms, grouped and scaled products, rows looked up and cuDNN's attention follow from their sizes."""
    cases = {
        "_fused_rms_norm": (call((B, 16, 64), [64], (B, 64), 1e-6), (4 * 1024, 2 * (2 * 1024 + 64), "bf16")),
        "_fused_rms_norm_backward": (
            call((B, 16, 64), (B, 16, 64), [64], (F, 16), (B, 64), "[True, True]"),
            (4 * 1024, 2 * 3 * 1024, "fp32"),
        ),
        "native_batch_norm_backward": (
            call((F, 2, 4, 8, 8), (F, 2, 4, 8, 8), *[(F, 4)] * 5, "True", 1e-5, "[True, True, True]"),
            (7 * 512, 4 * 3 * 512, "fp32"),
        ),
        "_scaled_mm": (
            call((E4, 16, 32), (E4, 32, 64), (F,), (F,), N, N, 15, "True"),
            (2 * 16 * 64 * 32, 16 * 32 + 32 * 64 + 8 + 2 * 16 * 64, "fp8"),
        ),
        "_int_mm": (call((I8, 16, 32), (I8, 32, 64)), (65_536, 16 * 32 + 32 * 64 + 4 * 16 * 64, "int8")),
        "_grouped_mm": (
            call((B, 16, 32), (B, 8, 32, 64), (I4, 8)),
            (65_536, 2 * (16 * 32 + 32 * 64 + 16 * 64) + 4 * 8, "bf16"),
        ),
        "embedding": (call((B, 1000, 64), (L, 4, 4)), (0, 8 * 16 + 2 * 16 * 64, "fp32")),
        "_scaled_dot_product_cudnn_attention": (
            call(*[(H, 1, 2, 64, 32)] * 3, N, "False", 0.0, "True"),
            (attention(64 * 65 // 2, 2, 32), 2 * 4 * 64 * 2 * 32, "fp16"),
        ),
        "_scaled_dot_product_cudnn_attention_backward": (
            call(*[(H, 1, 2, 64, 32)] * 5, (F, 1, 2, 64, 1), *[N] * 5, 64, 64, 0.0, "False"),
            (2 * 64 * 64 * (10 * 32 + 5), 2 * 8 * 64 * 2 * 32 + 4 * 2 * 64, "fp16"),
        ),
    }
    found = {name: amounts(work_of_call(f"aten::{name}", operands)) for name, (operands, _) in cases.items()}
    assert found == {name: hand for name, (_, hand) in cases.items()}


def test_a_window_leaves_out_what_a_query_does_not_see() -> None:
    """With a window of 15 tokens to the left, the first 16 queries see as many as they are, and the others 16."""
    operands = call(*DENSE, 0.0, 0.18, "True", 15, 0, 0.0, N, "False")
    pairs = 2 * (16 * 17 // 2 + 48 * 16)
    assert amounts(work_of_call("flash_attn::_flash_attn_forward", operands))[0] == attention(pairs, 4, 32)


def test_a_window_over_a_cache_counts_no_pair_that_it_leaves_out() -> None:
    """Of lengths that only sums tell, the fewest tokens in the window count; without the longest one nothing does."""
    arguments = (*PAGED, N, BOUNDS, BOUNDS, (I4, 3), N, (I4, 3, 10), N)
    sums = sums_around("_vllm_fa2_C::varlen_fwd", ATTENDED)
    # Ten queries see 182 tokens, none more than 40, of which the window leaves five: 1 + (s - 1) (5 - 1) / (40 - 1).
    pairs, keys = 10 + (PAIRS - 10) * 4 // 39, 70 * 5 // 40
    windowed = call(*arguments, 8, 40, 0.0, 0.18, "False", "True", 4, 0)
    moved = 2 * 2 * 10 * 8 * 64 + 2 * keys * 2 * 2 * 64
    found = amounts(work_of_call("_vllm_fa2_C::varlen_fwd", windowed, sums=sums))
    assert found == (attention(pairs, 8, 64), moved, "bf16")
    assert pairs <= 10 * 5  # by the lengths themselves, each query sees five
    unknown = call(*arguments, 8, N, 0.0, 0.18, "False", "True", 4, 0)
    assert work_of_call("_vllm_fa2_C::varlen_fwd", unknown, sums=sums) is None


def test_embeddings_of_a_trace_without_values() -> None:
    """A single table is as wide as its elements over its rows; of several nobody knows."""

    def lookup(columns: int) -> Operands:
        tables = ((F, 0), (F, 96_000), (F, 0), (F, 0, 0), (I4, 1), (L, 1), (I4, columns))
        bags = (N, N, (L, 2), N, (L, 500), (L, 65), N)
        return call(*tables, *bags, *(N, N, (I4, 0), N, N, N, (F, 1000)))

    name = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
    assert amounts(work_of_call(name, lookup(2))) == (0, 8 * 500 + 8 * 65 + 64 * 96, "fp32")
    assert work_of_call(name, lookup(5)) is None


def test_steps_of_servers_are_read() -> None:
    """Annotations of vLLM and SGLang tell tokens, those they see, and pairs; without the latter the fewest count."""
    sglang = "run/step[MIXED bs=3 c=1 g=2 c_sq=8 c_sk=20 c_sqsq=64 c_sqsk=160 g_sq=2 g_sk=50 g_sqsq=2 g_sqsk=50]"
    prompts = 2 * (100 * 101 // 2)
    assert {
        ATTENDED: sums_of_step(ATTENDED),
        sglang: sums_of_step(sglang),
        "prompts": sums_of_step("execute_context_2(200)_generation_3(3)"),
        "prompts of SGLang": sums_of_step("step[EXTEND bs=2 toks=200]"),
    } == {
        ATTENDED: RequestSums(10, 70, PAIRS),
        sglang: RequestSums(10, 70, PAIRS),
        "prompts": RequestSums(203, None, prompts),
        "prompts of SGLang": RequestSums(200, None, prompts),
    }
    silent = ("execute_context_0(0)_generation_64(64)", "step[DECODE bs=64]", "execute_new_1_cached_2", "forward", None)
    assert [sums_of_step(one) for one in silent] == [None] * len(silent)


def test_attention_to_a_cache_without_a_step_is_unknown() -> None:
    """How many cached tokens are read is nowhere in the arguments."""
    operands = BY_HAND["attention of vLLM"][1]
    assert work_of_call("vllm::unified_attention_with_output", operands) is None


def test_the_floor_of_attention_is_that_of_its_kernels() -> None:
    """What else runs under the operator of a server's attention has no part of its work."""
    operands, sums = BY_HAND["attention of vLLM"][1], sums_of_step(ATTENDED)
    known = [
        work_of_call("vllm::unified_attention_with_output", operands, kernel=kernel, sums=sums) is not None
        for kernel in ("kernel_unified_attention_2d", "void at::native::vectorized_elementwise_kernel<4>")
    ]
    assert known == [True, False]


def test_a_compilers_own_count_is_used() -> None:
    """Inductor counts the bytes of its kernels: these are the floor's, whatever the tensors are."""
    work = work_of_call("triton_red_fused_0", Operands((), (), moved_bytes=125_829_120.0, flop=None))
    assert work is not None
    assert amounts(work)[:2] == (0, 125_829_120)
