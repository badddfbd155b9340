"""Run compiled cases in turn: `python -m rooflens.workloads.in_turn --seconds S ROOFLENS_CASE=NAME PROGRAM ...`.

`ROOFLENS_CASE=WORKLOAD.CASE` begins each command, and its program marks its kernels with that name. Prints what the
programs print, and on stderr how long each took. Exits 0 if one of them succeeded: under a profiler the report of those
is good. Else the status of the first.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from rooflens.errors import RooflensError
from rooflens.processes import Captured, capture
from rooflens.workloads.commands import CASE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LONGEST_S = 30.0
"""A program that takes longer hangs: it is ended, so that it costs its case and not the report of the others."""
_MARK = f"{CASE_VARIABLE}="
_STOPPED = 130


class LastStart:
    """Says which of several programs in turn are still begun: those that end in time if they take as long as any yet.

    Without an earlier one to compare with, the first is always begun.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin the time now; None for no limit."""
        self._clock = clock
        self._end_s = None if seconds is None else clock() + seconds
        self._begun_s = 0.0
        self.longest_s = 0.0

    @property
    def refusal(self) -> str:
        """Return why no further case is started; empty if the next one is."""
        if self._end_s is None or not self.longest_s or self._clock() + self.longest_s <= self._end_s:
            return ""
        return f"left out: {max(0.0, self._end_s - self._clock()):.1f} s are left, and one took {self.longest_s:.1f} s"

    def begin(self) -> None:
        """Record that a case starts."""
        self._begun_s = self._clock()

    def end(self, *, by_itself: bool = True) -> float:
        """Note that it ended, and return how long it took in seconds; one that was ended says nothing of the next."""
        took_s = self._clock() - self._begun_s
        self.longest_s = max(self.longest_s, took_s if by_itself else 0.0)
        return took_s


def run_in_turn(
    commands: Sequence[tuple[str, Sequence[str]]],
    last_start: LastStart,
    run: Callable[[Sequence[str], float], Captured] = capture,
) -> int:
    """Run programs with the names of their cases, and return the exit status."""
    statuses = []
    for name, argv in commands:
        if refusal := last_start.refusal:
            sys.stderr.write(f"{name}: {refusal}\n")
            continue
        os.environ[CASE_VARIABLE] = name
        last_start.begin()
        try:
            done = run(argv, LONGEST_S)
        except RooflensError as error:
            done = Captured(error.exit_code, "", f"error: {error}\n")
        took_s = last_start.end(by_itself=done.status is not None)
        sys.stdout.write(done.stdout)
        sys.stdout.flush()  # a later one may cost the process
        ended = f"{name}: {took_s:.2f} s" if done.status is not None else f"{name}: ended after {took_s:.0f} s"
        sys.stderr.write(f"{done.stderr}{ended}{f', status {done.status}' if done.status else ''}\n")
        sys.stderr.flush()
        statuses.append(1 if done.status is None else done.status)
    return 0 if 0 in statuses else next(iter(statuses), 0)


def parse(arguments: Sequence[str]) -> tuple[float | None, list[tuple[str, list[str]]]]:
    """Read the command line: the time limit in seconds, and the commands with the names of their cases."""
    seconds: float | None = None
    commands: list[tuple[str, list[str]]] = []
    words = list(arguments)
    if words[:1] == ["--seconds"]:
        seconds, words = float(words[1]), words[2:]
    for word in words:
        if word.startswith(_MARK):
            commands.append((word.removeprefix(_MARK), []))
        else:
            commands[-1][1].append(word)
    return seconds, commands


def main() -> int:
    """Run the programs of the command line, and return the exit status."""
    seconds, commands = parse(sys.argv[1:])
    try:
        return run_in_turn(commands, LastStart(seconds))
    except KeyboardInterrupt:
        return _STOPPED


if __name__ == "__main__":
    sys.exit(main())
