"""A timeline: every kernel that a program ran, when, on which stream, and what launched it."""

from __future__ import annotations

from msgspec import Struct


class KernelEvent(Struct, frozen=True):
    """One launch of a kernel on a timeline.

    Attributes:
        name: Demangled name as the timeline has it, with its parameters where it has them.
        grid: Blocks of the grid; None where the timeline does not say.
        block: Threads of a block; None where the timeline does not say.
        start_ns: When it began, from any fixed moment.
        duration_ns: How long it ran.
        device: Index of the GPU.
        stream: Number of the stream.
        nvtx_range: Ranges that were open on the host when it was launched, outermost first, joined by `/`.
        operator: The operator that launched it, as `aten::mm`.
        module: The module whose forward pass launched it, as `Linear_3`.
        code: File and line, or node of a compiler's graph, that it was generated from.
    """

    name: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    start_ns: int
    duration_ns: int
    device: int = 0
    stream: int = 0
    nvtx_range: str | None = None
    operator: str | None = None
    module: str | None = None
    code: str | None = None


class BusyEvent(Struct, frozen=True):
    """A copy, a memset, or a graph that was traced as one: the GPU is busy, and no kernel is named."""

    start_ns: int
    duration_ns: int
    device: int = 0
    stream: int = 0
    is_graph: bool = False


class Timeline(Struct, frozen=True):
    """What a profiler without hardware counters recorded of a program.

    Attributes:
        source: Path as it was given.
        kind: What recorded it.
        kernels: Launches in the order in which they began.
        others: Copies, memsets and whole graphs, in the order in which they began.
        gpu: Name of the GPU; None where it does not say.
        notes: What was left out of it, one sentence each.
    """

    source: str
    kind: str
    kernels: tuple[KernelEvent, ...]
    others: tuple[BusyEvent, ...] = ()
    gpu: str | None = None
    notes: tuple[str, ...] = ()
