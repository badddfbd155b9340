"""Another GPU on the page in a real browser: choosing one, what it shows, the address, and the kernels in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from support import samples
from support.samples import Sample
from support.thorough import mostly_thorough

from rooflens import format as fmt
from rooflens.model.keys import short_names
from rooflens.model.predict.other_gpu import change, gpu_roofs, standing, sum_up
from rooflens.model.roofline.datasheets import load_datasheets

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from rooflens.model.predict.other_gpu import Roofs
    from rooflens.model.records import Analysis

pytestmark = pytest.mark.browser

A100_80GB = replace(samples.A100, name="NVIDIA A100-SXM4-80GB")
KERNELS = [
    Sample("copy", "memory", 12_000, "dram", {"dram": 2e10}, {}, chip=A100_80GB),
    Sample("gemm", "compute", 10_000, "tensor_bf16", {"dram": 1e10}, {"tensor_bf16": 2e12}, chip=A100_80GB),
    Sample("gather", "latency", 4_000, None, {"dram": 1e9}, {"fp32": 1e9}, chip=A100_80GB),
    Sample("train<fp8>", "compute", 2_000, "tensor_bf16", {"dram": 1e9}, {"tensor_bf16": 9e11}, chip=A100_80GB),
]


SAME_RATIO = 1.005


def analyses() -> list[Analysis]:
    """Make a copy, a GEMM between the ridges of A100 and H100, a latency-bound kernel, and one far from any ridge."""
    return [samples.analysis(sample, i) for i, sample in enumerate(KERNELS)]


H100 = replace(samples.A100, name="NVIDIA H100 80GB HBM3")
GEMM = Sample("gemm", "compute", 10_000, "tensor_bf16", {"dram": 1e10}, {"tensor_bf16": 2e12}, chip=A100_80GB)
COPY = Sample("copy", "memory", 6_000, "dram", {"dram": 1e10}, {}, chip=A100_80GB)
GATHER = Sample("gather", "latency", 4_000, None, {"dram": 1e9}, {"fp32": 1e9}, chip=A100_80GB)
STENCIL = Sample("stencil", "memory", 5_000, "dram", {"dram": 1e9}, {"fp32": 1.5e10}, chip=H100)
FP8 = replace(GEMM, flop={"tensor_fp8": 2e12}, chip=replace(H100, pipe_peaks={"tensor_fp8": 1.9e15}))

SENTENCES = (
    (
        (GEMM, COPY, GATHER),
        "h100-sxm",
        (
            "1 kernel with 50 % of GPU time switches from compute to memory on H100 80GB HBM3. "
            "The lower bound of the time of the 2 kernels limited by DRAM or by FLOPs "
            "falls from 11.3 ms to 5.97 ms: 1.9x shorter."
        ),
        "The DRAM ridge of tensor bf16 moves from 153 to 295 FLOP/B: 1.6x the bandwidth, 3.2x the peak.",
        (
            "1 kernel with 20 % of GPU time is limited by something else (latency, overhead, caches, other pipes), "
            "or what limits it is unknown: nothing is predicted of its time."
        ),
    ),
    (
        (COPY,),
        "t4",
        (
            "No kernel switches between memory and compute on Tesla T4. "
            "The lower bound of the time of the only kernel limited by DRAM or by FLOPs "
            "rises from 4.90 ms to 31.2 ms: 6.4x longer."
        ),
        "",
        "",
    ),
    (
        (STENCIL, GEMM, replace(GEMM, name="other")),
        "a100-sxm4-40gb",
        (
            "3 kernels with 100 % of GPU time switch between memory and compute on A100-SXM4-40GB: 2 to memory, "
            "1 to compute. "
            "The lower bound of the time of the 3 kernels limited by DRAM or by FLOPs "
            "rises from 13.1 ms to 13.6 ms: 1.04x longer."
        ),
        "",
        "",
    ),
    (
        (GEMM,),
        "a100-sxm4-80gb",
        (
            "This is the GPU that was profiled. Its datasheet roofs, DRAM 2.04 TB/s and tensor bf16 312 TFLOP/s, stand "
            "in the roofline beside those of the report."
        ),
        "The datasheet's are those of the boost clock, the report's those of the profiled one.",
        "",
    ),
    (
        (FP8,),
        "a100-sxm4-80gb",
        "Nothing can be predicted for A100-SXM4-80GB.",
        "",
        "1 kernel is not predicted: no tensor fp8 peak is published for A100-SXM4-80GB.",
    ),
    (
        (GEMM, GEMM),
        "h100-sxm",
        (
            "1 kernel with 100 % of GPU time switches from compute to memory on H100 80GB HBM3. "
            "The lower bound of the time of the only kernel limited by DRAM or by FLOPs "
            "falls from 12.8 ms to 5.97 ms: 2.1x shorter."
        ),
        "The DRAM ridge of tensor bf16 moves from 153 to 295 FLOP/B: 1.6x the bandwidth, 3.2x the peak.",
        "",
    ),
    (
        (GEMM, replace(GEMM, name="there", chip=H100)),
        "h100-sxm",
        (
            "1 kernel with 50 % of GPU time switches from compute to memory on H100 80GB HBM3. "
            "The lower bound of the time of the 2 kernels limited by DRAM or by FLOPs "
            "falls from 9.40 ms to 5.97 ms: 1.6x shorter."
        ),
        "",
        "",
    ),
)
"""Kernels, the GPU that is chosen, and what the page then says: answer, body and aside."""


def choose(page: Page, gpu: str) -> None:
    """Unfold the section and choose a GPU in it."""
    page.locator("#what-if > details").evaluate("part => { part.open = true }")
    page.select_option("#what-if-gpu", gpu)


def rows(page: Page) -> list[list[str]]:
    """Read the rows of the kernels that are shown."""
    shown = page.locator("#what-if-kernels tbody tr:visible")
    return [
        [cell.inner_text().replace(fmt.NBSP, " ").strip() for cell in row.locator("th, td").all()]
        for row in shown.all()
    ]


def ridges(page: Page) -> list[str]:
    """Read the names of the GPUs in the table of ridges."""
    return [row.inner_text().split("\n")[0] for row in page.locator("#what-if-ridges tbody th").all()]


def factor_words(factor: float | None) -> str:
    """Write how a lower bound changes."""
    if factor is None:
        return fmt.MISSING
    if 1 / SAME_RATIO < factor < SAME_RATIO:
        return "the same"
    return f"{fmt.factor(factor)} shorter" if factor > 1 else f"{fmt.factor(1 / factor)} longer"


@pytest.mark.parametrize(("kernels", "gpu", "answer"), [(case[0], case[1], case[2:]) for case in SENTENCES])
def test_sentences(
    open_page: Callable[..., Page], kernels: tuple[Sample, ...], gpu: str, answer: tuple[str, str, str]
) -> None:
    """The answer names the change and the bounds, the body the ridge, the aside what is not covered."""
    page = open_page([samples.analysis(sample, i) for i, sample in enumerate(kernels)])
    choose(page, gpu)
    said = [page.locator(f"#what-if-{part}").text_content() or "" for part in ("head", "body", "aside")]
    assert [text.replace(fmt.NBSP, " ") for text in said] == list(answer)


def test_numbers_in_the_answer_are_the_models(open_page: Callable[..., Page]) -> None:
    """What the answer tells of many kernels is what the model sums up in Python."""
    kernels = samples.many(60)
    page = open_page(kernels)
    found = [here for analysis in kernels if (here := standing(analysis))]
    total_ns = sum(analysis.gpu_time_ns or 0.0 for analysis in kernels)
    for gpu in ("v100-sxm2", "rtx-4090", "h100-sxm", "b200"):
        choose(page, gpu)
        roofs = gpu_roofs(next(known for known in load_datasheets() if known.id == gpu))
        effect = sum_up(change(here, roofs) for here in found)
        head = (page.locator("#what-if-head").text_content() or "").replace(fmt.NBSP, " ")
        if effect.changed.count:
            assert fmt.percent(effect.changed.time_ns / total_ns) in head
        assert f"from {fmt.duration(effect.lower_here_s * 1e9)} to {fmt.duration(effect.lower_there_s * 1e9)}" in head
        assert factor_words(effect.lower_here_s / effect.lower_there_s) in head


def test_numbers_are_written_as_in_python(same_page: Callable[..., Page]) -> None:
    """The page's formatter gives the digits of `rooflens.format`, for what lies between two of them too."""
    page = same_page(analyses())
    values = [0, 1, 999.4, 999.5, 1.125, 12.25, 12.35, 12250, 0.0625, 9.995, 1e3, 1e6, 123456789, 3.35e12, 7e-4, 1e12]
    values += [step * scale for step in (1.005, 2.5, 3.375, 9.945, 99.95) for scale in (1e-3, 1, 10, 1e5, 1e13)]
    shares = [0, 1e-4, 0.0005, 0.0994, 0.0995, 0.125, 0.625, 0.994, 0.995, 0.9999999999999, 1, 1.025, 1.125]
    for name, write in (("significant", fmt.significant), ("duration", fmt.duration), ("intensity", fmt.intensity)):
        written = page.evaluate(f"values => values.map((value) => lens.format.{name}(value))", values)
        assert written == [write(value) for value in values]
    assert page.evaluate("values => values.map((value) => lens.format.si(value, 'B/s'))", values) == [
        fmt.si(value, "B/s") for value in values
    ]
    assert page.evaluate("values => values.map(lens.format.percent)", shares) == [fmt.percent(one) for one in shares]
    factors = [0.125, 1, 2.25, 9.96, 12.5, 99.4, 99.9, 100, 120.5, 999.9, 1000, 1001]
    assert page.evaluate("values => values.map(lens.format.factor)", factors) == [fmt.factor(one) for one in factors]
    counts = [(0, "kernel"), (1, "launch"), (1204, "launch"), (2, "GPU")]
    assert page.evaluate("pairs => pairs.map((pair) => lens.format.count(...pair))", counts) == [
        fmt.count(*pair) for pair in counts
    ]
    texts = ["12 % of 3.35 TB/s, 12 kernels", "at 1.5 GHz and 5 ms, 3 sizes", "2 FLOP/B, 4 op/s"]
    assert page.evaluate("texts => texts.map(lens.format.unbroken)", texts) == [fmt.unbroken(text) for text in texts]
    pairs = [[name, width] for name in ("gemm", "gemm_bf16_128x128x64", "\U0001d4d0" * 9) for width in (4, 9, 64)]
    assert page.evaluate("pairs => pairs.map((pair) => lens.format.cut(...pair))", pairs) == [
        fmt.cut_middle(name, width) for name, width in pairs
    ]


