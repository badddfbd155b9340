"""Another GPU on the page in a real browser: choosing one, what it shows, the address, and the kernels in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support import samples
from support.samples import Sample

from rooflens import format as fmt
from rooflens.model.predict.other_gpu import change, gpu_roofs, standing
from rooflens.model.roofline.datasheets import load_gpus
from rooflens.report.page.other_gpu_sentences import factor_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from rooflens.model.records import Analysis

pytestmark = pytest.mark.browser

A100_80GB = replace(samples.A100, name="NVIDIA A100-SXM4-80GB")
KERNELS = [
    Sample("copy", "memory", 12_000, "dram", {"dram": 2e10}, {}, chip=A100_80GB),
    Sample("gemm", "compute", 10_000, "tensor_bf16", {"dram": 1e10}, {"tensor_bf16": 2e12}, chip=A100_80GB),
    Sample("gather", "latency", 4_000, None, {"dram": 1e9}, {"fp32": 1e9}, chip=A100_80GB),
    Sample("train<fp8>", "compute", 2_000, "tensor_bf16", {"dram": 1e9}, {"tensor_bf16": 9e11}, chip=A100_80GB),
]


def analyses() -> list[Analysis]:
    """Make a copy, a GEMM between the ridges of A100 and H100, a latency-bound kernel, and one far from any ridge."""
    return [samples.analysis(sample, i) for i, sample in enumerate(KERNELS)]


def rows(page: Page) -> list[list[str]]:
    """Read the rows of the kernels that are shown."""
    shown = page.locator("#what-if-kernels tbody tr:visible")
    return [[cell.inner_text().strip() for cell in row.locator("th, td").all()] for row in shown.all()]


def ridges(page: Page) -> list[str]:
    """Read the names of the GPUs in the table of ridges."""
    return [row.inner_text().split("\n")[0] for row in page.locator("#what-if-ridges tbody th").all()]


def test_choosing_a_gpu_shows_what_changes(open_page: Callable[..., Page]) -> None:
    """The answer, the ridge and the kernels appear with the choice; those that change side come first, by word."""
    page = open_page(analyses())
    assert not page.locator("#what-if-answer").is_visible()
    assert rows(page) == []
    page.select_option("#what-if-gpu", "h100-sxm")
    assert page.locator("#what-if-head").inner_text().startswith("1 kernel with 36")
    assert page.locator("#what-if-answer .pill").inner_text() == "prediction"
    assert [row[0] for row in rows(page)] == ["gemm", "copy", "gather", "train<fp8>"]
    assert rows(page)[0][4:6] == ["compute", "memory changes"]
    assert page.locator("#what-if-kernels .changes").count() == 1
    assert page.locator("#what-if-ridges .chosen th").inner_text() == "H100 80GB HBM3"
    page.select_option("#what-if-gpu", "")
    assert not page.locator("#what-if-answer").is_visible()
    assert rows(page) == []


@pytest.mark.parametrize("gpu", ["t4", "h100-sxm", "b200"])
def test_cells_are_those_of_the_model(open_page: Callable[..., Page], gpu: str) -> None:
    """Each kernel has the side, the lower bounds and the factor that the model works out."""
    page = open_page(analyses())
    page.select_option("#what-if-gpu", gpu)
    shown = {row[0]: row for row in rows(page)}
    roofs = gpu_roofs(next(one for one in load_gpus() if one.id == gpu))
    for analysis in analyses():
        here = standing(analysis)
        assert here is not None
        moved = change(here, roofs)
        row = shown[analysis.kernel.name]
        assert row[4] == here.place.side
        assert row[6] == fmt.duration(here.place.lower_s * 1e9)
        if moved.there is None:
            assert (row[5], row[7], row[8]) == ("not predicted", fmt.MISSING, fmt.MISSING)
            continue
        assert row[5].split() == [moved.there.side, "changes"][: 2 if moved.to_side else 1]
        assert row[7] == fmt.duration(moved.there.lower_s * 1e9)
        assert row[8] == (factor_words(moved.factor) if here.told else fmt.MISSING)


def test_a_gpu_that_stands_in_no_row_gets_one(open_page: Callable[..., Page]) -> None:
    """The chosen GPU's ridge stands below that of the page's own GPU, and goes with the choice."""
    page = open_page(analyses())
    before = ridges(page)
    page.select_option("#what-if-gpu", "rtx-4090")
    assert ridges(page) == [before[0], "GeForce RTX 4090", *before[1:]]
    page.select_option("#what-if-gpu", "t4")
    assert ridges(page) == [before[0], "Tesla T4", *before[1:]]
    page.select_option("#what-if-gpu", "b200")
    assert ridges(page) == before
    assert page.locator("#what-if-ridges .chosen").count() == 1


def test_its_own_datasheet_is_no_prediction(open_page: Callable[..., Page]) -> None:
    """Choosing the profiled GPU tells its datasheet roofs and shows no table of changes."""
    page = open_page(analyses())
    page.select_option("#what-if-gpu", "a100-sxm4-80gb")
    assert page.locator("#what-if-head").inner_text().startswith("This is the GPU that was profiled.")
    assert not page.locator("#what-if-answer .pill").is_visible()
    assert rows(page) == []


@pytest.mark.parametrize("unknown", ["no-such-gpu", "constructor", "__proto__"])
def test_the_choice_is_in_the_address(open_page: Callable[..., Page], unknown: str) -> None:
    """A choice can be shared, and one that no file has is none, even where it is a word of JavaScript."""
    page = open_page(analyses())
    page.select_option("#what-if-gpu", "b200")
    page.wait_for_url("**#datasheet=b200")
    page.evaluate("location.hash = 'datasheet=h100-sxm'")
    page.locator("#what-if-name", has_text="H100 80GB HBM3").wait_for()
    assert page.locator("#what-if-gpu").input_value() == "h100-sxm"
    page.evaluate("word => { location.hash = `datasheet=${word}` }", unknown)
    page.locator("#what-if-answer").wait_for(state="hidden")
    assert page.locator("#what-if-gpu").input_value() == ""


def test_a_kernel_of_the_table_is_isolated_by_mouse_and_keyboard(open_page: Callable[..., Page]) -> None:
    """A click on a row, or Enter on its name, isolates the kernel; Escape clears."""
    page = open_page(analyses())
    page.select_option("#what-if-gpu", "h100-sxm")
    page.locator("#what-if-kernels tbody tr").nth(1).click()
    current = page.locator("#what-if-kernels [aria-current]")
    assert current.locator("th").inner_text() == "copy"
    page.locator("#what-if-kernels button", has_text="gather").focus()
    page.keyboard.press("Enter")
    assert current.locator("th").inner_text() == "gather"
    assert page.evaluate("lens.state.k") == "k2"
    page.keyboard.press("Escape")
    assert current.count() == 0


def test_filters_hide_rows_here_too(open_page: Callable[..., Page]) -> None:
    """Kernels that the selectors leave out are not in the table."""
    page = open_page(analyses())
    page.select_option("#what-if-gpu", "h100-sxm")
    page.evaluate("lens.set({ verdicts: ['memory'] })")
    assert [row[0] for row in rows(page)] == ["copy"]


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_the_section_fits_the_window(open_page: Callable[..., Page], width: int, scheme: str) -> None:
    """With a GPU chosen nothing is wider than the window."""
    page = open_page([*analyses(), *samples.hostile()], width=width, scheme=scheme)
    page.select_option("#what-if-gpu", "b200")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
