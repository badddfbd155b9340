"""Why a kernel waits: named if stalls or a limiter explain most of it, and otherwise called not measured."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from support.kernels import make_case, make_kernel, reach

from rooflens.analyzing import analyze_paths
from rooflens.model.records import Analysis, Verdict
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.words.verdict import verdict_sentence

PUBLISHED = Path(__file__).parents[3] / "fixtures" / "published"


def waiting(allowed: float, achieved: float, room: float, **overrides: object) -> Verdict:
    """Return the verdict of a kernel with fewer warps than possible, whose busiest unit leaves this much room."""
    kernel = make_kernel(
        {"theoretical_occupancy": allowed, "achieved_occupancy": achieved}, compute_capability="8.0", **overrides
    )
    return reach(make_case({"dram": 1 / room, "l1": 0.01, "fp32": 0.01, "issue": 0.01}, kernel=kernel))


@pytest.fixture(scope="module")
def self_join() -> list[Analysis]:
    """Analyze a report collected without stalls."""
    found = analyze_paths([str(PUBLISHED / "self-join-MiSTIC__profile.ncu-rep")])
    return [one for report in found.reports for one in report.analyses if one.verdict.bound == "latency"]


def test_a_small_part_is_not_the_cause(self_join: list[Analysis]) -> None:
    """An occupancy of 88 % explains 1 / 0.88 of 7.8 times: the cause is unmeasured, and the last move measures it."""
    one = next(one for one in self_join if one.kernel.function_name == "kernelUniqueKeys")
    assert one.kernel.counters["achieved_occupancy"] == pytest.approx(0.88, abs=0.01)
    assert one.verdict.cause == "cause not measured"
    assert "why warps wait was not measured; may contribute: low achieved occupancy" in verdict_sentence(one)
    assert [move.kind for move in one.verdict.moves] == ["balance", "collect"]
    assert "--kernel kernelUniqueKeys --launch-count 1" in one.verdict.advice[-1]


def test_a_limiter_of_a_small_part_comes_first_and_is_not_the_cause(self_join: list[Analysis]) -> None:
    """A limiter of 1.2 times in 2.0 deserves its move, and the rest of the wait should be measured."""
    one = next(one for one in self_join if one.kernel.index == 117)
    assert [finding.severity for finding in one.findings][:1] == ["limiter"]
    assert one.verdict.cause == "cause not measured"
    assert [move.kind == "collect" for move in one.verdict.moves] == [False, True]


def test_named_causes_explain_most_of_the_room(self_join: list[Analysis]) -> None:
    """Without stalls, a cause with a gain is named if it is half of the busiest unit's room, on a logarithmic scale."""
    named = [one for one in self_join if one.verdict.cause != "cause not measured"]
    assert len(named) > 30
    for one in named:
        busiest = one.verdict.bottleneck
        gains = [finding.gain for finding in one.findings if finding.severity == "limiter"]
        if busiest is None or None in gains or 1 / busiest.share > default_thresholds().open_room:
            continue
        assert max(math.log(gain.factor) for gain in gains if gain) >= -0.5 * math.log(busiest.share)


@pytest.mark.parametrize(("room", "is_named"), [(2.24, True), (2.26, False)])
def test_half_of_the_room_is_where_a_cause_is_named(room: float, *, is_named: bool) -> None:
    """1.5 times is half of 2.25 times, as factors multiply."""
    found = waiting(0.9, 0.6, room)
    assert (found.cause == "low achieved occupancy") is is_named


@pytest.mark.parametrize("stalls", [{"long_scoreboard": 0.5, "barrier": 0.5}, {"wait": 0.2, "misc": 0.2}])
def test_stalls_name_the_cause(stalls: dict[str, float]) -> None:
    """If stalls were sampled, no move asks to measure them."""
    found = waiting(1.0, 0.88, 7.8, stalls=stalls)
    assert found.cause != "cause not measured"
    assert not any(move.kind == "collect" for move in found.moves)


def test_a_chip_that_is_not_profiled_any_more_keeps_its_moves_first() -> None:
    """No more can be collected on Pascal, so what was found stays first."""
    kernel = make_kernel({"theoretical_occupancy": 1.0, "achieved_occupancy": 0.88}, compute_capability="6.0")
    found = reach(make_case({"dram": 0.13, "fp32": 0.01}, kernel=kernel))
    assert found.cause == "cause not measured"
    assert found.advice[0].startswith("balance the work")


BARRIER, LOADS, QUEUE = (f"stall_{reason}" for reason in ("barrier", "long_scoreboard", "mio_throttle"))
IDLE = {"dram": 0.3, "fp32": 0.1}


@pytest.mark.parametrize(
    ("counters", "cause"),
    [
        ({f"{BARRIER}_share": 0.36, f"{LOADS}_share": 0.34}, "waits at barriers"),
        ({f"{BARRIER}_share": 0.29, f"{LOADS}_share": 0.20}, "waits at barriers, of the waits counted"),
        ({f"{BARRIER}_share": 0.28, f"{LOADS}_share": 0.25, f"{QUEUE}_share": 0.27}, "waits at barriers"),
        ({f"{BARRIER}_cycles": 2.0, f"{LOADS}_cycles": 1.0}, "waits at barriers, of the waits counted"),
        ({f"{BARRIER}_cycles": 2.0, "warp_latency_cycles": 5.0}, "waits at barriers"),
        ({}, "cause not measured"),
    ],
    ids=["dominant", "others may be longer", "no room for a longer one", "compared only", "over the latency", "none"],
)
def test_the_longest_wait_of_a_few(counters: dict[str, float], cause: str) -> None:
    """The longest wait in a list of the user's choice is the cause, and the text says that others may be longer."""
    assert reach(make_case(IDLE, kernel=make_kernel(counters))).cause == cause


def test_what_a_full_unit_without_a_name_keeps_waiting() -> None:
    """NVIDIA's per cent names no unit, and the warps' waits tell which it may be; a named unit needs no cause."""
    counters = {"sol_memory": 0.9, "sol_compute": 0.3, f"{QUEUE}_share": 0.6}
    assert (
        reach(make_case({}, kernel=make_kernel(counters))).cause == "queue to shared memory and special functions full"
    )
    assert reach(make_case({"dram": 0.9, "fp32": 0.1}, kernel=make_kernel(counters))).cause is None


def test_nvidias_equal_per_cents_are_of_one_unit() -> None:
    """NVIDIA's compute and memory throughput both include L1's input, so one unit does not become two limits."""
    for compute, bound in ((0.83, "memory"), (0.835, "balanced"), (0.6, "memory"), (0.95, "compute")):
        verdict = reach(make_case({}, kernel=make_kernel({"sol_memory": 0.83, "sol_compute": compute})))
        assert (verdict.bound, verdict.confidence) == (bound, "low")


def test_one_idle_pipe_does_not_speak_for_the_others() -> None:
    """If the tensor pipe idles, NVIDIA's compute throughput tells how busy the busiest pipe is."""
    verdict = reach(make_case({"dram": 0.1, "tensor_pipe": 0.0}, kernel=make_kernel({"sol_compute": 0.7})))
    assert (verdict.bound, verdict.resource, verdict.confidence) == ("compute", None, "low")
