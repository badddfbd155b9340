"""What a verdict, finding, flag, stall reason or counter means: items of knowledge, and what counters' names say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

from msgspec import Struct

from rooflens.errors import UnknownNameError, near_names
from rooflens.format import percent, sentence_case
from rooflens.model.counters.accesses import ATOMICS, CONFLICTS, HOST, LOCAL, USE
from rooflens.model.counters.balance import BALANCE, CAPACITY, SAMPLED_AS, SAMPLED_ONLY, WAITS
from rooflens.model.counters.chips import CHIPS
from rooflens.model.counters.execution import FLOPS, PIPES, REPORT, WARPS
from rooflens.model.counters.memory import CLOCKS, DRAM, L1, L2, SMEM
from rooflens.model.counters.metric import DETAILS, Ask, Detail
from rooflens.model.counters.recipes import Counter, bases_of
from rooflens.model.counters.table import BESIDE, COUNTERS
from rooflens.model.counters.tensor import tensor_asks
from rooflens.model.findings.find import RULES
from rooflens.model.findings.siblings import SIBLING
from rooflens.model.findings.stalls import counters_of_wait
from rooflens.model.knowledge.items import KINDS, Kind, Word, find_item, names_of, words
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.model.verdict_classes import BOUNDS


class About(Struct, frozen=True):
    """The explanation of a verdict, finding, flag or stall reason.

    Attributes:
        meaning: What it says, and why it is so.
        parts: Its counters, how to confirm it, and what it does not show: one sentence or more each.
        tries: What to try, in the order in which an expert does; each without a full stop.
        needs: Groups of counters for a finding, any one of which is enough; else empty.
    """

    kind: Kind
    name: str
    title: str
    meaning: str
    parts: tuple[str, str, str]
    tries: tuple[str, ...]
    needs: tuple[tuple[str, ...], ...] = ()

    @property
    def address(self) -> str:
        """Return its address among all items: `findings/small_grid`."""
        return f"{self.kind}/{self.name}"


OTHER_NAMES: Mapping[str, str] = {sampled: counted for counted, sampled in SAMPLED_AS.items()}
"""Another spelling of a stall reason -> the name of its item."""
_SAMPLED_AS = {**SAMPLED_AS, "gmma": "warpgroup_arrive"}
_RULES = {rule.id: rule for rule in RULES}


def named(kind: Kind) -> tuple[str, ...]:
    """Return the names of a kind: verdicts in the order of the classes, findings by subject, others sorted."""
    if kind == "verdicts":
        return BOUNDS
    return (*_RULES, NVIDIA_RULE, SIBLING) if kind == "findings" else names_of(kind)


@cache
def everything() -> Mapping[str, About]:
    """Return all there is to know, by address."""
    return {f"{kind}/{name}": about(kind, name) for kind in KINDS for name in named(kind)}


@cache
def about(kind: Kind, name: str) -> About:
    """Return the explanation of one item.

    Raises:
        KeyError: There is no such item.
    """
    item = find_item(kind, name)
    if item is None:
        raise KeyError(f"{kind}/{name}")
    rule = _RULES.get(name) if kind == "findings" else None
    counters = item.counters or (counters_of(name) if kind == "stalls" else f"Counters: {counters_of_wait(name)}.")
    meaning = _with_limits(item.meaning) if kind == "verdicts" else f"{item.sentence} {item.meaning}".lstrip()
    tries = tuple(map(_with_limits, item.tries)) if kind == "verdicts" else item.tries
    return About(
        kind,
        name,
        sentence_case(rule.title if rule else item.title),
        meaning,
        (counters, item.confirm, item.blind),
        tries,
        rule.needs if rule else (),
    )


def _with_limits(text: str) -> str:
    """Fill in the limits of `thresholds.toml` where a text names them."""
    limits = default_thresholds()
    return text.format(
        bound_share=percent(limits.bound_share),
        at_roof_share=percent(limits.at_roof_share),
        balanced_lead=f"{100 * limits.balanced_lead:g} points",
        overhead_duration=f"{limits.overhead_duration_ns / 1000:g} us",
    )


def find_about(name: str) -> tuple[About, ...]:
    """Return what a name means: `small_grid`, `flags/bank_conflicts`, or a title. Two where two have it.

    Raises:
        UnknownNameError: None is called so.
    """
    found = _items(name)
    if not found:
        raise nothing_called(name)
    return found


def nothing_called(name: str, others: Iterable[str] = (), near: Sequence[str] = ()) -> UnknownNameError:
    """Say that nothing is called so, and what is spelt alike.

    Args:
        name: What was asked for.
        others: Further names that can be asked for.
        near: What to suggest; empty for what is spelt alike.
    """
    known = list(dict.fromkeys((*known_names(), *others)))
    kind = "verdict, finding, flag, stall reason, label of ncu, word or counter"
    return UnknownNameError(kind, name, known, "rooflens about", near=near)


def known_names() -> tuple[str, ...]:
    """Return the names of all items, and of the words of the subject in each spelling."""
    names = (one.name for one in everything().values())
    spelt = (spelling for word, one in words().items() for spelling in (word, *one.also))
    return tuple(dict.fromkeys((*names, *spelt)))


def is_item(name: str) -> bool:
    """Return whether a verdict, finding, flag or stall reason is called so."""
    return bool(_items(name))


def _items(name: str) -> tuple[About, ...]:
    asked = _compared_name(name)
    asked = OTHER_NAMES.get(asked, asked)
    return tuple(one for one in everything().values() if asked in {one.address, one.name, _compared_name(one.title)})


_PHRASES = (
    (r"(no|nothing)(_measured)?(_unit)?_above.*", "no unit above"),
    (r".+_full", "full"),
    (r"[\d.]+_warps_ready", "warps ready"),
    (r".*\d_?%", "share"),
)
"""What the cells of a table and sentences say of a number or a unit -> the word that explains it."""


def find_word(name: str) -> tuple[str, Word] | None:
    """Return the glossary's entry for a word in any spelling; None without one, or if an item has that name."""
    asked = _compared_name(name)
    found = ((word, one) for word, one in words().items() if asked in map(_compared_name, (word, *one.also)))
    phrases = ((word, words()[word]) for phrase, word in _PHRASES if re.fullmatch(phrase, asked))
    return None if _items(name) else next(chain(found, phrases), None)


