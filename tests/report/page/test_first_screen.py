"""The first screen: its content before anything is chosen, and the words of its states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from browsing import apart
from msgspec.structs import replace
from support import samples
from support.rendered import rendered
from support.tags import words_of

from rooflens.analyzing import analyze_paths
from rooflens.model.ranking import RANKED_SHOWN
from rooflens.model.records import Analysis, AnalyzedReport, Bottleneck, Gain, Hotspot, Limit, Move, UnitFloor
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.html.assets import joined, style_px
from rooflens.report.overview.headline import headline
from rooflens.report.overview.opportunities import KEPT, LISTED
from rooflens.report.page.cards import cards
from rooflens.report.page.charts import roofline_figures
from rooflens.report.page.first_screen import first_screen, what_first
from rooflens.report.page.ladder import named_ladders
from rooflens.report.page.selectors import items
from rooflens.report.summary import at_limit, caveats, limiter
from rooflens.report.words.verdict import verdict_sentence


def page_of(*analyses: Analysis) -> Content:
    """Build the page's rows over one report."""
    return build_content([samples.report(analyses)], "test", default_thresholds())


def words(html: object) -> str:
    """Return the text of markup on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", str(html)).replace("\u00a0", " ").split())


def full(analysis: Analysis, *, at_roof: bool = True) -> Analysis:
    """Put a kernel at its hardware limit, or away from it."""
    return replace(analysis, verdict=replace(analysis.verdict, at_roof=at_roof))


def as_versions(analyses: Sequence[Analysis], times: Sequence[int | None] = (10, 20)) -> list[AnalyzedReport]:
    """Make two reports with the same kernels, recorded at these times."""
    runs = [
        samples.run(digest=digit * 64, source=f"silu-v{i}.ncu-rep", created_unix_s=time)
        for i, (digit, time) in enumerate(zip("ab", times, strict=True), start=1)
    ]
    return [
        AnalyzedReport(run, tuple(replace(a, kernel=replace(a.kernel, digest=run.digest)) for a in analyses))
        for run in runs
    ]


def test_a_page_of_one_kernel_opens_with_its_sentence() -> None:
    """A single kernel has no share of 100 %, ranking or bar of its time, only its sentence and its moves."""
    analysis = samples.every_verdict()[0]
    html = rendered([samples.report([analysis])], "one")
    said = words(first_screen(page_of(analysis), ()))
    assert verdict_sentence(analysis).partition(". ")[0] in said
    assert all(move[1:].replace("`", "") in said for move in analysis.verdict.advice[:3])
    for part in ('class="ranking"', 'id="map"', 'id="search"'):
        assert part not in html
    assert 'class="roofline"' in html


def test_one_kernel_of_several_verdicts_keeps_its_shares() -> None:
    """Launches of one kernel with different limiters are distinguished by share, even if it is the only kernel."""
    one, two = samples.every_verdict()[:2]
    other = replace(two, kernel=replace(two.kernel, name=one.kernel.name))
    shares = r"\d+ % memory-bound, [^;]+; .*\d+ % compute-bound"
    assert re.search(shares, words_of(str(first_screen(page_of(one, other), ()))))
    assert not re.search(shares, words_of(str(first_screen(page_of(one), ()))))


def test_the_next_kernels_wait_behind_the_shown_ones() -> None:
    """A page lists the ranking with its moves, then the next kernels in brief, and has more of them hidden."""
    lines = re.findall(r"<li data-g[^>]*>", str(what_first(page_of(*apart(60)))))
    assert len(lines) == KEPT
    assert [" hidden" in line for line in lines] == [False] * LISTED + [True] * (KEPT - LISTED)
    assert ["brief" in line for line in lines] == [False] * RANKED_SHOWN + [True] * (KEPT - RANKED_SHOWN)


def test_a_row_is_a_bar_of_its_time_with_the_part_won_at_its_end() -> None:
    """2 ms of which a move saves a quarter are a whole bar, a quarter hatched; 1 ms with unknown gain is half."""
    one, other = samples.every_verdict()[:2]
    long = replace(one, kernel=replace(one.kernel, counters={"duration_ns": 2e6}))
    won = replace(long, verdict=replace(one.verdict, moves=(Move("coalesce", "coalesce", gain=Gain(4 / 3)),)))
    near = replace(other.verdict, today=UnitFloor("l2", 0.9, 9e5))
    short = replace(other, verdict=near, kernel=replace(other.kernel, counters={"duration_ns": 1e6}))
    first, second = re.findall(r"<li data-g.*?</li>", str(what_first(page_of(won, short))), re.DOTALL)
    assert re.findall(r"width:([\d.]+)%", first) == ["100.00", "25.0"]
    assert re.findall(r"width:([\d.]+)%", second) == ["50.00"]
    assert "2.00 \u2192 about 1.50 ms" in words(first)
    assert 'class="begins' in second


def test_kernels_with_the_same_first_move_are_one_row_that_opens() -> None:
    """Three kernels to be coalesced are a row with their times added up: 3 of 6 ms are saved; two stay separate."""
    base = samples.every_verdict()[0]
    move = Move("coalesce the loads: 75 %", "coalesce", "uncoalesced_global_load", gain=Gain(2.0))
    alike = [
        replace(
            base,
            kernel=replace(base.kernel, name=f"k{i}", index=i, counters={"duration_ns": i * 1e6}),
            verdict=replace(base.verdict, moves=(move,)),
        )
        for i in (1, 2, 3)
    ]
    (row,) = re.findall(r"<li data-g.*?</ul>", str(what_first(page_of(*alike))), re.DOTALL)
    assert "k3 and 2 more 6.00 \u2192 about 3.00 ms" in words(row)
    assert "k1 1.00 ms \u2192 about 500 µs" in words(row)
    assert "75 %" not in words(row)
    assert str(what_first(page_of(*alike[:2]))).count("<li data-g") == 2


def test_a_kernel_of_several_verdicts_has_words_for_each() -> None:
    """If filters leave the launches of one verdict, an entry about these is available."""
    one, two = samples.every_verdict()[:2]
    other = replace(two, kernel=replace(two.kernel, name=one.kernel.name))
    parts = re.findall(
        r'<li data-g="(g\d)" data-part="(\w*)"', str(what_first(page_of(one, other, samples.many(1)[0])))
    )
    of_both = next(key for key, part in parts if part)
    assert {part for key, part in parts if key == of_both} == {"", "memory", "compute"}


def test_time_at_a_limit_is_named_with_its_kernels() -> None:
    """The page says for how much of the GPU time a unit is saturated, and by which kernels, if any."""
    memory, compute, *rest = (full(analysis, at_roof=False) for analysis in samples.every_verdict())
    page = page_of(full(memory), compute, *rest)
    share = next(group.time_share for group in page.kernels if group.name == memory.kernel.name)
    assert share is not None
    said = at_limit(page).replace("\u00a0", " ")
    assert said.startswith(f"{100 * share:.0f} % of GPU time: a unit is saturated: ")
    assert "HBM2" in said
    assert at_limit(page_of(memory, compute, *rest)) == ""


def test_short_kernels_at_a_limit_are_not_worth_a_line() -> None:
    """Less than a hundredth of the GPU time at a limit is not mentioned."""
    long, short = (full(analysis, at_roof=False) for analysis in samples.every_verdict()[:2])
    counters = {**short.kernel.counters, "duration_ns": 1.0}
    tiny = replace(full(short), kernel=replace(short.kernel, counters=counters))
    assert at_limit(page_of(long, tiny)) == ""


@pytest.mark.parametrize("count", [1, 3])
def test_without_counters_it_says_so(count: int) -> None:
    """If no kernel has throughput counters, the page says that no limit is known and how to find it."""
    unknown = samples.every_verdict()[5]
    page = page_of(*(replace(unknown, kernel=replace(unknown.kernel, name=f"k{i}", index=i)) for i in range(count)))
    said = words(first_screen(page, ()))
    what = "this kernel" if count == 1 else "these kernels"
    assert f"This report has no throughput counters, so what limits {what} cannot be told." in said
    assert "ncu --set roofline" in said
    assert "\u2192" not in said
    assert "cannot be told" not in words(what_first(page_of(unknown, samples.every_verdict()[0])))


def test_items_carry_what_sums_are_made_of() -> None:
    """Each launch has its time, what can be saved and its report's label; unknown values are null, never zero."""
    known, bare = samples.every_verdict()[0], samples.every_verdict()[5]
    unknown = replace(bare, verdict=replace(bare.verdict, limit=Limit()))
    reports = as_versions([known, unknown])
    rows = items(build_content(reports, "versions", default_thresholds()))
    assert {row["r"] for row in rows} == {"v1", "v2"}
    assert {row["won"] for row in rows if row["bound"] == "unknown"} == {None}
    first = next(row for row in rows if row["bound"] == "memory")
    assert first["ns"] == known.kernel.duration_ns
    assert 0 < first["won"] < first["ns"]


