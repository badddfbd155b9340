"""The dictionary of ncu: every label, section and rule that it prints is explained, by one list, rightly."""

from __future__ import annotations

import re
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest
from support.numbers_stored import stored_in

from rooflens.errors import UnknownNameError
from rooflens.format import sentence_case
from rooflens.model.about import about_counter, find_about, find_word
from rooflens.model.counters.balance import STALLS
from rooflens.model.counters.labels import LABELS, SECTIONS, SHOWN, STALL_COLUMNS, metrics_of
from rooflens.model.knowledge import items
from rooflens.model.knowledge.items import LabelWords, section_words, words
from rooflens.model.printed import (
    find_label,
    find_like,
    find_rule,
    find_section,
    find_stall,
    printed_labels,
)
from rooflens.report.writers.markdown import to_markdown
from rooflens.writing.about import explained

_FOLDER = Path(items.__file__).parent / "sections"
_CHARTS = tuple(
    f"{peak}Predicated-On {op} {what}"
    for peak in ("", "Theoretical ")
    for op, what in (("DFMA", "Operations"), ("FADD", "Thread Instructions Executed"))
)
_STATES = tuple(f"Stall {reason.replace('_', ' ').title()}" for reason in (*STALLS, "selected"))
_CLOSE = 0.025
"""Counters of different passes differ by so much; a formula that is wrong is off by more."""


def _all_words() -> dict[str, LabelWords]:
    found = {one.identifier: section_words(one.identifier) for one in SECTIONS}
    return {
        f"{identifier}: {name}": told
        for identifier, section in found.items()
        for name, told in (*section.labels.items(), *section.rules.items())
    }


def test_every_section_has_a_file_and_every_label_and_rule_its_words_and_no_others() -> None:
    """Files, labels and rules of the words are those of the table of what ncu prints, to the last."""
    assert {file.stem for file in _FOLDER.iterdir()} == {one.identifier for one in SECTIONS}
    used = {id(label.words) for name in (*printed_labels(), *_CHARTS) if (label := find_label(name))}
    rules = {id(rule.words) for one in SECTIONS for name in one.rules if (rule := find_rule(name))}
    assert [name for name, told in _all_words().items() if id(told) not in used | rules] == []
    assert [one for one in SECTIONS if section_words(one.identifier).rules.keys() != one.rules.keys()] == []


def test_everything_in_the_table_is_explained() -> None:
    """Labels, sections by each name, rules by identifier and heading, stall reasons and metrics all have an answer."""
    names = [
        *printed_labels(),
        *_CHARTS,
        *_STATES,
        *(f"stall_{column}" for column in STALL_COLUMNS),
        *(name for one in SECTIONS for name in (one.identifier, *one.names, f"sections/{one.identifier}")),
        *(name for one in SECTIONS for rule in one.rules.items() for name in rule),
        *SHOWN,
    ]
    assert [name for name in names if not explained(name)] == []
    for name in (*printed_labels(), *_CHARTS):
        label = find_label(name.upper())
        assert label is not None, name
        assert label.name.casefold() == name.casefold()
        assert label.words.unit, name


def test_an_answer_is_short_and_written_in_sentences() -> None:
    """Each answer has under 300 words; meanings and limits end with a full stop, what to try ends without."""
    for name in (*printed_labels(), *_CHARTS, *(one.identifier for one in SECTIONS), *words()):
        told = to_markdown(explained(name))
        parts = re.split(r"(?m)^# ", told)
        assert all(len(re.findall(r"\S*\w\S*", part)) < 300 for part in parts), name
    for name, told in _all_words().items():
        assert told.meaning.strip().endswith("."), name
        assert told.blind.strip().endswith("."), name
        assert told.tries, name
        assert not any(one.endswith(".") for one in told.tries), name


def test_what_an_answer_refers_to_exists() -> None:
    """Every name behind `More:` has an answer of its own."""
    refers = {see for told in _all_words().values() for see in told.see} | {
        see for one in words().values() for see in one.see
    }
    unknown = []
    for name in sorted(refers):
        try:
            assert find_word(name) or find_label(name) or find_section(name) or find_rule(name) or find_about(name)
        except UnknownNameError:
            unknown += [name] if not explained(name) else []
    assert unknown == []


def _value(formula: str, numbers: dict[str, float]) -> float | None:
    """Work a formula out; None where the report lacks a part, or the formula is words."""

    def number(found: re.Match[str]) -> str:
        name = found[1]
        known = [numbers[one] for one in (name, *metrics_of(name)) if one in numbers]
        if not known:
            raise KeyError(name)
        return repr(known[0] / 1e9 if name == "Duration" else known[0])

    try:
        code = re.sub(r"`([^`]+)`", number, formula).replace(" x ", " * ")
    except KeyError:
        return None
    if re.search(r"[a-z]{2,}", re.sub(r"\b(?:min|ceil|floor|e\+\d+)\b", "", code)):
        return None
    scope: dict[str, Any] = {"min": min, "ceil": ceil, "floor": floor, "__builtins__": {}}
    try:
        return float(eval(code, scope))  # noqa: S307 - of our own table
    except ZeroDivisionError:
        return None