def test_choosing_a_gpu_shows_what_changes(same_page: Callable[..., Page]) -> None:
    """The answer, the ridge and the kernels appear with the choice; those that switch come first, by word."""
    page = same_page(analyses())
    assert not page.locator("#what-if-answer").is_visible()
    assert rows(page) == []
    choose(page, "h100-sxm")
    assert page.locator("#what-if-head").inner_text().startswith("1 kernel with 36")
    assert page.locator("#what-if-answer .pill").inner_text() == "prediction"
    assert [row[0] for row in rows(page)] == ["gemm", "copy", "gather", "train"]
    assert rows(page)[0][4:6] == ["compute", "memory switches"]
    assert page.locator("#what-if-kernels .changes").count() == 1
    assert page.locator("#what-if-ridges .chosen th").inner_text() == "H100 80GB HBM3"
    choose(page, "")
    assert not page.locator("#what-if-answer").is_visible()
    assert rows(page) == []


def test_cells_are_those_of_the_model(same_page: Callable[..., Page]) -> None:
    """Each kernel has the side, the lower bounds and the factor that the model works out."""
    page = same_page(analyses())
    short = short_names(analysis.kernel.name for analysis in analyses())
    for gpu in ("t4", "h100-sxm", "b200"):
        choose(page, gpu)
        shown = {row[0]: row for row in rows(page)}
        roofs = gpu_roofs(next(one for one in load_datasheets() if one.id == gpu))
        for analysis in analyses():
            assert_cells(shown[short[analysis.kernel.name]], analysis, roofs)


