"""Resolve counters: find each quantity under whatever names a report stores it, and say which names those were.

Kernels of one report store the same names, and the names alone decide which recipes of the table can apply. So every
recipe is first written out as the ways in which it reads stored metrics, each with all the names it needs; for a set of
names the ways that can apply are chosen once (`plan_for`), and tried for every kernel.

The formulas are the same for the numbers of one result and for columns of many: NaN stands for what is not known, and
every condition goes through `choose`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import chain, groupby, product
from math import inf, isfinite, nan
from operator import itemgetter, mul, truediv
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

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
Numbers: TypeAlias = Mapping[str, Any]
"""Numbers of one result by name, or columns of many results."""
Choose: TypeAlias = Callable[[Any, Any, Any], Any]
"""Returns the second argument where the first is true, else the third."""
Find: TypeAlias = Callable[[Numbers, Numbers, Choose], Any]
"""Finds a value in the stored metrics and in the counters resolved so far; NaN where they give none."""


class Way(NamedTuple):
    """One way in which stored metrics give a quantity.

    Attributes:
        needs: Names that must be stored.
        find: Finds the value.
        source: The stored names or the formula.
        factors: Factor and divisor of the one stored value, where that is the whole formula; None otherwise.
    """

    needs: tuple[str, ...]
    find: Find
    source: str
    factors: tuple[float, float] | None = None


class Step(NamedTuple):
    """A quantity with the ways to find it, the most trusted first."""

    name: str
    ways: tuple[Way, ...]


class Reads(NamedTuple):
    """Neighbouring quantities that are one stored value each, as most are, and so are read together.

    Attributes:
        steps: The same quantities with all their ways, for when a value is missing.
        sources: The stored name by the name of the quantity.
        pick: Takes the stored values of all quantities.
        factors, divisors: What each value is multiplied with, and divided by.
    """

    steps: tuple[Step, ...]
    sources: Mapping[str, str]
    pick: Callable[[Values], tuple[float, ...]]
    factors: tuple[float, ...]
    divisors: tuple[float, ...]


class Plan(Struct, frozen=True):
    """How to resolve results that store one set of names.

    Attributes:
        counters: In the order of the table, as later rows use the clocks and the duration of earlier ones.
        tensor_ops: Tensor counters by base name without prefix; they use the resolved counters.
        tensor_peaks_per_s: The same for their peaks.
    """

    counters: tuple[Step | Reads, ...]
    tensor_ops: tuple[Step | Reads, ...]
    tensor_peaks_per_s: tuple[Step | Reads, ...]


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


def resolve(stored: Values, plan: Plan | None = None) -> Resolved:
    """Resolve counters of one profiled result.

    Args:
        stored: The report's metrics by name, numbers only, NaN left out, in base units.
        plan: How to; by default the plan for its names.
    """
    plan = plan or plan_for(tuple(stored))
    values: dict[str, float] = {}
    sources = _run(plan.counters, stored, values, values)
    ops: dict[str, float] = {}
    peaks: dict[str, float] = {}
    _run(plan.tensor_ops, stored, values, ops)
    _run(plan.tensor_peaks_per_s, stored, values, peaks)
    return Resolved(values, shared((*sources, *sources.values())), ops, peaks)


def choose_one(condition: bool, value: float, other: float) -> float:  # noqa: FBT001 - as numpy.where
    """Choose between two numbers (`Choose`)."""
    return value if condition else other


def _run(steps: Iterable[Step | Reads], stored: Values, resolved: Values, found: dict[str, float]) -> dict[str, str]:
    """Put the value of each step that works into `found`; return where it came from."""
    sources: dict[str, str] = {}
    for step in steps:
        if isinstance(step, Reads):
            values = [*map(truediv, map(mul, step.pick(stored), step.factors), step.divisors)]
            if isfinite(sum(values)):
                found.update(zip(step.sources, values, strict=True))
                sources.update(step.sources)
            else:
                sources.update(_run(step.steps, stored, resolved, found))
            continue
        for way in step.ways:
            value = way.find(stored, resolved, choose_one)
            if isfinite(value):
                found[step.name], sources[step.name] = value, way.source
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
    return Plan(*(_pruned(steps, stored) for steps in (counters, ops, peaks)))


def step_of(counter: Counter, ways: Iterable[Way]) -> Step:
    """Make the step of a counter. A clock of 0 Hz was not measured: nothing runs without a clock."""
    is_clock = counter.name.endswith("_clock_hz")
    return Step(counter.name, tuple(_unless_zero(way) if is_clock else way for way in ways))


def _unless_zero(way: Way) -> Way:
    find = way.find
    return way._replace(
        find=lambda stored, resolved, choose: _unless(find(stored, resolved, choose), 0, choose), factors=None
    )


def _unless(value: Any, unwanted: float, choose: Choose) -> Any:
    return choose(value != unwanted, value, nan)


def _positive(value: Any, choose: Choose) -> Any:
    return choose(value > 0, value, nan)


def _pruned(steps: Iterable[Step], stored: frozenset[str]) -> tuple[Step | Reads, ...]:
    kept = (Step(step.name, tuple(way for way in step.ways if stored.issuperset(way.needs))) for step in steps)
    return tuple(_gathered(step for step in kept if step.ways))


def _gathered(steps: Iterable[Step]) -> Iterator[Step | Reads]:
    """Join neighbouring steps whose first way is to read one value."""
    for is_plain, group in groupby(steps, key=lambda step: step.ways[0].factors is not None):
        alike = tuple(group)
        if is_plain and len(alike) > 1:
            ways = [step.ways[0] for step in alike]
            pick = itemgetter(*(way.needs[0] for way in ways))
            factors, divisors = zip(*(way.factors for way in ways if way.factors), strict=True)
            yield Reads(alike, {step.name: step.ways[0].source for step in alike}, pick, factors, divisors)
        else:
            yield from alike


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
            yield Way((), lambda _, resolved, choose: resolved.get(counter, nan), f"= {counter}")  # noqa: ARG005 - as all
        case MemoryBus() | HostLink():
            yield _memory_bus(recipe) if isinstance(recipe, MemoryBus) else _host_link(recipe)


def _duration_s(resolved: Numbers, choose: Choose) -> Any:
    return _unless(resolved.get("duration_ns", nan) / NS_PER_S, 0, choose)


def _read(name: str, scale: float = 1.0) -> Way:
    return Way((name,), lambda stored, *_: stored[name] * scale, name, (scale, 1.0))


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

    def find(stored: Numbers, resolved: Numbers, choose: Choose) -> Any:
        total: Any = 0.0
        for find_part in finds:
            total = total + find_part(stored, resolved, choose)
        return total * scale

    return Way(tuple(name for part in parts for name in part.needs), find, " + ".join(part.source for part in parts))


def _as_rate(name: str) -> Way:
    def find(stored: Numbers, resolved: Numbers, choose: Choose) -> Any:
        return stored[name] * _duration_s(resolved, choose)

    return Way((name,), find, f"{name} x t")


def _as_cycle_rate(name: str) -> Way:
    clock = _CLOCK_OF_UNIT.get(name.partition("__")[0], "")

    def find(stored: Numbers, resolved: Numbers, choose: Choose) -> Any:
        return stored[name] * resolved.get(clock, nan) * _duration_s(resolved, choose)

    return Way((name,), find, f"{name} x f x t")


_FORMS: tuple[tuple[str, Callable[[str], Way]], ...] = (
    (".sum", _read),
    (".sum.per_second", _as_rate),
    (".sum.per_cycle_elapsed", _as_cycle_rate),
    ("", _read),
)
"""Endings of an amount's names. Sums of Pascal, and of reports of 2018 and 2019, have no roll-up."""


