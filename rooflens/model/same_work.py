"""The one rule of what is the same work: two kernels' times are compared only where both did the same job.

Sizes show in everything at once: twice the elements are twice the threads, operations and bytes. A change of the code
shows in some of it: fewer threads that each do more, other instructions for the same operations. So as many counted
operations are the same work, of another type, too. Other amounts are it where the program's arguments stayed, or where
the output stayed and a change of the code explains the difference: fp64, divisions or padding that went. Without
counts, instructions, threads, bytes and output are asked, and amounts that grew together are another size. Where
nothing that was recorded tells, nothing is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import log, prod
from typing import Literal

from msgspec import Struct

from rooflens.format import duration, percent, quantity, si, significant
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.records import Analysis, Kernel, ratio
from rooflens.model.roofline.opcodes import uses_tensor_cores
from rooflens.model.roofline.work import main_work
from rooflens.model.verdict.thresholds import default_thresholds

OF_A_DIVISION = 24.0
"""FLOPs of a division or root at most: twelve multiply-adds around one approximation by the special function unit."""


_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")

_VARIANT_WORDS = frozenset(
    {"kernel", "naive", "basic", "baseline", "simple", "optimized", "tile", "tiled", "tiling", "unroll", "unrolled"}
    | {"shared", "smem", "gmem", "global", "coalesced", "vectorized"}
    | {"gpu", "cuda", "device", "nvkernel"}
)
"""Words of names that say how or where a job is done, not which: `gemm_tiled` and `transpose_tiled` share no job."""

_OF_A_LINE = re.compile(r"_\d+_gpu(?:__red)?\Z|_F\d+L\d+(?:_\d+)*\Z|\A__omp_offloading_")
"""Names that compilers of OpenACC and OpenMP give to loops, by the line of each."""

_SIDES = re.compile(
    r"(?:(?<=_)|\A)(?:[xyzuvw]|rows?|cols?|forward|backward|fwd|bwd|left|right|up|down|lower|upper)(?=_|\Z)",
    re.IGNORECASE,
)
"""Parts of names that tell halves of one job apart: `sweep_x` is no version of `sweep_z`, nor forward of backward."""


Asked = Literal["same", "other"]


class WorkMatch(Struct, frozen=True):
    """Whether two kernels did the same work.

    Attributes:
        same: None if nothing that was recorded tells.
        why: What tells it, or what is missing, in words.
        assumed: Nothing tells, but someone named both reports to have them compared.
    """

    same: bool | None
    why: str
    assumed: bool = False

    @property
    def is_compared(self) -> bool:
        """True where the times may be set against each other."""
        return bool(self.same) or self.assumed


class UnitTime(Struct, frozen=True):
    """The time that a kernel takes for a unit of its work.

    Attributes:
        time_ns: Nanoseconds a unit.
        unit: `kFLOP`, `kOP` or `1000 instructions`.
    """

    time_ns: float
    unit: str

    def beside(self, other: UnitTime) -> str:
        """Write the rate against that of another kernel: `102 GFLOP/s against 6.30 TFLOP/s`."""
        if self.unit.startswith("k"):
            rates = (si(1e3 / (one.time_ns * 1e-9), f"{one.unit[1:]}/s") for one in (self, other))
            return " against ".join(rates)
        return f"{duration(self.time_ns)} per {self.unit} against {duration(other.time_ns)}"


def same_work(before: Analysis, after: Analysis, asked: Asked | None = None) -> WorkMatch:
    """Return whether two kernels did the same work, and what tells it.

    Args:
        before: One launch.
        after: The other.
        asked: Whether both programs were given the same sizes or others; None if unknown.
    """
    ours, theirs = main_work(before), main_work(after)
    if ours.total and theirs.total and ours.unit == theirs.unit:
        return _by_operations(before, after, (ours.total, theirs.total, ours.unit), asked)
    if _is_close(ours.total, theirs.total) and named_alike(before, after):
        return _same(f"as many operations, in another type: {si(theirs.total or 0.0, theirs.unit)}")
    instructions = _instructions(before), _instructions(after)
    if instructions[0] and instructions[1] and _issues_alike(before, after):
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
    for unit, amount in _WORK_UNITS:
        known = [amount(one) for one in both]
        if time_ns and all(known) and known[0] and (unit[0] != "k" or len({main_work(one).unit for one in both}) == 1):
            name = f"k{main_work(analysis).unit}" if unit == "k" else unit
            return UnitTime(time_ns / known[0] * 1e3, name)
    return None


def _operations(analysis: Analysis) -> float | None:
    return main_work(analysis).total


def threads_of(kernel: Kernel) -> int | None:
    """Return the threads of a launch; None if the report does not state its shape."""
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


_WORK_UNITS: tuple[tuple[str, Callable[[Analysis], float | None]], ...] = (
    ("k", _operations),
    ("1000 instructions", _instructions),
)
"""Amounts of work, the best first. Threads are none: a version that computes more in each has fewer of them."""


def _same(why: str) -> WorkMatch:
    return WorkMatch(same=True, why=why)


def _other(why: str) -> WorkMatch:
    return WorkMatch(same=False, why=why)


def _untold(why: str) -> WorkMatch:
    return WorkMatch(same=None, why=why)


def _by_operations(before: Analysis, after: Analysis, work: tuple[float, float, str], asked: Asked | None) -> WorkMatch:
    old, new, unit = work
    amounts = f"{si(new, unit)}, not {si(old, unit)}"
    if _is_close(old, new):
        return _same(f"as many {unit}s: {si(new, unit)}")
    if asked == "same" and _apart(old, new) <= 2 * log(default_thresholds().several):
        return _same(f"the same arguments ({amounts})")
    is_near = asked is None and _apart(old, new) <= log(default_thresholds().several)
    if is_near and unit == "FLOP" and _stores_as_much(before, after) and (gone := _what_went(before, after)):
        return _same(f"an output of the same size, {gone} ({amounts})")
    return _other(f"other work: {amounts}")


def _what_went(before: Analysis, after: Analysis) -> str:
    """Name what the code of two versions of one job must differ in for their FLOPs to; empty if nothing known does.

    A division is a dozen multiply-adds at most around one approximation, so its FLOPs are counted with it. fp64 that
    went leaves no more operations than there were, and no fewer than those of the other types.
    """
    more, less = sorted((before, after), key=lambda one: -(one.flop_total or 0.0))
    spared = (more.flop_total or 0.0) - (less.flop_total or 0.0)
    seeds = _approximations(more) - _approximations(less)
    if 0 < spared <= OF_A_DIVISION * seeds:
        return "fewer divisions" if less is after else "more divisions"
    little = default_thresholds().little_share
    double, left = (_flop_of(one, "fp64") for one in (more, less))
    if double > little * (more.flop_total or 0.0) and left <= little * double and spared <= double:
        return "without fp64" if less is after else "with fp64"
    if _is_padding(more, less):
        return "without threads beyond the data" if less is after else "with threads beyond the data"
    return ""


def _is_padding(more: Analysis, less: Analysis) -> bool:
    """Return whether threads beyond the data do what one counts more: as many operations each, of no more bytes."""
    threads = _both_sides(more, less, threads_of)
    each = [ratio(one.flop_total, count) for one, count in zip((more, less), threads, strict=True)]
    moved = (one.levels["dram"].amount_bytes for one in (more, less))
    return _alike(*each) and _is_close(*moved)


def _approximations(analysis: Analysis) -> float:
    """Count the reciprocals and roots that the special function unit begins."""
    counted = analysis.kernel.thread_opcodes.items()
    return float(sum(count for opcode, count in counted if opcode.startswith(("MUFU.RCP", "MUFU.RSQ"))))


def _flop_of(analysis: Analysis, dtype: str) -> float:
    pipe = analysis.pipes.get(dtype)
    return (pipe.amount or 0.0) if pipe is not None else 0.0


def _issues_alike(before: Analysis, after: Analysis) -> bool:
    """Return whether instructions of both can be compared: one of the tensor cores does what hundreds of others do."""
    tensor = [_uses_tensor_cores(one) for one in (before, after)]
    return None in tensor or tensor[0] == tensor[1]


def _uses_tensor_cores(analysis: Analysis) -> bool | None:
    share = analysis.kernel.counters.get("tensor_active_share")
    if uses_tensor_cores(analysis.kernel.warp_opcodes):
        return True
    return None if share is None and not analysis.kernel.warp_opcodes else bool(share)


def _by_instructions(before: Analysis, after: Analysis, work: tuple[float, float], asked: Asked | None) -> WorkMatch:
    old, new = work
    if why := _as_much(before, after, _apart(old, new), asked):
        return _same(why)
    threads = _both_sides(before, after, threads_of)
    is_alike = _is_close(old, new)
    if _apart(old, new) > log(default_thresholds().several) or (asked == "other" and not is_alike):
        return _other(f"other work: {quantity(new, 'instructions')}, not {quantity(old, 'instructions')}")
    if threads[0] and threads[1] and not _alike(*threads):
        grown = threads[1] / threads[0]
        if _is_close(grown, new / old):
            return _other(f"other work: {_times_as_many(grown)} threads, each with as many instructions")
    is_grown = _alike(*threads) and not _alike(*_both_sides(before, after, _output_sectors))
    if not is_alike and is_grown and _bytes_follow(before, after, new / old):
        return _other(f"other work: {_times_as_many(new / old)} instructions and the bytes")
    if named_alike(before, after):
        return _same(
            "as many instructions"
            if is_alike
            else f"instructions within a factor of {default_thresholds().several:.0f}"
        )
    return _by_products(before, after)


def _as_much(before: Analysis, after: Analysis, apart: float, asked: Asked | None) -> str:
    """Name the evidence that two kernels do the same work: equal arguments, or equal bytes; empty without any."""
    if apart > 2 * log(default_thresholds().several):
        return ""
    if asked == "same":
        return "the same arguments"
    old, new = (one.levels["dram"].amount_bytes for one in (before, after))
    is_told = asked is None and _alike(old, new) and named_alike(before, after)
    return f"as many bytes of DRAM: {si(new or 0.0, 'B')}" if is_told else ""


def _by_products(before: Analysis, after: Analysis) -> WorkMatch:
    """Judge kernels whose names tell nothing by how long their FMA pipes worked."""
    is_one_gpu = before.kernel.gpu_model == after.kernel.gpu_model
    if is_one_gpu and _is_close(_multiplying(before), _multiplying(after)):
        return _same("the FMA pipe worked as long")
    return _untold("other names, and FLOPs were not recorded on both sides")


def _by_launch(before: Analysis, after: Analysis, asked: Asked | None) -> WorkMatch:
    """Judge by threads and output where neither operations nor instructions were counted on both sides."""
    if asked == "same":
        return _same("the same arguments")
    missing = "neither FLOPs nor instructions were recorded on both sides"
    if _stores_as_much(before, after) and named_alike(before, after):
        return _same("an output of the same size")
    threads = _both_sides(before, after, threads_of)
    if asked == "other":
        return _untold(f"other sizes by its name or arguments, and {missing}")
    if threads != (None, None) and not _alike(*threads):
        grown = f"{_times_as_many(threads[1] / threads[0])} threads" if threads[0] and threads[1] else "other launches"
        return _untold(f"{grown}, and {missing}")
    if not named_alike(before, after):
        return _untold(f"other names, and {missing}")
    return _same("as many threads" if threads[0] else "one name")


def named_alike(before: Analysis, after: Analysis) -> bool:
    """Return whether two functions may do one job by their names: `reduceShared` and `reduceUnrolled`.

    They share a word that is not about how it is done, and neither is the other's half: `sweep_x` and `sweep_z`.
    """
    old, new = (one.kernel.function_name for one in (before, after))
    words = [{word.lower() for word in _WORD.findall(name)} - _VARIANT_WORDS for name in (old, new)]
    return old == new or (bool(words[0] & words[1]) and not halves(before, after))


def halves(before: Analysis, after: Analysis) -> bool:
    """Return whether names tell two functions apart as parts of one job: by axis, or as forward and backward."""
    old, new = ([part.lower() for part in _SIDES.findall(one.kernel.function_name)] for one in (before, after))
    return bool(old and new) and old != new


def are_loops_apart(before: Analysis, after: Analysis) -> bool:
    """Return whether two kernels of one run are loops of other lines of a source, which are no versions of one."""
    old, new = (one.kernel.function_name for one in (before, after))
    return old != new and all(map(_OF_A_LINE.search, (old, new)))


def _output_sectors(kernel: Kernel) -> float | None:
    """Return the sectors that a launch must store, without those that badly coalesced stores touch besides."""
    stored, excess = (kernel.code_totals.get(name) for name in ("store_sectors", "store_excess_sectors"))
    return stored - (excess or 0.0) if stored else None


def _stores_as_much(before: Analysis, after: Analysis) -> bool:
    """Return whether two launches store as much: by the needed sectors, else by all, where DRAM's bytes agree with it.

    Badly coalesced stores of a small output touch as many sectors as good ones of a large output, whose bytes differ.
    """
    needed = _both_sides(before, after, _output_sectors)
    if needed != (None, None):
        return _alike(*needed)
    old, new = (one.levels["dram"].amount_bytes for one in (before, after))
    is_other_size = bool(old and new) and not _apart_at_most(default_thresholds().far_more - 1, old, new)
    stored = _both_sides(before, after, lambda kernel: kernel.counters.get("global_store_sectors"))
    return _alike(*stored) and not is_other_size


def _bytes_follow(before: Analysis, after: Analysis, grown: float) -> bool:
    """Return whether DRAM bytes and operations changed by about the same factor: then the size changed."""
    old, new = (one.levels["dram"].amount_bytes for one in (before, after))
    most, followed = default_thresholds().far_more, log((new or 1.0) / (old or 1.0)) / log(grown)
    return bool(old and new) and 1 / most <= followed <= most


def _multiplying(analysis: Analysis) -> float | None:
    """Return the cycles in which FMA pipes worked, where that is what a kernel does: multiplying, as products do."""
    counters = analysis.kernel.counters
    busy, issue = counters.get("fma_busy_share"), counters.get("issue_active_share")
    cycles, sms = counters.get("elapsed_cycles"), counters.get("sm_count")
    instructions, threads = _instructions(analysis), threads_of(analysis.kernel)
    if not (busy and issue and cycles and sms and instructions and threads):
        return None
    limits = default_thresholds()
    is_product = (
        busy >= limits.quarter_share * issue and instructions >= limits.short_warp_instructions * threads / WARP_THREADS
    )
    return busy * cycles * sms if is_product else None


def does_no_less(analysis: Analysis, other: Analysis) -> bool:
    """Return whether a kernel may be a plainer version of another of one run, by what its FMA pipes did.

    It has the same launch, and the index arithmetic that comes on top runs on the same pipes: they work as long at
    least, for instructions within a factor of 4.
    """
    if as_many_operations(analysis, other) is not None:
        return False
    shapes = [(kernel.grid, kernel.block) for kernel in (analysis.kernel, other.kernel)]
    own, least = _multiplying(analysis), _multiplying(other)
    is_close = _apart_at_most(default_thresholds().several - 1, _instructions(analysis), _instructions(other))
    return (
        shapes[0] == shapes[1]
        and is_close
        and own is not None
        and own * (1 + default_thresholds().little_share) >= (least or float("inf"))
    )


def as_many_operations(analysis: Analysis, other: Analysis) -> bool | None:
    """Return whether two kernels count as many operations; None if either counts none."""
    ours, theirs = main_work(analysis), main_work(other)
    if not ours.total and not theirs.total:
        return None
    return ours.unit == theirs.unit and _is_close(ours.total, theirs.total)


def _both_sides(
    before: Analysis, after: Analysis, of: Callable[[Kernel], float | None]
) -> tuple[float | None, float | None]:
    return of(before.kernel), of(after.kernel)


def _is_close(old: float | None, new: float | None) -> bool:
    """Return whether amounts are of one job: padding and index arithmetic change them a little."""
    return _apart_at_most(default_thresholds().little_share, old, new)


def _alike(old: float | None, new: float | None) -> bool:
    return _apart_at_most(default_thresholds().negligible_share, old, new)


def _apart_at_most(part: float, old: float | None, new: float | None) -> bool:
    return bool(old and new) and _apart(old or 1.0, new or 1.0) <= log(1 + part)


def _apart(old: float, new: float) -> float:
    return abs(log(new / old))


def _times_as_many(grown: float) -> str:
    """Say how many times as many there are: `4.00x the`, `6.25 % of the`."""
    return f"{significant(grown)}x the" if grown >= 1 else f"{percent(grown)} of the"
