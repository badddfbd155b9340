"""Units as all versions of ncu print them, and the power of ten that converts each to its base unit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

Dimension = Literal["pct", "time", "byte", "byte/s", "hz", "cycle"]

_TIME_POWERS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("nsecond", "nseconds", "ns", "nsec"), -9),
        **dict.fromkeys(("usecond", "useconds", "us", "usec", "µs", "μs"), -6),
        **dict.fromkeys(("msecond", "mseconds", "ms", "msec"), -3),
        **dict.fromkeys(("second", "seconds", "s", "sec"), 0),
    }
)
"""Unit of time -> power of ten in seconds."""

_NS = 9
"""Power of ten from seconds to nanoseconds, the base unit of time."""

_PREFIXES: Mapping[str, int] = MappingProxyType({"K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18})
_BYTE_UNITS = frozenset({"byte", "bytes", "b"})
_CYCLES = frozenset({"cycle", "cycles"})
_COUNTED_UNITS = frozenset(
    word + plural
    for word in ("byte", "inst", "cycle", "sector", "request", "thread", "warp", "block", "register", "sample", "op")
    for plural in ("", "s")
)
_SCALED = _COUNTED_UNITS | {"hz", "b", "pass", "flop", "wavefront", "transaction"}
"""Units that ncu, or a program that rewrote the file, prints with a prefix."""

_BINARY = ("ki", "mi", "gi", "ti")


@lru_cache(maxsize=1024)
def power_of(unit: str) -> int | None:
    """Return the power of ten from `unit` to base units (ns, byte, 1/s, cycle, %); None if the unit is unknown."""
    total = 0
    for place, word in enumerate(_unit_parts(unit)):
        power = _TIME_POWERS[word] if word in _TIME_POWERS else _prefix_power(word)
        if power is None:
            return None
        if place:
            total -= power
        else:
            total += power + _NS if word in _TIME_POWERS else power
    return total


@lru_cache(maxsize=1024)
def dimension_of(unit: str) -> Dimension | None:
    """Return what a unit measures, if that tells metrics with the same label apart; else None."""
    words = _unit_parts(unit)
    upper = _bare(words[0])
    if unit.strip() == "%":
        return "pct"
    if upper == "hz" or (upper in _CYCLES and words[-1] in _TIME_POWERS):
        return "hz"
    if upper in _BYTE_UNITS:
        return "byte" if len(words) == 1 else "byte/s" if words[-1] in _TIME_POWERS else None
    if len(words) > 1:
        return None
    return "time" if words[0] in _TIME_POWERS else "cycle" if upper in _CYCLES else None


def is_count(metric: str, unit: str) -> bool:
    """Return whether a metric is a count in an unscaled unit, which has no fraction."""
    return metric.endswith(".sum") and "/" not in unit and unit.strip() != "%" and power_of(unit) == 0


def _unit_parts(unit: str) -> list[str]:
    return [word.strip() for word in unit.strip().split("/")]


def _prefix_power(word: str) -> int | None:
    """Return the power of a prefix as in `Kbyte`, `Ghz`, `MB`, `Minst`; 0 without a prefix, None for powers of two."""
    if word.casefold().startswith(_BINARY) and word.casefold()[2:] in _BYTE_UNITS:
        return None
    is_scaled = word[:1].upper() in _PREFIXES and word[1:].casefold() in _SCALED
    return _PREFIXES[word[0].upper()] if is_scaled else 0


def _bare(word: str) -> str:
    return (word[1:] if _prefix_power(word) else word).casefold()
