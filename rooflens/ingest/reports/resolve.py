"""Resolve counters: find each quantity under whatever names a report stores it, and say which names those were.

Kernels of one report store the same names, and the names alone decide which recipes of the table can apply. So every
recipe is first written out as the ways in which it reads stored metrics, each with all the names it needs; for a set of
names the ways that can apply are chosen once (`plan_for`), and tried for every kernel.
NaN stands for what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import chain, product
from math import inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct

from rooflens.model.counters.recipes import (
    Amount,
    CyclesOverRate,
    CyclesOverTime,
    Exact,
    HostLink,
    MemoryBus,
    Peak,
    PerSm,
    RateOverShare,
    Same,
    Share,
    ShareOfCycles,
    bases_of,
)
from rooflens.model.counters.table import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from rooflens.model.counters.recipes import Counter, Recipe

NS_PER_S = 1e9
BITS_PER_BYTE = 8
BITS_PER_PIN_AND_CYCLE = 2
C2C_BYTES_PER_S = 450e9
"""NVLink-C2C in each direction: 900 GB/s both ways (NVIDIA GH200 datasheet, 2024; the same for GB200 and GB300)."""
FASTEST_8B10B_MT_PER_S = 5000
"""PCIe 1 and 2 send ten bits for eight; PCIe 3 to 5 send 130 for 128."""
MIN_PCT_FOR_PEAK = 0.01
"""A peak is derived from a percentage of it only from here on: below, too few events were counted for a quotient."""

_ROLLUPS = ("avg", "max", "sum")

_CLOCK_OF_UNIT = {
    "sm": "sm_clock_hz",
    "smsp": "sm_clock_hz",
    "l1tex": "l1_clock_hz",
    "lts": "l2_clock_hz",
    "dram": "dram_clock_hz",
}
_TENSOR = "sm__ops_path_tensor_"
_SETS_KEPT, _STEPS_KEPT = 256, 1 << 12
"""Sizes of the caches of plans by set of names, of which a report has a handful, and of steps that plans share."""

Values: TypeAlias = Mapping[str, float]
Find: TypeAlias = Callable[[Values, Values], float]
"""Finds a value in the stored metrics and in the counters resolved so far; NaN where they give none."""


class Way(NamedTuple):
    """One way in which stored metrics give a quantity.

    Attributes:
        needs: Names that must be stored.
        find: Finds the value.
        source: The stored names or the formula.
    """

    needs: tuple[str, ...]
    find: Find
    source: str


class Step(NamedTuple):
    """A quantity with the ways to find it, the most trusted first."""

    name: str
    ways: tuple[Way, ...]


Plan: TypeAlias = "tuple[tuple[Step, ...], tuple[Step, ...], tuple[Step, ...]]"
"""How to resolve results that store one set of names: counters, tensor operations by base name without prefix, and
their peaks. Counters are in the order of the table, as later rows use the clocks and the duration of earlier ones."""


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
    tensor_ops: dict[str, float]
    tensor_peaks_per_s: dict[str, float]


def resolve(stored: Values) -> Resolved:
    """Resolve counters of one profiled result.

    Args:
        stored: The report's metrics by name, numbers only, NaN left out, in base units.
    """
    counters, tensor_ops, tensor_peaks = plan_for(tuple(stored))
    values: dict[str, float] = {}
    sources = _run(counters, stored, values, values)
    ops: dict[str, float] = {}
    peaks: dict[str, float] = {}
    _run(tensor_ops, stored, values, ops)
    _run(tensor_peaks, stored, values, peaks)
    return Resolved(values, shared((*sources, *sources.values())), ops, peaks)


def _run(steps: Iterable[Step], stored: Values, resolved: Values, found: dict[str, float]) -> dict[str, str]:
    """Put the value of each step that works into `found`; return where it came from."""
    sources: dict[str, str] = {}
    for name, ways in steps:
        for way in ways:
            value = way.find(stored, resolved)
            if isfinite(value):
                found[name], sources[name] = value, way.source
                break
    return sources


@lru_cache(maxsize=_SETS_KEPT)
def shared(names_and_sources: tuple[str, ...]) -> dict[str, str]:
    """Share one mapping among all kernels whose counters have the same sources: it is larger than their values."""
    half = len(names_and_sources) // 2
    return dict(zip(names_and_sources[:half], names_and_sources[half:], strict=True))


@lru_cache(maxsize=_SETS_KEPT)
def plan_for(names: tuple[str, ...]) -> Plan:
    """Plan how to resolve results that store these names: keep the ways that need no other names."""
    stored = frozenset(names)
    by_base: dict[str, list[str]] = {}
    for name in names:
        by_base.setdefault(name.partition(".")[0], []).append(name)
    counters = (
        _step_among(place, tuple(chain.from_iterable(by_base[base] for base in wanted if base in by_base)))
        for place, wanted in enumerate(_bases_by_counter())
    )
    tensor = sorted(base for base in by_base if base.startswith(_TENSOR))
    ops = (Step(base.removeprefix(_TENSOR), tuple(_amount(Amount(((base,),)), stored))) for base in tensor)
    peaks = (Step(base.removeprefix(_TENSOR), tuple(_peak(Peak(base, "sm_clock_hz")))) for base in tensor)
    return _pruned(counters, stored), _pruned(ops, stored), _pruned(peaks, stored)


def step_of(counter: Counter, ways: Iterable[Way]) -> Step:
    """Make the step of a counter. A clock of 0 Hz was not measured: nothing runs without a clock."""
    is_clock = counter.name.endswith("_clock_hz")
    return Step(counter.name, tuple(_unless_zero(way) if is_clock else way for way in ways))


def _unless_zero(way: Way) -> Way:
    return way._replace(find=lambda stored, resolved: _unless(way.find(stored, resolved), 0))


def _unless(value: float, unwanted: float) -> float:
    return nan if value == unwanted else value


def _positive(value: float) -> float:
    return value if value > 0 else nan


def _pruned(steps: Iterable[Step], stored: frozenset[str]) -> tuple[Step, ...]:
    kept = (Step(step.name, tuple(way for way in step.ways if stored.issuperset(way.needs))) for step in steps)
    return tuple(step for step in kept if step.ways)


@cache
def _bases_by_counter() -> tuple[tuple[str, ...], ...]:
    """Return the base names that each counter can be found under, in the order of the table."""
    return tuple(
        tuple(dict.fromkeys(base for recipe in counter.recipes for base in bases_of(recipe))) for counter in COUNTERS
    )


@lru_cache(maxsize=_STEPS_KEPT)
def _step_among(place: int, names: tuple[str, ...]) -> Step:
    """Make the step of a counter, by its place in the table, if these of its metrics are stored."""
    counter, stored = COUNTERS[place], frozenset(names)
    ways = (way for recipe in counter.recipes for way in ways_of(recipe, stored))
    return step_of(counter, [way for way in ways if stored.issuperset(way.needs)])


def ways_of(recipe: Recipe, stored: Container[str]) -> Iterator[Way]:
    """Yield the ways of one recipe, without most of those that need a name which is not stored."""
    match recipe:
        case Exact(names=names, scale=scale):
            yield from (_read(name, scale) for name in names if name in stored)
        case Amount():
            yield from _amount(recipe, stored)
        case Peak():
            yield from _peak(recipe)
        case RateOverShare(rate=rate, share=share):
            yield from _over_share(rate, share)
        case PerSm():
            yield _per_sm(recipe)
        case Share() | ShareOfCycles():
            yield from _share(recipe) if isinstance(recipe, Share) else _share_of_cycles(recipe)
        case CyclesOverTime() | CyclesOverRate():
            yield from _cycles_over(recipe)
        case Same(counter=counter):
            yield Way((), lambda _, resolved: resolved.get(counter, nan), f"= {counter}")
        case MemoryBus() | HostLink():
            yield _memory_bus(recipe) if isinstance(recipe, MemoryBus) else _host_link(recipe)


def _duration_s(resolved: Values) -> float:
    return _unless(resolved.get("duration_ns", nan) / NS_PER_S, 0)


def _read(name: str, scale: float = 1.0) -> Way:
    return Way((name,), lambda stored, _: stored[name] * scale, name)


def _amount(recipe: Amount, stored: Container[str]) -> Iterator[Way]:
    """Yield the ways to one amount: all parts in one form, then each part in whatever form it has."""
    forms = {base: _forms(base, stored) for group in recipe.groups for base in group}
    for form in range(len(_FORMS)):
        for group in recipe.groups:
            if all(form in forms[base] for base in group):
                yield _added([forms[base][form] for base in group], recipe.scale)
    for group in recipe.groups:
        if len(group) > 1:
            for parts in product(*(forms[base].values() for base in group)):
                yield _added(parts, recipe.scale)


def _forms(base: str, stored: Container[str]) -> dict[int, Way]:
    """Return the ways to the amount of one base metric, by the place of its form among all of them."""
    names = ((i, f"{base}{ending}", make) for i, (ending, make) in enumerate(_FORMS))
    return {i: make(name) for i, name, make in names if name in stored}


def _added(parts: Sequence[Way], scale: float) -> Way:
    if len(parts) == 1 and parts[0].source == parts[0].needs[0]:
        return _read(parts[0].source, scale)
    finds = [part.find for part in parts]

    def find(stored: Values, resolved: Values) -> float:
        total = 0.0
        for find_part in finds:
            total = total + find_part(stored, resolved)
        return total * scale

    return Way(tuple(name for part in parts for name in part.needs), find, " + ".join(part.source for part in parts))


def _as_rate(name: str) -> Way:
    def find(stored: Values, resolved: Values) -> float:
        return stored[name] * _duration_s(resolved)

    return Way((name,), find, f"{name} x t")


def _as_cycle_rate(name: str) -> Way:
    clock = _CLOCK_OF_UNIT.get(name.partition("__")[0], "")

    def find(stored: Values, resolved: Values) -> float:
        return stored[name] * resolved.get(clock, nan) * _duration_s(resolved)

    return Way((name,), find, f"{name} x f x t")


_FORMS: tuple[tuple[str, Callable[[str], Way]], ...] = (
    (".sum", _read),
    (".sum.per_second", _as_rate),
    (".sum.per_cycle_elapsed", _as_cycle_rate),
    ("", _read),
)
"""Endings of an amount's names. Sums of Pascal, and of reports of 2018 and 2019, have no roll-up."""


