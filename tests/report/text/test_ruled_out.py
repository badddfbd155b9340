"""What a kernel's counters rule out, what they leave open, and what was not measured."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples
from support.kernels import make_kernel

from rooflens.model.records import Analysis
from rooflens.report.words.ruled_out import minor_causes, not_measured, ruled_out, symptoms


def _analysis(counters: dict[str, float]) -> Analysis:
    return replace(samples.integer_product(), kernel=make_kernel(counters), findings=())


@pytest.mark.parametrize(("lanes", "is_out"), [(31.9, True), (28.0, True), (24.4, False)])
def test_a_cause_is_ruled_out_where_there_is_next_to_nothing_of_it(lanes: float, *, is_out: bool) -> None:
    """28 of 32 lanes are nearly all; 24.4 are too many for a finding, but too few to rule out a loss."""
    one = _analysis({"threads_per_inst": lanes})
    words = f"divergence ({lanes:.1f} of 32 lanes active)"
    assert (words in ruled_out(one)) is is_out
    assert (words in minor_causes(one)) is not is_out


def test_what_nobody_measured_is_named_and_not_ruled_out() -> None:
    """A kernel with only a known time may have any cause."""
    one = _analysis({"duration_ns": 1e6})
    assert {"uncoalesced loads", "bank conflicts", "divergence", "spills", "barriers"} <= {*not_measured(one)}
    assert ruled_out(one) == []


@pytest.mark.parametrize(
    ("bound", "part", "is_one"), [("memory", 0.92, True), ("memory", 0.1, False), ("latency", 0.92, False)]
)
def test_a_long_wait_for_a_busy_unit_is_its_symptom(bound: str, part: float, *, is_one: bool) -> None:
    """Warps that wait 92 % of their time for a full DRAM queue for it: neither a minor nor a ruled-out cause."""
    base = samples.integer_product()
    kernel = make_kernel(stalls={"long_scoreboard": part, "selected": 1 - part})
    one = replace(base, kernel=kernel, findings=(), verdict=replace(base.verdict, bound=bound))
    said = "waits for global memory"
    assert [words.startswith(said) for words in symptoms(one)] == [True] * is_one
    assert any(words.startswith(said) for words in minor_causes(one)) is not is_one
