"""A timeline: every kernel that a program ran, when, on which stream, and what launched it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rooflens.model.unprofiled import Shape

NSYS = "Nsight Systems"
"""The kind of timelines that nsys recorded."""


class Operands(NamedTuple):
    """What an operator was called with, argument by argument.

    Attributes:
        dims: Sizes of each tensor; empty for numbers, for what is no tensor, and for tensors without dimensions.
        types: Type of each argument as PyTorch names it: `float`, `c10::BFloat16`, `Scalar`.
        strides: Strides of each tensor; empty if the trace does not say.
        values: Each argument that is no tensor, as text; empty if the trace does not say.
    """

    dims: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...] = ()
    values: tuple[str, ...] = ()


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
    step: StepRange | None = None


class BusyEvent(NamedTuple):
    """A copy, a memset, or a graph that was traced as one: the GPU is busy, and no kernel is named."""

    start_ns: int
    duration_ns: int
    device: int = 0
    stream: int = 0
    is_graph: bool = False


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
    """

    source: str
    kind: str
    kernels: Iterable[KernelEvent]
    others: Iterable[BusyEvent] = ()
    gpu: str | None = None
    notes: Iterable[str] = ()
    is_synthetic: bool = False
    rank: int | None = None
