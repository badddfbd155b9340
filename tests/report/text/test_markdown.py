from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from untimed import without_durations

from rooflens.errors import InputError
from rooflens.model.records import Analysis, Evidence, Finding, Gain, Hotspot, Move, Place, Run
from rooflens.model.summary import summarize
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.document import Column, Heading, Span, Table
from rooflens.report.document import code as code_span
from rooflens.report.overview.document import MAX_ROWS, overview
from rooflens.report.overview.kernels import kernels_document
from rooflens.report.overview.steps import MAX_NAMED
from rooflens.report.writers.markdown import code, prose, to_markdown

HOSTILE = (
    "a|b",
    "a\\|b",
    "a\\",
    "`tick`",
    "x`y``z",
    "new\nline | x",
    "@nobody #1 https://evil.example www.evil.example",
    "[link](http://x)",
    "![image](http://x)",
    "<img src=x onerror=alert(1)>",
    "</details><script>",
    "| --- |",
    "\u202ebackwards\u200b",
    "$x$ ~~s~~ **b** __c__",
    "\\`|`\\|",
    "-->",
    "\ud800half",
    "&lt;b&gt;",
    " ",
    "long" * 1000,
)
HTML = ["<details><summary>Method</summary>\n", "</details>\n"]
"""The only HTML that the Markdown holds."""


def write(analyses: Sequence[Analysis], runs: Sequence[Run] = (), title: str = "attention", **more: object) -> str:
    """Render the Markdown of a page."""
    return (
        to_markdown(
            overview(
                build_content(samples.reports(runs or [samples.run()], analyses), title, default_thresholds(), **more),  # type: ignore[arg-type]
                "file",
            )
        )
        + "\n"
    )


