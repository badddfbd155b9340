"""The answers of commands and methods, in any requested format: the only place that chooses formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from rooflens.analyzing import Analyzed, Summed
    from rooflens.model.compare.gate import Gated
    from rooflens.model.compare.given import Given
    from rooflens.model.compare.ladder import Ladder
    from rooflens.model.compare.pairing import Unpaired
    from rooflens.model.predict.forecast import ForecastRow
    from rooflens.model.predict.measured import Checked
    from rooflens.model.predict.other_gpu import WhatIf
    from rooflens.model.program.comparison import ProgramComparison
    from rooflens.model.program.grouping import GroupedBy
    from rooflens.model.program.program import Program
    from rooflens.report.document import Document

Heading: TypeAlias = tuple[str, Sequence[str], str]
"""Title of a page, facts below it, and which of its data is synthetic."""


class Answer(Struct, frozen=True):
    """An answer: data for programs, a document for people.

    Attributes:
        document: Makes the document for terminal, Markdown and page.
        data: Functions that make the text of a format, `json` or `csv`; a long text comes in parts.
        heading: Makes the page's heading; None if there is no page.
        table: Makes the terminal's document if that is shorter, because stderr shows the rest.
        remarks: Makes the lines on stderr below a terminal's table.
    """

    document: Callable[[], Document]
    data: Mapping[str, Callable[[], str | Iterable[str]]] = MappingProxyType({})
    heading: Callable[[], Heading] | None = None
    table: Callable[[], Document] | None = None
    remarks: Callable[[], Iterable[str]] = tuple

    def shown(self) -> Document:
        """Make the terminal's document."""
        return (self.table or self.document)()

    def parts(self, style: str) -> Iterable[str]:
        """Write the answer in a file format, as parts of a text that ends with a newline.

        Raises:
            KeyError: The answer has no such format.
        """
        made = self.data[style]() if style in self.data else _WRITERS[style](self)
        if not isinstance(made, str):
            return made
        return (made if made.endswith("\n") else f"{made}\n",)

    def text(self, style: str) -> str:
        """Write the answer in a file format, with a newline at its end."""
        return "".join(self.parts(style))


def _markdown(answer: Answer) -> str:
    from rooflens.report.writers.markdown import to_markdown

    return to_markdown(answer.document())


def _page(answer: Answer) -> str:
    from rooflens.report.writers.html import to_page

    title, facts, synthetic = answer.heading() if answer.heading else ("rooflens", (), "")
    return to_page(title, facts, answer.document(), synthetic)


class View(Struct, frozen=True, kw_only=True):
    """How much of an answer to show, and how.

    Attributes:
        top: Rows of each GPU; all by default.
        max_tokens: Size of a digest.
        columns: Quantities to show instead of the usual columns.
        each_launch: A row per launch on a terminal, instead of per kernel.
        by: What kernels of timelines are summed up by; None to list kernels.
        raw_cells: Leave CSV cells unchanged, even if a spreadsheet would run them.
        indented: Write JSON for people; otherwise a line per launch, as it is made.
    """

    top: int | None = None
    max_tokens: int | None = None
    columns: tuple[str, ...] = ()
    each_launch: bool = False
    by: GroupedBy | None = None
    raw_cells: bool = False
    indented: bool = True


_WRITERS: Mapping[str, Callable[[Answer], str]] = MappingProxyType({"md": _markdown, "html": _page})


def of_kernels(
    analyzed: Analyzed,
    view: View | None = None,
    *,
    place: Sequence[str] = (),
    expected: Sequence[Checked] | None = None,
    title: str = "",
) -> Answer:
    """Answer what limits each kernel; models and terminals get less than programs.

    Args:
        analyzed: The reports.
        view: How much to show, and how; all by default.
        place: Paths or a store for a command that shows more; empty if there are none.
        expected: Predictions with their measurements; None if there are no predictions.
        title: What the Markdown is called; by default after its reports.
    """
    how = view or View()

    def shown(face: str) -> Document:
        from rooflens.report.content import build_content
        from rooflens.report.overview.document import OverviewRequest, overview
        from rooflens.writing.naming import default_title

        named = title or default_title([one.run for one in analyzed.reports])
        content = build_content(analyzed.reports, named, analyzed.limits, analyzed.failures)
        missing = tuple((one.names, one.shares) for one in analyzed.missing if one.shares)
        return (
            *overview(content, face, OverviewRequest(how.top, how.columns, how.each_launch, tuple(place), missing)),
            *predicted(),
        )

    def predicted() -> Document:
        if not expected:
            return ()
        from rooflens.report.kernel.predicted import expectations_document

        return expectations_document(expected, analyzed.reports)

    def digest() -> str:
        from rooflens.report.text.digest import digest as shortened
        from rooflens.report.token_budget import DEFAULT_TOKENS

        return shortened(analyzed.reports, how.max_tokens or DEFAULT_TOKENS, how.top, analyzed.failures)

    def csv() -> str:
        from rooflens.report.data import to_csv

        return to_csv(analyzed.analyses, raw_cells=how.raw_cells)

    def json() -> str | Iterable[str]:
        from rooflens.report.data import json_lines, to_json

        if how.indented:
            return to_json(analyzed.analyses, analyzed.reports, expected)
        parts = json_lines(analyzed.analyses, analyzed.reports, expected)
        return iter(lambda: "".join(islice(parts, 256)), "")

    return Answer(
        document=lambda: shown("table" if how.columns else "file"),
        data={"json": json, "csv": csv, "digest": digest},
        table=lambda: shown("table" if how.columns else "terminal"),
        remarks=lambda: _remarks(analyzed, how.columns),
    )


