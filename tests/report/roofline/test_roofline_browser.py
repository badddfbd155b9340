"""The roofline in a browser: zoom and pan, effects of signals, and text without overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from planes import make_spec, spec_of, version
from support import samples

from rooflens.report.html.embed import content_policy, json_text, vega_bundle
from rooflens.report.html.theme import LIGHT, vega_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

DRAW = """
const data = (id) => JSON.parse(document.getElementById(id).textContent);
const options = { ast: true, renderer: "svg", actions: false, config: data("theme") };
window.drawn = vegaEmbed("#chart", data("spec"), options).then((result) => (window.view = result.view));
"""
"""Draws a specification as the page does: interpreted, for its content policy forbids code made of strings."""

DRAWN = "drawn.then(() => view.runAsync()).then(() => true)"

DOMAIN = "axis => view.scale(`plane_${axis}`).domain()"
BOXES = """marks => marks.map(mark => {
  const box = mark.getBoundingClientRect();
  return [mark.textContent, box.left, box.top, box.right, box.bottom];
})"""
CENTRE = (400, 300)


@pytest.fixture
def draw(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Page]:
    """Open a page that holds one chart."""

    def draw_(spec: Mapping[str, Any], width: int = 730, height: int = 440, **signals: Any) -> Page:
        chosen = {"w": width, "h": height} | signals
        for param in spec["params"]:
            if param["name"] in chosen:
                param["value"] = chosen[param["name"]]
        for part in spec["vconcat"]:
            part["width"] = width
            if part.get("name") == "plane":
                part["height"] = height
        bundle = vega_bundle()
        data = {"spec": spec, "theme": vega_config(LIGHT, dark=False)}
        blocks = "".join(
            f'<script type="application/json" id="{name}">{json_text(one)}</script>' for name, one in data.items()
        )
        policy = f'<meta http-equiv="Content-Security-Policy" content="{content_policy(bundle, DRAW)}">'
        body = f'<body style="height: 3000px; margin: 0"><div id="chart"></div>{blocks}'
        body += f"<script>{bundle}</script><script>{DRAW}</script>"
        file = tmp_path / "chart.html"
        file.write_text(f"<!doctype html><meta charset=utf-8>{policy}{body}", encoding="utf-8")
        return open_file(file, viewport={"width": 1000, "height": 700}, ready=DRAWN)

    return draw_


def domains(page: Page) -> list[list[float]]:
    """Read the visible range of the plane."""
    page.evaluate("view.runAsync().then(() => true)")
    page.wait_for_timeout(100)
    return [page.evaluate(DOMAIN, axis) for axis in "xy"]


def spans(page: Page) -> list[float]:
    """Measure the visible range of the plane, as ratios."""
    return [high / low for low, high in domains(page)]


def set_signals(page: Page, **signals: Any) -> None:
    """Set signals as the page does."""
    for name, value in signals.items():
        page.evaluate("([name, value]) => void view.signal(name, value)", [name, value])
    page.evaluate("view.runAsync().then(() => true)")


def written(page: Page) -> list[str]:
    """List the words of the plane."""
    texts = page.locator("svg .mark-text.role-mark text").all_text_contents()
    return [text.replace("\u00a0", " ") for text in texts]


def test_the_wheel_scrolls_the_page_and_zooms_with_ctrl(draw: Callable[..., Page]) -> None:
    """Without ctrl the wheel scrolls the page; with it the plane is zoomed by one factor in both directions."""
    page = draw(make_spec(samples.every_verdict()))
    before = domains(page)
    page.mouse.move(*CENTRE)
    page.mouse.wheel(0, 100)
    assert domains(page) == before
    assert page.evaluate("scrollY") == 100
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    factors = [(high / low, seen) for (low, high), seen in zip(before, spans(page), strict=True)]
    assert all(seen < whole for whole, seen in factors)
    assert page.evaluate("scrollY") == 0


def test_a_drag_pans_and_a_double_click_resets(draw: Callable[..., Page]) -> None:
    """A drag moves the plane without zooming; a double click shows all of it again."""
    page = draw(make_spec(samples.every_verdict()))
    before = domains(page)
    page.mouse.move(*CENTRE)
    page.mouse.down()
    page.mouse.move(CENTRE[0] - 80, CENTRE[1] + 40, steps=4)
    page.mouse.up()
    moved = domains(page)
    assert moved[0][0] > before[0][0]
    assert moved[1][0] > before[1][0]
    assert spans(page) == pytest.approx([high / low for low, high in before])
    page.mouse.dblclick(*CENTRE)
    assert domains(page) == before


def test_signals_zoom_and_reset(draw: Callable[..., Page]) -> None:
    """The page's buttons set the range by two signals, and null shows all; gestures continue from there."""
    page = draw(make_spec(samples.every_verdict()))
    before = domains(page)
    set_signals(page, zoom_x=[1, 100], zoom_y=[1e12, 1e14])
    assert domains(page) == [[1, 100], [1e12, 1e14]]
    page.mouse.move(*CENTRE)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    assert all(span < 100 for span in spans(page))
    set_signals(page, zoom_x=None, zoom_y=None)
    assert domains(page) == before


