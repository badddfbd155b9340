"""Run ncu, follow it, and explain its failures. The output name gets a complete report or none; a part has its own."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.errors import InputError, RooflensError
from rooflens.ingest.ncu.command import build_argv, profiles_one_of_each
from rooflens.ingest.ncu.failures import explain, too_slow
from rooflens.ingest.ncu.log import LogFollower
from rooflens.ingest.ncu.rest import Rest, keep_rest, keep_words, log_of
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX, is_packed, unpacked
from rooflens.processes import Command, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.ingest.ncu.command import Collection, Ncu
    from rooflens.ingest.ncu.log import Progress
    from rooflens.processes import Finished

_SUFFIXES = (PLAIN_SUFFIX, PACKED_SUFFIX)
_PARTIAL = ".partial"
_LEFT_AS = ("", "z", PLAIN_SUFFIX, PACKED_SUFFIX)
"""What ncu may append to the name it was given. From 2026.3 on it compresses its reports and says so in their names;
whether it changes the suffix or appends one is not yet seen on a GPU, so both are looked for."""

_WARNING = "==WARNING== "
_WRITTEN = "==PROF== Report:"


@dataclass(frozen=True, slots=True)
class Collected:
    """A report that was written.

    Attributes:
        report: The name asked for, with the suffix of what ncu wrote: plain or compressed.
        profiled_count: Kernels that ncu's log calls done, else results in the report; None where neither tells.
        max_passes: The most passes that a kernel took.
        capped: Whether ncu was stopped at the cap on launches, so that there may be more kernels than these.
        warnings: What ncu warned of.
    """

    report: Path
    profiled_count: int | None
    max_passes: int
    elapsed_s: float
    capped: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of ncu: the files of its log, stdout and stderr, and how it ended, None until it has."""

    command: tuple[str, ...]
    words: tuple[Path, Path, Path]
    follower: LogFollower
    finished: Finished | None = None

    @property
    def log(self) -> str:
        return _text(self.words[0])

    @property
    def streams(self) -> str:
        return "\n".join(_text(file) for file in self.words[1:])


