"""Hold the totals of kernels: what a table shows of many launches, made of little and kept in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from support import samples

from rooflens.model.failed import ALL_NAN
from rooflens.model.totals import totals_of

if TYPE_CHECKING:
    from rooflens.model.records import Analysis


def test_a_total_is_synthetic_or_not() -> None:
    """The mark is a truth value, as in the tables of reports and kernels: a report is written by a generator or not."""
    recorded, made = samples.every_verdict()[:2]
    made = replace(made, kernel=replace(made.kernel, synthetic=True))
    assert [total.synthetic for total in totals_of([recorded, made, made], each_launch=True)] == [False, True, True]


def test_equal_launches_are_told_in_the_words_of_the_first() -> None:
    """Of launches with as much at stake the first one is named."""
    one = samples.every_verdict()[0]
    others = [replace(one, verdict=replace(one.verdict, resource=name)) for name in ("l1", "l2", "dram")]
    assert [total.resource for total in totals_of(others)] == ["l1"]


def test_totals_add_launches_up() -> None:
    """Two launches of 1 and 3 ms are 4 ms; a failed one is apart, with its reason."""
    one = samples.every_verdict()[0]

    def lasting(ms: float, index: int) -> Analysis:
        counters = {**one.kernel.counters, "duration_ns": ms * 1e6, "sm_clock_hz": ms * 1e9}
        return replace(one, kernel=replace(one.kernel, index=index, counters=counters))

    broken = replace(one, kernel=replace(one.kernel, index=2, counters={}, status="failed", status_reason=None))
    total, failed = totals_of([lasting(1, 0), lasting(3, 1), broken])
    assert (total.duration_ns, total.launches, total.records, total.is_failed) == (4e6, 2, 2, False)
    assert (total.clock_hz, total.clock_ns) == (3e9, 3e6)
    assert (failed.is_failed, failed.reasons, failed.duration_ns) == (True, {ALL_NAN: 1}, None)
