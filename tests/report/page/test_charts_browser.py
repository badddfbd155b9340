"""The charts of a page in a browser: bars of kernels without FLOPs, and their explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened
from support import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


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
