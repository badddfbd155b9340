from __future__ import annotations

import html as escapes
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from browsing import faults
from comparing import (
    EVEN,
    GEMM,
    block,
    compared,
    fewer_bytes,
    judged_page,
    layer,
    on_gpu,
    page_of,
    renamed,
    side,
    timed,
)
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.pairs import compare
from untimed import without_durations

from rooflens.model.compare.compare import Side
from rooflens.model.compare.gate import Gate
from rooflens.model.compare.ladder import Ladder, ladder
from rooflens.model.compare.pairing import Unpaired
from rooflens.report.comparison.charts import MAX_DRAWN, SEEN_SHARE, sides_spec, waterfall
from rooflens.report.comparison.conditions import unlike
from rooflens.report.comparison.document import MAX_DRAWN_PROGRAMS
from rooflens.report.comparison.rows import ROWS_ON_PAGE, ComparedProgram, bar_legend, judgement, programs
from rooflens.report.html.theme import DARK, LIGHT, vega_config
from rooflens.writing.answers import of_comparison

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

MOST_BYTES = 1_300_000


def made() -> Side:
    """Make a side marked as synthetic."""
    return side(samples.every_verdict(), label="made", synthetic=True)


def thousands() -> list[Ladder]:
    """Compare thousands of kernels, most of which became slower."""
    kernels = samples.many(2500)
    return [compared(kernels, [timed(a, 1 + i % 5 / 10) for i, a in enumerate(kernels)])]


STATES: dict[str, Callable[[], list[Ladder]]] = {
    "all that can become of a kernel": lambda: [layer()],
    "one kernel": lambda: [compared(samples.every_verdict()[:1], samples.every_verdict()[:1])],
    "single runs": lambda: [compared(samples.every_verdict(), samples.every_verdict(), (1.0,))],
    "nothing in common": lambda: [compared(samples.every_verdict()[:2], samples.every_verdict()[2:4])],
    "no FLOPs": lambda: [compared(samples.without_flops(), samples.without_flops())],
    "no durations": lambda: [compared(without_durations(), without_durations())],
    "durations on one side": lambda: [compared(samples.every_verdict()[:2], without_durations())],
    "unknown": lambda: [compared(samples.every_verdict()[5:], samples.every_verdict()[5:])],
    "some failed": lambda: [compared([*samples.every_verdict(), samples.failed()], samples.every_verdict())],
    "all failed": lambda: [compared([samples.failed()], [samples.failed()])],
    "hostile": lambda: [compared(samples.hostile(), samples.hostile(), program=samples.HOSTILE_NAMES[1])],
    "thousands": thousands,
    "several programs": lambda: [layer(), replace(layer(), program="decode"), replace(layer(), program="prefill")],
    "many programs": lambda: [replace(layer(), program=f"case {i}") for i in range(30)],
    "synthetic": lambda: [compare(made(), made(), program="made")],
}


class Tags(HTMLParser):
    """Collect the elements and the text of a page as a browser's parser would."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep one element with its attributes."""
        self.elements.append((tag, dict(attrs)))


def text_of(html: str) -> str:
    """Return the words of a page without its scripts and styles."""
    body = re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.DOTALL)
    return spaced(escapes.unescape(re.sub(r"<[^>]+>", " ", body)))


def spaced(text: str) -> str:
    """Write any white space as one space."""
    return re.sub(r"\s+", " ", text)


def program(one: Ladder) -> ComparedProgram:
    """Number the kernels of one comparison."""
    return programs([one])[0]


@for_all("state", STATES)
def test_every_state_is_a_small_page(state: str) -> None:
    """Every state gives a valid page below 1.3 MB that fetches nothing; without a time nothing is drawn over times."""
    html = judged_page(STATES[state](), Gate(0.05, per_kernel=True))
    assert len(html.encode()) < MOST_BYTES
    tags = Tags(html).elements
    assert "document" in {attributes.get("id") for _, attributes in tags}
    assert not [attributes for _, attributes in tags if str(attributes.get("src", "data:")).partition(":")[0] != "data"]
    scripts = sum(tag == "script" and "type" not in attributes for tag, attributes in tags)
    assert scripts == 2 + ('data-spec="spec-' in html)


