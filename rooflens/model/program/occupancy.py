"""What runs on one GPU at each instant, in one pass over its events in start order."""

from __future__ import annotations

from array import array
from heapq import heappop, heappush, heappushpop
from typing import NamedTuple, Protocol

from rooflens.model.program.timeline import NO_CALL

KERNEL, GRAPH, COMMUNICATION, COPY, UNKNOWN = range(5)
"""What may run, in the order in which an instant goes to one of them."""

_IDLE = 5
"""In their place, where nothing runs."""

OTHER = -1
"""In place of the number of a launch, for what is no kernel."""

_MOST_KERNELS, _MOST_OTHERS = 1024, 2
"""Most running at once that are followed one by one, those that end last: more kernels than a GPU runs at once; of
others a third neither changes whether one runs, nor whether two do."""


class Credited(Protocol):
    """Something that gets its part of each instant in which a kernel of it ran."""

    wall_ns: float


class TimelineOccupancy(NamedTuple):
    """What ran on the GPUs of a program, each instant counted once; the fields after the first add up to it.

    Attributes:
        wall_ns: From the first kernel or graph of each GPU to the end of its last, summed over GPUs.
        kernels_ns: A kernel ran that does not wait for other GPUs.
        graphs_ns: No such kernel, but a graph that was traced as one.
        communication_ns: None of these, but a kernel that waits for other GPUs.
        copies_ns: None of these, but a copy or a memset.
        unknown_ns: None of these, but a graph may have run of which nothing was recorded.
        idle_ns: Nothing ran.
    """

    wall_ns: int = 0
    kernels_ns: int = 0
    graphs_ns: int = 0
    communication_ns: int = 0
    copies_ns: int = 0
    unknown_ns: int = 0
    idle_ns: int = 0


class Gaps:
    """When a GPU was idle, in columns.

    Attributes:
        starts, ends: In nanoseconds.
        after, until: Numbers of the launches that ran last before each gap, and that ended it; `OTHER` if that was no
            kernel.
        calls: Numbers of the host's calls that launched what ended each gap, as in `KernelEvent.launched_by`.
        before: The operator or kernel that ended each.
    """

    def __init__(self) -> None:
        self.starts, self.ends, self.calls = array("q"), array("q"), array("q")
        self.after, self.until = array("i"), array("i")
        self.before: list[str | None] = []

    def add(self, start_ns: int, end_ns: int, after: int, until: int) -> None:
        """Add a gap; what launched the kernel that ended it is filled in when all were added."""
        self.starts.append(start_ns)
        self.ends.append(end_ns)
        self.after.append(after)
        self.until.append(until)
        self.calls.append(NO_CALL)
        self.before.append(None)

    def cut(self, length: int) -> None:
        """Forget all but the first."""
        for column in (self.starts, self.ends, self.after, self.until, self.calls, self.before):
            del column[length:]


