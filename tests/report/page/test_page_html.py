from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.rendered import rendered
from untimed import without_durations

from rooflens.model.knowledge.items import find_item
from rooflens.model.records import Analysis, Move, Run
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.html.embed import json_text, safe_script
from rooflens.report.page.page import SECTIONS, render_page
from rooflens.report.templates import write_words
from rooflens.report.words.verdict import verdict_head

MEGABYTE = 1_000_000


def _said(flag: str) -> str:
    """Return a flag's meaning in the words of the page."""
    item = find_item("flags", flag)
    assert item is not None
    return item.sentence


STATES: dict[str, tuple[list[Run], list[Analysis]]] = {
    "every verdict": ([samples.run()], samples.every_verdict()),
    "one kernel": ([samples.run()], samples.every_verdict()[:1]),
    "nothing": ([], []),
    "all unknown": ([samples.run()], samples.every_verdict()[5:]),
    "all failed": ([samples.run()], [samples.failed(index=i) for i in range(3)]),
    "no FLOPs": ([samples.run()], samples.without_flops()),
    "no durations": ([samples.run()], without_durations()),
    "hostile names": ([samples.run()], samples.hostile()),
    "thousands": ([samples.run()], samples.many(2500)),
}


class Tags(HTMLParser):
    """Collect the elements and the text of a page as a browser's parser would."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep one element with its attributes."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep one run of text."""
        self.text.append(data)


def make(runs: Sequence[Run], analyses: Sequence[Analysis], title: str = "attention") -> str:
    """Render a page."""
    return rendered(samples.reports(runs, analyses), title)


def scripts(html: str) -> dict[str | None, Any]:
    """Read the JSON blocks of a page by their id."""
    found = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', html, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


@for_all("state", STATES)
def test_every_state_renders_every_section(state: str) -> None:
    """Every state of the data gives a valid page, which always has the table and the method."""
    tags = Tags(make(*STATES[state]))
    ids = {attributes.get("id") for _, attributes in tags.elements}
    assert {"kernels", "cards", "method"} <= ids


def test_sections_are_one_ordered_tuple() -> None:
    """Below the first screen the page is its list of sections, so a new section is one function and one entry."""
    assert [section.__name__ for section in SECTIONS] == [
        "ladders", "sweeps", "kernels", "predicted", "explanations", "method",
    ]  # fmt: skip


def test_page_of_a_hundred_kernels_is_small() -> None:
    """A hundred kernels with long names take a little over two megabytes."""
    assert len(make([samples.run()], samples.many(100)).encode()) < 2.2 * MEGABYTE


def test_names_of_thousands_of_characters_do_not_multiply() -> None:
    """A name of 4,000 characters is written in full once, in its card, and cut everywhere else."""
    analysis = samples.every_verdict()[0]
    html = make([samples.run()], [replace(analysis, kernel=replace(analysis.kernel, name=samples.LONG_NAME))])
    assert html.count(samples.LONG_NAME.replace("<", "&lt;").replace(">", "&gt;")) == 1
    assert samples.LONG_NAME[:800] not in json.dumps(scripts(html))


def test_hostile_text_makes_no_element() -> None:
    """Names, titles, sentences, sources and command lines are text, whatever they contain."""
    evil = samples.HOSTILE_NAMES[1]
    analysis = samples.hostile()[1]
    verdict = replace(analysis.verdict, cause=evil, moves=(Move(f"run `{evil}`", "collect"),))
    nvidia = replace(analysis.nvidia, bottleneck=evil)
    kernel = replace(analysis.kernel, gpu=evil, source=evil, stalls={evil: 0.5}, counter_sources={evil: evil})
    hostile = replace(analysis, kernel=kernel, verdict=verdict, nvidia=nvidia, flags=(evil,))
    tags = Tags(make([samples.run(command_line=evil, host=evil, source=evil, clock_control=evil)], [hostile], evil))
    assert "img" not in {tag for tag, _ in tags.elements}
    assert not [name for _, attributes in tags.elements for name in attributes if name.startswith("on")]
    assert (
        sum(tag == "script" and "type" not in attributes for tag, attributes in tags.elements) == 3
    )  # one kernel needs no table


