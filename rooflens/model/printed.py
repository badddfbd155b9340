"""What ncu prints, explained: its sections, labels and rules, found by whatever people type of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from msgspec import Struct

from rooflens.model.counters.formulas import formulas_of
from rooflens.model.counters.labels import BUSY, LABELS, SECTIONS, STALL_COLUMNS, Section, metrics_of, stall_of
from rooflens.model.counters.recipes import Amount, Counter, Exact, Mean, Recipe, Share
from rooflens.model.counters.table import COUNTERS
from rooflens.model.knowledge.items import LabelWords, section_words

_FP = re.compile(
    r"(?P<peak>Theoretical )?Predicated-On (?P<op>[DF](?:ADD|MUL|FMA)) "
    r"(?P<what>Thread Instructions Executed|Operations).*"
)
_BALANCE = re.compile(r"(Average|Total) [\w ]+ (Active|Elapsed) Cycles")
_RULE_OF_A_STALL = re.compile(r"CPIStall(?P<reason>[A-Z]\w+)")


class PrintedLabel(Struct, frozen=True):
    """A label that ncu prints, explained.

    Attributes:
        name: As it is printed.
        sections: Where it is printed, the first that explains it first.
        metrics: Behind it; if there are several, the unit decides.
        also: Other labels of the same metric, of other versions.
        formula: Of labels and metrics; empty where none is known, or the quantity is its own count.
        quantity: What rooflens calls it; empty where it does not read it.
    """

    name: str
    sections: tuple[Section, ...]
    metrics: tuple[str, ...]
    also: tuple[str, ...]
    formula: str
    quantity: str
    words: LabelWords


class RuleAbout(Struct, frozen=True):
    """A rule of ncu, explained.

    Attributes:
        stall: The stall reason that the rule is about; empty if it is about none or all.
    """

    identifier: str
    title: str
    section: Section
    words: LabelWords
    stall: str = ""


def printed_labels() -> tuple[str, ...]:
    """Return the labels that ncu prints, but for those of charts, which name an instruction or a stall reason."""
    return (*LABELS, *BUSY)


def find_section(name: str) -> Section | None:
    """Return a section by its identifier or any of its names; None if there is none."""
    asked = _plain_label(name).removeprefix("sections/").removeprefix("section: ")
    return next((one for one in SECTIONS if asked in map(_plain_label, (one.identifier, *one.names))), None)


def find_rule(name: str) -> RuleAbout | None:
    """Return a rule by its identifier or its heading; None if there is none."""
    asked = _plain_label(name).removeprefix("rules/")
    for section in SECTIONS:
        for identifier, title in section.rules.items():
            if asked in {identifier.casefold(), title.casefold()}:
                return RuleAbout(identifier, title, section, section_words(section.identifier).rules[identifier])
    found = _RULE_OF_A_STALL.fullmatch(name.strip().removeprefix("rules/"))
    if found is None or (general := find_rule("CPIStall")) is None:
        return None
    reason = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found["reason"]).casefold()
    title = f"CPI Stall '{reason.replace('_', ' ').title()}'"
    return RuleAbout(found[0], title, general.section, general.words, reason)


def find_stall(name: str) -> str | None:
    """Return the stall reason of a row of the chart of warp states, or of a column of the source page: `stall_lg`."""
    asked = re.sub(r" \(not issued\)$", "", name.strip(), flags=re.IGNORECASE)
    start, divider, column = asked.casefold().partition("_")
    return stall_of(asked.title()) if not divider else STALL_COLUMNS.get(column) if start == "stall" else None


def find_label(name: str) -> PrintedLabel | None:
    """Return a label as ncu prints it, in any case, with or without its unit and value; None if it prints none such."""
    typed = re.split(r"\s{2,}|\t", name.strip())[0].removeprefix("labels/")
    known = _labels_by_plain_name().get(_plain_label(typed))
    label = known or next(filter(metrics_of, (typed, _as_in_charts(typed))), "")
    return _explained_label(label) if label and stall_of(label) is None else None


def _as_in_charts(typed: str) -> str:
    """Write `predicated-on ffma ...` as charts do."""
    return re.sub(r"\b[df](?:add|mul|fma)\b", lambda found: found[0].upper(), typed.title(), flags=re.IGNORECASE)


def find_like(name: str, others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names that hold every word of what was asked for, or that it holds with nothing but a question.

    Words are compared without case, plural, units and numbers: `l1 hit rate` finds `L1/TEX Hit Rate`.

    Args:
        name: What was asked for.
        others: What can be asked for besides labels, sections and rules.
    """
    asked = _tokens(name)
    if not asked:
        return ()
    searched = _searched(tuple(others))
    same = [one for one, tokens in searched.items() if tokens == asked]
    holding = same or [one for one, tokens in searched.items() if asked <= tokens]
    held = holding or [one for one, tokens in searched.items() if tokens and tokens <= asked <= tokens | _ASKING]
    return tuple({_subject(one): one for one in reversed(held)}.values())[::-1]


