"""The path of a ladder through the plane: numbers, star, names at both ends, and suitable axes."""

from __future__ import annotations

from typing import Any

import pytest
from comparing import side
from msgspec.structs import replace
from support import samples

from rooflens.model.compare.ladder import Ladder, ladder
from rooflens.model.records import Analysis
from rooflens.report.path.drawing import STAR, path_spec
from rooflens.report.path.placing import has_path
from rooflens.report.words.ladder import LOG_AIR, ladder_bars


def version(us: float, flop: float = 1e9, dram: float = 1e8) -> Analysis:
    """Make a kernel of this many microseconds."""
    return samples.analysis(samples.Sample("gemm", "memory", us, "dram", {"dram": dram}, {"fp32": flop}))


def versions(*kernels: Analysis) -> Ladder:
    """Make a ladder with one kernel per side."""
    return ladder("gemm", [side([one], label=f"v{at}") for at, one in enumerate(kernels, 1)])


def dots(spec: Any) -> list[dict[str, Any]]:
    """Return the rows of the dots, sorted by name."""
    rows = max((rows for rows in spec["datasets"].values() if rows and "bound" in rows[0]), key=len)
    return sorted(rows, key=lambda row: str(row["name"]))


def test_versions_have_their_numbers_and_the_ends_their_names() -> None:
    """Each dot has its number, both ends and the fastest their names, and the fastest a star."""
    spec = path_spec(versions(version(900), version(300, dram=2e8), version(100, dram=4e8), version(200, dram=8e8)))
    assert [row["label"] for row in dots(spec)] == ["1 v1", "2", f"3 {STAR} v3", "4 v4"]


def test_what_is_not_compared_is_off_the_way() -> None:
    """A version of another size has no dot and does not affect the axes; a single place is not a path."""
    other = replace(version(100), flop={"fp32": 4e12}, flop_total=4e12)
    spec = path_spec(versions(version(900), other, version(300, dram=2e8)))
    assert [row["name"] for row in dots(spec)] == ["1 v1", "3 v3"]
    assert not has_path(versions(version(900), other))
    assert path_spec(versions(version(900), other)) is None


def test_dots_in_one_place_share_a_label() -> None:
    """Numbers of dots at one place are written together, so that none hides another."""
    spec = path_spec(versions(version(900), version(900), version(900), version(300, dram=4e8)))
    labels = [row["label"] for row in dots(spec) if row["label"]]
    assert len(labels) == 2
    assert {"1, 2, 3", f"4 {STAR} v4"} == set(labels)


def test_without_peaks_in_the_reports_the_roofs_are_those_of_the_datasheet() -> None:
    """They stand in the plane, above every dot, and the chart says whose they are; a GPU without a file has none."""

    def without_peaks(analysis: Analysis, gpu: str) -> Analysis:
        levels = {name: replace(level, roof=None) for name, level in analysis.levels.items()}
        pipes = {name: replace(pipe, roof=None) for name, pipe in analysis.pipes.items()}
        return replace(analysis, levels=levels, pipes=pipes, kernel=replace(analysis.kernel, gpu=gpu))

    own = path_spec(versions(version(900), version(300)))
    known, unknown = (
        path_spec(versions(without_peaks(version(900), gpu), without_peaks(version(300), gpu)))
        for gpu in ("NVIDIA A10G", "a GPU of nobody")
    )
    assert "datasheet" not in str(own)
    assert "Roofs: the datasheet's" in str(known)
    assert "FP32 35.0 TFLOP/s" in str(known).replace("\u00a0", " ")
    assert "GDDR6 600 GB/s" in str(known).replace("\u00a0", " ")
    assert "datasheet" not in str(unknown)


def test_bars_go_by_decades_where_times_differ_by_ten_times() -> None:
    """Within ten times bars begin at zero; beyond that lengths are logarithmic, which the heading says."""
    near, far = ladder_bars(versions(version(900), version(300))), ladder_bars(versions(version(9000), version(90)))
    assert [bar.part for bar in near.bars] == [1.0, pytest.approx(1 / 3)]
    assert near.heads == ("version", "time", "speed-up")
    assert far.heads[1] == "time (log scale)"
    assert far.bars[0].part == 1.0
    assert 0 < far.bars[1].part < 0.2
    assert LOG_AIR > 1