def _over_time(name: str, source: str) -> Way:
    def find(stored: Numbers, resolved: Numbers, choose: Choose) -> Any:
        return stored[name] / _duration_s(resolved, choose)

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

    def find(stored: Numbers, _: Numbers, choose: Choose) -> Any:
        return stored[name] / _positive(stored[rate], choose) * scale

    return Way((name, rate), find, f"{name} / {rate}")


def _peak(recipe: Peak) -> Iterator[Way]:
    """Yield the ways to a peak rate in units per second; one that is not above 0 counts as missing."""
    base, clock, scale = recipe.base, recipe.clock, recipe.scale
    a_cycle, direct = f"{base}.sum.peak_sustained", f"{base}.sum.peak_sustained_elapsed.per_second"

    def from_cycle(stored: Numbers, resolved: Numbers, choose: Choose) -> Any:
        return _positive(stored[a_cycle] * resolved.get(clock, nan), choose) * scale

    yield Way((a_cycle,), from_cycle, f"{a_cycle} x f")
    yield Way((direct,), lambda stored, _, choose: _positive(stored[direct], choose) * scale, direct)
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

    def find(stored: Numbers, resolved: Numbers, choose: Choose) -> Any:
        share = choose(stored[pct] >= MIN_PCT_FOR_PEAK, stored[pct], nan) / 100
        return _positive(find_rate(stored, resolved, choose), choose) / share * scale

    return Way((pct, *rate.needs), find, f"{rate.source} / {pct}")


