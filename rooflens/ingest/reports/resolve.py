"""Resolve counters: find each quantity under the names that a report stores, and note these names.

Kernels of a report store the same names, and the names alone decide which recipes of the table apply. So each recipe is
first expanded into all ways to compute its quantity, each with the names that it needs. The ways that apply to a set of
names are chosen once (`plan_for`) and tried for every kernel. NaN means unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from itertools import chain, product
from math import ceil, inf, isfinite, isnan, nan
from operator import add
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from rooflens.model.counters.families import (
    CLOCK_OF_UNIT,
    INSTANCES_PER_SM,
    OF_ACTIVE,
    SM_CYCLES,
    in_sectors,
    spellings,
    unit_of,
)
from rooflens.model.counters.recipes import (
    Amount,
    BusAtClock,
    CyclesOverClock,
    CyclesOverRate,
    CyclesOverTime,
    Exact,
    HostLink,
    Mean,
    MemoryBus,
    OverOwnRate,
    Peak,
    PerSm,
    Quotient,
    RateOverShare,
    Recipe,
    Same,
    Share,
    ShareOfCycles,
    SumOverRate,
    Waves,
    WhileActive,
)
from rooflens.model.counters.table import COUNTERS
from rooflens.model.records import NO_VALUES, held_numbers, held_once

NS_PER_S = 1e9
BITS_PER_BYTE = 8
BITS_PER_PIN_AND_CYCLE = 2
C2C_BYTES_PER_S = 450e9
"""NVLink-C2C in each direction: 900 GB/s both ways (NVIDIA GH200 datasheet, 2024; the same for GB200 and GB300)."""
FASTEST_8B10B_MT_PER_S = 5000
"""PCIe 1 and 2 send ten bits for every eight; PCIe 3 to 5 send 130 for every 128."""
MIN_PCT_FOR_PEAK = 0.01
"""Smallest percentage from which a peak is derived: below it, too few events were counted for a quotient."""

_PERCENT = 0.01
_ROLLUPS = ("avg", "max", "sum")
_TENSOR = "sm__ops_path_tensor_"
_SETS_KEPT = 256
"""Plans cached by set of names; a report has only a handful of sets."""

Values: TypeAlias = Mapping[str, float]


class Way(NamedTuple):
    """One way to compute a quantity from stored metrics.

    Attributes:
        needs: Names that must be stored.
        form: How to compute it: a key of `_FORMULAS`.
        source: The stored names, or the formula in words.
        by: The counter (such as a clock) or attributes that the formula needs as well.
        parts: The ways that a sum adds up, or whose rate is divided by a share.
    """

    needs: tuple[str, ...]
    form: str
    source: str
    scale: float = 1.0
    by: tuple[str, ...] = ()
    parts: tuple[Way, ...] = ()

    def value(self, stored: Values, resolved: Values) -> float:
        """Compute the value from stored metrics and the counters resolved so far; NaN if they do not suffice."""
        return _FORMULAS[self.form](self, stored, resolved)


_FORMULAS: Mapping[str, Callable[[Way, Values, Values], float]] = {
    "read": lambda way, stored, _: stored[way.needs[0]] * way.scale,
    "share": lambda way, stored, _: stored[way.needs[0]] / 100,
    "share of cycles": lambda way, stored, _: stored[way.needs[0]] / 100 * stored[way.needs[1]] * way.scale,
    "rate": lambda way, stored, known: stored[way.needs[0]] * _duration_s(known),
    "cycle rate": lambda way, stored, known: stored[way.needs[0]] * known.get(way.by[0], nan) * _duration_s(known),
    "of cycles": lambda way, stored, _: stored[way.needs[0]] * _positive(stored[way.needs[1]]),
    "of all SMs": lambda way, stored, known: (
        way.parts[0].value(stored, known) * way.scale * _positive(known.get("sm_count", nan))
    ),
    "of one SM": lambda way, stored, known: (
        way.parts[0].value(stored, known) / (way.scale * _positive(known.get("sm_count", nan)))
    ),
    "of all instances": lambda way, stored, known: (
        way.parts[0].value(stored, known) * stored[way.needs[-2]] / _positive(stored[way.needs[-1]])
    ),
    "scaled": lambda way, stored, known: way.parts[0].value(stored, known) * way.scale,
    "over time": lambda way, stored, known: stored[way.needs[0]] / _duration_s(known),
    "over": lambda way, stored, _: stored[way.needs[0]] / _positive(stored[way.needs[1]]) * way.scale,
    "over share": lambda way, stored, known: (
        _positive(way.parts[0].value(stored, known))
        / (_at_least(stored[way.needs[0]], MIN_PCT_FOR_PEAK) / 100)
        * way.scale
    ),
    "sum": lambda way, stored, known: reduce(add, (part.value(stored, known) for part in way.parts), 0.0) * way.scale,
    "peak": lambda way, stored, _: _positive(stored[way.needs[0]]) * way.scale,
    "peak a cycle": lambda way, stored, known: _positive(stored[way.needs[0]] * known.get(way.by[0], nan)) * way.scale,
    "per SM": lambda way, _, known: way.scale * known.get("sm_count", nan) * known.get(way.by[0], nan),
    "same": lambda way, _, known: known.get(way.by[0], nan),
    "memory bus": lambda way, stored, _: _memory_bus_bytes_per_s(stored, *way.needs, *way.by),
    "bus at clock": lambda way, stored, known: (
        nan if stored.get(way.by[1], 0.0) else known.get(way.by[0], nan) * _bytes_a_cycle(stored[way.needs[0]])
    ),
    "while active": lambda way, stored, known: stored[way.needs[0]] * way.scale * _active_part(stored, known),
    "own while active": lambda way, stored, _: (
        stored[way.needs[0]] * way.scale * stored[way.needs[1]] / _positive(stored[way.needs[2]])
    ),
    "sum over rate": lambda way, stored, _: (
        sum(stored[name] for name in way.needs[:-1]) / _positive(stored[way.needs[-1]]) * way.scale
    ),
    "waves": lambda way, stored, known: _waves(stored, known, *way.by),
    "host link": lambda way, stored, _: _host_link_bytes_per_s(stored, way.by),
}
"""Form -> function that computes a way's value from stored metrics and the counters resolved so far."""


