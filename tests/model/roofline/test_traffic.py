from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples
from support.kernels import make_kernel

from rooflens.model.roofline.levels import place_levels
from rooflens.model.roofline.traffic import Flow, Links, Traffic, TrafficLink, find_links, find_traffic


def test_shared_memory_asked_and_moved() -> None:
    """96 kB requested of 1,000 wavefronts of 128 bytes are three quarters of them; a quarter were replays."""
    counters = {"smem_useful_bytes": 96e3, "l1_shared_data_bytes": 128e3, "smem_conflict_bytes": 32e3}
    traffic = find_traffic(make_kernel(counters))
    assert traffic.shared is not None
    assert (traffic.shared.asked_bytes, traffic.shared.moved_bytes, traffic.shared.share) == (96e3, 128e3, 0.75)
    assert traffic.conflict_share == 0.25


def test_global_memory_needed_and_touched() -> None:
    """Half of the touched sectors of 32 bytes would suffice."""
    traffic = find_traffic(make_kernel({"global_ideal_sectors": 500.0, "global_touched_sectors": 1000.0}))
    assert traffic.global_memory is not None
    assert (traffic.global_memory.asked_bytes, traffic.global_memory.moved_bytes) == (16e3, 32e3)
    assert traffic.global_memory.share == 0.5


def test_ratios() -> None:
    """Sectors per request of loads and stores, and wavefronts that addresses need over those that bytes need."""
    counters = {
        "global_load_sectors": 320.0,
        "global_load_requests": 20.0,
        "global_store_sectors": 80.0,
        "global_store_requests": 20.0,
        "smem_access_wavefronts": 300.0,
        "smem_ideal_wavefronts": 100.0,
    }
    traffic = find_traffic(make_kernel(counters))
    assert (traffic.load_sectors_per_request, traffic.store_sectors_per_request) == (16.0, 4.0)
    assert traffic.shared_excess == 3.0


@pytest.mark.parametrize(
    "counters",
    [
        {},
        {"smem_useful_bytes": 1.0, "global_ideal_sectors": 1.0, "global_load_sectors": 1.0, "smem_conflict_bytes": 1.0},
        {
            "smem_useful_bytes": 0.0,
            "l1_shared_data_bytes": 0.0,
            "global_load_sectors": 0.0,
            "global_load_requests": 0.0,
        },
    ],
)
def test_no_ratio_without_both_sides(counters: dict[str, float]) -> None:
    """If something was not counted, or nothing was moved, there is no useful share."""
    assert find_traffic(make_kernel(counters)) == Traffic()


MOVED = {
    "dram_bytes": 3e8,
    "dram_read_bytes": 2e8,
    "dram_write_bytes": 1e8,
    "dram_bus_peak_bytes_per_s": 1e12,
    "l2_bytes": 5e8,
    "l2_return_bytes": 4e8,
    "l2_write_bytes": 1e8,
    "l2_return_peak_bytes_per_s": 2e12,
    "l2_input_share": 0.3,
    "l1_writeback_bytes": 8e8,
    "l1_data_peak_bytes_per_s": 1e13,
    "global_store_sectors": 3e6,
    "local_store_sectors": 1e6,
}


def links_of(counters: dict[str, float], *, apart: bool = True) -> Links:
    """Return the links of a kernel of 1 ms without shared memory."""
    unshared = {"smem_static_per_block_bytes": 0.0, "smem_dynamic_per_block_bytes": 0.0}
    kernel = make_kernel({**unshared, **counters})
    return find_links(replace(samples.failed(), kernel=kernel, levels=place_levels(kernel)), apart=apart)


def test_reads_and_writes_are_told_apart() -> None:
    """200 MB in 1 ms are a fifth of 1 TB/s; stores of 4 M sectors are 128 MB; each share is of its direction."""
    links = links_of(MOVED)
    assert links.dram == TrafficLink(Flow(2e8, pytest.approx(0.2)), Flow(1e8, pytest.approx(0.1)))
    assert links.l2 == TrafficLink(Flow(4e8, pytest.approx(0.2)), Flow(1e8, 0.3))
    assert links.l1 == TrafficLink(Flow(8e8, pytest.approx(0.08)), Flow(128e6, None))
    assert links.smem == TrafficLink()


def test_a_total_stays_a_total() -> None:
    """Bytes without a counted direction are one flow, and no direction is invented."""
    links = links_of({"dram_bytes": 3e8, "dram_bus_peak_bytes_per_s": 1e12, "l2_bytes": 5e8, "l2_write_bytes": 1e8})
    assert links.dram == TrafficLink(both=Flow(3e8, pytest.approx(0.3)))
    assert links.l2 == TrafficLink(both=Flow(5e8, None))
    assert links.l1 == TrafficLink()


def test_a_share_alone_is_shown_without_bytes() -> None:
    """A report with only per cents has no bytes, and none are computed."""
    links = links_of({"dram_read_share": 0.4, "dram_write_share": 0.0, "l2_return_share": 0.2})
    assert links.dram == TrafficLink(Flow(None, 0.4), Flow(None, 0.0))
    assert links.l2 == TrafficLink(Flow(None, 0.2), None)


def test_launches_that_differ_have_totals_only() -> None:
    """The counters of a record for several launches are those of one launch: only its levels are sums."""
    links = links_of(MOVED, apart=False)
    assert links.dram == TrafficLink(both=Flow(3e8, pytest.approx(0.3)))
    assert (links.l2.read, links.l2.written) == (None, None)
    assert links.l1.read == Flow(8e8, pytest.approx(0.08))
    assert (links.l1.written, links.l1.both) == (None, None)


def test_shared_memory_has_loads_and_stores() -> None:
    """Wavefronts of 128 bytes in each direction, if the report counts both."""
    smem = {"l1_shared_data_bytes": 512e3, "smem_static_per_block_bytes": 4096.0}
    links = links_of({**smem, "smem_load_wavefronts": 3000.0, "smem_store_wavefronts": 1000.0})
    assert links.smem == TrafficLink(Flow(384e3, None), Flow(128e3, None))
