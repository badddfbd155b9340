"""What findings need: the tier that collects it, and what a report lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from rooflens.model.counters.chips import PM_SAMPLED
from rooflens.model.counters.metric import DETAILS, Detail, Metric
from rooflens.model.counters.recipes import Amount, Exact, Quotient, Recipe, bases_of, form_read
from rooflens.model.counters.table import COUNTERS
from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import CODE, IN_PROGRAM, FindingRule, held_of, holdings_of
from rooflens.model.hotspots import STORED_AS
from rooflens.model.records import Analysis, Kernel

_ASKED_AS: Mapping[str, tuple[str, ...]] = {
    "thread_opcodes": ("sass__thread_inst_executed_true_per_opcode_with_modifier_all",),
    "warp_opcodes": ("sass__inst_executed_per_opcode_with_modifier_all",),
    "stalls": STORED_AS["samples"],
}
_RECIPES: Mapping[str, tuple[Recipe, ...]] = {row.name: row.recipes for row in COUNTERS}
_UNASKED = ("launch__", "device__")
"""What ncu always stores of a kernel."""

Group = tuple[str, ...]
"""Names that tell a finding together."""


def tier_of(group: Iterable[str], metrics: Sequence[Metric], chip: str) -> Detail | None:
    """Return the tier from which on all names of a group are collected on a chip; None if none collects them.

    Args:
        group: Names of one group of `FindingRule.needs`.
        metrics: What the widest tier asks for on the chip.
        chip: The chip, as `gh100`.
    """
    names = names_for(group, metrics, chip)
    if names is None:
        return None
    tiers = {metric.name: DETAILS.index(metric.detail) for metric in metrics}
    least = DETAILS.index("deep") if "series" in group else 0
    return DETAILS[max((tiers[name] for name in names), default=least)]


def names_for(group: Iterable[str], metrics: Sequence[Metric], chip: str) -> tuple[str, ...] | None:
    """Return what to ask ncu for to collect a group's names, by the arguments of `tier_of`; None if nothing."""
    asked = {metric.name: DETAILS.index(metric.detail) for metric in metrics}
    parts = [_metric_names(need, asked, chip) for need in group]
    known = [part for part in parts if part is not None]
    return tuple(dict.fromkeys(chain.from_iterable(known))) if known and len(known) == len(parts) else None


def lacking(rule: FindingRule, kernel: Kernel, *, traced: bool) -> tuple[Group, ...]:
    """Return what a kernel's report would have to hold besides: one group for each way; empty if it has enough.

    Args:
        rule: A finding.
        kernel: A kernel of the report.
        traced: The program was traced without the profiler as well.
    """
    return _lacking_needs(rule, held_of(holdings_of(kernel, traced=traced)))


def _lacking_needs(rule: FindingRule, held: Collection[str]) -> tuple[Group, ...]:
    if rule.can_tell(held):
        return ()
    return tuple(tuple(need for need in group if need not in held) for group in rule.needs)


class Untold(Struct, frozen=True):
    """A finding that a report's kernels cannot have, for lack of counters.

    Attributes:
        ways: What the first of these kernels lacks: one group for each way to decide it.
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
        lacks = [ways for names in held if (ways := _lacking_needs(rule, names))]
        if lacks:
            found.append(Untold(rule, lacks[0], len(lacks)))
    return tuple(found)


_OF_LEVELS = {"dram": "dram_bus_share", "l2": "l2_tag_share", "l1": "l1_data_share"}
_OF_PIPES = {
    "issue": "issue_active_share",
    "alu": "alu_inst_share",
    "xu": "xu_inst_share",
    "fma": "fma_busy_share",
    "tensor_pipe": "tensor_busy_share",
}
VERDICT = "the verdict"
"""Stands among findings for the limiter and its distance to a roof."""


def unplaced(analyses: Collection[Analysis]) -> tuple[Group, ...]:
    """Return the quantities that some kernels lack for a verdict: time, clock, bytes, and the share of each unit."""
    of_kernel = ("duration_ns", "sm_clock_hz", "dram_bytes")
    lacks = [name for name in of_kernel if any(name not in one.kernel.counters for one in analyses)]
    lacks += [name for key, name in _OF_LEVELS.items() if any(one.levels[key].share is None for one in analyses)]
    lacks += [name for key, name in _OF_PIPES.items() if any(key not in one.pipes for one in analyses)]
    return tuple((name,) for name in lacks)


def names_missing(
    untold: Iterable[Untold], lacks: Iterable[Group], metrics: Sequence[Metric], chip: str
) -> dict[str, list[str]]:
    """Return the fewest metrics to ask ncu for, each with what it would tell: findings, or `VERDICT`.

    Args:
        untold: The findings that the report cannot show: each by the way that the lowest tier has.
        lacks: What its verdicts lack, as `unplaced` returns it.
        metrics: What the widest tier asks for on the chip.
        chip: The chip, as `gh100`.
    """
    tiers = {metric.name: DETAILS.index(metric.detail) for metric in metrics}
    missing: dict[str, list[str]] = {}
    for about, ways in (*((VERDICT, (group,)) for group in lacks), *((row.rule.id, row.ways) for row in untold)):
        counted = (way for way in ways if IN_PROGRAM not in way and "series" not in way)
        known = [names for way in counted if (names := names_for(way, metrics, chip)) is not None]
        best = min(
            known,
            key=lambda names: (max((tiers[name] for name in names), default=0), len({*names} - missing.keys())),
            default=(),
        )
        for name in best:
            tells = missing.setdefault(name, [])
            tells += [about] if about not in tells else []
    return missing


def _metric_names(need: str, asked: Mapping[str, int], chip: str) -> Sequence[str] | None:
    """Return the names of the lowest tier that give a need; none where ncu stores it unasked."""
    if need == IN_PROGRAM:
        return ()
    if need == "series":
        return () if chip in PM_SAMPLED else None
    stored = STORED_AS[need.removeprefix(CODE)] if need.startswith(CODE) else _ASKED_AS.get(need)
    if stored is not None:
        return stored if all(name in asked for name in stored) else None
    ways = [way for recipe in _RECIPES[need] for way in _ways(recipe, asked)]
    return min(ways, key=lambda way: max((asked[name] for name in way), default=0), default=None)


def _ways(recipe: Recipe, asked: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Yield the names that a recipe reads, as a collection asks for them: of one metric, or of all parts of a sum."""
    ways: Iterable[tuple[str, ...]]
    match recipe:
        case Exact(names=names):
            ways = (() if name.startswith(_UNASKED) else (name,) for name in names)
        case Quotient(part=part, whole=whole):
            ways = [(part, whole)]
        case Amount(groups=groups):
            ways = [tuple(f"{base}.sum" for base in group) for group in groups]
        case _:
            ways = [(f"{base}.{form_read(recipe)}",) for base in bases_of(recipe)]
    yield from (way for way in ways if all(name in asked for name in way))
