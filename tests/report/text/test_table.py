from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from support import samples
from support.samples import Sample

import rooflens as rl
from rooflens.cli.group import COMMANDS
from rooflens.model.knowledge.items import column_heads
from rooflens.model.ranking import ORDER, in_order
from rooflens.model.records import Analysis, Evidence, Finding, Gain, Hotspot, Limit, Move, Place, Verdict
from rooflens.model.summary import KernelSummary, summarize
from rooflens.model.verdict.advice import collect_moves
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.document import (
    Below,
    Bullets,
    Opportunities,
    Opportunity,
    Paragraph,
    Table,
    Words,
    for_text,
    spans,
)
from rooflens.report.overview.document import OverviewRequest, overview
from rooflens.report.overview.kernels import LEGEND, kernels_document
from rooflens.report.overview.steps import caveat_lines
from rooflens.report.writers.terminal import to_terminal

KEPT = ("kernel", "time", "verdict", "gain", "limit")
"""Columns that a terminal of 80 columns has, whatever the kernels hold."""


def printed(kernels: Sequence[KernelSummary], width: int) -> list[str]:
    """Return the lines of the only GPU's table on a terminal of this width, without its heading."""
    return to_terminal(kernels_document(kernels), width).splitlines()[1:]


def plain(words: Words) -> str:
    """Return the text of a line."""
    return "".join(span.text for span in spans(words))


def table(analyses: Sequence[Analysis], *, each_launch: bool = False) -> tuple[str, list[dict[str, str]]]:
    """Return the heading of the only GPU, and its rows by column heading."""
    (rows,) = kernels_document(summarize(analyses, each_launch=each_launch))
    assert isinstance(rows, Table)
    names = [column.heading for column in rows.columns]
    return plain(rows.title), [dict(zip(names, map(plain, row), strict=True)) for row in rows.rows]


def content_of(analyses: Sequence[Analysis]) -> Content:
    """Put launches into one report."""
    return build_content([samples.report(analyses)], "report", default_thresholds())


def said(analyses: Sequence[Analysis], place: Sequence[str] = ()) -> list[str]:
    """Return what a terminal says to do first, and the command below that, as text."""
    shown = overview(content_of(analyses), "terminal", OverviewRequest(place=tuple(place)))
    at = next((at for at, block in enumerate(shown) if isinstance(block, Opportunities)), None)
    if at is None:
        return []
    blocks = [*for_text(shown[at : at + 1])]
    lines = [plain(item.words) for block in blocks if isinstance(block, Bullets) for item in block.items]
    after = shown[at + 1 : at + 2]
    return [*lines, *(plain(line) for block in after if isinstance(block, Paragraph) for line in block.lines)]


def judged(analysis: Analysis, **changes: object) -> Analysis:
    """Change the verdict of an analysis."""
    verdict: Verdict = replace(analysis.verdict, **changes)  # type: ignore[arg-type]
    return replace(analysis, verdict=verdict)


def launched(name: str, times_us: Sequence[float], limit: float | None = None) -> list[Analysis]:
    """Make a launch of a kernel for each time, all with this limit."""
    launches = [samples.analysis(Sample(name, "memory", time, "dram"), index) for index, time in enumerate(times_us)]
    return [judged(launch, limit=Limit(limit)) for launch in launches]


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize(
    "analyses",
    [samples.every_verdict(), samples.hostile(), samples.without_flops(), samples.many(400), [samples.failed()]],
)
def test_columns_leave_by_their_worth(analyses: list[Analysis], width: int) -> None:
    """Whatever the kernels, the most useful columns are shown, including the first moves, and no line is longer."""
    for gpu in {analysis.kernel.gpu for analysis in analyses}:
        kernels = summarize([analysis for analysis in analyses if analysis.kernel.gpu == gpu])
        (table,) = kernels_document(kernels)
        assert isinstance(table, Table)
        lines = printed(kernels, width)
        by_worth = sorted(table.columns[1:-1], key=lambda column: -column.worth)
        shown = [column for column in by_worth if column.heading in lines[0]]
        assert {column.heading for column in by_worth[:4]} | {"kernel"} == set(KEPT)
        assert shown == by_worth[: len(shown)]
        assert len(shown) >= 4
        assert max(map(len, lines)) <= width
        text = "".join("".join(lines).split())
        assert all("".join(plain(row[-1]).split()) in text for row in table.rows)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_times_verdicts_and_factors_are_never_cut(width: int) -> None:
    """Beside the longest names, time, verdict, gain and limit of each kernel are whole."""
    replaced = [replace_name(one, samples.LONG_NAME + str(i)) for i, one in enumerate(waiting())]
    text = "\n".join(printed(summarize(replaced), width)[1:])
    for row in table(replaced)[1]:
        assert all(row[name] in text for name in ("time", "gain", "limit"))
        assert all(word in text for word in row["verdict"].split())