def _per_sm(recipe: PerSm) -> Way:
    units, clock = recipe.units_per_cycle, recipe.clock

    def find(_: Numbers, resolved: Numbers, __: Choose) -> Any:
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
    return Way((pct,), lambda stored, *_: stored[pct] / 100, pct, (1.0, 100.0))


def _of_active(pct: str) -> Way:
    def find(stored: Numbers, resolved: Numbers, choose: Choose) -> Any:
        return stored[pct] / 100 * _active_part(stored, resolved, choose)

    return Way((pct,), find, f"{pct} x active / elapsed cycles")


def _active_part(stored: Numbers, resolved: Numbers, choose: Choose) -> Any:
    """Return the fraction of the elapsed cycles in which the average SM was active, 0 to 1."""
    counted = _unless(stored.get("sm__cycles_elapsed.avg", nan), 0, choose)
    elapsed = resolved.get("sm_clock_hz", nan) * _duration_s(resolved, choose)
    elapsed = _unless(choose(counted == counted, counted, elapsed), 0, choose)  # noqa: PLR0124 - NaN differs from itself
    part = resolved.get("sm_cycles_active_avg", nan) / elapsed
    return choose(part > 1, 1.0, part)


def _memory_bus(recipe: MemoryBus) -> Way:
    def find(stored: Numbers, _: Numbers, choose: Choose) -> Any:
        clock_khz, pins = (_unless(stored[name], 0, choose) for name in (recipe.clock, recipe.pins))
        bytes_per_s = clock_khz * 1e3 * BITS_PER_PIN_AND_CYCLE * pins / BITS_PER_BYTE
        return choose(stored.get(recipe.shared, 0.0) == 0, bytes_per_s, nan)

    return Way((recipe.clock, recipe.pins), find, f"{recipe.clock} x 2 x {recipe.pins} / 8")


def _share_of_cycles(recipe: ShareOfCycles) -> Iterator[Way]:
    """Yield the ways to an amount as a per cent of one for every cycle."""
    for pct in _pcts(recipe.share, "elapsed"):
        yield _of_cycles(pct, f"{recipe.cycles}.sum", recipe.scale)


def _of_cycles(pct: str, cycles: str, scale: float) -> Way:
    return Way((pct, cycles), lambda stored, *_: stored[pct] / 100 * stored[cycles] * scale, f"{pct} x {cycles}")


def _host_link(recipe: HostLink) -> Way:
    def least(stored: Numbers, names: Sequence[str], choose: Choose) -> Any:
        """Return the lower of two attributes; what is 0 or missing is not known, and infinite."""
        first, second = (stored.get(name, nan) for name in names)
        first, second = choose(first > 0, first, inf), choose(second > 0, second, inf)
        return choose(first < second, first, second)

    def find(stored: Numbers, _: Numbers, choose: Choose) -> Any:
        rate, width = (least(stored, ends, choose) for ends in (recipe.names[:2], recipe.names[2:4]))
        is_c2c, is_shared = (stored.get(name, 0.0) == 1 for name in recipe.names[4:])
        pcie = rate * 1e6 * choose(rate > FASTEST_8B10B_MT_PER_S, 128 / 130, 8 / 10) * width / BITS_PER_BYTE
        link = choose(is_c2c, C2C_BYTES_PER_S, choose(pcie < inf, pcie, nan))
        return choose(is_shared, nan, link)

    return Way(recipe.names[:1], find, "rate x width of the PCIe link, or NVLink-C2C")
