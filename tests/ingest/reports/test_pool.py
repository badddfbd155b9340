from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.loading.tasks import read_reports
from rooflens.ingest.reports.pool import Job, in_child, stamp_of
from rooflens.ingest.reports.report import Report
from rooflens.model.records import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.ingest.reports.report import ReadOptions


def _report(source: str) -> Report:
    return Report(Run(digest=source, source=source, file_bytes=0, kernel_count=0, synthetic=False), (), None)


def read_or_abort(path: Path, source: str, options: ReadOptions) -> Report:  # noqa: ARG001 - a reader's signature
    """Abort the process on every file called `abort`, as NVIDIA's reader does on damage."""
    if path.name == "abort":
        os.abort()
    return _report(source)


def read_or_refuse(path: Path, source: str, options: ReadOptions) -> Report:  # noqa: ARG001 - a reader's signature
    """Refuse every file called `bad`."""
    if path.name == "bad":
        raise InputError("damaged: on purpose", "none")
    return _report(source)


def read_with_a_bug(path: Path, source: str, options: ReadOptions) -> Report:  # noqa: ARG001 - a reader's signature
    """Fail as only a programming mistake does."""
    raise ZeroDivisionError(source)


def hang(path: Path, source: str, options: ReadOptions) -> Report:  # noqa: ARG001 - a reader's signature
    """Never return on files called `hang`."""
    if path.name == "hang":
        time.sleep(600)
    return _report(source)


def _run(names: list[str], read: Callable[..., Report], deadline_s: float = 60.0) -> dict[str, Report | InputError]:
    jobs = [Job(Path(name), f"{position}/{name}") for position, name in enumerate(names)]
    outcomes = read_reports(jobs, children=2, read=partial(in_child, read, deadline_s=deadline_s))
    return {outcome.job.source: outcome.result for outcome in outcomes}


def test_a_reader_that_aborts_costs_one_file() -> None:
    """Three aborts among twenty files give seventeen reports and three errors that name the signal."""
    names = [*["good"] * 6, "abort", "abort", *["good"] * 8, "abort", *["good"] * 3]
    results = _run(names, read_or_abort)
    failures = {source: result for source, result in results.items() if isinstance(result, InputError)}
    assert len(results) - len(failures) == 17
    assert sorted(failures) == ["16/abort", "6/abort", "7/abort"]
    assert all("SIGABRT" in str(error) for error in failures.values())


def test_a_refused_file_keeps_its_message_and_hint() -> None:
    """An input error crosses the process boundary whole, and its child goes on."""
    error = _run(["bad", "good"], read_or_refuse)["0/bad"]
    assert isinstance(error, InputError)
    assert (str(error), error.hint) == ("damaged: on purpose", "none")


def test_a_bug_costs_one_file_and_says_where_it_is() -> None:
    """An exception that damage cannot explain is one file's error, with its place and the wish to be reported."""
    error = _run(["file"], read_with_a_bug)["0/file"]
    assert isinstance(error, InputError)
    assert f"ZeroDivisionError at {Path(__file__).name}:" in str(error)
    assert "bug" in error.hint


def test_a_reader_that_hangs_is_ended() -> None:
    """A file over its time becomes an error that says how long it had, and the others are read."""
    results = _run(["good", "hang", "good"], hang, deadline_s=2.0)
    assert str(results["1/hang"]) == "NVIDIA's reader did not finish within 2 s"
    assert sum(isinstance(result, Report) for result in results.values()) == 2


def test_who_stops_early_waits_for_nobody() -> None:
    """Leaving the loop, as Ctrl-C does, ends the children that are still at work."""
    outcomes = read_reports(
        [Job(Path(name), name) for name in ("good", "hang")], children=2, read=partial(in_child, hang)
    )
    start_s = time.monotonic()
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]  # a generator
    assert time.monotonic() - start_s < 30


def replace_and_read(path: Path, source: str, options: ReadOptions) -> Report:  # noqa: ARG001 - a reader's signature
    """Read a file that `ncu -f -o` writes anew in the middle: as large as before, and under the same name."""
    if path.name == "renamed":
        path.with_name("new").write_bytes(path.read_bytes())
        path.with_name("new").replace(path)
    if path.name == "rewritten":
        path.write_bytes(b"B" * path.stat().st_size)
    if path.name == "torn":
        path.write_bytes(b"B")
        raise InputError("damaged: cut off", "none")
    return _report(source)


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    """Renamed over, written over or half written: what was read may be of two files, which is said and not guessed."""
    jobs = [Job(tmp_path / name, name) for name in ("renamed", "rewritten", "torn", "quiet")]
    for job in jobs:
        job.path.write_bytes(b"A" * 100)
    outcomes = read_reports(jobs, children=1, read=partial(in_child, replace_and_read))
    results = {outcome.job.source: outcome.result for outcome in outcomes}
    assert isinstance(results.pop("quiet"), Report)
    assert {str(error) for error in results.values()} == {"it changed while it was read"}


def test_a_file_just_written_is_told_by_its_bytes(tmp_path: Path) -> None:
    """A file system's clock is coarse, so that a fresh file is digested; one that is older is known by its times."""
    file = tmp_path / "a"
    file.write_bytes(b"A")
    fresh = stamp_of(file)
    file.write_bytes(b"B")
    assert fresh[-1] is not None
    assert stamp_of(file, like=fresh)[-1] != fresh[-1]
    os.utime(file, (0, 0))
    assert stamp_of(file)[-1] is None


def test_no_files_start_no_children() -> None:
    """Reading nothing yields nothing."""
    assert _run([], read_or_abort) == {}
