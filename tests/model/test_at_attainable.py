"""Verdicts and roofs with a calibration."""

from __future__ import annotations

import pytest
from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.calibration import RATE_UNITS, MeasuredRates, Rate
from rooflens.model.records import Outside
from rooflens.report.words.verdict import evidence_lines

COUNTERS = {
    "sm_clock_hz": 1.5e9,
    "dram_bytes": 1.16e9,
    "dram_write_bytes": 0.0,
    "dram_bus_peak_bytes_per_s": 1.55e12,
    "issue_active_share": 0.1,
}


def calibrated(**medians: float) -> MeasuredRates:
    """Make a calibration at the kernel's clock."""
    rates = {name: Rate(value, value, value, RATE_UNITS[name], 1, 1.5e9) for name, value in medians.items()}
    return MeasuredRates("GPU", "8.0", "1", 1.5e9, 1, rates)


def test_the_attainable_roof_decides() -> None:
    """A kernel at 75 % of the peak and 83 % of the attainable rate is at the roof; without a calibration it is not."""
    kernel = make_kernel(COUNTERS)
    assert not analyze(kernel).verdict.at_roof
    judged = analyze(kernel, outside=Outside(attainable=calibrated(dram_read=1.4e12)))
    assert judged.verdict.at_roof
    assert judged.levels["dram"].attainable_per_s == 1.4e12
    assert judged.levels["dram"].share == pytest.approx(1.16 / 1.55)
    assert any("attainable 1.40 TB/s" in line for line in evidence_lines(judged))


def test_a_rate_above_the_peak_is_the_peak() -> None:
    """A measurement cannot beat the hardware."""
    judged = analyze(make_kernel(COUNTERS), outside=Outside(attainable=calibrated(dram_read=1.7e12)))
    assert judged.levels["dram"].attainable_per_s == 1.55e12


def test_writes_do_not_count_at_the_roof_of_l2() -> None:
    """Only the bytes that L2 returns are compared with the rate of reading from it."""
    l2 = {"l2_bytes": 3e9, "l2_tag_bytes": 3e9, "l2_tag_peak_bytes_per_s": 4.2e12, "l2_return_bytes": 1e9}
    kernel = make_kernel({"sm_clock_hz": 1.5e9, "issue_active_share": 0.1, **l2})
    judged = analyze(kernel, outside=Outside(attainable=calibrated(l2=3e12)))
    assert judged.verdict.resource == "l2"
    assert not judged.verdict.at_roof
