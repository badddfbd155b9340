"""The table of operators: what the call of each must compute and move, by the sizes and types of its operands.

A row leads from an operator's arguments to an operation of `predict`, where its formula stands, and says in whose
source the names and the order of the arguments are. FLOPs are those of the operation; bytes are every operand read once
and every result written once, each in its own type. An operator without a row, or a call with too few sizes, has no
work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rooflens.model.program import recipes as r
from rooflens.model.program.call import CallOperands, RequestSums, UnknownWorkError, Work, sums_of_step

if TYPE_CHECKING:
    from rooflens.model.program.recipes import Recipe
    from rooflens.model.program.timeline import Operands

Kind = Literal["product", "attention", "elementwise", "norm", "reduction", "copy"]


class Operator(Struct, frozen=True):
    """One row of the table.

    Attributes:
        kind: What it does; elementwise functions, norms and reductions can be fused.
        recipe: From its operands to an operation of `predict`.
        source: Where its name and the order of its arguments stand.
        kernels: A pattern that names the kernels its work is done by, if others run under it, too.
    """

    kind: Kind
    recipe: Recipe
    source: str
    kernels: str = ""


ATEN = "PyTorch, aten/src/ATen/native/native_functions.yaml"
FLASH = "flash-attention, flash_attn/flash_attn_interface.py"
FLASH_3 = "flash-attention, hopper/flash_api.cpp"
VLLM_FLASH = "vllm-project/flash-attention, csrc/flash_attn/flash_api_torch_lib.cpp"
XFORMERS = "xformers, xformers/ops/fmha/flash.py"
FLASHINFER = "flashinfer, flashinfer/norm.py and activation.py"
VLLM = "vLLM, csrc/torch_bindings.cpp"
VLLM_MOE = "vLLM, csrc/moe/torch_bindings.cpp"
VLLM_EXPERTS = "vLLM, vllm/model_executor/layers/fused_moe/fused_moe.py"
VLLM_ATTENTION = "vLLM, vllm/model_executor/layers/attention/attention.py"
SGLANG = "SGLang, sgl-kernel/csrc/common_extension.cc"
SGLANG_FLASH = "SGLang, sgl-kernel/csrc/flash_extension.cc"
SGLANG_EXPERTS = "SGLang, python/sglang/srt/layers/moe/fused_moe_triton/fused_moe.py"
TE = "Transformer Engine, transformer_engine/pytorch/module/linear.py, layernorm_linear.py"
TE_MLP = "Transformer Engine, transformer_engine/pytorch/module/layernorm_mlp.py"
TE_TS = "Transformer Engine, transformer_engine/pytorch/csrc/ts_fp8_op.cpp"
FBGEMM_LOOKUP = "FBGEMM, fbgemm_gpu/codegen/embedding_backward_split_host_template.cpp"
FBGEMM_BOUNDS = "FBGEMM, fbgemm_gpu/codegen/embedding_bounds_check_host.cpp"
FBGEMM_QUANTIZE = "FBGEMM, fbgemm_gpu/src/quantize_ops/quantize_ops_cpu.cpp and quantize_fp8_rowwise.cu"
FBGEMM_PERMUTE = "FBGEMM, fbgemm_gpu/src/permute_pooled_embedding_ops/permute_pooled_embedding_ops_split.cpp"
FBGEMM_LAYOUT = "FBGEMM, fbgemm_gpu/src/layout_transform_ops/layout_transform_ops_cpu.cpp"
FBGEMM_SPARSE = "FBGEMM, fbgemm_gpu/src/sparse_ops/sparse_ops_cpu.cpp"
LIGER = "Liger Kernel, src/liger_kernel/ops/"

_ATTENDING = r"attn|attention|fmha|flash|mha|decode|prefill|mla"
_OF_EXPERTS = r"moe|expert|gemm"

_UNARY = (
    *("abs", "neg", "relu", "gelu", "silu", "leaky_relu", "elu", "hardtanh", "hardswish", "hardsigmoid", "mish"),
    *("softplus", "clamp", "clamp_min", "clamp_max", "square", "sign", "round", "floor", "ceil", "trunc"),
    *("nan_to_num", "threshold", "bitwise_not"),
)
_UNARY_REAL = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan"),
    *("tanh", "sigmoid", "erf", "erfc", "atan", "logit"),
)
_BINARY = (
    *("add", "sub", "rsub", "mul", "pow", "maximum", "minimum", "remainder", "fmod", "sigmoid_backward"),
    *("tanh_backward", "gelu_backward", "silu_backward", "threshold_backward", "bitwise_and", "bitwise_or"),
    "bitwise_xor",
)
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
_IN_PLACE = (*_UNARY, *_UNARY_REAL, "add", "sub", "mul", "div", "pow", "remainder", "maximum", "minimum")
_REDUCED = ("sum", "mean", "amax", "amin", "max", "min", "prod", "logsumexp", "std", "var", "norm")


def _operators_of(source: str, kind: Kind, recipes: Mapping[str, Recipe], kernels: str = "") -> dict[str, Operator]:
    return {name: Operator(kind, recipe, source, kernels) for name, recipe in recipes.items()}


def _aten(kind: Kind, recipes: Mapping[str, Recipe]) -> dict[str, Operator]:
    return _operators_of(ATEN, kind, {f"aten::{name}": recipe for name, recipe in recipes.items()})


def _under(spaces: Iterable[str], recipes: Mapping[str, Recipe]) -> dict[str, Recipe]:
    return {f"{space}::{name}": recipe for space in spaces for name, recipe in recipes.items()}


_FLASH_2 = {
    "_flash_attn_forward": r.attention("blhd", 5, window_at=6, is_end_aligned=True),
    "_flash_attn_varlen_forward": r.attention_packed(3, 9, table_at=15, window_at=10),
    "_flash_attn_backward": r.attention_backward("blhd", 11, window_at=12),
    "_flash_attn_varlen_backward": r.attention_backward("blhd", 15, lengths_at=9, window_at=16),
}

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        **_aten(
            "product",
            {
                "mm": r.multiplied(2, 2),
                "addmm": r.multiplied(2, 2, added=True),
                "_addmm_activation": r.multiplied(2, 2, added=True),
                "bmm": r.multiplied(3, 3),
                "baddbmm": r.multiplied(3, 3, added=True),
                "matmul": r.matmul,
                "mv": r.multiplied(2, 1),
                "dot": r.multiplied(1, 1),
                "linear": r.linear,
                "_scaled_mm": r.scaled_mm,
                "_int_mm": r.int_mm,
                "_grouped_mm": r.grouped_mm,
                "convolution": r.convolution,
                "_convolution": r.convolution,
                "cudnn_convolution": r.cudnn_convolution,
                "convolution_backward": r.convolution_backward,
            },
        ),
        **_aten(
            "attention",
            {
                "_scaled_dot_product_flash_attention": r.attention("bhld", 4),
                "_scaled_dot_product_efficient_attention": r.attention("bhld", 6),
                "_scaled_dot_product_cudnn_attention": r.attention("bhld", 6),
                "_flash_attention_forward": r.attention("blhd", 8, lengths_at=3),
                "_efficient_attention_forward": r.attention("blhd", 9, lengths_at=4),
                "_cudnn_attention_forward": r.attention("bhld", 10, lengths_at=4),
                "_scaled_dot_product_flash_attention_backward": r.attention_backward("bhld", 11),
                "_scaled_dot_product_efficient_attention_backward": r.attention_backward("bhld", 11, result_at=5),
                "_scaled_dot_product_cudnn_attention_backward": r.attention_backward("bhld", 14),
                "_cudnn_attention_backward": r.attention_backward("bhld", 14),
                "_flash_attention_backward": r.attention_backward("blhd", 11, lengths_at=6),
            },
        ),
        **_aten(
            "norm",
            {
                "native_layer_norm": r.norm("layernorm", 0, 2),
                "native_layer_norm_backward": r.layer_norm_backward,
                "_fused_rms_norm": r.norm("rmsnorm", 0, 2),
                "_fused_rms_norm_backward": r.rms_norm_backward,
                "native_group_norm": r.normalized,
                "native_batch_norm": r.normalized,
                "cudnn_batch_norm": r.normalized,
                "native_batch_norm_backward": r.batch_norm_backward,
                "_softmax": r.softmax,
                "_log_softmax": r.softmax,
                "_softmax_backward_data": r.pointwise(2, 3),
                "_log_softmax_backward_data": r.pointwise(2, 3),
            },
        ),
        **_aten(
            "elementwise",
            {
                **{name: r.pointwise(1) for name in _UNARY},
                **{name: r.pointwise(1, result="real") for name in _UNARY_REAL},
                **{name: r.pointwise(2) for name in _BINARY},
                "div": r.pointwise(2, result="real"),
                **{name: r.pointwise(2, result="bool") for name in _COMPARED},
                "logical_not": r.pointwise(1, result="bool"),
                "isnan": r.pointwise(1, result="bool"),
                "addcmul": r.pointwise(3, 3),
                "addcdiv": r.pointwise(3, 3),
                "lerp": r.pointwise(3, 3),
                "where": r.chosen,
                "copy_": r.copy,
                **{f"{name}_": r.in_place(2) for name in _IN_PLACE},
                "addcmul_": r.in_place(3, 3),
                "addcdiv_": r.in_place(3, 3),
                "lerp_": r.in_place(3, 3),
                "native_dropout": r.dropout,
                "native_dropout_backward": r.pointwise(2),
            },
        ),
        **_aten("copy", {"fill_": r.fill, "zero_": r.fill, "embedding": r.looked_up}),
        **_aten(
            "reduction",
            {
                "cumsum": r.scan,
                "cumprod": r.scan,
                "linalg_vector_norm": r.reduction,
                **dict.fromkeys(_REDUCED, r.reduction),
            },
        ),
        # FlashAttention, and what others made of it
        **_operators_of(FLASH, "attention", _under(("flash_attn", "flashattn"), _FLASH_2)),
        **_operators_of(FLASH, "attention", {"FlashAttnFunc": r.attention("blhd", 5, is_end_aligned=True)}, _ATTENDING),
        **_operators_of(FLASH, "attention", {"FlashAttnVarlenFunc": r.attention_packed(3, 9, table_at=15)}, _ATTENDING),
        **_operators_of(FLASH_3, "attention", {"flash_attn_3::fwd": r.flash_attention_3}),
        **_operators_of(VLLM_FLASH, "attention", {"_vllm_fa3_C::fwd": r.flash_attention_3}),
        **_operators_of(
            VLLM_FLASH,
            "attention",
            {"_vllm_fa2_C::varlen_fwd": r.attention_packed(4, 15, table_at=8, window_at=16, longest_at=11)},
        ),
        **_operators_of(
            XFORMERS, "attention", {"xformers_flash::flash_fwd": r.attention("blhd", 10, lengths_at=3, window_at=11)}
        ),
        **_operators_of(SGLANG_FLASH, "attention", {"sgl_kernel::fwd": r.flash_attention_3}),
        # vLLM
        **_operators_of(
            VLLM_ATTENTION,
            "attention",
            _under(
                ("vllm",),
                {
                    "unified_attention": r.attention_of_server,
                    "unified_attention_with_output": r.attention_of_server,
                },
            ),
            _ATTENDING,
        ),
        **_operators_of(
            VLLM,
            "attention",
            _under(("_C",), dict.fromkeys(("paged_attention_v1", "paged_attention_v2"), r.paged_attention)),
        ),
        **_operators_of(
            VLLM,
            "norm",
            _under(
                ("_C",),
                {
                    "rms_norm": r.norm("rmsnorm", 1, 2, target=0),
                    "fused_add_rms_norm": r.added_norm(0, 1, 2),
                    "rms_norm_static_fp8_quant": r.norm("rmsnorm", 1, 2, target=0),
                    "fused_add_rms_norm_static_fp8_quant": r.added_norm(1, 2, 3, target=0),
                    "rms_norm_dynamic_per_token_quant": r.norm("rmsnorm", 1, 2, target=0),
                },
            ),
        ),
        **_operators_of(
            VLLM,
            "elementwise",
            _under(
                ("_C",),
                {
                    **dict.fromkeys(
                        (
                            *("silu_and_mul", "mul_and_silu", "gelu_and_mul", "gelu_tanh_and_mul", "fatrelu_and_mul"),
                            *("swigluoai_and_mul", "silu_and_mul_quant"),
                        ),
                        r.gated(),
                    ),
                    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_quick"), r.into(1, 0)),
                    "rotary_embedding": r.rotary((1, 2), (1, 2)),
                    "static_scaled_fp8_quant": r.into(1, 0),
                    "dynamic_scaled_fp8_quant": r.into(1, 0),
                    "dynamic_per_token_scaled_fp8_quant": r.into(1, 0, 1, 2),
                    "static_scaled_int8_quant": r.into(1, 0),
                    "dynamic_scaled_int8_quant": r.into(1, 0, 1, 2),
                    "per_token_group_fp8_quant": r.into(0, 1, 1, 2),
                    "per_token_group_quant_int8": r.into(0, 1, 1, 2),
                    "scaled_fp4_quant": r.into(1, 0, 1),
                },
            ),
        ),
        **_operators_of(
            VLLM,
            "product",
            _under(
                ("_C",),
                {
                    "cutlass_scaled_mm": r.scaled_into(1, 2, 0, 3, 4, 5),
                    "cutlass_scaled_mm_azp": r.scaled_into(1, 2, 0, 3, 4, 5, 6, 7),
                    "cutlass_scaled_fp4_mm": r.scaled_into(1, 2, 0, 3, 4, packed=True),
                    "cutlass_moe_mm": r.grouped_into(1, 2, 0),
                    "cutlass_fp4_group_mm": r.grouped_into(1, 2, 0, packed=True),
                    "marlin_gemm": r.quantized(2, (3, 4, 5, 6, 7, 8, 9), 12),
                },
            ),
        ),
        **_operators_of(
            VLLM,
            "copy",
            _under(("_C_cache_ops",), dict.fromkeys(("reshape_and_cache", "reshape_and_cache_flash"), r.cached)),
        ),
        **_operators_of(VLLM_MOE, "norm", {"_moe_C::topk_softmax": r.norm("softmax", 3, None, target=0)}),
        **_operators_of(VLLM_MOE, "reduction", {"_moe_C::moe_sum": r.into(0, 1)}),
        **_operators_of(
            VLLM_EXPERTS,
            "product",
            _under(("vllm",), dict.fromkeys(("outplace_fused_experts", "inplace_fused_experts"), r.experts)),
            _OF_EXPERTS,
        ),
        # SGLang, and FlashInfer, from which it has some
        **_operators_of(
            SGLANG_EXPERTS,
            "product",
            _under(("sglang",), dict.fromkeys(("outplace_fused_experts", "inplace_fused_experts"), r.experts)),
            _OF_EXPERTS,
        ),
        **_operators_of(
            SGLANG,
            "norm",
            _under(
                ("sgl_kernel",),
                {
                    "rmsnorm": r.norm("rmsnorm", 1, 2, target=0),
                    "gemma_rmsnorm": r.norm("rmsnorm", 1, 2, target=0),
                    "fused_add_rmsnorm": r.added_norm(0, 1, 2),
                    "gemma_fused_add_rmsnorm": r.added_norm(0, 1, 2),
                    "topk_softmax": r.norm("softmax", 2, None, target=0),
                },
            ),
        ),
        **_operators_of(
            SGLANG,
            "elementwise",
            _under(
                ("sgl_kernel",),
                {
                    **dict.fromkeys(("silu_and_mul", "gelu_tanh_and_mul", "gelu_and_mul"), r.gated()),
                    "apply_rope_pos_ids_cos_sin_cache": r.rotary((0, 1), (2, 3)),
                    "sgl_per_token_group_quant_fp8": r.into(0, 1, 1, 2),
                    "sgl_per_token_group_quant_int8": r.into(0, 1, 1, 2),
                    "sgl_per_token_quant_fp8": r.into(0, 1, 1, 2),
                    "sgl_per_tensor_quant_fp8": r.into(0, 1),
                    "scaled_fp4_quant": r.into(1, 0, 1),
                },
            ),
        ),
        **_operators_of(
            SGLANG,
            "product",
            _under(
                ("sgl_kernel",),
                {
                    **dict.fromkeys(
                        ("int8_scaled_mm", "fp8_scaled_mm", "fp8_blockwise_scaled_mm"), r.scaled_into(0, 1, None, 2, 3)
                    ),
                    "cutlass_scaled_fp4_mm": r.scaled_into(1, 2, 0, 3, 4, packed=True),
                    "dsv3_fused_a_gemm": r.scaled_into(1, 2, 0),
                    "fp8_blockwise_scaled_grouped_mm": r.grouped_into(6, 7, 0),
                    "cutlass_fp4_group_mm": r.grouped_into(1, 2, 0, packed=True),
                    "gptq_marlin_gemm": r.quantized(2, (3, 4, 5, 6, 7), 10),
                },
            ),
        ),
        **_operators_of(
            FLASHINFER,
            "norm",
            {
                "flashinfer::rmsnorm": r.norm("rmsnorm", 1, 2, target=0),
                "flashinfer::fused_add_rmsnorm": r.added_norm(0, 1, 2),
            },
        ),
        # FBGEMM: embeddings of recommenders
        **_operators_of(
            FBGEMM_LOOKUP,
            "copy",
            _under(
                ("fbgemm", "fb"),
                {"split_embedding_codegen_lookup_rowwise_adagrad_function": r.pooled_embeddings},
            ),
            "forward",
        ),
        **_operators_of(FBGEMM_BOUNDS, "copy", {"fbgemm::bounds_check_indices": r.checked_indices}),
        **_operators_of(
            FBGEMM_QUANTIZE,
            "elementwise",
            _under(
                ("fbgemm",),
                {
                    **dict.fromkeys(
                        ("FloatToFP8RowwiseQuantized", "FloatToFused8BitRowwiseQuantized"), r.quantized_rows
                    ),
                    **dict.fromkeys(
                        ("FP8RowwiseQuantizedToFloat", "Fused8BitRowwiseQuantizedToFloat"), r.restored_rows
                    ),
                    "FloatToHFP8Quantized": r.converted(1),
                    "HFP8QuantizedToFloat": r.converted(4),
                },
            ),
        ),
        **_operators_of(
            FBGEMM_PERMUTE,
            "copy",
            {
                "fbgemm::permute_pooled_embs": r.moved,
                "fbgemm::permute_pooled_embs_auto_grad": r.moved,
                (
                    "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<"
                    "&fbgemm_gpu::permute_pooled_embs_gpu> >"
                ): r.moved,
            },
        ),
        **_operators_of(FBGEMM_LAYOUT, "copy", {"fbgemm::recat_embedding_grad_output_mixed_D_batch": r.moved}),
        **_operators_of(
            FBGEMM_SPARSE,
            "reduction",
            {
                "fbgemm::asynchronous_complete_cumsum": r.accumulated(1),
                "fbgemm::asynchronous_inclusive_cumsum": r.accumulated(0),
                "fbgemm::asynchronous_exclusive_cumsum": r.accumulated(0),
            },
        ),
        # Transformer Engine and Liger: functions of autograd, whose kernels are no operators of their own
        **_operators_of(TE_TS, "product", {"tex_ts::te_gemm_ts": r.transformer_engine_gemm}),
        **_operators_of(
            TE, "product", {"_Linear": r.transformer_engine_linear, "_LayerNormLinear": r.transformer_engine_normed}
        ),
        **_operators_of(
            TE_MLP, "product", {"_LayerNormMLP": r.transformer_engine_mlp}, r"gemm|matmul|xmma|cutlass|nvjet"
        ),
        **_operators_of(LIGER, "norm", {"LigerRMSNormFunction": r.norm("rmsnorm", 0, 1)}),
        **_operators_of(
            LIGER,
            "elementwise",
            {"LigerSiLUMulFunction": r.pointwise(2, 4), "LigerGELUMulFunction": r.pointwise(2, 4)},
        ),
        **_operators_of(LIGER, "reduction", {"LigerCrossEntropyFunction": r.loss}),
    }
)
"""Operator, with its namespace -> its row."""

_INDUCTOR = Operator(
    "elementwise", r.inductor, "PyTorch, torch/_inductor/codegen/triton.py", r"^triton_(poi|per|red)_fused_"
)
"""Kernels that Inductor wrote, each under an operator of its own name."""

_INDUCTOR_NAME = re.compile(_INDUCTOR.kernels)


class OddOperandsError(Exception):
    """A call has operands that nobody writes."""


def operator_row(operator: str | None) -> Operator | None:
    """Return the row of an operator; None if it has none."""
    if operator is None:
        return None
    known = OPERATORS.get(operator)
    return _INDUCTOR if known is None and _INDUCTOR_NAME.match(operator) else known


def sums_around(operator: str | None, ranges: str | None) -> RequestSums | None:
    """Read what the step of a server around a call attends to; None if the call is no attention of a server."""
    row = None if operator is None or not ranges else OPERATORS.get(operator)
    return sums_of_step(ranges) if row is not None and row.kind == "attention" and row.source != ATEN else None


def cache_width(operator: str | None, operands: Operands | None) -> int | None:
    """Return the bytes of an element of a server's cache, where a call writes it; None for other calls."""
    row = None if operator is None or operands is None else OPERATORS.get(operator)
    if row is None or operands is None or row.recipe is not r.cached:
        return None
    try:
        return CallOperands(operands).tensor(2).element_bytes
    except UnknownWorkError:
        return None


