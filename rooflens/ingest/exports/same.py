"""One launch more than once: in several tables of one export, or in several files, where it would count twice.

ncu may print its details page, then its raw page, or other metrics. What identifies a launch does not identify a run:
in a container every run may have the same process ID. Values differ from run to run, so files are of one run where all
that they both hold is equal, to the digits printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from rooflens.ingest.exports.kernels import ExportedKernel
from rooflens.ingest.exports.tables import Facts

Key = TypeVar("Key")

_TIME = "gpu__time_duration.sum"
_MOST_APART = 0.01
"""Durations that differ by more belong to two launches: rounding to three printed digits moves none so far."""

_TELLING_DIGITS = 3
"""A value with fewer digits may be equal in two runs by chance."""

_LEAST_TELLING = 3
"""How many equal values with that many digits it takes to call two files with the same metrics one run."""

_LEAST_TELLING_OF_TEXT = 8
"""The same of launches without numbers: those of one kernel may be equal in some values."""

_GIVEN = ("launch__", "device__")
"""Prefixes of metrics that are the same in every run."""


def merged(tables: Iterable[Iterable[ExportedKernel]]) -> list[ExportedKernel]:
    """Put the launches of all tables into one list, each once.

    A launch is an earlier one again if process, ID, name and sizes are equal and its metrics are others. With the same
    metrics it belongs to another run: in a container every run may have the same process ID.
    """
    found: list[ExportedKernel] = []
    known: dict[tuple[str, ...], ExportedKernel] = {}
    for table in tables:
        new: dict[tuple[str, ...], ExportedKernel] = {}
        for kernel in table:
            before = known.get(kernel.launch) if kernel.launch else None
            if before is not None and _is_again(before, kernel):
                _add(before, kernel)
                continue
            kernel.index = len(found)
            found.append(kernel)
            new[kernel.launch] = kernel
        known.update(new)
    return found


def assembled(kernels: Iterable[ExportedKernel]) -> list[ExportedKernel]:
    """Put together what separate runs of ncu print of a launch, as people paste one below the other.

    One run prints the same metrics of every launch. So a kernel of the same name, sizes and GPU that holds nothing that
    an earlier one holds too was printed by another run, with other sections or metrics: the first one with the
    first, the second with the second.
    """
    found: list[ExportedKernel] = []
    by_name: dict[tuple[object, ...], list[ExportedKernel]] = {}
    for kernel in kernels:
        sizes = tuple((name, kernel.numbers[name]) for name in sorted(kernel.numbers) if name.startswith(_OF_HEADER))
        alike = by_name.setdefault((kernel.signature, kernel.nvtx_range, kernel.launches, sizes), [])
        before = next((one for one in alike if sizes and _is_rest(one, kernel)), None)
        if before is not None:
            _add(before, kernel)
            continue
        alike.append(kernel)
        found.append(kernel)
    return found


_OF_HEADER = ("launch__grid_dim", "launch__block_dim", "device__attribute_compute_capability")
"""What the line that names a kernel says of its launch."""


def _is_rest(one: ExportedKernel, other: ExportedKernel) -> bool:
    """Return whether one holds only what the other lacks, and what is the same in every run."""
    common = one.numbers.keys() & other.numbers.keys()
    is_more = other.numbers.keys() - common and one.numbers.keys() - common
    return bool(is_more) and all(
        name.startswith(_GIVEN) and one.numbers[name] == other.numbers[name] for name in common
    )


def _is_again(before: ExportedKernel, kernel: ExportedKernel) -> bool:
    if before.numbers.keys() == kernel.numbers.keys():
        return False
    first, second = before.numbers.get(_TIME), kernel.numbers.get(_TIME)
    return first is None or second is None or abs(first - second) <= _MOST_APART * max(first, second)


def _add(kernel: ExportedKernel, other: ExportedKernel) -> None:
    """Add what another table holds of a launch; where both have a value, the first stays."""
    kernel.numbers |= {**other.numbers, **kernel.numbers}
    kernel.texts |= {**other.texts, **kernel.texts}
    kernel.tables |= {**other.tables, **kernel.tables}
    kernel.not_numbers = [*dict.fromkeys((*kernel.not_numbers, *other.not_numbers))]
    kernel.rules = kernel.rules or other.rules


def once(kernels: Iterable[ExportedKernel], facts: Facts, *, has_ids: bool) -> Iterator[ExportedKernel]:
    """Yield each launch of an export once, numbered anew, and count those that are there twice.

    Launches are the same where all that identifies them and all of their values are equal, and enough of those differ
    from run to run. A text does not number its launches, so it takes more of them.
    """
    seen: set[tuple[object, ...]] = set()
    for index, kernel in enumerate(_unseen(kernels, seen, facts, has_ids=has_ids)):
        kernel.index = index
        yield kernel


def _unseen(
    kernels: Iterable[ExportedKernel], seen: set[tuple[object, ...]], facts: Facts, *, has_ids: bool
) -> Iterator[ExportedKernel]:
    least = _LEAST_TELLING if has_ids else _LEAST_TELLING_OF_TEXT
    for kernel in kernels:
        values = [(name, value) for name, value in kernel.numbers.items() if not name.startswith(_GIVEN)]
        telling = sum(_varies(name) and _digits(value) >= _TELLING_DIGITS for name, value in values)
        if kernel.launch and telling >= least:
            key = (kernel.launch if has_ids else kernel.launch[1:], hash(frozenset(values)))
            if key in seen:
                facts.doubled += 1
                continue
            seen.add(key)
        yield kernel


def _varies(metric: str) -> bool:
    """Return whether a metric is one of time, which differs from run to run; counts do not."""
    return any(part in metric for part in ("cycle", "time", "per_second", "pct", "per_issue"))


def repeated(exports: Mapping[Key, Sequence[ExportedKernel]]) -> dict[Key, tuple[Key, bool]]:
    """Find the exports whose launches are all in another one that has more launches, metrics or digits.

    Returns:
        For each of them the other, and whether that has all of its metrics too.
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
    times = [kernel.numbers.get(_TIME, 0.0) for kernel in kernels]
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
