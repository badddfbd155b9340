"""The list of kernels: sorted by its headers, used by keyboard, and paged if long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened, placed
from support import samples
from untimed import without_durations

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_headers_sort_by_keyboard(same_page: Callable[..., Page]) -> None:
    """Every header has a button for Enter and the space bar; one column at a time shows its direction of sorting."""
    opened = Opened(same_page(placed()))
    header = opened.page.locator("th[data-key=leader]")
    assert opened.page.locator("th[data-key=time]").get_attribute("aria-sort") == "descending"
    header.get_by_role("button").focus()
    opened.page.keyboard.press("Enter")
    opened.until("lens.state.sort === '-leader'")
    assert header.get_attribute("aria-sort") == "descending"
    assert next(iter(opened.rows())) == "k0"
    opened.page.keyboard.press(" ")
    opened.until("lens.state.sort === 'leader'")
    assert header.get_attribute("aria-sort") == "ascending"
    assert next(iter(opened.rows())) == "k3"
    assert opened.page.locator("th[aria-sort]").count() == 1
    assert opened.page.locator("#kernels-table th:visible").count() == 8
    assert opened.page.locator("#kernels-table th:visible [role=button]").count() == 8


def test_missing_values_sort_last_both_ways(open_page: Callable[..., Page]) -> None:
    """Unknown values are below known ones in both directions."""
    opened = Opened(open_page([samples.failed(index=9), *samples.every_verdict(), without_durations()[0]]))
    keys = (
        "time",
        "share",
        "leader",
        "dram_per_byte",
        "work_amount_per_s",
        "verdict_limit_floor_ns",
        "verdict_limit_factor",
    )
    for sort in (f"{way}{key}" for key in keys for way in ("", "-")):
        opened.choose(sort=sort)
        column = opened.page.locator(f"th[data-key={sort.removeprefix('-')}]").evaluate("head => head.cellIndex")
        cells = opened.page.locator("#kernels-table tbody tr").evaluate_all(
            f"rows => rows.map(row => row.cells[{column}].dataset.order)"
        )
        known = [float(cell) for cell in cells if cell]
        assert known == sorted(known, reverse=sort.startswith("-")), sort
        assert all(cells[: len(known)])
        assert len(known) < len(cells)


def test_rows_are_the_keyboards_way_to_every_point(same_page: Callable[..., Page]) -> None:
    """One row can be reached by Tab; arrows move between the rows; Enter opens and isolates, as the hint says."""
    opened = Opened(same_page(placed()))
    keyboard = opened.page.keyboard
    assert opened.page.locator("#kernels-table tbody a[tabindex='0']").count() == 1
    assert "Enter opens a kernel's card" in (opened.page.locator("#rows-hint").text_content() or "")
    opened.choose(sort="name", device="0")
    opened.page.locator("#kernels-table tbody a[tabindex='0']").focus()
    keyboard.press("Home")
    order = list(opened.rows())
    assert focused(opened) == order[0]
    keyboard.press("ArrowDown")
    assert focused(opened) == order[1]
    keyboard.press("End")
    keyboard.press("ArrowDown")
    assert focused(opened) == order[-1]
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    assert opened.state("k") == order[-2]
    assert [key for key, faint in opened.points().items() if not faint] == [order[-2]]
    assert focused(opened) == order[-2]
    keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.closest('.card').id") == order[-2]
    keyboard.press("Escape")
    assert opened.state("k") == ""


def focused(opened: Opened) -> str:
    """Return which row has the focus."""
    return str(opened.page.evaluate("document.activeElement.closest('tr')?.dataset.k || ''"))


def test_tab_reaches_every_control(open_page: Callable[..., Page]) -> None:
    """Tab goes from the skip link through every control to the table, and the focus is visible everywhere."""
    page = open_page(placed())
    stops, bare = [], []
    describe = (
        "() => { const at = document.activeElement;"
        " const ring = at.matches('.segments input') ? at.nextElementSibling : at;"
        " const { choice, verdict, zoom, export: kind } = at.dataset;"
        " return [at.id || choice || verdict || zoom || kind || at.closest('tr')?.dataset.k || at.name ||"
        " at.textContent.trim(),"
        " getComputedStyle(ring).outlineStyle] }"
    )
    for _ in range(80):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(describe)
        stops.append(name)
        if outline == "none":
            bare.append(name)
        if name == "k0":
            break
    assert bare == []
    assert stops[0] == "Skip to the kernels table"
    wanted = [
        "share",
        "help",
        "range",
        "process",
        "level",
        "memory",
        "precision",
        "search",
        "in",
        "reset",
        "svg",
        "png",
        "k0",
    ]
    places = [stops.index(name) for name in wanted]
    assert places == sorted(places)


def test_long_tables_are_paged_and_bring_what_is_isolated(open_page: Callable[..., Page]) -> None:
    """More than sixty rows have pages; isolating a launch turns to its page without scrolling the window."""
    opened = Opened(open_page(samples.many(120)))
    first = list(opened.rows())
    assert len(first) == 50
    opened.page.locator(".dt-paging").get_by_role("link", name="Next").click()
    other = list(opened.rows())
    assert not set(first) & set(other)
    before = opened.page.evaluate("scrollY")
    opened.choose(k=first[3])
    assert opened.page.evaluate("scrollY") == before
    assert list(opened.rows()) == first
    assert opened.row(first[3]).get_attribute("aria-current") == "true"


def test_short_tables_have_no_pages(open_page: Callable[..., Page]) -> None:
    """Up to sixty rows have no pages."""
    opened = Opened(open_page(samples.many(60)))
    assert len(opened.rows()) == 60
    assert opened.page.locator(".dt-paging").count() == 0


def test_telephones_reach_every_column(open_page: Callable[..., Page]) -> None:
    """At 390 px the table scrolls inside its box, says so, and keeps the names visible."""
    page = open_page(samples.every_verdict(), width=390)
    assert page.locator("#kernels .sideways").is_visible()
    for key in ("leader", "roof", "verdict_limit_factor"):
        header = page.locator(f"th[data-key={key}]")
        header.evaluate("e => e.scrollIntoView({behavior: 'instant', block: 'nearest', inline: 'nearest'})")
        edges = header.evaluate("e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right]")
        name = page.locator("#kernels-table tbody td.name").first.bounding_box()
        assert name is not None
        assert name["x"] >= 0
        assert name["x"] + name["width"] - 1 <= edges[0]
        assert edges[1] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_selectors_fold_on_telephones(open_page: Callable[..., Page]) -> None:
    """At 390 px the selectors open on demand, or at once if a shared view uses them."""
    page = open_page(placed(), width=390)
    assert page.locator("#search").is_hidden()
    page.click("#fold")
    assert page.locator("#search").is_visible()
    assert open_page(placed(), width=390, fragment="#device=1").locator("#search").is_visible()
