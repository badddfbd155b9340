"""What became of a kernel's findings: gone, changed or new, and the speed-up reached against the limit.

Findings are compared by id and by the numbers of their evidence. Only those that cost time on at least one side count.
One that a side cannot have found, because its report lacks the counters that the other's was found by, is neither gone
nor new: nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from rooflens.format import factor, is_plural, percent, si, significant
from rooflens.model.compare.causes import MOVED_RATIO, differs, share_differs
from rooflens.model.compare.compare import AS_FAST, Change
from rooflens.model.findings.find import RULES
from rooflens.model.findings.siblings import SIBLING
from rooflens.model.records import FAR, Finding, Kernel, Limit, ratio
from rooflens.model.verdict.limit import local_part
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE

What = Literal["gone", "changed", "new"]

MOST_SAID = 3
"""Findings that a sentence names; the rest are only counted."""

_NEEDS: Mapping[str, frozenset[str]] = {
    rule.id: frozenset(name for group in (*rule.needs, *rule.hints) for name in group) for rule in RULES
}
_ORDER: tuple[What, ...] = ("gone", "changed", "new")
_MORE_IS_BETTER = ("waves", "grid_size", "occupancy", "threads_per_inst", "warp_fill", "arithmetic", "per_sector")
"""Ends of the names of evidence of which more is better."""

_NEITHER = frozenset({"registers", "SMs", "blocks", "ns", "B", "threads a block"})
"""Units of amounts of which neither more nor less is better."""

_WITH_PREFIX = 1e5
"""Amounts from here on are written with a prefix: `1.24 G to 220 M operations`."""


class Number(Struct, frozen=True):
    """One number behind a finding, on both sides; None if a side does not hold it."""

    name: str
    unit: str
    before: float | None
    after: float | None

    @property
    def moved(self) -> bool:
        """True where it differs by more than counters of one kernel do from run to run."""
        return (share_differs if self.unit == "share" else differs)(self.before, self.after)

    @property
    def became(self) -> Literal["better", "worse"] | None:
        """Say whether it got better or worse; None if it hardly moved, or neither way is better."""
        if not self.moved or self.unit in _NEITHER or self.before is None or self.after is None:
            return None
        is_more_better = self.name.endswith(_MORE_IS_BETTER)
        return "better" if (self.after > self.before) is is_more_better else "worse"


class FindingChange(Struct, frozen=True):
    """What became of a finding.

    Attributes:
        before: The finding of the base; None if it is new.
        after: That of the head; None if it is gone.
        numbers: Its evidence on both sides, the base's order first.
    """

    what: What
    before: Finding | None
    after: Finding | None
    numbers: tuple[Number, ...]

    @property
    def finding(self) -> Finding:
        """The finding as it is now, or as it was if it is gone."""
        found = self.after or self.before
        if found is None:
            raise ValueError("a change has a finding on one side at least")
        return found

    @property
    def eased(self) -> bool:
        """True where it cost time before and no longer does."""
        return _costs(self.before) and not _costs(self.after)


class FindingChanges(Struct, frozen=True):
    """What became of the findings of a kernel.

    Attributes:
        changes: First what is gone, then what changed, then what is new; each by what it costs.
        untold: Titles of findings that one side cannot have found: its report lacks their counters.
        limit: How much faster it could become at most, as the base said.
        reached: How much faster a launch became; None if a side has no time.
    """

    changes: tuple[FindingChange, ...]
    untold: tuple[str, ...]
    limit: Limit
    reached: float | None


def changed_findings(change: Change) -> FindingChanges | None:
    """Compare a kernel's findings before and after; None if either side lacks the kernel."""
    before, after = change.base, change.head
    if before is None or after is None:
        return None
    old, new = _by_key(before.findings), _by_key(after.findings)
    found, untold = [], []
    for key in dict.fromkeys((*old, *new)):
        pair = old.get(key), new.get(key)
        if not (_costs(pair[0]) or _costs(pair[1])):
            continue
        if not _told(key[0], pair, before.kernel, after.kernel):
            untold.append(key[1])
        elif (one := _compared(*pair, before.kernel, after.kernel)) is not None:
            found.append(one)
    found.sort(key=lambda one: (_ORDER.index(one.what), not any(number.moved for number in one.numbers), -_cost(one)))
    return FindingChanges(tuple(found), tuple(untold), before.verdict.limit, change.speed.factor)


def _by_key(findings: Iterable[Finding]) -> dict[tuple[str, str], Finding]:
    """Index by id and title: one id of NVIDIA's stands for many rules."""
    found: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        found.setdefault((finding.id, finding.title), finding)
    return found


def _costs(finding: Finding | None) -> bool:
    return finding is not None and finding.severity != "note"


def _cost(change: FindingChange) -> float:
    return max((one.gain.factor for one in (change.before, change.after) if one is not None and one.gain), default=1.0)


def _told(rule: str, pair: tuple[Finding | None, Finding | None], before: Kernel, after: Kernel) -> bool:
    """Return whether the side without the finding holds all that the other side was judged by."""
    if pair[0] is not None and pair[1] is not None:
        return True
    having, lacking = (before, after) if pair[0] is not None else (after, before)
    if rule == NVIDIA_RULE:
        return bool(lacking.rules)
    if rule == SIBLING:
        return False  # the other report may hold no other kernel for the same work
    return all(_holds(lacking, name) for name in _NEEDS.get(rule, ()) if _holds(having, name))


