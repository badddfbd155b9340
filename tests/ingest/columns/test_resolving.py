"""Hold counters resolved in columns, and what cannot be among them, equal to those of one result."""

from __future__ import annotations

import random
from math import isnan

import numpy as np
import pytest

from rooflens.ingest.columns.resolving import find_beyond, resolve_columns
from rooflens.ingest.reports.resolve import resolve, ways_of
from rooflens.model.counters.plausible import OPERATIONS, PEAK, find_impossible, first_impossible, limits
from rooflens.model.counters.table import COUNTERS

ROWS = 40


class _Everything:
    """Stores every name."""

    def __contains__(self, name: object) -> bool:
        return True


NAMES = sorted(
    {
        name
        for counter in COUNTERS
        for recipe in counter.recipes
        for way in ways_of(recipe, _Everything())
        for name in way.needs
    }
    | {f"sm__ops_path_tensor_src_fp16_dst_fp32.sum{form}" for form in ("", ".peak_sustained", ".per_second")}
    | {"device__attribute_integrated", "sm__cycles_elapsed.avg"}
)
TYPICAL = ("gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second", "device__attribute_multiprocessor_count")
VALUES = (0.0, -0.0, -1.0, 0.005, 0.5, 1.0, 37.5, 1500.0, 1.4e9, 1e18, 1e300, 1.7e308, 5e-324)
"""Among them what makes a way fail, or overflow, so that the next one is tried."""


@pytest.mark.parametrize("seed", range(8))
def test_columns_give_what_single_results_give(seed: int) -> None:
    """Every recipe gives the same bits and the same source, whichever of its ways each result takes."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    names = [*chance.sample(NAMES, 150), *TYPICAL]
    names = list(dict.fromkeys(names))
    rows = [{name: chance.choice(VALUES) for name in names} for _ in range(ROWS)]
    stored = {name: np.array([row[name] for row in rows]) for name in names}
    columns = resolve_columns(stored, ROWS)
    beyond = find_beyond(stored, columns, ROWS)
    assert any(0 < np.isnan(values).sum() < ROWS for values in columns.values.values())
    for place, row in enumerate(rows):
        one = resolve(row)
        assert dict(columns.sources[place]) == one.sources
        for found, expected in (
            (columns.values, one.values),
            (columns.tensor_ops, one.tensor_ops),
            (columns.tensor_peaks_per_s, one.tensor_peaks_per_s),
        ):
            known = {name: float(values[place]) for name, values in found.items() if not isnan(values[place])}
            assert {name: value.hex() for name, value in known.items()} == {
                name: value.hex() for name, value in expected.items()
            }
        why = (
            find_impossible(one.values, one.sources)
            or first_impossible(one.tensor_ops, OPERATIONS, "operations of")
            or first_impossible(one.tensor_peaks_per_s, PEAK, "peak of")
        )
        if why is not None:
            assert beyond[place]


def test_a_value_at_its_limit_can_be_and_the_next_cannot() -> None:
    """Of a stored counter that is taken as it is, the limits of the table hold in columns as they do alone."""
    name, limit = "launch__registers_per_thread", limits()["registers_per_thread"]
    values = [0.0, limit.least, limit.high, np.nextafter(limit.least, 0), np.nextafter(limit.high, np.inf), -1.0]
    stored = {name: np.array(values)}
    columns = resolve_columns(stored, len(values))
    assert columns.values["registers_per_thread"].tolist() == values
    assert find_beyond(stored, columns, len(values)).tolist() == [False, False, False, True, True, True]
