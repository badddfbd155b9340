"""What a run of a program without ncu showed: its time, its gaps, and how often and how long each kernel ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["workload", "nsys", "trace", "wall"]
SOURCES: tuple[Source, ...] = ("workload", "nsys", "trace", "wall")
Shape = tuple[int, int, int] | None
"""Grid or block of a launch; None if a report does not say."""


@dataclass(frozen=True, slots=True)
class LaunchCount:
    """How often one kernel was launched in one shape, and how long it ran; its name is that of `Kernel.name`.

    Attributes:
        time_ns: Median time of a launch; None where launches were not timed one by one.
        gap_ns: Median idle time of the GPU around one launch, of two the lower: half of the gap before it and half
            of the one after it. None if not timed.
        low_ns, high_ns: Tenth and ninetieth percentile of the times.
        total_ns: Time of all launches.
        streams: Numbers of the streams that it ran in.
        nvtx_range, operator, module, code: What most launches came from, as in `KernelEvent`; None where unknown.
    """

    name: str
    grid: Shape
    block: Shape
    count: int
    time_ns: int | None = None
    gap_ns: int | None = None
    low_ns: int | None = None
    high_ns: int | None = None
    total_ns: int | None = None
    streams: tuple[int, ...] = ()
    nvtx_range: str | None = None
    operator: str | None = None
    module: str | None = None
    code: str | None = None

    @property
    def summed_ns(self) -> int:
        """`total_ns`, else the median time as often as it was launched; 0 where nothing was timed."""
        return self.total_ns or self.count * (self.time_ns or 0)


@dataclass(frozen=True, slots=True)
class GapsAfter:
    """The gaps that begin where one kernel ends.

    Attributes:
        name: As in `Kernel.name`; None for copies and for graphs that were traced whole.
        count: How many gaps.
        gap_ns: Their sum.
    """

    name: str | None
    count: int
    gap_ns: int


@dataclass(frozen=True, slots=True)
class InProgram:
    """One kernel in its program, without ncu.

    Attributes:
        time_ns: How long a typical launch runs.
        gap_ns: How long the GPU is idle around it.
        launches: Launches that one profile stands for; 0 where they were not counted.
        low_ns, high_ns: Tenth and ninetieth percentile of the times; None where only the median was kept.
        total_ns: Time of all launches that one profile stands for; None if it was not kept.
        share: `total_ns` over the time of all kernels of the program; kernels that overlap count in full.
        streams, nvtx_range, operator, module, code: As in `LaunchCount`.
    """

    time_ns: int
    gap_ns: int
    launches: int = 0
    low_ns: int | None = None
    high_ns: int | None = None
    total_ns: float | None = None
    share: float | None = None
    streams: tuple[int, ...] = ()
    nvtx_range: str | None = None
    operator: str | None = None
    module: str | None = None
    code: str | None = None

    @property
    def gap_outweighs(self) -> bool:
        """True where the GPU is idle around it for longer than it runs."""
        return self.gap_ns > self.time_ns


@dataclass(frozen=True, slots=True)
class Unprofiled:
    """What a run without the profiler showed.

    Attributes:
        wall_ns: Time of the measured part: the iterations of a workload, from the first to the last kernel with nsys,
            the whole program otherwise; None if only totals were kept.
        kernel_ns: Union of the intervals in which kernels or copies ran; None if nobody looked.
        launches: Kernels that were launched in the measured part.
        source: What measured: the workload itself, nsys, a trace of the PyTorch profiler, or only a wall clock.
        iterations: How often the workload did its work in `wall_ns`.
        launch_counts: Launches of each kernel and shape, where they are known.
        gaps_after: The longest gaps by the kernel that ran before them, longest sum first, where they are known.
        cold_ns: As `kernel_ns`, with the operands of each iteration in DRAM instead of where the one before left them;
            None if it was not measured.
        cublas_ns: Kernel time of cuBLAS for as many iterations of the same work; None if it was not measured.
        overlap_ns: Time in which two kernels or copies or more ran at once; None if nobody looked.
        gpu: Name of the GPU; None if unknown, or where there were several.
    """

    wall_ns: int | None
    kernel_ns: int | None = None
    launches: int | None = None
    source: Source = "wall"
    iterations: int = 1
    launch_counts: tuple[LaunchCount, ...] = ()
    gaps_after: tuple[GapsAfter, ...] = ()
    cublas_ns: int | None = None
    overlap_ns: int | None = None
    gpu: str | None = None
    cold_ns: int | None = None

    @property
    def cublas_share(self) -> float | None:
        """Speed as a part of cuBLAS's; over 1 where it is faster. None if either time is unknown."""
        return self.cublas_ns / self.kernel_ns if self.cublas_ns and self.kernel_ns else None

    @property
    def gap_share(self) -> float | None:
        """Part of the time in which no kernel ran, 0 to 1; None if unknown."""
        if self.kernel_ns is None or not self.wall_ns:
            return None
        return max(0.0, 1.0 - self.kernel_ns / self.wall_ns)

    @property
    def gap_ns(self) -> int | None:
        """Time in which no kernel ran; None if unknown."""
        if self.gap_share is None or self.kernel_ns is None or self.wall_ns is None:
            return None
        return max(0, self.wall_ns - self.kernel_ns)

    @property
    def kernels_ns(self) -> int | None:
        """Sum of the times of all launches; None if they were not timed."""
        times = [entry.total_ns for entry in self.launch_counts]
        return sum(one or 0 for one in times) if times and None not in times else None

    def slowdown(self, profiled_ns: float, profiled_count: int) -> float | None:
        """Divide the kernel time of a profile by that of this run, both of one iteration.

        None if this run did not time its kernels, or where the profile holds other launches than one iteration.
        """
        if not self.kernel_ns or not self.launches or profiled_count * self.iterations != self.launches:
            return None
        return profiled_ns * self.iterations / self.kernel_ns
