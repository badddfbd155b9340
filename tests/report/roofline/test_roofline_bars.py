"""Bars of kernels without a place in the plane, drawn without a browser and read from the picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

import altair as alt
import pytest
import vl_convert
from msgspec.structs import replace
from planes import make_plane, make_spec
from support import samples

from rooflens.model.records import Analysis
from rooflens.model.summary import median_launch
from rooflens.report.roofline.bars import KERNELS_ALONE, KERNELS_BELOW, bars_heading

VERSION = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
MOVED = {"dram": 1.2e8, "l2": 1.2e8, "l1": 1.2e8}


def copies(count: int, flop: dict[str, float] | None = None, **more: Any) -> list[Analysis]:
    """Make kernels of falling time, without FLOPs unless given."""
    made = (samples.Sample(f"copy_{i}", "memory", 400 - i, "dram", MOVED, flop or {}, **more) for i in range(count))
    return [samples.analysis(sample, i) for i, sample in enumerate(made)]


def drawn(analyses: Sequence[Analysis], **signals: Any) -> list[str]:
    """Draw the chart with these signals, and return its words."""
    spec = make_spec(analyses)
    spec["params"] = [{**param, "value": signals.get(param["name"], param.get("value"))} if "value" in param else param
                      for param in spec["params"]]  # fmt: skip
    svg = ET.fromstring(vl_convert.vegalite_to_svg(spec, vl_version=VERSION))  # noqa: S314 - a picture of ours
    texts = ("".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text"))
    return [re.sub(r"\s+", " ", text).strip() for text in texts]


def kernels(words: Sequence[str]) -> list[str]:
    """List the kernels that are named."""
    return [text for text in words if text.startswith("copy_")]


def test_each_level_has_a_bar_with_its_share() -> None:
    """A copy of 120 MB in 400 us takes 19 % of 1.56 TB/s at DRAM, 6.5 % at L2 and 1.5 % at L1."""
    words = drawn(copies(1))
    shares = {"19 %, 300 GB/s", "6.5 %, 300 GB/s", "1.5 %, 300 GB/s"}
    assert {"HBM2", "L2", "L1", "100 % of GPU time"} | shares <= set(words)


def test_launches_of_a_kernel_are_one_group_of_bars() -> None:
    """Thirty launches with one name are one kernel, with the bars of its median launch."""
    launches = [replace(one, kernel=replace(one.kernel, name="copy_0")) for one in copies(30)]
    words = drawn(launches)
    assert kernels(words) == ["copy_0"]
    assert "30 launches, 100 % of GPU time" in words
    median = median_launch(launches)
    assert f"{100 * (median.levels['dram'].share or 0):.0f} %" in {text.split(",")[0] for text in words}


def test_the_rest_is_said_in_a_word() -> None:
    """Only the kernels with most time have bars; the others are counted with their time."""
    count = KERNELS_ALONE + 3
    words = drawn(copies(count))
    assert kernels(words) == [f"copy_{i}" for i in range(KERNELS_ALONE)]
    rest = sum(400 - i for i in range(KERNELS_ALONE, count)) / sum(400 - i for i in range(count))
    assert f"3 more kernels, {100 * rest:.0f} % of GPU time" in words
    assert len(kernels(drawn([*samples.every_verdict(), *copies(5)]))) == KERNELS_BELOW


def test_hidden_kernels_give_way_and_an_isolated_one_has_bars() -> None:
    """A hidden kernel makes room for the next; an isolated kernel is drawn whatever its time."""
    assert kernels(drawn(copies(8), hidden={"k0": True}))[0] == "copy_1"
    assert kernels(drawn(copies(8), kernel="g7"))[-1] == "copy_7"
    assert kernels(drawn(copies(2), hidden={"k0": True, "k1": True})) == []


@pytest.mark.parametrize(
    ("analyses", "heading"),
    [
        (copies(1), "Kernels without FLOPs"),
        ([samples.without_flops()[1]], "FLOPs not counted"),
        (samples.without_flops(), "No place in the roofline"),
    ],
)
def test_not_counted_is_not_none(analyses: Sequence[Analysis], heading: str) -> None:
    """A report without FLOP counters says so, which differs from a kernel counted as having none."""
    assert bars_heading(make_plane(analyses)).startswith(heading)


def test_kernels_of_different_reasons_say_theirs() -> None:
    """If one kernel has no FLOPs and another was not counted, each name says which."""
    words = drawn(samples.without_flops())
    assert {"uncounted (FLOPs not counted)", "copy_kernel (no FLOPs)"} <= set(words)
