from __future__ import annotations

import pytest
from support.loops import for_all

from rooflens.model.counters.plausible import find_impossible, limits
from rooflens.model.counters.table import NAMES


def test_every_counter_has_limits() -> None:
    """A row with a new unit must state the possible values; otherwise damage would pass."""
    assert limits().keys() == NAMES
    assert all(0 <= limit.low < limit.high and limit.why for limit in limits().values())


@for_all(
    "counters, said",
    [
        ({"sm_clock_hz": 1e308}, "between 1 MHz and 10 GHz"),
        ({"sm_clock_hz": 0.001}, "between 1 MHz and 10 GHz"),
        ({"dram_clock_hz": 1e12}, "between 1 MHz and 100 GHz"),
        ({"duration_ns": 0.0}, "between a nanosecond and three years"),
        ({"duration_ns": -5.0}, "between a nanosecond and three years"),
        ({"duration_ns": 1e18}, "between a nanosecond and three years"),
        ({"sm_count": 0.0}, "between 1 and 100,000 SMs"),
        ({"dram_bytes": -1.0}, "from 0 to 2^62"),
        ({"dram_bytes": 1e15, "duration_ns": 1e6}, "no GPU moves 1e+17 of it in a second"),
        ({"ffma_threads": 2.0**63}, "from 0 to 2^62"),
        ({"elapsed_cycles": 1e30}, "from 0 to 2^62"),
        ({"dram_bus_share": 1e6}, "10,000 %"),
        ({"l1_hit_rate": -0.5}, "from 0 on"),
        ({"achieved_occupancy": 1e300}, "10,000 %"),
        ({"dram_bus_peak_bytes_per_s": 1e-200}, "between a thousand and 10^20"),
        ({"block_size": 1e9}, "1,024 threads"),
        ({"registers_per_thread": 1e300}, "2^40"),
        ({"blocks_limit_blocks": 1e-300}, "what is not 0 is at least 0.5"),
        ({"dram_bytes": 1e-300}, "what is not 0 is at least 1e-18"),
        ({"threads_per_inst": 1e4}, "32 threads"),
        ({"issue_active_per_cycle": 1e9}, "10,000 instructions a cycle"),
        ({"global_load_bytes_per_sector": 1e9}, "32 bytes"),
        ({"stall_wait_cycles": 1e15}, "10^12 cycles"),
    ],
)
def test_what_no_gpu_does_is_impossible(counters: dict[str, float], said: str) -> None:
    """The reason names the quantity, its value and the limit; one impossible value among plausible ones is found."""
    assert find_impossible({"grid_size": 1.0, **counters, "waves": 0.5}, {}) is not None
    assert said in (find_impossible(counters, {}) or "")
    name = next(iter(counters))
    assert "of `its_metric`, is impossible: " in (find_impossible(counters, {name: "its_metric"}) or "")


@pytest.mark.parametrize(
    "counters",
    [
        {},
        {"sm_clock_hz": 2.1e9, "dram_clock_hz": 1.4e10, "duration_ns": 960.0},
        {"dram_bus_share": 4.0, "achieved_occupancy": 1.05, "l2_hit_rate": 1.001},
        {"duration_ns": 1.6e11, "dram_bytes": 4.5e13, "elapsed_cycles": 4e10},
        {"dram_bytes": 1e13},
    ],
)
def test_odd_measurements_are_possible(counters: dict[str, float]) -> None:
    """Shares of 400 %, and launches of minutes or of a microsecond, occur in real reports and are not damage."""
    assert find_impossible(counters, {}) is None
