"""Resolve counters of many results at once: the plans of `resolve`, applied to columns of values."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflens.ingest.reports.resolve import Step, plan_for, shared
from rooflens.ingest.reports.results import limits_of_others
from rooflens.model.counters.plausible import OPERATIONS, PEAK, is_beyond, ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflens.ingest.reports.resolve import Reads
    from rooflens.model.counters.plausible import Limit

Column: TypeAlias = NDArray[np.float64]
"""One value for each result; NaN where it has none."""


class Columns(NamedTuple):
    """The quantities of results that store the same metrics.

    Attributes:
        values, tensor_ops, tensor_peaks_per_s: As for one result (`Resolved`).
        sources: Where the values of each result came from; equal ones are one object.
    """

    values: Mapping[str, Column]
    sources: Sequence[Mapping[str, str]]
    tensor_ops: Mapping[str, Column]
    tensor_peaks_per_s: Mapping[str, Column]


class _Origin(NamedTuple):
    """Where the values of a column came from.

    Attributes:
        texts: The sources.
        which: The index of the source for each result, below 0 where it has no value; None where all have the first.
    """

    texts: tuple[str, ...]
    which: NDArray[np.int8] | None = None


def resolve_columns(stored: Mapping[str, Column], count: int) -> Columns:
    """Resolve counters of so many results.

    Args:
        stored: As for one result (`resolve`); all are finite.
        count: How many results there are.
    """
    plan = plan_for(tuple(stored))
    values: dict[str, Column] = {}
    ops: dict[str, Column] = {}
    peaks: dict[str, Column] = {}
    with np.errstate(all="ignore"):
        origins = _run(plan.counters, stored, values, values, count)
        _run(plan.tensor_ops, stored, values, ops, count)
        _run(plan.tensor_peaks_per_s, stored, values, peaks, count)
    return Columns(values, _sources(origins, count), ops, peaks)


def _run(
    steps: Iterable[Step | Reads],
    stored: Mapping[str, Column],
    resolved: Mapping[str, Column],
    found: dict[str, Column],
    count: int,
) -> dict[str, _Origin]:
    """Put the values of each step that works for any result into `found`; return where they came from."""
    origins: dict[str, _Origin] = {}
    for step in steps:
        if isinstance(step, Step):
            if (tried := _tried(step, stored, resolved, count)) is not None:
                found[step.name], origins[step.name] = tried
            continue
        rows = np.array(_picked(step, stored)) * _upright(step.factors) / _upright(step.divisors)
        if np.isfinite(rows).all():
            found.update(zip(step.sources, rows, strict=True))
            origins |= {name: _Origin((source,)) for name, source in step.sources.items()}
        else:
            origins |= _run(step.steps, stored, resolved, found, count)
    return origins


def _tried(
    step: Step, stored: Mapping[str, Column], resolved: Mapping[str, Column], count: int
) -> tuple[Column, _Origin] | None:
    """Try the ways of a step in turn, each for the results that had no value from those before."""
    texts = tuple(way.source for way in step.ways)
    values = np.full(count, nan)
    which = np.full(count, -1, np.int8)
    for number, way in enumerate(step.ways):
        column = np.broadcast_to(np.asarray(way.find(stored, resolved, np.where), np.float64), (count,))
        fits = (which < 0) & np.isfinite(column)
        if not number and fits.all():
            return column, _Origin(texts[:1])
        values[fits], which[fits] = column[fits], number
        if which.min() >= 0:
            break
    return (values, _Origin(texts, which)) if which.max() >= 0 else None


def _picked(step: Reads, stored: Mapping[str, Any]) -> Any:
    """Return a column for each quantity: `pick` takes columns as it takes single values."""
    return step.pick(stored)


def _upright(numbers: Sequence[float]) -> Column:
    return np.array(numbers).reshape(-1, 1)


def _sources(origins: Mapping[str, _Origin], count: int) -> list[Mapping[str, str]]:
    """Return where the values of each result came from."""
    mixed = [origin.which for origin in origins.values() if origin.which is not None]
    if not mixed:
        return [_chosen(origins, iter(()))] * count
    patterns, places = np.unique(np.stack(mixed), axis=1, return_inverse=True)
    made = [_chosen(origins, iter(pattern)) for pattern in patterns.T.tolist()]
    return [made[place] for place in places.ravel().tolist()]


def _chosen(origins: Mapping[str, _Origin], pattern: Iterator[int]) -> Mapping[str, str]:
    """Return where values came from, given the index of the source of each that has several."""
    numbers = {name: 0 if origin.which is None else next(pattern) for name, origin in origins.items()}
    sources = {name: origins[name].texts[number] for name, number in numbers.items() if number >= 0}
    return shared((*sources, *sources.values()))


def find_beyond(stored: Mapping[str, Column], columns: Columns, count: int) -> NDArray[np.bool_]:
    """Return which results hold a value that no GPU can reach (`rooflens.model.counters.plausible`)."""
    duration_ns = columns.values.get("duration_ns", np.full(count, nan))
    known_ns = np.where(np.isnan(duration_ns), inf, duration_ns)
    found = np.zeros(count, np.bool_)
    limits = [(stored[name], limit) for name, limit in limits_of_others(tuple(stored))]
    limits += _limited(columns.tensor_ops, OPERATIONS) + _limited(columns.tensor_peaks_per_s, PEAK)
    with np.errstate(all="ignore"):
        for name, values in columns.values.items():
            low, high, least, most_per_ns = ranges()[name]
            found |= is_beyond(values, low, high, least, most_per_ns * known_ns)
        for values, limit in limits:
            found |= is_beyond(values, limit.low, limit.high, limit.least)
    return found


def _limited(columns: Mapping[str, Column], limit: Limit) -> list[tuple[Column, Limit]]:
    return [(values, limit) for values in columns.values()]
