from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples
from support.kernels import make_kernel
from support.roofs import own_roof

from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, Gain, Limit, Move, UnitFloor
from rooflens.report.words.gain_and_limit import (
    floor_words,
    gain_words,
    limit_cell,
    limit_factor_words,
    limit_in_short,
    stage_full_words,
    time_figure,
    today_words,
)

MEMORY = {"dram_bytes": 1.41e9, "dram_bus_peak_bytes_per_s": 2e12, "ffma_peak_threads_per_s": 5e12}


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (None, ""),
        (Gain(1.2, 8.67e9), "10.4 s \u2192 about 8.67 s (1.2x)"),
        (Gain(2.0, proven=True), "10.4 s \u2192 at best 5.20 s (2.0x)"),
        (Gain(8.0, 1.3e9, changes="types"), "10.4 s \u2192 about 1.30 s (8.0x, changes the types)"),
    ],
)
def test_a_gain_says_what_it_brings_and_what_it_changes(gain: Gain | None, words: str) -> None:
    """A gain is the time before and after, `about` or, if proven, `at most`; a change of types is mentioned."""
    assert gain_words(gain, 1.04e10).replace("\u00a0", " ") == words


@pytest.mark.parametrize(
    ("gain", "launches", "above_ns", "words"),
    [
        (Gain(1.309), 1, 1e6, "6.19 \u2192 about 4.73 ms"),
        (Gain(1.309), 12, None, "6.19 \u2192 about 4.73 ms in 12 launches"),
        (None, 12, 0.671e6, "6.19 ms in 12 launches, 671 \u00b5s above its floor"),
        (None, 1, 6e6, "6.19 ms, over 90 % of it above its floor"),
        (None, 1, 1e5, "6.19 ms, at the floor of today's work"),
        (None, 1, None, "6.19 ms"),
    ],
)
def test_a_row_says_of_which_launches_its_time_is_and_what_it_is_ranked_by(
    gain: Gain | None, launches: int, above_ns: float | None, words: str
) -> None:
    """The time after the move where its gain is known; else what lies above the floor, if that is known."""
    assert time_figure(gain, 6.19e6, launches, above_ns).replace("\u00a0", " ") == words


def _limited(limit: Limit, resource: str | None = None) -> Analysis:
    """Return a kernel with a limit, at a unit or at none."""
    analysis = analyze(make_kernel({"l1_data_share": 0.1}))
    return replace(analysis, verdict=replace(analysis.verdict, limit=limit, resource=resource))


def test_a_limit_names_the_side_that_sets_it() -> None:
    """A proven factor is given with its side; an unknown one is not mentioned."""
    limit = Limit(2.1, 5e6, "FP32 arithmetic", proven=True)
    assert (limit_factor_words(_limited(limit)), limit_cell(limit)) == ("limit 2.1x (FP32 arithmetic)", "2.1x")
    nothing = Limit(missing="`gpu__time_duration.sum`")
    assert (limit_factor_words(_limited(nothing)), limit_cell(nothing, "-")) == ("", "-")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("DRAM traffic", "today's DRAM traffic allows 3.0x"),
        ("integer arithmetic", "today's integer arithmetic allows 3.0x"),
        ("the shortest launch", "the shortest launch allows 3.0x"),
    ],
)
def test_what_is_not_proven_is_not_called_a_limit(by: str, said: str) -> None:
    """It describes what the kernel does today, and is only marked where there is just room for a number."""
    limit = Limit(3.0, 5e6, by)
    assert (limit_factor_words(_limited(limit)), limit_cell(limit)) == (said, "~3.0x")


@pytest.mark.parametrize(
    ("limit", "span", "said"),
    [
        (
            Limit(4.3, 1.07e6, "FP32 arithmetic", proven=True),
            " a launch",
            "Limit 1.07 ms a launch (4.3x): its FP32 arithmetic at peak",
        ),
        (Limit(1.2, 1.71e6, "DRAM traffic"), "", "At best 1.71 ms (1.2x) with today's DRAM traffic"),
        (Limit(140.0, 5e6, "DRAM traffic"), "", "At best 5.00 ms (over 10x) with today's DRAM traffic"),
        (Limit(1.1, None, "tensor arithmetic"), "", "At best 1.1x faster with today's tensor arithmetic"),
        (Limit(3.0, 2e3, "the shortest launch"), " a launch", "At best 2.00 \u00b5s (3.0x) with the shortest launch"),
        (Limit(), "", ""),
    ],
)
def test_a_floor_is_a_time_with_what_sets_it(limit: Limit, span: str, said: str) -> None:
    """The time that no change beats comes first; what is not proven holds for today's traffic."""
    one = analyze(make_kernel({"l1_data_share": 0.1}))
    found = floor_words(replace(one, verdict=replace(one.verdict, limit=limit, today=None)), span)
    assert found.replace("\u00a0", " ") == said


