from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples

from rooflens.model.compare.ladder import histories
from rooflens.model.records import Analysis, AnalyzedReport, Run
from rooflens.report.history.groups import groups
from rooflens.report.ladder import sparkline


def recorded(day: int, file: str = "app.ncu-rep") -> Run:
    """Make the provenance of a report of that day."""
    return samples.run(source=file, created_unix_s=86_400 * day, digest=f"{day:064d}")


def scaled(analysis: Analysis, factor: float, **kernel: object) -> Analysis:
    """Make the same kernel take `factor` times as long, under another name where one is given."""
    duration_ns = (analysis.kernel.duration_ns or 0.0) * factor
    counters = {**analysis.kernel.counters, "duration_ns": duration_ns}
    return replace(analysis, kernel=replace(analysis.kernel, counters=counters, **kernel))


def test_runs_stand_in_the_order_of_their_recording() -> None:
    """Whatever order a store gives, a series goes from the oldest run to the newest."""
    kernel = samples.every_verdict()[0]
    reports = [
        AnalyzedReport(recorded(day), (scaled(kernel, factor),)) for day, factor in ((3, 1.0), (1, 4.0), (2, 2.0))
    ]
    (series,) = histories(reports)
    assert [point.run.created_unix_s for point in series.points] == [86_400, 2 * 86_400, 3 * 86_400]
    assert series.factor == pytest.approx(4.0)


def test_a_renamed_kernel_goes_on() -> None:
    """A kernel that is re-tiled in the second run and renamed in the third is one series."""
    first, other = samples.every_verdict()[:2]
    tiled = scaled(first, 1.0, name=f"{first.kernel.name}<64>")
    renamed = scaled(first, 1.0, name="quite_another")
    reports = [AnalyzedReport(recorded(day), (one, other)) for day, one in ((1, first), (2, tiled), (3, renamed))]
    lengths = {series.name: len(series.points) for series in histories(reports)}
    assert lengths == {"quite_another": 3, other.kernel.name: 3}


def test_a_kernel_that_comes_back_goes_on() -> None:
    """A kernel that one run does without is one series with a gap, not two."""
    first, other = samples.every_verdict()[:2]
    held = {1: (first, other), 2: (other,), 3: (first, other)}
    reports = [AnalyzedReport(recorded(day), kernels) for day, kernels in held.items()]
    assert sorted(len(series.points) for series in histories(reports)) == [2, 3]


def test_programs_and_gpus_are_told_apart() -> None:
    """The same kernel of another program, or on another GPU, is another series; dates in names are none."""
    kernel = samples.every_verdict()[0]
    elsewhere = scaled(kernel, 1.0, gpu="Tesla T4")
    reports = [
        AnalyzedReport(recorded(1, "app-2026-11-01.ncu-rep"), (kernel,)),
        AnalyzedReport(recorded(2, "app-2026-11-02.ncu-rep"), (kernel,)),
        AnalyzedReport(recorded(3, "tool.ncu-rep"), (kernel,)),
        AnalyzedReport(recorded(4, "app-2026-11-03.ncu-rep"), (elsewhere,)),
    ]
    found = sorted((series.program, series.gpu or "", len(series.points)) for series in histories(reports))
    assert found == [("app", "NVIDIA A100-SXM4-40GB", 2), ("app", "Tesla T4", 1), ("tool", "NVIDIA A100-SXM4-40GB", 1)]


def test_failed_kernels_are_no_points() -> None:
    """A run whose kernel failed has no point."""
    kernel = samples.every_verdict()[0]
    held = {1: kernel, 2: samples.failed()}
    (series,) = histories([AnalyzedReport(recorded(day), (one,)) for day, one in held.items()])
    assert len(series.points) == 1


def test_a_sparkline_has_a_block_for_each_value() -> None:
    """The largest value has the tallest block, a missing one a space."""
    assert sparkline([1.0, None, 8.0, 4.0], "12345678") == "2 85"
    assert sparkline([None, None]) == "  "


def test_other_launch_counts_are_followed_by_the_mean_launch() -> None:
    """A kernel that a run launched three times as often, each as fast, stays where it was."""
    kernel = samples.every_verdict()[0]
    reports = [AnalyzedReport(recorded(1), (kernel,)), AnalyzedReport(recorded(2), (kernel,) * 3)]
    (series,) = histories(reports)
    assert series.is_mean
    assert series.factor == pytest.approx(1.0)
    assert series.points[1].gpu_time_ns == pytest.approx(3 * (kernel.kernel.duration_ns or 0.0))


def test_versions_are_runs_of_one_program() -> None:
    """Reports whose names differ by a version are followed as one program, and named by it."""
    kernel = samples.every_verdict()[0]
    reports = [AnalyzedReport(recorded(i, f"v{i}_gemm.ncu-rep"), (kernel,)) for i in (4, 5)]
    (series,) = histories(reports)
    (group,) = groups([series])
    assert group.when == ("v4", "v5")