def test_hostile_text_makes_no_element() -> None:
    """Names, labels, warnings and clock modes are text, whatever they contain."""
    evil = samples.HOSTILE_NAMES[1]
    kernels = [replace(a, kernel=replace(a.kernel, gpu=evil)) for a in samples.hostile()]
    one = side(kernels, label=evil, ncu_version=evil, clock_control=evil, source=evil)
    other = side([renamed(kernels[0], evil * 2)], label=evil)
    html = judged_page([replace(compare(one, other, program=evil), warnings=(evil,))], Gate(0.0, per_kernel=True))
    tags = Tags(html).elements
    assert "img" not in {tag for tag, _ in tags}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert sum(tag == "script" and "type" not in attributes for tag, attributes in tags) == 3


def test_first_screen_tells_total_range_and_judgement() -> None:
    """It has the factor, both medians and ranges, and the reason why the difference counts as a change."""
    before = samples.every_verdict()[:2]
    html = text_of(page_of([compared(before, [timed(a, 1.25) for a in before])]))
    assert "1.25x slower" in html
    assert "3.02 ms [3.01 ms, 3.03 ms] \u2192 3.78 ms [3.76 ms, 3.79 ms]" in html
    assert "the medians differ by +25.0 %, more than 3 %" in html
    assert "GPU time of each recording 3.02 ms, 3.03 ms, 3.01 ms, 3.03 ms, 3.02 ms 3.78 ms" in html


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.0, "No change: the ranges of the two sides overlap."),
        (1.02, "No change: the medians are less than 3 % apart."),
        (0.8, "Beyond noise: the ranges do not overlap, and the medians differ by \u221220.0 %, more than 3 %."),
    ],
)
def test_judgement_says_why(factor: float, words: str) -> None:
    """Overlapping ranges, a small difference, and a change each have their own reason."""
    before = samples.every_verdict()[:1]
    one = compared(before, [timed(before[0], factor)])
    assert judgement(one.speed, one.threshold).replace("\u00a0", " ") == words


def test_single_samples_are_marked_and_not_judged() -> None:
    """With one recording per side, the factor is marked in the headline and in the overview."""
    before = samples.every_verdict()[:1]
    one = compared(before, [timed(before[0], 2)], (1.0,))
    html = text_of(judged_page([one, replace(one, program="other")], Gate(1.05)))
    # A row of the overview, and for each program a headline, what became of its kernel, and a row.
    assert html.count("2.00x slower (1 run each)") == 8
    assert "1 run each, so noise is unknown; +100.0 % is more than the 10 % that single runs may differ by." in html
    assert "The gate could not judge" in html


@pytest.mark.parametrize(
    ("factor", "gate", "words"),
    [
        (1.1, Gate(0.05), "The gate failed : slower by more than 5 % and 2 µs and more than noise"),
        (1.1, Gate(0.05), "layer: GPU time takes 10.0 % more"),
        (1.1, Gate(0.2), "The gate holds : nothing is slower by more than 20 % and 2 µs and more than noise"),
        (0.9, Gate(0.025, per_kernel=True), "The gate holds : nothing is slower by more than 2.5 % and 2 µs"),
    ],
)
def test_gate_tells_its_outcome(factor: float, gate: Gate, words: str) -> None:
    """The first screen says whether the gate passes, what it judged, and what made it fail."""
    before = samples.every_verdict()[:1]
    text = text_of(judged_page([compared(before, [timed(before[0], factor)])], gate))
    assert words in text
    assert text.index("The gate") < text.index("Base (before)")


def test_what_no_gate_can_judge_is_counted() -> None:
    """Beside a program that passes, a single run and a program without durations are listed as not judged."""
    kernels = samples.every_verdict()
    single, untimed = (
        compared(kernels, kernels, (1.0,), "single"),
        compared(kernels[:2], without_durations(), program="x"),
    )
    text = text_of(judged_page([compared(kernels, kernels), single, untimed], Gate(0.05)))
    assert "The gate holds" in text
    told = text.partition("Not judged:")[2]
    assert told.index("single") < told.index("x") < told.index("Program")
    assert "The gate could not judge" in text_of(judged_page([untimed], Gate(0.05)))


def test_pages_without_a_gate_say_nothing_of_one() -> None:
    """Without a gate the page does not mention one."""
    assert "gate" not in text_of(page_of([layer()]))


@pytest.mark.parametrize(("base", "head"), [(True, True), (True, False), (False, True)])
def test_synthetic_sides_cannot_be_missed(base: bool, head: bool) -> None:  # noqa: FBT001 - a case
    """A banner names the synthetic side, and so do charts, which may be pasted elsewhere."""
    kernels = samples.every_verdict()
    one = compare(side(kernels, synthetic=base), side(kernels, synthetic=head), program="x")
    html = page_of([one])
    words = "Both sides" if base and head else "The base (before)" if base else "The head (after)"
    assert f"Synthetic data {words}" in text_of(html)
    for name in ("spec-waterfall-p0", "spec-arrows-p0"):
        assert block(html, name)["title"]["text"].endswith(": synthetic data")


