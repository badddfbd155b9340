"""The list in a browser: rows open their cards in place, columns can be chosen, and the filtered list exported."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest
from browsing import Opened, apart, faults, placed
from msgspec.structs import replace
from support import samples
from support.rendered import rendered

from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.page.kernels import columns, filled, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from rooflens.model.records import Analysis

pytestmark = pytest.mark.browser

FORMULA = '=HYPERLINK("http://x","y"), +1'
"""A kernel name that a spreadsheet would run, with what CSV must quote."""


def several() -> list[Analysis]:
    """Make kernels of one launch, and one of three launches: two look alike, and the third waits on another grid."""
    base = samples.analysis(samples.Sample(FORMULA, "memory", 900, "dram", {"dram": 9e8}, {"fp32": 9e8}))
    other = samples.analysis(samples.Sample(FORMULA, "latency", 300, None, {"dram": 1e8}, {"fp32": 1e8}), index=8)
    kernels = [replace(base.kernel, index=i, device=0) for i in (6, 7)]
    other = replace(other, kernel=replace(other.kernel, grid=(64, 1, 1), device=1))
    return [*placed(), *(replace(base, kernel=kernel) for kernel in kernels), other]


def opens(opened: Opened, key: str) -> bool:
    """Tell whether the row of a launch says that it is open, and its kernel's card stands below it."""
    row = opened.row(key)
    said = row.get_by_role("link").get_attribute("aria-expanded") == "true"
    below = row.locator("+ tr.opened .card").first
    assert said == (below.count() == 1 and below.is_visible())
    return said


def test_rows_open_their_cards_in_place(open_page: Callable[..., Page], axe: str) -> None:
    """A click opens the card below its row, also several in any order; a second click, or Enter, closes it."""
    opened = Opened(open_page(several()))
    assert opened.page.locator(".card:visible").count() == 0
    for key in ("k1", "k2"):
        opened.row(key).locator("td:visible").nth(1).click()
        assert opened.state("k") == key
    opened.choose(sort="name")
    assert [opens(opened, f"k{i}") for i in range(4)] == [False, True, True, False]
    assert opened.card("k1").locator(".answer").is_visible()
    assert opened.card("k1").locator("> summary").is_hidden()
    assert faults(opened.page, axe) == []
    opened.row("k2").get_by_role("link").focus()
    opened.page.keyboard.press("Enter")
    assert not opens(opened, "k2")
    assert opened.state("k") == ""
    opened.page.keyboard.press(" ")
    assert opens(opened, "k2")
    opened.page.locator(".ranking a[href='#k1']").first.press("Enter")
    opened.until("document.activeElement.closest('tr')?.dataset.k === 'k1'")
    assert opens(opened, "k1")


def test_launches_open_their_own_cards(open_page: Callable[..., Page]) -> None:
    """Below a kernel of several launches all are listed; a different one opens its card in place."""
    opened = Opened(open_page(several(), fragment="#k8"))
    row = opened.row("k8")
    assert row.get_attribute("data-k") == "k6"
    lines = opened.page.locator(".launches tr[data-k]:visible")
    assert lines.evaluate_all("rows => rows.map(row => row.dataset.k)") == ["k6", "k7", "k8"]
    assert opened.card("k6").is_visible()
    assert lines.nth(2).locator("+ tr #k8 .answer").is_visible()
    assert lines.locator("a").count() == 1
    lines.nth(2).get_by_role("link").press("Enter")
    assert opened.card("k8").is_hidden()
    assert lines.nth(2).get_by_role("link").get_attribute("aria-expanded") == "false"
    opened.choose(device="1", k="")
    assert row.locator("td:visible").nth(1).inner_text() == "1 of 3"
    assert lines.evaluate_all("rows => rows.map(row => row.dataset.k)") == ["k8"]


