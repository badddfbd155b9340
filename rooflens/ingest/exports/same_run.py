"""Exports of one run in several files, such as its raw page and its details page: their launches would count twice.

What identifies a launch does not identify a run: in a container every run may have the same process ID. Values differ
from run to run, so files are of one run where all that they both hold is equal, to the digits printed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from rooflens.ingest.exports.kernels import ExportedKernel
from rooflens.ingest.exports.merging import TIME

Key = TypeVar("Key")

_TELLING_DIGITS = 3
"""A value with fewer digits may be equal in two runs by chance."""

_LEAST_TELLING = 3
"""How many equal values with that many digits it takes to call two files with the same metrics one run."""

_GIVEN = ("launch__", "device__")
"""Prefixes of metrics that are the same in every run."""


def repeated(exports: Mapping[Key, Sequence[ExportedKernel]]) -> dict[Key, tuple[Key, bool]]:
    """Find the exports whose launches are all in another one that has more launches, metrics or digits.

    Returns:
        For each of them the other one, and whether that has all of its metrics too.
    """
    size = {key: _size(kernels) for key, kernels in exports.items()}
    kept: list[Key] = []
    found: dict[Key, tuple[Key, bool]] = {}
    for key in sorted(exports, key=lambda key: size[key], reverse=True):
        for other in kept:
            pairs = _paired(exports[key], exports[other])
            if pairs:
                found[key] = other, all(one.numbers.keys() <= its.numbers.keys() for one, its in pairs)
                break
        else:
            kept.append(key)
    return found


def process_of(launch: tuple[str, ...]) -> tuple[str, ...]:
    """Return what launches of one run share: ID, name and host of the process, where they are printed."""
    _, _, number, *others = launch
    return (number, *others[:2]) if number else launch


def _size(kernels: Sequence[ExportedKernel]) -> tuple[int, int, int, int]:
    """Return how many launches, values, digits of durations, and digits of all values there are."""
    values = [value for kernel in kernels for value in kernel.numbers.values()]
    times = [kernel.numbers.get(TIME, 0.0) for kernel in kernels]
    return len(kernels), len(values), sum(map(_digits, times)), sum(map(_digits, values))


def _paired(
    part: Sequence[ExportedKernel], whole: Sequence[ExportedKernel]
) -> list[tuple[ExportedKernel, ExportedKernel]]:
    """Pair each launch with the same one in another export; empty if any is not there."""
    by_launch: dict[tuple[str, ...], list[ExportedKernel]] = {}
    for kernel in whole:
        by_launch.setdefault(kernel.launch, []).append(kernel)
    pairs = []
    for kernel in part:
        same = (other for other in by_launch.get(kernel.launch, ()) if kernel.launch and _is_same(kernel, other))
        other = next(same, None)
        if other is None:
            return []
        pairs.append((kernel, other))
    return pairs


def _is_same(one: ExportedKernel, other: ExportedKernel) -> bool:
    """Return whether all values that both exports hold of a launch are equal, and are enough to tell runs apart."""
    common = [name for name in one.numbers.keys() & other.numbers.keys() if not name.startswith(_GIVEN)]
    telling = 0
    for name in common:
        first, second = one.numbers[name], other.numbers[name]
        if not (first and second):  # a value too small for its unit is printed as 0.00
            continue
        digits = min(_digits(first), _digits(second))
        coarse = first if _digits(first) == digits else second
        step = 10.0 ** (math.floor(math.log10(abs(coarse))) + 1 - digits)
        if abs(first - second) > 0.5 * step * (1 + 1e-6):
            return False
        telling += digits >= _TELLING_DIGITS
    return telling >= (_LEAST_TELLING if one.numbers.keys() == other.numbers.keys() else min(1, len(common)))


def _digits(value: float) -> int:
    """Count the significant digits of a printed number; trailing zeros cannot be seen."""
    return len(f"{abs(value):.11e}".partition("e")[0].replace(".", "").rstrip("0"))
