"""Hold limits and first moves against what authors did next: pairs of a slower and a faster kernel for the same job."""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from rooflens.analyzing import analyze_inputs, analyze_paths
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.predict.forecast import forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.roofline.datasheets import the_datasheet
from rooflens.model.verdict.sentences import NOT_MEASURED

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.model.records import Analysis

_BEST_MS = 24.16
"""The best of all versions of the product whose states are at hand, in a run without ncu."""
_SPREAD = 1.05
"""Runs of one kernel differ by up to a twentieth."""

_WORDS = {
    "pad": r"swizzle|\bpad\b|bank conflict",
    "coalesce": r"neighbou?ring|coalesc|consecutive addresses",
    "tile": r"\btiles?\b|\btiling\b|through shared memory",
    "results": r"results? (per|a|each) thread|several results",
    "wide": r"wider|16[- ]byte|16 bytes|vector load",
    "inflight": r"in flight|prefetch|cp\.async|unroll",
    "elements": r"(several|more) elements (per|a) thread",
    "block": r"multiple of 32|block size|block shape|blocks? of \d",
    "divergence": r"same path|diverge|of 32 threads",
    "local": r"local memory|spill|index arrays with constants",
    "barrier": r"barrier",
}
"""Classes of moves -> words of theirs."""
_MOST_CLASSES = 3
"""A move whose words fall into more classes names nothing."""


@pytest.fixture(scope="module")
def outcomes(corpus: Path) -> Path:
    """Return the folder of outcomes beside the corpus."""
    folder = corpus.parent / "outcomes"
    if not folder.is_dir():
        pytest.skip(f"no outcomes at {folder}")
    return folder


@pytest.fixture(scope="module")
def pairs(outcomes: Path) -> list[tuple[dict[str, str], Analysis]]:
    """Return each pair with the slower kernel's analysis."""

    @cache
    def analyses(path: str) -> dict[int, Analysis]:
        found = analyze_paths([outcomes / "reports" / path])
        return {one.kernel.index: one for report in found.reports for one in report.analyses}

    with (outcomes / "siblings.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [(row, analyses(row["path"])[int(row["index"])]) for row in rows]


def test_a_limit_holds_what_was_reached(pairs: list[tuple[dict[str, str], Analysis]]) -> None:
    """Every kernel has a limit, none of them is below what was reached for the same work, and most are near it."""
    offenders, ratios = [], []
    for row, analysis in pairs:
        limit, reached = analysis.verdict.limit, float(row["actual"])
        if row["boundable"] == "y" and limit.factor is None:
            offenders.append(f"{row['path']}#{row['index']}: no limit: {limit.missing}")
        elif row["same_work"] == "y" and limit.factor is not None:
            ratios.append(limit.factor / reached)
            if limit.factor < reached / _SPREAD:
                offenders.append(f"{row['path']}#{row['index']}: limit {limit.factor:.2f}, reached {reached}")
    assert offenders == []
    assert sorted(ratios)[int(0.9 * (len(ratios) - 1))] <= 4


def test_a_first_move_names_what_won(pairs: list[tuple[dict[str, str], Analysis]]) -> None:
    """The first move names the author's change in 85 % of programs, and one of the first three in 95 %."""
    first, three, misses = defaultdict(list), defaultdict(list), []
    for row, analysis in pairs:
        if not row["classes"]:
            continue
        wanted, program = set(row["classes"].split(",")), row["path"].partition("/")[0]
        hits = [_names(move, wanted) for move in analysis.verdict.advice[:3]]
        first[program].append(bool(hits) and hits[0])
        three[program].append(any(hits))
        if not first[program][-1]:
            misses.append(f"{row['path']}#{row['index']}: {row['change']}: {analysis.verdict.advice[:1]}")
    rates = [statistics.mean(map(statistics.mean, groups.values())) for groups in (first, three)]
    assert rates[0] >= 0.85, misses
    assert rates[1] >= 0.95, misses


def _names(move: str, wanted: set[str]) -> bool:
    found = {name for name, words in _WORDS.items() if re.search(words, move, re.IGNORECASE)}
    return len(found) <= _MOST_CLASSES and bool(found & wanted)


def test_states_of_one_product_are_told_apart(outcomes: Path) -> None:
    """Eleven counters are enough for a cause and a limit of each state; limits follow the times they are of.

    Shares are of active cycles and times of other runs, so that a few may lie below what the best version reached.
    """
    inputs = find_inputs([str(outcomes / "matmul_states.csv")])
    found = analyze_inputs(inputs, reading=ReadOptions(gpu="rtx-3070-laptop"))
    states = [one for report in found.reports for one in report.analyses]
    assert len(states) == 100
    told = [one.verdict.resource or one.verdict.cause not in {None, NOT_MEASURED} for one in states]
    assert all(told)  # the full unit by name, or what warps wait for behind it
    reached = [(one.kernel.duration_ns or 0.0) / 1e6 / _BEST_MS for one in states]
    limits = [one.verdict.limit.factor or 0.0 for one in states]
    assert sum(limit < best / _SPREAD for limit, best in zip(limits, reached, strict=True)) <= 5
    assert pd.Series(limits).rank().corr(pd.Series(reached).rank()) >= 0.9


def test_no_published_time_is_below_the_floor(outcomes: Path) -> None:
    """No published time of an operation is shorter than our floor of it, from cold caches or from warm ones."""
    with (outcomes / "points_all.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    wrong = []
    for row in rows:
        sizes = json.loads(row["sizes"])
        out_dtype, gpu = sizes.pop("out_dtype", None), the_datasheet(row["gpu"])
        found = forecast(OPERATIONS[row["operation"]], sizes, row["dtype"], gpu, out_dtype=out_dtype)
        fits = gpu.l2_size is not None and found.moved_bytes <= gpu.l2_size.value
        told = f"{row['source']}: {row['operation']} {row['sizes']}"
        if float(row["measured_ms"]) < found.t_lower_s * 1e3:
            wrong.append(f"{told}: {row['measured_ms']} ms < {found.t_lower_s * 1e3:.3f}")
        if fits != (found.t_lower_warm_s is not None) or (found.t_lower_warm_s or 0.0) > found.t_lower_s:
            wrong.append(f"{told}: warm floor {found.t_lower_warm_s}")
    assert len(rows) == 261
    assert wrong == []