def _positive(value: float) -> float:
    return value if value > 0 else nan


def _at_least(value: float, least: float) -> float:
    return value if value >= least else nan


def _duration_s(resolved: Values) -> float:
    return resolved.get("duration_ns", nan) / NS_PER_S or nan


def _active_part(stored: Values, resolved: Values) -> float:
    """Return the fraction of elapsed cycles in which the average SM was active, 0 to 1."""
    counted = stored.get("sm__cycles_elapsed.avg", nan) or nan
    elapsed = resolved.get("sm_clock_hz", nan) * _duration_s(resolved) if isnan(counted) else counted
    if isnan(elapsed):
        elapsed = resolved.get("elapsed_cycles", nan)
    part = resolved.get("sm_cycles_active_avg", nan) / (elapsed or nan)
    return 1.0 if part > 1 else part


def _memory_bus_bytes_per_s(stored: Values, clock: str, pins: str, integrated: str) -> float:
    if stored.get(integrated, 0.0):
        return nan
    return (stored[clock] or nan) * 1e3 * _bytes_a_cycle(stored[pins])


def _bytes_a_cycle(pins: float) -> float:
    """Return what a memory bus carries a cycle of its clock."""
    return BITS_PER_PIN_AND_CYCLE * (pins or nan) / BITS_PER_BYTE


_BLOCK_LIMITS = tuple(f"blocks_limit_{resource}" for resource in ("registers", "smem", "blocks"))
_THREADS_OF_A_WARP = 32


def _waves(stored: Values, resolved: Values, clusters: str, sm_warps: str) -> float:
    """Return the grid's blocks over the blocks that all SMs hold at once; NaN if a limit of an SM is unknown."""
    if stored.get(clusters, 0.0) > 1:
        return nan
    by_warps = resolved.get("blocks_limit_warps", nan)
    if isnan(by_warps):
        warps_a_block = ceil(resolved.get("block_size", 0.0) / _THREADS_OF_A_WARP)
        by_warps = stored.get(sm_warps, nan) // (warps_a_block or nan)
    limits = [by_warps, *(resolved.get(name, nan) for name in _BLOCK_LIMITS)]
    held = nan if any(map(isnan, limits)) else min(*limits, resolved.get("blocks_limit_barriers", inf))
    return resolved.get("grid_size", nan) / _positive(held * resolved.get("sm_count", nan))


