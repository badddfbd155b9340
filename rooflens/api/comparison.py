"""Two recordings of a program, before and after: how each kernel changed, and whether the change exceeds the noise."""

from __future__ import annotations

import json
import os
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rooflens.addresses import shown
from rooflens.api import notebook
from rooflens.api.opening import open as open_reports
from rooflens.api.report import Report
from rooflens.api.suggestions import meant_by, public
from rooflens.errors import InputError
from rooflens.format import cut_name, harmless, plain_name
from rooflens.ingest.reports.inputs import is_timeline, timelines_in
from rooflens.model.compare.compare import DEFAULT_THRESHOLD
from rooflens.model.compare.gate import DEFAULT_FLOOR_NS, Gate, parse_per_cent
from rooflens.model.compare.pairing import Unpaired, checked
from rooflens.model.compare.versions import check_count, paired
from rooflens.report.words.change import change_words, total_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from rooflens.api.kernel import Kernel
    from rooflens.api.program import Program
    from rooflens.model.compare.compare import Change, Timing
    from rooflens.model.compare.ladder import Ladder
    from rooflens.model.compare.matching import How
    from rooflens.writing.answers import Answer

NAME_WIDTH = 60
"""Characters of a kernel's name in its `repr`."""

Recorded: TypeAlias = "Report | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
"""A side: an opened `Report`, the path of a report, a folder or a store, or several paths."""


class KernelChange:
    """How one kernel changed between two recordings: an item of `Comparison.changes`.

    >>> import rooflens as rl
    >>> before, after = ("fixtures/published/GPU_workshop__MW_" + name for name in ("Baseline", "DivToMult"))
    >>> change = rl.compare(f"{before}.ncu-rep", f"{after}.ncu-rep").changes[0]
    >>> change
    <KernelChange of 'compute_tendencies_x_279_gpu': 1.78x faster (1 run each)>
    >>> change.base.verdict.bound, change.head.verdict.bound
    ('compute', 'memory')
    """

    __slots__ = ("_base", "_change", "_head", "_of")

    def __init__(self, of: Ladder, change: Change, kernels: Mapping[int, Kernel]) -> None:
        """Take a change of a program, and the opened kernels by the identity of their records."""
        self._of = of
        self._change = change
        self._base = kernels[id(change.base)] if change.base else None
        self._head = kernels[id(change.head)] if change.head else None

    def __repr__(self) -> str:
        alone = "new" if self.base is None else "gone" if self.head is None else ""
        name = cut_name(plain_name(self.name), NAME_WIDTH)
        return f"<KernelChange of {name!r}: {alone or change_words(self._change, self._of.threshold)}>"

    @property
    def program(self) -> str:
        """Its program, named as in the comparison."""
        return self._of.program

    @property
    def base(self) -> Kernel | None:
        """The kernel before (the median of its launches); None if it is new."""
        return self._base

    @property
    def head(self) -> Kernel | None:
        """The kernel after; None if it is gone."""
        return self._head

    @property
    def name(self) -> str:
        """Its name after the change, or before if it is gone."""
        return self._change.name

    @property
    def how(self) -> How:
        """How it was matched: `same`, `re-tiled`, `renamed`, `gone` or `new`."""
        return self._change.how

    @property
    def launches(self) -> tuple[int, int]:
        """Number of launches in a recording, before and after."""
        return self._change.launches

    @property
    def timing(self) -> Timing:
        """GPU time of all launches: `base` and `head`, each with `times_ns` and `median_ns`; `factor` and `change`."""
        return self._change.timing

    @property
    def factor(self) -> float | None:
        """Time before over time after (of the mean launch if launch counts differ); None if unknown."""
        return self._change.speed.factor


_CHANGE_COLUMNS: Mapping[str, Callable[[KernelChange], Any]] = {
    "program": attrgetter("program"),
    "name": attrgetter("name"),
    "how": attrgetter("how"),
    "launches_before": lambda change: change.launches[0],
    "launches_after": lambda change: change.launches[1],
    "gpu_time_before_ns": attrgetter("timing.base.median_ns"),
    "gpu_time_after_ns": attrgetter("timing.head.median_ns"),
    "factor": attrgetter("factor"),
    "bound_before": lambda change: change.base and change.base.verdict.bound,
    "bound_after": lambda change: change.head and change.head.verdict.bound,
}
"""Columns of `Comparison.to_pandas`: what takes each value from a change."""