@pytest.mark.parametrize(
    ("times", "ranked"),
    [((10, 20), ["v2"]), ((20, 10), ["v2"]), ((None, None), ["v1", "v2"]), ((None, 20), ["v1", "v2"])],
)
def test_a_kernel_is_ranked_as_its_newest_version(times: tuple[int | None, ...], ranked: list[str]) -> None:
    """Of reports of one kernel with the same work the latest is used; without times none is called the latest."""
    work = samples.analysis(samples.Sample("k", "memory", 100, "dram", {"dram": 1e8}, {"fp32": 1e8}))
    page = build_content(as_versions([work], times), "versions", default_thresholds())
    labels = [page.report_labels[row.analysis.kernel.digest] for row in page.first]
    assert sorted(labels) == ranked
    said = words(what_first(page))
    assert ("newest of 2 versions" in said) is (len(ranked) == 1)
    assert sum("f" in row for row in items(page)) == (2 if len(ranked) == 1 else 0)


def test_no_row_is_a_version_that_another_beats() -> None:
    """A newer, slower version is hidden, and the older one, the fastest, says so."""
    quick = samples.analysis(samples.Sample("k", "memory", 100, "dram", {"dram": 1e8}, {"fp32": 1e8}))
    slow = samples.analysis(samples.Sample("k", "memory", 140, "dram", {"dram": 1e8}, {"fp32": 1e8}))
    first, _ = as_versions([quick])
    _, last = as_versions([slow])
    page = build_content([first, last], "versions", default_thresholds())
    assert [page.report_labels[row.analysis.kernel.digest] for row in page.first] == ["v1"]
    assert "fastest of 2 versions" in words(what_first(page))