def _compared_name(name: str) -> str:
    """Return a name as all are compared; of a cell such as `latency: cause not measured (low)` the cause.

    What a cell of an open class adds of what was not measured goes: `too few blocks, compute was not measured (low)`.
    """
    sure = re.sub(r" \((?:low|medium)\)$", "", name.strip().rpartition(": ")[2])
    said = re.sub(r", [\w ,]+ (?:was|were) not measured(?=[? ]*$)", "", sure)
    return (said.rstrip("? ") or said).casefold().replace("-", "_").replace(" ", "_")


def counters_of(reason: str) -> str:
    """Say where a report has a stall reason, and which chips count it."""
    counted = f"`smsp__average_warps_issue_stalled_{reason}_per_issue_active`, in cycles between two instructions"
    sampled = f"samples, `smsp__pcsamp_warps_issue_stalled_{_SAMPLED_AS.get(reason, reason)}`"
    item = find_item("stalls", reason)
    chips = f"Chips: {item.where if item else ''}."
    if reason in SAMPLED_ONLY:
        return f"Counters: {sampled}. {chips}"
    return f"Counters: {counted}; {sampled}. {chips}"


_ISSUE = ("issue", "executed_share")
_TENSOR = ("tensor_", "shared_pipe")
_OCCUPANCY_ENDS_AT = "stall_samples"


def _counters_by_prefix(rows: Iterable[Counter], *starts: str) -> tuple[Counter, ...]:
    return tuple(row for row in rows if row.name.startswith(starts))


def _other_counters(rows: Iterable[Counter], *groups: Iterable[Counter]) -> tuple[Counter, ...]:
    taken = {row.name for group in groups for row in group}
    return tuple(row for row in rows if row.name not in taken)


_GLOBAL = (*_counters_by_prefix(L1, "global_"), *_counters_by_prefix(USE, "global_"))
_ON_LOCAL = (*LOCAL, *_counters_by_prefix(USE, "local_"))
_OF_ISSUE = (
    *_counters_by_prefix(PIPES, *_ISSUE),
    *_counters_by_prefix(WARPS, "eligible", "issue_active"),
    *_counters_by_prefix(REPORT, "executed_inst"),
    *_other_counters(USE, _GLOBAL, _ON_LOCAL),
)
_OF_TENSOR = _counters_by_prefix(PIPES, *_TENSOR)
_SAMPLED = (*_counters_by_prefix(WARPS, _OCCUPANCY_ENDS_AT), *WAITS)