@for_all("seed", range(12))
def test_waterfall_leads_from_before_to_after(seed: int) -> None:
    """Each bar begins where the last ended; the first is the time before, the last the time after."""
    random = Random(seed)  # noqa: S311 - a test repeats itself
    kernels = samples.many(random.choice((1, 4, 40)))
    head = [timed(a, random.uniform(0.5, 1.6)) for a in kernels if random.random() < 0.8] or kernels
    one = program(compared(kernels, head, random.choice(((1.0,), EVEN))))
    first, *steps, last = waterfall(one)
    assert (first["to"], last["to"]) == (one.comparison.total.base.median_ns, one.comparison.total.head.median_ns)
    now = first["to"]
    for step in steps:
        assert step["from"] == pytest.approx(now)
        now = step["to"]
    assert now == pytest.approx(last["to"], rel=SEEN_SHARE)
    assert len(steps) <= MAX_DRAWN + 1


def test_bars_tell_gains_losses_and_noise_apart() -> None:
    """A gain, a loss, a gone and a new kernel, and a difference within noise each have their own style and symbol."""
    steps = list(waterfall(program(layer())))[1:-1]
    kinds = {step["full"].split("<")[0].split("(")[0]: (step["kind"], step["words"][0]) for step in steps}
    assert kinds["softmax_warp_forward"] == ("loss", "+")
    assert kinds["ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"] == ("gain", "\u2212")
    assert kinds["fused_fill_stencil"] == ("loss", "+")
    assert kinds["stencil_27pt"] == ("gain", "\u2212")
    noisy = [tuple(timed(a, f) for a in samples.every_verdict()[:1]) for f in (1.0, 1.1)]
    both = replace(side([]), reports=tuple(samples.report(kernels) for kernels in noisy))
    other = replace(both, reports=(*both.reports, samples.report(timed(a, 1.09) for a in samples.every_verdict()[:1])))
    assert [step["kind"] for step in waterfall(program(compare(both, other)))] == ["total", "same", "total"]
    assert bar_legend(program(compare(both, other))).endswith("dashed: within noise.")


def test_without_noise_nothing_is_called_noise() -> None:
    """Of single runs a small difference is dashed as small, and the total is set against the band of a gate."""
    kernels = samples.every_verdict()[:2]
    one = compared(kernels, [timed(kernels[0], 0.98), timed(kernels[1], 1.2)], (1.0,))
    looks = {step["words"].split(", ")[1]: step["kind"] for step in [*waterfall(program(one))][1:-1]}
    assert looks == {"unchanged": "same", "1.20x slower": "loss"}
    html = text_of(page_of([one]))
    assert "dashed: less than 3 %, or too little to see." in html
    assert "within noise" not in html
    small = compared(kernels, [timed(a, 1.05) for a in kernels], (1.0,))
    words = "1 run each, so noise is unknown: single runs may differ by 10 %."
    assert judgement(small.speed, small.threshold).replace("\u00a0", " ") == words


def test_a_hollow_bar_that_its_outline_would_fill_is_pale() -> None:
    """A gain of a hundredth of the longest bar is drawn without an outline, which would look like a loss."""
    kernels = samples.many(2)
    kernels = [timed(kernels[0], 1e8 / (kernels[0].kernel.duration_ns or 1)), kernels[1]]
    kernels[1] = timed(kernels[1], 2e6 / (kernels[1].kernel.duration_ns or 1))
    html = page_of([compared(kernels, [kernels[0], timed(kernels[1], 0.5)], (1.0,))])
    rows = [rows for rows in block(html, "spec-waterfall-p0")["datasets"].values() if rows and "kind" in rows[0]]
    assert "thin gain" in {row["kind"] for row in rows[0]}
    assert "gain" not in {row["kind"] for row in rows[0]}


def dots_of(html: str) -> list[dict[str, Any]]:
    """Read the dots of the plane from the page."""
    dots: list[dict[str, Any]] = block(html, "spec-arrows-p0")["datasets"]["dots"]
    return dots


