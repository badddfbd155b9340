"""A card that says why, where and when, in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import choose_theme, placed
from support import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [390, 1440])
def test_the_card_fits_the_screen_and_opens_its_counters(open_page: Callable[..., Page], width: int) -> None:
    """Findings, hot lines and the drawing stay within the window; a click on the fold shows the counters."""
    page = open_page([*placed(), samples.explained(8)], width=width)
    page.locator("#kernels-table").get_by_role("link", name="attention_fwd_mma").click()
    card = page.locator("details.card[open]")
    counters = card.locator(".document > details")
    assert counters.locator("> h3").first.is_hidden()
    counters.locator("> summary").click()
    assert counters.locator("> h3").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for part in (".panel > ol", ".gutter", ".course svg[role=img]"):
        box = card.locator(part).first.bounding_box()
        assert box is not None
        assert box["width"] > width / 4
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_drawing_follows_the_theme(open_page: Callable[..., Page]) -> None:
    """Lines of the drawing take the colours of the chosen theme."""
    page = open_page([samples.explained()])
    stroke = "getComputedStyle(document.querySelector('.course path.compute')).stroke"
    choose_theme(page, "light")
    light = page.evaluate(stroke)
    choose_theme(page, "dark")
    assert page.evaluate(stroke) != light