@pytest.mark.parametrize(("clock_hz", "said"), [(0.546e9, ["546 MHz"]), (1.41e9, [])])
def test_a_clock_far_below_boost_is_a_caveat(clock_hz: float, said: list[str]) -> None:
    """An A100 boosts to 1.41 GHz: at 546 MHz its arithmetic may run 2.6 times as fast without the profiler."""
    one = samples.every_verdict()[0]
    kernel = replace(one.kernel, counters={**one.kernel.counters, "sm_clock_hz": clock_hz})
    found = [each.meaning for each in caveats(page_of(replace(one, flags=(), kernel=kernel)))]
    assert [words.split(",")[0].removeprefix("Profiled at ") for words in found] == said
    assert all("2.6x as fast" in words for words in found)


def test_a_caveat_names_what_it_is_about() -> None:
    """The first three kernels by time, or the reports in order, and the number of others; not if all are meant."""
    one, *others = samples.every_verdict()[:5]
    clean = replace(one, flags=())
    flagged = [
        replace(a, flags=("clocks_moved",), kernel=replace(a.kernel, name=f"k{i}")) for i, a in enumerate(others)
    ]
    (caveat,) = caveats(page_of(clean, *flagged))
    named = sorted(flagged, key=lambda a: -(a.kernel.duration_ns or 0))[:3]
    assert caveat.about == f": {', '.join(a.kernel.name for a in named)} and 1 more"
    (caveat,) = caveats(page_of(*flagged))
    assert caveat.about == ""
    first, second = as_versions(flagged)
    quiet = replace(first, analyses=tuple(replace(a, flags=()) for a in first.analyses))
    (caveat,) = caveats(build_content([quiet, second], "versions", default_thresholds()))
    assert caveat.about == " in v2"


