from __future__ import annotations

from dataclasses import replace

import pytest
from support.kernels import make_kernel

from rooflens.model.roofline.occupancy import occupancy_limiter
from rooflens.model.verdict.causes import STALLS, find_causes
from rooflens.model.verdict.thresholds import default_thresholds

LIMITS = default_thresholds()
LIMITER = {"blocks_limit_registers": 2.0, "blocks_limit_warps": 8.0}
EVERYTHING = {
    "waves": 0.25,
    "grid_size": 33.0,
    "sm_count": 132.0,
    "achieved_occupancy": 0.1,
    "theoretical_occupancy": 0.125,
    **LIMITER,
    "eligible_warps_per_cycle": 0.4,
    "sm_cycles_active_avg": 100.0,
    "sm_cycles_active_max": 150.0,
}


def kinds(counters: dict[str, float], stalls: dict[str, float] | None = None) -> list[str]:
    """Return the kinds of the causes found."""
    causes = find_causes(make_kernel(counters, stalls=stalls or {}), LIMITS)
    return [cause.kind for cause in causes if not cause.text.startswith("no single one")]


def test_no_counters_no_cause() -> None:
    """What was not measured causes nothing."""
    assert kinds({}) == []


def test_causes_stand_in_the_order_in_which_they_explain() -> None:
    """Grid, occupancy, stalls, imbalance: the first one is what the verdict names."""
    assert kinds(EVERYTHING, {"long_scoreboard": 0.6}) == ["grid", "occupancy", "memory", "imbalance"]
    assert kinds({**EVERYTHING, "waves": 1.25}, {"barrier": 0.6}) == ["occupancy", "sync", "imbalance", "tail"]


@pytest.mark.parametrize(("waves", "found"), [(0.0, ["grid"]), (0.99, ["grid"]), (1.0, []), (2.0, [])])
def test_a_grid_below_one_wave(waves: float, found: list[str]) -> None:
    """Fewer blocks than fill the GPU once are the first cause; exactly one wave is none."""
    assert kinds({"waves": waves}) == found


def test_a_small_grid_says_its_numbers() -> None:
    """33 blocks on 132 SMs are a quarter of a wave."""
    (cause,) = find_causes(make_kernel({"waves": 0.25, "grid_size": 33.0, "sm_count": 132.0}), LIMITS)
    assert cause.text == "grid below one wave"
    assert cause.evidence == "0.25 waves: 33 blocks on 132 SMs do not fill the GPU once"


@pytest.mark.parametrize(
    ("waves", "found"), [(1.25, ["tail"]), (1.5, ["tail"]), (2.25, ["tail"]), (1.76, []), (3.3, []), (4.0, [])]
)
def test_a_tail_is_a_last_wave_that_leaves_a_quarter_idle(waves: float, found: list[str]) -> None:
    """2.25 waves take the time of three and leave a quarter of it; 3.3 of four leave 18 %, 1.76 of two 12 %."""
    assert kinds({"waves": waves}) == found


@pytest.mark.parametrize(("allowed", "found"), [(0.125, ["occupancy"]), (0.24, ["occupancy"]), (0.25, []), (1.0, [])])
def test_low_occupancy_has_a_limiter(allowed: float, found: list[str]) -> None:
    """A launch that allows less than a quarter of the warps is limited by something."""
    assert kinds({"theoretical_occupancy": allowed, **LIMITER}) == found


@pytest.mark.parametrize("counters", [{"theoretical_occupancy": 0.1}, LIMITER, {"achieved_occupancy": 0.05, **LIMITER}])
def test_low_occupancy_needs_both_numbers(counters: dict[str, float]) -> None:
    """Without a limiter, or without what the launch allows, occupancy is not blamed."""
    assert kinds(counters) == []


@pytest.mark.parametrize(
    ("counter", "text"),
    [
        ("blocks_limit_registers", "registers"),
        ("blocks_limit_smem", "shared memory"),
        ("blocks_limit_warps", "warps a block"),
        ("blocks_limit_blocks", "block slots"),
        ("blocks_limit_barriers", "barriers"),
    ],
)
def test_the_fewest_blocks_name_the_limiter(counter: str, text: str) -> None:
    """What allows the fewest blocks limits occupancy, and the cause names it with both per cents."""
    limits = dict.fromkeys(
        (
            "blocks_limit_registers",
            "blocks_limit_smem",
            "blocks_limit_warps",
            "blocks_limit_blocks",
            "blocks_limit_barriers",
        ),
        9.0,
    )
    kernel = make_kernel({**limits, counter: 1.0, "theoretical_occupancy": 0.125, "achieved_occupancy": 0.11})
    assert occupancy_limiter(kernel) == text
    (cause,) = find_causes(kernel, LIMITS)
    assert (cause.text, cause.evidence) == (f"occupancy limited by {text}", f"occupancy 11 %, at most 12 % by {text}")