def _holds(kernel: Kernel, name: str) -> bool:
    """Return whether a kernel has a counter, or one of the tables that rules read."""
    if name == "hotspots":
        return any(measure.endswith("sectors") for measure in kernel.code_totals)
    return name in kernel.counters or bool(getattr(kernel, name, None))


def _compared(old: Finding | None, new: Finding | None, before: Kernel, after: Kernel) -> FindingChange | None:
    """Compare a finding on both sides; None if it did not change."""
    units = {evidence.name: evidence.unit for one in (old, new) if one for evidence in one.evidence}
    numbers = [Number(name, unit, _value(name, old, before), _value(name, new, after)) for name, unit in units.items()]
    finding = old or new
    if finding is not None and finding.id in _REQUESTED:
        each = Number(
            "sectors_per_request",
            "sectors a request",
            *(_a_request(kernel, _REQUESTED[finding.id]) for kernel in (before, after)),
        )
        told = next((number.became for number in numbers if number.became), None)
        # Wider accesses take more sectors a request, and need all of them.
        numbers = [each, *numbers] if each.moved and told in {None, each.became} else numbers
    if old is None or new is None:
        # A finding goes too where another one outweighs it: what its number did decides the word.
        what: What = "new" if old is None else "gone"
        shown = next((number for number in numbers if number.moved), None)
        moved = shown.became if shown else None
        is_against = moved == ("better" if what == "new" else "worse")
        return FindingChange("changed" if is_against else what, old, new, tuple(numbers))
    if old.severity == new.severity and not any(number.moved for number in numbers):
        return None
    return FindingChange("changed", old, new, tuple(numbers))


_REQUESTED: Mapping[str, str] = {
    "uncoalesced_global_load": "global_load",
    "uncoalesced_global_store": "global_store",
}


def _a_request(kernel: Kernel, access: str) -> float | None:
    return ratio(kernel.counters.get(f"{access}_sectors"), kernel.counters.get(f"{access}_requests"))


def _excess(side: str) -> Callable[[Kernel], float | None]:
    totals = f"{side}_excess_sectors", f"{side}_sectors"
    return lambda kernel: ratio(*(kernel.code_totals.get(name) for name in totals))


_WITHOUT_FINDING: Mapping[str, Callable[[Kernel], float | None]] = {
    "load_excess_share": _excess("load"),
    "store_excess_share": _excess("store"),
    "local_share": local_part,
}
"""Evidence that is not a counter -> how it is read where there is no finding to take it from."""


def _value(name: str, finding: Finding | None, kernel: Kernel) -> float | None:
    """Return a number of the evidence from the finding, else from what the kernel holds."""
    stated = {evidence.name: evidence.value for evidence in finding.evidence} if finding else {}
    if name in stated:
        return stated[name]
    read = _WITHOUT_FINDING.get(name)
    return read(kernel) if read else kernel.counters.get(name)


def findings_sentence(found: FindingChanges | None) -> str:
    """Write what became of the findings, as `uncoalesced loads gone: 31 to 4 sectors a request`, and of the limit.

    Empty if nothing did.
    """
    if found is None or not found.changes:
        return ""
    said = [_words(one) for one in found.changes[:MOST_SAID]]
    more = len(found.changes) - len(said)
    return "; ".join((*said, *([f"{more} more"] if more > 0 else []), *_reached(found)))


def _reached(found: FindingChanges) -> Iterator[str]:
    """Set the speed-up against the limit, where a finding that cost time went."""
    limit = found.limit
    if found.reached is None or limit.factor is None or not any(one.eased for one in found.changes):
        return
    if found.reached <= 1 + AS_FAST:
        return
    reached, most = factor(found.reached), factor(limit.factor)
    if found.reached > limit.factor * MOVED_RATIO:
        beaten = f"limit of {most}: its work" if limit.proven else f"{most} at its traffic: that"
        yield f"{reached} reached, more than the {beaten} changed"
    elif limit.is_far:
        yield f"{reached} reached, the limit was over {factor(FAR)}"
    else:
        yield f"{reached} reached, {f'the limit was {most}' if limit.proven else f'at its traffic {most} at most'}"


def _words(change: FindingChange) -> str:
    """Say a finding: `fp64 divisions no longer matter: 1.24 G to 220 M operations`."""
    shown = next((number for number in change.numbers if number.moved), None)
    if shown is None and change.what != "changed":
        known = (number for number in change.numbers if number.before is not None or number.after is not None)
        shown = next(known, None)
    return _became(change) + (f": {_number(shown)}" if shown else "")


def _became(change: FindingChange) -> str:
    title = change.finding.title
    if change.what != "changed":
        return f"{title} {change.what}"
    shown = next((number for number in change.numbers if number.moved), None)
    moved = shown.became if shown else None
    matter = "matter" if is_plural(title) else "matters"
    if change.eased and moved == "worse":
        return f"{title} worse, but other things cost more now"
    if change.eased:
        return f"{title.removeprefix('low ')} no longer {matter}"
    if not _costs(change.before):
        return f"{title} now {matter}"
    return f"{title} {moved or 'changed'}"


def _number(number: Number) -> str:
    """Write a number on both sides, or on the one that has it."""
    known = [value for value in (number.before, number.after) if value is not None]
    if number.unit == "share":
        return f"{number.name.replace('_', ' ')} {' to '.join(map(percent, known))}"
    return f"{' to '.join(_amount(value) for value in known)} {number.unit}".strip()


def _amount(value: float) -> str:
    return significant(value) if value < _WITH_PREFIX else si(value, "").strip()