def waiting() -> list[Analysis]:
    """Make kernels of every verdict, where those that wait have few ready warps, and some are uncertain."""
    made = []
    for one in samples.every_verdict():
        kernel = replace(one.kernel, counters={**one.kernel.counters, "eligible_warps_per_cycle": 0.2124})
        moves = (Move("coalesce", "coalesce", gain=Gain(1.25)),)
        made.append(judged(replace(one, kernel=kernel), confidence="low", cause="short", moves=moves))
    return made


def replace_name(analysis: Analysis, name: str) -> Analysis:
    """Give a kernel another name."""
    return replace(analysis, kernel=replace(analysis.kernel, name=name))


def test_launches_of_a_kernel_are_one_line() -> None:
    """A kernel has one line with the sum and number of its launches; on demand each launch has a line."""
    analyses = [*launched("often", (10, 20, 30)), *launched("once", (60,))]
    heading, rows = table(analyses)
    assert {row["kernel"]: (row["time"], row["share"]) for row in rows} == {
        "often x3": ("60.0 µs", "50 %"),
        "once": ("60.0 µs", "50 %"),
    }
    assert "2 kernels, 4 launches, 120 µs of GPU time" in heading
    _, each = table(analyses, each_launch=True)
    assert sorted(row["time"] for row in each) == ["10.0 µs", "20.0 µs", "30.0 µs", "60.0 µs"]


def test_what_a_table_leaves_out_is_a_share_of_its_own_gpu() -> None:
    """Like every share of the table, so that all shares of a table and of its last line add up."""
    chips = [samples.A100, replace(samples.A100, name="another")]
    kernels = [
        samples.analysis(Sample(f"{chip.name}_{index}", "memory", 100.0 if index else 300.0, chip=chip), index)
        for chip in chips
        for index in range(2)
    ]
    for rows in kernels_document(summarize(kernels), top=1):
        assert isinstance(rows, Table)
        assert rows.rest.replace("\u00a0", " ") == ", 25 % of GPU time"


def test_the_clock_is_that_of_the_longest_launch() -> None:
    """A short launch may run at another clock than the one with most time; page and terminal give the same clock."""
    long, short = launched("long", (900,)) + launched("short", (1,))

    def clocked(analysis: Analysis, hz: float) -> Analysis:
        counters = {**analysis.kernel.counters, "sm_clock_hz": hz}
        return replace(analysis, kernel=replace(analysis.kernel, counters=counters))

    assert "SM 1.00 GHz:" in table([clocked(short, 1.5e9), clocked(long, 1e9)])[0]


def test_kernels_of_two_reports_have_lines_of_their_own_that_name_the_report() -> None:
    """A kernel in two reports has two versions, distinguished by the report's name."""
    (one,) = launched("gemm", (10,))
    other = replace(one, kernel=replace(one.kernel, digest="b" * 64, source="runs/v2.ncu-rep"))
    lines = printed(summarize([one, other]), 120)
    assert "report" in lines[0]
    assert sum(" v2 " in line for line in lines) == 1


def test_what_can_win_most_stands_first() -> None:
    """A short kernel that can save much precedes a long one at its limit; failed kernels come last."""
    long, short = launched("long", (100,), 1.1), launched("short", (50,), 5.0)
    heading, rows = table([samples.failed(), *long, *short])
    assert [row["kernel"] for row in rows][:2] == ["short", "long"]
    assert rows[2]["time"] == "-"
    assert "2 kernels, 1 failed launch" in heading