def of_sums(summed: Summed, top: int | None = None) -> Answer:
    """Answer what a store holds that is too large to show each of its kernels.

    Args:
        summed: The store.
        top: Functions of each GPU.
    """
    from rooflens.report.text.sums import sums_document

    return Answer(document=lambda: sums_document(summed.sums, summed.kernel_count, top))


def _remarks(analyzed: Analyzed, columns: Sequence[str]) -> Iterator[str]:
    """Explain the marks of a table, what was not measured, and what the program does without ncu."""
    from rooflens.format import count
    from rooflens.report.overview.kernels import LEGEND
    from rooflens.report.words.program import program_lines

    if analyzed.analyses and not columns:
        yield from LEGEND
    if synthetic := sum(analysis.kernel.synthetic for analysis in analyzed.analyses):
        yield f"note: {count(synthetic, 'kernel')} from synthetic reports: written by a generator"
    yield from program_lines(analyzed.reports, named=len(analyzed.reports) > 1)


def of_comparison(
    ladders: Sequence[Ladder],
    unpaired: Sequence[Unpaired] = (),
    gated: Gated | None = None,
    given: Sequence[Given] = (),
) -> Answer:
    """Answer how each program changed; stderr shows the gate's result, defaults, and the programs that a side lacks."""
    from rooflens.report.comparison.data import to_json
    from rooflens.report.comparison.document import comparison_document, heading

    return Answer(
        document=lambda: comparison_document(ladders, unpaired, gated, given),
        data={"json": lambda: to_json(ladders, unpaired, gated, given)},
        heading=lambda: heading(ladders),
        table=lambda: comparison_document(ladders),
    )


def of_forecasts(rows: Sequence[ForecastRow], lacking: Sequence[str] = ()) -> Answer:
    """Answer how long an operation takes; `lacking` says why GPUs are left out."""
    from rooflens.report.forecast.data import to_csv, to_json
    from rooflens.report.forecast.document import forecasts_document, heading

    return Answer(
        document=lambda: forecasts_document(rows, lacking),
        data={"json": lambda: to_json(rows), "csv": lambda: to_csv(rows)},
        heading=lambda: heading(rows),
    )


def of_what_if(answers: Sequence[WhatIf]) -> Answer:
    """Answer how long measured kernels would take on other GPUs, or in another type."""
    from rooflens.report.forecast.what_if import what_if_document, what_if_json

    return Answer(lambda: what_if_document(answers), {"json": lambda: what_if_json(answers)})


def of_traces(programs: Sequence[Program], view: View | None = None) -> Answer:
    """Answer how long the kernels of timelines take without a report, what can be won, and what to profile."""
    from rooflens.report.program.document import heading, traces_document

    how = view or View()

    def json() -> str:
        from rooflens.report import data

        return data.json_text(data.traces_document(programs))

    def csv() -> str:
        from rooflens.report.data import traces_csv

        return traces_csv(programs, raw_cells=how.raw_cells)

    def digest() -> str:
        from rooflens.report.program.digest import digest as shortened

        return shortened(programs, how.max_tokens, how.top)

    return Answer(
        document=lambda: traces_document(programs, how.top, how.columns, by=how.by),
        data={"json": json, "csv": csv, "digest": digest},
        table=lambda: traces_document(programs, how.top, how.columns, brief=True, by=how.by),
        heading=lambda: heading(programs),
    )


def of_program_comparison(
    comparison: ProgramComparison, gated: Gated | None = None, given: Sequence[Given] = ()
) -> Answer:
    """Answer what became of a step of a program by its timelines; stderr shows the gate's result, and defaults."""
    from rooflens.report.program.comparison import heading, program_comparison

    def json() -> str:
        from rooflens.report.program.comparison_data import to_json

        return to_json(comparison, gated, given)

    return Answer(
        document=lambda: program_comparison(comparison, gated, given),
        data={"json": json},
        heading=lambda: heading(comparison),
        table=lambda: program_comparison(comparison),
    )
