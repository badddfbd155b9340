"""Recognise a launch that appears twice, in several tables or files: it must not count twice.

ncu may print the details page, then the raw page, or the same launches with other metrics. A launch's ID does not
identify its run: in a container every run may have the same process ID. But values vary between runs, so two files are
of the same run if all values that both hold are equal to the digits printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import TypeAlias, TypeVar

from rooflens.ingest.exports.kernels import ExportedKernel
from rooflens.ingest.exports.tables import ExportFacts

Key = TypeVar("Key")

_DURATION_METRIC = "gpu__time_duration.sum"
_MOST_APART = 0.01
"""Durations that differ by more are of two launches; rounding to three digits has stayed below it so far."""

_TELLING_DIGITS = 3
"""Values with fewer digits may agree between two runs by chance."""

_LEAST_TELLING = 3
"""Equal values with so many digits that prove two files with the same metrics to be of one run."""

_LEAST_TELLING_OF_TEXT = 8
"""The same for launches without numbers, where launches of one kernel may agree in some values."""

_GIVEN = ("launch__", "device__")
"""Prefixes of metrics that do not vary between runs."""


def merged(tables: Iterable[Iterable[ExportedKernel]]) -> list[ExportedKernel]:
    """Merge the launches of all tables into one list without repetition.

    A launch repeats an earlier one if process, ID, name and sizes agree and its metrics are new. If it has the same
    metrics, it is of another run: in a container every run may have the same process ID.
    """
    found: list[ExportedKernel] = []
    known: dict[tuple[str, ...], ExportedKernel] = {}
    for table in tables:
        new: dict[tuple[str, ...], ExportedKernel] = {}
        for kernel in table:
            before = known.get(kernel.launch) if kernel.launch else None
            if before is not None and _is_again(before, kernel):
                _add_table_values(before, kernel)
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
    by_name: dict[tuple[object, ...], _Runs] = {}
    for kernel in kernels:
        sizes = tuple((name, kernel.numbers[name]) for name in sorted(kernel.numbers) if name.startswith(_OF_HEADER))
        runs = by_name.setdefault((kernel.signature, kernel.nvtx_range, kernel.launches, sizes), {})
        # Launches that hold the same metrics stand for one another: each kind is looked at once, not each launch.
        kinds = (kind for kind, launches in islice(runs.items(), _MOST_KINDS) if _is_rest(launches[0][1], kernel))
        kind = min(kinds, key=lambda kind: runs[kind][0][0], default=None) if sizes else None
        if kind is None:
            number, whole = len(found), kernel
            found.append(kernel)
        else:
            number, whole = heappop(runs[kind])
            if not runs[kind]:
                del runs[kind]
            _add_table_values(whole, kernel)
        heappush(runs.setdefault(_kind_of_launch(whole), []), (number, whole))
    return found


_Kind: TypeAlias = "frozenset[tuple[str, float | None]]"
"""The metrics that a launch holds, with the values of those that do not vary between runs."""

_Runs: TypeAlias = "dict[_Kind, list[tuple[int, ExportedKernel]]]"
"""The launches of each kind with their numbers, a heap whose first is the earliest."""

_MOST_KINDS = 64
"""Of more kinds of launches of one kernel only the first are looked at: one run prints one kind."""


def _kind_of_launch(kernel: ExportedKernel) -> _Kind:
    return frozenset((name, n if name.startswith(_GIVEN) else None) for name, n in kernel.numbers.items())


_OF_HEADER = ("launch__grid_dim", "launch__block_dim", "device__attribute_compute_capability")
"""What the line that names a kernel says of its launch."""


def _is_rest(kernel: ExportedKernel, other: ExportedKernel) -> bool:
    """Return whether each record of a launch has metrics of its own, and those in both are equal in every run."""
    common = kernel.numbers.keys() & other.numbers.keys()
    is_more = other.numbers.keys() - common and kernel.numbers.keys() - common
    return bool(is_more) and all(
        name.startswith(_GIVEN) and kernel.numbers[name] == other.numbers[name] for name in common
    )


def _is_again(before: ExportedKernel, kernel: ExportedKernel) -> bool:
    if before.numbers.keys() == kernel.numbers.keys():
        return False
    first, second = before.numbers.get(_DURATION_METRIC), kernel.numbers.get(_DURATION_METRIC)
    return first is None or second is None or abs(first - second) <= _MOST_APART * max(first, second)


def _add_table_values(kernel: ExportedKernel, other: ExportedKernel) -> None:
    """Add another table's values of a launch; the first value of a metric stays."""
    kernel.numbers |= {**other.numbers, **kernel.numbers}
    kernel.texts |= {**other.texts, **kernel.texts}
    kernel.tables |= {**other.tables, **kernel.tables}
    kernel.not_numbers = [*dict.fromkeys((*kernel.not_numbers, *other.not_numbers))]
    kernel.rules = kernel.rules or other.rules


