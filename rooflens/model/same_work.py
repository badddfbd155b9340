"""The one rule of what is the same work: two kernels' times are compared only where both did the same job.

Sizes show in everything at once: twice the elements are twice the threads, operations and bytes. A change of the code
shows in some of it: fewer operations for the same output, fewer threads that each do more. So as many operations are
the same work, other amounts are it where threads, output or the program's arguments stayed, and amounts that grew
together are another size. Where nothing that was recorded tells, nothing is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import log, prod
from typing import Literal

from msgspec import Struct

from rooflens.format import duration, quantity, si, significant
from rooflens.model.records import Analysis, Kernel
from rooflens.model.roofline.work import main_work

SAME = 0.1
"""Operations of one job differ by less from version to version: padding and index arithmetic change them a little."""

ALIKE = 0.05
"""Threads, output and bytes closer than this are equal."""

FACTOR = 4.0
"""Versions of one job differ by less than this factor in operations and instructions."""

FACTOR_AS_ASKED = 16.0
"""The same of a program that was given the same sizes on its command line."""

TOGETHER = (0.6, 1.6)
"""Bytes grew with the operations where the logarithms of their factors have a ratio between these."""

_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")


Asked = Literal["same", "other"]


class Work(Struct, frozen=True):
    """Whether two kernels did the same work.

    Attributes:
        same: None where nothing that was recorded tells.
        why: What tells it, or what is missing, in words.
    """

    same: bool | None
    why: str


class UnitTime(Struct, frozen=True):
    """The time that a kernel takes for a unit of its work.

    Attributes:
        time_ns: Nanoseconds a unit.
        unit: `kFLOP`, `kop`, `1000 instructions` or `1000 threads`.
    """

    time_ns: float
    unit: str

    @property
    def words(self) -> str:
        return f"{duration(self.time_ns)} {'a' if self.unit.startswith('k') else 'for'} {self.unit}"


def same_work(before: Analysis, after: Analysis, asked: Asked | None = None) -> Work:
    """Return whether two kernels did the same work, and what tells it.

    Args:
        before: One launch.
        after: The other.
        asked: Whether both programs were given the same sizes or others; None if unknown.
    """
    ours, theirs = main_work(before), main_work(after)
    if ours.total and theirs.total and ours.unit == theirs.unit:
        return _by_operations(before, after, (ours.total, theirs.total, ours.unit), asked)
    instructions = _instructions(before), _instructions(after)
    if instructions[0] and instructions[1]:
        return _by_instructions(before, after, (instructions[0], instructions[1]), asked)
    return _by_launch(before, after, asked)


def time_per_work(analysis: Analysis, time_ns: float | None, beside: Analysis | None = None) -> UnitTime | None:
    """Return the time for a unit of work, to compare kernels that did different amounts of it.

    Args:
        analysis: The kernel.
        time_ns: Its time, in nanoseconds; None if unknown.
        beside: A kernel that it is set beside: both are measured in the first unit that both have.
    """
    both = (analysis, beside or analysis)
    for unit, amount in _UNITS:
        known = [amount(one) for one in both]
        if time_ns and all(known) and known[0] and (unit[0] != "k" or len({main_work(one).unit for one in both}) == 1):
            name = f"k{main_work(analysis).unit}" if unit == "k" else unit
            return UnitTime(time_ns / known[0] * 1e3, name)
    return None


def _operations(analysis: Analysis) -> float | None:
    return main_work(analysis).total


def threads_of(kernel: Kernel) -> int | None:
    """Return the threads of a launch; None where the report does not state its shape."""
    return prod(kernel.grid) * prod(kernel.block or (1,)) if kernel.grid else None


def _instructions(analysis: Analysis) -> float | None:
    """Return the warp instructions of a launch, from how busy the issue slots were where they were not counted."""
    counted = analysis.kernel.counters.get("executed_inst")
    issue, time_ns = analysis.pipes.get("issue"), analysis.kernel.duration_ns
    if counted or issue is None:
        return counted
    if issue.amount:
        return issue.amount
    return issue.share * issue.peak_per_s * time_ns / 1e9 if issue.share and issue.peak_per_s and time_ns else None


_UNITS: tuple[tuple[str, Callable[[Analysis], float | None]], ...] = (
    ("k", _operations),
    ("1000 instructions", _instructions),
    ("1000 threads", lambda analysis: threads_of(analysis.kernel)),
)


def _same(why: str) -> Work:
    return Work(same=True, why=why)


def _other(why: str) -> Work:
    return Work(same=False, why=why)


def _untold(why: str) -> Work:
    return Work(same=None, why=why)


def _by_operations(before: Analysis, after: Analysis, work: tuple[float, float, str], asked: Asked | None) -> Work:
    old, new, unit = work
    amounts = f"{si(new, unit)}, not {si(old, unit)}"
    if _apart(old, new) <= log(1 + SAME):
        return _same(f"as many {unit}s: {si(new, unit)}")
    if asked == "same" and _apart(old, new) <= log(FACTOR_AS_ASKED):
        return _same(f"the same arguments ({amounts})")
    if asked is None and _apart(old, new) <= log(FACTOR) and not _bytes_follow(before, after, new / old):
        threads = _both(before, after, threads_of)
        if (threads == (None, None) or _alike(*threads)) and _named_alike(before, after):
            return _same(f"as many threads ({amounts})")
        if _alike(*_both(before, after, _output_sectors)):
            return _same(f"an output of the same size ({amounts})")
    return _other(f"other work: {amounts}")


def _by_instructions(before: Analysis, after: Analysis, work: tuple[float, float], asked: Asked | None) -> Work:
    old, new = work
    threads = _both(before, after, threads_of)
    if asked == "same" and _apart(old, new) <= log(FACTOR_AS_ASKED):
        return _same("the same arguments")
    is_alike = _apart(old, new) <= log(1 + SAME)
    if _apart(old, new) > log(FACTOR) or (asked == "other" and not is_alike):
        return _other(f"other work: {quantity(new, 'instructions')}, not {quantity(old, 'instructions')}")
    if threads[0] and threads[1] and not _alike(*threads):
        grown = threads[1] / threads[0]
        if abs(log(new / old / grown)) <= log(1 + SAME):
            return _other(f"other work: {_times(grown)} the threads, each with as many instructions")
    is_grown = _alike(*threads) and not _alike(*_both(before, after, _output_sectors))
    if not is_alike and is_grown and _bytes_follow(before, after, new / old):
        return _other(f"other work: {_times(new / old)} the instructions and the bytes")
    if _named_alike(before, after):
        return _same("as many instructions" if is_alike else f"instructions within a factor of {FACTOR:.0f}")
    return _untold("other names, and FLOPs were not recorded on both sides")


def _by_launch(before: Analysis, after: Analysis, asked: Asked | None) -> Work:
    """Judge by threads and output where neither operations nor instructions were counted on both sides."""
    if asked == "same":
        return _same("the same arguments")
    missing = "neither FLOPs nor instructions were recorded on both sides"
    if _alike(*_both(before, after, _output_sectors)):
        return _same("an output of the same size")
    threads = _both(before, after, threads_of)
    if asked == "other":
        return _untold(f"other sizes by its name or arguments, and {missing}")
    if threads != (None, None) and not _alike(*threads):
        grown = f"{_times(threads[1] / threads[0])} the threads" if threads[0] and threads[1] else "other launches"
        return _untold(f"{grown}, and {missing}")
    if not _named_alike(before, after):
        return _untold(f"other names, and {missing}")
    return _same("as many threads" if threads[0] else "one name")


def _named_alike(before: Analysis, after: Analysis) -> bool:
    """Return whether two functions share their name or a word of it: `reduceShared` and `reduceUnrolled`."""
    old, new = (one.kernel.function_name for one in (before, after))
    words = [{word.lower() for word in _WORD.findall(name)} - {"kernel"} for name in (old, new)]
    return old == new or bool(words[0] & words[1])


def _output_sectors(kernel: Kernel) -> float | None:
    """Return the sectors that a launch must store, without those that badly coalesced stores touch besides."""
    stored, excess = (kernel.code_totals.get(name) for name in ("store_sectors", "store_excess_sectors"))
    return stored - (excess or 0.0) if stored else None


def _bytes_follow(before: Analysis, after: Analysis, grown: float) -> bool:
    """Return whether DRAM bytes and operations changed by about the same factor: then the size changed."""
    old, new = (one.levels["dram"].amount_bytes for one in (before, after))
    return bool(old and new) and TOGETHER[0] <= log((new or 1.0) / (old or 1.0)) / log(grown) <= TOGETHER[1]


def _both(before: Analysis, after: Analysis, of: Callable[[Kernel], float | None]) -> tuple[float | None, float | None]:
    return of(before.kernel), of(after.kernel)


def _alike(old: float | None, new: float | None) -> bool:
    return bool(old and new) and _apart(old or 1.0, new or 1.0) <= log(1 + ALIKE)


def _apart(old: float, new: float) -> float:
    return abs(log(new / old))


def _times(grown: float) -> str:
    return f"{significant(grown)}x"