FAMILIES: Mapping[str, tuple[Counter, ...]] = {
    "time.md#time-and-clocks": (*CLOCKS, *_counters_by_prefix(REPORT, "passes")),
    "memory.md#dram": DRAM,
    "memory.md#l2": L2,
    "l1.md#l1-and-texture": _other_counters(L1, _GLOBAL),
    "l1.md#global-accesses": _GLOBAL,
    "memory.md#the-hosts-memory": HOST,
    "shared-memory.md": (*SMEM, *CONFLICTS),
    "l1.md#local-memory-and-spills": _ON_LOCAL,
    "memory.md#atomics-and-reductions": ATOMICS,
    "arithmetic.md#floating-point-instructions": FLOPS,
    "arithmetic.md#tensor-instructions": _OF_TENSOR,
    "arithmetic.md#integer-and-other-pipes": _other_counters(PIPES, _OF_ISSUE, _OF_TENSOR),
    "execution.md#issue-slots-and-threads": _OF_ISSUE,
    "execution.md#samples-and-stall-ratios": _SAMPLED,
    "occupancy.md": (*_other_counters(WARPS, _OF_ISSUE, _SAMPLED), *CAPACITY),
    "time.md#balance-between-units": BALANCE,
    "speed-of-light.md": _other_counters(REPORT, _OF_ISSUE, _counters_by_prefix(REPORT, "passes")),
}
"""Page or section of docs/reference/counters -> the quantities it is about: each is in one."""

PAGE_OF_PART: tuple[tuple[str, str], ...] = (
    ("pmsampling:", "time.md#units-over-time"),
    ("breakdown:", "speed-of-light.md"),
    ("pcsamp", "execution.md#samples-and-stall-ratios"),
    ("issue_stalled", "execution.md#samples-and-stall-ratios"),
    ("tensor", "arithmetic.md#tensor-instructions"),
    ("op_atom", "memory.md#atomics-and-reductions"),
    ("op_red", "memory.md#atomics-and-reductions"),
    ("atomic", "memory.md#atomics-and-reductions"),
    ("pipe_lsu_mem_global", "l1.md#global-accesses"),
    ("mem_global", "l1.md#global-accesses"),
    ("mem_local", "l1.md#local-memory-and-spills"),
    ("mem_shared", "shared-memory.md"),
    ("data_bank", "shared-memory.md"),
    ("sysmem", "memory.md#the-hosts-memory"),
    ("c2clink", "memory.md#the-hosts-memory"),
    ("dram__", "memory.md#dram"),
    ("fbpa__", "memory.md#dram"),
    ("cycles_elapsed", "time.md#time-and-clocks"),
    ("time_duration", "time.md#time-and-clocks"),
    ("lts__", "memory.md#l2"),
    ("ltc__", "memory.md#l2"),
    ("l1tex__", "l1.md#l1-and-texture"),
    ("throughput", "speed-of-light.md"),
    ("launch__", "occupancy.md"),
    ("device__", "occupancy.md"),
    ("warps_active", "occupancy.md"),
    ("thread_inst_executed_op", "arithmetic.md#floating-point-instructions"),
    ("per_opcode", "arithmetic.md#floating-point-instructions"),
    ("pipe_", "arithmetic.md#integer-and-other-pipes"),
    ("sass__", "execution.md#counts-by-instruction"),
    ("_sass_", "execution.md#counts-by-instruction"),
    ("inst_", "execution.md#issue-slots-and-threads"),
    ("issue_", "execution.md#issue-slots-and-threads"),
    ("warps_eligible", "execution.md#issue-slots-and-threads"),
    ("cycles_active", "time.md#balance-between-units"),
)
"""A part of a name -> the page of its family, for counters that no quantity is read from; the first counts."""


def family_of(base: str) -> str:
    """Return the page of docs/reference/counters that a counter without roll-up is nearest to; else `index.md`."""
    return next((page for part, page in PAGE_OF_PART if part in base), "index.md")


