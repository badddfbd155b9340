"""Two recordings of a program, before and after: what became of each kernel, and whether that is more than noise."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rooflens.addresses import shown
from rooflens.api.opening import open as open_reports
from rooflens.api.report import Report
from rooflens.errors import InputError
from rooflens.model.compare.compare import DEFAULT_THRESHOLD
from rooflens.model.compare.gate import DEFAULT_FLOOR_NS, Gate, parse_per_cent
from rooflens.model.compare.ladder import Ladder, Sides, set_sides
from rooflens.model.compare.pairing import compare_pairs, last_of_each, pair_sides
from rooflens.model.compare.sentences import total_sentence
from rooflens.model.compare.versions import check_count, pair_versions, path_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.compare.compare import Change
    from rooflens.model.compare.gate import Compared

Recorded: TypeAlias = "Report | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
"""One side: an opened `Report`, or the path of a report, a folder or a store, or several paths."""


class Comparison:
    """What became of each kernel from one recording of a program to another; `rooflens.compare` makes one.

    >>> import rooflens as rl
    >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
    >>> comparison = rl.compare(before, before)
    >>> comparison.factor
    1.0
    """

    def __init__(self, compared: Sequence[Compared], sides: Sides) -> None:
        self._compared = tuple(compared)
        self._sides = sides

    def __repr__(self) -> str:
        said = (f"{one.program}: {total_sentence(one.comparison)}" for one in self._compared)
        return f"<Comparison of {'; '.join(said)}>"

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every kernel of every program, the largest difference in GPU time first.

        Each has `name`, `how` it was matched, `base` and `head` (records as `Kernel.analysis`; None where it is new or
        gone), `timing` with `factor` and `change`, and `launches` of both sides.
        """
        found = [change for one in self._compared for change in one.comparison.changes]
        return tuple(sorted(found, key=lambda change: -abs(change.timing.lost_ns)))

    @property
    def factor(self) -> float | None:
        """GPU time before over GPU time after, all programs together: above 1 is faster; None where unknown.

        With more than two sides, the first over the last, for the programs that have both.
        """
        totals = [one.total for one in self._sides.ladders]
        before = [total.base.median_ns for total in totals]
        after = [total.head.median_ns for total in totals]
        if None in before or None in after:
            return None
        return sum(filter(None, before)) / sum(filter(None, after))

    @property
    def ladders(self) -> tuple[Ladder, ...]:
        """Each program over its sides, in order.

        A ladder has `rungs` with `label`, `time`, `analysis`, `to_first`, `to_previous`, what `changed`, and whether it
        `is_fastest`.

        >>> import rooflens as rl
        >>> first, *more = ["fixtures/published/GPU_workshop__MW_" + name for name in ("Baseline", "DivToMult")]
        >>> comparison = rl.compare(f"{first}.ncu-rep", f"{more[0]}.ncu-rep")
        >>> [rung.is_fastest for rung in comparison.ladders[0].rungs]
        [False, True]
        """
        return self._sides.ladders

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting the numbers: different clocks, single runs, programs on one side only."""
        told = [f"{one.program}: {warning}" for one in self._compared for warning in one.warnings]
        return (*told, *(one.words for one in self._sides.unpaired))

    def failed(
        self, limit: float | str, *, per_kernel: bool = False, floor_ns: float = DEFAULT_FLOOR_NS
    ) -> tuple[str, ...]:
        """Return a sentence for each thing that got slower by more than a limit, a floor and its noise.

        With a single recording on a side the noise is unknown: more than 10 % fails then, and less does not.

        Args:
            limit: What the GPU time may grow by: 0.05, or `"5%"`; twice that for grids below one wave.
            per_kernel: Judge each kernel too, not only the total of each program.
            floor_ns: GPU time in nanoseconds that must be lost as well.

        Raises:
            UsageError: The limit is a number of 1 or more, or not a percentage.

        >>> import rooflens as rl
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> rl.compare(before, before).failed(0.05)
        ()
        """
        return tuple(Gate(parse_per_cent(limit, "limit"), per_kernel, floor_ns).judge(last_of_each(self._compared)).failures)

    def to_dict(self) -> dict[str, Any]:
        """Return what `rooflens compare --format json` writes.

        >>> import rooflens as rl
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> rl.compare(before, before).to_dict()["programs"][0]["total"]["outcome"]
        'single'
        """
        from rooflens.writing.comparisons import render

        document: dict[str, Any] = json.loads(render(self._compared, "json", self._sides))
        return document

    def to_markdown(self) -> str:
        """Return it in Markdown, for a pull request.

        >>> import rooflens as rl
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> rl.compare(before, before).to_markdown().startswith("### ")
        True
        """
        from rooflens.writing.comparisons import render

        return render(self._compared, "md", self._sides)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write it to a file: `.html` is a page with the changes as arrows; `.md`, `.json` and `.xml` (JUnit) work too.

        Args:
            path: The file.
            force: Overwrite an existing file.

        Returns:
            The path.

        Raises:
            UsageError: The extension is another one, or the file exists.
            InputError: It cannot be written.

        >>> import rooflens as rl, tempfile
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rl.compare(before, before).save(f"{folder}/change.md").name
        'change.md'
        """
        from rooflens.files import write_whole
        from rooflens.writing.comparisons import render
        from rooflens.writing.outputs import check_named

        file = Path(path)
        style = check_named(file, ("html", "md", "json"), force=force)
        write_whole(file, render(self._compared, style, self._sides) + "\n", hint="give another place")
        return file

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def compare(*sides: Recorded, threshold: float | str = DEFAULT_THRESHOLD, anyway: bool = False) -> Comparison:
    """Compare recordings of a program, before and after, kernel by kernel; or up to fifty versions of it, in order.

    Several reports of one program on a side are repeated recordings. They give the noise, without which nothing is
    called faster or slower.

    Args:
        sides: Before, after, and further sides, each compared with the first and with the one before it: each is a
            `Report`, or the path of a report, a folder or a store, or several of these. One alone is a folder, a store
            or a `Report` of several versions of a program.
        threshold: Smaller changes count as none: 0.03, or `"3%"`.
        anyway: Compare even recordings that were not collected alike.

    Returns:
        Each kernel of each program the sides share, matched across them, with its times and what became of it.

    Raises:
        InputError: A side cannot be read completely, or the sides share no program or were not collected alike.
        UsageError: The threshold is a number of 1 or more, or not a percentage.

    >>> import rooflens as rl
    >>> report = "fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep"
    >>> [change.how for change in rl.compare(report, report).changes]
    ['same']
    """
    check_count(len(sides))
    smallest = parse_per_cent(threshold, "threshold")
    if len(sides) == 1:
        pairs, unpaired = pair_versions(_side(sides[0]).analyzed.reports, _labels(sides)[0])
    else:
        pairs, unpaired = pair_sides([_side(one).analyzed.reports for one in sides], _labels(sides))
    compared = compare_pairs(pairs, smallest, anyway=anyway, hint="anyway=True compares all the same")
    return Comparison(compared, Sides(tuple(set_sides(pairs, compared)), unpaired))


def _side(given: Recorded) -> Report:
    if isinstance(given, Report):
        report = given
    else:
        report = open_reports(given) if isinstance(given, (str, os.PathLike)) else open_reports(*given)
    if report.failures:
        source, error = report.failures[0]
        raise InputError(f"one side cannot be read completely: {source}: {error}", "leave out the damaged reports")
    return report


def _labels(given: Sequence[Recorded]) -> Sequence[str]:
    """Name the sides by their paths, those of several paths and opened ones by their place."""
    usual = ("base", "head") if len(given) == 2 else ("base", *(f"head {i}" for i in range(1, len(given))))
    named = [
        shown(os.fspath(one)) if isinstance(one, (str, os.PathLike)) else name
        for one, name in zip(given, usual, strict=True)
    ]
    return named if len(given) == 2 else path_labels(named)
