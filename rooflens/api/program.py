"""A program as its trace shows it, and its rows as tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rooflens.errors import InputError, UsageError
from rooflens.format import count
from rooflens.ingest.reports.inputs import is_timeline, timelines_in
from rooflens.model import catalogue
from rooflens.model.program.ranks import joined
from rooflens.programs import read_programs
from rooflens.report.program.parts import headline_of

if TYPE_CHECKING:
    import pandas as pd

    from rooflens.model.catalogue import Shape
    from rooflens.model.program.communication import CollectiveLaunches
    from rooflens.model.program.comparison import ProgramComparison
    from rooflens.model.program.copies import Copies
    from rooflens.model.program.fusion import Fusion
    from rooflens.model.program.grouping import GroupedBy, RowGroup
    from rooflens.model.program.idle import Idle
    from rooflens.model.program.kernels import ProgramKernel
    from rooflens.model.program.parts import Parts
    from rooflens.model.program.program import Program as Record
    from rooflens.model.program.steps import Step
    from rooflens.model.records import AnalyzedReport
    from rooflens.model.selecting import Selection

_RowT = TypeVar("_RowT")


class Rows(Sequence[_RowT]):
    """Rows of a program, in their order.

    >>> import rooflens as rl
    >>> rl.open("examples/step.synthetic.json").operators[0].name
    'aten::_scaled_dot_product_flash_attention'
    """

    def __init__(self, rows: Sequence[_RowT], shape: Shape, what: str) -> None:
        self._rows, self._shape, self._what = tuple(rows), shape, what

    @overload
    def __getitem__(self, place: int) -> _RowT: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[_RowT, ...]: ...

    def __getitem__(self, place: int | slice) -> _RowT | tuple[_RowT, ...]:
        """Return a row, or several."""
        return self._rows[place]

    def __len__(self) -> int:
        """Count them."""
        return len(self._rows)

    def __repr__(self) -> str:
        """Count them."""
        return f"<{count(len(self), self._what)}>"

    def to_pandas(self) -> pd.DataFrame:
        """Make a pandas table with the keys of `analyze TRACE --format json` as columns."""
        import pandas as pd

        columns = {key.name: [key.shape.json(key.take(one)) for one in self._rows] for key in self._shape.keys}
        return pd.DataFrame(columns)


class Program:
    """A program as its trace shows it: where its time goes, and what can be won.

    Each attribute of the record behind it (`rl.open(TRACE).record`) is one of this, too: `launches`, `unprofiled`,
    `stretches`, `unknown`, `next`, `notes`.

    >>> import rooflens as rl
    >>> program = rl.open("examples/step.synthetic.json")
    >>> program.headline
    'GPU idle 40 % of 7.13 ms: the host launched late.'
    >>> program.parts.wall_ns == program.parts.kernels_ns + program.parts.idle_ns
    True
    """

    def __init__(self, record: Record) -> None:
        self.record = record

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the record."""
        if name.startswith("_") or name == "record":
            raise AttributeError(name)
        return getattr(self.record, name)

    def __repr__(self) -> str:
        """Name the trace, and say what takes most of its time."""
        name = self.record.source.replace("\\", "/").rpartition("/")[2]
        said = f"; {self.headline}" if self.headline else ""
        rows = count(len(self.kernels), "kernel")
        return f"<Program of {name}: {rows}, {count(self.record.launches, 'launch')}{said}>"

    @property
    def headline(self) -> str:
        """What takes most of the time, and why; empty where no times were recorded."""
        return headline_of(joined([self.record]))

    @property
    def parts(self) -> Parts:
        """Where the time goes: its fields add up to `wall_ns`."""
        return self.record.parts

    @property
    def gain_ns(self) -> float | None:
        """What can be won in kernels of which that is known, at most; None if it is known of none."""
        return self.record.gain_ns

    @property
    def kernels(self) -> Rows[ProgramKernel]:
        """Kernels by operator and sizes: most to win first, then those of which that is not known, by time."""
        return Rows(self.record.kernels, catalogue.PROGRAM_KERNEL, "kernel")

    @property
    def operators(self) -> Rows[RowGroup]:
        """Kernels by operator, most time first."""
        return self.by("operator")

    @property
    def modules(self) -> Rows[RowGroup]:
        """Kernels by module, most time first."""
        return self.by("module")

    def by(self, what: GroupedBy) -> Rows[RowGroup]:
        """Sum kernels up, most time first.

        Args:
            what: `operator`, `module`, `kernel` (its name) or `shape` (operator and sizes).

        >>> import rooflens as rl
        >>> [one.name for one in rl.open("examples/step.synthetic.json").by("module")][:2]
        ['Attention_0', 'Attention_1']
        """
        return Rows(self.record.grouped(what), catalogue.GROUP, what)

    @property
    def steps(self) -> Rows[Step]:
        """Its steps, in order; empty if none were found."""
        return Rows(self.record.steps, catalogue.STEP, "step")

    @property
    def idle(self) -> Rows[Idle]:
        """Causes of idle time, most time first."""
        return Rows(self.record.idle, catalogue.IDLE, "cause")

    @property
    def communication(self) -> Rows[CollectiveLaunches]:
        """Collectives by group and size, most exposed time first."""
        found = self.record.communication
        return Rows(found.collectives if found else (), catalogue.COLLECTIVE, "collective")

    @property
    def copies(self) -> Rows[Copies]:
        """Copies by direction and kind of memory, most time first."""
        return Rows(self.record.copies, catalogue.COPIES, "kind of copy")

    @property
    def fusions(self) -> Rows[Fusion]:
        """Operators that could be one kernel, most to save first."""
        return Rows(self.record.fusions, catalogue.FUSION, "pair")


