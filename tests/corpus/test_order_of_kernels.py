"""The order of kernels in published reports: by what is at stake, libraries and fills last, shared moves in one row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from rooflens.model.ranking import LIBRARIES_LEAD_FROM, LITTLE, MOST, Tier, in_rank, opportunities, tiers
from rooflens.model.records import AnalyzedReport, timed
from rooflens.model.summary import KernelSummary, summarize
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.data import json_lines, to_document
from rooflens.report.document import Words, spans
from rooflens.report.overview.kernels import kernels_document
from rooflens.report.text.digest import digest
from rooflens.report.words.verdict import best_move

_FEWEST = 50
"""Published reports with several kernels, at least; 61 when this was written."""
_FILLS = r"distribution_elementwise|FillFunctor|uniform_kernel|normal_kernel|fill_kernel"
"""Kernels of PyTorch that fill inputs, by eye, in the published reports."""


def _with_several(published: list[AnalyzedReport]) -> Iterator[tuple[AnalyzedReport, tuple[KernelSummary, ...]]]:
    for report in published:
        kernels = tuple(kernel for kernel in summarize(report.analyses) if not kernel.is_failed)
        if len(kernels) > 1:
            yield report, kernels


_OWN = ("gain", "limit", "time")
"""What the time at stake of kernels is made of that the reader can change."""


def test_kernels_stand_by_the_time_at_stake(published: list[AnalyzedReport]) -> None:
    """Holds for table, ranking and JSON of all reports with several kernels, but where one has most of the time."""
    offenders, seen = [], 0
    for report, kernels in _with_several(published):
        seen += 1
        page = build_content((report,), "page", default_thresholds())
        rows = {
            "rows": opportunities(kernels),
            "ranking": [*page.first],
        }
        for face, listed in rows.items():
            own = [row for row, tier in zip(listed, tiers(listed), strict=True) if tier <= Tier.TIME]
            is_most = bool(own) and (own[0].duration_ns or 0.0) > MOST * sum(row.duration_ns or 0.0 for row in listed)
            stakes_ns = [row.at_stake_ns for row in own[is_most:]]
            if stakes_ns != sorted(stakes_ns, reverse=True):
                offenders.append((report.run.source[-40:], face, stakes_ns))
        written = [row["by"] for row in to_document(report.analyses)["ranking"]]
        behind = [("library", "fill").index(by) + 1 if by not in _OWN else 0 for by in written]
        if behind != sorted(behind):
            offenders.append((report.run.source[-40:], "JSON", written))
    assert not offenders, (len(offenders), offenders[:5])
    assert seen >= _FEWEST


def test_no_kernel_of_little_time_leads_and_no_gain_is_hidden(published: list[AnalyzedReport]) -> None:
    """No row under a tenth of the time is first where another has over half; a row's gain is its best move's."""
    offenders = []
    for report, kernels in _with_several(published):
        listed = in_rank(kernels)
        whole_ns = sum(row.duration_ns or 0.0 for row in listed) or 1.0
        parts = [(row.duration_ns or 0.0) / whole_ns for row in listed]
        most = max(range(len(listed)), key=parts.__getitem__)
        if parts[0] < LITTLE and parts[most] > MOST and listed[most].analysis.role != "fill":
            offenders.append((report.run.source[-40:], "leads", listed[0].shown, parts[0]))
        for row in listed:
            verdict = row.analysis.verdict
            gains = [move.gain.factor for move in verdict.moves if move.gain]
            if gains and not verdict.is_nearly_alone and (verdict.gain is None or verdict.gain.factor < max(gains)):
                offenders.append((report.run.source[-40:], "hidden", row.shown, max(gains)))
    assert not offenders, (len(offenders), offenders[:5])


def test_what_fills_inputs_is_last_and_a_report_of_nothing_else_says_so(published: list[AnalyzedReport]) -> None:
    """Only fills stand below a fill; a report of fills alone begins with how to profile the reader's own kernel."""
    offenders, fills = [], 0
    for report in published:
        sound = timed(report.analyses)
        by_eye = [bool(re.search(_FILLS, one.kernel.name)) for one in sound]
        fills += sum(by_eye)
        offenders += [
            (report.run.source[-40:], one.kernel.name[:80], one.role)
            for one, is_fill in zip(sound, by_eye, strict=True)
            if is_fill != (one.role == "fill")
        ]
        listed = opportunities([kernel for kernel in summarize(report.analyses) if not kernel.is_failed])
        last = [row.analysis.role == "fill" for row in listed]
        if last != sorted(last):
            offenders.append((report.run.source[-40:], "not last", last))
        is_alone = all(one.role == "fill" for one in report.analyses)
        if last and is_alone and not listed[0].analysis.verdict.moves[0].text.startswith("this report holds only"):
            offenders.append((report.run.source[-40:], "alone", listed[0].analysis.verdict.moves[0].text))
    assert not offenders, (len(offenders), offenders[:5])
    assert fills


def test_libraries_follow_what_the_reader_can_change(published: list[AnalyzedReport]) -> None:
    """A library kernel without a gain precedes the reader's own only if libraries take nearly all of the time."""
    offenders, both = [], 0
    for report, kernels in _with_several(published):
        of_libraries = [kernel.analysis.role in {"library", "copy"} for kernel in kernels]
        if all(of_libraries) or not any(of_libraries):
            continue
        both += 1
        total_ns = sum(kernel.duration_ns or 0.0 for kernel in kernels)
        theirs_ns = sum(k.duration_ns or 0.0 for k, is_theirs in zip(kernels, of_libraries, strict=True) if is_theirs)
        roles = [row.analysis.role for row in opportunities(kernels) if row.analysis.role != "fill"]
        later = [role in {"library", "copy"} for role in roles]
        if theirs_ns < LIBRARIES_LEAD_FROM * total_ns and later != sorted(later):
            offenders.append((report.run.source[-40:], roles))
    assert not offenders, (len(offenders), offenders[:5])
    assert both


def _plain(words: Words) -> str:
    return "".join(span.text for span in spans(words))


def test_one_move_for_many_kernels_is_one_row_in_each_face(published: list[AnalyzedReport]) -> None:
    """Kernels as short as their launch share one row, with number and share, in table, JSON, digest and ranking."""
    offenders, seen = [], 0
    for report, kernels in _with_several(published):
        for row in opportunities(kernels):
            if not row.members:
                continue
            seen += 1
            page = build_content((report,), "page", default_thresholds())
            text = row.analysis.verdict.moves[0].text
            keys = sorted(one.analysis.key for one in row.members)
            # A page ranks the fastest version of a kernel alone.
            replaced = {one.kernel.name for one in page.earlier.values()}
            is_replaced = not replaced.isdisjoint(one.name for one in row.members)
            (table, *_) = kernels_document(kernels)
            cells = [_plain(line[-1]) for line in table.rows]
            parts = json.loads("".join(json_lines(report.analyses)))["ranking"]
            faces = {
                "table": sum(text.startswith(cell) for cell in cells if cell) == 1,
                "JSON": [one["move"]["text"] for one in parts if sorted(one["kernels"]) == keys] == [text],
                "digest": digest((report,)).count(text[:60]) == 1,
                "ranking": is_replaced or [best_move(one.analysis)[:40] for one in page.first].count(text[:40]) == 1,
                "launches": f"{row.launch_count} launches" in text or "kernels" in text,
            }
            offenders += [(report.run.source[-40:], face, text[:80]) for face, is_one in faces.items() if not is_one]
    assert not offenders, (len(offenders), offenders[:8])
    assert seen
