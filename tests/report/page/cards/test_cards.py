from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from markupsafe import Markup
from msgspec.structs import replace
from support import samples
from support.tags import words_of

from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, Nvidia, Rule
from rooflens.model.roofline.occupancy import find_occupancy, occupancy_curves
from rooflens.model.roofline.traffic import find_traffic
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.reading.load import Loaded, load_reports
from rooflens.reading.reports.inputs import find_inputs
from rooflens.report.content import MAX_CARDS, Content, build_content
from rooflens.report.page.cards import card as cards
from rooflens.report.page.cards.bars import level_bars, opcode_mix, pipe_bars, stall_bars
from rooflens.report.page.cards.memory import Memory, memory
from rooflens.report.page.cards.nvidia import Message, Opinion, opinion, plain_message, shared_texts
from rooflens.report.page.cards.occupancy import Dot, occupancy_curve, resident
from rooflens.report.page.cards.sources import SHARED_FROM, common_rows, merged, source_rows
from rooflens.report.page.kernels import kernels
from rooflens.report.words.how_it_runs import occupancy_facts

CARD_BYTES = 11_000
"""What a card may take on average, in a page of a hundred."""


def page_of(*analyses: Analysis) -> Content:
    """Build the page's rows over one report."""
    return build_content([samples.report(analyses)], "test", default_thresholds())


def html_of(*analyses: Analysis) -> str:
    """Write the list of some kernels with their cards, with plain instead of non-breaking spaces."""
    return str(kernels(page_of(*analyses))).replace("\u00a0", " ")


def sample(duration_us: float, dram_bytes: float, **changes: object) -> Analysis:
    """Make a kernel on an A100 of 1.555 TB/s and 19.5 TFLOP/s of fp32."""
    base = samples.Sample("k", "memory", duration_us, "dram", {"dram": dram_bytes}, {"fp32": 1.95e9})
    return samples.analysis(replace(base, **changes))  # type: ignore[arg-type]


def with_counters(counters: Mapping[str, float], analysis: Analysis | None = None) -> Analysis:
    """Add counters to a kernel."""
    analysis = analysis or sample(1000, 1.555e9)
    return replace(analysis, kernel=replace(analysis.kernel, counters={**analysis.kernel.counters, **counters}))


def test_small_pipes_are_named_and_not_drawn() -> None:
    """Three pipes are always drawn; others below 1 % are only named, with their FLOPs."""
    inst = {"issue": 1e6, "alu": 1e3, "xu": 1e3}
    bars = pipe_bars(sample(1000, 1e9, flop={"fp32": 1e9, "fp64": 1e3}, inst=inst).pipes)
    assert [bar.label for bar in bars.shown] == ["FP32", "instruction issue", "XU pipe"]
    assert [name.replace("\u00a0", " ") for name in bars.small] == ["ALU pipe", "FP64 (1.00 kFLOP)"]


def test_a_card_names_the_page_of_its_family() -> None:
    """If the kernel's name identifies a family, its documentation page is named, and otherwise none."""
    told = "is in the documentation: "
    assert f"{told}&#34;Matrix products: GEMM&#34;" in html_of(sample(1000, 1e9, name="sgemm_naive"))
    assert told not in html_of(sample(1000, 1e9))


def test_a_card_has_the_command_for_another_gpu() -> None:
    """The command contains the kernel's key, which `predict` accepts unchanged; a failed kernel has no command."""
    measured = replace(sample(1000, 1e9), key="copy-3f9a1c")
    assert "rooflens predict --from REPORT --kernel copy-3f9a1c --gpu h100-sxm</code>" in html_of(measured)
    assert "rooflens predict" not in html_of(samples.failed())


def test_a_level_names_its_stage_where_it_has_several() -> None:
    """The share of a level with several stages is that of its busiest; with a single stage none is named."""
    analysis = sample(1000, 1e9)
    levels = {
        "dram": replace(analysis.levels["dram"], share=0.9, stages={"bus": 0.9}),
        "l1": replace(analysis.levels["l1"], share=0.7, stages={"tag": 0.1, "from_l2": 0.7}),
        "l2": analysis.levels["l2"],
    }
    bars = level_bars(replace(analysis, levels=levels)).shown
    assert [(bar.label, bar.part) for bar in bars] == [("HBM2", ""), ("L1", "from L2 stage")]