def test_ticks_follow_the_zoom(draw: Callable[..., Page]) -> None:
    """The grid has decades, with labels at 2 and 5 if there is room."""
    page = draw(make_spec(samples.every_verdict()), 270, 320)
    assert page.locator("svg .role-axis-title text").all_text_contents() == [
        "Arithmetic intensity (FLOP/B)", "Performance (FLOP/s)"
    ]  # fmt: skip
    opacities = page.locator("svg .role-axis-grid line").evaluate_all(
        "lines => lines.map(one => one.getAttribute('opacity'))"
    )
    assert 4 <= sum(opacity in {None, "1"} for opacity in opacities) <= 12
    assert {opacity for opacity in opacities if opacity not in {None, "1"}} == {"0"}

    def ticks() -> list[str]:
        found = page.locator("svg .role-axis-label text").all_text_contents()
        return [text for text in found if text.isdigit()]

    assert "100" in ticks()
    assert "20" not in ticks()
    set_signals(page, zoom_x=[1, 90], zoom_y=[1e12, 9e13])
    assert sorted(ticks(), key=int) == ["1", "2", "5", "10", "20", "50"]


def test_names_of_diagonals_keep_their_slope(draw: Callable[..., Page]) -> None:
    """After zooming, names of diagonal roofs are parallel to them and inside the plane."""
    page = draw(make_spec(samples.every_verdict()))
    turn = page.evaluate("view.signal('turn')")
    (x0, x1), (y0, y1) = domains(page)
    inner = [[low * (high / low) ** part for part in (0.2, 0.7)] for low, high in ((x0, x1), (y0, y1))]
    set_signals(page, zoom_x=inner[0], zoom_y=inner[1])
    assert page.evaluate("view.signal('turn')") == pytest.approx(turn)
    assert "HBM2  1.56 TB/s" in written(page)


def test_the_plane_follows_the_level(draw: Callable[..., Page]) -> None:
    """Choosing a level shows its range, at most eight decades, with arrows at the edge for points beyond."""
    flop = {"fp32": 1e12}
    usual = samples.Sample("usual", "memory", 1e5, "dram", {"dram": 1e12, "smem": 1e12}, flop)
    fake = samples.Sample("fake", "memory", 10, "dram", {"dram": 1e12, "smem": 1e2}, flop)
    page = draw(make_spec([samples.analysis(usual, 0), samples.analysis(fake, 1)]))
    assert domains(page)[0][1] < 1e4
    assert "\u2192" not in written(page)
    set_signals(page, level="smem")
    low, high = domains(page)[0]
    assert high / low <= 1.0001e8
    assert "\u2192" in written(page)
    set_signals(page, level="dram")
    assert "\u2192" not in written(page)


def test_hidden_launches_vanish(draw: Callable[..., Page]) -> None:
    """A filtered launch has no point, name, rank or gap."""
    spec = make_spec(samples.every_verdict(), ranks={"k0": 1})
    page = draw(spec)
    assert {"softmax_warp_forward", "1"} <= set(written(page))
    gaps = page.locator("svg .mark-rule.role-mark line[stroke]")
    count, gap_count = page.locator("[aria-roledescription=kernel]").count(), gaps.count()
    set_signals(page, hidden={"k0": True})
    assert page.locator("[aria-roledescription=kernel]").count() == count - 1
    assert not {"softmax_warp_forward", "1"} & set(written(page))
    assert gaps.count() == gap_count - 1


