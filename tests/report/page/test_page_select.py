"""Filters and isolation: chart, bars and table show the same launches, and isolate the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened, placed
from support import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ALL = {f"k{i}" for i in range(6)}
DRAWN = ALL - {"k5"}
"""The launch with an unknown verdict has no FLOPs and no bytes: it stands in bars and table only."""


def shown(opened: Opened) -> tuple[set[str], set[str], set[str]]:
    """Read which launches are in the roofline, the bars and the table."""
    return set(opened.points()), set(opened.bars()), set(opened.rows())


def test_everything_is_shown_at_first(same_page: Callable[..., Page]) -> None:
    """Without a choice nothing is left out or faint."""
    opened = Opened(same_page(placed()))
    assert shown(opened) == (DRAWN, ALL, ALL)
    assert not any((*opened.points().values(), *opened.bars().values(), *opened.rows().values()))
    assert opened.page.locator("#tally").inner_text() == ""
    assert opened.page.locator("#clear").is_hidden()
    assert opened.page.locator("#isolated").is_hidden()


def test_lists_filter_chart_bars_and_table(same_page: Callable[..., Page]) -> None:
    """Precision, NVTX range, process and device each leave the same launches in all three."""
    opened = Opened(same_page(placed()))
    for key, value, left in (
        ("precision", "tensor_bf16", {"k1"}),
        ("range", "train/step/forward", {"k0", "k3"}),
        ("process", "python 4712", {"k1", "k3", "k5"}),
        ("device", "0", {"k0", "k2", "k4"}),
    ):
        choices = opened.page.locator(f"[data-choice={key}]")
        if not choices.is_visible():
            opened.page.click(".more > summary")
        choices.select_option(value)
        assert shown(opened) == (left & DRAWN, left, left), key
        assert opened.page.locator("#tally").inner_text() == f"{len(left)} of 6 kernels"
        opened.page.click("#clear")
        assert shown(opened) == (DRAWN, ALL, ALL), key


def test_chips_filter_by_verdict(same_page: Callable[..., Page]) -> None:
    """Pressed chips are the verdicts shown; if none is pressed, all are."""
    opened = Opened(same_page(placed()))
    memory = opened.page.locator("[data-verdict=memory]")
    memory.click()
    assert memory.get_attribute("aria-pressed") == "true"
    assert shown(opened) == ({"k0"}, {"k0"}, {"k0"})
    opened.page.click("[data-verdict=unknown]")
    assert shown(opened) == ({"k0"}, {"k0", "k5"}, {"k0", "k5"})
    memory.click()
    opened.page.click("[data-verdict=unknown]")
    assert shown(opened) == (DRAWN, ALL, ALL)


def test_failed_launches_have_a_chip(open_page: Callable[..., Page]) -> None:
    """Launches that failed can be listed alone; no chart shows them."""
    opened = Opened(open_page([*placed(), samples.failed(index=9)]))
    opened.page.click("[data-verdict=failed]")
    assert shown(opened) == (set(), set(), {"k6"})


def test_slider_keeps_the_longest_kernels(open_page: Callable[..., Page]) -> None:
    """The slider leaves the launches that make up this share of the GPU time, always including the longest."""
    opened = Opened(open_page(samples.many(24)))
    times_ns = opened.page.evaluate("[...lens.items.values()].map(item => [item.k, item.ns])")
    falling = sorted(times_ns, key=lambda pair: -pair[1])
    total_ns = sum(ns for _, ns in falling)
    longest = {key for place, (key, _) in enumerate(falling) if sum(ns for _, ns in falling[:place]) < 0.7 * total_ns}
    slider = opened.page.locator("#top")
    slider.fill("70")
    assert 1 < len(longest) < 24
    assert shown(opened)[2] == longest
    assert opened.page.locator("#top-text").inner_text().replace("\u00a0", " ") == "70 %"
    slider.fill("1")
    assert shown(opened)[1:] == ({falling[0][0]}, {falling[0][0]})


def test_text_filter_holds_every_word(same_page: Callable[..., Page]) -> None:
    """A launch stays if its name, verdict or row contains every word, ignoring case."""
    opened = Opened(same_page(placed()))
    opened.page.fill("#search", "MEMORY softmax")
    assert shown(opened) == ({"k0"}, {"k0"}, {"k0"})
    opened.page.fill("#search", "nothing has this name")
    assert shown(opened) == (set(), set(), set())
    assert opened.page.locator("#kernels-table .dt-empty").inner_text() == "No kernel passes these filters."


def test_gpu_selector_shows_the_gpu_and_its_plane(open_page: Callable[..., Page]) -> None:
    """Choosing a GPU leaves its launches and shows its roofline; a launch on another GPU shows that one's plane."""
    t4 = samples.analysis(
        samples.Sample("copy", "memory", 90, "dram", {"dram": 1e7}, {"fp32": 1e7}, chip=samples.T4), index=6
    )
    opened = Opened(open_page([*placed(), t4]))
    assert opened.page.locator(".plane:visible").count() == 1
    at_once = (
        "lens.set({ gpu: 'Tesla T4' }), lens.settled().then(() => document.querySelector('.plane:not([hidden]) svg'))"
    )
    assert opened.page.evaluate_handle(at_once).as_element() is not None, "settled before the plane is drawn"
    opened.page.click("#clear")
    opened.page.select_option("[data-choice=gpu]", "Tesla T4")
    assert shown(opened) == ({"k6"}, {"k6"}, {"k6"})
    opened.page.click("#clear")
    assert set(opened.points()) == DRAWN
    opened.row("k6").click()
    assert set(opened.points()) == {"k6"}