UNITS: Mapping[str, str] = {
    "gpu": "the whole GPU",
    "gpc": "a cluster of SMs (GPC)",
    "tpc": "a pair of SMs (TPC)",
    "sm": "an SM",
    "smsp": "a quarter of an SM, with one scheduler",
    "l1tex": "the L1/TEX cache of an SM",
    "idc": "the constant cache of an SM",
    "lts": "an L2 slice",
    "ltc": "a partition of L2, with several slices",
    "lrc": "the L2 request coalescer, between the SMs and L2",
    "fbpa": "a DRAM controller",
    "mcc": "a channel of the memory controller, on chips that share the host's memory",
    "dram": "a DRAM channel",
    "pcie": "the PCIe interface",
    "nvlink": "all NVLinks of the GPU",
    "nvltx": "NVLink, sending",
    "nvlrx": "NVLink, receiving",
    "sass": "none: code that ncu patches counts, not the hardware",
    "launch": "none: a property of the launch, not a count",
    "device": "none: a property of the device, as its driver states it",
    "derived": "none: ncu works it out from other metrics",
    "profiler": "none: ncu counts its own work",
}
"""What a name begins with, before `__` -> where it is counted."""

_ALWAYS_STORED = ("launch__", "device__", "profiler__")

_THINGS: tuple[tuple[str, str], ...] = (
    ("hit_rate", "per cent of the sectors looked up that hit"),
    ("bank_conflicts", "wavefronts added by bank conflicts"),
    ("sectors", "sectors of 32 bytes"),
    ("requests", "requests"),
    ("wavefronts", "wavefronts, of 128 bytes at most"),
    ("bytes", "bytes"),
    ("cycles_elapsed", "cycles of its clock while the kernel ran"),
    ("cycles_active", "cycles in which it had work"),
    ("thread_inst_executed", "executed instructions, once for each thread"),
    ("inst_executed", "executed instructions, once for each warp"),
    ("inst_issued", "issued instructions, once for each warp"),
    ("issue_active", "cycles in which an instruction was issued"),
    ("pcsamp_warps_issue_stalled", "samples of warps with this stall reason"),
    ("warps_eligible", "warps ready to issue, over the cycles"),
    ("warps_active", "resident warps, over the cycles"),
    ("throughput", "nothing itself; it is the largest of several percentages of peak"),
    ("time_duration", "GPU time in nanoseconds"),
)
_WHICH: tuple[tuple[str, str], ...] = (
    (r"_op_read|bytes_read|read_bytes", "reads"),
    (r"_op_write|bytes_write|write_bytes", "writes"),
    (r"_op_ld(?!gsts)", "loads"),
    (r"_op_ldgsts", "asynchronous copies (cp.async)"),
    (r"_op_st", "stores"),
    (r"_op_atom", "atomics that return a value"),
    (r"_op_red", "atomics that return none"),
    (r"_mem_global", "global memory"),
    (r"_mem_local", "local memory"),
    (r"_mem_shared", "shared memory"),
    (r"_srcunit_tex", "asked for by L1/TEX"),
    (r"_srcunit_ltcfabric", "asked for by the other half of L2"),
    (r"_aperture_device", "of device memory"),
    (r"_aperture_sysmem", "of system memory"),
    (r"_aperture_peer", "of another GPU's memory"),
    (r"_lookup_hit", "hits"),
    (r"_lookup_miss", "misses"),
    (r"_pred_on", "predicate true"),
)
_FORMS: Mapping[str, str] = {
    "sum": "added up over all instances of the unit",
    "avg": "mean of the instances of the unit",
    "min": "least of the instances of the unit",
    "max": "most of the instances of the unit",
    "ratio": "a quotient",
    "pct": "a quotient, in per cent",
    "max_rate": "the most the quotient can be",
    "per_second": "divided by the time, in units per second",
    "per_cycle_elapsed": "divided by all cycles of the unit",
    "per_cycle_active": "divided by the cycles in which the unit had work",
    "peak_sustained": "not counted: the most that is possible in a cycle",
    "peak_sustained_elapsed": "not counted: the most that was possible in all cycles",
    "peak_sustained_active": "not counted: the most that was possible in the cycles with work",
    "pct_of_peak_sustained_elapsed": "per cent of the peak over all cycles: a share of a roof",
    "pct_of_peak_sustained_active": "per cent of the peak over the cycles with work",
}
"""Roll-up or sub-metric of a name -> what it makes of the count."""


class CounterColumn(Struct, frozen=True):
    """A column of the table `kernels` that is read from a counter.

    Attributes:
        findings: Identifiers of the findings that need it.
    """

    name: str
    meaning: str
    findings: tuple[str, ...]


