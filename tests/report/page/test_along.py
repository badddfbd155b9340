"""Kernels along the roofline: what the workload `roofline` predicts for each, beside the measurement."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.along import COMPUTE_SHARE, MEMORY_SHARE, RIDGE_SHARE, STEPS, record_along

from rooflens.analyzing import analyze_paths
from rooflens.model.predict.along import Along, find_along
from rooflens.model.predict.expectations import check_reports
from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.report.kernel.predicted import expectations_document
from rooflens.report.page.page import render_page
from rooflens.report.writers.terminal import to_terminal
from rooflens.writing.rendering import bundled


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> AnalyzedReport:
    """Return a simulated recording."""
    return analyze_paths([record_along(tmp_path_factory.mktemp("along"))]).reports[0]


def _along(report: AnalyzedReport) -> Along:
    (found,) = find_along(check_reports([report], bundled([report.run])), [report])
    return found


def _with(
    report: AnalyzedReport, flop_per_s: float | None, bytes_per_s: float | None, gpu: str | None
) -> AnalyzedReport:
    """Give every kernel a calibration's rates and the name of a GPU."""

    def changed(analysis: Analysis) -> Analysis:
        fp32, dram = analysis.pipes["fp32"], analysis.levels["dram"]
        return replace(
            analysis,
            kernel=replace(analysis.kernel, gpu=gpu or analysis.kernel.gpu),
            pipes={**analysis.pipes, "fp32": replace(fp32, attainable_per_s=flop_per_s)},
            levels={**analysis.levels, "dram": replace(dram, attainable_per_s=bytes_per_s)},
        )

    return replace(report, analyses=tuple(changed(analysis) for analysis in report.analyses))


def test_each_kernel_is_predicted_by_its_intensity(recorded: AnalyzedReport) -> None:
    """SAXPY at a sixth FLOP/B, chains at a quarter of their length; compute right of the ridge at 9.7, else memory."""
    spots = _along(recorded).spots
    assert [spot.predicted_intensity for spot in spots] == pytest.approx([1 / 6, *(steps / 4 for steps in STEPS)])
    assert [spot.predicted_bound for spot in spots] == ["memory"] * 7 + ["compute"] * 4
    assert [spot.checked.prediction.case for spot in spots][:3] == ["saxpy", "fma 1", "fma 2"]


def test_measured_stands_beside_predicted(recorded: AnalyzedReport) -> None:
    """The simulated kernels reach the shares of the roof they were made for, up to rounding of counters."""
    reached = [spot.reached for spot in _along(recorded).spots[1:]]
    wanted = [MEMORY_SHARE] * 5 + [RIDGE_SHARE] * 2 + [COMPUTE_SHARE] * 3
    assert reached == pytest.approx(wanted, rel=2e-3)


def test_calibrated_peaks_come_before_the_datasheet(recorded: AnalyzedReport) -> None:
    """With a calibration the prediction uses its rates; a calibration of a single roof does not count."""
    assert _along(recorded).peaks.origin == "datasheet"
    calibrated = _along(_with(recorded, 12e12, 1.2e12, None))
    assert (calibrated.peaks.origin, calibrated.peaks.ridge_flop_per_byte) == ("calibrated", 10.0)
    assert calibrated.spots[0].predicted_flop_per_s == pytest.approx(0.2e12)
    assert calibrated.spots[-1].predicted_flop_per_s == 12e12
    assert _along(_with(recorded, 12e12, None, None)).peaks.origin == "datasheet"


def test_a_gpu_without_datasheet_is_predicted_from_its_report(recorded: AnalyzedReport) -> None:
    """Without a datasheet the peaks stated by ncu are used."""
    assert _along(_with(recorded, None, None, "Nobody's GPU")).peaks.origin == "report"


def test_another_workload_has_no_such_table(recorded: AnalyzedReport) -> None:
    """If the program is not recognized, kernels are not predicted one by one."""
    other = replace(recorded, run=replace(recorded.run, command_line="ncu ./mine"))
    assert find_along(check_reports([other], bundled([other.run])), [other]) == ()


def test_terminal_and_page_show_the_same_table(recorded: AnalyzedReport) -> None:
    """Each kernel has a row below a line about the peaks; the page has the same rows once."""
    predictions = bundled([recorded.run])
    document = expectations_document(check_reports([recorded], predictions), [recorded])
    lines = to_terminal(document).splitlines()
    assert "by the datasheet, at the profiled clock; they meet at 9.74" in lines[2]
    assert lines[4].split()[:2] == ["saxpy", "0.167"]
    assert [line.split()[:2] for line in lines[5 : 5 + len(STEPS)]] == [["fma", str(steps)] for steps in STEPS]
    html = render_page([recorded], title="t", predictions=predictions)
    section = html[html.index('<section id="predicted"') :]
    assert "they meet at 9.74" in section
    assert section[: section.index("</section>")].count('scope="rowgroup"') == 1
