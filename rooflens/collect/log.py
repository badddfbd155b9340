"""Follow the progress of a run: of any program by the clock, of ncu by its log, with kernels profiled and passes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.processes import ProcessCommand, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.processes import Finished

_PROFILED_LINE = re.compile(r'==PROF== Profiling "(?P<name>.*?)"(?: - (?P<index>\d+))?(?=:| \()')
_DONE = re.compile(r"100% - (?P<passes>\d+) pass(?:es)?\b")
"""Marks the end of a kernel. ncu also prints the passes of a kernel that failed, but then never 100 %."""

_REPLAYED = re.compile(r": Application replay pass (?P<number>\d+)\b")
"""In application replay each run of the program is one pass over all kernels; some versions of ncu print none."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    Attributes:
        doing: `running` the program un-profiled, `tracing` it, or `profiling` it.
        profiled_count: How many kernels ncu has finished, with all passes.
        kernel: Name of the current or last kernel, as abbreviated by ncu.
        passes: Passes of the last finished kernel.
        quiet_s: Seconds since a kernel was last finished, or since the start.
    """

    doing: str
    elapsed_s: float
    profiled_count: int = 0
    kernel: str | None = None
    passes: int | None = None
    quiet_s: float = 0.0


def run_to_end(
    argv: Sequence[str], timeout_s: float | None, on_progress: Callable[[Progress], None], doing: str
) -> tuple[Finished, str, str]:
    """Run a program with empty standard input; return its end, and its output on stdout and stderr.

    Raises:
        EnvironmentMissingError: The program cannot be started.
        StoppedError: Ctrl-C or a like signal.
    """

    def watch(elapsed_s: float) -> bool:
        on_progress(Progress(doing, elapsed_s))
        return True

    with TemporaryDirectory(prefix="rooflens-") as name:
        stdout, stderr = Path(name, "stdout"), Path(name, "stderr")
        finished = run(ProcessCommand(tuple(argv), stdout, stderr), timeout_s, watch)
        out, err = (file.read_text(encoding="utf-8", errors="replace") for file in (stdout, stderr))
    return finished, out, err


class LogFollower:
    """Read a growing log, each line once.

    In application replay each run of the program is a pass, and the run with the most kernels gives their number.

    Attributes:
        names: Names of the finished kernels, as abbreviated by ncu.
        in_kernel: Whether a kernel has begun and is not finished.
    """

    def __init__(self, log_file: Path) -> None:
        self._log_file = log_file
        self._offset = 0
        self._rest = ""
        self._changed_s = 0.0
        self.kernel: str | None = None
        self.passes: int | None = None
        self.profiled_count = 0
        self.names: set[str] = set()
        self.in_kernel = False
        self.max_passes = 0
        self._replayed: Counter[int] = Counter()

    def progress(self, elapsed_s: float) -> Progress:
        """Read new lines, and return ncu's progress."""
        before = self.profiled_count
        self._read_new_lines()
        if self.profiled_count != before:
            self._changed_s = elapsed_s
        return Progress(
            "profiling", elapsed_s, self.profiled_count, self.kernel, self.passes, elapsed_s - self._changed_s
        )

    def _read_new_lines(self) -> None:
        try:
            with self._log_file.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            return
        self._offset += len(new)
        *lines, self._rest = (self._rest + new.decode("utf-8", errors="replace")).split("\n")
        for line in lines:
            self._take_line(line)
        self._note_kernel(self._rest)

    def _take_line(self, line: str) -> None:
        self._note_kernel(line)
        replayed = _REPLAYED.search(line)
        done = _DONE.search(line)
        if replayed:
            self._replayed[int(replayed["number"])] += 1
            self.names.add(self.kernel or "")
            self.in_kernel = False
            self.passes = self.max_passes = len(self._replayed)
            self.profiled_count = max(self._replayed.values())
        elif done and self.kernel is not None:
            self.passes = int(done["passes"])
            self.max_passes = max(self.max_passes, self.passes)
            self.profiled_count += 1
            self.names.add(self.kernel)
            self.in_kernel = False

    def _note_kernel(self, line: str) -> None:
        started = _PROFILED_LINE.search(line)
        if started:
            self.kernel = started["name"]
            self.in_kernel = True
