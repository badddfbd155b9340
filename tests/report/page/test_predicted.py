from __future__ import annotations

from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from support import samples
from support.kernels import make_kernel

from rooflens import format as fmt
from rooflens.model.analyze import analyze
from rooflens.model.cases import Case, Expectation
from rooflens.model.predict.expectations import check_reports, predict_case
from rooflens.model.predict.explain import check
from rooflens.model.predict.measured import Prediction
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import MAX_LAUNCHES, Content, build_content
from rooflens.report.page.cards.expectation import PredictedRow, predicted_rows
from rooflens.report.page.expectations import MAX_BLOCKS, OPEN_BLOCKS, predicted, prediction_lines
from rooflens.report.page.kernels import kernels
from rooflens.report.page.page import render_page
from rooflens.workloads.registry import find_workload

SAXPY = Case("n", {"n": 1_000_000}, "fp32", "by hand", Expectation("memory", "dram", "streams"), "2 * n", "12 * n")
MOVED = {"dram_bytes": 13.2e6, "dram_peak_bytes_per_s": 15e9}
GEMM = predict_case("gemm", find_workload("gemm").case("bf16_4096"))
DID = samples.Sample(
    "gemm_kernel", "latency", 1000, None, {"dram": 2e8, "l2": 3e9}, {"tensor_bf16": 2.0 * 4096**3}, {"issue": 1e8}
)


class Text(HTMLParser):
    """Collect the text of HTML, with single spaces."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.feed(html)

    def handle_data(self, data: str) -> None:
        """Keep one piece."""
        self.parts.append(data)

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join(" ".join(self.parts).split())


def make_page(*kernels: samples.Sample, prediction: Prediction = GEMM, reports: int = 1) -> Content:
    """Make a page of equal reports that each have the prediction."""
    digests = [f"{at:064x}" for at in range(reports)]
    made = [
        samples.report(
            [samples.analysis(kernel, i, digest) for i, kernel in enumerate(kernels)],
            digest=digest,
            source=f"out/{at}.ncu-rep",
        )
        for at, digest in enumerate(digests)
    ]
    checked = check_reports(made, dict.fromkeys(digests, prediction))
    return build_content(made, "test", default_thresholds(), predictions=checked)


def text_of(page: Content) -> str:
    """Read the section's words."""
    return Text(str(predicted(page))).text


def test_a_case_becomes_a_prediction_by_its_formulas() -> None:
    """FLOP, bytes, limiter and reason are the case's; other sizes keep the formulas and lose name and limiter."""
    whole = predict_case("saxpy", SAXPY)
    assert (whole.flop, whole.moved_bytes, whole.bound, whole.resource) == (2e6, 12e6, "memory", "dram")
    other = predict_case("saxpy", SAXPY, {"n": 500}, iterations=3, source="elsewhere")
    assert (other.flop, other.moved_bytes, other.case, other.bound, other.why) == (1e3, 6e3, "", None, "")
    assert (other.iterations, other.source) == (3, "elsewhere")


def test_lines_put_measured_beside_predicted() -> None:
    """2 MFLOP and 12 MB predicted, 2 MFLOP and 13.2 MB measured: once and 1.1 times as much, and then why."""
    kernel = make_kernel(MOVED, thread_opcodes={"FFMA": 1_000_000})
    told, found, *why = prediction_lines(check(predict_case("saxpy", SAXPY), [analyze(kernel)]))
    assert told == "saxpy n predicted, one iteration: 2.00 MFLOP, 12.0 MB at DRAM, memory at DRAM"
    assert found.startswith("saxpy n measured, 1 launch: 2.00 MFLOP (1.00x), 13.2 MB (1.10x) at DRAM, ")
    assert any(line.startswith("  bytes: DRAM moved 13.2 MB, 1.10x the compulsory 12.0 MB.") for line in why)
    assert not any(line.startswith("  work:") for line in why)
    assert not any(fmt.NBSP in line for line in (told, found, *why))


def test_lines_say_what_was_not_measured() -> None:
    """A kernel without counters leaves its side of the comparison unsaid, not zero."""
    _, found, *_ = prediction_lines(check(predict_case("saxpy", SAXPY), [analyze(make_kernel({}))]))
    assert "FLOP not measured, B not measured at DRAM" in found


def test_lines_of_a_case_without_formulas_have_its_wall_only() -> None:
    """Pointer chasing has no FLOPs to predict; its limiter is still expected."""
    bare = Case("hbm", {}, "uint32", "", Expectation("latency", None, "waits"))
    told, *_ = prediction_lines(check(predict_case("chase", bare), [analyze(make_kernel(MOVED))]))
    assert told == "chase hbm predicted, one iteration: latency"


def test_a_lower_bound_is_marked_everywhere() -> None:
    """What was profiled once of many is `at least` in the lines, and says so in its scope."""
    command = "ncu --filter-mode per-launch-config --nvtx-include r ./x"
    kernel = samples.analysis(replace(DID, flop={"tensor_bf16": 1e9}), 0, "0" * 64)
    reports = [samples.report([kernel], digest="0" * 64, command_line=command)]
    page = build_content(reports, "t", default_thresholds(), predictions=check_reports(reports, {"0" * 64: GEMM}))
    assert "at least 1.00 GFLOP" in prediction_lines(page.predictions[0])[1]
    assert "Each distinct launch was profiled once" in text_of(page)
    assert "at least 1.00 GFLOP" in text_of(page)


