"""What first screens of everything at hand say: a number under one label, each edit once, nothing that excludes itself.

A reader who had never seen rooflens stumbled over each of these.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path, PurePath

import pytest

from rooflens.analyzing import analyze_paths
from rooflens.model.ranking import Tier, failed_lead, tiers
from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.document import Opportunity
from rooflens.report.overview.headline import headline
from rooflens.report.overview.opportunities import opportunities
from rooflens.report.page.first_screen import first_screen
from rooflens.report.roofline.choices import choices
from rooflens.report.words.gain_and_limit import floor_words, limit_factor_words, limit_in_short, today_words
from rooflens.report.words.inside import loop_labels, shown_loops
from rooflens.report.words.ladder import headline as ladder_headline

MOST_SIDES = 40
"""Reports of one page; larger folders hold strangers."""

_AFTER = re.compile(r"(?:about|at best) [\d.]+ \w+")
_SPAN = re.compile(r"in [\d,]+ launches|a launch")
_WIDER = re.compile(r"\bwider (?:loads|global)|16 bytes at once(?! from shared)|\bload wider")


@pytest.fixture(scope="module")
def reports(published: Sequence[AnalyzedReport], fixtures: Path) -> list[AnalyzedReport]:
    """Return every report at hand."""
    return [*published, *analyze_paths([fixtures]).reports]


@pytest.fixture(scope="module")
def screens(reports: list[AnalyzedReport]) -> dict[str, Content]:
    """Make the page of each report, and of each folder of several."""
    folders: defaultdict[str, list[AnalyzedReport]] = defaultdict(list)
    for report in reports:
        folders[str(PurePath(report.run.source).parent)].append(report)
    every = {report.run.source: [report] for report in reports}
    every |= {f"{folder}/": own for folder, own in folders.items() if 1 < len(own) <= MOST_SIDES}
    return {name: build_content(own, name, default_thresholds()) for name, own in every.items()}


@pytest.fixture(scope="module")
def analyses(reports: list[AnalyzedReport]) -> list[Analysis]:
    """Return one launch of each kernel at hand."""
    alike = {
        (one.kernel.digest, one.kernel.name): one
        for report in reports
        for one in report.analyses
        if not one.kernel.failed
    }
    return list(alike.values())


def _rows(content: Content) -> list[Opportunity]:
    block = opportunities(content)
    return [row for row in block.rows if not (row.live and (row.live.is_hidden or row.live.part))] if block else []


def _plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_headline_and_first_row_give_one_number_under_one_label(screens: dict[str, Content]) -> None:
    """The time after the move, and how many launches that is of, are the same in both; several launches are counted."""
    offenders, seen = [], 0
    for name, content in screens.items():
        said, rows = headline(content), _rows(content)
        if not (said.name and rows):
            continue
        texts = [_plain(said.text), _plain(rows[0].figure)]
        first = content.first[0]
        launches = first.launch_count if first.launch_count > max(1, len(first.members)) else 1
        seen += launches > 1
        has_time = first.duration_ns is not None
        for pattern in (_AFTER, _SPAN):
            if pattern is _AFTER and "gain" in texts[0]:
                continue
            found = [pattern.findall(text) for text in texts]
            is_counted = (
                pattern is not _SPAN or launches < 2 or not has_time or found[0] == [f"in {launches:,} launches"]
            )
            if found[0] != found[1] or not is_counted:
                offenders.append((name, *texts))
    assert offenders == []
    assert seen > 10


def test_each_edit_is_offered_once(analyses: list[Analysis]) -> None:
    """No two moves that a reader can choose begin alike, and at most one asks for wider accesses to global memory."""
    offenders = []
    for one in analyses:
        moves = choices(one)
        heads = [move.text.partition(":")[0] for move in moves]
        wider = [move.text for move in moves if _WIDER.search(move.text) and not move.text.startswith("copy operands")]
        if len({*heads}) < len(heads) or len(wider) > 1:
            offenders.append((one.kernel.source[-40:], one.key, heads, wider))
    assert offenders == []


_FLOORS = ("above its floor", "at the floor of today's work")


def test_the_order_of_rows_can_be_checked_by_their_numbers(screens: dict[str, Content]) -> None:
    """A row without a known gain says what lies above its floor, which is what it stands above the next row by."""
    offenders, seen = [], 0
    for name, content in screens.items():
        if failed_lead([*content.kernels, *content.failed_kernels]):
            continue
        listed = dict(zip([row.key for row in content.rows], tiers(content.rows), strict=True))
        kernels = {row.key: row for row in content.rows}
        rows = [row for row in _rows(content) if row.live and row.live.group in listed]
        for row in rows:
            tier = listed[row.live.group] if row.live else Tier.FILL
            seen += tier == Tier.LIMIT
            if tier == Tier.LIMIT and kernels[row.live.group].duration_ns and not row.figure.endswith(_FLOORS):
                offenders.append((name, row.name, row.figure))
        for upper, lower in pairwise(rows):
            above, below = (kernels[one.live.group] for one in (upper, lower))
            is_own = max(listed[above.key], listed[below.key]) <= Tier.TIME and upper.rank > 1
            is_same_size = upper.live.is_brief == lower.live.is_brief
            if is_own and is_same_size and above.at_stake_ns < below.at_stake_ns:
                offenders.append((name, upper.name, lower.name))
    assert offenders == []
    assert seen > 50


def test_a_headline_about_a_failed_kernel_stands_over_its_own_moves(screens: dict[str, Content]) -> None:
    """Where the page opens with what could not be profiled, it lists that, and no moves for another kernel."""
    offenders, seen = [], 0
    for name, content in screens.items():
        if "could not be profiled" in headline(content).text and content.failed_kernels:
            seen += 1
            screen, lost = str(first_screen(content, ())), content.failed_kernels[0].shown
            if 'name="move"' in screen or lost[:20] not in screen:
                offenders.append(name)
    assert offenders == []
    assert seen


def test_a_library_beside_a_version_is_something_to_compare_with(screens: dict[str, Content]) -> None:
    """No ladder says that there is nothing to compare, and marks none as the fastest, above a kernel of a library."""
    offenders, seen = [], 0
    for name, content in screens.items():
        for ladder in content.ladders:
            own = [rung for rung in ladder.versions if rung.time.times_ns]
            if ladder.reference and len(own) < 2:
                seen += 1
                if "no other version" in ladder_headline(ladder):
                    offenders.append((name, ladder_headline(ladder)))
    assert offenders == []
    assert seen


def test_what_is_won_is_hatched_where_it_is_known(screens: dict[str, Content]) -> None:
    """A bar has a hatched part exactly where its row says what its move brings."""
    offenders = [
        (name, row.name, row.figure)
        for name, content in screens.items()
        for row in _rows(content)
        if bool(row.won) != ("\u2192" in row.figure) and row.length
    ]
    assert offenders == []


_TODAY = re.compile(
    r"[\d.,]+\s\S+ unless it (?:moves fewer bytes through .+|issues fewer instructions|has less work for .+?)"
    r"(?:, as the best move does)?"
)


def test_limits_are_sentences_and_none_sounds_like_a_floor_that_it_is_not(analyses: list[Analysis]) -> None:
    """What is not proven has a verb and its condition; the floor of today's work says what gets below it, or did."""
    offenders = []
    for one in analyses:
        for words in (limit_factor_words(one), limit_in_short(one)):
            is_said = words.startswith(("limit ", "far from any limit (", "over 10x if it ")) or " allow" in words
            if words and not (is_said or words == "far from any limit"):
                offenders.append((one.key, words))
        today = today_words(one)
        if today and not _TODAY.fullmatch(today):
            offenders.append((one.key, today))
        floor = floor_words(one)
        if floor and floor.startswith("Limit ") is not one.verdict.limit.proven:
            offenders.append((one.key, floor))
    assert offenders == []


def test_loops_that_are_shown_have_names_of_their_own(analyses: list[Analysis]) -> None:
    """Two loops of one line are told apart in words, and not by how deep they stand."""
    labels = [(one.key, [*loop_labels(shown_loops(one.loops)).values()]) for one in analyses]
    assert [(key, own) for key, own in labels if len({*own}) < len(own)] == []
    assert any(label.endswith((", inner", ", 2 of 2")) for _, own in labels for label in own)
