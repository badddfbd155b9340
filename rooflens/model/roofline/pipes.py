"""Execution pipes of a kernel: the FLOP pipes, and those that bind kernels with few FLOPs.

Random-number, integer, hashing and exp-heavy kernels are limited by instruction issue or by the ALU, XU or LSU pipe; by
FLOP pipes alone they would look latency-bound.
"""

from __future__ import annotations

from msgspec import Struct

from rooflens.model.records import Kernel, Pipe, held_once, ratio
from rooflens.model.roofline.flops import Flops


class PipeRow(Struct, frozen=True):
    """One non-FLOP view of the execution units.

    Attributes:
        key: Name in `Analysis.pipes`.
        label: What people call it.
        unit: `inst` for instruction slots, `cycle` for busy cycles.
        shares: Counters of its use; the largest counts.
        runs: Dtype keys whose work runs on this pipe: a busy pipe is named after the work that explains it.
    """

    key: str
    label: str
    unit: str
    shares: tuple[str, ...]
    amount: str | None = None
    peak: str | None = None
    runs: tuple[str, ...] = ()


def _instruction_pipe(key: str, label: str, *shares: str) -> PipeRow:
    """Make the row of a pipe that `pipe_rows` of the counters counts."""
    return PipeRow(key, label, "inst", (f"{key}_share", *shares), f"{key}_inst", f"{key}_peak_inst_per_s")


PIPE_ROWS: tuple[PipeRow, ...] = (
    PipeRow("issue", "instruction issue", "inst", ("issue_share",), "issued_inst", "issue_peak_inst_per_s"),
    _instruction_pipe("alu", "ALU pipe", "alu_busy_share", "alu_heavy_busy_share"),
    _instruction_pipe("xu", "XU pipe"),
    _instruction_pipe("lsu", "LSU pipe"),
    _instruction_pipe("tex", "texture pipe"),
    _instruction_pipe("adu", "address divergence unit"),
    _instruction_pipe("cbu", "branch unit"),
    _instruction_pipe("uniform", "uniform data path"),
    PipeRow("mio", "memory instruction queue", "inst", ("mio_share", "mio_return_share")),
    PipeRow("fma", "FMA pipe", "cycle", ("fma_busy_share", "fma_heavy_busy_share"), runs=("fp32", "fp16")),
    PipeRow("fp64_pipe", "FP64 pipe", "cycle", ("fp64_busy_share",), runs=("fp64", "tensor_fp64")),
    PipeRow("fp16_pipe", "FP16 pipe", "cycle", ("fp16_busy_share",), runs=("fp16",)),
    PipeRow(
        "tensor_pipe", "tensor pipe", "cycle", ("tensor_busy_share", "tensor_float_busy_share"), runs=("tensor_*",)
    ),
)


_ROWS = tuple((row.key, row.unit, row.shares, row.amount or "", row.peak or "") for row in PIPE_ROWS)
"""The individual rows: every kernel passes through all of them."""


def place_pipes(kernel: Kernel, flops: Flops) -> dict[str, Pipe]:
    """Place a kernel at every measured pipe: FLOP pipes by dtype, then the others.

    Of the shares of one of the others the largest counts, that of its amount over its peak among them.
    """
    counters, pipes = kernel.counters, {}
    for work in flops.work:
        per_s = kernel.per_s(work.ops)
        pipes[work.key] = Pipe(
            amount=held_once(work.ops),
            unit="FLOP" if work.is_float else "op",
            source=work.source,
            amount_per_s=held_once(per_s),
            peak_per_s=work.peak_ops_per_s,
            share=held_once(ratio(per_s, work.peak_ops_per_s)),
            peak_source=work.peak_source,
        )
    for key, unit, names, amount_name, peak_name in _ROWS:
        amount, peak, share = counters.get(amount_name), counters.get(peak_name), None
        per_s = kernel.per_s(amount)
        for name in names:
            stored = counters.get(name)
            if stored is not None and (share is None or stored > share):
                share = stored
        if per_s is not None and peak and (share is None or per_s / peak > share):
            share = per_s / peak
        if share is not None:
            pipes[key] = Pipe(amount, unit, "counter", per_s, peak, share, "report" if peak else None)
    return pipes
