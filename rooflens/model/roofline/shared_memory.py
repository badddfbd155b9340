"""Bytes that shared memory delivered to a kernel, from the best counters the report has.

The wavefronts that L1's data stage counts for shared memory hold shuffles and one or two wavefronts a warp besides, in
kernels without a byte of shared memory too: they fill the stage, but are no traffic of shared memory. Source: public
reports, in which the wavefronts of all instructions equal those of loads, stores and asynchronous copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rooflens.model.counters.memory import WAVEFRONT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflens.model.records import Kernel

Accuracy = Literal["exact", "lower", "upper"]

ACCURACY_FLAGS: dict[Accuracy, str] = {"lower": "smem_bytes_lower_bound", "upper": "smem_bytes_upper_bound"}
"""How far an amount can be trusted -> the flag that says so."""

_ASYNC_COPIES_FROM = (8, 0)
_OF_A_BLOCK = ("smem_static_per_block_bytes", "smem_dynamic_per_block_bytes")
_WGMMA = "9.0"
_FILLS_PAST_LSU = ("UBLKCP", "UTMALDG")


class Delivered(Struct, frozen=True):
    """Bytes delivered, where they come from, and whether that is all of them."""

    amount_bytes: float
    source: str
    accuracy: Accuracy


def uses_shared_memory(kernel: Kernel) -> bool:
    """Return whether a kernel has shared memory of its own; one whose launch is not known is taken to.

    The kilobyte that the driver takes of each block does not count.
    """
    static, dynamic = map(kernel.counters.get, _OF_A_BLOCK)
    return static != 0 or dynamic != 0


def delivered_bytes(kernel: Kernel) -> Delivered | None:
    """Choose the best amount; None where there is no shared memory, or nothing counts it."""
    return next(_amounts(kernel), None) if uses_shared_memory(kernel) else None


def _amounts(kernel: Kernel) -> Iterator[Delivered]:
    counters, sources = kernel.counters, kernel.counter_sources
    wgmma = counters.get("smem_wgmma_bytes", 0.0)
    unseen = _has_unseen_wgmma(kernel) or _has(kernel, _FILLS_PAST_LSU)
    accesses, source = counters.get("smem_access_wavefronts"), sources.get("smem_access_wavefronts", "")
    if accesses is None and "shared_wavefronts" in kernel.code_totals:
        accesses, source = kernel.code_totals["shared_wavefronts"], "memory_l1_wavefronts_shared of all instructions"
    if accesses is not None:
        yield Delivered(accesses * WAVEFRONT_BYTES + wgmma, source, "lower" if unseen else "exact")
    asked, copied = counters.get("smem_op_bytes"), counters.get("smem_async_bytes")
    if asked is not None:
        names = [sources.get(f"smem_{part}_bytes") for part in ("op", "async", "wgmma")]
        unseen = unseen or (copied is None and _may_copy_asynchronously(kernel))
        source = " + ".join(name for name in names if name)
        yield Delivered(asked + (copied or 0.0) + wgmma, source, "lower" if unseen else "exact")
    total, other = counters.get("smem_bytes"), counters.get("smem_other_bytes")
    if total is None:
        return
    source = sources.get("smem_bytes", "")
    if other is not None:
        yield Delivered(max(0.0, total - other), f"{source} - {sources.get('smem_other_bytes', '')}", "lower")
    yield Delivered(total, source, "upper")


def _has_unseen_wgmma(kernel: Kernel) -> bool:
    """Return whether warpgroup products read shared memory, and nothing counts what."""
    counted = "smem_wgmma_bytes" in kernel.counters
    return not counted and kernel.compute_capability == _WGMMA and any("GMMA" in op for op in kernel.warp_opcodes)


def _may_copy_asynchronously(kernel: Kernel) -> bool:
    """Return whether copies past the registers may be missing: the chip has them, and no opcode table denies them."""
    able = kernel.compute_capability is None or kernel.capability >= _ASYNC_COPIES_FROM
    return able and (not kernel.warp_opcodes or _has(kernel, ("LDGSTS",)))


def _has(kernel: Kernel, opcodes: tuple[str, ...]) -> bool:
    return any(opcode.startswith(opcodes) for opcode in kernel.warp_opcodes)