class CounterAbout(Struct, frozen=True):
    """The description of a counter of ncu, or of a quantity of ours.

    Attributes:
        name: As it was asked for.
        unit: What counts, such as `an L2 slice`; None if the name has no known unit.
        counts: What one count is, as far as the name says; empty if it does not.
        forms: Each known roll-up and sub-metric of the name, and its effect on the count.
        quantities: What is read from it, first what trusts it most; empty if nothing is.
        sources: For a quantity of ours, the counters it is read from, first the one trusted most; else empty.
        stall: The stall reason that it counts, as its page is called; None if it counts none.
        detail: The lowest tier in which a collection asks for it on any chip; None if none does.
        always: ncu stores it for every kernel, whatever it is asked for.
        near: For a counter that rooflens does not read, those of similar names that it reads.
        page: The section of its family in docs/reference/counters, `memory.md#dram`.
    """

    name: str
    unit: str | None
    counts: str
    forms: tuple[tuple[str, str], ...]
    quantities: tuple[CounterColumn, ...]
    sources: tuple[str, ...]
    stall: str | None
    detail: Detail | None
    always: bool
    near: tuple[str, ...]
    page: str


def about_counter(name: str) -> CounterAbout | None:
    """Describe a counter, in any form (`dram__bytes.sum`), or of a quantity of ours (`dram_bytes`).

    None for any other name.
    """
    base, *forms = name.strip().split(".")
    own = next((row for row in COUNTERS if row.name == base), None)
    rows = (own,) if own else tuple(_read_from(base))
    read = {base, *_sources(own)} if own else {base}
    asks = [ask for ask in _asks() if ask.base in read]
    prefix, divider, _ = base.rpartition(":")[2].partition("__")
    unit = UNITS.get(prefix) if divider else None
    if not (rows or asks or unit):
        return None
    stall = _stall(base)
    return CounterAbout(
        name=name.strip(),
        unit=unit,
        counts=own.meaning if own else _counts(base) or next((ask.meaning for ask in asks if not rows), ""),
        forms=tuple((form, _FORMS[form]) for form in forms if form in _FORMS),
        quantities=tuple(CounterColumn(row.name, row.meaning, tuple(_findings(row.name))) for row in rows),
        sources=_sources(own) if own else (),
        stall=stall,
        detail="standard"
        if stall and "pcsamp" in base
        else min((a.detail for a in asks), key=DETAILS.index, default=None),
        always=base.startswith(_ALWAYS_STORED),
        near=() if rows or asks or stall else tuple(near_names(base, _bases(prefix))),
        page=next((page for page, of in FAMILIES.items() if rows and rows[0] in of), family_of(base)),
    )


def _read_from(base: str) -> Iterator[Counter]:
    places = {row: _sources(row).index(base) for row in COUNTERS if base in _sources(row)}
    yield from sorted(places, key=lambda row: places[row])


def _sources(row: Counter) -> tuple[str, ...]:
    return tuple(dict.fromkeys(base for recipe in row.recipes for base in bases_of(recipe)))


def _counts(base: str) -> str:
    """Say what a count is, of the parts of a name; empty for quotients and where none of the parts is known."""
    if "_per_" in base:
        return ""
    thing = next((words for part, words in _THINGS if part in base), "")
    which = [words for part, words in _WHICH if re.search(part, base)]
    return f"{thing} ({', '.join(which)})" if thing and which else thing


def _findings(need: str) -> Iterator[str]:
    return (rule.id for rule in RULES if any(need in group for group in rule.needs))


def _stall(base: str) -> str | None:
    found = re.search(r"issue_stalled_(\w+?)(?:_not_issued)?(?:_per_\w+)?$", base)
    reason = found and OTHER_NAMES.get(found[1], found[1])
    return reason if reason and find_item("stalls", reason) else None


def _bases(unit: str) -> tuple[str, ...]:
    found = dict.fromkeys(base for row in COUNTERS for base in _sources(row))
    return tuple(base for base in found if base.startswith(f"{unit}__"))


@cache
def _asks() -> tuple[Ask, ...]:
    of_tensor = dict.fromkeys(ask for chip in sorted(CHIPS) for ask in tensor_asks(chip))
    return (*(ask for row in COUNTERS for ask in row.asks()), *BESIDE, *of_tensor)
