"""Find Nsight Compute's `ncu` and write its command line; `rooflens.collect.run` runs it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError, UsageError
from rooflens.processes import find_programs, query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Version = tuple[int, int]
"""Year and number of a release: (2024, 1)."""

PER_LAUNCH_CONFIG_SINCE: Version = (2024, 1)
CONFIG_FILE_SINCE: Version = (2024, 1)
SOURCE_NAMES_SINCE: Version = (2021, 2)
"""First release with the current names of memory accesses by instruction (`memory_*`)."""
PM_SAMPLING_SINCE: Version = (2024, 1)
"""First release with the section that samples units over time."""
DEFAULT_MAX_LAUNCHES = 200
"""Most launches to profile unless the user says otherwise: at a second each, some minutes."""

CLOCKS = ("base", "boost", "force-boost", "none", "reset")
"""Values of `--clock-control`; an ncu's help says which of them it has."""

_BANNER = "Nsight Compute"
"""What NVIDIA's `ncu --version` prints; npm-check-updates, whose command is also called `ncu`, does not."""
_PER_SHAPE = ("--filter-mode", "per-launch-config")
REGEX = "regex:"
"""Prefix of an expression instead of a kernel's name."""
RANGE_MODES = ("range", "app-range")
_INSTALL_PATTERNS = (
    "usr/local/cuda/bin/ncu",
    "usr/local/cuda-*/bin/ncu",
    "opt/nvidia/nsight-compute/*/ncu",
    "usr/local/NVIDIA-Nsight-Compute*/ncu",
    "usr/lib/nsight-compute/ncu",
    "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute/ncu",
)
_INSTALL_HINT = "install Nsight Compute (it comes with the CUDA toolkit), or give its path with --ncu"


_OURS = {
    "--kernel-name": "--kernel",
    "--launch-skip": "--launch-skip",
    "--launch-count": "--launch-count",
    "--nvtx-include": "--nvtx-include",
    "--replay-mode": "--replay-mode",
    "--cache-control": "--cache-control",
    "--clock-control": "--clock-control",
    "--target-processes": "--target-processes",
    "--graph-profiling": "--graph-profiling",
    "--import-source": "--import-source",
    "--kill": "--kill",
    "--metrics": "--metrics",
    "--export": "-o",
    "--force-overwrite": "--force",
    "--set": "--detail",
    "--filter-mode": "--launch-count",
    "--log-file": None,
    "--nvtx": None,
    "--config-file": None,
    "--config-file-path": None,
    "--profile-from-start": None,
}
"""Options that rooflens sets -> our option that changes them; None if there is no such option."""

_NO_PROFILES = (
    "--help",
    "--version",
    "--mode",
    "--hostname",
    "--import",
    "--page",
    "--csv",
    "--print-summary",
    "--raw",
)
_NO_PROFILES_BEGIN = ("--list-", "--query-", "--print-")
"""Options that make ncu list, attach or print instead of writing a report."""

_SHORT = {
    "-k": "--kernel-name",
    "-s": "--launch-skip",
    "-c": "--launch-count",
    "-o": "--export",
    "-f": "--force-overwrite",
    "-i": "--import",
    "-h": "--help",
    "-v": "--version",
}
_LEAST_OF_A_NAME = 4
"""ncu accepts abbreviated options; none shorter than `--se` is unique."""

_EXAMPLE = "for example --ncu-args '--section MemoryWorkloadAnalysis --call-stack'"


@dataclass(frozen=True, slots=True)
class Ncu:
    """An installed ncu; if its version is unknown (None), it gets no option that old versions lack.

    Attributes:
        skipped: Programs called `ncu` that were tried before it and are not Nsight Compute.
    """

    path: str
    version: Version | None = None
    version_text: str = "unknown"
    skipped: tuple[str, ...] = ()

    def knows(self, since: Version) -> bool:
        """Return whether the version is known to be as new as a release."""
        return self.version is not None and self.version >= since