def nearest(name: str, others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return up to three names that share most words with what was asked for, half of their own or more."""
    asked = _tokens(name) - _ASKING
    shared = {
        one: len(asked & tokens) / len(asked | tokens) for one, tokens in _searched(tuple(others)).items() if tokens
    }
    near = sorted((one for one, part in shared.items() if part >= _NEAR), key=lambda one: -shared[one])
    return tuple({_subject(one): one for one in reversed(near)}.values())[::-1][:3]


def everything_printed() -> tuple[str, ...]:
    """Return the names of all labels, sections and rules."""
    sections = (name for one in SECTIONS for name in (one.identifier, *one.names))
    rules = (name for one in SECTIONS for name in (*one.rules, *one.rules.values()))
    return tuple(dict.fromkeys((*printed_labels(), *sections, *rules)))


def labels_of(metric: str) -> tuple[str, ...]:
    """Return the labels under which ncu prints a metric, the one that explains it first."""
    return tuple(label for label in printed_labels() if metric in _metrics_of_label(label))


def _metrics_of_label(label: str) -> tuple[str, ...]:
    if label in BUSY:
        return tuple(f"{BUSY[label]}.pct_of_peak_sustained_{cycles}" for cycles in ("elapsed", "active"))
    return metrics_of(label)


def _explained_label(label: str) -> PrintedLabel:
    sections = tuple(_printing(label))
    words = _words_of(label, sections)
    metrics = _metrics_of_label(label)
    row = next((row for metric in metrics for row in COUNTERS if _is_of(row, metric)), None)
    return PrintedLabel(
        label,
        sections,
        metrics,
        tuple(one for one in LABELS if one != label and metrics == LABELS[one] and sections[0].labels.get(one)),
        _formula(label, words, row),
        row.name if row else "",
        words,
    )


def _formula(label: str, words: LabelWords, row: Counter | None) -> str:
    """Return the formula in the words, else that by which rooflens works the quantity out, in the unit of the label."""
    if found := _FP.fullmatch(label):
        return words.formula.format(op=found["op"].lower())
    way = next(_worked_out(row), "") if row else ""
    of_share = "100 x " if way and words.unit.startswith("%") else ""
    return words.formula or of_share + way.removeprefix("= ")


def _printing(label: str) -> Iterator[Section]:
    if label in BUSY:
        yield _section("ComputeWorkloadAnalysis")
    elif label in LABELS:
        yield from (one for one in SECTIONS if label in one.labels)
    else:
        yield _section("SpeedOfLight_RooflineChart")


@cache
def _section(identifier: str) -> Section:
    return next(one for one in SECTIONS if one.identifier == identifier)


def _words_of(label: str, sections: tuple[Section, ...]) -> LabelWords:
    """Return the words of a label: its own, or those of another label of the same metric or kind.

    Raises:
        KeyError: Nobody wrote them.
    """
    for section in sections:
        known = section_words(section.identifier).labels
        alike = (one for one, metrics in section.labels.items() if metrics == section.labels.get(label))
        for name in (label, _kind_of_label(label), *alike):
            if name in known:
                return known[name]
    raise KeyError(label)


def _kind_of_label(label: str) -> str:
    """Return what labels that differ in a unit or an instruction are explained as."""
    if found := _FP.fullmatch(label):
        return f"{found['peak'] or ''}Predicated-On {found['what']}"
    found = _BALANCE.fullmatch(label)
    return f"{found[1]} {found[2]} Cycles" if found else label


def _is_of(row: Counter, metric: str) -> bool:
    """Return whether a quantity of ours is this metric as it is, and nothing more."""
    return any(_takes(recipe, metric) for recipe in row.recipes)


def _takes(recipe: Recipe, metric: str) -> bool:
    base, _, form = metric.partition(".")
    match recipe:
        case Exact(names=names):
            return metric in names
        case Share(bases=bases):
            return base in bases and form.startswith("avg.pct_of_peak")
        case Amount(groups=groups):
            return (base,) in groups and form == "sum"
        case Mean(base=name):
            return metric == f"{name}.avg"
        case _:
            return False


def _worked_out(row: Counter) -> Iterator[str]:
    """Yield how rooflens works a quantity out where a report does not store it."""
    for recipe in row.recipes:
        if not isinstance(recipe, Exact | Share | Amount | Mean):
            yield from formulas_of(recipe)


_SYNONYMS: Mapping[str, str] = {
    "avg": "average",
    "bw": "bandwidth",
    "freq": "frequency",
    "inst": "instruction",
    "instr": "instruction",
    "max": "maximum",
    "mem": "memory",
    "multiprocessor": "sm",
    "occ": "occupancy",
    "reg": "register",
    "smem": "shared memory",
    "l1tex": "l1 tex",
    "util": "utilization",
    "utilisation": "utilization",
}
"""Short form of a word -> the word."""

_NEAR = 0.4
"""Least part of all their words that two names share, for one to be suggested for the other."""

_IDLE = frozenset({"per", "of", "the", "a", "an", "in", "and", "for", "on", "ncu", "pct", "percent", "no"})
_ASKING = frozenset(
    {
        *("what", "is", "are", "does", "do", "mean", "how", "why", "my", "value", "metric", "section", "rule", "label"),
        *("byte", "kbyte", "mbyte", "gbyte", "second", "nsecond", "usecond", "msecond", "cycle", "block", "thread"),
        *("warp", "instruction", "register", "sector", "hz", "ghz", "ms", "us", "ns", "s", "gb", "tb", "mb", "kb"),
    }
)
"""Words that a question, or a row with its unit, may hold besides the name."""


def _tokens(text: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    words = re.findall(r"[a-z0-9]+", spaced.casefold())
    alone = (re.sub(r"(?<=[a-rt-z0-9])s$", "", word) if len(word) > 2 else word for word in words)
    whole = (part for word in alone for part in _SYNONYMS.get(word, word).split())
    return frozenset(word for word in whole if word not in _IDLE and not (word.isdigit() and len(words) > 1))


@cache
def _searched(others: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
    return {name: _tokens(name) for name in (*everything_printed(), *others)}


def _subject(name: str) -> str:
    """Return what is explained under a name: labels of one metric are one subject, as are the names of a section."""
    if section := find_section(name):
        return section.identifier
    if rule := find_rule(name):
        return rule.identifier
    return str(_metrics_of_label(name)) if name in printed_labels() else name


@cache
def _labels_by_plain_name() -> Mapping[str, str]:
    return {_plain_label(label): label for label in printed_labels()}


def _plain_label(name: str) -> str:
    """Return a name without case, unit in brackets, and stray spaces."""
    text = " ".join(name.casefold().split())
    return text if text in {"sm [%]", "memory [%]", "compute (sm) [%]"} else re.sub(r" ?(\[[^]]*\]|%|:)$", "", text)
