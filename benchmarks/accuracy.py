"""Print how far rooflens' numbers are from independent ones in published reports, as Markdown.

`python benchmarks/accuracy.py [FOLDER]` reads FOLDER, else `ROOFLENS_CORPUS`, else `../shared/corpus` beside the
checkout. NVIDIA's command-line exports are in its subfolder `cli`. `oracles.py` defines the comparisons.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from oracle_rows import read_folder
from oracle_tensors import WARPGROUP, WARPGROUP_SOURCE
from oracles import compare

from rooflens.errors import InputError, RooflensError
from rooflens.report.document import Column, Table
from rooflens.report.writers.markdown import to_markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oracle_rows import Pair, Row

REPOSITORY = Path(__file__).resolve().parent.parent
HINT = "give a folder of `.ncu-rep` files, or name it in ROOFLENS_CORPUS"
NAME_CHARACTERS = 90
NOTHING = 1e-9
"""Deviations below this are the rounding of floating-point numbers: printed as 0."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the reports, compare, and print; return 0, or 1 if no report can be read."""
    default = Path(os.environ.get("ROOFLENS_CORPUS") or REPOSITORY.parent / "shared" / "corpus")
    parser = argparse.ArgumentParser(description="Print how far the numbers are from independent ones in reports.")
    words = "folder of reports; by default ROOFLENS_CORPUS, else ../shared/corpus beside the checkout"
    parser.add_argument("folder", nargs="?", type=Path, default=default, help=words)
    folder = parser.parse_args(arguments).folder
    try:
        results, failures = read_folder(folder)
        if not results:
            raise InputError(f"no report in `{folder}` can be read: {failures[0]}")
    except RooflensError as error:
        print(f"error: {error}\n\nhint: {HINT}", file=sys.stderr)
        return error.exit_code
    reports = len({result.report for result in results})
    print(f"Reports: {reports}; kernels: {len(results)}.")
    print("".join(f"Not read: {failure}.\n" for failure in failures))
    print("\n".join(markdown(compare(results, folder))))
    return 0


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Write the table, the outliers, the sources of the tolerances, and the warpgroup counts."""
    yield _table(rows)
    yield "\nOutside the tolerance:\n"
    yield from [line for row in rows for line in _outside(row)] or ["- nothing"]
    yield "\nTolerances:\n"
    yield from _tolerances(rows)
    yield f"\nWarpgroup instructions, from [a published profile]({WARPGROUP_SOURCE}):\n"
    yield _warpgroup()


def _table(rows: Iterable[Row]) -> str:
    numbers = ("kernels (reports)", "median", "largest", "tolerance", "outside")
    return _markdown(("compared", "oracle", *numbers), map(_cells, rows), numbers)


def _cells(row: Row) -> tuple[str, ...]:
    deviations = (_amount(row.median, row.unit), _amount(row.largest, row.unit))
    return row.what, row.oracle, _count(row), *deviations, _tolerance(row), _left_out(row)


def _count(row: Row) -> str:
    if not row.pairs:
        return "n = 0"
    count = f"{row.kernel_count} ({row.report_count})"
    return count if len(row.pairs) == row.kernel_count else f"{count}: {len(row.pairs):,} values"


def _tolerance(row: Row) -> str:
    return "rounding" if row.unit == "relative" and row.tolerance <= NOTHING else _amount(row.tolerance, row.unit)


def _left_out(row: Row) -> str:
    return f"{len(row.outside)} of {len(row.pairs):,}" if row.pairs else "-"


def _amount(value: float | None, unit: str) -> str:
    if value is None or unit == "class":
        return "-"
    if not math.isfinite(value):
        return "no number"
    if unit == "relative":
        return "0" if value < NOTHING else f"{value * 100:.2f} %"
    return f"{value:.2f} {'points' if unit == 'points' else 'digits'}"


def _outside(row: Row) -> Iterator[str]:
    """List the outliers by report and reason, one line each."""
    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in row.outside:
        groups[pair.report, pair.reason].append(pair)
    for (report, reason), pairs in groups.items():
        labels = ", ".join(f"`{label[:NAME_CHARACTERS]}`" for label in dict.fromkeys(pair.label for pair in pairs))
        kernels = ", ".join(str(index) for index in dict.fromkeys(pair.index for pair in pairs))
        furthest = max(pairs, key=lambda pair: abs(pair.deviation)).deviation
        by = f", {furthest:+.1%}" if row.unit == "relative" else ""
        yield f"- {row.what}: `{report}`, {labels} (result {kernels}){by}: {reason or 'reason not known'}"


def _tolerances(rows: Iterable[Row]) -> Iterator[str]:
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        if row.unit != "class":
            reasons[_tolerance(row), row.why].append(row.what)
    for (amount, why), names in reasons.items():
        yield f"- {amount} ({'; '.join(names)}): {why}"


def _warpgroup() -> str:
    numbers = ("instructions executed", "NVIDIA's operations", "counts per warpgroup instruction")
    rows = (
        (
            f"`{one.kernel}`",
            f"`{one.opcode}`",
            f"{one.executed:,}",
            f"{one.operations:,}",
            f"{one.counts_per_instruction:.4f}",
        )
        for one in WARPGROUP
    )
    return _markdown(("kernel", "opcode", *numbers), rows, numbers)


def _markdown(headings: Sequence[str], rows: Iterable[tuple[str, ...]], right: Sequence[str]) -> str:
    columns = tuple(Column(heading, right=heading in right) for heading in headings)
    return to_markdown((Table(columns, tuple(rows)),)).replace("&gt;", ">").replace("&lt;", "<")


if __name__ == "__main__":
    sys.exit(main())
