"""axe-core finds no serious accessibility fault in any theme, width and state of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import OPEN_ALL, Opened, faults, faults_everywhere, placed
from support import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_page_has_no_serious_fault(open_page: Callable[..., Page], axe: str) -> None:
    """The page as it opens, and with all cards and data tables open, breaks no rule."""
    page = open_page([*placed(), samples.explained(8), samples.failed(index=9)])
    assert faults(page, axe) == []
    page.evaluate(OPEN_ALL)
    assert page.locator(".card .answer:visible").count() == len(placed()) + 2
    assert faults_everywhere(Opened(page), axe) == []


def test_chosen_states_have_no_serious_fault(open_page: Callable[..., Page], axe: str) -> None:
    """Isolated, filtered and paged pages break no rule either."""
    opened = Opened(open_page(samples.many(90)))
    opened.choose(k="", q="no such kernel")
    assert faults(opened.page, axe) == []
    opened.choose(k="k7", q="", top=80, level="all", sort="name")
    assert faults(opened.page, axe) == []
    opened.page.emulate_media(color_scheme="dark")
    opened.settle()
    assert faults(opened.page, axe, only="color-contrast") == []
