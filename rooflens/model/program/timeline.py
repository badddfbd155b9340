"""A timeline: every kernel that a program ran, when, on which stream, and what launched it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

    from rooflens.model.unprofiled import Shape

NSYS = "Nsight Systems"
"""The kind of timelines that nsys recorded."""

_WAITS = re.compile(r"Synchronize|Memcpy|^cu(?:da)?(?:Mem)?Free", re.IGNORECASE)

NO_CALL = -1
"""In place of the number of a call, where the timeline does not say what launched an event."""


class Operands(NamedTuple):
    """What an operator was called with, argument by argument.

    Attributes:
        dims: Sizes of each tensor; empty for numbers, for what is no tensor, and for tensors without dimensions.
        types: Type of each argument as PyTorch names it: `float`, `c10::BFloat16`, `Scalar`.
        strides: Strides of each tensor; empty if the trace does not say.
        values: Each argument that is no tensor, as text; empty if the trace does not say.
        moved_bytes, flop: What the compiler that wrote the kernel counted; None if the trace does not say.
    """

    dims: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...] = ()
    values: tuple[str, ...] = ()
    moved_bytes: float | None = None
    flop: float | None = None


class StepRange(NamedTuple):
    """A range of the host that marks a step of the program.

    Attributes:
        number: Which step of its process it is, from 0.
        start_ns, end_ns: When it was open on the host.
    """

    number: int
    name: str
    start_ns: int
    end_ns: int


class CollectiveCall(NamedTuple):
    """What GPUs were asked to send one another, as whoever launched the kernel wrote it.

    Attributes:
        name: The collective in the words of PyTorch: `allreduce`, `_allgather_base`, `nccl:all_to_all`.
        in_elements, out_elements: Elements that this rank gave and got; None if the timeline does not say.
        dtype: Their type as PyTorch names it: `Float`, `c10::BFloat16`; None if the timeline does not say.
        gpus: Ranks of the group; None if the timeline does not say.
        group, description: Name of the group, and what it is for: `default_pg`, `TENSOR_MODEL_PARALLEL_GROUP`.
        ranks: The ranks of the group as text: `[0, 1, 2, 3]`, which long groups end with `...`.
    """

    name: str
    in_elements: int | None = None
    out_elements: int | None = None
    dtype: str | None = None
    gpus: int | None = None
    group: str | None = None
    description: str | None = None
    ranks: str | None = None


class KernelEvent(NamedTuple):
    """One launch of a kernel on a timeline.

    Attributes:
        name: Demangled name as the timeline has it, with its parameters where it has them.
        grid: Blocks of the grid; None if the timeline does not say.
        block: Threads of a block; None if the timeline does not say.
        start_ns: When it began, from any fixed moment.
        duration_ns: How long it ran.
        device: Index of the GPU.
        stream: Number of the stream.
        nvtx_range: Ranges that were open on the host when it was launched, outermost first, joined by `/`.
        operator: The operator that launched it, as `aten::mm`.
        module: The module whose forward pass launched it, as `Linear_3`.
        code: File and line, or node of a compiler's graph, that it was generated from.
        call: Number of the operator's call, which may launch several kernels; 0 where it is unknown.
        operands: What the operator was called with; None if the timeline does not say.
        collective: What it communicates; None if the timeline does not say. Equal calls are one.
        launched_by: Number of the host's call that launched it, as `Host` knows it; `NO_CALL` where it is unknown.
        step: The step of the program in which the host launched it; None if none was marked then.
    """

    name: str
    grid: Shape
    block: Shape
    start_ns: int
    duration_ns: int
    device: int = 0
    stream: int = 0
    nvtx_range: str | None = None
    operator: str | None = None
    module: str | None = None
    code: str | None = None
    call: int = 0
    operands: Operands | None = None
    collective: CollectiveCall | None = None
    launched_by: int = NO_CALL
    step: StepRange | None = None


BusyKind = Literal["copy", "memset", "graph", "unknown"]


class BusyEvent(NamedTuple):
    """A copy, a memset, or a graph: the GPU is busy, and no kernel is named.

    Attributes:
        kind: `graph` for one that was traced as one; `unknown` for the time in which one may have run that was
            launched, and of which nothing was recorded.
        name: What was copied where, as the PyTorch profiler writes it: `Memcpy HtoD (Pageable -> Device)`.
        moved_bytes: Bytes copied or set; None if the timeline does not say.
        launched_by: As in `KernelEvent`.
    """

    start_ns: int
    duration_ns: int
    device: int = 0
    stream: int = 0
    kind: BusyKind = "copy"
    name: str | None = None
    moved_bytes: int | None = None
    launched_by: int = NO_CALL


LONG_CALL_NS = 10_000
"""Calls of CUDA that neither launch nor wait and take less are not read: they explain no gap."""


def waits_for_gpu(call: str) -> bool:
    """Return whether a call of CUDA waits for the GPU, or does where memory is pageable."""
    return _WAITS.search(call) is not None


class HostSpan(NamedTuple):
    """Something that a thread of the host had open: an operator, a range, a call of CUDA or of the system."""

    name: str
    start_ns: int
    end_ns: int


class Opened(NamedTuple):
    """What a thread of the host had open at a moment, outermost first.

    Attributes:
        calls: Calls of CUDA and of the system, without those that are too short to matter.
        operators: Operators of PyTorch.
        ranges: Annotations of PyTorch's profiler, NVTX ranges.
        code: File and line of the innermost function that is neither PyTorch's nor Python's; None where unknown.
    """

    calls: tuple[HostSpan, ...] = ()
    operators: tuple[HostSpan, ...] = ()
    ranges: tuple[HostSpan, ...] = ()
    code: str | None = None


class Call(NamedTuple):
    """A call of the host that launched something; its thread is `NO_CALL` where that is unknown."""

    thread: int
    start_ns: int
    end_ns: int


class Host(Protocol):
    """What the threads of the host did while the GPU ran."""

    def calls(self, numbers: array[int]) -> Iterator[Call]:
        """Yield the calls of some numbers."""
        ...

    def opened(self, thread: int, moments: Sequence[int]) -> Iterator[Opened]:
        """Yield what a thread had open at each of some moments, which are in order."""
        ...


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a profiler without hardware counters recorded of a program.

    Attributes:
        source: Path as it was given.
        kind: What recorded it.
        kernels: Launches in the order in which they began; read again from the file each time, where that is long.
        others: Copies, memsets and whole graphs, in the order in which they began.
        gpu: Name of the GPU; None if it does not say.
        notes: What was left out of it, one sentence each; complete once its kernels were gone through.
        is_synthetic: It says itself that a generator wrote it.
        rank: Which process of a program of several it is of, from 0; None if it does not say.
        world_size: How many processes these are; None if it does not say.
        node_gpus: GPUs of the machine that it lists; None if it lists fewer than two.
        host: What the host did; None if nothing of it was recorded.
        graph_hint: How to record what ran in graphs; None where all of it is known.
        calls_share: Which part it holds of the calls that CUDA numbered while it was recorded; None if unknown.
    """

    source: str
    kind: str
    kernels: Iterable[KernelEvent]
    others: Iterable[BusyEvent] = ()
    gpu: str | None = None
    notes: Iterable[str] = ()
    is_synthetic: bool = False
    rank: int | None = None
    world_size: int | None = None
    node_gpus: int | None = None
    host: Host | None = None
    graph_hint: str | None = None
    calls_share: float | None = None
