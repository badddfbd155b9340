"""The address contains the view: a shared link opens the same page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened, placed
from support import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

CHOICES = {
    "level": "l2",
    "verdicts": ["latency", "memory"],
    "device": "0",
    "process": "python 4711",
    "top": 95,
    "q": "float* &=#%",
    "sort": "-leader",
    "cols": "share,dram_per_byte",
}


def test_choices_come_back_from_the_address(open_page: Callable[..., Page]) -> None:
    """Every choice is written to the fragment, and a page opened with it shows the same."""
    launches = [*placed(), *samples.many(20)]
    first = Opened(open_page(launches))
    assert first.fragment() == ""
    first.choose(**CHOICES)
    fragment = first.fragment()
    assert fragment.startswith("#level=l2&")
    second = Opened(open_page(launches, fragment=fragment))
    assert {key: second.state(key) for key in CHOICES} == CHOICES
    assert second.fragment() == fragment
    assert second.page.locator("#search").input_value() == "float* &=#%"
    assert second.page.locator("#top").input_value() == "95"
    assert second.page.locator("[data-verdict=memory]").get_attribute("aria-pressed") == "true"
    assert second.page.locator("th[data-key=leader]").get_attribute("aria-sort") == "descending"
    assert second.page.locator("th[data-key=dram_per_byte]").is_visible()
    assert second.page.locator("th[data-key=share]").is_hidden()
    assert second.page.locator(".levels input[value=l2]").is_checked()


def test_isolation_comes_back_from_the_address(open_page: Callable[..., Page]) -> None:
    """A shared view isolates the same kernel in chart, bars and table."""
    opened = Opened(open_page(placed(), fragment="#k=k2&level=l1"))
    for marks in (opened.points(), opened.bars(), opened.rows()):
        assert [key for key, faint in marks.items() if not faint] == ["k2"]
    assert opened.state("level") == "l1"
    assert opened.card("k2").is_visible()


def test_filters_are_steps_that_back_undoes(same_page: Callable[..., Page]) -> None:
    """A chip is a step; what is typed in one go is one; a selection is none."""
    opened = Opened(same_page(placed()))
    length = opened.page.evaluate("history.length")
    opened.page.click("[data-verdict=memory]")
    opened.until("location.hash === '#verdicts=memory'")
    opened.page.locator("#search").press_sequentially("gat", delay=200)
    opened.until("location.hash.endsWith('q=gat')")
    assert opened.page.evaluate("history.length") == length + 2
    opened.page.go_back()
    opened.until("lens.state.q === '' && lens.state.verdicts.join() === 'memory'")
    opened.page.go_back()
    opened.until("lens.state.verdicts.length === 0")
    assert opened.page.locator("[data-verdict=memory]").get_attribute("aria-pressed") == "false"


def test_a_selection_is_no_step(same_page: Callable[..., Page]) -> None:
    """Kernels that are looked at one after the other do not fill the history."""
    opened = Opened(same_page(placed()))
    length = opened.page.evaluate("history.length")
    opened.choose(k="k2")
    opened.until("location.hash === '#k=k2'")
    assert opened.page.evaluate("history.length") == length


def test_a_changed_address_changes_the_view(open_page: Callable[..., Page]) -> None:
    """A fragment that was typed or reached by Back replaces the whole view."""
    opened = Opened(open_page(placed(), fragment="#device=1"))
    opened.page.evaluate("location.hash = '#q=gather'")
    opened.until("lens.state.q === 'gather' && lens.state.device === ''")
    opened.page.go_back()
    opened.until("lens.state.q === '' && lens.state.device === '1'")


def test_links_to_kernels_open_their_cards(open_page: Callable[..., Page]) -> None:
    """`#k2` alone isolates the kernel, opens its card below its row and shows both; other choices stay."""
    opened = Opened(open_page(placed(), fragment="#k2"))
    assert opened.state("k") == "k2"
    opened.page.wait_for_selector("#k2[open]")
    opened.until("Math.abs(document.getElementById('k2').getBoundingClientRect().top) < 300")
    assert opened.row("k2").locator("+ tr #k2").is_visible()
    opened.choose(device="0")
    opened.page.locator(".ranking a[href='#k4']").click()
    opened.page.wait_for_selector("#k4[open]")
    assert (opened.state("k"), opened.state("device")) == ("k4", "0")


@pytest.mark.parametrize(
    "fragment",
    ["#kernels", "#k=k99&top=-4&verdicts=,,&x=1", "#%E0%A4%A&q", "#=&=", "#top=NaN"],
)
def test_strange_addresses_are_harmless(open_page: Callable[..., Page], fragment: str) -> None:
    """Anchors, unknown keys and broken escapes open the whole page without an error."""
    opened = Opened(open_page(placed(), fragment=fragment))
    assert opened.state("k") == ""
    assert opened.state("top") in {1, 100}
    assert len(opened.rows()) >= 1
