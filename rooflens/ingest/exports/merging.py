"""One launch in several tables: ncu printed its details page, then its raw page, or other metrics."""

from __future__ import annotations

from collections.abc import Iterable

from rooflens.ingest.exports.kernels import ExportedKernel

TIME = "gpu__time_duration.sum"
_MOST_APART = 0.01
"""Durations that differ by more belong to two launches: rounding to three printed digits moves none so far."""


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


def _is_again(before: ExportedKernel, kernel: ExportedKernel) -> bool:
    if before.numbers.keys() == kernel.numbers.keys():
        return False
    first, second = before.numbers.get(TIME), kernel.numbers.get(TIME)
    return first is None or second is None or abs(first - second) <= _MOST_APART * max(first, second)


def _add(kernel: ExportedKernel, other: ExportedKernel) -> None:
    """Add what another table holds of a launch; where both have a value, the first one stays."""
    kernel.numbers |= {**other.numbers, **kernel.numbers}
    kernel.texts |= {**other.texts, **kernel.texts}
    kernel.tables |= {**other.tables, **kernel.tables}
    kernel.not_numbers = [*dict.fromkeys((*kernel.not_numbers, *other.not_numbers))]
    kernel.rules = kernel.rules or other.rules
