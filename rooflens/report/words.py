"""What the keys of the records are called on the page: levels, pipes, verdicts, stalls, flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.flags import MEANINGS

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
    "adu": "ADU",
    "alu": "ALU",
    "busiest": "busiest unit",
    "cbu": "CBU",
    "fma": "FMA pipe",
    "fp16_pipe": "FP16 pipe",
    "fp64_pipe": "FP64 pipe",
    "issue": "issue slots",
    "lsu": "LSU",
    "mio": "MIO queue",
    "tensor_pipe": "tensor pipe",
    "tex": "texture",
    "uniform": "uniform",
    "xu": "XU",
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
    "no_instructions": "instruction cache miss or jump",
    "not_selected": "ready, another warp was picked",
    "selected": "issuing",
    "short_scoreboard": "waits for shared memory or special functions",
    "sleeping": "asleep",
    "tex_throttle": "texture queue full",
    "wait": "fixed-latency dependency",
    "gmma": "waits for warpgroup matrix operations",
}


FLOP_SOURCE_LABELS: Mapping[str, str] = {
    "opcode": "executed opcodes of the report's SASS table",
    "tensor_ops": "NVIDIA's tensor operation counters",
    "sass": "NVIDIA's SASS instruction counters",
    "estimated": "estimated from pipe activity",
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
    """Explain a flag in the model's sentence; one that it does not know is shown by its name."""
    return MEANINGS.get(flag, flag.replace("_", " "))
