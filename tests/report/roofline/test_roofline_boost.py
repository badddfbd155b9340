"""Roofs at boost clock, from the GPU's file, if both clocks are known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from planes import make_plane, make_spec
from support import samples

from rooflens.report.roofline.boost import boost

A100_BOOST_HZ = 1.41e9


def _at(clock_hz: float, name: str = samples.A100.name) -> list[object]:
    """Make a kernel on an A100 at a clock, with the peaks of that clock."""
    part = clock_hz / samples.A100.sm_clock_hz
    pipes = {key: peak * part for key, peak in samples.A100.pipe_peaks.items()}
    levels = {key: peak * (1 if key in {"dram", "l2"} else part) for key, peak in samples.A100.level_peaks.items()}
    chip = replace(samples.A100, name=name, sm_clock_hz=clock_hz, pipe_peaks=pipes, level_peaks=levels)
    kernel = samples.Sample("k", "memory", 100, "dram", {"dram": 1e8, "l1": 1e8}, {"fp32": 1e8}, chip=chip)
    return [samples.analysis(kernel)]


def test_arithmetic_and_l1_follow_the_clock() -> None:
    """At half of 1.41 GHz the boost roofs of fp32 and L1 are those of the full clock; DRAM and L2 have none."""
    found = boost(make_plane(_at(A100_BOOST_HZ / 2)))
    assert found is not None
    assert found.ratio == pytest.approx(2)
    assert found.flat == {"fp32": (pytest.approx(19.5e12), A100_BOOST_HZ)}
    assert found.slopes == {"l1": pytest.approx(19.5e12)}
    assert "up to 2.0x as fast" in found.sentence


def test_a_small_difference_is_drawn_and_not_said() -> None:
    """A tenth below the boost clock, the roofs are drawn without a sentence."""
    found = boost(make_plane(_at(A100_BOOST_HZ / 1.1)))
    assert found is not None
    assert found.sentence == ""


@pytest.mark.parametrize(("clock_hz", "name"), [(A100_BOOST_HZ, samples.A100.name), (7e8, "Some GPU")])
def test_no_boost_roofs_without_a_faster_known_clock(clock_hz: float, name: str) -> None:
    """A launch at boost clock, or on a GPU without a file, has no second roofs and no signal for them."""
    assert boost(make_plane(_at(clock_hz, name))) is None
    spec = make_spec(_at(clock_hz, name))
    assert "boost" not in {param["name"] for param in spec["params"]}
    assert "twinFlats" not in spec["datasets"]


def test_tensor_pipes_have_their_own_boost_clock() -> None:
    """If a GPU's file states tensor peaks for another clock, tensor roofs use it."""
    chip = replace(samples.A100, name="NVIDIA H200", sm_clock_hz=9.15e8)
    flop = {"fp32": 1e8, "tensor_bf16": 1e9}
    kernel = samples.Sample("k", "memory", 100, "dram", {"dram": 1e8}, flop, chip=chip)
    found = boost(make_plane([samples.analysis(kernel)]))
    assert found is not None
    clocks = {key: clock_hz for key, (_, clock_hz) in found.flat.items()}
    assert clocks == {"fp32": 1.98e9, "tensor_bf16": 1.83e9}
