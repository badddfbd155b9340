from __future__ import annotations

import pytest
from browsing import apart
from msgspec.structs import replace
from support import samples
from untimed import without_durations

from rooflens.model.ranking import RANKED_SHOWN
from rooflens.model.records import Analysis, Bottleneck, Gain, Limit, Move
from rooflens.model.summary import class_times_ns, summarize, time_part
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.comparison.rows import limiter_words
from rooflens.report.content import MAX_FAILED, MAX_KERNELS, MAX_LAUNCHES, Content, build_content
from rooflens.report.overview.document import overview
from rooflens.report.overview.kernels import kernels_document
from rooflens.report.overview.opportunities import unlisted
from rooflens.report.page.kernels import kernels
from rooflens.report.summary import counts, limiter
from rooflens.report.writers.markdown import to_markdown


def make_page(*analyses: object) -> Content:
    """Build the page's rows over one report."""
    return build_content([samples.report(analyses)], "test", default_thresholds())  # type: ignore[arg-type]


def sample(name: str, duration_us: float, dram_bytes: float, **changes: object) -> samples.Sample:
    """Make a memory-bound sample that moves this many bytes."""
    base = samples.Sample(name, "memory", duration_us, "dram", {"dram": dram_bytes}, {"fp32": 1e6})
    return replace(base, **changes)  # type: ignore[arg-type]


def test_launches_of_one_name_are_summed_by_time() -> None:
    """A group's time and what it can save are sums over its launches, not means of their ratios.

    The limits are 2 / 0.9 and 2 / 0.1: of 100 us 55 are above the floor, and of 900 us 855.
    """
    fast, slow = sample("copy", 100, 0.9 * 1.555e8), sample("copy", 900, 0.1 * 9 * 1.555e8)
    page = make_page(samples.analysis(fast, 0), samples.analysis(slow, 1))
    (group,) = page.kernels
    assert group.duration_ns == pytest.approx(1e6)
    assert group.winnable_ns == pytest.approx(55_000 + 855_000)
    assert group.representative.analysis.kernel.index == 1


def test_same_name_on_two_gpus_stays_apart() -> None:
    """Launches on different GPUs have different roofs and are never added up."""
    page = make_page(
        samples.analysis(sample("copy", 100, 1e7)), samples.analysis(sample("copy", 100, 1e7, chip=samples.T4))
    )
    assert [group.gpu for group in page.kernels] == [samples.A100.name, samples.T4.name]


def test_failed_kernels_count_in_nothing() -> None:
    """A failed launch is listed last and adds neither time nor kernels; the header counts it apart."""
    page = make_page(samples.failed(), *samples.every_verdict())
    assert page.launches[-1].failed
    assert len(page.kernels) == 6
    assert counts(page)[:2] == ["6 kernels", "1 failed launch"]
    assert sum(class_times_ns(page.launches).values()) == pytest.approx(page.total_ns)


def test_missing_durations_are_missing_and_not_zero() -> None:
    """A launch without a duration has no time, share or savable time; one with a duration beside it has all time."""
    timed, untimed = samples.every_verdict()[0], without_durations()[1]
    page = make_page(timed, untimed)
    first, second = page.kernels
    assert (first.time_share, time_part(page.kernels)) == (1.0, 1.0)
    assert (second.duration_ns, second.time_share, second.winnable_ns) == (None, None, None)
    assert time_part(make_page(*without_durations()).launches) is None


def test_kernels_rank_by_what_can_be_won() -> None:
    """They are sorted by time above the limit's floor, or all their time without a limit; 1.92 ms ranks first."""
    page = make_page(*samples.every_verdict())
    first = page.first
    stakes = [row.at_stake_ns for row in first]
    assert len(first) == 5
    assert stakes == sorted(stakes, reverse=True)
    assert first[0].winnable_ns == pytest.approx(1.92e6 - 2.71e9 / 1.555e12 * 1e9 / 2)
    unknown = next(group for group in page.kernels if group.representative.shown_class == "unknown")
    assert (unknown.winnable_ns, unknown.at_stake_ns) == (None, unknown.duration_ns)


