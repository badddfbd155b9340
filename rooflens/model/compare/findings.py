"""What became of a kernel's findings: gone, changed or new, and the speed-up reached against the limit.

Findings are compared by id and by the numbers of their evidence. Only those that cost time on at least one side count.
One that a side cannot have found, because its report lacks the counters that the other's was found by, is neither gone
nor new: nothing is said of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Literal

from msgspec import Struct

from rooflens.model.compare.causes import differs, filled_lanes, share_differs
from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Change
from rooflens.model.compare.same_code import is_same_launch
from rooflens.model.findings.find import RULES
from rooflens.model.findings.siblings import SIBLING
from rooflens.model.records import Analysis, Finding, Kernel, Limit, ratio
from rooflens.model.verdict.limit import local_part
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE

What = Literal["gone", "changed", "new"]

_NEEDS: Mapping[str, frozenset[str]] = {
    rule.id: frozenset(name for group in (*rule.needs, *rule.hints) for name in group) for rule in RULES
}
_ORDER: tuple[What, ...] = ("gone", "changed", "new")

_MORE_IS_BETTER = frozenset(
    {"achieved_occupancy", "theoretical_occupancy", "grid_size", "threads_per_inst", "warp_fill", "arithmetic"}
    | {"arithmetic pipe", "elements per thread", "bytes loaded per thread", "loads in flight"}
    | {"global_load_bytes_per_sector", "global_store_bytes_per_sector"}
)
_LESS_IS_BETTER = frozenset(
    {"load_excess_share", "store_excess_share", "excess_share", "sectors_per_request"}
    | {"global_load_sectors_per_request", "global_store_sectors_per_request"}
    | {"conflict_share", "conflict_ways", "wavefronts_per_instruction", "loads a result", "bytes per multiply-add"}
    | {"divisions", "division_share", "integer divisions", "conversions", "unfused", "unfused_share", "fp64_flop"}
    | {"moves", "local_share", "local memory", "constant loads", "samples in curand_init", "loaded again"}
    | {"atomics", "atomic_traffic_share", "atomic_inst_share", "barrier stalls", "idle SM time", "gap around a launch"}
    | {"host_part_of_fills", "warps' time in loops that load tiles", "time it would save"}
)
_LESS_BY_FORM = re.compile(r"stall_\w+_cycles|\w+ stalls|busiest .+ over the mean")
"""Evidence that measures what is wrong, so that more of it is better, or less. All else is a size that goes with it:
what a block takes, how many blocks or stores there are, what another unit does. It may do either, and tells no news."""


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
        if not self.measures or not self.moved or self.before is None or self.after is None:
            return None
        return "better" if (self.after > self.before) is (self.name in _MORE_IS_BETTER) else "worse"

    @property
    def measures(self) -> bool:
        """True where it is known whether more or less of the number is better."""
        known = self.name in _MORE_IS_BETTER or self.name in _LESS_IS_BETTER
        return known or bool(_LESS_BY_FORM.fullmatch(self.name))

    @property
    def is_alone(self) -> bool:
        """True where only one side has it."""
        return (self.before is None) is not (self.after is None)


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
        """The finding on the head side, or on the base side if it is gone."""
        found = self.after or self.before
        if found is None:
            raise ValueError("a change has a finding on one side at least")
        return found

    @property
    def shown(self) -> Number | None:
        """The number to tell: the first that got better or worse, else, of what came or went, one that a side has."""
        told = next((number for number in self.numbers if number.became), None)
        if told or self.what == "changed":
            return told
        return next((number for number in self.numbers if number.is_alone and number.measures), None)

    @property
    def became(self) -> Literal["better", "worse"] | None:
        """What its number did."""
        return self.shown.became if self.shown else None

    @property
    def is_as_it_was(self) -> bool:
        """True where what is wrong is known on both sides and hardly moved: something else decides what it costs."""
        known = [number for number in self.numbers if number.measures and None not in (number.before, number.after)]
        return bool(known) and not any(number.moved for number in known)

    @property
    def eased(self) -> bool:
        """True where it cost time before and no longer does."""
        return _costs(self.before) and not _costs(self.after)

    @property
    def began(self) -> bool:
        """True where it costs time that it did not cost before."""
        return _costs(self.after) and not _costs(self.before)


class FindingChanges(Struct, frozen=True):
    """What became of the findings of a kernel.

    Attributes:
        changes: First what is gone, then what changed, then what is new; each by what it costs.
        untold: Titles of findings that one side cannot have found: its report lacks their counters.
        limit: How much faster it could become at most, as the base said.
        reached: How much faster a launch became; None if a side has no time, or ran on another GPU.
        forecast: What the slower side said that the move from it to the other would bring; None if it said nothing.
    """

    changes: tuple[FindingChange, ...]
    untold: tuple[str, ...]
    limit: Limit
    reached: float | None
    forecast: PromisedGain | None = None


class PromisedGain(Struct, frozen=True):
    """The gain that a finding of the slower side promised, held against what became of it.

    Attributes:
        finding: Of the slower side: it costs time there, and none on the other.
        predicted: How much faster its move was to make the kernel.
        reached: How much faster the other side is.
        is_back: The slower side is the head: the change was a step back, and its undoing is what was predicted.
    """

    finding: Finding
    predicted: float
    reached: float
    is_back: bool


def changed_findings(change: Change, threshold: float = DEFAULT_THRESHOLD) -> FindingChanges | None:
    """Compare a kernel's findings before and after; None if either side lacks the kernel.

    Where both run the same code no finding is one of a change. Where the time stayed, only numbers that moved are: what
    costs time changes place by a hair's breadth. Without a number, what went or came must agree with the time.

    Args:
        change: The kernel on both sides.
        threshold: Smaller changes of its time are none.
    """
    before, after = change.base, change.head
    if before is None or after is None:
        return None
    is_one_gpu = before.kernel.gpu_model == after.kernel.gpu_model
    limit, reached = before.verdict.limit, change.speed.factor if is_one_gpu else None
    if is_same_launch(before, after):
        return FindingChanges((), (), limit, reached)
    old, new = _by_key(before.findings), _by_key(after.findings)
    is_unchanged, is_faster = change.speed.is_unchanged(threshold), (change.speed.factor or 1.0) > 1
    found, untold = [], []
    for key in dict.fromkeys((*old, *new)):
        pair = old.get(key), new.get(key)
        if not (_costs(pair[0]) or _costs(pair[1])):
            continue
        if not _is_comparable(key[0], pair, before.kernel, after.kernel):
            untold.append(key[1])
            continue
        one = _compared_finding(*pair, before.kernel, after.kernel)
        agrees = one.eased if is_faster else one.began
        if one.became or (not (is_unchanged or one.is_as_it_was) and (agrees or one.shown)):
            found.append(one)
    found.sort(key=lambda one: (_ORDER.index(one.what), not any(number.moved for number in one.numbers), -_cost(one)))
    forecast = None if is_unchanged else _forecast(found, before, after, reached)
    return FindingChanges(tuple(found), tuple(untold), limit, reached, forecast)


def _forecast(
    changes: Sequence[FindingChange], before: Analysis, after: Analysis, factor: float | None
) -> PromisedGain | None:
    """Return what the slower side promised of the move to the other: the gain of a finding that costs nothing there.

    The first of them is what it said to do first. Worse numbers that merely cost less than something else are no move.
    """
    if factor is None:
        return None
    is_back = factor < 1
    slower, reached = (after, 1 / factor) if is_back else (before, factor)
    gone = [one.after if is_back else one.before for one in changes if _is_move(one, is_back=is_back)]
    done = next((one for one in slower.findings if any(one is other for other in gone) and one.gain), None)
    return PromisedGain(done, done.gain.factor, reached, is_back) if done and done.gain else None


def _is_move(change: FindingChange, *, is_back: bool) -> bool:
    return (change.began and change.became != "better") if is_back else (change.eased and change.became != "worse")


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


def _is_comparable(rule: str, pair: tuple[Finding | None, Finding | None], before: Kernel, after: Kernel) -> bool:
    """Return whether the side without the finding has the counters that the other side's finding rests on."""
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


