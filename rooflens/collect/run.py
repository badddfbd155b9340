"""Run ncu, follow it, and explain its failures. Only a complete report gets the output name; a part gets another."""

from __future__ import annotations

import os
import shlex
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.collect.command import build_argv
from rooflens.collect.log import LogFollower
from rooflens.collect.ranks import ONE_NCU
from rooflens.errors import EnvironmentMissingError, InputError, RooflensError, StoppedError
from rooflens.failures import explain, stuck, too_slow
from rooflens.files import give_back, make_folder, write_whole
from rooflens.ingest.reports.container import inspect, readable_part, result_count
from rooflens.ingest.reports.unpacking import (
    INCOMPLETE_SUFFIX,
    PACKED_SUFFIX,
    PLAIN_SUFFIX,
    is_packed,
    log_of,
    unpacked,
)
from rooflens.model.knowledge.roles import waits_for_ranks
from rooflens.processes import ProcessCommand, capture, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.collect.command import Collection, Ncu
    from rooflens.collect.log import Progress
    from rooflens.processes import Finished

_SUFFIXES = (PLAIN_SUFFIX, PACKED_SUFFIX)
_PARTIAL = ".partial"
_LEFT_AS = ("", "z", PLAIN_SUFFIX, PACKED_SUFFIX)
"""Suffixes that ncu may append to a given name. Since 2026.3 it compresses reports and shows that in the name. Whether
it changes the suffix or appends another has not been seen on a GPU, so both are looked for."""

WATCHDOG_SECONDS = 60.0
"""A kernel that waits for other ranks, and takes longer than this under ncu, waits forever."""

_WARNING = "==WARNING== "
_WRITTEN = "==PROF== Report:"

_RESET_SECONDS = 60.0
_LAST_WORDS_BYTES = 64 << 10
"""How much of the end of the program's output is kept; ncu's log is kept whole."""

_FULL_BYTES = 1 << 20
"""A disk with less space than the smallest report needs is full."""

