"""A kernel with all its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import count, cut_name, duration, plain_name

if TYPE_CHECKING:
    from rooflens.api.kernel import Kernel
    from rooflens.api.report import Report
    from rooflens.api.verdict import Verdict
    from rooflens.model.summary import KernelSummary

_NAME_WIDTH = 60


class Group:
    """All launches of a kernel in a report, of which the median one gives the verdict.

    >>> import rooflens as rl
    >>> group = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").groups[0]
    >>> group.verdict.bound, len(group.launches)
    ('compute', 1)
    """

    __slots__ = ("_kernel", "_launches", "_summary")

    def __init__(self, summary: KernelSummary, kernel: Kernel, launches: Report) -> None:
        """Take the summary, its median launch, and all that were profiled."""
        self._summary = summary
        self._kernel = kernel
        self._launches = launches

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return (self._launches, self.launch_count) == (other._launches, other.launch_count)

    def __hash__(self) -> int:
        return hash(self._launches)

    def __repr__(self) -> str:
        name = cut_name(plain_name(self.name), _NAME_WIDTH)
        launches = count(self.launch_count, "launch")
        return f"<Group {name!r}: {duration(self.gpu_time_ns)} in {launches}, {self.verdict.shown_class}>"

    @property
    def name(self) -> str:
        """Demangled name of the kernel."""
        return self._summary.name

    @property
    def kernel(self) -> Kernel:
        """The median launch, in the middle of the GPU time: it stands for all of them."""
        return self._kernel

    @property
    def launches(self) -> Report:
        """The profiled launches, each a `Kernel`."""
        return self._launches

    @property
    def launch_count(self) -> int:
        """How many launches of the program the profiled ones represent."""
        return self._summary.launch_count

    @property
    def verdict(self) -> Verdict:
        """What limits the median launch."""
        return self._kernel.verdict

    @property
    def gpu_time_ns(self) -> float | None:
        """GPU time of all launches in nanoseconds; None where none was timed."""
        return self._summary.duration_ns

    @property
    def winnable_ns(self) -> float | None:
        """Nanoseconds that the first moves win over all launches, by which groups are ordered; None where unknown."""
        return self._summary.winnable_ns
