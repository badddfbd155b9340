"""Moves: what can help, chosen by the class and by the counters that made it so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import percent, significant
from rooflens.model.verdict.collecting import collect_command, not_profiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflens.model.records import Kernel
    from rooflens.model.verdict.thresholds import Thresholds

_MEMORY: dict[str, tuple[str, ...]] = {
    "dram": (
        "move fewer bytes: fuse with a neighbour so that intermediates stay on chip",
        "use a narrower type, or a larger batch where weights are re-read",
        "if it moves far more than its inputs and outputs, tile so that re-reads hit L2",
    ),
    "l2": (
        "tile into shared memory so that a block loads each byte once",
        "order the blocks for locality; share tiles over a cluster with TMA multicast",
    ),
    "l1": (
        "load wider and coalesced: vector loads, neighbouring threads on neighbouring addresses",
        "keep re-used values in registers or shared memory; copy tiles with cp.async or TMA",
    ),
    "lsu": ("load wider: one 16-byte access in place of four", "keep re-used values in registers"),
    "smem": (
        "re-use each loaded fragment more often in registers; load fragments with ldmatrix",
        "take larger tiles a warp, so that bytes per operation fall",
    ),
}
_FLOAT_PIPES = (
    "use a narrower type, or the tensor cores where the chip has them for it",
    "do fewer operations: algorithm before tuning",
)
_COMPUTE: dict[str, tuple[str, ...]] = {
    "tensor": (
        "overlap loads with matrix work: a deeper pipeline, warp specialisation, wgmma where the chip has it",
        "use a narrower type where accuracy allows",
    ),
    "fp32": _FLOAT_PIPES,
    "fp16": _FLOAT_PIPES,
    "fp64": ("replace divisions by multiplications", "use fp32 where accuracy allows"),
    "fma": ("strength-reduce index arithmetic: integer multiplications run on this pipe too", *_FLOAT_PIPES),
    "alu": (
        "strength-reduce index arithmetic and comparisons; hoist them out of the loop",
        "process several elements a thread, so that addresses are computed once",
    ),
    "xu": (
        "use exp2 in place of exp, share reciprocals, replace divisions and conversions",
        "compute part of the exponentials with a polynomial on the FMA pipe",
    ),
    "issue": (
        "issue fewer instructions: vector loads, unrolled loops, less index arithmetic",
        "let each thread do more work on data it already holds",
    ),
}
_ARITHMETIC = frozenset({"tensor", "fp32", "fp16", "fp64"})
"""Pipes whose work is the kernel's purpose: a full one is a good end. A full ALU or issue slot is not."""
_FUSED = frozenset({"fp32", "fp64", "fp16"})
_UNFUSED = 1.2
"""A pipe of multiply-adds alone is as busy as its FLOPs say; a fifth more means adds and multiplications apart."""
_AT_MEMORY_ROOF = "nothing left at this level: only moving fewer bytes helps now, such as fusing this kernel away"
_AT_COMPUTE_ROOF = "nothing left on this pipe: only fewer or narrower operations help now"


def memory_moves(kernel: Kernel, level: str | None, limits: Thresholds, *, at_roof: bool) -> tuple[str, ...]:
    """Choose the moves for a memory-bound kernel; `lsu` is L1 where load and store instructions fill its input."""
    if at_roof and level == "dram":
        return (_AT_MEMORY_ROOF, *_MEMORY["dram"][1:])
    return (
        *_memory_evidence(kernel, level, limits),
        *_MEMORY.get(level or "", ("cut traffic at the busiest memory unit",)),
    )


def _memory_evidence(kernel: Kernel, level: str | None, limits: Thresholds) -> Iterator[str]:
    """Put first the moves that the kernel's own counters ask for."""
    counters = kernel.counters
    sectors, requests = counters.get("global_load_sectors"), counters.get("global_load_requests")
    if level in {"dram", "l2", "l1"} and sectors and requests and sectors / requests > limits.sectors_per_request:
        yield f"coalesce: {significant(sectors / requests)} sectors a request, where the widest coalesced load has 16"
    delivered, replayed = counters.get("smem_bytes"), counters.get("smem_conflict_bytes")
    if level in {"smem", "l1"} and delivered and replayed and replayed / delivered > limits.conflict_share:
        yield f"pad or swizzle shared memory: {percent(replayed / delivered)} of its wavefronts are conflict replays"


def compute_moves(
    pipe: str | None, busy: float = 0.0, flop_share: float | None = None, *, at_roof: bool
) -> tuple[str, ...]:
    """Choose the moves for a kernel bound by a pipe.

    Args:
        pipe: Pipe or dtype that leads.
        busy: How full the pipe is, 0 to 1.
        flop_share: Its FLOPs over their peak, 0 to 1; None where the pipe has none.
        at_roof: The pipe is full.
    """
    key = "tensor" if pipe and pipe.startswith("tensor") else (pipe or "").removesuffix("_pipe")
    moves = _COMPUTE.get(key, ("issue fewer instructions to the busiest pipe",))
    if key in _FUSED and flop_share is not None and busy > _UNFUSED * flop_share:
        fuse = f"fuse adds and multiplications: the pipe is {percent(busy)} busy for {percent(flop_share)} of its FLOPs"
        return (fuse, *moves)
    return (_AT_COMPUTE_ROOF, *moves[-1:]) if at_roof and key in _ARITHMETIC else moves


def collect_moves(kernel: Kernel, command_line: str | None) -> tuple[str, ...]:
    """Return the one move when counters are missing: how to collect them, or why nobody can."""
    cannot = not_profiled(kernel)
    if cannot:
        return (f"this report lacks counters, and {cannot}",)
    return (f"collect what this report lacks: `{collect_command(kernel, command_line)}`",)


def failed_moves(kernel: Kernel, command_line: str | None) -> tuple[str, ...]:
    """Return the moves when profiling a kernel failed."""
    again = not_profiled(kernel) or f"profile it again, alone: `{collect_command(kernel, command_line)}`"
    return (again, "kernels that wait for one another need `--replay-mode application`")
