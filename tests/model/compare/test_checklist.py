"""The checklist: which launches are runs of one kernel, and what of it holds; all numbers are worked out by hand."""

from __future__ import annotations

import pytest
from support import samples

from rooflens.errors import InputError
from rooflens.model.compare.checklist import Asked, Checklist, check, rating
from rooflens.model.records import AnalyzedReport
from rooflens.model.verdict.thresholds import default_thresholds


def launch(name: str = "saxpy", us: float = 100.0, flop: float = 2e6, **levels: float) -> samples.Analysis:
    """Make one launch on an A100 of 1.555 TB/s: 1e8 bytes in 100 us are 64.3 % of it."""
    return samples.analysis(
        samples.Sample(name, "memory", us, "dram", level_bytes={"dram": 1e8, **levels}, flop={"fp32": flop})
    )


def report(*launches: samples.Analysis, source: str = "saxpy.ncu-rep", at: int = 0) -> AnalyzedReport:
    """Make one report, recorded at a time."""
    return samples.report(launches, source=source, created_unix_s=1_800_000_000 + at, digest=f"{at:064x}")


def checked(*reports: AnalyzedReport, **asked: object) -> Checklist:
    """Check with the shipped thresholds."""
    return check(reports, Asked(**asked), default_thresholds())  # type: ignore[arg-type]


def test_the_best_of_three_counts() -> None:
    """100, 105 and 160 us: the best reaches 1e8 B / 100 us / 1.555e12 B/s = 64.3 %, the slowest 62.5 % of its rate."""
    runs = [report(launch(us=us), source=f"saxpy_{i}.ncu-rep", at=i) for i, us in enumerate((105.0, 100.0, 160.0))]
    found = checked(*runs, best_of=3, min_share=0.6, stable=0.6, level="dram")
    (point,) = found.points
    assert (len(point.runs), point.best_ns, point.stability) == (3, 100_000, pytest.approx(0.625))
    assert point.share == pytest.approx(1e12 / 1.555e12)
    assert (point.rating, found.unmet) == ("room left", ())


def test_what_does_not_hold_is_said_with_its_numbers() -> None:
    """Two runs where three are asked, 64.3 % where 70 % is, 62.5 % of the best rate where 90 % is."""
    found = checked(report(launch(us=100), launch(us=160)), best_of=3, min_share=0.7, stable=0.9, level="dram")
    few, low, unstable = found.unmet
    assert few == "saxpy: 2 runs; the best of 3 is required"
    assert low.startswith("saxpy: 64.3 % of ")
    assert low.endswith(" at best; 70 % is required")
    assert unstable == "saxpy: the slowest of 2 runs has 62.5 % of the rate of the best; 90 % is required"


def test_launches_of_other_work_are_other_kernels() -> None:
    """Twice the FLOPs, another name and another version are no noise; 0.5 % more FLOPs are the same work."""
    found = checked(
        report(launch(), launch(flop=2.01e6), launch(flop=4e6), launch("daxpy"), source="a_v1.ncu-rep"),
        report(launch(), source="a_v2.ncu-rep", at=1),
    )
    assert sorted((point.name, point.version, len(point.runs)) for point in found.points) == [
        ("daxpy", "a_v1", 1),
        ("saxpy", "a_v1", 1),
        ("saxpy", "a_v1", 2),
        ("saxpy", "a_v2", 1),
    ]


def test_rates_that_no_longer_grow_with_the_work_are_a_plateau() -> None:
    """1, 2, 4 and 8 MFLOP in 10, 12, 23.5 and 46.5 us: +66.7 %, +2.1 % and +1.1 %, the smallest work first."""
    sizes = ((8e6, 46.5), (1e6, 10.0), (4e6, 23.5), (2e6, 12.0))
    runs = report(*(launch("fma", us, flop) for flop, us in sizes))
    (climb,) = checked(runs, plateau=0.03, steps=2).climbs
    assert climb.gains == pytest.approx((2 / 3, 2 * 12 / 23.5 - 1, 2 * 23.5 / 46.5 - 1))
    assert climb.unmet == ()
    (unmet,) = checked(runs, plateau=0.02, steps=2).unmet
    assert unmet == "fma: still climbs: 4.00 MFLOP gained 2.1 %, and at most 2.0 % is a plateau"
    assert len(checked(runs, plateau=0.5, steps=4).unmet) == 1


def test_versions_climb_in_the_order_of_their_recording() -> None:
    """Best runs of 100, 50 and 49 us: twice as fast, then 2.0 % more."""
    times = {"v3": (49.0,), "v1": (100.0, 120.0), "v2": (50.0,)}
    runs = [
        report(*(launch(us=us) for us in times[v]), source=f"gemm_{v}.ncu-rep", at=i)
        for i, v in enumerate(("v1", "v2", "v3"))
    ]
    (climb,) = checked(*reversed(runs), plateau=0.03, steps=1).climbs
    assert climb.labels == ("gemm_v1", "gemm_v2", "gemm_v3")
    assert climb.gains == pytest.approx((1.0, 50 / 49 - 1))
    assert climb.unmet == ()
    assert checked(*runs, plateau=0.03, steps=2).unmet[0].startswith("gemm: still climbs: gemm_v2 gained 100.0 %")


def test_without_versions_or_sizes_there_is_no_plateau_to_find() -> None:
    """One kernel of one size says nothing of it, which is not the same as a plateau."""
    assert "a plateau needs versions" in checked(report(launch()), plateau=0.03).unmet[0]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.8, "near its roof"), (0.79, "room left"), (0.5, "room left"), (0.49, "far from its roof"), (None, None)],
)
def test_a_rating_is_a_word_for_a_share(share: float | None, words: str | None) -> None:
    """80 % and more is near, below 50 % far; what was not measured has no rating."""
    assert rating(share, default_thresholds()) == words


def test_a_unit_that_no_kernel_has_is_bad_input() -> None:
    """A slip in `--level` is no failed check, and neither is a report without a timed kernel."""
    with pytest.raises(InputError, match="no kernel has a unit called `drum`"):
        checked(report(launch()), level="drum")
    with pytest.raises(InputError, match="no kernel with a duration"):
        checked(report())


def test_a_kernel_that_was_not_measured_there_is_not_met() -> None:
    """A share that is not known does not hold, and is not taken for 0 %."""
    unmeasured = launch("copy")
    (unmet,) = checked(report(launch(l2=1e8), unmeasured), level="l2", min_share=1e-6).unmet
    assert unmet.startswith("copy: was not measured at ")