def open_program(
    path: str | os.PathLike[str],
    selection: Selection,
    gpu: str | None = None,
    reports: Sequence[AnalyzedReport] = (),
) -> Program:
    """Read a trace.

    Args:
        path: The trace.
        selection: Which kernels are wanted.
        gpu: The GPU of a trace that names none with known peaks.
        reports: Reports on its kernels.

    Raises:
        RooflensError: As `read_programs`.
    """
    return Program(read_programs([path], gpu, selection=selection, reports=reports)[0])


def compare_programs(sides: Sequence[object], threshold: float, *, anyway: bool) -> ProgramComparison:
    """Compare two programs by their traces, one of which at least is one.

    Args:
        sides: Each a `Program`, a trace, a folder of the traces of its ranks, or a list of them.
        threshold: Smaller changes count as none.
        anyway: Also compare programs that have little in common.

    Raises:
        UsageError: There are not two sides.
        InputError: Only one side is a trace, or the sides have little in common.
    """
    from rooflens.model.program import comparison

    found = [_programs_of(side) for side in sides]
    if len(found) != 2:
        raise UsageError(f"{len(found)} sides, and traces are compared by twos", "`rl.compare(BEFORE, AFTER)`")
    if not all(found):
        raise InputError("one side is a trace, and the other none", "give two traces, or two reports")
    labels = [_side_label(side, usual) for side, usual in zip(sides, ("base", "head"), strict=True)]
    hint = "anyway=True compares them regardless"
    return comparison.compare_programs(
        (found[0], found[1]), (labels[0], labels[1]), threshold, anyway=anyway, hint=hint
    )


def _programs_of(side: object) -> tuple[Record, ...]:
    if isinstance(side, Program):
        return (side.record,)
    given = [side] if isinstance(side, (str, os.PathLike)) else list(side) if isinstance(side, (list, tuple)) else []
    paths = [Path(one) for one in given if isinstance(one, (str, os.PathLike))]
    traces = [
        trace
        for path in paths
        for trace in (timelines_in(path) if path.is_dir() else (path,) if is_timeline(path) else ())
    ]
    return read_programs(traces) if traces else ()


def _side_label(side: object, usual: str) -> str:
    if isinstance(side, Program):
        return side.record.source
    return os.fspath(side) if isinstance(side, (str, os.PathLike)) else usual


def the_only(paths: Sequence[str]) -> str:
    """Return the only path.

    Raises:
        UsageError: There are several.
    """
    if len(paths) > 1:
        raise UsageError(f"{len(paths)} traces, and one is opened at a time", "`rl.compare(BEFORE, AFTER)` takes two")
    return paths[0]