@pytest.mark.parametrize(
    ("bound", "resource", "at_roof", "words"),
    [
        ("memory", "l1", True, "memory: L1 full"),
        ("compute", "fp64", False, "compute: FP64 70 %"),
        ("latency", None, False, "latency: 0.40 warps ready"),
        ("unknown", None, False, "unknown: missing counters"),
    ],
)
def test_a_verdict_names_its_unit(bound: str, resource: str | None, at_roof: bool, words: str) -> None:  # noqa: FBT001 - a table
    """A verdict says which unit is how busy, how few warps are ready, or what is missing."""
    (one,) = launched("kernel", (10,))
    near = None if resource is None else replace(samples.every_verdict()[0].verdict.bottleneck, resource=resource)
    kernel = replace(one.kernel, counters={**one.kernel.counters, "eligible_warps_per_cycle": 0.4})
    cause = "missing counters" if bound == "unknown" else None
    found = judged(
        replace(one, kernel=kernel),
        bound=bound,
        resource=resource,
        at_roof=at_roof,
        cause=cause,
        confidence="high",
        bottleneck=None if near is None else replace(near, share=0.7),
    )
    (row,) = table([found])[1]
    assert row["verdict"] == words


def test_integer_products_have_their_unit() -> None:
    """An int8 product of 1e12 operations over 1 GB is under its own roof, whatever its floating-point epilogue."""
    cells = [cell.replace("\u00a0", " ") for cell in table([samples.integer_product()])[1][0].values()]
    assert "1,000 OP/B" in cells
    assert "100 T of 624 TOP/s" in cells


def test_the_table_counts_flops_of_all_types(fixtures: Path) -> None:
    """The sentence has the rate of one pipe, the table that of all: 21.37 and 1.43 GFLOP in 6.19 ms."""
    kernels = rl.open(fixtures / "published" / "GPU_workshop__MW_Baseline.ncu-rep", kernel="*x_279*")
    (row,) = table([kernel.analysis for kernel in kernels])[1]
    assert row["FLOP/s of roof"].startswith("3.68 T of 6.84")
    assert "3.45 TFLOP/s of 6.63" in kernels[0].verdict.sentence
    assert "FLOPs of all types" in column_heads()["analyze"]["AI at DRAM"]
    assert "`rooflens about columns`" in LEGEND[-1]
    assert max(map(len, LEGEND)) < 80


def test_a_name_cannot_steer_the_terminal() -> None:
    """Control characters of kernels, files and source paths are replaced in the table and below it."""
    (one,) = launched("evil\x1b[31m", (10,), 3.0)
    spot = Hotspot("line", file="a/\x1b]0;x\x07.cu", line=3)
    finding = Finding(
        "x", "x\x1b", "limiter", (Evidence("n", 1.0, "", "m"),), "move\x1b[2J", "pad", where=(Place(spot, 1.0),)
    )
    kernel = replace(one.kernel, source="\x1b[1m.ncu-rep")
    hostile = judged(
        replace(one, kernel=kernel, findings=(finding,)),
        moves=(Move("move\x1b[2J", "pad", "x", finding.where),),
        cause="\x1b",
    )
    text = to_terminal(overview(content_of([hostile]), "terminal", OverviewRequest(place=("\x1b[1m.ncu-rep",))), 200)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "Move?[2J (?]0;x?.cu:3)" in text
    assert "evil?[31m: 10.0 µs" in text


def test_next_says_the_first_moves_with_their_place_and_a_command() -> None:
    """The moves by what they save, those of many kernels once, with their line if known, then a command."""
    analyses = [one for i in range(6) for one in launched(f"kernel_{i}", (10 + i,), 3.0)]
    spot = Hotspot("line", file="src/copy.cu", line=88)
    finding = Finding(
        "x", "x", "limiter", (Evidence("n", 1.0, "", "m"),), "coalesce", "coalesce", where=(Place(spot, 0.5),)
    )
    analyses[5] = judged(
        replace(analyses[5], findings=(finding,)),
        moves=(Move("coalesce", "coalesce", "x", finding.where), Move("more", "wide")),
    )
    lines = said(analyses, ["my report.ncu-rep"])
    assert lines[:2] == [
        "kernel_4 and 4 more: 60.0 µs, 40.0 µs above its floor. Move fewer bytes",
        "kernel_5: 15.0 µs, 10.0 µs above its floor. Coalesce (copy.cu:88)",
    ]
    assert lines[2].startswith("No line: the code was not sampled; ")
    assert lines[3].startswith("`rooflens report 'my report.ncu-rep' -o page.html` ")
    assert len(lines) == 4
    assert not any("rooflens" in line for line in said(analyses))