def parse(text: str) -> list[Token]:
    """Parse Markdown with GitHub's extensions in markdown-it; return all tokens, including those inside lines."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [one for token in tokens for one in (token, *(token.children or ()))]


def table_rows(tokens: Sequence[Token]) -> list[list[str]]:
    """Return the cells of the table as Markdown, row by row."""
    rows: list[list[str]] = []
    inside = False
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        inside = token.type in {"th_open", "td_open"} or (inside and token.type not in {"th_close", "td_close"})
        if inside and token.type == "inline":
            rows[-1].append(token.content)
    return rows


def hostile() -> list[Analysis]:
    """Put every hostile text wherever a report could have one."""
    base = samples.every_verdict()[:5]
    return [_hostile(base[i % 5], text, i) for i, text in enumerate(HOSTILE)]


def _hostile(one: Analysis, text: str, index: int) -> Analysis:
    kernel = replace(one.kernel, name=text, gpu=text, index=index)
    verdict = replace(one.verdict, cause=text, moves=(Move(text, "coalesce"),))
    return replace(one, kernel=kernel, verdict=verdict, flags=(text,))


def test_it_says_what_ran_where_and_what_to_fix_first() -> None:
    """Title, GPU, clock, ncu, time by verdict, the first kernel with its move, and every kernel are in it."""
    text = write(samples.every_verdict())
    assert text.startswith("## attention\n\nNVIDIA A100-SXM4-40GB \u00b7 CC 8.0 \u00b7 SM 1.41 GHz")
    assert "**45 %** memory-bound, **26 %** compute-bound" in text
    assert "**`softmax_warp_forward`" not in text
    assert "\n`softmax_warp_forward`**: 1.92 ms, memory-bound (HBM2 91 %); try it fused" in text
    assert "1. `softmax_warp_forward`: **1.92 ms, 1.05 ms above its floor**. " in text
    assert "memory-bound: HBM2 91 %, at the roof" in text
    assert "3. `gather_rows`: **640 \u00b5s, 556 \u00b5s above its floor**. " in text
    assert "gain not known: it depends on the algorithm, fewer bytes would allow 7.7x, with HBM2 26 %" in text
    assert "More loads in flight: unroll, prefetch, asynchronous copies." in text
    assert [
        one.name for one in summarize(samples.every_verdict()) if f"| `{one.representative.short_name}` |" not in text
    ] == []


def test_synthetic_data_is_said_before_any_number() -> None:
    """The warning is directly below the title."""
    text = write(samples.every_verdict(), [samples.run(synthetic=True)])
    marker, warning = text.splitlines()[2:4]
    assert marker == "> [!WARNING]"
    assert warning.startswith("> **Synthetic data.** This report was written by a generator")
    assert warning.endswith("No number below is a measurement.")
    assert "Synthetic" not in write(samples.every_verdict())


def test_hostile_text_stays_text() -> None:
    """Names, causes, moves, flags, paths and titles never become HTML, a link, an image or a heading."""
    runs = [samples.run(source=text, clock_control=text, ncu_version=text) for text in HOSTILE]
    unread = [(text, InputError(text)) for text in HOSTILE]
    for title in HOSTILE:
        tokens = parse(write(hostile(), runs, title, unread=unread))
        kinds = {token.type for token in tokens}
        assert not kinds & {"link_open", "image", "html_inline", "s_open", "em_open", "fence", "code_block"}
        assert [token.content for token in tokens if token.type == "html_block"] == HTML
        assert sum(token.type == "heading_open" for token in tokens) == 3


def test_the_table_keeps_its_columns_whatever_names_hold() -> None:
    """Every row has as many cells as the heading, and the name is whole in its cell."""
    rows = table_rows(parse(write(hostile())))
    assert {len(row) for row in rows} == {9}
    names = {row[0] for row in rows}
    assert {"`a|b`", "``` x`y``z ```".replace(" ", ""), "`x`", "`(no name)`", "`?half`"} <= names


@for_all("text", HOSTILE)
def test_nothing_in_a_sentence_is_linked_by_itself(text: str) -> None:
    """A joiner splits mentions, numbers and addresses in sentences, so that no renderer links them."""
    for written in (prose(f"see {text} there"), to_markdown((Heading(Span(text, "literal")),))):
        assert not [mark for mark in ("@nobody", "#1", "://", "www.") if mark in written]


def test_code_spans_hold_backticks_and_pipes() -> None:
    """A span is fenced by more backticks than it contains; in a cell no backslash can undo the escape of a pipe."""
    assert code("a`b") == "``a`b``"
    assert code("`a") == "`` `a ``"
    cell = to_markdown((Table((Column("x"),), ((code_span("a|b\\|c"),),)),)).splitlines()[-1]
    assert cell == "| `a\\|b\u29f5\\|c` |"
    assert prose("run `ncu --set full` on a_b") == "run `ncu --set full` on a\\_b"
    assert prose("one ` alone") == "one \\` alone"


def test_a_table_has_a_line_for_each_row() -> None:
    """There are headings, the line that aligns numbers to the right, and the rows."""
    table = Table((Column("name"), Column("time", right=True)), (("a", "1 us"),))
    assert to_markdown((table,)) == "| name | time |\n|---|---:|\n| a | 1 us |"


def test_many_kernels_end_in_one_line() -> None:
    """The table has the longest kernels, and one line sums up the others."""
    text = write(samples.many(100))
    rows = table_rows(parse(text))
    assert len(rows) == 1 + MAX_ROWS
    assert re.search(r"^and 80 more, \d+ % of GPU time$", text, re.MULTILINE)
    assert len(text) < 10_000


def test_launches_of_one_kernel_are_one_row() -> None:
    """Two launches of a kernel share a row with their number and the sum of their times."""
    one = samples.every_verdict()[0]
    rows = table_rows(parse(write([one, replace(one, kernel=replace(one.kernel, index=1))])))
    assert rows[1][0].endswith("` x2")
    assert rows[1][1] == "3.84 ms"


def test_verdicts_that_differ_between_launches_are_both_named() -> None:
    """A kernel whose launches have two verdicts shows both, with their share of its time."""
    one = samples.every_verdict()[0]
    other = replace(one, kernel=replace(one.kernel, index=1), verdict=replace(one.verdict, bound="latency"))
    assert table_rows(parse(write([one, other])))[1][5].startswith("memory 50 %, latency 50 %")


def test_what_is_in_no_number_is_named() -> None:
    """Failed launches, unread reports and flags that change verdicts are named; other flags are in the method."""
    resident, *others = samples.every_verdict()
    analyses = [replace(resident, flags=("dram_writes_stay_in_l2", "no_flop")), *others]
    failed = [samples.failed(f"late_{i}", i) for i in range(MAX_NAMED + 2)]
    text = write([*analyses, *failed], unread=[("C:\\runs\\bad.ncu-rep", InputError("truncated"))])
    assert "- 7 launches failed while being profiled, in no number here: `late_0`" in text
    assert "`late_4` and 2 more." in text
    assert "- 1 of 2 reports could not be read: `bad.ncu-rep` (truncated)." in text
    caveats, _, method = text.partition("### Caveats")[2].partition("<details>")
    assert "- 1 launch: The output stayed in L2: DRAM traffic is under-counted" in caveats
    assert "no FLOPs" not in caveats
    assert "no FLOPs (1)" in method


def test_a_clock_far_below_boost_is_a_caveat() -> None:
    """What would be another verdict at the full clock is said first, with its launches."""
    one = samples.every_verdict()[0]
    slow = replace(one, kernel=replace(one.kernel, counters={**one.kernel.counters, "sm_clock_hz": 0.546e9}))
    caveats = write([slow]).partition("### Caveats")[2].replace("\u00a0", " ")
    assert caveats.strip().startswith("- 1 launch: Profiled at 546 MHz, far below the 1.41 GHz")


def test_no_folder_of_this_machine_is_told() -> None:
    """Reports are named without their folders, as Markdown is made to be shared."""
    assert "/home/me" not in write(samples.every_verdict(), [samples.run(source="/home/me/attention.ncu-rep")])


@pytest.mark.parametrize(
    "analyses",
    [[], [samples.failed()], samples.every_verdict()[5:], samples.without_flops(), without_durations()],
    ids=["nothing", "all failed", "all unknown", "no FLOPs", "no durations"],
)
def test_every_state_of_the_data_is_written(analyses: list[Analysis]) -> None:
    """Every state of the data gives valid Markdown, always with the method."""
    text = write(analyses)
    assert "None" not in text
    assert "nan" not in text
    assert text.endswith("</details>\n")


def found(title: str, severity: str = "limiter") -> Finding:
    """Make a finding with three numbers and a place, all of whose texts come from a report."""
    spot = Hotspot("line", file=f"src/{title}.cu", line=88)
    numbers = (
        Evidence(title, 0.5, "share", title),
        Evidence("sectors", 1.2e9, "sectors", "m"),
        Evidence("c", 1, "", "m"),
    )
    return Finding("x", title, severity, numbers, title, "coalesce", Gain(3.7), (Place(spot, 0.5),))  # type: ignore[arg-type]


def test_a_ranked_kernel_has_its_findings_below_it() -> None:
    """Each finding that costs time is an item with title, gain, two numbers and place; notes are left out."""
    one = samples.every_verdict()[0]
    text = write([replace(one, findings=(found("uncoalesced loads"), found("spills"), found("low", "note")))])
    item = "  - **uncoalesced loads**, about 3.7x: uncoalesced loads 50 %, sectors 1.20 G at `uncoalesced loads.cu:88`"
    assert item in text.splitlines()
    assert [token.type for token in parse(text)].count("bullet_list_open") >= 1
    assert text.count("about 3.7x") == 2


@for_all("title", HOSTILE)
def test_findings_hold_hostile_text(title: str) -> None:
    """Titles, names of numbers and files of a finding are never read as Markdown, HTML or links."""
    tokens = parse(write([replace(samples.every_verdict()[0], findings=(found(title),))]))
    assert not {token.type for token in tokens} & {"link_open", "image", "html_inline"}
    assert [token.content for token in tokens if token.type == "html_block"] == HTML


def test_the_tables_of_analyze_hold_hostile_names_too() -> None:
    """The Markdown of `analyze` keeps its columns and makes no link from a name."""
    tokens = parse(to_markdown(kernels_document(summarize(hostile()))))
    assert not {token.type for token in tokens} & {"link_open", "image", "html_inline", "html_block"}
    assert {len(row) for row in table_rows(tokens)} == {9}
