from __future__ import annotations

import json
from dataclasses import replace
from math import log10, sqrt
from typing import TYPE_CHECKING, Any

import pytest
from support import samples

from rooflens.model.thresholds import default_thresholds
from rooflens.report.roof_labels import CHAR_PX, LIFT_PX, TALL_PX, Sheet
from rooflens.report.roofline_chart import LEVEL_DASHES, roofline_spec
from rooflens.report.roofline_data import Plane, plane
from rooflens.report.roofline_rows import LEVEL_MARKS, NARROW_PX, WIDE_PX, roof_label_rows, roof_rows
from rooflens.report.rows import build_page
from rooflens.report.theme import DARK, LIGHT, LOOKS, vega_config
from rooflens.report.time_chart import time_spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflens.model.records import Analysis


def make_plane(analyses: Sequence[Analysis]) -> Plane:
    """Place analyses of one GPU."""
    page = build_page([samples.run()], analyses, "test", default_thresholds())
    return plane(page.gpus[0], page.timed)


def make_spec(analyses: Sequence[Analysis]) -> dict[str, Any]:
    """Specify the chart of one GPU, with its first point picked."""
    return roofline_spec(make_plane(analyses), title="A100", picked="k0", ranks={"k2": 1})


def walk(node: Any) -> Iterator[dict[str, Any]]:
    """Visit every object of a specification."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from walk(child)


def test_points_stand_at_intensity_and_performance() -> None:
    """A point's roof is min(P, AI x BW) with the launch's own peaks, and its gap is the factor to that roof."""
    points = {p.level: p for p in make_plane(samples.every_verdict()).points if p.launch.bound == "memory"}
    assert points["dram"].intensity_flop_per_byte == pytest.approx(3.3e9 / 2.71e9)
    assert points["dram"].roof_flop_per_s == pytest.approx(3.3e9 / 2.71e9 * 1.555e12)
    assert points["dram"].gap == pytest.approx(1.102, abs=1e-3)
    assert points["smem"].roof_flop_per_s == pytest.approx(19.5e12)
    assert [level for level, point in points.items() if point.nearest] == ["dram"]


def test_kernels_without_flops_stand_in_the_strip() -> None:
    """Copies, and kernels whose FLOPs were not counted, keep their bandwidth shares and do not vanish."""
    placed = make_plane(samples.without_flops())
    assert placed.points == ()
    shares = {(p.launch.name, p.level): p.share for p in placed.strip}
    assert shares["copy_kernel", "dram"] == pytest.approx(1.2e8 / 110e-6 / 1.555e12)
    assert ("uncounted", "dram") in shares


def test_strip_launches_do_not_bend_the_roofs() -> None:
    """Roofs come from the launches in the plane: a copy at an idle clock moves none of them."""
    idle = replace(samples.T4, name=samples.A100.name)
    copy = samples.analysis(samples.Sample("copy", "memory", 10, "dram", {"dram": 1e5}, chip=idle), 9)
    assert make_plane([*samples.every_verdict(), copy]).level_roofs == make_plane(samples.every_verdict()).level_roofs


def test_equal_roofs_are_one_line_with_two_names() -> None:
    """L1 and shared memory of the same width are drawn once and named together."""
    labels = [row["label"] for row in make_spec(samples.every_verdict())["datasets"]["roofs"] if row["label"]]
    assert [label.replace("\u00a0", " ") for label in labels] == [
        "L1, SMEM  19.5 TB/s",
        "L2  4.62 TB/s",
        "HBM  1.56 TB/s",
    ]


@pytest.mark.parametrize("size", [WIDE_PX, NARROW_PX])
def test_names_of_roofs_keep_clear_of_points(size: tuple[float, float]) -> None:
    """A name moves up its line where a point would lie on it, and begins inside the plane."""
    placed = make_plane(samples.every_verdict())
    sheet = Sheet(placed.x_domain(), placed.y_domain(), *size)
    key = "wide" if size == WIDE_PX else "narrow"
    for row in roof_label_rows(placed, roof_rows(placed)):
        x, y = (row["x"], row["y"]) if key == "wide" else (row["nx"], row["ny"])
        begin, off = sheet.turn(x, y)
        assert begin >= sheet.first_along(off) - 1e-6
        for point in placed.points:
            along, across = sheet.turn(point.intensity_flop_per_byte, point.flop_per_s)
            over = LIFT_PX < across - off < LIFT_PX + TALL_PX
            assert not (point.level == "dram" and over and begin < along < begin + len(row["label"]) * CHAR_PX)


def test_levels_shown_together_are_named() -> None:
    """Where all levels are shown, points carry names or letters: no two levels share a letter."""
    assert len(set(LEVEL_MARKS.values())) == 4
    rows = make_spec(samples.every_verdict())["datasets"]["points"]
    assert {(row["level"], row["mark"]) for row in rows} <= set(LEVEL_MARKS.items())
    fields = {node.get("field") for node in walk(make_spec(samples.every_verdict()))}
    assert {"mark", "levelText"} <= fields
    assert "mark" not in {node.get("field") for node in walk(make_spec(samples.many(60)))}


def test_roofs_end_at_the_highest_flat_roof() -> None:
    """Every diagonal lies inside the plane and meets the top pipe's roof."""
    rows = make_spec(samples.every_verdict())["datasets"]["roofs"]
    assert {round(row["y"]) for row in rows if not row["label"]} == {312_000_000_000_000}


