"""Make the tables of docs/reference/counters/: the source of each quantity, its tier, and its uses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from generators.about import page_of
from generators.texts import table, unit_of
from rooflens.format import MISSING
from rooflens.model.about import FAMILIES
from rooflens.model.counters.chips import EVERY_CHIP
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
    Same,
    Share,
    ShareOfCycles,
    SumOverRate,
    Waves,
    WhileActive,
)
from rooflens.model.counters.table import COUNTERS
from rooflens.model.findings.find import RULES
from rooflens.model.hotspots import MEASURES, STORED_AS
from rooflens.model.needs import CODE
from rooflens.model.records import LEVELS
from rooflens.model.roofline.levels import AMOUNTS
from rooflens.model.roofline.roof import counters_of
from rooflens.model.roofline.units import PIPE_ROWS, STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflens.model.counters.metric import Ask
    from rooflens.model.counters.recipes import Counter, Recipe


def tables() -> dict[str, Callable[[], Mapping[str, Sequence[str]]]]:
    """Return the generator of the table of each page, by its file below docs/reference."""
    assert sorted(row.name for rows in FAMILIES.values() for row in rows) == sorted(row.name for row in COUNTERS)
    pages = dict.fromkeys(name.partition("#")[0] for name in FAMILIES)
    return {f"counters/{page}": partial(_tables, page) for page in pages}


def _tables(page: str) -> dict[str, list[str]]:
    """Make the tables of a page: one of `quantities`, or one for each section."""
    head = ("quantity", "unit", "read from, the first that is there", "asked for", "used for")
    made = {
        section or "quantities": table(head, map(_row, rows))
        for (name, _, section), rows in ((name.partition("#"), rows) for name, rows in FAMILIES.items())
        if name == page
    }
    return made | ({"measures": _measures()} if page == "execution.md" else {})


def _measures() -> list[str]:
    rows = (
        (
            f"`{measure}`",
            meaning,
            ", ".join(f"`{name}`" for name in STORED_AS.get(measure, ())) or "the same, less the ideal",
            "; ".join(_findings(f"{CODE}{measure}")) or MISSING,
        )
        for measure, meaning in MEASURES.items()
    )
    return table(("measure", "meaning", "read from", "used for"), rows)


def _row(row: Counter) -> tuple[str, ...]:
    read = dict.fromkeys(way for recipe in row.recipes for way in _ways(recipe))
    asked = dict.fromkeys(map(_asked, row.asks()))
    return (
        f"`{row.name}`",
        unit_of(row.name),
        "; ".join(read),
        "; ".join(asked) or MISSING,
        "; ".join(dict.fromkeys(_uses(row.name))) or MISSING,
    )


def _asked(ask: Ask) -> str:
    """Return the tier, and on how many chips."""
    tier = ask.detail if not ask.later else f"{ask.detail}, later on some"
    return tier if ask.chips == EVERY_CHIP else f"{tier}, not on all"


def _ways(recipe: Recipe) -> Iterator[str]:
    match recipe:
        case Exact(names=names, scale=scale):
            yield from (f"`{name}`{_times(scale)}" for name in names)
        case Amount(groups=groups, scale=scale):
            yield from (f"{' + '.join(f'`{base}`' for base in group)}{_times(scale)}" for group in groups)
        case Share(bases=bases):
            yield from (f"per cent of `{base}`" for base in bases)
        case CyclesOverTime(names=names):
            yield from (f"`{name}` / time" for name in names)
        case CyclesOverClock(cycles=cycles, clocks=clocks):
            yield f"{_either(cycles)} / {_either(clocks)}"
        case Mean(base=base):
            yield from (f"`{base}.avg`", f"`{base}.sum` / SMs")
        case CyclesOverRate(bases=bases):
            yield from (f"`{base}` / its rate" for base in bases)
        case Quotient(part=part, whole=whole, scale=scale):
            yield f"`{part}` / `{whole}`{_times(scale)}"
        case SumOverRate() | WhileActive() | OverOwnRate() | Waves():
            yield from _derived(recipe)
        case _:
            yield _formula(recipe)


def _either(names: Sequence[str]) -> str:
    """Name the first of several metrics that are alike, and say that there are others."""
    return f"`{names[0]}` or its like"


def _derived(recipe: SumOverRate | WhileActive | OverOwnRate | Waves) -> Iterator[str]:
    match recipe:
        case SumOverRate(names=(*parts, rate)):
            yield f"({' + '.join(f'`{part}`' for part in parts)}) / `{rate}`"
        case WhileActive(names=names, scale=scale):
            yield from (f"`{name}`{_times(scale)} x active / elapsed cycles" for name in names)
        case OverOwnRate():
            yield "any amount that is stored with its rate per second / that rate"
        case Waves():
            yield "`grid_size` / (`sm_count` x the least of `blocks_limit_*`)"


def _formula(recipe: Peak | RateOverShare | PerSm | Same | MemoryBus | BusAtClock | ShareOfCycles | HostLink) -> str:
    match recipe:
        case Peak(base=base, clock=clock, scale=scale):
            said = f"peak of `{base}`{_times(scale)} x `{clock}`"
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
            said = f"per cent of `{share}` x `{cycles}`{_times(scale)}"
        case HostLink(names=names):
            said = f"`{names[0]}` x `{names[2]}` / 8, or what the other end of the link allows; NVLink-C2C 450 GB/s"
    return said


def _times(scale: float) -> str:
    return "" if scale == 1.0 else f" x {scale:g}"


def _uses(name: str) -> Iterator[str]:
    yield from (f"bytes of `{level}`" for level, names in AMOUNTS.items() if name in names)
    yield from (f"roof of `{level}`" for level in LEVELS if name in counters_of(level))
    for stage in STAGES:
        if name in {stage.share, stage.amount, stage.peak}:
            yield f"stage `{stage.name}` of `{stage.level}`"
    for pipe in PIPE_ROWS:
        if name in {*pipe.shares, pipe.amount, pipe.peak}:
            yield f"pipe `{pipe.key}`"
    yield from _findings(name)


def _findings(need: str) -> Iterator[str]:
    for rule in RULES:
        if any(need in group for group in rule.needs):
            yield f"[`{rule.id}`](../{page_of(f'findings/{rule.id}')}.md)"