NEWEST = Ncu("ncu", (9999, 0), "assumed to be a current one")
"""Placeholder for ncu in a dry run."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One report to collect: the program, the counters, the launches, and how to profile them.

    Attributes:
        program: Command line of the program.
        output: Report to write; ends in `.ncu-rep` or `.ncu-repz`.
        metrics: Exact metric names for the chip.
        sections: Identifiers of ncu's own sections, whose rules then run too.
        extra_metrics: Metric names added by the user.
        kernel: Name of the kernels to profile, or `regex:` and an expression; None for all.
        launch_skip: Matching launches to skip.
        launch_count: Matching launches to profile.
        max_launches: Most launches to profile if `launch_count` is not given.
        one_of_each: Profile the first launch of each kernel and shape instead of the program's first launches.
        nvtx_include: NVTX filters: `NAME` for a start/end range, `NAME/` for a push/pop range.
        replay_mode: kernel, application, range or app-range.
        cache_control: all (flushed before every pass) or none.
        clock_control: One of `CLOCKS`; None leaves it to ncu.
        target_processes: Which processes: all or application-only.
        graph_profiling: node or graph; None leaves it to ncu.
        nvidia_set: One of NVIDIA's own sets, which replaces metrics and sections.
        options: Further options of ncu.
        import_source: Embed the text of the program's source files in the report.
        from_start: Profile from the start; else only between the program's calls of `cuProfilerStart` and `Stop`.
        environment: Variables for ncu and the program, in addition to our own.
        kill: Kill the program once the launches asked for are profiled.
        keep_log: Keep ncu's messages beside the report even if all went well.
    """

    program: tuple[str, ...]
    output: Path
    metrics: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    extra_metrics: tuple[str, ...] = ()
    kernel: str | None = None
    launch_skip: int | None = None
    launch_count: int | None = None
    max_launches: int = DEFAULT_MAX_LAUNCHES
    one_of_each: bool = False
    nvtx_include: tuple[str, ...] = ()
    replay_mode: str = "kernel"
    cache_control: str = "all"
    clock_control: str | None = None
    target_processes: str = "all"
    graph_profiling: str | None = None
    nvidia_set: str | None = None
    options: tuple[str, ...] = ()
    import_source: bool = False
    from_start: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    kill: bool = False
    keep_log: bool = False