def _over_time(name: str, source: str) -> Way:
    def find(stored: Values, resolved: Values) -> float:
        return stored[name] / _duration_s(resolved)

    return Way((name,), find, source)


def _cycles_over(recipe: CyclesOverTime | CyclesOverRate) -> Iterator[Way]:
    """Yield the ways from cycles to a clock, or to the time by a clock."""
    if isinstance(recipe, CyclesOverTime):
        yield from (_over_time(name, f"{name} / t") for name in recipe.names)
    else:
        names = (f"{base}.{rollup}" for base in recipe.bases for rollup in _ROLLUPS)
        yield from (_over_rate(name, recipe.scale) for name in names)


def _over_rate(name: str, scale: float) -> Way:
    rate = f"{name}.per_second"

    def find(stored: Values, _: Values) -> float:
        return stored[name] / _positive(stored[rate]) * scale

    return Way((name, rate), find, f"{name} / {rate}")


def _peak(recipe: Peak) -> Iterator[Way]:
    """Yield the ways to a peak rate in units per second; one that is not above 0 counts as missing."""
    base, clock, scale = recipe.base, recipe.clock, recipe.scale
    a_cycle, direct = f"{base}.sum.peak_sustained", f"{base}.sum.peak_sustained_elapsed.per_second"

    def from_cycle(stored: Values, resolved: Values) -> float:
        return _positive(stored[a_cycle] * resolved.get(clock, nan)) * scale

    yield Way((a_cycle,), from_cycle, f"{a_cycle} x f")
    yield Way((direct,), lambda stored, _: _positive(stored[direct]) * scale, direct)
    yield from _over_share(base, base, scale)


