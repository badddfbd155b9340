from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.snapshots import check_snapshot
from sweeping import CHIP, Report, done, gemms, ladder, make_page, the_sweep

from rooflens.model.unprofiled import Unprofiled
from rooflens.report.page.page import render_page
from rooflens.report.page.sweeps import CHOICES, find_sweeps, sweep_plane, sweeps
from rooflens.report.plane.simple import plane_spec
from rooflens.workloads.registry import load_workloads


def test_cases_stand_in_the_order_of_their_size() -> None:
    """Reports in any order give a path from the smallest to the largest, named after the size that varies."""
    sweep = the_sweep(gemms((4096, 128, 8192, 1024)))
    assert [step.label for step in sweep.steps] == [
        "n = 128",
        "n = 1,024",
        "n = 4,096",
        "n = 8,192",
    ]
    assert sweep.title == "gemm, bf16: n = 128 to 8,192"
    assert (sweep.varied, dict(sweep.kept)) == ("n", {})


def test_a_dot_is_a_sum_over_sums() -> None:
    """FLOPs of a report's kernels are divided by all their bytes and all their time, never averaged as ratios."""
    parts = [done(2e12, 1e8, 4e3), done(1e12, 3e8, 1e3, name="other")]
    sweep = the_sweep([("fma", "iters_8", parts), ("fma", "iters_64", [done(1e12, 1e9, 1e3)])])
    step = sweep.steps[0]
    assert step.intensity_flop_per_byte == pytest.approx(3e12 / 4e8)
    assert step.flop_per_s == pytest.approx(3e12 / 5e-3)
    assert len(step.keys) == 2
    assert step.predicted_intensity == pytest.approx(2.0)
    assert dict(sweep.kept) == {"n": 67_108_864}


def test_a_ladder_is_one_path_whatever_the_types_of_its_rungs() -> None:
    """Rungs of the GEMM ladder are in order, including that on tensor cores; each has its own pipe's roof."""
    sweep = the_sweep(ladder())
    assert [step.label for step in sweep.steps] == [
        "1 naive",
        "2 coalesced",
        "3 shared tile",
        "4 blocktile 1d",
        "5 blocktile 2d",
        "6 vectorized",
        "7 warptile",
        "8 tensor core",
    ]
    assert sweep.title == "gemm_ladder, fp32 and fp16: rung 1 to 8"
    assert [step.roof_at(1e6) for step in (sweep.steps[0], sweep.steps[-1])] == [19.5e12, 312e12]
    assert [ridge for _, ridge in sweep.ridges] == pytest.approx([312e12 / 1.555e12, 19.5e12 / 1.555e12])


def test_cases_stand_beside_cublas_where_it_was_timed() -> None:
    """A case has its part of cuBLAS's speed, both un-profiled; where cuBLAS was never timed there is no such column."""
    page = make_page(ladder())
    assert "cuBLAS" not in str(sweeps(page))
    run = Unprofiled(wall_ns=4_000_000, kernel_ns=4_000_000, cublas_ns=3_000_000)
    timed = replace(page, reports=(replace(page.reports[0], unprofiled=run), *page.reports[1:]))
    (sweep,) = find_sweeps(timed)
    assert [step.cublas_share for step in sweep.steps] == [0.75, *[None] * (len(sweep.steps) - 1)]
    html = str(sweeps(timed))
    assert "Of cuBLAS" in html
    assert '<td class="n">75\u00a0%</td>' in html


def test_types_and_gpus_have_paths_of_their_own() -> None:
    """Products in bf16 and fp16, or on a T4 and an A100, are on different paths."""
    page = make_page([*gemms((128, 1024)), *gemms((4095, 4096), "fp16")])
    assert [sweep.dtypes for sweep in find_sweeps(page)] == [("bf16",), ("fp16",)]
    t4 = replace(samples.T4, pipe_peaks={**samples.T4.pipe_peaks, "tensor_bf16": 24e12})
    mixed = [("fma", "iters_1", [done(1e9, 1e8, 1e3)]), ("fma", "iters_8", [done(1e9, 1e8, 1e3, chip=t4)])]
    assert find_sweeps(make_page(mixed)) == ()


