"""Numbers for people: three significant digits, SI prefixes, units."""

from __future__ import annotations

import math
import re

_SHORTEST_ARGUMENTS = 6
"""Fewer characters of template arguments than this say nothing."""

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))

_NUMBER_CASTS = re.compile(r"(?<=[<,\s])\((?:(?:unsigned|signed|long|short|char|int|size_t)\s*)+\)(?=-?\d)")

_BOOL_CASTS = re.compile(r"(?<=[<,\s])\(bool\)([01])(?!\d)")


def round_significant(value: float, digits: int = 3) -> float:
    """Round to so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def significant(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits and no exponent: 3.94, 81.2, 1,240, 11,600, 0.167."""
    if not math.isfinite(value):
        return "n/a"
    if value == 0:
        return "0"
    rounded = round_significant(value, digits)
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, decimals)}f}"


def si(value: float, unit: str) -> str:
    """Write a number with an SI prefix: 3.94 TB/s, 989 TFLOP/s, 12.0 kB."""
    rounded = round_significant(value) if math.isfinite(value) else 0.0
    for factor, prefix in _PREFIXES:
        if abs(rounded) >= factor:
            return f"{significant(rounded / factor)} {prefix}{unit}"
    return f"{significant(value)} {unit}"


def percent(share: float) -> str:
    """Write a fraction as per cent: 81 %, 8.2 %, 0.4 %."""
    value = share * 100
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def duration(ns: float) -> str:
    """Write nanoseconds in the unit people say: 850 ns, 12.3 µs, 4.31 ms, 1.20 s."""
    rounded = round_significant(ns) if math.isfinite(ns) else 0.0
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if rounded >= factor:
            return f"{significant(rounded / factor)} {unit}"
    return f"{significant(ns)} ns"


def printable(text: str) -> str:
    """Replace control characters: names of files and kernels must not steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


def cut_middle(text: str, width: int) -> str:
    """Shorten a text to so many characters by cutting its middle: names differ at both ends."""
    if len(text) <= width:
        return text
    if width < 3:
        return text[:width]
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def cut_name(name: str, width: int) -> str:
    """Shorten a kernel name to so many characters, keeping its function: namespaces go first, then the middle."""
    if len(name) <= width:
        return name
    path, bracket, arguments = name.partition("<")
    while bracket and path.endswith("::"):  # an unnamed namespace is written in brackets too
        inner, _, rest = arguments.partition(">::")
        more, bracket, arguments = rest.partition("<")
        path = f"{path}{inner}::{more}"
    function = path.rpartition("::")[2]
    left = width - len(function)
    if left < _SHORTEST_ARGUMENTS:
        return cut_middle(function, width)
    return function + cut_middle(bracket + arguments, left)


def plain_name(name: str) -> str:
    """Drop what demanglers put before template arguments: `<(int)64, (bool)1>` gives `<64, true>`."""
    name = _NUMBER_CASTS.sub("", name)
    return _BOOL_CASTS.sub(lambda match: "true" if match[1] == "1" else "false", name)
