from __future__ import annotations

from html.parser import HTMLParser

from msgspec.structs import replace
from support import samples
from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.cases import Case, Expectation
from rooflens.model.catalogue import COMPARED
from rooflens.model.predict.expectations import check_reports, predict_case
from rooflens.model.predict.explain import check
from rooflens.model.predict.measured import Checked, Prediction
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import MAX_LAUNCHES, Content, build_content
from rooflens.report.document import Table
from rooflens.report.kernel.predicted import MAX_SHOWN, expectations_document
from rooflens.report.kernel.predicted import predicted as of_kernel
from rooflens.report.page.kernels import kernels
from rooflens.report.page.page import predicted, render_page
from rooflens.report.templates import write_blocks
from rooflens.report.writers.terminal import to_terminal
from rooflens.workloads.registry import find_workload

SAXPY = Case("n", {"n": 1_000_000}, "fp32", "by hand", Expectation("memory", "dram", "streams"), "2 * n", "12 * n")
MOVED = {"dram_bytes": 13.2e6, "dram_bus_peak_bytes_per_s": 15e9}
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
    """Make a page of equal reports, each with the prediction."""
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
    """Return the section's words."""
    return Text(str(predicted(page))).text


def test_a_case_becomes_a_prediction_by_its_formulas() -> None:
    """FLOP, bytes, limiter and reason are the case's; other sizes keep the formulas and lose name and limiter."""
    whole = predict_case("saxpy", SAXPY)
    assert (whole.flop, whole.moved_bytes, whole.bound, whole.resource) == (2e6, 12e6, "memory", "dram")
    other = predict_case("saxpy", SAXPY, {"n": 500}, iterations=3, source="elsewhere")
    assert (other.flop, other.moved_bytes, other.case, other.bound, other.why) == (1e3, 6e3, "", None, "")
    assert (other.iterations, other.source) == (3, "elsewhere")


def lines_of(checked: Checked) -> list[str]:
    """Return the lines of a terminal of 80 columns, with single spaces."""
    return [" ".join(line.split()) for line in to_terminal(expectations_document([checked], []), 80).splitlines()]


def test_a_table_puts_measured_beside_predicted() -> None:
    """2 MFLOP and 12 MB predicted, 2 MFLOP and 13.2 MB measured: ratios 1 and 1.1, a verdict, and the reason."""
    kernel = make_kernel(MOVED, thread_opcodes={"FFMA": 1_000_000})
    heading, columns, name, *rows = lines_of(check(predict_case("saxpy", SAXPY), [analyze(kernel)]))
    assert heading == "Predicted against measured, for one iteration"
    assert columns == "predicted measured ratio verdict"
    assert name.startswith("saxpy n: 1 launch, ")
    assert rows[:2] == ["FLOP 2.00 MFLOP 2.00 MFLOP 1.00x as predicted", "DRAM bytes 12.0 MB 13.2 MB 1.10x more"]
    assert not any(line.startswith("work:") for line in rows)


def test_every_column_is_a_key_of_json() -> None:
    """The table has the flat keys of a JSON row, and fits 80 columns whatever is predicted."""
    checked = check(predict_case("saxpy", SAXPY), [analyze(make_kernel(MOVED, thread_opcodes={"FFMA": 1_000_000}))])
    (table,) = (block for block in expectations_document([checked], []) if isinstance(block, Table))
    flat = [key.label or key.name for key in COMPARED.keys if key.flat]
    assert [column.heading for column in table.columns][1:] == flat[1:]
    assert max(map(len, to_terminal((table,), 80).splitlines())) <= 80


def test_a_table_says_what_was_not_measured() -> None:
    """A kernel without counters leaves its side of the comparison empty, not zero."""
    rows = lines_of(check(predict_case("saxpy", SAXPY), [analyze(make_kernel({}))]))
    assert {"FLOP 2.00 MFLOP \u2013 \u2013 not measured", "DRAM bytes 12.0 MB \u2013 \u2013 not measured"} <= {*rows}


def test_a_case_without_formulas_has_its_limiter_only() -> None:
    """Pointer chasing has no FLOPs to predict, but an expected limiter."""
    bare = Case("hbm", {}, "uint32", "", Expectation("latency", None, "waits"))
    checked = check(predict_case("chase", bare), [analyze(make_kernel(MOVED))])
    rows = [line for line in lines_of(checked)[3:] if ":" not in line]
    assert rows[0].startswith("limiter latency ")
    assert checked.rows == ()


def test_a_lower_bound_is_marked_everywhere() -> None:
    """If one of many launches was profiled, the table shows a lower bound, and the scope says why."""
    command = "ncu --filter-mode per-launch-config --nvtx-include r ./x"
    kernel = samples.analysis(replace(DID, flop={"tensor_bf16": 1e9}), 0, "0" * 64)
    reports = [samples.report([kernel], digest="0" * 64, command_line=command)]
    page = build_content(reports, "t", default_thresholds(), predictions=check_reports(reports, {"0" * 64: GEMM}))
    (checked,) = page.predictions
    verdicts = {row.name: row.verdict for row in checked.rows}
    assert (verdicts["work"], verdicts["dram_bytes"], verdicts["floor"]) == ("lower bound", "more", "above the floor")
    assert "FLOP 137 GFLOP \u2265 1.00 GFLOP 0.00728x lower bound" in lines_of(checked)
    assert "Each distinct launch was profiled once" in text_of(page)


