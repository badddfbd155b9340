"""Record one side of a comparison again, as its reports say it was recorded: chance does not fail a gate twice.

No shell is involved: ncu runs the recorded program with its recorded arguments, in the working directory.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from rooflens import collecting
from rooflens.analyzing import analyze_paths
from rooflens.collecting import Plan, Request, Target
from rooflens.errors import InputError
from rooflens.ingest.ncu.command import Collection, find_ncu
from rooflens.model.compare.compare import Side
from rooflens.model.verdict.collecting import has_value, split_command
from rooflens.workloads.recognize import recognize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rooflens.ingest.ncu.command import Ncu
    from rooflens.ingest.ncu.log import Progress
    from rooflens.model.records import AnalyzedReport, Run

_BY_HAND = "record the head again yourself, then compare again"
_REPLACED = frozenset({"-o", "--export", "--log-file", "-f", "--force-overwrite", "--open-in-ui"})
"""Options of ncu about where its report goes."""


def reruns(side: Side, folder: Path, ncu_path: str | None = None) -> tuple[Plan, ...]:
    """Plan to record each report of a side again, into a folder; the program does not run yet.

    Raises:
        InputError: A report does not say how it was recorded, or its program is not here.
        EnvironmentMissingError: There is no ncu here, or what a bundled workload needs.
    """
    ncu = find_ncu(ncu_path)
    return tuple(_rerun(run, folder / f"again_{i}.ncu-rep", ncu) for i, run in enumerate(side.runs))


def record_again(side: Side, planned: Sequence[Plan], on_progress: Callable[[Progress], None] = lambda _: None) -> Side:
    """Make the planned recordings, and read them as the same side.

    Raises:
        RooflensError: As `rooflens.collecting.profile` raises it, or a new report cannot be read.
    """
    reports: list[AnalyzedReport] = []
    for one in planned:
        recording = collecting.profile(one, on_progress, run_first=False)
        found = analyze_paths([recording.collected.report])
        for source, error in found.failures:
            raise InputError(f"{source}: {error}", error.hint)
        reports += found.reports
    return Side(side.label, tuple(reports))


def _rerun(run: Run, output: Path, ncu: Ncu) -> Plan:
    parts = split_command(run.command_line)
    if parts is None:
        raise InputError(f"`{run.source}` does not say how it was recorded", _BY_HAND)
    options, program = parts
    collection = Collection(
        program=_program(run, program, output),
        output=output,
        # ncu without a filter profiles all launches of the program: these are as many as there were.
        max_launches=max(run.kernel_count, 1),
        recorded=tuple(_kept(options)) or ("--set", "default"),
    )
    request = Request(Target(run.source, command=program), collection, "quick")
    return Plan(request, ncu, None, "", program, collection)


def _program(run: Run, program: tuple[str, ...], output: Path) -> tuple[str, ...]:
    """Return the command of the program; a bundled workload is built on this machine."""
    known = recognize(run.command_line)
    if known is not None and known.as_listed:
        wanted = Request(
            collecting.workload_target(known.workload.name, known.case.name), Collection((), output), "quick"
        )
        return collecting.make_plan(wanted, dry_run=False).collection.program
    if shutil.which(program[0]) is None:
        raise InputError(
            f"`{program[0]}`, which `{run.source}` recorded, is not here", f"go to its folder, or {_BY_HAND}"
        )
    return program


def _kept(options: Sequence[str]) -> Iterator[str]:
    """Leave out the options about where the report goes, with their values."""
    rest = iter(options)
    for option in rest:
        name = option.partition("=")[0]
        if name == "--":
            continue
        values = [next(rest, "")] if has_value(option) else []
        if name not in _REPLACED:
            yield from (option, *values)