def _host_link_bytes_per_s(stored: Values, names: tuple[str, ...]) -> float:
    """Compute the rate that `HostLink` describes; NaN if the link is unknown, or the memory is shared."""
    is_c2c, is_shared = (stored.get(name, 0.0) == 1 for name in names[4:])
    if is_shared:
        return nan
    if is_c2c:
        return C2C_BYTES_PER_S
    # The slower end of a link counts; 0 and missing mean unknown, so they count as infinite.
    rate, width = (
        min((number for name in ends if (number := stored.get(name, nan)) > 0), default=inf)
        for ends in (names[:2], names[2:4])
    )
    payload = 128 / 130 if rate > FASTEST_8B10B_MT_PER_S else 8 / 10
    pcie = rate * 1e6 * payload * width / BITS_PER_BYTE
    return pcie if pcie < inf else nan


class QuantityWays(NamedTuple):
    """A quantity with the ways to compute it, most trusted first."""

    name: str
    ways: tuple[Way, ...]


Plan: TypeAlias = "tuple[tuple[QuantityWays, ...], tuple[QuantityWays, ...], tuple[QuantityWays, ...]]"
"""How to resolve results that store a set of names: steps for counters, for tensor operations by base name without
prefix, and for their peaks. Counters keep the table's order, as later rows use the clocks and the duration of earlier
rows."""


class Resolved(Struct, frozen=True):
    """The quantities of one profiled result.

    Attributes:
        values: By counter name.
        sources: The stored name or the formula of each resolved counter.
        tensor_ops: Operations, by base name of a tensor counter without prefix and roll-up.
        tensor_peaks_per_s: Their peaks, in operations per second.
    """

    values: dict[str, float]
    sources: dict[str, str]
    tensor_ops: Mapping[str, float]
    tensor_peaks_per_s: Mapping[str, float]


def resolve(stored: Values) -> Resolved:
    """Resolve counters of one profiled result.

    Args:
        stored: The report's metrics by name, numbers only, NaN left out, in base units.
    """
    counters, tensor_ops, tensor_peaks = plan_for(tuple(stored))
    values: dict[str, float] = {}
    sources = _run_steps(counters, stored, values, values)
    ops: dict[str, float] = {}
    peaks: dict[str, float] = {}
    _run_steps(tensor_ops, stored, values, ops)
    _run_steps(tensor_peaks, stored, values, peaks)
    return Resolved(values, shared((*sources, *sources.values())), ops or NO_VALUES, peaks or NO_VALUES)


def _run_steps(
    steps: Iterable[QuantityWays], stored: Values, resolved: Values, values: dict[str, float]
) -> dict[str, str]:
    """Put the value of each step that works into `values`; return the values' sources.

    A clock of 0 Hz was not measured: nothing runs without a clock.
    """
    sources: dict[str, str] = {}
    hold = held_numbers()
    for name, ways in steps:
        for way in ways:
            value = _FORMULAS[way.form](way, stored, resolved)
            # NaN, as from a missing duration, lets the next way try.
            if isfinite(value) and (value or not name.endswith("_clock_hz")):
                values[name] = hold(value, value) if value.__class__ is float else held_once(value)
                sources[name] = way.source
                break
    return sources


@lru_cache(maxsize=_SETS_KEPT)
def shared(names_and_sources: tuple[str, ...]) -> dict[str, str]:
    """Share one mapping among all kernels whose counters have equal sources: it is larger than their values."""
    half = len(names_and_sources) // 2
    return dict(zip(names_and_sources[:half], names_and_sources[half:], strict=True))


@lru_cache(maxsize=_SETS_KEPT)
def plan_for(names: tuple[str, ...]) -> Plan:
    """Plan how to resolve results that store these names: keep the ways that need no other name."""
    stored = frozenset(names)
    # Each chip adds tensor counters, so their names come from the report, not from a table.
    bases = sorted({base for name in names if (base := name.partition(".")[0]).startswith(_TENSOR)})
    return (
        _resolving_steps([(counter.name, counter.recipes) for counter in COUNTERS], stored),
        _resolving_steps([(base.removeprefix(_TENSOR), (Amount(((base,),)),)) for base in bases], stored),
        _resolving_steps([(base.removeprefix(_TENSOR), (Peak(base, "sm_clock_hz"),)) for base in bases], stored),
    )


