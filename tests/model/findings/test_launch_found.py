"""Findings about launches: short kernels and gaps."""

from __future__ import annotations

import pytest
from support.findings import make_facts, unsaid

from rooflens.model.findings.balance import launch_gaps, short_kernel
from rooflens.model.findings.find import find_findings


@pytest.mark.parametrize(("time_ns", "said"), [(5000.0, False), (4990.0, True), (None, False)])
def test_a_kernel_is_short_below_five_microseconds(time_ns: float | None, *, said: bool) -> None:
    """A launch takes up to 5 us; nothing can be promised to what is as short."""
    found = short_kernel(make_facts({"duration_ns": time_ns}))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []
        assert found.speedup_up_to is None


@pytest.mark.parametrize(("gaps", "said"), [(0.10, False), (0.11, True), (None, False)])
def test_gaps_are_said_above_a_tenth_of_the_run(gaps: float | None, *, said: bool) -> None:
    """Below it they cost less than tuning a kernel gains."""
    found = launch_gaps(make_facts(gap_share=gaps))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(("bound", "severity"), [("overhead", "limiter"), ("memory", "note"), ("latency", "note")])
def test_gaps_limit_only_kernels_whose_verdict_is_overhead(bound: str, severity: str) -> None:
    """They are a fact of the program, not of a kernel at 70 % of its memory."""
    findings = find_findings(make_facts(bound=bound, gap_share=0.5))
    assert [(finding.id, finding.severity) for finding in findings] == [("launch_gaps", severity)]