def test_attainable_roofs_are_marked_on_the_bar() -> None:
    """A calibrated roof is a line on the bar with a number beside it."""
    analysis = sample(1000, 1e9)
    levels = {**analysis.levels, "dram": replace(analysis.levels["dram"], attainable_per_s=1.4e12)}
    (bar,) = level_bars(replace(analysis, levels=levels)).shown
    assert bar.mark == pytest.approx(1.4 / 1.555)
    assert "attainable 1.40 TB/s" in html_of(replace(analysis, levels=levels))


def test_stalls_are_told_in_plain_words() -> None:
    """The reader sees what warps wait for, with NVIDIA's term beside it."""
    first = stall_bars(sample(1000, 1e9).kernel.stalls).shown[0]
    assert (first.label, first.rate) == ("global memory", "long_scoreboard")


def memory_of(analysis: Analysis) -> Memory:
    """Compare the bytes a kernel requested with those that were moved."""
    return memory(analysis.levels.get("smem"), find_traffic(analysis.kernel))


def test_useful_bytes_stand_beside_moved_ones() -> None:
    """Half of the touched sectors, and three quarters of the shared-memory bytes, were needed."""
    counters = {
        "global_ideal_sectors": 5e6,
        "global_touched_sectors": 10e6,
        "smem_useful_bytes": 3e9,
        "l1_shared_data_bytes": 4e9,
        "smem_conflict_bytes": 1e9,
    }
    shown = memory_of(with_counters(counters, sample(1000, 1e9, level_bytes={"dram": 1e9, "smem": 4e9})))
    assert [(bar.label, bar.share) for bar in shown.bars] == [("Global memory", 0.5), ("Shared memory", 0.75)]
    words = [f"{bar.rate}; {bar.amount}".replace("\u00a0", " ") for bar in shown.bars]
    assert words[0] == "160 MB of sectors needed; 320 MB touched"
    assert words[1] == "3.00 GB asked for, 4.00 GB moved; 25 % of it replays of bank conflicts"


def test_conflicts_stand_in_where_nobody_counted_what_was_asked() -> None:
    """Without requested bytes the bar shows what was not replayed; shared memory that is hardly used has none."""
    counters = {"l1_shared_data_bytes": 4e9, "smem_conflict_bytes": 1e9}
    busy = sample(1000, 1e9, level_bytes={"dram": 1e9, "smem": 4e9})
    assert [bar.share for bar in memory_of(with_counters(counters, busy)).bars] == [0.75]
    idle = sample(1000, 1e9, level_bytes={"dram": 1e9, "smem": 4e6})
    assert memory_of(with_counters(counters, idle)).bars == ()


def test_traffic_that_nobody_counted_is_not_shown() -> None:
    """Without counters there is neither a panel of useful bytes nor one of occupancy."""
    analysis = sample(1000, 1e9)
    assert memory_of(analysis).bars == memory_of(analysis).facts == ()
    assert resident(find_occupancy(analysis.kernel), occupancy_facts(analysis.kernel)) is None
    html = html_of(analysis)
    assert "Useful part" not in html
    assert "Occupancy" not in html


def test_occupancy_names_its_limit() -> None:
    """Allowed and achieved occupancy, the limiting resource, what others would allow, waves and tail."""
    counters = {
        "achieved_occupancy": 0.36,
        "theoretical_occupancy": 0.5,
        "blocks_limit_registers": 2.0,
        "blocks_limit_warps": 4.0,
        "registers_per_thread": 168.0,
        "waves": 1.25,
        "grid_size": 270.0,
        "sm_count": 108.0,
        "eligible_warps_per_cycle": 0.41,
        "issue_active_per_cycle": 0.3,
    }
    kernel = with_counters(counters).kernel
    shown = resident(find_occupancy(kernel), occupancy_facts(kernel))
    assert shown is not None
    assert [(bar.label, bar.share) for bar in shown.bars] == [("Allowed", 0.5), ("Achieved", 0.36)]
    assert [fact.replace("\u00a0", " ") for fact in shown.facts] == [
        "limited by registers (168 per thread) to 2 blocks per SM",
        "blocks per SM by the other limits: warp slots 4",
        (
            "1.25 waves (270 blocks on 108 SMs), each what all SMs hold at once: "
            "the last one leaves 38 % of the SM time idle"
        ),
        "per cycle and scheduler: 0.41 warps ready; 0.30 instructions issued",
    ]


