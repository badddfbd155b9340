"""Run a program without the profiler: does it work, how long does it take, and how much of that is gaps?

ncu runs kernels one at a time, so launch gaps cannot be seen in its reports: they take a run of their own. What it
shows is kept beside the report as `NAME.unprofiled.json`.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from rooflens.checking import parse_json
from rooflens.errors import EnvironmentMissingError, ProgramError
from rooflens.files import read_text, write_whole
from rooflens.ingest.ncu.log import Progress
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX
from rooflens.processes import Command, run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from rooflens.checking import Table

SUFFIX = ".unprofiled.json"
_SCHEMA_VERSION = 1
_MISSING_STATUS = 3
"""What a bundled workload returns where PyTorch or a GPU is missing."""

Source = Literal["workload", "nsys", "wall"]
SOURCES: tuple[Source, ...] = ("workload", "nsys", "wall")
Shape = tuple[int, int, int] | None
"""Grid or block of a launch; None where a report does not say."""


@dataclass(frozen=True, slots=True)
class LaunchCount:
    """How often one kernel was launched in one shape; its name is that of `Kernel.name`."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    count: int


@dataclass(frozen=True, slots=True)
class Unprofiled:
    """What a run without the profiler showed.

    Attributes:
        wall_ns: Time of the measured part: the iterations of a workload, from the first to the last kernel with nsys,
            the whole program otherwise.
        kernel_ns: Union of the intervals in which kernels or copies ran; None where nobody looked.
        launches: Kernels that were launched in the measured part.
        source: Who measured: the workload itself, nsys, or nobody but the clock on the wall.
        iterations: How often the workload did its work in `wall_ns`.
        launch_counts: Launches of each kernel and shape, where they are known.
    """

    wall_ns: int
    kernel_ns: int | None = None
    launches: int | None = None
    source: Source = "wall"
    iterations: int = 1
    launch_counts: tuple[LaunchCount, ...] = ()

    @property
    def gap_share(self) -> float | None:
        """Part of the time in which no kernel ran, 0 to 1; None where it is unknown."""
        if self.kernel_ns is None or self.wall_ns <= 0:
            return None
        return max(0.0, 1.0 - self.kernel_ns / self.wall_ns)

    def launches_of(self, name: str, grid: Shape, block: Shape, profiled: int) -> int:
        """Return how many launches of one iteration each of the `profiled` ones of a kernel and shape stands for.

        1 where the un-profiled run did not count launches.
        """
        found = sum(
            entry.count
            for entry in self.launch_counts
            if entry.name == name and (entry.grid, entry.block) == (grid, block)
        )
        return max(1, round(found / self.iterations / profiled))

    def names_without(self, profiled: Collection[tuple[str, Shape, Shape]]) -> tuple[str, ...]:
        """Name the kernels that ran and were not profiled in every shape, the one launched most often first.

        Args:
            profiled: Name, grid and block of each profile.
        """
        missing: Counter[str] = Counter()
        for entry in self.launch_counts:
            if (entry.name, entry.grid, entry.block) not in profiled:
                missing[entry.name] += entry.count
        return tuple(name for name, _ in missing.most_common())

    def slowdown(self, profiled_ns: float, profiled_count: int) -> float | None:
        """Divide the kernel time of a profile by that of this run, both of one iteration.

        None where this run did not time its kernels, or where the profile holds other launches than one iteration.
        """
        if not self.kernel_ns or not self.launches or profiled_count * self.iterations != self.launches:
            return None
        return profiled_ns * self.iterations / self.kernel_ns


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that ended well."""

    wall_ns: int
    stdout: str


def run_program(
    argv: Sequence[str],
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    doing: str = "running",
) -> Ran:
    """Run a program once to its end, with an empty standard input.

    Raises:
        EnvironmentMissingError: It cannot be started.
        ProgramError: It failed or did not end in time.
        StoppedError: Ctrl-C or a like signal.
    """

    def watch(elapsed_s: float) -> bool:
        on_progress(Progress(doing, elapsed_s))
        return True

    with TemporaryDirectory(prefix="rooflens-") as name:
        stdout, stderr = Path(name, "stdout"), Path(name, "stderr")
        finished = run(Command(tuple(argv), stdout, stderr), timeout_s, watch)
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in (stdout, stderr)]
    if finished.timed_out:
        raise ProgramError(
            f"the program did not end within {timeout_s:g} s, without the profiler",
            "give a longer --timeout, or a smaller problem",
        )
    if finished.status != 0:
        message = _failure(finished.status, *texts)
        raise ProgramError(message, "this is the program's own failure: ncu was not yet run", finished.status)
    return Ran(finished.wall_ns, texts[0])


def run_workload(
    argv: Sequence[str],
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Unprofiled:
    """Run a bundled workload, which says on its last line how long it took.

    Raises:
        EnvironmentMissingError: PyTorch or a GPU is missing.
        ProgramError: It failed.
        StoppedError: Ctrl-C or a like signal.
    """
    try:
        ran = run_program(argv, timeout_s, on_progress)
    except ProgramError as error:
        if error.status == _MISSING_STATUS:
            raise EnvironmentMissingError(str(error), "`rooflens doctor` says what is missing") from error
        raise
    return parse_workload(ran)


def parse_workload(ran: Ran) -> Unprofiled:
    """Read the JSON line of a bundled workload; without one only the wall time is known."""
    for line in reversed(ran.stdout.splitlines()):
        values = _object(line)
        if isinstance(values.get("wall_ns"), int):
            return Unprofiled(
                wall_ns=values["wall_ns"],
                kernel_ns=_count(values.get("kernel_ns")),
                launches=_count(values.get("launches")),
                source="workload",
                iterations=_count(values.get("iterations")) or 1,
            )
    return Unprofiled(ran.wall_ns)


def _object(line: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _count(value: object) -> int | None:
    return round(value) if isinstance(value, int | float) and value > 0 else None


def _failure(status: int | None, stdout: str, stderr: str) -> str:
    how = f"status {status}" if status is None or status >= 0 else signal.Signals(-status).name
    said = _last_words(stderr) or _last_words(stdout)
    return f"the program failed with {how}, without the profiler" + (f": {said}" if said else "")


def _last_words(text: str) -> str:
    """Return the line that says most: the last that calls itself an error, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith("error")]
    return (named or lines or [""])[-1].removeprefix("error: ")


