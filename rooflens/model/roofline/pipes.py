"""Execution pipes of a kernel: the FLOP pipes, and those that bind kernels with few FLOPs.

Random-number, integer, hashing and exp-heavy kernels are limited by instruction issue or by the ALU, XU or LSU pipe; by
FLOP pipes alone they would look latency-bound.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflens.model.records import Kernel, Pipe, held_once, ratio
from rooflens.model.roofline.flops import Flops
from rooflens.model.roofline.roof import reported, roof
from rooflens.model.roofline.units import PIPE_ROWS

_ROWS = tuple((row.key, row.unit, row.shares, row.amount or "") for row in PIPE_ROWS)
"""The individual rows: every kernel passes through all of them."""


_SLOTS = frozenset({"issue", "lsu", "tex", "adu", "cbu", "uniform", "mio", "tmem"})
"""What an instruction passes on its way to the pipes that compute: alone, they leave the busiest open."""
_ALONE = frozenset({"tensor_pipe", "fp64_pipe", "fp16_pipe", *(row.key for row in PIPE_ROWS if row.part_of)})
"""Pipes that lists of a few counters hold: how busy the others are, they do not say."""
_SEVERAL = 2
_SCALED = " active / elapsed"
"""In the source of a share that was scaled from active cycles."""
_PASSES_APART = 0.01
"""Cycles of two passes of a kernel differ by as much."""


def are_pipes_seen(pipes: Mapping[str, Pipe]) -> bool:
    """Return whether enough pipes were measured to tell the busiest: operations over their peak measure one pipe."""
    seen = [pipe for name, pipe in pipes.items() if pipe.share is not None and name not in _SLOTS | _ALONE]
    is_arithmetic = any(pipe.is_arithmetic for pipe in seen)
    return sum(not pipe.is_arithmetic for pipe in seen) >= _SEVERAL or ("issue" in pipes and is_arithmetic)


def place_pipes(kernel: Kernel, flops: Flops) -> dict[str, Pipe]:
    """Place a kernel at every measured pipe: FLOP pipes by dtype, then the others.

    Of the shares of one of the others the largest counts, that of its amount over its peak among them. NVIDIA's per
    cent of the SM is that of the busiest: one that was scaled from active cycles, and comes as near, is that.
    """
    counters, sources, pipes = kernel.counters, kernel.counter_sources, {}
    busiest = counters.get("sol_compute", 0.0)
    for work in flops.work:
        per_s = kernel.per_s(work.ops)
        pipes[work.key] = Pipe(
            amount=held_once(work.ops),
            unit="FLOP" if work.is_float else "op",
            source=work.source,
            amount_per_s=held_once(per_s),
            roof=work.roof,
            share=held_once(ratio(per_s, work.peak_ops_per_s)),
        )
    for key, unit, names, amount_name in _ROWS:
        amount, share = counters.get(amount_name), None
        per_s = kernel.per_s(amount)
        for name in names:
            stored = counters.get(name)
            if stored is not None and (share is None or stored > share):
                is_busiest = abs(stored - busiest) <= _PASSES_APART * busiest and _SCALED in sources.get(name, "")
                share = busiest if is_busiest else stored
        own = reported(key, kernel)
        if per_s is not None and own is not None and (share is None or per_s / own.value > share):
            share = per_s / own.value
        if share is not None:
            pipes[key] = Pipe(amount, unit, "counter", per_s, own or roof(key, kernel), share)
    return pipes
