"""Hot lines: the places with most samples, what their warps wait for, and what accesses waste."""

from __future__ import annotations

from msgspec.structs import replace
from support import samples
from support.tags import words_of

from rooflens.model.records import Analysis, Edit, Hotspot, Move, SourceFile
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.document import Excerpt, Lines
from rooflens.report.kernel.places import MOST_LINES, hot_lines
from rooflens.report.kernel.source import changes
from rooflens.report.page.kernels import kernels

STRIDED = Hotspot(
    "line",
    file="/home/me/copy.cu",
    line=88,
    text="y[i * n] = x[i];",
    measures={
        "samples": 600.0,
        "stall_long_scoreboard": 450.0,
        "stall_wait": 150.0,
        "load_sectors": 4e6,
        "load_excess_sectors": 3e6,
        "shared_wavefronts": 100.0,
        "shared_excess_wavefronts": 50.0,
        "local_sectors": 12.0,
    },
)


def having(*hotspots: Hotspot, **totals: float) -> Analysis:
    """Make a kernel with these hot spots."""
    analysis = samples.every_verdict()[0]
    return replace(analysis, kernel=replace(analysis.kernel, hotspots=hotspots, code_totals=totals))


def lines(count: int) -> list[Hotspot]:
    """Make lines with 10, 20, ... samples."""
    return [Hotspot("line", file="a.cu", line=i, measures={"samples": 10.0 * i}) for i in range(1, count + 1)]


def html_of(analysis: Analysis) -> str:
    """Write the card of a kernel on a page with others."""
    return str(
        kernels(build_content([samples.report([analysis, samples.every_verdict()[1]])], "test", default_thresholds()))
    )


def drawn(analysis: Analysis) -> Lines:
    """Return the hot lines of a kernel."""
    return next(block for block in hot_lines(analysis) if isinstance(block, Lines))


def test_a_line_says_share_wait_and_waste() -> None:
    """600 of 1000 samples, 450 of them for memory; 3 of 4 million sectors too many; half the wavefronts; local."""
    shown = drawn(having(STRIDED, samples=1000.0))
    assert shown.title == "Hot lines, share of samples"
    (line,) = shown.rows
    assert (line.label, line.share, line.code) == ("copy.cu:88", 0.6, "y[i * n] = x[i];")
    excess = (
        "75 % of 4.00 M sectors of loads more than it needs; "
        "50 % of 100 passes of shared memory more than it needs; 12 sectors of local memory"
    )
    assert line.notes == ("waits for global memory, 75 %", excess)
    text = words_of(html_of(having(STRIDED, samples=1000.0)))
    assert "60 % y[i * n] = x[i]; copy.cu:88 waits for global memory, 75 %" in text
    (row,) = shown.table.rows
    assert row[0] == "60\u00a0%".replace("\u00a0", " ")
    headings = [column.heading for column in shown.table.columns]
    assert headings == ["samples", "waits for", "place", "moves in vain", "code"]


def test_the_hottest_come_first_and_are_few() -> None:
    """Of nine lines the five with most samples are shown in order; a line below 1 % is not hot."""
    shown = drawn(having(*lines(9), samples=450.0))
    assert [line.label for line in shown.rows] == ["a.cu:9", "a.cu:8", "a.cu:7", "a.cu:6", "a.cu:5"]
    assert len(shown.rows) == MOST_LINES
    assert [line.label for line in drawn(having(*lines(2), samples=1500.0)).rows] == ["a.cu:2"]


def test_instructions_stand_in_for_lines() -> None:
    """A report without line information shows instructions by their offset and text."""
    sass = Hotspot("sass", pc=416, sass="LDG.E R2, [R4]", measures={"samples": 9.0})
    shown = drawn(having(sass, samples=10.0))
    assert shown.title == "Hot instructions, share of samples"
    assert [(line.label, line.code, line.notes) for line in shown.rows] == [("+0x1a0", "LDG.E R2, [R4]", ("", ""))]


def test_executed_instructions_stand_in_for_samples() -> None:
    """If only executed instructions were counted, shares are of these."""
    counted = Hotspot("line", file="a.cu", line=3, measures={"warp_inst": 30.0})
    shown = having(counted, warp_inst=40.0)
    assert drawn(shown).title == "Hot lines, share of instructions executed"
    assert drawn(shown).rows[0].share == 0.75
    assert drawn(shown).table.columns[0].heading == "executed"


def test_no_figure_without_hot_spots() -> None:
    """A report without hot spots has no empty figure."""
    assert hot_lines(having()) == ()
    assert "Hot " not in html_of(having())


def test_hostile_lines_are_text() -> None:
    """A source line or file name that looks like HTML is text on the page."""
    evil = samples.HOSTILE_NAMES[1]
    spot = Hotspot("line", file=f"/src/{evil}", line=1, text=evil, measures={"samples": 5.0, f"stall_{evil}": 5.0})
    html = html_of(having(spot, samples=5.0))
    assert "<img" not in html
    assert "&lt;img" in html


def test_a_hot_line_stands_in_its_context_unless_a_move_shows_it() -> None:
    """Three statements are shown as changed, each once; a line of a fourth keeps its own excerpt."""
    text = "\n".join(f"x[{number}] = y;" for number in range(1, 30))
    spot = Hotspot("line", file="a.cu", line=20, measures={"samples": 100.0})
    analysis = having(spot, samples=100.0)
    edits = [Edit("a.cu", line, line, ("x = y;",)) for line in (2, 2, 8, 14, 20)]
    moves = tuple(Move("do it", "tile", edit=one) for one in edits)
    kernel = replace(analysis.kernel, sources={"a.cu": SourceFile(text)})
    analysis = replace(analysis, kernel=kernel, verdict=replace(analysis.verdict, moves=moves))
    shown = [block for block in changes(analysis) if isinstance(block, Excerpt)]
    assert [[line.number for line in one.lines if line.kind == "here"] for one in shown] == [[2], [8], [14]]
    assert any(isinstance(block, Excerpt) for block in hot_lines(analysis))
    fewer = replace(analysis, verdict=replace(analysis.verdict, moves=moves[2:]))
    assert not any(isinstance(block, Excerpt) for block in hot_lines(fewer))
