"""Hold the direct reader against NVIDIA's module on every published report: records, and every stored value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rooflens.errors import InputError
from rooflens.ingest.reports.ncu_reader import read_with_nvidia
from rooflens.ingest.reports.pool import in_child
from rooflens.ingest.reports.read import differences_of, read_report
from rooflens.ingest.reports.report import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus

EVERYTHING = ReadOptions(raw="all")


def test_both_readers_make_the_same_of_every_report(corpus: Path) -> None:
    """Kernels, rules, series, hot spots, values and instances are equal to the bit, and all of it is read directly."""
    value_count = 0
    for path in sorted(corpus.glob("*rep*")):
        try:
            ours = read_report(path, path.name, EVERYTHING)
        except InputError as error:
            with pytest.raises(InputError, match=str(error)[:20]):
                in_child(read_with_nvidia, path, path.name, EVERYTHING)
            continue
        assert (ours.run.reader, ours.notes) == ("direct", ()), path.name
        theirs = in_child(read_with_nvidia, path, path.name, EVERYTHING)
        assert list(differences_of(ours, theirs)) == [], path.name
        assert ours.raw is not None
        assert ours.instances is not None
        value_count += ours.raw.num_rows + ours.instances.num_rows
    assert value_count > 1_000_000
