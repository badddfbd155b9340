"""Kernels in the NVTX ranges that divide a report of many cases."""

from __future__ import annotations

from msgspec.structs import replace
from support.ncu_rep_writer import KernelSpec, NvtxRange

from rooflens.workloads.registry import RANGE_NAME


def in_case(kernel: KernelSpec, case: str, *inner: str) -> KernelSpec:
    """Put a kernel into the range of a case, and into further ranges inside it."""
    return replace(kernel, ranges=[NvtxRange(name, thread_id=None) for name in (RANGE_NAME, case, *inner)])
