"""Numbers and names as a reader sees them: three significant digits, SI prefixes, units that never wrap."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor, log10

NBSP = "\u00a0"
ELLIPSIS = "\u2026"
MISSING = "\u2013"
"""Stands where a number is missing, so that it is never read as zero."""

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_SECOND_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"), (1e-9, "ns"))


def round_significant(value: float, digits: int = 3) -> float:
    """Round to so many significant digits; 0 stays 0."""
    if value == 0:
        return 0.0
    return round(value, digits - 1 - floor(log10(abs(value))))


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with three significant digits and no exponent, `MISSING` for None."""
    if value is None:
        return MISSING
    rounded = round_significant(value, digits)
    if rounded == 0:
        return "0"
    decimals = max(0, digits - 1 - floor(log10(abs(rounded))))
    text = f"{rounded:,.{decimals}f}"
    return text if abs(rounded) >= 0.1 else text.rstrip("0").rstrip(".")


def si(value: float | None, unit: str) -> str:
    """Write a quantity with an SI prefix: 1.555e12 and `B/s` give `1.56 TB/s`."""
    if value is None:
        return MISSING
    rounded = round_significant(value)
    step = 0 if abs(rounded) < 1 else min(int(log10(abs(rounded)) // 3), len(_PREFIXES) - 1)
    return f"{number(rounded / 1000**step)}{NBSP}{_PREFIXES[step]}{unit}"


def si_of(value: float | None, noun: str) -> str:
    """Write an amount of things that take no prefix themselves: `31.0 M inst`."""
    return MISSING if value is None else f"{si(value, '').rstrip(NBSP)}{NBSP}{noun}"


def duration(nanoseconds: float | None) -> str:
    """Write a time in s, ms, us or ns."""
    if nanoseconds is None:
        return MISSING
    seconds = round_significant(nanoseconds * 1e-9)
    factor, unit = next((step for step in _SECOND_STEPS if seconds >= step[0]), _SECOND_STEPS[-1])
    return f"{number(seconds / factor)}{NBSP}{unit}"


def exact_duration(nanoseconds: float) -> str:
    """Write a time that was set and not measured: `5 us` has no digits after the point."""
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
    """Write a speed-up factor: `2.6x`."""
    return MISSING if value is None else f"{number(value, 2 if value < 100 else 3)}x"


def count(amount: int, noun: str) -> str:
    """Write an amount with its noun: `1 kernel`, `1,204 launches`."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{amount:,} {noun}{'' if amount == 1 else plural}"


def cut_middle(text: str, width: int) -> str:
    """Shorten a name to `width` characters by leaving out its middle, where template arguments are."""
    if len(text) <= width:
        return text
    head = (width - 1) * 3 // 5
    tail = width - 1 - head
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - tail :]}"


def date(unix_s: int | None) -> str:
    """Write a time stamp as a UTC date."""
    return MISSING if unix_s is None else datetime.fromtimestamp(unix_s, tz=UTC).strftime("%Y-%m-%d")
