"""Opcode mix of a card: what the executed instructions were for, and which they were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from rooflens import format as fmt
from rooflens.model.records import Kernel
from rooflens.model.roofline.opcodes import opcode_group
from rooflens.report.page.cards.bars import MIN_SHARE, Bar, Bars

MOST_GROUPS = 8
MOST_OPCODES = 4
"""Opcodes named a group, most frequent first."""


def opcode_mix(kernel: Kernel) -> tuple[str, Bars]:
    """Return what the shares are of, and the groups of opcodes by their share; no bars without an opcode table."""
    table, of = kernel.warp_opcodes, "executed warp instructions"
    if not table:
        table, of = kernel.thread_opcodes, "executed thread instructions"
    total = sum(table.values())
    if not total:
        return of, Bars(())
    groups = sorted(_grouped(table).items(), key=lambda item: -sum(item[1].values()))
    large = [group for group, counts in groups if sum(counts.values()) >= MIN_SHARE * total][:MOST_GROUPS]
    bars = tuple(_bar(group, counts, total) for group, counts in groups if group in large)
    return of, Bars(bars, tuple(group for group, _ in groups if group not in large))


def _grouped(table: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Add opcodes up without their modifiers, by what they are for."""
    groups: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for opcode, count in table.items():
        groups[opcode_group(opcode)][opcode.partition(".")[0]] += count
    return {group: dict(counts) for group, counts in groups.items()}


def _bar(group: str, counts: Mapping[str, int], total: int) -> Bar:
    by_count = sorted(counts.items(), key=lambda item: -item[1])
    named = [f"{opcode} {fmt.percent(count / total)}" for opcode, count in by_count[:MOST_OPCODES]]
    more = [f"{len(by_count) - MOST_OPCODES} more"] if len(by_count) > MOST_OPCODES else []
    return Bar(group, sum(counts.values()) / total, rate=", ".join([*named, *more]))
