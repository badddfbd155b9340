"""What follows from other counters is what the report holds: values are deleted, derived, and compared."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from support.kernels import make_kernel

from rooflens.ingest.exports.read import read_export
from rooflens.ingest.reports.resolve import resolve
from rooflens.model.findings.launch import small_grid
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.thresholds import default_thresholds

pytestmark = pytest.mark.corpus

_GONE: dict[str, Callable[[str], bool]] = {
    "duration_ns": lambda name: name.startswith("gpu__time_duration"),
    "waves": lambda name: name.startswith("launch__waves"),
}
"""Counter -> the stored metrics that give it directly."""
_LEAST = 0.95


def launches(corpus: Path) -> list[dict[str, float]]:
    """Return all metrics of the launches that ncu printed as raw pages."""
    pages = sorted((corpus / "cli").glob("*.raw.base.csv.gz"))
    return [kernel.numbers for page in pages for kernel in read_export(gzip.decompress(page.read_bytes()))]


@pytest.mark.parametrize("counter", ["duration_ns", "waves"])
def test_what_is_deleted_comes_back(corpus: Path, counter: str) -> None:
    """Time from rates and clocks, waves from grid, SMs and the limits of a block: 95 % within half a per cent."""
    is_gone, compared, equal = _GONE[counter], 0, 0
    for numbers in launches(corpus):
        before = resolve(numbers).values.get(counter)
        rest = {name: value for name, value in numbers.items() if not is_gone(name)}
        if not before or len(rest) == len(numbers) or rest.get("launch__cluster_size", 0) > 1:
            continue
        after = resolve(rest).values.get(counter)
        compared += 1
        equal += after is not None and abs(after / before - 1) < 0.005 + (0.005 / before if counter == "waves" else 0)
    assert compared
    assert equal >= _LEAST * compared


def test_a_grid_below_the_sms_needs_neither_waves_nor_limits(corpus: Path) -> None:
    """Blocks and SMs are enough to say that SMs are idle."""
    found = []
    for numbers in launches(corpus):
        rest = {n: v for n, v in numbers.items() if not n.startswith(("launch__waves", "launch__occupancy_limit"))}
        counters = resolve(rest).values
        if counters.get("grid_size", 1e9) < counters.get("sm_count", 0):
            found.append(small_grid(Facts(make_kernel(counters), {}, {}, default_thresholds())) is not None)
    assert found
    assert all(found)
