"""Findings about launches: short kernels and gaps."""

from __future__ import annotations

import pytest
from support.findings import make_facts, unsaid

from rooflens.model.findings.find import find_findings
from rooflens.model.findings.launch import launch_gaps, short_kernel
from rooflens.model.unprofiled import InProgram


@pytest.mark.parametrize(("time_ns", "said"), [(5000.0, False), (4990.0, True), (None, False)])
def test_a_kernel_is_short_below_five_microseconds(time_ns: float | None, *, said: bool) -> None:
    """A launch takes up to 5 us; nothing can be promised to what is as short."""
    found = short_kernel(make_facts({"duration_ns": time_ns}))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []
        assert found.speedup_up_to is None


@pytest.mark.parametrize(("gap_ns", "said"), [(40_000, False), (40_001, True), (None, False)])
def test_gaps_are_said_where_they_outweigh_a_launch(gap_ns: int | None, *, said: bool) -> None:
    """Beside a launch of 40 us a longer gap costs more than the launch; one that nobody timed says nothing."""
    found = launch_gaps(make_facts(in_program=None if gap_ns is None else InProgram(40_000, gap_ns)))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []


def test_gaps_that_outweigh_a_launch_limit_the_kernel() -> None:
    """The verdict of such a kernel is overhead, and the gaps are why."""
    findings = find_findings(make_facts(bound="overhead", in_program=InProgram(40_000, 90_000)))
    assert [(finding.id, finding.severity) for finding in findings] == [("launch_gaps", "limiter")]
