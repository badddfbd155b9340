from __future__ import annotations

import pytest
from support.kernels import make_kernel

from rooflens.model.roofline.traffic import Traffic, find_traffic


def test_shared_memory_asked_and_moved() -> None:
    """96 kB asked of 1,000 wavefronts of 128 bytes are three quarters of them; a quarter of them were replays."""
    counters = {"smem_useful_bytes": 96e3, "smem_bytes": 128e3, "smem_conflict_bytes": 32e3}
    traffic = find_traffic(make_kernel(counters))
    assert traffic.shared is not None
    assert (traffic.shared.asked_bytes, traffic.shared.moved_bytes, traffic.shared.share) == (96e3, 128e3, 0.75)
    assert traffic.conflict_share == 0.25


def test_global_memory_needed_and_touched() -> None:
    """Half of the touched sectors would do: 32 bytes each."""
    traffic = find_traffic(make_kernel({"global_ideal_sectors": 500.0, "global_touched_sectors": 1000.0}))
    assert traffic.global_memory is not None
    assert (traffic.global_memory.asked_bytes, traffic.global_memory.moved_bytes) == (16e3, 32e3)
    assert traffic.global_memory.share == 0.5


def test_ratios() -> None:
    """Sectors a request of loads and stores, and wavefronts that addresses need over those that bytes need."""
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
        {"smem_useful_bytes": 0.0, "smem_bytes": 0.0, "global_load_sectors": 0.0, "global_load_requests": 0.0},
    ],
)
def test_no_ratio_without_both_sides(counters: dict[str, float]) -> None:
    """What was not counted, or was never moved, has no useful part."""
    assert find_traffic(make_kernel(counters)) == Traffic()