def test_above_ten_no_factor_is_said() -> None:
    """Such a kernel is called far from any limit, or from that of its traffic if only traffic is known."""
    proven, traffic = Limit(10.1, 5e6, "FP32 arithmetic", proven=True), Limit(140.0, 5e6, "DRAM traffic")
    assert (limit_factor_words(_limited(proven)), limit_cell(proven)) == ("far from any limit (FP32 arithmetic)", "far")
    assert limit_factor_words(_limited(traffic)) == "far from what today's DRAM traffic allows"
    assert limit_cell(traffic) == "~far"
    assert limit_factor_words(_limited(Limit(10.0, 5e6, "FP32 arithmetic", proven=True))).startswith("limit 10x")


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        ("l1", "over 10x if it moves fewer bytes through L1 (limit FP32 arithmetic)"),
        ("smem", "over 10x if it moves fewer bytes through shared memory (limit FP32 arithmetic)"),
        ("alu", "over 10x if it has less work for the ALU pipe (limit FP32 arithmetic)"),
        ("issue", "over 10x if it issues fewer instructions (limit FP32 arithmetic)"),
        ("fp32", "far from any limit (FP32 arithmetic)"),
    ],
)
def test_a_kernel_at_a_unit_is_not_far_from_any_limit(resource: str, said: str) -> None:
    """A full unit can only be relieved if the kernel uses it less; the unit's own side needs no relief."""
    assert limit_factor_words(_limited(Limit(12.0, 5e6, "FP32 arithmetic", proven=True), resource)) == said


def test_a_full_stage_below_its_roof_is_explained() -> None:
    """1e9 B in 1 ms of 2 TB/s are half of the roof by bytes, while the data stage is full."""
    counters = {"l1_data_share": 0.994, "l1_tag_bytes": 1e9, "l1_data_peak_bytes_per_s": 2e12, "alu_inst_share": 0.1}
    words = stage_full_words(analyze(make_kernel(counters))).replace("\u00a0", " ")
    assert words == "A data pass moves up to 128 bytes for a warp: these carry 50 % of the bandwidth."


def test_a_level_full_by_bytes_needs_no_explanation() -> None:
    """DRAM at 70 % by its bytes is at its place on the roofline."""
    assert stage_full_words(analyze(make_kernel(MEMORY))) == ""


@pytest.mark.parametrize(
    ("device_peak", "factor", "is_full", "said"),
    [
        (3e11, 1.12, True, "today's DRAM traffic allows 1.1x"),
        (3e11, 1.6, True, "fewer bytes would allow 1.6x, with DRAM 90 % busy today"),
        (4.3e11, 1.6, True, "DRAM's full clock would allow 1.6x, with DRAM 90 % busy today"),
        (4.3e11, 1.6, False, "DRAM's full clock would allow 1.6x, with DRAM 90 % busy today"),
        (4.3e11, 1.9, False, "DRAM's full clock and fewer bytes would allow 1.9x, with DRAM 90 % busy today"),
        (3e11, 1.6, False, "fewer bytes would allow 1.6x, with DRAM 90 % busy today"),
    ],
)
def test_what_a_full_memory_allows_today_is_told_from_what_takes_fewer_bytes(
    device_peak: float, factor: float, said: str, *, is_full: bool
) -> None:
    """DRAM at 90 % allows 1.1x; more than that takes another clock, or fewer bytes, and the share is said beside it."""
    one = samples.every_verdict()[0]
    kernel = replace(one.kernel, gpu=None, counters={"device_dram_peak_bytes_per_s": device_peak})
    level = replace(one.levels["dram"], share=0.9, roof=own_roof(3e11, "byte"))
    verdict = replace(one.verdict, at_roof=is_full, limit=Limit(factor, 1e5, "DRAM traffic"))
    changed = replace(one, kernel=kernel, levels={**one.levels, "dram": level}, verdict=verdict)
    assert limit_in_short(changed) == said


@pytest.mark.parametrize(
    ("resource", "after_ns", "said"),
    [
        ("l2", 116e3, "478 \u00b5s unless it moves fewer bytes through L2, as the best move does"),
        ("l2", 478e3, "478 \u00b5s unless it moves fewer bytes through L2"),
        ("alu", None, "478 \u00b5s unless it has less work for the ALU pipe"),
        ("issue", None, "478 \u00b5s unless it issues fewer instructions"),
    ],
)
def test_a_floor_of_today_says_whether_the_best_move_gets_below(
    resource: str, after_ns: float | None, said: str
) -> None:
    """A time after the move that lies below what today's work takes is no contradiction: the move leaves less of it."""
    moves = (Move("use larger tiles", "tile", gain=after_ns and Gain(522e3 / after_ns, after_ns)),)
    limited = _limited(Limit(9.0, 58e3, "FP32 arithmetic", proven=True))
    limited = replace(limited, kernel=replace(limited.kernel, gpu=None))
    verdict = replace(limited.verdict, moves=moves, today=UnitFloor(resource, 0.914, 478e3))
    assert today_words(replace(limited, verdict=verdict)).replace("\u00a0", " ") == said


def test_what_the_limit_says_of_today_is_not_said_again() -> None:
    """DRAM at 90 % allows 1.1x, whatever fewer bytes would: its floor of today is that very statement."""
    one = samples.every_verdict()[0]
    level = replace(one.levels["dram"], share=0.9, roof=own_roof(3e11, "byte"))
    verdict = replace(one.verdict, limit=Limit(1.6, 1e5, "DRAM traffic"), today=UnitFloor("dram", 0.9, 144e3))
    full = replace(one, levels={**one.levels, "dram": level}, verdict=verdict)
    assert today_words(full) == ""
    assert today_words(replace(full, verdict=replace(verdict, today=UnitFloor("alu", 0.95, 152e3)))) != ""