@for_all(
    "reports",
    [
        [],
        gemms((4096,)),
        [*gemms((4096,)), *gemms((4096,))],
        [("attention", "naive", [done(1e12, 1e9, 1e3)]), ("attention", "fused", [done(1e12, 1e8, 1e3)])],
        [("gather", "few_threads", [done(0, 1e9, 1e3)]), ("gather", "many_threads", [done(0, 1e9, 1e3)])],
        [("pointer_chase", "hbm", [done(1e6, 1e9, 1e3)]), ("pointer_chase", "l2", [done(1e6, 1e9, 1e3)])],
    ],
)
def test_what_is_no_sweep(reports: list[Report]) -> None:
    """One case, two programs, cases without a place, and sizes of which one rises while another falls make no path."""
    page = make_page(reports)
    assert find_sweeps(page) == ()
    assert str(sweeps(page)).strip() == ""


def test_a_case_without_a_place_stays_in_the_table() -> None:
    """A report without counted FLOPs has no dot, and the page says so."""
    unknown = replace(done(0, 1e8, 1e3), flop=None)
    page = make_page([*gemms((128, 1024)), ("gemm", "bf16_4096", [unknown])])
    (sweep,) = find_sweeps(page)
    assert (len(sweep.steps), len(sweep.placed)) == (3, 2)
    html = str(sweeps(page))
    assert "1 case without FLOP, bytes or time has no dot." in html
    assert "n = 4,096" in html


def test_choices_are_no_sizes() -> None:
    """A workload's parameter that is 0 in some case chooses what is done, so it is never swept."""
    zero = {name for one in load_workloads() for case in one.cases for name, v in case.parameters.items() if v == 0}
    assert zero <= CHOICES
    known = {name for one in load_workloads() for case in one.cases for name in case.parameters}
    assert known >= CHOICES


def test_predictions_stand_on_the_roof() -> None:
    """A ring is at the intensity of the compulsory bytes, on the lower of the two roofs."""
    (x0, y0), (x1, y1) = sweep_plane(the_sweep(gemms((128, 8192)))).rings
    assert (x0, x1) == pytest.approx((128 / 3, 8192 / 3))
    assert y0 == pytest.approx(128 / 3 * 1.555e12)
    assert y1 == pytest.approx(312e12)


def test_the_plane_holds_dots_rings_and_ridges() -> None:
    """Everything drawn is inside the axes."""
    sweep = the_sweep(ladder())
    plane = sweep_plane(sweep)
    (left, right), (low, high) = plane.x_domain, plane.y_domain
    assert all(left < x < right and low < y < high for x, y in plane.spots)
    assert all(left < ridge < right for _, ridge in sweep.ridges)


def _dots(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the dots of a plane, in the order of their launches."""
    return sorted(spec["datasets"]["dots"], key=lambda row: str(row["k"]))


def test_the_chart_obeys_the_page() -> None:
    """The parameters set by the page are declared, rows have launch and group, and there is no colour."""
    page = make_page(gemms((128, 1024)))
    (sweep,) = find_sweeps(page)
    spec = plane_spec(sweep_plane(sweep, {"k0": "g1", "k1": "g0"}))
    assert {"picked"} <= {param["name"] for param in spec["params"] if "value" in param}
    assert spec["name"] == "plane"
    assert [(row["k"], row["g"], row["ks"]) for row in _dots(spec)] == [
        ("k0", "g1", ["k0"]),
        ("k1", "g0", ["k1"]),
    ]
    assert "#" not in str({key: value for key, value in spec.items() if key not in {"$schema", "datasets"}})


def test_specification_is_the_stored_one() -> None:
    """A change of the chart shows up in the diff of its specification."""
    sweep = the_sweep(gemms((128, 1024)))
    check_snapshot("sweep", plane_spec(replace(sweep_plane(sweep), title="t", subtitle=("s",))))


def test_hostile_names_make_no_element() -> None:
    """Names of GPUs and cases are text in the table and in the chart's data."""
    evil = "</script><img src=x onerror=alert(1)>"
    chip = replace(CHIP, name=evil)
    reports = [
        ("fma", "iters_1", [done(1e9, 1e8, 1e3, chip=chip)]),
        ("fma", "iters_8", [done(1e9, 1e8, 1e3, chip=chip)]),
    ]
    assert "<img" not in str(sweeps(make_page(reports)))


def test_a_page_of_a_sweep_shows_it() -> None:
    """The page has the chart's data, and its table with a link to each kernel."""
    page = make_page(gemms((128, 1024)))
    predictions = {digest: checked.prediction for digest, checked in ((one.digest, one) for one in page.predictions)}
    html = render_page(page.reports, title="t", predictions=predictions)
    assert 'id="spec-sweep-0"' in html
    assert 'data-spec="spec-sweep-0"' in html
    assert '<a href="#k1">' in html
