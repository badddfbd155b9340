"""Short names distinguish a kernel from the others shown with it."""

from __future__ import annotations

import pytest

from rooflens.model.keys import short_names

NATIVE = "at::native::vectorized_elementwise_kernel<4, at::native::"
WRAPPED = {
    f"{NATIVE}CUDAFunctor_add<float>, at::detail::Array<char*, 3>>": "CUDAFunctor_add",
    f"{NATIVE}BinaryFunctor<float, float, at::native::binary_internal::MulFunctor<float>>, Array<char*>>": "MulFunctor",
    "at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>, int>>": "MeanOps",
    "Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<Axpy<double>, Kokkos::Cuda>>": "Axpy",
    "RAJA::cuda::impl::forall_cuda_kernel<RAJA::policy::cuda::cuda_exec<8>, TRIAD::run(int)::{lambda(long)#1}>": (
        "TRIAD::run"
    ),
    "thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::ParallelForAgent<thrust::unary_f<square<float>>>>": (
        "square"
    ),
    "cutlass::Kernel2<cutlass_80_wmma_tensorop_i161616gemm_s8_forwardCompat_128x128_32x2_tn_align4>": (
        "i161616gemm_s8_128x128_32x2"
    ),
    "cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, CollectiveMma<Sm90<7, "
    "cute::tuple<cute::C<2>, cute::C<1>, cute::C<1>>>, cute::tuple<cute::C<128>, cute::C<256>, cute::C<64>>>>>": (
        "GemmUniversal<128x256x64>"
    ),
    "nvjet_sm100_tst_64x8_64x16_4x1_v_bz_TNT": "nvjet_64x8_64x16",
    "ns::gemm<float, (int)128>": "gemm",
}


@pytest.mark.parametrize(("name", "short"), WRAPPED.items())
def test_a_kernel_is_named_by_what_it_does(name: str, short: str) -> None:
    """A wrapper is named after its functor or tile, any other kernel after its function."""
    assert short_names([name]) == {name: short}


def test_namesakes_are_told_apart_by_the_arguments_that_differ() -> None:
    """Only as many arguments are shown as needed; the nvjet pair differs in the cluster."""
    names = [
        "a::gemm<float, 8, 64>",
        "a::gemm<float, 8, 128>",
        "copy<int>",
        "nvjet_h_8x8_64x16_4x1",
        "nvjet_h_8x8_64x16_2x1",
    ]
    assert list(short_names(names).values()) == [
        "gemm<64>",
        "gemm<128>",
        "copy",
        "nvjet_8x8_64x16<4x1>",
        "nvjet_8x8_64x16<2x1>",
    ]


def test_short_names_are_unique_and_never_empty() -> None:
    """Names that differ only in punctuation, or beyond what is shown, are numbered."""
    names = ["f<a*>", "f<a&>", "", "x" * 300 + "a" + "y" * 300, "x" * 300 + "b" + "y" * 300]
    found = short_names(names)
    assert len(set(found.values())) == len(names)
    assert max(map(len, found.values())) <= 68
