"""The path of a kernel across the plane during its run: the places of its phases, and when there is none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from planes import make_plane
from support import samples
from support.roofs import own_roof

from rooflens.model.records import Analysis, Phases, Pipe
from rooflens.report.roofline.chart import roofline_spec
from rooflens.report.roofline.course import phase_points

MEAN_TENSOR, MEAN_DRAM = 9.6 / 16, 2.3 / 16
"""Means of the 16 samples of `samples.explained`."""


def spec_of(*analyses: Analysis) -> dict[str, Any]:
    """Draw these kernels."""
    return roofline_spec(make_plane(analyses), title="t", picked="k0")


def test_phases_stand_at_their_own_rates() -> None:
    """Ramp, plateau and tail run at 0.3, 0.8 and 0.25 of the tensor peak, and at 0.45, 0.1 and 0.1 of DRAM's."""
    analysis = samples.explained()
    ramp, plateau, tail = phase_points(analysis)
    flop_per_s, bytes_per_s = analysis.flop_per_s, analysis.levels["dram"].bytes_per_s
    assert flop_per_s is not None
    assert bytes_per_s is not None
    for point, tensor, dram in ((ramp, 0.3, 0.45), (plateau, 0.8, 0.1), (tail, 0.25, 0.1)):
        assert point.flop_per_s == pytest.approx(flop_per_s * tensor / MEAN_TENSOR)
        moved = bytes_per_s * dram / MEAN_DRAM
        assert point.intensity_flop_per_byte == pytest.approx(point.flop_per_s / moved)


def test_phases_add_up_to_the_dot() -> None:
    """FLOPs and bytes of the phases, each over its share of the run, add up to the kernel's."""
    analysis = samples.explained()
    points = phase_points(analysis)
    assert sum(point.part * point.flop_per_s for point in points) == pytest.approx(analysis.flop_per_s)
    moved = sum(point.part * point.flop_per_s / point.intensity_flop_per_byte for point in points)
    assert moved == pytest.approx(analysis.levels["dram"].bytes_per_s)


def test_integer_tensor_work_has_a_path_too() -> None:
    """A kernel whose main work is integer tensor operations is placed by these in every phase."""
    analysis = samples.explained()
    products = Pipe(6e12, "op", "tensor_ops", roof=own_roof(6.24e14), share=0.9)
    integer = replace(analysis, pipes={"tensor_int8": products}, flop={"fp32": 1e6}, flop_total=1e6)
    seconds = (analysis.kernel.duration_ns or 0.0) * 1e-9
    assert phase_points(integer)[1].flop_per_s == pytest.approx(6e12 / seconds * 0.8 / MEAN_TENSOR)


def test_no_path_where_the_samples_do_not_tell_it() -> None:
    """Without phases, series, FLOPs, DRAM samples or mostly tensor work there is no path, nor with one phase."""
    analysis = samples.explained()
    series = analysis.kernel.series
    assert series is not None
    without_dram = replace(series, shares={"tensor_pipe": series.shares["tensor_pipe"]})
    others = (
        replace(analysis, phases=None),
        replace(analysis, kernel=replace(analysis.kernel, series=None)),
        replace(analysis, kernel=replace(analysis.kernel, series=without_dram)),
        replace(analysis, flop_total=None, flop_per_s=None),
        replace(analysis, flop={"tensor_bf16": 1e9, "fp32": 1e9}, flop_total=2e9),
        replace(analysis, phases=Phases("tensor_pipe", 0.6, ramp=0.0, plateau=1.0, tail=0.0)),
        samples.every_verdict()[0],
    )
    assert [phase_points(other) for other in others] == [()] * len(others)


def test_the_chart_has_the_path_of_kernels_that_have_one() -> None:
    """The rows of a path are named and in the order of the run; a chart without paths has none of them."""
    rows = spec_of(samples.explained(), samples.every_verdict()[0])["datasets"]["course"]
    assert [(row["i"], row["words"].replace("\u00a0", " ")) for row in rows] == [
        (0, "ramp 12 %"),
        (1, "plateau 62 %"),
        (2, "tail 25 %"),
    ]
    assert {row["k"] for row in rows} == {"k0"}
    bare = spec_of(*samples.every_verdict())
    assert "course" not in bare["datasets"]
    assert '"course"' not in str(bare).replace("'", '"')


@pytest.mark.browser
def test_the_path_is_drawn_for_the_picked_kernel_only(open_page: Any) -> None:
    """A phase's name appears if the kernel is selected at DRAM, and disappears with the level and the selection."""
    opened = open_page([samples.every_verdict()[0], samples.explained(1)])
    seen = "[...document.querySelectorAll('.plane svg text')].some(t => /^(ramp|plateau|tail) /.test(t.textContent))"

    def shown(**choices: Any) -> bool:
        opened.evaluate("choices => lens.set(choices)", choices)
        opened.evaluate("lens.settled()")
        return bool(opened.evaluate(seen))

    assert shown(k="k1", level="dram")
    assert not shown(k="k1", level="l2")
    assert not shown(k="k0", level="dram")
