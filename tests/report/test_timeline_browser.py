"""The timeline of a trace's page: what is drawn, chosen and zoomed, and that its address brings it back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import faults
from click.testing import CliRunner
from support.traces import host, kernel, write_trace

from rooflens.cli.group import main
from rooflens.report.program.lane import MOST_MARKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

READY = "new Promise(requestAnimationFrame)"
INKED = """() => {
  const canvas = document.getElementById("lanes"), pen = canvas.getContext("2d");
  return new Set(pen.getImageData(0, 0, canvas.width, canvas.height).data).size;
}"""


def page_of(folder: Path, *events: dict[str, object]) -> Path:
    """Write the page of a trace with these events."""
    trace = write_trace(folder / "step.json", events)
    done = CliRunner().invoke(main, ["report", str(trace), "-o", str(folder / "page.html")])
    assert done.exit_code == 0, done.output
    return folder / "page.html"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page with kernels of two streams, a collective, a range and a hostile name."""
    return page_of(
        tmp_path_factory.mktemp("timeline"),
        host("user_annotation", "step </script><img src=x onerror=alert(1)>", 0, 900),
        kernel("gemm", 0, 400),
        kernel("<b>softmax</b>", 500, 100),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 300, 500, stream=20),
    )


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_a_timeline_is_drawn_and_breaks_no_rule(
    open_file: Callable[..., Page], axe: str, page_file: Path, width: int, scheme: str
) -> None:
    """Something is drawn at any width and in both themes, nothing overflows, and axe finds no serious fault."""
    page = open_file(page_file, viewport={"width": width, "height": 900}, color_scheme=scheme, ready=READY)
    assert page.evaluate(INKED) > 8
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faults(page, axe) == []


def test_a_click_finds_the_row_and_the_address_brings_all_back(open_file: Callable[..., Page], page_file: Path) -> None:
    """The kernel under the pointer is chosen in its table; keys zoom; the address alone restores both."""
    page = open_file(page_file, ready=READY)
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    canvas = page.locator("#lanes")
    box = canvas.bounding_box()
    assert box is not None
    lanes = page.evaluate("JSON.parse(document.getElementById('lanes-data').textContent)")
    down = box["height"] - 2 * 26 + 12  # the first of two lanes
    canvas.hover(position={"x": 84 + (box["width"] - 84) * 0.25, "y": down})
    assert page.locator("#lanes-said").text_content().startswith("gemm, 400 µs from 0 ns on")
    canvas.click(position={"x": 84 + (box["width"] - 84) * 0.25, "y": down})
    mark = next(subject[3] for subject in lanes["subjects"] if subject[0] == "gemm")
    assert page.locator("tr.marked").get_attribute("data-mark") == mark
    canvas.press("+")
    page.evaluate("lens.save()")
    address = page.evaluate("location.hash")
    assert "zoom=" in address
    assert f"mark={mark}" in address
    again = open_file(page_file, address, ready=READY)
    assert again.evaluate("[lens.state.zoom, lens.state.mark]") == page.evaluate("[lens.state.zoom, lens.state.mark]")
    assert again.locator("tr.marked").get_attribute("data-mark") == mark


SHOWN = """() => [...document.querySelectorAll(".filtered-table tbody tr:not([hidden])")].map(
  row => row.cells[0].textContent)"""