def test_json_cannot_leave_its_script() -> None:
    """Embedded data has no character that an HTML or script parser acts on, and is read back unchanged."""
    data = {"name": "</script><!-- & \u2028 \u2029 -->"}
    inner = str(json_text(data))
    assert not set(inner) & set("<>&\u2028\u2029")
    assert json.loads(inner) == data


def test_scripts_that_end_themselves_are_refused() -> None:
    """A script that contains an end tag would end early in the page, so it is never embedded."""
    with pytest.raises(ValueError, match="ends or opens its own element"):
        safe_script("let x = '</SCRIPT>'")


def test_content_policy_names_each_script_and_no_source() -> None:
    """Only the four inline scripts may run, by their hash; nothing may be fetched or evaluated."""
    html = make(*STATES["every verdict"])
    policy = next(a["content"] for tag, a in Tags(html).elements if tag == "meta" and "http-equiv" in a) or ""
    codes = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" for code in codes}
    assert len(hashes) == 4
    assert set(re.search(r"script-src ([^;]+)", policy)[1].split()) == hashes  # type: ignore[index]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


def test_no_element_points_outside() -> None:
    """No link, image or style sheet of the page points outside."""
    for tag, attributes in Tags(make(*STATES["every verdict"])).elements:
        for name in ("src", "href", "action"):
            target = attributes.get(name)
            assert target is None or target.startswith("#") or target == "data:,", (tag, name, target)


def test_synthetic_data_is_announced() -> None:
    """A page of synthetic reports says so before its first number, and in the chart, which may be pasted elsewhere."""
    html = make([samples.run(synthetic=True)], samples.every_verdict())
    assert "This report was written by a generator" in html
    assert scripts(html)["spec-roofline-0"]["title"]["text"].endswith("synthetic data")
    assert "written by a generator" not in make(*STATES["every verdict"])


def test_integer_products_have_their_unit() -> None:
    """Table and card show an int8 product in OP/B and OP/s if floating-point work is not the main work."""
    html = make([samples.run()], [samples.integer_product(), *samples.every_verdict()[:1]]).replace("\u00a0", " ")
    cells = scripts(html)["waiting-cells"]
    assert ["1000", "1,000 OP/B"] in cells["dram_per_byte"]
    assert ["1e+14", "100 TOP/s"] in cells["work_amount_per_s"]
    assert "1.00 GB, 1,000 OP/B" in html
    assert "1,000 FLOP/B" not in html
    assert [cells[key][1][1] for key in ("dram_per_byte", "work_amount_per_s")] == ["1.22", "1.72 TFLOP/s"]


def test_each_gpu_has_its_roofline() -> None:
    """Reports of two GPUs give two planes, each with the roofs of its own GPU and clock."""
    t4 = samples.analysis(samples.Sample("copy", "memory", 90, "dram", {"dram": 1e7}, {"fp32": 1e7}, chip=samples.T4))
    blocks = scripts(make([samples.run()], [*samples.every_verdict(), t4]))
    titles = [blocks[f"spec-roofline-{i}"]["title"]["text"].replace("\u00a0", " ") for i in range(2)]
    assert titles == ["NVIDIA A100-SXM4-40GB, SM 1.41 GHz", "Tesla T4, SM 585 MHz"]


def test_model_words_are_shown_as_they_are() -> None:
    """Sentence, evidence and moves of the model are in the card word for word."""
    text = "".join(Tags(make(*STATES["every verdict"])).text).replace("\u00a0", " ")
    for analysis in samples.every_verdict():
        assert verdict_head(analysis).replace("`", "") in text
        assert all(move.replace("`", "") in text for move in analysis.verdict.advice)


def text_of(html: str) -> str:
    """Return the words of a page with single spaces."""
    return " ".join("".join(Tags(html).text).split())


