"""The PyTorch workloads' formulas against numbers worked out by hand; needs no PyTorch."""

from __future__ import annotations

import pytest
from support.loops import for_all

from rooflens.model.cases import Case, Workload
from rooflens.model.roofline.datasheets import PEAK_KEYS, Datasheet, load_datasheets
from rooflens.model.verdict_classes import BOUNDS
from rooflens.workloads.registry import load_workloads

CASES = [(workload, case) for workload in load_workloads() if workload.kind == "torch" for case in workload.cases]
EVERY_CASE = for_all("workload, case", CASES, lambda one: f"{one[0].name} {one[1].name}")
GPUS = [gpu for gpu in load_datasheets() if gpu.name in {"NVIDIA H200", "NVIDIA H100 80GB HBM3"}]

BY_HAND = {
    # 4 x 32 heads x 4096**2 x 128; query, key, value and result of 32 x 4096 x 128 x 2 bytes
    "attention-fused": (274_877_906_944, 134_217_728),
    # and four trips of 32 x 4096**2 scores of 2 bytes
    "attention-naive": (274_877_906_944, 134_217_728 + 4 * 1_073_741_824),
    # 4096 x 4097 / 2 of the 4096**2 scores are in nobody's future
    "attention-fused_causal": (137_472_507_904, 134_217_728),
    # six trips of the scores, and a mask of 4096**2 bytes
    "attention-naive_causal": (274_877_906_944, 134_217_728 + 6 * 1_073_741_824 + 16_777_216),
    # 4 x 32 x 8192 x 128; a cache of 2 x 8 x 8192 x 128 x 2 bytes, query and result of 32 x 128 x 2 bytes
    "decode_attention-batch_1": (134_217_728, 33_554_432 + 16_384),
    "decode_attention-batch_16": (16 * 134_217_728, 16 * (33_554_432 + 16_384)),
    # 2 n**3; three matrices of n**2 numbers
    "gemm-bf16_128": (4_194_304, 3 * 32_768),
    "gemm-bf16_1024": (2_147_483_648, 3 * 2_097_152),
    "gemm-bf16_4096": (137_438_953_472, 3 * 33_554_432),
    "gemm-bf16_8192": (1_099_511_627_776, 3 * 134_217_728),
    "gemm-fp16_4096": (137_438_953_472, 3 * 33_554_432),
    "gemm-fp16_4095": (137_338_314_750, 3 * 33_538_050),
    "gemm-tf32_4096": (137_438_953_472, 3 * 67_108_864),
    # two operands of 1 byte a number, a result of 2
    "gemm-fp8_4096": (137_438_953_472, 2 * 16_777_216 + 33_554_432),
    # the doublings between them
    "gemm-bf16_256": (33_554_432, 3 * 131_072),
    "gemm-bf16_512": (268_435_456, 3 * 524_288),
    "gemm-bf16_2048": (17_179_869_184, 3 * 8_388_608),
    "gemm-fp8_2048": (17_179_869_184, 2 * 4_194_304 + 8_388_608),
    # 16384**2 weights of 2 bytes; two vectors of 32 KiB
    "gemv-bf16_16384": (536_870_912, 536_870_912 + 2 * 32_768),
    # 2**26 elements of 4 bytes
    "elementwise-relu": (67_108_864, 536_870_912),
    "elementwise-gelu": (335_544_320, 536_870_912),
    "elementwise-cos_cos": (134_217_728, 1_073_741_824),
    "elementwise-cos_cos_fused": (134_217_728, 536_870_912),
    # 32768 x 4096 elements of 2 bytes, in and out; a weight or a bias has 8 KiB
    "layernorm-bf16_4096": (939_524_096, 2 * 268_435_456 + 2 * 8_192),
    "rmsnorm-bf16_4096": (536_870_912, 2 * 268_435_456 + 8_192),
    "softmax-bf16_4096": (671_088_640, 2 * 268_435_456),
    "triton_softmax-bf16_4096": (671_088_640, 2 * 268_435_456),
    # 2**27 elements of 2 bytes, twice
    "dot-bf16": (268_435_455, 536_870_914),
    # 131072 x (8 + 64 + 64)
    "embedding-bf16_32": (None, 17_825_792),
    # 4 x 4096 x 16384 a token; weights of 2 x 4096 x 16384 x 2 bytes; a token 2 x (2 x 4096 + 4 x 16384) bytes
    "mlp-batch_1": (268_435_456, 268_435_456 + 147_456),
    "mlp-batch_32": (8_589_934_592, 268_435_456 + 4_718_592),
    "mlp-batch_512": (137_438_953_472, 268_435_456 + 75_497_472),
    # 8192 tokens x (8 x 2048**2 + 4 x 2048 x 8192) + 4 x 4 x 2048**3
    # 8192 tokens x 2 x (22 x 2048 + 4 x 8192) bytes, weights of 2 x (4 x 2048**2 + 2 x 2048 x 8192 + 2 x 2048) bytes
    "transformer_block-forward": (824_633_720_832 + 137_438_953_472, 1_275_068_416 + 100_671_488),
    "transformer_block-forward_backward": (3 * 824_633_720_832 + 481_036_337_152, 3_623_878_656 + 302_014_464),
    # 23 products of 2 x 64 x 512**2; 86 x 64 x 512 numbers of a batch and 47 x 512**2 of weights, of 2 bytes
    **{f"training_step-{case}": (771_751_936, 5_636_096 + 24_641_536) for case in ("eager", "graph")},
    # 2 x 200704 pixels (64 x 56**2) x 256 filters x 256 channels x 9 places; pixels of 256 and 256 numbers of 2 bytes
    "conv2d-full_3x3": (236_760_072_192, 205_520_896 + 1_179_648),
    # 2 x 200704 x 64 x 256; pixels of 256 and 64 numbers, weights of 64 x 256
    "conv2d-pointwise": (6_576_668_672, 128_450_560 + 32_768),
    # 2 x 200704 x 256 x 9; weights of 256 x 9
    "conv2d-depthwise_3x3": (924_844_032, 205_520_896 + 4_608),
    # 2**27 elements, twice: to the sum and back 4 bytes, to the result 4, the mask 1; a bias of 8192 x 2 bytes
    "bias_dropout-separate": (268_435_456, 9 * 134_217_728 + 16_384),
    "bias_dropout-fused": (268_435_456, 4 * 134_217_728 + 16_384),
    # 16 x the cache of decode_attention once or three times, query and result; 8192 pages of 8 bytes, listed twice
    "paged_decode-in_place": (16 * 134_217_728, 16 * (33_554_432 + 16_384)),
    "paged_decode-gathered": (16 * 134_217_728, 16 * (3 * 33_554_432 + 16_384) + 131_072),
    # 64 rows x (4 x 4096 x 14336 + 2 x 4096); weights of 8 x 2 x 4096 x 14336 x 2 bytes;
    # 32 tokens x 2 x 4096 x 2 bytes, 64 rows x ((6 x 4096 + 4 x 14336 + 1) x 2 + 16) bytes
    "moe-tokens_32": (15_032_385_536 + 524_288, 1_879_048_192 + 524_288 + 64 * 163_858),
    "moe-tokens_4096": (128 * 15_032_909_824, 1_879_048_192 + 128 * (524_288 + 64 * 163_858)),
}


