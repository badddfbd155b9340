"""Hold the direct reader against NVIDIA's module on every published report: records, and every stored value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rooflens.errors import InputError
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.ncu_reader import read_with_nvidia
from rooflens.ingest.reports.read import differences_of, read_report
from rooflens.ingest.reports.report import ReadOptions, Report

if TYPE_CHECKING:
    from rooflens.ingest.load import Loaded

pytestmark = pytest.mark.corpus


def test_both_readers_make_the_same_of_every_report(corpus: Path, loaded: Loaded) -> None:
    """Kernels, rules, series, hot spots, values and instances are equal to the bit, and all of it is read directly.

    Kernels read for an analysis, from the metrics it needs, equal those read with every stored value.
    """
    value_count = 0
    for run, kernels in loaded.reports:
        assert run.reader == "direct", run.source
        path = corpus / Path(run.source).name
        stored = read_report(path, run.source, ReadOptions("direct", raw="all"))
        assert stored.raw is not None
        assert stored.instances is not None
        theirs = in_child(read_with_nvidia, path, run.source, ReadOptions(raw="all"))
        ours = Report(run, tuple(kernels), stored.raw, stored.instances)
        assert list(differences_of(ours, theirs)) == [], run.source
        value_count += stored.raw.num_rows + stored.instances.num_rows
    assert value_count > 1_000_000


def test_both_readers_refuse_the_same_reports(loaded: Loaded) -> None:
    """What rooflens refuses to read, NVIDIA's module would not read either, for the same reason."""
    assert loaded.failures
    for source, error in loaded.failures:
        with pytest.raises(InputError, match=str(error)[:20]):
            in_child(read_with_nvidia, Path(source), source, ReadOptions())
