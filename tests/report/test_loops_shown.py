"""The loops of a kernel in words, and how they get from a report into the words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples
from support.kernels import make_kernel
from support.machine_code import control, listed, machine_code

from rooflens.model.analyze import analyze
from rooflens.model.hotspots import waits_for
from rooflens.model.inside.look import look_inside
from rooflens.model.records import Analysis, AnalyzedReport, Hotspot, Inside, Kernel, Loop, Run
from rooflens.model.verdict.inside import job_of
from rooflens.report.data import to_document
from rooflens.report.document import Lines
from rooflens.report.kernel.document import explain
from rooflens.report.kernel.places import loops
from rooflens.report.words.inside import (
    counted,
    inside_line,
    loop_label,
    loop_labels,
    loop_rate,
    producer_words,
    shown_loops,
    wait_words,
    where_words,
)


def kernel_with_loop() -> Kernel:
    """Return a kernel that loads and adds in a loop, and waits for the load at the addition."""
    code = listed(
        "MOV R1, RZ",
        ("LDG.E R2, [R8.64]", control(written=0)),
        ("FFMA R3, R2, R4, R3", control(waits=1)),
        "@P0 BRA ->1",
        "STG.E [R8.64], R3",
        "EXIT",
        lines=(1, 7, 8, 6, 9, 9),
    )
    samples, waits = {0: 4.0, 2: 90.0, 4: 6.0}, {2: 80.0}
    inside = look_inside(
        machine_code(code, [2, 8, 8, 8, 2, 2], samples=samples, stall_long_scoreboard=waits, global_sectors={1: 32.0})
    )
    spot = Hotspot("line", "gemm.cu", 8, measures={"samples": 90.0, "stall_long_scoreboard": 80.0})
    return replace(
        make_kernel({"duration_ns": 1e6, "l2_bytes": 768.0}),
        inside=inside,
        hotspots=(spot,),
        code_totals={"samples": 100.0, "warp_inst": 30.0, "stall_long_scoreboard": 80.0, "load_sectors": 32.0},
    )


@pytest.fixture
def analysis() -> Analysis:
    """Analyze it."""
    return analyze(kernel_with_loop())


def test_a_line_names_the_loop_with_most_of_the_time(analysis: Analysis) -> None:
    """Its share is of the warps' time; its place is the line of its statement."""
    line = inside_line(analysis)
    assert line.startswith("90 % of warps' time multiplies at ")
    assert "(gemm.cu:6)" in line
    assert "6.0 % finishes" in line


def test_loops_stand_before_the_places_in_an_explanation(analysis: Analysis) -> None:
    """The table has a row for each loop with at least a twentieth of the time."""
    run = Run(digest="0" * 64, source="a.ncu-rep", file_bytes=1, kernel_count=1, synthetic=False)
    text = explain(AnalyzedReport(run, (analysis,)), analysis)
    assert text.index("## Loops") < text.index("## Where")
    assert "| `gemm.cu:6` | 90 % | 4 | multiplies |" in text
    assert "for the load in line 7" in text.replace("\\_", "_")


def test_a_note_is_about_loops_where_there_are_none_and_else_about_waits() -> None:
    """Where steps ended after the loops were found, the table stays, and the caveat says what is missing."""
    run = Run(digest="0" * 64, source="a.ncu-rep", file_bytes=1, kernel_count=1, synthetic=False)
    kernel, note = kernel_with_loop(), "only the first 3 of 6 instructions were gone through in 9 steps"
    assert kernel.inside is not None
    for inside, words in (
        (replace(kernel.inside, note=note), "What its warps wait for is known in part"),
        (Inside(note=note), "Its loops are not known"),
    ):
        noted = analyze(replace(kernel, inside=inside))
        assert f"- {words}: {note}." in explain(AnalyzedReport(run, (noted,)), noted)


def test_shares_of_shown_rows_are_of_all_samples(analysis: Analysis) -> None:
    """Rows with less than a twentieth are left out."""
    assert [(loop_label(one), one.share_self) for one in shown_loops(analysis.loops)] == [
        ("gemm.cu:6", 0.9),
        ("epilogue, gemm.cu:9", 0.06),
    ]


def test_loops_of_one_line_are_told_apart_in_words(analysis: Analysis) -> None:
    """One around the other are outer and inner; of others the order in the code tells."""
    one = next(row for row in analysis.loops if row.loop.kind == "loop")
    inner = replace(one, loop=replace(one.loop, id=90, parent=one.loop.id))
    beside = replace(one, loop=replace(one.loop, id=91, parent=None))
    assert [*loop_labels([one]).values()] == ["gemm.cu:6"]
    assert [*loop_labels([one, inner]).values()] == ["gemm.cu:6, outer", "gemm.cu:6, inner"]
    assert [*loop_labels([one, beside]).values()] == ["gemm.cu:6, 1 of 2", "gemm.cu:6, 2 of 2"]


