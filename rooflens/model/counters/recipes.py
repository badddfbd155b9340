"""Recipes: the ways in which a stored metric, or several, give a quantity; and the rows that are made of them."""

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


@dataclass(frozen=True, slots=True)
class Counter:
    """One resolved quantity: a column of the table `kernels`."""

    name: str
    meaning: str
    recipes: tuple[Recipe, ...]


def exact(name: str, meaning: str, *stored: str, scale: float = 1.0) -> Counter:
    """Make a row of metrics that are taken as they are."""
    return Counter(name, meaning, (Exact(stored, scale),))


def amount(name: str, meaning: str, *bases: str, scale: float = 1.0) -> Counter:
    """Make a row of amounts; the bases are tried in order."""
    return Counter(name, meaning, (Amount(tuple((base,) for base in bases), scale),))


def share(name: str, meaning: str, *bases: str) -> Counter:
    """Make a row of per cents of peak; the bases are tried in order."""
    return Counter(name, meaning, (Share(bases),))


def sass_rows(letter: str, dtype: str) -> tuple[Counter, ...]:
    """Make the rows of one precision: thread instructions add, mul, fma, and the peak rate of fma."""
    base = "smsp__sass_thread_inst_executed_op_{}_pred_on"
    rows = [
        amount(f"{letter}{op}_threads", f"predicated-on {dtype} {op} thread instructions", base.format(f"{letter}{op}"))
        for op in ("add", "mul", "fma")
    ]
    fma = base.format(f"{letter}fma").removeprefix("smsp")
    peaks = (Peak(f"sm{fma}", "sm_clock_hz"), Peak(f"smsp{fma}", "sm_clock_hz"))
    return (*rows, Counter(f"{letter}fma_peak_threads_per_s", f"peak rate of {dtype} fma thread instructions", peaks))


def pipe_rows(pipe: str, meaning: str) -> tuple[Counter, ...]:
    """Make the rows of one instruction pipe: warp instructions, their peak rate, and the busiest share of it."""
    base = f"sm__inst_executed_pipe_{pipe}"
    return (
        amount(f"{pipe}_inst", f"warp instructions of the {meaning}", base, f"smsp__inst_executed_pipe_{pipe}"),
        Counter(f"{pipe}_peak_inst_per_s", f"peak rate of the {meaning}", (Peak(base, "sm_clock_hz"),)),
        share(f"{pipe}_share", f"use of the {meaning}", base),
    )


def bases_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the names, without roll-up, of the stored metrics that a recipe may read."""
    match recipe:
        case Exact(names=names) | CyclesOverTime(names=names) | Share(bases=names):
            return tuple(name.partition(".")[0] for name in names)
        case Amount(groups=groups):
            return tuple(base for group in groups for base in group)
        case Peak(base=base):
            return (base,)
        case RateOverShare(rate=rate, share=share):
            return rate, share
        case _:
            return ()
