"""Compare ladders and comparisons of public programs with each other and with their own numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath

import pytest

from rooflens.model.compare.causes import MOST_NAMED
from rooflens.model.compare.findings import changed_findings
from rooflens.model.compare.ladder import Ladder, Rung
from rooflens.model.compare.ladder import ladder as pair_of
from rooflens.model.compare.versions import detected_ladders, pair_versions
from rooflens.model.records import AnalyzedReport
from rooflens.report.words.change import change_sentence, findings_sentence
from rooflens.report.words.headline import name_of
from rooflens.report.words.ladder import headline, ladder_rows

_FASTER = re.compile(r"(\d[\d.,]*)x faster")
_SLOWER = re.compile(r"(\d[\d.,]*)x slower")


@pytest.fixture(scope="module")
def programs(published: Sequence[AnalyzedReport]) -> dict[str, list[AnalyzedReport]]:
    """Return the reports of each folder with several versions."""
    found: defaultdict[str, list[AnalyzedReport]] = defaultdict(list)
    for report in published:
        path = PurePath(report.run.source)
        if "reports" in path.parts:
            found[path.parent.name].append(report)
    return dict(found)


@pytest.fixture(scope="module")
def ladders(programs: dict[str, list[AnalyzedReport]]) -> list[Ladder]:
    """Find the ladders of each folder, and of each single report."""
    alone = [[report] for reports in programs.values() for report in reports]
    return [one for reports in (*programs.values(), *alone) for one in detected_ladders(reports)]


def _pairs(ladder: Ladder) -> Iterator[tuple[Rung, Rung, Ladder]]:
    """Compare each rung with the first compared rung, as `compare` does with those of a folder."""
    known = [rung for rung in ladder.rungs if not rung.apart and not rung.library]
    if known and len({digest for rung in ladder.rungs for digest in rung.side.digests}) == len(ladder.rungs):
        for rung in ladder.rungs:
            if rung is not known[0] and not rung.library:
                told = None if rung.apart else rung.work
                yield known[0], rung, pair_of("", (known[0].side, rung.side), work=told)


def test_a_pair_is_compared_where_its_ladder_compares_it(ladders: list[Ladder]) -> None:
    """No two reports have a factor in one answer and are different work in the other, or have two factors."""
    offenders = []
    for ladder in ladders:
        for first, rung, pair in _pairs(ladder):
            mine = next((one for one in pair.changes if one.base and one.head), None)
            if rung.apart == "GPU" or mine is None or not ladder.followed:
                continue
            factor = rung.to_first.factor if rung.to_first else None
            theirs = None if mine.timing.apart else mine.speed.factor
            if (factor is None) is not (theirs is None) or (factor and theirs and abs(factor / theirs - 1) > 0.01):
                offenders.append(f"{ladder.program}: {first.label} -> {rung.label}: {factor}, {theirs}")
    assert offenders == []


def test_the_direction_of_a_time_decides_the_word(ladders: list[Ladder]) -> None:
    """A longer time is called slower, no reason contradicts what it explains, and at most three are given."""
    offenders = []
    for ladder in ladders:
        rows = ladder_rows(ladder.rungs, ladder.threshold)
        for rung, row in zip(ladder.rungs, rows, strict=True):
            factor = rung.to_previous.factor if rung.to_previous else None
            if not factor:
                continue
            wrong = _SLOWER if factor > 1 else _FASTER
            telling = [cause for cause in rung.changed if cause.words in row.changed]
            against = [cause.words for cause in telling if cause.helps is (factor < 1)]
            if (
                wrong.search(row.changed)
                or len(telling) > MOST_NAMED
                or (against and "no counter says why" not in row.changed)
            ):
                offenders.append(f"{ladder.program} {row.label}: {row.changed}")
    assert offenders == []


def test_nothing_that_got_worse_is_gone(ladders: list[Ladder]) -> None:
    """A finding that is gone has a smaller number, and only speed-ups are compared with the limit."""
    offenders = []
    for ladder in ladders:
        for _, rung, pair in _pairs(ladder):
            for change in pair.changes:
                said = findings_sentence(changed_findings(change)) if change.base and change.head else ""
                slower = (change.speed.factor or 1) < 1 and " reached" in said
                if slower or "0.0" in "".join(re.findall(r"([\d.]+)x reached", said)):
                    offenders.append(f"{ladder.program} {rung.label}: {said}")
                sentence = change_sentence(change, pair)
                factor = change.speed.factor or 1
                if (factor < 1 and _FASTER.search(sentence)) or (factor > 1 and _SLOWER.search(sentence)):
                    offenders.append(f"{ladder.program} {rung.label}: {sentence}")
    assert offenders == []


def test_what_is_not_compared_is_in_no_headline_and_on_no_scale(ladders: list[Ladder]) -> None:
    """A version that did other work has no bar and no factor, and is not the one that the headline names."""
    offenders = []
    for ladder in ladders:
        rows = ladder_rows(ladder.rungs, ladder.threshold)
        for rung, row in zip(ladder.rungs, rows, strict=True):
            if rung.apart and (row.part or row.is_fastest or rung.to_first or "not compared" not in row.changed):
                offenders.append(f"{ladder.program} {row.label}: {row}")
        marked = [row.label for row in rows if row.is_fastest]
        said = headline(ladder)
        if marked and not said.startswith((f"{name_of(marked[0])} is the fastest of ", f"{name_of(marked[0])}: ")):
            offenders.append(f"{ladder.program}: {said}, marked {marked}")
        if len(ladder.tied) > 1 and marked:
            offenders.append(f"{ladder.program}: {said}, {marked} though as fast as others")
    assert offenders == []


def test_no_report_goes_without_a_word(programs: dict[str, list[AnalyzedReport]]) -> None:
    """Each report of a folder is in a ladder or is named as belonging to none."""
    offenders = []
    for name, reports in programs.items():
        if len(reports) < 2 or not (found := detected_ladders(reports)):
            continue
        across = [one for one in found if len({d for rung in one.rungs for d in rung.side.digests}) > 1]
        if not across:
            continue
        ladders, unpaired = pair_versions(reports, name)
        named = {program for one in unpaired for program in one.programs}
        held = {digest for one in ladders for rung in one.rungs for digest in rung.side.digests}
        offenders += [
            f"{name}: {report.run.source}"
            for report in reports
            if report.run.digest not in held and PurePath(report.run.source).name not in named
        ]
    assert offenders == []


def test_kernels_of_other_jobs_share_no_ladder(ladders: list[Ladder]) -> None:
    """No product is in a ladder of transpositions: kernels whose names tell two jobs are not compared."""
    jobs = re.compile(r"gemm|transpose|reduc|conv|softmax|sort|scan|copy", re.IGNORECASE)
    offenders = []
    for ladder in ladders:
        known = [rung for rung in ladder.rungs if rung.analysis and not rung.apart]
        for one, other in pairwise(known):
            words = [
                {word.lower() for word in jobs.findall(rung.analysis.kernel.function_name)}
                for rung in (one, other)
                if rung.analysis
            ]
            if words[0] and words[1] and not words[0] & words[1]:
                offenders.append(f"{ladder.program}: {one.label}, {other.label}: {words}")
    assert offenders == []


def test_plain_versions_stand_beside_the_library(ladders: list[Ladder]) -> None:
    """Products in one report form a ladder from the plainest to the library's, even if no FLOPs were counted."""
    found = next(one for one in ladders if "basic" in one.labels)
    assert found.labels[:3] == ("basic", "gmem_coalesce", "smem_blocking")
    assert found.reference is not None
    assert found.reference.library == "cuBLAS"
    assert found.fastest is not None
    assert found.fastest.label == "warptiling"
    assert "77 % of cuBLAS" in headline(found)


def test_a_version_may_be_told_by_another(programs: dict[str, list[AnalyzedReport]]) -> None:
    """Tiles of one result a thread have 16 times the threads of blocked registers, and an output as large as a third.

    Neither FLOPs nor instructions were counted; the times are those of the files.
    """
    reports = next(found for found in programs.values() if any("gemm_register_blocked" in r.run.source for r in found))
    ladders, unpaired = pair_versions(reports, "")
    (found,) = (one for one in ladders if len(one.rungs) == 3)
    times = {rung.label: (rung.apart, rung.time.median_ns) for rung in found.rungs}
    assert times == {
        "register_blocked": ("", 2_970_912.0),
        "tiled": ("", 10_195_552.0),
        "vectorized": ("", 2_103_104.0),
    }
    assert unpaired == ()
    (other,) = (one.program for one in ladders if one is not found)
    assert other.endswith("transpose: naive -> tiled")
