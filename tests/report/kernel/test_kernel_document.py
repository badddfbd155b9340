"""The document of a kernel: what every face says of it, from the verdict to the counters behind it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from support import samples
from support.tags import words_of

from rooflens.ingest.load import Loaded, load_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.model.analyze import analyze
from rooflens.model.records import LEVELS, Analysis, Level, Nvidia, Rule
from rooflens.model.roofline.occupancy import occupancy_curves
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import MAX_CARDS, Content, build_content
from rooflens.report.document import Table, for_text
from rooflens.report.kernel.document import KernelView, explain, kernel_document
from rooflens.report.kernel.occupancy import CurveDot, occupancy_curve
from rooflens.report.kernel.units import busy_units, opcodes, stalls, useful
from rooflens.report.page.cards import cards
from rooflens.report.page.kernels import kernels
from rooflens.report.templates import write_blocks

CARD_BYTES = 13_500
"""What a card may take on average, in a page of a hundred."""


def page_of(*analyses: Analysis) -> Content:
    """Build the page's rows over one report."""
    return build_content([samples.report(analyses)], "test", default_thresholds())


def card_of(*analyses: Analysis) -> str:
    """Write the cards of some kernels, with plain instead of non-breaking spaces."""
    other = samples.every_verdict()[1]
    written = cards(page_of(*analyses, replace(other, kernel=replace(other.kernel, name="another"))))
    return "".join(str(card.body) for card in list(written.values())).replace("\u00a0", " ")


def text_of(analysis: Analysis) -> str:
    """Explain a kernel as `explain` does."""
    return explain(samples.report([analysis]), analysis).replace("\u00a0", " ")


def sample(duration_us: float, dram_bytes: float, **changes: object) -> Analysis:
    """Make a kernel on an A100 of 1.555 TB/s and 19.5 TFLOP/s of fp32."""
    base = samples.Sample("k", "memory", duration_us, "dram", {"dram": dram_bytes}, {"fp32": 1.95e9})
    return samples.analysis(replace(base, **changes))  # type: ignore[arg-type]


def with_counters(counters: Mapping[str, float], analysis: Analysis | None = None) -> Analysis:
    """Add counters to a kernel."""
    analysis = analysis or sample(1000, 1.555e9)
    return replace(analysis, kernel=replace(analysis.kernel, counters={**analysis.kernel.counters, **counters}))


def test_text_and_card_say_the_same() -> None:
    """Every sentence of `explain` below its heading stands on the kernel's card, whatever its class."""
    missing = []
    for analysis in (*samples.every_verdict(), samples.explained()):
        card = words_of(card_of(analysis))
        blocks = [*for_text(kernel_document(KernelView(samples.report([analysis]), analysis)))][2:]
        told = [words_of(str(write_blocks((block,)))) for block in blocks if not isinstance(block, Table)]
        flat = card.replace(" ", "")
        missing += [words for words in told if words.replace(" ", "") not in flat]
    in_texts_alone = ("Where", "Full name")  # pages have the name itself
    assert [words for words in missing if not words.startswith(in_texts_alone)] == []


def test_a_family_is_named() -> None:
    """If the kernel's name identifies a family, its documentation page is named, and otherwise none."""
    told = "show when they are done: "
    assert f'{told}"Matrix products: GEMM"' in text_of(sample(1000, 1e9, name="sgemm_naive"))
    assert told not in text_of(sample(1000, 1e9))


def test_a_card_has_the_command_for_another_gpu() -> None:
    """The command contains the kernel's key, which `predict` accepts unchanged; a failed kernel has no command."""
    measured = replace(sample(1000, 1e9), key="copy-3f9a1c")
    assert "rooflens predict --from REPORT --kernel copy-3f9a1c --gpu h100-sxm</code>" in card_of(measured)
    page = cards(page_of(samples.failed()))
    assert "rooflens predict" not in "".join(str(card.body) for card in page.values())


def rows_of(document: object) -> list[list[str]]:
    """Return the cells of the only table, with plain spaces."""
    (table,) = (block for block in document if isinstance(block, Table))  # type: ignore[attr-defined]
    cells = [
        [words_of(str(write_blocks((Table((table.columns[0],), ((cell,),)),)))) for cell in row] for row in table.rows
    ]
    heading = len(words_of(table.columns[0].heading)) + 1
    return [[cell[heading:].replace("\u00a0", " ").strip() for cell in row] for row in cells]


def test_a_unit_has_share_rate_peak_and_source() -> None:
    """HBM moves 1.4 of 1.555 TB/s, 90 %; a calibrated roof stands beside what was moved in all."""
    analysis = sample(1000, 1.4e9)
    levels = {**analysis.levels, "dram": replace(analysis.levels["dram"], attainable_per_s=1.45e12)}
    first = rows_of(busy_units(replace(analysis, levels=levels)))[0]
    assert first[0] == "HBM2"
    assert first[2:5] == ["90 %", "1.40 TB/s", "1.56 TB/s"]
    assert first[5] == "1.40 GB, 1.39 FLOP/B, attainable 1.45 TB/s"
    assert first[6]