def test_next_names_what_would_tell_where_counters_are_missing() -> None:
    """For kernels that lack counters, one line has an existing command that collects them."""
    (first,), (second,) = launched("bare<int>", (100,)), launched("known", (10,), 2.0)
    kernel = replace(first.kernel, function_name="bare")
    bare = judged(
        first,
        bound="unknown",
        moves=collect_moves(kernel.function_name, kernel.compute_capability, "ncu ./app"),
        limit=Limit(),
    )
    bare = replace(bare, kernel=kernel)
    lines = said([bare, second], ["a.ncu-rep"])
    assert lines[0].startswith("bare: 100 µs. Collect what this report lacks: `rooflens profile --kernel bare ")
    assert lines[0].endswith("--launch-count 1 -- ./app`")
    assert lines[1].startswith("known: ")
    assert "profile" in COMMANDS
    assert [line[:8] for line in lines[2:]] == ["No line:"]


def test_next_keeps_the_order_of_the_table() -> None:
    """Kernels of which nothing is known stand by all of their time, above and below the table; the first is named."""
    (large,), (small,) = launched("large", (100,), 2.0), launched("small", (30,), 1.5)
    (one,), (other,) = launched("one", (40,)), launched("other", (5,))
    lacking = [
        judged(bare, bound="unknown", moves=(Move("collect what this report lacks: `x`", "collect"),), limit=Limit())
        for bare in (one, other)
    ]
    kernels = summarize([small, *lacking, large])
    assert [kernel.name for kernel in in_order(kernels)] == ["large", "one", "small", "other"]
    assert [line.partition(":")[0] for line in said([small, *lacking, large])] == ["large", "one", "small", "No line"]


def test_the_order_is_said_in_the_same_words_everywhere() -> None:
    """Legend, help, column, glossary and documentation describe the order as `ORDER` does, and Python sorts so."""
    root = Path(__file__).parents[3]
    pages = (
        "docs/how-to/questions.md",
        "docs/reference/api.md",
        "docs/reference/glossary.md",
        "rooflens/cli/commands/analyze.py",
    )
    assert LEGEND[0] == ORDER
    assert ORDER in column_heads()["analyze"]["kernel"]
    for page in pages:
        assert ORDER in " ".join((root / page).read_text(encoding="utf-8").split()), page


def test_next_names_the_hot_spots_where_a_move_has_no_place() -> None:
    """If a report has instructions and the first move names none, the command that lists them is given."""
    (one,) = launched("gemm", (10,), 2.0)
    known = replace(one, kernel=replace(one.kernel, hotspots=(Hotspot("sass", pc=16, measures={"samples": 3.0}),)))
    assert "hotspots" in COMMANDS
    assert said([known], ["a.ncu-rep"])[-1].startswith("`rooflens hotspots a.ncu-rep` ")
    assert said([one], ["--store", "s"])[-1].startswith("`rooflens report --store s -o page.html` ")


def test_next_of_nothing_and_of_failures() -> None:
    """Without kernels there is nothing to do; what could not be profiled is said to be, with the failure's move."""
    assert said([], ["a.ncu-rep"]) == []
    (line,) = said([samples.failed()], ["a.ncu-rep"])
    assert line.startswith("late_kernel: could not be profiled. ")


def test_caveats_name_only_what_changes_a_verdict() -> None:
    """A flag that changes verdicts is explained once with its launches; other flags and clean reports give no line."""
    one, two = launched("a", (10,), 3.0)[0], launched("b", (10,), 3.0)[0]
    flagged = [replace(a, flags=("dram_writes_stay_in_l2", "no_flop")) for a in (one, two)]
    (line,) = caveat_lines(content_of(flagged))
    assert str(line).startswith("2 launches: The output stayed in L2: DRAM traffic is under-counted")
    assert caveat_lines(content_of([replace(one, flags=("no_flop",))])) == []


def test_a_link_of_a_page_leaves_no_trace_in_texts() -> None:
    """A line below the list says in words where the rest is; the anchor that a page links to is no word."""
    row = Opportunity("gemm", "1.00 ms", 1.0, "memory", 0.0)
    block = Opportunities("First", (row,), below=(Below("1 more kernel", (", in the ", "list below", "kernels")),))
    assert [*for_text((block,))][-1] == Paragraph(("1 more kernel, in the list below",))
