"""What a profiler's printed summary says of a program: totals by kernel or operator, without when anything ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from msgspec import Struct

from rooflens.model.unprofiled import LaunchCount, Shape, Source, Unprofiled

if TYPE_CHECKING:
    from rooflens.model.program.timeline import Operands

TotalOf = Literal["kernel", "operator", "copy", "call", "range"]
TOTALS_OF: tuple[TotalOf, ...] = get_args(TotalOf)
"""What a total is of: kernels, operators by the time of the kernels that they launch themselves, copies and memsets,
calls of the host, ranges of the program by their time on the host."""


class Total(Struct, frozen=True):
    """What a profiler added up beside the kernels, or of the same time in another way.

    Attributes:
        of: What it is of.
        name: As printed; `...` at its end where it was cut.
        count: How often.
        time_ns: The sum of their times: on the GPU of kernels, operators and copies, on the host of calls and ranges.
    """

    of: TotalOf
    name: str
    count: int
    time_ns: int


class KernelTotal(NamedTuple):
    """A row of kernels that were launched alike.

    Attributes:
        name: The kernel; the operator where its kernels are not told apart.
        launches: How often; calls of the operator where its kernels are not told apart.
        time_ns: The sum of their times.
        launch_ns: The median launch, or the mean where no median was printed.
        grid, block: Of these launches; None if unknown.
        operator: The operator that launched it.
        operands: What the operator was called with.
        calls: Calls of the operator; None without one.
        nvtx_range, code: Where they were launched.
    """

    name: str
    launches: int
    time_ns: int
    launch_ns: int
    grid: Shape = None
    block: Shape = None
    operator: str | None = None
    operands: Operands | None = None
    calls: int | None = None
    nvtx_range: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """A printed summary of a program: what ran for how long, but not when, so that gaps and overlaps are unknown.

    Attributes:
        source: Path as it was given.
        kind: What printed it.
        kernels: Each nanosecond of a kernel once.
        others: What was added up beside them.
        notes: What it does not say, and what was left out of it, a sentence each.
        measured_by: The tool behind it.
    """

    source: str
    kind: str
    kernels: tuple[KernelTotal, ...]
    others: tuple[Total, ...] = ()
    notes: tuple[str, ...] = ()
    measured_by: Source = "trace"

    def unprofiled(self) -> Unprofiled:
        """Return what it says of a run without ncu: launches and their times, no wall time and no gaps."""
        counts = [
            LaunchCount(
                one.name,
                one.grid,
                one.block,
                count=one.launches,
                time_ns=one.launch_ns,
                total_ns=one.time_ns,
                nvtx_range=one.nvtx_range,
                operator=one.operator,
                code=one.code,
            )
            for one in self.kernels
        ]
        launches = sum(one.launches for one in self.kernels)
        ordered = tuple(sorted(counts, key=lambda one: (-one.count, one.name)))
        return Unprofiled(None, None, launches, self.measured_by, launch_counts=ordered)