def test_nvidia_says_the_same_or_something_else() -> None:
    """Agreement is stated in a sentence; for disagreement both views are given, and ours with its reason."""
    analysis = sample(1050, 1.555e9)
    for bottleneck, words in (
        ("High Memory Throughput", "NVIDIA's rule says the same: memory."),
        (
            "Latency Issue",
            "NVIDIA's rule says: latency. rooflens says: memory-bound at HBM2, because that is 95 % busy.",
        ),
        ("Something new", "NVIDIA's rule says: Something new."),
    ):
        found = opinion(replace(analysis, nvidia=Nvidia(bottleneck)))
        assert found is not None
        assert found.headline.replace("\u00a0", " ") == words


def test_nvidias_numbers_that_both_sides_read_are_no_second_opinion() -> None:
    """If a report has only the two per cents, agreement proves nothing, and the card says so."""
    analysis = with_counters({"sol_compute": 0.2, "sol_memory": 0.7}, sample(1000, 1e9, flags=("sol_pair_only",)))
    found = opinion(analysis)
    assert found is not None
    assert "confirm nothing" in found.note


RULES = (
    Rule("A", "S", "Coalescing", "Look at @section:MemoryTables:the tables@ and @url:the guide:https://x.y/z@."),
    Rule("B", "S", "", "Rule Bottleneck returned an error: Metric launch__waves not found"),
    Rule("CPIStall", "S", "", "float division by zero\n/home/somebody/Sections/SpeedOfLight.py:60"),
    Rule("CPIStall", "S", "", "A long one. " * 100),
)


def ruled(analysis: Analysis) -> Analysis:
    """Give a kernel rule results."""
    return replace(analysis, kernel=replace(analysis.kernel, rules=RULES))


def test_rule_messages_are_plain_text() -> None:
    """Links lose their markup, texts are not cut, and broken rules are counted and not shown."""
    found = opinion(ruled(sample(1000, 1e9)))
    assert found is not None
    assert [message.title for message in found.messages] == ["Coalescing", "CPI Stall"]
    assert found.messages[0].text == "Look at the tables and the guide."
    assert plain_message("a\n  b @source:x.cu:12@") == "a b 12"
    assert found.broken == 2
    html = html_of(ruled(sample(1000, 1e9)))
    assert ("A long one. " * 100).strip() in html
    assert "2 rules could not run" in html
    assert "somebody" not in html


def test_rules_stand_by_what_they_promise() -> None:
    """NVIDIA's estimates, those of the kernel before those of a unit, then rules without an estimate."""
    rules = (
        Rule("A", "S", "None", "text"),
        Rule("B", "S", "Unit", "text", unit_speedup_pct=80.0),
        Rule("C", "S", "Little", "text", speedup_pct=6.386),
        Rule("D", "S", "Much", "text", speedup_pct=56.86),
    )
    analysis = sample(1000, 1e9)
    found = opinion(replace(analysis, kernel=replace(analysis.kernel, rules=rules)))
    assert found is not None
    assert [(message.title, message.estimate) for message in found.messages] == [
        ("Much", "est. speed-up 56.9 %"),
        ("Little", "est. speed-up 6.39 %"),
        ("Unit", "est. local speed-up 80.0 %"),
        ("None", ""),
    ]


def test_texts_of_many_cards_are_written_once() -> None:
    """A page of many cards writes a shared long text once and links to it; a short page repeats it."""
    html = html_of(*(ruled(analysis) for analysis in samples.many(30)))
    assert html.count(("A long one. " * 100).strip()) == 1
    (number,) = re.findall(r'<li id="(rule-\d+)"', html)
    assert html.count(f'href="#{number}"') == 30
    assert html.count("Look at the tables") == 30
    few = html_of(*(ruled(analysis) for analysis in samples.many(3)))
    assert few.count(("A long one. " * 100).strip()) == 3
    assert shared_texts([]) == {}


