"""Recipes: the ways in which a stored metric, or several, give a quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Exact:
    """Take the first of the stored metrics, times `scale`."""

    names: tuple[str, ...]
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Amount:
    """Add up the amounts of one group of base metrics, times `scale`.

    For each form (`.sum`, `.sum.per_second x t`, `.sum.per_cycle_elapsed x f x t`, bare name) the groups are tried in
    order.
    """

    groups: tuple[tuple[str, ...], ...]
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Peak:
    """Find the peak rate of a base metric in units per second, times `scale`.

    Forms: `.sum.peak_sustained x f`, `.sum.peak_sustained_elapsed.per_second`, then achieved rate / per cent of peak.
    """

    base: str
    clock: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class RateOverShare:
    """Divide the achieved rate of one base metric by the stored per cent of peak of another that sees the same flow."""

    rate: str
    share: str


@dataclass(frozen=True, slots=True)
class PerSm:
    """Use an architecture constant: units per SM and cycle x SM count x the clock named."""

    units_per_cycle: float
    clock: str


@dataclass(frozen=True, slots=True)
class Share:
    """Read a stored per cent of peak as a fraction; per cents of active cycles are scaled to elapsed ones."""

    bases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CyclesOverTime:
    """Divide a stored count of elapsed cycles by the duration."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Same:
    """Take another counter's value: two clocks that were equal wherever both were stored."""

    counter: str


Recipe: TypeAlias = Exact | Amount | Peak | RateOverShare | PerSm | Share | CyclesOverTime | Same