def test_an_isolated_kernel_stands_out(draw: Callable[..., Page]) -> None:
    """Points of other kernels are faint and without names; the levels of the isolated one are named."""
    page = draw(make_spec(samples.every_verdict()))
    group = next(row["g"] for row in make_spec(samples.every_verdict())["datasets"]["points"] if row["k"] == "k2")
    set_signals(page, kernel=group, picked="k2")
    opacities = page.locator("[aria-roledescription=kernel]").evaluate_all(
        "marks => marks.map(mark => [mark.__data__.datum.k, Number(mark.getAttribute('opacity') ?? 1)])"
    )
    assert {key for key, opacity in opacities if opacity == 1} == {"k2"}
    words = set(written(page))
    assert {"gather_rows", "L1", "L2"} <= words
    assert "softmax_warp_forward" not in words


def test_the_tooltip_has_all_evidence(draw: Callable[..., Page]) -> None:
    """A point's tooltip has verdict, place, roof, traffic, busiest unit, time, confidence and flags in words."""
    page = draw(make_spec(samples.every_verdict()))
    page.locator("[aria-roledescription=kernel]").first.hover()
    text = page.locator("#vg-tooltip-element").inner_text().replace("\u00a0", " ")
    place = ("1.22 FLOP/B", "1.72 TFLOP/s", "1.89 TFLOP/s, 91 % reached", "2.71 GB at 1.41 TB/s")
    for words in ("memory-bound: HBM2", *place, "HBM2 91 %", "1.92 ms", "high", "output stayed in L2"):
        assert words in text


def test_points_describe_themselves(draw: Callable[..., Page]) -> None:
    """A screen reader gives name, verdict, place and time of each point, and nothing about lines."""
    page = draw(make_spec(samples.every_verdict()))
    said = page.locator("[aria-roledescription=kernel]").first.get_attribute("aria-label") or ""
    assert said.startswith("softmax_warp_forward")
    assert "memory-bound: HBM2" in said
    assert "FLOP/B" in said
    assert page.locator("svg .mark-rule [aria-label]").count() == 0


def test_a_version_keeps_its_path_while_it_is_isolated(draw: Callable[..., Page]) -> None:
    """Isolating a version keeps the others' labels and path, and fades other kernels; a hidden one leaves the path."""
    page = draw(spec_of([version(i, "attention", "softmax") for i in range(4)]))
    paths = page.locator("svg .mark-line.role-mark path[stroke-width='1.75']")
    assert paths.count() == 2
    steps = "paths => paths.map(path => path.getAttribute('d').split('L').length)"
    assert paths.evaluate_all(steps) == [4, 4]
    set_signals(page, kernel="g0", hidden={"k2": True})
    assert sorted(paths.evaluate_all(steps)) == [3]
    words = written(page)
    assert "attention, v3" in words
    assert not any("softmax" in text for text in words)


@pytest.mark.parametrize(("width", "height"), [(740, 440), (560, 440), (270, 320)])
def test_drawn_text_overlaps_nothing(draw: Callable[..., Page], width: int, height: int) -> None:
    """As drawn by the browser, no upright text in the plane overlaps another such text or a point."""
    page = draw(make_spec(samples.every_verdict(), ranks={"k0": 1, "k1": 2, "k2": 3}), width, height)
    for level in ("own", "dram", "l2", "all"):
        set_signals(page, level=level)
        assert_apart(page)


def assert_apart(page: Page) -> None:
    """Check that upright text in a plane overlaps neither other such text nor a point."""
    upright = "svg .mark-text.role-mark text:not([transform*=rotate])"
    # A number is inside its own point.
    texts = [box for box in page.locator(f"{upright}:not([stroke])").evaluate_all(BOXES) if not box[0].isdigit()]
    points = page.locator("[aria-roledescription=kernel]").evaluate_all(BOXES)
    assert len(texts) >= 2
    for i, one in enumerate(texts):
        for other in (*texts[i + 1 :], *points):
            assert not _overlap(one, other), (one, other)


def _overlap(one: list[Any], other: list[Any]) -> bool:
    """Return whether two boxes overlap by more than the empty rim that browsers add to a line of text."""
    wide = min(one[3], other[3]) - max(one[1], other[1])
    high = min(one[4], other[4]) - max(one[2], other[2])
    return wide > 1 and high > 2
