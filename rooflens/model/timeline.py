"""A timeline: every kernel that a program ran, when, on which stream, and what launched it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rooflens.model.keys import function_of, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflens.model.records import Kernel

Shape = tuple[int, int, int] | None
"""Grid or block of a launch; None where it is unknown."""


class KernelEvent(NamedTuple):
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
        gpu: Name of the GPU; None where it does not say.
        notes: What was left out of it, one sentence each.
    """

    source: str
    kind: str
    kernels: Iterable[KernelEvent]
    others: Iterable[BusyEvent] = ()
    gpu: str | None = None
    notes: tuple[str, ...] = ()


_CAST = re.compile(r"\((?:[a-zA-Z_][\w:<>, ]*)\)(?=-?\d)")
_SUFFIX = re.compile(r"\b(\d+)(?:ull|ul|u|ll|l)\b", re.IGNORECASE)
_LAMBDA = re.compile(r"\[(lambda\(.*?\)) ?\(instance (\d+)\)\]")
_UNNAMED = re.compile(r"\(anonymous namespace\)|<unnamed>|\(anonymous\)")
_LENGTH = re.compile(r"(\d+)")
_NORMAL_KEPT = 4096


@lru_cache(maxsize=_NORMAL_KEPT)
def normal_name(name: str) -> str:
    """Write a kernel's name in the one form in which those of all profilers compare.

    Without return type, parameters, blanks and the casts of template arguments; a mangled name gives its function only.

    `void ns::gemm<(int)128, (bool)1>(float *)` and `ns::gemm<128, true>(float*)` -> `ns::gemm<128,true>`.
    """
    if name.startswith("_Z"):
        return _mangled_function(name) or name
    text = _UNNAMED.sub("{anonymous}", _LAMBDA.sub(r"{\1#\2}", name.strip().removesuffix(" const")))
    text = short_name(text).replace("(bool)1", "true").replace("(bool)0", "false")
    return "".join(_SUFFIX.sub(r"\1", _CAST.sub("", text)).split())


def _mangled_function(name: str) -> str:
    """Return the name of the function in a mangled name: `_ZN2ns4gemmIfEEvPT_` -> `gemm`; empty where unclear."""
    rest = name[2:].lstrip("L")
    is_nested, found = rest.startswith("N"), ""
    rest = rest.lstrip("NKVL") if is_nested else rest
    while length := _LENGTH.match(rest):
        end = length.end() + int(length[1])
        found, rest = rest[length.end() : end], rest[end:]
        if not is_nested:
            break
    return found


class Matching:
    """Says which kernel of a report a launch of a timeline is: by name, launch shape, NVTX range and order."""

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        self._shapes: list[tuple[Shape, Shape, str | None]] = []
        self._by_name: dict[str, list[int]] = {}
        self._by_function: dict[str, list[int]] = {}
        for index, kernel in enumerate(kernels):
            self._shapes.append((kernel.grid, kernel.block, kernel.nvtx_range))
            name = normal_name(kernel.name)
            self._by_name.setdefault(name, []).append(index)
            self._by_function.setdefault(function_of(name), []).append(index)
            if kernel.function_name == name != kernel.name:
                self._by_name.setdefault(kernel.function_name, []).append(index)
        self._found: dict[tuple[str, Shape, Shape], tuple[int, ...]] = {}
        self._seen: Counter[tuple[int, ...]] = Counter()

    def alike(self, name: str, grid: Shape, block: Shape) -> tuple[int, ...]:
        """Return the positions of all kernels of the report that a launch can be, in the report's order.

        A name without template arguments, on either side, is compared by its function; a shape that one side
        lacks is left out of the comparison.
        """
        key = name, grid, block
        if key not in self._found:
            self._found[key] = tuple(index for index in self._named(name) if self._has_shape(index, grid, block))
        return self._found[key]

    def next(self, event: KernelEvent) -> int | None:
        """Return the position of the kernel that the next launch of a timeline is; None where the report lacks it.

        Launches are taken in the timeline's order. Where it has more than the report, the report's are counted
        through again, as a program repeats its step.
        """
        found = self.alike(event.name, event.grid, event.block)
        in_range = tuple(index for index in found if event.nvtx_range and self._shapes[index][2] == event.nvtx_range)
        among = in_range or found
        if not among:
            return None
        self._seen[among] += 1
        return among[(self._seen[among] - 1) % len(among)]

    def _named(self, name: str) -> list[int]:
        """Return the kernels of a name; by function where the name or the report's has no template arguments."""
        normal = normal_name(name)
        if exact := self._by_name.get(normal):
            return exact
        function = function_of(normal)
        if function == normal:
            return self._by_function.get(function, [])
        return self._by_name.get(function, [])

    def _has_shape(self, index: int, grid: Shape, block: Shape) -> bool:
        own_grid, own_block, _ = self._shapes[index]
        return (None in (grid, own_grid) or grid == own_grid) and (None in (block, own_block) or block == own_block)