def test_arrows_lead_from_the_place_before_to_the_place_after() -> None:
    """Half the bytes and half the time: the head is twice as far right and twice as high, under the head's roofs."""
    softmax = samples.every_verdict()[0]
    html = page_of([compared([softmax], [timed(fewer_bytes(softmax, 0.5), 0.5)])])
    before, after = sorted(dots_of(html), key=lambda dot: "faint" not in dot)
    assert before["x"] == pytest.approx(softmax.levels["dram"].intensity_flop_per_byte, rel=1e-3)
    assert after["x"] == pytest.approx(2 * before["x"], rel=1e-3)
    assert (before["y"], after["y"]) == pytest.approx((softmax.flop_per_s, 2 * (softmax.flop_per_s or 0.0)), rel=0.01)
    assert before["area"] > after["area"]


@pytest.mark.parametrize(
    ("gpu", "clock_hz", "words"),
    [
        (samples.A100.name, samples.A100.sm_clock_hz * 1.02, ""),
        (samples.A100.name, samples.A100.sm_clock_hz * 1.04, "the SM clocks differ (1.41 GHz; 1.47 GHz)"),
        ("NVIDIA H200", None, "the GPUs differ (NVIDIA A100-SXM4-40GB; NVIDIA H200)"),
    ],
)
def test_places_are_shares_where_gpus_or_clocks_differ(gpu: str, clock_hz: float | None, words: str) -> None:
    """Sides without common roofs are placed by each kernel's share of its roof, and the page says why."""
    before = samples.every_verdict()
    one = compared(before, [on_gpu(a, gpu, clock_hz) for a in before])
    assert spaced(unlike(one)) == words
    html = page_of([one])
    assert (f"Heights are shares of each kernel's own roof, not FLOP/s: {words}," in text_of(html)) == bool(words)
    gemm = next(dot for dot in dots_of(html) if dot["name"].startswith("ampere") and "faint" in dot)
    peak, achieved = before[GEMM].flop_peak_per_s, before[GEMM].flop_per_s
    assert peak is not None
    assert achieved is not None
    # The recordings' times differ by fractions of a per cent; the sum's rate is that of their mean.
    assert gemm["y"] == pytest.approx(achieved / peak if words else achieved, rel=0.01)


def test_short_launches_at_an_idle_clock_change_no_roof() -> None:
    """A side's clock is a mean over GPU time: a tiny kernel at half the clock does not prevent comparing FLOP/s."""
    before = samples.every_verdict()
    tiny = on_gpu(before[3], samples.A100.name, 0.5 * samples.A100.sm_clock_hz)
    assert unlike(compared(before, [*before[:3], tiny, *before[4:]])) == ""


def test_only_one_dot_stands_for_what_is_gone_or_new() -> None:
    """A kernel on only one side is one dot, faint if it is gone."""
    sides = {(dot["name"].split("(")[0], "faint" in dot) for dot in dots_of(page_of([layer()]))}
    assert {is_faint for name, is_faint in sides if name == "fused_fill_stencil"} == {False}
    assert {is_faint for name, is_faint in sides if name == "stencil_27pt"} == {True}


def test_the_biggest_differences_have_names_in_the_plane() -> None:
    """The kernels that changed most are named at their dots."""
    rows = block(page_of([layer()]), "spec-arrows-p0")["datasets"]["labels"]
    named = {place[0] for row in rows if row["s"] == "label" for place in row["p"] if place}
    assert any(name.startswith("softmax") for name in named)


def test_times_over_versions_leave_out_what_is_not_compared() -> None:
    """A version of another size is not drawn, does not affect the scale, and is named."""
    kernels = samples.every_verdict()[:1]
    larger = [replace(a, flop_total=(a.flop_total or 0.0) * 100) for a in kernels]
    sides = [side(kernels, label="v1"), side(larger, label="v2"), side(kernels, label="v3")]
    spec = sides_spec(ladder("app", sides))
    assert spec is not None
    rows = next(iter(spec["datasets"].values()))
    assert [row["side"] for row in rows] == ["v1", "v3"]
    assert spec["title"]["subtitle"][0] == "Not drawn, as not compared: v2."


def test_table_tells_each_kernel_on_both_sides() -> None:
    """A row has the kind of match, both times and limiters, the sentence, intensities and old names."""
    html = page_of([layer()])
    rows = [text_of(row) for row in re.findall(r"<tr>.*?</tr>", html, re.DOTALL)]
    gather, numbers = (row for row in rows if "julia_gather_4788" in row)
    assert "(renamed)" in gather
    assert "no change beyond noise" in gather
    assert "julia_gather_4788 was julia_gather_4711" in numbers
    softmax, numbers = (row for row in rows if "softmax" in row)
    assert "1.92 ms [1.91 ms, 1.93 ms] 3.07 ms [3.06 ms, 3.08 ms] +1.15 ms" in softmax
    assert "1.22 \u2192 0.761" in numbers
    assert "1.60x slower: 60 % more HBM2 bytes" in softmax
    gone, _, new = text_of(html).partition("Gone: ")[2].partition("kernel before")[0].partition("New: ")
    assert "fill_zero" in gone
    assert "stencil_27pt" in gone
    assert "fused_fill_stencil" in new


