"""How much of a program's run is in a report, and whether the report is of the GPU that the counters were for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.collect.command import profiles_whole
from rooflens.errors import EnvironmentMissingError, InputError, need_newer_python
from rooflens.model.counters.chips import FAMILIES
from rooflens.model.keys import function_of
from rooflens.model.knowledge.roles import waits_for_ranks
from rooflens.model.program.matching import place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rooflens.collect.plan import Plan
    from rooflens.collect.profile import Recording
    from rooflens.model.records import Kernel


@dataclass(frozen=True, slots=True)
class Covered:
    """How much of the program's run is in a report.

    Attributes:
        names: Names of the kernels that ran and are in the report.
        of: Names of the kernels that ran.
        time_share: Fraction of the kernels' time, 0 to 1; None if unknown.
        missing: Names that are not in the report, longest time first, without kernels that wait for other ranks.
    """

    names: int
    of: int
    time_share: float | None
    missing: tuple[str, ...]


def covered(recording: Recording) -> Covered | None:
    """Compare a report with the un-profiled run; None if that run named no kernels.

    If no reader is installed, the kernels' names come from ncu's log, without template arguments and cut if they are
    long. A report of ranges or whole graphs names no kernels.
    """
    whole = profiles_whole(recording.plan.collection)
    if whole or recording.unprofiled is None or not recording.unprofiled.launch_counts:
        return None
    counts = recording.unprofiled.launch_counts
    kernels, names = _read_kernels(recording.collected.report), recording.collected.names
    heads = tuple(name.removesuffix("...") for name in names if name.endswith("..."))
    lacking = {id(entry) for entry in place(kernels, recording.unprofiled)[1]} if kernels else set()
    times_ns: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for entry in counts:
        name = entry.name if kernels else function_of(entry.name)
        times_ns[name] += entry.summed_ns
        if id(entry) not in lacking if kernels else name in names or (heads and name.startswith(heads)):
            found[name] += entry.summed_ns
    total_ns = times_ns.total()
    share = found.total() / total_ns if kernels and total_ns else None
    missing = tuple(name for name, _ in times_ns.most_common() if name not in found and not waits_for_ranks(name))
    return Covered(len(found), len(times_ns), share, missing)


def other_gpu(plan: Plan, report: Path) -> str:
    """Say which GPU of a report has other counters than the chip that was planned for; empty if there is none."""
    kernels = _read_kernels(report)
    ran_on = {kernel.gpu: kernel.compute_capability for kernel in kernels if kernel.gpu and kernel.compute_capability}
    for name, capability in ran_on.items():
        families = [family for known, family in FAMILIES if known == capability]
        if families and not any(plan.chip in family for family in families):
            words = f"the kernels ran on {name} ({min(families[0])}), but the counters of {plan.chip} were asked for"
            return f"{words}: some are missing; --chip {min(families[0])} asks for the right ones"
    return ""


def _read_kernels(report: Path) -> Sequence[Kernel]:
    try:
        need_newer_python("reading reports")
        from rooflens.ingest.reports.read import ReadOptions, read_report  # noqa: PLC0415 - a bare GPU box may lack it

        return read_report(report, report.name, ReadOptions(reads_code=False)).kernels
    except (ImportError, EnvironmentMissingError, InputError):
        return ()
