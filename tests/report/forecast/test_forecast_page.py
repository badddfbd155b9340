"""The page of predictions: where dots stand, what is said of peaks, and that texts keep apart."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from forecasting import SQUARE, plane, row
from support.thorough import mostly_thorough

from rooflens.model.predict.forecast import Row, swept
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.roofline.datasheets import load_datasheets
from rooflens.report.forecast.page import MAX_PLANES, part_bars, render_forecasts
from rooflens.report.forecast.plane import datasets, planes, predict_spec
from rooflens.report.forecast.sentences import answer, peak_words
from rooflens.report.html.embed import vega_bundle
from rooflens.report.text.forecast import table_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page


def page_of(*rows: Row) -> str:
    """Render the page without the bundle, whose code holds words of its own."""
    return render_forecasts(rows).replace(vega_bundle(), "")


def text_of(page: str) -> str:
    """Read the words of a page."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_dots_of_a_simple_operation_stand_on_their_roof() -> None:
    """Every step stands at min(P, AI x BW) of the datasheet, right of the ridge here; below 5 us a launch is longer."""
    found = plane(row("gemm", **SQUARE))
    ((_, ridge, peak),) = found.ridges
    assert ridge == pytest.approx(989.4 / 3.35)
    for dot in found.dots:
        assert dot.y == pytest.approx(min(peak, dot.x * found.bandwidth_bytes_per_s))
        assert dot.regime == ("compute" if dot.result.t_lower_s >= 5e-6 else "overhead")


def test_the_crossing_is_marked_on_the_path() -> None:
    """A ring stands at each change with the size in words, and the path goes through it in order."""
    found = plane(row("gemm", **SQUARE))
    (crossing,) = found.crossings
    assert crossing.x == pytest.approx(1353 / 3, rel=0.002)
    assert [x for x, _ in found.path] == sorted(x for x, _ in found.path)
    (ring,) = datasets(found)["crossing"]
    assert ring["p"][0][0].replace(" ", " ") == "compute-bound from m = n = k = 1,353"
    assert answer(found.row) == "Compute-bound from m = n = k = 1,353; overhead-bound before."
    batched = row("batched-gemm", batch="16", **SQUARE)
    assert answer(batched) == (
        "Memory-bound from m = n = k = 418; "
        "compute-bound from m = n = k = 887, where it reaches 295 FLOP/B; overhead-bound before."
    )
    assert len(datasets(plane(batched))["crossing"]) == 2


def test_steps_at_one_place_are_one_dot() -> None:
    """An operation whose intensity does not grow has one dot for all its sizes, and says so."""
    (dot,) = plane(row("saxpy", "fp32", n="1:1000000:x10")).dots
    assert dot.merged == 7
    assert dot.label == "n 1 to 1,000,000"


def test_long_sweeps_are_thinned_and_counted() -> None:
    """Dots keep apart; both ends are among them, and the page says how many are left out."""
    found = plane(row("gemm", m="n", k="n", n="64:8192:+8"))
    shown = {size["n"] for size, result in found.row.steps if any(dot.result is result for dot in found.dots)}
    assert len(found.dots) < 60
    assert {64, 8192} <= shown
    assert found.left_out > 900
    assert "are not drawn" in text_of(page_of(found.row))


def test_parts_of_a_model_are_dots_and_bars() -> None:
    """A single composite prediction shows its parts; the bars add up to the floor, the longest first."""
    one = row("prefill", length="512")
    found = plane(one)
    assert found.of_parts
    assert sum(dot.merged for dot in found.dots) + found.unplaced == len(one.steps[0][1].parts)
    shares = [share for share, _ in part_bars(one)]
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    assert {key for key, _ in found.pipes} == {"tensor_bf16", "fp32"}


def test_planes_share_their_axes() -> None:
    """GPUs side by side are drawn over one range, so that they can be compared by eye."""
    found = planes([row("gemm", gpu=gpu, **SQUARE) for gpu in ("a100-sxm4-80gb", "b200", "h100-sxm")])
    assert len({(one.x_domain, one.y_domain) for one in found}) == 1


def test_many_gpus_are_capped_and_counted() -> None:
    """The fastest are drawn, all are in the table, and the page says both numbers."""
    rows = [swept(OPERATIONS["saxpy"], {"n": "1024"}, "fp32", gpu) for gpu in load_datasheets()]
    page = page_of(*rows)
    assert len(re.findall(r'data-spec="spec-plane-\d+"', page)) == MAX_PLANES
    assert f"the {MAX_PLANES} that are fastest at the last size, of {len(rows)}" in text_of(page)
    table = page.partition('class="side-by-side"')[2].partition("</table>")[0]
    assert table.count("<tr>") == len(rows) + 1


