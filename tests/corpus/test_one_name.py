"""One name, one quantity: JSON, CSV, frames and the store hold the same under each name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest

from rooflens.model.catalogue import KERNEL, kernel_quantities, quantities
from rooflens.model.counters.table import NAMES
from rooflens.model.records import Analysis
from rooflens.model.store.tables import kernel_table, verdict_table
from rooflens.report.data import to_csv

_ROUNDED = 1e-9
"""Parts of a sum are added in another order."""


def flat(analysis: Analysis) -> dict[str, Any]:
    """Return what JSON holds of a kernel, by flat names: quantities, and the numbers of levels and pipes."""
    named = {one.name: one.value(analysis) for one in quantities()}
    written = KERNEL.json(analysis)
    for group in ("levels", "pipes"):
        for item, numbers in written[group].items():
            named |= {f"{item}_{name}": value for name, value in numbers.items()}
    return named


def differ(one: Any, other: Any) -> bool:
    """Return whether two cells are not the same."""
    if isinstance(one, float | int) and isinstance(other, float | int) and not isinstance(one, bool):
        return one != pytest.approx(other, rel=_ROUNDED)
    one, other = (list(value) if isinstance(value, list | tuple) else value or None for value in (one, other))
    return bool((one or None) != (other or None))


def columns(analyses: list[Analysis]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the rows of each flat face, a row a kernel."""
    yield "kernels of the store", kernel_table([one.kernel for one in analyses]).to_pylist()
    yield "verdicts of the store", verdict_table(analyses).to_pylist()
    yield "frame", [{name: one.value(analysis) for name, one in _of_frames().items()} for analysis in analyses]


def _of_frames() -> dict[str, Any]:
    own = {one.name: one for one in quantities()}
    return {name: own[name] for name in kernel_quantities() if name in own}


_ELSEWHERE = frozenset({"name", "function", "grid", "block", "hotspots"})
"""Names of JSON whose cells the store splits or keeps in another table."""


def test_every_name_means_one_quantity(analyses: list[Analysis]) -> None:
    """Whatever face holds a name of JSON holds its value, for each kernel of the corpus."""
    timed = [one for one in analyses if not one.kernel.failed]
    wanted, wrong, names = [flat(one) for one in timed], set(), set()
    for face, rows in columns(timed):
        for values, row, analysis in zip(wanted, rows, timed, strict=True):
            for name in (values.keys() & row.keys()) - _ELSEWHERE:
                names.add(name)
                if differ(row[name], values[name]):
                    wrong.add(f"{face}, {name}: {row[name]} for {values[name]} in {analysis.kernel.source}")
    assert sorted(wrong)[:20] == []
    assert len(names) > 60


def test_csv_holds_the_numbers_of_json(analyses: list[Analysis]) -> None:
    """Each cell of CSV is the number that JSON has under the same flat name."""
    timed = [one for one in analyses if not one.kernel.failed]
    wrong = []
    for analysis, row in zip(timed, csv.DictReader(io.StringIO(to_csv(timed))), strict=True):
        for name, value in flat(analysis).items():
            is_number = isinstance(value, float | int) and not isinstance(value, bool)
            if name in row and is_number and differ(float(row[name] or "nan"), value):
                wrong.append((name, row[name], value))
    assert wrong == []


def test_no_stored_counter_has_the_name_of_a_judged_quantity(analyses: list[Analysis]) -> None:
    """A counter that is stored raw is not called as what the model makes of it."""
    wrong = set()
    for analysis in analyses:
        if analysis.kernel.failed:
            continue
        for name, value in flat(analysis).items():
            if name in NAMES and differ(analysis.kernel.counters.get(name), value):
                wrong.add((name, analysis.kernel.compute_capability))
    assert wrong == set()


def test_loops_count_flop_as_their_kernel_does(analyses: list[Analysis]) -> None:
    """The FLOPs of the outermost rows of a kernel add up to its own: integer operations are in neither."""
    wrong, held = [], 0
    for analysis in analyses:
        inside, total = analysis.kernel.inside, analysis.flop_total
        rows = [one for one in analysis.loops if one.loop.parent is None and one.flop is not None]
        if inside is None or not rows or total is None or analysis.flop_uncounted:
            continue
        held += 1
        if abs(sum(one.flop or 0.0 for one in rows) - total) > 1e-3 * max(total, 1.0):
            wrong.append((analysis.kernel.source, analysis.kernel.index, total, [one.flop for one in rows]))
    assert wrong == []
    assert held > 20
