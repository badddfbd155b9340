"""The page in a real browser: nothing fetched, nothing broken, nothing cut off, hostile names as text."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support import samples
from untimed import without_durations

from rooflens.report.page import render_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from rooflens.model.records import Analysis

pytestmark = pytest.mark.browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--no-sandbox",  # containers run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a Chromium; skip the tests where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("ROOFLENS_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    if not found:
        pytest.skip("no Chromium on this machine: install one or set ROOFLENS_CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a page of analyses; at the end, hold it to no console message, no error and no request."""
    troubles: list[str] = []

    def open_(analyses: Sequence[Analysis], width: int = 1440, scheme: str = "light", title: str = "attention") -> Page:
        file = tmp_path / "page.html"
        file.write_text(render_page([samples.run()], analyses, title=title), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append("a dialog opened"), dialog.dismiss()))
        page.on("request", lambda request: None if request.url == file.as_uri() else troubles.append(request.url))
        page.goto(file.as_uri())
        if any(analysis.kernel.duration_ns for analysis in analyses):
            page.wait_for_selector(".time .chart svg")
            page.wait_for_function("document.querySelector('.chart').style.width === ''")
        return page

    yield open_
    for context in browser.contexts:
        context.close()
    assert troubles == []


def widest(page: Page) -> int:
    """Measure how wide the document lays out."""
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width


def hostile_with_long_name() -> list[Analysis]:
    """Make the hostile names and one of thousands of characters."""
    analysis = samples.every_verdict()[2]
    return [*samples.hostile(), replace(analysis, kernel=replace(analysis.kernel, name=samples.LONG_NAME, index=2))]