def test_level_selector_moves_the_points(same_page: Callable[..., Page]) -> None:
    """Choosing a level shows the points of that level, and `all` those of every level."""
    opened = Opened(same_page(placed()))
    text = "marks => marks.map(mark => mark.getAttribute('aria-label'))"
    points = opened.page.locator("#roofline-0 [aria-roledescription=kernel]")
    assert all(", HBM2 " in label for label in points.evaluate_all(text))
    opened.page.check("input[value=l2]", force=True)
    opened.settle()
    assert all(", L2 " in label for label in points.evaluate_all(text))
    opened.page.check("input[value=all]", force=True)
    opened.settle()
    assert points.count() > 2 * len(DRAWN)


def test_selectors_that_part_nothing_are_left_out(open_page: Callable[..., Page]) -> None:
    """A list of one value is not shown, and a page of one launch has nothing to filter."""
    page = open_page(samples.every_verdict())
    assert page.locator("[data-choice]").evaluate_all("lists => lists.map(list => list.dataset.choice)") == [
        "precision"
    ]
    one = open_page(samples.every_verdict()[:1])
    assert one.locator("#search, #tally, .chip, [data-choice]").count() == 0
    assert one.locator(".levels input").count() == 5


def test_a_click_isolates_everywhere(same_page: Callable[..., Page]) -> None:
    """A click on a point or row makes all other kernels faint in all three; Escape ends it."""
    opened = Opened(same_page(placed()))
    for part in (opened.point, opened.row):
        part("k1").click(force=True)
        assert opened.state("k") == "k1", part
        for marks in (opened.points(), opened.bars(), opened.rows()):
            assert [key for key, faint in marks.items() if not faint] == ["k1"]
        assert opened.row("k1").get_attribute("aria-current") == "true"
        assert opened.page.locator("#isolated .name").inner_text().startswith("ampere_bf16")
        opened.page.keyboard.press("Escape")
        assert opened.state("k") == ""
        assert not any((*opened.points().values(), *opened.bars().values(), *opened.rows().values()))
        assert opened.page.locator("#isolated").is_hidden()


def test_a_ranked_line_isolates(same_page: Callable[..., Page]) -> None:
    """A click on a line of what to fix first isolates its kernel, and a second click undoes it."""
    opened = Opened(same_page(placed()))
    line = opened.page.locator(".ranking li").first
    key = line.get_attribute("data-k")
    line.locator(".move").click()
    assert opened.state("k") == key
    assert "current" in (line.get_attribute("class") or "")
    line.locator(".move").click()
    assert opened.state("k") == ""


