"""The launches of a timeline in columns: what differs from launch to launch is a number in an array.

What launches have in common is kept and looked up once for all that are alike. Standard library only: machines that
only collect read timelines, too.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, TypeVar, overload

from rooflens.model.program.timeline import BusyEvent, KernelEvent

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rooflens.model.program.timeline import StepRange

NO_STEP = -1
"""In place of the index of a step, where the host marked none."""

_K = TypeVar("_K", bound="Hashable")


def indices(keys: Iterable[_K]) -> tuple[array[int], list[_K]]:
    """Return the index of each key among the different ones, and these in the order in which they came first."""
    index_of: defaultdict[_K, int] = defaultdict(count().__next__)
    return array("i", map(index_of.__getitem__, keys)), [*index_of]


class Launches(Sequence[KernelEvent]):
    """The launches of a timeline, in the order in which they began.

    Attributes:
        starts, durations: In nanoseconds.
        kinds: Index of what each is alike.
        lanes: Index of its stream.
        calls, launched_by: As in `KernelEvent`.
        steps: Index of its step; `NO_STEP` without one.
        alike: What those have in common that differ only by when, where and in which call they ran.
        streams: GPU and number of each stream.
        step_ranges: The steps.
    """

    def __init__(self) -> None:
        self.starts, self.durations = array("q"), array("q")
        self.kinds, self.lanes, self.steps = array("i"), array("i"), array("i")
        self.calls, self.launched_by = array("i"), array("q")
        self.alike: list[KernelEvent] = []
        self.streams: list[tuple[int, int]] = []
        self.step_ranges: list[StepRange] = []

    @classmethod
    def of(cls, events: Iterable[KernelEvent]) -> Launches:
        """Put launches into columns, as long as they are not."""
        if isinstance(events, Launches):
            return events
        made = cls()
        kinds: dict[tuple[object, ...], int] = {}
        lanes: dict[tuple[int, int], int] = {}
        steps: dict[StepRange | None, int] = {None: NO_STEP}
        for event in events:
            (name, grid, block, start, duration, device, stream, *origin, call, operands, sent, launched_by, step) = (
                event
            )
            # Equal operands are one, and equal collectives are, which the first launch of the alike keeps.
            key = name, grid, block, *origin, id(operands), id(sent)
            if (kind := kinds.get(key)) is None:
                kind = kinds[key] = len(made.alike)
                made.alike.append(event)
            if step not in steps:
                steps[step] = len(steps) - 1
            made.starts.append(start)
            made.durations.append(duration)
            made.kinds.append(kind)
            made.lanes.append(lanes.setdefault((device, stream), len(lanes)))
            made.steps.append(steps[step])
            made.calls.append(call)
            made.launched_by.append(launched_by)
        made.streams, made.step_ranges = [*lanes], [step for step in steps if step is not None]
        return made

    def __len__(self) -> int:
        """Count the launches."""
        return len(self.starts)

    @overload
    def __getitem__(self, at: int) -> KernelEvent: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[KernelEvent]: ...

    def __getitem__(self, at: int | slice) -> KernelEvent | Sequence[KernelEvent]:
        """Return a launch, or several, each made when it is asked for."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        name, grid, block, *_ = first = self.alike[self.kinds[at]]
        step = self.steps[at]
        return KernelEvent(
            name,
            grid,
            block,
            self.starts[at],
            self.durations[at],
            *self.streams[self.lanes[at]],
            first.nvtx_range,
            first.operator,
            first.module,
            first.code,
            self.calls[at],
            first.operands,
            first.collective,
            self.launched_by[at],
            None if step == NO_STEP else self.step_ranges[step],
        )

    def of_kinds(self, labels: Sequence[int], count: int) -> list[array[int]]:
        """Return the numbers of the launches of each label, in order.

        Args:
            labels: The label of each kind, from 0.
            count: How many labels there are.
        """
        found = [array("I") for _ in range(count)]
        add = [one.append for one in found]
        for number, kind in enumerate(map([add[label] for label in labels].__getitem__, self.kinds)):
            kind(number)
        return found

    def beside(self, others: Iterable[BusyEvent]) -> Iterator[tuple[range, BusyEvent | None]]:
        """Part the launches by the few other events: yield those that begin before one, and it; None after the last."""
        first = 0
        for other in others:
            stop = bisect_left(self.starts, other.start_ns, first)
            while stop < len(self) and (self.starts[stop], self.durations[stop]) <= other[:2]:
                stop += 1
            yield range(first, stop), other
            first = stop
        yield range(first, len(self)), None
