"""The command that collects what a report lacks, by profiling this one kernel of the recorded program again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath

PROGRAM = "PROGRAM"
"""Stands for the command line of a program where the report does not tell it."""

_PROFILERS = frozenset({"ncu", "nv-nsight-cu-cli"})
_MAX_LENGTH = 300
"""A longer program line does not help in a sentence."""
_NOT_PROFILED = (7, 5)
"""Nsight Compute's release notes, GPU support: today's ncu profiles Turing and up; Pascal left with 2020.1."""
_VOLTA = (7, 0)

_FLAGS = """
    -f --force-overwrite --nvtx --call-stack --csv --details-all --quiet --verbose --open-in-ui --support-32bit
    --null-stdin --disable-extra-suffixes --print-fp
"""
_VALUED = """
    -o --export -k --kernel-name -s --launch-skip -c --launch-count -i --import --set --section --section-folder
    --section-folder-recursive --rule --metrics --mode --hostname --port --max-connections --config-file
    --config-file-path --target-processes --target-processes-filter --kernel-name-base --kernel-id --kernel-regex
    --kernel-regex-base --launch-skip-before-match --filter-mode --devices --nvtx-include --nvtx-exclude
    --range-filter --range-replay-options --graph-profiling --replay-mode --app-replay-buffer --app-replay-match
    --app-replay-mode --app-range-graph-launches --cache-control --clock-control --apply-rules --import-source
    --import-sass --source-folders --source-folder --call-stack-type --check-exit-code --kill --log-file --page
    --print-details --print-kernel-base --print-metric-instances --print-metric-name --print-metric-attribution
    --print-rule-details --print-source --print-summary --print-units --print-nvtx-rename --profile-from-start
    --injection-path-32 --injection-path-64 --preload-library --pm-sampling-interval --pm-sampling-buffer-size
    --pm-sampling-max-passes --sampling-interval --sampling-buffer-size --sampling-max-passes
    --warp-sampling-interval --warp-sampling-buffer-size --warp-sampling-max-passes --chips --resolve-source-file
    --rename-kernels --rename-kernels-path --lockstep-kernel-launch --pm-sampling --warp-sampling
"""
"""Options of ncu without and with a value; any other hides where the program begins."""


@lru_cache(maxsize=1024)
def collect_command(name: str, command_line: str | None) -> str:
    """Write the command that collects one launch of a kernel, of the recorded program where that is known."""
    chosen = f"--kernel {shlex.quote(name)} " if name and name.isprintable() and len(name) <= _MAX_LENGTH else ""
    return f"rooflens profile {chosen}--launch-count 1 -- {program_of(command_line) or PROGRAM}"


def for_all_kernels(command: str, name: str) -> str:
    """Let a command that collects one launch of a kernel choose no kernel."""
    return command.replace(f"--kernel {shlex.quote(name)} ", "").replace("--launch-count 1 ", "")


@lru_cache(maxsize=64)
def not_profiled(compute_capability: str | None) -> str | None:
    """Say why today's ncu cannot collect more on a chip; None if it can, or the chip is not known."""
    parts = (compute_capability or "").split(".")
    if not all(part.isdecimal() for part in parts):
        return None
    capability = tuple(map(int, parts))
    if capability >= _NOT_PROFILED:
        return None
    which = "a Volta needs an older one" if capability >= _VOLTA else "the last that did is of 2019"
    return f"today's ncu no longer profiles compute capability {compute_capability}: {which}"


def program_of(command_line: str | None) -> str | None:
    """Return the program in a command line of ncu, quoted for a shell; None if that is uncertain."""
    parts = split_command(command_line)
    if parts is None:
        return None
    _, program = parts
    text = " ".join(program) if "\\" in (command_line or "") else shlex.join(program)
    return text if 0 < len(text) <= _MAX_LENGTH else None


def split_command(command_line: str | None) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Split a command line of ncu into its options and the program; None if that is uncertain."""
    if not command_line or not command_line.isprintable():
        return None
    windows = "\\" in command_line
    try:
        tokens = shlex.split(command_line, posix=not windows)
    except ValueError:
        return None
    if not tokens or not _is_profiler(tokens[0], windows=windows):
        return None
    begin = _begin_of_program(tokens)
    return (tuple(tokens[1:begin]), tuple(tokens[begin:])) if begin is not None and begin < len(tokens) else None


def _is_profiler(token: str, *, windows: bool) -> bool:
    name = PureWindowsPath(token.strip('"')).name if windows else PurePosixPath(token).name
    return name.removesuffix(".exe") in _PROFILERS


def _begin_of_program(tokens: Sequence[str]) -> int | None:
    position = 1
    while position < len(tokens) and tokens[position].startswith("-"):
        option, _, value = tokens[position].partition("=")
        if option == "--":
            return position + 1
        if option not in (*_FLAGS.split(), *_VALUED.split()):
            return None
        position += 1 if value or option in _FLAGS.split() else 2
    return position
