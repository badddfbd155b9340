"""Programs of several ranks, as started by `torchrun`: each rank gets its own ncu, and so its own report.

A single ncu around `torchrun` would stop one rank after another while they wait for each other. So the command line is
turned inside out: `torchrun` starts `rooflens collect` in each rank, which starts ncu and the script. Standard library
only.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.collect.log import run_to_end
from rooflens.errors import InputError, UsageError
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX
from rooflens.model.knowledge.roles import WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflens.collect.log import Progress

RANK = "%q{RANK}"
"""A placeholder that ncu, and `-o` of `collect`, replace by the environment variable RANK."""

NO_COMMUNICATION = f"regex:^(?!{'|'.join(WAITING)})"
"""All kernels that do not wait for other ranks."""

ONE_NCU = "--communicator"
"""Prefix of ncu's own options that move all ranks in step."""
_SHARED_MEMORY = re.compile(r"--communicator[= ]shmem\b")
_STARTERS = {"accelerate", "deepspeed", "vllm", "mpirun", "mpiexec", "srun", "horovodrun"}
"""Programs that start several ranks, but whose command lines are not turned inside out."""

_LAUNCHER, _MODULES = "torchrun", ("torch.distributed.run", "torch.distributed.launch")
_PLAIN, _MODULE, _OTHER = "--no-python", "--module", "--run-path"
_FLAGS = {"--standalone", "--use-env", _PLAIN, _MODULE, "-m", _OTHER}
"""Options of torchrun that take no value; all others take one value."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """A `torchrun` command line, split.

    Attributes:
        head: torchrun with its options, including `--no-python`, which lets it start any program.
        program: The command that each rank runs.
    """

    head: tuple[str, ...]
    program: tuple[str, ...]


_RANK_VARIABLES = (
    ("WORLD_SIZE", "RANK", "torchrun --no-python"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun"),
    ("PMI_SIZE", "PMI_RANK", "mpirun"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"),
)
"""Variables with the number of ranks and the own rank, and the launcher that sets them. SLURM_NTASKS is not usable: a
batch script, which is a single process, has it too."""
_LOCAL_RANK = "LOCAL_RANK"
"""Set by every launcher of PyTorch ranks; clusters set WORLD_SIZE alone for each machine's `torchrun`."""


def rank_variable(environment: Mapping[str, str] | None = None) -> tuple[str, str] | None:
    """Name the variable with the rank of this process, and its launcher; None if there is only one process.

    Args:
        environment: Environment variables; by default those of this process.
    """
    variables = os.environ if environment is None else environment
    for size, rank, starter in _RANK_VARIABLES:
        is_started = rank in variables and (size != "WORLD_SIZE" or _LOCAL_RANK in variables)
        if is_started and variables.get(size, "").isdecimal() and int(variables[size]) > 1:
            return rank, starter
    return None


def is_of_one_rank(output: Path, variable: str, environment: Mapping[str, str] | None = None) -> bool:
    """Return whether a report's name differs by rank: it names the variable, or a part of it is this rank's number."""
    variables = os.environ if environment is None else environment
    number = re.escape(variables[variable])
    own = re.compile(rf"(?:^|[^A-Za-z0-9]|rank|r)0*{number}(?![A-Za-z0-9])")
    return "%q{" in str(output) or own.search(str(output)) is not None


def starts_ranks(command: Sequence[str]) -> bool:
    """Return whether a command line starts several ranks, as far as known."""
    return bool(command) and (Path(command[0]).name in _STARTERS or _after_name(command) > 0)


def is_one_ncu(options: Sequence[str]) -> bool:
    """Return whether options of ncu let a single ncu profile all ranks, through shared memory."""
    return bool(_SHARED_MEMORY.search(" ".join(options)))


def split_launcher(command: Sequence[str]) -> Launcher | None:
    """Split a command line; None if it is not torchrun's, or has no script."""
    start = _after_name(command)
    if not start:
        return None
    options, given = [], list(command[start:])
    how = ""
    while given and given[0].startswith("-"):
        option = given.pop(0)
        name = option.partition("=")[0].replace("_", "-")
        if name in {_PLAIN, _MODULE, "-m", _OTHER}:
            how = _MODULE if name == "-m" else name
            continue
        options += [option] if name in _FLAGS or "=" in option or not given else [option, given.pop(0)]
    if not given or how == _OTHER:
        return None
    python = (_python_of(command), "-u")
    program = {_PLAIN: (), _MODULE: (*python, "-m")}.get(how, python)
    return Launcher((*command[:start], *options, _PLAIN), (*program, *given))


def _after_name(command: Sequence[str]) -> int:
    """Return where the launcher's options begin; 0 if the command is no launcher."""
    if command and Path(command[0]).name == _LAUNCHER:
        return 1
    is_module = len(command) > 2 and command[1] == "-m" and command[2] in _MODULES
    return 3 if is_module else 0


