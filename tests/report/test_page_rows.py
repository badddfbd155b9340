from __future__ import annotations

from dataclasses import replace

import pytest
from support import samples
from untimed import without_durations

from rooflens.model.thresholds import default_thresholds
from rooflens.report.first_screen import biggest_losses
from rooflens.report.rows import Page, bound_times_ns, build_page, time_part


def make_page(*analyses: object) -> Page:
    """Build the page's rows over one report."""
    return build_page([samples.run()], analyses, "test", default_thresholds())  # type: ignore[arg-type]


def sample(name: str, duration_us: float, dram_bytes: float, **changes: object) -> samples.Sample:
    """Make a memory-bound sample that moves so many bytes."""
    base = samples.Sample(name, "memory", duration_us, "dram", {"dram": dram_bytes}, {"fp32": 1e6})
    return replace(base, **changes)  # type: ignore[arg-type]


def test_launches_of_one_name_are_summed_by_time() -> None:
    """A group's time and loss are sums over its launches, not means of their ratios."""
    fast, slow = sample("copy", 100, 0.9 * 1.555e8), sample("copy", 900, 0.1 * 9 * 1.555e8)
    page = make_page(samples.analysis(fast, 0), samples.analysis(slow, 1))
    (group,) = page.groups
    assert group.duration_ns == pytest.approx(1e6)
    assert group.loss_ns == pytest.approx(10_000 + 810_000)
    assert group.worst.analysis.kernel.index == 1


def test_same_name_on_two_gpus_stays_apart() -> None:
    """Launches on different GPUs have different roofs and are never added up."""
    page = make_page(
        samples.analysis(sample("copy", 100, 1e7)), samples.analysis(sample("copy", 100, 1e7, chip=samples.T4))
    )
    assert [group.gpu for group in page.groups] == [samples.A100.name, samples.T4.name]


def test_failed_kernels_count_in_nothing() -> None:
    """A failed launch is listed last and adds neither time nor kernels."""
    page = make_page(samples.failed(), *samples.every_verdict())
    assert page.launches[-1].failed
    assert len(page.groups) == 6
    assert sum(bound_times_ns(page.launches).values()) == pytest.approx(page.total_ns)


def test_missing_durations_are_missing_and_not_zero() -> None:
    """A launch without a duration has no time, share or loss; one with a duration beside it keeps the whole time."""
    timed, untimed = samples.every_verdict()[0], without_durations()[1]
    page = make_page(timed, untimed)
    first, second = page.groups
    assert (first.time_share, time_part(page.groups)) == (1.0, 1.0)
    assert (second.duration_ns, second.time_share, second.loss_ns) == (None, None, None)
    assert time_part(make_page(*without_durations()).launches) is None


def test_losses_rank_by_time_over_the_nearest_roof() -> None:
    """Kernels are ranked by what they lose; unknown ones are not, and those at their roof leave room for others."""
    page = make_page(*samples.every_verdict())
    ranked = biggest_losses(page)
    assert [loss.group.worst.bound for loss in ranked] == ["latency", "compute", "balanced"]
    assert not any(loss.group.worst.analysis.verdict.at_roof for loss in ranked)
    assert [loss.rank for loss in ranked] == [1, 2, 3]
    assert ranked[0].loss_ns == pytest.approx(640e3 * (1 - 2.6e8 / 640e-6 / 1.555e12))


def test_thousands_of_equal_kernels_still_have_losses() -> None:
    """The list is never empty only because each kernel is a small part of the whole."""
    assert len(biggest_losses(make_page(*samples.many(2000)))) == 3


def test_leader_agrees_with_the_headroom_of_the_verdict() -> None:
    """The share shown beside a verdict is the one its headroom was made from, under the resource it names."""
    analysis = samples.every_verdict()[0]
    verdict = replace(analysis.verdict, resource="smem", headroom=1 / 0.97)
    (launch,) = make_page(replace(analysis, verdict=verdict)).launches
    assert launch.leader == ("smem", pytest.approx(0.97))


def test_a_launch_that_stands_for_others_counts_as_often() -> None:
    """A kernel profiled once and launched 9 times has 9 times its time, on the bar, in the list and in the counts."""
    often = replace(samples.analysis(sample("often", 100, 1e7)), launches=9)
    page = make_page(often, samples.analysis(sample("once", 100, 1e7)))
    assert page.launches[0].shown == "often x9"
    assert page.launches[0].time_share == pytest.approx(0.9)
    assert [group.launch_count for group in page.groups] == [9, 1]
