"""Profile one bundled kernel before the program starts, so that obstacles for ncu are reported at once."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.collect.command import REGEX, build_argv, names_kernels
from rooflens.collect.ranks import ONE_NCU
from rooflens.collect.run import check_place, collect
from rooflens.errors import EnvironmentMissingError, InputError, RooflensError, StoppedError
from rooflens.failures import NO_PERMISSION, PERMISSION_HINT
from rooflens.ingest.reports.unpacking import log_of
from rooflens.local_gpu import counters_are_open, may_administer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.collect.command import Collection
    from rooflens.collect.log import Progress
    from rooflens.collect.plan import Plan

_PROBE = Path(__file__).parent / "probe.py"
_PROBED = "rooflens_probe"
_IDLE = (sys.executable, "-IS", "-c", "")
"""A program that launches nothing."""
_NOT_STARTED = "one kernel was tried first, and the program was not started"
_TRIAL_SECONDS = 60.0
"""One kernel takes two seconds under ncu; waking the driver, or the counters of `deep`, may take longer."""

_tried: set[tuple[str, ...]] = set()
"""Command lines that already passed the trial in this process, without program and report."""


def check_machine(plan: Plan, on_progress: Callable[[Progress], None] = lambda _: None) -> tuple[str, ...]:
    """Look for obstacles before the program starts, and profile one kernel with the same options.

    Returns:
        Sentences about what went wrong but may be no obstacle.

    Raises:
        EnvironmentMissingError: This user may not read the counters, or ncu names an obstacle.
        InputError: The report cannot be written, or a metric or section is unknown to ncu.
        UsageError: The filter of kernels is not a valid expression.
        StoppedError: Ctrl-C, SIGTERM or SIGHUP.
    """
    if counters_are_open() is False and not may_administer():
        raise EnvironmentMissingError(NO_PERMISSION, PERMISSION_HINT)
    check_place(plan.collection.output)
    key = (plan.collection.replay_mode, *build_argv(plan.ncu, _trial(plan.collection, Path("trial.ncu-rep"))))
    said = () if key in _tried else _try(plan, on_progress)
    _tried.add(key)
    return said


def _try(plan: Plan, on_progress: Callable[[Progress], None]) -> tuple[str, ...]:
    """Profile one kernel; raise an error if ncu names the obstacle, return a sentence if only the trial failed.

    The probe always uses kernel replay: application replay would start it for each pass, and it has no range.
    Complaints about the mode come when ncu reads its command line, for which a program without launches suffices.
    """
    with TemporaryDirectory(prefix="rooflens-") as folder:
        output = Path(folder, plan.collection.output.name)
        if plan.collection.replay_mode != "kernel":
            idle = replace(plan.collection, program=_IDLE, output=output, environment={}, keep_log=False)
            _tried_out(plan, idle, on_progress)
        return _tried_out(plan, _trial(plan.collection, output), on_progress)


def _tried_out(plan: Plan, trial: Collection, on_progress: Callable[[Progress], None]) -> tuple[str, ...]:
    limit_s = min(_TRIAL_SECONDS, plan.limit.total_s or _TRIAL_SECONDS)
    start_s = time.monotonic()
    try:
        collect(plan.ncu, trial, limit_s, on_progress)
    except StoppedError:
        raise
    except RooflensError as error:
        if time.monotonic() - start_s >= limit_s:
            message = f"ncu did not profile one kernel of one thread within {limit_s:g} s"
            raise EnvironmentMissingError(message, f"see that `nvidia-smi` works; {_NOT_STARTED}") from error
        if isinstance(error, InputError) and not error.is_certain:
            return (f"one kernel could not be profiled on trial: {error}",)
        hint = error.hint.partition("; the report so far is kept")[0]
        if (log := log_of(trial.output)).exists():
            kept = log_of(plan.collection.output)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, kept)
            hint = hint.replace(str(log), str(kept))
        error.hint = f"{hint}; {_NOT_STARTED}"
        raise
    return ()


def _trial(collection: Collection, output: Path) -> Collection:
    """Return the collection of one bundled kernel with the same options, and an expression that must compile."""
    kernel = collection.kernel or ""
    in_step = any(part.startswith(ONE_NCU) for part in collection.options)
    return replace(
        collection,
        program=(sys.executable, "-IS", str(_PROBE)),
        output=output,
        kernel=f"{kernel}|^{_PROBED}$" if kernel.startswith(REGEX) else None,
        launch_skip=None,
        launch_count=1,
        nvtx_include=(),
        replay_mode="kernel",
        options=() if in_step or names_kernels(collection.options) else collection.options,
        from_start=True,
        environment={},
        kill=False,
        keep_log=False,
    )
