"""The ladder of a page: versions of one program beside cuBLAS, and the busiest unit of each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.ladder import CUBLAS_NS, FLOP, RUNGS, record_ladder
from sweeping import attention_ladder, gemms, ladder, make_page

from rooflens.analyzing import analyze_paths
from rooflens.model.records import AnalyzedReport
from rooflens.model.unprofiled import Unprofiled
from rooflens.report.page.page import render_page
from rooflens.report.page.sweeps import Ladder, find_sweeps, ladder_of, sweeps
from rooflens.writing.rendering import bundled


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[AnalyzedReport, ...]:
    """Return the reports of a simulated recording."""
    return analyze_paths(record_ladder(tmp_path_factory.mktemp("ladder"))).reports


@pytest.fixture(scope="module")
def page(recorded: tuple[AnalyzedReport, ...]) -> str:
    """Return its page."""
    return render_page(recorded, title="ladder", predictions=bundled([report.run for report in recorded]))


def _ladder() -> Ladder:
    content = make_page(ladder())
    found = ladder_of(*find_sweeps(content), content)
    assert found is not None
    return found


def test_a_recorded_ladder_has_its_time_beside_that_of_cublas(recorded: tuple[AnalyzedReport, ...], page: str) -> None:
    """Per cent of cuBLAS is its time over the rung's, both un-profiled: 7.6 ms over 0.93 x 2 n^3 / (share x peak)."""
    peak = 108 * 64 * 2 * 1.095e9
    for report, rung in zip(recorded, RUNGS, strict=False):
        time_ns = 0.93 * FLOP / (rung.shares.fp32 * peak) * 1e9
        assert report.unprofiled is not None
        assert report.unprofiled.cublas_share == pytest.approx(CUBLAS_NS["fp32"] / time_ns, rel=1e-3)
    assert "Beside cuBLAS" in page
    assert "<b>76\u00a0%</b>" in page or "<b>76 %</b>" in page


def test_the_busiest_unit_moves_up_the_pyramid(page: str) -> None:
    """The simulated rungs go through L1, shared memory, fp32 and tensor cores, shown in one line."""
    assert "L1 \u2192 SMEM \u2192 FP32 \u2192 tensor fp16" in page.replace("\n", "")


def test_columns_go_from_memory_to_the_pipes() -> None:
    """Levels come first, then the pipes that did the work, in the order in which rungs use them."""
    units = _ladder().units
    assert [unit.name for unit in units if unit.is_memory] == ["dram"]
    assert [unit.name for unit in units if not unit.is_memory] == ["fp32", "tensor_fp16"]


def test_the_roof_of_a_rung_is_that_over_its_dot() -> None:
    """Left of its pipe's ridge a rung is under DRAM, right of it under the pipe that did its work."""
    rungs = _ladder().rungs
    assert {rung.roof for rung in rungs[:-1]} == {"fp32"}
    assert rungs[-1].roof == "tensor_fp16"


def test_without_cublas_the_page_says_where_its_time_would_come_from() -> None:
    """A report without an un-profiled run has no per cent, time or gain, and nothing is drawn as zero."""
    content = make_page(ladder())
    rungs = _ladder().rungs
    assert [(rung.cublas_share, rung.time_ns, rung.step_up) for rung in rungs] == [(None, None, None)] * len(rungs)
    html = str(sweeps(content))
    assert "NAME.unprofiled.json" in html
    assert 'style="width:' not in html


def test_a_ladder_without_cublas_has_times_and_gains() -> None:
    """Attention has no cuBLAS beside it: its table has no such column; the three kernels of a rung are one step."""
    content = make_page(attention_ladder())
    alone = [Unprofiled(wall_ns=time_ns, kernel_ns=time_ns) for time_ns in (120_000_000, 6_000_000, 400_000)]
    runs = zip(content.reports, alone, strict=True)
    timed = replace(content, reports=tuple(replace(report, unprofiled=run) for report, run in runs))
    (sweep,) = find_sweeps(timed)
    found = ladder_of(sweep, timed)
    assert found is not None
    assert sweep.title == "attention_ladder, fp32 and fp16: rung 1 to 3"
    assert [rung.step_up for rung in found.rungs] == [None, 20, 15]
    assert len(sweep.steps[0].keys) == 3
    html = str(sweeps(timed))
    assert "cuBLAS" not in html
    assert "Without the profiler" in html


def test_a_sweep_of_sizes_is_no_ladder() -> None:
    """Cases of several sizes keep their table."""
    content = make_page(gemms((128, 1024)))
    assert ladder_of(*find_sweeps(content), content) is None
    assert "Beside cuBLAS" not in str(sweeps(content))


def test_a_share_that_no_report_tells_is_no_zero() -> None:
    """A unit without a share in one rung has an empty cell there."""
    reports = ladder()
    content = make_page(reports)
    (sweep,) = find_sweeps(content)
    first = content.reports[0]
    blind = replace(first, analyses=tuple(replace(a, pipes={}) for a in first.analyses))
    found = ladder_of(sweep, replace(content, reports=(blind, *content.reports[1:])))
    assert found is not None
    assert found.rungs[0].shares["fp32"] is None
