from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from test_markdown import HOSTILE, hostile, parse

from rooflens.errors import InputError
from rooflens.model.analyze import analyze
from rooflens.model.failed import failed_kernel
from rooflens.model.keys import first_key
from rooflens.model.records import Analysis, AnalyzedReport, Evidence, Finding, Gain, Hotspot, Level, Limit, Move, Rule
from rooflens.report.kernel.document import explain
from rooflens.report.text.digest import LEAST_TOKENS, digest, tokens_of

LINES = (
    Hotspot("line", "/src/a.cu", 7, text="y[i] = x[j];", measures={"samples": 80.0, "stall_long_scoreboard": 60.0}),
    Hotspot("line", "/src/a.cu", 9, measures={"samples": 15.0}),
    Hotspot("line", "/src/b.cu", 3, measures={"samples": 5.0}),
)


def report(analyses: Sequence[Analysis]) -> AnalyzedReport:
    """Put kernels into one report."""
    (made,) = samples.reports([samples.run()], analyses)
    return made


def named(analysis: Analysis, name: str, **more: object) -> Analysis:
    """Give a kernel another name, and its key."""
    kernel = replace(analysis.kernel, name=name, function_name=name, **more)
    return replace(analysis, kernel=kernel, key=first_key(kernel))


def many(count: int) -> list[Analysis]:
    """Make kernels of different names, with verdicts of every class."""
    base = [one for one in samples.every_verdict() if not one.kernel.failed]
    return [named(base[i % len(base)], f"kernel_{i}_of_many") for i in range(count)]


def hot(name: str = "k") -> Analysis:
    """Make a kernel with hot lines."""
    base = next(one for one in samples.every_verdict() if one.verdict.bound == "memory")
    return named(base, name, hotspots=LINES, code_totals={"samples": 100.0})


@pytest.mark.parametrize("max_tokens", [1, LEAST_TOKENS, 300, 700, 1500, 20_000])
@pytest.mark.parametrize("count", [1, 3, 60])
def test_a_digest_keeps_to_its_size_and_counts_what_it_cut(max_tokens: int, count: int) -> None:
    """The text never exceeds its size, and the kernels shown and counted as cut are all kernels."""
    text = digest([report(many(count))], max_tokens)
    assert tokens_of(text) <= max(max_tokens, LEAST_TOKENS)
    shown = [int(place) for place in re.findall(r"^(?:## )?(\d+)\. `", text, flags=re.MULTILINE)]
    assert shown == list(range(1, len(shown) + 1))
    cut = re.search(r"^truncated, (\d+) more kernels?\b", text, flags=re.MULTILINE)
    assert len(shown) + (int(cut[1]) if cut else 0) == count
    assert (len(shown) == count) == (cut is None)


def test_top_shows_so_many_kernels_and_counts_the_others() -> None:
    """With `top` the kernels with most to save are shown, and the rest is counted."""
    text = digest([report(many(9))], 20_000, top=2)
    assert len(re.findall(r"^(?:## )?\d+\. `", text, flags=re.MULTILINE)) == 2
    assert "truncated, 7 more kernels" in text


def test_a_token_is_taken_for_three_bytes() -> None:
    """The estimate is of bytes, rounded up, so that letters of any script count."""
    assert [tokens_of(text) for text in ("", "abc", "abcd", "µs ")] == [0, 1, 2, 2]


def test_a_block_has_verdict_shares_move_two_hot_lines_and_key() -> None:
    """Each line is there, the second hot line by its number alone, as it is in the same file."""
    analysis = hot()
    text = digest([report([analysis])])
    assert "Class confidence" in text
    assert f"- try: {analysis.verdict.advice[0][:20]}" in text
    assert "- hot: `a.cu:7` 80 % `y[i] = x[j];`; `:9` 15 %\n" in text
    assert f"- key: `{analysis.key}`" in text
    assert "b.cu" not in text


def test_a_block_begins_with_gain_and_limit() -> None:
    """1.10 ms in two launches are 2.20 in all: the gain is of both, followed by what its move changes."""
    one = samples.analysis(samples.Sample("k", "memory", 1100, "dram", {"dram": 1e9}))
    move = Move("do it in half of the bytes", "precision", gain=Gain(4.0, changes="types"))
    limit = Limit(2.5, 4.4e5, "FP32 arithmetic", proven=True)
    one = replace(one, verdict=replace(one.verdict, limit=limit, moves=(move,)))
    text = digest([report([one, one])])
    assert (
        "\n- 2.20 ms \u2192 about 550 \u00b5s in 2 launches (4.0x, changes the types), limit 2.5x (FP32 arithmetic)\n"
        in text
    )
    assert set(re.findall(r"[\d.]+x", text)) == {"4.0x", "2.5x"}


def test_no_number_of_a_finding_is_cut() -> None:
    """Numbers that do not fit on the line are left out as a whole, and the gain stays."""
    numbers = tuple(Evidence(f"{what} that takes many words to say", 1234.0, "sectors", "m") for what in "ab")
    found = Finding(
        "x", "a long title of some finding", "limiter", numbers, "mend it", "pad", Gain(3.7, changes="instructions")
    )
    text = digest([report([replace(named(samples.every_verdict()[0], "k"), findings=(found,))])])
    assert (
        "\n- why: A long title of some finding, about 3.7x, changes the instructions: a that takes many words" in text
    )
    assert "b that takes" not in text
    assert "\u2026" not in text


