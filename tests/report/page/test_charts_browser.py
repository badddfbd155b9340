"""The charts of a page in a browser: boost roofs, bars of kernels without FLOPs, and their explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened
from support import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_boost_roofs_are_a_choice_that_can_be_shared(open_page: Callable[..., Page]) -> None:
    """The toggle is off at first, draws the roofs at boost clock, and is kept in the address."""
    slow = samples.Sample("k", "memory", 100, "dram", {"dram": 1e8}, {"fp32": 1e8}, chip=samples.T4)
    opened = Opened(open_page([samples.analysis(slow), samples.analysis(slow, 1)]))
    boost = opened.page.locator(".plane [data-boost]")
    words = opened.page.locator(".plane svg text", has_text="GHz boost")
    assert (boost.is_checked(), words.count()) == (False, 0)
    boost.check()
    assert opened.fragment() == "#boost=on"
    assert words.count() > 0
    opened.choose(boost="")
    assert (boost.is_checked(), words.count()) == (False, 0)
    assert "Profiled at 585" in opened.page.locator(".roofline figcaption").inner_text().replace("\u00a0", " ")
    assert open_page(samples.every_verdict()).locator("[data-boost]").count() == 0


def test_a_bar_isolates_its_kernel(open_page: Callable[..., Page]) -> None:
    """On a page without FLOPs a click on a level's bar isolates the kernel, and there is no level to choose."""
    opened = Opened(open_page(samples.without_flops()))
    assert opened.page.locator(".roofline .levels").count() == 0
    opened.point("k0").click()
    assert opened.state("k") == "k0"
    assert {key for key, faint in opened.points().items() if not faint} == {"k0"}
    reading = opened.page.locator("details.reading")
    assert reading.count() == 1
    reading.locator("summary").click()
    assert "Each bar is the share of its peak that a unit or a memory level reached" in reading.inner_text()