def test_shared_texts_are_numbered_as_they_come() -> None:
    """A page is identical whenever it is written: texts of rules are in the order of the cards."""
    texts = [f"{number}, and a long one. " * 10 for number in range(9)]
    said = Opinion("", "", tuple(Message("A rule", text) for text in texts), 0)
    assert shared_texts([said] * (SHARED_FROM + 1)) == {text: number for number, text in enumerate(texts, 1)}


def test_every_drawn_number_says_its_source(fixtures: Path) -> None:
    """Counters, levels and pipes of a card each have a line of provenance in a disclosure."""
    ((_, (kernel, *_)),) = load_reports(
        find_inputs([str(fixtures / "synthetic" / "arch_cc90.synthetic.ncu-rep")]).jobs
    ).reports
    analysis = analyze(kernel)
    labels = ", ".join(label for label, _ in source_rows(analysis))
    drawn = (*level_bars(analysis).shown, *pipe_bars(analysis.pipes).shown)
    assert len(drawn) > 5
    for bar in drawn:
        assert bar.label in labels, bar.label
    html = html_of(analysis)
    assert "Where each number comes from" in html
    assert "gpu__time_duration.sum" in html


def test_usual_sources_are_written_once() -> None:
    """A page of many cards writes the usual source of each number once; a short page repeats them."""
    rows = source_rows(samples.every_verdict()[0])
    assert common_rows([rows] * SHARED_FROM) == ()
    assert common_rows([*([rows] * SHARED_FROM), (("time", "another"), ("rare", "metric"))]) == (
        *rows,
        ("rare", "metric"),
    )
    assert merged((("a", "x"), ("b", "y"), ("c", "x"))) == (("a, c", "x"), ("b", "y"))
    html = html_of(*samples.many(30))
    assert html.count('id="card-sources"') == 1
    assert html.count('href="#card-sources"') == 30
    assert html.count("gpu__time_duration.sum") == 1
    assert "card-sources" not in html_of(*samples.many(3))


def test_sums_say_whose_numbers_they_are() -> None:
    """A card of several launches says which of them it shows."""
    one = replace(sample(1000, 1e9), launches=12)
    assert "One profile represents 12 equal launches" in html_of(one)
    page = replace(page_of(one), aggregated=True)
    text = str(kernels(page))
    assert "The median one of 12 launches" in text
    assert "Stands for" not in html_of(sample(1000, 1e9))


