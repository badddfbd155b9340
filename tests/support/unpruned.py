"""Resolve counters the long way: every recipe is tried in order, without a plan for the stored names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from rooflens.ingest.reports.resolve import QuantityWays, ways_of
from rooflens.model.counters.recipes import CyclesOverTime, Exact, bases_of
from rooflens.model.counters.table import COUNTERS

FORMS = (
    "sum",
    "sum.per_second",
    "sum.per_cycle_elapsed",
    "sum.peak_sustained",
    "sum.peak_sustained_elapsed.per_second",
    *(f"{rollup}.pct_of_peak_sustained_{period}" for rollup in ("sum", "avg") for period in ("elapsed", "active")),
)

EVERYTHING = frozenset(
    name
    for counter in COUNTERS
    for recipe in counter.recipes
    for base in bases_of(recipe)
    for name in (
        base,
        *(recipe.names if isinstance(recipe, (Exact, CyclesOverTime)) else ()),
        *(f"{base}.{form}" for form in FORMS),
    )
)
"""Every name that a recipe may read, and more."""


def resolved_without_a_plan(stored: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """Try every recipe in order, including those that need missing metrics, and skip these one by one."""
    values: dict[str, float] = {}
    sources: dict[str, str] = {}
    for name, ways in _steps():
        for way in ways:
            found = way.value(stored, values) if all(needed in stored for needed in way.needs) else math.nan
            if math.isfinite(found) and (found or not name.endswith("_clock_hz")):
                values[name], sources[name] = found, way.source
                break
    return values, sources


@cache
def _steps() -> list[QuantityWays]:
    return [
        QuantityWays(counter.name, tuple(way for recipe in counter.recipes for way in ways_of(recipe, EVERYTHING)))
        for counter in COUNTERS
    ]