def test_the_bar_reckons_with_the_widths_that_its_style_sheet_sets() -> None:
    """Widths are properties that the style sheet's rules use, and a missing property is an error."""
    rules = joined(("report/selectors.css",))
    for name in ("gap", "list", "search", "slider"):
        assert style_px("report/selectors.css", name) > 0
        assert f"var(--{name})" in rules
    with pytest.raises(KeyError):
        style_px("report/selectors.css", "nothing")


def test_a_kernel_of_undated_reports_is_ranked_apart() -> None:
    """It has two entries, each with its report's label, and their times are not added up."""
    page = build_content(as_versions(samples.every_verdict()[:1], (None, None)), "versions", default_thresholds())
    shown = re.findall(r"<li data-g.*?</li>", str(what_first(page)), re.DOTALL)
    assert len(shown) == 2
    assert [words(entry).count("GPU time") for entry in shown] == [0, 0]
    assert {label for entry in shown for label in ("v1", "v2") if f"100 % of {label}" in words(entry)} == {"v1", "v2"}


def test_what_is_not_known_to_do_the_same_is_ranked_apart() -> None:
    """Kernels of one name with other or uncounted FLOPs are not versions: each has its own entry."""
    first, second = as_versions(samples.every_verdict()[:1])
    (one,) = second.analyses
    for factor in (8.0, None):
        flop = {dtype: amount * factor for dtype, amount in one.flop.items()} if factor else {}
        total = one.flop_total * factor if one.flop_total and factor else None
        larger = replace(second, analyses=(replace(one, flop=flop, flop_total=total),))
        page = build_content([first, larger], "sizes", default_thresholds())
        assert page.earlier == {}
        assert "newest of" not in str(what_first(page))


def test_bars_are_not_called_a_roofline() -> None:
    """If no kernel has FLOPs, the heading names what the bars show, and no level can be chosen."""
    bars = rendered([samples.report(samples.without_flops()[:1])], "bars")
    assert '<h2 id="roofline-title">Share of peak</h2>' in bars
    assert 'name="level"' not in bars
    plane = rendered([samples.report(samples.every_verdict()[:1])], "plane")
    assert '<h2 id="roofline-title">Roofline</h2>' in plane
    assert 'name="level"' in plane


def test_rare_filters_open_on_demand() -> None:
    """If a report has more filters than fit a row, the least useful open under a button."""
    few = rendered([samples.report(samples.every_verdict())], "few")
    assert "More filters" not in few
    chips = [samples.A100, samples.T4]
    mixed = [
        replace(analysis, kernel=replace(analysis.kernel, gpu=chips[i % 2].name, nvtx_range=f"range {i}",
                                         process=f"python {i}", device=i, index=i))
        for i, analysis in enumerate([*samples.every_verdict(), *samples.many(12)])
    ]  # fmt: skip
    runs = as_versions(mixed)
    html = rendered(runs, "many filters")
    more = html.partition('class="more"')[2].partition("</details>")[0]
    assert 'data-choice="device"' in more or 'id="top"' in more
    assert 'data-choice="gpu"' not in more
    assert 'data-choice="report"' not in more


