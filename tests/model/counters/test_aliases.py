"""Other names of the quantities exist, and all forms of one measurement give one number."""

from __future__ import annotations

import pytest

from rooflens.collect.passes import base_names
from rooflens.ingest.reports.resolve import resolve
from rooflens.model.counters.aliases import ALIASES, aliases_of
from rooflens.model.counters.balance import SAMPLED_ONLY, STALLS
from rooflens.model.counters.recipes import bases_of
from rooflens.model.counters.table import COUNTERS, NAMES

# One warp in flight per cycle on a sub-partition for 1,000 cycles, in which 200 instructions issue: 5 cycles for each.
# It waits at barriers for 300 of them, which is 1.5 cycles an instruction. Ten warps lived for 100 cycles each.
ISSUED, RESIDENT, AT_BARRIERS = 200.0, 1000.0, 300.0
FORMS = {
    "per warp active": {"smsp__warp_issue_stalled_barrier_per_warp_active.pct": 30.0},
    "as a ratio": {"smsp__warp_issue_stalled_barrier_per_warp_active.ratio": 0.3},
    "sums": {"smsp__warps_issue_stalled_barrier.sum": AT_BARRIERS, "smsp__warps_active.sum": RESIDENT},
    "means": {"smsp__warps_issue_stalled_barrier.avg": 75.0, "smsp__warps_active.avg": 250.0},
    "per cycle": {
        "smsp__warps_issue_stalled_barrier.avg.per_cycle_active": 0.3,
        "smsp__warps_active.avg.per_cycle_active": 1.0,
    },
    "per warp launched": {
        "smsp__average_warp_latency_issue_stalled_barrier.ratio": 30.0,
        "smsp__average_warp_latency.ratio": 100.0,
    },
}
PER_ISSUE = {
    "ratio": {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": 1.5},
    "pct": {"smsp__average_warps_issue_stalled_barrier_per_issue_active.pct": 150.0},
    "sums": {"smsp__warps_issue_stalled_barrier.sum": AT_BARRIERS, "smsp__issue_active.sum": ISSUED},
    "of inst_issued": {"smsp__warps_issue_stalled_barrier.sum": AT_BARRIERS, "smsp__inst_issued.sum": ISSUED},
}
LATENCY = {
    "per instruction": {"smsp__average_warp_latency_per_inst_issued.ratio": 5.0},
    "per issue": {"smsp__average_warps_active_per_issue_active.ratio": 5.0},
    "sums": {"smsp__warps_active.sum": RESIDENT, "smsp__issue_active.sum": ISSUED},
    "scheduler section": {
        "smsp__warps_active.avg.per_cycle_active": 1.0,
        "smsp__issue_active.avg.per_cycle_active": 0.2,
    },
}
OTHERS = {
    "global_load_bytes_per_sector": (
        8.0,
        {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 8.0},
        {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": 25.0},
    ),
    "threads_per_inst": (
        24.0,
        {"smsp__thread_inst_executed_per_inst_executed.ratio": 24.0},
        {"smsp__average_thread_inst_executed_per_inst_executed.pct": 75.0},
        {"smsp__thread_inst_executed.sum": 240.0, "smsp__inst_executed.sum": 10.0},
    ),
    "l2_hit_rate": (0.6, {"lts__t_sector_hit_rate.pct": 60.0}, {"lts__t_sector_hit_rate.ratio": 0.6}),
    "issue_active_per_cycle": (
        0.2,
        {"smsp__issue_active.avg.per_cycle_active": 0.2},
        {"smsp__issue_active.avg.pct_of_peak_sustained_active": 20.0},
    ),
    "achieved_occupancy": (
        0.25,
        {"sm__warps_active.avg.pct_of_peak_sustained_active": 25.0},
        {"sm__warps_active.avg.per_cycle_active": 16.0, "device__attribute_max_warps_per_multiprocessor": 64.0},
    ),
}


def test_every_other_name_exists() -> None:
    """A misspelt name would never be read, so each must exist on some chip or in the driver."""
    known = {name for chip in ("gv100", "tu102", "ga104", "gh100", "gb202") for name in base_names(chip)}
    reasons = sorted(STALLS.keys() - SAMPLED_ONLY)
    quantities = [key.format(why) for key in ALIASES for why in (reasons if "{}" in key else ("",))]
    assert set(quantities) <= NAMES
    named = {name for quantity in quantities for alias in aliases_of(quantity) for name in (alias.name, alias.over)}
    bases = {name.partition(".")[0] for name in named if name and not name.startswith("device__")}
    assert bases - known == set()
    read = {base for row in COUNTERS for recipe in row.recipes for base in bases_of(recipe)}
    assert bases <= read


@pytest.mark.parametrize("stored", FORMS.values(), ids=FORMS)
def test_every_form_of_a_stall_is_the_same_part_of_the_time(stored: dict[str, float]) -> None:
    """Whatever the denominator, the warp waits at barriers for 30 % of its time."""
    assert resolve(stored).values["stall_barrier_share"] == pytest.approx(0.3)


@pytest.mark.parametrize("stored", PER_ISSUE.values(), ids=PER_ISSUE)
def test_stalls_per_issued_instruction_are_cycles(stored: dict[str, float]) -> None:
    """They are 1.5 of the cycles between two instructions; without those they give no share of the time."""
    found = resolve(stored).values
    assert found["stall_barrier_cycles"] == pytest.approx(1.5)
    assert "stall_barrier_share" not in found


@pytest.mark.parametrize("stored", LATENCY.values(), ids=LATENCY)
def test_the_cycles_between_two_instructions(stored: dict[str, float]) -> None:
    """A warp issues every fifth cycle."""
    assert resolve(stored).values["warp_latency_cycles"] == pytest.approx(5.0)


@pytest.mark.parametrize("quantity", OTHERS)
def test_other_forms_give_the_same_number(quantity: str) -> None:
    """Ratios, per cents of the maximum, and quotients of counts agree."""
    expected, *forms = OTHERS[quantity]
    assert [resolve(stored).values[quantity] for stored in forms] == pytest.approx([expected] * len(forms))


def test_a_per_cent_of_active_cycles_is_none_of_the_run() -> None:
    """It stays a separate quantity if the report does not say how long the SMs were active."""
    of_active = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 60.0}
    assert resolve(of_active).values == {"tensor_active_share": pytest.approx(0.6)}
    part = {**of_active, "sm__cycles_active.avg": 50.0, "sm__cycles_elapsed.avg": 100.0}
    assert resolve(part).values["tensor_busy_share"] == pytest.approx(0.3)


def test_sectors_over_sectors_per_request_are_requests() -> None:
    """Sectors divided by the mean that ncu prints give the requests."""
    base = "l1tex__{}_pipe_lsu_mem_global_op_ld"
    stored = {f"{base.format('t_sectors')}.sum": 64.0, f"{base.format('average_t_sectors_per_request')}.ratio": 16.0}
    assert resolve(stored).values["global_load_requests"] == 4.0