def test_the_section_holds_amounts_times_walls_and_reasons() -> None:
    """Predicted, measured and factor of each amount; times at the report's peaks; limiters; what explains the gap."""
    text = text_of(make_page(DID))
    for words in (
        "gemm bf16_4096",
        "m = 4,096, n = 4,096, k = 4,096",
        "DRAM bytes 101 MB 200 MB 1.99x",
        "Intensity 1,370 FLOP/B 687 FLOP/B 0.503x",
        "T_math 441 µs 137 GFLOP at 312 TFLOP/s, tensor bf16",
        "T_memory 64.7 µs 101 MB at 1.56 TB/s, DRAM",
        "Time, floor 441 µs 1.00 ms 2.27x",
        "Time, attainable 586 µs 1.00 ms 1.71x",
        "Floor 441 µs",
        "Attainable 586 µs median of 53 published times over their floors",
        "Measured 1.00 ms 1 launch",
        "expected compute at tensor bf16, found latency",
        "operands are read again",
        "The prediction was compute at tensor bf16",
        "Report: 0.ncu-rep",
    ):
        assert words in text, words


def test_no_prediction_no_section() -> None:
    """A page of users' own programs shows nothing of it."""
    page = build_content([samples.report(samples.every_verdict())], "test", default_thresholds())
    assert str(predicted(page)).strip() == ""
    assert "Predicted against measured" not in render_page([samples.report(samples.every_verdict())], title="t")


def test_the_page_takes_predictions_by_digest() -> None:
    """A prediction goes to the report of its digest; one of an unknown report is left out."""
    analysis = samples.analysis(DID, 0, "a" * 64)
    html = render_page([samples.report([analysis])], title="t", predictions={"a" * 64: GEMM, "b" * 64: GEMM})
    assert html.count('id="predicted-0"') == 1
    assert 'id="predicted-1"' not in html


@pytest.mark.parametrize(("reports", "is_open"), [(OPEN_BLOCKS, True), (OPEN_BLOCKS + 1, False)])
def test_a_few_stand_open(reports: int, is_open: bool) -> None:  # noqa: FBT001 - a parameter
    """One or two predictions are read at once; of more, the lines of the list."""
    html = str(predicted(make_page(DID, reports=reports)))
    assert html.count('<details class="card"') == reports
    assert ('" open>' in html) == is_open


def test_too_many_are_counted() -> None:
    """A page with more predictions than it shows says how many are left out."""
    page = make_page(DID, reports=MAX_BLOCKS + 3)
    assert str(predicted(page)).count('<details class="card"') == MAX_BLOCKS
    assert "3 more predictions are left out." in text_of(page)


def test_hostile_words_make_no_element() -> None:
    """Names, sources and reasons of a prediction are text, whatever they hold."""
    evil = "</script><img src=x onerror=alert(1)>"
    hostile = replace(GEMM, operation=evil, case=evil, source=evil, why=evil, parameters={evil: 1})
    assert "<img" not in str(predicted(make_page(DID, prediction=hostile)))


def test_a_card_has_the_rows_of_its_report() -> None:
    """A kernel that is all of its report has every amount, the limiter, and a reason where there is a gap."""
    page = make_page(DID)
    rows = predicted_rows(page.predictions[0], page.analyses[0], is_whole=True)
    assert [row.label for row in rows] == [
        "FLOP",
        "DRAM bytes",
        "Intensity",
        "Time, floor",
        "Time, attainable",
        "Limiter",
    ]
    assert rows[0].source.startswith("gemm bf16_4096: FLOPs: one multiply-add")
    assert {row.source for row in rows[1:]} == {""}
    flop, moved, limiter = rows[0], rows[1], rows[-1]
    assert (flop.factor, flop.why) == (1.0, "")
    assert "operands are read again" in moved.why
    assert (limiter.predicted, limiter.measured, limiter.factor) == ("compute at tensor bf16", "latency", None)
    assert limiter.why.startswith("Expected because: 1365 FLOP/B")


def test_a_card_of_one_kernel_among_several_has_its_part() -> None:
    """What is predicted for all kernels together is not held against one of them."""
    page = make_page(DID, replace(DID, name="other", flop={"fp32": 4e9}))
    other = next(one for one in page.analyses if one.kernel.name == "other")
    flop, moved = predicted_rows(page.predictions[0], other, is_whole=False)
    assert flop.predicted == "137 GFLOP for all"
    assert flop.factor == pytest.approx(4e9 / (2 * 4096**3))
    assert flop.why == "One of the 2 launches that the prediction covers."
    assert (moved.label, moved.why) == ("DRAM bytes", "")


def test_cards_without_a_prediction_have_no_rows() -> None:
    """A kernel of another report, and one that stands for a sum of launches have none."""
    other = build_content([samples.report(samples.every_verdict())], "test", default_thresholds())
    many = make_page(*[DID] * (MAX_LAUNCHES + 1))
    assert many.aggregated
    shown = ["Predicted and measured" in str(kernels(page)) for page in (make_page(DID), other, many)]
    assert shown == [True, False, False]


def test_rows_are_plain_words() -> None:
    """Every field of a row is text for a template, but the factor."""
    page = make_page(DID)
    for row in predicted_rows(page.predictions[0], page.analyses[0], is_whole=True):
        assert isinstance(row, PredictedRow)
        assert all(isinstance(text, str) for text in (row.label, row.predicted, row.measured, row.why, row.source))
