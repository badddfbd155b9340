"""What a run of a program without the profiler showed: its time, its gaps, and how often each kernel ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Source = Literal["workload", "nsys", "wall"]
SOURCES: tuple[Source, ...] = ("workload", "nsys", "wall")
Shape = tuple[int, int, int] | None
"""Grid or block of a launch; None where a report does not say."""


@dataclass(frozen=True, slots=True)
class LaunchCount:
    """How often one kernel was launched in one shape; its name is that of `Kernel.name`.

    Attributes:
        time_ns: Median time of one launch; None where launches were not timed one by one.
        gap_ns: Median idle time of the GPU around one launch: half of the gap before it and half of the
            one after it. None where not timed.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    count: int
    time_ns: int | None = None
    gap_ns: int | None = None


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
    """A typical launch of one kernel in its program, without the profiler.

    Attributes:
        time_ns: How long it runs.
        gap_ns: How long the GPU is idle around it.
    """

    time_ns: int
    gap_ns: int

    @property
    def gap_outweighs(self) -> bool:
        """True where the GPU is idle around it for longer than it runs."""
        return self.gap_ns > self.time_ns


@dataclass(frozen=True, slots=True)
class Unprofiled:
    """What a run without the profiler showed.

    Attributes:
        wall_ns: Time of the measured part: the iterations of a workload, from the first to the last kernel with nsys,
            the whole program otherwise.
        kernel_ns: Union of the intervals in which kernels or copies ran; None where nobody looked.
        launches: Kernels that were launched in the measured part.
        source: What measured: the workload itself, nsys, or only a wall clock.
        iterations: How often the workload did its work in `wall_ns`.
        launch_counts: Launches of each kernel and shape, where they are known.
        gaps_after: The longest gaps by the kernel that ran before them, longest sum first, where they are known.
        cublas_ns: Kernel time of cuBLAS for as many iterations of the same work; None where it was not measured.
    """

    wall_ns: int
    kernel_ns: int | None = None
    launches: int | None = None
    source: Source = "wall"
    iterations: int = 1
    launch_counts: tuple[LaunchCount, ...] = ()
    gaps_after: tuple[GapsAfter, ...] = ()
    cublas_ns: int | None = None

    @property
    def cublas_share(self) -> float | None:
        """Speed as a part of cuBLAS's; over 1 where it is faster. None where either time is unknown."""
        return self.cublas_ns / self.kernel_ns if self.cublas_ns and self.kernel_ns else None

    @property
    def gap_share(self) -> float | None:
        """Part of the time in which no kernel ran, 0 to 1; None where it is unknown."""
        if self.kernel_ns is None or self.wall_ns <= 0:
            return None
        return max(0.0, 1.0 - self.kernel_ns / self.wall_ns)

    @property
    def gap_ns(self) -> int | None:
        """Time in which no kernel ran; None where it is unknown."""
        return None if self.gap_share is None or self.kernel_ns is None else max(0, self.wall_ns - self.kernel_ns)

    def in_program(self, name: str, grid: Shape, block: Shape) -> InProgram | None:
        """Return the time of a typical launch of a kernel and shape, and the idle time around it; None if untimed."""
        same = (entry for entry in self.launch_counts if (entry.name, entry.grid, entry.block) == (name, grid, block))
        most = max(same, key=lambda entry: entry.count, default=None)
        if most is None or most.time_ns is None or most.gap_ns is None:
            return None
        return InProgram(most.time_ns, most.gap_ns)

    def launches_of(self, name: str, grid: Shape, block: Shape, profiled: int) -> int:
        """Return how many launches of one iteration each of the `profiled` ones of a kernel and shape stands for.

        1 where the un-profiled run did not count launches.
        """
        found = sum(
            entry.count
            for entry in self.launch_counts
            if entry.name == name and (entry.grid, entry.block) == (grid, block)
        )
        return max(1, round(found / self.iterations / profiled))

    def names_without(self, profiled: Collection[tuple[str, Shape, Shape]]) -> tuple[str, ...]:
        """Name the kernels that ran and were not profiled in every shape, the one launched most often first.

        Args:
            profiled: Name, grid and block of each profile.
        """
        missing: Counter[str] = Counter()
        for entry in self.launch_counts:
            if (entry.name, entry.grid, entry.block) not in profiled:
                missing[entry.name] += entry.count
        return tuple(name for name, _ in missing.most_common())

    def slowdown(self, profiled_ns: float, profiled_count: int) -> float | None:
        """Divide the kernel time of a profile by that of this run, both of one iteration.

        None where this run did not time its kernels, or where the profile holds other launches than one iteration.
        """
        if not self.kernel_ns or not self.launches or profiled_count * self.iterations != self.launches:
            return None
        return profiled_ns * self.iterations / self.kernel_ns
