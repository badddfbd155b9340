"""What a command or a method says, made in the form that is asked for: the one place where a format is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from rooflens.analyzing import Analyzed
    from rooflens.model.compare.gate import Gated
    from rooflens.model.compare.ladder import Ladder
    from rooflens.model.compare.pairing import Unpaired
    from rooflens.model.predict.forecast import Row
    from rooflens.model.predict.measured import Checked
    from rooflens.model.predict.other_gpu import WhatIf
    from rooflens.model.program.program import Program
    from rooflens.report.document import Document

Heading: TypeAlias = tuple[str, Sequence[str], str]
"""Title of a page, facts below it, and which of its data a generator wrote."""


class Answer(Struct, frozen=True):
    """What is said: data for programs, a document for people.

    Attributes:
        document: Makes the document that a terminal, Markdown and a page show.
        data: Makes text by the name of its format, `json` or `csv`; a long one in parts.
        heading: Makes the heading of its page; None if no page is written of it.
        table: Makes what a terminal shows where that is less, for stderr says the rest.
        remarks: Makes the lines that stderr has below a terminal's table.
    """

    document: Callable[[], Document]
    data: Mapping[str, Callable[[], str | Iterable[str]]] = MappingProxyType({})
    heading: Callable[[], Heading] | None = None
    table: Callable[[], Document] | None = None
    remarks: Callable[[], Iterable[str]] = tuple

    def shown(self) -> Document:
        """Make what a terminal shows."""
        return (self.table or self.document)()

    def parts(self, style: str) -> Iterable[str]:
        """Write it in a format of files: parts of one text, which ends with a line.

        Raises:
            KeyError: It is not written in that format.
        """
        made = self.data[style]() if style in self.data else _WRITERS[style](self)
        if not isinstance(made, str):
            return made
        return (made if made.endswith("\n") else f"{made}\n",)

    def text(self, style: str) -> str:
        """Write it in a format of files, with a newline at its end."""
        return "".join(self.parts(style))


def _markdown(answer: Answer) -> str:
    from rooflens.report.writers.markdown import to_markdown

    return to_markdown(answer.document())


def _page(answer: Answer) -> str:
    from rooflens.report.writers.html import to_page

    title, facts, synthetic = answer.heading() if answer.heading else ("rooflens", (), "")
    return to_page(title, facts, answer.document(), synthetic)


_WRITERS: Mapping[str, Callable[[Answer], str]] = MappingProxyType({"md": _markdown, "html": _page})


def of_kernels(  # noqa: PLR0913 - what can be chosen of a table
    found: Analyzed,
    top: int | None = None,
    max_tokens: int | None = None,
    columns: Sequence[str] = (),
    *,
    each_launch: bool = False,
    place: Sequence[str] = (),
    raw_cells: bool = False,
    indented: bool = True,
    expected: Sequence[Checked] | None = None,
) -> Answer:
    """Answer what limits each kernel; a model and a terminal get less than programs do.

    Args:
        found: The reports; data and digests look into the kernels with most to win, tables and CSV show no code.
        top: Rows of each GPU; all by default.
        max_tokens: Size of a digest.
        columns: Quantities to show instead of the usual columns.
        each_launch: A row for each launch on a terminal, instead of one for each kernel.
        place: What to give to a command that says more: paths, or a store; empty if there is none.
        raw_cells: Leave cells of CSV as they are, even those that a spreadsheet would run.
        indented: Write JSON for people; otherwise a line for each launch, as it is made.
        expected: What was predicted, which JSON holds; None if nobody predicted anything.
    """
    from rooflens.analyzing import look_into
    from rooflens.model.summary import summarize
    from rooflens.report.text.table import kernels_document, not_profiled, steps

    def missing() -> Document:
        return tuple(block for one in found.missing if one.shares for block in not_profiled(one.names, one.shares))

    def table() -> Document:
        kernels = summarize(found.analyses)
        rows = summarize(found.analyses, each_launch=True) if each_launch else kernels
        return (*kernels_document(rows, top, columns, each=each_launch), *missing(), *steps(kernels, place))

    def digest() -> str:
        from rooflens.report.text.digest import digest as shortened
        from rooflens.report.token_budget import DEFAULT_TOKENS

        return shortened(look_into(found).reports, max_tokens or DEFAULT_TOKENS, top, found.failures)

    def csv() -> str:
        from rooflens.report.data import to_csv

        return to_csv(found.analyses, raw_cells=raw_cells)

    def json() -> str | Iterable[str]:
        from rooflens.report.data import json_lines, to_json

        seen = look_into(found)
        if indented:
            return to_json(seen.analyses, seen.reports, expected)
        parts = json_lines(seen.analyses, seen.reports, expected)
        return iter(lambda: "".join(islice(parts, 256)), "")

    return Answer(
        document=lambda: (*kernels_document(summarize(found.analyses), top, columns), *missing()),
        data={"json": json, "csv": csv, "digest": digest},
        table=table,
        remarks=lambda: _remarks(found, columns),
    )


def _remarks(found: Analyzed, columns: Sequence[str]) -> Iterator[str]:
    """Say what the marks of a table mean, what was not measured, and what the program does without ncu."""
    from rooflens.format import count
    from rooflens.report.text.table import LEGEND
    from rooflens.report.words.program import program_lines

    if found.analyses and not columns:
        yield from LEGEND
    if synthetic := sum(analysis.kernel.synthetic for analysis in found.analyses):
        yield f"note: {count(synthetic, 'kernel')} from synthetic reports: written by a generator"
    yield from program_lines(found.reports, named=len(found.reports) > 1)


def of_comparison(ladders: Sequence[Ladder], unpaired: Sequence[Unpaired] = (), gated: Gated | None = None) -> Answer:
    """Answer what became of each program; stderr says what a gate found and which programs a side lacks."""
    from rooflens.report.comparison.data import to_json
    from rooflens.report.comparison.document import comparison_document, heading

    return Answer(
        document=lambda: comparison_document(ladders, unpaired, gated),
        data={"json": lambda: to_json(ladders, unpaired, gated)},
        heading=lambda: heading(ladders),
        table=lambda: comparison_document(ladders),
    )


def of_forecasts(rows: Sequence[Row], lacking: Sequence[str] = ()) -> Answer:
    """Answer what an operation takes; `lacking` says of each GPU that is left out why."""
    from rooflens.report.forecast.data import to_csv, to_json
    from rooflens.report.forecast.document import forecasts_document, heading

    return Answer(
        document=lambda: forecasts_document(rows, lacking),
        data={"json": lambda: to_json(rows), "csv": lambda: to_csv(rows)},
        heading=lambda: heading(rows),
    )


def of_what_if(answers: Sequence[WhatIf]) -> Answer:
    """Answer what measured kernels would take on other GPUs, or in another type."""
    from rooflens.report.forecast.what_if import what_if_document, what_if_json

    return Answer(lambda: what_if_document(answers), {"json": lambda: what_if_json(answers)})


def of_traces(
    programs: Sequence[Program],
    top: int | None = None,
    max_tokens: int | None = None,
    *,
    columns: Sequence[str] = (),
    raw_cells: bool = False,
) -> Answer:
    """Answer what the kernels of timelines take without a report, what can be won, and what to profile."""
    from rooflens.report.trace.document import heading, traces_document

    def json() -> str:
        from rooflens.report import data

        return data.json_text(data.traces_document(programs))

    def csv() -> str:
        from rooflens.report.data import traces_csv

        return traces_csv(programs, raw_cells=raw_cells)

    def digest() -> str:
        from rooflens.report.trace.digest import digest as shortened

        return shortened(programs, max_tokens, top)

    return Answer(
        document=lambda: traces_document(programs, top, columns),
        data={"json": json, "csv": csv, "digest": digest},
        table=lambda: traces_document(programs, top, columns, brief=True),
        heading=lambda: heading(programs),
    )