def assert_cells(row: list[str], analysis: Analysis, roofs: Roofs) -> None:
    """Hold the row of a kernel to what the model works out for a GPU of these roofs."""
    here = standing(analysis)
    assert here is not None
    moved = change(here, roofs)
    assert row[4] == here.place.side
    assert row[6] == fmt.duration(here.place.lower_s * 1e9)
    if moved.there is None:
        assert (row[5], row[7], row[8]) == ("not predicted", fmt.MISSING, fmt.MISSING)
        return
    assert row[5].split() == [moved.there.side, "switches"][: 2 if moved.to_side else 1]
    assert row[7] == fmt.duration(moved.there.lower_s * 1e9)
    assert row[8] == (factor_words(moved.factor) if here.told else fmt.MISSING)


def test_a_gpu_that_stands_in_no_row_gets_one(same_page: Callable[..., Page]) -> None:
    """The chosen GPU's ridge stands below that of the page's own GPU, and goes with the choice."""
    page = same_page(analyses())
    choose(page, "")
    before = ridges(page)
    choose(page, "rtx-4090")
    assert ridges(page) == [before[0], "GeForce RTX 4090", *before[1:]]
    choose(page, "t4")
    assert ridges(page) == [before[0], "Tesla T4", *before[1:]]
    choose(page, "b200")
    assert ridges(page) == before
    assert page.locator("#what-if-ridges .chosen").count() == 1


