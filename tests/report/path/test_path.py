"""The path of a ladder through the plane: numbers, star, names at both ends, and suitable axes."""

from __future__ import annotations

from typing import Any

import pytest
from comparing import side
from msgspec.structs import replace
from support import samples

from rooflens.model.compare.ladder import Ladder, ladder
from rooflens.model.records import Analysis
from rooflens.model.summary import roofs_by_gpu
from rooflens.report.path.drawing import STAR, path_spec
from rooflens.report.path.placing import has_path
from rooflens.report.plane.roofs import RATED_DASH
from rooflens.report.words.ladder import LOG_AIR, ladder_bars


def version(us: float, flop: float = 1e9, dram: float = 1e8) -> Analysis:
    """Make a kernel of this many microseconds."""
    return samples.analysis(samples.Sample("gemm", "memory", us, "dram", {"dram": dram}, {"fp32": flop}))


def versions(*kernels: Analysis) -> Ladder:
    """Make a ladder with one kernel per side."""
    return ladder("gemm", [side([one], label=f"v{at}") for at, one in enumerate(kernels, 1)])


def dots(spec: Any) -> list[dict[str, Any]]:
    """Return the rows of the dots, sorted by name."""
    return sorted(spec["datasets"]["dots"], key=lambda row: str(row["name"]))


def labels(spec: Any) -> set[str]:
    """Return what is written at the dots, where there is most room."""
    return {row["p"][0][0] for row in spec["datasets"]["labels"] if row["s"] == "label" and row["p"][0]}


def drawn(one: Ladder) -> Any:
    """Draw a ladder under its own roofs."""
    analyses = [rung.analysis for rung in one.rungs if rung.analysis]
    return path_spec(one, roofs_by_gpu(analyses))


def test_versions_have_their_numbers_and_the_ends_their_names() -> None:
    """Each dot has its number, both ends and the fastest their names, and the fastest a star."""
    spec = drawn(versions(version(900), version(300, dram=2e8), version(100, dram=4e8), version(200, dram=8e8)))
    assert labels(spec) == {"1 v1", "2", f"3 {STAR} v3", "4 v4"}


def test_what_is_not_compared_is_off_the_way() -> None:
    """A version of another size has no dot and does not affect the axes; a single place is not a path."""
    other = replace(version(100), flop={"fp32": 4e12}, flop_total=4e12)
    spec = drawn(versions(version(900), other, version(300, dram=2e8)))
    assert [row["name"] for row in dots(spec)] == ["1 v1", "3 v3"]
    assert not has_path(versions(version(900), other))
    assert drawn(versions(version(900), other)) is None


def test_dots_in_one_place_share_a_label() -> None:
    """Numbers of dots at one place are written together, so that none hides another."""
    spec = drawn(versions(version(900), version(900), version(900), version(300, dram=4e8)))
    assert labels(spec) == {"1, 2, 3", f"4 {STAR} v4"}


def test_roofs_that_are_not_of_the_runs_are_dotted_and_named() -> None:
    """A peak by the datasheet is dotted, its name says so, and so does the chart; the report's own is solid."""

    def published(analysis: Analysis) -> Analysis:
        level = analysis.levels["dram"]
        assert level.roof is not None
        roof = replace(level.roof, source="datasheet", clock="rated", of="datasheet of NVIDIA A100-SXM4-40GB")
        return replace(analysis, levels={**analysis.levels, "dram": replace(level, roof=roof)})

    own = drawn(versions(version(900), version(300)))
    rated = drawn(versions(published(version(900)), published(version(300))))
    assert [row["dash"] for row in own["datasets"]["roofs"]] == [(1, 0)]
    assert [row["dash"] for row in rated["datasets"]["roofs"]] == [RATED_DASH]
    assert "by the datasheet" in str(rated["datasets"]["roofs"])
    assert "Dotted" in str(rated["title"])
    assert "Dotted" not in str(own["title"])


def test_levels_have_letters_where_versions_stand_at_several() -> None:
    """A version at L2 and one at DRAM are told apart by letters; of one level there are none."""
    moved = {"dram": 1e7, "l2": 4e9}
    at_l2 = samples.analysis(samples.Sample("gemm", "memory", 300, "l2", moved, {"fp32": 1e9}))
    both, one = drawn(versions(version(900), at_l2)), drawn(versions(version(900), version(300)))
    letters = [{row["p"][0][0] for row in spec["datasets"]["labels"] if row["s"] == "level"} for spec in (both, one)]
    assert letters == [{"D", "L2"}, set()]


def test_bars_go_by_decades_where_times_differ_by_ten_times() -> None:
    """Within ten times bars begin at zero; beyond that lengths are logarithmic, which the heading says."""
    near, far = ladder_bars(versions(version(900), version(300))), ladder_bars(versions(version(9000), version(90)))
    assert [bar.part for bar in near.bars] == [1.0, pytest.approx(1 / 3)]
    assert near.heads == ("version", "time", "against first")
    assert far.heads[1] == "time (log scale)"
    assert far.bars[0].part == 1.0
    assert 0 < far.bars[1].part < 0.2
    assert LOG_AIR > 1
