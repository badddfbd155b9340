"""Whether a kernel is done: it is at a roof that only another algorithm, or a narrower type, gets past.

DRAM is one, where no byte is known to be moved in vain, and so is the pipe that does the kernel's arithmetic. L1, L2,
instruction issue and load/store slots are none: authors of kernels that filled them to 91 to 98 % made these up to 7.7
times faster, by asking less of the unit.
"""

from __future__ import annotations

from collections.abc import Iterable

from rooflens.format import percent
from rooflens.model.records import Finding, ratio
from rooflens.model.roofline.flops import has_newer_instruction
from rooflens.model.roofline.roof import dram_clock_part
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.nvidia_rules import read_nvidia

NEEDLESS_BYTES = frozenset(
    {
        "uncoalesced_global_load",
        "uncoalesced_global_store",
        "local_memory",
        "low_reuse",
        "passed_through_global",
        "thread_divergence",
        "partial_warps",
    }
)
"""Findings of bytes that the work could do without, or of warps that move them for fewer threads than they hold."""


def done_words(facts: Facts, findings: Iterable[Finding]) -> str:
    """Say which roof a finished kernel is at, `93 % of HBM3`; empty while there is something left to win.

    Args:
        facts: The decided kernel.
        findings: All of its findings.
    """
    if facts.kernel.failed:
        return ""
    return _at_arithmetic(facts) or _at_dram(facts, {one.id for one in findings if one.severity != "note"})


def _at_dram(facts: Facts, costing: set[str]) -> str:
    level, share = facts.levels["dram"], facts.shares.get("dram")
    if share is None and facts.memory is not None and facts.memory.resource == "dram":
        share = facts.memory.share
    if share is None or costing & NEEDLESS_BYTES:
        return ""
    limits = facts.limits
    full = share * dram_clock_part(facts.kernel) / limits.best_copy_share
    reached = ratio(level.bytes_per_s, level.attainable_per_s) or full
    return f"{percent(share)} of {resource_label('dram', facts.kernel.gpu)}" if reached >= limits.done_share else ""


def _at_arithmetic(facts: Facts) -> str:
    """Say of which pipe's peak the kernel's arithmetic is so much that nothing is left; empty if of none."""
    kernel, least = facts.kernel, facts.limits.done_share
    tensor = facts.tensor_use
    # Warp-wide mma fills the pipe at a part of the rate that wgmma and tcgen05 reach.
    if tensor is not None and tensor >= least and not has_newer_instruction(kernel):
        return f"{percent(tensor)} of the tensor pipe"
    counted = {one.key: share for one in facts.flops.work if (share := _share_of(facts, one.key)) is not None}
    nvidia = read_nvidia(kernel.rules)
    said = (("fp32", nvidia.fp32_pct_of_peak), ("fp64", nvidia.fp64_pct_of_peak))
    shares = {**{name: per_cent / 100 for name, per_cent in said if per_cent is not None}, **counted}
    key, most = max(shares.items(), key=lambda item: item[1], default=("", 0.0))
    if most < least:
        return ""
    return f"{percent(most)} of the {key.removeprefix('tensor_').partition('_')[0]} peak"


def _share_of(facts: Facts, key: str) -> float | None:
    pipe = facts.pipes.get(key)
    return pipe.share if pipe is not None and pipe.is_arithmetic and pipe.source != "estimated" else None
