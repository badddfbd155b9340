"""The busiest resource of each side: which memory level and which pipe lead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.model.roofline.pipes import PIPE_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.records import Kernel, Level, Pipe
    from rooflens.model.verdict.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class Leader:
    """The busiest resource of one side; `resource` is None when only NVIDIA's summary per cent is known."""

    resource: str | None
    share: float


@dataclass(frozen=True, slots=True)
class Case:
    """Everything a verdict is reached from.

    Attributes:
        gap_share: Part of the wall time without any kernel, from an un-profiled run; None where there was none.
    """

    kernel: Kernel
    levels: Mapping[str, Level]
    pipes: Mapping[str, Pipe]
    flags: tuple[str, ...]
    limits: Thresholds
    gap_share: float | None = None


def memory_leader(case: Case) -> Leader | None:
    """Find the busiest memory level; L1's data stage counts as shared memory where that makes up most of it.

    A report that shows neither L1 nor L2 may hide the busiest unit: then NVIDIA's memory per cent stands for the side
    where it is higher.
    """
    shares = {name: level.share for name, level in case.levels.items() if level.share is not None}
    sol = case.kernel.counters.get("sol_memory")
    name = max(shares, key=lambda level: shares[level], default=None)
    if sol is not None and not shares.keys() & {"l1", "l2"} and sol > shares.get(name or "", 0.0):
        return Leader(None, sol)
    if name is None:
        return None
    if name == "l1" and _is_shared_memory(case, shares):
        return Leader("smem", shares["l1"])
    return Leader(name, shares[name])


def _is_shared_memory(case: Case, shares: Mapping[str, float]) -> bool:
    """Tell whether most of the LSU's wavefronts are shared-memory ones, where a stage that serves both leads."""
    stages = case.levels["l1"].stages
    leading = max(stages, key=lambda stage: stages[stage], default="data")
    wavefronts = stages.get("data", shares["l1"])
    return leading in {"data", "writeback"} and shares.get("smem", 0.0) > case.limits.smem_part_of_l1 * wavefronts


def compute_leader(case: Case) -> Leader | None:
    """Find the busiest pipe; a busy pipe is named after the work that explains it.

    CUDA-core fp16 counts are an upper bound and never lead by themselves.
    """
    shares = {key: pipe.share for key, pipe in case.pipes.items() if pipe.share is not None and key != "fp16"}
    sol = case.kernel.counters.get("sol_compute")
    if sol is not None and "issue" not in shares and sol > max(shares.values(), default=0.0):
        return Leader(None, sol)
    if not shares:
        return None
    key = max(shares, key=lambda pipe: shares[pipe])
    return Leader(_explained(case, key, shares[key]), shares[key])


def attained_share(case: Case, leader: Leader) -> float | None:
    """Return what the leader's resource does of its attainable roof; None where that is not known.

    L2's is that of the path back to the SMs, so only what comes back counts.
    """
    level, pipe = case.levels.get(leader.resource or ""), case.pipes.get(leader.resource or "")
    one = level or pipe
    if one is None or not one.attainable_per_s:
        return None
    per_s = level.bytes_per_s if level else pipe.amount_per_s if pipe else None
    if leader.resource == "l2":
        returned, duration_ns = case.kernel.counters.get("l2_return_bytes"), case.kernel.duration_ns
        per_s = returned / duration_ns * 1e9 if returned is not None and duration_ns else None
    return None if per_s is None else per_s / one.attainable_per_s


def _explained(case: Case, key: str, busy: float) -> str:
    runs = next((row.runs for row in PIPE_ROWS if row.key == key), ())
    works = {
        name: pipe.share
        for name, pipe in case.pipes.items()
        if pipe.share is not None
        and (name in runs or ("tensor_*" in runs and name.startswith("tensor_") and name != key))
    }
    name = max(works, key=lambda work: works[work], default=key)
    return name if works.get(name, 0.0) >= case.limits.pipe_explained * busy else key