def test_the_section_holds_amounts_times_limiters_and_reasons() -> None:
    """Each amount is predicted, measured, compared and judged; times are at the report's peaks; gaps are explained."""
    text = text_of(make_page(DID))
    for words in (
        "gemm bf16_4096 : 1 launch, latency for 100 % of the time",
        "m = 4,096, n = 4,096, k = 4,096",
        "DRAM bytes 101 MB 200 MB 1.99x more",
        "intensity 1,370 FLOP/B 687 FLOP/B 0.503x less",
        "floor 441 \u00b5s 1.00 ms 2.27x above the floor",
        "attainable 586 \u00b5s 1.00 ms 1.71x slower than half",
        "limiter compute latency another",
        "T math 441 \u00b5s 137 GFLOP at 312 TFLOP/s, tensor bf16",
        "T memory 64.7 \u00b5s 101 MB at 1.56 TB/s, DRAM",
        "attainable 586 \u00b5s median of 53 published times over their floors",
        "measured 1.00 ms 1 launch",
        "operands are read again",
        "compute at tensor bf16 was expected: 1365 FLOP/B",
        "Report: 0.ncu-rep",
    ):
        assert words in text, words


def test_no_prediction_no_section() -> None:
    """A page without predictions does not mention them."""
    page = build_content([samples.report(samples.every_verdict())], "test", default_thresholds())
    assert str(predicted(page)).strip() == ""
    assert "Predicted against measured" not in render_page([samples.report(samples.every_verdict())], title="t")


def test_the_page_takes_predictions_by_digest() -> None:
    """A prediction is shown for the report with its digest; without such a report it is left out."""
    analysis = samples.analysis(DID, 0, "a" * 64)
    html = render_page([samples.report([analysis])], title="t", predictions={"a" * 64: GEMM, "b" * 64: GEMM})
    section = html[html.index('<section id="predicted"') :]
    assert section[: section.index("</section>")].count('scope="rowgroup"') == 1


def test_several_predictions_stand_in_one_table() -> None:
    """Columns are aligned, each row names its report, and of too many the others are counted."""
    page = make_page(DID, reports=MAX_SHOWN + 3)
    html = str(predicted(page))
    assert html.count('scope="rowgroup"') == MAX_SHOWN
    assert "1.ncu-rep" in html
    assert "3 more predictions not shown." in text_of(page)


def test_hostile_words_make_no_element() -> None:
    """Names, sources and reasons of a prediction are text, whatever they contain."""
    evil = "</script><img src=x onerror=alert(1)>"
    hostile = replace(GEMM, operation=evil, case=evil, source=evil, why=evil, parameters={evil: 1})
    assert "<img" not in str(predicted(make_page(DID, prediction=hostile)))


def panel_of(page: Content, name: str = DID.name) -> str:
    """Read the words of the panel of a kernel's card."""
    one = next(one for one in page.analyses if one.kernel.name == name)
    document = of_kernel(page.predictions[0], one, is_whole=len(page.analyses) == 1)
    return Text(str(write_blocks(document))).text


def test_a_card_has_the_rows_of_its_report() -> None:
    """A kernel that is its whole report has every amount, the limiter, and a reason below each gap."""
    text = panel_of(make_page(DID))
    for words in (
        "FLOP 137 GFLOP 137 GFLOP 1.00x as predicted DRAM bytes 101 MB 200 MB 1.99x more More than the compulsory",
        "intensity 1,370 FLOP/B 687 FLOP/B",
        "attainable 586 \u00b5s 1.00 ms 1.71x slower than half",
        "limiter compute latency another compute at tensor bf16 was expected: 1365 FLOP/B",
        "gemm bf16_4096: FLOPs: one multiply-add",
    ):
        assert words in text, text


def test_a_card_of_one_kernel_among_several_has_its_part() -> None:
    """A prediction for all kernels together is not compared with the time of one of them."""
    page = make_page(DID, replace(DID, name="other", flop={"fp32": 4e9}))
    text = panel_of(page, "other")
    assert "FLOP 137 GFLOP 4.00 GFLOP 0.0291x less" in text
    assert "One of the 2 launches that the prediction covers." in text
    assert "floor" not in text


def test_cards_without_a_prediction_have_no_panel() -> None:
    """A kernel of another report, a failed one, and one that represents several launches have none."""
    other = build_content([samples.report(samples.every_verdict())], "test", default_thresholds())
    many = make_page(*[DID] * (MAX_LAUNCHES + 1))
    assert many.aggregated
    shown = ["Predicted and measured" in str(kernels(page)) for page in (make_page(DID), other, many)]
    assert shown == [True, False, False]