def _resolving_steps(
    quantities: Iterable[tuple[str, Iterable[Recipe]]], stored: frozenset[str]
) -> tuple[QuantityWays, ...]:
    steps = []
    for name, recipes in quantities:
        ways = (way for recipe in recipes for way in ways_of(recipe, stored))
        if kept := tuple(way for way in ways if stored.issuperset(way.needs)):
            steps.append(QuantityWays(name, kept))
    return tuple(steps)


def ways_of(recipe: Recipe, stored: Container[str]) -> Iterator[Way]:
    """Yield the ways of a recipe, skipping most that need a missing name."""
    match recipe:
        case Exact(names=names, scale=scale, above_zero=above_zero):
            form = "peak" if above_zero else "read"
            yield from (Way((name,), form, name, scale) for name in names if name in stored)
        case Amount():
            yield from _ways_to_amount(recipe, stored)
        case Peak():
            yield from _ways_to_peak(recipe)
        case RateOverShare(rate=rate, share=share):
            yield from _ways_over_share(rate, share)
        case PerSm() | Same() | MemoryBus() | BusAtClock() | HostLink():
            yield from _ways_by_chip(recipe)
        case Mean(base=base):
            yield Way((f"{base}.avg",), "read", f"{base}.avg")
            yield from _ways_to_mean(base)
        case OverOwnRate() | SumOverRate() | WhileActive() | Waves():
            yield from _ways_by_rate(recipe, stored)
        case Share(bases=bases, as_is=as_is):
            yield from _ways_to_share(bases, as_is=as_is)
        case _:
            yield from _ways_by_cycles(recipe)


def _ways_to_peak(recipe: Peak) -> Iterator[Way]:
    """Yield the ways to a peak: those of the metric itself, then those of its twin unit, which has the same."""
    scale = recipe.scale
    names = spellings(recipe.base)
    for base in names:
        a_cycle, direct = f"{base}.sum.peak_sustained", f"{base}.sum.peak_sustained_elapsed.per_second"
        yield Way((a_cycle,), "peak a cycle", f"{a_cycle} x f", scale, (recipe.clock,))
        yield Way((direct,), "peak", direct, scale)
        yield from _ways_over_share(base, base, scale)
    for base in names:
        whole, mean = f"{base}.sum.peak_sustained_elapsed", f"{base}.avg.peak_sustained"
        over_time = Way((whole,), "over time", f"{whole} / t")
        yield Way((whole,), "scaled", over_time.source, scale, parts=(over_time,))
        of_one = Way((mean,), "peak a cycle", f"{mean} x f", scale, (recipe.clock,))
        yield from _of_all_instances(of_one, unit_of(base))


def _of_all_instances(mean: Way, unit: str) -> Iterator[Way]:
    """Yield the recipes that scale a value of one unit instance to the sum over all instances."""
    if unit in INSTANCES_PER_SM:
        an_sm = INSTANCES_PER_SM[unit]
        times = " x SMs" if an_sm == 1 else f" x {an_sm:g} x SMs"
        yield Way(mean.needs, "of all SMs", f"{mean.source}{times}", an_sm, parts=(mean,))
        return
    for cycles in (f"{unit}__cycles_elapsed", f"{unit}__cycles_active"):
        needs, ratio = (*mean.needs, f"{cycles}.sum", f"{cycles}.avg"), f"{cycles}.sum / {cycles}.avg"
        yield Way(needs, "of all instances", f"{mean.source} x {ratio}", parts=(mean,))


def _ways_to_mean(base: str) -> Iterator[Way]:
    unit = unit_of(base)
    if unit in INSTANCES_PER_SM:
        whole = Way((f"{base}.sum",), "read", f"{base}.sum")
        an_sm = INSTANCES_PER_SM[unit]
        yield Way(whole.needs, "of one SM", f"{whole.source} / ({an_sm:g} x SMs)", an_sm, parts=(whole,))


def _ways_by_chip(recipe: PerSm | Same | MemoryBus | BusAtClock | HostLink) -> Iterator[Way]:
    match recipe:
        case PerSm(units_per_cycle=units, clock=clock):
            yield Way((), "per SM", f"{units:g} per SM and cycle x SMs x f", units, (clock,))
        case Same(counter=counter):
            yield Way((), "same", f"= {counter}", by=(counter,))
        case MemoryBus(clock=clock, pins=pins, shared=integrated):
            yield Way((clock, pins), "memory bus", f"{clock} x 2 x {pins} / 8", by=(integrated,))
        case BusAtClock(clock=clock, pins=pins, shared=integrated):
            yield Way((pins,), "bus at clock", f"{pins} x 2 / 8 x f", by=(clock, integrated))
        case HostLink(names=names):
            yield Way(names[:1], "host link", "rate x width of the PCIe link, or NVLink-C2C", by=names)


