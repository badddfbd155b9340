"""The details page, and the output of `--metrics`: a row per metric of a launch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from msgspec import Struct, field

from rooflens.format import some
from rooflens.ingest.exports.kernels import ExportedKernel, identified
from rooflens.ingest.exports.labels import metric_of
from rooflens.ingest.exports.numbers import PrintedValue, Style, parse, style_of
from rooflens.ingest.exports.sentences import metrics_of_messages, title_of
from rooflens.ingest.exports.tables import (
    ID,
    IDENTITY,
    INVOCATIONS,
    METRIC,
    RULE,
    RULE_TEXT,
    SECTION,
    SPEEDUP,
    SPEEDUP_OF,
    UNIT,
    VALUE,
    ExportFacts,
    Header,
)
from rooflens.ingest.exports.units import is_count, power_of
from rooflens.model.counters.labels import BUSY
from rooflens.model.records import Rule

_SAMPLE_ROWS = 2_000
_OF_KERNEL, _OF_UNIT = "global", "local"

_FEWEST_ALIKE = 3
"""Launches that a process needs before the metrics missing from a launch can be told."""

_OF_SOME = frozenset({"Dropped Samples"})
"""Labels that ncu prints only for launches to which they apply."""

_SINCE_2025_4 = frozenset({"Local Memory Spilling Requests", "Shared Memory Spilling Requests"})
"""Labels that ncu prints since 2025.4: they reveal the version."""


class _Launch(Struct):
    """One launch while its rows are collected.

    Attributes:
        shown: Section and label of its rows so far, in their order.
        rows: A hash of each row; labels alone are not enough, as charts of a section may repeat them.
        rules: NVIDIA's rules about the kernel.
        busy: Values of the labels in `BUSY`, in per cent.
    """

    kernel: ExportedKernel
    shown: dict[tuple[str, str], None] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    rules: set[Rule] = field(default_factory=set)
    busy: dict[str, float] = field(default_factory=dict)


def long_kernels(header: Header, rows: Iterator[list[str]], facts: ExportFacts) -> list[ExportedKernel]:
    """Collect the launches of a table with a row per metric, in order of first appearance."""
    sample = list(islice(rows, _SAMPLE_ROWS))
    facts.style = style_of(_printed_values(header, sample), facts.style)
    if UNIT not in header.columns:
        facts.is_without_units = True
    table = _LongTable(header, facts)
    for cells in chain(sample, rows):
        table.add(cells)
    return table.finish()


def _printed_values(header: Header, rows: Sequence[Sequence[str]]) -> Iterator[PrintedValue]:
    for cells in rows:
        unit = header.cell(cells, UNIT)
        is_counted = is_count(header.cell(cells, METRIC), unit)
        yield PrintedValue(header.cell(cells, VALUE), unit == "%", is_count=is_counted)


class _LongTable:
    def __init__(self, header: Header, facts: ExportFacts) -> None:
        self._header = header
        self._facts = facts
        self._identity = [header.columns[name] for name in IDENTITY if name in header.columns]
        self._least_cells = max(self._identity, default=-1) + 1
        self._has_ids = ID in header.columns
        self._launches: dict[tuple[str, ...], _Launch] = {}
        self._done: list[_Launch] = []
        self._fewest = self._last_count = len(header.names)

    def add(self, cells: list[str]) -> None:
        """Add a row. One with too many cells has shifted values, one with too few belongs to no launch."""
        if not self._least_cells <= len(cells) <= len(self._header.names):
            self._facts.broken_rows += 1
            return
        section, label = self._header.cell(cells, SECTION), self._header.cell(cells, METRIC)
        rule = self._header.cell(cells, RULE)
        if not label and not rule:
            return
        self._fewest, self._last_count = min(self._fewest, self._last_count), len(cells)
        if len(cells) <= self._header.columns.get(RULE_TEXT if rule else VALUE, 0):
            self._facts.broken_rows += 1
            self._launch(cells, None)
            return
        launch = self._launch(cells, (section, label) if label else None)
        if rule and (told := self._rule(cells, section, rule)) not in launch.rules:
            launch.rules.add(told)
            launch.kernel.rules.append(told)
        if label:
            self._add_metric(launch, label, self._header.cell(cells, UNIT), self._header.cell(cells, VALUE))

    def _launch(self, cells: Sequence[str], shown: tuple[str, str] | None) -> _Launch:
        """Find the launch of a row; in a table without IDs, a repeated metric starts the next launch."""
        key = tuple(cells[place] for place in self._identity)
        launch = self._launches.get(key)
        if launch is None or (not self._has_ids and shown in launch.shown):
            launch = _Launch(identified(cells, self._header))
            if self._header.cell(cells, INVOCATIONS):
                name = launch.kernel.function_name
                self._facts.merged[name] = self._facts.merged.get(name, 0) + launch.kernel.launches
            self._launches[key] = launch
            self._done.append(launch)
        if shown is not None:
            launch.rows.append(hash(tuple(cells)))
            launch.shown[shown] = None
        return launch

    def _add_metric(self, launch: _Launch, label: str, unit: str, text: str) -> None:
        power = power_of(unit)
        if power is None:
            self._facts.unknown_units[unit] += 1
            return
        if label in BUSY:
            value = parse(text, self._facts.style)
            if value is not None and math.isfinite(value) and unit == "%":
                launch.busy[label] = value
            return
        metric = metric_of(label, unit)
        if metric is None:
            self._facts.unknown_labels[label] += 1
        elif self._facts.is_wanted(metric) and metric not in launch.kernel.numbers:
            launch.kernel.add(metric, text, self._facts.style, power)

    def _rule(self, cells: Sequence[str], section: str, name: str) -> Rule:
        """Read the row of a rule; its speed-up may be of the whole kernel, of one unit, or missing."""
        decimal = self._header.cell(cells, SPEEDUP).replace(",", ".")  # percentages have no thousands separators
        of, pct = self._header.cell(cells, SPEEDUP_OF).casefold(), parse(decimal, Style())
        speedup_pct = pct if pct is not None and math.isfinite(pct) else None
        message = self._header.cell(cells, RULE_TEXT)
        return Rule(
            identifier=name,
            section=section,
            title=title_of(message),
            message=message,
            speedup_pct=speedup_pct if of == _OF_KERNEL else None,
            unit_speedup_pct=speedup_pct if of == _OF_UNIT else None,
        )

    def finish(self) -> list[ExportedKernel]:
        """Finish the launches: choose the metrics that depend on ncu's version, and note what is missing."""
        for launch in self._done:
            launch.kernel.lost = self._facts.cut.get(launch.kernel.launch[0] if launch.kernel.launch else "")
            half = len(launch.rows) // 2
            self._facts.doubled += half > 0 and launch.rows[:half] == launch.rows[half:]
            labels = {label for _, label in launch.shown}
            cycles = "elapsed" if labels & _SINCE_2025_4 else "active"
            for label, value in launch.busy.items():
                metric = f"{BUSY[label]}.pct_of_peak_sustained_{cycles}"
                if self._facts.is_wanted(metric):
                    launch.kernel.numbers.setdefault(metric, value)
            numbers = launch.kernel.numbers
            for metric, value in metrics_of_messages(rule.message for rule in launch.kernel.rules).items():
                if self._facts.is_wanted(metric):
                    numbers.setdefault(metric, value)
        if self._done and (self._facts.is_cut or self._last_count < self._fewest):
            self._done[-1].kernel.lost = "its last row ends early"
        _note_missing(self._done)
        return [launch.kernel for launch in self._done]


def _note_missing(launches: Sequence[_Launch]) -> None:
    """Note what a launch lacks if all others of its process have it: ncu prints the same metrics for each.

    If the second of two launches has just the first rows of the other, it was cut.
    """
    by_process: dict[tuple[str, ...], list[_Launch]] = {}
    for launch in launches:
        by_process.setdefault((launch.kernel.workload, launch.kernel.process or ""), []).append(launch)
    for same in by_process.values():
        often = Counter(chain.from_iterable(launch.shown for launch in same))
        nearly_all = [shown for shown, times in often.items() if times == len(same) - 1]
        lacking = [(launch, [one for one in nearly_all if one not in launch.shown]) for launch in same]
        if len(same) < _FEWEST_ALIKE:
            rows = [list(launch.shown) for launch in same]
            is_start = rows[-1] == rows[0][: len(rows[-1])]
            lacking = [(same[-1], rows[0][len(rows[-1]) :] if is_start else [])]
        for launch, missed in lacking:
            told = [label for _, label in missed if label not in _OF_SOME]
            if told and launch.kernel.lost is None:
                launch.kernel.lost = f"it lacks metrics that the other launches have: {some(told)}"