class Gpu:
    """Replays the events of one GPU.

    Attributes:
        gaps: When it was idle; complete once it is finished.
        overlap_ns: Time in which two things or more ran.
    """

    def __init__(self) -> None:
        self.gaps = Gaps()
        self.overlap_ns = 0
        self.has_worked = False
        self._spent = [0] * 6
        self._after_work = [0] * 6
        self._overlap_after_work = 0
        self._is_more = False
        self._gaps_kept = 0
        self._now_ns = 0
        self._clock = 0.0
        self._kernels: list[tuple[int, float, int, Credited | None]] = []
        self._others: tuple[list[int], ...] = ([], [], [], [], [])
        self._other_count = 0
        self._reached_ns = -1 << 63
        self._last = OTHER

    def launch(self, start_ns: int, end_ns: int, number: int, row: Credited | None) -> None:
        """Run a kernel that does not wait for other GPUs.

        Args:
            start_ns: When it begins.
            end_ns: When it ends.
            number: Of the launch.
            row: What gets its part of the time.
        """
        kernels = self._kernels
        if len(kernels) != 1 or self._other_count or (last := kernels[0])[0] > start_ns:
            self.reach(start_ns, number, is_work=True)
            self.run(end_ns, KERNEL, number, row)
            return
        # As most do, it follows another kernel, beside which nothing ran.
        ended_ns, began, _, before = last
        spent = self._spent
        spent[KERNEL] += ended_ns - self._now_ns
        self._clock += ended_ns - self._now_ns
        if before is not None:
            before.wall_ns += self._clock - began
        if ended_ns != start_ns:
            spent[_IDLE] += start_ns - ended_ns
            self.gaps.add(ended_ns, start_ns, self._last, number)
            self._gaps_kept = len(self.gaps.starts)
        kernels[0] = end_ns, self._clock, number, row
        self._now_ns, self._reached_ns, self._last = start_ns, end_ns, number

    def reach(self, start_ns: int, number: int = OTHER, *, is_work: bool) -> bool:
        """Go to where the next event begins; return whether there was a gap before it.

        Copies before the first kernel or graph and after the last do not count, and neither do gaps there.

        Args:
            start_ns: When it begins.
            number: Of the launch; `OTHER` if it is no kernel.
            is_work: Whether it is a kernel or a graph.
        """
        if not self.has_worked:
            if is_work:
                self.has_worked = True
                self._end_until(start_ns, is_counted=False)
                self._now_ns = start_ns
                self._reached_ns, self._last = max(self._reached_ns, start_ns), OTHER
            return False
        is_gap = start_ns > self._reached_ns
        if is_gap:
            self._is_more = True
            self.gaps.add(self._reached_ns, start_ns, self._last, number)
        self._end_until(start_ns)
        if is_work and self._is_more:
            self._keep_after_work()
        return is_gap

    def run(self, end_ns: int, kind: int, number: int = OTHER, row: Credited | None = None) -> None:
        """Run the event that begins at the moment just reached."""
        if kind == KERNEL:
            entry = end_ns, self._clock, number, row
            if len(self._kernels) < _MOST_KERNELS:
                heappush(self._kernels, entry)
            else:
                self._credit(heappushpop(self._kernels, entry))
        elif len(running := self._others[kind]) < _MOST_OTHERS:
            heappush(running, end_ns)
            self._other_count += 1
        else:
            heappushpop(running, end_ns)
        if kind != UNKNOWN and end_ns >= self._reached_ns:
            self._last = number
        self._reached_ns = max(self._reached_ns, end_ns)

    def finish(self) -> TimelineOccupancy:
        """End what runs, and return what each part of the time took."""
        works = [*(end for end, *_ in self._kernels), *self._others[GRAPH], *self._others[COMMUNICATION]]
        works += self._others[UNKNOWN]
        if works:
            self._end_until(max(works))
        self.gaps.cut(self._gaps_kept)
        kernels, graphs, communication, copies, unknown, idle = self._spent
        return TimelineOccupancy(sum(self._spent), kernels, graphs, communication, copies, unknown, idle)

    def _keep_after_work(self) -> None:
        """Count what came since the last work: now more has come."""
        self._is_more = False
        self._gaps_kept = len(self.gaps.starts)
        for kind, after_ns in enumerate(self._after_work):
            self._spent[kind] += after_ns
            self._after_work[kind] = 0
        self.overlap_ns += self._overlap_after_work
        self._overlap_after_work = 0

    def _end_until(self, moment_ns: int, *, is_counted: bool = True) -> None:
        """Advance to a moment, ending in order what ends before it."""
        kernels = self._kernels
        while kernels or self._other_count:
            kind, end_ns = KERNEL, kernels[0][0] if kernels else moment_ns + 1
            if self._other_count:
                for other in (GRAPH, COMMUNICATION, COPY, UNKNOWN):
                    if (running := self._others[other]) and running[0] < end_ns:
                        kind, end_ns = other, running[0]
            if end_ns > moment_ns:
                break
            if is_counted and end_ns != self._now_ns:
                self._spend(end_ns)
            if kind == KERNEL:
                self._credit(heappop(kernels))
            else:
                heappop(self._others[kind])
                self._other_count -= 1
        if is_counted and moment_ns != self._now_ns:
            self._spend(moment_ns)

    def _spend(self, until_ns: int) -> None:
        """Give the time up to a moment to what runs."""
        spent_ns, self._now_ns = until_ns - self._now_ns, until_ns
        kernels, others = len(self._kernels), self._others
        known = kernels + self._other_count - len(others[UNKNOWN])
        if kernels:
            self._clock += spent_ns / kernels
            self._spent[KERNEL] += spent_ns
            self.overlap_ns += spent_ns if known > 1 else 0
            return
        kind = next((kind for kind in range(1, _IDLE) if others[kind]), _IDLE)
        if others[GRAPH] or others[COMMUNICATION] or others[UNKNOWN]:
            self._spent[kind] += spent_ns
            self.overlap_ns += spent_ns if known > 1 else 0
        else:
            self._is_more = True
            self._after_work[kind] += spent_ns
            self._overlap_after_work += spent_ns if known > 1 else 0

    def _credit(self, ended: tuple[int, float, int, Credited | None]) -> None:
        _, began, _, row = ended
        if row is not None:
            row.wall_ns += self._clock - began