def test_kernels_with_little_at_stake_get_one_line() -> None:
    """A kernel with less than a hundredth of the first kernel's savable time has only its time and limiter."""
    long, short = many(2)
    short = replace(short, kernel=replace(short.kernel, counters={**short.kernel.counters, "duration_ns": 10.0}))
    text = digest([report([long, short])])
    assert len(re.findall("^## ", text, flags=re.MULTILINE)) == 1
    assert re.search(r"^2\. `kernel_1_of_many`: 10\.0 ns", text, flags=re.MULTILINE)


def test_a_failed_kernel_is_named_with_what_to_do() -> None:
    """A report with only failed kernels gives no number, but the reason and how to profile again."""
    failed = analyze(failed_kernel(many(1)[0].kernel, "an impossible value"))
    text = digest([report([failed])])
    assert "1 launch failed, in no number here: `kernel_0_of_many`." in text
    assert "Try: " in text
    assert "Gains" not in text


def test_estimates_of_rules_have_two_digits() -> None:
    """NVIDIA's 8.47549 % is written as 8.5 %, as no estimate is that exact."""
    (analysis,) = many(1)
    rules = (Rule("Occupancy", "S", "Achieved Occupancy", "text", speedup_pct=8.47549),)
    analysis = replace(analysis, kernel=replace(analysis.kernel, rules=rules))
    assert "Achieved Occupancy, est. speed-up 8.5 %." in explain(report([analysis]), analysis)


def test_nothing_and_what_could_not_be_read_are_said() -> None:
    """Without a report there is a title; a report that could not be read is named with the reason."""
    assert digest([]).startswith("# `no report`")
    assert "1 of 1 report could not be read: `broken.ncu-rep` (is damaged)." in digest(
        [], unread=[("/folder/broken.ncu-rep", InputError("is damaged"))]
    )


def test_nothing_out_of_a_report_is_mark_up() -> None:
    """Hostile texts at every place add no HTML, link, picture or heading to a digest or an explanation."""
    analyses = hostile()
    (base,) = samples.reports([replace(samples.run(), source=HOSTILE[9])], analyses)
    texts = [digest([base], 50_000), *(explain(base, analysis) for analysis in analyses)]
    for text in texts:
        tokens = parse(text)
        assert not [token for token in tokens if token.type in {"html_block", "html_inline", "link_open", "image"}]
        assert "\u202e" not in text
        assert "\ud800" not in text
    headings = [token for token in parse(texts[0]) if token.type == "heading_open"]
    assert len(headings) == 1 + len(re.findall(r"^## \d+\. `", texts[0], flags=re.MULTILINE))


@for_all("analysis", [*samples.every_verdict(), samples.explained()], lambda one: one.kernel.function_name)
def test_an_explanation_has_its_counters_and_its_moves_in_order(analysis: Analysis) -> None:
    """Every number of a finding has its metric, and the moves are the verdict's, in its order."""
    text = explain(report([analysis]), analysis)
    plain = text.replace("\\", "").replace("\u2060", "")
    for finding in analysis.findings:
        if finding.severity != "note":
            assert f"(`{finding.id}`, {finding.severity}" in plain
            assert all(evidence.source in plain for evidence in finding.evidence)
    moves = plain.partition("## What to try, in this order")[2]
    places = [moves.find(move[1:].partition("`")[0][:60]) for move in analysis.verdict.advice]
    assert -1 not in places
    assert places == sorted(places)
    assert analysis.key in plain


def test_an_explanation_says_what_would_confirm_a_move() -> None:
    """A finding's move is followed by how to confirm it, from the finding's documentation, and how to compare."""
    base = named(samples.explained(), "k")
    (found, _) = base.findings
    move = Move(found.move, found.kind, found.id, found.where, found.gain)
    analysis = replace(base, verdict=replace(base.verdict, moves=(move,)))
    text = explain(report([analysis]), analysis)
    assert "about 786 µs (1.4x). Confirm with the time series, or with a grid of whole waves." in text
    assert f"`rooflens compare BEFORE AFTER --kernel {analysis.key}`" in text


def test_an_explanation_has_the_hot_lines_and_the_part_of_the_report() -> None:
    """Hot lines give the share of their samples for the longest wait; the kernel's share is of all launches."""
    analysis = hot()
    text = explain(report([analysis, analysis, named(analysis, "other")]), analysis)
    assert "| 80 % | waits for global memory, 75 % | `a.cu:7` | `y[i] = x[j];` |" in text
    assert ": 67 % of the report's GPU time" in text


def test_an_explanation_tells_an_idle_memory_level_from_one_that_was_not_measured() -> None:
    """DRAM at 0.2 % is named as measured; without a share it is not named, and neither is a busy level."""
    base = hot()
    idle, missing = (replace(base, levels={**base.levels, "dram": Level(share=share)}) for share in (0.002, None))
    line = "Measured, and below 1.0 %: HBM2"
    assert line in explain(report([idle]), idle)
    assert line not in explain(report([missing]), missing)
    assert line not in explain(report([base]), base)
