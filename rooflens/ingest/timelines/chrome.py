"""Read traces of the PyTorch profiler (Kineto), in Chrome's Trace Event Format.

A trace is read once, into columns; who launched what is found when all is read.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

from rooflens.errors import InputError
from rooflens.foreign import foreign_content
from rooflens.format import count
from rooflens.ingest.reports.unpacking import HEAD_BYTES, chunks, first_bytes, is_packed
from rooflens.ingest.timelines.budget import READING, TimelineBudget
from rooflens.ingest.timelines.columns import TraceColumns
from rooflens.ingest.timelines.events import read_events
from rooflens.ingest.timelines.host import TracedHost, unseen_graphs
from rooflens.ingest.timelines.launched import launched
from rooflens.model.program.timeline import Timeline

KIND = "PyTorch profiler"

_RECORD_HINT = "record it with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] while the program uses the GPU"

_GRAPH_HINT = (
    "open a profiler once before the graph is captured (`with torch.profiler.profile(): pass`): CUPTI tells of the "
    "kernels only of graphs that were captured after it was set up"
)


def _head(path: Path) -> bytes:
    return next(chunks(path), b"")[:HEAD_BYTES] if is_packed(path) else first_bytes(path, HEAD_BYTES)


def read_trace(path: Path, on_read: Callable[[float], None] = lambda _: None) -> Timeline:
    """Read the kernels of a trace, each with the operator, module, ranges and code that launched it.

    Args:
        path: The trace.
        on_read: Called with parts of the work as they are done, which add up to 1.

    Raises:
        InputError: The file is unreadable or cut, is no trace, or has no kernels.
    """
    budget = TimelineBudget(path, str(path), on_read)
    trace = TraceColumns(budget)
    for piece in read_events(path, budget):
        trace.take(piece)
    trace.finish()
    budget.moved(READING, READING)
    unseen = [*unseen_graphs(trace)]
    if not trace.kernels.starts and not (unseen and trace.others):
        events = count(trace.event_count, "event")
        other = foreign_content(_head(path))
        hint = f"it is {other.what}; {other.instead}" if other is not None and other.keys else _RECORD_HINT
        raise InputError(f"the trace `{path}` has no GPU kernel among its {events}", hint)
    used = {device for device, _ in trace.kernels.streams}
    names = {name for device, name in trace.gpus.items() if device in used}
    kernels = launched(trace, budget)
    return Timeline(
        source=str(path),
        kind=KIND,
        kernels=kernels,
        others=tuple(sorted((*trace.others, *unseen), key=attrgetter("start_ns"))),
        gpu=names.pop() if len(names) == 1 else None,
        notes=(*trace.notes(), *budget.notes()),
        is_synthetic=trace.is_synthetic,
        rank=trace.rank,
        world_size=trace.world_size,
        host=TracedHost(trace, budget),
        graph_hint=_GRAPH_HINT if unseen else None,
        node_gpus=len(trace.gpus) if len(trace.gpus) > 1 else None,
        calls_share=trace.calls_share,
    )
