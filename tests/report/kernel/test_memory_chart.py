"""The memory chart: boxes for measured levels, arrows for the bytes between them, and nothing invented."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from support import samples
from support.kernels import make_kernel

from rooflens.model.records import Analysis
from rooflens.model.roofline.levels import place_levels
from rooflens.model.roofline.traffic import find_traffic
from rooflens.report.kernel.memory import WIDTH, MemoryChart, memory_chart

FULL = {
    "sm_count": 114.0,
    "dram_bytes": 3e8,
    "dram_read_bytes": 2e8,
    "dram_write_bytes": 1e8,
    "dram_bus_peak_bytes_per_s": 1e12,
    "l2_bytes": 5e8,
    "l2_return_bytes": 4e8,
    "l2_write_bytes": 1e8,
    "l2_return_share": 0.4,
    "l2_hit_rate": 0.6,
    "l1_writeback_bytes": 8e8,
    "l1_hit_rate": 0.88,
    "l1_data_share": 0.5,
    "l1_shared_data_bytes": 512e3,
    "l1_shared_data_share": 0.25,
    "smem_static_per_block_bytes": 4096.0,
}


def analysis_of(counters: dict[str, float]) -> Analysis:
    """Make a kernel of 1 ms with only these counters."""
    kernel = make_kernel(counters)
    return replace(samples.failed(), kernel=kernel, levels=place_levels(kernel))


def chart_or_none(analysis: Analysis, *, apart: bool = True) -> MemoryChart | None:
    """Draw the chart of a kernel, if there is one."""
    return memory_chart(analysis, find_traffic(analysis.kernel), apart=apart)


def chart_of(counters: dict[str, float]) -> MemoryChart:
    """Draw the chart of these counters."""
    chart = chart_or_none(analysis_of(counters))
    assert chart is not None
    return chart


def words(chart: MemoryChart) -> list[tuple[str, str]]:
    """Return the words of the arrows, from the SMs outwards."""
    return [(arrow.amount.replace("\u00a0", " "), arrow.share.replace("\u00a0", " ")) for arrow in chart.arrows]


def test_every_level_is_a_box_with_its_share_and_hits() -> None:
    """SMs on top, L1 and shared memory side by side, L2 and DRAM below, all within the drawing."""
    chart = chart_of(FULL)
    assert [(box.name, box.share.replace("\u00a0", " "), box.hits.replace("\u00a0", " ")) for box in chart.boxes] == [
        ("114 SMs", "", ""),
        ("L1", "50 % busy", "88 % of sectors hit"),
        ("SMEM", "25 % busy", ""),
        ("L2", "40 % busy", "60 % of sectors hit"),
        ("DRAM", "30 % busy", ""),
    ]
    l1, smem = chart.boxes[1:3]
    assert l1.y == smem.y
    assert l1.x + l1.width < smem.x
    assert all(box.x >= 0 and box.x + box.width <= WIDTH for box in chart.boxes)
    assert all(box.y + box.height <= chart.height for box in chart.boxes)
    assert l1.busy == l1.width // 2


def test_arrows_say_what_went_each_way() -> None:
    """Reads are on the left and writes on the right if both are known; otherwise one arrow has their sum."""
    chart = chart_of(FULL)
    assert words(chart) == [
        ("800 MB", ""),
        ("512 kB", "25 %"),
        ("400 MB", "40 %"),
        ("100 MB", ""),
        ("200 MB", "20 %"),
        ("100 MB", "10 %"),
    ]
    assert [arrow.ends for arrow in chart.arrows] == [True, False, True, False, True, False]
    assert "L2, 40 % busy, 60 % of sectors hit, 400 MB read, 100 MB written" in chart.words.replace("\u00a0", " ")


def test_a_fuller_path_is_a_wider_arrow() -> None:
    """An arrow's shaft is as wide as its path is busy: from 2 pixels for an idle path to 10."""
    shafts = {share: chart_of({**FULL, "l2_return_share": share}).arrows[2].path for share in (0.0, 0.5, 1.0)}
    assert [re.findall(r"h([\d.]+)v", path)[-1] for path in shafts.values()] == ["2", "6", "10"]


def test_an_arrow_closes_on_itself() -> None:
    """Every outline is closed, up, down or both, within the gap between two boxes."""
    both = chart_of({"dram_bytes": 3e8, "l2_bytes": 5e8}).arrows[1]
    for arrow in (*chart_of(FULL).arrows, both):
        x, y, points = 0.0, 0.0, []
        for command, numbers in re.findall(r"([Mlhv])([^Mlhvz]*)", arrow.path):
            moved = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
            dx, dy = {"h": (moved[0], 0.0), "v": (0.0, moved[0])}.get(command, tuple(moved[:2]))
            x, y = (dx, dy) if command == "M" else (x + dx, y + dy)
            points.append((x, y))
        start, ys = points[0], [at_y for _, at_y in points]
        assert points[-1][1] == pytest.approx(start[1] + (ys[1] - ys[0]))
        assert start[0] + (start[0] - points[1][0]) == pytest.approx(points[-1][0], abs=0.11)
        assert max(ys) - min(ys) == 40.0


def test_what_was_not_measured_is_absent() -> None:
    """A level without counters has no box, a path without bytes no words, and neither is shown as zero."""
    chart = chart_of({"dram_bytes": 3e8, "l2_bytes": 5e8})
    assert [box.name for box in chart.boxes] == ["SMs", "L2", "DRAM"]
    assert words(chart) == [("500 MB", ""), ("300 MB", "")]
    assert " 0" not in chart.words


def test_there_is_no_chart_of_one_level_or_of_no_bytes() -> None:
    """Bars show the same in such cases."""
    assert chart_or_none(analysis_of({"dram_bytes": 3e8})) is None
    assert chart_or_none(analysis_of({"dram_bus_share": 0.3, "l2_return_share": 0.2, "l1_data_share": 0.1})) is None
    assert chart_or_none(samples.failed()) is None
