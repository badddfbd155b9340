"""The look of the page: themes, wide screens and paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened, choose_theme, placed
from support import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
INK = "document.querySelector('.roofline .role-axis-title text').getAttribute('fill')"


def look(page: Page) -> tuple[str, str]:
    """Read the colours of the page and of the words in a chart."""
    Opened(page).settle()
    return page.evaluate(BACKGROUND), page.evaluate(INK)


def test_theme_switch_changes_page_and_charts(open_page: Callable[..., Page]) -> None:
    """Light, dark and the system's theme each change the colours of the page and its charts."""
    page = open_page(placed(), scheme="light")
    light = look(page)
    choose_theme(page, "dark")
    dark = look(page)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    choose_theme(page, "")
    assert look(page) == light
    page.emulate_media(color_scheme="dark")
    Opened(page).until(f"{INK} === '{dark[1]}'")  # the page is notified asynchronously
    assert look(page) == dark
    choose_theme(page, "light")
    assert look(page) == light


def test_choices_survive_a_change_of_theme(open_page: Callable[..., Page]) -> None:
    """A chart redrawn in other colours shows the same choices."""
    opened = Opened(open_page(placed()))
    opened.choose(k="k1", device="1")
    choose_theme(opened.page, "dark")
    assert set(opened.points()) == {"k1", "k3"}
    assert [key for key, faint in opened.bars().items() if not faint] == ["k1"]


def test_planes_out_of_sight_follow_the_theme(open_page: Callable[..., Page]) -> None:
    """The roofline of another GPU appears in the theme that was chosen while it was hidden."""
    t4 = samples.Sample("copy", "memory", 90, "dram", {"dram": 1e7}, {"fp32": 1e7}, chip=samples.T4)
    opened = Opened(open_page([*placed(), samples.analysis(t4, index=6)]))
    opened.choose(gpu="Tesla T4")
    opened.choose(gpu="")
    choose_theme(opened.page, "dark")
    opened.choose(gpu="Tesla T4")
    opened.until("document.querySelector('#roofline-1 .chart').dataset.drawn === 'dark'")


def test_charts_follow_the_width_of_the_window(open_page: Callable[..., Page]) -> None:
    """Charts fill their space at every width of the window, without being rebuilt."""
    page = open_page(placed())
    for width in (900, 1300, 390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        Opened(page).settle()
        for box in page.locator(".chart:visible").all():
            room, drawn = box.evaluate(
                "e => [e.parentElement.clientWidth, e.querySelector('svg').getBoundingClientRect().width]"
            )
            assert abs(room - drawn) <= 2


def test_wide_screens_are_used(open_page: Callable[..., Page]) -> None:
    """On a 4K screen the content grows to 1600 px and stays in the middle."""
    page = open_page(placed(), width=3840)
    box = page.locator("#kernels").bounding_box()
    assert box is not None
    assert box["width"] == 1600
    assert abs(box["x"] + box["width"] / 2 - page.evaluate("document.documentElement.clientWidth") / 2) <= 1


def test_paper_is_light_and_whole(open_page: Callable[..., Page]) -> None:
    """Printed from the dark theme, charts are redrawn light without controls, and afterwards everything is restored."""
    opened = Opened(open_page(samples.many(120), scheme="dark"))
    dark = look(opened.page)
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert opened.page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
    assert opened.page.locator("#selectors").is_hidden()
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert look(opened.page)[1] != dark[1]
    assert len(opened.rows()) == 120
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    opened.page.emulate_media(media="screen", color_scheme="dark")
    assert look(opened.page) == dark
    assert len(opened.rows()) == 50


def test_page_prints_to_pdf(open_page: Callable[..., Page], tmp_path: Path) -> None:
    """The PDF has pages, and kernel names in it are text."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    file = tmp_path / "page.pdf"
    open_page(placed(), scheme="dark").pdf(path=str(file), format="A4")
    pages = [page.extract_text() for page in pypdf.PdfReader(file).pages]
    assert len(pages) > 1
    words = " ".join(" ".join(pages).split())
    for name in ("gather_rows", "mystery_kernel", "What to fix first", "Kernels", "Method"):
        assert name in words
