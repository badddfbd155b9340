"""What kernels are called, and each launch from run to run: by where it was launched, name, shape and order.

    gemm_kernel-3f9a1c      the first launch of this kernel in this shape and NVTX range
    gemm_kernel-3f9a1c#2    the second

The digits stand for what the name before them leaves out. A key is unique within its report, and a word that shells,
URLs and file names take as it is.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING
from zlib import crc32

from rooflens.format import cut_middle, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflens.model.records import Kernel

LaunchId = tuple[str | None, str, tuple[int, int, int] | None, tuple[int, int, int] | None]
"""NVTX range, name, grid and block."""

_NAME_LENGTH = 48
_UNNAMED = "kernel"
_SIGNATURES_KEPT = 1024
_BRACKETS = re.compile(r"([<>()])")
_BOTH_BRACKETS = frozenset("<>()")
_ODD = re.compile(r"[^\w.:]+")

SHORT_NAME_WIDTH = 64
_ARGUMENT_WIDTH = 20
_WRAPPER = re.compile(
    r"[Kk]ernel\d*|device_kernel|(?:\w+_)?(?:elementwise|reduce|grid_stride)\w*_kernel\w*|cuda_parallel_launch\w*"
    r"|forall\w*kernel\w*|(?:launch|lambda|for_?each|parallel_for|transform|static|_kernel_agent)\w*"
)
"""Functions that run another one, which is in their template arguments."""
_TILE_OF_NAME = re.compile(r"cutlass_(?:\d+_)?(?:\w*?op_)?(\w*(?:gemm|conv)\w*?)_(?:[a-zA-Z]+_)*(\d+x\d+(?:_\d+x\d+)?)")
_TILE_OF_NVJET = re.compile(r"(nvjet)_(?:\w+?_)?(\d+x\d+_\d+x\d+)")
_GEMM_SHAPE = re.compile(r"GemmShape<(\d+), ?(\d+), ?(\d+)>|tuple<" + r", ?".join([r"(?:cute::)?C<(\d+)>"] * 3))
_OPERATION = re.compile(r"kernel::(\w+)<")
_PATHS = re.compile(r"(?:\w+::)*[A-Za-z_]\w*")
_OF_LIBRARY = re.compile(r"(?:std|thrust|cub|cuda|Kokkos|RAJA|at|c10|cutlass|cute|__\w+|detail|raja|\w*policy\w*)::")
_FUNCTOR = re.compile(
    r"\w*(?:Functor|functor)\w*|\w+_(?:kernel_cuda|kernel_impl|cuda_kernel|kernel)(?=[<(]|$)|\w+Ops?(?=[<,>]|$)"
)
_ODD_ENDS = re.compile(r"\[(?:v\d+,|abi:).*", re.DOTALL)
_WORDS, _PARTS = re.compile(r"\w+"), re.compile(r"[A-Za-z0-9]+")
_TYPE = re.compile(
    r"void|bool|char|short|long|float|double|unsigned|signed|const|volatile|true|false|half\w*|__half|\w*bfloat16|auto"
    r"|u?int(?:\d+_t)?|size_t|lambda|instance|operator"
)


def launch_id(kernel: Kernel) -> LaunchId:
    """Return what identifies a launch from run to run, but for its order among its like."""
    return kernel.nvtx_range, kernel.name, kernel.grid, kernel.block


def function_of(name: str) -> str:
    """Drop namespaces, template arguments and parameters: `void ns::gemm<float, 128>(int)` -> `gemm`."""
    parts = _bracket_parts(name.removesuffix(" const"))
    kept = "".join(part for part, depth in parts if not depth and part not in _BOTH_BRACKETS)
    return kept.rpartition("::")[2].rpartition(" ")[2] or name


def _bracket_parts(name: str) -> Iterator[tuple[str, int]]:
    """Yield the brackets of a name and what is between them, with how many are open before each.

    A sign between round brackets that closes or opens nothing compares: `enable_if<((8) > (0)), int>`.
    """
    opened: list[str] = []
    for part in _BRACKETS.split(name):
        yield part, len(opened)
        if part and part in "<(":
            opened.append(part)
        elif part == ")":
            while opened and opened.pop() != "(":
                pass
        # `->` and `operator>` close nothing, and a demangled name may hold both.
        elif part == ">" and opened[-1:] == ["<"]:
            opened.pop()


@lru_cache(maxsize=_SIGNATURES_KEPT)
def bare_name(signature: str) -> str:
    """Drop the return type and the argument list of a demangled signature; keep template arguments.

    `void at::native::relu<float>(float *, int)` -> `at::native::relu<float>`.
    """
    # From the right: template arguments may hold parentheses of their own, `f<(int)3>(float)`.
    depth, end = 0, len(signature)
    if signature.endswith(")"):
        for position in range(len(signature) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(signature[position], 0)
            if depth == 0:
                end = position
                break
    name = signature[:end].removeprefix("void ")
    return (name if end == len(signature) else _without_type(name)).strip() or signature


def _without_type(name: str) -> str:
    """Drop everything before the last blank outside of brackets: `std::enable_if<true, void>::type f<int>`."""
    place = start = 0
    for part, depth in _bracket_parts(name):
        if not depth and " " in part:
            start = place + part.rindex(" ") + 1
        place += len(part)
    return name[start:].lstrip("*&")


def short_names(signatures: Iterable[str]) -> dict[str, str]:
    """Name kernels by what sets them apart: function and template arguments that differ; unique among these kernels.

    Wrappers of a library are named by the functor that they run, CUTLASS and nvjet by the tile.
    """
    return dict(zip(names := tuple(dict.fromkeys(signatures)), _short_names(names), strict=True))


@lru_cache(maxsize=64)
def _short_names(names: tuple[str, ...]) -> tuple[str, ...]:
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[_telling_name(plain_name(name))].append(name)
    short: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for function, own in alike.items():
        for name, arguments in zip(own, _differing([plain_name(name) for name in own]), strict=True):
            told = ", ".join(cut_middle(argument, _ARGUMENT_WIDTH) for argument in arguments if argument)
            end = f"<{cut_middle(told, SHORT_NAME_WIDTH // 2)}>" if told else ""
            shown = f"{cut_middle(function, SHORT_NAME_WIDTH - len(end))}{end}"
            taken[shown] += 1
            short[name] = shown if taken[shown] == 1 else f"{shown}#{taken[shown]}"
    return tuple(short[name] for name in names)


@lru_cache(maxsize=_SIGNATURES_KEPT)
def _telling_name(name: str) -> str:
    """Return the function, or for a wrapper what it runs: a functor, an operation with its tile."""
    tile = _TILE_OF_NAME.search(name)
    if tile:
        return f"{tile[1]}_{tile[2]}"
    function = _ODD_ENDS.sub("", " ".join(function_of(name).split())) or name
    nvjet = _TILE_OF_NVJET.match(function)
    if nvjet:
        return f"{nvjet[1]}_{nvjet[2]}"
    shapes = [[int(side) for side in shape.groups() if side] for shape in _GEMM_SHAPE.finditer(name)]
    operation = _OPERATION.search(name)
    if operation and shapes:
        return f"{operation[1]}<{'x'.join(map(str, max(shapes, key=prod)))}>"
    _, bracket, arguments = name.partition("<")
    if not bracket or not _WRAPPER.fullmatch(function):
        return function
    paths = [path for path in _PATHS.findall(arguments) if not _TYPE.fullmatch(path)]
    own = [path for path in paths if not _OF_LIBRARY.match(path) and len(path) > 1]
    functors = _FUNCTOR.findall(arguments)
    if functors:
        return str(functors[-1])
    parts = 2 if "lambda" in arguments else 1
    return "::".join(own[0].split("::")[-parts:]) if own else function


def _differing(names: Sequence[str]) -> list[list[str]]:
    """Find for each of several names the words that tell it from the others, as few as suffice."""
    words = [(_PARTS if "<" not in name else _WORDS).findall(name) for name in names]
    longest = max(map(len, words))
    columns = list(zip(*([*own, *[""] * (longest - len(own))] for own in words), strict=True))
    chosen: list[tuple[str, ...]] = []
    for column in columns:
        if len({*zip(*chosen, column, strict=True)}) > len({*zip(*chosen, strict=True)} or {()}):
            chosen.append(column)
    return [list(row) for row in zip(*chosen, strict=True)] if chosen else [[] for _ in names]


class Keys:
    """Name the launches of a report, in its order: those that were seen decide what the next one is called."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def next(self, launch: LaunchId) -> str:
        """Return the key of the launch that comes next in the report, failed ones included."""
        key = _launch_key(launch)
        self._seen[key] += 1
        return key if self._seen[key] == 1 else f"{key}#{self._seen[key]}"


def first_key(kernel: Kernel) -> str:
    """Return the key of a launch that is the first of its kind in its report."""
    return _launch_key(launch_id(kernel))


@lru_cache(maxsize=4096)
def _launch_key(launch: LaunchId) -> str:
    name = _ODD.sub("_", function_of(launch[1]))[:_NAME_LENGTH].strip("_") or _UNNAMED
    digits = crc32(repr(launch).encode("utf-8", "surrogatepass")) & 0xFFFFFF
    return f"{name}-{digits:06x}"
