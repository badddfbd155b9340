"""The page of a forecast: positions of dots, choices, and the explanation of peaks."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from browsing import faults
from forecasting import SQUARE, plane, row

from rooflens.format import duration
from rooflens.model.predict.forecast import ForecastRow, swept
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.roofline.datasheets import load_datasheets
from rooflens.report.document import Bars, Chart, Choice, Columns, Facts, Table
from rooflens.report.forecast.document import MAX_CHOICES, MAX_PLANES, forecasts_document
from rooflens.report.forecast.plane import planes
from rooflens.report.forecast.times import times_spec
from rooflens.report.html.embed import vega_bundle
from rooflens.report.plane.simple import plane_spec
from rooflens.report.words.forecast import answer, fastest_words, peak_words, size_text, table_rows
from rooflens.writing.answers import of_forecasts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page


def page_of(*rows: ForecastRow) -> str:
    """Write the page without the bundle, whose code would add words."""
    return of_forecasts(rows).text("html").replace(vega_bundle(), "")


def choice_of(*rows: ForecastRow) -> Choice:
    """Return the choices offered to a reader."""
    return next(block for block in forecasts_document(rows) if isinstance(block, Choice))


def text_of(page: str) -> str:
    """Return the words of a page."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_what_no_kernel_beats_is_the_floor_of_one_kernel_for_all_steps() -> None:
    """Headline and curve of experts have the fused floor; a kernel may beat that of separate ones."""
    experts = row("moe", tokens="64,4096")
    steps = [step for _, step in experts.steps]
    assert fastest_words([experts]) == f"tokens 4,096: at least {duration(steps[-1].floor_s * 1e9)} fused."
    spec = times_spec([experts])
    (values,) = spec["datasets"].values()
    assert [value["floor"] for value in values] == [1e9 * step.floor_s for step in steps]
    assert all(step.floor_s < step.t_lower_s for step in steps)


def test_dots_of_a_simple_operation_stand_on_their_roof() -> None:
    """Every step is at min(P, AI x BW) of the datasheet; below 5 us a launch takes longer."""
    one = row("gemm", **SQUARE)
    found = plane(one)
    (slope,), (flat,) = found.slopes, found.flats
    assert flat.peak / slope.peak == pytest.approx(989.4 / 3.35)
    for dot in found.dots:
        assert dot.y == pytest.approx(min(flat.peak, dot.x * slope.peak))
    regimes = {dot.x: dot.bound for dot in found.dots}
    for _, result in one.steps:
        assert regimes[result.intensity] == ("compute" if result.t_lower_s >= 5e-6 else "overhead")


def test_the_crossing_is_marked_on_the_path() -> None:
    """Each change of the limiter has a ring with the size, and the path goes through it in order."""
    one = row("gemm", **SQUARE)
    found = plane(one)
    ((x, _),) = found.rings
    assert x == pytest.approx(1353 / 3, rel=0.002)
    assert [x for x, _ in found.paths[0]] == sorted(x for x, _ in found.paths[0])
    (said,) = (dot.label for dot in found.dots if dot.x == x)
    assert said == "compute-bound from m = n = k = 1,353"
    why = "where the floor is shorter than a launch, 2 to 5 \u00b5s"
    assert answer(one) == f"Compute-bound from m = n = k = 1,353; overhead-bound before, {why}."
    batched = row("batched-gemm", batch="16", **SQUARE)
    assert answer(batched) == (
        "Memory-bound from m = n = k = 418; "
        f"compute-bound from m = n = k = 887, where it reaches 295 FLOP/B; overhead-bound before, {why}."
    )
    assert len(plane(batched).rings) == 2


def test_steps_at_one_place_are_one_dot() -> None:
    """An operation whose intensity does not grow has one dot for all its sizes, and says so."""
    (dot,) = plane(row("saxpy", "fp32", n="1:1000000:x10")).dots
    assert dot.label.startswith("n 1 to ")
    assert dot.label.endswith("1,000,000")


def test_long_sweeps_are_thinned() -> None:
    """Dots keep a distance and include both ends; the slider has a selection of the sizes, including the last."""
    one = row("gemm", m="n", k="n", n="64:8192:+8")
    found = plane(one)
    assert len(found.dots) < 60
    assert {one.steps[end][1].intensity for end in (0, -1)} <= {dot.x for dot in found.dots}
    names = choice_of(one).controls[0].names
    assert MAX_CHOICES / 2 < len(names) <= MAX_CHOICES
    assert names[-1] == "8,192"


