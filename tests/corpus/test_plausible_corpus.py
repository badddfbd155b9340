"""The checks of values and recipes hold for every published report."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from support.unpruned import resolved_without_a_plan

from rooflens.ingest.load import Loaded
from rooflens.ingest.reports.container import outline
from rooflens.ingest.reports.protobuf import ResultReader
from rooflens.ingest.reports.resolve import resolve
from rooflens.ingest.reports.unpacking import MAGIC
from rooflens.model.failed import ALL_NAN

MOST_OF_A_REPORT = 4
"""Kernels of one report store the same names: more of them show nothing more."""


def test_nothing_that_was_measured_is_impossible(loaded: Loaded) -> None:
    """The plausibility limits fit all real reports: kernels fail only for what ncu could not measure."""
    failed = [kernel for _, kernels in loaded.reports for kernel in kernels if kernel.failed]
    assert failed
    assert {kernel.status_reason for kernel in failed} == {ALL_NAN}


def test_plans_find_what_all_recipes_find(corpus: Path) -> None:
    """For the names of real reports, values, sources and their order equal those of the whole table."""
    plain = [data for path in corpus.glob("*.ncu-rep") if (data := path.read_bytes()).startswith(MAGIC)]
    results = [raw for data in plain for raw in islice(ResultReader(data, outline(data)).results(), MOST_OF_A_REPORT)]
    assert len(results) > len(plain)
    for raw in results:
        found, (values, sources) = resolve(raw.numbers), resolved_without_a_plan(raw.numbers)
        assert list(found.values.items()) == list(values.items())
        assert found.sources == sources