def test_hostile_names_are_text_everywhere(open_page: Callable[..., Page]) -> None:
    """Names made of markup come out as text in chart, tooltip, table and card, and run nothing."""
    page = open_page(hostile_with_long_name(), title=samples.HOSTILE_NAMES[1])
    chart_texts = page.locator(".time .chart svg text").all_text_contents()
    for name in samples.HOSTILE_NAMES:
        assert name in chart_texts
        assert page.locator("#kernels-table td.name a").filter(has_text=name).count() == 1
        assert page.locator(".card > summary .name").filter(has_text=name).count() == 1
    page.locator("#roofline-0 .chart g.mark-symbol.role-mark path[aria-label*='alert']").first.hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert samples.HOSTILE_NAMES[0] in page.locator("#vg-tooltip-element").inner_text()
    assert page.locator("h1").inner_text() == samples.HOSTILE_NAMES[1]
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (800, "light"), (1440, "dark")])
def test_nothing_is_wider_than_the_window(open_page: Callable[..., Page], width: int, scheme: str) -> None:
    """At every width the document fits, with every card and data table open and names of any length."""
    page = open_page([*samples.every_verdict(), *hostile_with_long_name()], width=width, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    assert widest(page) <= width
    for box in page.locator(".chart").all():
        assert box.evaluate("e => e.querySelector('svg').getBoundingClientRect().width <= e.clientWidth + 1")


@pytest.mark.parametrize(
    "analyses",
    [
        samples.every_verdict()[5:],
        samples.without_flops(),
        without_durations(),
        [samples.every_verdict()[0], *without_durations()[1:]],
        [samples.failed()],
        [],
    ],
)
def test_sparse_pages_work(open_page: Callable[..., Page], analyses: list[Analysis]) -> None:
    """Pages of unknown, FLOP-less, failed or no kernels open at telephone width without an error."""
    assert widest(open_page(analyses, width=390)) <= 390


def test_level_selector_moves_the_points(open_page: Callable[..., Page]) -> None:
    """Choosing a level shows the points of that level, and `all` those of every level."""
    page = open_page(samples.every_verdict())
    shown = page.locator("#roofline-0 .chart g.mark-symbol.role-mark path[aria-label*='Level: ']")
    assert all("Level: HBM" in label for label in labels(page, shown.count()))
    page.check("input[value=l2]", force=True)
    page.wait_for_function("document.querySelector('#roofline-0 [aria-label*=\"Level: L2\"]')")
    assert all("Level: L2" in label for label in labels(page, shown.count()))
    page.check("input[value=all]", force=True)
    page.wait_for_function("document.querySelector('#roofline-0 [aria-label*=\"Level: SMEM\"]')")
    assert {"Level: HBM", "Level: L1"} <= {part for label in labels(page, shown.count()) for part in label.split("; ")}


def labels(page: Page, count: int) -> list[str]:
    """Read the labels of the points in the plane."""
    points = page.locator("#roofline-0 .chart g.mark-symbol.role-mark path[aria-label*='Level: ']")
    return [points.nth(i).get_attribute("aria-label") or "" for i in range(count)]


def test_a_click_tells_the_verdict_and_leads_to_the_card(open_page: Callable[..., Page]) -> None:
    """Selecting a point names its kernel below the chart; the link there opens its card."""
    page = open_page(samples.every_verdict())
    page.locator("#roofline-0 [aria-label*='bound: compute'][aria-label*='Level: ']").first.click(force=True)
    line = page.locator("#roofline-0 .picked")
    assert "Compute-bound at the bf16 tensor pipe" in line.inner_text()
    line.get_by_role("link").click()
    page.wait_for_selector("#k1[open]")


def test_table_sorts_and_filters_by_keyboard(open_page: Callable[..., Page]) -> None:
    """Headers are buttons that sort, and the search leaves the rows that hold every word."""
    page = open_page(samples.every_verdict())
    page.locator("th[data-key=headroom] button").focus()
    page.keyboard.press("Enter")
    assert page.locator("th[data-key=headroom]").get_attribute("aria-sort") == "descending"
    assert "fill_zero" in page.locator("#kernels-table tbody tr").first.inner_text()
    page.fill("#search", "memory softmax")
    assert page.locator("#kernels-table tbody tr:visible").count() == 1
    assert page.locator("#shown").inner_text() == "1 of 6 launches"


@pytest.mark.parametrize("key", ["time", "share", "leader", "ai", "flops", "headroom", "loss"])
def test_missing_values_sort_last_both_ways(open_page: Callable[..., Page], key: str) -> None:
    """What is not known stands below what is known, upwards and downwards."""
    page = open_page([samples.failed(index=9), *samples.every_verdict(), without_durations()[0]])
    header = page.locator(f"th[data-key={key}]")
    column = header.evaluate("e => e.cellIndex")
    for way in ("ascending", "descending"):
        while header.get_attribute("aria-sort") != way:
            header.locator("button").click()
        cells = page.locator("#kernels-table tbody tr").evaluate_all(
            f"rows => rows.map(r => r.cells[{column}].dataset.v)"
        )
        known = [float(cell) for cell in cells if cell]
        assert known == sorted(known, reverse=way == "descending")
        assert all(cells[: len(known)])
        assert len(known) < len(cells)


def test_data_tables_can_be_read_whole(open_page: Callable[..., Page]) -> None:
    """At 1440 px the table behind each chart fits its box: nothing is cut off at the right."""
    page = open_page([*samples.every_verdict(), *hostile_with_long_name()])
    page.evaluate("document.querySelectorAll('.charts details').forEach(details => { details.open = true })")
    for box in page.locator(".charts .scroll").all():
        assert box.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_telephones_reach_every_column(open_page: Callable[..., Page]) -> None:
    """At 390 px the kernels table scrolls inside its box, says so, and keeps the names in sight."""
    page = open_page(samples.every_verdict(), width=390)
    assert page.locator(".sideways").is_visible()
    for key in ("leader", "headroom", "loss"):
        header = page.locator(f"th[data-key={key}]")
        header.evaluate("e => e.scrollIntoView({behavior: 'instant', block: 'nearest', inline: 'nearest'})")
        edges = header.evaluate("e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right]")
        name = page.locator("#kernels-table tbody td.name").first.bounding_box()
        assert name is not None
        assert name["x"] >= 0
        assert name["x"] + name["width"] - 1 <= edges[0]
        assert edges[1] <= 390
    assert widest(page) <= 390


def test_gap_label_says_what_it_counts(open_page: Callable[..., Page]) -> None:
    """Pointing at the factor over a point tells that it counts FLOP/s to the roofline."""
    page = open_page(samples.every_verdict())
    page.locator("#roofline-0 .chart text[aria-label*='more FLOP/s']").first.hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "3.8x more FLOP/s to the roofline" in page.locator("#vg-tooltip-element").inner_text()


def test_theme_button_changes_page_and_charts(open_page: Callable[..., Page]) -> None:
    """The button switches both the page and the colours drawn in the charts."""
    page = open_page(samples.every_verdict())
    background = "getComputedStyle(document.body).backgroundColor"
    text = "document.querySelector('.time svg text').getAttribute('fill')"
    before = (page.evaluate(background), page.evaluate(text))
    page.click("#theme")
    page.wait_for_function(f"{text} !== {before[1]!r}")
    assert page.evaluate(background) != before[0]


def test_charts_export(open_page: Callable[..., Page]) -> None:
    """Each chart can be saved as SVG and PNG without any request."""
    page = open_page(samples.every_verdict())
    for kind in ("svg", "png"):
        with page.expect_download() as download:
            page.click(f".roofline [data-export={kind}]")
        assert download.value.suggested_filename == f"rooflens-roofline-0.{kind}"


def test_page_reads_without_scripts(browser: Browser, tmp_path: Path) -> None:
    """With scripts off, table, cards and data tables are still there, and no dead control is shown."""
    file = tmp_path / "page.html"
    file.write_text(render_page([samples.run()], samples.every_verdict(), title="attention"), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#kernels-table tbody tr").count() == 6
    assert page.locator(".scripted:visible").count() == 0
    assert page.locator("noscript p").first.is_visible()
    context.close()
