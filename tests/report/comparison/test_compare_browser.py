"""The page of a comparison in a real browser: what is linked, what fits, what reads without scripts."""

from __future__ import annotations

from math import atan2, degrees, hypot
from typing import TYPE_CHECKING

import pytest
from browsing import FAINT_BELOW, Opened, faults, faults_everywhere
from click.testing import CliRunner
from comparing import EVEN, compared, judged_page, layer, on_gpu, renamed, timed
from msgspec.structs import replace
from support import samples
from support.thorough import mostly_thorough

from rooflens.cli.group import main
from rooflens.model.compare.gate import Gate
from rooflens.report.comparison.page import render_comparison

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from rooflens.model.compare.gate import Compared

pytestmark = pytest.mark.browser

DOTS = ".plane [aria-roledescription=kernel]"
OPACITY = "marks => marks.map(mark => [mark.__data__.datum.k, Number(mark.getAttribute('opacity') ?? 1)])"


@pytest.fixture
def open_comparison(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Page]:
    """Open the page of a comparison, at a width and in a colour scheme, with a fragment in its address."""

    def open_(
        many: Sequence[Compared], width: int = 1440, scheme: str = "light", fragment: str = "", gate: Gate | None = None
    ) -> Page:
        file = tmp_path / "compare.html"
        file.write_text(judged_page(many, gate) if gate else render_comparison(many, None), encoding="utf-8")
        viewport = {"width": width, "height": 2160 if width > 2400 else 900}
        return open_file(file, fragment, viewport=viewport, color_scheme=scheme)

    return open_


def several() -> list[Compared]:
    """Make two programs, one of them on another GPU after."""
    kernels = samples.every_verdict()
    return [layer(), compared(kernels, [on_gpu(timed(a, 0.9), "NVIDIA H200") for a in kernels], program="decode")]


def hostile() -> Compared:
    """Make a comparison of names that are markup and one of thousands of characters."""
    kernels = samples.hostile()
    head = [timed(kernels[0], 1.5), renamed(timed(kernels[1], 0.5), samples.LONG_NAME)]
    return compared(kernels, head, EVEN, samples.HOSTILE_NAMES[1])


def lit(page: Page, marks: str) -> set[str]:
    """List the kernels whose marks are not faint."""
    Opened(page).settle()
    return {key for key, opacity in page.locator(marks).evaluate_all(OPACITY) if key and opacity > FAINT_BELOW}


def keys(page: Page) -> dict[str, str]:
    """Map the names of kernels to their keys."""
    pairs = page.evaluate("[...lens.items.values()].map(item => [item.name.split('<')[0], item.k])")
    return dict(pairs)


@pytest.mark.parametrize(
    ("width", "scheme"),
    mostly_thorough(
        [(390, "dark"), (800, "light"), (1440, "dark"), (3840, "light")], kept=[(390, "dark"), (3840, "light")]
    ),
)
def test_nothing_is_wider_than_the_window(open_comparison: Callable[..., Page], width: int, scheme: str) -> None:
    """At every width the document fits, with every table open and names of any length; nothing is fetched or logged."""
    page = open_comparison([*several(), hostile()], width, scheme, gate=Gate(0.05, per_kernel=True))
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in page.locator(".chart").all():
        assert box.evaluate("e => e.querySelector('svg').getBoundingClientRect().width <= e.clientWidth + 1")


def test_hostile_names_are_text_everywhere(open_comparison: Callable[..., Page]) -> None:
    """Names made of markup come out as text in charts and tables, and run nothing."""
    page = open_comparison([hostile()])
    assert page.locator("h1").inner_text() == samples.HOSTILE_NAMES[1]
    assert page.locator("img").count() == 0
    assert samples.HOSTILE_NAMES[0] in page.locator(".went .chart svg text").all_text_contents()
    assert page.locator(".kernels .name").filter(has_text=samples.HOSTILE_NAMES[0]).count() == 1


