"""Findings: costs of time first, each with gain, numbers, place and move, and no repeated sentence."""

from __future__ import annotations

from html import unescape

from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.tags import words_of

from rooflens import format as fmt
from rooflens.model.records import Analysis, Evidence, Finding, Gain, Hotspot, Move, Place
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.page.kernels import kernels
from rooflens.report.words.findings import CODE_WIDTH, code_of, shown
from rooflens.report.words.labels import evidence_words, place_label

LINE = Hotspot("line", file="C:\\src\\copy.cu", line=88, text="  y[i * n]\t= x[i];")
STRIDED = Finding(
    "uncoalesced_global_store",
    "uncoalesced global stores",
    "limiter",
    (
        Evidence("store_excess_share", 0.75, "share", "memory_l2_theoretical_sectors_global"),
        Evidence("grid_size", 1024.0, "blocks", "launch__grid_size"),
    ),
    "transpose the index: 75 % of the sectors are not needed",
    "coalesce",
    gain=Gain(3.64),
    where=(Place(LINE, 0.9),),
    confidence="medium",
)
NOTE = Finding(
    "low_occupancy",
    "low occupancy",
    "note",
    (Evidence("waves", 0.5, "waves", "w"),),
    "take fewer registers",
    "occupancy",
)


def found(*several: Finding) -> Analysis:
    """Make a memory-bound kernel with these findings, with sentence and moves as the model writes them."""
    analysis = samples.every_verdict()[0]
    moves = tuple(Move(one.move, one.kind, one.id, one.where, one.gain) for one in several if one.severity != "note")
    verdict = replace(analysis.verdict, moves=(*moves, *analysis.verdict.moves))
    return replace(analysis, findings=several, verdict=verdict)


def html_of(*analyses: Analysis) -> str:
    """Write the list of a page, on which there are other cards too."""
    return str(
        kernels(build_content([samples.report([*analyses, samples.every_verdict()[1]])], "test", default_thresholds()))
    )


def test_a_finding_has_its_gain_numbers_place_and_move() -> None:
    """Title, gain, doubt, numbers with units and counters, file and line, and the move are on the card."""
    text = words_of(html_of(found(STRIDED)))
    for words in (
        "uncoalesced global stores ( uncoalesced_global_store, limiter, about 3.6x, finding confidence: medium)",
        "Transpose the index: 75 % of the sectors are not needed",
        "excess sectors of stores 75 % ( memory_l2_theoretical_sectors_global)",
        "grid size 1,024 blocks",
        "at copy.cu:88 90 %",
    ):
        assert words in text, words


def test_titles_begin_as_pipes_are_written() -> None:
    """A title begins with a capital, or with a type as it is written elsewhere."""
    titles = ("fp64 divisions", "bf16 x", "fpga", "")
    assert [shown(replace(STRIDED, title=title), None).title for title in titles] == [
        "FP64 divisions",
        "BF16 x",
        "Fpga",
        "",
    ]


def test_no_move_stands_twice() -> None:
    """A move of a finding stands among the moves alone; that of a finding which is none of them stands at it."""
    text = words_of(html_of(found(STRIDED)).partition('id="cards"')[2])
    assert text.count(STRIDED.move) + text.count(STRIDED.move.capitalize()) == 1
    several = found(STRIDED)
    other = replace(STRIDED, id="bank_conflicts", title="bank conflicts", move="pad the rows")
    text = words_of(html_of(replace(several, findings=(*several.findings, other))))
    assert text.count("Pad the rows") == 1


def test_notes_are_named_with_a_number() -> None:
    """What costs little is named under what is ruled out, without a gain and without its move."""
    text = words_of(html_of(found(STRIDED, NOTE)))
    assert "Minor: low occupancy (waves 0.500)" in text
    assert NOTE.move not in text


@for_all(
    "value, unit, words",
    [
        (0.741, "share", "74 %"),
        (1.506, "x", "1.5x"),
        (45.87, "%", "45.9 %"),
        (1472.0, "ns", "1.47 µs"),
        (33024.0, "B", "33.0 kB"),
        (1024.0, "blocks", "1,024 blocks"),
        (1.0, "blocks", "1 block"),
        (1.0, "branches", "1 branch"),
        (1.5, "waves", "1.50 waves"),
        (0.2667, "waves", "0.267 waves"),
        (181665792.0, "sectors", "182 M sectors"),
        (26.404, "bytes/sector", "26.4 bytes/sector"),
        (2.0, "", "2"),
    ],
)
def test_amounts_are_written_in_their_units(value: float, unit: str, words: str) -> None:
    """Every unit in findings has its format; counts are exact below a million."""
    assert fmt.quantity(value, unit) == words


def test_a_unit_that_the_name_holds_is_not_said_again() -> None:
    """`registers now` needs no unit, a share is always written as a share, and a block size is in threads."""
    assert evidence_words(Evidence("registers now", 188.0, "registers", "")) == "registers now 188"
    assert evidence_words(Evidence("local_share", 0.468, "share", "")) == "local memory 47 %"
    assert evidence_words(Evidence("block_size", 9.0, "threads", "")) == "block size 9 threads"
    assert evidence_words(Evidence("grid_size", 1.0, "blocks", "")) == "grid size 1 block"
    assert evidence_words(Evidence("duration_ns", 1472.0, "ns", "")) == "duration 1.47 µs"


def test_places_have_short_names() -> None:
    """A line is named by its file without folders, an instruction by its offset, a function by its name."""
    assert place_label(LINE, None) == "copy.cu:88"
    assert place_label(Hotspot("line", file="/a/b/int.jl", line=7), None) == "int.jl:7"
    assert place_label(Hotspot("sass", file="/a/k.cu", line=3, pc=416, sass="LDG.E R2, [R4]"), None) == "+0x1a0"
    assert place_label(Hotspot("function", function="k"), None) == "k"


def test_code_is_one_short_line() -> None:
    """Source and instructions are cut to one line; a place without either has none."""
    assert code_of(LINE) == "y[i * n] = x[i];"
    assert len(code_of(Hotspot("line", text="x" * 4000))) == CODE_WIDTH
    assert code_of(Hotspot("sass", sass="LDG.E R2, [R4]")) == "LDG.E R2, [R4]"
    assert code_of(Hotspot("line", file="a.cu", line=1)) == ""


def test_hostile_findings_are_text() -> None:
    """Titles, moves, numbers, files and source lines of a report never become elements."""
    evil = samples.HOSTILE_NAMES[1]
    place = Place(Hotspot("line", file=evil, line=1, text=evil), 1.0)
    hostile = Finding("x", evil, "limiter", (Evidence(evil, 1.0, evil, evil),), evil, "coalesce", where=(place,))
    html = html_of(found(hostile, replace(hostile, severity="note")))
    assert "<img" not in html
    assert "<script>" not in html
    assert evil in unescape(html)
