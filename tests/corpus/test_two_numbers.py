"""The gain of the first move and the limit are the only two factors of a kernel, and the same in all outputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from itertools import islice

import pytest
from msgspec import Struct
from msgspec.structs import asdict
from support.tags import words_of

from rooflens import format as fmt
from rooflens.ingest.load import Loaded
from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.model.summary import KernelSummary
from rooflens.model.verdict.limit import LAUNCH
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.data import to_document
from rooflens.report.document import Table, Words, spans
from rooflens.report.kernel.document import explain
from rooflens.report.overview.document import overview
from rooflens.report.overview.kernels import kernels_document
from rooflens.report.page.cards import cards
from rooflens.report.page.first_screen import first_screen, what_first
from rooflens.report.page.kernels import columns, written
from rooflens.report.roofline.launches import plane
from rooflens.report.roofline.rows import kernel_rows, point_rows
from rooflens.report.summary import figure_of
from rooflens.report.text.digest.kernel import block, row
from rooflens.report.words.gain_and_limit import best_gain_words, limit_cell, limit_in_short
from rooflens.report.words.labels import evidence_words
from rooflens.report.writers.markdown import to_markdown

FACTOR = re.compile(r"(?<![\w.])[<>]?\d[\d,.]*x(?!\w)")
OF_UNITS = re.compile(
    r"(?:works|at a rate|got \d+|where accuracy allows: (?:about|at best)|is not worth it:) \(?[\d.]+x"
    r"|At best [\d.]+x in \w+"
)
"""Factors that are none of the kernel's speed: of one unit's work, peak or type over another's, of NVIDIA's sectors."""
_CODE = re.compile(r"`[^`]*`")
_ROUNDING = 1 + 1e-9


class Numbers(Struct, frozen=True):
    """What may be written about a kernel; a dash occurs in no text."""

    gain: str
    limit: str
    cell: str
    findings: frozenset[str]

    @property
    def both(self) -> set[str]:
        """Gain and limit, if known."""
        return {self.gain, self.limit} - {fmt.MISSING}


class Told(Struct, frozen=True):
    """A kernel, its two numbers, and its report as counted by a page."""

    group: KernelSummary
    numbers: Numbers
    content: Content

    @property
    def where(self) -> str:
        """Identify the kernel in a failure."""
        kernel = self.group.analysis.kernel
        return f"{kernel.source}#{kernel.index}"


def numbers_of(analysis: Analysis) -> Numbers:
    """Write a kernel's factors."""
    gain, limit = analysis.verdict.gain, analysis.verdict.limit
    found = frozenset(fmt.factor(finding.gain.factor) for finding in analysis.findings if finding.gain)
    said = fmt.MISSING if limit.far else fmt.factor(limit.factor)
    return Numbers(fmt.factor(gain.factor if gain else None), said, limit_cell(limit), found)


def factors(text: str, analysis: Analysis) -> set[str]:
    """Return the factors of a text, without those of one unit over another."""
    text = " ".join(_CODE.sub("", unescape(text)).replace("\u00a0", " ").split())
    text = re.sub("[Oo]ver 10x( if it)?", "", text)
    for number in (number for finding in analysis.findings for number in finding.evidence):
        text = text.replace(evidence_words(number).replace("\u00a0", " "), "")
    moves = {finding.move for finding in analysis.findings} | set(analysis.verdict.advice)
    for move in moves:
        assert not re.search(r"x (?:faster|speed)", move), move
        text = text.replace(_CODE.sub("", move), "")
    return set(FACTOR.findall(OF_UNITS.sub("", text)))


@pytest.fixture(scope="module")
def reports(loaded: Loaded, analyses: list[Analysis]) -> list[AnalyzedReport]:
    """Collect the analyses into their reports."""
    rest = iter(analyses)
    return [AnalyzedReport(run, tuple(islice(rest, len(kernels)))) for run, kernels in loaded.reports]


@pytest.fixture(scope="module")
def contents(reports: list[AnalyzedReport]) -> list[Content]:
    """Count each report as its page does."""
    return [build_content([report], "report", default_thresholds()) for report in reports]


@pytest.fixture(scope="module")
def told(contents: list[Content]) -> list[Told]:
    """Return every kernel with its two numbers."""
    return [Told(group, numbers_of(group.analysis), content) for content in contents for group in content.kernels]


def plain(words: Words) -> str:
    """Return the text of a cell."""
    return "".join(span.text for span in spans(words))


