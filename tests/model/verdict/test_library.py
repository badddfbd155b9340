"""Kernels of libraries: the names that identify them, and the advice to their callers."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from support.kernels import make_case, make_kernel, reach

from rooflens.model.findings.find import find_findings
from rooflens.model.records import Level
from rooflens.model.verdict.decide import decide
from rooflens.model.verdict.library import caller_moves, library_of

_CODE = re.compile(
    r"\btile it|neighbouring|unroll|in flight|cp\.async|registers?\b|block size|coalesc|results (a|per|each) thread"
    r"|launch bounds|strength-reduce|vector load|wider"
)
"""Words of moves that change a kernel's code."""

_NAMES = {
    "ampere_sgemm_128x64_nn": "cuBLAS",
    "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x128_32x5_tn_align8>(Params)": "cuBLAS",
    "Kernel2<cutlass_75_simt_sgemm_128x64_8x2_nn_align1>": "cuBLAS",
    "volta_h884gemm_256x64_ldg8_nn": "cuBLAS",
    "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64": "cuBLAS",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT": "cuBLAS",
    "void gemv2T_kernel_val<int, int, float>": "cuBLAS",
    "void cublasLt::splitKreduce_kernel<32, 16, int>": "cuBLAS",
    "void cudnn::winograd::generateWinogradTilesKernel<0, float>": "cuDNN",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc": "cuDNN",
    "void implicit_convolve_sgemm<float, float, 1024>": "cuDNN",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128>": "CUTLASS",
    "void cutlass::Kernel<cutlass_tensorop_h161616gemm_256x128_32x3_nn_align8>": "CUTLASS",
    "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<Mainloop>>>": "FlashAttention",
    "void cub::DeviceReduceKernel<cub::Policy600>": "CUB",
    "DeviceRadixSortOnesweepKernel<Policy800>": "CUB",
    "void thrust::cuda_cub::core::_kernel_agent<Agent>": "Thrust",
    "void at_cuda_detail::cub::DeviceScanKernel<Policy900>": "CUB",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, cutlass::half_t>>": "FlashAttention",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>": "PyTorch",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL": "NCCL",
}


@pytest.mark.parametrize(("name", "library"), _NAMES.items())
def test_kernels_of_libraries_are_told_by_their_names(name: str, library: str) -> None:
    """cuBLAS, cuDNN, nvjet, CUTLASS, CUB, Thrust, PyTorch and NCCL use names that nobody else does."""
    assert library_of(name, name.partition("<")[0]) == library


@pytest.mark.parametrize("name", ["gemm", "reduceUsingCUB", "sgemm_v3", "conv2d_kernel", "gemm_universal", "my_nvjet"])
def test_kernels_of_users_are_of_no_library(name: str) -> None:
    """A name that only says what a kernel computes, or what it was compared with, identifies no library."""
    assert library_of(f"{name}(float *, int)", name) is None


@pytest.mark.parametrize(
    "name", ["gemm<cutlass::half_t>", "void scale<thrust::complex<float>>", "sum<cub::BlockReduce<float, 128>>"]
)
def test_types_of_a_library_do_not_make_a_kernel_its_own(name: str) -> None:
    """Whoever writes a kernel for a library's types can change it."""
    assert library_of(name, name.partition("<")[0]) is None


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("shares", [{"dram": 0.9, "fp32": 0.1}, {"l1": 0.7, "fp32": 0.2}, {"dram": 0.1, "fp32": 0.1}])
def test_no_caller_is_told_to_change_the_code_of_a_library(name: str, shares: dict[str, float]) -> None:
    """Callers can only choose a type, a layout, a batch, another algorithm or fusion, whatever the limiter."""
    counters = {"theoretical_occupancy": 0.25, "achieved_occupancy": 0.1, "global_load_bytes_per_sector": 8.0}
    counters |= {"waves": 0.4, "issue_active_per_cycle": 0.1}
    stalls = {"long_scoreboard": 0.6, "wait": 0.4}
    facts = decide(make_case(shares, kernel=make_kernel(counters, name=name, function_name=name, stalls=stalls)))
    findings = find_findings([facts])[0]
    moves = reach(facts).moves
    assert findings
    assert moves
    assert [move.finding for move in moves] == [None] * len(moves)
    assert [text for text in (*(m.text for m in moves), *(f.move for f in findings)) if _CODE.search(text)] == []
    assert all(any(map(str.isdigit, move.text)) for move in moves)