def test_parts_of_a_model_are_dots_and_bars() -> None:
    """A single composite prediction shows its parts; the bars add up to the floor, sorted by length."""
    one = row("prefill", length="512")
    found = plane(one)
    assert {dot.name for dot in found.dots} == {part.label for part in one.steps[0][1].parts if part.flop}
    blocks = [block for _, part in choice_of(one).parts for block in part]
    (table,) = (block for block in blocks if isinstance(block, Table) and block.label == "Where the floor goes")
    shares = [float(str(row[1]).strip("< %")) for row in table.rows]
    assert sum(shares) == pytest.approx(100, abs=3)
    assert shares == sorted(shares, reverse=True)
    assert len(found.flats) == 2


def test_planes_share_their_axes() -> None:
    """Planes of several GPUs have the same range, so that they can be compared by eye."""
    found = planes([row("gemm", gpu=gpu, **SQUARE) for gpu in ("a100-sxm4-80gb", "b200", "h100-sxm")])
    assert len({(one.x_domain, one.y_domain) for one in found}) == 1


def test_many_gpus_are_capped_and_counted() -> None:
    """The fastest GPUs are drawn, all are in the table, and the others are listed as not drawn."""
    rows = [swept(OPERATIONS["saxpy"], {"n": "1024"}, "fp32", gpu) for gpu in load_datasheets()]
    page = page_of(*rows)
    assert len(re.findall(r'data-spec="spec-plane-\d+"', page)) == MAX_PLANES
    assert text_of(page).count(f"Drawn are the {MAX_PLANES} that are fastest") == len(rows) - MAX_PLANES
    table = page.partition('aria-label="GPUs and types side by side"')[2].partition("</table>")[0]
    assert table.count("<tr>") == len(rows) + 1


def test_gpus_without_the_type_are_named() -> None:
    """The page, and not only the terminal, names the GPUs without a prediction."""
    page = of_forecasts([row("gemm", **SQUARE)], ["`Tesla T4` has no published peak for bf16"]).text("html")
    assert "<code>Tesla T4</code> has no published peak" in page


