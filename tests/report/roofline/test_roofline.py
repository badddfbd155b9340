"""The contents of the roofline, points, roofs, domains and levels, and its looks, which only the theme decides."""

from __future__ import annotations

import json
from math import log10, sqrt

import altair as alt
import pytest
from msgspec.structs import replace
from planes import make_plane, make_spec, walk
from support import samples
from support.snapshots import check_snapshot

from rooflens.model.records import Analysis, Gain
from rooflens.report.html.theme import DARK, LIGHT, LOOKS, is_hollow, vega_config
from rooflens.report.plane.plane import LEVEL_MARKS, OWN
from rooflens.report.plane.roofs import LEVEL_DASHES
from rooflens.report.roofline.chart import default_level
from rooflens.report.roofline.choices import ghost_at


def test_it_opens_at_the_level_that_limits_everything() -> None:
    """A page with a single limiter opens at it; if kernels have several, each is shown at its own."""
    moved = {"dram": 1e9, "l2": 4e9}
    by_l2 = samples.analysis(samples.Sample("a", "memory", 400, "l2", moved, {"fp32": 1e9}), 0)
    by_dram = samples.analysis(samples.Sample("b", "memory", 400, "dram", moved, {"fp32": 1e9}), 1)
    assert default_level(make_plane([by_l2])) == "l2"
    both = make_plane([by_l2, by_dram])
    assert default_level(both) == OWN
    assert {point.launch.name: point.level for point in both.points_at(OWN)} == {"a": "l2", "b": "dram"}
    assert OWN not in make_plane([by_dram]).choices


def test_points_stand_at_intensity_and_performance() -> None:
    """A point's roof is min(P, AI x BW) with the launch's own peaks, and its gap is the factor to that roof."""
    points = {p.level: p for p in make_plane(samples.every_verdict()).points if p.launch.shown_class == "memory"}
    assert points["dram"].intensity == pytest.approx(3.3e9 / 2.71e9)
    assert points["dram"].roof_per_s == pytest.approx(3.3e9 / 2.71e9 * 1.555e12)
    assert points["dram"].gap == pytest.approx(1.102, abs=1e-3)
    assert points["smem"].roof_per_s == pytest.approx(19.5e12)
    assert [level for level, point in points.items() if point.nearest] == ["dram"]


def test_kernels_without_flops_keep_their_shares() -> None:
    """Copies, and kernels without counted FLOPs, keep their bandwidth shares and do not disappear."""
    placed = make_plane(samples.without_flops())
    assert placed.points == ()
    shares = {(p.launch.name, p.level): p.share for p in placed.shares}
    assert shares["copy_kernel", "dram"] == pytest.approx(1.2e8 / 110e-6 / 1.555e12)
    assert ("uncounted", "dram") in shares


def test_launches_without_flops_do_not_bend_the_roofs() -> None:
    """Roofs come from the launches in the plane: a copy at an idle clock changes none."""
    idle = replace(samples.T4, name=samples.A100.name)
    copy = samples.analysis(samples.Sample("copy", "memory", 10, "dram", {"dram": 1e5}, chip=idle), 9)
    assert make_plane([*samples.every_verdict(), copy]).level_roofs == make_plane(samples.every_verdict()).level_roofs


def test_axes_leave_half_a_decade_of_air() -> None:
    """The plane shows its points and their roofs with half a decade around them; the whole also shows all ridges."""
    placed = make_plane(samples.every_verdict()[:1])
    low, high = placed.y_domain()
    assert high == pytest.approx(19.5e12 * sqrt(10))
    assert log10(high / low) >= 2.5
    x_low, x_high = placed.x_domain()
    assert x_low < min(p.intensity for p in placed.points) / sqrt(10) * 1.001
    assert log10(x_high / x_low) >= 2.5
    (first, last), (lowest, highest) = placed.whole
    ridges = [pipe.peak / level.peak for pipe in placed.pipe_roofs for level in placed.level_roofs]
    assert first < x_low or last > x_high
    assert first <= min(ridges) / sqrt(10)
    assert max(ridges) * sqrt(10) <= last
    assert lowest <= low
    assert highest >= high