@EVERY_CASE
def test_formulas_give_what_was_worked_out_by_hand(workload: Workload, case: Case) -> None:
    """FLOPs and compulsory bytes of every case equal the numbers worked out by hand."""
    assert (case.flop_count(), case.byte_count()) == BY_HAND[f"{workload.name}-{case.name}"]


@EVERY_CASE
def test_toy_shapes_evaluate_too(workload: Workload, case: Case) -> None:  # noqa: ARG001 - names the case
    """A toy case has the same parameters and is small."""
    assert set(case.toy) == set(case.parameters)
    assert 0 < (case.byte_count(case.toy) or 0) < 2**20


@EVERY_CASE
def test_expectations_are_words_of_the_verdict(workload: Workload, case: Case) -> None:  # noqa: ARG001 - names the case
    """An expected bound is a class, and its resource is a pipe of the case's type, or DRAM, or absent."""
    expect = case.expect
    assert expect.bound in BOUNDS
    assert expect.resource in {"memory": {"dram"}, "compute": {f"tensor_{case.dtype}"}}.get(expect.bound, {None})
    assert expect.resource in {None, "dram", *PEAK_KEYS}


@for_all("gpu", GPUS, lambda gpu: gpu.name)
@EVERY_CASE
def test_memory_and_compute_lie_on_their_sides_of_the_ridge(workload: Workload, case: Case, gpu: Datasheet) -> None:
    """On an H200 and an H100, expected memory-bound cases are left of the ridge, compute-bound ones right of it."""
    flop, traffic = case.flop_count(), case.byte_count()
    if flop is None or traffic is None or case.expect.bound not in {"memory", "compute"}:
        return
    pipe = case.dtype if case.dtype in gpu.peaks else f"tensor_{case.dtype}"
    ridge = gpu.peaks[pipe].value / gpu.dram_bandwidth.value
    assert (flop / traffic > ridge) == (case.expect.bound == "compute"), workload.name


def test_batching_alone_crosses_the_ridge() -> None:
    """The layers of `mlp` are memory-bound at 1 and 32 tokens and compute-bound at 512."""
    bounds = {case.name: case.expect.bound for workload, case in CASES if workload.name == "mlp"}
    assert bounds == {"batch_1": "memory", "batch_32": "memory", "batch_512": "compute"}


def test_gqa_raises_the_intensity_by_the_size_of_the_group() -> None:
    """Decode attention has 2 x query heads / (2 bytes x cache heads) FLOP/B, whatever the cache's length."""
    case = next(case for workload, case in CASES if workload.name == "decode_attention")
    for length in (4096, 65536):
        parameters = {**case.parameters, "length": length}
        intensity = (case.flop_count(parameters) or 0) / (case.byte_count(parameters) or 1)
        assert intensity == pytest.approx(4.0, rel=1e-3)