def _over_share(rate_base: str, share_base: str, scale: float = 1.0) -> Iterator[Way]:
    """Yield the ways to a peak as the achieved rate over its share of peak, best both from the same pass."""
    for pct in _pcts(share_base, "elapsed"):
        for rate in (
            _read(f"{rate_base}.sum.per_second"),
            _over_time(f"{rate_base}.sum", f"({rate_base}.sum / t)"),
        ):
            yield _divided(rate, pct, scale)


def _divided(rate: Way, pct: str, scale: float) -> Way:
    find_rate = rate.find

    def find(stored: Values, resolved: Values) -> float:
        share = (stored[pct] if stored[pct] >= MIN_PCT_FOR_PEAK else nan) / 100
        return _positive(find_rate(stored, resolved)) / share * scale

    return Way((pct, *rate.needs), find, f"{rate.source} / {pct}")


def _per_sm(recipe: PerSm) -> Way:
    units, clock = recipe.units_per_cycle, recipe.clock

    def find(_: Values, resolved: Values) -> float:
        return units * resolved.get("sm_count", nan) * resolved.get(clock, nan)

    return Way((), find, f"{units:g} per SM and cycle x SMs x f")


def _pcts(base: str, period: str) -> tuple[str, ...]:
    return tuple(f"{base}.{rollup}.pct_of_peak_sustained_{period}" for rollup in ("sum", "avg"))


