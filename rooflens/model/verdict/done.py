"""Whether a kernel is done: it is at a roof that only another algorithm, or a narrower type, gets past.

DRAM is one, where no byte is known to be moved in vain, and so is the pipe that does the kernel's arithmetic. L1, L2,
instruction issue and load/store slots are none: authors of kernels that filled them to 91 to 98 % made these up to 7.7
times faster, by asking less of the unit.
"""

from __future__ import annotations

from collections.abc import Iterable

from rooflens.model.records import Bottleneck, Finding, ratio
from rooflens.model.roofline.flops import has_newer_instruction
from rooflens.model.roofline.roof import dram_clock_part
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.nvidia_rules import read_nvidia

NEEDLESS_BYTES = frozenset(
    {
        "uncoalesced_global_load",
        "uncoalesced_global_store",
        "local_memory",
        "low_reuse",
        "passed_through_global",
        "read_twice",
        "thread_divergence",
        "partial_warps",
    }
)
"""Findings of bytes that the work could do without, or of warps that move them for fewer threads than they hold."""


def roof_reached(facts: Facts, findings: Iterable[Finding]) -> Bottleneck | None:
    """Return the roof that a finished kernel is at: DRAM or a pipe; None while there is something left to win.

    Args:
        facts: The decided kernel.
        findings: All of its findings.
    """
    if facts.kernel.failed:
        return None
    return _at_arithmetic(facts) or _at_dram(facts, {one.id for one in findings if one.severity != "note"})


def moves_once(facts: Facts) -> bool:
    """Return whether bytes are known to cross DRAM once: L2 serves next to none again, and the code has no second pass.

    What misses every cache both times looks like other data: only machine code tells it apart.
    """
    inside, counter = facts.kernel.inside, facts.counter
    asked, moved = counter("l2_bytes"), counter("dram_bytes")
    is_read = inside is not None and not inside.note and bool(inside.loops)
    return is_read and asked is not None and bool(moved) and asked <= (1 + facts.limits.little_share) * (moved or 0.0)


def _at_dram(facts: Facts, costing: set[str]) -> Bottleneck | None:
    level, share = facts.levels["dram"], facts.shares.get("dram")
    if share is None and facts.memory is not None and facts.memory.resource == "dram":
        share = facts.memory.share
    if share is None or costing & NEEDLESS_BYTES:
        return None
    limits = facts.limits
    full = share * dram_clock_part(facts.kernel) / limits.best_copy_share
    reached = ratio(level.bytes_per_s, level.attainable_per_s) or full
    return Bottleneck("dram", share) if reached >= limits.done_share else None


def _at_arithmetic(facts: Facts) -> Bottleneck | None:
    """Return the pipe whose peak the kernel's arithmetic reaches so far that nothing is left."""
    kernel, least = facts.kernel, facts.limits.done_share
    tensor = facts.tensor_use
    # Warp-wide mma fills the pipe at a part of the rate that wgmma and tcgen05 reach.
    if tensor is not None and tensor >= least and not has_newer_instruction(kernel):
        return Bottleneck("tensor_pipe", tensor)
    counted = {one.key: share for one in facts.flops.work if (share := _share_of(facts, one.key)) is not None}
    nvidia = read_nvidia(kernel.rules)
    said = (("fp32", nvidia.fp32_pct_of_peak), ("fp64", nvidia.fp64_pct_of_peak))
    shares = {**{name: per_cent / 100 for name, per_cent in said if per_cent is not None}, **counted}
    key, most = max(shares.items(), key=lambda item: item[1], default=("", 0.0))
    return Bottleneck(key, most) if most >= least else None


def _share_of(facts: Facts, key: str) -> float | None:
    pipe = facts.pipes.get(key)
    return pipe.share if pipe is not None and pipe.is_arithmetic and pipe.source != "estimated" else None