def test_axes_leave_half_a_decade_of_air() -> None:
    """The plane holds data and ridge points with half a decade around them, and never fewer than a few decades."""
    placed = make_plane(samples.every_verdict()[:1])
    low, high = placed.y_domain()
    assert high == pytest.approx(19.5e12 * sqrt(10))
    assert log10(high / low) >= 3.5
    x_low, x_high = placed.x_domain()
    assert x_low < min(p.intensity_flop_per_byte for p in placed.points) / sqrt(10) * 1.001
    assert log10(x_high / x_low) >= 4


def test_flat_roofs_say_value_and_clock() -> None:
    """A pipe's roof is labelled with its value and the clock it holds for; labels keep apart."""
    rows = make_spec(samples.every_verdict())["datasets"]["pipes"]
    assert [row["long"].replace("\u00a0", " ") for row in rows] == [
        "tensor bf16  312 TFLOP/s at 1.41 GHz",
        "FP32  19.5 TFLOP/s at 1.41 GHz",
    ]
    assert rows[0]["labelY"] / rows[1]["labelY"] > 1.3


def test_stray_fp16_work_draws_no_roof() -> None:
    """A pipe with less than a hundredth of a launch's FLOPs is no roof of it."""
    stray = samples.Sample("k", "memory", 100, "dram", {"dram": 1e8}, {"fp32": 1e9, "fp16": 1e6})
    assert [roof.keys for roof in make_plane([samples.analysis(stray)]).pipe_roofs] == [("fp32",)]


def test_estimated_points_are_hollow() -> None:
    """Points with estimated FLOPs, and only those among the known ones, are marked hollow."""
    rows = make_spec(samples.every_verdict())["datasets"]["points"]
    assert {row["bound"] for row in rows if row["hollow"]} == {"balanced"}


def test_roofs_differ_by_dash_and_verdicts_by_shape() -> None:
    """No meaning rests on colour: every level has a dash of its own, every verdict a shape or a hollow one."""
    assert len(set(LEVEL_DASHES.values())) == 4
    known = [look.shape for bound, look in LOOKS.items() if bound != "unknown"]
    assert len(set(known)) == len(known)


def test_specs_hold_no_colour_of_their_own() -> None:
    """Themes can change every colour, because a specification names none."""
    page = build_page([samples.run()], samples.every_verdict(), "test", default_thresholds())
    for spec in (make_spec(samples.every_verdict()), time_spec(page)):
        assert "#" not in json.dumps({key: value for key, value in spec.items() if key not in {"datasets", "$schema"}})
        assert "config" not in spec


def test_themes_define_every_named_style() -> None:
    """A style that a chart names exists in the light and in the dark theme."""
    spec = make_spec([*samples.every_verdict(), *samples.without_flops()])
    named = {node["style"] for node in walk(spec) if isinstance(node.get("style"), str)}
    assert named <= set(vega_config(LIGHT, dark=False)["style"])
    assert vega_config(LIGHT, dark=False)["style"].keys() == vega_config(DARK, dark=True)["style"].keys()