def _compared_finding(old: Finding | None, new: Finding | None, before: Kernel, after: Kernel) -> FindingChange:
    """Set the numbers of a finding on both sides beside each other; one side may lack it."""
    units = {evidence.name: evidence.unit for one in (old, new) if one for evidence in one.evidence}
    numbers = [
        Number(name, unit, _evidence_value(name, old, before), _evidence_value(name, new, after))
        for name, unit in units.items()
    ]
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
    what: What = "changed" if old and new else "new" if new else "gone"
    found = FindingChange(what, old, new, tuple(numbers))
    # A finding goes too where another one outweighs it: what its number did decides the word.
    is_against = found.became == ("better" if what == "new" else "worse")
    return FindingChange("changed", old, new, found.numbers) if is_against else found


_REQUESTED: Mapping[str, str] = {
    "uncoalesced_global_load": "global_load",
    "uncoalesced_global_store": "global_store",
}


def _a_request(kernel: Kernel, access: str) -> float | None:
    return ratio(kernel.counters.get(f"{access}_sectors"), kernel.counters.get(f"{access}_requests"))


def _excess_share(side: str) -> Callable[[Kernel], float | None]:
    totals = f"{side}_excess_sectors", f"{side}_sectors"
    return lambda kernel: ratio(*(kernel.code_totals.get(name) for name in totals))


_WITHOUT_FINDING: Mapping[str, Callable[[Kernel], float | None]] = {
    "load_excess_share": _excess_share("load"),
    "store_excess_share": _excess_share("store"),
    "local_share": local_part,
    "warp_fill": lambda kernel: filled_lanes(prod(kernel.block)) if kernel.block else None,
}
"""Evidence that is not a counter -> how it is read where there is no finding to take it from."""


def _evidence_value(name: str, finding: Finding | None, kernel: Kernel) -> float | None:
    """Return a number of the evidence from the finding, else from what the kernel holds."""
    stated = {evidence.name: evidence.value for evidence in finding.evidence} if finding else {}
    if name in stated:
        return stated[name]
    read = _WITHOUT_FINDING.get(name)
    return read(kernel) if read else kernel.counters.get(name)
