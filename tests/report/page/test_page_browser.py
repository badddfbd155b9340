"""The page in a browser: nothing fetched, broken or cut off, and hostile names as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import OPEN_ALL
from msgspec.structs import replace
from support import samples
from untimed import without_durations

from rooflens.model.keys import short_names
from rooflens.report.content import MAX_LAUNCHES
from rooflens.report.page.page import render_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from rooflens.model.records import Analysis

pytestmark = pytest.mark.browser


def widest(page: Page) -> int:
    """Measure the layout width of the document."""
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width


def hostile_with_long_name() -> list[Analysis]:
    """Make the hostile names and one of thousands of characters."""
    analysis = samples.every_verdict()[2]
    return [*samples.hostile(), replace(analysis, kernel=replace(analysis.kernel, name=samples.LONG_NAME, index=2))]


def test_hostile_names_are_text_everywhere(open_page: Callable[..., Page]) -> None:
    """Names made of markup are text in chart, tooltip, table and card, and run nothing."""
    launches = hostile_with_long_name()
    short = short_names(launch.kernel.name for launch in launches)
    page = open_page(launches, title=samples.HOSTILE_NAMES[1])
    named = [text.strip() for text in page.locator(".ranking .name").all_text_contents()]
    links = page.locator("#kernels-table td.name a").evaluate_all("links => links.map(link => [link.title, link.text])")
    for name in samples.HOSTILE_NAMES:
        assert short[name] in named
        assert links.count([name, short[name]]) == 1
    page.locator("#roofline-0 .chart g.mark-symbol.role-mark path[aria-label*='onerror']").first.hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert samples.HOSTILE_NAMES[1] in page.locator("#vg-tooltip-element").inner_text()
    assert samples.HOSTILE_NAMES[1] in page.locator(".brand .facts").inner_text()
    page.evaluate(OPEN_ALL)
    for name in samples.HOSTILE_NAMES:
        assert page.locator(".card .full-name").filter(has_text=name).count() == 1
    assert page.locator("img").count() == 0


def test_a_page_that_folds_launches_counts_what_is_left(open_page: Callable[..., Page]) -> None:
    """If one launch represents its kernel, the list counts all of them, and filters leave none or all."""
    many = [
        replace(one, kernel=replace(one.kernel, name=f"k{i % 6}", function_name=f"k{i % 6}"))
        for i, one in enumerate(samples.many(MAX_LAUNCHES + 2))
    ]
    page = open_page(many)
    assert page.locator("#kernels-table > tbody > tr[data-k]").count() == 6
    page.evaluate("lens.set({ q: 'k3' })")
    page.evaluate("lens.settled()")
    (left,) = page.locator("#kernels-table > tbody > tr[data-k]").all_inner_texts()
    assert "67" in left.split()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(390, "dark"), (800, "light"), (1440, "dark"), (3840, "light")],
)
def test_nothing_is_wider_than_the_window(open_page: Callable[..., Page], width: int, scheme: str) -> None:
    """At every width the document fits, with all cards and data tables open and names of any length."""
    page = open_page([*samples.every_verdict(), *hostile_with_long_name()], width=width, scheme=scheme)
    page.evaluate(OPEN_ALL)
    assert page.locator(".card .answer:visible").count() == 9
    assert widest(page) <= width
    for box in page.locator(".chart").all():
        assert box.evaluate("e => e.querySelector('svg').getBoundingClientRect().width <= e.clientWidth + 1")


@pytest.mark.parametrize("width", [390, 1440])
def test_a_long_gpu_name_widens_nothing(open_page: Callable[..., Page], width: int) -> None:
    """A GPU whose name is one word of thousands of characters is wrapped everywhere on the opened page."""
    named = [replace(a, kernel=replace(a.kernel, gpu="G" * 20_000)) for a in samples.every_verdict()[:2]]
    page = open_page(named, width=width)
    page.evaluate(OPEN_ALL)
    assert widest(page) <= width


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


def test_data_tables_can_be_read_whole(open_page: Callable[..., Page]) -> None:
    """At 1440 px the table behind each chart fits its box."""
    page = open_page([*samples.every_verdict(), *hostile_with_long_name()])
    page.evaluate("document.querySelectorAll('.charts details').forEach(details => { details.open = true })")
    for box in page.locator(".charts .scroll").all():
        assert box.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_charts_export(open_page: Callable[..., Page]) -> None:
    """Each chart can be saved as SVG and PNG without any request."""
    page = open_page(samples.every_verdict())
    for kind in ("svg", "png"):
        with page.expect_download() as download:
            page.click(f".roofline [data-export={kind}]")
        assert download.value.suggested_filename == f"attention-roofline.{kind}"


def test_page_reads_without_scripts(browser: Browser, tmp_path: Path) -> None:
    """Without scripts, table, cards and data tables are shown, and no control that would do nothing."""
    file = tmp_path / "page.html"
    file.write_text(render_page([samples.report(samples.every_verdict())], title="attention"), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#kernels-table tbody tr").count() == 6
    assert page.locator(".scripted:visible").count() == 0
    assert page.locator("noscript p").first.is_visible()
    context.close()