def test_every_row_can_be_chosen() -> None:
    """Sizes, types and GPUs have a control if there are several; each choice has its numbers and its plane."""
    rows = [row("gemm", dtype, gpu, **SQUARE) for dtype in ("bf16", "fp8") for gpu in ("h100-sxm", "b200")]
    choice = choice_of(*rows)
    assert [(control.label, len(control.names), control.slides) for control in choice.controls] == [
        ("m = n = k", 7, True),
        ("Type", 2, False),
        ("GPU", 2, False),
    ]
    assert choice.first == (6, 0, 0)
    for i, one in enumerate(rows):
        for at, (_, result) in enumerate(one.steps):
            chosen = (at, i // 2, i % 2)
            shown = [block for key, part in choice.parts if _belongs(key, chosen) for block in part]
            (facts,) = (block for block in shown if isinstance(block, Facts))
            floor = next(str(values[0]) for name, values, _ in facts.rows if name == "floor")
            assert floor.endswith(duration(result.t_lower_s * 1e9))
            assert sum(isinstance(block, Chart) for block in shown) == 1
    assert [control.label for control in choice_of(rows[0]).controls] == ["m = n = k"]
    assert choice_of(row("gemm", m="64", n="64", k="64")).controls == ()
    apart = choice_of(rows[0], rows[3])
    assert [name.partition(", ")[2] for name in apart.controls[1].names] == ["bf16", "fp8"]


def _belongs(key: tuple[int | None, ...], chosen: tuple[int, ...]) -> bool:
    return all(one in {None, place} for one, place in zip(key, chosen, strict=True))


def test_the_answer_stands_above_what_can_be_chosen() -> None:
    """Times over sizes are a line per GPU, over GPUs bars with the fastest first; a single case has neither."""
    rows = [row("gemm", gpu=gpu, **SQUARE) for gpu in ("h100-sxm", "b200")]
    spec = times_spec(rows)
    drawn = next(one for one in spec["datasets"].values() if len(one) == sum(len(each.steps) for each in rows))
    assert {(one["line"], one["size"]): one["floor"] for one in drawn} == {
        (each.gpu.name.removeprefix("NVIDIA "), sizes["m"]): pytest.approx(result.t_lower_s * 1e9)
        for each in rows
        for sizes, result in each.steps
    }
    kinds = [type(one).__name__ for one in forecasts_document(rows)]
    assert kinds.index("Choice") == 3
    single = [row("gemm", gpu=gpu, m="4096", n="4096", k="4096") for gpu in ("l4", "h200")]
    bars = next(
        one
        for block in forecasts_document(single)
        if isinstance(block, Columns)
        for one in block.parts[0]
        if isinstance(one, Bars)
    )
    assert [(bar.name, bar.is_best) for bar in bars.bars] == [("H200", True), ("L4", False)]
    assert bars.bars[0].part == pytest.approx(single[1].steps[0][1].t_lower_s / single[0].steps[0][1].t_lower_s)
    assert isinstance(forecasts_document(single[:1])[0], Choice)


def test_large_sizes_have_prefixes() -> None:
    """From a million on, sizes have three digits and a prefix instead of ten digits; bytes have their unit."""
    assert [size_text("n", 999_999), size_text("n", 16_777_216), size_text("bytes", 1 << 30)] == [
        "999,999",
        "16.8 M",
        "1.07 GB",
    ]


def test_the_peak_is_explained() -> None:
    """Tensor cores: dense against sparse; fp32: CUDA cores; before Ampere sparsity is not mentioned."""
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
    """The table has the same cells as other outputs, and the formula with its source."""
    one = row("gemm", **SQUARE)
    words = text_of(page_of(one))
    for cells in table_rows(one):
        assert " ".join(cells) in words
    assert OPERATIONS["gemm"].flop_source in words
    assert "NVIDIA H100 whitepaper" in words


def test_an_operation_without_flops_has_no_place() -> None:
    """A copy is described by its bytes and times, without a plane."""
    page = page_of(row("embedding", tokens="1:64:x2"))
    assert "No FLOPs, so no place in a roofline" in text_of(page)
    assert re.findall('data-spec="([^"]*)', page) == ["spec-times"]


def test_a_specification_holds_no_colour() -> None:
    """Colours come only from the theme."""
    spec = plane_spec(plane(row("gemm", **SQUARE)))
    assert not re.search(r"#[0-9a-fA-F]{6}", json.dumps(spec))


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_sliders_choose_among_rows(
    open_file: Callable[..., Page], tmp_path: Path, axe: str, width: int, scheme: str
) -> None:
    """A size and a GPU chosen by keyboard are shown with their plane and kept in the address, and nothing overflows."""
    file = tmp_path / "predict.html"
    rows = [row("gemm", gpu=gpu, **SQUARE) for gpu in ("h100-sxm", "b200")]
    file.write_text(of_forecasts(rows).text("html"), encoding="utf-8")
    page = open_file(file, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.locator(".choice .chart svg").count() == 1  # what was not chosen is not drawn
    top = page.locator("#document > div > .answer")
    assert top.text_content().startswith("B200 is the fastest: at least ")
    assert top.bounding_box()["y"] < page.locator(".choices").bounding_box()["y"]
    assert page.locator(".choice .answer:visible").text_content().startswith("Compute-bound")
    page.locator(".choices input").press("Home")
    page.locator(".choices select").select_option(index=1)
    page.evaluate("lens.settled()")
    assert page.locator(".choice .answer:visible").text_content().startswith("Overhead-bound")
    assert page.locator(".choices output").text_content() == "128"
    assert "B200" in page.locator(".choice .chart:visible svg").text_content()
    assert page.evaluate("lens.save(), location.hash") == "#at=0.1"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert faults(page, axe) == []


@pytest.mark.browser
def test_without_scripts_the_tables_say_it(browser: Any, tmp_path: Path) -> None:
    """Without scripts the answer and all numbers are shown, and no control that would do nothing."""
    file = tmp_path / "predict.html"
    one = row("gemm", **SQUARE)
    file.write_text(of_forecasts([one]).text("html"), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    assert page.locator(".choice .answer:visible").count() == 1
    assert page.locator(".facts-list:visible").get_by_text("the longest of them").count() == 1
    assert page.locator("table:has(caption) tbody tr:visible").count() == len(one.steps)
    assert page.locator(".choices").is_hidden()
    page.close()
