"""What kernels are called, and each launch from run to run: by where it was launched, name, shape and order.

    gemm_kernel-3f9a1c      the first launch of this kernel in this shape and NVTX range
    gemm_kernel-3f9a1c#2    the second one

The digits stand for what the name before them leaves out. A key is unique within its report, and a word that shells,
URLs and file names take as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from rooflens.model.records import Kernel

LaunchId = tuple[str | None, str, tuple[int, int, int] | None, tuple[int, int, int] | None]
"""NVTX range, name, grid and block."""

_NAME_LENGTH = 48
_UNNAMED = "kernel"
_SIGNATURES_KEPT = 1024
_BRACKETS = re.compile(r"([<>()])")
_ODD = re.compile(r"[^\w.:]+")


def launch_id(kernel: Kernel) -> LaunchId:
    """Return what identifies a launch from run to run, but for its order among its like."""
    return kernel.nvtx_range, kernel.name, kernel.grid, kernel.block


def function_of(name: str) -> str:
    """Drop namespaces, template arguments and parameters: `void ns::gemm<float, 128>(int)` -> `gemm`."""
    depth, kept = 0, []
    for part in _BRACKETS.split(name.removesuffix(" const")):
        if part and part in ">)":
            depth = max(depth - 1, 0)
        elif part and part in "<(":
            depth += 1
        elif not depth:
            kept.append(part)
    return "".join(kept).rpartition("::")[2].rpartition(" ")[2] or name


@lru_cache(maxsize=_SIGNATURES_KEPT)
def short_name(signature: str) -> str:
    """Drop the return type and the argument list of a demangled signature; keep template arguments.

    `void at::native::relu<float>(float *, int)` -> `at::native::relu<float>`.
    """
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
    depth = place = start = 0
    for part in _BRACKETS.split(name):
        if not depth and " " in part:
            start = place + part.rindex(" ") + 1
        place += len(part)
        depth += part in {"<", "("}
        depth -= part in {">", ")"}
    return name[start:].lstrip("*&")


class Keys:
    """Name the launches of one report, in its order: those that were seen decide what the next one is called."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def next(self, launch: LaunchId) -> str:
        """Return the key of the launch that comes next in the report, failed ones included."""
        key = _key(launch)
        self._seen[key] += 1
        return key if self._seen[key] == 1 else f"{key}#{self._seen[key]}"


def first_key(kernel: Kernel) -> str:
    """Return the key of a launch that is the first of its kind in its report."""
    return _key(launch_id(kernel))


@lru_cache(maxsize=4096)
def _key(launch: LaunchId) -> str:
    name = _ODD.sub("_", function_of(launch[1]))[:_NAME_LENGTH].strip("_") or _UNNAMED
    digits = crc32(repr(launch).encode("utf-8", "surrogatepass")) & 0xFFFFFF
    return f"{name}-{digits:06x}"