def test_without_a_plane_there_is_no_level_to_choose() -> None:
    """Kernels without FLOPs are bars of all levels at once, so choosing a level would change nothing."""
    assert 'name="level"' not in rendered([samples.report(samples.without_flops())], "bars")
    assert 'name="level"' in rendered([samples.report(samples.every_verdict())], "plane")


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (Gain(1.25), "about 800 µs"),
        (Gain(1.25, proven=True), "at best 800 µs"),
        (Gain(4.0, changes="types"), "about 250 µs"),
    ],
)
def test_an_entry_has_what_the_first_move_brings_and_the_limit(gain: Gain, said: str) -> None:
    """Alone on the page or listed, a kernel of 1 ms has the time after its first move and its limit."""
    one, other = samples.every_verdict()[:2]
    kernel = replace(one.kernel, counters={"duration_ns": 1e6})
    limit = Limit(2.5, 4e5, "FP32 arithmetic", proven=True)
    known = replace(
        one, kernel=kernel, verdict=replace(one.verdict, limit=limit, moves=(Move("coalesce", "coalesce", gain=gain),))
    )
    alone = words(str(first_screen(page_of(known), ())).partition('<section class="roofline"')[0])
    (ranked,) = (
        words(entry)
        for entry in re.findall(r"<li data-g.*?</li>", str(what_first(page_of(known, other))), re.DOTALL)
        if "Coalesce" in entry
    )
    assert f"1.00 ms \u2192 {said}" in ranked
    for text in (alone, ranked):
        assert said in text
        assert re.search(r"limit (400 \u00b5s \()?2.5x", text.lower())
        assert ("changes the types" in text) == (gain.changes == "types")
        assert set(re.findall(r"[\d.]+x", text)) == {"2.5x"}


def test_a_kernel_whose_gain_is_unknown_has_its_time_alone() -> None:
    """Its row has no time after a move, and neither has the headline."""
    one, other = samples.every_verdict()[:2]
    page = page_of(one, other)
    (entry, _) = re.findall(r"<li data-g.*?</li>", str(what_first(page)), re.DOTALL)
    assert "\u2192" not in entry
    assert "about" not in headline(page).text


def test_the_first_roofline_is_that_of_the_first_row() -> None:
    """The chart beside the list is about its first row; then come GPUs by what is at stake, those without dots last."""

    def on(gpu: str, analysis: Analysis, digest: str, **changes: object) -> Analysis:
        return replace(analysis, kernel=replace(analysis.kernel, gpu=gpu, digest=digest, **changes))

    memory = next(one for one in samples.every_verdict() if one.verdict.bound == "memory")
    most = [on("C", memory, "c" * 64, index=i) for i in range(3)]
    bars = samples.without_flops()[1]
    untold = replace(bars, levels={name: replace(level, share=None) for name, level in bars.levels.items()})
    for longest, order in ((bars, ["A", "C", "B"]), (untold, ["C", "B", "A"])):
        first = on("A", longest, "a" * 64, counters={"duration_ns": 9e9})
        pages = [first, on("B", memory, "b" * 64), *most]
        content = build_content([samples.report([one]) for one in pages], "test", default_thresholds())
        assert content.first[0].gpu == "A"
        assert [figure.plane.gpu for figure in roofline_figures(content)] == order


def test_each_row_says_its_move_and_how_sure_it_is_where_it_is_not() -> None:
    """Uncertain rows, even small ones, say so; the first row and headline always do; collecting is mentioned once."""
    sure = samples.every_verdict()[0]
    unsure = replace(
        samples.every_verdict()[1],
        verdict=replace(samples.every_verdict()[1].verdict, confidence="medium"),
    )
    collect = Move("collect what this report lacks: `rooflens profile -- ./app`", "collect")
    asking = [
        replace(
            unsure,
            kernel=replace(unsure.kernel, name=name, function_name=name, counters={"duration_ns": 10.0}),
            verdict=replace(unsure.verdict, moves=(collect,)),
        )
        for name in ("a", "b")
    ]
    page = page_of(replace(sure, verdict=replace(sure.verdict, confidence="high")), unsure, *asking)
    rows = re.findall(r"<li data-g.*?</li>", str(what_first(page)), re.DOTALL)
    said = [re.findall(r'class="sure">([^<]*)', row) for row in rows]
    assert said[0] == ["class and move confidence: high"]
    assert said[1:] == [["class and move confidence: medium"]] * 3
    assert headline(page).sure == "class and move confidence: high"
    assert [row.count("Collect what") for row in rows] == [0, 0, 1, 1]
    assert ["again" in row.partition(">")[0] for row in rows] == [False, False, False, True]


