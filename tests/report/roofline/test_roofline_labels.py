"""Text in the roofline never overlaps other text, a point or the edge of the plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import pytest
from drawn_text import Drawn, troubles
from msgspec.structs import replace
from planes import make_plane, make_spec, random_kernels
from support import samples

from rooflens.ingest.load import load_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, Gain, Move
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.plane.geometry import Boxes
from rooflens.report.plane.names import short_names
from rooflens.report.plane.viewport import SIZES as VIEWS
from rooflens.report.plane.viewport import Sheet
from rooflens.report.roofline.selection import ghost_place, picked_boxes, shown_at, steady_boxes

SIZES = ((740, 440), (800, 440), (560, 440), (270, 320))
LEVELS = ("own", "dram", "l2", "l1", "smem", "all")

MOVES = [Move(f"move {at}", "code") for at in range(3)]

PLANES = {
    "one": samples.every_verdict()[:1],
    "every verdict": samples.every_verdict(),
    "154": samples.many(154),
    "with bars": [*samples.every_verdict(), *samples.without_flops()],
    "hostile": samples.hostile(),
}


def overlaps(analyses: Sequence[Analysis], sizes: Sequence[tuple[int, int]] = SIZES) -> list[object]:
    """List all overlaps, at every level and size."""
    spec = make_spec(analyses, ranks={"k0": 1, "k1": 2, "k3": 3})
    if "points" not in spec["datasets"]:
        return []
    levels = [level for level in LEVELS if level != "own" or "own" in ranges(spec)]
    return [(level, size, pair) for level in levels for size in sizes for pair in troubles(Drawn(spec, level, *size))]


def ranges(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read the visible range of a plane, by level."""
    found: Mapping[str, Any] = next(param["value"] for param in spec["params"] if param["name"] == "ranges")
    return found


@pytest.mark.parametrize("name", PLANES)
def test_text_overlaps_nothing(name: str) -> None:
    """Names, ranks and ridges avoid each other, points and the edge, at every size and level."""
    assert overlaps(PLANES[name]) == []


def test_text_overlaps_nothing_in_random_planes() -> None:
    """The same holds wherever kernels are and whatever their names."""
    found = {seed: overlaps(random_kernels(seed), (SIZES[0], SIZES[-1])) for seed in range(12)}
    assert {seed: texts for seed, texts in found.items() if texts} == {}


@pytest.mark.corpus
@pytest.mark.parametrize("stem", ["ESMM-Research__profile_output", "sglang__profile"])
def test_text_overlaps_nothing_in_real_reports(corpus: Path, stem: str) -> None:
    """The same holds in planes of recorded reports."""
    loaded = load_reports(find_inputs([str(corpus / f"{stem}.ncu-rep")]).jobs)
    analyses = [analyze(kernel) for _, kernels in loaded.reports for kernel in kernels]
    assert overlaps(analyses) == []


def test_heaviest_kernels_are_named() -> None:
    """Every kernel of a plane with enough room has its name, the longest launch first."""
    spec = make_spec(samples.every_verdict())
    named = {row["t"] for row in spec["datasets"]["labels"] if row["s"] == "name" and row["level"] == "dram"}
    assert {"softmax_warp_forward", "gather_rows", "stencil_27pt"} <= named


def test_labels_belong_to_launches() -> None:
    """Ranks and names have the keys of their launch and kernel, with which they disappear; ridges have none."""
    for row in make_spec(samples.every_verdict())["datasets"]["labels"]:
        assert ("k" in row and "g" in row) == (row["s"] != "ridge")


def test_ridges_say_their_intensity() -> None:
    """The corner of the chosen level's slope and the highest roof is labelled with its intensity."""
    labels = make_spec(samples.every_verdict())["datasets"]["labels"]
    ridges = {(row["level"], row["t"].replace("\u00a0", " ")) for row in labels if row["s"] == "ridge"}
    assert ("dram", "ridge 201 FLOP/B") in ridges
    assert ("l2", "ridge 67.5 FLOP/B") in ridges