@pytest.mark.parametrize(
    ("name", "shares", "said"),
    [
        (
            "void at::native::elementwise_kernel<128>",
            {"issue": 0.7},
            r"on chip: a profiled launch takes [\d.]+ .?s, .*70 %.*$",
        ),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", {"tensor_bf16": 0.7}, r"narrower type.*: tensor bf16 70 % busy$"),
        (
            "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n",
            {"issue": 0.4},
            r"another algorithm.*: a profiled launch takes [\d.]+ .?s, .*40 %.*$",
        ),
    ],
)
def test_the_number_after_a_move_is_the_one_it_would_change(name: str, shares: dict[str, float], said: str) -> None:
    """Its time for fusing, the product's pipe for a narrower type if that limits: never another unit's use."""
    moves = [move.text for move in reach(decide(make_case(shares, kernel=make_kernel(name=name)))).moves]
    assert re.search(said, moves[0]), moves


@pytest.mark.parametrize(
    ("grid", "first"),
    [
        ({"grid_size": 128.0, "sm_count": 148.0}, r"more work in a call.*: it has 128 blocks for 148 SMs$"),
        ({"grid_size": 10.0}, r"more work in a call.*: it has 10 blocks for \d+ SMs or more$"),
        ({"waves": 0.43, "grid_size": 128.0}, r"more work in a call.*: its blocks fill 43 % of the block slots$"),
        ({"grid_size": 148.0, "sm_count": 148.0}, r"^try another algorithm, layout"),
        ({"waves": 2.5, "grid_size": 900.0}, r"^try another algorithm, layout"),
    ],
)
@pytest.mark.parametrize("time_ns", [19_000.0, 4_000.0])
def test_a_product_that_waits_is_never_told_to_narrow_its_type(
    grid: dict[str, float], first: str, time_ns: float
) -> None:
    """Neither its bytes nor its pipe are near a limit: with few blocks it lacks work."""
    counters = {**grid, "duration_ns": time_ns}
    kernel = make_kernel(counters, name="nvjet_sm100_tst_64x8", gpu="unnamed", compute_capability="10.0")
    moves = reach(decide(make_case({"dram": 0.39, "tensor": 0.34}, kernel=kernel))).moves
    assert re.search(first, moves[0].text), moves
    assert not [move for move in moves if move.kind == "precision"]


def test_a_move_to_fuse_says_what_a_launch_moves() -> None:
    """Fusing saves the bytes through DRAM and the time; without a time only bytes are given."""
    facts = decide(make_case({"dram": 0.9}, kernel=make_kernel(name="void at::native::elementwise_kernel<128>")))
    moved = replace(facts, levels={**facts.levels, "dram": Level(amount_bytes=2.57e8, share=0.9)})
    (first, _) = caller_moves(moved, "PyTorch")
    assert first.text.endswith(": 257 MB through DRAM in 1.00 ms")
    untimed = replace(moved, kernel=replace(moved.kernel, counters={}))
    assert caller_moves(untimed, "PyTorch")[0].text.endswith(": 257 MB through DRAM")
    bare = replace(untimed, levels={})
    assert caller_moves(bare, "PyTorch")[0].text.endswith("stays on chip")


def test_no_caller_of_eight_bit_products_is_told_to_narrow_them() -> None:
    """A bf16 product may use fp8; an int8 or fp8 product has no narrower type to advise."""
    narrower = {
        name: any(
            "narrower type" in move.text for move in reach(decide(make_case({"tensor": 0.8}, kernel=kernel))).moves
        )
        for name in (
            "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n",
            "cutlass::Kernel2<cutlass_80_wmma_tensorop_i161616gemm_s8_forwardCompat_128x128_32x2_tn_align4>",
            "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n",
            "cutlass::Kernel2<cutlass_80_tensorop_s8_i16832gemm_s8_128x128>",
        )
        for kernel in (make_kernel(name=name, function_name=name),)
    }
    assert list(narrower.values()) == [True, False, False, False]


@pytest.mark.parametrize(("capability", "kind"), [("8.6", "tensor"), ("7.0", "precision")])
def test_an_fp32_product_of_a_nameless_chip_is_sent_to_tensor_cores_that_take_bf16(capability: str, kind: str) -> None:
    """A print that names no GPU has no peaks: from CC 8.0 on every chip has bf16 at twice the rate of fp32 at least."""
    kernel = make_kernel({"grid_size": 1e4}, name="ampere_sgemm_64x64_nn", gpu=None, compute_capability=capability)
    facts = replace(make_case({"dram": 0.7}, kernel=kernel), bound="memory")
    assert caller_moves(facts, "cuBLAS")[0].kind == kind