_NO_EMPTY_BYTES = 64 << 10
"""A report without kernels is smaller: a header and the machine's description. A larger report may hold kernels."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A collected report.

    Attributes:
        report: The requested name, with the suffix of what ncu wrote: uncompressed or compressed.
        profiled_count: Kernels that ncu's log marks as done, else results in the report; None if both are unknown.
        max_passes: Most passes of any kernel.
        capped: Whether ncu was stopped at the limit on launches, so that the program may have more kernels.
        warnings: ncu's warnings.
        names: Names of the kernels that ncu's log marks as done, as abbreviated there.
    """

    report: Path
    profiled_count: int | None
    max_passes: int
    elapsed_s: float
    capped: bool
    warnings: tuple[str, ...]
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of ncu: its log, stdout and stderr as files, and the follower of the log."""

    command: tuple[str, ...]
    words: tuple[Path, Path, Path]
    follower: LogFollower

    @property
    def log(self) -> str:
        return _text_of_file(self.words[0])

    @property
    def streams(self) -> str:
        return "\n".join(_text_of_file(file) for file in self.words[1:])


def collect(
    ncu: Ncu,
    collection: Collection,
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Collected:
    """Run ncu. It writes to a temporary name beside the output, renamed once ncu succeeded and the report is complete.

    ncu decides whether the report is compressed; the suffix tells, and an older report of the other kind is removed. If
    anything fails, ncu's messages are kept as `NAME.ncu.log`, and any partial report as `NAME.ncu-rep.incomplete`:
    profiling it may have taken hours.

    Args:
        ncu: The ncu to run.
        collection: What to profile and how.
        timeout_s: Seconds after which ncu and the program are ended; None for no limit.
        on_progress: Called many times a second.

    Raises:
        EnvironmentMissingError: Something about this machine prevents profiling.
        InputError: ncu profiled nothing, failed, did not end in time or wrote a damaged report.
        UsageError: There is no program, or there are no counters.
        StoppedError: Ctrl-C or a like signal.
    """
    partial = _partial(collection.output)
    with TemporaryDirectory(prefix="rooflens-") as name:
        words = Path(name, "ncu's log"), Path(name, "stdout"), Path(name, "stderr")
        done = _Run(build_argv(ncu, replace(collection, output=partial), words[0]), words, LogFollower(words[0]))
        # ncu cannot limit distinct launches by itself. In application replay all kernels complete with the last run of
        # the program, so stopping earlier would lose everything.
        may_be_capped = collection.one_of_each and collection.replay_mode == "kernel"
        limit = collection.max_launches if may_be_capped else None
        in_step = any(option.startswith(ONE_NCU) for option in collection.options)

        def watch(elapsed_s: float) -> bool:
            progress = done.follower.progress(elapsed_s)
            on_progress(progress)
            inside = done.follower.in_kernel and waits_for_ranks(progress.kernel or "")
            if inside and not in_step and progress.quiet_s > WATCHDOG_SECONDS:
                raise stuck(progress.kernel or "", progress.quiet_s)
            return limit is None or done.follower.profiled_count < limit

        try:
            finished = run(ProcessCommand(done.command, *words[1:], collection.environment), timeout_s, watch)
            if finished.timed_out:
                raise too_slow(timeout_s or 0.0, done.follower.kernel)
            capped = may_be_capped and finished.status is None
            return _accept(done, finished, collection, _left_by_ncu(partial), capped=capped)
        except RooflensError as error:
            raise _keep_rest(error, done, _left_by_ncu(partial), collection.output) from error
        finally:
            for suffix in _LEFT_AS:
                partial.with_name(f"{partial.name}{suffix}").unlink(missing_ok=True)


def _accept(done: _Run, finished: Finished, collection: Collection, left: Path, *, capped: bool) -> Collected:
    """Give the report its name, or raise an error."""
    follower = done.follower
    # If ncu killed the program as requested, the status is that of a killed program.
    killed = collection.kill and follower.profiled_count >= (collection.launch_count or collection.max_launches)
    good_end = (_WRITTEN in done.log) if capped or killed else finished.status == 0
    if not good_end or not left.exists():
        error = explain(done.log, done.streams, finished.status, collection.kernel)
        if (finished.status or 0) < 0 and follower.profiled_count and not collection.one_of_each:
            skip = (collection.launch_skip or 0) + follower.profiled_count
            error.hint += f"; `--launch-skip {skip}` goes on after the last kernel that was profiled"
        raise error if error.is_certain else _full_disk(collection.output) or error
    try:
        result_count = _result_count(left)
    except InputError as error:
        raise _full_disk(collection.output) or error from error
    plain, packed = both_names(collection.output)
    report, other = (packed, plain) if is_packed(left) else (plain, packed)
    left.replace(report)
    give_back(report)
    other.unlink(missing_ok=True)
    if collection.keep_log:
        _keep_words(done, collection.output)
    else:
        log_of(collection.output).unlink(missing_ok=True)
    return Collected(
        report=report,
        profiled_count=follower.profiled_count or result_count,
        max_passes=follower.max_passes,
        elapsed_s=finished.wall_ns / 1e9,
        capped=capped,
        warnings=_warnings(done.log),
        names=frozenset(follower.names),
    )


def both_names(output: Path) -> tuple[Path, Path]:
    """Return a report's name if ncu writes it uncompressed, and if it compresses it."""
    plain, packed = (output.with_suffix(suffix) for suffix in _SUFFIXES)
    return plain, packed


def reset_clocks(ncu: Ncu) -> None:
    """Let ncu unlock the clocks that an earlier run left locked.

    Raises:
        EnvironmentMissingError: ncu may not unlock them.
    """
    done = capture((ncu.path, "--clock-control", "reset"), _RESET_SECONDS)
    if done.status != 0:
        said = " / ".join(line.removeprefix("==ERROR==").strip() for line in (done.stdout + done.stderr).splitlines())
        hint = "run it as root, or as root `nvidia-smi --reset-gpu-clocks`"
        raise EnvironmentMissingError(f"`ncu --clock-control reset` failed: {said or done.status}", hint)


def check_place(output: Path) -> None:
    """Check that a report can be written, without creating anything.

    Raises:
        InputError: Its folder, or the nearest existing folder above it, is not writable.
        EnvironmentMissingError: The disk is full.
    """
    folder = _nearest(output)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write `{output}`: no permission to write in `{folder}`", "give another place with -o")
    if full := _full_disk(output):
        raise full


def _nearest(output: Path) -> Path:
    return next(parent for parent in output.absolute().parents if parent.exists())


def _full_disk(output: Path) -> EnvironmentMissingError | None:
    """Make the error for a disk without room for a report; None if there is room."""
    left_bytes = shutil.disk_usage(_nearest(output)).free
    if left_bytes >= _FULL_BYTES:
        return None
    hint = "free some space, or write to another disk with -o"
    error = EnvironmentMissingError(f"the disk behind `{output}` is full: {left_bytes >> 10} KiB are free", hint)
    error.is_certain = True
    return error