def test_roofs_are_named_with_value_and_clock() -> None:
    """Roofs that are one line share a name; a pipe gives the clock it holds for, if there is room."""
    data = make_spec(samples.every_verdict())["datasets"]
    slopes = [row["p"]["dram"][0][0].replace("\u00a0", " ") for row in data["roofs"]]
    assert slopes == ["L1, SMEM  19.5 TB/s", "L2  4.62 TB/s", "HBM2  1.56 TB/s"]
    flats = [[place[0].replace("\u00a0", " ") for place in row["p"]["dram"]] for row in data["pipes"]]
    assert [one[0] for one in flats] == ["tensor bf16  312 TFLOP/s at 1.41 GHz", "FP32  19.5 TFLOP/s at 1.41 GHz"]
    assert [one[2] for one in flats] == ["tensor bf16  312 T", "FP32  19.5 T"]


def test_names_are_functions() -> None:
    """A name loses its namespaces and arguments; wrappers are named by functor, namesakes by their difference."""
    page = build_content(
        [samples.report([*samples.every_verdict()[:1], *samples.many(3)])], "test", default_thresholds()
    )
    names = set(short_names({one.key: one.name for one in page.timed}).values())
    assert "softmax_warp_forward" in names
    assert {"Functor<0>", "Functor<1>", "Functor<2>"} <= names
    assert max(map(len, names)) <= 26


def _names(analyses: Sequence[Analysis], slot: int = 0) -> dict[str, str]:
    """Return the name at each launch at DRAM, in planes of one class of sizes."""
    rows = make_spec(analyses, picked="", ranks={})["datasets"]["labels"]
    named = (row for row in rows if row["s"] == "name" and row["level"] == "dram" and row["p"][slot])
    return {row["k"]: row["p"][slot][0] or row["t"] for row in named}


def test_a_name_with_room_is_whole() -> None:
    """A name of 50 characters is written in full if nothing is in its way, and cut on a telephone."""
    name = "fused_" + "layer_" * 7 + "norm"
    kernel = samples.Sample(name, "memory", 100, "dram", {"dram": 1e8}, {"fp32": 1e7})
    analyses = [samples.analysis(kernel)]
    assert _names(analyses) == {"k0": name}
    assert len(_names(analyses, slot=2)["k0"]) <= 15


def test_launches_of_one_kernel_share_a_name_that_counts_them() -> None:
    """Five launches side by side have one name with their number, not five names."""
    kernel = samples.Sample("gemm", "memory", 100, "dram", {"dram": 1e8}, {"fp32": 1e7})
    assert list(_names([samples.analysis(kernel, i) for i in range(5)]).values()) == ["gemm x5"]


def test_words_at_a_ghost_are_over_nothing_of_their_kernel() -> None:
    """At every level and size the words at a ghost keep clear of the rings, names and bar of their kernel."""
    gains = tuple(replace(move, gain=Gain(factor, 1e6)) for move, factor in zip(MOVES, (1.02, 1.4, 4.0), strict=True))
    analyses = [replace(one, verdict=replace(one.verdict, moves=gains)) for one in samples.every_verdict()[:5]]
    plane, bare, hits, placed = make_plane(analyses), make_plane(samples.every_verdict()[:5]), [], 0
    for level, size in product(plane.choices, VIEWS):
        view = Sheet(plane.x_domain(level), plane.y_domain(level), size.width_px, size.height_px)
        for point, without in zip(*(shown_at(one.points, level) for one in (plane, bare)), strict=True):
            boxes = Boxes(picked_boxes(bare, without, view=view, level=level))
            own = [one for one in plane.points if one.launch.key == point.launch.key]
            steady = steady_boxes(plane, point, own, view, level)
            found = [place for move in point.launch.gains if (place := ghost_place(plane, point, move, view, steady))]
            placed += len(found)
            hits += [(level, size, place.row) for place in found for box in place.boxes if boxes.hits(box)]
    assert hits == []
    assert placed > 100


def test_an_axis_has_three_labels_on_a_telephone() -> None:
    """Intensities span three powers of ten at every level, wherever kernels are: a narrow plane labels no others."""
    wrong = []
    for seed in range(12):
        plane = make_plane(random_kernels(seed))
        for level in plane.choices if plane.points else ():
            low, high = map(log10, plane.x_domain(level))
            if floor(high) - ceil(low) < 2:
                wrong.append((seed, level, low, high))
    assert wrong == []
