"""Kernels analyzed together give the same results as analyzed alone."""

from __future__ import annotations

from rooflens.model.analyze import analyze_all
from rooflens.model.records import Analysis, Kernel, Outside
from rooflens.model.verdict.thresholds import default_thresholds


def test_no_kernel_sees_its_neighbours(kernels: list[Kernel], analyses: list[Analysis]) -> None:
    """Every kernel of the corpus gets the same result alone as among all others, in two orders."""
    limits, outsides = default_thresholds(), [Outside()] * len(kernels)
    assert analyze_all(kernels, limits, outsides) == analyses
    assert analyze_all(kernels[::-1], limits, outsides) == analyses[::-1]
