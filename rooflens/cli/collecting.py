"""What `collect` and `profile` do once their command lines are parsed: targets, progress and words.

Standard library only, until a report is read: it runs on bare GPU machines.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflens.cli.console import echo_command, say, show_error
from rooflens.cli.options import CommandOption
from rooflens.errors import InputError, RooflensError, StoppedError, UsageError, need_newer_python
from rooflens.format import percent, printable
from rooflens.writing.outputs import check_folder, check_free

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from rooflens.collect.coverage import Covered
    from rooflens.collect.log import Progress
    from rooflens.collect.plan import Plan, Request, Target
    from rooflens.collect.profile import Recording
    from rooflens.model.unprofiled import Unprofiled

OUTPUT_FOLDER = Path("out")
_PLACES = ("-o", "--output", "--output-folder")
_LINE_SECONDS = 30.0
_QUIET_SECONDS = 120.0
_SHOWN_NAMES = 3
_WORKLOADS = {"": "kernel", "ranges": "range", "CUDA graphs": "workload"}
"""What ncu profiles as a whole -> the singular; beside graphs, ncu also profiles kernels outside graphs."""
_TOGETHER = 2
"""Fewest cases that run together in one process."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line of `collect` or `profile`, as parsed.

    Attributes:
        name: The command.
        options: The values of `OPTIONS` by key, and `workload`.
        before: Its words before `--`.
        command: The user's program: the words after `--`; None without `--`.
    """

    name: str
    options: Mapping[str, Any]
    before: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None


_PASSED_ON = (
    "kernel",
    "launch_skip",
    "launch_count",
    "max_launches",
    "nvtx_include",
    "replay_mode",
    "cache_control",
    "clock_control",
    "target_processes",
    "graph_profiling",
    "import_source",
    "kill",
)
"""Options that go into the collection unchanged."""

_DETAILS, _CLOCKS = ("quick", "standard", "deep"), ("base", "boost", "force-boost", "none", "reset")

OPTIONS = (
    CommandOption(
        "--case",
        "Case of the workload; by default the first, or all cases of a ladder. One report per case. Repeatable.",
        metavar="NAME",
        is_many=True,
        key="cases",
    ),
    CommandOption("--all-cases", "All cases of the workload, one report each.", "flag"),
    CommandOption(
        "--detail", "How many counters to collect, and thus how many passes.", choices=_DETAILS, default="standard"
    ),
    CommandOption("--metrics", "Additional metrics, separated by commas.", metavar="NAMES", default=""),
    CommandOption("--kernel", "Only kernels of this name, or `regex:EXPRESSION`.", metavar="NAME"),
    CommandOption("--launch-skip", "Skip the first N matching launches.", "number", "N"),
    CommandOption("--launch-count", "Profile N matching launches.", "number", "N", least=1),
    CommandOption(
        "--max-launches",
        "Stop after N profiled launches, unless --launch-count is given.  [default: 200]",
        "number",
        "N",
        least=1,
    ),
    CommandOption(
        "--nvtx-include",
        "Only kernels in this NVTX range: `NAME` for a start/end range, `NAME/` for push/pop.",
        metavar="RANGE",
        is_many=True,
    ),
    CommandOption(
        "--replay-mode",
        "What ncu replays for each pass.",
        choices=("kernel", "application", "range", "app-range"),
        default="kernel",
    ),
    CommandOption(
        "--cache-control", "`all` flushes the caches before each pass.", choices=("all", "none"), default="all"
    ),
    CommandOption(
        "--clock-control",
        "Lock the clocks, or leave them alone (`none`); `reset` only unlocks them. By default ncu decides.",
        choices=_CLOCKS,
    ),
    CommandOption(
        "--target-processes",
        "Whether to profile child processes too.",
        choices=("all", "application-only"),
        default="all",
    ),
    CommandOption(
        "--graph-profiling", "Profile CUDA graphs kernel by kernel, or as a whole.", choices=("node", "graph")
    ),
    CommandOption(
        "--import-source",
        "Embed source code in the report, where it was compiled with -lineinfo; off by default.",
        "flag",
    ),
    CommandOption(
        "--ncu-args",
        "Additional ncu options, quoted as one argument, such as '--call-stack'.",
        metavar="OPTIONS",
        is_many=True,
    ),
    CommandOption(
        "--ranks",
        "Which ranks of `torchrun` to profile, such as `0,1`; one report each.",
        metavar="RANKS",
        default="all",
    ),
    CommandOption("--chip", "Chip to choose counters for, such as `gh100`; by default this machine's.", metavar="CHIP"),
    CommandOption("--ncu", "Path of the ncu to run, or of its folder.", metavar="PATH", key="ncu_path"),
    CommandOption(
        "--timeout",
        "Stop everything after this time, including the run without ncu; by default there is no limit.",
        "seconds",
        "SECONDS",
        key="timeout_s",
    ),
    CommandOption(
        "--no-unprofiled",
        "Skip the run without ncu, which takes as long as the program and shows how much of its time is gaps.",
        "flag",
    ),
    CommandOption(
        "--timeline",
        "Figures without ncu from a file instead of a run: an SQLite export of nsys, its .nsys-rep, or a trace of the "
        "PyTorch profiler.",
        "file",
        "FILE",
    ),
    CommandOption(
        "--no-trial",
        "Start the program at once, without checks and the trial profile of one small kernel.",
        "flag",
    ),
    CommandOption("--kill", "End the program once --launch-count launches are profiled.", "flag"),
    CommandOption("--dry-run", "Print ncu's command line and run nothing.", "flag"),
    CommandOption("--force", "Overwrite existing files.", "flag"),
)
"""The options of a collection."""

OUTPUT = CommandOption(
    "--output",
    "Report to write, `NAME.ncu-rep`; by default in `out/`, named after the program. With several cases their names "
    "follow NAME.",
    "file",
    short="-o",
)

SAYS = """Run Nsight Compute on a bundled workload or your own program, and keep the report.