def sidecar(report: Path) -> Path:
    """Return the place of a report's un-profiled run: the same for a plain and a compressed one."""
    return report.with_name(report.name.removesuffix(PACKED_SUFFIX).removesuffix(PLAIN_SUFFIX) + SUFFIX)


def write_unprofiled(report: Path, unprofiled: Unprofiled) -> Path:
    """Keep an un-profiled run beside its report."""
    path = sidecar(report)
    values = {"schema_version": _SCHEMA_VERSION, **asdict(unprofiled), "gap_share": unprofiled.gap_share}
    write_whole(path, json.dumps(values, indent=2) + "\n")
    return path


def read_unprofiled(report: Path) -> Unprofiled | None:
    """Return the un-profiled run kept beside a report; None where there is none.

    Raises:
        InputError: There is one, and it is no such file.
    """
    path = sidecar(report)
    if not path.exists():
        return None
    what, hint = f"`{path}` is no record of an un-profiled run", "delete it, or collect again"
    document = parse_json(read_text(path, hint), what, hint)
    document.check_keys(("schema_version", "gap_share", *(field.name for field in fields(Unprofiled))))
    kernel_ns, launches = (
        None if document.values[key] is None else document.count(key, zero=True) for key in ("kernel_ns", "launches")
    )
    return Unprofiled(
        wall_ns=document.count("wall_ns", zero=True),
        kernel_ns=kernel_ns,
        launches=launches,
        source=document.one_of("source", SOURCES),
        iterations=document.count("iterations"),
        launch_counts=tuple(_launch_count(table) for table in document.tables("launch_counts")),
    )


def _launch_count(table: Table) -> LaunchCount:
    table.check_keys(("name", "grid", "block", "count"))
    (gx, gy, gz), (bx, by, bz) = table.counts("grid", 3), table.counts("block", 3)
    return LaunchCount(table.text("name"), (gx, gy, gz), (bx, by, bz), table.count("count"))