def once(kernels: Iterable[ExportedKernel], facts: ExportFacts, *, has_ids: bool) -> Iterator[ExportedKernel]:
    """Yield each launch of an export once, renumbered, and count the repeated ones.

    Launches are the same if their identification and all values agree, and enough of these values vary between runs. A
    text does not number its launches, so more values must agree there.
    """
    seen: set[tuple[object, ...]] = set()
    index = 0
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
        kernel.index = index
        index += 1
        yield kernel


def _varies(metric: str) -> bool:
    """Return whether a metric varies between runs: times do, counts do not."""
    return any(part in metric for part in ("cycle", "time", "per_second", "pct", "per_issue"))


def repeated(exports: Mapping[Key, Sequence[ExportedKernel]]) -> dict[Key, tuple[Key, bool]]:
    """Find the exports whose launches all appear in another export with more launches, metrics or digits.

    Returns:
        For each such export, the other export, and whether the other also has all of its metrics.
    """
    size = {key: _table_size(kernels) for key, kernels in exports.items()}
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
    """Return what identifies a run: ID, name and host of the process, if they are printed."""
    _, _, number, *others = launch
    return (number, *others[:2]) if number else launch


def _table_size(kernels: Sequence[ExportedKernel]) -> tuple[int, int, int, int]:
    """Count launches, values, digits of durations, and digits of all values."""
    values = [value for kernel in kernels for value in kernel.numbers.values()]
    times = [kernel.numbers.get(_DURATION_METRIC, 0.0) for kernel in kernels]
    return len(kernels), len(values), sum(map(_digits, times)), sum(map(_digits, values))


def _paired(
    part: Sequence[ExportedKernel], whole: Sequence[ExportedKernel]
) -> list[tuple[ExportedKernel, ExportedKernel]]:
    """Pair each launch with its copy in another export; empty if a launch has no copy."""
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


def _is_same(kernel: ExportedKernel, other: ExportedKernel) -> bool:
    """Return whether all values that both exports hold of a launch agree, and enough of them vary between runs."""
    common = [name for name in kernel.numbers.keys() & other.numbers.keys() if not name.startswith(_GIVEN)]
    telling = 0
    for name in common:
        first, second = kernel.numbers[name], other.numbers[name]
        if not (first and second):  # values too small for their unit print as 0.00
            continue
        digits = min(_digits(first), _digits(second))
        coarse = first if _digits(first) == digits else second
        step = 10.0 ** (math.floor(math.log10(abs(coarse))) + 1 - digits)
        if abs(first - second) > 0.5 * step * (1 + 1e-6):
            return False
        telling += digits >= _TELLING_DIGITS
    return telling >= (_LEAST_TELLING if kernel.numbers.keys() == other.numbers.keys() else min(1, len(common)))


def _digits(value: float) -> int:
    """Count the significant digits of a printed number, apart from trailing zeros, which are lost."""
    return len(f"{abs(value):.11e}".partition("e")[0].replace(".", "").rstrip("0"))
