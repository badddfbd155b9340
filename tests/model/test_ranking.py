"""The order of kernels, and rows for several of them, on made kernels."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all

from rooflens.model.ranking import Tier, in_order, in_rank, opportunities, tiers, worth_a_line
from rooflens.model.records import Analysis, Gain, Limit, Move, Role, UnitFloor
from rooflens.model.summary import summarize
from rooflens.model.verdict.library import ONLY_FILLS, library_of, role_of, with_fills_note
from rooflens.report.words.verdict import best_move, verdict_sentence


def _made(
    name: str, time_ns: float, gain: float | None = None, limit: float | None = None, role: Role = "kernel"
) -> Analysis:
    one = samples.every_verdict()[0]
    kernel = replace(
        one.kernel, name=name, function_name=name, counters={**one.kernel.counters, "duration_ns": time_ns}
    )
    move = Move("do", "tile", gain=gain and Gain(gain, time_ns / gain))
    verdict = replace(one.verdict, limit=Limit(limit), today=None, moves=(move,))
    return replace(one, kernel=kernel, verdict=verdict, role=role, short_name=name, key=name)


def _short(name: str, time_ns: float, launches: int = 1) -> Analysis:
    one = _made(name, time_ns)
    verdict = replace(one.verdict, bound="overhead", moves=(Move("fuse it", "fuse", "short_kernel"),))
    return replace(one, verdict=verdict, launches=launches)


def test_kernels_stand_by_the_time_at_stake_before_libraries_before_fills() -> None:
    """At stake is what a move wins, else the time above the floor, else all of it; the last two take however much."""
    analyses = [
        _made("fill", 9e6, role="fill"),
        _made("library", 8e6, role="library"),
        _made("short, far from its limit", 1e6, limit=9.0),
        _made("long, near its limit", 5e6, limit=1.1),
        _made("time", 2e6),
        _made("small gain", 1e5, 1.1),
        _made("large gain", 1e6, 2.0),
    ]
    kernels = in_rank(summarize(analyses))
    own = ["time", "short, far from its limit", "large gain", "long, near its limit", "small gain"]
    assert [kernel.name for kernel in kernels] == [*own, "library", "fill"]
    of_own = [Tier.TIME, Tier.LIMIT, Tier.GAIN, Tier.LIMIT, Tier.GAIN]
    assert tiers(kernels) == [*of_own, Tier.LIBRARY, Tier.FILL]


def test_the_gain_of_any_move_counts() -> None:
    """A first move whose gain nobody knows does not hide what the second one brings."""
    one = _made("second", 1e6, 2.0)
    verdict = replace(one.verdict, moves=(Move("overlap", "overlap"), *one.verdict.moves))
    (kernel,) = summarize([replace(one, verdict=verdict)])
    assert kernel.at_stake_ns == pytest.approx(5e5)
    assert best_move(kernel.analysis) == one.verdict.moves[0].text


def test_little_leads_nothing_where_another_has_most_of_the_time() -> None:
    """A kernel of 2 % that can be five times faster stands behind one of 98 % with little to win."""
    kernels = in_rank(summarize([_made("little", 2e5, 5.0), _made("most", 9.8e6, 1.01)]))
    assert [kernel.name for kernel in kernels] == ["most", "little"]
    kernels = in_rank(summarize([_made("little", 2e5, 5.0), _made("most", 9.8e6, role="fill")]))
    assert [kernel.name for kernel in kernels] == ["little", "most"]


def test_the_nearer_floor_bounds_what_is_at_stake() -> None:
    """Where L1 is 90 % busy today, a tenth of the time is at stake, however far the proven floor is."""
    one = _made("full", 1e6, limit=9.0)
    today = replace(one, verdict=replace(one.verdict, today=UnitFloor("l1", 0.9, 9e5)))
    assert [kernel.at_stake_ns for kernel in summarize([today])] == [pytest.approx(1e5)]


def test_what_could_not_be_profiled_leads_the_fills_of_its_inputs() -> None:
    """The only kernel that is no fill is what the reader profiled for; beside others it stands last."""
    failed = samples.failed()
    lost = in_order(summarize([_made("fill", 1e6, role="fill"), failed]))
    assert [kernel.is_failed for kernel in lost] == [True, False]
    beside = in_order(summarize([_made("own", 1e6), failed]))
    assert [kernel.is_failed for kernel in beside] == [False, True]


def test_libraries_that_are_nearly_all_of_the_time_stand_by_their_time() -> None:
    """From 80 % of the time on libraries are the program; below that, what the reader can change comes first."""
    for time_ns, first in ((8e6, "gemm"), (3.9e6, "own")):
        kernels = in_rank(summarize([_made("own", 1e6), _made("gemm", time_ns, role="library")]))
        assert kernels[0].name == first


def test_launches_as_short_as_their_launch_are_one_row() -> None:
    """The row has the number of launches, and every kernel it represents; its time and share stand beside it."""
    analyses = [_short("a", 2e3, 40), _short("b", 3e3, 7), _made("own", 2e4, limit=2.0)]
    rows = opportunities(summarize(analyses))
    (row,) = (row for row in rows if row.members)
    assert len(rows) == 2
    assert {one.name for one in row.members} == {"a", "b"}
    assert row.launch_count == 47
    assert row.duration_ns == pytest.approx(101e3)
    assert "one CUDA graph around 47 launches of 2 kernels, or fuse them" in row.analysis.verdict.moves[0].text


def test_kernels_that_lack_counters_ask_once_unless_they_are_all() -> None:
    """If nothing else is known, their times are the result, and they stay separate."""
    command = "rooflens profile --kernel a --launch-count 1 -- ./app"
    move = Move(f"collect what this report lacks: `{command}`", "collect", shared="collect", command=command)
    bare = [
        replace(one, verdict=replace(one.verdict, bound="unknown", moves=(move,)))
        for one in (_made(name, 1e5) for name in "abc")
    ]
    assert not any(row.members for row in opportunities(summarize(bare)))
    rows = opportunities(summarize([*bare, _made("own", 1e6, 2.0)]))
    (row,) = (row for row in rows if row.members)
    assert row.analysis.verdict.moves[0].text.endswith("`rooflens profile -- ./app`")


def test_a_row_of_no_worth_is_left_out_beside_its_like() -> None:
    """A gain is compared with other gains, whatever is at stake in other kernels; fills hide nothing."""
    analyses = [
        _made("gain", 1e4, 1.5),
        _made("hardly", 10, 1.5),
        _made("limit", 1e8, limit=2.0),
        _made("fill", 1e12, role="fill"),
    ]
    assert [row.name for row in worth_a_line(in_rank(summarize(analyses)))] == ["limit", "gain", "fill"]


@for_all(
    "name, role",
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, Array>(int, T)", "fill"),
        ("distribution_elementwise_grid_stride_kernel", "fill"),
        ("void gen_sequenced<curandStateXORWOW, float2, normal_args_st>(curandStateXORWOW *, float2 *)", "fill"),
        ("void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__uninitialized_fill::functor<float>>", "fill"),
        ("triton_poi_fused_randn_0", "fill"),
        ("triton_poi_fused_zeros_like_3", "fill"),
        ("triton_poi_fused_add_randn_0", "kernel"),
        ("threefry2x32", "fill"),
        (
            "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(at::TensorIterator &)>",
            "copy",
        ),
        ("void at::native::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>(T *)", "copy"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, Array>(int, T)", "library"),
        ("ampere_sgemm_128x64_nn", "library"),
        ("init_data_kernel", "kernel"),
        ("fill_matrix(float *, int)", "kernel"),
        ("normalize_rows", "kernel"),
        ("uniform_grid_hash", "kernel"),
        ("copyGmem", "kernel"),
    ],
)
def test_a_role_is_told_by_names_that_libraries_give(name: str, role: str) -> None:
    """Names given by users say nothing for certain."""
    function = name.partition("<")[0]
    assert role_of(name, function, library_of(name, function)) == role


def test_a_report_of_fills_alone_says_so_with_the_recorded_program() -> None:
    """A report with any other kernel does not say so, even if profiling that kernel failed."""
    fill = _made("fill", 1e5, role="fill")
    (told,) = with_fills_note([fill], "ncu --set full python bench.py")
    text = told.verdict.moves[0].text
    assert text == f"{ONLY_FILLS}; yours is not in it: `rooflens profile --kernel NAME -- python bench.py`"
    assert verdict_sentence(told).endswith("python bench.py`.")
    failed = samples.failed()
    for other in (_made("own", 1.0), failed):
        assert with_fills_note([fill, other], None) == (fill, other)
