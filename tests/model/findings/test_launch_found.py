"""Findings about launches: short kernels and gaps."""

from __future__ import annotations

import pytest
from support.findings import findings_of, make_facts, unsaid

from rooflens.model.findings.launch import launch_gaps, short_kernel
from rooflens.model.records import Outside
from rooflens.model.unprofiled import InProgram


@pytest.mark.parametrize(("time_ns", "said"), [(5000.0, False), (4990.0, True), (None, False)])
def test_a_kernel_is_short_below_five_microseconds(time_ns: float | None, *, said: bool) -> None:
    """A launch takes up to 5 us, and no gain can be given for a kernel that is as short."""
    found = short_kernel(make_facts({"duration_ns": time_ns}))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []
        assert found.gain is None


@pytest.mark.parametrize(("gap_ns", "said"), [(50_000, False), (51_000, True)])
def test_gaps_are_said_where_they_outweigh_the_launch(gap_ns: int, *, said: bool) -> None:
    """The launch takes 50 us: with a smaller gap the kernel itself is the longer part."""
    found = launch_gaps(make_facts(outside=Outside(in_program=InProgram(50_000, gap_ns))))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []


def test_nothing_is_said_of_gaps_where_no_run_without_the_profiler_was_timed() -> None:
    """A report alone does not show gaps."""
    assert launch_gaps(make_facts()) is None


@pytest.mark.parametrize(
    ("bound", "severity"), [("overhead", "limiter"), ("latency", "limiter"), ("memory", "contributes")]
)
def test_gaps_limit_kernels_that_no_unit_bounds(bound: str, severity: str) -> None:
    """A kernel bounded by memory below its roof can gain elsewhere too."""
    findings = findings_of(make_facts(bound=bound, outside=Outside(in_program=InProgram(50_000, 90_000))))
    assert [(finding.id, finding.severity) for finding in findings] == [("launch_gaps", severity)]
