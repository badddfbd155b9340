"""Take a profile: run ncu, follow it, explain its failures, and leave either a whole report or none."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.ncu.command import build_argv, profiles_one_of_each
from rooflens.ingest.ncu.failures import explain, too_slow
from rooflens.ingest.ncu.log import LogFollower
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX, is_packed, unpacked
from rooflens.processes import Command, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.ingest.ncu.command import Collection, Ncu
    from rooflens.ingest.ncu.log import Progress
    from rooflens.processes import Finished

REFUSED = ".refused"
"""What is put behind the name of a report that ncu finished and that cannot be read: profiling it may have taken hours,
and if it is our reading that is wrong, it shows why."""

_SUFFIXES = (PLAIN_SUFFIX, PACKED_SUFFIX)
_PARTIAL = ".partial"
_LEFT_AS = ("", "z", PLAIN_SUFFIX, PACKED_SUFFIX)
"""What may stand behind the name that ncu was given. From 2026.3 on it compresses its reports and says so in their
names; whether it turns a suffix into another or puts one behind is not yet seen on a GPU, so both are looked for."""

_WARNING = "==WARNING== "
_WRITTEN = "==PROF== Report:"


@dataclass(frozen=True, slots=True)
class Collected:
    """A report that was written.

    Attributes:
        report: The name asked for, or with the suffix of the other kind: plain or compressed, as ncu left it.
        profiled_count: Kernels in ncu's log with all their passes.
        max_passes: Most passes that a kernel took.
        capped: ncu was stopped at the cap on launches, so there may be more kernels than these.
        warnings: What ncu warned of.
    """

    report: Path
    profiled_count: int
    max_passes: int
    elapsed_s: float
    capped: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """How ncu ended and what it said."""

    finished: Finished
    follower: LogFollower
    log: str
    streams: str


def collect(
    ncu: Ncu,
    collection: Collection,
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Collected:
    """Run ncu; the report is written beside under another name, and renamed when it is whole, or put aside if not.

    Whether it is compressed is ncu's choice; its suffix says what it is, and no older report of the other kind stays.

    Args:
        ncu: The ncu to run.
        collection: What to profile and how.
        timeout_s: Seconds after which ncu and the program are ended; None for no limit.
        on_progress: Called many times a second.

    Raises:
        EnvironmentMissingError: Something about this machine is in the way.
        InputError: ncu profiled nothing, failed, did not end in time or wrote a damaged report.
        UsageError: There is nothing to run, or no counters.
        StoppedError: Ctrl-C or a like signal.
    """
    partial = _partial(collection.output)
    try:
        done = _run(ncu, replace(collection, output=partial), timeout_s, on_progress)
        capped = _is_capped(done, ncu, collection)
        left = _left_by_ncu(partial)
        _check(done, left, timeout_s, capped=capped)
        plain, packed = both_names(collection.output)
        report, other = (packed, plain) if is_packed(left) else (plain, packed)
        _check_container(left, report)
        left.replace(report)
        other.unlink(missing_ok=True)
    finally:
        for suffix in _LEFT_AS:
            partial.with_name(f"{partial.name}{suffix}").unlink(missing_ok=True)
    return Collected(
        report=report,
        profiled_count=done.follower.profiled_count,
        max_passes=done.follower.max_passes,
        elapsed_s=done.finished.wall_ns / 1e9,
        capped=capped,
        warnings=_warnings(done.log),
    )


def both_names(output: Path) -> tuple[Path, Path]:
    """Return what a report is called when ncu writes it plain, and when it compresses it."""
    plain, packed = (output.with_suffix(suffix) for suffix in _SUFFIXES)
    return plain, packed


def _partial(output: Path) -> Path:
    if output.suffix not in _SUFFIXES:
        raise InputError(f"`{output}` is no name for a report", "its name ends in `.ncu-rep`")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write `{output}`: {error.strerror}", "give another place with -o") from error
    _sweep(output)
    return output.with_name(f".{output.stem}.{os.getpid()}{_PARTIAL}{output.suffix}")


def _sweep(output: Path) -> None:
    """Remove what a collection left that was killed outright, and so could not clean up."""
    for path in output.parent.glob(f".{escape(output.stem)}.*{_PARTIAL}{PLAIN_SUFFIX}*"):
        pid = path.name.rpartition(_PARTIAL)[0].rpartition(".")[2]
        if pid.isdecimal() and not _is_alive(int(pid)):
            path.unlink(missing_ok=True)


def _left_by_ncu(partial: Path) -> Path:
    """Return where ncu wrote its report; the name it was given where it wrote none."""
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


def _run(ncu: Ncu, collection: Collection, timeout_s: float | None, on_progress: Callable[[Progress], None]) -> _Run:
    limit = collection.max_launches if profiles_one_of_each(ncu, collection) else None
    with TemporaryDirectory(prefix="rooflens-") as name:
        log_file, stdout, stderr = (Path(name, part) for part in ("ncu.log", "stdout", "stderr"))
        follower = LogFollower(log_file)

        def watch(elapsed_s: float) -> bool:
            on_progress(follower.progress(elapsed_s))
            return limit is None or follower.profiled_count < limit

        command = Command(build_argv(ncu, collection, log_file), stdout, stderr, collection.environment)
        finished = run(command, timeout_s, watch)
        return _Run(finished, follower, _text(log_file), f"{_text(stdout)}\n{_text(stderr)}")


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _is_capped(done: _Run, ncu: Ncu, collection: Collection) -> bool:
    """Return whether we stopped ncu because it had profiled enough distinct launches."""
    stopped = done.finished.status is None and not done.finished.timed_out
    return stopped and profiles_one_of_each(ncu, collection)


def _check(done: _Run, report: Path, timeout_s: float | None, *, capped: bool) -> None:
    """Raise unless ncu ended well and left a report."""
    if done.finished.timed_out:
        raise too_slow(timeout_s or 0.0, done.follower.kernel)
    good_end = (_WRITTEN in done.log) if capped else done.finished.status == 0
    if not good_end or not report.exists():
        raise explain(done.log, done.streams, done.finished.status)


def _check_container(report: Path, output: Path) -> None:
    """Raise unless the report is whole; one that is not is put aside."""
    try:
        from rooflens.ingest.reports.container import inspect  # noqa: PLC0415 - needs protobuf, which a bare GPU box may lack

        with unpacked(report) as plain:  # a compressed one needs pyarrow too
            inspect(plain)
    except ImportError:
        return
    except InputError as error:
        aside = output.with_name(f"{output.name}{REFUSED}")
        report.replace(aside)
        hint = f"profile again; is the disk full? What ncu left is kept as `{aside}`"
        raise InputError(f"ncu left a report that is not whole: {error}", hint) from error


def _warnings(log: str) -> tuple[str, ...]:
    found = (line.removeprefix(_WARNING).strip() for line in log.splitlines() if line.startswith(_WARNING))
    return tuple(dict.fromkeys(found))
