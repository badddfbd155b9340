"""Hold the totals of kernels: what a table shows of many launches, made of little and kept in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from support import samples
from support.alike import are_alike

from rooflens.model.failed import ALL_NAN
from rooflens.model.store.tables.totals import TOTALS, total_table, totals_from_table
from rooflens.model.totals import Total, parts_of, totals_of, totals_of_parts

if TYPE_CHECKING:
    from rooflens.model.records import Analysis


def _using_other_pipes() -> list[Analysis]:
    """Make launches of one kernel with another peak each, one of them without the pipe of its main work."""
    one = samples.integer_product()
    pipe = one.pipes["tensor_int8"]
    faster = replace(pipe, peak_per_s=3 * pipe.peak_per_s)
    idle = {name: other for name, other in one.pipes.items() if name != "tensor_int8"}
    lasting = [
        replace(one.kernel, index=index, counters={**one.kernel.counters, "duration_ns": (index + 1) * 1e6})
        for index in range(3)
    ]
    used = (one.pipes, idle, {**one.pipes, "tensor_int8": faster})
    return [replace(one, kernel=kernel, pipes=pipes) for kernel, pipes in zip(lasting, used, strict=True)]


GROUPS = {
    "verdicts": samples.every_verdict(),
    "explained": [samples.explained(), samples.explained(1)],
    "integer": [samples.integer_product(), samples.integer_product(1)],
    "failed": [*samples.every_verdict(), samples.failed()],
    "hostile": samples.hostile(),
    "without FLOPs": samples.without_flops(),
    "many": samples.many(40),
    "other pipes": _using_other_pipes(),
}


@pytest.mark.parametrize("analyses", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("at_once", [1, 2, 1000])
def test_pieces_give_the_same_totals(analyses: list[Analysis], at_once: int) -> None:
    """Totals are the same in whatever pieces launches come, and parts hold nothing that no total is made of."""
    parts = [part for at in range(0, len(analyses), at_once) for part in parts_of(analyses[at : at + at_once])]
    assert are_alike(totals_of_parts(parts), totals_of(analyses))
    assert not any(part.whole.kernel.counter_sources or part.whole.kernel.stalls for part in parts)


def test_a_total_is_synthetic_or_not() -> None:
    """The mark is a truth value, as in the tables of reports and kernels: a report is written by a generator or not."""
    recorded, made = samples.every_verdict()[:2]
    made = replace(made, kernel=replace(made.kernel, synthetic=True))
    assert [total.synthetic for total in totals_of([recorded, made, made], each_launch=True)] == [False, True, True]
    assert str(TOTALS.field("synthetic").type) == "bool"


def test_equal_launches_are_told_in_the_words_of_the_first() -> None:
    """Of launches with as much at stake the first one is named, also where each of them came in a piece of its own."""
    one = samples.every_verdict()[0]
    others = [replace(one, verdict=replace(one.verdict, resource=name)) for name in ("l1", "l2", "dram")]
    apart = [part for other in others for part in parts_of([other])]
    assert [total.resource for total in totals_of_parts(apart)] == ["l1"]
    assert [total.resource for total in totals_of_parts(parts_of(others))] == ["l1"]


@pytest.mark.parametrize("analyses", GROUPS.values(), ids=GROUPS)
def test_totals_come_back_from_their_table(analyses: list[Analysis]) -> None:
    """A row of the table holds all of a total but the path, which stands in `runs`."""
    totals = totals_of(analyses)
    sources = {total.digest: total.source for total in totals}
    assert totals_from_table(total_table(totals, 2, "limits"), sources) == totals


def test_the_table_has_a_column_for_each_value() -> None:
    """What is added to a total is added to its table."""
    named = set(Total.__struct_fields__) - {"source", "distances", "whole"}
    assert named <= {*TOTALS.names}
    assert {"headroom", "potential", "potential_by_reuse", "bottleneck_share"} <= {*TOTALS.names}


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