def _share(recipe: Share) -> Iterator[Way]:
    """Yield the ways to a share of the peak over the elapsed time; those from the SMs' active cycles come last."""
    for base in recipe.bases:
        yield from (_hundredth(pct) for pct in _pcts(base, "elapsed"))
    for base in recipe.bases:
        if base.startswith(("sm__", "smsp__")):
            yield from (_of_active(pct) for pct in _pcts(base, "active"))


def _hundredth(pct: str) -> Way:
    return Way((pct,), lambda stored, _: stored[pct] / 100, pct)


def _of_active(pct: str) -> Way:
    def find(stored: Values, resolved: Values) -> float:
        return stored[pct] / 100 * _active_part(stored, resolved)

    return Way((pct,), find, f"{pct} x active / elapsed cycles")


def _active_part(stored: Values, resolved: Values) -> float:
    """Return the fraction of the elapsed cycles in which the average SM was active, 0 to 1."""
    counted = _unless(stored.get("sm__cycles_elapsed.avg", nan), 0)
    elapsed = resolved.get("sm_clock_hz", nan) * _duration_s(resolved)
    elapsed = _unless(elapsed if isnan(counted) else counted, 0)
    part = resolved.get("sm_cycles_active_avg", nan) / elapsed
    return 1.0 if part > 1 else part


def _memory_bus(recipe: MemoryBus) -> Way:
    def find(stored: Values, _: Values) -> float:
        clock_khz, pins = (_unless(stored[name], 0) for name in (recipe.clock, recipe.pins))
        bytes_per_s = clock_khz * 1e3 * BITS_PER_PIN_AND_CYCLE * pins / BITS_PER_BYTE
        return nan if stored.get(recipe.shared, 0.0) else bytes_per_s

    return Way((recipe.clock, recipe.pins), find, f"{recipe.clock} x 2 x {recipe.pins} / 8")


def _share_of_cycles(recipe: ShareOfCycles) -> Iterator[Way]:
    """Yield the ways to an amount as a per cent of one for every cycle."""
    for pct in _pcts(recipe.share, "elapsed"):
        yield _of_cycles(pct, f"{recipe.cycles}.sum", recipe.scale)


def _of_cycles(pct: str, cycles: str, scale: float) -> Way:
    return Way((pct, cycles), lambda stored, _: stored[pct] / 100 * stored[cycles] * scale, f"{pct} x {cycles}")


def _host_link(recipe: HostLink) -> Way:
    def least(stored: Values, names: Sequence[str]) -> float:
        """Return the lower of two attributes; what is 0 or missing is not known, and infinite."""
        return min((number for name in names if (number := stored.get(name, nan)) > 0), default=inf)

    def find(stored: Values, _: Values) -> float:
        is_c2c, is_shared = (stored.get(name, 0.0) == 1 for name in recipe.names[4:])
        if is_shared:
            return nan
        if is_c2c:
            return C2C_BYTES_PER_S
        rate, width = (least(stored, ends) for ends in (recipe.names[:2], recipe.names[2:4]))
        payload = 128 / 130 if rate > FASTEST_8B10B_MT_PER_S else 8 / 10
        pcie = rate * 1e6 * payload * width / BITS_PER_BYTE
        return pcie if pcie < inf else nan

    return Way(recipe.names[:1], find, "rate x width of the PCIe link, or NVLink-C2C")
