"""The summary of a kernel's launches: one of them represents it, and additive quantities are added."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace
from support import samples

from rooflens.model.records import Analysis
from rooflens.model.summary import median_launch, parted, summarize, whole


def lasting(us: float, index: int = 0, *, launches: int = 1, digest: str = "d") -> Analysis:
    """Make a launch of a kernel with this duration."""
    one = samples.every_verdict()[0]
    counters = {**one.kernel.counters, "duration_ns": us * 1e3}
    return replace(one, kernel=replace(one.kernel, digest=digest, index=index, counters=counters), launches=launches)


def test_the_median_launch_stands_in_the_middle_of_the_time() -> None:
    """Half of the kernel's time is in launches that are no longer, so many short launches do not represent one long."""
    short = [lasting(1, index) for index in range(9)]
    assert median_launch([*short, lasting(100, 9)]).kernel.duration_ns == 100e3
    assert median_launch([lasting(1, 0), lasting(2, 1), lasting(3, 2)]).kernel.duration_ns == 2e3
    assert median_launch([lasting(1, 0, launches=90), lasting(20, 1)]).kernel.duration_ns == 1e3


def test_sums_are_plain_and_the_representative_is_a_launch() -> None:
    """Whatever the launches and their order, nothing is averaged and nothing is lost."""
    random = Random(7)  # noqa: S311 - no secret
    for _ in range(200):
        given = [
            lasting(random.choice((1, 2, 5, 90)), index, launches=random.choice((1, 4)))
            for index in range(random.randint(1, 9))
        ]
        shuffled = random.sample(given, len(given))
        (kernel,), (other,) = summarize(given), summarize(shuffled)
        assert any(kernel.analysis is one for one in given)
        assert kernel.analysis is other.analysis
        times = [one.gpu_time_ns or 0.0 for one in given]
        assert kernel.duration_ns == pytest.approx(sum(times))
        assert kernel.launch_count == sum(one.launches for one in given)
        assert kernel.work == pytest.approx(sum((one.flop_total or 0.0) * one.launches for one in given))
        moved = sum((one.levels["dram"].amount_bytes or 0.0) * one.launches for one in given)
        assert kernel.dram_bytes == pytest.approx(moved)
        assert sum(kernel.class_ns.values()) == pytest.approx(sum(times))
        up_to = sum(time for one, time in zip(given, times, strict=True) if _takes(one) <= _takes(kernel.analysis))
        less = sum(time for one, time in zip(given, times, strict=True) if _takes(one) < _takes(kernel.analysis))
        assert 2 * up_to >= sum(times)
        assert 2 * less < sum(times)
        assert (whole(kernel).duration_ns, whole(kernel).analysis.launches) == (kernel.duration_ns, kernel.launch_count)


def _takes(analysis: Analysis) -> float:
    return analysis.kernel.duration_ns or 0.0


def test_failed_launches_are_a_summary_of_their_own() -> None:
    """They add to no time, and stay separate even if every launch is listed."""
    broken = replace(
        lasting(1, 2), kernel=replace(lasting(1, 2).kernel, counters={}, status="failed", status_reason=None)
    )
    kernel, failed = summarize([broken, lasting(1), lasting(3, 1)])
    assert (kernel.key, kernel.duration_ns, kernel.launch_count, kernel.is_failed) == ("g0", 4e3, 2, False)
    assert (failed.key, failed.is_failed, failed.launch_count, failed.duration_ns) == ("f0", True, 1, None)
    assert [one.key for one in summarize([broken, lasting(1), lasting(3, 1)], each_launch=True)] == ["g0", "g1", "f0"]


def test_a_kernel_of_two_reports_is_two_versions() -> None:
    """Kernels with one name in two reports are not added up; the longer comes first."""
    first, second = summarize([lasting(1), lasting(2, digest="other")])
    assert (first.duration_ns, second.duration_ns, first.time_share) == (2e3, 1e3, pytest.approx(2 / 3))


def test_times_that_hardly_differ_are_no_spread() -> None:
    """Launches within five per cent count as equally long; beyond that least, median and most are given."""
    assert summarize([lasting(100), lasting(104, 1)])[0].spread == ""
    assert summarize([lasting(100), lasting(110, 1), lasting(130, 2)])[0].spread == "median 110 µs, 100 µs to 130 µs"


def test_a_kernel_parts_by_class() -> None:
    """Launches of different classes form parts with their own median and time."""
    other = replace(lasting(5, 1), verdict=replace(lasting(5, 1).verdict, bound="latency"))
    (kernel,) = summarize([lasting(1), other])
    assert {part.representative.shown_class: part.duration_ns for part in parted(kernel)} == dict(kernel.class_ns)
