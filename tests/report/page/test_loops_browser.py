"""Choosing a loop, and the visible part of the plane, in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened, faults
from msgspec.structs import replace
from support import samples
from support.machine_code import control, listed, machine_code

from rooflens.model.analyze import analyze
from rooflens.model.inside.look import look_inside
from rooflens.model.records import Analysis, Hotspot
from rooflens.report.words.labels import loop_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

MOVED = {"dram": 1e8, "l2": 4e8, "smem": 2e9}
CODE = listed(
    "MOV R1, RZ",
    ("LDG.E R2, [R8.64]", control(written=0)),
    ("FFMA R3, R2, R4, R3", control(waits=1)),
    "@P0 BRA ->1",
    ("LDS R2, [R8]", control(written=0)),
    ("FFMA R3, R2, R4, R3", control(waits=1)),
    "@P0 BRA ->4",
    "STG.E [R8.64], R3",
    "EXIT",
    lines=(1, 6, 7, 5, 10, 11, 9, 13, 14),
)
EMPTY = {"l2_bytes": None, "smem_bytes": None}
RUNS = [2, 8, 8, 8, 16, 16, 16, 2, 2]


def with_two_loops() -> Analysis:
    """Make a kernel with a loop that reads global memory, lines 5 to 7, and one that reads shared memory, 9 to 11."""
    base = samples.analysis(samples.Sample("gemm", "compute", 400, "fp32", MOVED, {"fp32": 2e9}), 0)
    at = {2: 60.0, 5: 35.0, 7: 5.0}
    code = machine_code(CODE, RUNS, samples=at, global_sectors={1: 32.0, 7: 8.0}, shared_wavefronts={4: 16.0})
    spots = tuple(Hotspot("line", "gemm.cu", line, measures={"samples": share}) for line, share in ((7, 60), (11, 35)))
    totals = {"samples": 100.0, "warp_inst": 78.0}
    kernel = replace(base.kernel, inside=look_inside(code), hotspots=spots, code_totals=totals)
    moved = {"gemm.cu:5": {"l2_bytes": 4e8}, "gemm.cu:9": {"smem_bytes": 2e9}}
    loops = tuple(
        replace(one, flop=1e9, flop_per_s=4e12, **(EMPTY | moved[loop_place(one)])) if one.loop.kind == "loop" else one
        for one in analyze(kernel).loops
    )
    return replace(base, kernel=kernel, loops=loops)


@pytest.fixture
def opened(open_page: Callable[..., Page]) -> Opened:
    """Open its page."""
    return Opened(open_page([with_two_loops()]))


def chosen(page: Page) -> list[str]:
    """List the places whose rows are highlighted."""
    return page.locator(".gutter tr.chosen td > code").all_text_contents()


def test_a_loop_is_chosen_with_its_lines_by_keyboard(opened: Opened, axe: str) -> None:
    """Enter chooses the loop and its lines, names it in the plane and writes the address; a second Enter undoes it."""
    page = opened.page
    button = page.locator(".gutter [data-loop]", has_text="gemm.cu:9")
    button.focus()
    page.keyboard.press("Enter")
    opened.settle()
    assert chosen(page) == ["gemm.cu:9", "gemm.cu:11"]
    assert button.get_attribute("aria-pressed") == "true"
    words = page.locator(".chart svg text").all_text_contents()
    assert any(text.startswith("gemm.cu:9 at SMEM") for text in words)
    assert "loop=" in opened.fragment()
    assert faults(page, axe) == []
    page.keyboard.press("Enter")
    opened.settle()
    assert chosen(page) == []
    assert "loop=" not in opened.fragment()


def test_an_address_with_a_loop_and_a_zoom_opens_the_same_view(open_page: Callable[..., Page]) -> None:
    """The linked loop and zoom are shown; an invalid zoom shows the initial view."""
    opened = Opened(open_page([with_two_loops()], fragment="#loop=0&zoom=1,50,1e12,3e13"))
    opened.settle()
    assert chosen(opened.page) == ["gemm.cu:5", "gemm.cu:7"]
    given = sight(opened.page)
    assert {"1", "2", "5", "10", "20"} <= given
    assert not {"0.5", "100", "500 G"} & given
    opened.choose(zoom="1,x,-3")
    first = sight(opened.page)
    assert first != given
    opened.choose(zoom="")
    assert sight(opened.page) == first


def sight(page: Page) -> set[str]:
    """Read the labels of both axes, which tell what is in sight."""
    return set(filter(None, page.locator(".plane svg .role-axis-label text").all_text_contents()))


def test_the_whole_plane_and_the_news_again(open_page: Callable[..., Page]) -> None:
    """Whole shows all points, roofs and ridges; pressed again it restores the view."""
    slow = samples.Sample("copy", "memory", 4e4, "dram", {"dram": 1e9, "l2": 4e9}, {"fp32": 1e8})
    opened = Opened(open_page([samples.analysis(slow, 0)]))
    page = opened.page
    opened.settle()
    first = sight(page)
    page.locator("[data-zoom=whole]").click()
    opened.settle()
    opened.until("lens.state.zoom !== ''")
    opened.settle()
    assert sight(page) != first
    low, high = page.evaluate("lens.state.zoom.split(',').map(Number).slice(2)")
    assert low < 1e10
    assert high > 19.5e12
    page.locator("[data-zoom=whole]").click()
    opened.settle()
    assert sight(page) == first
    page.locator("[data-zoom=picked]").click()
    opened.settle()
    assert sight(page) != first