def _ways_by_rate(recipe: OverOwnRate | SumOverRate | WhileActive | Waves, stored: Container[str]) -> Iterator[Way]:
    """Yield the ways that use amounts with their rates, rates per cycle, and limits of a launch."""
    match recipe:
        case OverOwnRate(scale=scale):
            rates = (name for name in stored if name.endswith(_PER_SECOND)) if isinstance(stored, frozenset) else ()
            for rate in sorted(rates):
                amount = rate.removesuffix(_PER_SECOND)
                yield Way((amount, rate), "over", f"{amount} / {rate}", scale)
        case SumOverRate(names=(*parts, rate) as names, scale=scale):
            yield Way(names, "sum over rate", f"({' + '.join(parts)}) / {rate}", scale)
        case WhileActive(names=names, scale=scale):
            for name in names:
                yield from _ways_while_active(name, scale)
        case Waves(names=names):
            yield Way((), "waves", "launch__grid_size / (SMs x blocks an SM holds)", by=names)


_PER_SECOND = ".per_second"


def _ways_to_share(bases: Iterable[str], *, as_is: bool) -> Iterator[Way]:
    """Yield the ways that use percentages of a period; percentages of active cycles come last."""
    names = [name for base in bases for name in spellings(base)]
    yield from (Way((pct,), "share", pct) for name in names for pct in _pcts(name, "elapsed"))
    # Active cycles of SMs are known more often than those of their sub-partitions.
    for name in sorted(names, key=lambda name: name.startswith("smsp__")):
        for pct in _pcts(name, "active"):
            yield from _ways_while_active(pct, _PERCENT)
    for name in names if as_is else ():
        yield from (Way((pct,), "share", f"{pct}{OF_ACTIVE}") for pct in _pcts(name, "active"))


def _ways_while_active(name: str, scale: float) -> Iterator[Way]:
    """Yield the ways that scale a rate or percentage of active cycles: by the unit's own cycles, else by the SMs'.

    The unit's own cycles are exact. By the SMs' the result is too high if a sub-partition idles while its SM works.
    """
    unit, times = name.partition("__")[0], "" if scale == _PERCENT else f" x {scale:g}"
    active, elapsed = f"{unit}__cycles_active.avg", f"{unit}__cycles_elapsed.avg"
    yield Way((name, active, elapsed), "own while active", f"{name}{times} x {active} / {elapsed}", scale)
    if unit in _IN_SMS:
        yield Way((name,), "while active", f"{name}{times} x active / elapsed cycles", scale)


def _ways_by_cycles(
    recipe: ShareOfCycles | CyclesOverTime | CyclesOverRate | CyclesOverClock | Quotient,
) -> Iterator[Way]:
    match recipe:
        case ShareOfCycles(share=share, cycles=cycles, scale=scale):
            for pct in _pcts(share, "elapsed"):
                yield Way((pct, f"{cycles}.sum"), "share of cycles", f"{pct} x {cycles}.sum", scale)
        case CyclesOverTime(names=names):
            yield from (Way((name,), "over time", f"{name} / t") for name in names)
        case CyclesOverRate(bases=bases, scale=scale):
            for name in (f"{base}.{rollup}" for base in bases for rollup in _ROLLUPS):
                yield Way((name, f"{name}.per_second"), "over", f"{name} / {name}.per_second", scale)
        case CyclesOverClock(cycles=cycles, clocks=clocks, scale=scale):
            for name, rate in product(cycles, clocks):
                yield Way((name, rate), "over", f"{name} / {rate}", scale)
        case Quotient(part=part, whole=whole, scale=scale):
            yield Way((part, whole), "over", f"{part} / {whole}", scale)


_IN_SMS = frozenset({"sm", "smsp", "l1tex"})
"""Units that are active whenever their SM is."""


