"""The first screen in a browser: it follows the filters, fits the window, and its bar stays visible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import Opened, apart, faults, placed
from msgspec.structs import replace
from support import samples
from support.rendered import rendered

from rooflens.errors import InputError
from rooflens.model.records import AnalyzedReport, Gain, Move
from rooflens.report.overview.opportunities import LISTED
from rooflens.report.page.page import render_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from rooflens.model.records import Analysis

pytestmark = pytest.mark.browser

ANSWERS = "document.querySelector('.answers').innerText"
NUMBERS = """[...document.querySelectorAll('.plane:not([hidden]) svg text[font-size="13px"]')]
    .filter(text => text.getAttribute('stroke-width') === null).map(text => text.textContent)
    .filter(text => /^[0-9]$/.test(text)).sort()"""
"""Numbers of the ranking on the roofline."""
BAR_END = "document.getElementById('bar').getBoundingClientRect().bottom"


def ranked(page: Page) -> list[tuple[str, str]]:
    """Return number and kernel of each visible entry of the ranking."""
    lines = page.locator(".ranking li:visible")
    read = "lines => lines.map(line => [line.querySelector('.rank').textContent, line.dataset.k])"
    return [(rank, key) for rank, key in lines.evaluate_all(read)]


def plain(text: str) -> str:
    """Replace special spaces by plain ones."""
    return text.replace("\u00a0", " ")


def faster(analysis: Analysis, times: float) -> dict[str, float]:
    """Give a kernel a fraction of its time."""
    return {"duration_ns": (analysis.kernel.duration_ns or 0.0) / times}


def two_reports(*sources: str) -> list[AnalyzedReport]:
    """Make two reports of the same kernels, the later one twice as fast."""
    found = []
    for version, (digest, source) in enumerate(zip("ab", sources, strict=True), start=1):
        run = samples.run(digest=digest * 64, source=source, created_unix_s=1_795_219_200 + version)
        kernels = [
            replace(a, kernel=replace(a.kernel, digest=run.digest, counters=a.kernel.counters | faster(a, version)))
            for a in samples.every_verdict()
        ]
        found.append(AnalyzedReport(run, tuple(kernels)))
    return found


def test_the_answers_follow_the_filters(open_page: Callable[..., Page]) -> None:
    """Rows, bars and counts are of the remaining launches; without filters, the original content returns."""
    opened = Opened(open_page([*placed(), samples.failed(index=9)]))
    page = opened.page
    before, first = page.evaluate(ANSWERS), ranked(page)
    page.click("[data-verdict=memory]")
    page.click("[data-verdict=latency]")
    assert {key for _, key in ranked(page)} <= {"k0", "k2"}
    assert [rank for rank, _ in ranked(page)] == ["1", "2"][: len(ranked(page))]
    ns = page.evaluate("['k0', 'k2'].map(key => lens.items.get(key).ns)")
    widths = page.locator(".ranking li:visible .meter > span").evaluate_all(
        "bars => bars.map(bar => parseFloat(bar.style.width))"
    )
    assert sorted(widths) == pytest.approx(sorted(100 * part / max(ns) for part in ns), rel=1e-3)
    page.select_option("[data-choice=device]", "0")
    assert page.locator("[data-verdict=compute] small").inner_text() == "0"
    assert page.locator("[data-verdict=memory] small").inner_text() == "1"
    page.click("#clear")
    page.click("[data-verdict=failed]")
    assert ranked(page) == []
    assert page.locator("#ranking-none").is_visible()
    page.click("#clear")
    assert (page.evaluate(ANSWERS), ranked(page)) == (before, first)


def test_the_next_kernel_moves_up(open_page: Callable[..., Page]) -> None:
    """Filtered kernels make room for the next in the ranking, which is renumbered, on the roofline too."""
    opened = Opened(open_page(apart(16)))
    page = opened.page
    first = ranked(page)
    assert [rank for rank, _ in first] == [str(place + 1) for place in range(LISTED)]
    drawn = {key for rank, key in first if rank in page.evaluate(NUMBERS)}
    assert len(drawn) > 1
    assert plain(page.locator("#ranking-more").inner_text()).startswith("4 more kernels, ")
    gone = page.evaluate("key => lens.items.get(key).bound", first[0][1])
    page.evaluate("bound => lens.set({verdicts: ['memory', 'compute', 'latency', 'overhead', 'balanced', 'unknown']"
                  ".filter(one => one !== bound)})", gone)  # fmt: skip
    after = ranked(page)
    assert [rank for rank, _ in after] == [str(place + 1) for place in range(LISTED)]
    assert first[0] not in after
    assert {key for _, key in after} - {key for _, key in first}
    left = page.evaluate("[...lens.items.values()].filter(item => !lens.hidden()[item.k]).length")
    assert plain(page.locator("#ranking-more").inner_text()).startswith(f"{left - LISTED} more kernel")
    opened.settle()
    new = {key: rank for rank, key in after}
    assert page.evaluate(NUMBERS) == sorted(new[key] for key in drawn if key in new) != []
    again = Opened(open_page(apart(16), fragment=opened.fragment()))
    assert ranked(again.page) == after


def test_a_part_of_a_kernel_speaks_for_itself(open_page: Callable[..., Page]) -> None:
    """For a kernel whose launches have several verdicts, the entry is about the remaining ones and their time."""
    one, two, other, *_ = samples.every_verdict()
    twin = replace(two, kernel=replace(two.kernel, name=one.kernel.name))
    page = open_page([one, twin, other])
    page.click("[data-verdict=compute]")
    (entry,) = page.locator(".ranking li:visible").all()
    assert entry.get_attribute("data-part") == "compute"
    assert "2 launches" not in plain(entry.inner_text())
    assert "compute" in entry.locator(".why").inner_text()
    href = entry.locator("a.name").get_attribute("href")
    assert page.evaluate("key => lens.items.get(key).bound", (href or "").lstrip("#")) == "compute"


@pytest.mark.parametrize(("proven", "how"), [(False, "about"), (True, "at best")])
def test_a_gain_is_that_of_the_launches_that_are_left(
    open_page: Callable[..., Page], *, proven: bool, how: str
) -> None:
    """Of 300 us in two ranges a filter leaves 100: its gain leads from there to 25, in the same words."""
    base = samples.every_verdict()[0]
    moves = (Move("take a narrower type", "precision", gain=Gain(4.0, proven=proven, changes="types")),)
    base = replace(base, verdict=replace(base.verdict, moves=moves))
    launches = [
        replace(base, kernel=replace(base.kernel, nvtx_range=name, index=index, counters={"duration_ns": time_ns}))
        for index, (name, time_ns) in enumerate((("first", 1e5), ("second", 2e5)))
    ]
    page = open_page([*launches, *samples.every_verdict()[1:3]])
    entry = page.locator(".ranking li[data-gain='4.0']").first
    assert plain(entry.locator(".gain").inner_text()) == f"300 \u2192 {how} 75.0 \u00b5s in 2 launches"
    page.evaluate("lens.set({range: 'first'})")
    assert plain(entry.locator(".gain").inner_text()) == f"100 \u2192 {how} 25.0 \u00b5s"
    assert "changes the types" in plain(entry.locator(".why").inner_text())


def test_reports_are_filtered_by_their_label(open_file: Callable[..., Page], tmp_path: Path, axe: str) -> None:
    """A page of several reports lists them; bar, ranking and roofline show only the chosen report."""
    file = tmp_path / "reports.html"
    file.write_text(rendered(two_reports("x/silu.ncu-rep", "y/tanh.ncu-rep"), "reports"), encoding="utf-8")
    page = open_file(file, viewport={"width": 1440, "height": 900})
    opened = Opened(page)
    labels = page.locator("[data-choice=report] option").all_inner_texts()
    assert labels == ["all", "silu", "tanh"]
    items = page.evaluate("[...lens.items.values()].map(item => [item.k, item.r])")
    later = {key for key, label in items if label == labels[2]}
    assert not {key for _, key in ranked(page)} <= later, "an unlike kernel of the first report is ranked too"
    page.select_option("[data-choice=report]", labels[1])
    assert {key for _, key in ranked(page)}
    assert not {key for _, key in ranked(page)} & later
    assert page.locator("#ranking-earlier").is_hidden()
    page.select_option("[data-choice=report]", labels[2])
    assert set(opened.points()) < later
    assert {key for _, key in ranked(page)} <= later
    assert opened.fragment() == f"#report={labels[2]}"
    page.click("#clear")
    page.select_option("[data-choice=report]", labels[2])
    assert faults(page, axe) == []


def test_versions_begin_with_their_ladder(open_file: Callable[..., Page], tmp_path: Path, axe: str) -> None:
    """Versions of one program are in order with the fastest marked, without a ranking, and filters still work."""
    file = tmp_path / "versions.html"
    file.write_text(rendered(two_reports("silu-v1.ncu-rep", "silu-v2.ncu-rep"), "versions"), encoding="utf-8")
    for width in (390, 1440):
        page = open_file(file, viewport={"width": width, "height": 900})
        opened = Opened(page)
        assert page.locator(".versions li .name").all_inner_texts() == ["v1", "v2"]
        assert page.locator(".versions .fastest .name").inner_text() == "v2"
        assert page.locator("ol.ranking, .map").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        opened.choose(report="v2")
        later = page.evaluate("[...lens.items.values()].filter(item => item.r === 'v2').map(item => item.k)")
        assert set(opened.points()) < set(later)
        assert faults(page, axe) == []


def test_the_level_is_one_control_for_every_roofline(open_page: Callable[..., Page]) -> None:
    """The chosen level applies to the rooflines of all GPUs; a level that a GPU lacks cannot be chosen there."""
    bare = samples.Sample("copy", "memory", 90, "dram", {"dram": 1e7}, {"fp32": 1e7}, chip=samples.T4)
    opened = Opened(open_page([*placed(), samples.analysis(bare, index=6)]))
    page = opened.page
    assert page.locator(".levels").count() == 1
    assert page.locator(".levels input[value=dram]").is_checked()
    page.check(".levels input[value=l2]", force=True)
    opened.choose(gpu="Tesla T4")
    assert page.locator(".levels input[value=dram]").is_checked()
    assert page.locator(".levels input[value=l2]").is_disabled()
    opened.choose(gpu="")
    assert page.locator(".levels input[value=l2]").is_checked()


def test_the_first_screen_holds_ranking_and_roofline(same_page: Callable[..., Page]) -> None:
    """At 1440 by 900 the first entries and the whole plane are visible; below 1,200 px one follows the other."""
    page = same_page(placed())
    chart = page.locator(".plane:not([hidden]) .chart svg .role-axis-title").first.bounding_box()
    second = page.locator(".ranking li:visible").nth(1).bounding_box()
    assert chart is not None
    assert second is not None
    assert chart["y"] + chart["height"] <= 900
    assert second["y"] + second["height"] <= 900
    page.set_viewport_size({"width": 1200, "height": 900})
    answers, roofline = (page.locator(part).bounding_box() for part in (".answers", ".first > .roofline"))
    assert answers is not None
    assert roofline is not None
    assert roofline["x"] >= answers["x"] + answers["width"]
    page.set_viewport_size({"width": 1199, "height": 900})
    parts = [".map", ".ranking", ".first > .roofline", "#kernels"]
    tops = [page.locator(part).evaluate("part => part.getBoundingClientRect().top") for part in parts]
    assert tops == sorted(tops)


def test_the_bar_stays_and_covers_no_anchor(same_page: Callable[..., Page]) -> None:
    """Filters stay visible while scrolling; links to parts stop below them, and unfold what is folded."""
    page = same_page(placed())
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    page.locator(".contents a", has_text="Method").click()
    Opened(page).until("document.querySelector('#method details').open")
    assert page.evaluate("document.getElementById('bar').getBoundingClientRect().top") == 0
    for anchor in ("kernels", "method", "first"):
        page.evaluate("anchor => { location.hash = ''; location.hash = anchor }", anchor)
        top = page.locator(f"#{anchor}").evaluate("part => part.getBoundingClientRect().top")
        assert top >= page.evaluate(BAR_END) or page.evaluate("scrollY + innerHeight >= document.body.scrollHeight - 1")


def test_more_filters_open_and_close_by_keyboard(open_page: Callable[..., Page], axe: str) -> None:
    """Filters without room open under a button that counts those set; Escape closes it and returns to the button."""
    kernels = [
        replace(
            a,
            kernel=replace(
                a.kernel,
                gpu=(a.kernel.gpu, "Tesla T4")[i % 2],
                nvtx_range=f"range {i}",
                process=f"python {i % 2}",
                device=i % 2,
            ),
        )
        for i, a in enumerate(samples.many(24))
    ]
    page = open_page(kernels)
    more = page.locator(".more > summary")
    more.focus()
    page.keyboard.press("Enter")
    assert page.locator(".panel-of-more").is_visible()
    assert faults(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 1440
    page.locator("#top").fill("60")
    page.keyboard.press("Escape")
    assert page.locator(".panel-of-more").is_hidden()
    assert page.evaluate("document.activeElement.matches('.more > summary')")
    assert page.locator("#more-set").inner_text() == "(1)"
    more.click()
    page.mouse.click(700, 850)
    assert page.locator(".panel-of-more").is_hidden()


def test_filters_fold_on_a_telephone(open_page: Callable[..., Page], axe: str) -> None:
    """At 390 px one button opens all filters; the bar scrolls, and nothing is wider than the screen."""
    page = open_page(placed(), width=390)
    fields = page.locator("#search, #whence, .chips")
    assert not any(field.is_visible() for field in fields.all())
    page.click("#fold")
    assert all(field.is_visible() for field in fields.all())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("document.getElementById('bar').getBoundingClientRect().height <= innerHeight")
    assert faults(page, axe) == []


def test_unreadable_reports_fit_a_telephone(open_file: Callable[..., Page], tmp_path: Path) -> None:
    """The paths and errors of unreadable reports are wrapped where needed."""
    unread = [("/work/" + "a_long_folder_name" * 20 + ".ncu-rep", InputError("not a report: " + "x" * 200))]
    file = tmp_path / "unread.html"
    html = render_page([samples.report(samples.every_verdict()[:2])], title="t" * 300, unread=unread)
    file.write_text(html, encoding="utf-8")
    page = open_file(file, viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_click_in_the_map_filters_everything(same_page: Callable[..., Page]) -> None:
    """A kernel in the map filters list, roofline and table, a range filters its kernels; a second click undoes it."""
    opened = Opened(same_page(placed()))
    page = opened.page
    every = set(opened.rows())
    page.locator(".map .cell[data-k=k0]").click()
    assert (set(opened.bars()), set(opened.rows())) == ({"k0"}, {"k0"})
    assert page.locator(".map .cell[data-k=k1]").evaluate("cell => cell.classList.contains('faint')")
    page.locator(".map .cell[data-k=k0]").click()
    assert set(opened.rows()) == every
    page.locator(".map .range", has_text="train/step/forward").click()
    assert opened.state("range") == "train/step/forward"
    assert set(opened.bars()) == set(opened.rows()) < every


def test_share_saves_a_picture_named_after_the_report(same_page: Callable[..., Page], tmp_path: Path) -> None:
    """One button saves headline and chart as PNG, larger than the chart alone, and confirms it."""
    page = same_page(placed())
    with page.expect_download() as download:
        page.click("#share")
    assert download.value.suggested_filename == "attention-rooflens.png"
    file = tmp_path / "shared.png"
    download.value.save_as(file)
    wide, high = (int.from_bytes(file.read_bytes()[at : at + 4], "big") for at in (16, 20))
    chart = page.locator(".plane:not([hidden]) .chart svg").bounding_box()
    assert chart is not None
    assert (wide, high) > (2 * chart["width"], 2 * chart["height"])
    Opened(page).until("document.getElementById('shared').textContent.startsWith('Picture saved')")


def test_one_kernel_answers_at_once(open_page: Callable[..., Page], axe: str) -> None:
    """A page of one kernel has its sentence beside its roofline, a level to choose and nothing to filter."""
    opened = Opened(open_page(samples.every_verdict()[:1]))
    page = opened.page
    sentence, plane = (page.locator(part).bounding_box() for part in ("#verdict-title", ".plane .chart svg"))
    assert sentence is not None
    assert plane is not None
    assert sentence["x"] + sentence["width"] <= plane["x"]
    page.check(".levels input[value=l1]", force=True)
    opened.settle()
    assert ", L1 " in (opened.point("k0").get_attribute("aria-label") or "")
    assert faults(page, axe) == []


def test_paper_has_the_method_and_no_controls(open_page: Callable[..., Page]) -> None:
    """Folded text is printed; the bar is not."""
    page = open_page(placed())
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#bar").is_hidden()
    assert page.locator("#about").is_hidden()
    assert page.locator("#method dl").first.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#method details.part").get_attribute("open") is None


def test_the_headline_is_that_of_what_the_filters_leave(same_page: Callable[..., Page]) -> None:
    """It names the first kernel of the filtered list, says if there is none, and comes back with all kernels."""
    opened = Opened(same_page(placed()))
    title = "document.querySelector('h1').textContent"
    whole = opened.page.evaluate(title)
    opened.choose(verdicts=["latency"])
    first = opened.page.locator(".ranking li:visible .name").first.text_content()
    assert first is not None
    assert opened.page.evaluate(title).startswith((first, f"Done: {first}", f"At its roof: {first}"))
    assert opened.page.evaluate(title) != whole
    opened.choose(q="nothing is called that")
    assert opened.page.evaluate(title) == "No kernel passes these filters"
    opened.page.evaluate("lens.clear()")
    opened.settle()
    assert opened.page.evaluate(title) == whole


def test_a_click_on_the_map_says_how_to_lift_it(same_page: Callable[..., Page]) -> None:
    """Below the map stands what is shown alone, and how all kernels come back."""
    opened = Opened(same_page(placed()))
    note = opened.page.locator("#map-note")
    assert note.is_hidden()
    cell = opened.page.locator(".map .cell[data-k]").first
    cell.click()
    opened.settle()
    assert "click it again, or press Esc, to show all" in (note.text_content() or "")
    cell.click()
    opened.settle()
    assert note.is_hidden()


def test_commands_can_be_copied(open_page: Callable[..., Page]) -> None:
    """Each command has a button beside it, which says what became of it."""
    collect = Move("collect what this report lacks: `rooflens profile --kernel k -- ./app`", "collect")
    one = samples.every_verdict()[0]
    asking = replace(one, verdict=replace(one.verdict, bound="unknown", moves=(collect,)))
    page = open_page([asking, *samples.every_verdict()[1:]])
    button = page.locator("code:text-matches('^rooflens ') + button.copy:visible").first
    button.click()
    page.wait_for_timeout(200)
    assert button.text_content() in {"Copied", "Selected"}