@pytest.mark.parametrize(
    "many",
    [
        [compared(samples.every_verdict()[:2], samples.every_verdict()[2:4])],
        [compared(samples.without_flops(), samples.without_flops())],
        [compared([samples.failed()], [samples.failed()])],
        [compared(samples.every_verdict()[5:], samples.every_verdict()[5:])],
    ],
)
def test_sparse_pages_work(open_comparison: Callable[..., Page], many: list[Compared]) -> None:
    """Pages without matches, FLOPs or kernels open at telephone width without an error."""
    page = open_comparison(many, 390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_click_isolates_a_kernel_everywhere(open_comparison: Callable[..., Page]) -> None:
    """A dot, a bar, a row and a line of the list each isolate their kernel in both charts and in the table."""
    page = open_comparison([layer()])
    key = keys(page)["softmax_warp_forward"]
    steps = {
        "dot": lambda: page.locator(DOTS).nth(_at(page, DOTS, key)),
        "bar": lambda: page.locator(BARS).nth(_at(page, BARS, key)),
        "row": lambda: page.locator(f".kernels tr[data-k={key}] .side"),
        "line": lambda: page.locator(f".changes li[data-k={key}] .lost"),
    }
    for name, find in steps.items():
        find().click(force=True)
        assert page.evaluate("lens.state.k") == key, name
        assert lit(page, DOTS) == lit(page, BARS) == {key}, name
        assert page.locator(".kernels tr[aria-current]").get_attribute("data-k") == key
        assert page.locator("#isolated").inner_text().startswith("Isolated:\nsoftmax_warp_forward")
        page.keyboard.press("Escape")
        assert len(lit(page, DOTS)) > 1, name
        assert page.locator("#isolated").is_hidden()


BARS = ".went [aria-roledescription='rect mark']"


def _at(page: Page, marks: str, key: str) -> int:
    found: int = page.locator(marks).evaluate_all(
        "(marks, key) => marks.findIndex(mark => mark.__data__.datum.k === key)", key
    )
    return found


def test_what_is_isolated_stays_in_sight(open_comparison: Callable[..., Page]) -> None:
    """The line that names the isolated kernel is in the window wherever the reader is, and lets it go."""
    page = open_comparison(several())
    row = page.locator("#p1 .kernels tr[data-k]").last
    row.scroll_into_view_if_needed()
    row.locator(".side").click()
    for place in ("document.documentElement.scrollHeight", "0", "2000"):
        page.evaluate(f"scrollTo({{top: {place}, behavior: 'instant'}})")
        box = page.locator("#isolated").bounding_box()
        assert box is not None
        assert 0 <= box["y"] <= 900 - box["height"]
    page.click("#show-all")
    assert page.evaluate("lens.state.k") == ""


def test_rows_are_walked_and_chosen_by_keyboard(open_comparison: Callable[..., Page]) -> None:
    """One row takes the focus; arrows move it, Enter isolates the row's kernel and shows all again."""
    page = open_comparison([layer()])
    rows = page.locator(".kernels tr[data-k]")
    assert page.locator(".kernels tr[tabindex='0']").count() == 1
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen = rows.nth(1).get_attribute("data-k")
    assert page.evaluate("lens.state.k") == chosen
    assert lit(page, DOTS) == {chosen}
    page.keyboard.press("Enter")
    assert page.evaluate("lens.state.k") == ""


def test_headers_sort_and_give_the_first_order_back(open_comparison: Callable[..., Page]) -> None:
    """A header sorts by its numbers, downwards first; a third press brings the largest changes back."""
    page = open_comparison([layer()])
    order = "rows => rows.map(row => row.dataset.k)"
    rows = page.locator(".kernels tbody").first.locator("tr[data-k]")
    before = rows.evaluate_all(order)
    header = page.locator(".kernels th[data-key=time] button")
    values = "rows => rows.map(row => Number(row.querySelector('[data-label=Time]').dataset.order))"
    for way in ("descending", "ascending"):
        header.click()
        assert page.locator("th[data-key=time]").get_attribute("aria-sort") == way
        assert rows.evaluate_all(values) == sorted(rows.evaluate_all(values), reverse=way == "descending")
    header.click()
    assert page.locator("th[data-key=time]").get_attribute("aria-sort") is None
    assert rows.evaluate_all(order) == before


def test_level_is_chosen_for_all_planes(open_comparison: Callable[..., Page]) -> None:
    """DRAM is shown first; another level moves the dots of every program, and the address keeps the choice."""
    page = open_comparison(several())
    level = "marks => [...new Set(marks.map(mark => mark.__data__.datum.level))]"
    assert page.locator(DOTS).evaluate_all(level) == ["dram"]
    assert page.locator(".plane:visible").count() == 2
    page.locator("#arrows-p0 input[value=l2]").check(force=True)
    Opened(page).settle()
    assert page.locator(DOTS).evaluate_all(level) == ["l2"]
    assert page.locator("#arrows-p1 input[value=l2]").is_checked()
    assert "level=l2" in Opened(page).fragment()


def test_a_shared_address_opens_what_it_shows(open_comparison: Callable[..., Page]) -> None:
    """A fragment with a kernel and a level opens the page on both."""
    page = open_comparison([layer()], fragment="#k=k1&level=l1")
    assert lit(page, DOTS) == {"k1"}
    assert page.locator(".levels input[value=l1]").is_checked()


@pytest.mark.parametrize("width", [390, 1440])
def test_arrows_point_from_hollow_to_filled(open_comparison: Callable[..., Page], width: int) -> None:
    """The tip of an arrow touches the filled dot and points at it, at every width."""
    softmax = samples.every_verdict()[0]
    levels = {**softmax.levels, "dram": replace(softmax.levels["dram"], intensity_flop_per_byte=12.0)}
    page = open_comparison([compared([softmax], [timed(replace(softmax, levels=levels), 0.5)])], width)
    centres = page.evaluate(
        """() => {
          const centre = box => [box.x + box.width / 2, box.y + box.height / 2];
          const marks = [...document.querySelectorAll('.plane svg g.mark-symbol path')];
          const dots = marks.filter(mark => mark.getAttribute('aria-roledescription') === 'kernel');
          const tip = marks.find(mark => mark.__data__.datum.turn !== undefined);
          const of = side => centre(dots.find(dot => dot.__data__.datum.side === side).getBoundingClientRect());
          const fill = side => dots.find(dot => dot.__data__.datum.side === side).getAttribute('fill-opacity');
          return [
            of('before'), of('after'), centre(tip.getBoundingClientRect()), tip.__data__.angle,
            [fill('before'), fill('after')].map(Number),
          ];
        }"""
    )
    (x0, y0), (x1, y1), (x, y), angle, filled = centres
    assert filled[0] == 0 < filled[1]
    way = degrees(atan2(y1 - y0, x1 - x0))
    assert angle == pytest.approx(way, abs=2)
    assert degrees(atan2(y1 - y, x1 - x)) == pytest.approx(way, abs=6)
    assert hypot(x1 - x, y1 - y) < 20 < hypot(x1 - x0, y1 - y0)


def test_theme_and_paper(open_comparison: Callable[..., Page]) -> None:
    """The switch changes page and charts; paper is light whatever the screen shows."""
    page = open_comparison([layer()])
    ink = "document.querySelector('.went svg text').getAttribute('fill')"
    light = page.evaluate(ink)
    page.check("#theme input[value=dark]", force=True)
    Opened(page).settle()
    assert page.evaluate(ink) != light
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    Opened(page).settle()
    assert page.evaluate(ink) == light
    assert page.locator("#theme").is_hidden()


def test_charts_zoom_and_export(open_comparison: Callable[..., Page]) -> None:
    """The plane zooms in and back, and both charts are saved as SVG and PNG without any request."""
    page = open_comparison([layer()])
    axis = ".plane svg .role-axis text"
    before = set(page.locator(axis).all_text_contents())
    page.click("[data-zoom=in]")
    Opened(page).settle()
    assert set(page.locator(axis).all_text_contents()) != before
    page.click("[data-zoom=reset]")
    Opened(page).settle()
    assert set(page.locator(axis).all_text_contents()) == before
    for section, name in (("went", "waterfall-p0"), ("roofline", "arrows-p0")):
        for kind in ("svg", "png"):
            with page.expect_download() as download:
                page.click(f".{section} [data-export={kind}]")
            assert download.value.suggested_filename == f"rooflens-{name}.{kind}"


@pytest.mark.thorough  # dark ground and telephones: the page of a report is held to them, and has the same styles
def test_page_has_no_serious_fault_anywhere(open_comparison: Callable[..., Page], axe: str) -> None:
    """Nor does it on dark ground and on a telephone."""
    page = open_comparison(several(), gate=Gate(0.05, per_kernel=True))
    Opened(page).choose(k="k1")
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    assert faults_everywhere(Opened(page), axe) == []


def test_page_has_no_serious_fault(open_comparison: Callable[..., Page], axe: str) -> None:
    """With a kernel isolated and every table open the page breaks no rule of accessibility."""
    page = open_comparison(several(), gate=Gate(0.05, per_kernel=True))
    Opened(page).choose(k="k1")
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    assert faults(page, axe) == []
    alike = page.evaluate("() => axe.run(document, { runOnly: ['landmark-unique'] }).then(all => all.violations)")
    assert [node["html"][:150] for rule in alike for node in rule["nodes"]] == [], (
        "a moderate fault: two programs with parts of one name"
    )


def test_a_ladder_of_versions_has_no_serious_fault(
    open_file: Callable[..., Page], fixtures: Path, tmp_path: Path, axe: str
) -> None:
    """The page of three sides, whose first part is their ladder, is as accessible as that of two."""
    before, after = (
        fixtures / "published" / f"GPU_workshop__{name}.ncu-rep" for name in ("MW_Baseline", "MW_DivToMult")
    )
    page_file = tmp_path / "ladder.html"
    result = CliRunner().invoke(main, ["compare", str(before), str(after), str(before), "-o", str(page_file)])
    assert result.exit_code == 0, result.output
    page = open_file(page_file, "", viewport={"width": 1440, "height": 900}, color_scheme="light")
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    assert faults_everywhere(Opened(page), axe) == []


def test_page_reads_without_scripts(browser: Browser, tmp_path: Path) -> None:
    """With scripts off, totals, list and table are still there, and no dead control is shown."""
    file = tmp_path / "compare.html"
    file.write_text(judged_page([layer()], Gate(0.05)), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator(".kernels tr[data-k]").count() == 7
    assert page.locator(".headline").inner_text() == "1.20x slower"
    assert page.locator(".scripted:visible").count() == 0
    assert page.locator(".went noscript p").is_visible()
    page.locator(".went summary").click()
    assert page.locator(".went .data table").is_visible()
    context.close()