def _forms_of(base: str) -> Iterator[tuple[Way, ...]]:
    """Yield the ways to an amount by the forms of one metric, the most exact form first.

    Pascal and reports of 2018 and 2019 have names without endings.
    """
    unit = unit_of(base)
    clock = (CLOCK_OF_UNIT.get(unit, ""),)
    yield (Way((f"{base}.sum",), "read", f"{base}.sum"),)
    yield (Way((f"{base}.sum.per_second",), "rate", f"{base}.sum.per_second x t"),)
    a_cycle = f"{base}.sum.per_cycle_elapsed"
    yield (Way((a_cycle,), "cycle rate", f"{a_cycle} x f x t", by=clock),)
    yield (Way((base,), "read", base),)
    yield tuple(_of_cycles(a_cycle, unit))
    mean, mean_a_cycle = f"{base}.avg", f"{base}.avg.per_cycle_elapsed"
    for ways in (
        (Way((mean,), "read", mean),),
        (Way((f"{mean}.per_second",), "rate", f"{mean}.per_second x t"),),
        (Way((mean_a_cycle,), "cycle rate", f"{mean_a_cycle} x f x t", by=clock),),
        _of_cycles(mean_a_cycle, unit),
    ):
        yield tuple(one for way in ways for one in _of_all_instances(way, unit))


def _of_cycles(name: str, unit: str) -> Iterator[Way]:
    """Yield the ways from a rate per cycle by the unit's own count of cycles."""
    for counting in SM_CYCLES if unit in INSTANCES_PER_SM else (unit,):
        for cycles in (f"{counting}__cycles_elapsed.{rollup}" for rollup in ("max", "avg")):
            yield Way((name, cycles), "of cycles", f"{name} x {cycles}")


_READ_AND_WRITTEN = 2
"""Parts of a sum that may be in different forms: of more, the ways to choose would run into thousands."""


def _ways_to_amount(recipe: Amount, stored: Container[str]) -> Iterator[Way]:
    """Yield the ways to compute an amount: all parts in the same form, then each of two in any form.

    A metric, and its twin of another unit, go before what counts sectors for bytes.
    """
    bases = dict.fromkeys(chain.from_iterable(recipe.groups))
    own = {base: _stored_forms(spellings(base), 1.0, stored) for base in bases}
    counted = {base: other for base in bases if (other := in_sectors(base))}
    others = {base: _stored_forms(spellings(name), scale, stored) for base, (name, scale) in counted.items()}
    for forms in (own, others):
        for form in range(max(map(len, forms.values()), default=0)):
            for group in recipe.groups:
                if all(base in forms for base in group):
                    yield from _summed_ways(product(*(forms[base][form] for base in group)), recipe.scale)
    anyhow = {base: [way for forms in (own, others) for form in forms.get(base, ()) for way in form] for base in bases}
    for group in recipe.groups:
        if len(group) == _READ_AND_WRITTEN:
            yield from _summed_ways(product(*(anyhow[base] for base in group)), recipe.scale)


def _stored_forms(names: Iterable[str], scale: float, stored: Container[str]) -> list[list[Way]]:
    """List by form the ways of some names that may be tried."""
    forms = zip(*map(_forms_of, names), strict=True)
    kept = [[way for ways in form for way in ways if all(need in stored for need in way.needs)] for form in forms]
    if scale == 1:
        return kept
    return [[Way(way.needs, "scaled", way.source, scale, (), (way,)) for way in form] for form in kept]


def _summed_ways(choices: Iterable[tuple[Way, ...]], scale: float) -> Iterator[Way]:
    for parts in choices:
        needs, source = tuple(name for part in parts for name in part.needs), " + ".join(part.source for part in parts)
        is_plain = len(parts) == 1 and parts[0].form == "read"
        yield Way(needs, "read", source, scale) if is_plain else Way(needs, "sum", source, scale, (), parts)


def _ways_over_share(rate_base: str, share_base: str, scale: float = 1.0) -> Iterator[Way]:
    """Yield the ways to compute a peak as achieved rate over its share of peak, preferably of the same pass."""
    rate, amount = f"{rate_base}.sum.per_second", f"{rate_base}.sum"
    for pct in _pcts(share_base, "elapsed"):
        yield Way((pct, rate), "over share", f"{rate} / {pct}", scale, parts=(Way((rate,), "read", rate),))
        over_time = Way((amount,), "over time", f"({amount} / t)")
        yield Way((pct, amount), "over share", f"{over_time.source} / {pct}", scale, parts=(over_time,))


def _pcts(base: str, period: str) -> tuple[str, ...]:
    return tuple(f"{base}.{rollup}.pct_of_peak_sustained_{period}" for rollup in ("sum", "avg"))
