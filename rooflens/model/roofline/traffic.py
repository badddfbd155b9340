"""Useful against moved: what instructions asked of a memory level, and what the level moved for it.

Sources: Nsight Compute's memory tables. A shared-memory wavefront carries up to 128 bytes; a bank conflict replays it.
A request of a warp to global memory touches sectors of 32 bytes; `ideal` is how many its bytes would fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.model.counters.memory import SECTOR_BYTES
from rooflens.model.records import ratio

if TYPE_CHECKING:
    from rooflens.model.records import Kernel


@dataclass(frozen=True, slots=True)
class Useful:
    """Bytes asked for and bytes moved for them."""

    asked_bytes: float
    moved_bytes: float

    @property
    def share(self) -> float:
        """Useful part of what was moved, 0 to 1; above 1 where one read served several threads."""
        return self.asked_bytes / self.moved_bytes


@dataclass(frozen=True, slots=True)
class Traffic:
    """How well a kernel's accesses fit the memory below them; what was not measured is None.

    Attributes:
        shared: Bytes asked of shared memory, and its wavefronts x 128.
        shared_excess: Wavefronts that the addresses of shared-memory accesses need over those that their bytes would
            fill; 1 without bank conflicts inside a warp.
        conflict_share: Part of the shared-memory wavefronts that are replays of bank conflicts, 0 to 1.
        global_memory: Sectors that the bytes of global accesses fill, and sectors that the accesses touch, in bytes.
        load_sectors_per_request: Sectors that one request of a global load touches, mean; 4 bytes a thread need 4.
        store_sectors_per_request: The same of global stores.
        l1_hit_rate: Part of the sectors that L1 held, 0 to 1.
        l2_hit_rate: Part of the sectors that L2 held, 0 to 1.
        l2_bytes: Bytes between the SMs and L2.
        dram_bytes: Bytes between L2 and device memory.
    """

    shared: Useful | None = None
    shared_excess: float | None = None
    conflict_share: float | None = None
    global_memory: Useful | None = None
    load_sectors_per_request: float | None = None
    store_sectors_per_request: float | None = None
    l1_hit_rate: float | None = None
    l2_hit_rate: float | None = None
    l2_bytes: float | None = None
    dram_bytes: float | None = None


def find_traffic(kernel: Kernel) -> Traffic:
    """Compare what one kernel asked for with what was moved."""
    counters = kernel.counters
    return Traffic(
        shared=_useful(kernel, "smem_useful_bytes", "smem_bytes"),
        shared_excess=_ratio(kernel, "smem_access_wavefronts", "smem_ideal_wavefronts"),
        conflict_share=_ratio(kernel, "smem_conflict_bytes", "smem_bytes"),
        global_memory=_useful(kernel, "global_ideal_sectors", "global_touched_sectors", SECTOR_BYTES),
        load_sectors_per_request=_ratio(kernel, "global_load_sectors", "global_load_requests"),
        store_sectors_per_request=_ratio(kernel, "global_store_sectors", "global_store_requests"),
        l1_hit_rate=counters.get("l1_hit_rate"),
        l2_hit_rate=counters.get("l2_hit_rate"),
        l2_bytes=counters.get("l2_bytes"),
        dram_bytes=counters.get("dram_bytes"),
    )


def _useful(kernel: Kernel, asked: str, moved: str, unit_bytes: float = 1.0) -> Useful | None:
    asked_units, moved_units = kernel.counters.get(asked), kernel.counters.get(moved)
    if asked_units is None or not moved_units:
        return None
    return Useful(asked_units * unit_bytes, moved_units * unit_bytes)


def _ratio(kernel: Kernel, part: str, whole: str) -> float | None:
    return ratio(kernel.counters.get(part), kernel.counters.get(whole))
