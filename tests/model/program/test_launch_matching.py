"""Test how launches of a timeline are matched to the kernels of a report."""

from __future__ import annotations

from support.kernels import make_kernel
from support.loops import for_all

from rooflens.model.program.matching import Matching, normal_name
from rooflens.model.program.timeline import KernelEvent

GRID, BLOCK = (8, 1, 1), (256, 1, 1)

SAME = (
    (
        "void ns::gemm<(int)128, (bool)1>(float *, const float *)",
        "void ns::gemm<128, true>(float*, float const*)",
        "ns::gemm<(int)128, (bool)1>",
    ),
    (
        "void at::native::vec<(int)4, at::native::FillFunctor<int>, at::detail::Array<char *, (int)1>>(int, T2, T3)",
        "void at::native::vec<4, at::native::FillFunctor<int>, at::detail::Array<char*, 1> >(int, Fill<int>, char*)",
    ),
    (
        "void <unnamed>::softmax_warp<float, (unsigned long)10>(T1 *)",
        "void (anonymous namespace)::softmax_warp<float, 10ul>(float*)",
    ),
    ("triton_poi_fused_add_cos_sin_0", "triton_poi_fused_add_cos_sin_0"),
    ("_Z10gemm_naivePfS_", "gemm_naive", "gemm_naive(float *, float *)"),
)
"""Spellings of one kernel, as ncu, nsys and the PyTorch profiler write them."""


@for_all("spellings", SAME, lambda spellings: normal_name(spellings[0]))
def test_spellings_of_one_name_compare_equal(spellings: tuple[str, ...]) -> None:
    """Return type, parameters, white space, casts and mangling are ignored."""
    assert len({normal_name(name) for name in spellings}) == 1


def _launch(name: str, grid: tuple[int, int, int] | None = GRID, nvtx_range: str | None = None) -> KernelEvent:
    return KernelEvent(name, grid, BLOCK, 0, 1000, nvtx_range=nvtx_range)


def test_template_arguments_tell_kernels_apart() -> None:
    """Two instances of a template are two kernels; a name without arguments matches either."""
    kernels = [make_kernel(name=f"relu<{kind}>", function_name="relu", grid=GRID, block=BLOCK) for kind in ("a", "b")]
    matching = Matching(kernels)
    assert matching.next(_launch("void relu<b>(b*)")) == 1
    assert matching.next(_launch("void relu<c>(c*)")) is None
    assert matching.alike("_Z4reluI1aEvPT_", GRID, BLOCK) == (0, 1)


def test_launches_are_matched_by_shape_and_order() -> None:
    """The n-th launch of a shape is the n-th of the report; a longer timeline starts again."""
    shapes = (GRID, (16, 1, 1), GRID)
    matching = Matching([make_kernel(name="gemm", grid=grid, block=BLOCK) for grid in shapes])
    events = [
        _launch("gemm"),
        _launch("gemm", (16, 1, 1)),
        _launch("gemm"),
        _launch("gemm"),
        _launch("gemm", (9, 1, 1)),
    ]
    assert [matching.next(event) for event in events] == [0, 1, 2, 0, None]


def test_a_missing_shape_leaves_name_and_order() -> None:
    """If the timeline or the report lacks the shape, it is not compared."""
    matching = Matching(
        [make_kernel(name="gemm", grid=GRID, block=BLOCK), make_kernel(name="add", grid=None, block=None)]
    )
    assert matching.next(_launch("gemm", None)) == 0
    assert matching.next(_launch("add")) == 1


def test_an_nvtx_range_is_preferred() -> None:
    """Among launches with the same name and shape, the one in the same range is preferred."""
    kernels = [make_kernel(name="gemm", grid=GRID, block=BLOCK, nvtx_range=name) for name in ("step/a", "step/b")]
    matching = Matching(kernels)
    events = [_launch("gemm", nvtx_range=name) for name in ("step/b", "step/b", "step/a", None)]
    assert [matching.next(event) for event in events] == [1, 1, 0, 0]