def test_its_own_datasheet_is_no_prediction(same_page: Callable[..., Page]) -> None:
    """Choosing the profiled GPU tells its datasheet roofs and shows no table of changes."""
    page = same_page(analyses())
    choose(page, "a100-sxm4-80gb")
    assert page.locator("#what-if-head").inner_text().startswith("This is the GPU that was profiled.")
    assert not page.locator("#what-if-answer .pill").is_visible()
    assert rows(page) == []


def test_the_choice_is_in_the_address(same_page: Callable[..., Page]) -> None:
    """A choice can be shared, and one that no file has is none, even where it is a word of JavaScript."""
    page = same_page(analyses())
    choose(page, "b200")
    page.wait_for_url("**#datasheet=b200")
    for unknown in ("no-such-gpu", "constructor", "__proto__"):
        page.locator("#what-if > details").evaluate("part => { part.open = false }")
        page.evaluate("location.hash = 'datasheet=h100-sxm'")
        page.locator("#what-if-name", has_text="H100 80GB HBM3").wait_for()
        assert page.locator("#what-if-gpu").input_value() == "h100-sxm"
        page.evaluate("word => { location.hash = `datasheet=${word}` }", unknown)
        page.locator("#what-if-answer").wait_for(state="hidden")
        assert page.locator("#what-if-gpu").input_value() == ""


def test_a_kernel_of_the_table_is_isolated_by_mouse_and_keyboard(same_page: Callable[..., Page]) -> None:
    """A click on a row, or Enter on its name, isolates the kernel; Escape clears."""
    page = same_page(analyses())
    choose(page, "h100-sxm")
    page.locator("#what-if-kernels tbody tr").nth(1).click()
    current = page.locator("#what-if-kernels [aria-current]")
    assert current.locator("th").inner_text() == "copy"
    page.locator("#what-if-kernels button", has_text="gather").focus()
    page.keyboard.press("Enter")
    assert current.locator("th").inner_text() == "gather"
    assert page.evaluate("lens.state.k") == "k2"
    page.keyboard.press("Escape")
    assert current.count() == 0


def test_filters_hide_rows_here_too(same_page: Callable[..., Page]) -> None:
    """Kernels that the selectors leave out are not in the table."""
    page = same_page(analyses())
    choose(page, "h100-sxm")
    page.evaluate("lens.set({ verdicts: ['memory'] })")
    assert [row[0] for row in rows(page)] == ["copy"]


@pytest.mark.parametrize(("width", "scheme"), mostly_thorough([(390, "dark"), (1440, "light")], kept=[(390, "dark")]))
def test_the_section_fits_the_window(open_page: Callable[..., Page], width: int, scheme: str) -> None:
    """With a GPU chosen nothing is wider than the window."""
    page = open_page([*analyses(), *samples.hostile()], width=width, scheme=scheme)
    choose(page, "b200")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
