"""Numbers and names as a reader sees them: three significant digits, SI prefixes, units that never wrap."""

from __future__ import annotations

from datetime import UTC, datetime

from rooflens.model import units

NBSP = "\u00a0"

MISSING = "\u2013"
"""Stands where a number is missing, so that it is never read as zero."""

BIG_FACTOR = 1000

NOISE_INTENSITY = 1e5
"""An intensity above this comes from almost no traffic: its digits say nothing."""

_SECOND_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"), (1e-9, "ns"))


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with three significant digits and no exponent, `MISSING` for None."""
    return MISSING if value is None else units.significant(value, digits)


def si(value: float | None, unit: str) -> str:
    """Write a quantity with an SI prefix: 1.555e12 and `B/s` give `1.56 TB/s`."""
    return MISSING if value is None else _unbroken(units.si(value, unit))


def si_of(value: float | None, noun: str) -> str:
    """Write an amount of things that take no prefix themselves: `31.0 M inst`."""
    return MISSING if value is None else f"{si(value, '').rstrip(NBSP)}{NBSP}{noun}"


def duration(nanoseconds: float | None) -> str:
    """Write a time in s, ms, us or ns."""
    return MISSING if nanoseconds is None else _unbroken(units.duration(nanoseconds))


def exact_duration(nanoseconds: float) -> str:
    """Write a time that was set and not measured: `5 µs` has no digits after the point."""
    seconds = nanoseconds * 1e-9
    factor, unit = next((step for step in _SECOND_STEPS if seconds >= step[0]), _SECOND_STEPS[-1])
    return f"{seconds / factor:g}{NBSP}{unit}"


def percent(share: float | None, decimals: int = 1) -> str:
    """Write a share (0 to 1) in per cent; only none rounds to 0 and only all of it to 100."""
    if share is None:
        return MISSING
    floor_pct = 10.0**-decimals
    pct = 100 * share
    if 0 < pct < floor_pct / 2:
        return f"<{floor_pct:.{decimals}f}{NBSP}%"
    if 100 - floor_pct / 2 <= pct < 100 - 1e-9:
        return f">{100 - floor_pct:.{decimals}f}{NBSP}%"
    return f"{pct:.{decimals}f}{NBSP}%"


def factor(value: float | None) -> str:
    """Write a speed-up factor: `2.6x`; one over a thousand is told by its order only."""
    if value is None:
        return MISSING
    if value > BIG_FACTOR:
        return f">{BIG_FACTOR}x"
    return f"{number(value, 2 if value < 100 else 3)}x"


def intensity(flop_per_byte: float | None) -> str:
    """Write an arithmetic intensity: `1.22 FLOP/B`, `2.08 MFLOP/B`."""
    if flop_per_byte is None:
        return MISSING
    rounded = units.round_significant(flop_per_byte)
    return si(rounded, "FLOP/B") if rounded >= NOISE_INTENSITY else f"{number(rounded)}{NBSP}FLOP/B"


def bare_intensity(flop_per_byte: float | None) -> str:
    """Write an arithmetic intensity below its heading: the unit is named only where it has a prefix."""
    return intensity(flop_per_byte).removesuffix(f"{NBSP}FLOP/B")


def given_percent(percent_given: float) -> str:
    """Write a per cent with the digits it was given in: NVIDIA's rules say `2%` and not `2.00%`."""
    return f"{percent_given:g}{NBSP}%"


def count(amount: int, noun: str) -> str:
    """Write an amount with its noun: `1 kernel`, `1,204 launches`."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{amount:,} {noun}{'' if amount == 1 else plural}"


def date(unix_s: int | None) -> str:
    """Write a time stamp as a UTC date."""
    return MISSING if unix_s is None else datetime.fromtimestamp(unix_s, tz=UTC).strftime("%Y-%m-%d")


def _unbroken(text: str) -> str:
    return text.replace(" ", NBSP)