def collect(
    ncu: Ncu,
    collection: Collection,
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Collected:
    """Run ncu. It writes the report under another name beside, renamed when ncu succeeded and the report is complete.

    Whether it is compressed is ncu's choice; its suffix tells, and no older report of the other kind stays. If anything
    fails, ncu's messages are kept as `NAME.ncu.log`, and what there is of a report as `NAME.ncu-rep.incomplete`:
    profiling it may have taken hours.

    Args:
        ncu: The ncu to run.
        collection: What to profile and how.
        timeout_s: Seconds after which ncu and the program are ended; None for no limit.
        on_progress: Called many times a second.

    Raises:
        EnvironmentMissingError: Something about this machine prevents profiling.
        InputError: ncu profiled nothing, failed, did not end in time or wrote a damaged report.
        UsageError: There is nothing to run, or no counters.
        StoppedError: Ctrl-C or a like signal.
    """
    partial = _partial(collection.output)
    with TemporaryDirectory(prefix="rooflens-") as name:
        words = Path(name, "ncu's log"), Path(name, "stdout"), Path(name, "stderr")
        started = _Run(build_argv(ncu, replace(collection, output=partial), words[0]), words, LogFollower(words[0]))
        try:
            done = _follow(started, ncu, collection, timeout_s, on_progress)
            return _accept(done, ncu, collection, _left_by_ncu(partial), timeout_s)
        except RooflensError as error:
            count = started.follower.profiled_count
            rest = Rest(started.command, words, count, _left_by_ncu(partial), collection.output)
            raise keep_rest(error, rest) from error
        finally:
            for suffix in _LEFT_AS:
                partial.with_name(f"{partial.name}{suffix}").unlink(missing_ok=True)


def _follow(
    started: _Run, ncu: Ncu, collection: Collection, timeout_s: float | None, on_progress: Callable[[Progress], None]
) -> _Run:
    limit = collection.max_launches if _may_be_capped(ncu, collection) else None

    def watch(elapsed_s: float) -> bool:
        on_progress(started.follower.progress(elapsed_s))
        return limit is None or started.follower.profiled_count < limit

    _, stdout, stderr = started.words
    finished = run(Command(started.command, stdout, stderr, collection.environment), timeout_s, watch)
    return replace(started, finished=finished)


def _accept(done: _Run, ncu: Ncu, collection: Collection, left: Path, timeout_s: float | None) -> Collected:
    """Give the report its name, or raise."""
    finished, follower = done.finished, done.follower
    assert finished is not None  # noqa: S101 - it has run
    capped = finished.status is None and not finished.timed_out and _may_be_capped(ncu, collection)
    if finished.timed_out:
        raise too_slow(timeout_s or 0.0, follower.kernel)
    good_end = (_WRITTEN in done.log) if capped or _was_killed(done, collection) else finished.status == 0
    if not good_end or not left.exists():
        raise explain(done.log, done.streams, finished.status)
    result_count = _result_count(left)
    plain, packed = both_names(collection.output)
    report, other = (packed, plain) if is_packed(left) else (plain, packed)
    left.replace(report)
    other.unlink(missing_ok=True)
    if collection.keep_log:
        keep_words(done.command, done.words, collection.output)
    else:
        log_of(collection.output).unlink(missing_ok=True)
    return Collected(
        report=report,
        profiled_count=follower.profiled_count or result_count,
        max_passes=follower.max_passes,
        elapsed_s=finished.wall_ns / 1e9,
        capped=capped,
        warnings=_warnings(done.log),
    )


def both_names(output: Path) -> tuple[Path, Path]:
    """Return the name of a report if ncu writes it plain, and if it compresses it."""
    plain, packed = (output.with_suffix(suffix) for suffix in _SUFFIXES)
    return plain, packed


def _partial(output: Path) -> Path:
    if output.suffix not in _SUFFIXES:
        raise InputError(f"`{output}` is not a name for a report", "end it in `.ncu-rep`")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write `{output}`: {error.strerror}", "give another place with -o") from error
    _sweep(output)
    return output.with_name(f".{output.stem}.{os.getpid()}{_PARTIAL}{output.suffix}")


def _sweep(output: Path) -> None:
    """Remove what an earlier collection left if it was killed and could not clean up."""
    for path in output.parent.glob(f".{escape(output.stem)}.*{_PARTIAL}{PLAIN_SUFFIX}*"):
        pid = path.name.rpartition(_PARTIAL)[0].rpartition(".")[2]
        if pid.isdecimal() and not _is_alive(int(pid)):
            path.unlink(missing_ok=True)


def _left_by_ncu(partial: Path) -> Path:
    """Return where ncu wrote its report; the name it was given if it wrote none."""
    places = [partial.with_name(f"{partial.name}{suffix}") for suffix in _LEFT_AS]
    return next((place for place in places if place.exists()), partial)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _may_be_capped(ncu: Ncu, collection: Collection) -> bool:
    """Return whether we stop ncu when it has profiled enough: it has no cap of its own on distinct launches.

    In application replay no kernel is complete before the last run of the program: stopping would lose all.
    """
    return profiles_one_of_each(ncu, collection) and collection.replay_mode == "kernel"


def _was_killed(done: _Run, collection: Collection) -> bool:
    """Return whether ncu killed the program as it was asked to, so that its status is that of a killed program."""
    return collection.kill and done.follower.profiled_count >= (collection.launch_count or collection.max_launches)


def _result_count(report: Path) -> int | None:
    """Count the results of a report; None where what reads reports is not installed, as on a bare GPU box.

    Raises:
        InputError: It is cut or damaged.
    """
    try:
        from rooflens.ingest.reports.container import inspect  # noqa: PLC0415 - needs protobuf, which a bare GPU box may lack

        with unpacked(report) as plain:  # a compressed one needs pyarrow too
            return inspect(plain).result_count
    except ImportError:
        return None
    except InputError as error:
        message = f"the report that ncu wrote cannot be read: {error}"
        raise InputError(message, "profile again; is the disk full?") from error


def _warnings(log: str) -> tuple[str, ...]:
    found = (line.removeprefix(_WARNING).strip() for line in log.splitlines() if line.startswith(_WARNING))
    return tuple(dict.fromkeys(found))