def work_of_call(
    operator: str | None,
    operands: Operands | None,
    *,
    kernel: str = "",
    sums: RequestSums | None = None,
    cache_bytes: int | None = None,
) -> Work | None:
    """Return what one call must compute and move; None if operator or sizes do not tell.

    Args:
        operator: Its name, as `aten::mm`.
        operands: What it was called with.
        kernel: The kernel whose call it is; empty if that does not matter.
        sums: What the step of a server around it attends to, as `sums_around` reads it.
        cache_bytes: Bytes of an element of the server's cache; None if unknown.

    Raises:
        OddOperandsError: A trace may hold any operands, and a recipe cannot deal with these.
    """
    if operands is None:
        return None
    if operands.moved_bytes:
        return _counted(operands)
    row = operator_row(operator)
    if row is None or (row.kernels and kernel and not re.search(row.kernels, kernel, re.IGNORECASE)):
        return None
    try:
        return row.recipe(CallOperands(operands, sums, cache_bytes))
    except UnknownWorkError:
        return None
    except Exception as error:
        raise OddOperandsError from error


def _counted(operands: Operands) -> Work:
    """Take what the compiler that made a kernel counted.

    Inductor writes bytes in GB as `kernel_num_gb`, and FLOPs as `kernel_flop` (torch/_inductor/runtime/
    triton_heuristics.py); those of templates run on tensor cores.
    """
    flop = int(operands.flop or 0)
    sizes = {"flop": flop, "bytes": max(1, round(operands.moved_bytes or 0))}
    return Work("custom", sizes, "fp16" if flop else "fp32", (), (), bool(flop), counted_bytes=operands.moved_bytes)