def test_what_the_best_move_wins_goes_before_the_limit() -> None:
    """A move that makes 80 us of 100 saves 20, however far the limit is; without a gain the limit's 75 count."""
    one = samples.analysis(sample("one", 100, 1e7))
    limit = Limit(4.0, 25e3, "DRAM traffic")
    for gain, won_ns in ((Gain(1.25, 80e3), 20e3), (None, 75e3)):
        verdict = replace(
            one.verdict,
            limit=limit,
            today=None,
            moves=(Move("more", "wide"), Move("coalesce", "coalesce", gain=gain)),
        )
        (group,) = make_page(replace(one, verdict=verdict)).kernels
        assert group.winnable_ns == pytest.approx(won_ns)


def test_no_kernel_is_dropped_from_the_ranking() -> None:
    """Kernels that the list does not show are counted below it, and none is missing."""
    page = make_page(*samples.every_verdict(), *apart(2000))
    assert len(page.first) == RANKED_SHOWN
    assert sum(len(row.members) or 1 for row in page.first) + len(
        unlisted(page, {row.key for row in page.first})
    ) == len(page.kernels)


def test_kernels_of_two_reports_are_not_added_up() -> None:
    """A kernel in two reports has two versions, each with its own line."""
    analysis = samples.analysis(sample("copy", 100, 1e7))
    other = replace(analysis, kernel=replace(analysis.kernel, digest="b" * 64))
    assert [len(group.launches) for group in make_page(analysis, other).kernels] == [1, 1]


def test_table_page_and_markdown_name_the_verdict_s_bottleneck() -> None:
    """The busiest unit is the verdict's everywhere, whatever shares stand beside it."""
    analysis = samples.every_verdict()[0]
    verdict = replace(analysis.verdict, resource="smem", at_roof=False, bottleneck=Bottleneck("smem", 0.97))
    found = replace(analysis, verdict=verdict)
    page = make_page(found, samples.every_verdict()[1])
    for text in (
        str(kernels(page)),
        to_markdown(overview(page, "file")),
        to_markdown(kernels_document(summarize([found]))),
        limiter(found),
        limiter_words(found),
    ):
        assert "SMEM 97 %" in text.replace("\u00a0", " ")


def test_a_launch_that_stands_for_others_counts_as_often() -> None:
    """A kernel profiled once and launched 9 times has 9 times its time, in the bar, the list and the counts."""
    often = replace(samples.analysis(sample("often", 100, 1e7)), launches=9)
    page = make_page(often, samples.analysis(sample("once", 100, 1e7)))
    assert page.launches[0].shown == "often x9"
    assert page.launches[0].time_share == pytest.approx(0.9)
    assert [group.launch_count for group in page.kernels] == [9, 1]


