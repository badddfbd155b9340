"""The course of a run on a card: its units as lines, its plateau as a band, and words that say the same."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from support import samples
from support.tags import words_of

from rooflens.model.records import RESIDENT, Analysis, Phases, Series
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.kernel.course import MOST_POINTS, TABLE_ROWS, Course, course
from rooflens.report.page.kernels import kernels

TENSOR = (0.0, *[0.8] * 10, 0.4, 0.2, 0.1, None, 0.0)
DRAM = (0.5, *[0.1] * 15)
PHASES = Phases("tensor_pipe", 0.71, 0.0625, 0.4325, 0.505, warps_in_tail=0.28)


def sampled(
    phases: Phases | None = PHASES, interval_ns: float = 1000.0, **shares: tuple[float | None, ...]
) -> Analysis:
    """Make a kernel of 16 us with a series."""
    analysis = samples.every_verdict()[0]
    counters = {**analysis.kernel.counters, "duration_ns": 16_000.0}
    kernel = replace(analysis.kernel, gpu=None, counters=counters, series=Series(interval_ns, shares))
    return replace(analysis, kernel=kernel, phases=phases)


def figure_of(analysis: Analysis) -> Course:
    """Draw the course of a kernel that has a series."""
    assert analysis.kernel.series is not None
    return course(analysis.kernel.series, analysis)


def html_of(analysis: Analysis) -> str:
    """Write the card of a kernel."""
    return str(kernels(build_content([samples.report([analysis])], "test", default_thresholds())))


def drawn_points(path: str) -> list[tuple[int, int]]:
    """Read the points of a path."""
    return [(int(x), int(y)) for x, y in re.findall(r"[ML](\d+) (\d+)", path)]


def test_lines_go_from_start_to_end_and_from_nought_to_the_peak() -> None:
    """16 samples are in the middle of their sixteenth; 80 % of the peak is a fifth below the top."""
    figure = figure_of(sampled(tensor_pipe=TENSOR, dram=DRAM))
    tensor = next(line for line in figure.lines if line.label == "tensor pipe")
    points = drawn_points(tensor.path)
    assert points[:2] == [(31, 100), (94, 20)]
    assert points[-1] == (969, 100)
    assert (tensor.kind, tensor.leads) == ("compute", True)
    assert [line.kind for line in figure.lines if line.label != "tensor pipe"] == ["memory"]


def test_a_missing_sample_breaks_the_line() -> None:
    """A missing sample is neither zero nor guessed: the line has a gap."""
    figure = figure_of(sampled(tensor_pipe=TENSOR))
    path = figure.lines[0].path
    assert path.count("M") == 2
    assert len(drawn_points(path)) == len(TENSOR) - 1


def test_more_than_the_peak_is_drawn_at_the_top() -> None:
    """A share over 100 %, possible with counters from several passes, stays inside the drawing."""
    figure = figure_of(sampled(dram=(1.3,) * 10))
    assert {y for _, y in drawn_points(figure.lines[0].path)} == {0}


def test_the_phases_are_a_band_and_a_sentence() -> None:
    """The plateau starts after the ramp and is as wide as its share of the run, and the words give the same numbers."""
    figure = figure_of(sampled(tensor_pipe=TENSOR))
    assert figure.plateau is not None
    assert (figure.plateau.start, figure.plateau.width) == (62, 432)
    assert figure.sentence == (
        "Ramp 6.2 %; plateau: tensor pipe 71 % for 43 % of the run; tail 50 %, with 28 % of the plateau's warps."
    )
    assert figure.sentence in figure.words


def test_no_phases_no_band() -> None:
    """Without a plateau there is only the drawing."""
    figure = figure_of(sampled(None, tensor_pipe=TENSOR))
    assert figure.plateau is None
    assert figure.sentence == ""
    assert "plateau" not in html_of(sampled(None, tensor_pipe=TENSOR))


def test_idle_units_are_named_and_not_drawn() -> None:
    """A unit that never reaches 2 % of its peak has no line; resident warps are drawn as an area."""
    figure = figure_of(sampled(dram=DRAM, xu=(0.01,) * 16, resident=(1.0,) * 12 + (0.5,) * 4))
    assert RESIDENT == "resident"
    assert [line.label for line in figure.lines] == ["DRAM"]
    assert figure.idle == ("XU pipe",)
    assert figure.warps.startswith("M0 100L0 0")
    assert figure.warps.endswith("L1000 50V100z")


def test_many_samples_are_few_points() -> None:
    """240 samples are drawn as means of neighbours, so that a page of many cards stays small."""
    figure = figure_of(sampled(None, interval_ns=10.0, dram=tuple(i / 240 for i in range(240))))
    points = drawn_points(figure.lines[0].path)
    assert len(points) == MOST_POINTS
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)


def test_the_table_says_the_same_in_numbers() -> None:
    """Eight equal parts of 16 us, each with the mean of its two samples; a part without samples has no number."""
    figure = figure_of(sampled(tensor_pipe=TENSOR, dram=DRAM))
    assert len(figure.rows) == TABLE_ROWS
    assert figure.columns == ("tensor pipe", "DRAM")
    assert [start for start, _ in figure.rows[:3]] == [0.0, 2000.0, 4000.0]
    assert figure.rows[0][1] == pytest.approx((0.4, 0.3))
    assert figure.rows[7][1] == pytest.approx((0.0, 0.1))
    gone = figure_of(sampled(dram=(*[0.5] * 14, None, None)))
    assert gone is not None
    assert gone.rows[7][1] == (None,)


def test_the_drawing_has_a_name_and_needs_no_script() -> None:
    """It is an inline image whose name is its words, with both ends of the time axis, drawn without a script."""
    html = html_of(sampled(tensor_pipe=TENSOR, dram=DRAM))
    label = re.search(r'<svg viewBox="0 0 1000 100"[^>]* role="img" aria-label="([^"]+)"', html)
    assert label
    assert label[1].replace("\u00a0", " ").startswith("Over 16.0 µs, on average: tensor pipe ")
    assert "start 16.0 µs" in words_of(html)
    assert "<script" not in html


def test_samples_that_disagree_with_the_counters_are_told() -> None:
    """DRAM at 91 % in the counters and 62 % in samples is mentioned; a difference of a few points is not."""
    analysis = sampled(dram=(0.62,) * 16)
    share = analysis.levels["dram"].share
    assert share is not None
    figure = figure_of(analysis)
    assert figure.doubt == f"DRAM averages 62 % in these samples and {round(100 * share)} % in the counters."
    assert "averages 62 % in these samples" in words_of(html_of(analysis))
    near = figure_of(sampled(dram=(share - 0.05,) * 16))
    assert near is not None
    assert near.doubt == ""


def test_no_figure_without_a_series() -> None:
    """Without a series, as in most reports, the card has no drawing."""
    assert "Inside the run" not in html_of(samples.every_verdict()[0])
