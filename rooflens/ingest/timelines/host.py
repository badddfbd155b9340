"""What the host of a trace of the PyTorch profiler did, and the graphs that it launched and nothing recorded."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from rooflens.ingest.timelines.spans import NONE, Spans, opened_at
from rooflens.model.program.timeline import NO_CALL, BusyEvent, Call, HostSpan, Opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.ingest.timelines.budget import TimelineBudget
    from rooflens.ingest.timelines.columns import TraceColumns

_NO_CALL = Call(NO_CALL, 0, 0)
_LOOKED = 1024
"""Moments between two looks at the time left."""


class TracedHost:
    """What the threads of a trace had open."""

    def __init__(self, trace: TraceColumns, budget: TimelineBudget) -> None:
        self._trace, self._budget = trace, budget

    def calls(self, numbers: array[int]) -> Iterator[Call]:
        """Yield the calls of some numbers."""
        launches = self._trace.launches
        for number in numbers:
            thread = launches.threads[number] if number != NONE else NONE
            yield Call(thread, launches.starts[number], launches.ends[number]) if thread >= 0 else _NO_CALL

    def opened(self, thread: int, moments: Sequence[int]) -> Iterator[Opened]:
        """Yield what a thread had open at each of some moments, which are in order."""
        trace = self._trace

        def spans_of(spans: Spans, name: Callable[[int], str]) -> Iterator[tuple[HostSpan, ...]]:
            if thread not in spans.by_thread:
                yield from repeat((), len(moments))
                return
            starts, ends, facts = spans.starts, spans.ends, spans.facts
            around = spans.around(spans.in_order(thread), moments)
            yield from opened_at((HostSpan(name(facts[at]), starts[at], ends[at]) for at in around), moments)

        text = trace.texts.__getitem__
        frames = trace.frames.innermost(trace.frames.in_order(thread), moments)
        every = zip(
            spans_of(trace.runtime, text),
            spans_of(trace.operators, lambda fact: trace.said[fact].operator),
            spans_of(trace.ranges, text),
            frames,
            strict=True,
        )
        for at, (calls, operators, ranges, frame) in enumerate(every):
            if not at % _LOOKED:
                self._budget.check_time()
            code = None if frame == NONE else text(trace.frames.facts[frame])
            yield Opened(calls, operators, ranges, code)


def unseen_graphs(trace: TraceColumns) -> Iterator[BusyEvent]:
    """Yield when graphs may have run of which nothing was recorded, on each GPU that is known.

    From the call that launched one until a call that waits for the GPU returns, or until the GPU begins what was
    launched after it.
    """
    launches, kernels = trace.launches, trace.kernels
    if not launches.graphs:
        return
    recorded = {*kernels.launches, *(one.launched_by for one in trace.others)}
    unseen = sorted((launches.starts[one], one) for one in launches.graphs if one not in recorded)
    if not unseen:
        return
    waits = sorted(
        (trace.runtime.starts[at], trace.runtime.ends[at])
        for at, fact in enumerate(trace.runtime.facts)
        if "synchronize" in trace.texts[fact].lower()
    )
    works = sorted(
        (launches.starts[launch], start)
        for launch, start in (
            *zip(kernels.launches, kernels.starts, strict=True),
            *((one.launched_by, one.start_ns) for one in trace.others),
        )
        if launch != NONE and launches.threads[launch] != NONE
    )
    devices = {*(device for device, _ in kernels.streams), *(one.device for one in trace.others)} or {0}
    for start, launch in unseen:
        ends = []
        if (place := bisect_left(waits, (start, 0))) < len(waits):
            ends.append(waits[place][1])
        if (place := bisect_right(works, (start, 1 << 62))) < len(works):
            ends.append(works[place][1])
        end = max(launches.ends[launch], min(ends, default=launches.ends[launch]))
        for device in devices:
            yield BusyEvent(start, end - start, device, kind="unknown", launched_by=launch)
