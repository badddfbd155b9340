"""What the keys of the records are called on the page: levels, pipes, verdicts, stalls, flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.counters.balance import STALLS
from rooflens.model.verdict.flags import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.records import Bound

BOUND_LABELS: Mapping[Bound, str] = {
    "memory": "memory-bound",
    "compute": "compute-bound",
    "latency": "latency-bound",
    "overhead": "overhead-bound",
    "balanced": "balanced",
    "unknown": "unknown",
}

_ISSUING = {"selected": "issuing"}
"""Warp states that are no stall."""


def stall_label(reason: str) -> str:
    """Say what a warp waits for; an unknown reason keeps NVIDIA's own word."""
    return STALLS.get(reason) or _ISSUING.get(reason, reason.replace("_", " "))


def flag_name(flag: str) -> str:
    """Say a flag in its few short words."""
    return flag.replace("_", " ")


def flag_label(flag: str) -> str:
    """Explain a flag in the model's sentence; one that it does not know is shown by its name."""
    return MEANINGS.get(flag, flag_name(flag))