def test_show_all_and_the_card_stand_beside_the_isolated_name(same_page: Callable[..., Page]) -> None:
    """The line of the isolated kernel links to its card, gives its verdict, and can end the isolation."""
    opened = Opened(same_page(placed()))
    opened.choose(k="k1")
    line = opened.page.locator("#isolated")
    assert "Compute-bound by tensor bf16" in line.inner_text()
    line.get_by_role("link").click()
    opened.page.wait_for_selector("#k1[open]")
    assert opened.state("k") == "k1"
    line.get_by_role("button").click()
    assert opened.state("k") == ""


def test_second_escape_lifts_the_filters(same_page: Callable[..., Page]) -> None:
    """Escape first ends the isolation, then the filters."""
    opened = Opened(same_page(placed()))
    opened.choose(device="1", k="k1")
    opened.page.keyboard.press("Escape")
    assert (opened.state("k"), opened.state("device")) == ("", "1")
    opened.page.keyboard.press("Escape")
    assert opened.state("device") == ""


def test_isolated_kernel_is_never_filtered_away(same_page: Callable[..., Page]) -> None:
    """Filters that hide the isolated kernel end the isolation; isolating a hidden kernel clears the filters."""
    opened = Opened(same_page(placed()))
    opened.choose(k="k1")
    opened.choose(verdicts=["memory"])
    assert opened.state("k") == ""
    opened.page.evaluate("location.hash = 'k1'")
    opened.until("lens.state.k === 'k1'")  # the page is notified of a new address asynchronously
    assert (opened.state("k"), opened.state("verdicts")) == ("k1", [])


def test_dragging_the_plane_isolates_nothing(open_page: Callable[..., Page]) -> None:
    """A drag that starts on a point moves the plane; only a press without movement is a choice."""
    opened = Opened(open_page(placed()))
    box = opened.point("k0").bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 60, box["y"] + 40, steps=5)
    opened.page.mouse.up()
    assert opened.state("k") == ""


def test_zoom_buttons_move_both_axes(open_page: Callable[..., Page]) -> None:
    """Zooming in shows a part of the plane, zooming out or Reset the whole."""
    opened = Opened(open_page(placed()))
    labels = opened.page.locator("#roofline-0 .role-axis-label text")

    def ticks() -> set[str]:
        return set(filter(None, labels.all_text_contents()))

    whole = ticks()
    place = opened.point("k0").bounding_box()
    opened.page.click("[data-zoom=in]")
    opened.settle()
    assert opened.point("k0").bounding_box() != place
    opened.page.click("[data-zoom=out]")
    opened.settle()
    assert ticks() == whole
    opened.page.click("[data-zoom=in]")
    opened.page.click("[data-zoom=reset]")
    opened.settle()
    assert ticks() == whole


def test_a_box_drawn_with_shift_is_zoomed_into_and_back_undoes_it(open_page: Callable[..., Page]) -> None:
    """A drag with shift held fills the plane with its box, at the proportions of the axes; Back shows all again."""
    opened = Opened(open_page(placed()))
    page = opened.page
    box = page.locator(".plane:visible .chart svg").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 3
    page.keyboard.down("Shift")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=4)
    page.mouse.move(x + 120, y + 60, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    opened.until("location.hash.startsWith('#zoom=')")
    low_x, high_x, low_y, high_y = map(float, opened.state("zoom").split(","))
    assert 0 < low_x < high_x
    assert 0 < low_y < high_y
    assert opened.state("k") == ""
    page.go_back()
    opened.until("lens.state.zoom === ''")
    assert opened.fragment() == ""


def test_a_plane_that_filters_empty_says_so(open_page: Callable[..., Page]) -> None:
    """Filters that leave kernels on another GPU show its plane; where they leave none the plane says that."""
    t4 = samples.analysis(
        samples.Sample("copy", "memory", 90, "dram", {"dram": 1e7}, {"fp32": 1e7}, chip=samples.T4), index=6
    )
    opened = Opened(open_page([*placed(), t4]))
    empty = opened.page.locator("[data-empty]:visible")
    assert empty.count() == 0
    opened.choose(q="copy tesla")
    assert set(opened.points()) == {"k6"}
    assert empty.count() == 0
    opened.choose(q="no such kernel")
    assert empty.inner_text() == "The filters leave no kernel on this GPU."
    opened.choose(q="")
    assert empty.count() == 0
    assert set(opened.points()) == DRAWN