def test_no_limits_no_limiter() -> None:
    """A report without launch limits names none."""
    assert occupancy_limiter(make_kernel()) is None


@pytest.mark.parametrize("reason", STALLS)
def test_every_stall_reason_can_dominate(reason: str) -> None:
    """A reason above 30 % of the stalls is named with its meaning and kind."""
    (cause,) = find_causes(
        make_kernel({"eligible_warps_per_cycle": 0.43}, stalls={reason: 0.31, "not_selected": 0.69}), LIMITS
    )
    meaning, kind = STALLS[reason]
    assert (cause.text, cause.kind) == (f"{reason}: {meaning}", kind)
    assert cause.evidence == f"0.43 eligible warps a cycle, 31 % of stalls: {meaning}"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("long_scoreboard", "memory"),
        ("short_scoreboard", "smem"),
        ("mio_throttle", "smem"),
        ("barrier", "sync"),
        ("wait", "dependency"),
        ("math_pipe_throttle", "dependency"),
    ],
)
def test_stalls_mean_what_nvidia_says(reason: str, kind: str) -> None:
    """Scoreboards are memory, short ones and mio shared memory, barriers sync, wait and math_pipe dependency."""
    assert STALLS[reason][1] == kind


@pytest.mark.parametrize(
    ("eligible", "share", "found"),
    [(0.99, 0.31, ["memory"]), (0.5, 0.30, []), (1.0, 0.9, []), (2.0, 0.9, []), (None, 0.31, ["memory"])],
)
def test_a_stall_counts_where_warps_are_missing(eligible: float | None, share: float, found: list[str]) -> None:
    """With a ready warp every cycle stalls cost nothing; at 30 % or less none dominates."""
    stalls = {"long_scoreboard": share, "wait": 0.1, "not_selected": 0.2}
    assert kinds({"eligible_warps_per_cycle": eligible}, stalls) == found


@pytest.mark.parametrize("stalls", [{"not_selected": 0.9}, {"not_selected": 0.5, "wait": 0.2}, {"something_new": 0.9}])
def test_ready_warps_and_unknown_reasons_are_no_cause(stalls: dict[str, float]) -> None:
    """`not_selected` warps were ready, and a reason nobody knows explains nothing."""
    assert kinds({"eligible_warps_per_cycle": 0.1}, stalls) == []


@pytest.mark.parametrize(("busiest", "found"), [(119.0, []), (120.0, ["imbalance"]), (300.0, ["imbalance"])])
def test_imbalance_is_the_busiest_sm_over_the_mean(busiest: float, found: list[str]) -> None:
    """From 1.2 times the mean on the busiest SM holds the others up."""
    assert kinds({"sm_cycles_active_avg": 100.0, "sm_cycles_active_max": busiest}) == found


def test_imbalance_says_its_ratio() -> None:
    """150 over 100 cycles are 1.50 times the mean."""
    (cause,) = find_causes(make_kernel({"sm_cycles_active_avg": 100.0, "sm_cycles_active_max": 150.0}), LIMITS)
    assert cause.evidence == "the busiest SM works 1.50x the mean"


@pytest.mark.parametrize(
    "counters", [{"sm_cycles_active_avg": 0.0, "sm_cycles_active_max": 9.0}, {"sm_cycles_active_avg": 9.0}]
)
def test_imbalance_needs_both_numbers(counters: dict[str, float]) -> None:
    """No mean, or no maximum, no imbalance."""
    assert kinds(counters) == []


def test_the_limits_are_the_thresholds() -> None:
    """Every limit can be moved."""
    limits = replace(LIMITS, small_grid_waves=0.1, low_occupancy=0.1, eligible_warps=0.1, imbalance_ratio=2.0)
    assert find_causes(make_kernel(EVERYTHING, stalls={"long_scoreboard": 0.6}), limits)[0].kind == "tail"


def test_without_a_cause_the_largest_stall_is_named() -> None:
    """A kernel that no rule explains gets its largest stall, said to be no single cause."""
    kernel = make_kernel({"eligible_warps_per_cycle": 2.1}, stalls={"wait": 0.29, "barrier": 0.2})
    (cause,) = find_causes(kernel, default_thresholds())
    assert (cause.kind, cause.text) == ("dependency", "no single one, most waits for fixed instruction latency")
    assert "29 %" in cause.evidence
