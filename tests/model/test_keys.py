from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from support.kernels import make_kernel

from rooflens.model.compare.matching import match_launches
from rooflens.model.keys import Keys, first_key, launch_id
from rooflens.model.records import Kernel

NAMES = st.sampled_from(["gemm<64>", "gemm<128>", "void ns::copy(float *)", "operator()", "a b", "κ<1>", ""])
LAUNCHES = st.lists(st.tuples(NAMES, st.integers(1, 3), st.sampled_from([None, "step", "step/forward"])), max_size=30)


def launch(name: str, grid: int = 1, nvtx_range: str | None = None, **more: object) -> Kernel:
    """Make a launch with the features used for a key."""
    return make_kernel(name=name, grid=(grid, 1, 1), nvtx_range=nvtx_range, **more)


def keys_of(launches: list[Kernel]) -> list[str]:
    """Return the keys of a report's launches."""
    keys = Keys()
    return [keys.next(launch_id(kernel)) for kernel in launches]


def test_a_key_begins_with_the_function_and_counts_equal_launches() -> None:
    """The second launch of the same kernel, shape and range has the key of the first with `#2`."""
    first, other, second = keys_of(
        [launch("void ns::gemm<float, 64>(int)"), launch("copy"), launch("void ns::gemm<float, 64>(int)")]
    )
    assert re.fullmatch(r"gemm-[0-9a-f]{6}", first)
    assert re.fullmatch(r"copy-[0-9a-f]{6}", other)
    assert second == f"{first}#2"


def test_shape_range_and_template_make_another_key() -> None:
    """Launches that differ in grid, NVTX range or template arguments have different keys with one function."""
    launches = [launch("k<1>"), launch("k<2>"), launch("k<1>", 2), launch("k<1>", 1, "step")]
    keys = keys_of(launches)
    assert len(set(keys)) == len(keys)
    assert all(key.startswith("k-") for key in keys)


def test_counters_and_place_in_the_report_make_no_other_key() -> None:
    """Another run, with other times and other preceding kernels, gives the same key."""
    before = make_kernel({"duration_ns": 5.0}, name="k", grid=(4, 1, 1), index=0, digest="1" * 64, source="a.ncu-rep")
    after = make_kernel({"duration_ns": 9.0}, name="k", grid=(4, 1, 1), index=7, digest="2" * 64, source="b.ncu-rep")
    assert keys_of([before]) == keys_of([launch("other"), after])[1:]


def test_the_key_is_pinned() -> None:
    """Keys are written into baselines and links, so this key must never change."""
    assert first_key(make_kernel(name="gemm<64>", grid=(8, 1, 1), block=(128, 1, 1))) == "gemm-1d282e"


def test_a_key_is_a_word_for_shells_urls_and_files() -> None:
    """Whatever the name, its key is short and has no space, quote, slash, bracket or control character."""
    names = ["a b/c", "x'y\"z", "\x1b[2J", "k[v1,cw51]", "`$(rm)`", "<>", "", "operator()(int)", "n" * 4000, "\ud800"]
    for key in keys_of([launch(name) for name in names]):
        assert re.fullmatch(r"[\w.:]{1,48}-[0-9a-f]{6}(#\d+)?", key), key


@given(LAUNCHES)
def test_keys_are_unique_in_a_report(launches: list[tuple[str, int, str | None]]) -> None:
    """No two launches of a report have the same key."""
    keys = keys_of([launch(*one) for one in launches])
    assert len(set(keys)) == len(keys)


@given(LAUNCHES, LAUNCHES)
def test_the_same_key_is_the_same_launch_for_a_comparison(
    base: list[tuple[str, int, str | None]], head: list[tuple[str, int, str | None]]
) -> None:
    """A comparison matches two launches as the same exactly if their keys are equal."""
    before, after = [launch(*one) for one in base], [launch(*one) for one in head]
    mine, theirs = keys_of(before), keys_of(after)
    same = {(mine[m.base], theirs[m.head]) for m in match_launches(before, after) if m.how == "same"}  # type: ignore[index]
    assert same == {(key, key) for key in set(mine) & set(theirs)}
