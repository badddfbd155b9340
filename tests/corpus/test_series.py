"""Compare series inside kernels of real reports with their averages and known shapes."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from rooflens.model.records import Analysis
from rooflens.report.words.verdict import verdict_sentence

AVERAGES_AGREE = 0.08
"""The samples are of another pass than the counter, and their first and last reach over the kernel's ends."""


def of_report(analyses: list[Analysis], name: str) -> list[Analysis]:
    """Choose the kernels of one report."""
    return [analysis for analysis in analyses if Path(analysis.kernel.source).name == name]


def test_a_causal_attention_is_compute_bound_with_a_tail(analyses: list[Analysis]) -> None:
    """The tensor pipe is above 70 % for two fifths of the run and then decays, though its average is 43 %."""
    (found,) = of_report(analyses, "blackwell-kernels__v5_swizzle_D64_N2048_causal.ncu-rep")
    assert found.phases is not None
    assert (found.verdict.bound, found.verdict.resource) == ("compute", "tensor_bf16")
    assert found.phases.resource == "tensor_pipe"
    assert found.phases.share == pytest.approx(0.72, abs=0.03)
    assert found.phases.plateau == pytest.approx(0.4, abs=0.06)
    assert found.phases.tail > 0.4
    assert "while the GPU is full" in verdict_sentence(found)
    assert found.verdict.confidence == "medium"


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("blackwell-kernels__v5_swizzle_D64_N2048_causal.ncu-rep", "tensor_pipe"),
        ("llm.c__adamw_coalsecing_shared.ncu-rep", "dram"),
        ("cs599k__2025-04-21_v2-float4.ncu-rep", "dram"),
    ],
)
def test_samples_average_to_the_counter(analyses: list[Analysis], name: str, unit: str) -> None:
    """The mean of the samples between a kernel's start and end is the share given by its counters."""
    sampled = [found for found in of_report(analyses, name) if found.kernel.series]
    assert sampled
    for found in sampled:
        assert found.kernel.series is not None
        share = (found.levels.get(unit) or found.pipes[unit]).share
        values = [value for value in found.kernel.series.shares[unit] if value is not None]
        assert mean(values) == pytest.approx(share, abs=AVERAGES_AGREE)


def test_samples_of_other_moments_are_no_series(analyses: list[Analysis]) -> None:
    """If the buffer was full before the kernel started, the kernel has no samples."""
    found = of_report(analyses, "llm.c__adamw_coalsecing_shared.ncu-rep")[0]
    assert found.kernel.series is None
