"""The command `compare`: programs before and after a change, or in versions, and a gate for CI."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rooflens.addresses import shown
from rooflens.cli.console import check_output, deliver, say, show_bugs, show_failures, with_output
from rooflens.cli.loading import (
    GPU,
    KERNEL,
    NVTX,
    READER,
    Traces,
    load_analyzed,
    programs_of,
    refuse_with_traces,
    traces_of,
    with_wanted,
)
from rooflens.cli.settings import given_options, refuse_defaults
from rooflens.cli.usage import Command, completed_by_files, examples
from rooflens.errors import GateFailedError, InputError, UsageError
from rooflens.format import count
from rooflens.model.store import store_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.analyzing import Analyzed
    from rooflens.cli.wanted import Wanted
    from rooflens.model.compare.gate import Gate, Gated
    from rooflens.model.compare.ladder import Ladder
    from rooflens.model.compare.pairing import Unpaired
    from rooflens.model.program.comparison import ProgramComparison

FORMATS = ("table", "json", "md", "html")


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens compare before.ncu-rep after.ncu-rep",
        "rooflens compare before.ncu-rep after.ncu-rep -o compared.html",
        "rooflens compare before/ after/ --fail-on 5%",
        "rooflens compare before.json.gz after.json.gz",
    ),
)
@click.argument("places", nargs=-1, required=True, metavar="BASE [HEAD]...", shell_complete=completed_by_files)
@KERNEL
@NVTX
@click.option(
    "--timeline",
    "timelines",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="What a side's program does without ncu, as in `analyze`; give one for each side, in order.",
)
@with_output(FORMATS)
@click.option(
    "--fail-on",
    metavar="PER_CENT",
    help="Exit with code 5 if the GPU time of the kernels on both sides grew by more than this, beyond noise; by more "
    "than 10 % where a side has a single run (20 % below one wave).",
)
@click.option("--per-kernel", is_flag=True, help="With --fail-on: judge every kernel, not only the total.")
@click.option(
    "--floor",
    metavar="TIME",
    default="2us",
    show_default=True,
    help="With --fail-on: fail only if at least this much time is lost (2us, 500ns, 0).",
)
@click.option(
    "--threshold", metavar="PER_CENT", default="3%", show_default=True, help="Smaller changes count as no change."
)
@click.option("--anyway", is_flag=True, help="Compare even recordings that were not collected alike.")
@READER
@GPU
@with_wanted
def compare(
    *,
    places: tuple[str, ...],
    wanted: Wanted,
    timelines: tuple[Path, ...],
    style: str | None,
    output: Path | None,
    force: bool,
    fail_on: str | None,
    per_kernel: bool,
    floor: str,
    threshold: str,
    anyway: bool,
) -> None:
    """Show how each kernel changed between two or more recordings of a program.

    BASE and HEAD are each a report, a folder of reports, a store, or one report of a store
    (STORE/DIGEST). Several reports of one program on a side count as repeated recordings: they show the noise, without
    which nothing is called slower. Up to 50 sides make a ladder: what changed from each to the next, and the fastest.
    A single folder or store holds versions of programs, in the order of their numbers (v4_gemm, v5_gemm) or else of
    their recording. --fail-on judges the last side against BASE.

    Two timelines (traces of the PyTorch profiler, exports of nsys), or two folders of the ranks of a program, are
    compared by step: operators, idle time, communication and copies.
    """
    from rooflens.model.compare.gate import parse_per_cent
    from rooflens.model.compare.pairing import checked, reports_of
    from rooflens.report.program.comparison import looked_at as steps_looked_at
    from rooflens.report.words.change import looked_at
    from rooflens.writing.answers import of_comparison, of_program_comparison

    ctx = click.get_current_context()
    if fail_on is not None:
        refuse_defaults(ctx, "a gate")
    given = given_options(ctx)
    style = check_output(output, style, FORMATS, "compare.html", force=force)
    gate = _gate(fail_on, floor, per_kernel=per_kernel)
    smallest = parse_per_cent(threshold, "--threshold")
    # A sentence must not call "no change" what fails the gate.
    smallest = min(smallest, gate.fail_on) if gate else smallest
    if traces := _traces(places, wanted, timelines):
        labels = shown(places[0]), shown(places[1])
        compared = _compared_traces(traces, labels, wanted, smallest, anyway=anyway, is_drawn=output is not None)
        judged = compared.judged(gate) if gate else None
        deliver(of_program_comparison(compared, judged, given), style, output)
        if judged is not None:
            say(f"note: the gate looked at {steps_looked_at(compared, given)}")
            _tell(judged)
        return
    if timelines and (len(timelines) != len(places) or len(places) == 1):
        raise UsageError(
            f"--timeline is given {len(timelines)} times for {count(len(places), 'side')}",
            "give one for each of BASE and HEAD: `--timeline base.sqlite --timeline head.sqlite`",
        )
    found, unpaired = _paired(places, wanted, timelines, smallest)
    for one in unpaired:
        say(f"warning: {one.words}")
    ladders = checked(found, anyway=anyway, hint="--anyway compares them regardless")
    gated = gate.judge(ladders) if gate else None
    show_bugs(analysis for report in reports_of(ladders) for analysis in report.analyses)
    deliver(of_comparison(ladders, unpaired, gated, given), style, output)
    if gated is not None:
        say(f"note: the gate looked at {looked_at(ladders, given)}")
        _tell(gated)


def _gate(fail_on: str | None, floor: str, *, per_kernel: bool) -> Gate | None:
    """Make the gate of the options; None without --fail-on.

    Raises:
        UsageError: An option needs --fail-on, or cannot be read.
    """
    from rooflens.model.compare.gate import Gate, parse_floor, parse_per_cent

    floor_ns = parse_floor(floor)
    if fail_on is not None:
        return Gate(parse_per_cent(fail_on, "--fail-on"), per_kernel, floor_ns)
    is_floor_given = click.get_current_context().get_parameter_source("floor") is ParameterSource.COMMANDLINE
    for is_given, option in ((per_kernel, "--per-kernel"), (is_floor_given, f"--floor {floor}")):
        if is_given:
            raise UsageError(f"{option} needs --fail-on", f"for example `--fail-on 5% {option}`")
    return None


def _traces(places: Sequence[str], wanted: Wanted, timelines: Sequence[Path]) -> tuple[Traces, Traces] | None:
    """Return the timelines of both sides; None if the sides are reports.

    Raises:
        UsageError: Timelines are mixed with reports, or there are not two sides of them.
    """
    from msgspec.structs import replace

    sides = [traces_of(replace(wanted, paths=(place,))) for place in places]
    found = [one for one in sides if one is not None]
    if not found:
        return None
    refuse_with_traces(found[0], wanted, timeline=timelines)
    if len(found) < len(sides):
        trace, report = (
            found[0].jobs[0].source,
            next(place for place, one in zip(places, sides, strict=True) if not one),
        )
        raise UsageError(
            f"`{trace}` is a timeline, and `{shown(report)}` is none: both sides must be of one kind",
            "compare two timelines, or two reports; `--timeline` adds one to the report of each side",
        )
    if len(sides) != 2:
        raise UsageError(
            f"timelines are compared two at a time, not {len(sides)}", "`rooflens compare before.json after.json`"
        )
    return found[0], found[1]


def _compared_traces(
    traces: tuple[Traces, Traces],
    labels: tuple[str, str],
    wanted: Wanted,
    threshold: float,
    *,
    anyway: bool,
    is_drawn: bool,
) -> ProgramComparison:
    """Read the timelines of both sides and set them side by side."""
    from rooflens.model.program.comparison import compare_programs

    base, head = (programs_of(side, wanted, is_drawn=is_drawn) for side in traces)
    return compare_programs((base, head), labels, threshold, anyway=anyway, hint="--anyway compares them regardless")


def _paired(
    places: Sequence[str], wanted: Wanted, timelines: Sequence[Path], threshold: float
) -> tuple[list[Ladder], tuple[Unpaired, ...]]:
    """Load the sides and pair their programs.

    Raises:
        InputError: A side cannot be read completely, two sides have no program in common, or one place has no versions.
    """
    from rooflens.model.compare.versions import check_count, paired

    check_count(len(places))
    sides = [_side(place, wanted, timeline).reports for place, timeline in zip_longest(places, timelines)]
    return paired(sides, [shown(place) for place in places], threshold)


def _side(place: str, wanted: Wanted, timeline: Path | None = None) -> Analyzed:
    """Load one side: reports, a store, or one run of a store; it must be readable as a whole.

    Raises:
        InputError: A report of the side cannot be read, or the store has no such run.
    """
    from msgspec.structs import replace

    store, digits = store_at(place) or (None, "")
    paths = (place,) if store is None else ()
    found = load_analyzed(replace(wanted, paths=paths, store=store, digits=digits, timeline=timeline))
    show_failures(found)
    if found.failures:
        raise InputError(f"`{shown(place)}` cannot be read completely", "leave out the damaged reports")
    return found


def _tell(gated: Gated) -> None:
    """Print what the gate found; exit with 5 if it failed."""
    for line in gated.failures:
        say(f"gate failed: {line}")
    for line in gated.let_through:
        say(f"gate passed:  {line}")
    for line in (*gated.unjudged, *gated.left_out):
        say(f"note: {line}")
    if gated.failed:
        click.get_current_context().exit(GateFailedError.exit_code)