def test_filters_leave_rows_and_the_address_brings_them_back(open_file: Callable[..., Page], page_file: Path) -> None:
    """A search opens what it finds, a class leaves its rows, and the address alone restores both."""
    page = open_file(page_file, ready=READY)
    rows = page.evaluate(SHOWN)
    sent = "exposed communication (500\u00a0µs in all)"
    assert set(rows) == {sent, "kernels without an operator"}
    page.fill("#search", "softmax")
    assert page.evaluate(SHOWN) == ["kernels without an operator", "softmax"]
    assert page.locator("#tally").text_content() == "1 of 3 rows"
    page.evaluate("lens.save()")
    again = open_file(page_file, page.evaluate("location.hash"), ready=READY)
    assert again.evaluate(SHOWN) == ["kernels without an operator", "softmax"]
    again.click("#clear")
    assert again.evaluate(SHOWN) == rows
    again.click("[data-verdict=communication]")
    assert again.evaluate(SHOWN) == [sent]
    again.click(".opener:visible")
    assert again.evaluate(SHOWN) == [sent, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"]
    again.select_option("[data-choice=stream]", "stream 7")
    assert again.evaluate(SHOWN) == []
    assert again.locator("#none-left").is_visible()


def test_a_click_on_what_the_filters_leave_out_lifts_them(open_file: Callable[..., Page], page_file: Path) -> None:
    """A kernel chosen in the lanes shows its row, whatever was looked for; one that the filters keep changes none."""
    page = open_file(page_file, "#q=gemm", ready=READY)
    canvas = page.locator("#lanes")
    box = canvas.bounding_box()
    assert box is not None
    at = {"x": 84 + (box["width"] - 84) * 0.25, "y": box["height"] - 2 * 26 + 12}
    canvas.click(position=at)
    assert page.locator("tr.marked th").text_content() == "gemm"
    assert page.evaluate("lens.state.q") == "gemm"
    canvas.click(position=at | {"y": box["height"] - 12, "x": at["x"] + 0.35 * (box["width"] - 84)})
    assert page.locator("tr.marked th").text_content() == "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    assert page.locator("tr.marked").is_visible()
    assert page.evaluate("lens.state.q") == ""


def test_share_saves_the_timeline_below_the_headline(
    open_file: Callable[..., Page], page_file: Path, tmp_path: Path
) -> None:
    """A page without any other chart has the button, too; the picture is larger than the lanes."""
    page = open_file(page_file, ready=READY)
    with page.expect_download() as download:
        page.click("#share")
    file = tmp_path / "shared.png"
    download.value.save_as(file)
    wide, high = (int.from_bytes(file.read_bytes()[at : at + 4], "big") for at in (16, 20))
    box = page.locator("#lanes").bounding_box()
    assert box is not None
    assert (wide, high) > (2 * box["width"], 2 * box["height"])


def test_a_comparison_draws_both_sides_on_one_scale(open_file: Callable[..., Page], axe: str, tmp_path: Path) -> None:
    """Before stands above after; a kernel chosen in one is found in its row, which stands for it on both sides."""
    sides = []
    for name, long_us in (("before", 400), ("after", 100)):
        steps = [(kernel("gemm", 1000 * step, long_us), kernel("norm", 1000 * step + 500, 50)) for step in range(4)]
        sides.append(write_trace(tmp_path / f"{name}.json", [event for step in steps for event in step]))
    arguments = ["compare", *map(str, sides), "-o", str(tmp_path / "page.html")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    page = open_file(tmp_path / "page.html", ready=READY)
    drawn = page.evaluate("JSON.parse(document.getElementById('lanes-data').textContent)")
    assert [part["name"] for part in drawn["parts"]] == ["before", "after"]
    assert [part["lanes"][0]["lengths"][0] for part in drawn["parts"]] == [400_000, 100_000]
    canvas = page.locator("#lanes")
    box = canvas.bounding_box()
    assert box is not None
    for row in range(2):  # of each the name, the steps and the lane
        canvas.click(position={"x": 84 + 5, "y": 20 + (row + 1) * 40 + row * 26 + 12})
        assert page.locator("tr.marked th").text_content() == "gemm"
        page.evaluate("lens.set({ mark: '' })")
    page.click("[data-verdict=faster]")
    assert page.evaluate(SHOWN)[1:] == ["gemm"]
    page.click(".opener:visible")
    page.evaluate("lens.set({ mark: '' })")
    assert page.evaluate(SHOWN)[1:] == ["gemm", "gemm"]
    assert faults(page, axe) == []


def test_twenty_thousand_launches_are_a_page_of_few_megabytes(tmp_path: Path) -> None:
    """As many marks as there are launches up to the limit, and no more beyond it; the page stays under 4 MB."""
    page = page_of(tmp_path, *(kernel(f"k{i % 40}", 12.0 * i, 8.0) for i in range(25_000)))
    text = page.read_text(encoding="utf-8")
    data = text.partition('id="lanes-data">')[2].partition("</script>")[0]
    assert 1000 < data.count(",") <= 3 * MOST_MARKS + 4 * 40 + 100
    assert "are drawn as one" in text
    assert len(text.encode()) < 4 << 20
