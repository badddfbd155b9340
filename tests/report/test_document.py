"""The three writers show the same facts, a number is never cut, and nothing from a report is markup."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from markdown_it import MarkdownIt

from rooflens.analyzing import analyze_paths
from rooflens.model.compare.pairing import checked, pair_sides
from rooflens.model.predict.forecast import swept
from rooflens.model.predict.operations import the_operation
from rooflens.model.roofline.datasheets import load_datasheets, the_datasheet
from rooflens.model.summary import summarize
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.comparison.document import comparison_document
from rooflens.report.content import build_content
from rooflens.report.document import (
    Bullets,
    Column,
    Document,
    Heading,
    Item,
    Paragraph,
    Span,
    Table,
    code,
    for_text,
    strong,
)
from rooflens.report.forecast.document import forecasts_document
from rooflens.report.kernel.document import KernelView, kernel_document
from rooflens.report.overview.document import OverviewRequest, overview
from rooflens.report.overview.kernels import kernels_document
from rooflens.report.templates import write_blocks
from rooflens.report.text.hotspots import hotspots_document, listings
from rooflens.report.text.listings import gpu_table
from rooflens.report.writers.markdown import to_markdown, unescaped
from rooflens.report.writers.terminal import to_terminal

WIDE = 10_000
"""Columns of a terminal on which nothing is cut."""

HOSTILE = "k<b>`x`|y\\|z\x1b[31m\u202e&amp; *a* [l](http://x) \n# h"


def documents(fixtures: Path) -> dict[str, Document]:
    """Build one document of each kind from stored reports."""
    files = [fixtures / "published" / f"GPU_workshop__MW_{name}.ncu-rep" for name in ("Baseline", "DivToMult")]
    reports = analyze_paths(files).reports
    analyses = [analysis for report in reports for analysis in report.analyses]
    kernels = summarize(analyses)
    content = build_content(reports[:1], "MW", default_thresholds())
    pairs = pair_sides((reports[:1], reports[1:]), ("before", "after"))[0]
    gemm = swept(the_operation("gemm"), {"m": "128:4096:x4", "n": "m", "k": "m"}, "bf16", the_datasheet("h100-sxm"))
    return {
        "analyze": overview(content, "terminal", OverviewRequest(place=("a.ncu-rep",))),
        "versions": overview(build_content(reports, "MW", default_thresholds()), "terminal"),
        "columns": kernels_document(kernels, names=["dram_share", "flop_total", "verdict_sentence", "flags"]),
        "explain": kernel_document(KernelView(reports[0], reports[0].analyses[0])),
        "compare": comparison_document(checked(pairs, anyway=True, hint="")),
        "predict": forecasts_document([gemm]),
        "hotspots": hotspots_document(listings(analyses, None, 5)),
        "gpus": (gpu_table(load_datasheets()),),
        "report": overview(content, "file"),
    }


def words(text: str) -> list[str]:
    """Return words and numbers without the punctuation around them."""
    return re.findall(r"[\w.%µ]+", text.replace("\u2060", "").replace("\u00a0", " "))


def of_html(html: str) -> list[str]:
    """Return the words of HTML."""
    return words(unescape(re.sub(r"<[^>]+>", " ", html)))


def test_all_writers_hold_the_same_facts(fixtures: Path) -> None:
    """Every word and number of a document is in its terminal text, Markdown and HTML, in the same order."""
    markdown = MarkdownIt("commonmark").enable("table")
    offenders = []
    for name, document in documents(fixtures).items():
        shown = {
            "terminal": words(re.sub(r"(?m)^\d+\. ", "", to_terminal(document, WIDE))),
            "Markdown": of_html(markdown.render(to_markdown(document).replace("[!WARNING]", ""))),
            "HTML": of_html(write_blocks((*for_text(document),))),
        }
        shown = {kind: [word.strip(".") for word in found if word.strip(".")] for kind, found in shown.items()}
        for kind in ("terminal", "Markdown"):
            pairs = enumerate(zip(shown[kind], shown["HTML"], strict=False))
            place = next((i for i, (one, other) in pairs if one != other), None)
            if shown[kind] != shown["HTML"]:
                near = slice(max((place or 0) - 3, 0), (place or 0) + 3)
                offenders.append(f"{name}: {kind} {shown[kind][near]}, HTML {shown['HTML'][near]}")
    assert not offenders, "\n".join(offenders)


def test_numbers_are_never_cut_on_a_narrow_terminal(fixtures: Path) -> None:
    """Whatever the width, a number in a table is whole or its column is left out."""
    offenders = []
    for name, document in documents(fixtures).items():
        for table in (block for block in document if isinstance(block, Table)):
            for width in (80, 100, 120):
                text = to_terminal((table,), width)
                for place, column in enumerate(table.columns):
                    if column.right and column.heading in text.splitlines()[1 if table.title else 0]:
                        cells = ("".join(to_terminal((Paragraph((row[place],)),)).split()) for row in table.rows)
                        squeezed = "".join(text.split())
                        offenders += [f"{name} {width}: {cell}" for cell in cells if cell not in squeezed]
    assert not offenders, "\n".join(offenders)


def test_colour_changes_no_character(fixtures: Path) -> None:
    """A coloured terminal shows the same characters as a plain one, including indents of wrapped lists."""
    differing = [
        name
        for name, document in documents(fixtures).items()
        if re.sub(r"\x1b\[\d+m| +(?=\x1b\[0m\n)", "", to_terminal(document, 80, colour=True))
        != to_terminal(document, 80)
    ]
    assert differing == []


def test_nothing_of_a_report_is_mark_up() -> None:
    """A hostile name is text in a heading, a list, a table and a sentence, with every writer."""
    name = code(HOSTILE)
    document = (
        Heading((name, f": {HOSTILE}")),
        Paragraph(((strong(HOSTILE), name, Span(HOSTILE, "literal")),)),
        Bullets((Item((name,), (HOSTILE,), (HOSTILE,)),)),
        Table((Column("a", fit="name"), Column("b")), (((name, " x2"), HOSTILE),), HOSTILE),
    )
    html, markdown = str(write_blocks(document)), MarkdownIt("commonmark").enable("table").render(to_markdown(document))
    for written in (html, markdown):
        assert not {"a", "em", "h1"} & set(re.findall(r"<(\w+)", written))
        assert "\x1b" not in written
        assert "\u202e" not in written
    assert len(re.findall("<t[dh]>", markdown)) == 4
    text = to_terminal(document, 60)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 60 + len(HOSTILE)


def test_code_of_a_table_is_read_as_it_is() -> None:
    """For a model, code keeps its own pipes and backslashes, in a cell and outside; words stay in their cell."""
    source = 'flags |= 1 | printf("\\n");'
    written = to_markdown((Table((Column("code"), Column("words")), ((code(source), "a|b"),)), Paragraph(("a|b",))))
    assert unescaped(written).splitlines()[2:] == [f"| `{source}` | a\\|b |", "", "a|b"]


def test_a_table_of_ten_thousand_rows_measures_each_cell_once() -> None:
    """A terminal's table has a line for each row, however many, and is coloured only where it is shown."""
    rows = tuple((code(f"kernel_{i}"), Span("memory: full", "memory"), "1.00 ms") for i in range(10_000))
    table = Table((Column("kernel", fit="name"), Column("verdict"), Column("time", right=True)), rows)
    lines = to_terminal((table,), 80).splitlines()
    assert len(lines) == 10_001
    assert len({len(line) for line in lines[1:]}) == 1
    assert "\x1b[34mmemory: full" in to_terminal((table,), 80, colour=True)