def find_ncu(given: str | None = None, environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Ncu:
    """Find ncu: as given, else on PATH, else under CUDA_HOME or CUDA_PATH, else in the usual places.

    Args:
        given: Path, folder or name from the user.
        environment: Environment variables; by default those of this process.
        root: Folder under which the usual places are; tests use their own.

    Raises:
        EnvironmentMissingError: There is no ncu, the given ncu does not run, or this is macOS or Windows.
    """
    check_system()
    environment = os.environ if environment is None else environment
    if given is not None:
        return _given(given, environment)
    others: list[str] = []
    for path in find_programs("ncu", environment, _INSTALL_PATTERNS, root):
        ncu = _with_version(path)
        if ncu is not None:
            return replace(ncu, skipped=tuple(others))
        others.append(path)
    if others:
        message = f"`{others[0]}` is not Nsight Compute, and no other `ncu` was found"
        raise EnvironmentMissingError(message, f"npm-check-updates has a command of that name; {_INSTALL_HINT}")
    raise EnvironmentMissingError("Nsight Compute's `ncu` was not found", _INSTALL_HINT)


def check_system() -> None:
    """Make sure that this is Linux, the only system on which rooflens collects.

    Raises:
        EnvironmentMissingError: This is macOS or Windows.
    """
    if sys.platform != "linux":
        raise EnvironmentMissingError(
            "collecting needs Linux", "record on Linux, or with Nsight Compute itself; the report can be read here"
        )


def _given(given: str, environment: Mapping[str, str]) -> Ncu:
    place = Path(given, "ncu") if Path(given).is_dir() else Path(given)
    path = shutil.which(str(place), path=environment.get("PATH", ""))
    if path is None:
        raise EnvironmentMissingError(f"there is no executable `ncu` at `{given}`", "give the program or its folder")
    ncu = _with_version(path)
    if ncu is None or ncu.version is None:
        raise EnvironmentMissingError(f"`{path}` does not answer `--version` as ncu does", _INSTALL_HINT)
    return ncu


def _with_version(path: str) -> Ncu | None:
    """Ask a program called `ncu` for its version; None if it is not Nsight Compute."""
    answer = query((path, "--version")) or ""
    if _BANNER not in answer:
        return None
    found = re.search(r"^Version (\d+)\.(\d+)\S*", answer, re.MULTILINE)
    if found is None:
        return Ncu(path)
    return Ncu(path, (int(found[1]), int(found[2])), found[0].removeprefix("Version "))


@cache
def _help(path: str) -> str:
    return query((path, "--help")) or ""


def clock_choices(ncu: Ncu) -> tuple[str, ...]:
    """Return the values of `--clock-control` in an ncu's help."""
    if ncu is NEWEST:
        return CLOCKS
    listed = re.search(r"^ *--clock-control arg.*(?:\n(?! *-| *$).*)*", _help(ncu.path), re.MULTILINE)
    words = re.findall(r"\n +([\w-]+)", listed[0]) if listed else []
    return tuple(choice for choice in CLOCKS if choice in words)


def moves_ranks_in_step(ncu: Ncu) -> bool:
    """Return whether one ncu process can profile all ranks of a machine in step, through shared memory."""
    return ncu is NEWEST or "communicator-shmem" in _help(ncu.path)


@cache
def known_metrics(ncu: Ncu, chip: str) -> frozenset[str] | None:
    """Return the base names of the hardware metrics that an ncu knows for a chip; None if it does not know the chip.

    A single unknown name in `--metrics` fails the whole profile, and older releases know fewer names. No GPU is needed.
    The answer takes seconds, so each process asks once.
    """
    answer = query((ncu.path, "--query-metrics", "--chips", chip))
    names = frozenset(line.split()[0] for line in (answer or "").splitlines() if "__" in line)
    return names or None


def build_argv(ncu: Ncu, collection: Collection, log_file: Path | None = None) -> tuple[str, ...]:
    """Write the whole command line.

    Raises:
        UsageError: There are no counters to collect, or no program.
    """
    if not collection.program:
        raise UsageError("no program to profile", "give a workload, or a command after `--`")
    return (
        ncu.path,
        *collection.options,
        *(("--config-file", "off") if ncu.knows(CONFIG_FILE_SINCE) else ()),
        *_file_options(collection, log_file),
        "--nvtx",  # also without a filter: kernels then carry the ranges around their launch
        *("--target-processes", collection.target_processes),
        *("--replay-mode", collection.replay_mode),
        *("--cache-control", collection.cache_control),
        *(("--clock-control", collection.clock_control) if collection.clock_control else ()),
        *(("--graph-profiling", collection.graph_profiling) if collection.graph_profiling else ()),
        *(("--import-source", "yes") if collection.import_source else ()),
        *(() if collection.from_start else ("--profile-from-start", "off")),
        *_filters(ncu, collection),
        *_counters(collection),
        *collection.program,
    )


def _file_options(collection: Collection, log_file: Path | None) -> tuple[str, ...]:
    # ncu replaces %h, %i, %p and %q{} in the name of the report.
    export = str(collection.output).replace("%", "%%")
    log = ("--log-file", str(log_file)) if log_file else ()
    return "--export", export, "--force-overwrite", *log


def can_profile_one_of_each(collection: Collection) -> bool:
    """Return whether ncu can be asked for the first launch of each kernel and shape.

    `--kernel-id` counts launches of the whole program, and the first may be outside a range. It accepts no expression
    with a colon.
    """
    chosen = collection.launch_skip is not None or collection.launch_count is not None or collection.kill
    in_part = collection.nvtx_include or not collection.from_start or profiles_whole(collection)
    has_colon = ":" in (collection.kernel or "").removeprefix(REGEX)
    return not (chosen or in_part or names_kernels(collection.options) or has_colon)


def profiles_whole(collection: Collection) -> str:
    """Name what ncu profiles as a whole instead of by kernel: `ranges`, `CUDA graphs`; empty if nothing."""
    if collection.replay_mode in RANGE_MODES:
        return "ranges"
    return "CUDA graphs" if collection.graph_profiling == "graph" else ""


def check_modes(collection: Collection) -> None:
    """Refuse options that fail or are meaningless when ncu profiles ranges or CUDA graphs as a whole.

    Raises:
        UsageError: The options contradict each other.
    """
    whole = profiles_whole(collection)
    if collection.graph_profiling == "graph" and collection.replay_mode != "kernel":
        message = f"`--graph-profiling graph` does not go with `--replay-mode {collection.replay_mode}`"
        raise UsageError(
            message, "drop one of the two: ncu replays graphs as it does kernels, and a range holds its graphs"
        )
    if whole and (collection.kernel is not None or names_kernels(collection.options)):
        option = "--kernel" if collection.kernel is not None else "--kernel-id"
        instead = (
            "`--nvtx-include` chooses ranges, `--replay-mode kernel` profiles single kernels"
            if whole == "ranges"
            else "`--graph-profiling node` profiles the kernels of a graph one by one"
        )
        raise UsageError(f"{option} cannot choose kernels where {whole} are profiled whole", f"leave it out; {instead}")
    if whole == "ranges" and collection.import_source:
        raise UsageError("ncu embeds no source code where it profiles ranges", "leave --import-source out")


def names_kernels(options: Sequence[str]) -> bool:
    """Return whether the user's own options of ncu choose kernels."""
    return any(part.startswith("--kernel-id") for part in options)


def _filters(ncu: Ncu, collection: Collection) -> tuple[str, ...]:
    nvtx = tuple(part for name in collection.nvtx_include for part in ("--nvtx-include", name))
    if collection.one_of_each:
        # NVIDIA's manual numbers the launches of each kernel and, in this mode, of each shape. Older versions lack the
        # mode and take the first launch of each kernel. Not yet run on a GPU.
        by_shape = (
            _PER_SHAPE if ncu.knows(PER_LAUNCH_CONFIG_SINCE) else ("--launch-count", str(collection.max_launches))
        )
        return *by_shape, "--kernel-id", f"::{collection.kernel or ''}:1"
    return (
        *nvtx,
        *(("--kernel-name", collection.kernel) if collection.kernel else ()),
        *(("--launch-skip", str(collection.launch_skip)) if collection.launch_skip is not None else ()),
        *("--launch-count", str(collection.launch_count or collection.max_launches)),
        *(("--kill", "yes") if collection.kill else ()),
    )


def _counters(collection: Collection) -> tuple[str, ...]:
    if collection.nvidia_set is not None:
        return "--set", collection.nvidia_set
    names = tuple(dict.fromkeys((*collection.metrics, *collection.extra_metrics)))
    if not names and not collection.sections:
        raise UsageError("no counters to collect", "name some with --metrics, or take a tier with --detail")
    return (
        *(part for section in collection.sections for part in ("--section", section)),
        *(("--metrics", ",".join(names)) if names else ()),
    )


def further_options(given: str) -> tuple[str, ...]:
    """Split the user's options for ncu like a shell, and refuse options that rooflens sets.

    Raises:
        UsageError: A quote is not closed, rooflens sets an option itself, or an option keeps ncu from writing a report.
    """
    try:
        parts = tuple(shlex.split(given))
    except ValueError as error:
        raise UsageError(f"--ncu-args cannot be split: {error}", "quote its parts as for a shell") from error
    if parts and not parts[0].startswith("-"):
        raise UsageError(f"--ncu-args begins with `{parts[0]}`, which is not an ncu option", _EXAMPLE)
    for part in parts:
        if part.startswith("-"):
            _refuse(part.partition("=")[0])
    return parts


def _refuse(option: str) -> None:
    """Raise an error for an option that rooflens sets, or that keeps ncu from profiling, abbreviated or not."""
    long = _SHORT.get(option[:2], option) if not option.startswith("--") else option
    if long in _NO_PROFILES or long.startswith(_NO_PROFILES_BEGIN):
        raise UsageError(f"--ncu-args cannot contain `{option}`: ncu would write no report", _EXAMPLE)
    for name, ours in _OURS.items():
        if name == long or (len(long) >= _LEAST_OF_A_NAME and name.startswith(long)):
            hint = f"give {ours} to this command" if ours else "it is always set: leave it out"
            raise UsageError(f"--ncu-args cannot contain `{option}`: rooflens sets ncu's {name} itself", hint)
