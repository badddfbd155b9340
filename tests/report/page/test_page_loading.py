"""What a browser builds before drawing: cards and columns wait as text, the list waits for the first chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened, faults
from msgspec.structs import replace
from support import samples
from support.rendered import rendered

from rooflens.report.words.verdict import verdict_sentence

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from rooflens.model.records import Analysis

pytestmark = pytest.mark.browser

ROW_ELEMENTS = 60
"""More than a row of the list takes with its cells, its lines behind the charts and its marks; a card has hundreds."""

FIRST_DRAWN = """new MutationObserver((changes, observer) => {
  if (!document.querySelector(".chart svg path")) return;
  window.listed = document.querySelector("#kernels-table") !== null;
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });"""
"""Notes whether the list was there when the first chart was drawn."""


def pairs() -> list[Analysis]:
    """Make six kernels of two launches each, the second with another grid."""
    first = samples.every_verdict()
    again = [replace(a, kernel=replace(a.kernel, index=7770 + i, grid=(7, 1, 1))) for i, a in enumerate(first)]
    return [*first, *again]


def elements(page: Page, selector: str = "*") -> int:
    """Count the elements of an open page."""
    return page.locator(selector).count()


def test_cards_and_waiting_columns_are_no_elements_until_they_are_asked_for(open_page: Callable[..., Page]) -> None:
    """Forty more kernels with cards add only their rows; opening one builds its card and no other."""
    fewer = elements(open_page(samples.many(20)))
    opened = Opened(open_page(samples.many(60)))
    assert elements(opened.page) - fewer < 40 * ROW_ELEMENTS
    assert elements(opened.page, ".card, .launches") == 0
    assert elements(opened.page, "#kernels-table td[hidden]") == 0
    before = elements(opened.page)
    key = next(iter(opened.rows()))
    opened.row(key).get_by_role("link").click()
    assert elements(opened.page, ".card") == 1
    assert elements(opened.page) - before > ROW_ELEMENTS


def test_the_first_chart_is_drawn_before_the_list_is_read(browser: Browser, tmp_path: Path) -> None:
    """The roofline does not wait for the list, however long; afterwards both are shown."""
    file = tmp_path / "page.html"
    file.write_text(rendered([samples.report(samples.many(60))], "attention"), encoding="utf-8")
    page = browser.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.add_init_script(FIRST_DRAWN)
    page.goto(file.as_uri())
    page.evaluate("lens.settled()")
    assert page.evaluate("window.listed") is False
    assert elements(page, "#kernels-table tbody tr") == 60
    page.close()
    assert troubles == []


def test_text_is_looked_for_in_what_waits(open_page: Callable[..., Page]) -> None:
    """Words in hidden columns and in launches below a row are found, from the address and by hand."""
    opened = Opened(open_page(pairs(), fragment="#q=7772"))
    (found,) = opened.rows()
    opened.choose(q="")
    assert len(opened.rows()) == 6
    opened.choose(q="result 7772")
    assert list(opened.rows()) == [found]
    opened.choose(q="flop/s")
    assert 0 < len(opened.rows()) < 6
    assert opened.page.locator(".card, .launches").count() == 0


def test_columns_that_waited_leave_open_cards_and_filters_as_they_are(open_page: Callable[..., Page]) -> None:
    """Sorting by a hidden column builds it; opened cards stay below their rows, and filters stay set."""
    opened = Opened(open_page(samples.many(80), fragment="#verdicts=memory"))
    key = next(iter(opened.rows()))
    opened.row(key).get_by_role("link").click()
    left = set(opened.rows())
    opened.choose(sort="-verdict_limit_floor_ns", cols="verdict_limit_floor_ns")
    assert set(opened.rows()) == left
    assert opened.page.locator("th[data-key=verdict_limit_floor_ns]").is_visible()
    assert opened.page.locator("th[data-key=verdict_limit_floor_ns]").get_attribute("aria-sort") == "descending"
    assert opened.row(key).locator("+ tr.opened .card .answer").is_visible()
    opened.page.locator("th[data-key=time]").get_by_role("button").click()
    opened.until("lens.state.sort === ''")
    assert opened.page.locator("th[aria-sort]").count() == 1


def test_paper_media_make_the_cards(open_page: Callable[..., Page], axe: str) -> None:
    """If a browser shows the page as paper without printing, cards are built too, and removed when it ends."""
    opened = Opened(open_page(pairs()))
    opened.page.emulate_media(media="print")
    opened.until("document.querySelectorAll('#cards .card').length === 12")
    assert opened.page.locator("#cards .card").first.is_visible()
    assert faults(opened.page, axe, only="duplicate-id-aria") == []
    opened.page.emulate_media(media="screen")
    opened.until("document.querySelector('#cards').hidden")


def test_an_isolated_kernel_says_its_sentence_without_opening(open_page: Callable[..., Page]) -> None:
    """The bar of the isolated kernel has its verdict, even if its card was never opened."""
    opened = Opened(open_page(samples.every_verdict()))
    opened.choose(k="k1")
    sentence = opened.page.locator("#isolated .sentence-line").inner_text()
    assert sentence == verdict_sentence(samples.every_verdict()[1]).replace("`", "") or len(sentence.split()) > 3
    assert opened.page.locator(".card:visible").count() == 0