def of_columns(table: Table, gain: str, limit: str) -> list[tuple[str, str]]:
    """Return both columns of a table."""
    headings = [column.heading for column in table.columns]
    at = headings.index(gain), headings.index(limit)
    return [(plain(cells[at[0]]), plain(cells[at[1]])) for cells in table.rows]


def test_most_kernels_have_both(told: list[Told]) -> None:
    """Nearly all of more than sixty kernels have a limit and many a gain, so the tests below have cases to compare."""
    assert len(told) > 60
    assert sum(one.numbers.cell != fmt.MISSING for one in told) > 0.85 * len(told)
    assert sum(one.numbers.gain != fmt.MISSING for one in told) > 0.2 * len(told)


def test_a_first_move_that_beats_the_limit_says_what_it_changes(told: list[Told]) -> None:
    """A gain above the limit occurs only with moves that change types, instructions or bytes, and the words say so."""
    for one in told:
        verdict = one.group.analysis.verdict
        if verdict.gain is None or verdict.limit.factor is None:
            continue
        if verdict.gain.factor > verdict.limit.factor * _ROUNDING:
            assert verdict.gain.changes, one.where
        said = best_gain_words(one.group.analysis, one.group.duration_ns)
        assert (f", changes the {verdict.gain.changes})" in said) is (verdict.gain.changes is not None), one.where


def test_tables_have_both_numbers(told: list[Told], contents: list[Content]) -> None:
    """The tables of the terminal, the page and Markdown have both numbers of each kernel."""
    for content in contents:
        mine = {one.group.key: one for one in told if one.content is content}
        for table in kernels_document(content.kernels, each=True):
            assert isinstance(table, Table)
            shown = [(gain, limit) for gain, limit in of_columns(table, "gain", "limit")]
            of_gpu = [one for one in mine.values() if plain(table.title).startswith(one.group.gpu)]
            wanted = [
                tuple(each.replace(fmt.MISSING, "-") for each in (one.numbers.gain, one.numbers.cell)) for one in of_gpu
            ]
            assert sorted(shown) == sorted(wanted), content.runs
        for part in overview(content, "file"):
            if isinstance(part, Table) and "Limit" in [column.heading for column in part.columns]:
                for cells, group in zip(of_columns(part, "Gain", "Limit"), content.kernels, strict=False):
                    assert cells == (mine[group.key].numbers.gain, mine[group.key].numbers.cell)
        for one in mine.values():
            offered = columns(gpus=1, reports=1)
            shown_cells = zip(offered, written(one.group, "", offered), strict=True)
            cells = {column.key: cell.text for column, cell in shown_cells}
            assert (cells["verdict_gain_factor"], cells["verdict_limit_factor"]) == (
                one.numbers.gain,
                one.numbers.cell,
            )


def test_json_has_both_numbers(reports: list[AnalyzedReport]) -> None:
    """The best move's gain is the verdict's, and there is no key with another factor."""
    for report in reports:
        for analysis, kernel in zip(report.analyses, to_document(report.analyses)["kernels"], strict=True):
            verdict, numbers = kernel["verdict"], numbers_of(analysis)
            assert fmt.factor((verdict["gain"] or {"factor": None})["factor"]) == numbers.gain
            limit = analysis.verdict.limit
            written = {**asdict(limit), "factor": limit.factor, "far": limit.far}
            assert verdict["limit"] == {name: value for name, value in written.items() if name != "over_floor"}
            gains = [move["gain"]["factor"] for move in verdict["moves"] if move["gain"]]
            if not analysis.verdict.is_nearly_alone:
                assert (verdict["gain"] or {"factor": None})["factor"] == max(gains, default=None)
            assert not {"headroom", "potential", "potential_by_reuse", "floor_ns", "advice"} & verdict.keys()


def texts(one: Told, report: AnalyzedReport) -> Iterator[str]:
    """Write a kernel as the digest does, in full and in a line, and as the explanation does."""
    yield to_markdown(block(1, one.group, one.content))
    yield to_markdown(row(1, one.group, one.content))
    yield explain(report, one.group.analysis)


def test_digest_and_explanation_have_both_numbers_and_no_other(
    told: list[Told], contents: list[Content], reports: list[AnalyzedReport]
) -> None:
    """Apart from the two numbers there are only the findings' own gains."""
    of_content = {id(content): report for content, report in zip(contents, reports, strict=True)}
    for one in told:
        for text in texts(one, of_content[id(one.content)]):
            found = factors(text, one.group.analysis)
            assert one.numbers.both <= found, (one.where, text)
            assert found <= one.numbers.both | one.numbers.findings, (one.where, text)


