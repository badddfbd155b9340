"""Moves of every report and print at hand: none advises what a kernel does, or what does not fit how it works."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rooflens.analyzing import analyze_paths
from rooflens.model.records import Analysis, AnalyzedReport

_LEAST_GAIN = 1 / (1 - 0.02)
"""A waste of less than a fiftieth of the time is no move."""
_REGISTERS = 96
_WON = 1.15
"""An author who won more than this had something left."""
_DONE = 7
"""Of nine kernels that their authors call finished, so many at least."""


@pytest.fixture(scope="module")
def outcomes(corpus: Path) -> Path:
    """Return the folder of what authors did next, beside the corpus."""
    folder = corpus.parent / "outcomes"
    if not (folder / "modern.tsv").exists():
        pytest.skip("no folder of outcomes with modern kernels beside the corpus")
    return folder


@pytest.fixture(scope="module")
def modern(outcomes: Path, once: Callable[[str, Callable[[], Any]], Any]) -> dict[str, list[Analysis]]:
    """Judge the texts of modern kernels, by their path in the folder."""

    def read() -> dict[str, list[Analysis]]:
        folder = outcomes / "modern"
        found = analyze_paths([folder])
        return {
            Path(report.run.source).relative_to(folder).as_posix(): list(report.analyses) for report in found.reports
        }

    return once("modern", read)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _every(published: list[AnalyzedReport], modern: dict[str, list[Analysis]]) -> Iterator[Analysis]:
    yield from (analysis for report in published for analysis in report.analyses)
    yield from (analysis for analyses in modern.values() for analysis in analyses)


def test_no_move_is_for_another_kind_of_kernel(
    published: list[AnalyzedReport], modern: dict[str, list[Analysis]]
) -> None:
    """Several results are for nobody who holds them, occupancy for no tensor kernel, and every gain is over 2 %."""
    offenders = []
    for analysis in _every(published, modern):
        verdict = analysis.verdict
        for move in verdict.moves:
            holds = verdict.does.uses_tensor_cores or (verdict.does.registers or 0.0) >= _REGISTERS
            is_small = move.gain is not None and move.gain.factor < _LEAST_GAIN
            is_again = move.kind == "results" and "2 x 2" in move.text and holds
            is_for_others = move.text.startswith("raise occupancy") and verdict.does.uses_tensor_cores
            if is_small or is_again or is_for_others:
                offenders.append((analysis.kernel.source[-40:], analysis.kernel.index, move.kind, move.text[:60]))
    assert not offenders, (len(offenders), offenders[:8])


def test_done_is_said_of_finished_kernels_and_of_none_that_got_faster(
    outcomes: Path, modern: dict[str, list[Analysis]]
) -> None:
    """Most kernels that their authors call finished are done, and none is whose author won over 1.15x."""

    def done(row: dict[str, str]) -> bool:
        kernels = modern.get(row["path"], [])
        return any(one.verdict.done for one in kernels if str(one.kernel.index) == row["index"])

    said = [row["path"] for row in _rows(outcomes / "modern_done.tsv") if done(row)]
    assert len(said) >= _DONE, said
    won = [row["path"] for row in _rows(outcomes / "modern.tsv") if float(row["actual"]) > _WON and done(row)]
    assert not won
