"""The options that name reports, and the only way from them to analyzed reports."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rooflens.cli.console import progress, say, show_failures
from rooflens.cli.usage import GPUS, completed_by_files
from rooflens.errors import InputError, NoMatchError, UsageError
from rooflens.files import path_text
from rooflens.format import count, some
from rooflens.ingest.reports.unpacking import is_incomplete

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.analyzing import Analyzed
    from rooflens.cli.wanted import Wanted
    from rooflens.ingest.load import Ingested
    from rooflens.ingest.reports.inputs import Inputs
    from rooflens.ingest.reports.jobs import Job, JobOutcome
    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.model.program.program import Program
    from rooflens.model.records import AnalyzedReport
    from rooflens.model.selecting import Chooser
    from rooflens.writing.answers import Answer, View

_MOST_REMARKS = 10
"""Most warnings, and most notes, to print; further ones are counted."""

PATHS = click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=completed_by_files)
STORE = click.option(
    "--store",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Store written by `ingest`: a folder or an address such as s3://bucket/store.",
)
THRESHOLDS = click.option(
    "--thresholds",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with a [thresholds] table that overrides the defaults.",
)
RAW_CELLS = click.option(
    "--csv-raw-cells",
    "raw_cells",
    is_flag=True,
    help="Leave CSV cells unchanged, even if a spreadsheet would run them as formulas.",
)
TIMELINE = click.option(
    "--timeline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What the program does without ncu: an SQLite export of nsys, its .nsys-rep, or a trace of the PyTorch "
    "profiler (.json, .json.gz). Kernels then count by their time there.",
)
SOURCE = click.option(
    "--source",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder with the kernels' source files, for reports that embed none: their lines are shown, and what a move "
    "makes of them. A file that was changed since is named.",
)
WITHOUT_NVIDIA = click.option(
    "--without-nvidia", is_flag=True, help="Ignore NVIDIA's own rules; the store then keeps no verdicts."
)
PREDICT = click.option(
    "--predict",
    metavar="TEXT|FILE",
    help="What the program should do: `gemm:m=4096,n=4096,k=4096,dtype=bf16`, or a TOML file by kernel name.",
)
READER = click.option(
    "--reader",
    type=click.Choice(["auto", "direct"]),
    hidden=True,  # for who doubts our reader: nobody else needs to choose
    help="Reader of reports: rooflens with instruction text from NVIDIA's module (auto), or without (direct).  "
    "[default: auto]",
)
GPU = click.option(
    "--gpu",
    metavar="NAME",
    shell_complete=GPUS,
    help="GPU of CSV exports and traces that do not name one: a name that `rooflens gpus` lists. With --store: only "
    "kernels on GPUs whose names contain this.",
)
KERNEL = click.option(
    "--kernel",
    multiple=True,
    metavar="PATTERN",
    help="Only the kernel with this name in tables, else kernels whose names contain it; or a glob (`flash*`), "
    "`re:` and a regular expression, or a key. Repeatable.",
)
NVTX = click.option(
    "--nvtx",
    multiple=True,
    metavar="PATTERN",
    help="Only kernels launched in an NVTX range of this name: a glob, or `re:` and a regular expression. Repeatable.",
)


def with_wanted(function: Callable[..., None]) -> Callable[..., None]:
    """Hand a command what it was asked as one record, `wanted`; the decorators above it are the options of this file.

    Options that are none of these, the command gets by their names.
    """

    @functools.wraps(function)
    def command(*arguments: Any, **given: Any) -> None:
        from rooflens.cli.wanted import Wanted
        from rooflens.ingest.reports.report import ReadOptions
        from rooflens.model.selecting import Selection

        wanted = Wanted(
            reading=ReadOptions(given.pop("reader", None) or "auto", gpu=given.pop("gpu", None)),
            selection=Selection(given.pop("kernel", ()), given.pop("nvtx", ())),
            **{name: given.pop(name) for name in Wanted.__struct_fields__ if name in given},
        )
        function(*arguments, wanted=wanted, **given)

    return command


def find_reports(paths: Sequence[str], reading: ReadOptions) -> Inputs:
    """Find the given reports; name the other files of their folders on stderr.

    The content of a pipe is kept in a temporary file until the command ends.

    Args:
        paths: Files, folders, `-` for stdin.
        reading: How to read the reports, and how much may come through a pipe.

    Raises:
        UsageError: No path or an empty path was given, or stdin is a keyboard.
        InputError: There is no report, a path cannot be opened, or a pipe gives too much.
    """
    from rooflens.ingest.reports.inputs import find_inputs, is_pipe

    if not paths:
        raise UsageError("no report given", "give a `.ncu-rep` file or a folder of them")
    for path in paths:
        path_text(path)
    pipes = {given: _received(given, reading) for given in dict.fromkeys(paths) if is_pipe(given)}
    inputs = find_inputs(paths, pipes)
    _name_ignored(inputs.ignored, "a report")
    if inputs.closed:
        named = some([f"{path} ({reason})" for path, reason in inputs.closed])
        say(f"warning: skipped {count(len(inputs.closed), 'place')}: {named}")
    return inputs


def _received(given: str, reading: ReadOptions) -> Job:
    """Keep the content of a pipe while the command runs, as it cannot be read again."""
    received: dict[str, Job] = click.get_current_context().meta.setdefault(f"{__name__}.received", {})
    if given not in received:
        received[given] = _receive(given, reading)
    return received[given]


def _receive(given: str, reading: ReadOptions) -> Job:
    from rooflens.ingest.reports.inputs import STDIN
    from rooflens.ingest.reports.jobs import Job
    from rooflens.ingest.reports.unpacking import spooled

    ctx, max_bytes = click.get_current_context(), reading.max_unpacked_bytes
    if given in {STDIN, "/dev/stdin"}:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError(f"`{given}` reads stdin, but nothing is piped into it", "`ncu ... | rooflens analyze -`")
        path = ctx.with_resource(spooled(sys.stdin.buffer, max_bytes))
        if not path.stat().st_size:
            raise InputError("stdin was empty", "the command before the pipe may have failed: see its messages")
        return Job(path, "<stdin>")
    stream = ctx.with_resource(Path(given).open("rb"))  # noqa: SIM115 - the context closes it
    return Job(ctx.with_resource(spooled(stream, max_bytes)), given)


def refuse_with_traces(traces: Traces, wanted: Wanted, **given: object) -> None:
    """Refuse a store, another timeline, and further options that do not work with timelines.

    Args:
        traces: The timelines.
        wanted: What the command was asked.
        given: Its own options that need a report, by name: whether each was given.

    Raises:
        UsageError: Such an option was given.
    """
    options = {"store": wanted.store, "timeline": wanted.timeline, **given, "predict": wanted.predict}
    if idle := [name for name, value in options.items() if value]:
        raise UsageError(
            f"--{idle[0]} is for reports, and `{traces.jobs[0].source}` is a timeline",
            "give reports and timelines one after the other, or the timeline with --timeline",
        )


class Traces(NamedTuple):
    """Timelines given as paths, and the reports given with them."""

    jobs: tuple[Job, ...]
    reports: tuple[str, ...]


def traces_of(wanted: Wanted) -> Traces | None:
    """Separate timelines from reports; None if there is no timeline. A folder without reports stands for its timelines.

    Raises:
        UsageError: An option needs a report, but none was given.
    """
    from rooflens.ingest.reports.inputs import is_pipe, is_timeline, timelines_in
    from rooflens.ingest.reports.jobs import Job

    jobs: list[Job] = []
    reports: list[str] = []
    for path in wanted.paths:
        job = _received(path, wanted.reading) if is_pipe(path) else Job(Path(path), path)
        inside = timelines_in(job.path) if os.path.isdir(job.path) else ()  # noqa: PTH112 - of a name too long for one, too
        if is_timeline(job.path):
            jobs.append(job)
        elif inside:
            jobs += [Job(one, str(one)) for one in inside]
        else:
            reports.append(path)
    if not jobs:
        return None
    given = {"--thresholds": wanted.thresholds, "--without-nvidia": wanted.without_nvidia}
    if not reports and (idle := [option for option, value in given.items() if value]):
        raise UsageError(
            f"{idle[0]} needs a report, and `{jobs[0].source}` is a timeline",
            f"leave it out, or give the report, too: `rooflens {jobs[0].source} report.ncu-rep`",
        )
    return Traces(tuple(jobs), tuple(reports))


def answer_of(traces: Traces, wanted: Wanted, view: View | None = None, *, is_drawn: bool = False) -> Answer:
    """Answer how long the kernels of timelines take and what can be won, with verdicts of reports given with them.

    Args:
        traces: The timelines.
        wanted: What the command was asked.
        view: How much to show.
        is_drawn: Draw when each stream ran what, where it is written as a page.
    """
    from msgspec.structs import replace

    from rooflens.model.selecting import Selection
    from rooflens.writing.answers import of_traces

    reports: tuple[AnalyzedReport, ...] = ()
    if traces.reports:
        found = load_analyzed(replace(wanted, paths=traces.reports, selection=Selection()))
        show_failures(found)
        reports = found.reports
    return of_traces(programs_of(traces, wanted, reports, is_drawn=is_drawn), view)


def programs_of(
    traces: Traces, wanted: Wanted, reports: Sequence[AnalyzedReport] = (), *, is_drawn: bool = False
) -> tuple[Program, ...]:
    """Read timelines, with what reports on their kernels have counted."""
    from rooflens.programs import read_programs

    with progress(len(traces.jobs), "timelines") as move:
        return read_programs(
            traces.jobs,
            wanted.reading.gpu,
            selection=wanted.selection,
            reports=reports,
            on_read=move,
            is_drawn=is_drawn,
        )


def place_of(wanted: Wanted) -> tuple[str, ...]:
    """Return the paths with which another command reads the same; empty after a pipe, which is empty now."""
    from rooflens.ingest.reports.inputs import is_pipe

    if wanted.store is not None:
        from rooflens.addresses import shown

        return ("--store", shown(wanted.store))
    return () if any(map(is_pipe, wanted.paths)) else wanted.paths


def load_analyzed(
    wanted: Wanted,
    *,
    keep: bool = False,
    may_sum: bool = False,
    on_outcome: Callable[[JobOutcome], None] = lambda _: None,
) -> Analyzed:
    """Analyze reports from paths or from a store, and print warnings.

    Args:
        wanted: What the command was asked.
        keep: Write the verdicts into the store.
        may_sum: A store that is too large to hold each kernel may come as sums, where all kernels are wanted.
        on_outcome: Called with the outcome of each report of the paths.

    Raises:
        UsageError: Neither or both were given, or a pattern cannot be parsed.
        InputError: There is nothing to read, nothing in it is wanted, or the timeline is of another program.
        EnvironmentMissingError: Only nsys can read the timeline, and it is not installed.
    """
    from rooflens.analyzing import Basis, read_thresholds, read_timeline

    limits = read_thresholds(wanted.thresholds)
    if bool(wanted.paths) == bool(wanted.store):
        command = context.info_name if (context := click.get_current_context(silent=True)) else "analyze"
        raise UsageError("give either reports or --store", f"`rooflens {command} report.ncu-rep`")
    from msgspec.structs import replace

    from rooflens.model.selecting import Chooser

    selection = wanted.selection
    if wanted.store is not None and wanted.reading.gpu is not None:
        selection = replace(selection, gpu=wanted.reading.gpu)
    chooser = Chooser(selection) if selection else None  # before reading anything: a pattern may be invalid
    timeline = None
    if wanted.timeline is not None:
        with progress(1, "timelines") as move:
            timeline = read_timeline(wanted.timeline, move)
    sources = None
    if wanted.source is not None:
        from rooflens.ingest.sources import SourceFolder

        sources = SourceFolder(wanted.source)
    basis = Basis(
        limits=limits,
        without_nvidia=wanted.without_nvidia,
        timeline=timeline,
        sources=sources,
    )
    if wanted.store is not None:
        from rooflens.analyzing import analyze_store

        may_sum = may_sum and chooser is None and timeline is None
        keep = keep and timeline is None
        found = analyze_store(wanted.store, basis, digits=wanted.digits, keep=keep, may_sum=may_sum)
        _name_ignored(found.ignored, "part of the store")
    else:
        from rooflens.analyzing import analyze_inputs
        from rooflens.ingest.load import processes_for

        inputs = find_reports(wanted.paths, wanted.reading)
        workers = processes_for(inputs.jobs)
        with progress(len(inputs.jobs)) as move:
            found = analyze_inputs(
                inputs, basis, reading=wanted.reading, executor=workers, on_read=move, on_outcome=on_outcome
            )
        _note_idle_gpu(found, wanted.reading)
    _print_warnings(found)
    return chosen(found, chooser) if chooser else found


def chosen(analyzed: Analyzed, chooser: Chooser) -> Analyzed:
    """Leave out unwanted launches, and reports without any other launch.

    Raises:
        NoMatchError: No launch matches.
    """
    left = analyzed.only(chooser.chosen(analyzed.reports))
    if not analyzed.reports and analyzed.failures:
        return left
    try:
        chooser.check()
    except NoMatchError:
        show_failures(analyzed)
        raise
    for pattern in chooser.idle:
        say(f"warning: nothing matches `{pattern}`")
    return left


def print_remarks(read: Analyzed | Ingested) -> None:
    """Print which files could not be used, and how reports were read if that matters."""
    left_out = [(source, f"left out: {error}; {error.hint}") for source, error in read.warnings]
    incomplete = [(source, note) for source, note in read.notes if is_incomplete(Path(source))]
    notes = [(source, note) for source, note in read.notes if not is_incomplete(Path(source))]
    for what, remarks in (("warning", left_out + incomplete), ("note", notes)):
        lines = by_folder(remarks)
        for line in lines[:_MOST_REMARKS]:
            say(f"{what}: {line}")
        if len(lines) > _MOST_REMARKS:
            say(f"{what}: {count(len(lines) - _MOST_REMARKS, 'other report')} had the same or a similar one")


def by_folder(remarks: Sequence[tuple[str, str]]) -> list[str]:
    """Say a remark once for all files of a folder that share it.

    Args:
        remarks: Path of a file, and the remark about it.
    """
    files: dict[tuple[str, str], list[str]] = {}
    for source, note in remarks:
        files.setdefault((str(Path(source).parent), note), []).append(source)
    return [
        f"{own[0]}: {note}" if len(own) == 1 else f"{folder}: {count(len(own), 'file')}: {note}"
        for (folder, note), own in files.items()
    ]


def _name_ignored(files: Sequence[Path], what: str) -> None:
    if files:
        kind = what if len(files) == 1 else what.replace("a report", "reports")
        say(f"skipped {count(len(files), 'file')}: not {kind}: {some([file.name for file in files])}")


def _note_idle_gpu(analyzed: Analyzed, reading: ReadOptions) -> None:
    """Say that --gpu has no effect because a report names its own GPU."""
    if reading.gpu is None:
        return
    from rooflens.ingest.exports.read import displayed

    own = {one.kernel.gpu for one in analyzed.analyses if one.kernel.gpu is not None} - {displayed(reading.gpu)}
    if own:
        say(
            f"note: {reading.gpu_option} {reading.gpu} is for exports that name no GPU, and changes nothing here: "
            f"recorded on {some(sorted(own))}; `rooflens predict --from REPORT --gpu {reading.gpu}` predicts others"
        )


def _print_warnings(analyzed: Analyzed) -> None:
    for missing in analyzed.missing:
        say(f"warning: {missing.words}; `{missing.option}` profiles them")
    print_remarks(analyzed)
    if analyzed.skipped_count:
        say(f"note: {count(analyzed.skipped_count, 'report')} given twice but counted once: a copy is not a second run")
    if analyzed.not_kept is not None:
        say(f"warning: {analyzed.not_kept}; verdicts are not kept")