def _python_of(command: Sequence[str]) -> str:
    """Return the Python with which the launcher would start scripts."""
    if Path(command[0]).name != _LAUNCHER:
        return command[0]
    if own := os.environ.get("PYTHON_EXEC"):
        return own
    place = shutil.which(command[0])
    first = ""
    if place is not None:
        with Path(place).open("rb") as file:
            first = file.readline(200).decode(errors="replace")
    named = re.match(r"#!\s*(\S*python[\d.]*)\s*$", first)
    return named[1] if named else sys.executable


def parse_ranks(given: str) -> tuple[int, ...] | None:
    """Parse the ranks to profile; None for all.

    Raises:
        UsageError: The value is neither `all` nor numbers.
    """
    if given == "all":
        return None
    if not re.fullmatch(r"\d+(,\d+)*", given):
        raise UsageError(f"--ranks cannot be `{given}`", "give `all`, or numbers: --ranks 0,1")
    return tuple(sorted({int(number) for number in given.split(",")}))


def rank_argv(launcher: Launcher, profiled: Sequence[str], ranks: tuple[int, ...] | None = None) -> tuple[str, ...]:
    """Write the command line that starts the program under the profiler in all ranks, or in some of them.

    Args:
        launcher: The user's command line, split.
        profiled: Command to which the program is appended to profile it.
        ranks: The ranks to profile, None for all; the others run the program unprofiled.
    """
    if ranks is None:
        return (*launcher.head, *profiled, *launcher.program)
    listed = f",{','.join(map(str, ranks))},"
    chosen = f'case "{listed}" in *",$RANK,"*) ;; *) shift {len(profiled)};; esac; exec "$@"'
    return (*launcher.head, "/bin/sh", "-c", chosen, "sh", *profiled, *launcher.program)


def expanded(path: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Replace `%q{NAME}` in a report's name by the environment variable NAME, as ncu does.

    Raises:
        UsageError: The variable is not set.
    """
    variables = os.environ if environment is None else environment

    def value(match: re.Match[str]) -> str:
        if match[1] not in variables:
            hint = "`torchrun` sets RANK, `mpirun` OMPI_COMM_WORLD_RANK, `srun` SLURM_PROCID"
            raise UsageError(f"the environment variable {match[1]}, which `{path}` names, is not set", hint)
        return variables[match[1]]

    return Path(re.sub(r"%q\{(\w+)\}", value, str(path)))


def reports_of(output: Path) -> list[Path]:
    """Return the reports of all ranks that match a name containing the rank, sorted by rank."""
    before, _, after = output.name.removesuffix(PLAIN_SUFFIX).partition(RANK)
    name = re.compile(
        rf"{re.escape(before)}(\d+){re.escape(after)}({re.escape(PLAIN_SUFFIX)}|{re.escape(PACKED_SUFFIX)})"
    )
    there = output.parent.iterdir() if output.parent.is_dir() else ()
    found = [(int(match[1]), path) for path in there if (match := name.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def run_ranks(
    argv: Sequence[str],
    output: Path,
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> list[Path]:
    """Run all ranks to their end and return their reports, sorted by rank.

    Args:
        argv: The command line from `rank_argv`.
        output: The reports' name, with `RANK` instead of the number.
        timeout_s: Seconds after which all ranks are ended; None for no limit.
        on_progress: Called many times a second.

    Raises:
        InputError: A rank failed or left no report; the hint names the reports of the others.
        StoppedError: Ctrl-C or a like signal.
    """
    before = {path: path.stat().st_mtime_ns for path in reports_of(output)}
    finished, stdout, stderr = run_to_end(argv, timeout_s, on_progress, "profiling")
    written = [path for path in reports_of(output) if path.stat().st_mtime_ns != before.get(path)]
    if finished.timed_out:
        raise InputError(
            f"the ranks did not end within {timeout_s:g} s under ncu",
            _kept(written, "a kernel that waits for other ranks may hang: profile one rank (--ranks 0), fewer kernels"),
        )
    if finished.status != 0 or not written:
        raise _explained(f"{stderr}\n{stdout}", finished.status, written)
    return written


def _explained(output: str, status: int | None, written: Sequence[Path]) -> InputError:
    """Make the error from the output of the first failed rank, which precedes the launcher's own messages."""
    error = re.search(r"(?:^|: ?|\]:)error: (.+)$", output, re.MULTILINE)
    hint = re.search(r"(?:^|: ?|\]:)hint: (.+)$", output[error.end() :] if error else "", re.MULTILINE)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = error[1] if error else (lines[-1] if lines else f"status {status}")
    return InputError(
        f"a rank failed under ncu: {reason}", _kept(written, hint[1] if hint else "run it without ncu first")
    )


def _kept(written: Sequence[Path], hint: str) -> str:
    names = ", ".join(str(path) for path in written)
    return f"{hint}; the reports of other ranks are kept: {names}" if names else hint