def held_formulas(reports: list[Path]) -> tuple[set[str], list[str]]:
    """Work out every label that has a formula, for every kernel.

    Returns:
        The labels that were worked out and are not 0, and what differs from the value that ncu stored.
    """
    held, wrong = set(), []
    labels = [label for name in (*printed_labels(), *_CHARTS) if (label := find_label(name)) and label.formula]
    for path in reports:
        for stored in stored_in(path):
            numbers = dict(stored.numbers)
            if all(round(value, 2) == value for value in numbers.values()):
                continue  # as printed, in two digits
            for label in labels:
                given = next((numbers[name] for name in label.metrics if name in numbers), None)
                made = _value(label.formula, numbers)
                if given is None or made is None or max(given, made) <= 0:
                    continue
                held.add(label.name)
                if made != pytest.approx(given, rel=_CLOSE):
                    wrong.append(f"{path.name} {stored.kernel.index} {label.name}: {made:g}, stored {given:g}")
    return held, wrong


def test_formulas_give_what_ncu_stored(fixtures: Path) -> None:
    """Each formula, worked out of the stored metrics of published kernels, gives the label's stored value."""
    held, wrong = held_formulas(sorted((fixtures / "published").glob("*.ncu-rep")))
    assert wrong == []
    assert len(held) > 8, held


def test_a_formula_is_that_of_the_reader_where_it_has_one() -> None:
    """A quantity that rooflens works out is explained by its recipe, never by a second formula in words."""
    for name, told in _all_words().items():
        label = find_label(name.partition(": ")[2])
        if label and label.quantity and told.formula:
            assert label.formula == told.formula
            counter = about_counter(label.quantity)
            assert counter is not None
    waves = find_label("Waves Per SM")
    assert waves is not None
    assert waves.words.formula == ""
    assert waves.formula == "`grid_size` / (`sm_count` x the least of `blocks_limit_*`)"


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("l1 hit rate", "L1/TEX Hit Rate"),
        ("waves per sm", "Waves Per SM"),
        ("Waves Per Multiprocessor", "Waves Per SM"),
        ("what is waves per SM?", "Waves Per SM"),
        ("Compute (SM) Throughput             %        58.31", "Compute (SM) Throughput"),
        ("compute throughput [%]", "Compute (SM) Throughput"),
        ("block limit shared memory", "Block Limit Shared Mem"),
        ("regs per thread", "Registers Per Thread"),
        ("average active threads per warp", "Avg. Active Threads Per Warp"),
        ("Duration us", "Duration"),
        ("no eligible %", "No Eligible"),
        ("Section: Launch Statistics", "Launch Statistics"),
        ("stall_long_sb", "Long Scoreboard"),
        ("Stall MIO Throttle", "MIO Throttle"),
        ("SOL SM", "SOL SM"),
        ("float4", "Vectorized loads"),
        ("persistent", "Persistent kernel"),
        ("bank conflict", "Bank conflict"),
        ("CPIStallLongScoreboard", "CPI Stall 'Long Scoreboard'"),
        ("Uncoalesced Global Accesses", "Uncoalesced Global Accesses"),
    ],
)
def test_what_people_type_is_found(asked: str, title: str) -> None:
    """Case, plural, units, values, short forms and questions lead to the answer."""
    told = to_markdown(explained(asked))
    assert sentence_case(told.removeprefix("# ").splitlines()[0]) == sentence_case(title)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("block limit", "Block Limit Registers"),
        ("Warp Cycles Per Isued Instruction", "Warp Cycles Per Issued Instruction"),
        ("Acheived Occupancy", "Achieved Occupancy"),
        ("bank conflict in shared memory", "bank conflict"),
    ],
)
def test_an_unknown_name_gets_the_nearest_label(asked: str, hint: str) -> None:
    """What is one of many, misspelt, or said with other words is answered with what is near."""
    with pytest.raises(UnknownNameError) as error:
        explained(asked)
    assert f"`{hint}`" in str(error.value.hint)


def test_a_metric_says_under_which_label_it_is_printed() -> None:
    """The answer for a metric of ncu leads to its label, and the label names the metric."""
    assert "ncu prints it as `Waves Per SM`" in to_markdown(explained("launch__waves_per_multiprocessor"))
    assert "`launch__waves_per_multiprocessor`" in to_markdown(explained("Waves Per SM"))


def test_labels_of_several_kinds_are_told_apart() -> None:
    """A stall reason is no label, an old label names the new one, and nothing is like an empty question."""
    assert find_label("Stall Long Scoreboard") is None
    assert find_stall("stall_imc (Not Issued)") == "imc_miss"
    old = find_label("SOL FB")
    assert old is not None
    assert "DRAM Throughput" in old.also
    assert find_like("?") == ()
    assert len(LABELS) > 100
