"""Useful against moved: what instructions asked of a memory level, and what the level moved for it.

Sources: Nsight Compute's memory tables. A shared-memory wavefront carries up to 128 bytes; a bank conflict replays it.
A request of a warp to global memory touches sectors of 32 bytes; `ideal` is how many its bytes would fill.
"""

from __future__ import annotations

from msgspec import Struct

from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.counters.memory import WAVEFRONT_BYTES
from rooflens.model.records import Analysis, Kernel, ratio


class Useful(Struct, frozen=True):
    """Bytes asked for and bytes moved for them."""

    asked_bytes: float
    moved_bytes: float

    @property
    def share(self) -> float:
        """Useful part of what was moved, 0 to 1; above 1 where one read served several threads."""
        return self.asked_bytes / self.moved_bytes


class Traffic(Struct, frozen=True):
    """How well a kernel's accesses fit the memory below them; what was not measured is None.

    Attributes:
        shared: Bytes asked of shared memory, and its wavefronts x 128.
        shared_excess: Wavefronts that the addresses of shared-memory accesses need over those that their bytes would
            fill; 1 without bank conflicts inside a warp.
        conflict_share: Part of the shared-memory wavefronts that are replays of bank conflicts, 0 to 1.
        global_memory: Sectors that the bytes of global accesses fill, and sectors that the accesses touch, in bytes.
        load_sectors_per_request: Sectors that one request of a global load touches, mean; 4 bytes a thread need 4.
        store_sectors_per_request: The same of global stores.
        load_bytes_per_sector: Bytes that global loads use of each sector they touch, mean, 0 to 32.
        store_bytes_per_sector: The same of global stores.
        l1_hit_rate: Part of the sectors that L1 held, 0 to 1.
        l2_hit_rate: Part of the sectors that L2 held, 0 to 1.
        l2_bytes: Bytes between the SMs and L2.
        dram_bytes: Bytes between L2 and DRAM.
    """

    shared: Useful | None = None
    shared_excess: float | None = None
    conflict_share: float | None = None
    global_memory: Useful | None = None
    load_sectors_per_request: float | None = None
    store_sectors_per_request: float | None = None
    load_bytes_per_sector: float | None = None
    store_bytes_per_sector: float | None = None
    l1_hit_rate: float | None = None
    l2_hit_rate: float | None = None
    l2_bytes: float | None = None
    dram_bytes: float | None = None


def find_traffic(kernel: Kernel) -> Traffic:
    """Compare the bytes one kernel asked for with those that were moved."""
    counters = kernel.counters
    return Traffic(
        shared=_useful(kernel, "smem_useful_bytes", "l1_shared_data_bytes"),
        shared_excess=_ratio(kernel, "smem_access_wavefronts", "smem_ideal_wavefronts"),
        conflict_share=_ratio(kernel, "smem_conflict_bytes", "l1_shared_data_bytes"),
        global_memory=_useful(kernel, "global_ideal_sectors", "global_touched_sectors", SECTOR_BYTES),
        load_sectors_per_request=_ratio(kernel, "global_load_sectors", "global_load_requests"),
        store_sectors_per_request=_ratio(kernel, "global_store_sectors", "global_store_requests"),
        load_bytes_per_sector=counters.get("global_load_bytes_per_sector"),
        store_bytes_per_sector=counters.get("global_store_bytes_per_sector"),
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


class Flow(Struct, frozen=True):
    """Traffic over one path; a direction that was not measured is None.

    Attributes:
        share: Use of the path, as a fraction of its peak; requests of loads take the path of stores, too.
    """

    amount_bytes: float | None
    share: float | None

    @property
    def is_known(self) -> bool:
        """Return whether any of it was measured."""
        return self.amount_bytes is not None or self.share is not None


class TrafficLink(Struct, frozen=True):
    """Traffic between two parts of the memory; None if it was not measured.

    Attributes:
        read: Towards the SMs.
        written: Away from them.
        both: The sum, where the directions were not measured separately.
    """

    read: Flow | None = None
    written: Flow | None = None
    both: Flow | None = None

    @property
    def flows(self) -> tuple[Flow, ...]:
        """What was measured of it."""
        return tuple(flow for flow in (self.read, self.written, self.both) if flow is not None)


class Links(Struct, frozen=True):
    """The ways of a kernel's bytes: between SMs and L1, SMs and shared memory, L1 and L2, L2 and DRAM."""

    l1: TrafficLink
    smem: TrafficLink
    l2: TrafficLink
    dram: TrafficLink


def find_links(analysis: Analysis, *, apart: bool = True) -> Links:
    """Find what went each way; `apart` tells reads from writes.

    Where a record stands for launches that differ, only both directions together have a sum.
    """
    counters, levels = analysis.kernel.counters if apart else {}, analysis.levels

    def amount(unit_bytes: float, *names: str) -> float | None:
        values = [counters[name] for name in names if name in counters]
        return sum(values) * unit_bytes if len(values) == len(names) else None

    def stage(level: str, name: str) -> float | None:
        return levels[level].stages.get(name) if apart else None

    def of_dram(direction: str) -> Flow:
        moved, peak = amount(1.0, f"dram_{direction}_bytes"), levels["dram"].peak_bytes_per_s
        duration_ns = analysis.kernel.duration_ns
        share = ratio(moved, peak * duration_ns / 1e9 if peak and duration_ns else None)
        return Flow(moved, counters.get(f"dram_{direction}_share") if share is None else share)

    stored = amount(SECTOR_BYTES, "global_store_sectors", "local_store_sectors")
    all_of_l1 = "l1_tag_bytes" in analysis.kernel.counters
    l1, smem, l2, dram = (Flow(levels[name].amount_bytes, levels[name].share) for name in ("l1", "smem", "l2", "dram"))
    returned = Flow(amount(1.0, "l1_writeback_bytes"), stage("l1", "writeback"))
    return Links(
        l1=_link(returned if apart or all_of_l1 else l1, Flow(stored, None), l1 if all_of_l1 else Flow(None, None)),
        smem=_link(
            Flow(amount(WAVEFRONT_BYTES, "smem_load_wavefronts"), None),
            Flow(amount(WAVEFRONT_BYTES, "smem_store_wavefronts"), None),
            smem,
        )
        if smem.is_known
        else TrafficLink(),
        l2=_link(
            Flow(amount(1.0, "l2_return_bytes"), stage("l2", "return")),
            Flow(amount(1.0, "l2_write_bytes"), stage("l2", "input")),
            l2,
        ),
        dram=_link(of_dram("read"), of_dram("write"), dram),
    )


def _link(read: Flow, written: Flow, whole: Flow) -> TrafficLink:
    """Take the two directions where bytes of both are known, else the bytes of both together, else what there is."""
    if whole.amount_bytes is not None and (read.amount_bytes is None or written.amount_bytes is None):
        return TrafficLink(both=whole)
    return TrafficLink(read if read.is_known else None, written if written.is_known else None)