def test_many_kernels_are_capped_and_counted() -> None:
    """Of 2,500 kernels the largest differences are listed and drawn, and the number of the others is given."""
    many = thousands()
    html = page_of(many)
    text = text_of(html)
    whole = len(many[0].changes)
    assert html.count('class="prose"') - 1 == ROWS_ON_PAGE
    assert f"and {whole - ROWS_ON_PAGE} more with smaller differences" in text
    assert len(dots_of(html)) <= 2 * MAX_DRAWN


def test_programs_have_an_overview_and_a_part_each() -> None:
    """Several programs begin with a table of all; beyond a few, each has only a table of kernels."""
    html = page_of(STATES["many programs"]())
    text = text_of(html)
    assert text.index("Program Before After") < text.index("Where the time went")
    assert all(f"case {i}: " in text for i in range(30))
    assert html.count('data-spec="spec-waterfall-') == MAX_DRAWN_PROGRAMS


def test_sides_without_a_common_program_are_a_page() -> None:
    """If no program is on both sides, the page lists the programs of each side, without a chart."""
    answer = of_comparison([], (Unpaired("head", ("llm", "sglang")),))
    text = text_of(answer.text("html"))
    assert "llm, sglang" in text
    assert 'data-spec="' not in answer.text("html")


def test_conditions_that_differ_are_marked() -> None:
    """Both sides are shown; a condition that affects times is marked if it differs."""
    kernels = samples.every_verdict()
    base = side(kernels, label="old/", clock_control="base", ncu_version="2024.1.0")
    head = side(kernels, label="new/", clock_control="none", ncu_version="2024.1.0")
    html = page_of([replace(compare(base, head), warnings=("clock control: base and none",))])
    marked = [text_of(row).strip() for row in re.findall(r'<tr class="noticed">.*?</tr>', html, re.DOTALL)]
    assert marked == ["Clock control locked to base by ncu as found"]
    assert "clock control: base and none" in text_of(html)


def test_missing_times_are_never_zero() -> None:
    """A kernel with a duration on only one side has no difference, neither alone nor in a sum."""
    text = text_of(page_of(STATES["durations on one side"]()))
    assert "no GPU time to compare" in text
    assert "\u22121.92 ms" not in text
    assert "1.92 ms [1.91 ms, 1.93 ms] - \u2013" in text
    gone = compared([*samples.every_verdict()[2:3], *without_durations()], samples.every_verdict()[2:3])
    assert "Gone: " in text_of(page_of([gone]))
    assert "(\u2013)." in text_of(page_of([gone]))


def test_themes_define_every_style_of_the_charts() -> None:
    """Charts have no colours of their own, and every style they name is in both themes."""
    html = page_of([layer()])
    specs = json.dumps([block(html, "spec-waterfall-p0"), block(html, "spec-arrows-p0")])
    used = set(re.findall(r'"style": "(\w+)"', specs))
    for inks, dark in ((LIGHT, False), (DARK, True)):
        assert used <= set(vega_config(inks, dark=dark)["style"])
    assert not re.search(r"#[0-9a-fA-F]{6}", specs)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_the_page_opens_quietly_and_fits(
    open_file: Callable[..., Page], tmp_path: Path, axe: str, width: int, scheme: str
) -> None:
    """Both charts are drawn without overflow, messages, requests or accessibility faults."""
    file = tmp_path / "compared.html"
    file.write_text(judged_page([layer()], Gate(0.05)), encoding="utf-8")
    page = open_file(file, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.locator(".chart svg").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert faults(page, axe) == []


@pytest.mark.browser
def test_without_scripts_tables_and_words_say_it(browser: Any, tmp_path: Path) -> None:
    """Without scripts, the gate, every kernel with its story, and the explanations are shown."""
    file = tmp_path / "compared.html"
    file.write_text(judged_page([layer()], Gate(0.05)), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    assert page.get_by_text("The gate").first.is_visible()
    assert page.locator("td.prose:visible").count() == len(layer().changes)
    assert not page.locator("#theme").is_visible()
    page.close()