def test_waits_are_told_in_plain_words() -> None:
    """The reader sees what warps wait for, with NVIDIA's term beside it."""
    (on_page,) = stalls(sample(1000, 1e9).kernel.stalls)
    first = rows_of(on_page.blocks)[0]  # type: ignore[union-attr]
    assert (first[0], first[3]) == ("waits for global memory", "long_scoreboard")


def test_opcodes_say_what_instructions_are_for() -> None:
    """Shares of executed instructions by purpose, each with its main opcodes; small ones are left out."""
    table = {"FFMA": 600, "FADD.FTZ": 100, "LDG.E.128": 150, "LDG.E": 50, "BRA": 95, "MUFU.EX2": 5}
    (on_page,) = opcodes(table, {})
    rows = rows_of(on_page.blocks)  # type: ignore[union-attr]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("FP32", "70 %", "FFMA 60 %, FADD 10 %"),
        ("global memory", "20 %", "LDG 20 %"),
        ("control", "9.5 %", "BRA 9.5 %"),
    ]
    assert opcodes({}, {}) == ()


def test_useful_bytes_stand_beside_moved_ones() -> None:
    """Half of the touched sectors, and three quarters of the shared-memory bytes, were needed; all is not said."""
    counters = {
        "global_ideal_sectors": 5e6,
        "global_touched_sectors": 10e6,
        "smem_useful_bytes": 3e9,
        "l1_shared_data_bytes": 4e9,
        "smem_conflict_bytes": 1e9,
    }
    busy = sample(1000, 1e9, level_bytes={"dram": 1e9, "smem": 4e9})
    assert [words.replace("\u00a0", " ") for words in useful(with_counters(counters, busy))] == [
        "50 % of the sectors of global memory (160 MB of 320 MB)",
        "75 % of the bytes of shared memory (3.00 GB of 4.00 GB), 25 % of it replays of bank conflicts",
    ]
    conflicts = {"l1_shared_data_bytes": 4e9, "smem_conflict_bytes": 1e9}
    assert [*useful(with_counters(conflicts, busy))] == [
        "75 % of the passes of shared memory, 25 % of it replays of bank conflicts"
    ]
    idle = sample(1000, 1e9, level_bytes={"dram": 1e9, "smem": 4e6})
    assert [*useful(with_counters(conflicts, idle))] == []
    assert [*useful(sample(1000, 1e9))] == []


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
        assert words in text_of(replace(analysis, nvidia=Nvidia(bottleneck)))


def test_nvidias_numbers_that_both_sides_read_are_no_second_opinion() -> None:
    """If a report has only the two per cents, agreement proves nothing, and the document says so."""
    analysis = with_counters({"sol_compute": 0.2, "sol_memory": 0.7}, sample(1000, 1e9, flags=("sol_pair_only",)))
    assert "confirm nothing" in text_of(analysis)


RULES = (
    Rule("A", "S", "Coalescing", "Look at @section:MemoryTables:the tables@ and @url:the guide:https://x.y/z@."),
    Rule("B", "S", "", "Rule Bottleneck returned an error: Metric launch__waves not found"),
    Rule("CPIStall", "S", "", "float division by zero\n/home/somebody/Sections/SpeedOfLight.py:60"),
    Rule("CPIStall", "S", "", "A long one. " * 100),
)


def ruled(analysis: Analysis, rules: tuple[Rule, ...] = RULES) -> Analysis:
    """Give a kernel rule results."""
    return replace(analysis, kernel=replace(analysis.kernel, rules=rules))


def test_rule_messages_are_plain_text() -> None:
    """Links lose their markup, broken rules are counted and not shown, and a page has the texts uncut."""
    rule = Rule("C", "S", "Lines", "a\n  b @source:x.cu:12@")
    card = card_of(ruled(sample(1000, 1e9), (*RULES, rule)))
    assert "Coalescing; CPI Stall; Lines." in card
    assert "Look at the tables and the guide." in card
    assert "a b 12" in card
    assert ("A long one. " * 100).strip() in card
    assert "2 rules could not run" in card
    assert "somebody" not in card


def test_rules_stand_by_what_they_promise() -> None:
    """NVIDIA's estimates, those of the kernel before those of a unit, then rules without an estimate."""
    rules = (
        Rule("A", "S", "None", "text"),
        Rule("B", "S", "Unit", "text", unit_speedup_pct=80.0),
        Rule("C", "S", "Little", "text", speedup_pct=6.386),
        Rule("D", "S", "Much", "text", speedup_pct=56.86),
    )
    said = "Much, est. speed-up 57 %; Little, est. speed-up 6.4 %; Unit, est. local speed-up 80 %; 1 more."
    assert said in text_of(ruled(sample(1000, 1e9), rules))