def test_missing_time_is_never_zero() -> None:
    """A page without durations has no map, says why its rows have no bars, and shows no zero anywhere."""
    html = make(*STATES["no durations"])
    assert 'id="map"' not in html
    assert "No report of this page holds a duration" in text_of(html)
    assert "0 ns" not in text_of(html)
    assert not re.search(r"(?<![\d.])0(\.0)? %", re.sub(r"<details.*?</details>", "", html, flags=re.DOTALL))


def test_the_list_says_which_kernels_have_no_bar() -> None:
    """A kernel without a duration beside timed ones is counted below the list."""
    untimed = without_durations()[1]
    html = make([samples.run()], [samples.every_verdict()[0], untimed])
    assert "1 kernel without a duration has no bar." in text_of(html)


def test_flags_are_named() -> None:
    """A badge names the one flag that changes a verdict, or counts several; other flags are only in the card."""
    one, two, three, four = samples.every_verdict()[:4]
    flagged = [
        replace(one, flags=("clocks_moved",)),
        replace(two, flags=("clocks_moved", "dram_writes_stay_in_l2")),
        replace(three, flags=("clocks_moved", "dram_writes_stay_in_l2", "no_flop", "share_over_one")),
        replace(four, flags=("no_flop", "short_and_replayed")),
    ]
    tags = Tags(make([samples.run()], flagged))
    text = " ".join("".join(tags.text).split())
    header = text.partition("What to fix first")[0]
    assert f"{_said('clocks_moved')} 3 of 4 kernels" in header
    assert f"{_said('dram_writes_stay_in_l2')} 2 of 4 kernels" in header
    assert re.search(r"[34] caveats: clock changed, output stayed in L2 and [12] more", header)
    chips = [attributes["title"] or "" for _, attributes in tags.elements if attributes.get("class") == "flag"]
    assert [chip.count("\n") for chip in chips] == [0, 1, 2]
    assert all(_said("clocks_moved") in chip for chip in chips)
    assert not any(_said("no_flop") in chip for chip in chips)
    assert _said("no_flop") in text
    assert "2 flags" in text


def test_short_launches_do_not_lead_the_clock() -> None:
    """The header begins with the clock of most of the time, followed by that of short launches."""
    long, short = samples.every_verdict()[0], samples.every_verdict()[3]
    counters = {**short.kernel.counters, "sm_clock_hz": 612e6}
    idle = replace(short, kernel=replace(short.kernel, counters=counters))
    assert "SM 1.41 GHz, down to 612 MHz in short launches (" in text_of(make([samples.run()], [long, idle]))
    assert "SM 1.41 GHz (" in text_of(make([samples.run()], [long, short]))


def test_the_list_says_what_its_factors_bound() -> None:
    """Each line has its limit, and the list says how it is sorted and what can beat the limit."""
    text = text_of(make(*STATES["every verdict"]))
    assert "fewer bytes would allow 7.7x, with HBM2 26 % busy today" in text
    assert "by the time at stake" in text
    assert "Another algorithm can beat the limit." in text


def test_shown_names_have_no_casts() -> None:
    """A demangler's casts are only in a card's full name and in tooltips; elsewhere the page has the short name."""
    analysis = samples.every_verdict()[0]
    kernel = replace(analysis.kernel, name="gemm<(int)64, (bool)1>")
    html = make([samples.run()], [replace(analysis, kernel=kernel)])
    assert text_of(html).count("gemm<(int)64, (bool)1>") == 1
    assert "gemm<64, true>" not in text_of(html)


def test_changed_thresholds_are_named() -> None:
    """A page made with other thresholds names them, so that pages are not compared by mistake."""
    limits = replace(default_thresholds(), bound_share=0.5)
    html = render_page([samples.report(samples.every_verdict())], title="t", limits=limits)
    assert "bound_share 0.5" in html
    assert "Thresholds changed" not in make(*STATES["every verdict"])


def test_backticks_become_code() -> None:
    """A command between backticks is set as code, its content stays text, and a lone backtick stays."""
    assert write_words("run `ncu <x>` now") == "run <code>ncu &lt;x&gt;</code> now"
    assert write_words("a ` b") == "a ` b"
