"""Count a Python program's kernels without ncu and nsys: PyTorch's own profiler traces it.

Tracing slows the host, so the trace cannot show gaps, only which kernels were launched, how often and for how long.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.collect.unprofiled import run_program
from rooflens.errors import EnvironmentMissingError, ProgramError
from rooflens.ingest.timelines.kernel_events import is_kernel, kernel_of
from rooflens.model.keys import bare_name
from rooflens.model.unprofiled import LaunchCount, Shape
from rooflens.processes import query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.collect.log import Progress

_RUNNER = Path(__file__).with_name("under_torch.py")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_VALUED = {"-W", "-X", "--check-hash-based-pycs"}
"""Options of Python that take a value; `-m` and `-c` end its options."""
_PYTHON_FLAGS = re.compile(r"-(?P<flags>[A-VY-Za-z?]*)(?P<kind>[cm])")
_HAS_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
_MOST_TRACE_BYTES = 1 << 30
"""Larger traces take more memory to read than the answer is worth."""


def split_python(command: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Split a Python command before its script, `-m` or `-c`; None if it is no Python command."""
    if not command or not _PYTHON.fullmatch(Path(command[0]).name):
        return None
    at = 1
    while at < len(command) and command[at].startswith("-") and not _PYTHON_FLAGS.fullmatch(command[at]):
        at += 2 if command[at] in _VALUED else 1
    if at >= len(command):
        return None
    before, after = tuple(command[:at]), tuple(command[at:])
    if (grouped := _PYTHON_FLAGS.fullmatch(after[0])) and grouped["flags"]:  # `-Sc` is `-S -c`
        return (*before, f"-{grouped['flags']}"), (f"-{grouped['kind']}", *after[1:])
    return before, after


def count_launches(
    program: Sequence[str], timeout_s: float | None, on_progress: Callable[[Progress], None]
) -> tuple[LaunchCount, ...] | None:
    """Run a program under PyTorch's profiler; empty if it shows no kernels, None if the program cannot run that way.

    Raises:
        StoppedError: Ctrl-C or a like signal.
    """
    parts = split_python(program)
    if parts is None or query((*parts[0], "-c", _HAS_TORCH)) is None:
        return None
    with TemporaryDirectory(prefix="rooflens-") as folder:
        trace = Path(folder, "trace.json")
        try:
            argv = (*parts[0], str(_RUNNER), str(trace), *parts[1])
            run_program(argv, timeout_s, on_progress, "tracing")
        except (ProgramError, EnvironmentMissingError):
            return ()
        return read_counts(trace)


def read_counts(trace: Path) -> tuple[LaunchCount, ...]:
    """Count the launches in a trace of PyTorch's profiler; empty if it has none."""
    try:
        if trace.stat().st_size > _MOST_TRACE_BYTES:
            return ()
        events = json.loads(trace.read_bytes())["traceEvents"]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    kernels = (kernel_of(event) for event in events if isinstance(event, dict) and is_kernel(event))
    times_ns: defaultdict[tuple[str, Shape, Shape], list[int]] = defaultdict(list)
    for kernel in kernels:
        if kernel is not None and kernel.grid and kernel.block:
            times_ns[bare_name(kernel.name), kernel.grid, kernel.block].append(kernel.duration_ns)
    counts = (
        LaunchCount(*launched, len(times), round(median(times)), total_ns=sum(times))
        for launched, times in times_ns.items()
    )
    return tuple(sorted(counts, key=lambda entry: (-entry.count, entry.name)))