def test_every_number_says_its_source(fixtures: Path) -> None:
    """Each busy unit of a full report has the stored metrics that its share came from."""
    ((_, (kernel, *_)),) = load_reports(
        find_inputs([str(fixtures / "synthetic" / "arch_cc90.synthetic.ncu-rep")]).jobs
    ).reports
    rows = rows_of(busy_units(analyze(kernel)))
    assert len(rows) > 4
    assert [row[0] for row in rows if "__" not in row[-1]] == []


def test_sums_say_whose_numbers_they_are() -> None:
    """A card of several launches says which of them it shows."""
    one = replace(sample(1000, 1e9), launches=12)
    assert "One profile represents 12 equal launches" in card_of(one)
    page = replace(page_of(one), aggregated=True)
    assert "The median one of 12 launches" in "".join(str(card.body) for card in cards(page).values())
    assert "launches" not in text_of(sample(1000, 1e9)).partition("## What")[0]


def test_occupancy_names_its_limit() -> None:
    """The limiting resource, what others would allow, waves and tail."""
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
    assert (
        "Occupancy: limited by registers (168 per thread) to 2 blocks per SM; "
        "blocks per SM by the other limits: warp slots 4; "
        "1.25 waves (270 blocks on 108 SMs), each what all SMs hold at once: "
        "the last one leaves 38 % of the SM time idle; per cycle and scheduler: 0.41 warps ready; "
        "0.30 instructions issued."
    ) in text_of(with_counters(counters))


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
    assert (registers.now, registers.better) == (CurveDot(28, 15), CurveDot(23, 0))
    assert registers.path.startswith("M0 0H23V15H28V")
    assert block.words.replace("\u00a0", " ") == "256 threads: 75 %"
    assert block.better is None
    assert "at 32 registers: 100 % (+25)" in card_of(analysis)


def test_flags_stand_where_they_matter() -> None:
    """Flags that change the verdict follow its sentence; flags about how numbers were made are caveats."""
    text = text_of(sample(1000, 1e9, flags=("dram_writes_stay_in_l2", "fp16_not_measured")))
    parts = ("Memory-bound", "The output stayed in L2", "## What to try", "## Caveats", "does not count CUDA-core fp16")
    places = [text.index(words) for words in parts]
    assert places == sorted(places)


def test_evidence_stands_where_no_finding_and_no_table_does() -> None:
    """The evidence of a verdict is listed unless findings or the busy units say why, with their own numbers."""
    analysis = samples.every_verdict()[2]
    kernel = replace(analysis.kernel, counters=analysis.kernel.counters | {"achieved_occupancy": 0.25})
    told = replace(analysis, kernel=kernel, levels=dict.fromkeys(LEVELS, Level()), pipes={})
    line = "\n- occupancy 25 %"
    assert line in text_of(told)
    assert line not in text_of(replace(told, findings=samples.explained().findings))
    assert line not in text_of(replace(told, levels=analysis.levels))


def test_hostile_texts_are_text() -> None:
    """Texts of a report never become elements."""
    evil = samples.HOSTILE_NAMES[1]
    analysis = samples.every_verdict()[0]
    kernel = replace(
        analysis.kernel,
        rules=(Rule(evil, evil, evil, evil), Rule(evil, evil, "", f"{evil} of a long text" * 9)),
        warp_opcodes={evil: 7},
        gpu=evil,
        counter_sources=dict.fromkeys(analysis.kernel.counter_sources, evil),
        nvtx_range=evil,
        process=evil,
    )
    card = card_of(replace(analysis, kernel=kernel, nvidia=Nvidia(evil)))
    assert "<img" not in card
    assert "&lt;img" in card


def test_anchors_are_unique() -> None:
    """Every card has an anchor of its own."""
    ids = Counter(re.findall(r' id="([^"]+)"', str(kernels(page_of(*samples.many(30))))))
    assert max(ids.values()) == 1
    assert {f"k{i}" for i in range(30)} <= ids.keys()


@pytest.mark.corpus
def test_cards_of_real_reports_stay_small(loaded: Loaded) -> None:
    """A page's maximum of cards of full reports, or of all published ones, take 13.5 kB each on average."""
    analyses = [analyze(kernel) for _, kernels in loaded.reports for kernel in kernels]
    full = [analysis for analysis in analyses if analysis.flop_total is not None and analysis.kernel.stalls]
    for chosen in (analyses, (full * 3)[:MAX_CARDS]):
        html = "".join(str(card.body) for card in cards(page_of(*chosen)).values())
        assert len(html.encode()) < CARD_BYTES * MAX_CARDS