def _partial(output: Path) -> Path:
    if output.suffix not in _SUFFIXES:
        raise InputError(f"`{output}` does not end in a report's suffix", "end it in `.ncu-rep`")
    try:
        make_folder(output.parent)
    except OSError as error:
        raise InputError(f"cannot write `{output}`: {error.strerror}", "give another place with -o") from error
    _sweep(output)
    return output.with_name(f".{output.stem}.{os.getpid()}{_PARTIAL}{output.suffix}")


def _sweep(output: Path) -> None:
    """Remove the leftovers of a killed collection."""
    for path in output.parent.glob(f".{escape(output.stem)}.*{_PARTIAL}{PLAIN_SUFFIX}*"):
        pid = path.name.rpartition(_PARTIAL)[0].rpartition(".")[2]
        if pid.isdecimal() and not _is_alive(int(pid)):
            path.unlink(missing_ok=True)


def _left_by_ncu(partial: Path) -> Path:
    """Return the file that ncu wrote, or the given name if it wrote none."""
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


def _text_of_file(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _result_count(report: Path) -> int | None:
    """Count the results of a report, and check each if protobuf is installed; None if it cannot be unpacked here.

    Raises:
        InputError: The report is cut or damaged.
    """
    try:
        with unpacked(report) as plain:
            return _checked_count(plain)
    except ImportError:  # Python before 3.14 without pyarrow, and a compressed report
        return None
    except InputError as error:
        message = f"the report that ncu wrote cannot be read: {error}"
        raise InputError(message, "profile again; is the disk full?") from error


def _checked_count(plain: Path) -> int:
    try:
        return inspect(plain).result_count
    except ImportError:  # a bare GPU box has no protobuf: the container is checked, but not each result
        return result_count(plain)


def _warnings(log: str) -> tuple[str, ...]:
    found = (line.removeprefix(_WARNING).strip() for line in log.splitlines() if line.startswith(_WARNING))
    return tuple(dict.fromkeys(found))


def _keep_rest(error: RooflensError, run: _Run, left: Path, output: Path) -> RooflensError:
    """Keep ncu's messages and the partial report of a failed run; return the error with a hint about both.

    If the user stopped the run before any kernel was finished, nothing is kept.
    """
    kept = None
    profiled_count, count = run.follower.profiled_count, _kernels_in(left)
    if left.exists() and (profiled_count or count or (count is None and left.stat().st_size > _NO_EMPTY_BYTES)):
        suffix = PACKED_SUFFIX if is_packed(left) else PLAIN_SUFFIX
        place = output.with_name(f"{output.with_suffix(suffix).name}{INCOMPLETE_SUFFIX}")
        with suppress(OSError):
            kept = left.replace(place)
            give_back(kept)
    stopped = isinstance(error, StoppedError)
    log = None if stopped and not kept else _keep_words(run, output)
    if count is not None:
        holds = f"{count} complete kernel{'' if count == 1 else 's'}"
    else:
        holds = f"{profiled_count} kernels by ncu's log" if profiled_count else "its kernels not counted"
    hints = [
        error.hint,
        f"ncu's messages are kept in `{log}`" if log else "",
        f"the report so far is kept, {holds}: `rooflens analyze {shlex.quote(str(kept))}`" if kept else "",
    ]
    told = type(error)("stopped before the end" if stopped and kept else str(error), "; ".join(filter(None, hints)))
    told.kept, told.is_certain = kept, error.is_certain
    return told


def _kernels_in(left: Path) -> int | None:
    """Count the readable kernels; None if the report is unreadable on this machine."""
    if not left.exists():
        return 0
    try:
        with readable_part(left) as part:
            return part.result_count
    except (ImportError, InputError):
        return None


def _keep_words(run: _Run, output: Path) -> Path | None:
    """Write the command and all output into a file; None if there was no output, or the file cannot be written."""
    said = [(file.name, _end(file, whole=index == 0)) for index, file in enumerate(run.words)]
    if not any(text for _, text in said):
        return None
    parts = [f"$ {shlex.join(run.command)}", *(f"--- {name}\n{text.rstrip()}" for name, text in said if text.strip())]
    place = log_of(output)
    try:
        write_whole(place, "\n".join(parts) + "\n")
    except (InputError, OSError):
        return None
    return place


def _end(file: Path, *, whole: bool) -> str:
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        if not whole:
            stream.seek(max(0, file.stat().st_size - _LAST_WORDS_BYTES))
        return stream.read().decode("utf-8", errors="replace")