def test_gpus_without_the_type_are_named() -> None:
    """What could not be predicted stands on the page, not only in the terminal."""
    page = render_forecasts([row("gemm", **SQUARE)], ["`Tesla T4` has no published peak for bf16"])
    assert "<code>Tesla T4</code> has no published peak" in page


def test_the_peak_is_explained() -> None:
    """Dense against sparse for tensor cores, CUDA cores for fp32, and nothing of sparsity before Ampere."""
    used, unused = peak_words(row("gemm", **SQUARE))
    assert used.startswith("Tensor bf16 at 989 TFLOP/s, dense")
    assert "1.98 PFLOP/s" in unused
    assert "591 FLOP/B" in unused
    assert "CUDA cores" in peak_words(row("saxpy", "fp32", n="8"))[0]
    assert "no faster rate" in peak_words(row("gemm", "fp16", "t4", **SQUARE))[1]
    used, unused = peak_words(row("custom", "fp64", flop="64", bytes="1"))
    assert used.startswith("FP64 at 33.5 TFLOP/s")
    assert "tensor fp64 66.9 TFLOP/s" in unused


def test_the_table_has_the_cells_of_the_terminal() -> None:
    """Same cells as everywhere else, and the formula with its source."""
    one = row("gemm", **SQUARE)
    words = text_of(page_of(one))
    for cells in table_rows(one):
        assert " ".join(cells) in words
    assert OPERATIONS["gemm"].flop_source in words
    assert "NVIDIA H100 whitepaper" in words


def test_an_operation_without_flops_has_no_place() -> None:
    """A copy is told by its bytes; no chart is drawn."""
    page = page_of(row("embedding", tokens="1:64:x2"))
    assert "has no FLOPs, so it has no place" in text_of(page)
    assert 'data-spec="' not in page


def test_a_specification_holds_no_colour() -> None:
    """Colours come from the theme alone."""
    spec = predict_spec(plane(row("gemm", **SQUARE)), title="a", subtitle=["b"])
    assert not re.search(r"#[0-9a-fA-F]{6}", json.dumps(spec))


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    mostly_thorough([(1440, "light"), (390, "dark"), (3840, "light")], kept=[(390, "dark"), (3840, "light")]),
)
def test_the_page_opens_quietly_and_fits(
    open_file: Callable[..., Page], tmp_path: Path, width: int, scheme: str
) -> None:
    """A sweep on two GPUs: both planes drawn with the crossing named, nothing too wide, no message, no request."""
    file = tmp_path / "predict.html"
    file.write_text(
        render_forecasts([row("gemm", gpu=gpu, **SQUARE) for gpu in ("h100-sxm", "b200")]), encoding="utf-8"
    )
    page = open_file(file, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.locator(".chart svg").count() == 2
    assert "from" in page.locator(".chart svg").first.text_content()
    assert "1,353" in page.locator(".chart svg").first.text_content()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
@pytest.mark.parametrize("width", mostly_thorough([1440, 390], kept=[390]))
def test_a_model_and_its_parts_fit(open_file: Callable[..., Page], tmp_path: Path, width: int) -> None:
    """The largest part is named in the plane at every width, which needs no Vega."""
    file = tmp_path / "predict.html"
    file.write_text(render_forecasts([row("prefill", length="512")]), encoding="utf-8")
    page = open_file(file, viewport={"width": width, "height": 900})
    assert "up projection" in page.locator("#calculator svg.live").text_content()
    assert not page.evaluate("'vegaEmbed' in window")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
@pytest.mark.parametrize("sizes", [SQUARE, {"m": "64", "n": "64", "k": "64"}], ids=["sweep", "single"])
def test_without_scripts_the_tables_say_it(browser: Any, tmp_path: Path, sizes: dict[str, str]) -> None:
    """With scripts off the answer and all numbers are there, and no control that does nothing."""
    file = tmp_path / "predict.html"
    one = row("gemm", **sizes)
    file.write_text(render_forecasts([one]), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    assert page.locator(".answer").first.is_visible()
    assert page.locator(".sums").get_by_text("the longest of them").is_visible()
    assert page.locator("details.steps tbody tr").count() == len(one.steps)
    assert page.locator("details.steps tbody tr").first.is_visible()
    assert page.locator("#calculator").is_hidden()
    page.close()
