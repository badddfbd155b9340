"""A rule of the findings reads the facts of a kernel and returns what it found, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.model.findings.cost import Waste, speedup, weigh
from rooflens.model.records import Confidence, Evidence, Kernel, Limiter, MoveKind, Place, Severity
from rooflens.model.verdict.facts import Facts


class FindingDraft(Struct, frozen=True):
    """What a rule found.

    Attributes:
        bears_on: Levels and pipes that this waste keeps busy, and `LATENCY` if it makes warps wait: it limits a
            kernel that one of them bounds.
        gain: How much faster the kernel would be without this waste, as a factor; None if that cannot be modelled.
        whole: How much faster it would be without the whole wait, by which it is judged; None to judge by `gain`.
        changes: What the move changes that the limit keeps, as in `Gain.changes`.
        severity: If the rule knows better than `bears_on` tells; None otherwise.
        kind: Kind of the move, if it differs from the rule's own.
        waste: What it keeps busy in vain; where `bears_on`, `gain` and `severity` are not given it tells them.
        limiters: As in `Finding`.
    """

    evidence: tuple[Evidence, ...]
    move: str
    bears_on: frozenset[str] = field(default_factory=frozenset)
    gain: float | None = None
    whole: float | None = None
    changes: str | None = None
    where: tuple[Place, ...] = ()
    confidence: Confidence = "high"
    severity: Severity | None = None
    kind: MoveKind | None = None
    waste: Waste | None = None
    limiters: tuple[Limiter, ...] = ()


def weighed(facts: Facts, draft: FindingDraft) -> FindingDraft:
    """Fill in what the waste tells: what it bears on, what its removal wins, and how much it matters."""
    waste = draft.waste
    if waste is None:
        return draft
    return replace(
        draft,
        bears_on=draft.bears_on or waste.bears_on,
        gain=speedup(facts, waste) if draft.gain is None else draft.gain,
        severity=draft.severity or weigh(facts, waste),
    )


class FindingRule(Struct, frozen=True):
    """One row of the table of findings; `model/knowledge/findings/ID.toml` says what it means.

    Attributes:
        title: A few words for people: `uncoalesced global loads`.
        kind: What its move changes, in one word.
        find: Returns None if the waste is absent or cannot be measured.
        needs: Groups of counters or other names of `OTHERS`: with all of any one group it can tell.
        hints: Groups of the same with which it may say that the waste is there, and never that it is not.
    """

    id: str
    title: str
    kind: MoveKind
    find: Callable[[Facts], FindingDraft | None]
    needs: tuple[tuple[str, ...], ...]
    hints: tuple[tuple[str, ...], ...] = ()

    def can_tell(self, held: Collection[str]) -> bool:
        """Return whether the available counters, as `held_of` names them, suffice for this rule."""
        return any(all(need in held for need in group) for group in self.needs)

    def may_tell(self, held: Collection[str]) -> bool:
        """Return whether they suffice at least for the rule to find something."""
        return self.can_tell(held) or any(all(need in held for need in group) for group in self.hints)


CODE = "code:"
"""Prefix of what is counted by instruction, in `FindingRule.needs`: a measure of the hot spots."""
IN_PROGRAM = "in_program"
"""Among the needs: a trace of the program without the profiler."""
OTHERS = ("thread_opcodes", "warp_opcodes", "stalls", "series", "block_size", IN_PROGRAM)
"""What else findings need; the size of a block is known from its shape as well as from its counter."""

Holdings: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[bool, ...]]
"""The data of a kernel: its counters, its measures by instruction, and which of the rest it has."""


def holdings_of(kernel: Kernel, *, traced: bool) -> Holdings:
    """Return which data a kernel has, `traced` with its program; many kernels share the same set."""
    opcodes, samples = (
        (bool(kernel.thread_opcodes), bool(kernel.warp_opcodes)),
        (bool(kernel.stalls), bool(kernel.series)),
    )
    return tuple(kernel.counters), tuple(kernel.code_totals), (*opcodes, *samples, bool(kernel.block), traced)


def held_of(holdings: Holdings) -> frozenset[str]:
    """Name the available data in the terms of `FindingRule.needs`."""
    counters, by_instruction, rest = holdings
    others = (name for name, is_held in zip(OTHERS, rest, strict=True) if is_held)
    return frozenset({*counters, *(f"{CODE}{measure}" for measure in by_instruction), *others})