def test_a_ladder_that_leads_says_what_to_collect_and_the_list_below_does_not(fixtures: Path) -> None:
    """A ladder of nine rungs fills the first screen, so that what comes next stands above it, once on the page."""
    (report,) = analyze_paths([fixtures / "published" / "ESMM-Research__metrics.ncu-rep"]).reports
    collect = Move("collect what this report lacks: `rooflens profile -- ./app`", "collect")
    asking = [replace(one, verdict=replace(one.verdict, moves=(collect,))) for one in report.analyses]
    page = build_content([replace(report, analyses=tuple(asking))], "test", default_thresholds())
    assert page.ladders_lead
    assert words(named_ladders(page.ladders, page, lead=True)).count("Next, from warptiling: collect what") == 1
    rows = re.findall(r"<li data-g[^>]*>", str(what_first(page)))
    assert len(rows) > 5
    assert [row for row in rows if "again" not in row] == []
    assert "Next, from" not in words(named_ladders(page.ladders, page))


def test_a_kernel_that_keeps_nothing_busy_says_why() -> None:
    """The reason is its blocks, else its ready warps: a unit that is 0.1 % busy says nothing."""
    one = next(one for one in samples.every_verdict() if one.verdict.bound == "latency")
    idle = Bottleneck("dram", 0.001)
    for counters, said in (
        ({"grid_size": 1.0, "sm_count": 82.0, "eligible_warps_per_cycle": 0.03}, "1 block for 82 SMs"),
        (
            {"grid_size": 90.0, "sm_count": 82.0, "eligible_warps_per_cycle": 0.03},
            "only 0.0300 warps ready per scheduler",
        ),
    ):
        kernel = replace(one.kernel, counters=one.kernel.counters | counters)
        (group,) = page_of(replace(one, kernel=kernel, verdict=replace(one.verdict, bottleneck=idle))).kernels
        assert limiter(group.analysis).replace("\u00a0", " ") == f"latency-bound: {said}"


def test_code_memory_and_reasons_stand_beside_the_answer() -> None:
    """A page of one kernel has them on its first screen, once, and says why each move without a figure has none."""
    analysis = samples.explained()
    page = page_of(replace(analysis, kernel=replace(analysis.kernel, hotspots=())))
    screen, card = str(first_screen(page, ())), str(next(iter(cards(page).values())).body)
    assert 'class="first flat"' in screen  # nothing is drawn here, so they fill the right half
    for part in ("Why", "Ruled out"):
        assert (f"<h3>{part}</h3>" in screen, f"<h3>{part}</h3>" in card) == (True, False)
    unknown = replace(analysis.verdict, moves=(Move("fuse it", "fuse"), Move("pad", "pad", gain=Gain(1.5, 1e5))))
    said = words(first_screen(page_of(replace(analysis, verdict=unknown)), ()))
    assert "fuse it gain not known: it depends on the algorithm" in said
    assert "Move 2 brings most: " in said


def test_a_list_says_once_why_no_line_is_known() -> None:
    """Of kernels of which none was sampled; where one was, its row has the line."""
    one, other = samples.every_verdict()[:2]
    said = words(what_first(page_of(one, other)))
    assert said.count("no line: the code was not sampled") == 1  # at the first row
    assert said.count("No line: the code was not sampled; profile with ncu --set full") == 1
    spot = Hotspot("line", file="src/a.cu", line=7, measures={"samples": 9.0})
    hot = replace(one, kernel=replace(one.kernel, hotspots=(spot,), code_totals={"samples": 10.0}))
    said = words(what_first(page_of(hot, other)))
    assert "a.cu:7" in said
    assert "No line" not in said
