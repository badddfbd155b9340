"""What findings need: the tier that collects it, and what a report lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from rooflens.model.counters.chips import PM_SAMPLED
from rooflens.model.counters.metric import DETAILS, Detail, Metric
from rooflens.model.counters.recipes import Exact, Quotient, Recipe, bases_of
from rooflens.model.counters.table import COUNTERS
from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import CODE, IN_PROGRAM, FindingRule, held_of, holdings_of
from rooflens.model.hotspots import STORED_AS
from rooflens.model.records import Kernel

_ASKED_AS: Mapping[str, tuple[str, ...]] = {
    "thread_opcodes": ("sass__thread_inst_executed_true_per_opcode_with_modifier_all",),
    "warp_opcodes": ("sass__inst_executed_per_opcode_with_modifier_all",),
    "stalls": STORED_AS["samples"],
}
_RECIPES: Mapping[str, tuple[Recipe, ...]] = {row.name: row.recipes for row in COUNTERS}
_UNASKED = ("launch__", "device__")
"""What ncu stores of every kernel, whatever it is asked for."""

Group = tuple[str, ...]
"""Names that tell a finding together."""


def tier_of(group: Iterable[str], metrics: Sequence[Metric], chip: str) -> Detail | None:
    """Return the tier from which on all names of a group are collected on a chip; None where none collects them.

    Args:
        group: Names of one group of `FindingRule.needs`.
        metrics: What the widest tier asks for on the chip.
        chip: The chip, as `gh100`.
    """
    asked = {metric.name: DETAILS.index(metric.detail) for metric in metrics}
    tiers = [_tier(need, asked, chip) for need in group]
    known = [tier for tier in tiers if tier is not None]
    return DETAILS[max(known)] if known and len(known) == len(tiers) else None


def lacking(rule: FindingRule, kernel: Kernel, *, traced: bool) -> tuple[Group, ...]:
    """Return what a kernel's report would have to hold besides: one group for each way; empty if it has enough.

    Args:
        rule: A finding.
        kernel: A kernel of the report.
        traced: The program was traced without the profiler as well.
    """
    return _lacking(rule, held_of(holdings_of(kernel, traced=traced)))


def _lacking(rule: FindingRule, held: Collection[str]) -> tuple[Group, ...]:
    if rule.can_tell(held):
        return ()
    return tuple(tuple(need for need in group if need not in held) for group in rule.needs)


class Untold(Struct, frozen=True):
    """A finding that kernels of a report cannot have, whatever they do.

    Attributes:
        ways: What the first of these kernels lacks: one group for each way in which it could be told.
        kernel_count: How many kernels these are.
    """

    rule: FindingRule
    ways: tuple[Group, ...]
    kernel_count: int


def untold(kernels: Collection[Kernel], *, traced: bool) -> tuple[Untold, ...]:
    """Return the findings that some of a report's kernels cannot have, in the order of the table."""
    found = []
    held = [held_of(holdings_of(kernel, traced=traced)) for kernel in kernels]
    for rule in RULES:
        lacks = [ways for names in held if (ways := _lacking(rule, names))]
        if lacks:
            found.append(Untold(rule, lacks[0], len(lacks)))
    return tuple(found)


def _tier(need: str, asked: Mapping[str, int], chip: str) -> int | None:
    if need == IN_PROGRAM:
        return 0
    if need == "series":
        return DETAILS.index("deep") if chip in PM_SAMPLED else None
    stored = STORED_AS[need.removeprefix(CODE)] if need.startswith(CODE) else _ASKED_AS.get(need)
    if stored is not None:
        return max(asked[name] for name in stored) if all(name in asked for name in stored) else None
    tiers = [tier for recipe in _RECIPES[need] if (tier := _tier_of_recipe(recipe, asked)) is not None]
    return min(tiers, default=None)


def _tier_of_recipe(recipe: Recipe, asked: Mapping[str, int]) -> int | None:
    """Return the first tier that holds what a recipe reads: one of its names, or all parts of one of its sums."""
    if isinstance(recipe, Exact):
        tiers = (0 if name.startswith(_UNASKED) else asked.get(name) for name in recipe.names)
        return min((tier for tier in tiers if tier is not None), default=None)
    groups = getattr(recipe, "groups", None) or tuple((base,) for base in bases_of(recipe))
    if isinstance(recipe, Quotient):
        groups = (bases_of(recipe),)
    bases: dict[str, int] = {}
    for name, tier in asked.items():
        base = name.partition(".")[0]
        bases[base] = min(tier, bases.get(base, tier))
    whole = [max(bases[base] for base in group) for group in groups if all(base in bases for base in group)]
    return min(whole, default=None)