def drawn_of(content: Content) -> dict[str, str]:
    """Write what a page says of each kernel; where it shows one alone, its first screen says the first part."""
    first = str(first_screen(content, ())) if content.only else ""
    return {key: first + str(card.body) for key, card in cards(content).items()}


_OTHER_TYPE = re.compile(r"\w+ is (?:not )?worth it[^.]*\.\d*x[^.]*\.|At best [\d.]+x in \w+")
"""What another type would bring, which is neither gain nor limit."""


def test_no_face_calls_a_limit_what_is_not_proven(
    told: list[Told], contents: list[Content], reports: list[AnalyzedReport]
) -> None:
    """The ranking says what today's traffic allows where the limit is not proven, and `far from` that above 10x.

    Where a unit bounds the kernel it says what that takes. Card and explanation say the time, at best.
    """
    of_content = {id(content): report for content, report in zip(contents, reports, strict=True)}
    drawn = {id(content): drawn_of(content) for content in contents}
    offenders, kinds = [], Counter[tuple[bool, bool]]()
    for one in told:
        limit = one.group.analysis.verdict.limit
        if limit.over_floor is None:
            continue
        kinds[limit.proven, limit.far] += 1
        at_a_unit = one.group.analysis.verdict.resource is not None
        unbound = "far from any limit" if limit.proven or limit.by == LAUNCH else "far from what today's"
        far = "over 10x if it" if at_a_unit else unbound
        in_row = far if limit.far else "limit" if limit.proven else " allow"
        in_full = "limit" if limit.proven else "at best"
        card = drawn[id(one.content)].get(one.group.representative.key, in_full)
        faces = [
            (in_row, limit_in_short(one.group.analysis)),
            (in_full, explain(of_content[id(one.content)], one.group.analysis)),
            (in_full, words_of(str(card))),
        ]
        faces = [(said, " ".join(face.lower().split())) for said, face in faces]
        offenders += [(one.where, said, face[:300]) for said, face in faces if said not in face]
        offenders += [(one.where, face) for _, face in faces if not limit.proven and re.search(r"\blimit [<\d]", face)]
    assert offenders == []
    assert all(kinds[kind] for kind in ((True, False), (True, True), (False, False)))


def test_the_ranking_has_both_numbers_and_no_other(told: list[Told], contents: list[Content]) -> None:
    """On the page and in Markdown an entry has the kernel's own two numbers, and those of its findings."""
    for content in contents:
        entries = dict(re.findall(r'<li data-g="(g\d+)" data-part=""(.*?</li>)', str(what_first(content)), re.DOTALL))
        for one in (one for one in told if one.content is content and one.group.key in entries):
            analysis, limit = one.group.analysis, limit_in_short(one.group.analysis)
            if 'class="members"' in entries[one.group.key]:
                continue  # a row for kernels with the same move: their limits are their own
            entry = words_of(f"<li {entries[one.group.key]}")
            said = factors(f"{best_gain_words(analysis, one.group.duration_ns)} {limit}", analysis)
            assert one.numbers.both <= said, entry
            assert len(said - one.numbers.both) <= ("; " in limit), entry  # that of today's traffic beside it
            assert factors(entry, analysis) == factors(limit, analysis), entry
            assert figure_of(one.group) in entry.replace("\u00a0", " "), entry


def test_cards_have_the_limit_and_the_gains_of_findings(told: list[Told], contents: list[Content]) -> None:
    """The card gives the limit once, and its findings their gains, including that of the first move."""
    compared = 0
    for content in contents:
        mine = {one.group.representative.key: one for one in told if one.content is content}
        for key, card in drawn_of(content).items():
            if key not in mine:
                continue
            one = mine[key]
            said = words_of(card).partition(" How it runs ")[0]  # below it are passes over those needed
            found = factors(_OTHER_TYPE.sub("", said), one.group.analysis)
            assert found <= one.numbers.both | one.numbers.findings, (one.where, words_of(card))
            assert {one.numbers.limit} - {fmt.MISSING} <= found, one.where
            compared += 1
    assert compared > 60


def test_the_chart_has_no_factor(contents: list[Content]) -> None:
    """Rows of kernels and points give times, verdicts and shares; the gap is drawn without a number."""
    for drawn in (plane(content, gpu) for content in contents for gpu in content.gpus):
        rows, words = kernel_rows(drawn)
        values = [value for each in (*rows, *point_rows(drawn)) for name, value in each.items() if name != "name"]
        names = {words[each["name"]] for each in rows}
        said = [value for value in (*values, *words) if isinstance(value, str) and value not in names]
        assert not [value for value in said if FACTOR.search(value)]
