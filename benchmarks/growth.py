"""Print what twice the input costs each reader, by counted steps, as Markdown for `docs/explanation/security.md`.

    python benchmarks/growth.py

Steps are instructions of Python's own machine, with those of SQLite; of machine code, those that its budget counts:
the same on any machine. What C does within one of them does not count, so seconds of processor time are measured, too.
`tests/test_growth.py` and `tests/model/inside/test_steps.py` hold what is printed here.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.model.inside.budget import StepBudget
from rooflens.model.inside.look import look_inside
from rooflens.report.document import Column, Table
from rooflens.report.writers.markdown import to_markdown

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.code_shapes import SHAPES, code_of
from support.growth import GROWING, growth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from support.growth import Growing

INSTRUCTIONS = 19_000
"""Nearly as many as a kernel may have."""


def main() -> int:
    """Measure and print both tables."""
    print(_table(("reader", "more", "of these", "steps", "twice as many add"), map(_of_reader, GROWING)))
    print(
        _table(("machine code", "instructions", "steps each", "twice as many take", "seconds"), map(_of_code, SHAPES))
    )
    return 0


def _of_reader(one: Growing) -> tuple[str, ...]:
    _, many, ratio = growth(one)
    return one.reader, one.what, f"{4 * one.least:,}", f"{many:,}", f"{ratio:.2f} times"


def _of_code(shape: str) -> tuple[str, ...]:
    half, whole = (code_of(shape, size) for size in (INSTRUCTIONS // 2, INSTRUCTIONS))
    few, many = StepBudget.of(len(half.instructions)), StepBudget.of(len(whole.instructions))
    look_inside(half, few)
    begun_s = time.process_time()
    look_inside(whole, many)
    seconds = time.process_time() - begun_s
    each = many.steps / len(whole.instructions)
    return shape, f"{len(whole.instructions):,}", f"{each:.1f}", f"{many.steps / few.steps:.2f} times", f"{seconds:.1f}"


def _table(headings: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    columns = [Column(heading, right=heading not in {"reader", "more", "machine code"}) for heading in headings]
    return to_markdown((Table(tuple(columns), tuple(rows)),))


if __name__ == "__main__":
    sys.exit(main())
