from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import make_kernel
from support.loops import for_all

from rooflens.model.compare.matching import Match, match_launches
from rooflens.model.keys import function_of
from rooflens.model.records import Kernel


def launch(name: str, grid: int = 1, nvtx_range: str | None = None) -> Kernel:
    """Make a launch with the features used for matching."""
    return make_kernel(name=name, grid=(grid, 1, 1), nvtx_range=nvtx_range)


def matched(base: list[Kernel], head: list[Kernel]) -> list[tuple[int | None, int | None, str]]:
    """Return the matches as plain tuples."""
    return [(m.base, m.head, m.how) for m in match_launches(base, head)]


def test_equal_launches_match_in_order() -> None:
    """The first launch of a kernel is matched with the first, the second with the second."""
    assert matched([launch("a"), launch("b"), launch("a")], [launch("a"), launch("a"), launch("b")]) == [
        (0, 0, "same"),
        (2, 1, "same"),
        (1, 2, "same"),
    ]


def test_another_shape_or_template_is_retiled() -> None:
    """The same function with another grid or other template arguments is the same kernel, retiled."""
    assert matched([launch("ns::k<64>", 8)], [launch("ns::k<128>", 4)]) == [(0, 0, "re-tiled")]


def test_numbers_of_a_compiler_are_no_name() -> None:
    """Numbers in names by Julia and Triton change from run to run and are ignored."""
    assert matched([launch("julia_gemm_4477"), launch("x")], [launch("y"), launch("z"), launch("julia_gemm_91")]) == [
        (None, 0, "new"),
        (None, 1, "new"),
        (0, 2, "renamed"),
        (1, None, "gone"),
    ]


def test_a_kernel_that_goes_on_is_no_partner_for_another() -> None:
    """A kernel that ended where another is launched once more is gone, and not renamed to the other."""
    assert matched([launch("a"), launch("b")], [launch("a"), launch("a")]) == [
        (0, 0, "same"),
        (None, 1, "new"),
        (1, None, "gone"),
    ]


def test_a_kernel_in_the_same_place_is_renamed() -> None:
    """A single unknown name between the same neighbours is matched with the other."""
    assert matched([launch("a"), launch("old"), launch("b")], [launch("a"), launch("fresh"), launch("b")]) == [
        (0, 0, "same"),
        (1, 1, "renamed"),
        (2, 2, "same"),
    ]


def test_a_fused_kernel_is_no_partner_of_those_it_replaced() -> None:
    """One kernel in the place of two is matched with neither."""
    assert matched([launch("a"), launch("mul"), launch("add")], [launch("a"), launch("fused")]) == [
        (0, 0, "same"),
        (None, 1, "new"),
        (1, None, "gone"),
        (2, None, "gone"),
    ]


def test_nvtx_ranges_are_kept_apart() -> None:
    """A kernel of the forward pass is never matched with that of the backward pass."""
    base, head = [launch("k", 1, "forward")], [launch("k", 1, "backward")]
    assert matched(base, head) == [(None, 0, "new"), (0, None, "gone")]


@for_all(
    "name, function",
    [
        ("void at::native::relu<float>", "relu"),
        ("gemm", "gemm"),
        ("gemm(float *, int)", "gemm"),
        ("(anonymous namespace)::gemm(int)", "gemm"),
        ("ns::Op<int>::operator()(int) const", "operator"),
        ("cutlass::Kernel<cutlass::gemm::Gemm<float>>", "Kernel"),
        ("<unnamed>::k<float>", "k"),
        ("cub::Agent<Policy<int>>::run<4>", "run"),
        ("<lambda>", "<lambda>"),
    ],
)
def test_function_of_a_name(name: str, function: str) -> None:
    """Namespaces, return types and template arguments are dropped, unless the name has nothing else."""
    assert function_of(name) == function


@settings(deadline=None)
@given(
    base=st.lists(st.sampled_from(["a", "b<1>", "b<2>", "c_1", "c_2"]), max_size=12),
    head=st.lists(st.sampled_from(["a", "b<1>", "b<2>", "c_1", "d"]), max_size=12),
)
def test_every_launch_stands_in_one_match(base: list[str], head: list[str]) -> None:
    """Whatever the sequences, no launch is lost and none is matched twice."""
    found = match_launches([launch(name) for name in base], [launch(name) for name in head])
    assert sorted(m.base for m in found if m.base is not None) == list(range(len(base)))
    assert [m.head for m in found if m.head is not None] == list(range(len(head)))
    assert all(isinstance(m, Match) and (m.base is None) == (m.how == "new") for m in found)
    assert all((m.head is None) == (m.how == "gone") for m in found)
