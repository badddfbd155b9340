"""Kernels that are done, and full ones that are not, on made shares."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.kernels import make_case, make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.findings.find import find_findings
from rooflens.model.records import Bottleneck, Inside, Loop
from rooflens.model.verdict.decide import decide
from rooflens.model.verdict.done import roof_reached
from rooflens.model.verdict.facts import Facts
from rooflens.report.words.verdict import verdict_sentence


def done(facts: Facts) -> Bottleneck | None:
    """Return the roof that a kernel has reached once it is decided."""
    decided = decide(facts)
    return roof_reached(decided, find_findings([decided])[0])


def test_dram_that_moves_nearly_all_it_can_is_an_end() -> None:
    """DRAM reaches 95 % of its peak at most, so that 86 % is nine tenths of it, and 85 % is not."""
    assert done(make_case({"dram": 0.86, "l2": 0.5})) == Bottleneck("dram", 0.86)
    assert not done(make_case({"dram": 0.85, "l2": 0.5}))


def test_needless_bytes_are_something_to_win() -> None:
    """Half of what a full DRAM carries is local memory, which the work could do without."""
    sectors = {f"{space}_{way}_sectors": 2e6 for space in ("local", "global") for way in ("load", "store")}
    wasted = make_kernel(sectors)
    assert done(make_case({"dram": 0.92, "l2": 0.5}))
    assert not done(make_case({"dram": 0.92, "l2": 0.5}, kernel=wasted))


def test_done_takes_bytes_that_are_known_to_cross_dram_once() -> None:
    """Without machine code a second pass over the data looks like more data: then only the roof is known."""
    loop = Loop(0, "loop", "", None, 0, 16)
    moved = {"dram_bytes": 1e9, "dram_bus_share": 0.92, "dram_bus_peak_bytes_per_s": 1.087e12, "l2_bytes": 1.02e9}
    once = make_kernel(moved, inside=Inside(loops=(loop,)))
    for kernel, lead in (
        (once, "Done: 92"),
        (replace(once, inside=None), "At its roof: 92"),
        (replace(once, counters={**moved, "l2_bytes": 1.5e9}), "At its roof: 92"),
    ):
        verdict = analyze(kernel).verdict
        assert verdict.done is not None
        assert verdict_sentence(analyze(kernel)).startswith(lead)
        assert ("only fewer bytes help" in verdict_sentence(analyze(kernel))) == verdict.is_only_at_roof


@pytest.mark.parametrize("unit", ["l1", "l2", "issue", "lsu"])
def test_units_that_a_kernel_can_ask_less_of_are_no_end(unit: str) -> None:
    """Authors of kernels that filled these made them several times faster."""
    assert not done(make_case({unit: 0.99, "dram": 0.3}))


def test_the_peak_of_the_arithmetic_is_an_end() -> None:
    """A tensor pipe that works 92 % of the time is done, but not where the chip has a faster instruction."""
    kernel = make_kernel({"tensor_active_share": 0.92}, compute_capability="8.6")
    assert analyze(kernel).verdict.done == Bottleneck("tensor_pipe", 0.92)
    assert verdict_sentence(analyze(kernel)).startswith("Done: 92")
    assert not analyze(replace(kernel, compute_capability="9.0")).verdict.done
