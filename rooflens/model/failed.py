"""Kernels that could not be analyzed: why, and which data they keep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.model.records import NO_VALUES, Kernel

ALL_NAN = "profiling this kernel failed, every counter is NaN"
BUG_HINT = "this is a bug in rooflens, which affects no other report: please report it with the file"
MEMORY_HINT = "read it on a machine with more memory, or profile fewer kernels into one report"
_BUG = "rooflens failed on it"


def failed_kernel(kernel: Kernel, why: str) -> Kernel:
    """Return a kernel as a failed one: its identity stays, its numbers go, as one that is wrong casts doubt on all."""
    return replace(unmeasured(kernel), status="failed", status_reason=why)


def unmeasured(kernel: Kernel, counters: Mapping[str, float] = NO_VALUES) -> Kernel:
    """Keep the identity of a kernel, and of its measurements only those given."""
    return replace(
        kernel,
        counters=counters,
        counter_sources=NO_VALUES,
        thread_opcodes=NO_VALUES,
        warp_opcodes=NO_VALUES,
        tensor_ops=NO_VALUES,
        tensor_peaks_per_s=NO_VALUES,
        stalls=NO_VALUES,
        rules=(),
        hotspots=(),
        code_totals=NO_VALUES,
        series=None,
    )


def bug_reason(error: Exception) -> str:
    """Say that a kernel, or a report, met a bug in rooflens, and where, or had too little memory."""
    if isinstance(error, MemoryError):
        return f"{_BUG}: it needs more memory than there is"
    return f"{_BUG}: {bug_place(error)}: {error} (a bug in rooflens: please report it)"


def bug_error(error: Exception) -> InputError:
    """Return the error to show for a report that met a bug in rooflens."""
    return InputError(bug_reason(error), MEMORY_HINT if isinstance(error, MemoryError) else BUG_HINT)


def is_bug(kernel: Kernel) -> bool:
    """Return whether a kernel failed because of a bug in rooflens."""
    return (kernel.status_reason or "").startswith(_BUG)


def failure_words(kernel: Kernel) -> str:
    """Say in two words how a kernel failed."""
    if kernel.status_reason in {None, ALL_NAN}:
        return "profiling failed"
    return "rooflens failed" if is_bug(kernel) else "impossible value"


def bug_place(error: Exception) -> str:
    """Name an exception and the line that raised it."""
    import traceback  # noqa: PLC0415 - only where something failed

    place = next(reversed(traceback.extract_tb(error.__traceback__)), None)
    where = f"{Path(place.filename).name}:{place.lineno}" if place else "an unknown place"
    return f"{type(error).__name__} at {where}"
