"""Estimate the cost of a collection: launches x passes x time, and which of these are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.collect.command import profiles_whole
from rooflens.errors import EnvironmentMissingError, UsageError
from rooflens.format import duration
from rooflens.model.knowledge.roles import waits_for_ranks

if TYPE_CHECKING:
    from rooflens.collect.plan import Plan
    from rooflens.model.unprofiled import Unprofiled


def estimate_cost(plan: Plan, unprofiled: Unprofiled | None) -> str:
    """Say what the collection will cost: launches x passes x time + saved memory, and which of these are unknown."""
    collection = plan.collection
    whole = profiles_whole(collection)
    most, which = collection.launch_count or collection.max_launches, whole or "launches"
    if collection.one_of_each:
        which = "distinct launches"
    launches = kernel_ns = None
    if unprofiled is not None and unprofiled.launches and not whole:
        launches = unprofiled.launches // unprofiled.iterations
        distinct = sum(not waits_for_ranks(entry.name) for entry in unprofiled.launch_counts)
        most = min(distinct if collection.one_of_each else launches, most)
        timed_ns = sum(entry.summed_ns for entry in unprofiled.launch_counts)
        kernel_ns = (unprofiled.kernel_ns or timed_ns) // unprofiled.iterations or None
    passes = _passes(plan.chip, collection.metrics)
    counted = f"at most {most} {which}{' (how many is not known)' if launches is None else ''}"
    times = "passes (not counted)"
    if passes is not None:
        times = f"{passes} pass{'' if passes == 1 else 'es'} (ncu adds 1 to 3)"
    each = "the kernels' time (not known)"
    if kernel_ns is not None and launches:
        each = f"{duration(kernel_ns / launches)} each"
        each += "" if passes is None else f" = {duration(kernel_ns / launches * most * passes)}"
    saved = "; the program is run again for each pass, nothing is saved"
    if collection.replay_mode in {"kernel", "range"}:
        saved = " + saving and restoring what the kernels write, for each pass (how much is not known)"
    return f"estimate: {counted} x {times} x {each}{saved}"


def _passes(chip: str, metrics: tuple[str, ...]) -> int | None:
    """Count the hardware passes if NVIDIA's scheduler is installed; a bare GPU machine may lack it."""
    from rooflens.collect.passes import count_passes  # noqa: PLC0415 - loads NVIDIA's library

    try:
        return count_passes(chip, metrics).hardware_passes
    except (EnvironmentMissingError, UsageError):
        return None