def test_a_roof_far_over_everything_is_not_news() -> None:
    """A plane of slow kernels ends at their own roofs; the flat roof is in the whole plane."""
    moved = {"dram": 1e9, "l2": 4e9}
    slow = samples.analysis(samples.Sample("a", "memory", 4e4, "dram", moved, {"fp32": 1e8}), 0)
    placed = make_plane([slow])
    assert placed.y_domain()[1] < max(roof.peak for roof in placed.pipe_roofs) < placed.whole[1][1]


def test_names_of_flat_roofs_have_room_right_of_every_ridge() -> None:
    """In the whole plane, no ridge and no point is where the names of flat roofs are written."""
    placed = make_plane(samples.every_verdict())
    low, high = placed.whole[0]
    ridges = [pipe.peak / level.peak for pipe in placed.pipe_roofs for level in placed.level_roofs]
    farthest = max([*ridges, *(p.intensity for p in placed.points)])
    assert log10(farthest / low) / log10(high / low) <= 0.7001


def _fake_smem() -> list[Analysis]:
    """Make two kernels with DRAM bytes, one of which has 1e10 FLOPs per byte of shared memory."""
    flop = {"fp32": 1e12}
    usual = samples.Sample("usual", "memory", 1e5, "dram", {"dram": 1e12, "smem": 1e12}, flop)
    fake = samples.Sample("fake", "memory", 10, "dram", {"dram": 1e12, "smem": 1e2}, flop)
    return [samples.analysis(usual, 0), samples.analysis(fake, 1)]


def test_axes_fit_the_level_that_is_shown() -> None:
    """A distant point at shared memory widens the axis of that level, and that of all levels, but not DRAM's."""
    kernels = _fake_smem()
    placed, without = make_plane(kernels), make_plane(kernels[:1])
    assert placed.x_domain("dram") == pytest.approx(without.x_domain("dram"))
    assert placed.x_domain("dram")[1] < 1e4
    ranges = next(param["value"] for param in make_spec(kernels)["params"] if param["name"] == "ranges")
    assert list(ranges) == ["dram", "smem", "all"]
    assert ranges["dram"][:2] == pytest.approx(placed.x_domain("dram"))


@pytest.mark.parametrize("level", ["dram", "smem", "all"])
def test_axes_span_eight_decades_at_most(level: str) -> None:
    """An axis spans at most eight decades, and keeps the points with most GPU time."""
    placed = make_plane(_fake_smem())
    low, high = placed.x_domain(level)
    assert log10(high / low) <= 8.0001
    assert all(low < p.intensity < high for p in placed.points_at(level) if p.launch.name == "usual")


def test_a_low_rate_does_not_stretch_the_height() -> None:
    """A kernel 12 decades below the roofs is cut off at the low end, and the roofs stay."""
    slow = samples.Sample("slow", "latency", 1e6, None, {"dram": 1e2}, {"fp32": 20.0})
    placed = make_plane([samples.analysis(slow, 0), samples.every_verdict()[1]])
    low, high = placed.y_domain("dram")
    assert log10(high / low) <= 8.0001
    assert high > placed.top
    assert placed.beyond("dram")


def test_kernels_beyond_the_axes_are_pointed_at() -> None:
    """Arrows at the edge, and their explanation, appear only if the axes leave out points."""
    arrows = [
        sum("edgeX" in json.dumps(layer) for layer in walk(spec) if layer.get("mark"))
        for spec in (make_spec(_fake_smem()), make_spec(samples.every_verdict()))
    ]
    assert arrows == [1, 0]
    assert make_spec(_fake_smem())["title"]["subtitle"].endswith("arrows: kernels beyond the axes")


def test_dram_is_called_by_its_kind() -> None:
    """Tooltips and levels say HBM2 or GDDR6 for a GPU with a file, and DRAM for an unknown one."""
    unknown = replace(samples.A100, name="Some GPU")
    for chip, name in ((samples.A100, "HBM2"), (samples.T4, "GDDR6"), (unknown, "DRAM")):
        kernel = samples.Sample("k", "memory", 100, "dram", {"dram": 1e8}, {"fp32": 1e8}, chip=chip)
        params = make_spec([samples.analysis(kernel)])["params"]
        names = next(param["value"] for param in params if param["name"] == "levelNames")
        assert names == {"dram": name, "l2": "L2", "l1": "L1", "smem": "SMEM"}


