"""Resolve counters: find each quantity under whatever names a report stores it, and say which names those were."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rooflens.model.counters.recipes import (
    Amount,
    CyclesOverTime,
    Exact,
    MemoryBus,
    Peak,
    PerSm,
    RateOverShare,
    Same,
    Share,
)
from rooflens.model.counters.table import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflens.model.counters.recipes import Counter, Recipe

NS_PER_S = 1e9
BITS_PER_BYTE = 8
BITS_PER_PIN_AND_CYCLE = 2
MIN_PCT_FOR_PEAK = 0.01
"""A peak is divided out of a per cent of peak only above this: below, too few events were counted for a quotient."""

_CLOCK_OF_UNIT = {
    "sm": "sm_clock_hz",
    "smsp": "sm_clock_hz",
    "l1tex": "l1_clock_hz",
    "lts": "l2_clock_hz",
    "dram": "dram_clock_hz",
}

Found = tuple[float, str]
"""A value and the stored names or formula that gave it."""


@dataclass(slots=True)
class Resolver:
    """Resolve counters of one profiled result.

    Attributes:
        stored: The report's metrics by name, numbers only, NaN left out, in base units.
        values: Resolved so far, by counter name.
        sources: For each resolved counter, where it came from.
    """

    stored: Mapping[str, float]
    values: dict[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Resolve the whole table, in order: later rows use the clocks and the duration of earlier ones."""
        for counter in COUNTERS:
            found = self._first(counter)
            if found is not None:
                self.values[counter.name], self.sources[counter.name] = found

    def _first(self, counter: Counter) -> Found | None:
        for recipe in counter.recipes:
            found = self._try(recipe)
            if found is not None and math.isfinite(found[0]):
                return found
        return None

    def _try(self, recipe: Recipe) -> Found | None:
        find = _FINDERS[type(recipe)]
        return find(self, recipe)

    def _peak(self, recipe: Peak) -> Found | None:
        return self.peak_per_s(recipe.base, recipe.clock, recipe.scale)

    def _same(self, recipe: Same) -> Found | None:
        value = self.values.get(recipe.counter)
        return None if value is None else (value, f"= {recipe.counter}")

    @property
    def _duration_s(self) -> float | None:
        duration_ns = self.values.get("duration_ns")
        return duration_ns / NS_PER_S if duration_ns else None

    def _exact(self, recipe: Exact) -> Found | None:
        for name in recipe.names:
            if name in self.stored:
                return self.stored[name] * recipe.scale, name
        return None

    def _amount(self, recipe: Amount) -> Found | None:
        for form in (self._as_sum, self._as_rate, self._as_cycle_rate, self._as_bare, self._in_any_form):
            for group in recipe.groups:
                parts = [form(base) for base in group]
                known = [part for part in parts if part is not None]
                if len(known) == len(parts):
                    return sum(value for value, _ in known) * recipe.scale, " + ".join(source for _, source in known)
        return None

    def _in_any_form(self, base: str) -> Found | None:
        """Take one part in whatever form it has: the parts of a sum need not agree."""
        forms = (self._as_sum, self._as_rate, self._as_cycle_rate, self._as_bare)
        return next((found for form in forms if (found := form(base)) is not None), None)

    def amount(self, base: str) -> Found | None:
        """Find the amount of one base metric in any of its forms."""
        return self._amount(Amount(((base,),)))

    def _as_sum(self, base: str) -> Found | None:
        value = self.stored.get(f"{base}.sum")
        return None if value is None else (value, f"{base}.sum")

    def _as_rate(self, base: str) -> Found | None:
        rate, duration_s = self.stored.get(f"{base}.sum.per_second"), self._duration_s
        if rate is None or duration_s is None:
            return None
        return rate * duration_s, f"{base}.sum.per_second x t"

    def _as_bare(self, base: str) -> Found | None:
        """Read a name without roll-up: so Pascal and reports of 2018 and 2019 store sums."""
        value = self.stored.get(base)
        return None if value is None else (value, base)

    def _as_cycle_rate(self, base: str) -> Found | None:
        rate, duration_s = self.stored.get(f"{base}.sum.per_cycle_elapsed"), self._duration_s
        clock_hz = self.values.get(_CLOCK_OF_UNIT.get(base.partition("__")[0], ""))
        if rate is None or duration_s is None or clock_hz is None:
            return None
        return rate * clock_hz * duration_s, f"{base}.sum.per_cycle_elapsed x f x t"

    def peak_per_s(self, base: str, clock: str, scale: float = 1.0) -> Found | None:
        """Find the peak rate of a base metric, in units per second."""
        for name, value in self._peaks(base, clock):
            if value > 0:
                return value * scale, name
        return None

    def _peaks(self, base: str, clock: str) -> Iterator[tuple[str, float]]:
        clock_hz = self.values.get(clock)
        sustained = self.stored.get(f"{base}.sum.peak_sustained")
        if sustained is not None and clock_hz is not None:
            yield f"{base}.sum.peak_sustained x f", sustained * clock_hz
        direct = self.stored.get(f"{base}.sum.peak_sustained_elapsed.per_second")
        if direct is not None:
            yield f"{base}.sum.peak_sustained_elapsed.per_second", direct
        pct = self._pct(base, "elapsed")
        if pct is None or pct[0] < MIN_PCT_FOR_PEAK:
            return
        rate = self._rate(base)
        if rate is not None:
            yield f"{rate[1]} / {pct[1]}", rate[0] / (pct[0] / 100)

    def _rate(self, base: str) -> Found | None:
        """Find the achieved rate of a base metric in units per second, best of the same pass as its per cent."""
        if (rate := self.stored.get(f"{base}.sum.per_second")) is not None:
            return rate, f"{base}.sum.per_second"
        total, duration_s = self.stored.get(f"{base}.sum"), self._duration_s
        return None if total is None or duration_s is None else (total / duration_s, f"({base}.sum / t)")

    def _rate_over_share(self, recipe: RateOverShare) -> Found | None:
        rate, pct = self._rate(recipe.rate), self._pct(recipe.share, "elapsed")
        if rate is None or pct is None or pct[0] < MIN_PCT_FOR_PEAK or not rate[0]:
            return None
        return rate[0] / (pct[0] / 100), f"{rate[1]} / {pct[1]}"

    def _per_sm(self, recipe: PerSm) -> Found | None:
        sm_count, clock_hz = self.values.get("sm_count"), self.values.get(recipe.clock)
        if sm_count is None or clock_hz is None:
            return None
        return recipe.units_per_cycle * sm_count * clock_hz, f"{recipe.units_per_cycle:g} per SM and cycle x SMs x f"

    def _pct(self, base: str, period: str) -> Found | None:
        for rollup in ("sum", "avg"):
            name = f"{base}.{rollup}.pct_of_peak_sustained_{period}"
            if name in self.stored:
                return self.stored[name], name
        return None

    def _share(self, recipe: Share) -> Found | None:
        for base in recipe.bases:
            elapsed = self._pct(base, "elapsed")
            if elapsed is not None:
                return elapsed[0] / 100, elapsed[1]
        active_part = self._active_part()
        for base in recipe.bases:
            active = self._pct(base, "active") if base.startswith(("sm__", "smsp__")) else None
            if active is not None and active_part is not None:
                return active[0] / 100 * active_part, f"{active[1]} x active / elapsed cycles"
        return None

    def _active_part(self) -> float | None:
        """Fraction of the elapsed cycles in which the mean SM had work, 0 to 1."""
        active, clock_hz, duration_s = (
            self.values.get("sm_cycles_active_avg"),
            self.values.get("sm_clock_hz"),
            self._duration_s,
        )
        elapsed = self.stored.get("sm__cycles_elapsed.avg") or (
            clock_hz * duration_s if clock_hz and duration_s else None
        )
        return min(1.0, active / elapsed) if active is not None and elapsed else None

    def _cycles_over_time(self, recipe: CyclesOverTime) -> Found | None:
        duration_s = self._duration_s
        for name in recipe.names:
            if name in self.stored and duration_s:
                return self.stored[name] / duration_s, f"{name} / t"
        return None

    def _memory_bus(self, recipe: MemoryBus) -> Found | None:
        clock_khz, pins = self.stored.get(recipe.clock), self.stored.get(recipe.pins)
        if not clock_khz or not pins or self.stored.get(recipe.shared):
            return None
        per_s = clock_khz * 1e3 * BITS_PER_PIN_AND_CYCLE * pins / BITS_PER_BYTE
        return per_s, f"{recipe.clock} x 2 x {recipe.pins} / 8"


_FINDERS: dict[type[Any], Callable[[Resolver, Any], Found | None]] = {
    Exact: Resolver._exact,
    Amount: Resolver._amount,
    Peak: Resolver._peak,
    RateOverShare: Resolver._rate_over_share,
    PerSm: Resolver._per_sm,
    Share: Resolver._share,
    CyclesOverTime: Resolver._cycles_over_time,
    Same: Resolver._same,
    MemoryBus: Resolver._memory_bus,
}