@pytest.mark.parametrize("width", [390, 1440])
def test_columns_come_and_go(open_page: Callable[..., Page], axe: str, width: int) -> None:
    """Columns are chosen by keyboard and kept in the address, and an open card keeps the width of the box."""
    opened = Opened(open_page(several(), width=width))
    page = opened.page
    opened.row("k1").get_by_role("link").click()
    page.locator("#columns > summary").press("Enter")
    page.locator("[data-column=dram_per_byte]").press(" ")
    page.locator("[data-column=share]").press(" ")
    assert opened.state("cols") == "share,dram_per_byte"
    assert faults(page, axe) == []
    sheet = page.locator(".sheet").bounding_box()
    assert sheet is not None
    assert 0 <= sheet["x"] <= sheet["x"] + sheet["width"] <= width
    page.keyboard.press("Escape")
    assert page.locator(".sheet").is_hidden()
    assert opened.state("k") == "k1"
    assert page.locator("th[data-key=dram_per_byte]").is_visible()
    assert page.locator("th[data-key=share]").is_hidden()
    box, card = page.locator("#kernels .scroll").first.bounding_box(), opened.card("k1").bounding_box()
    assert box is not None
    assert card is not None
    assert card["width"] <= box["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("[data-column=dram_per_byte]").evaluate("box => box.click()")
    page.locator("[data-column=share]").evaluate("box => box.click()")
    assert opened.state("cols") == ""


def test_csv_holds_what_the_filters_leave(open_page: Callable[..., Page], tmp_path: Path) -> None:
    """Every column with its raw number, a line per remaining kernel, and no name that a spreadsheet would run."""
    opened = Opened(open_page(several()))
    opened.choose(device="0", sort="time")
    with opened.page.expect_download() as download:
        opened.page.click("#csv")
    assert download.value.suggested_filename == "attention-kernels.csv"
    file = tmp_path / "list.csv"
    download.value.save_as(file)
    text = file.read_bytes().decode()
    assert text.count("\r\n") == text.count("\n")
    lines = list(csv.DictReader(text.splitlines(keepends=True)))
    content = build_content([samples.report(several())], "attention", default_thresholds())
    offered = columns(gpus=1, reports=1)
    rows = [written(group, "attention", offered) for group in content.listed]
    named = {group.name: at for at, group in enumerate(content.listed)}
    left = [line["Kernel"].removeprefix("'") for line in lines]
    assert [line["Kernel"] for line in lines if line["Kernel"].startswith("'")] == [f"'{FORMULA}"]
    times_ns = [content.listed[named[name]].duration_ns for name in left]
    assert times_ns == sorted(times_ns, key=lambda ns: ns or 0.0)
    assert len(left) == 4
    for column, cells in filled(offered, rows):
        for name, line in zip(left, lines, strict=True):
            cell = cells[named[name]]
            if column.key != "name":
                assert line[column.export] == cell.raw, column.key
            if column.also and column.key != "launches":
                assert line[column.also] == (cell.also or cell.raw), column.key
    ours = lines[left.index(FORMULA)]
    assert (ours["Launches"], ours["Launches left by the filters"]) == ("3", "2")
    assert float(ours["GPU time of all launches (ns)"]) == 2.1e6
    assert (ours["Grid, least (blocks)"], ours["Grid, most (blocks)"]) == ("64", "1024")


def test_paper_has_the_list_and_then_the_cards(open_page: Callable[..., Page]) -> None:
    """Printed, ranked and opened cards follow the list, and none is in it; afterwards everything is restored."""
    opened = Opened(open_page(apart(20)))
    short = list(opened.rows())[-1]
    opened.row(short).get_by_role("link").click()
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    ranked = opened.page.locator(".ranking li:not(.brief) a.name:visible").evaluate_all(
        "links => links.map(link => link.hash.slice(1))"
    )
    assert len(ranked) == 5
    shown = opened.page.locator("#cards details.card[open]").evaluate_all("cards => cards.map(card => card.id)")
    assert set(shown) == {*ranked, short}
    assert opened.page.locator("#kernels-table .card").count() == 0
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opens(opened, short)
    assert opened.page.locator(".card:visible").count() == 1


def test_a_single_kernel_is_its_card(open_page: Callable[..., Page]) -> None:
    """A page of one kernel has its card open and no list; its other launches open below."""
    page = open_page(several()[-3:])
    assert page.locator("#kernels-table").count() == 0
    assert page.locator("#k0 .facts").is_visible()
    page.locator(".launches").get_by_role("link").click()
    assert page.locator(".launches #k2 .answer").is_visible()


def test_without_scripts_the_cards_stand_below_the_list(browser: Browser, tmp_path: Path) -> None:
    """Without scripts the list is a plain table with its default columns, and each card below can be opened."""
    file = tmp_path / "page.html"
    file.write_text(rendered([samples.report(several())], "attention"), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#kernels-table th:visible").all_inner_texts()[:4] == ["Kernel", "Launches", "Time", "Share"]
    assert page.locator("#kernels-table > tbody > tr").count() == 7
    assert page.locator("details.card > summary:visible").count() == 8
    page.locator("details.card > summary").first.click()
    assert page.locator("details.card .answer").first.is_visible()
    context.close()
