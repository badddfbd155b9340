"""Say which kernel of a report a launch of a timeline is, and what one launch in it stands for."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from rooflens.model.keys import bare_name, function_of
from rooflens.model.unprofiled import InProgram, LaunchCount, Shape, Unprofiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflens.model.program.timeline import KernelEvent
    from rooflens.model.records import Kernel

_CAST = re.compile(r"\((?:[a-zA-Z_][\w:<>, ]*)\)(?=-?\d)")
_SUFFIX = re.compile(r"\b(\d+)(?:ull|ul|u|ll|l)\b", re.IGNORECASE)
_LAMBDA = re.compile(r"\[(lambda\((?:(?!\[lambda\().)*?\)) ?\(instance (\d+)\)\]")
_UNNAMED = re.compile(r"\(anonymous namespace\)|<unnamed>|\(anonymous\)")
_LENGTH = re.compile(r"(\d{1,6})")
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
    text = bare_name(text).replace("(bool)1", "true").replace("(bool)0", "false")
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
            self._found[key] = tuple(
                index for index in self._kernels_named(name) if self._has_shape(index, grid, block)
            )
        return self._found[key]

    def next(self, event: KernelEvent) -> int | None:
        """Return the position of the kernel that the next launch of a timeline is; None if the report lacks it.

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

    def _kernels_named(self, name: str) -> list[int]:
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


def place(
    kernels: Sequence[Kernel], program: Unprofiled
) -> tuple[list[tuple[float, InProgram | None]], list[LaunchCount]]:
    """Match what a run without ncu counted to the kernels of a report.

    Returns:
        For each kernel how many launches it stands for, 0 where none matches, and what they took, None if they were
        not timed; then what the report lacks, the longest first.
    """
    matching, total_ns = Matching(kernels), program.kernels_ns
    entries: list[list[LaunchCount]] = [[] for _ in kernels]
    parts, missing = {}, []
    for entry in program.launch_counts:
        alike = matching.alike(entry.name, entry.grid, entry.block)
        # A failed kernel stands for launches only where no other of its kind was profiled.
        alike = tuple(index for index in alike if not kernels[index].failed) or alike
        parts[id(entry)] = len(alike)
        for index in alike:
            entries[index].append(entry)
        if not alike:
            missing.append(entry)
    placed: list[tuple[float, InProgram | None]] = []
    for own in entries:
        # Launches that several kernels of the report are alike to are shared among them, none counted twice.
        launches = sum(entry.count / parts[id(entry)] for entry in own) / program.iterations
        most = max(own, key=lambda entry: entry.count, default=None)
        if most is None or most.time_ns is None or most.gap_ns is None:
            placed.append((launches, None))
            continue
        times = [entry.total_ns / parts[id(entry)] for entry in own if entry.total_ns is not None]
        time_ns = sum(times) / program.iterations if len(times) == len(own) else None
        share = time_ns / total_ns if time_ns is not None and total_ns else None
        placed.append(
            (
                launches,
                InProgram(
                    most.time_ns,
                    most.gap_ns,
                    max(1, round(launches)),
                    low_ns=most.low_ns,
                    high_ns=most.high_ns,
                    total_ns=time_ns,
                    share=share,
                    streams=most.streams,
                    nvtx_range=most.nvtx_range,
                    operator=most.operator,
                    module=most.module,
                    code=most.code,
                ),
            )
        )
    return placed, sorted(missing, key=lambda entry: (-(entry.total_ns or 0), -entry.count))