class Comparison:
    """How each kernel changed between recordings of a program; `rooflens.compare` makes it.

    >>> import rooflens as rl
    >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
    >>> comparison = rl.compare(before, before)
    >>> comparison.factor
    1.0
    """

    def __init__(self, ladders: Sequence[Ladder], unpaired: Sequence[Unpaired], opened: Iterable[Report]) -> None:
        """Take what was compared, and each side as it was opened."""
        self._ladders = tuple(ladders)
        self._unpaired = tuple(unpaired)
        self._opened = tuple(opened)

    if not TYPE_CHECKING:  # type checkers must see no other attributes

        def __getattr__(self, name: str) -> Any:
            """Return what a name that a comparison lacks means, by `rooflens.meant`."""
            return meant_by(self, name, public(Comparison))

    @property
    def _pairs(self) -> list[Ladder]:
        return [pair for one in self._ladders for pair in one.each]

    @property
    def _answer(self) -> Answer:
        from rooflens.writing.answers import of_comparison

        return of_comparison(self._ladders, self._unpaired)

    def __repr__(self) -> str:
        said = (f"{one.program}: {total_sentence(one)}" for one in self._pairs)
        return f"<Comparison of {'; '.join(said)}>"

    def __str__(self) -> str:
        """Return the table that `rooflens compare` prints."""
        from rooflens.report.writers.terminal import to_terminal

        return harmless(to_terminal(self._answer.shown()).rstrip("\n"))

    @cached_property
    def changes(self) -> tuple[KernelChange, ...]:
        """Every kernel of every program, the largest difference in GPU time first."""
        kernels = {id(kernel.analysis): kernel for report in self._opened for kernel in report}
        found = [KernelChange(one, change, kernels) for one in self._pairs for change in one.changes]
        return tuple(sorted(found, key=lambda change: -abs(change.timing.lost_ns)))

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[KernelChange]:
        return iter(self.changes)

    def __bool__(self) -> bool:
        return True

    @property
    def factor(self) -> float | None:
        """GPU time before over GPU time after, all programs together: above 1 is faster; None if unknown.

        Kernels that only one side has are left out, unless the new ones do the work of those that are gone.
        With more than two sides it compares the first and the last, for the programs that both have.
        """
        totals = [one.each[-1].shared for one in self._ladders]
        before = [total.base.median_ns for total in totals]
        after = [total.head.median_ns for total in totals]
        if None in before or None in after or any(total.apart for total in totals):
            return None
        return sum(filter(None, before)) / sum(filter(None, after))

    @property
    def ladders(self) -> tuple[Ladder, ...]:
        """Each program across its sides, in order.

        A ladder has `rungs` with `label`, `time`, `analysis`, `to_first`, `to_previous`, what `changed`, and whether
        the rung `is_fastest`.

        >>> import rooflens as rl
        >>> first, *more = ["fixtures/published/GPU_workshop__MW_" + name for name in ("Baseline", "DivToMult")]
        >>> comparison = rl.compare(f"{first}.ncu-rep", f"{more[0]}.ncu-rep")
        >>> [rung.is_fastest for rung in comparison.ladders[0].rungs]
        [False, True]
        """
        return self._ladders

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats about the numbers: different clocks, single runs, programs on one side only."""
        told = [f"{one.program}: {warning}" for one in self._pairs for warning in one.warnings]
        return (*told, *(one.words for one in self._unpaired))

    def failed(
        self, limit: float | str, *, per_kernel: bool = False, floor_ns: float = DEFAULT_FLOOR_NS
    ) -> tuple[str, ...]:
        """Return a sentence for everything that got slower by more than the limit, the floor and its noise.

        With a single recording on a side the noise is unknown: then only a growth above 10 % fails (20 % for grids
        below one wave).

        Args:
            limit: Allowed growth of the GPU time: 0.05, or `"5%"`; twice as much for grids below one wave.
            per_kernel: Also judge each kernel, not only the total of each program.
            floor_ns: A loss of GPU time below this, in nanoseconds, passes.

        Raises:
            UsageError: The limit is 1 or more, or not a percentage.

        >>> import rooflens as rl
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> rl.compare(before, before).failed(0.05)
        ()
        """
        gate = Gate(parse_per_cent(limit, "limit"), per_kernel, floor_ns)
        return tuple(gate.judge(self._ladders).failures)

    def to_pandas(self) -> pd.DataFrame:
        """Return the changes as a pandas data frame, with a row per kernel of each program, in the order of `changes`.

        >>> import rooflens as rl
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> rl.compare(before, before).to_pandas()["factor"].tolist()
        [1.0]
        """
        import pandas as pd

        rows = [[take(change) for take in _CHANGE_COLUMNS.values()] for change in self.changes]
        return pd.DataFrame(rows, columns=[*_CHANGE_COLUMNS])

    def to_dict(self) -> dict[str, Any]:
        """Return what `rooflens compare --format json` writes.

        >>> import rooflens as rl
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> rl.compare(before, before).to_dict()["programs"][0]["total"]["outcome"]
        'single'
        """
        document: dict[str, Any] = json.loads(self._answer.text("json"))
        return document

    def to_markdown(self) -> str:
        """Return the comparison as Markdown, for a pull request.

        >>> import rooflens as rl
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> rl.compare(before, before).to_markdown().startswith("### ")
        True
        """
        return harmless(self._answer.text("md").removesuffix("\n"))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the comparison to a file: a page with changes as arrows (`.html`), Markdown (`.md`) or data (`.json`).

        Args:
            path: The file.
            force: Overwrite an existing file.

        Returns:
            The path.

        Raises:
            UsageError: The extension is unknown, or the file exists.
            InputError: The file cannot be written.

        >>> import rooflens as rl, tempfile
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rl.compare(before, before).save(f"{folder}/change.md").name
        'change.md'
        """
        from rooflens.writing.outputs import check_named, write_output

        file = Path(path)
        style = check_named(file, ("html", "md", "json"), force=force)
        write_output(file, self._answer.text(style), hint="give another place")
        return file

    def show(self, height: int = 800) -> None:
        """Show the page, with the changes as arrows, in a frame below the notebook's cell.

        Args:
            height: Height of the frame in pixels.

        Raises:
            UsageError: Not called in a notebook.

        >>> import rooflens as rl
        >>> before = rl.open("fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep")
        >>> rl.compare(before, before).show(height=600)
        """
        notebook.show_page(lambda: self._answer.text("html"), height, "comparison")

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def compare(
    *sides: Recorded | Program, threshold: float | str = DEFAULT_THRESHOLD, anyway: bool = False
) -> Comparison | Any:
    """Compare recordings of a program, before and after, kernel by kernel; or up to fifty versions of it in order.

    Several reports of a program on one side count as repeated recordings. They show the noise; without it nothing is
    called faster or slower.

    Args:
        sides: Before, after, and further sides; each is compared with the first and the previous side. A side is a
            `Report`, the path of a report, a folder or a store, or several of these. A single side is a folder, a store
            or a `Report` of several versions of a program. Or both sides are traces, or folders of those of all ranks.
        threshold: Smaller changes count as no change: 0.03, or `"3%"`.
        anyway: Also compare recordings that were not collected in the same way.

    Returns:
        Each kernel of each program that the sides share, matched across them, with its times and how it changed. Of
        traces a comparison with `changes` by operator, `factor`, `outcome` and `kernels`.

    Raises:
        InputError: A side cannot be read completely, or the sides share no program or were collected differently.
        UsageError: The threshold is 1 or more, or not a percentage.

    >>> import rooflens as rl
    >>> report = "fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep"
    >>> [change.how for change in rl.compare(report, report).changes]
    ['same']
    """
    check_count(len(sides))
    smallest = parse_per_cent(threshold, "threshold")
    if any(map(_is_trace, sides)):
        from rooflens.api.program import compare_programs

        return compare_programs(sides, smallest, anyway=anyway)
    opened = [_side(one) for one in sides]
    found, unpaired = paired([one.analyzed.reports for one in opened], _names(sides), smallest)
    ladders = checked(found, anyway=anyway, hint="anyway=True compares all the same")
    return Comparison(ladders, unpaired, opened)


def _is_trace(given: object) -> bool:
    """Return whether a side is a trace, opened or as a path, or a folder of traces."""
    if isinstance(given, (str, os.PathLike)):
        return is_timeline(given) or (os.path.isdir(given) and bool(timelines_in(Path(given))))  # noqa: PTH112 - names may be too long for a path
    return any(map(_is_trace, given)) if isinstance(given, (list, tuple)) else not isinstance(given, Report)


def _side(given: Any) -> Report:
    if isinstance(given, Report):
        report = given
    else:
        report = open_reports(given) if isinstance(given, (str, os.PathLike)) else open_reports(*given)
    if report.failures:
        source, error = report.failures[0]
        raise InputError(f"one side cannot be read completely: {source}: {error}", "leave out the damaged reports")
    return report


def _names(given: Sequence[Recorded]) -> Sequence[str]:
    """Name the sides by their paths; opened reports and lists of paths are named by position."""
    usual = ("base", "head") if len(given) == 2 else ("base", *(f"head {i}" for i in range(1, len(given))))
    return [
        shown(os.fspath(one)) if isinstance(one, (str, os.PathLike)) else name
        for one, name in zip(given, usual, strict=True)
    ]