def test_estimated_points_have_a_dashed_outline() -> None:
    """Exactly the points with estimated FLOPs have it; hollow means one thing alone, that a side was not measured."""
    spec = make_spec(samples.every_verdict())
    rows = spec["datasets"]["kernels"]
    assert {row["bound"] for row in rows if row.get("estimated")} == {"balanced"}
    assert not any(row.get("hollow") for row in rows)
    assert "dashed outline: FLOPs estimated" in spec["title"]["subtitle"].replace("Dashed", "dashed")


def test_words_of_launches_stand_once() -> None:
    """A name is not repeated for each level, and words shared by launches are one text."""
    spec = make_spec(samples.many(60))
    texts = next(param["value"] for param in spec["params"] if param["name"] == "texts")
    assert len(texts) == len(set(texts))
    assert {"k", "g", "level", "x", "y"} <= set(spec["datasets"]["points"][0])
    assert not {"name", "verdict", "timeText"} & set(spec["datasets"]["points"][0])
    names = [texts[row["name"]] for row in spec["datasets"]["kernels"]]
    assert len(names) == len(set(names)) == 50


def test_levels_shown_together_are_named() -> None:
    """With all levels shown, points have marks, different for each level and from ranks."""
    assert len(set(LEVEL_MARKS.values())) == 4
    assert not any(mark.isdigit() for mark in LEVEL_MARKS.values())
    labels = make_spec(samples.every_verdict())["datasets"]["labels"]
    marks = {
        next(place for place in row["p"] if place)[0] or row["t"]
        for row in labels
        if row["s"] == "mark" and row["level"] == "all"
    }
    assert marks == set(LEVEL_MARKS.values())
    assert not [row for row in make_spec(samples.many(60))["datasets"]["labels"] if row["s"] == "mark"]


def test_roofs_differ_by_dash_and_verdicts_by_shape() -> None:
    """Levels differ by dash and verdicts by shape, hollow if open, so no meaning depends on colour."""
    assert len(set(LEVEL_DASHES.values())) == 4
    known = [look.shape for bound, look in LOOKS.items() if not is_hollow(bound)]
    assert len(set(known)) == len(known)


def test_specs_hold_no_colour_of_their_own() -> None:
    """Specifications name no colours, so themes can change all of them."""
    spec = make_spec(samples.every_verdict())
    assert "#" not in json.dumps({key: value for key, value in spec.items() if key not in {"datasets", "$schema"}})
    assert "config" not in spec


def test_themes_define_every_named_style() -> None:
    """Every style named by a chart exists in the light and in the dark theme."""
    spec = make_spec([*samples.every_verdict(), *samples.without_flops()])
    named = {node["style"] for node in walk(spec) if isinstance(node.get("style"), str)}
    assert named <= set(vega_config(LIGHT, dark=False)["style"])
    assert vega_config(LIGHT, dark=False)["style"].keys() == vega_config(DARK, dark=True)["style"].keys()


def test_specs_follow_the_schema() -> None:
    """Vega-Lite's own schema accepts the plane with the bars below it."""
    alt.VConcatChart.from_dict(make_spec([*samples.every_verdict(), *samples.without_flops()]), validate=True)


def test_snapshot_of_a_plane() -> None:
    """The chart of two kernels is the stored one."""
    check_snapshot("roofline", make_spec(samples.every_verdict()[:2], ranks={"k0": 1}))


def test_snapshot_of_bars() -> None:
    """The chart of kernels without FLOPs is the stored one."""
    check_snapshot("roofline_bars", make_spec(samples.without_flops(), ranks={"k1": 1}))


def test_a_move_that_saves_flops_puts_the_dot_to_the_left() -> None:
    """1.25x by fewer instructions of the full pipe are a fifth fewer FLOPs from as many bytes, at the same rate."""
    (point,) = (p for p in make_plane(samples.every_verdict()).points_at("dram") if p.launch.shown_class == "compute")
    gain = Gain(1.25, None, changes="instructions")
    counted = replace(point, launch=replace(point.launch, counts_limiter=True))
    assert ghost_at(counted, gain, None) == (point.intensity / 1.25, point.per_s)
    other = replace(point, launch=replace(point.launch, counts_limiter=False))
    for moved in (ghost_at(other, gain, None), ghost_at(counted, replace(gain, changes=None), None)):
        assert moved == (point.intensity, point.per_s * 1.25)