The program first runs once without the profiler, to check that it works and to measure its gaps."""


def collect(line: CommandLine, output: Path | None) -> int:
    """Collect as a command line asks; return the exit code."""
    options = line.options
    if options["clock_control"] == "reset":
        reset_clocks(options)
        return 0
    targets = targets_of(line)
    if targets[0].launcher is None:  # a launcher's reports have the rank in their names
        refuse_one_name(line, output or OUTPUT_FOLDER / f"{options['workload'] or targets[0].name}.ncu-rep")
    reports = [_output_path(output, target, alone=len(targets) == 1) for target in targets]
    taken, exit_code = take_profiles(targets, reports, options)
    for written in () if options["dry_run"] else taken:
        say(f"wrote {written}")
    return exit_code


def refuse_one_name(line: CommandLine, report: Path) -> None:
    """Refuse to start in one of several ranks if all would write the same report, each replacing the last.

    Raises:
        UsageError: All ranks would write the same report; the hint has the line to type.
    """
    from rooflens.collect.ranks import is_of_one_rank, rank_variable

    found = rank_variable()
    if line.options["dry_run"] or found is None or is_of_one_rank(report, found[0]):
        return
    variable, starter = found
    own = report.with_name(f"{report.stem}.%q{{{variable}}}{report.suffix}")
    given = list(line.before)
    for name in _PLACES:
        while name in given:
            at = given.index(name)
            del given[at : at + 2]
    program = ("--", *line.command) if line.command else ()
    own_line = shlex.join(["rooflens", "collect", *given, "-o", str(own), *program])
    page = f"; `rooflens report {report.with_name(report.stem)}.*{report.suffix}` then draws one page of all"
    raise UsageError(
        f"this is one of several ranks ({variable} is {os.environ[variable]}), and all would write `{report}`",
        f"give each its own name: `{starter} ... {own_line}`{page if line.name == 'profile' else ''}",
    )


def check_gpu(target: Target, report: Path, options: Mapping[str, Any]) -> None:
    """Look for the GPU before anything slower, unless only the command line is wanted."""
    from rooflens.collect.plan import check_gpu as check

    if not options["dry_run"]:
        check(_request(target, report, options))


def reset_clocks(options: Mapping[str, Any]) -> None:
    """Unlock the clocks that a killed ncu left locked."""
    from rooflens.collect.command import find_ncu
    from rooflens.collect.run import reset_clocks as reset

    ncu = find_ncu(options["ncu_path"])
    if options["dry_run"]:
        echo_command((ncu.path, "--clock-control", "reset"))
        return
    reset(ncu)
    say("the GPU's clocks are as they were")


def _output_path(output: Path | None, target: Target, *, alone: bool) -> Path:
    from rooflens.collect.ranks import expanded
    from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX

    if output is not None and output.suffix not in {PLAIN_SUFFIX, PACKED_SUFFIX}:
        hint = f"end it in `{PLAIN_SUFFIX}`; `rooflens profile` draws the page, and `rooflens report` that of a report"
        raise UsageError(f"`{output}` does not end in a report's suffix", hint)
    output = output if output is None or target.launcher else expanded(output)
    if output is None:
        return OUTPUT_FOLDER / f"{target.name}.ncu-rep"
    if output.parent != OUTPUT_FOLDER:
        check_folder(output)
    return output if alone or target.case is None else output.with_stem(f"{output.stem}.{target.case.name}")


def targets_of(line: CommandLine) -> list[Target]:
    """Return the targets to profile: cases of a workload, or a command."""
    from rooflens.collect.plan import can_run, command_target, workload_target
    from rooflens.workloads.registry import find_workload

    options, command = line.options, line.command
    name = options["workload"]
    cases, all_cases = options["cases"], options["all_cases"]
    if (name is None) == (not command):
        example = f"`rooflens {line.name} saxpy`, or `rooflens {line.name} -- python train.py --my-option`"
        raise UsageError("give a workload, or a command after `--`", example)
    _refuse_script(line, command or (name,))
    if cases and all_cases:
        raise UsageError("--case and --all-cases cannot be combined", "drop one of the two")
    if name is not None:
        workload = find_workload(name)
        is_whole = all_cases or (workload.together and not cases)
        wanted = dict.fromkeys(cases)
        for case in workload.cases if is_whole else ():
            if can_run(case, options["chip"]):
                wanted[case.name] = None
            else:
                say(f"note: `{case.name}` is left out: it needs a GPU of compute capability {case.needs}")
        return [workload_target(name, case) for case in wanted] or [workload_target(name, None)]
    if cases or all_cases:
        raise UsageError(
            "--case and --all-cases are for bundled workloads only", "put your program's own options after `--`"
        )
    target = command_target(command or ())
    if options["ranks"] != "all" and target.launcher is None:
        raise UsageError(
            "--ranks is for programs that `torchrun` starts", "leave it out; for other launchers use `%q{RANK}` in -o"
        )
    return [target]


def _refuse_script(line: CommandLine, command: Sequence[str]) -> None:
    """Refuse a path where a workload's name is expected, and a Python script without `python` before it.

    Raises:
        UsageError: The name is such a program or script.
    """
    script = command[0]
    if not line.command and script.startswith((".", "/")):
        better = shlex.join(["rooflens", line.name, "--", *command])
        raise UsageError(f"`{script}` is no workload", f"a program comes after two dashes: `{better}`")
    if script.endswith(".py") and shutil.which(script) is None:
        better = shlex.join(["rooflens", line.name, "--", "python", *command])
        raise UsageError(f"`{script}` is a Python script, which does not start by itself", f"`{better}`")


def take_profiles(
    targets: Sequence[Target], reports: Sequence[Path], options: Mapping[str, Any]
) -> tuple[list[Path], int]:
    """Take the profiles in turn; if there are several, a case that fails costs only itself.

    Returns:
        The reports written, in order, and the exit code of the first failed case, or 0.

    Raises:
        RooflensError: The only profile failed, or this machine prevents all of them.
    """
    from rooflens.collect.ranks import is_one_ncu
    from rooflens.collect.run import both_names

    by_rank = not is_one_ncu(options["ncu_args"])
    for report in reports:
        for place in both_names(report):
            keep(place, options)
    measured = _measure_together(targets, reports[0], options)
    together = _take_together(targets, reports, options, measured)
    taken: list[Path] = []
    exit_code = 0
    for target, report in zip(targets, reports, strict=True):
        if report in together:
            taken.append(report)
            continue
        if len(targets) > 1:
            say(f"{target.name}:")
        try:
            if target.launcher and by_rank:
                written = take_ranks(target, report, options)
            else:
                written = take_profile(target, report, options, measured.get(target.case.name if target.case else ""))
        except RooflensError as error:
            if len(targets) == 1 or not (error.is_of_program or isinstance(error, InputError)):
                raise
            show_error(error, target.name)
            exit_code = exit_code or error.exit_code
        else:
            taken += written
    return taken, exit_code


def _measure_together(targets: Sequence[Target], report: Path, options: Mapping[str, Any]) -> dict[str, Unprofiled]:
    """Run the cases of a PyTorch workload without ncu in one process; return their figures by name.

    A missing case runs alone in its turn and reports its error; so does the first case if this machine prevents all of
    them.
    """
    from rooflens.collect.plan import make_plan
    from rooflens.collect.profile import measure_cases
    from rooflens.collect.trial import check_machine

    cases = [target.case for target in targets if target.case is not None]
    workload = targets[0].workload
    if workload is None or workload.kind != "torch" or len(cases) < _TOGETHER or not _runs_first(options):
        return {}
    try:
        plan = make_plan(_request(targets[0], report, options), dry_run=False)
        with Shown() as shown:
            said = () if options["no_trial"] else check_machine(plan, shown)
            measured = measure_cases(workload, cases, options["timeout_s"], shown)
    except StoppedError:
        raise
    except RooflensError:
        return {}
    for warning in said:
        say(f"warning: {warning}")
    say(f"un-profiled: {len(measured)} of {len(cases)} cases, in one start of PyTorch")
    return measured


def _take_together(
    targets: Sequence[Target], reports: Sequence[Path], options: Mapping[str, Any], measured: Mapping[str, Unprofiled]
) -> Sequence[Path]:
    """Profile the cases of a PyTorch workload under one ncu; return the resulting reports.

    A missing case is profiled alone in its turn, and reports its error.
    """
    from rooflens.collect.plan import make_plan, plan_cases
    from rooflens.collect.profile import Recording, profile_cases
    from rooflens.collect.trial import check_machine

    workload = targets[0].workload
    placed = {
        f"{workload.name}.{target.case.name}": (target, report)
        for target, report in zip(targets, reports, strict=True)
        if workload is not None
        and target.case is not None
        and (target.case.name in measured or not _runs_first(options))
    }
    if workload is None or workload.kind != "torch" or len(placed) < _TOGETHER:
        return ()
    names, (first, report) = list(placed), next(iter(placed.values()))
    one = make_plan(_request(first, report, options), dry_run=options["dry_run"])
    plan = plan_cases(one, workload, names)
    if plan is None:
        return ()
    if options["dry_run"]:
        echo_command(plan.argv)
        return reports
    say(f"{workload.name}: {len(placed)} cases under one ncu, in one start of PyTorch")
    _announce(plan)
    try:
        with Shown() as shown:
            if not options["no_trial"]:
                for warning in check_machine(plan, shown):
                    say(f"warning: {warning}")
            unprofiled = {f"{workload.name}.{name}": found for name, found in measured.items()}
            places = {name: report for name, (_, report) in placed.items()}
            collected, written, lost = profile_cases(plan, places, unprofiled, shown)
    except InputError as error:
        show_error(error, workload.name)
        say("warning: each case is profiled by itself")
        return ()
    starts = 2 if measured else 1
    _sum_up(Recording(plan, None, collected, starts, lost), None)
    if not written:
        say(f"warning: no kernel is in the range of a case; the report is kept as {collected.report}")
    for name, report in places.items():
        if report not in written:
            say(f"warning: {name}: none of its kernels is in the report; it is profiled by itself")
    return written


def _runs_first(options: Mapping[str, Any]) -> bool:
    """Return whether cases first run without ncu, so that failing cases are known."""
    return not (options["no_unprofiled"] or options["dry_run"] or options["timeline"] is not None)


def take_profile(
    target: Target, report: Path, options: Mapping[str, Any], unprofiled: Unprofiled | None = None
) -> list[Path]:
    """Take the profile; return its report under the name chosen by ncu, or None for a dry run.

    Args:
        target: What to profile.
        report: Where to write the report.
        options: The options of the command.
        unprofiled: Figures without ncu, if the program ran already.
    """
    from rooflens.collect.cost import estimate_cost
    from rooflens.collect.coverage import covered, other_gpu
    from rooflens.collect.plan import make_plan
    from rooflens.collect.profile import profile

    plan = make_plan(_request(target, report, options), dry_run=options["dry_run"])
    if options["dry_run"]:
        echo_command(plan.argv)
        return []
    timeline = _read_timeline(options)
    _announce(plan)
    announced = plan.warnings
    with Shown() as shown:

        def say_cost(plan: Plan, unprofiled: Unprofiled | None) -> None:
            shown.clear()
            for warning in plan.warnings[len(announced) :]:
                say(f"warning: {warning}")
            say(_unprofiled_words(unprofiled))
            say(estimate_cost(plan, unprofiled))

        recording = profile(
            plan,
            shown,
            run_first=not options["no_unprofiled"],
            unprofiled=timeline or unprofiled,
            try_first=not options["no_trial"],
            on_first_run=say_cost,
        )
    _sum_up(recording, covered(recording))
    report = recording.collected.report
    if other := other_gpu(recording.plan, report):
        say(f"warning: {other}")
    return [report]


def take_ranks(target: Target, report: Path, options: Mapping[str, Any]) -> list[Path]:
    """Profile each rank of a `torchrun`; return the reports, none for a dry run."""
    from rooflens.collect.command import build_argv
    from rooflens.collect.coverage import other_gpu
    from rooflens.collect.plan import make_plan
    from rooflens.collect.profile import keep_unprofiled, run_unprofiled
    from rooflens.collect.ranks import RANK, parse_ranks, rank_argv, reports_of, run_ranks
    from rooflens.collect.trial import check_machine

    launcher = target.launcher
    assert launcher is not None  # noqa: S101 - who calls has looked
    ranks = parse_ranks(options["ranks"])
    output = report.with_name(report.name.replace(report.suffix, f".rank{RANK}{report.suffix}"))
    for place in reports_of(output):
        keep(place, options)
    plan = make_plan(_request(target, output, options), dry_run=options["dry_run"])
    if options["dry_run"]:
        only = replace(plan.collection, program=("@",))
        argv = [part.replace(f"%{RANK}", RANK) for part in build_argv(plan.ncu, only)[:-1]]
        echo_command(rank_argv(launcher, argv, ranks))
        return []
    _announce(plan)
    skipped = ("--no-trial", "--no-unprofiled")
    # Isolated: what settings decided is among the options.
    rank = (sys.executable, "-m", "rooflens", "--isolated", "collect")
    own = (*rank, *_rank_options(options), *skipped, "-o", str(output), "--")
    with Shown() as shown:
        if not options["no_trial"]:
            for warning in check_machine(plan, shown):
                say(f"warning: {warning}")
        unprofiled = _read_timeline(options)
        if unprofiled is None and not options["no_unprofiled"]:
            unprofiled = run_unprofiled(plan, shown)
        shown.clear()
        say(_unprofiled_words(unprofiled))
        written = run_ranks(rank_argv(launcher, own, ranks), output, options["timeout_s"], shown)
    for place in written:
        if lost := keep_unprofiled(place, unprofiled) if unprofiled is not None else "":
            say(f"warning: {lost}")
        if other := other_gpu(plan, place):
            say(f"warning: {place.name}: {other}")
    say(f"profiled {len(written)} rank{'' if len(written) == 1 else 's'}, one report each")
    return written


def _read_timeline(options: Mapping[str, Any]) -> Unprofiled | None:
    if options["timeline"] is None:
        return None
    need_newer_python("--timeline")
    from rooflens.ingest.timelines.read import opened_timeline
    from rooflens.model.program.measure import measure

    with opened_timeline(options["timeline"]) as timeline:
        return measure(timeline).unprofiled


_NOT_REPEATED = {"cases", "all_cases", "ranks", "dry_run", "no_trial", "no_unprofiled", "timeline", "force"}
"""Options about all ranks together; each rank may overwrite its report, as --force allows or there is none."""


def _rank_options(options: Mapping[str, Any]) -> list[str]:
    """Write the options of this command for the command of one rank."""
    given = ["--force"]
    for option in OPTIONS:
        value = options[option.keyed]
        if option.keyed in _NOT_REPEATED or value in (None, (), "", False):
            continue
        for one in value if option.is_many else (value,):
            given += [option.name] if option.kind == "flag" else [option.name, str(one)]
    return given


def _request(target: Target, report: Path, options: Mapping[str, Any]) -> Request:
    from rooflens.collect.command import Collection, further_options
    from rooflens.collect.plan import Request

    return Request(
        target=target,
        collection=Collection(
            program=(),
            output=report,
            options=further_options(" ".join(options["ncu_args"])),
            extra_metrics=tuple(name.strip() for name in options["metrics"].split(",") if name.strip()),
            **{name: options[name] for name in _PASSED_ON if options[name] is not None},
        ),
        detail=options["detail"],
        chip=options["chip"],
        ncu_path=options["ncu_path"],
        timeout_s=options["timeout_s"],
    )


def keep(path: Path, options: Mapping[str, Any]) -> None:
    """Refuse to overwrite a file without `--force`."""
    if not options["dry_run"]:
        check_free(path, force=options["force"], hint="give another name, or --force to overwrite it")


def _announce(plan: Plan) -> None:
    from rooflens.collect.ranks import NO_COMMUNICATION, starts_ranks

    where = f" on {plan.gpu.name}, driver {plan.gpu.driver}" if plan.gpu else ""
    say(f"ncu {plan.ncu.version_text}{where}")
    for warning in plan.warnings:
        say(f"warning: {warning}")
    if plan.collection.kernel == NO_COMMUNICATION and starts_ranks(plan.request.target.command):
        _say_what_waits(plan)


def _say_what_waits(plan: Plan) -> None:
    from rooflens.collect.command import moves_ranks_in_step

    words = "kernels that wait for other ranks (NCCL, NVSHMEM) run unprofiled, because ncu would hang in them"
    how = (
        "shmem --communicator-shmem-num-peers" if moves_ranks_in_step(plan.ncu) else "tcp --communicator-tcp-num-peers"
    )
    in_step = f"--ncu-args '--communicator {how} N --lockstep-kernel-launch'"
    say(f"note: {words}; --kernel regex:nccl with {in_step} profiles them")


def _unprofiled_words(unprofiled: Unprofiled | None) -> str:
    if unprofiled is None:
        return "not run without ncu: launches are not counted, and the share of gaps stays unknown"
    if unprofiled.wall_ns is None:
        return "un-profiled: totals of kernels, no wall time"
    wall = f"un-profiled: {unprofiled.wall_ns / 1e6:.3g} ms"
    if unprofiled.gap_share is None:
        return f"{wall} of wall time; how much of it is kernels is unknown (nsys would show it)"
    return f"{wall}, and no kernel ran in {unprofiled.gap_share:.0%} of it"


def _sum_up(recording: Recording, covered: Covered | None) -> None:
    from rooflens.collect.command import profiles_whole

    plan, collected = recording.plan, recording.collected
    for warning in collected.warnings:
        say(f"warning: ncu: {warning}")
    if recording.lost:
        say(f"warning: {recording.lost}")
    cap, whole = plan.collection.max_launches, profiles_whole(plan.collection)
    at_cap = plan.collection.launch_count is None and (collected.profiled_count or 0) >= cap
    if collected.capped or (at_cap and not plan.collection.one_of_each):
        say(f"warning: stopped at --max-launches {cap}: there may be more {_WORKLOADS[whole]}s")
    count = f"some {_WORKLOADS[whole]}s (the log does not say how many)"
    if collected.profiled_count is not None:
        count = f"{collected.profiled_count} {_WORKLOADS[whole]}{'' if collected.profiled_count == 1 else 's'}"
    passes = f", at most {collected.max_passes} passes each" if collected.max_passes else ""
    starts = recording.starts
    started = f"; the program was started {starts} time{'' if starts == 1 else 's'}" if starts else ""
    say(f"profiled {count} in {collected.elapsed_s:.1f} s{passes}{started}")
    if covered is not None:
        share = "" if covered.time_share is None else f", {percent(covered.time_share)} of the time"
        say(f"in the report: {covered.names} of {covered.of} kernel names{share}{_missing(covered.missing)}")


def _missing(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    listed = ", ".join(printable(name) for name in names[:_SHOWN_NAMES])
    return f"; without {listed}{more}: --kernel NAME profiles one"


class Shown:
    """Show progress on stderr: a line that updates on a terminal, an occasional line in a log."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown_s = 0.0
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, progress: Progress) -> None:
        """Show the progress of a run."""
        line = progress_line(progress)
        if self._terminal:
            line = line[: shutil.get_terminal_size().columns - 1]
            self._write(line.ljust(self._width))
            self._width = len(line)
        elif progress.elapsed_s - self._shown_s >= _LINE_SECONDS:
            self._shown_s = progress.elapsed_s
            say(line)

    def clear(self) -> None:
        """Clear the line, so that other text can take its place."""
        if self._width:
            self._write(" " * self._width + "\r")
        self._width = 0

    def __exit__(self, *_: object) -> None:
        self.clear()

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(f"\r{text}")
        sys.stderr.flush()


def progress_line(progress: Progress) -> str:
    """Write the progress of a run as a single line."""
    elapsed = f"{progress.elapsed_s:.0f} s"
    if progress.doing != "profiling":
        return f"{progress.doing} the program without ncu, {elapsed}"
    passes = [f"{progress.passes} passes"] if progress.passes else []
    kernel = [printable(progress.kernel)] if progress.kernel else []
    quiet = f"no progress for {progress.quiet_s:.0f} s: if it hangs, see --replay-mode application"
    hanging = [quiet] if progress.quiet_s > _QUIET_SECONDS else []
    return ", ".join([f"profiling: {progress.profiled_count} done", *passes, elapsed, *kernel, *hanging])
