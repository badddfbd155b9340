"""Recipes as formulas in words: what the documentation and `rooflens about` print of how a quantity is worked out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def formulas_of(recipe: Recipe) -> Iterator[str]:
    """Write a recipe as a formula of stored metrics, one for each way in which it may be read."""
    match recipe:
        case Exact(names=names, scale=scale):
            yield from (f"`{name}`{_scale_words(scale)}" for name in names)
        case Amount(groups=groups, scale=scale):
            yield from (f"{' + '.join(f'`{base}`' for base in group)}{_scale_words(scale)}" for group in groups)
        case Share(bases=bases):
            yield from (f"per cent of `{base}`" for base in bases)
        case CyclesOverTime(names=names):
            yield from (f"`{name}` / time" for name in names)
        case CyclesOverClock(cycles=cycles, clocks=clocks):
            yield f"{_first_or_like(cycles)} / {_first_or_like(clocks)}"
        case Mean(base=base):
            yield from (f"`{base}.avg`", f"`{base}.sum` / SMs")
        case CyclesOverRate(bases=bases):
            yield from (f"`{base}` / its rate" for base in bases)
        case Quotient(part=part, whole=whole, scale=scale):
            yield f"`{part}` / `{whole}`{_scale_words(scale)}"
        case SumOverRate() | WhileActive() | OverOwnRate() | Waves():
            yield from _derived(recipe)
        case _:
            yield _formula(recipe)


def _first_or_like(names: Sequence[str]) -> str:
    """Name the first of several metrics that are alike, and say that there are others."""
    return f"`{names[0]}` or its like"


def _derived(recipe: SumOverRate | WhileActive | OverOwnRate | Waves) -> Iterator[str]:
    match recipe:
        case SumOverRate(names=(*parts, rate)):
            yield f"({' + '.join(f'`{part}`' for part in parts)}) / `{rate}`"
        case WhileActive(names=names, scale=scale):
            yield from (f"`{name}`{_scale_words(scale)} x active / elapsed cycles" for name in names)
        case OverOwnRate():
            yield "any amount that is stored with its rate per second / that rate"
        case Waves():
            yield "`grid_size` / (`sm_count` x the least of `blocks_limit_*`)"


def _formula(recipe: Peak | RateOverShare | PerSm | Same | MemoryBus | BusAtClock | ShareOfCycles | HostLink) -> str:
    match recipe:
        case Peak(base=base, clock=clock, scale=scale):
            said = f"peak of `{base}`{_scale_words(scale)} x `{clock}`"
        case RateOverShare(rate=rate, share=share):
            said = f"rate of `{rate}` / per cent of `{share}`"
        case PerSm(units_per_cycle=units, clock=clock):
            said = f"{units:g} a cycle and SM x `{clock}`"
        case Same(counter=counter):
            said = f"= `{counter}`"
        case MemoryBus(clock=clock, pins=pins):
            said = f"`{clock}` x 2 x `{pins}` / 8"
        case BusAtClock(clock=clock, pins=pins):
            said = f"`{pins}` x 2 / 8 x `{clock}`"
        case ShareOfCycles(share=share, cycles=cycles, scale=scale):
            said = f"per cent of `{share}` x `{cycles}`{_scale_words(scale)}"
        case HostLink(names=names):
            said = f"`{names[0]}` x `{names[2]}` / 8, or what the other end of the link allows; NVLink-C2C 450 GB/s"
    return said


def _scale_words(scale: float) -> str:
    return "" if scale == 1.0 else f" x {scale:g}"