def crowd(count: int, kernels: int) -> list[Analysis]:
    """Make this many launches of this many kernels, with times and verdicts that differ between launches."""
    base = samples.every_verdict()
    return [
        renamed(base[i * 5 // 3 % len(base)], f"kernel_{i % kernels}", 1e3 + 1e6 / (1 + i % kernels) + i % 7)
        for i in range(count)
    ]


def renamed(analysis: Analysis, name: str, duration_ns: float) -> Analysis:
    """Make the same launch of another kernel."""
    kernel = replace(analysis.kernel, name=name, counters={"duration_ns": duration_ns})
    return replace(analysis, kernel=kernel)


def test_groups_and_launches_share_their_keys() -> None:
    """A launch refers to its kernel by the kernel's position by time; failed launches have their own."""
    page = make_page(samples.failed(), *samples.every_verdict(), samples.every_verdict()[0])
    assert [group.key for group in page.kernels] == [f"g{i}" for i in range(6)]
    assert all(launch.group_key == group.key for group in page.kernels for launch in group.launches)
    assert page.launches[-1].group_key == "f0"


def test_cumulative_share_is_of_all_longer_launches() -> None:
    """The longest launch has nothing before it, and each next one the shares of those above."""
    page = make_page(*samples.every_verdict())
    shares = [launch.time_share or 0.0 for launch in page.launches]
    expected = [sum(shares[:i]) for i in range(len(shares))]
    assert [launch.cumulative_share for launch in page.launches] == pytest.approx(expected)
    assert {launch.cumulative_share for launch in make_page(*without_durations()).launches} == {0.0}


def test_up_to_the_limit_every_launch_stands_for_itself() -> None:
    """A page of few launches draws each of them."""
    page = make_page(*samples.many(MAX_LAUNCHES))
    assert (len(page.launches), page.aggregated, page.other) == (MAX_LAUNCHES, False, None)


def test_over_the_limit_one_launch_stands_for_a_kernel() -> None:
    """The median launch of each kernel is drawn, with the time and number of all its launches."""
    analyses = crowd(3000, 20)
    page = make_page(*analyses)
    assert page.aggregated
    assert page.other is None
    assert [launch.duration_ns for launch in page.launches] == [group.duration_ns for group in page.kernels]
    assert [launch.analysis.launches for launch in page.launches] == [150] * 20
    assert [group.launch_count for group in page.kernels] == [150] * 20
    assert sum(launch.analysis.launches for launch in page.launches) == 3000


def test_adding_up_changes_no_total() -> None:
    """Time, time by verdict, savable time and counts of a page equal those of the single launches."""
    analyses = crowd(3000, 900)
    page = make_page(*analyses)
    alone = [make_page(a) for a in analyses]
    won_ns = [group.winnable_ns or 0 for one in alone for group in one.kernels]
    assert page.total_ns == pytest.approx(sum(one.total_ns for one in alone))
    assert len(page.kernels) == 900
    assert sum(group.winnable_ns or 0 for group in page.kernels) == pytest.approx(sum(won_ns))
    times = class_times_ns(launch for one in alone for launch in one.launches)
    assert class_times_ns(page.counted) == pytest.approx(times)
    assert time_part(page.kernels) == pytest.approx(1)
    assert len(page.analyses) == 3000


def test_kernels_that_are_not_drawn_are_one_sum() -> None:
    """Drawn kernels and the others add up to all kernels, launches and time, with whole kernels in either."""
    page = make_page(*crowd(6000, 900))
    other = page.other
    assert other is not None
    drawn = {launch.group_key for launch in page.launches}
    assert len(page.launches) <= MAX_KERNELS
    assert other.kernels == len(page.kernels) - len(drawn)
    assert other.launches + sum(launch.analysis.launches for launch in page.launches) == 6000
    assert (other.duration_ns or 0) + sum(launch.duration_ns or 0 for launch in page.launches) == pytest.approx(
        page.total_ns
    )
    assert sum(other.class_ns.values()) == pytest.approx(other.duration_ns)
    assert other.time_share == pytest.approx((other.duration_ns or 0) / page.total_ns)
    assert all(g.representative.key in {one.key for one in page.launches} for g in page.kernels if g.key in drawn)


def test_what_is_ranked_first_is_drawn_however_short() -> None:
    """Kernels named on the first screen have their rows, even if others at their limit take more time."""
    others = (one for one in apart(3000) if one.verdict.bound != "overhead")
    full = [replace(a, verdict=replace(a.verdict, at_roof=True, limit=Limit(1.01))) for a in others]
    slow = sample("slow", 19, 1e3)
    page = make_page(*full, samples.analysis(slow))
    assert page.first[0].name == "slow"
    assert {row.representative.key for row in page.first} <= {launch.key for launch in page.launches}


def test_failed_launches_of_a_crowd_are_counted_and_some_listed() -> None:
    """Thousands of failures take a few rows, and the count includes all of them."""
    page = make_page(*samples.many(600), *(samples.failed(index=i) for i in range(2000)))
    assert (len(page.failed), page.failed_count) == (MAX_FAILED, 2000)
    assert page.launches[-1].failed


def test_launches_without_a_duration_cost_a_crowd_no_time() -> None:
    """A launch without a time leaves its kernel's time unchanged."""
    untimed = [replace(a, kernel=replace(a.kernel, counters={})) for a in crowd(10, 1)]
    page = make_page(*crowd(1000, 1), *untimed)
    assert page.kernels[0].duration_ns == pytest.approx(page.total_ns)
    assert page.kernels[0].launch_count == 1010


def test_keys_of_sums_lead_to_a_record() -> None:
    """A drawn kernel has the key of its median launch: the number of its record as given."""
    analyses = crowd(1000, 5)
    for launch in make_page(*analyses).launches:
        record = analyses[int(launch.key[1:])]
        assert (record.kernel.name, record.verdict.shown_class) == (launch.name, launch.shown_class)