def test_a_prediction_has_a_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with a prediction has a panel for it; others have none."""
    assert "panel predicted" not in html_of(sample(1000, 1e9))
    monkeypatch.setattr(cards, "checked_for", lambda *_arguments: "a prediction")
    monkeypatch.setattr(cards, "predicted_panel", lambda *_arguments, **_options: Markup("<b>as predicted</b>"))
    assert '<div class="panel predicted"><b>as predicted</b></div>' in html_of(sample(1000, 1e9))


def test_the_mix_says_what_instructions_are_for() -> None:
    """Shares of executed warp instructions by purpose, each with its main opcodes; small ones are only named."""
    table = {"FFMA": 600, "FADD.FTZ": 100, "LDG.E.128": 150, "LDG.E": 50, "BRA": 95, "MUFU.EX2": 5}
    of, mix = opcode_mix(table, {})
    assert of == "executed warp instructions"
    assert [(bar.label, bar.share, bar.rate.replace("\u00a0", " ")) for bar in mix.shown] == [
        ("FP32", 0.7, "FFMA 60 %, FADD 10 %"),
        ("global memory", 0.2, "LDG 20 %"),
        ("control", 0.095, "BRA 9.5 %"),
    ]
    assert mix.small == ("special functions",)
    of, mix = opcode_mix({}, {"FFMA": 32})
    assert (of, [bar.share for bar in mix.shown]) == ("executed thread instructions", [1.0])
    assert opcode_mix({}, {})[1].shown == ()
    assert "Opcode mix" not in html_of(sample(1000, 1e9))


def test_occupancy_curves_name_today_and_the_next_step() -> None:
    """The launch as it is, and the nearest change that allows clearly more, with its gain in points."""
    counters = {
        "sm_warps": 64.0,
        "sm_registers": 65536.0,
        "blocks_limit_blocks": 32.0,
        "blocks_limit_smem": 32.0,
        "registers_per_thread": 40.0,
        "block_size": 256.0,
        "theoretical_occupancy": 0.75,
    }
    analysis = with_counters(counters)
    registers, block = map(occupancy_curve, occupancy_curves(replace(analysis.kernel, compute_capability="8.0")))
    assert registers.words.replace("\u00a0", " ") == "40 registers: 75 %; at 32 registers: 100 % (+25)"
    assert (registers.now, registers.better) == (Dot(28, 15), Dot(23, 0))
    assert registers.path.startswith("M0 0H23V15H28V")
    assert block.words.replace("\u00a0", " ") == "256 threads: 75 %"
    assert block.better is None
    assert "at 32 registers: 100 % (+25)" in html_of(analysis)


def test_flags_stand_where_they_matter() -> None:
    """Flags that change the verdict follow its sentence; flags about how numbers were made are at the end."""
    flags = ("dram_writes_stay_in_l2", "fp16_not_measured")
    text = words_of(html_of(sample(1000, 1e9, flags=flags)))
    parts = (
        "The output stayed in L2",
        "class: confidence high",
        "Memory levels",
        "About these numbers",
        "does not count CUDA-core fp16",
    )
    places = [text.index(words) for words in parts]
    assert places == sorted(places)
    assert "About these numbers" not in words_of(html_of(sample(1000, 1e9)))


def test_causes_stay_and_repeated_evidence_goes() -> None:
    """Lines that the bars show are not repeated; the causes of latency are listed."""
    analysis = samples.every_verdict()[2]
    verdict = replace(analysis.verdict, evidence=("DRAM 9 %: 1 GB", "cause: 0.25 waves: 33 blocks on 132 SMs"))
    html = html_of(replace(analysis, verdict=verdict))
    assert "<li>0.25 waves: 33 blocks on 132 SMs</li>" in html
    assert "DRAM 9 %: 1 GB" not in html
    bare = replace(analysis, verdict=verdict, levels=samples.failed().levels, pipes={})
    assert "DRAM 9 %: 1 GB" in html_of(bare)


def test_hostile_rules_and_sources_are_text() -> None:
    """Texts of a report never become elements."""
    evil = samples.HOSTILE_NAMES[1]
    analysis = samples.every_verdict()[0]
    kernel = replace(
        analysis.kernel,
        rules=(Rule(evil, evil, evil, evil), Rule(evil, evil, "", f"{evil} of a long text that cards share" * 9)),
        warp_opcodes={evil: 7},
        gpu=evil,
        counter_sources=dict.fromkeys(analysis.kernel.counter_sources, evil),
        nvtx_range=evil,
        process=evil,
    )
    hostile = replace(analysis, kernel=kernel, nvidia=Nvidia(evil))
    for html in (html_of(hostile), html_of(*[hostile] * (SHARED_FROM + 1))):
        assert "<img" not in html
        assert "&lt;img" in html


def test_anchors_are_unique() -> None:
    """Every card has an anchor of its own."""
    ids = Counter(re.findall(r' id="([^"]+)"', html_of(*samples.many(30))))
    assert max(ids.values()) == 1
    assert {f"k{i}" for i in range(30)} <= ids.keys()


@pytest.mark.corpus
def test_cards_of_real_reports_stay_small(loaded: Loaded) -> None:
    """A page's maximum of cards of full reports, or of all published ones, take 11 kB each on average."""
    analyses = [analyze(kernel) for _, kernels in loaded.reports for kernel in kernels]
    full = [analysis for analysis in analyses if analysis.flop_total is not None and analysis.kernel.stalls]
    for chosen in (analyses, (full * 3)[:MAX_CARDS]):
        html = "".join(cards.cards(page_of(*chosen)).by_launch.values())
        assert len(html.encode()) < CARD_BYTES * MAX_CARDS
