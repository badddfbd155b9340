"""What the keys of the records are called on the page: levels, pipes, verdicts, stalls, flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.records import Bound

LEVEL_LABELS: Mapping[str, str] = {"dram": "HBM", "l2": "L2", "l1": "L1", "smem": "SMEM"}

BOUND_LABELS: Mapping[Bound, str] = {
    "memory": "memory-bound",
    "compute": "compute-bound",
    "latency": "latency-bound",
    "overhead": "overhead-bound",
    "balanced": "balanced",
    "unknown": "unknown",
}

PIPE_LABELS: Mapping[str, str] = {
    "alu": "ALU",
    "xu": "XU",
    "lsu": "LSU",
    "tex": "texture",
    "issue": "issue slots",
}

STALL_LABELS: Mapping[str, str] = {
    "barrier": "waits at a block barrier",
    "branch_resolving": "branch target being resolved",
    "dispatch_stall": "dispatch held back",
    "drain": "stores draining at exit",
    "imc_miss": "constant cache miss",
    "lg_throttle": "queue to local and global memory full",
    "long_scoreboard": "waits for global or local memory",
    "math_pipe_throttle": "math pipe busy",
    "membar": "memory fence",
    "mio_throttle": "memory input/output queue full",
    "misc": "other",
    "no_instruction": "instruction cache miss or jump",
    "not_selected": "ready, another warp was picked",
    "selected": "issuing",
    "short_scoreboard": "waits for shared memory or special functions",
    "sleeping": "asleep",
    "tex_throttle": "texture queue full",
    "wait": "fixed-latency dependency",
    "gmma": "waits for warpgroup matrix operations",
}

FLAG_LABELS: Mapping[str, str] = {
    "dram_writes_stay_in_l2": "Writes stay in L2 and are missing from the DRAM bytes, so the intensity at HBM flatters this kernel.",
}


def level_label(level: str) -> str:
    """Name a memory level as the page does."""
    return LEVEL_LABELS.get(level, level)


def pipe_label(pipe: str) -> str:
    """Name a pipe: `tensor_bf16` is `tensor bf16`, `fp32` is `FP32`."""
    known = PIPE_LABELS.get(pipe)
    if known:
        return known
    return pipe.upper() if pipe.startswith("fp") else pipe.replace("_", " ")


def resource_label(resource: str) -> str:
    """Name a level or a pipe."""
    return level_label(resource) if resource in LEVEL_LABELS else pipe_label(resource)


def stall_label(reason: str) -> str:
    """Say what a warp waits for; an unknown reason keeps NVIDIA's own word."""
    return STALL_LABELS.get(reason, reason.replace("_", " "))


def flag_label(flag: str) -> str:
    """Explain a flag in a sentence; one that is not in the table is shown by its name."""
    return FLAG_LABELS.get(flag, flag.replace("_", " "))