def test_a_hot_line_says_what_it_waits_for(analysis: Analysis) -> None:
    """The load is in another line than its use."""
    (spot,) = analysis.kernel.hotspots
    (found,) = waits_for(analysis.kernel.inside, spot)
    assert (found.wait.line, found.share) == (7, pytest.approx(80 / 90))
    assert wait_words(analysis.kernel.inside, spot) == "for the load in line 7"
    assert producer_words(found.wait, here=replace(spot, line=7)) == "load in it"
    assert producer_words(found.wait, here=replace(spot, file="main.cu")) == "load in gemm.cu:7"


def test_json_holds_loops_and_waits(analysis: Analysis) -> None:
    """Keys are the schema's; a loop with all accesses moves all of the L2 bytes, without hits in L1."""
    (kernel,) = to_document([analysis])["kernels"]
    loop = next(one for one in kernel["loops"] if one["kind"] == "loop")
    assert (loop["trips"], loop["share"], loop["line"], loop["flop"]) == (4, 0.9, 6, 8 * 32 * 2)
    assert loop["l2_bytes"] == 768
    assert loop["intensity"] == pytest.approx(512 / 768)
    assert loop["anatomy"]["global_loads"] == {"4": 1}
    assert kernel["hotspots"][0]["waits_for"][0]["line"] == 7
    assert kernel["loops_note"] is None


def test_a_page_draws_loops_as_lines(analysis: Analysis) -> None:
    """Each says what the loop does and what limits it, and can be chosen; without loops there are none."""
    (figure,) = (block for block in loops(analysis) if isinstance(block, Lines))
    assert [(row.label, row.share, row.loop != "") for row in figure.rows] == [
        ("gemm.cu:6", 0.9, True),
        ("epilogue, gemm.cu:9", 0.06, False),
    ]
    assert "waits for global memory, 89 %" in figure.rows[0].notes[0]
    assert loops(analyze(make_kernel())) == ()


def test_integer_operations_of_a_loop_are_not_called_flops(analysis: Analysis) -> None:
    """The rate of a loop has the unit of its pipe, and is left out where overlapping parts push it over the peak."""
    (loop,) = (one for one in analysis.loops if one.loop.kind == "loop")
    rates = [loop_rate(replace(loop, pipe=pipe)) for pipe in ("fp32", "tensor_int8")]
    assert rates == ["569 kFLOP/s", "569 kOP/s"]
    assert loop_rate(replace(loop, pipe="fp32", resource="fp32", resource_share=None)) == ""


def test_arithmetic_at_the_end_of_the_code_is_no_epilogue() -> None:
    """A fully unrolled loop is straight code, and with half of the operations it is called computing."""
    straight = Loop(1, "straight", "epilogue", None, 0, 16, self_flop={"int8": 50.0})
    assert job_of(straight, 100.0) == "computes"
    assert job_of(replace(straight, self_flop={"int8": 5.0}), 100.0) == "finishes"


def test_counts_agree_with_their_nouns() -> None:
    """Whole numbers are written whole."""
    assert [counted(value, "trip") for value in (1.0, 2.75, 8.0, 1334.0)] == [
        "1 trip",
        "2.75 trips",
        "8 trips",
        "1,334 trips",
    ]


def test_where_the_time_goes_is_a_line_of_the_answer(analysis: Analysis) -> None:
    """The hottest loop with its share, then the hottest line with its own and what it waits for."""
    said = "".join(part if isinstance(part, str) else part.text for part in where_words(analysis, "direct"))
    assert said.replace("\u00a0", " ") == (
        "Where: loop gemm.cu:6, 90 % of warps' time; hottest line :8, 90 % of samples, waits for global memory."
    )


_HOW = "`ncu --set full --import-source yes` and built with `-lineinfo`."


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        ("text", f"No line: an export has no samples of the code; open its `.ncu-rep`, profiled with {_HOW}"),
        ("direct", f"No line: the code was not sampled; profile with {_HOW}"),
    ],
)
def test_why_no_line_is_known_is_said_with_what_tells_it(reader: str, said: str) -> None:
    """An export holds no samples, a report may lack them; no command is given where today's ncu cannot run."""
    bare = samples.every_verdict()[0]
    assert where_words(bare, reader) == said
    old = replace(bare, kernel=replace(bare.kernel, compute_capability="6.1"))
    assert where_words(old, "direct") == "No line: the code was not sampled."
    assert where_words(samples.failed(), reader) == ""
